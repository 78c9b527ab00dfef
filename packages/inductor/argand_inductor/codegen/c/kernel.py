"""A fused group as one C kernel.

Three shapes of loops, by what the innermost dimension of the group's space is:

* elements: nothing is reduced. A unit of work is a block of a row.
* rows: the innermost dimension is reduced. A unit is one index of the kept dimensions; its elements are walked through in
  passes: what depends on a reduction's total comes in a later pass.
* columns: the innermost dimension is kept, dimensions outside it are reduced. A unit is a block of columns with an accumulator each.

Sums go over blocks of `CHUNK` elements, lane by lane, then over the blocks, then over the lanes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from argand_c10.lowerings import ReductionLowering
from argand_inductor import sizes as sz
from argand_inductor.codegen.c.reads import TILE_COLUMNS, TILE_ROWS, Reader, tile_dimension
from argand_inductor.codegen.c.values import FUNCTION, INNER, SCALAR, UNIT, Var
from argand_inductor.fuse import FULL, Group, Member
from argand_inductor.loop_ir import ITEMSIZE, WORDS, Value
from argand_inductor.lowering.elements import Elements, extreme
from argand_inductor.lowering.tensors import Buffer
from argand_inductor.program import Expr
from argand_inductor.sizes import Size

GRAIN = 32768  # additions that are worth a thread
BLOCK = WORDS  # elements of a unit of a row
CHUNK = 2048  # elements that are summed lane by lane
STREAM_BYTES = 16 << 20  # results from here on are written past the caches
ROW_BYTES = 32768  # of what a row keeps between passes
DEAR = 15  # additions: what costs more is kept between passes rather than computed again


def cut(n: Size) -> bool:
    """Whether a row of elements may be longer than a unit."""
    return not isinstance(n, int) or n > BLOCK


def units_of(group: Group, trailing: int, hints: Mapping[str, int]) -> Size | None:
    """How many units, one after the other, compute what lies in the last `trailing` dimensions; None if units are numbered otherwise."""
    reduced = sum(group.reduced)
    first = len(group.sizes) - trailing
    if reduced:
        rows = reduced <= trailing and all(group.reduced[-reduced:])
        return sz.product(group.sizes[first : len(group.sizes) - reduced]) if rows else None
    if tile_dimension(group, hints) is not None:
        return None
    blocks = sz.ceil_divide(group.sizes[-1], BLOCK) if cut(group.sizes[-1]) else 1
    return sz.product([*group.sizes[first:-1], blocks])


@dataclass(slots=True)
class _Reduction:
    """A reduction in the making: where its accumulator is (a variable, or an array in columns)."""

    member: Member
    rule: ReductionLowering
    dtype: str
    place: str
    init: Var


class KernelWriter(Reader):
    """Writes one group. `live`: buffers that somebody outside needs."""

    def __init__(
        self, group: Group, buffers: Mapping[str, Buffer], live: set[str], hints: Mapping[str, int]
    ) -> None:
        super().__init__(group, buffers, hints)
        self.live = live
        self.style = "elements"
        if group.reduces:
            self.style = "rows" if group.reduced[self.inner] else "columns"
        self.passes: dict[str, int] = {}
        self.now = 0
        self.totals: dict[str, Var] = {}
        self.reductions: dict[str, _Reduction] = {}
        self.rows_kept: dict[str, str] = {}
        self.prices: dict[str, int] = {}
        self.streams: set[str] = set()
        self.stream_used = False

    # ---- values

    def value(self, member: Member, node: Value, total: Var | None = None) -> Var:
        """The C variable of a node of a member's body (or final value, given its total)."""
        key = (member.loop.name, id(node))
        known = self.em.find(key)
        if isinstance(known, Var):
            return known
        if node.op == "load":
            access = member.reads[node.detail]
            source = self.made.get(access.buffer)
            var = self.load(access) if source is None else self.result(source)
        elif node.op == "number":
            var = self.em.number(node.detail, node.dtype)
        elif node.op in ("size", "count"):
            size = node.detail
            var = (
                self.em.number(size, node.dtype)
                if isinstance(size, int)
                else self.em.size(size, node.dtype)
            )
        elif node.op == "total":
            assert total is not None
            var = total
        else:
            var = self.em.apply(node, [self.value(member, a, total) for a in node.args])
        self.em.remember(var.level, key, var)
        return var

    def result(self, member: Member) -> Var:
        """What a member computed, at the current index."""
        loop = member.loop
        if loop.reduction is not None:
            if self.style == "rows":
                return self.totals[loop.name]
            return self.column_total(self.reductions[loop.name])
        if member.level == FULL and self.passes[loop.name] < self.now:
            if loop.name in self.rows_kept:
                size = ITEMSIZE[loop.body.dtype]
                return self.em.load(
                    INNER, loop.body.dtype, f"{self.rows_kept[loop.name]} + i * {size}", "left"
                )
            if loop.name in self.live and self.price(member) >= DEAR:
                return self.load(member.write)
        return self.value(member, loop.body)

    def price(self, member: Member) -> int:
        """Additions to compute a member's element again in its own pass."""
        known = self.prices.get(member.loop.name)
        if known is not None:
            return known
        total = member.loop.cost
        for a in member.reads:
            source = self.made.get(a.buffer)
            if source is not None and source.loop.reduction is None and source.level == FULL:
                total += self.price(source)
        self.prices[member.loop.name] = total
        return total

    def store(self, member: Member, var: Var, level: int) -> None:
        loop = member.loop
        pointer, stride, _ = self.address(member.write)
        size = ITEMSIZE[loop.dtype]
        if level < INNER:
            self.em.store(level, var, loop.dtype, pointer, "1")
            return
        if var.level < INNER:  # the same for all lanes
            var = Var(var.name, var.dtype, INNER, var.lane)
        streams = loop.name in self.streams and stride == 1
        self.stream_used |= streams
        if (
            stride == 0
        ):  # one element a row, though the inner dimension is longer: only its first lane counts
            self.em.store(INNER, var, loop.dtype, pointer, "1")
        else:
            self.em.store(
                INNER,
                var,
                loop.dtype,
                self.at(pointer, stride, size),
                "left",
                self.text(stride),
                streams,
            )

    # ---- passes

    def assign_passes(self) -> int:
        for m in self.group.members:
            found = 0
            for a in m.reads:
                source = self.made.get(a.buffer)
                if source is not None:
                    found = max(
                        found, self.passes[source.loop.name] + (source.loop.reduction is not None)
                    )
            self.passes[m.loop.name] = found
        return max(self.passes.values(), default=0)

    def pass_roots(self, p: int) -> list[Member]:
        """Full members that have to be computed in a pass: reductions and stores."""
        return [
            m for m in self.group.members
            if self.passes[m.loop.name] == p and m.level == FULL
            and (m.loop.reduction is not None or m.loop.name in self.live or m.loop.name in self.rows_kept)
        ]  # fmt: skip

    def choose_kept_rows(self) -> None:
        """Dear values that a later pass needs are kept in an array of the row."""
        inner = self.group.sizes[self.inner]
        nested = sum(self.group.reduced) > 1
        if nested or not isinstance(inner, int):
            return
        room = ROW_BYTES
        for m in self.group.members:
            name = m.loop.name
            if (
                m.level != FULL
                or m.loop.reduction is not None
                or name in self.live
                or m.loop.body.dtype == "bool"
            ):
                continue
            later = any(
                self.passes[c.loop.name] > self.passes[name] and c.level == FULL
                for c in self.group.members for a in c.reads if a.buffer == name
            )  # fmt: skip
            size = inner * ITEMSIZE[m.loop.body.dtype]
            if later and self.price(m) >= DEAR and size <= room:
                room -= size
                self.rows_kept[name] = f"k{len(self.rows_kept)}"
                self.em.line(
                    FUNCTION,
                    f"_Alignas(64) char {self.rows_kept[name]}[{size} + ARGAND_VECTOR_BYTES * 8];",
                )

    # ---- reductions

    def begin_reduction(self, member: Member) -> _Reduction:
        loop = member.loop
        assert loop.reduction is not None
        dtype = loop.body.dtype
        start = loop.reduction.init
        init = extreme(dtype, start == "highest") if isinstance(start, str) else start
        value = self.em.number(init if dtype != "bool" else bool(init), dtype)
        found = _Reduction(member, loop.reduction, dtype, f"a{len(self.reductions)}", value)
        self.reductions[loop.name] = found
        return found

    def lane_of(self, dtype: str) -> int:
        return self.em.d if dtype == "bool" else ITEMSIZE[dtype]

    def combine(self, rule: ReductionLowering, dtype: str, a: Var, b: Var) -> Var:
        """combine(a, b) as statements of the scope of the inner of the two."""
        left, right = Value("var", (), dtype, a), Value("var", (), dtype, b)
        tree = rule.combine(Elements(dtype), left, right)

        def show(node: Value) -> Var:
            if node.op == "var":
                var: Var = node.detail
                return var
            if node.op == "number":
                return self.em.number(node.detail, node.dtype)
            return self.em.apply(node, [show(x) for x in node.args])

        var = show(tree)
        return self.em.mask(var, self.lane_of(dtype)) if dtype == "bool" else var

    def mutable(self, name: str, dtype: str) -> Var:
        return Var(name, dtype, INNER, self.em.d if dtype == "bool" else 0)

    def contribution(self, r: _Reduction) -> Var:
        """The mapped elements; lanes that do not count hold the start value."""
        x = self.value(r.member, r.member.loop.body)
        if r.dtype == "bool":
            x = self.em.mask(x, self.em.d)
        if self.style == "columns":
            return x
        v, lane = self.em.type_of(r.dtype, self.em.d), self.lane_of(r.dtype)
        lanes = self.em.declare(
            FUNCTION,
            f"int{8 * lane}",
            f"__builtin_convertvector(w{self.em.d}_lanes_i8(), w{self.em.d}_i{8 * lane})",
        )
        name = self.em.fresh("x")
        self.em.line(INNER, f"{v} {name} = {x.name};")
        kept = f"ARGAND_KEEP({v}, w{self.em.d}_i{8 * lane}, {lanes.name}, left, {x.name}, {r.init.name})"
        self.em.line(INNER, f"if (__builtin_expect(left < {self.lanes}, 0)) {name} = {kept};")
        return self.mutable(name, r.dtype)

    def fold(self, r: _Reduction) -> Var:
        """All lanes of an accumulator combined, in every lane."""
        v, lane = self.em.type_of(r.dtype, self.em.d), self.lane_of(r.dtype)
        m = f"w{self.em.d}_i{8 * lane}"
        scalar = SCALAR[f"int{8 * lane}"] if r.dtype == "bool" else SCALAR[r.dtype]
        self.em.open()
        self.em.open()
        other = self.em.fresh("o")
        index = f"(__builtin_convertvector(w{self.em.d}_lanes_i8(), {m}) + ({SCALAR[f'int{8 * lane}']})h) & ({SCALAR[f'int{8 * lane}']})({self.lanes} - 1)"
        self.em.line(INNER, f"const {v} {other} = __builtin_shuffle({r.place}, {index});")
        both = self.combine(
            r.rule, r.dtype, self.mutable(r.place, r.dtype), self.mutable(other, r.dtype)
        )
        self.em.line(INNER, f"{r.place} = {both.name};")
        lines = self.em.close()
        self.em.close()
        self.block(UNIT, f"for (long h = {self.lanes} / 2; h; h /= 2) {{", lines)
        name = self.em.fresh()
        self.em.line(UNIT, f"const {v} {name} = ({scalar}){r.place}[0] - ({v}){{}};")
        return Var(name, r.dtype, UNIT, self.em.d if r.dtype == "bool" else 0)

    def finish(self, r: _Reduction, total: Var) -> Var:
        assert r.member.loop.final is not None
        return self.value(r.member, r.member.loop.final, total)

    def column_total(self, r: _Reduction) -> Var:
        key = ("total", r.place)
        known = self.em.find(key)
        if isinstance(known, Var):
            return known
        v = self.em.type_of(r.dtype, self.em.d)
        name = self.em.fresh()
        self.em.line(INNER, f"{v} {name};")
        self.em.line(INNER, f"__builtin_memcpy(&{name}, {self.column(r)}, sizeof {name});")
        var = self.finish(r, Var(name, r.dtype, INNER, self.em.d if r.dtype == "bool" else 0))
        self.em.remember(INNER, key, var)
        return var

    def column(self, r: _Reduction) -> str:
        return f"{r.place} + (i - first) * {self.lane_of(r.dtype)}"

    # ---- text

    def block(self, level: int, head: str, lines: list[str]) -> None:
        self.em.line(level, head)
        scope = self.em.scopes[min(level, len(self.em.scopes) - 1)]
        scope.lines += lines
        self.em.line(level, "}")

    def nest(
        self,
        inner_head: str,
        inner: list[str],
        nest: list[str],
        before: list[str],
        after: list[str],
    ) -> None:
        """The loops over the reduced dimensions outside the inner one, and the inner loop."""
        outer = [d for d, r in enumerate(self.group.reduced) if r and d != self.inner]
        for d in outer:
            self.em.line(
                UNIT, f"for (long r{d} = 0; r{d} < {self.text(self.group.sizes[d])}; r{d}++) {{"
            )
        if self.tiled is not None:
            outer.append(self.tiled)
            self.em.line(
                UNIT, f"for (long c{self.tiled} = top; c{self.tiled} < bottom; c{self.tiled}++) {{"
            )
        self.em.scopes[-1].lines += [*nest, *before]
        self.em.line(UNIT, inner_head)
        self.em.scopes[-1].lines += inner
        self.em.line(UNIT, "}")
        self.em.scopes[-1].lines += after
        for _ in outer:
            self.em.line(UNIT, "}")

    def inner_head(self, first: str, end: str) -> str:
        return f"for (long i = {first}; i < {end}; i += {self.lanes}) {{\n  const long left = {end} - i;"

    # ---- the three shapes

    def write(self) -> tuple[list[str], Size, Expr]:
        """(body, extent, grain)."""
        last = self.assign_passes()
        self.em.open()
        if self.style == "elements":
            extent, grain = self.elements()
        elif self.style == "rows":
            extent, grain = self.rows(last)
        else:
            extent, grain = self.columns_of(last)
        unit = self.em.close()
        return (
            [*self.em.scopes[0].lines, "for (long u = begin; u < end; u++) {", *unit, "}"],
            extent,
            grain,
        )

    def unit_indices(self, dims: list[int], start: str) -> None:
        """Declares c<d> of a unit's number."""
        rest = start
        for d in reversed(dims[1:]):
            size = self.text(self.group.sizes[d])
            self.em.line(UNIT, f"const long c{d} = {rest} % {size};")
            rest = self.em.scalar(UNIT, "long", f"{rest} / {size}")
        if dims:
            self.em.line(UNIT, f"const long c{dims[0]} = {rest};")

    def cost(self) -> int:
        return max(1, sum(m.loop.cost for m in self.group.members))

    def grain(self, elements: int) -> int:
        return max(1, GRAIN // max(1, self.cost() * elements))

    def elements(self) -> tuple[Size, Expr]:
        sizes = self.group.sizes
        n: Size = sizes[self.inner] if sizes else 1
        outer = list(range(max(0, self.inner)))
        hint = sz.evaluate(n, self.hints)
        for m in self.group.members:
            numel = (
                sz.evaluate(self.buffers[m.loop.name].numel(), self.hints) * ITEMSIZE[m.loop.dtype]
            )
            if numel >= STREAM_BYTES and hint >= 1024 and self.is_aligned(m):
                self.streams.add(m.loop.name)
        self.tiled = tile_dimension(self.group, self.hints)
        block = TILE_COLUMNS if self.tiled is not None else BLOCK
        units: list[Size] = [sizes[d] for d in outer if d != self.tiled]
        first, end, unit_elements = "0", self.text(n), min(block, hint)
        number = "u"
        if self.tiled is not None or cut(n):
            blocks = sz.ceil_divide(n, block)
            units.append(blocks)
            where, number = self.divided(number, blocks, last=not outer)
            self.em.line(
                UNIT,
                f"const long first = {where} * {block}, stop = first + {block} < {end} ? first + {block} : {end};",
            )
            first, end = "first", "stop"
        if self.tiled is not None:
            rows = self.text(sizes[self.tiled])
            blocks = sz.ceil_divide(sizes[self.tiled], TILE_ROWS)
            units.append(blocks)
            unit_elements *= TILE_ROWS
            where, number = self.divided(number, blocks, last=len(outer) == 1)
            self.em.line(
                UNIT,
                f"const long top = {where} * {TILE_ROWS}, bottom = top + {TILE_ROWS} < {rows} ? top + {TILE_ROWS} : {rows};",
            )
        self.unit_indices([d for d in outer if d != self.tiled], number)
        self.em.open()
        self.em.open()
        self.span = (first, end)
        # Everything is read before anything is written, since results may lie where inputs do (reuse_pairs).
        live = [m for m in self.group.members if m.loop.name in self.live]
        for m, var in [(m, self.value(m, m.loop.body)) for m in live]:
            self.store(m, var, INNER)
        inner = self.em.close()
        nest = self.em.close()
        self.nest(self.inner_head(first, end), inner, nest, [], [])
        return sz.product(units), self.grain(unit_elements)

    def is_aligned(self, member: Member) -> bool:
        """Whether every row of what a member writes starts at a multiple of the longest vector, as buffers do."""
        strides = [s for d, s in enumerate(member.write.strides) if d != self.inner]
        size = ITEMSIZE[member.loop.dtype]
        return all(sz.divide(s * size, 64) is not None for s in (*strides, member.write.offset))

    def divided(self, number: str, count: Size, last: bool) -> tuple[str, str]:
        """(index among `count`, what remains of a unit's number)."""
        if last:
            return number, "0"
        return (
            self.em.scalar(UNIT, "long", f"{number} % {self.text(count)}"),
            self.em.scalar(UNIT, "long", f"{number} / {self.text(count)}"),
        )

    def rows(self, last: int) -> tuple[Size, Expr]:
        sizes = self.group.sizes
        kept = [d for d, r in enumerate(self.group.reduced) if not r]
        self.unit_indices(kept, "u")
        self.choose_kept_rows()
        n = sizes[self.inner]
        self.span = ("0", self.text(n))
        chunked = not isinstance(n, int) or n > 2 * CHUNK
        for p in range(last + 1):
            self.now = p
            roots = self.pass_roots(p)
            if roots:
                self.row_pass(roots, n, chunked)
        self.now = last + 1
        for m in self.group.members:
            if m.loop.name in self.live and (m.loop.reduction is not None or m.level != FULL):
                self.store(m, self.result(m), UNIT)
        elements = sz.evaluate(
            sz.product(s for s, r in zip(sizes, self.group.reduced, strict=True) if r), self.hints
        )
        return sz.product(sizes[d] for d in kept), self.grain(elements)

    def row_pass(self, roots: list[Member], n: Size, chunked: bool) -> None:
        found = [self.begin_reduction(m) for m in roots if m.loop.reduction is not None]
        for r in found:
            self.em.line(UNIT, f"{self.em.type_of(r.dtype, self.em.d)} {r.place} = {r.init.name};")
        self.em.open()
        self.em.open()
        for m in roots:
            if m.loop.reduction is None:
                self.row_store(m)
        before, after = [], []
        for r in found:
            x = self.contribution(r)
            place = f"{r.place}c" if chunked else r.place
            both = self.combine(r.rule, r.dtype, self.mutable(place, r.dtype), x)
            self.em.line(INNER, f"{place} = {both.name};")
        inner = self.em.close()
        nest = self.em.close()
        head = self.inner_head("0", self.text(n))
        if chunked:
            end = self.text(n)
            before.append(f"for (long from = 0; from < {end}; from += {CHUNK}) {{")
            before.append(f"const long to = from + {CHUNK} < {end} ? from + {CHUNK} : {end};")
            before += [
                f"{self.em.type_of(r.dtype, self.em.d)} {r.place}c = {r.init.name};" for r in found
            ]
            head = self.inner_head("from", "to")
            for r in found:
                self.em.open()
                self.em.open()
                both = self.combine(
                    r.rule,
                    r.dtype,
                    self.mutable(r.place, r.dtype),
                    self.mutable(f"{r.place}c", r.dtype),
                )
                after += [*self.em.close(), f"{r.place} = {both.name};"]
                self.em.close()
            after.append("}")
        self.nest(head, inner, nest, before, after)
        for r in found:
            self.totals[r.member.loop.name] = self.finish(r, self.fold(r))

    def row_store(self, m: Member) -> None:
        var = self.value(m, m.loop.body)
        name = m.loop.name
        if name in self.rows_kept:
            size = ITEMSIZE[var.dtype]
            self.em.line(
                INNER,
                f"__builtin_memcpy({self.rows_kept[name]} + i * {size}, &{var.name}, sizeof {var.name});",
            )
        if name in self.live:
            self.store(m, var, INNER)

    def columns_of(self, last: int) -> tuple[Size, Expr]:
        sizes = self.group.sizes
        n = sizes[self.inner]
        hint = sz.evaluate(n, self.hints)
        self.span = ("first", "stop")
        outer = [d for d, r in enumerate(self.group.reduced) if not r and d != self.inner]
        busy = sz.evaluate(sz.product(sizes[d] for d in outer), self.hints)
        width = 64
        while width < 1024 and (hint >= width * 8 or (busy >= 8 and hint > width)):
            width *= 2
        blocks = sz.ceil_divide(n, width)
        self.em.line(
            UNIT,
            f"const long first = u % {self.text(blocks)} * {width}, stop = first + {width} < {self.text(n)} ? first + {width} : {self.text(n)};",
        )
        self.unit_indices(outer, self.em.scalar(UNIT, "long", f"u / {self.text(blocks)}"))
        for p in range(last + 1):
            self.now = p
            roots = self.pass_roots(p)
            if roots:
                self.column_pass(roots, width)
        self.now = last + 1
        ends = [
            m
            for m in self.group.members
            if m.loop.name in self.live and (m.loop.reduction is not None or m.level != FULL)
        ]
        if ends:
            self.em.open()
            self.em.open()
            for m in ends:
                self.store(m, self.result(m), INNER)
            inner = self.em.close()
            self.em.close()
            self.block(UNIT, self.inner_head("first", "stop"), inner)
        elements = sz.evaluate(
            sz.product(s for s, r in zip(sizes, self.group.reduced, strict=True) if r), self.hints
        )
        return sz.product([*(sizes[d] for d in outer), blocks]), self.grain(
            elements * min(width, hint)
        )

    def column_pass(self, roots: list[Member], width: int) -> None:
        found = [self.begin_reduction(m) for m in roots if m.loop.reduction is not None]
        for r in found:
            lane = self.lane_of(r.dtype)
            self.em.line(
                FUNCTION, f"_Alignas(64) char {r.place}[{width * lane} + ARGAND_VECTOR_BYTES * 8];"
            )
            copy = f"__builtin_memcpy({self.column(r)}, &{r.init.name}, sizeof {r.init.name});"
            self.block(UNIT, f"for (long i = first; i < stop; i += {self.lanes}) {{", [copy])
        self.em.open()
        self.em.open()
        for m in roots:
            if m.loop.reduction is None:
                self.store(m, self.value(m, m.loop.body), INNER)
        for r in found:
            v = self.em.type_of(r.dtype, self.em.d)
            name = self.em.fresh("y")
            self.em.line(INNER, f"{v} {name};")
            self.em.line(INNER, f"__builtin_memcpy(&{name}, {self.column(r)}, sizeof {name});")
            both = self.combine(r.rule, r.dtype, self.mutable(name, r.dtype), self.contribution(r))
            self.em.line(
                INNER, f"__builtin_memcpy({self.column(r)}, &{both.name}, sizeof {both.name});"
            )
        inner = self.em.close()
        nest = self.em.close()
        self.nest(self.inner_head("first", "stop"), inner, nest, [], [])
