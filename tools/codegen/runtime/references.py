"""Independent NumPy references of operators that have no expression, by operator name. Arguments are the schema's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tools.codegen.runtime import reference as R


def _take_slice(
    x: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Any:
    index = [slice(None)] * x.ndim
    index[dim] = slice(start, end, step)
    return x[tuple(index)]


def _scatter(x: Any, dim: int, index: Any, src: Any, add: bool = False) -> Any:
    out = x.copy()
    for at in np.ndindex(*index.shape):
        to = list(at)
        to[dim] = index[at]
        value = src[at] if np.ndim(src) else src
        out[tuple(to)] = out[tuple(to)] + value if add else value
    return out


def _index_add(x: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:
    out = np.moveaxis(x.copy(), dim, 0)
    for i, row in zip(index, np.moveaxis(source, dim, 0), strict=True):
        out[i] += alpha * row
    return np.moveaxis(out, 0, dim)


def _split(x: Any, size: int, dim: int = 0) -> list[Any]:
    return [_take_slice(x, dim, i, i + size) for i in range(0, max(x.shape[dim], 1), size)]


def _chunk(x: Any, chunks: int, dim: int = 0) -> list[Any]:
    return _split(x, -(-x.shape[dim] // chunks), dim)


def _sections(x: Any, sizes: Any, dim: int = 0) -> list[Any]:
    return np.split(x, np.cumsum(sizes)[:-1], axis=dim)


def _order(x: Any, dim: int, descending: bool) -> Any:
    key = x.astype(np.int64) if x.dtype.kind in "bu" else x
    return np.argsort(-key if descending else key, axis=dim, kind="stable")


def _topk(
    x: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Any, Any]:
    order = _order(x, dim, largest)
    index = np.take(order, range(k), axis=dim)
    return np.take_along_axis(x, index, dim), index


def _sort(x: Any, dim: int = -1, descending: bool = False) -> tuple[Any, Any]:
    order = _order(x, dim, descending) if x.ndim else np.zeros((), np.int64)
    return (np.take_along_axis(x, order, dim) if x.ndim else x), order


def _best(name: str) -> Callable[..., Any]:
    def found(x: Any, dim: int, keepdim: bool = False) -> tuple[Any, Any]:
        index = getattr(np, "arg" + name)(x, axis=dim, keepdims=True)
        values = np.take_along_axis(x, index, dim)
        return (values, index) if keepdim else (values.squeeze(dim), index.squeeze(dim))

    return found


def _var(x: Any, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    return x.var(
        axis=R.axes(x.ndim, dim), ddof=1 if correction is None else correction, keepdims=keepdim
    )


def _unfold(x: Any, dimension: int, size: int, step: int) -> Any:
    windows = np.lib.stride_tricks.sliding_window_view(x, size, axis=dimension)
    return _take_slice(windows, dimension, None, None, step)


def _unflatten(x: Any, dim: int, sizes: Any) -> Any:
    d = dim % x.ndim
    return x.reshape(*x.shape[:d], *sizes, *x.shape[d + 1 :])


def _flatten(x: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    n = max(x.ndim, 1)
    a, b = start_dim % n, end_dim % n
    return x.reshape(*x.shape[:a], -1, *x.shape[b + 1 :]) if x.ndim else x.reshape(1)


def _expand(x: Any, size: Any, *, implicit: bool = False) -> Any:
    extra = len(size) - x.ndim
    return np.broadcast_to(x, [x.shape[i - extra] if s == -1 else s for i, s in enumerate(size)])


def _repeat_interleave(x: Any, repeats: int, dim: int | None = None) -> Any:
    return np.repeat(x, repeats, axis=dim)


def _linear(x: Any, w: Any, b: Any = None) -> Any:
    return x @ w.T if b is None else x @ w.T + b


def _norm(x: Any, p: Any = 2, dim: Any = None, keepdim: bool = False) -> Any:
    over = R.axes(x.ndim, dim)
    return (np.abs(x) ** p).sum(axis=over, keepdims=keepdim) ** (1 / p)


def _group_norm(
    x: Any, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5, *_: Any
) -> Any:
    y = R.normalize(x.reshape(x.shape[0], groups, -1), (2,), eps).reshape(x.shape)
    shape = (1, -1) + (1,) * (x.ndim - 2)
    y = y if weight is None else y * weight.reshape(shape)
    return y if bias is None else y + bias.reshape(shape)


def _batch_norm(
    x: Any,
    weight: Any,
    bias: Any,
    mean: Any,
    var: Any,
    training: bool,
    momentum: float,
    eps: float,
    *_: Any,
) -> Any:
    shape = (1, -1) + (1,) * (x.ndim - 2)
    over = (0, *range(2, x.ndim))
    if training:
        y = R.normalize(x, over, eps)
    else:
        y = (x - mean.reshape(shape)) / np.sqrt(var.reshape(shape) + eps)
    y = y if weight is None else y * weight.reshape(shape)
    return y if bias is None else y + bias.reshape(shape)


def _rms_norm(x: Any, shape: Any, weight: Any = None, eps: float | None = None) -> Any:
    over = tuple(range(x.ndim - len(shape), x.ndim))
    eps = np.finfo(x.dtype).eps if eps is None else eps
    y = x / np.sqrt((x * x).mean(over, keepdims=True) + eps)
    return y if weight is None else y * weight


def _adaptive_avg_pool2d(x: Any, size: Any) -> Any:
    h, w = (size, size) if isinstance(size, int) else size
    y = np.zeros((*x.shape[:-2], h, w))
    for i, j in np.ndindex(h, w):
        rows = slice(i * x.shape[-2] // h, -(-(i + 1) * x.shape[-2] // h))
        columns = slice(j * x.shape[-1] // w, -(-(j + 1) * x.shape[-1] // w))
        y[..., i, j] = x[..., rows, columns].mean((-1, -2))
    return y


def _one_hot(x: Any, num_classes: int = -1) -> Any:
    n = int(x.max()) + 1 if num_classes < 0 else num_classes
    return (x[..., None] == np.arange(n)).astype(np.int64)


def _embedding(weight: Any, indices: Any, *_: Any) -> Any:
    return weight[indices]


def _loss(kind: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda a, b, reduction=1: R.reduced(kind(a - b), reduction)


def _huber(d: Any, delta: float) -> Any:
    return np.where(np.abs(d) <= delta, 0.5 * d * d, delta * (np.abs(d) - 0.5 * delta))


def _nll_loss_forward(
    x: Any, target: Any, weight: Any, reduction: int, ignore_index: int
) -> tuple[Any, Any]:
    w = np.ones(x.shape[-1]) if weight is None else weight
    keep = target != ignore_index
    total = np.where(keep, w[np.where(keep, target, 0)], 0.0).sum()
    return R.nll(x, target, weight, reduction, ignore_index), total


def _cross_entropy(
    x: Any,
    target: Any,
    weight: Any = None,
    reduction: int = 1,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Any:
    axis = 1 if x.ndim > 1 else 0
    log_p = R.log_softmax(x, axis)
    w = np.ones(x.shape[axis]) if weight is None else weight
    if target.dtype.kind == "f":
        smooth = target * (1 - label_smoothing) + label_smoothing / x.shape[axis]
        loss = -(smooth * log_p * w.reshape(-1, *[1] * (x.ndim - axis - 1))).sum(axis)
        return loss if reduction == 0 else loss.sum() / (x.shape[0] if reduction == 1 else 1)
    plain = R.nll(log_p, target, weight, reduction, ignore_index)
    if not label_smoothing:
        return plain
    keep = target != ignore_index
    spread = -(np.moveaxis(log_p, axis, -1) * w).sum(-1) * keep
    if reduction:
        total = np.where(keep, w[np.where(keep, target, 0)], 0.0).sum() if reduction == 1 else 1.0
        spread = spread.sum() / total
    return (1 - label_smoothing) * plain + label_smoothing / x.shape[axis] * spread


def _convolution(
    x: Any,
    w: Any,
    b: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    if x.ndim == w.ndim - 1:
        return R.convolution(x[None], w, b, stride, padding, dilation, groups)[0]
    return R.convolution(x, w, b, stride, padding, dilation, groups)


def _avg_pool2d(
    x: Any,
    k: Any,
    s: Any = (),
    p: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor: Any = None,
) -> Any:
    if ceil_mode:
        h = [((x.shape[i - 2] + 2 * p[i] - k[i]) % s[i]) for i in range(2)]
        grow = [(0, 0)] * (x.ndim - 2) + [(0, s[i] - h[i] if h[i] else 0) for i in range(2)]
        inside = np.pad(
            np.pad(
                np.ones_like(x),
                [(0, 0)] * (x.ndim - 2) + [(q, q) for q in p],
                constant_values=float(count_include_pad),
            ),
            grow,
        )
        values = np.pad(np.pad(x, [(0, 0)] * (x.ndim - 2) + [(q, q) for q in p]), grow)

        def total(v: Any) -> Any:
            return R.pool2d(v, k, s, 0, lambda w: w.sum((-1, -2)), 0.0)

        return total(values) / (total(inside) if divisor is None else divisor)
    area = R.pool2d(np.ones_like(x), k, s, p, lambda w: w.sum((-1, -2)), float(count_include_pad))
    return R.pool2d(x, k, s, p, lambda w: w.sum((-1, -2)), 0.0) / (
        area if divisor is None else divisor
    )


def _native_layer_norm(
    x: Any, shape: Any, weight: Any, bias: Any, eps: float
) -> tuple[Any, Any, Any]:
    over = tuple(range(x.ndim - len(shape), x.ndim))
    rstd = 1 / np.sqrt(x.var(over, keepdims=True) + eps)
    return R.layer_norm(x, shape, weight, bias, eps), x.mean(over, keepdims=True), rstd


def _fused_rms_norm(x: Any, shape: Any, weight: Any, eps: float) -> tuple[Any, Any]:
    over = tuple(range(x.ndim - len(shape), x.ndim))
    return _rms_norm(x, shape, weight, eps), 1 / np.sqrt((x * x).mean(over, keepdims=True) + eps)


def _native_batch_norm(
    x: Any, weight: Any, bias: Any, mean: Any, var: Any, training: bool, momentum: float, eps: float
) -> tuple[Any, Any, Any]:
    over = (0, *range(2, x.ndim))
    y = _batch_norm(x, weight, bias, mean, var, training, momentum, eps)
    return y, x.mean(over), 1 / np.sqrt(x.var(over) + eps)


def _max_pool2d_with_indices(x: Any, k: Any, s: Any = (), p: Any = 0, *_: Any) -> tuple[Any, Any]:
    x = x.astype(np.float64)
    plane = np.broadcast_to(np.arange(x.shape[-2] * x.shape[-1]).reshape(x.shape[-2:]), x.shape)
    best = R.pool2d(x, k, s, p, lambda w: w.max((-1, -2)), -np.inf)

    def place(window: Any) -> Any:  # windows carry value and place in one complex number
        flat = window.reshape(*window.shape[:-2], -1)
        at = flat.real.argmax(-1)
        return np.take_along_axis(flat, at[..., None], -1)[..., 0]

    where = R.pool2d(x + 1j * plane, k, s, p, place, -np.inf).imag
    return best, where.astype(np.int64)


def _attention(q: Any, k: Any, v: Any, mask: Any, is_causal: bool, scale: float) -> tuple[Any, Any]:
    scores = q @ np.swapaxes(k, -1, -2) * scale
    if is_causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    return R.attention(q, k, v, mask, is_causal, scale), R.special.logsumexp(scores, axis=-1)


def _native_group_norm(
    x: Any, weight: Any, bias: Any, n: int, c: int, hw: int, group: int, eps: float
) -> tuple[Any, Any, Any]:
    rows = x.reshape(n, group, -1)
    return _group_norm(x, group, weight, bias, eps), rows.mean(-1), 1 / np.sqrt(rows.var(-1) + eps)


def _pad(x: Any, pad: Any, mode: str = "constant", value: Any = None) -> Any:
    """`pad` counts from the last dimension; negative entries cut away."""
    widths = [(0, 0)] * x.ndim
    for i in range(len(pad) // 2):
        low, high = pad[2 * i], pad[2 * i + 1]
        d = x.ndim - 1 - i
        x = _take_slice(x, d, max(-low, 0), x.shape[d] - max(-high, 0))
        widths[d] = (max(low, 0), max(high, 0))
    if mode == "constant":
        return np.pad(x, widths, constant_values=value or 0)
    names: dict[str, Any] = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    return np.pad(x, widths, mode=names[mode])


def _divide(a: Any, b: Any, *, rounding_mode: str | None) -> Any:
    if rounding_mode is None:
        return np.true_divide(a, b)
    return np.floor_divide(a, b) if rounding_mode == "floor" else R.trunc_divide(a, b)


REFERENCES: Final[dict[str, Callable[..., Any]]] = {
    # views
    "alias": lambda x: x,
    "_floor_of_quotient": np.floor_divide,
    "detach": lambda x: x,
    "clone": lambda x, **_: x.copy(),
    "contiguous": lambda x, **_: x,
    "_to_copy": lambda x, **_: x,
    "type_as": lambda x, other: x.astype(other.dtype),
    "as_strided": lambda x, size, stride, offset=None: np.lib.stride_tricks.as_strided(
        x.reshape(-1)[offset or 0 :], size, [s * x.itemsize for s in stride]
    ),
    "view": lambda x, size: x.reshape(size),
    "reshape": lambda x, size: x.reshape(size),
    "view_as": lambda x, other: x.reshape(other.shape),
    "reshape_as": lambda x, other: x.reshape(other.shape),
    "permute": lambda x, dims: x.transpose(dims),
    "transpose": lambda x, a, b: np.swapaxes(x, a, b) if x.ndim else x,
    "t": lambda x: x.T,
    "movedim": np.moveaxis,
    "expand": _expand,
    "expand_as": lambda x, other: np.broadcast_to(x, other.shape),
    "broadcast_to": np.broadcast_to,
    "squeeze": lambda x: x.squeeze(),
    "squeeze.dims": lambda x, dim: x.squeeze(
        tuple(d for d in ((dim,) if isinstance(dim, int) else dim) if x.shape[d] == 1)
    ),
    "unsqueeze": np.expand_dims,
    "select": lambda x, dim, index: np.take(x, index, axis=dim),
    "slice": _take_slice,
    "narrow": lambda x, dim, start, length: _take_slice(x, dim, start, start + length),
    "diagonal": lambda x, offset=0, a=0, b=1: np.diagonal(x, offset, a, b),
    "unfold": _unfold,
    "flatten": _flatten,
    "ravel": np.ravel,
    "unflatten": _unflatten,
    "unbind": lambda x, dim=0: list(np.moveaxis(x, dim, 0)),
    "split": _split,
    "split.sizes": _sections,
    "chunk": _chunk,
    "tensor_split": lambda x, n, dim=0: np.array_split(x, n, axis=dim),
    "conj": np.conj,
    "view_as_real": lambda x: np.stack([x.real, x.imag], -1),
    "view_as_complex": lambda x: x[..., 0] + 1j * x[..., 1],
    "real": np.real,
    # joining
    "cat": lambda xs, dim=0: np.concatenate(xs, axis=dim),
    "stack": lambda xs, dim=0: np.stack(xs, axis=dim),
    "hstack": np.hstack,
    "vstack": np.vstack,
    "repeat": lambda x, n: np.tile(x, n),
    "tile": np.tile,
    "repeat_interleave": _repeat_interleave,
    "flip": np.flip,
    "constant_pad_nd": lambda x, pad, value=0: _pad(x, pad, value=value),
    "pad": _pad,
    "roll": lambda x, shifts, dims=(): np.roll(x, shifts, axis=dims if dims else None),
    "meshgrid": lambda xs, indexing="ij": np.meshgrid(*xs, indexing=indexing),
    # creation
    "zeros": lambda size, **_: np.zeros(size),
    "ones": lambda size, **_: np.ones(size),
    "full": lambda size, value, **_: np.full(size, value),
    "scalar_tensor": lambda s, **_: np.asarray(s),
    "zeros_like": lambda x, **_: np.zeros_like(x),
    "ones_like": lambda x, **_: np.ones_like(x),
    "full_like": lambda x, value, **_: np.full_like(x, value),
    "new_zeros": lambda x, size, **_: np.zeros(size),
    "new_ones": lambda x, size, **_: np.ones(size),
    "new_full": lambda x, size, value, **_: np.full(size, value),
    "arange": lambda end, **_: np.arange(end),
    "arange.start_step": lambda start, end, step=1, **_: np.arange(start, end, step),
    "linspace": lambda start, end, steps, **_: np.linspace(start, end, steps),
    "eye": lambda n, m=None, **_: np.eye(n, m),
    "complex": lambda a, b: a + 1j * b,
    "polar": lambda a, angle: a * np.exp(1j * angle),
    "tril_indices": lambda row, col, offset=0, **_: np.stack(np.tril_indices(row, offset, col)),
    "triu_indices": lambda row, col, offset=0, **_: np.stack(np.triu_indices(row, offset, col)),
    # arithmetic and comparison composites
    "div.mode": _divide,
    "clamp": lambda x, low=None, high=None: np.clip(x, low, high),
    "isclose": lambda a, b, rtol=1e-5, atol=1e-8, equal_nan=False: np.isclose(
        a, b, rtol, atol, equal_nan
    ),
    "nan_to_num": lambda x, nan=None, posinf=None, neginf=None: np.nan_to_num(
        x, nan=nan or 0.0, posinf=posinf, neginf=neginf
    ),
    # matrices
    "mm": np.matmul,
    "bmm": np.matmul,
    "matmul": np.matmul,
    "mv": np.matmul,
    "dot": np.dot,
    "outer": np.outer,
    "addmm": lambda x, a, b, *, beta=1, alpha=1: beta * x + alpha * (a @ b),
    "baddbmm": lambda x, a, b, *, beta=1, alpha=1: beta * x + alpha * (a @ b),
    "linear": _linear,
    # reductions
    "count_nonzero": lambda x, dim=None: np.count_nonzero(x, axis=R.axes(x.ndim, dim)),
    "max": np.max,
    "min": np.min,
    "max.dim": _best("max"),
    "min.dim": _best("min"),
    "max.other": np.maximum,
    "min.other": np.minimum,
    "argmax": lambda x, dim=None, keepdim=False: np.argmax(x, axis=dim, keepdims=keepdim),
    "argmin": lambda x, dim=None, keepdim=False: np.argmin(x, axis=dim, keepdims=keepdim),
    "var": _var,
    "var.unbiased": lambda x, unbiased: _var(x, correction=int(unbiased)),
    "var.dim_unbiased": lambda x, dim, unbiased, keepdim=False: _var(
        x, dim, correction=int(unbiased), keepdim=keepdim
    ),
    "std": lambda *a, **k: np.sqrt(_var(*a, **k)),
    "std.unbiased": lambda x, unbiased: np.sqrt(_var(x, correction=int(unbiased))),
    "std.dim_unbiased": lambda x, dim, unbiased, keepdim=False: np.sqrt(
        _var(x, dim, correction=int(unbiased), keepdim=keepdim)
    ),
    "var_mean": lambda x, dim=None, *, correction=None, keepdim=False: (
        _var(x, dim, correction=correction, keepdim=keepdim),
        x.mean(axis=R.axes(x.ndim, dim), keepdims=keepdim),
    ),
    "norm": _norm,
    "logsumexp": lambda x, dim, keepdim=False: R.special.logsumexp(
        x, axis=R.axes(x.ndim, dim), keepdims=keepdim
    ),
    "sum_to_size": lambda x, size: (
        R.reduce(
            np.add,
            lambda v: v,
            lambda acc, n: acc.reshape(size),
            x,
            tuple(
                i
                for i in range(x.ndim)
                if i < x.ndim - len(size) or size[i - x.ndim + len(size)] == 1
            )
            or (),
            True,
        )
        if tuple(size) != x.shape
        else x
    ),
    # indexing
    "gather": lambda x, dim, index, *_, **__: (
        np.take_along_axis(x, index, dim) if index.size else np.empty(index.shape, x.dtype)
    ),
    "index_select": lambda x, dim, index: np.take(x, index, axis=dim),
    "index_add": _index_add,
    "scatter": _scatter,
    "scatter_add": lambda x, dim, index, src: _scatter(x, dim, index, src, add=True),
    "take_along_dim": lambda x, index, dim=None: np.take_along_axis(x, index, dim),
    "tril": lambda x, diagonal=0: np.tril(x, diagonal),
    "triu": lambda x, diagonal=0: np.triu(x, diagonal),
    "sort": _sort,
    "argsort": lambda x, dim=-1, descending=False, stable=False: _sort(x, dim, descending)[1],
    "topk": _topk,
    "one_hot": _one_hot,
    "embedding": _embedding,
    "masked_select": lambda x, mask: x[np.broadcast_to(mask, x.shape)],
    "nonzero": lambda x: np.argwhere(x),
    "nonzero_tuple": lambda x: list(np.nonzero(x)),
    "where.condition": lambda x: list(np.nonzero(x)),
    "bincount": lambda x, weights=None, minlength=0: np.bincount(x, weights, minlength),
    "searchsorted": lambda a, v, *, out_int32=False, right=False: np.searchsorted(
        a, v, "right" if right else "left"
    ),
    # networks
    "softmax": lambda x, dim, dtype=None: R.softmax(x, dim),
    "log_softmax": lambda x, dim, dtype=None: R.log_softmax(x, dim),
    "layer_norm": lambda x, shape, weight=None, bias=None, eps=1e-5: R.layer_norm(
        x, shape, weight, bias, eps
    ),
    "rms_norm": _rms_norm,
    "group_norm": _group_norm,
    "batch_norm": _batch_norm,
    "convolution": R.convolution,
    "conv1d": _convolution,
    "conv2d": _convolution,
    "avg_pool2d": _avg_pool2d,
    "adaptive_avg_pool2d": _adaptive_avg_pool2d,
    "native_layer_norm": _native_layer_norm,
    "fused_rms_norm": _fused_rms_norm,
    "native_group_norm": _native_group_norm,
    "native_dropout": lambda x, p, train: (x, np.ones_like(x, bool)),
    "max_pool2d": lambda x, k, s=(), p=0, *_: R.pool2d(
        x.astype(np.float64), k, s, p, lambda w: w.max((-1, -2)), -np.inf
    ),
    "native_batch_norm": _native_batch_norm,
    "max_pool2d_with_indices": _max_pool2d_with_indices,
    "attention": _attention,
    "scaled_dot_product_attention": lambda q, k, v, mask=None, dropout_p=0.0, is_causal=False, **kw: (
        R.attention(q, k, v, mask, is_causal, kw.get("scale"))
    ),
    # losses
    "nll_loss_forward": _nll_loss_forward,
    "nll_loss": R.nll,
    "cross_entropy_loss": _cross_entropy,
    "mse_loss": _loss(np.square),
    "l1_loss": _loss(np.abs),
    "smooth_l1_loss": lambda a, b, reduction=1, beta=1.0: R.reduced(
        _huber(a - b, beta) / beta, reduction
    ),
    "huber_loss": lambda a, b, reduction=1, delta=1.0: R.reduced(_huber(a - b, delta), reduction),
    "binary_cross_entropy": lambda p, y, weight=None, reduction=1: R.reduced(
        -(y * np.log(p) + (1 - y) * np.log(1 - p)) * (1 if weight is None else weight), reduction
    ),
    "binary_cross_entropy_with_logits": lambda x, y, weight=None, pos_weight=None, reduction=0: (
        R.reduced(
            -(
                (1 if pos_weight is None else pos_weight) * y * np.log(R.sigmoid(x))
                + (1 - y) * np.log(R.sigmoid(-x))
            )
            * (1 if weight is None else weight),
            reduction,
        )
    ),
    "kl_div": lambda x, y, reduction=0, *, log_target=False: R.reduced(
        np.exp(y) * (y - x) if log_target else y * (np.log(y) - x), reduction
    ),
}
