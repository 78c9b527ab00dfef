"""NumPy primitives and hand-written references that generated references build on. SciPy supplies special functions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import fft as sfft  # noqa: F401
from scipy import special as special

inf, nan = math.inf, math.nan
Array = Any

abs, exp, exp2, expm1 = np.abs, np.exp, np.exp2, np.expm1
log, log2, log10, log1p = np.log, np.log2, np.log10, np.log1p
sqrt, sin, cos, tan = np.sqrt, np.sin, np.cos, np.tan
asin, acos, atan, atan2 = np.arcsin, np.arccos, np.arctan, np.arctan2
sinh, cosh, tanh = np.sinh, np.cosh, np.tanh
asinh, acosh, atanh = np.arcsinh, np.arccosh, np.arctanh
erf, erfc, erfinv = special.erf, special.erfc, special.erfinv
erfcx, ndtri, zeta, igamma, igammac = special.erfcx, special.ndtri, special.zeta, special.gammainc, special.gammaincc
i0, i0e, i1, i1e = special.i0, special.i0e, special.i1, special.i1e
bessel_j0, bessel_j1, bessel_y0, bessel_y1 = special.j0, special.j1, special.y0, special.y1
bessel_k0, bessel_k0e, bessel_k1, bessel_k1e = special.k0, special.k0e, special.k1, special.k1e
nextafter, gcd = np.nextafter, np.gcd


def frexp_mantissa(x: Array) -> Array:
    return np.frexp(x)[0]


def frexp_exponent(x: Array) -> Array:
    return np.where(np.isfinite(x), np.frexp(x)[1], 0).astype(float)


lgamma, digamma = special.gammaln, special.digamma
floor, ceil, trunc, round = np.floor, np.ceil, np.trunc, np.rint
isnan, isinf, isfinite = np.isnan, np.isinf, np.isfinite
minimum, maximum, fmin, fmax = np.minimum, np.maximum, np.fmin, np.fmax
hypot, copysign, fmod, remainder, floor_divide = (
    np.hypot,
    np.copysign,
    np.fmod,
    np.remainder,
    np.floor_divide,
)
real, imag, conj, angle = np.real, np.imag, np.conj, np.angle
lshift, rshift = np.left_shift, np.right_shift


def sign(x: Array) -> Array:
    """0 for NaN, as PyTorch has it."""
    x = np.asarray(x)
    if x.dtype == bool:
        return x
    return np.where(np.isnan(x), 0, np.sign(x)) if x.dtype.kind == "f" else np.sign(x)


def airy_ai(x: Array) -> Array:
    return special.airy(x)[0]


_POLYNOMIALS = (
    special.eval_chebyt,
    special.eval_chebyu,
    lambda n, x: special.eval_jacobi(n, -0.5, 0.5, x) / special.eval_jacobi(n, -0.5, 0.5, 1.0),
    lambda n, x: special.eval_jacobi(n, 0.5, -0.5, x) / special.eval_jacobi(n, 0.5, -0.5, 1.0) * (2 * n + 1),
    special.eval_hermite,
    special.eval_hermitenorm,
    special.eval_laguerre,
    special.eval_legendre,
)


def polynomial(x: Array, degree: Array, kind: int) -> Array:
    """Orthogonal polynomials of whole degrees; 0 for negative ones."""
    n = np.trunc(degree).astype(int)
    return np.where(n < 0, 0.0, _POLYNOMIALS[int(kind)](np.maximum(n, 0), x))


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x)) if np.iscomplexobj(x) else special.expit(x)


def rsqrt(x: Array) -> Array:
    return 1 / np.sqrt(x)


def reciprocal(x: Array) -> Array:
    return 1 / x


def frac(x: Array) -> Array:
    return x - np.trunc(x)


def trigamma(x: Array) -> Array:
    return special.polygamma(1, x)


def signbit(x: Array) -> Array:
    return np.signbit(x) if np.asarray(x).dtype.kind == "f" else np.asarray(x) < 0


def pow(a: Array, b: Array) -> Array:
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind in "iu" and b.dtype.kind in "iu":
        return np.where(b < 0, np.where(np.abs(a) == 1, a ** (b & 1), 0), a ** np.maximum(b, 0))
    return np.power(a, b)


def trunc_divide(a: Array, b: Array) -> Array:
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind == "f" or b.dtype.kind == "f":
        return np.trunc(a / b)
    return np.abs(a) // np.abs(b) * np.sign(a) * np.sign(b)


def where(c: Array, a: Array, b: Array) -> Array:
    return np.where(c, a, b)


def cast(x: Array, dtype: str) -> Array:
    return np.asarray(x).astype("float32" if dtype in ("bfloat16", "float16") else dtype)


def along(dim: int, key: Any) -> tuple[Any, ...]:
    """The index that applies `key` to one dimension and takes all of the others."""
    every = (slice(None),)
    return every * dim + (key,) if dim >= 0 else (..., key) + every * (-dim - 1)


def scattered(x: Array, dim: int, index: Array, src: Array, op: str, include_self: bool) -> Array:
    """`x` with the elements of `src` taken into the places along `dim` that `index` names; op: a ufunc's name or mean."""
    out = x.copy()
    groups: dict[tuple[int, ...], list[Any]] = {}
    for at in np.ndindex(*index.shape):
        place = (*at[:dim], int(index[at]), *at[dim + 1 :])
        groups.setdefault(place, [x[place]] if include_self else []).append(src[at])
    for place, values in groups.items():
        out[place] = np.mean(values) if op == "mean" else getattr(np, op).reduce(values)
    return out


