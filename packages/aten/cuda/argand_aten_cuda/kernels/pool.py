"""Pooling of planes (..., h, w): maxima and means of windows, and the gradient of means. One lane an element of the result.

Sums run over a window row by row in float32 (float64 for float64), as the CPU's do, so the results are equal bit for bit.
"""

import triton
import triton.language as tl

from argand_aten_cuda.kernel import FLOATING, REAL, Kernel, Variant
from argand_aten_cuda.math import argand_div


@triton.jit
def _place(total, height, width, BLOCK: tl.constexpr):
    """This program's elements of planes of height x width: their number, mask, plane, row and column."""
    e = tl.program_id(0).to(total.dtype) * BLOCK + tl.arange(0, BLOCK)
    q = e // width
    return e, e < total, q // height, (q % height).to(tl.int32), (e % width).to(tl.int32)


@triton.jit
def _wide(v):
    """float32 for 16-bit floats."""
    if v.dtype.is_floating() and v.dtype.primitive_bitwidth == 16:
        wide = v.to(tl.float32)
    else:
        wide = v
    return wide


@triton.jit
def _least(dtype: tl.constexpr, BLOCK: tl.constexpr):
    """The maximum of nothing."""
    if dtype.is_floating():
        least = tl.full([BLOCK], float("-inf"), dtype)
    elif dtype.is_int_signed():
        least = tl.full([BLOCK], 1, dtype) << (dtype.primitive_bitwidth - 1)
    else:
        least = tl.zeros([BLOCK], dtype)
    return least


@triton.jit
def max_pool2d(
    out, at, x, total, h, w, oh, ow, kh, kw, sh, sw, ph, pw, dh, dw, BLOCK: tl.constexpr
):
    """Largest element of each window and its index in its plane: the first of equal ones, or the last NaN; -1 where it is padding alone."""
    e, live, plane, y, c0 = _place(total, oh, ow, BLOCK)
    base = x + plane * h * w
    best = _least(x.dtype.element_ty, BLOCK)
    where = tl.full([BLOCK], -1, tl.int32)
    for i in range(kh):
        r = y * sh - ph + i * dh
        for j in range(kw):
            c = c0 * sw - pw + j * dw
            inside = live & (r >= 0) & (r < h) & (c >= 0) & (c < w)
            v = tl.load(base + r * w + c, mask=inside, other=0)
            take = inside & ((where < 0) | (_wide(v) > _wide(best)) | (v != v))
            best = tl.where(take, v, best)
            where = tl.where(take, r * w + c, where)
    tl.store(out + e, best, mask=live)
    tl.store(at + e, where.to(tl.int64), mask=live)


