"""Conversion between element types, as on the other devices."""

import triton
import triton.language as tl


@triton.jit
def convert(x, dtype: tl.constexpr, TO_BOOL: tl.constexpr = False):
    """`x` as `dtype`: floats to integers truncate, 16-bit floats go through float32; TO_BOOL: 1 where x is not 0."""
    if TO_BOOL:
        result = x != 0
    elif dtype == tl.float16 or dtype == tl.bfloat16:
        result = x.to(tl.float32)
    elif x.dtype == tl.float16 or x.dtype == tl.bfloat16:
        result = x.to(tl.float32)
    else:
        result = x
    if result.dtype.is_floating() and dtype.is_int() and dtype.primitive_bitwidth < 32:
        result = result.to(tl.int32)  # then wraps around
    return result.to(dtype)
