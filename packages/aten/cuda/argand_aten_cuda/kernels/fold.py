"""Columns added where their windows lie. One lane an element of the result; sums are rounded tap by tap, as the CPU's are."""

import triton
import triton.language as tl

from argand_aten_cuda.kernel import FLOATING, Kernel
from argand_aten_cuda.kernels._accumulate import widen


@triton.jit
def _window(at, stride, count):
    """Which of `count` windows begins at a place, and whether one does."""
    window = at // stride
    return window, (at >= 0) & (window * stride == at) & (window < count)


@triton.jit
def sum_columns(
    out, x, total, height, width, rows, columns, kh, kw, dh, dw, ph, pw, sh, sw, BLOCK: tl.constexpr
):  # fmt: skip
    """Planes of height x width from x (planes, kh, kw, rows, columns): rows x columns windows, dh x dw between their elements, sh x sw apart."""
    e = tl.program_id(0).to(total.dtype) * BLOCK + tl.arange(0, BLOCK)
    live = e < total
    line = e // width
    plane = line // height
    y = (line - plane * height).to(tl.int32) + ph
    z = (e - line * width).to(tl.int32) + pw
    x += plane.to(tl.int64) * (kh * kw * rows * columns)
    sums = tl.zeros([BLOCK], out.dtype.element_ty)
    for i in range(kh):
        row, above = _window(y - i * dh, sh, rows)
        for j in range(kw):
            column, beside = _window(z - j * dw, sw, columns)
            inside = live & above & beside
            at = ((i * kw + j) * rows + row) * columns + column
            value = tl.load(x + at, mask=inside, other=0.0)
            sums = tl.where(inside, (widen(sums) + widen(value)).to(sums.dtype), sums)
    tl.store(out + e, sums, mask=live)


_SIZES = "height width rows columns kh kw dh dw ph pw sh sw".split()

KERNELS = [
    Kernel(
        sum_columns,
        {"out": "*T", "x": "*T", "total": "I", **dict.fromkeys(_SIZES, "i32")},
        {"T": FLOATING, "I": ["int32", "int64"]},
        {"BLOCK": [256]},
        {"T": ["float32"], "I": ["int32"]},
    ),
]
