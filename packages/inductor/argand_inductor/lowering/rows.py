"""Softmax, norms and classification losses as loops over rows, for generators to which a fused row is worth more than the operator's
own kernel (`Backend.rows_fuse`). Statistics are float32 (float64 for that), results are rounded once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from argand_c10 import find_operator
from argand_c10.lowerings import ReductionLowering
from argand_c10.rules import rules_of
from argand_inductor import sizes as sz
from argand_inductor.loop_ir import (
    INDEX,
    Access,
    Check,
    Loop,
    Value,
    compute_dtype,
    contiguous_strides,
)
from argand_inductor.lowering.composite import lowers_rows
from argand_inductor.lowering.creation import LOOPS, elementwise
from argand_inductor.lowering.elements import convert, literal
from argand_inductor.lowering.pointwise import Reads
from argand_inductor.lowering.reduction import size_value, split_reduction
from argand_inductor.lowering.tensors import TensorRef, dtype_name, geometry, is_dense
from argand_inductor.sizes import Size

if TYPE_CHECKING:
    from argand_inductor.lowering.graph import Lowering

# (reads of the loop in the making) -> its element
Body = Callable[["Rows", Reads], Value]


class Rows:
    """Loops over one shape of which some dimensions are rows. `held`: the dtype that they compute in."""

    def __init__(
        self, ctx: Lowering, name: str, sizes: Sequence[Size], dims: Sequence[int], held: str
    ) -> None:
        self.ctx, self.name, self.held = ctx, name, held
        self.sizes, self.dims = tuple(sizes), tuple(dims)

    def are_short(self) -> bool:
        """Whether a kernel holds a row at once; for longer ones the operator's own way is better than several passes."""
        length = sz.product(self.sizes[d] for d in self.dims)
        return isinstance(length, int) and length <= self.ctx.target().longest_row

    def load(self, reads: Reads, ref: TensorRef) -> Value:
        """A tensor's element, broadcast to the shape."""
        known = self.ctx.constant_values.get(ref.buffer)
        x = known or reads.load(ref.broadcast(self.sizes), ref.dtype)
        return convert(x, self.held)

    def op(self, fn: str, *args: Value) -> Value:
        return Value(fn, args, self.held)

    def number(self, value: float) -> Value:
        return literal(value, self.held)

    def count(self, dims: Sequence[int]) -> Value:
        """How many elements these dimensions have."""
        return convert(size_value(sz.product(self.sizes[d] for d in dims)), self.held)

    def index(self, reads: Reads, dim: int) -> Value:
        """The element's place along a dimension, an int64."""
        strides = tuple(1 if d == dim else 0 for d in range(len(self.sizes)))
        return reads.load(Access(INDEX, strides), "int64")

    def total(
        self, rule: str, body: Body, dims: Sequence[int] | None = None, out: str = ""
    ) -> TensorRef:
        """The elements combined along dimensions (the rows'), which the result keeps with size 1."""
        dims = self.dims if dims is None else tuple(dims)
        kept = [d for d in range(len(self.sizes)) if d not in dims]
        order = [*kept, *dims]
        reads = Reads()
        element = body(self, reads)
        accesses = [a.mapped(lambda s: [s[d] for d in order]) for a in reads.accesses]
        sizes = tuple(1 if d in dims else s for d, s in enumerate(self.sizes))
        out = out or self.held
        strides = contiguous_strides(sizes)
        final = convert(Value("total", (), self.held), out)
        write = (*(strides[d] for d in kept), *([0] * len(dims)))
        space = tuple(self.sizes[d] for d in order)
        if all(self.sizes[d] == 1 for d in dims):  # nothing to combine
            element = convert(element, out)
            loop = Loop(Access("", write), out, space, accesses, reads.dtypes, element)
        else:
            whole = Loop(
                Access("", write), out, space, accesses, reads.dtypes, element,
                reduced=len(dims), reduction=_rule(rule), final=final,
            )  # fmt: skip
            loop = split_reduction(self.ctx, self.name, whole, self.held)
        buffer = self.ctx.new_buffer(out, sizes, strides, "t")
        loop.write = Access(buffer.name, loop.write.strides)
        return self.ctx.emit(loop, self.name)

    def every(self, result: Any, body: Body) -> TensorRef:
        """A loop over the whole shape, or over that of the result."""
        reads = Reads()
        value = convert(body(self, reads), dtype_name(result.dtype))
        return elementwise(self.ctx, self.name, result, reads, value)


def _rule(name: str) -> ReductionLowering:
    rules = rules_of(find_operator(name))
    assert rules is not None and isinstance(rules.lowering, ReductionLowering)
    return rules.lowering


