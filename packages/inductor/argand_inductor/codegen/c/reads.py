"""Where a kernel's operands lie: addresses in loop variables, loads, and tiles of transposed inputs."""

from __future__ import annotations

from collections.abc import Mapping

from argand_inductor import sizes as sz
from argand_inductor.codegen.c.sizes_text import c_product, c_size, c_sum
from argand_inductor.codegen.c.values import FUNCTION, INNER, NEST, UNIT, Emitter, Var
from argand_inductor.fuse import Group
from argand_inductor.loop_ir import INDEX, ITEMSIZE, WORDS, Access, in_memory, walk
from argand_inductor.lowering.tensors import Buffer
from argand_inductor.sizes import Size

TILE_ROWS, TILE_COLUMNS = 16, 128  # of transposed inputs


def lane_bytes(group: Group) -> int:
    """D of argand_vec.h: what most of the computation is in."""
    dtypes = {node.dtype for m in group.members for node in walk(m.loop.body) if node.op != "size"}
    if dtypes & {"float32", "int32", "uint32"}:
        return 4
    if dtypes & {"float64", "int64", "uint64"}:
        return 8
    return 2 if dtypes & {"int16", "uint16"} else 1


def tile_dimension(group: Group, hints: Mapping[str, int]) -> int | None:
    """The dimension along which a transposed input lies in memory, if that and the inner one are long enough."""
    sizes, made = group.sizes, group.written()
    if not sizes or sz.evaluate(sizes[-1], hints) < 8:
        return None
    for m in group.members:
        for a in m.reads:
            if (
                a.buffer in made
                or a.guard is not None
                or not in_memory(a.buffer)
                or a.strides[-1] in (0, 1)
            ):
                continue
            for d, stride in enumerate(a.strides[:-1]):
                if stride == 1 and sz.evaluate(sizes[d], hints) >= 8:
                    return d
    return None


