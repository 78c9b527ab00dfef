"""NumPy primitives and hand-written references that generated references build on. SciPy supplies special functions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
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
erfcx, ndtri, zeta, igamma, igammac = (
    special.erfcx,
    special.ndtri,
    special.zeta,
    special.gammainc,
    special.gammaincc,
)
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
    lambda n, x: (
        special.eval_jacobi(n, 0.5, -0.5, x) / special.eval_jacobi(n, 0.5, -0.5, 1.0) * (2 * n + 1)
    ),
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


def tensordot(x: Array, y: Array, first: Any, second: Any) -> Array:
    """np.tensordot, where a size of 1 is expanded to that of its partner."""
    for i, j in zip(first, second, strict=True):
        n = max(x.shape[i], y.shape[j])
        x, y = (
            np.broadcast_to(a, [n if k == d else s for k, s in enumerate(a.shape)])
            for a, d in ((x, i), (y, j))
        )
    return np.asarray(np.tensordot(x, y, (tuple(first), tuple(second))))


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


def ints(value: Any, n: int = 1) -> list[int]:
    """One number, or a list of one, for each of `n` dimensions."""
    found = [value] if isinstance(value, int) else list(value)
    return found * n if len(found) == 1 else found


def convolution_padded(
    x: Array, w: Array, bias: Array | None, stride: Any, padding: str, dilation: Any, groups: int
) -> Array:
    """Cross-correlation with padding same or valid."""
    n = w.ndim - 2
    if padding == "same":
        total = [d * (k - 1) for d, k in zip(ints(dilation, n), w.shape[2:], strict=True)]
        x = np.pad(x, [(0, 0), (0, 0), *((t // 2, t - t // 2) for t in total)])
    return convolution(x, w, bias, stride, 0, dilation, groups)


def convolution_transposed(
    x: Array,
    w: Array,
    bias: Array | None,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: int,
    dilation: Any,
) -> Array:
    """Every element of (batch, channels, *spatial) times the kernel, added where it falls."""
    n = w.ndim - 2
    if x.ndim == n + 1:
        one = convolution_transposed(
            x[None], w, bias, stride, padding, output_padding, groups, dilation
        )
        return np.asarray(one[0])
    stride, padding, extra, dilation = (
        ints(v, n) for v in (stride, padding, output_padding, dilation)
    )
    full = [
        (x.shape[i + 2] - 1) * stride[i] + dilation[i] * (w.shape[i + 2] - 1) + 1 + extra[i]
        for i in range(n)
    ]
    y = np.zeros((x.shape[0], w.shape[1] * groups, *full), dtype=x.dtype)
    per, width = w.shape[0] // groups, w.shape[1]
    for c in range(w.shape[0]):
        channels = slice(c // per * width, (c // per + 1) * width)
        for tap in np.ndindex(*w.shape[2:]):
            places = tuple(
                slice(
                    tap[i] * dilation[i],
                    tap[i] * dilation[i] + (x.shape[i + 2] - 1) * stride[i] + 1,
                    stride[i],
                )
                for i in range(n)
            )
            taps = w[(c, slice(None), *tap)].reshape(1, -1, *[1] * n)
            y[(slice(None), channels, *places)] += x[:, c : c + 1] * taps
    kept = tuple(slice(p, size - p) for p, size in zip(padding, full, strict=True))
    y = y[(slice(None), slice(None), *kept)]
    return y if bias is None else y + bias.reshape(-1, *[1] * n)


def in_last(place: Iterable[Any]) -> tuple[Any, ...]:
    """The index of a place in the last dimensions."""
    return (..., *place)


def max_of(x: Array, windows: Iterable[tuple[tuple[int, ...], tuple[slice, ...]]], out: Any) -> Any:
    """Largest element of each window of the last dimensions, and its flat index in them."""
    lead, size = x.shape[: x.ndim - len(out)], x.shape[x.ndim - len(out) :]
    best, where = np.zeros((*lead, *out), x.dtype), np.zeros((*lead, *out), np.int64)
    place = np.arange(int(np.prod(size))).reshape(size)
    for at, window in windows:
        flat = x[in_last(window)].reshape(*lead, -1)
        first = flat.argmax(-1)
        best[in_last(at)] = np.take_along_axis(flat, first[..., None], -1)[..., 0]
        where[in_last(at)] = place[window].reshape(-1)[first]
    return best, where


def max_pool(x: Array, kernel: Any, stride: Any, padding: Any) -> Any:
    """`max_of` windows of a fixed size; one number for `kernel` means volumes."""
    n = 3 if isinstance(kernel, int) else len(kernel)
    kernel, stride, padding = ints(kernel, n), ints(stride or kernel, n), ints(padding, n)
    size = x.shape[x.ndim - n :]
    out = [(size[i] + 2 * padding[i] - kernel[i]) // stride[i] + 1 for i in range(n)]
    windows = []
    for at in np.ndindex(*out):
        begin = [at[i] * stride[i] - padding[i] for i in range(n)]
        window = tuple(
            slice(max(b, 0), min(b + k, s)) for b, k, s in zip(begin, kernel, size, strict=True)
        )
        windows.append((at, window))
    return max_of(x, windows, out)


def avg_pool(
    x: Array,
    kernel: list[int],
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: int | None = None,
) -> Array:
    """Mean of each window of the last dimensions."""
    n = len(kernel)
    stride, padding = ints(stride or kernel, n), ints(padding, n)
    size = x.shape[x.ndim - n :]
    out = []
    for i in range(n):
        span = size[i] + 2 * padding[i] - kernel[i]
        count = (-(-span // stride[i]) if ceil_mode else span // stride[i]) + 1
        out.append(count - (ceil_mode and (count - 1) * stride[i] >= size[i] + padding[i]))
    y = np.zeros((*x.shape[: x.ndim - n], *out))
    for at in np.ndindex(*out):
        begin = [at[i] * stride[i] - padding[i] for i in range(n)]
        inside = tuple(slice(max(begin[i], 0), begin[i] + kernel[i]) for i in range(n))
        extent = [min(begin[i] + kernel[i], size[i] + padding[i]) - begin[i] for i in range(n)]
        part = x[(..., *inside)].reshape(*x.shape[: x.ndim - n], -1)
        area = int(np.prod(extent)) if count_include_pad else part.shape[-1]
        y[in_last(at)] = part.sum(-1) / (divisor or area)
    return y


def adaptive_windows(size: Any, out: Any) -> list[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """The windows that divide `size` into `out` parts, which may overlap by one."""
    return [
        (
            at,
            tuple(
                slice(at[i] * size[i] // out[i], -(-(at[i] + 1) * size[i] // out[i]))
                for i in range(len(out))
            ),
        )
        for at in np.ndindex(*out)
    ]


def adaptive_pool(x: Array, out: list[int], how: Callable[..., Array]) -> Array:
    lead = x.shape[: x.ndim - len(out)]
    y = np.zeros((*lead, *out))
    for at, window in adaptive_windows(x.shape[x.ndim - len(out) :], out):
        y[in_last(at)] = how(x[in_last(window)].reshape(*lead, -1), axis=-1)
    return y


def adaptive_max_pool(x: Array, out: list[int]) -> Any:
    return max_of(x, adaptive_windows(x.shape[x.ndim - len(out) :], out), out)


def fractional_max_pool(x: Array, kernel: Any, out: Any, samples: Array) -> Any:
    """Windows at int((i + u) * a) - int(u * a), the last at the end; u for each plane and dimension."""
    n = samples.shape[-1]
    kernel, out = ints(kernel, n), ints(out, n)
    size = x.shape[x.ndim - n :]
    flat, drawn = x.reshape(-1, *size), samples.reshape(-1, n)
    best, where = [], []
    for plane, u in zip(flat, drawn, strict=True):
        begin = []
        for i in range(n):
            alpha = (size[i] - kernel[i]) / max(out[i] - 1, 1)
            starts = [int((k + u[i]) * alpha) - int(u[i] * alpha) for k in range(out[i] - 1)]
            begin.append([*starts, size[i] - kernel[i]])
        windows = [
            (at, tuple(slice(begin[i][at[i]], begin[i][at[i]] + kernel[i]) for i in range(n)))
            for at in np.ndindex(*out)
        ]
        values, places = max_of(plane, windows, out)
        best.append(values)
        where.append(places)
    shape = (*x.shape[: x.ndim - n], *out)
    return np.stack(best).reshape(shape), np.stack(where).reshape(shape)


def unpooled(x: Array, indices: Array, out: list[int]) -> Array:
    lead = x.shape[: x.ndim - len(out)]
    y = np.zeros((int(np.prod(lead)), int(np.prod(out))), x.dtype)
    np.put_along_axis(y, indices.reshape(len(y), -1), x.reshape(len(y), -1), -1)
    return y.reshape(*lead, *out)


def _source(o: int, size: int, out: int, align_corners: bool) -> float:
    """Where the middle of output `o` lies among the elements of the input."""
    if align_corners:
        return o * (size - 1) / (out - 1) if out > 1 else 0.0
    return (o + 0.5) * size / out - 0.5


def _keys(x: float, a: float) -> float:
    x = math.fabs(x)
    if x < 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0


def _resize_matrix(size: int, out: int, mode: str, align_corners: bool) -> Array:
    """(out, size): what each element gives to each result."""
    m = np.zeros((out, size))
    for o in range(out):
        middle = _source(o, size, out, align_corners)
        if mode == "nearest":
            m[o, min(o * size // out, size - 1)] = 1
        elif mode == "nearest-exact":
            m[o, min(int((o + 0.5) * size / out), size - 1)] = 1
        elif mode.endswith("_aa"):
            wide = max(size / out, 1.0)
            reach = wide * (1 if mode == "linear_aa" else 2)
            first, last = int(max(middle + 1 - reach, 0)), int(min(middle + 1 + reach, size))
            for i in range(first, last):
                d = (i - middle) / wide
                m[o, i] = max(1 - math.fabs(d), 0.0) if mode == "linear_aa" else _keys(d, -0.5)
            m[o] /= m[o].sum()
        elif mode == "cubic":
            low = math.floor(middle)
            for i in range(low - 1, low + 3):
                m[o, min(max(i, 0), size - 1)] += _keys(middle - i, -0.75)
        else:
            middle = max(middle, 0.0)
            low = min(int(middle), size - 1)
            m[o, low] += 1 - (middle - low)
            m[o, min(low + 1, size - 1)] += middle - low
    return m


def resized(x: Array, out: Any, mode: str, align_corners: bool = False) -> Array:
    for i, n in enumerate(ints(out, x.ndim - 2)):
        m = _resize_matrix(x.shape[i + 2], n, mode, align_corners)
        x = np.moveaxis(np.tensordot(m, x, (1, i + 2)), 0, i + 2)
    return x


def affine_grid(theta: Array, size: Any, align_corners: bool) -> Array:
    n = len(size) - 2
    y = np.zeros((theta.shape[0], *size[2:], n))
    for at in np.ndindex(*size[2:]):
        place = []
        for o, s in zip(reversed(at), reversed(size[2:]), strict=True):
            line = (2 * o / (s - 1) - 1) if s > 1 else 0.0
            place.append(line if align_corners or s == 1 else line * (s - 1) / s)
        y[(slice(None), *at)] = theta @ np.array([*place, 1.0])
    return y


def _inside(p: float, size: int, padding: int, align_corners: bool) -> float:
    if padding == 2:
        low, high = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
        if high == low:
            return 0.0
        while not low <= p <= high:
            p = 2 * low - p if p < low else 2 * high - p
    return min(max(p, 0.0), size - 1.0) if padding else p


def grid_sample(x: Array, grid: Array, mode: int, padding: int, align_corners: bool) -> Array:
    n, size = x.ndim - 2, x.shape[2:]
    y = np.zeros((*x.shape[:2], *grid.shape[1:-1]))

    def element(b: int, at: Any) -> Array:
        if all(0 <= p < s for p, s in zip(at, size, strict=True)):
            return x[(b, slice(None), *(int(p) for p in at))]
        return np.zeros(x.shape[1])

    for b, *o in np.ndindex(*grid.shape[:-1]):
        at = []
        for p, s in zip(grid[(b, *o)][::-1], size, strict=True):
            place = (p + 1) / 2 * (s - 1) if align_corners else ((p + 1) * s - 1) / 2
            at.append(place if mode == 2 else _inside(place, s, padding, align_corners))
        low = [math.floor(p) for p in at]
        total = np.zeros(x.shape[1])
        if mode == 1:
            total = element(b, [np.rint(p) for p in at])
        for step in itertools.product(*[range(-1, 3) if mode == 2 else range(2)] * n):
            places = [i + k for i, k in zip(low, step, strict=True)]
            distance = [p - q for p, q in zip(at, places, strict=True)]
            if mode == 0:
                total = total + math.prod(1 - math.fabs(d) for d in distance) * element(b, places)
            elif mode == 2:
                moved = [
                    _inside(float(q), s, padding, align_corners)
                    for q, s in zip(places, size, strict=True)
                ]
                total = total + math.prod(_keys(d, -0.75) for d in distance) * element(b, moved)
        y[(b, slice(None), *o)] = total
    return y


def columns(x: Array, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Array:
    if x.ndim == 3:
        return columns(x[None], kernel, dilation, padding, stride)[0]
    kernel, dilation, padding, stride = (ints(v, 2) for v in (kernel, dilation, padding, stride))
    x = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)])
    span = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    found = []
    for i in range(0, x.shape[2] - span[0] + 1, stride[0]):
        for j in range(0, x.shape[3] - span[1] + 1, stride[1]):
            window = x[:, :, i : i + span[0] : dilation[0], j : j + span[1] : dilation[1]]
            found.append(window.reshape(x.shape[0], -1))
    return np.stack(found, -1)


def from_columns(
    x: Array, size: Any, kernel: Any, dilation: Any, padding: Any, stride: Any
) -> Array:
    """The transpose of `columns`, by its definition: which element each entry of a column came from."""
    area = math.prod(ints(kernel, 2))
    lead = (*x.shape[:-2], x.shape[-2] // area)
    place = np.arange(1, math.prod(lead) * math.prod(size) + 1).reshape(*lead, *size)
    source = columns(place, kernel, dilation, padding, stride)
    flat = np.zeros(place.size + 1, x.dtype)
    np.add.at(flat, source.reshape(-1), x.reshape(-1))
    return flat[1:].reshape(place.shape)


def ctc_loss(
    log_probs: Array, targets: Array, inputs: Any, lengths: Any, blank: int, reduction: int
) -> Array:
    """Minus the log of the summed probabilities of all paths that spell the target, path by path."""
    losses, begin = [], 0
    for b, (steps, n) in enumerate(zip(map(int, inputs), map(int, lengths), strict=True)):
        target = targets[b, :n] if targets.ndim == 2 else targets[begin : begin + n]
        begin += n
        total = 0.0
        for path in itertools.product(range(log_probs.shape[2]), repeat=steps):
            spelt = [c for c, _ in itertools.groupby(path) if c != blank]
            if spelt == [int(c) for c in target]:
                total += math.exp(math.fsum(log_probs[t, b, c] for t, c in enumerate(path)))
        losses.append(-math.log(total) if total else inf)
    if reduction == 1:
        return np.mean([a / max(int(n), 1) for a, n in zip(losses, lengths, strict=True)])
    return np.asarray(np.sum(losses) if reduction == 2 else losses)


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


def numpy_dtype(dtype: object) -> Any:
    """NumPy's dtype of the same name."""
    return np.dtype(str(dtype).rsplit(".", maxsplit=1)[-1])


