"""A fused group as one Triton kernel.

A program handles a tile: a block of the kept dimensions (axis x; two axes y and x where something lies transposed) by a block of
the reduced ones (axis r). What fits is held whole (*persistent*), so that everything is read once; longer rows are walked through
in passes, as many as reductions depend on one another. Sums go lane by lane over the blocks, then over the lanes: their order depends
on shapes alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from argand_c10.lowerings import ReductionLowering
from argand_inductor import sizes as sz
from argand_inductor.codegen.triton.configs import Config
from argand_inductor.codegen.triton.reads import Reader, axes_of
from argand_inductor.codegen.triton.values import (
    FUNCTION,
    LOOP,
    TYPES,
    Emitter,
    Var,
    convert_text,
    number_text,
)
from argand_inductor.fuse import FULL, Group, Member
from argand_inductor.loop_ir import HALF, Check, Value
from argand_inductor.lowering.elements import Elements, extreme
from argand_inductor.lowering.tensors import Buffer
from argand_inductor.sizes import Size


@dataclass(slots=True)
class _Reduction:
    """A reduction in the making; bools are combined as int32."""

    member: Member
    rule: ReductionLowering
    dtype: str
    place: str
    init: str
    function: str

    @property
    def held(self) -> str:
        return "int32" if self.dtype == "bool" else self.dtype


class KernelWriter(Reader):
    """Writes one group for one config. `live`: buffers that somebody outside needs; `tiled`: the dimension of axis y, or the innermost
    one where programs handle parts of one row."""

    def __init__(
        self,
        group: Group,
        buffers: Mapping[str, Buffer],
        live: set[str],
        device: str,
        config: Config,
        tiled: int | None,
    ) -> None:
        axes, looped = axes_of(group, config, tiled)
        super().__init__(group, buffers, device, axes, looped)
        self.live = live
        self.config = config
        self.passes: dict[str, int] = {}
        self.totals: dict[str, Var] = {}
        self.functions: dict[tuple[int, str], tuple[str, list[str]]] = {}
        self.reductions = 0
        self.imports: set[str] = set()

    # ---- values

    def value(self, member: Member, node: Value, total: Var | None = None) -> Var:
        """The variable of a node of a member's body (or final value, given its total)."""
        key = (member.loop.name, id(node))
        known = self.em.find(key)
        if known is not None:
            return known
        if node.op == "load":
            access = member.reads[node.detail]
            source = self.made.get(access.buffer)
            var = self.load(access) if source is None else self.result(source)
        elif node.op == "number":
            var = self.em.number(node.detail, node.dtype)
        elif node.op in ("size", "count"):
            size: Size = node.detail
            if isinstance(size, int):
                var = self.em.number(size, node.dtype)
            else:
                var = self.em.size(self.parameter(size), node.dtype)
        elif node.op == "checked":
            var = self.checked(node.detail, *[self.value(member, a, total) for a in node.args])
        elif node.op == "total":
            assert total is not None
            var = total
        else:
            var = self.em.apply(node, [self.value(member, a, total) for a in node.args])
        return self.em.remember(key, var)

    def checked(self, check: Check, index: Var, bad: Var) -> Var:
        """The index; a bad one is written into the device's error record."""
        self.imports.add("from argand_aten_cuda.kernels import _accumulate")
        record, name = (self.parameter(sz.atom(n)) for n in (check.record, check.name))
        many = "" if index.axes else " + tl.zeros((1,), tl.int32)"
        where = f"{record}.to(tl.int64).to(tl.pointer_type(tl.int64)), {name}, {check.size << 6 | check.dim}"
        line = f"_accumulate.report({index.name}{many}, {bad.name}{many and ' & tl.full((1,), True, tl.int1)'}, {where})"
        self.em.line(max(index.level, bad.level), line)
        return index

    def result(self, member: Member) -> Var:
        """What a member computed, at the current index; what an earlier pass computed is computed again."""
        if member.loop.reduction is not None:
            return self.totals[member.loop.name]
        return self.value(member, member.loop.body)

    def store(self, member: Member, var: Var) -> None:
        loop = member.loop
        text, axes, level = self.position(member.write.strides, member.write.offset)
        mask = self.mask_of(member.write, axes)
        value = f"{var.name}.to({TYPES[loop.dtype]})" if loop.dtype in HALF else var.name
        if loop.fills_gaps:
            value = f"tl.where({self.mask(axes)}, {value}, 0)"
        arguments = f"{self.pointer(loop.name)} + ({text}), {value}" + (f", {mask}" if mask else "")
        self.em.line(max(level, var.level), f"tl.store({arguments})")

    # ---- passes

    def assign_passes(self) -> int:
        for m in self.group.members:
            found = 0
            for a in m.reads:
                source = self.made.get(a.buffer)
                if source is not None:
                    reduces = source.loop.reduction is not None
                    found = max(found, self.passes[source.loop.name] + reduces)
            self.passes[m.loop.name] = found
        return max(self.passes.values(), default=0)

    def pass_roots(self, p: int) -> list[Member]:
        """Full members that have to be computed in a pass: reductions and stores."""
        return [
            m
            for m in self.group.members
            if self.passes[m.loop.name] == p
            and m.level == FULL
            and (m.loop.reduction is not None or m.loop.name in self.live)
        ]

    # ---- reductions

    def begin_reduction(self, member: Member) -> _Reduction:
        rule = member.loop.reduction
        assert rule is not None
        dtype = member.loop.body.dtype
        start = rule.init
        init = extreme(dtype, start == "highest") if isinstance(start, str) else start
        held = "int32" if dtype == "bool" else dtype
        self.reductions += 1
        function = self.combine_function(rule, dtype)
        return _Reduction(
            member, rule, dtype, f"a{self.reductions}", number_text(init, held), function
        )

    def combine(self, em: Emitter, rule: ReductionLowering, dtype: str, a: Var, b: Var) -> Var:
        """combine(a, b) as statements."""
        held = "int32" if dtype == "bool" else dtype
        left, right = Value("var", (), held, a), Value("var", (), held, b)
        if dtype == "bool":  # of 0 and 1
            tree = rule.combine(
                Elements("bool"), Value("var", (), "bool", a), Value("var", (), "bool", b)
            )
        else:
            tree = rule.combine(Elements(dtype), left, right)

        def show(node: Value) -> Var:
            if node.op == "var":
                var: Var = node.detail
                return var
            if node.op == "number":
                return em.number(node.detail, node.dtype)
            return em.apply(node, [show(x) for x in node.args])

        return show(tree)

    def combine_function(self, rule: ReductionLowering, dtype: str) -> str:
        """The name of a function of two partial results."""
        key = (id(rule), dtype)
        if key not in self.functions:
            em = Emitter()
            made = self.combine(em, rule, dtype, Var("a", dtype), Var("b", dtype))
            name = f"combine{len(self.functions)}"
            self.functions[key] = name, [*em.close(), f"return {made.name}"]
        return self.functions[key][0]

    def contribution(self, r: _Reduction) -> Var:
        """The mapped elements over the whole tile."""
        x = self.value(r.member, r.member.loop.body)
        text = convert_text(x.name, x.dtype, r.held)
        everywhere = frozenset(self.axes)
        if x.axes != everywhere:
            text = f"tl.broadcast_to({text}, {self.shape()})"
        level = LOOP if self.looped else FUNCTION
        return self.em.declare(text, r.held, everywhere, level)

    def where_counted(self, x: str, otherwise: str) -> str:
        """x where the reduced index is in range."""
        if not self.axes["r"].masked:
            return x
        return f"tl.where(rm, {x}, {otherwise})"

    def fold(self, r: _Reduction, elements: str) -> Var:
        """The total of a tile's elements along r."""
        axis = len(self.axes) - 1
        put_back = "[:, None]" if axis else ""
        text = f"tl.reduce({elements}, {axis}, {r.function}){put_back}"
        if r.dtype == "bool":
            text = f"({text} != 0)"
        axes = frozenset(a for a in self.axes if a != "r")
        total = self.em.declare(text, r.dtype, axes, FUNCTION)
        final = r.member.loop.final
        assert final is not None
        return self.value(r.member, final, total)

    # ---- text

    def write(self) -> None:
        """Write the whole body."""
        last = self.assign_passes()
        self.program_indices()
        if "r" not in self.axes:
            members = [m for m in self.group.members if m.loop.name in self.live]
            # Everything is read before anything is written, since results may lie where inputs do.
            for m, var in [(m, self.value(m, m.loop.body)) for m in members]:
                self.store(m, var)
            return
        if not self.looped:
            self.reduced_index(FUNCTION)
        stores: list[tuple[Member, Var]] = []
        for p in range(last + 1):
            roots = self.pass_roots(p)
            if not roots:
                continue
            if self.looped:
                self.loop_pass(roots)
            else:
                stores += self.whole_pass(roots)
        for m, var in stores:
            self.store(m, var)
        for m in self.group.members:
            if m.loop.name in self.live and (m.loop.reduction is not None or m.level != FULL):
                self.store(m, self.result(m))

    def whole_pass(self, roots: list[Member]) -> list[tuple[Member, Var]]:
        """A pass over what the program holds; what is to be stored at the end."""
        stores = []
        for m in roots:
            if m.loop.reduction is None:
                stores.append((m, self.value(m, m.loop.body)))
                continue
            r = self.begin_reduction(m)
            x = self.contribution(r)
            counted = self.where_counted(x.name, r.init)
            self.totals[m.loop.name] = self.fold(r, counted)
        return stores

    def loop_pass(self, roots: list[Member]) -> None:
        """A pass block by block."""
        found = [self.begin_reduction(m) for m in roots if m.loop.reduction is not None]
        for r in found:
            self.em.line(
                FUNCTION, f"{r.place} = tl.zeros({self.shape()}, {TYPES[r.held]}) + {r.init}"
            )
        self.em.open()
        self.reduced_index(LOOP)
        for m in roots:
            if m.loop.reduction is None:
                self.store(m, self.value(m, m.loop.body))
        everywhere = frozenset(self.axes)
        for r in found:
            x = self.contribution(r)
            both = self.combine(
                self.em, r.rule, r.dtype, Var(r.place, x.dtype, everywhere, LOOP), x
            )
            self.em.line(LOOP, f"{r.place} = {self.where_counted(both.name, r.place)}")
        inner = self.em.close()
        self.em.line(FUNCTION, f"for r0 in range(0, {self.text(self.axes['r'].numel)}, R):")
        for line in inner:
            self.em.line(FUNCTION, "    " + line)
        for r in found:
            self.totals[r.member.loop.name] = self.fold(r, r.place)

    def grid(self) -> Size:
        """Programs."""
        kept = [a for a in self.axes.values() if a.name != "r"]
        blocks = [sz.ceil_divide(a.numel, a.block) for a in kept]
        return sz.product([*blocks, *([self.outer.numel] if self.outer is not None else [])])