class Reader:
    """A kernel's parameters, and how its index space reaches into memory."""

    def __init__(
        self, group: Group, buffers: Mapping[str, Buffer], hints: Mapping[str, int]
    ) -> None:
        self.group, self.buffers, self.hints = group, buffers, hints
        self.made = group.written()
        self.parameters: list[Size] = []
        self.args: list[str] = []
        self.em = Emitter(lane_bytes(group), self.parameter)
        self.lanes = f"(ARGAND_VECTOR_BYTES / {self.em.d})"
        self.inner = len(group.sizes) - 1
        self.span = ("0", "1")  # of the inner loop
        self.tiled: int | None = None  # a kept dimension that is walked through in tiles

    # ---- names

    def parameter(self, size: Size) -> str:
        if size not in self.parameters:
            self.parameters.append(size)
        return f"s{self.parameters.index(size)}"

    def text(self, size: Size) -> str:
        return c_size(size, self.parameter)

    def pointer(self, buffer: str) -> str:
        if buffer not in self.args:
            self.args.append(buffer)
        return f"p{self.args.index(buffer)}"

    # ---- addresses

    def index(self, d: int) -> tuple[str, int]:
        """The loop variable of a dimension and its scope."""
        if d == self.inner:
            return "i", INNER
        if d == self.tiled:
            return f"c{d}", NEST
        return (f"r{d}", NEST) if self.group.reduced[d] else (f"c{d}", UNIT)

    def address(self, access: Access) -> tuple[str, Size, int]:
        """(pointer at inner index 0, stride of the inner index, scope)."""
        size = ITEMSIZE[self.buffers[access.buffer].dtype]
        terms = [self.text(access.offset)]
        level = FUNCTION
        for d, stride in enumerate(access.strides):
            if d == self.inner or stride == 0:
                continue
            name, scope = self.index(d)
            level = max(level, scope)
            terms.append(c_product(name, self.text(stride)))
        pointer = self.pointer(access.buffer)
        total = c_sum(terms)
        stride = access.strides[self.inner] if self.inner >= 0 else 0
        if total == "0":
            return pointer, stride, FUNCTION
        return (
            self.em.scalar(
                level, "char*", f"{pointer} + {c_product(f'({total})', str(size))}", "q"
            ),
            stride,
            level,
        )

    def at(self, pointer: str, stride: Size, size: int) -> str:
        step = c_product(self.text(stride), str(size))
        return f"{pointer} + {c_product('i', step)}"

    # ---- loads

    def position_text(self, access: Access) -> tuple[str, Size, int]:
        """(the address at inner index 0 as a C scalar, stride of the inner index, scope)."""
        terms, level = [self.text(access.offset)], FUNCTION
        for d, stride in enumerate(access.strides):
            if d == self.inner or stride == 0:
                continue
            name, scope = self.index(d)
            level = max(level, scope)
            terms.append(c_product(name, self.text(stride)))
        stride = access.strides[self.inner] if self.inner >= 0 else 0
        return self.em.scalar(level, "long", c_sum(terms)), stride, level

    def position(self, access: Access) -> Var:
        """The address itself."""
        base, stride, level = self.position_text(access)
        v = self.em.type_of("int64")
        if stride == 0:
            return self.em.declare(level, "int64", f"(long)({base}) - ({v}){{}}")
        lanes = self.em.declare(
            FUNCTION, "int64", f"__builtin_convertvector(w{self.em.d}_lanes_i8(), {v})"
        )
        step = self.text(stride)
        return self.em.declare(
            INNER, "int64", f"{c_product(lanes.name, step)} + ({base} + {c_product('i', step)})"
        )

    def load(self, access: Access) -> Var:
        if access.buffer == INDEX:
            return self.position(access)
        if not in_memory(access.buffer):
            return self.words(access)
        dtype = self.buffers[access.buffer].dtype
        if self.is_transposed(access):
            return self.from_tile(access, dtype)
        pointer, stride, level = self.address(access)
        if access.guard is not None:
            return self.guarded(access, pointer, stride, dtype)
        if stride == 0:
            return self.em.splat(level, dtype, pointer)
        where = self.at(pointer, stride, ITEMSIZE[dtype])
        if stride == 1:
            return self.em.load(INNER, dtype, where, "left")
        return self.em.gather(INNER, dtype, where, self.text(stride), "0", "left")

    def guarded(self, access: Access, pointer: str, stride: Size, dtype: str) -> Var:
        """Elements inside the guard's range, 0 outside."""
        guard = access.guard
        assert guard is not None
        at, step, level = self.position_text(Access(INDEX, guard.strides, guard.offset))
        size, bytes_ = self.text(guard.size), ITEMSIZE[dtype]
        where = self.at(pointer, stride, bytes_)
        if step == 0:
            left = self.em.scalar(level, "long", f"{at} >= 0 && {at} < {size}", "in")
            if stride == 1:
                return self.em.load(INNER, dtype, where, f"({left} ? left : 0)")
            return self.em.gather(
                INNER, dtype, where, self.text(stride), "0", f"({left} ? left : 0)"
            )
        if step == 1:
            first = self.em.scalar(INNER, "long", f"-({at} + i)", "from")
            return self.em.gather(
                INNER,
                dtype,
                where,
                self.text(stride),
                first,
                f"({first} + {size} < left ? {first} + {size} : left)",
            )
        raise AssertionError("a guard moves by one or not at all along the inner dimension")

    def words(self, access: Access) -> Var:
        """Random words: drawn into an array for the elements of the inner loop."""
        known = self.em.find(("words", access))
        if not isinstance(known, str):
            _, seed, counter, _ = access.buffer.split(":")
            at, step, _ = self.position_text(access)
            assert step in (0, 1), "random words lie along the inner dimension"
            first, stop = self.span if step == 1 else ("0", "1")
            array = self.em.fresh("w")
            self.em.line(FUNCTION, f"_Alignas(64) int {array}[{WORDS} + 4 * ARGAND_LANES_F32 + 4];")
            element = self.em.scalar(NEST, "long", c_sum([at, first]), "e")
            names = ", ".join(self.parameter(sz.atom(n)) for n in (seed, counter))
            self.em.line(
                NEST, f"argand_random_words({array}, {element}, {stop} - {first}, {names});"
            )
            start = f"(char*)({array} + {element} % 4) - {c_product(first, '4')}"
            known = self.em.scalar(NEST, "char*", start, "q")
            self.em.remember(NEST, ("words", access), known)
            self.em.remember(NEST, ("words", access, "moves"), str(step))
        if self.em.find(("words", access, "moves")) == "0":
            return self.em.splat(NEST, "int32", known)
        return self.em.load(INNER, "int32", f"{known} + i * 4", "left")

    # ---- transposed reads, tile by tile

    def is_transposed(self, access: Access) -> bool:
        """Neighbours in memory are along the tiled dimension."""
        return (
            self.tiled is not None
            and access.guard is None
            and access.strides[self.tiled] == 1
            and access.strides[self.inner] not in (0, 1)
        )

    def from_tile(self, access: Access, dtype: str) -> Var:
        """From a copy of the unit's part that lies along the inner dimension."""
        assert self.tiled is not None
        size, stride = ITEMSIZE[dtype], self.text(access.strides[self.inner])
        terms = [self.text(access.offset), "top", c_product("first", stride)]
        for d, s in enumerate(access.strides):
            if s != 0 and d not in (self.inner, self.tiled):
                terms.append(c_product(self.index(d)[0], self.text(s)))
        source = self.em.scalar(
            UNIT,
            "char*",
            f"{self.pointer(access.buffer)} + {c_product(f'({c_sum(terms)})', str(size))}",
            "q",
        )
        key = ("tile", source)
        tile = self.em.find(key)
        if not isinstance(tile, str):
            tile = self.em.fresh("g")
            self.em.line(
                FUNCTION,
                f"_Alignas(64) char {tile}[{TILE_ROWS * TILE_COLUMNS * size} + ARGAND_VECTOR_BYTES];",
            )
            self.em.line(
                UNIT,
                f"argand_tile_{size}({tile}, {TILE_COLUMNS}, {source}, {stride}, bottom - top, stop - first);",
            )
            self.em.remember(UNIT, key, tile)
        row = self.em.scalar(
            NEST,
            "char*",
            f"{tile} + ((c{self.tiled} - top) * {TILE_COLUMNS} - first) * {size}",
            "q",
        )
        return self.em.load(INNER, dtype, self.at(row, 1, size), "left")
