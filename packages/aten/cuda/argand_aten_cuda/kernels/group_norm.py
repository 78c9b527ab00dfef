"""Group normalisation of (batch, channel, space) data, dense, with gradients. A group's `per` channels are neighbours in memory.
`space` is given in units of ALIGN: 16 tells the compiler that channels are aligned."""

import triton
import triton.language as tl

from argand_aten_cuda.kernel import Kernel
from argand_aten_cuda.kernels._accumulate import widen
from argand_aten_cuda.kernels.norm import inverse_root


@triton.jit
def group_norm_forward(
    x, w, b, y, mean, rstd, groups, per, space, eps,
    HAS_W: tl.constexpr, HAS_B: tl.constexpr, BLOCK: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    """Grid: batch * groups."""
    space = space * ALIGN
    one = tl.program_id(0)
    n = per * space
    x += one.to(tl.int64) * n
    y += one.to(tl.int64) * n
    acc = widen(tl.zeros([BLOCK], x.dtype.element_ty))
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        acc += widen(tl.load(x + at, mask=at < n, other=0.0))
    m = tl.sum(acc, 0) / n
    acc = tl.zeros_like(acc)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        d = tl.where(at < n, widen(tl.load(x + at, mask=at < n, other=0.0)) - m, 0.0)
        acc += d * d
    r = inverse_root(tl.sum(acc, 0) / n, eps)
    tl.store(mean + one, m)
    tl.store(rstd + one, r)
    first = one % groups * per
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = (widen(tl.load(x + at, mask=at < n, other=0.0)) - m) * r
        channel = first + at // space
        if HAS_W:
            value *= widen(tl.load(w + channel, mask=at < n, other=0.0))
        if HAS_B:
            value += widen(tl.load(b + channel, mask=at < n, other=0.0))
        tl.store(y + at, value.to(y.dtype.element_ty), mask=at < n)


@triton.jit
def group_norm_sums(
    grad, x, mean, rstd, partial, groups, channels, space, BLOCK: tl.constexpr, ALIGN: tl.constexpr
):
    """partial[0, batch, channel] = sum of grad * normalised x, partial[1, ...] = sum of grad; grid: batch * channels."""
    space = space * ALIGN
    one = tl.program_id(0)
    base = one.to(tl.int64) * space
    group = one // channels * groups + one % channels // (channels // groups)
    m = tl.load(mean + group)
    r = tl.load(rstd + group)
    acc = widen(tl.zeros([BLOCK], x.dtype.element_ty))
    acc_x = acc
    for start in range(0, space, BLOCK):
        at = start + tl.arange(0, BLOCK)
        g = widen(tl.load(grad + base + at, mask=at < space, other=0.0))
        acc += g
        acc_x += g * (widen(tl.load(x + base + at, mask=at < space, other=0.0)) - m)
    tl.store(partial + one, tl.sum(acc_x, 0) * r)
    tl.store(partial + tl.num_programs(0) + one, tl.sum(acc, 0))


@triton.jit
def group_norm_backward(
    grad, x, w, mean, rstd, partial, dx, groups, per, space,
    HAS_W: tl.constexpr, BLOCK_C: tl.constexpr, BLOCK: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    """Grid: batch * groups. partial is group_norm_sums's."""
    space = space * ALIGN
    one = tl.program_id(0)
    n = per * space
    base = one.to(tl.int64) * n
    m = tl.load(mean + one)
    r = tl.load(rstd + one)
    second = tl.num_programs(0).to(tl.int64) * per
    first = one % groups * per
    slope = tl.zeros([BLOCK_C], partial.dtype.element_ty)
    center = slope
    for start in range(0, per, BLOCK_C):
        k = start + tl.arange(0, BLOCK_C)
        at = one.to(tl.int64) * per + k
        a = tl.load(partial + at, mask=k < per, other=0.0)
        c = tl.load(partial + second + at, mask=k < per, other=0.0)
        if HAS_W:
            weight = widen(tl.load(w + first + k, mask=k < per, other=0.0))
            a *= weight
            c *= weight
        slope += a
        center += c
    slope_n = tl.sum(slope, 0) / n
    center_n = tl.sum(center, 0) / n
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        g = widen(tl.load(grad + base + at, mask=at < n, other=0.0))
        value = (widen(tl.load(x + base + at, mask=at < n, other=0.0)) - m) * r
        if HAS_W:
            g *= widen(tl.load(w + first + at // space, mask=at < n, other=0.0))
        result = (g - center_n - value * slope_n) * r
        tl.store(dx + base + at, result.to(dx.dtype.element_ty), mask=at < n)


_T = {
    "T": ["float32", "bfloat16", "float16", "float64"],
    "W": ["float32", "bfloat16", "float16", "float64"],
    "A": ["float32", "float64"],
}
_USUAL = {"A": ["float32"]}
_STATISTICS = {"mean": "*A", "rstd": "*A"}
_ALIGN = {"ALIGN": [1, 16]}
_FORWARD = {"x": "*T", "w": "*W", "b": "*W", "y": "*T", **_STATISTICS}
_BACKWARD = {"grad": "*T", "x": "*T", "w": "*W", **_STATISTICS, "partial": "*A", "dx": "*T"}
_SIZES = {"groups": "i32", "per": "i32", "space": "i32"}

KERNELS = [
    Kernel(
        group_norm_forward, {**_FORWARD, **_SIZES, "eps": "fp64"}, _T, {"HAS_W": [0, 1], "HAS_B": [0, 1], "BLOCK": [2048], **_ALIGN}, _USUAL,
        num_warps=8, divisible=tuple(_FORWARD), wheel=lambda v: v["T"] == v["W"] and v["HAS_W"] == v["HAS_B"],
    ),
    Kernel(
        group_norm_sums, {"grad": "*T", "x": "*T", **_STATISTICS, "partial": "*A", "groups": "i32", "channels": "i32", "space": "i32"},
        {"T": _T["T"], "A": _T["A"]}, {"BLOCK": [1024], **_ALIGN}, _USUAL, divisible=("grad", "x", "partial"),
    ),
    Kernel(
        group_norm_backward, {**_BACKWARD, **_SIZES}, _T, {"HAS_W": [0, 1], "BLOCK_C": [64], "BLOCK": [2048], **_ALIGN}, _USUAL,
        num_warps=8, divisible=tuple(_BACKWARD), wheel=lambda v: v["T"] == v["W"],
    ),
]  # fmt: skip
