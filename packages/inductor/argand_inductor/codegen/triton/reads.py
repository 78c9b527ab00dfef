"""A Triton kernel's index space: axes over the group's dimensions, addresses, masks, loads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from argand_inductor import sizes as sz
from argand_inductor.codegen.triton.configs import Config
from argand_inductor.codegen.triton.values import (
    FUNCTION,
    LOOP,
    TYPES,
    Emitter,
    Var,
    convert_text,
)
from argand_inductor.fuse import Group
from argand_inductor.loop_ir import HALF, INDEX, Access, compute_dtype, in_memory
from argand_inductor.lowering.tensors import Buffer
from argand_inductor.sizes import Size

# Elements to multiples of which masks of padded rows are rounded.
_LINE = 64
_INT32_LIMIT = (1 << 31) - (1 << 16)  # leaves room for the last program's elements beyond the end


@dataclass(frozen=True, slots=True)
class Axis:
    """Dimensions that one index of the kernel walks through; `block`: elements a program handles at once."""

    name: str
    dims: tuple[int, ...]
    numel: Size
    block: int

    @property
    def masked(self) -> bool:
        """Whether the last block may go beyond the end."""
        return not isinstance(self.numel, int) or self.numel % self.block != 0


class Reader:
    """A kernel's parameters, and how its index space reaches into memory.

    `p0`...: pointers to tensors in device memory; `v0`...: elements of tensors in host memory; `s0`...: sizes.
    """

    def __init__(
        self,
        group: Group,
        buffers: Mapping[str, Buffer],
        device: str,
        axes: Iterable[Axis],
        looped: bool,
    ) -> None:
        self.group, self.buffers, self.device = group, buffers, device
        self.made = group.written()
        self.axes = {a.name: a for a in axes if a.name != "o"}
        self.outer = next((a for a in axes if a.name == "o"), None)
        self.looped = looped
        self.args: list[str] = []
        self.scalars: list[tuple[str, Size]] = []
        self.parameters: list[Size] = []
        self.em = Emitter()
        self.wide = self._needs_int64()
        # by dimension: its index and the axes along which that varies
        self.indices: dict[int, Var] = {}

    # ---- names

    def parameter(self, size: Size) -> str:
        if size not in self.parameters:
            self.parameters.append(size)
        return f"s{self.parameters.index(size)}"

    def text(self, size: Size) -> str:
        return str(size) if isinstance(size, int) else self.parameter(size)

    def pointer(self, buffer: str) -> str:
        if buffer not in self.args:
            self.args.append(buffer)
        return f"p{self.args.index(buffer)}"

    def _needs_int64(self) -> bool:
        """Whether an address, or the number of an element, may not fit 32 bits."""
        group = self.group
        sizes = [*group.sizes]
        for m in group.members:
            for a in (m.write, *m.reads):
                parts = [a.offset, *a.strides]
                if a.guard is not None:
                    parts += [a.guard.offset, a.guard.size, *a.guard.strides]
                if not all(isinstance(p, int) for p in parts):
                    return True
        if not all(isinstance(s, int) for s in sizes):
            return True
        numbers = [s for s in sizes if isinstance(s, int)]
        if _product(numbers) >= _INT32_LIMIT:
            return True
        for m in group.members:
            for a in (m.write, *m.reads):
                last = abs(int(str(a.offset))) + sum(
                    abs(int(str(s))) * (n - 1) for s, n in zip(a.strides, numbers, strict=True)
                )
                if last >= _INT32_LIMIT:
                    return True
        return False

    # ---- indices

    def place(self, axis: str) -> str:
        """The subscript that puts a row of elements along an axis of the tile."""
        if len(self.axes) < 2:
            return ""
        return "[:, None]" if next(iter(self.axes)) == axis else "[None, :]"

    def shape(self) -> str:
        blocks = [a.name.upper() for a in self.axes.values()]
        return f"({', '.join(blocks)}{',' if len(blocks) == 1 else ''})"

    def program_indices(self) -> None:
        """Which blocks a program handles: x fastest, then y, then what has no axis."""
        self.em.line(FUNCTION, "pid = tl.program_id(0)" + (".to(tl.int64)" if self.wide else ""))
        left = "pid"
        kept = [a for a in reversed(self.axes.values()) if a.name != "r"]
        for i, axis in enumerate(kept):
            number = left
            last = i == len(kept) - 1 and self.outer is None
            if not last:
                count = self.text(sz.ceil_divide(axis.numel, axis.block))
                number, rest = f"({left} % {count})", f"({left} // {count})"
                self.em.line(FUNCTION, f"left{i} = {rest}")
                left = f"left{i}"
            block = axis.name.upper()
            self.em.line(
                FUNCTION,
                f"{axis.name} = ({number} * {block} + tl.arange(0, {block})){self.place(axis.name)}",
            )
            self.axis_indices(axis, Var(axis.name, "int64", frozenset(axis.name), FUNCTION))
        if self.outer is not None:
            self.axis_indices(self.outer, Var(left, "int64", frozenset(), FUNCTION))

    def reduced_index(self, level: int) -> None:
        """The index along what is reduced: of the whole row, or of a block that begins at r0."""
        axis = self.axes["r"]
        start = "r0 + " if level == LOOP else ""
        wide = ".to(tl.int64)" if self.wide else ""
        self.em.line(level, f"r = ({start}tl.arange(0, R)){self.place('r')}{wide}")
        self.axis_indices(axis, Var("r", "int64", frozenset("r"), level))

    def axis_indices(self, axis: Axis, var: Var) -> None:
        """The index of each dimension of an axis, and the axis' mask."""
        rest = var.name
        for k, d in reversed(list(enumerate(axis.dims))):
            if k == 0:
                self.indices[d] = Var(rest, "int64", var.axes, var.level)
                break
            size = self.text(self.group.sizes[d])
            self.em.line(var.level, f"i{d} = {rest} % {size}")
            self.em.line(var.level, f"q{d} = {rest} // {size}")
            self.indices[d] = Var(f"i{d}", "int64", var.axes, var.level)
            rest = f"q{d}"
        if axis.masked and axis.name != "o":
            self.em.line(var.level, f"{axis.name}m = {var.name} < {self.text(axis.numel)}")

    # ---- addresses

    def position(self, strides: tuple[Size, ...], offset: Size) -> tuple[str, frozenset[str], int]:
        """(an address as text, the axes along which it varies, scope)."""
        terms: list[str] = []
        axes: frozenset[str] = frozenset()
        level = FUNCTION
        for d, stride in enumerate(strides):
            if stride == 0:
                continue
            index = self.indices[d]
            axes |= index.axes
            level = max(level, index.level)
            terms.append(index.name if stride == 1 else f"{index.name} * {self.text(stride)}")
        if offset != 0 or not terms:
            terms.append(self.text(offset))
        return " + ".join(terms), axes, level

    def mask(self, axes: frozenset[str]) -> str:
        names = [f"{a.name}m" for a in self.axes.values() if a.name in axes and a.masked]
        return " & ".join(names)

    def mask_of(self, access: Access, axes: frozenset[str]) -> str:
        """As `mask`; what lies behind the rows of a padded tensor counts as in range, so that whole vectors are moved."""
        names = []
        for axis in self.axes.values():
            if axis.name not in axes or not axis.masked:
                continue
            limit = self.padded_limit(access, axis)
            if limit is None:
                names.append(f"{axis.name}m")
            elif limit % axis.block:
                everything = f"{axis.name} < {limit}"
                level = LOOP if axis.name == "r" and self.looped else FUNCTION
                names.append(
                    self.em.declare(everything, "bool", frozenset(axis.name), level, "m").name
                )
        return " & ".join(names)

    def padded_limit(self, access: Access, axis: Axis) -> int | None:
        """Elements along an axis up to which the tensor's memory reaches, where that is beyond the axis' own end."""
        buffer = self.buffers[access.buffer]
        row, d = buffer.row(), axis.dims[0]
        if row is None or len(axis.dims) != 1 or access.guard is not None:
            return None
        if access.strides[d] != 1 or not isinstance(axis.numel, int) or axis.numel >= row:
            return None
        steps = [s for k, s in enumerate(access.strides) if k != d]
        if not all(isinstance(s, int) and s % row == 0 for s in (*steps, access.offset)):
            return None
        return min(row, -(-axis.numel // _LINE) * _LINE)

    def spread(self, position: str, axes: frozenset[str], wanted: frozenset[str]) -> str:
        """An address that has the shape of a mask along further axes."""
        return position + "".join(f" + {a} * 0" for a in self.axes if a in wanted - axes)

    # ---- loads

    def load(self, access: Access) -> Var:
        if access.buffer == INDEX:
            text, axes, level = self.position(access.strides, access.offset)
            if not axes and text.lstrip("-").isdigit():
                return self.em.number(int(text), "int64")
            # An index of a program is a scalar of the kernel's own, a size a parameter.
            return self.em.declare(f"({text}).to(tl.int64)", "int64", axes, level)
        if not in_memory(access.buffer):
            return self.words(access)
        buffer = self.buffers[access.buffer]
        if buffer.device != self.device:
            return self.host_scalar(access, buffer)
        text, axes, level = self.position(access.strides, access.offset)
        mask, wanted = self.mask_of(access, axes), axes
        if access.guard is not None:
            guard = access.guard
            at, more, inner = self.position(guard.strides, guard.offset)
            wanted, level = axes | more, max(level, inner)
            where = self.em.declare(f"({at})", "int64", more, inner).name
            conditions = [f"({where} >= 0)", f"({where} < {self.text(guard.size)})"]
            mask = " & ".join([m for m in (self.mask(wanted),) if m] + conditions)
            text = self.spread(text, axes, wanted)
        pointer = self.pointer(access.buffer)
        arguments = f"{pointer} + ({text})" + (f", {mask}, other=0" if mask else "")
        held = compute_dtype(buffer.dtype)
        loaded = f"tl.load({arguments})"
        if buffer.dtype in HALF:
            loaded += ".to(tl.float32)"
        elif buffer.dtype == "bool":
            loaded += ".to(tl.int1)"
        return self.em.declare(loaded, held, wanted, level)

    def host_scalar(self, access: Access, buffer: Buffer) -> Var:
        """The one element of a tensor in host memory, which is a parameter."""
        assert all(s == 0 for s in access.strides), "tensors on the host have one element"
        entry = (access.buffer, access.offset)
        if entry not in self.scalars:
            self.scalars.append(entry)
        name = f"v{self.scalars.index(entry)}"
        held = compute_dtype(buffer.dtype)
        source = "float32" if held == "float32" else "float64" if held == "float64" else "int64"
        return self.em.declare(convert_text(name, source, held), held, frozenset(), FUNCTION)

    def words(self, access: Access) -> Var:
        """The random word of an element."""
        _, *stream = access.buffer.split(":")
        place, axes, level = self.position(access.strides, access.offset)
        text = self.em.declare(f"({place}).to(tl.int64)", "int64", axes, level).name
        names = ", ".join(self.parameter(sz.atom(n)) for n in stream)
        key = ("stream", *stream)
        found = self.em.find(key)
        if found is None:
            found = self.em.remember(key, Var(self.em.fresh("n"), "int64"))
            pair = f"{found.name}_seed, {found.name}_first"
            self.em.line(FUNCTION, f"{pair} = random.stream({names})")
        word = f"random.word_at({found.name}_seed, {found.name}_first, {text})"
        flipped = f"({word} ^ 0x80000000).to(tl.int32, bitcast=True)"
        return self.em.declare(flipped, "int32", axes, level)


def _product(numbers: Iterable[int]) -> int:
    total = 1
    for n in numbers:
        total *= n
    return total


def axes_of(group: Group, config: Config, tiled: int | None) -> tuple[list[Axis], bool]:
    """(the axes of a group's kernel in the order of the tile, whether it walks through r in a loop)."""
    sizes = group.sizes
    kept = [d for d, r in enumerate(group.reduced) if not r]
    reduced = [d for d, r in enumerate(group.reduced) if r]

    def axis(name: str, dims: list[int], block: int) -> Axis:
        return Axis(name, tuple(dims), sz.product(sizes[d] for d in dims), block)

    found: list[Axis] = []
    if tiled is not None:
        inner = len(sizes) - 1
        rest = [d for d in kept if d not in (tiled, inner)]
        found = [axis("y", [tiled], config.y)] if tiled != inner else []
        found.append(axis("x", [inner], config.x))
        return ([*found, axis("o", rest, 1)] if rest else found), False
    if kept:
        found.append(axis("x", kept, config.x))
    if reduced:
        found.append(axis("r", reduced, config.r))
    return found, bool(reduced) and not config.persistent


__all__ = ["TYPES", "Axis", "Reader", "axes_of"]
