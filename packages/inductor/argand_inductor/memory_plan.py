"""Where each tensor of a program lives, and when it dies.

Buffers that nobody outside can see share one arena a device, allocated once a call. On devices it is used in the order of the
current stream. Within it buffers whose lives do not meet share
memory: those of known size at fixed offsets (largest first, each at the lowest free place), those of symbolic size in slots
of equal size expression, behind the others. Lives are counted in steps, both ends included, so that what a step writes
never lies where it reads, unless the step allows it (`KernelStep.reuse`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from argand_inductor.program import (
    AliasStep,
    Buf,
    Expr,
    ExternStep,
    ProgramSpec,
    call_of,
    kernel_of,
    names_in,
    reads_of,
    results_of,
    writes_of,
)
from argand_inductor.schemas import aliases_of

ALIGNMENT = 64
ITEM_SIZE = {
    "bool": 1,
    "uint8": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
    "complex64": 8,
    "complex128": 16,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "uint16": 2,
    "uint32": 4,
    "uint64": 8,
}

# "arena": part of the arena; "own": a tensor with memory of its own; "result": an operator's; "alias": another's memory.
Home = Literal["arena", "own", "result", "alias"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a buffer lives.

    Attributes:
        home: see above.
        offset: bytes from the arena's start; of slot `slot` if that is given.
        slot: index of the arena's symbolic slot, None for a fixed offset.
        device: whose arena it is.
        first, last: the steps of its life; `last` is the number of steps for what the caller gets.
    """

    home: Home
    first: int
    last: int
    offset: int = 0
    slot: int | None = None
    device: str = "cpu"