UFUNCS = {"sum": "add", "prod": "multiply", "mean": "mean", "amax": "maximum", "amin": "minimum"}


def assigned(x: Array, key: Any, value: Any) -> Array:
    """A copy of `x` with `value` at `key`."""
    out = x.copy()
    out[key] = value
    return out


def axes(ndim: int, dim: Any) -> tuple[int, ...]:
    """The dimensions that a reduction goes over: None and an empty list mean all."""
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(ndim))
    dims = dim if isinstance(dim, (tuple, list)) else (dim,)
    return tuple(d % max(ndim, 1) for d in dims) if ndim else ()


def reduce(
    ufunc: np.ufunc,
    mapped: Callable[[Array], Array],
    final: Callable[[Array, int], Array],
    x: Array,
    dim: Any,
    keepdim: bool,
) -> Array:
    """A reduction by a ufunc; `final` gets the total and the number of elements."""
    x = np.asarray(x)
    over = axes(x.ndim, dim)
    count = math.prod(x.shape[d] for d in over)
    values = np.asarray(mapped(x))
    if ufunc in (np.logical_or, np.logical_and):
        values = values.astype(bool)
    return final(ufunc.reduce(values, axis=over, keepdims=keepdim), count)


def scan(ufunc: np.ufunc, x: Array, dim: int) -> Array:
    x = np.asarray(x)
    return ufunc.accumulate(x, axis=dim) if x.ndim else x


def softmax(x: Array, dim: int) -> Array:
    x = np.asarray(x)
    return special.softmax(x, axis=dim) if x.ndim else np.ones_like(x)


def log_softmax(x: Array, dim: int) -> Array:
    x = np.asarray(x)
    return special.log_softmax(x, axis=dim) if x.ndim else np.zeros_like(x)


def normalize(x: Array, over: tuple[int, ...], eps: float) -> Array:
    """Zero mean and unit variance over some dimensions."""
    return (x - x.mean(over, keepdims=True)) / np.sqrt(x.var(over, keepdims=True) + eps)


def layer_norm(x: Array, shape: Any, weight: Array | None, bias: Array | None, eps: float) -> Array:
    y = normalize(x, tuple(range(x.ndim - len(shape), x.ndim)), eps)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def convolution(
    x: Array, w: Array, bias: Array | None, stride: Any, padding: Any, dilation: Any, groups: int
) -> Array:
    """Cross-correlation of (batch, channels, *spatial) by its definition."""
    n = w.ndim - 2
    stride, padding, dilation = (
        ([v] if isinstance(v, int) else list(v)) for v in (stride, padding, dilation)
    )
    stride, padding, dilation = (v * n if len(v) == 1 else v for v in (stride, padding, dilation))
    x = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)])
    out = [
        (x.shape[2 + i] - dilation[i] * (w.shape[2 + i] - 1) - 1) // stride[i] + 1 for i in range(n)
    ]
    y = np.zeros((x.shape[0], w.shape[0], *out), dtype=x.dtype)
    per, width = w.shape[0] // groups, w.shape[1]
    for o in range(w.shape[0]):
        g = o // per
        for at in np.ndindex(*out):
            window = tuple(
                slice(
                    at[i] * stride[i],
                    at[i] * stride[i] + dilation[i] * (w.shape[2 + i] - 1) + 1,
                    dilation[i],
                )
                for i in range(n)
            )
            part = x[(slice(None), slice(g * width, (g + 1) * width), *window)]
            y[(slice(None), o, *at)] = (part * w[o]).sum(axis=tuple(range(1, n + 2)))
    return y if bias is None else y + bias.reshape(-1, *[1] * n)