def _fits(results: Sequence[Any], *refs: Any) -> bool:
    """Whether loops can make these results of these operands."""
    for r in results:
        if dtype_name(r.dtype) not in LOOPS or not is_dense(*geometry(r)[:2]):
            return False
    return all(ref is None or (isinstance(ref, TensorRef) and ref.dtype in LOOPS) for ref in refs)


def _along(
    ctx: Lowering, name: str, ref: TensorRef, dim: int, result: Any, *others: Any
) -> Rows | None:
    """Rows along one dimension, which has elements."""
    if not _fits([result], ref, *others) or not ref.sizes:
        return None
    if not all(sz.is_positive(s) for s in ref.sizes):
        return None
    held = compute_dtype(dtype_name(result.dtype))
    if not held.startswith("float"):
        return None
    if any(r is not None and r.dtype == "float64" for r in (ref, *others)):
        held = "float64"
    return Rows(ctx, name, ref.sizes, [dim % len(ref.sizes)], held)


# ---- softmax --------------------------------------------------------------------------------------------------------


def _shifted(rows: Rows, reads: Reads, x: TensorRef, largest: TensorRef) -> Value:
    return rows.op("sub", rows.load(reads, x), rows.load(reads, largest))


def _softmax(name: str) -> None:
    @lowers_rows(name)
    def lower(ctx: Lowering, values: dict[str, Any], fakes: dict[str, Any], result: Any) -> Any:
        x = values["self"]
        rows = _along(ctx, name, x, values["dim"], result)
        if rows is None or not rows.are_short():
            return None
        largest = rows.total("amax", lambda r, reads: r.load(reads, x))
        total = rows.total("sum", lambda r, reads: r.op("exp", _shifted(r, reads, x, largest)))

        def element(r: Rows, reads: Reads) -> Value:
            shifted = _shifted(r, reads, x, largest)
            if name == "softmax":
                return r.op("div", r.op("exp", shifted), r.load(reads, total))
            return r.op("sub", shifted, r.op("log", r.load(reads, total)))

        return rows.every(result, element)


def _softmax_backward(name: str) -> None:
    @lowers_rows(name)
    def lower(ctx: Lowering, values: dict[str, Any], fakes: dict[str, Any], result: Any) -> Any:
        grad, out = values["grad_output"], values["output"]
        rows = _along(ctx, name, out, values["dim"], result, grad)
        if rows is None:
            return None
        product = name == "softmax_backward"

        def part(r: Rows, reads: Reads) -> Value:
            g = r.load(reads, grad)
            return r.op("mul", g, r.load(reads, out)) if product else g

        total = rows.total("sum", part)

        def element(r: Rows, reads: Reads) -> Value:
            g, y, t = r.load(reads, grad), r.load(reads, out), r.load(reads, total)
            if product:
                return r.op("mul", y, r.op("sub", g, t))
            return r.op("sub", g, r.op("mul", r.op("exp", y), t))

        return rows.every(result, element)


for _name in ("softmax", "log_softmax"):
    _softmax(_name)
    _softmax_backward(f"{_name}_backward")


# ---- norms ----------------------------------------------------------------------------------------------------------


def _normalized(
    ctx: Lowering, name: str, values: dict[str, Any], results: Sequence[Any], *more: str
) -> tuple[Rows, list[int]] | None:
    """(rows over the normalized dimensions, the others)."""
    x = values["input"]
    refs = [values.get(k) for k in ("weight", "bias", *more)]
    if not _fits(results, x, *refs) or not all(sz.is_positive(s) for s in x.sizes):
        return None
    n, lead = len(x.sizes), len(x.sizes) - len(values["normalized_shape"])
    held = compute_dtype(x.dtype)
    return Rows(ctx, name, x.sizes, range(lead, n), held), list(range(lead))


def _affine(r: Rows, reads: Reads, y: Value, weight: Any, bias: Any) -> Value:
    if weight is not None:
        y = r.op("mul", y, r.load(reads, weight))
    return y if bias is None else r.op("add", y, r.load(reads, bias))