@triton.jit
def _window(o, n, out, k, s, p, ADAPTIVE: tl.constexpr):
    """First index and end of the part of window `o` that lies in [0, n)."""
    if ADAPTIVE:
        wide = o.to(tl.int64)
        begin = (wide * n // out).to(tl.int32)
        end = (((wide + 1) * n + out - 1) // out).to(tl.int32)
    else:
        begin = tl.maximum(o * s - p, 0)
        end = tl.minimum(o * s - p + k, n)
    return begin, end


@triton.jit
def adaptive_max_pool2d(out, at, x, total, h, w, oh, ow, kh, kw, BLOCK: tl.constexpr):
    """`max_pool2d` of the oh x ow windows that divide a plane, at most kh x kw large."""
    e, live, plane, y, c0 = _place(total, oh, ow, BLOCK)
    h0, h1 = _window(y, h, oh, kh, 1, 0, True)
    w0, w1 = _window(c0, w, ow, kw, 1, 0, True)
    base = x + plane * h * w
    best = tl.zeros([BLOCK], x.dtype.element_ty)
    where = tl.full([BLOCK], -1, tl.int32)
    for i in range(kh):
        for j in range(kw):
            inside = live & (h0 + i < h1) & (w0 + j < w1)
            v = tl.load(base + (h0 + i) * w + w0 + j, mask=inside, other=0)
            take = inside & ((where < 0) | (_wide(v) > _wide(best)) | (v != v))
            best = tl.where(take, v, best)
            where = tl.where(take, (h0 + i) * w + w0 + j, where)
    tl.store(out + e, best, mask=live)
    tl.store(at + e, where.to(tl.int64), mask=live)


@triton.jit
def _extent(o, n, k, s, p):
    """Length of window `o` with its padding, of which at most `p` behind the end counts."""
    return tl.minimum(o * s - p + k, n + p) - (o * s - p)


@triton.jit
def _divisor(y, x, h0, h1, w0, w1, h, w, kh, kw, sh, sw, ph, pw, override, PADDED: tl.constexpr):
    if PADDED:
        count = _extent(y, h, kh, sh, ph) * _extent(x, w, kw, sw, pw)
    else:
        count = tl.maximum((h1 - h0) * (w1 - w0), 1)
    return tl.where(override != 0, override, count)


@triton.jit
def avg_pool2d(
    out, x, total, h, w, oh, ow, kh, kw, sh, sw, ph, pw, override,
    ADAPTIVE: tl.constexpr, PADDED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Mean of each window, at most kh x kw large; ADAPTIVE: the plane is divided into oh x ow windows. `override`: another divisor, or 0."""
    e, live, plane, y, c0 = _place(total, oh, ow, BLOCK)
    h0, h1 = _window(y, h, oh, kh, sh, ph, ADAPTIVE)
    w0, w1 = _window(c0, w, ow, kw, sw, pw, ADAPTIVE)
    base = x + plane * h * w
    ACC: tl.constexpr = tl.float64 if out.dtype.element_ty == tl.float64 else tl.float32
    sums = tl.zeros([BLOCK], ACC)
    for i in range(kh):
        for j in range(kw):
            inside = live & (h0 + i < h1) & (w0 + j < w1)
            v = tl.load(base + (h0 + i) * w + w0 + j, mask=inside, other=0).to(ACC)
            sums = tl.where(inside, sums + v, sums)
    count = _divisor(y, c0, h0, h1, w0, w1, h, w, kh, kw, sh, sw, ph, pw, override, PADDED)
    tl.store(out + e, argand_div(sums, count.to(sums.dtype)).to(out.dtype.element_ty), mask=live)


@triton.jit
def avg_pool2d_backward(
    out, grad, total, h, w, oh, ow, kh, kw, sh, sw, ph, pw, reach_h, reach_w, override,
    ADAPTIVE: tl.constexpr, PADDED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Sum of the shares of the windows that hold each element, at most reach_h x reach_w of them."""
    e, live, plane, r, c = _place(total, h, w, BLOCK)
    if ADAPTIVE:
        y0 = (r.to(tl.int64) * oh // h).to(tl.int32)
        x0 = (c.to(tl.int64) * ow // w).to(tl.int32)
    else:
        y0 = tl.maximum(r + ph - kh + sh, 0) // sh
        x0 = tl.maximum(c + pw - kw + sw, 0) // sw
    base = grad + plane * oh * ow
    ACC: tl.constexpr = tl.float64 if out.dtype.element_ty == tl.float64 else tl.float32
    sums = tl.zeros([BLOCK], ACC)
    for i in range(reach_h):
        y = y0 + i
        h0, h1 = _window(y, h, oh, kh, sh, ph, ADAPTIVE)
        for j in range(reach_w):
            x = x0 + j
            w0, w1 = _window(x, w, ow, kw, sw, pw, ADAPTIVE)
            holds = live & (y < oh) & (x < ow) & (h0 <= r) & (r < h1) & (w0 <= c) & (c < w1)
            g = tl.load(base + y * ow + x, mask=holds, other=0).to(ACC)
            count = _divisor(y, x, h0, h1, w0, w1, h, w, kh, kw, sh, sw, ph, pw, override, PADDED)
            sums = tl.where(holds, sums + argand_div(g, count.to(g.dtype)), sums)
    tl.store(out + e, sums.to(out.dtype.element_ty), mask=live)


_OFFSETS = ["int32", "int64"]
_GEOMETRY = {
    "h": "i32",
    "w": "i32",
    "oh": "i32",
    "ow": "i32",
    "kh": "i32",
    "kw": "i32",
    "sh": "i32",
    "sw": "i32",
    "ph": "i32",
    "pw": "i32",
}
_ADAPTIVE_MAX = {"out": "*T", "at": "*i64", "x": "*T", "total": "I", "h": "i32", "w": "i32", "oh": "i32", "ow": "i32", "kh": "i32", "kw": "i32"}  # fmt: skip
_MAX = {"out": "*T", "at": "*i64", "x": "*T", "total": "I", **_GEOMETRY, "dh": "i32", "dw": "i32"}
_MEAN = {"out": "*T", "x": "*T", "total": "I", **_GEOMETRY, "override": "i32"}
_SHARES = {
    "out": "*T",
    "grad": "*T",
    "total": "I",
    **_GEOMETRY,
    "reach_h": "i32",
    "reach_w": "i32",
    "override": "i32",
}
_KINDS: dict[str, list[int]] = {"ADAPTIVE": [False, True], "PADDED": [False, True], "BLOCK": [256]}


def _is_used(variant: Variant) -> bool:
    return not (variant["ADAPTIVE"] and variant["PADDED"])


KERNELS = [
    Kernel(
        max_pool2d, signature=_MAX, types={"T": REAL, "I": _OFFSETS}, constants={"BLOCK": [256]}
    ),
    Kernel(
        adaptive_max_pool2d,
        signature=_ADAPTIVE_MAX,
        types={"T": REAL, "I": _OFFSETS},
        constants={"BLOCK": [256]},
    ),
    Kernel(
        avg_pool2d,
        signature=_MEAN,
        types={"T": FLOATING, "I": _OFFSETS},
        constants=_KINDS,
        wheel=_is_used,
    ),
    Kernel(
        avg_pool2d_backward,
        signature=_SHARES,
        types={"T": FLOATING, "I": _OFFSETS},
        constants=_KINDS,
        wheel=_is_used,
    ),
]