@dataclass(frozen=True, slots=True)
class Arena:
    """Memory of one device.

    Attributes:
        fixed_bytes: the part with offsets known now.
        slots: sizes of the symbolic slots behind it: a constant and factors whose product is a number of bytes.
    """

    device: str
    fixed_bytes: int
    slots: tuple[tuple[int, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The plan of a program.

    Attributes:
        places: for each buffer of the spec that a step makes.
        arenas: one a device that needs it.
        needs_tensor: names that are used as tensors, not only as memory.
        last_use: for each name the last step that uses it directly (number of steps for outputs).
    """

    places: dict[str, Place]
    arenas: tuple[Arena, ...]
    needs_tensor: frozenset[str]
    last_use: dict[str, int]

    def __str__(self) -> str:
        lines = []
        for arena in self.arenas:
            slots = [" * ".join((str(c), *factors)) for c, factors in arena.slots]
            device = "" if arena.device == "cpu" else f" on {arena.device}"
            extra = "".join(f" + {slot}" for slot in slots)
            lines.append(f"arena{device}: {arena.fixed_bytes} bytes{extra}")
        lines = lines or ["arena: 0 bytes"]
        for name, place in self.places.items():
            where: str = place.home
            if place.home == "arena":
                slot = f" of slot {place.slot}" if place.slot is not None else ""
                where = f"arena at {place.offset}{slot}"
            lines.append(f"{name}: {where}, steps {place.first} to {place.last}")
        return "\n".join(lines)


@dataclass(slots=True)
class _Block:
    """Buffers that take over the same memory one from the other."""

    size: tuple[int, tuple[str, ...]]
    device: str
    first: int
    last: int
    names: list[str] = field(default_factory=list)


def byte_size(sizes: tuple[Expr, ...], dtype: str) -> tuple[int, tuple[str, ...]]:
    """Bytes of a dense tensor as (constant factor, sorted symbolic factors)."""
    constant, factors = ITEM_SIZE[dtype], []
    for size in sizes:
        if isinstance(size, int):
            constant *= size
        else:
            factors.append(size)
    return (0, ()) if constant == 0 else (constant, tuple(sorted(factors)))


class _Lives:
    """Which names share memory, and from which step to which each is needed."""

    def __init__(self, spec: ProgramSpec, aliases: Callable[[str], list[tuple[int, int]]]) -> None:
        self.spec = spec
        self.end = len(spec.steps)
        self.parent: dict[str, str] = {}
        self.first: dict[str, int] = {}
        self.last_use: dict[str, int] = {}
        self.results: set[str] = set()
        self.alias_outs: set[str] = set()
        self.needs_tensor = {out.name for out in spec.outputs if isinstance(out, Buf)}
        for index, step in enumerate(spec.steps):
            for name in (*reads_of(step), *writes_of(step)):
                self.first.setdefault(name, index)
                self.last_use[name] = index
            if isinstance(step, AliasStep):
                self.alias_outs.add(step.out)
                self.join(step.out, step.source)
            elif (call := call_of(step)) is not None:
                self._extern(call, aliases)
        for out in spec.outputs:
            if isinstance(out, Buf):
                self.last_use[out.name] = self.end
        for step in reversed(spec.steps):
            if not isinstance(step, AliasStep):
                continue
            if step.out in self.needs_tensor:
                self.needs_tensor.add(step.source)
            else:  # only an address: the source's tensor keeps the memory
                self.last_use[step.source] = max(
                    self.last_use[step.source], self.last_use[step.out]
                )

    def _extern(self, step: ExternStep, aliases: Callable[[str], list[tuple[int, int]]]) -> None:
        self.results.update(results_of(step))
        self.needs_tensor.update(reads_of(step))
        for result, argument in aliases(step.operator):
            output = step.outputs[result]
            for name in output if isinstance(output, tuple) else (output,):
                for source in names_in(step.args[argument]):
                    if name is not None:
                        self.join(name, source)

    def root(self, name: str) -> str:
        while (up := self.parent.get(name, name)) != name:
            name = up
        return name

    def join(self, name: str, source: str) -> None:
        if (low := self.root(name)) != (high := self.root(source)):
            self.parent[low] = high

    def groups(self) -> dict[str, tuple[int, int]]:
        """By root: first and last step at which any member is needed."""
        spans: dict[str, tuple[int, int]] = {}
        for name, first in self.first.items():
            root = self.root(name)
            low, high = spans.get(root, (first, first))
            spans[root] = (min(low, first), max(high, self.last_use[name]))
        return spans


def _blocks(
    spec: ProgramSpec, lives: _Lives, arena: list[str], spans: dict[str, tuple[int, int]]
) -> list[_Block]:
    """One block a buffer, then those joined that a step lets take over the other's memory."""
    blocks: dict[str, _Block] = {}
    members: dict[str, int] = {}
    for name in lives.first:
        members[lives.root(name)] = members.get(lives.root(name), 0) + 1
    for name in arena:
        first, last = spans[lives.root(name)]
        buffer = spec.buffers[name]
        blocks[name] = _Block(
            byte_size(buffer.sizes, buffer.dtype), buffer.device, first, last, [name]
        )
    for index, step in enumerate(spec.steps):
        if (kernel := kernel_of(step)) is None:
            continue
        for written, read in kernel.reuse:
            a, b = blocks.get(read), blocks.get(written)
            if a is None or b is None or a is b or a.size != b.size or a.device != b.device:
                continue
            if members[lives.root(read)] > 1 or members[lives.root(written)] > 1:
                continue
            if a.last != index or b.first != index or kernel.args.count(read) != 1:
                continue
            a.names += b.names
            a.last = b.last
            for name in b.names:
                blocks[name] = a
    return list({id(block): block for block in blocks.values()}.values())


def _place_fixed(blocks: list[_Block]) -> tuple[dict[int, int], int]:
    """Offsets of blocks of known size, by id; and the bytes that they take together."""
    placed: list[tuple[int, int, _Block]] = []  # sorted by offset: start, end
    offsets: dict[int, int] = {}
    total = 0
    for block in sorted(blocks, key=lambda b: (-b.size[0], b.first)):
        size = -(-block.size[0] // ALIGNMENT) * ALIGNMENT
        offset, at = 0, 0
        for index, (start, end, other) in enumerate(placed):
            if other.first > block.last or other.last < block.first:
                continue
            if offset + size <= start:
                break
            if end > offset:
                offset, at = end, index + 1
        while at < len(placed) and placed[at][0] < offset:
            at += 1
        placed.insert(at, (offset, offset + size, block))
        offsets[id(block)] = offset
        total = max(total, offset + size)
    return offsets, total


def _place_symbolic(
    blocks: list[_Block],
) -> tuple[dict[int, int], list[tuple[int, tuple[str, ...]]]]:
    """Slots of blocks of symbolic size, by id; and the slots' sizes."""
    slots: list[tuple[int, tuple[str, ...]]] = []
    busy_until: list[int] = []
    chosen: dict[int, int] = {}
    for block in sorted(blocks, key=lambda b: b.first):
        for slot, size in enumerate(slots):
            if size == block.size and busy_until[slot] < block.first:
                break
        else:
            slot = len(slots)
            slots.append(block.size)
            busy_until.append(-1)
        busy_until[slot] = block.last
        chosen[id(block)] = slot
    return chosen, slots


def plan_memory(
    spec: ProgramSpec, aliases: Callable[[str], list[tuple[int, int]]] = aliases_of
) -> MemoryPlan:
    """Plan a program that `program.check` accepts.

    Args:
        spec: the program.
        aliases: for an operator's name the pairs (result, argument) that may share memory.
    """
    lives = _Lives(spec, aliases)
    spans = lives.groups()
    outside = {lives.root(out.name) for out in spec.outputs if isinstance(out, Buf)}
    places: dict[str, Place] = {}
    arena: list[str] = []
    for name, first in lives.first.items():
        if name not in spec.buffers:
            continue
        root = lives.root(name)
        last = lives.end if root in outside else spans[root][1]
        if name in lives.alias_outs:
            places[name] = Place("alias", first, last)
        elif name in lives.results:
            places[name] = Place("result", first, last)
        elif root in outside:
            places[name] = Place("own", first, last)
        else:
            arena.append(name)
    blocks = _blocks(spec, lives, arena, spans)
    arenas = []
    for device in dict.fromkeys(block.device for block in blocks):
        own = [block for block in blocks if block.device == device]
        fixed, fixed_bytes = _place_fixed([b for b in own if not b.size[1]])
        symbolic, slots = _place_symbolic([b for b in own if b.size[1]])
        arenas.append(Arena(device, fixed_bytes, tuple(slots)))
        for block in own:
            at, slot = fixed.get(id(block), 0), symbolic.get(id(block))
            for name in block.names:
                first, last = spans[lives.root(name)]
                places[name] = Place("arena", first, last, at, slot, device)
    return MemoryPlan(places, tuple(arenas), frozenset(lives.needs_tensor), lives.last_use)