def index_put(x: Array, indices: list[Array | None], values: Array, accumulate: bool) -> Array:
    """A copy of `x` whose elements at the indices (None: all of a dimension) are `values`, or are increased by them."""
    out = np.array(x)
    at: Any = tuple(slice(None) if i is None else i for i in indices)
    if accumulate:
        np.add.at(out, at, values)
    else:
        out[at] = values
    return out


def solve_triangular(a: Array, b: Array, upper: bool, left: bool, unitriangular: bool) -> Array:
    """x of a x = b, or of x a = b; of `a` only one triangle counts."""
    part = np.triu(a) if upper else np.tril(a)
    if unitriangular:
        part = part + np.eye(a.shape[-1]) * (1 - part)
    if left:
        return np.linalg.solve(part, b)
    return np.swapaxes(np.linalg.solve(np.swapaxes(part, -1, -2), np.swapaxes(b, -1, -2)), -1, -2)


def fft_norm(normalization: int, forward: bool) -> str:
    """NumPy's name of a transform's scale: 0 none, 1 by the root of the size, 2 by the size."""
    if normalization == 1:
        return "ortho"
    return "backward" if (normalization == 0) == forward else "forward"


def reflected(x: Array, size: int, align_corners: bool) -> Array:
    """Places that left 0 to size - 1, mirrored at the ends (at half a place beyond them)."""
    low, span = (0.0, size - 1.0) if align_corners else (-0.5, float(size))
    turn = np.abs(x - low) % (2 * span)
    return np.clip(np.minimum(turn, 2 * span - turn) + low, 0, size - 1)