@lowers_rows("native_layer_norm")
def lower_layer_norm(
    ctx: Lowering, values: dict[str, Any], fakes: dict[str, Any], result: Any
) -> Any:
    found = _normalized(ctx, "native_layer_norm", values, result)
    if found is None:
        return None
    rows, x = found[0], values["input"]
    n = rows.dims

    def mean_of(body: Body, end: Callable[[Rows, Value], Value], like: Any) -> TensorRef:
        total = rows.total("sum", body)
        stats = Rows(ctx, rows.name, total.sizes, (), rows.held)
        return stats.every(
            like, lambda r, reads: end(r, r.op("div", r.load(reads, total), rows.count(n)))
        )

    mean = mean_of(lambda r, reads: r.load(reads, x), lambda r, v: v, result[1])

    def squared(r: Rows, reads: Reads) -> Value:
        d = r.op("sub", r.load(reads, x), r.load(reads, mean))
        return r.op("mul", d, d)

    eps = values["eps"]
    rstd = mean_of(squared, lambda r, v: r.op("rsqrt", r.op("add", v, r.number(eps))), result[2])

    def element(r: Rows, reads: Reads) -> Value:
        d = r.op("sub", r.load(reads, x), r.load(reads, mean))
        y = r.op("mul", d, r.load(reads, rstd))
        return _affine(r, reads, y, values["weight"], values["bias"])

    return rows.every(result[0], element), mean, rstd


@lowers_rows("fused_rms_norm")
def lower_rms_norm(
    ctx: Lowering, values: dict[str, Any], fakes: dict[str, Any], result: Any
) -> Any:
    found = _normalized(ctx, "fused_rms_norm", values, result)
    if found is None:
        return None
    rows, x, eps = found[0], values["input"], values["eps"]

    def squared(r: Rows, reads: Reads) -> Value:
        v = r.load(reads, x)
        return r.op("mul", v, v)

    total = rows.total("sum", squared)
    stats = Rows(ctx, rows.name, total.sizes, (), rows.held)

    def root(r: Rows, reads: Reads) -> Value:
        mean = r.op("div", r.load(reads, total), rows.count(rows.dims))
        return r.op("rsqrt", r.op("add", mean, r.number(eps)))

    rrms = stats.every(result[1], root)

    def element(r: Rows, reads: Reads) -> Value:
        y = r.op("mul", r.load(reads, x), r.load(reads, rrms))
        return _affine(r, reads, y, values["weight"], None)

    return rows.every(result[0], element), rrms


def _norm_backward(name: str, centered: bool) -> None:
    @lowers_rows(name)
    def lower(ctx: Lowering, values: dict[str, Any], fakes: dict[str, Any], result: Any) -> Any:
        statistic = values["rstd" if centered else "rrms"]
        mean = values["mean"] if centered else None
        mask = values["output_mask"]
        wanted = [r for r, m in zip(result, mask, strict=False) if m]
        found = _normalized(ctx, name, values, wanted, "grad_out")
        if found is None:
            return None
        (rows, lead), x, grad, weight = found, values["input"], values["grad_out"], values["weight"]

        def normal(r: Rows, reads: Reads) -> Value:
            v = r.load(reads, x)
            if mean is not None:
                v = r.op("sub", v, r.load(reads, mean))
            return r.op("mul", v, r.load(reads, statistic))

        def scaled(r: Rows, reads: Reads) -> Value:
            return _affine(r, reads, r.load(reads, grad), weight, None)

        def weighted(r: Rows, reads: Reads) -> Value:
            return r.op("mul", scaled(r, reads), normal(r, reads))

        def gradient() -> TensorRef:
            along = rows.total("sum", weighted)
            plain = rows.total("sum", scaled) if centered else None

            def element(r: Rows, reads: Reads) -> Value:
                n = rows.count(rows.dims)
                part = r.op("mul", normal(r, reads), r.op("div", r.load(reads, along), n))
                g = scaled(r, reads)
                if plain is not None:
                    g = r.op("sub", g, r.op("div", r.load(reads, plain), n))
                return r.op("mul", r.load(reads, statistic), r.op("sub", g, part))

            return rows.every(result[0], element)

        def columns(body: Body, like: Any) -> TensorRef | None:
            if not lead:
                return rows.every(like, body)
            total = rows.total("sum", body, lead, dtype_name(like.dtype))
            sizes, strides, _ = geometry(like)
            return TensorRef(total.buffer, total.dtype, sizes, strides)

        made = [gradient() if mask[0] else None]
        made.append(
            columns(lambda r, reads: r.op("mul", r.load(reads, grad), normal(r, reads)), result[1])
            if mask[1]
            else None
        )
        if centered:
            made.append(
                columns(lambda r, reads: r.load(reads, grad), result[2]) if mask[2] else None
            )
        return tuple(made)


_norm_backward("native_layer_norm_backward", centered=True)
_norm_backward("fused_rms_norm_backward", centered=False)


# ---- losses of class numbers ----------------------------------------------------------------------------------------


