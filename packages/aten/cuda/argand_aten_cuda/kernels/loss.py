"""Negative log likelihood over (row, class), and margins between classes. REDUCTION: 0 none, 1 mean, 2 sum. Targets are int64."""

import triton
import triton.language as tl

from argand_aten_cuda.kernel import Kernel
from argand_aten_cuda.kernels._accumulate import narrow, report, widen


@triton.jit
def nll_loss_rows(
    x, target, weight, out, partial, error, op, info, rows, classes, step, ignore,
    REDUCTION: tl.constexpr, HAS_W: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """A tile of rows, `step` elements one behind the other: out[row] (REDUCTION 0), and its sums of losses and weights as partial[tile, 2] in float64."""
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.load(target + row, mask=row < rows, other=ignore)
    good = (c >= 0) & (c < classes)
    report(c, (row < rows) & (c != ignore) & ~good, error, op, info)
    counted = (row < rows) & (c != ignore) & good
    loss = -widen(tl.load(x + row.to(tl.int64) * step + c, mask=counted, other=0.0))
    factor = tl.where(counted, 1.0, 0.0).to(loss.dtype)
    if HAS_W:
        factor = tl.load(weight + c, mask=counted, other=0.0)
    loss = tl.where(counted, loss * factor, 0.0)
    if REDUCTION == 0:
        tl.store(out + row, loss.to(out.dtype.element_ty), mask=row < rows)
    at = partial + tl.program_id(0) * 2
    tl.store(at, tl.sum(loss.to(tl.float64), 0))
    tl.store(at + 1, tl.sum(factor.to(tl.float64), 0))


@triton.jit
def nll_loss_total(partial, out, total, parts, REDUCTION: tl.constexpr, BLOCK: tl.constexpr):
    """One program: adds partial[parts, 2]; out and total are 0-d."""
    loss = tl.zeros([BLOCK], tl.float64)
    weight = tl.zeros([BLOCK], tl.float64)
    for start in range(0, parts, BLOCK):
        at = start + tl.arange(0, BLOCK)
        loss += tl.load(partial + at * 2, mask=at < parts, other=0.0)
        weight += tl.load(partial + at * 2 + 1, mask=at < parts, other=0.0)
    losses = tl.sum(loss, 0)
    weights = tl.sum(weight, 0)
    tl.store(total, narrow(weights, total))
    if REDUCTION == 1:
        tl.store(out, narrow(losses / weights, out))
    if REDUCTION == 2:
        tl.store(out, narrow(losses, out))


@triton.jit
def nll_loss_backward(
    grad, target, weight, total, dx, classes, ignore,
    REDUCTION: tl.constexpr, HAS_W: tl.constexpr, BLOCK: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    """dx[row, class]; grid: rows * tiles of classes; classes in units of ALIGN (16: rows are aligned)."""
    classes = classes * ALIGN
    tiles = tl.cdiv(classes, BLOCK)
    row = tl.program_id(0) // tiles
    column = tl.program_id(0) % tiles * BLOCK + tl.arange(0, BLOCK)
    c = tl.load(target + row)
    if REDUCTION == 0:
        g = widen(tl.load(grad + row))
    else:
        g = widen(tl.load(grad))
    if REDUCTION == 1:
        g = g / widen(tl.load(total))
    hit = (column == c) & (c != ignore)
    if HAS_W:
        value = tl.where(hit, -g * tl.load(weight + column, mask=hit, other=0.0), 0.0)
    else:
        value = tl.where(hit, -g, 0.0)
    tl.store(
        dx + row.to(tl.int64) * classes + column,
        value.to(dx.dtype.element_ty),
        mask=column < classes,
    )


@triton.jit
def multi_margin_rows(
    x, target, out, error, op, info, rows, classes, step, margin,
    SQUARED: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    """Of rows `step` elements one behind the other, the sums over other classes of max(0, margin - score of target + score), or of its squares.

    `classes` and `step` are in units of ALIGN (16: rows are aligned).
    """
    classes = classes * ALIGN
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    here = row < rows
    c = tl.load(target + row, mask=here, other=0)
    good = here & (c >= 0) & (c < classes)
    report(c, here & ~good, error, op, info)
    x += (row * (step * ALIGN))[:, None]
    lane = tl.arange(0, BLOCK)[None, :]
    own = widen(tl.load(x + c[:, None], mask=good[:, None], other=0.0))
    short = margin.to(own.dtype) - own
    sums = tl.zeros([ROWS, BLOCK], own.dtype)
    for start in range(0, classes, BLOCK):
        column = start + lane
        excess = short + widen(
            tl.load(x + column, mask=here[:, None] & (column < classes), other=0.0)
        )
        counted = (excess > 0) & (column != c[:, None]) & (column < classes)
        sums += tl.where(counted, excess * excess if SQUARED else excess, 0.0)
    tl.store(out + row, tl.sum(sums, 1).to(out.dtype.element_ty), mask=here)


_T = {"T": ["float32", "bfloat16", "float16", "float64"], "A": ["float32", "float64"]}
_USUAL = {"A": ["float32"]}
_FLAGS = {"REDUCTION": [0, 1, 2], "HAS_W": [0, 1]}
_REPORT = {"error": "*i64", "op": "i64", "info": "i64"}

KERNELS = [
    Kernel(
        nll_loss_rows,
        {"x": "*T", "target": "*i64", "weight": "*A", "out": "*T", "partial": "*fp64", **_REPORT, "rows": "i32", "classes": "i32", "step": "i64", "ignore": "i64"},
        _T, {**_FLAGS, "BLOCK": [256]}, _USUAL,
    ),
    Kernel(
        nll_loss_total, {"partial": "*fp64", "out": "*T", "total": "*T", "parts": "i32"}, {"T": _T["T"]}, {"REDUCTION": [0, 1, 2], "BLOCK": [256]},
    ),
    Kernel(
        nll_loss_backward, {"grad": "*T", "target": "*i64", "weight": "*A", "total": "*T", "dx": "*T", "classes": "i32", "ignore": "i64"},
        _T, {**_FLAGS, "BLOCK": [2048], "ALIGN": [1, 16]}, _USUAL, divisible=("dx",),
    ),
    Kernel(
        multi_margin_rows, {"x": "*T", "target": "*i64", "out": "*T", **_REPORT, "rows": "i32", "classes": "i32", "step": "i64", "margin": "fp64"},
        {"T": _T["T"]}, {"SQUARED": [False, True], "ROWS": [1, 16], "BLOCK": [2048, 128], "ALIGN": [1, 16]}, {"T": ["float32"]},
        divisible=lambda v: ("x",) if v["ALIGN"] == 16 else (), wheel=lambda v: v["ROWS"] * v["BLOCK"] == 2048 and not v["SQUARED"],
    ),
]  # fmt: skip
