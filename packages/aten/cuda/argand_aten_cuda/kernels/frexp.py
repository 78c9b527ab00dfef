"""Mantissas and exponents of floating-point numbers by one reading."""

import triton
import triton.language as tl

from argand_aten_cuda.kernel import FLOATING, Kernel
from argand_aten_cuda.kernels._accumulate import widen
from argand_aten_cuda.math import binary_parts


@triton.jit
def frexp(mantissa, exponent, x, n, BLOCK: tl.constexpr):
    """x == mantissa * 2**exponent, of n dense elements; 0, infinities and NaN stay, with exponent 0."""
    start = tl.program_id(0).to(tl.int64) * BLOCK
    lane = tl.arange(0, BLOCK)
    if start + BLOCK <= n:  # without a mask the accesses are wide, whatever n
        part, power = binary_parts(widen(tl.load(x + start + lane)))
        tl.store(mantissa + start + lane, part.to(mantissa.dtype.element_ty))
        tl.store(exponent + start + lane, power.to(tl.int32))
    else:
        inside = lane < n - start
        part, power = binary_parts(widen(tl.load(x + start + lane, mask=inside, other=0.0)))
        tl.store(mantissa + start + lane, part.to(mantissa.dtype.element_ty), mask=inside)
        tl.store(exponent + start + lane, power.to(tl.int32), mask=inside)


KERNELS = [
    Kernel(
        frexp,
        {"mantissa": "*T", "exponent": "*i32", "x": "*T", "n": "i64"},
        {"T": FLOATING},
        {"BLOCK": [1024]},
        {"T": ["float32"]},
        divisible=("mantissa", "exponent", "x"),
    ),
]
