"""The element language on complex numbers for Triton: a value is the pair (real part, imaginary part), the formulas are the CPU's.

Masks are int1. What is simple (sums, products, quotients, roots, comparisons) has the CPU's bits; the rest goes through the device library.
"""

from __future__ import annotations

import triton
import triton.language as tl

from argand_aten_cuda import math


@triton.jit
def number(value: tl.constexpr, like):
    """A literal with the parts of `like`'s dtype."""
    return math.number(value, like[0].dtype), math.number(0, like[0].dtype)


@triton.jit
def scalar(value, like):
    """A real number argument."""
    return value.to(like[0].dtype), math.number(0, like[0].dtype)


# ---- arithmetic ------------------------------------------------------------------------------------------------------
@triton.jit
def argand_add(x, y):
    return x[0] + y[0], x[1] + y[1]


@triton.jit
def argand_sub(x, y):
    return x[0] - y[0], x[1] - y[1]


@triton.jit
def argand_mul(x, y):
    return x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]


@triton.jit
def argand_div(x, y):
    """R. Smith, CACM 5 (1962): scaled by the larger part of the divisor."""
    re = tl.abs(y[0])
    im = tl.abs(y[1])
    first = re >= im
    ratio = math.argand_div(tl.where(first, y[1], y[0]), tl.where(first, y[0], y[1]))
    scale = math.argand_reciprocal(
        tl.where(first, y[0], y[1]) + tl.where(first, y[1], y[0]) * ratio
    )
    zero = (re == 0) & (im == 0)
    real = (tl.where(first, x[0], x[1]) + tl.where(first, x[1], x[0]) * ratio) * scale
    imag = tl.where(first, x[1] - x[0] * ratio, x[1] * ratio - x[0]) * scale
    return tl.where(zero, math.argand_div(x[0], re), real), tl.where(
        zero, math.argand_div(x[1], re), imag
    )


@triton.jit
def argand_neg(x):
    return math.argand_neg(x[0]), math.argand_neg(x[1])


@triton.jit
def argand_conj(x):
    return x[0], math.argand_neg(x[1])


@triton.jit
def argand_reciprocal(x):
    return argand_div(number(1, x), x)


@triton.jit
def times(x, factor):
    """By a real number."""
    return x[0] * factor, x[1] * factor


@triton.jit
def argand_where(mask, x, y):
    return tl.where(mask, x[0], y[0]), tl.where(mask, x[1], y[1])


# ---- comparisons and properties --------------------------------------------------------------------------------------
@triton.jit
def argand_eq(x, y):
    return (x[0] == y[0]) & (x[1] == y[1])


@triton.jit
def argand_ne(x, y):
    return (x[0] != y[0]) | (x[1] != y[1])


@triton.jit
def argand_isnan(x):
    return (x[0] != x[0]) | (x[1] != x[1])


@triton.jit
def argand_isinf(x):
    return math.argand_isinf(x[0]) | math.argand_isinf(x[1])


@triton.jit
def argand_isfinite(x):
    return math.argand_isfinite(x[0]) & math.argand_isfinite(x[1])


@triton.jit
def argand_abs(x):
    return math.argand_hypot(x[0], x[1])


@triton.jit
def argand_angle(x):
    return math.argand_atan2(x[1], x[0])


@triton.jit
def argand_sign(x):
    """x / |x|, and 0 of 0."""
    r = argand_abs(x)
    zero = r - r
    return (
        tl.where(r == 0, zero, math.argand_div(x[0], r)),
        tl.where(r == 0, zero, math.argand_div(x[1], r)),
    )


# ---- exponentials, logarithms, powers --------------------------------------------------------------------------------
@triton.jit
def are_endless(x):
    """An infinite real part beside an imaginary part without a sine."""
    return math.argand_isinf(x[0]) & (math.argand_isfinite(x[1]) == 0)


