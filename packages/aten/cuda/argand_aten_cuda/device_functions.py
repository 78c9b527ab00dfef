"""Primitives of the element language that are functions of CUDA's device library, the precise ones."""

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def argand_exp(x):
    return libdevice.exp(x)


@triton.jit
def argand_exp2(x):
    return libdevice.exp2(x)


@triton.jit
def argand_expm1(x):
    return libdevice.expm1(x)


@triton.jit
def argand_log(x):
    return libdevice.log(x)


@triton.jit
def argand_log2(x):
    return libdevice.log2(x)


@triton.jit
def argand_log10(x):
    return libdevice.log10(x)


@triton.jit
def argand_log1p(x):
    return libdevice.log1p(x)


@triton.jit
def argand_sin(x):
    return libdevice.sin(x)


@triton.jit
def argand_cos(x):
    return libdevice.cos(x)


@triton.jit
def argand_tan(x):
    return libdevice.tan(x)


@triton.jit
def argand_asin(x):
    return libdevice.asin(x)


@triton.jit
def argand_acos(x):
    return libdevice.acos(x)


@triton.jit
def argand_atan(x):
    return libdevice.atan(x)


@triton.jit
def argand_sinh(x):
    return libdevice.sinh(x)


@triton.jit
def argand_cosh(x):
    return libdevice.cosh(x)


@triton.jit
def argand_tanh(x):
    return libdevice.tanh(x)


@triton.jit
def argand_asinh(x):
    return libdevice.asinh(x)


@triton.jit
def argand_acosh(x):
    return libdevice.acosh(x)


@triton.jit
def argand_atanh(x):
    return libdevice.atanh(x)


@triton.jit
def argand_erf(x):
    return libdevice.erf(x)


@triton.jit
def argand_erfc(x):
    return libdevice.erfc(x)


@triton.jit
def argand_lgamma(x):
    return libdevice.lgamma(x)


@triton.jit
def argand_erfcx(x):
    return libdevice.erfcx(x)


@triton.jit
def argand_ndtri(x):
    return libdevice.normcdfinv(x)


@triton.jit
def argand_i0(x):
    return tl.where(tl.abs(x) == float("inf"), tl.abs(x), libdevice.cyl_bessel_i0(x))


@triton.jit
def argand_i1(x):
    return tl.where(tl.abs(x) == float("inf"), x, libdevice.cyl_bessel_i1(x))


@triton.jit
def argand_bessel_j0(x):
    return libdevice.j0(x)


@triton.jit
def argand_bessel_j1(x):
    return libdevice.j1(x)


@triton.jit
def argand_bessel_y0(x):
    return libdevice.y0(x)


@triton.jit
def argand_bessel_y1(x):
    return libdevice.y1(x)


@triton.jit
def argand_nextafter(x, y):
    return libdevice.nextafter(x, y)


@triton.jit
def argand_erfinv(x):
    return libdevice.erfinv(x)


@triton.jit
def argand_atan2(x, y):
    return libdevice.atan2(x, y)


@triton.jit
def argand_hypot(x, y):
    return libdevice.hypot(x, y)