def _border_places(n: int, before: int, after: int, mode: str) -> Array:
    at = np.arange(-before, n + after)
    return n - 1 - np.abs(n - 1 - np.abs(at)) if mode == "reflect" else np.clip(at, 0, n - 1)


def border_pad(x: Array, pad: list[int], mode: str) -> Array:
    """The last dimensions continued by reflection or by their ends."""
    for i in range(len(pad) // 2):
        d = x.ndim - 1 - i
        x = np.take(x, _border_places(x.shape[d], pad[2 * i], pad[2 * i + 1], mode), d)
    return x


def border_pad_backward(grad: Array, shape: list[int], pad: list[int], mode: str) -> Array:
    """Each element of `grad` added where `border_pad` took it from a tensor of this shape."""
    for i in range(len(pad) // 2):
        d = len(shape) - 1 - i
        out = np.zeros((*grad.shape[:d], shape[d], *grad.shape[d + 1 :]), grad.dtype)
        at = _border_places(shape[d], pad[2 * i], pad[2 * i + 1], mode)
        np.add.at(np.moveaxis(out, d, 0), at, np.moveaxis(grad, d, 0))
        grad = out
    return grad


def index_moments(weights: Array) -> tuple[Array, Array]:
    """Mean and variance of an index that is drawn with these weights along the last dimension."""
    p, i = weights / weights.sum(-1, keepdims=True), np.arange(weights.shape[-1])
    mean = (p * i).sum(-1, keepdims=True)
    return mean, (p * i**2).sum(-1, keepdims=True) - mean**2


def dirichlet_moments(a: Array) -> tuple[Array, Array]:
    """Means and variances of Dirichlet's distribution along the last dimension."""
    total = a.sum(-1, keepdims=True)
    return a / total, a * (total - a) / (total**2 * (total + 1))


def gamma_grad(a: Array, x: Array) -> Array:
    """dx/da of the gamma distribution at a constant value of its distribution function."""
    step = 1e-5 * a
    slope = (special.gammainc(a + step, x) - special.gammainc(a - step, x)) / (2 * step)
    return -slope / np.exp((a - 1) * np.log(x) - x - special.gammaln(a))


def dirichlet_grad(x: Array, a: Array, total: Array) -> Array:
    """dx/da of the beta distribution of a and total - a at a constant value of its distribution function, over 1 - x."""
    step, b = 1e-5 * a, total - a

    def rise(f: Any) -> Array:
        return (f(a + step, b, x) - f(a - step, b, x)) / (2 * step)

    # Of the function and 1 - it, the smaller one has the digits.
    slope = np.where(x * total < a, rise(special.betainc), -rise(special.betaincc))
    return -slope / np.exp((a - 1) * np.log(x) + b * np.log1p(-x) - special.betaln(a, b))