@triton.jit
def argand_exp(x):
    r = math.argand_exp(x[0])
    real = x[1] == 0
    ends = are_endless(x)
    zero = math.argand_copysign(math.number(0, x[0].dtype), x[1])
    end = tl.where(x[0] < 0, zero, x[1] - x[1])
    return (
        tl.where(real | ends, r, r * math.argand_cos(x[1])),
        tl.where(real, x[1], tl.where(ends, end, r * math.argand_sin(x[1]))),
    )


@triton.jit
def argand_exp2(x):
    return argand_exp(times(x, math.number(0.69314718055994530942, x[0].dtype)))


@triton.jit
def argand_expm1(x):
    s = math.argand_sin(x[1] * 0.5)
    e = math.argand_expm1(x[0])
    return e * math.argand_cos(x[1]) - 2 * s * s, math.argand_exp(x[0]) * math.argand_sin(x[1])


@triton.jit
def log_abs(x):
    """log |x|, where |x| itself overflows too."""
    r = argand_abs(x)
    half = math.argand_log(math.argand_hypot(x[0] * 0.5, x[1] * 0.5))
    far = half + math.number(0.69314718055994530942, x[0].dtype)
    return tl.where(math.argand_isinf(r), far, math.argand_log(r))


@triton.jit
def argand_log(x):
    return log_abs(x), math.argand_atan2(x[1], x[0])


@triton.jit
def argand_log2(x):
    return times(argand_log(x), math.number(1.44269504088896340736, x[0].dtype))


@triton.jit
def argand_log10(x):
    return times(argand_log(x), math.number(0.43429448190325182765, x[0].dtype))


@triton.jit
def argand_log1p(x):
    near = math.argand_log1p(x[0] * (2 + x[0]) + x[1] * x[1]) * 0.5
    far = log_abs((1 + x[0], x[1]))
    return tl.where(argand_abs(x) < 0.5, near, far), math.argand_atan2(x[1], 1 + x[0])


@triton.jit
def argand_sqrt(x):
    """The root with a positive real part; parts are added, never subtracted."""
    limit: tl.constexpr = 1e38 if x[0].dtype == tl.float32 else 7e307  # the sum overflows
    far = (tl.abs(x[0]) > limit) | (tl.abs(x[1]) > limit)
    re = tl.abs(tl.where(far, x[0] * 0.25, x[0]))
    im = tl.abs(tl.where(far, x[1] * 0.25, x[1]))
    r = math.argand_sqrt((re + math.argand_hypot(re, im)) * 0.5)
    other = math.argand_div(im, 2 * r)
    r = tl.where(far, 2 * r, r)
    other = tl.where(far, 2 * other, other)
    right = x[0] >= 0
    real = tl.where(right, r, other)
    imag = math.argand_copysign(tl.where(right, other, r), x[1])
    zero = (x[0] == 0) & (x[1] == 0)
    infinite = math.argand_isinf(x[1])
    real = tl.where(zero, tl.abs(x[0]), tl.where(infinite, tl.abs(x[1]), real))
    return real, tl.where(zero | infinite, x[1], imag)


@triton.jit
def argand_rsqrt(x):
    return argand_reciprocal(argand_sqrt(x))


@triton.jit
def argand_pow(x, y):
    """Small powers are products and roots; 0 is 0 to a power with a positive real part, infinite to one with a negative, and else NaN."""
    power = argand_exp(argand_mul(y, argand_log(x)))
    nan = math.number(float("nan"), x[0].dtype)
    inf = math.number(float("inf"), x[0].dtype)
    zero = math.number(0, x[0].dtype)
    positive = y[0] > 0
    of_zero = tl.where(positive, zero, tl.where(y[0] < 0, inf, nan))
    power = argand_where((x[0] == 0) & (x[1] == 0), (of_zero, tl.where(positive, zero, nan)), power)
    power = argand_where((x[0] == 1) & (x[1] == 0), number(1, x), power)
    square = argand_mul(x, x)
    root = argand_sqrt(x)
    real = y[1] == 0
    power = argand_where(real & (y[0] == -2), argand_reciprocal(square), power)
    power = argand_where(real & (y[0] == -1), argand_reciprocal(x), power)
    power = argand_where(real & (y[0] == -0.5), argand_reciprocal(root), power)
    power = argand_where(real & (y[0] == 0.5), root, power)
    power = argand_where(real & (y[0] == 3), argand_mul(square, x), power)
    power = argand_where(real & (y[0] == 2), square, power)
    power = argand_where(real & (y[0] == 1), x, power)
    return argand_where(real & (y[0] == 0), number(1, x), power)