def _classes(
    ctx: Lowering, name: str, values: dict[str, Any], results: Sequence[Any]
) -> tuple[Rows, TensorRef] | None:
    """(rows over the classes of a batch, the targets as a column), where no class has a weight."""
    x, target = values["self"], values["target"]
    if values["weight"] is not None or len(x.sizes) != 2 or not _fits(results, x, target):
        return None
    if not all(sz.is_positive(s) for s in x.sizes):
        return None
    column = TensorRef(
        target.buffer, target.dtype, (*target.sizes, 1), (*target.strides, 0), target.offset
    )
    return Rows(ctx, name, x.sizes, [1], compute_dtype(x.dtype)), column


def _counted(r: Rows, reads: Reads, target: TensorRef, ignored: int) -> tuple[Value, Value]:
    """(the row's class, whether it is not the ignored one)."""
    known = reads.load(target.broadcast(r.sizes), target.dtype)
    chosen = convert(known, "int64")
    return chosen, Value("ne", (chosen, literal(ignored, "int64")), "bool")


def _is_class(
    r: Rows, reads: Reads, target: TensorRef, ignored: int, check: Check | None = None
) -> Value:
    """Whether the element is that of its row's class; what is no class may be reported."""
    chosen, counts = _counted(r, reads, target, ignored)
    if check is not None:
        low = Value("lt", (chosen, literal(0, "int64")), "bool")
        high = Value("ge", (chosen, literal(check.size, "int64")), "bool")
        bad = Value("bit_and", (counts, Value("bit_or", (low, high), "bool")), "bool")
        chosen = Value("checked", (chosen, bad), "int64", check)
    here = Value("eq", (r.index(reads, 1), chosen), "bool")
    return Value("bit_and", (here, counts), "bool")


@lowers_rows("nll_loss_forward")
def lower_nll_loss(
    ctx: Lowering, values: dict[str, Any], fakes: dict[str, Any], result: Any
) -> Any:
    """The class is picked by a masked sum over the row, which fuses with what makes the row."""
    found = _classes(ctx, "nll_loss_forward", values, result)
    if found is None:
        return None
    (rows, target), x = found, values["self"]
    if not rows.are_short():
        return None
    ignored, reduction = values["ignore_index"], values["reduction"]
    check = ctx.check("nll_loss", 1, int(str(x.sizes[1])))

    def picked(r: Rows, reads: Reads) -> Value:
        here = _is_class(r, reads, target, ignored, check)
        return Value("where", (here, r.load(reads, x), r.number(0.0)), r.held)

    each = rows.total("sum", picked)
    batch = Rows(ctx, rows.name, each.sizes, [0], rows.held)

    def counted(r: Rows, reads: Reads) -> Value:
        return convert(_counted(r, reads, target, ignored)[1], r.held)

    def whole(body: Body) -> TensorRef:
        made = batch.total("sum", body)
        return TensorRef(made.buffer, made.dtype, (), ())

    n = whole(counted)
    scalar = Rows(ctx, rows.name, (), (), rows.held)
    total_weight = scalar.every(result[1], lambda r, reads: r.load(reads, n))
    if reduction == 0:
        flat_each = TensorRef(each.buffer, each.dtype, each.sizes[:1], each.strides[:1])
        per_row = Rows(ctx, rows.name, each.sizes[:1], (), rows.held)
        loss = per_row.every(result[0], lambda r, reads: r.op("neg", r.load(reads, flat_each)))
        return loss, total_weight
    total = whole(lambda r, reads: r.op("neg", r.load(reads, each)))

    def mean(r: Rows, reads: Reads) -> Value:
        t = r.load(reads, total)
        return r.op("div", t, r.load(reads, n)) if reduction == 1 else t

    return scalar.every(result[0], mean), total_weight


@lowers_rows("nll_loss_backward")
def lower_nll_loss_backward(
    ctx: Lowering, values: dict[str, Any], fakes: dict[str, Any], result: Any
) -> Any:
    found = _classes(ctx, "nll_loss_backward", values, [result])
    grad, total = values["grad_output"], values["total_weight"]
    if found is None or not _fits([], grad, total):
        return None
    rows, target = found
    if grad.sizes:  # one a row
        grad = TensorRef(grad.buffer, grad.dtype, (*grad.sizes, 1), (*grad.strides, 0), grad.offset)

    def element(r: Rows, reads: Reads) -> Value:
        g = r.op("neg", r.load(reads, grad))
        if values["reduction"] == 1:
            g = r.op("div", g, r.load(reads, total))
        here = _is_class(r, reads, target, values["ignore_index"])
        return Value("where", (here, g, r.number(0.0)), r.held)

    return rows.every(result, element)
