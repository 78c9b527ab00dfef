"""A fused group as a step of the program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from argand_inductor import sizes as sz
from argand_inductor.codegen.c.kernel import KernelWriter
from argand_inductor.fuse import Group
from argand_inductor.loop_ir import ITEMSIZE, Access, fingerprint, in_memory
from argand_inductor.lowering.tensors import Buffer
from argand_inductor.program import KernelSource, KernelStep, kernel_name

HEADER = "argand_inductor/codegen/c/argand_vec.h"
RANDOM_HEADER = "argand_inductor/codegen/c/argand_random.h"


def indent(lines: list[str]) -> str:
    """C with two spaces a brace."""
    text: list[str] = []
    depth = 1
    for line in "\n".join(lines).split("\n"):
        line = line.strip()
        opens, closes = line.count("{"), line.count("}")
        depth -= max(0, closes - opens)
        text.append("  " * depth + line)
        depth += max(0, opens - closes)
    return "\n".join(text)


def signature(
    group: Group, buffers: Mapping[str, Buffer], live: set[str]
) -> tuple[tuple[Any, ...], list[str]]:
    """(what tells a kernel from kernels with other text, its buffers in order of first occurrence)."""
    places: dict[str, int] = {}

    def place(access: Access) -> tuple[Any, ...]:
        buffer = access.buffer
        if not in_memory(buffer):
            return (buffer, access.strides, access.offset, access.guard)
        at = places.setdefault(buffer, len(places))
        return (at, buffers[buffer].dtype, access.strides, access.offset, access.guard)

    parts: list[Any] = [tuple(group.sizes), tuple(group.reduced)]
    for m in group.members:
        loop = m.loop
        parts.append(
            (
                m.level, loop.dtype, loop.name in live, loop.cost, id(loop.reduction), place(m.write),
                tuple([place(a) for a in m.reads]), fingerprint(loop.body),
                None if loop.final is None else fingerprint(loop.final),
            )
        )  # fmt: skip
    return tuple(parts), list(places)


class Generator:
    """Makes the kernels of one program; groups with one signature are written once."""

    def __init__(
        self, buffers: Mapping[str, Buffer], live: set[str], hints: Mapping[str, int]
    ) -> None:
        self.buffers, self.live, self.hints = buffers, live, hints
        self.made: dict[tuple[Any, ...], tuple[KernelStep, list[str]]] = {}

    def step(self, group: Group) -> KernelStep:
        """The step that runs a group and stores those of its buffers that are in `live`."""
        key, names = signature(group, self.buffers, self.live)
        location = next((m.loop.location for m in group.members if m.loop.location), None)
        if key not in self.made:
            self.made[key] = generate_kernel(group, self.buffers, self.live, self.hints), names
        step, others = self.made[key]
        renamed = dict(zip(others, names, strict=True))
        return replace(
            step,
            args=tuple([renamed[a] for a in step.args]),
            writes=tuple([renamed[a] for a in step.writes]),
            reuse=tuple([(renamed[w], renamed[r]) for w, r in step.reuse]),
            location=location,
        )


def generate_kernel(
    group: Group, buffers: Mapping[str, Buffer], live: set[str], hints: Mapping[str, int]
) -> KernelStep:
    """The step of one group, written anew."""
    writer = KernelWriter(group, buffers, live, hints)
    body, extent, grain = writer.write()
    head = ["ARGAND_KERNEL_ARGS;"]
    head += [f"char* const p{k} = (char*)args->buffers[{k}];" for k in range(len(writer.args))]
    head += [f"const long s{k} = args->sizes[{k}];" for k in range(len(writer.parameters))]
    if writer.stream_used:
        body.append("argand_stream_end();")
    name, source = kernel_name("ARGAND_KERNEL(@NAME@) {\n" + indent([*head, *body]) + "\n}\n")
    operators = [f"{m.loop.name} = {', '.join(m.loop.operators)}" for m in group.members]
    writes = tuple(a for a in writer.args if a in writer.made)
    draws = "argand_random_words(" in source
    return KernelStep(
        KernelSource(
            name, source, (HEADER, RANDOM_HEADER) if draws else (HEADER,), "\n".join(operators)
        ),
        args=tuple(writer.args),
        writes=writes,
        sizes=tuple(sz.text(s) for s in writer.parameters),
        extent=sz.text(extent),
        grain=grain,
        reuse=reuse_pairs(group, live, buffers, writes),
    )


def reuse_pairs(
    group: Group, live: set[str], buffers: Mapping[str, Buffer], writes: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    """Results that may take the memory of an input: every access of the input is the result's own, in one pass."""
    if group.reduces:
        return ()
    accesses: dict[str, list[Access]] = {}
    for m in group.members:
        for a in m.reads:
            accesses.setdefault(a.buffer, []).append(a)
    pairs = []
    for m in group.members:
        if m.loop.name not in writes:
            continue
        for buffer, reads in accesses.items():
            if not in_memory(buffer):
                continue
            same = all(
                (a.strides, a.offset, a.guard) == (m.write.strides, m.write.offset, None)
                for a in reads
            )
            if (
                same
                and buffer not in writes
                and ITEMSIZE[buffers[buffer].dtype] == ITEMSIZE[m.loop.dtype]
            ):
                pairs.append((m.loop.name, buffer))
    return tuple(pairs)