@triton.jit
def argand_sigmoid(x):
    negative = x[0] < 0
    e = argand_exp(argand_where(negative, x, argand_neg(x)))
    return argand_div(argand_where(negative, e, number(1, x)), (e[0] + 1, e[1]))


# ---- trigonometric and hyperbolic functions --------------------------------------------------------------------------
@triton.jit
def times_i(x):
    return math.argand_neg(x[1]), x[0]


@triton.jit
def over_i(x):
    return x[1], math.argand_neg(x[0])


@triton.jit
def turned(size, trig):
    """A part of sinh or cosh: as in C99, annex G, zeros stay zeros beside infinities and NaN."""
    part = tl.where((size == 0) & (trig != trig), size, size * trig)
    zero = (trig == 0) & (math.argand_isfinite(size) == 0)
    return tl.where(zero, tl.where(size < 0, math.argand_neg(trig), trig), part)


@triton.jit
def argand_sinh(x):
    real = turned(math.argand_sinh(x[0]), math.argand_cos(x[1]))
    imag = turned(math.argand_cosh(x[0]), math.argand_sin(x[1]))
    return tl.where(are_endless(x), tl.abs(x[0]), real), imag


@triton.jit
def argand_cosh(x):
    real = turned(math.argand_cosh(x[0]), math.argand_cos(x[1]))
    imag = turned(math.argand_sinh(x[0]), math.argand_sin(x[1]))
    return tl.where(are_endless(x), tl.abs(x[0]), real), imag


@triton.jit
def argand_tanh(x):
    far = tl.abs(x[0]) > 20
    t = math.argand_tan(x[1])
    s = math.argand_sinh(x[0])
    b = 1 + t * t
    d = 1 + b * s * s
    tail = 4 * math.argand_sin(x[1]) * math.argand_cos(x[1]) * math.argand_exp(-2 * tl.abs(x[0]))
    one = math.argand_copysign(math.number(1, x[0].dtype), x[0])
    near = math.argand_div(b * math.argand_cosh(x[0]) * s, d)
    nan = x[1] - x[1]
    finite = math.argand_isfinite(x[1])
    infinite = math.argand_isinf(x[0])
    zero = math.argand_copysign(math.number(0, x[0].dtype), x[1])
    real = tl.where(finite | infinite, one, nan)
    tail = tl.where(finite, tail, tl.where(infinite, zero, nan))
    near = tl.where(x[0] == 0, x[0], near)
    return (
        tl.where(far, real, near),
        tl.where(far, tail, tl.where(x[1] == 0, x[1], math.argand_div(t, d))),
    )


@triton.jit
def argand_sin(x):
    return over_i(argand_sinh(times_i(x)))


@triton.jit
def argand_cos(x):
    return argand_cosh(times_i(x))


@triton.jit
def argand_tan(x):
    return over_i(argand_tanh(times_i(x)))


# Inverse functions by W. Kahan, "Branch cuts for complex elementary functions" (1987), far out by the logarithm of 2 |x|; of infinite numbers,
# and of NaN beside 0, as in C99, annex G.
@triton.jit
def is_far(x):
    """1 is lost beside x^2."""
    limit: tl.constexpr = 1e9 if x[0].dtype == tl.float32 else 1e18
    return (tl.abs(x[0]) > limit) | (tl.abs(x[1]) > limit)