def pool2d(
    x: Array, kernel: Any, stride: Any, padding: Any, how: Callable[[Array], Array], fill: float
) -> Array:
    """`how` over each window of the last two dimensions; the padding is `fill`."""
    kernel, padding = (([v] * 2 if isinstance(v, int) else list(v)) for v in (kernel, padding))
    stride = [stride] * 2 if isinstance(stride, int) else list(stride) or kernel
    pad = [(0, 0)] * (x.ndim - 2) + [(p, p) for p in padding]
    x = np.pad(x, pad, constant_values=fill)
    out = [(x.shape[x.ndim - 2 + i] - kernel[i]) // stride[i] + 1 for i in range(2)]
    y = np.zeros((*x.shape[:-2], *out), dtype=x.dtype)
    for i, j in np.ndindex(*out):
        y[..., i, j] = how(
            x[
                ...,
                i * stride[0] : i * stride[0] + kernel[0],
                j * stride[1] : j * stride[1] + kernel[1],
            ]
        )
    return y


def attention(
    q: Array,
    k: Array,
    v: Array,
    mask: Array | None = None,
    is_causal: bool = False,
    scale: float | None = None,
) -> Array:
    """softmax(q k^T scale + mask) v."""
    scores = q @ np.swapaxes(k, -1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if is_causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    return special.softmax(scores, axis=-1) @ v


def nll(
    log_p: Array,
    target: Array,
    weight: Array | None = None,
    reduction: Any = 1,
    ignore_index: int = -100,
) -> Array:
    """Negative log likelihood of (batch, classes, *) at the targets; reduction 0 none, 1 mean, 2 sum."""
    classes = np.moveaxis(log_p, 1, -1) if log_p.ndim > 1 else log_p
    keep = target != ignore_index
    index = np.where(keep, target, 0)
    w = np.ones(classes.shape[-1]) if weight is None else weight
    scale = np.where(keep, w[index], 0.0)
    loss = -np.take_along_axis(classes, index[..., None], -1)[..., 0] * scale
    if reduction in (0, "none"):
        return loss
    return loss.sum() / scale.sum() if reduction in (1, "mean") else loss.sum()


def reduced(loss: Array, reduction: Any) -> Array:
    if reduction in (0, "none"):
        return loss
    return loss.mean() if reduction in (1, "mean") else loss.sum()


def vector_norm(x: Array, ord: float = 2, dim: Any = None, keepdim: bool = False) -> Array:
    over = axes(np.ndim(x), dim)
    size = np.abs(x)
    if ord in (inf, -inf):
        return (np.max if ord > 0 else np.min)(size, axis=over, keepdims=keepdim)
    if ord == 0:
        return np.sum(size != 0, axis=over, keepdims=keepdim).astype(size.dtype)
    return np.sum(size**ord, axis=over, keepdims=keepdim) ** (1 / ord)


def matrix_norm(x: Array, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False) -> Array:
    return np.linalg.norm(x, ord, axis=tuple(dim), keepdims=keepdim)


def fftn(transform: Callable[..., Array], x: Array, s: Any, dim: Any, norm: Any) -> Array:
    """A transform of NumPy or SciPy over several dimensions; -1 in `s` is the size that there is."""
    x = np.asarray(x)
    if s is None:
        return transform(x, axes=None if dim is None else tuple(dim), norm=norm)
    over = tuple(range(x.ndim - len(s), x.ndim)) if dim is None else tuple(dim)
    half = transform.__name__ in ("irfftn", "hfftn")
    sizes = [x.shape[d] if n == -1 else n for n, d in zip(s, over, strict=True)]
    if half and s[-1] == -1:
        sizes[-1] = 2 * (x.shape[over[-1]] - 1)
    return transform(x, tuple(sizes), axes=over, norm=norm)


def gamma_grad(a: Array, x: Array) -> Array:
    """dx/da of the gamma distribution at a constant value of its distribution function."""
    step = 1e-5 * a
    slope = (special.gammainc(a + step, x) - special.gammainc(a - step, x)) / (2 * step)
    return -slope / np.exp((a - 1) * np.log(x) - x - special.gammaln(a))
