"""Conversion between element types, as on the other devices."""

import triton
import triton.language as tl


@triton.jit
def _from_float8(x):
    """As float32: e5m2 is the upper half of a float16, e4m3fn the middle of a float32 whose exponent lacks 120."""
    bits = x.to(tl.uint8, bitcast=True).to(tl.int32)
    if x.dtype == tl.float8e5:
        return (bits << 8).to(tl.int16).to(tl.float16, bitcast=True).to(tl.float32)
    code = bits & 0x7F
    magnitude = (code << 20).to(tl.float32, bitcast=True) * 1329227995784915872903807060280344576.0
    magnitude = tl.where(code == 0x7F, float("nan"), magnitude)
    return tl.where(bits >= 0x80, -magnitude, magnitude)


@triton.jit
def _to_float8(x, dtype: tl.constexpr):
    """float32 to the nearest, half to even; beyond the largest: infinity (e5m2) or the largest (e4m3fn)."""
    MANTISSA: tl.constexpr = 2 if dtype == tl.float8e5 else 3
    BIAS: tl.constexpr = 15 if dtype == tl.float8e5 else 7
    GREATEST: tl.constexpr = 0x7C if dtype == tl.float8e5 else 0x7E
    DROPPED: tl.constexpr = 23 - MANTISSA
    # Adding 2^UNIT leaves multiples of the smallest number.
    UNIT: tl.constexpr = 24 - BIAS - MANTISSA
    bits = x.to(tl.int32, bitcast=True)
    magnitude = bits & 0x7FFFFFFF
    normal = (magnitude + ((1 << (DROPPED - 1)) - 1) + ((magnitude >> DROPPED) & 1)) >> DROPPED
    normal -= (127 - BIAS) << MANTISSA
    small = (magnitude.to(tl.float32, bitcast=True) + 2.0**UNIT).to(tl.int32, bitcast=True)
    small -= (127 + UNIT) << 23
    code = tl.where(magnitude >= (128 - BIAS) << 23, normal, small)
    code = tl.minimum(code, GREATEST)
    code = tl.where(magnitude > 0x7F800000, 0x7F if GREATEST == 0x7E else 0x7E, code)
    return (code | ((bits >> 24) & 0x80)).to(tl.uint8).to(dtype, bitcast=True)


@triton.jit
def convert(x, dtype: tl.constexpr, TO_BOOL: tl.constexpr = False):
    """`x` as `dtype`: floats to integers truncate, 16-bit floats go through float32; TO_BOOL: 1 where x is not 0."""
    if x.dtype.is_fp8():
        x = _from_float8(x)
    if TO_BOOL:
        result = x != 0
    elif dtype.is_fp8():
        result = _to_float8(x.to(tl.float32), dtype)
    elif dtype == tl.float16 or dtype == tl.bfloat16:
        result = x.to(tl.float32)
    elif x.dtype == tl.float16 or x.dtype == tl.bfloat16:
        result = x.to(tl.float32)
    else:
        result = x
    if result.dtype.is_floating() and dtype.is_int():
        if dtype.primitive_bitwidth < 32:
            result = result.to(tl.int32)  # then wraps around
        elif dtype == tl.uint32:
            result = result.to(tl.int64)
        elif dtype == tl.uint64:
            upper = result >= 9223372036854775808.0
            whole = tl.where(upper, result - 9223372036854775808.0, result).to(tl.int64)
            result = tl.where(upper, whole ^ -(1 << 63), whole)
    return result.to(dtype)