@triton.jit
def log_twice(x):
    return log_abs(x) + math.number(0.69314718055994530942, x[0].dtype)


@triton.jit
def argand_asinh(x):
    a = argand_sqrt((1 + x[1], math.argand_neg(x[0])))
    b = argand_sqrt((1 - x[1], x[0]))
    far = is_far(x)
    real = math.argand_asinh(a[0] * b[1] - a[1] * b[0])
    across = tl.where(far, tl.abs(x[0]), a[0] * b[0] - a[1] * b[1])
    imag = math.argand_atan2(x[1], across)
    real = tl.where(far, math.argand_copysign(log_twice(x), x[0]), real)
    return real, tl.where((x[1] == 0) & (x[0] != x[0]), x[1], imag)


@triton.jit
def argand_acosh(x):
    a = argand_sqrt((x[0] - 1, x[1]))
    b = argand_sqrt((x[0] + 1, x[1]))
    far = is_far(x)
    real = math.argand_asinh(a[0] * b[0] + a[1] * b[1])
    imag = tl.where(far, math.argand_atan2(x[1], x[0]), 2 * math.argand_atan2(a[1], b[0]))
    quarter = math.number(1.57079632679489661923, x[0].dtype)
    return (
        tl.where(far, log_twice(x), real),
        tl.where((x[0] == 0) & (x[1] != x[1]), quarter, imag),
    )


@triton.jit
def argand_acos(x):
    a = argand_sqrt((1 - x[0], math.argand_neg(x[1])))
    b = argand_sqrt((1 + x[0], x[1]))
    far = is_far(x)
    real = 2 * math.argand_atan2(a[0], b[0])
    real = tl.where(far, math.argand_atan2(tl.abs(x[1]), x[0]), real)
    imag = math.argand_asinh(b[0] * a[1] - b[1] * a[0])
    quarter = math.number(1.57079632679489661923, x[0].dtype)
    return (
        tl.where((x[0] == 0) & (x[1] != x[1]), quarter, real),
        tl.where(far, math.argand_neg(math.argand_copysign(log_twice(x), x[1])), imag),
    )


@triton.jit
def argand_asin(x):
    return over_i(argand_asinh(times_i(x)))


@triton.jit
def argand_atanh(x):
    # of the real part's size, since 1 + 4 x / d loses digits near -1
    a = tl.where(x[0] < 0, -x[0], x[0])
    d = (1 - a) * (1 - a) + x[1] * x[1]
    real = math.argand_log1p(math.argand_div(4 * a, d)) * 0.25
    # near the poles squares lose their digits
    limit: tl.constexpr = 1e-30 if x[0].dtype == tl.float32 else 1e-290
    size = math.argand_log(math.argand_hypot(1 - a, x[1]))
    near = (math.argand_log(2 * math.argand_sqrt(a)) - size) * 0.5
    real = tl.where(d < limit, near, real)
    imag = math.argand_atan2(2 * x[1], (1 - x[0]) * (1 + x[0]) - x[1] * x[1]) * 0.5
    # far from 0 all but 1 / x is lost
    far = is_far(x)
    h = math.argand_hypot(x[0], x[1])
    zero = math.number(0, x[0].dtype)
    tail = tl.where(argand_isinf(x), zero, math.argand_div(math.argand_div(a, h), h))
    quarter = math.argand_copysign(math.number(1.57079632679489661923, x[0].dtype), x[1])
    imag = tl.where(far, tl.where(x[1] == x[1], quarter, x[1]), imag)
    return (
        tl.where(x[0] == 0, x[0], math.argand_copysign(tl.where(far, tail, real), x[0])),
        tl.where(x[0] == 0, math.argand_atan(x[1]), imag),
    )


@triton.jit
def argand_atan(x):
    return over_i(argand_atanh(times_i(x)))
