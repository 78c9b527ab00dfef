"""Products of vectors of three elements."""

import triton
import triton.language as tl

from argand_aten_cuda.kernel import REAL, Kernel


@triton.jit
def _wide(x):
    """float32 for 16-bit floats, whose products are rounded, too."""
    if x.dtype.is_floating() and x.dtype.primitive_bitwidth == 16:
        return x.to(tl.float32)
    else:
        return x


@triton.jit
def _difference(a, b, c, d):
    """a * b - c * d."""
    first = (_wide(a) * _wide(b)).to(a.dtype)
    second = (_wide(c) * _wide(d)).to(a.dtype)
    return (_wide(first) - _wide(second)).to(a.dtype)


@triton.jit
def cross(out, x, y, total, inner, BLOCK: tl.constexpr):
    """The cross product of each of `total` pairs of vectors in dense (outer, 3, inner)."""
    e = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    live = e < total
    at = e + e // inner * (2 * inner)
    x0 = tl.load(x + at, mask=live, other=0)
    x1 = tl.load(x + at + inner, mask=live, other=0)
    x2 = tl.load(x + at + 2 * inner, mask=live, other=0)
    y0 = tl.load(y + at, mask=live, other=0)
    y1 = tl.load(y + at + inner, mask=live, other=0)
    y2 = tl.load(y + at + 2 * inner, mask=live, other=0)
    tl.store(out + at, _difference(x1, y2, x2, y1), mask=live)
    tl.store(out + at + inner, _difference(x2, y0, x0, y2), mask=live)
    tl.store(out + at + 2 * inner, _difference(x0, y1, x1, y0), mask=live)


KERNELS = [
    Kernel(
        cross,
        {"out": "*T", "x": "*T", "y": "*T", "total": "i64", "inner": "i64"},
        {"T": REAL},
        {"BLOCK": [256]},
        {"T": ["float32"]},
    ),
]
