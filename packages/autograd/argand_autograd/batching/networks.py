"""Rules of the operators of networks: convolutions, pools, normalizations, attention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import argand_aten as aten
from argand_autograd.batching.level import Level
from argand_autograd.batching.rules import by_entries, named
from argand_c10 import Tensor

# Compilers run these functions as they are.
__argand_plain__ = True
__all__: list[str] = []

ops = aten.ops


def _folded(level: Level, t: Tensor, dim: int = 0) -> Tensor:
    """The whole of `t` with the entries' dimension joined to an entry's: (entries * n, ...) for the first."""
    whole = level.front(t)
    if dim:
        whole = ops.movedim(whole, 0, dim)
    shape = [*t.shape[:dim], level.size * t.shape[dim], *t.shape[dim + 1 :]]
    return ops.reshape(whole, shape)


def _unfolded(level: Level, t: Tensor, dim: int = 0) -> Tensor:
    """The inverse of `_folded`."""
    shape = [*t.shape[:dim], level.size, t.shape[dim] // level.size, *t.shape[dim + 1 :]]
    whole = ops.reshape(t, shape)
    return ops.movedim(whole, dim, 0) if dim else whole


# ---- convolutions -----------------------------------------------------------------------------------------------------
@named("convolution")
def _convolution(
    level: Level,
    op: Any,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Any:
    rest = (stride, padding, dilation)
    if not level.has(weight):
        with_bias = bias is not None and not level.has(bias)
        if level.has(input):
            result = _unfolded(
                level, op(_folded(level, input), weight, bias if with_bias else None, *rest, groups)
            )
        else:
            result = op(input, weight, None, *rest, groups)
        if bias is None or with_bias:
            return result
        columns = ops.reshape(level.of(bias), [level.size, 1, -1] + [1] * (weight.ndim - 2))
        return ops.add(result, columns)
    one = None if bias is None else _folded(level, bias)
    kernels = _folded(level, weight)
    if not level.has(input) and groups == 1:
        return _unfolded(level, op(input, kernels, one, *rest, 1), 1)
    return _unfolded(
        level, op(_folded(level, input, 1), kernels, one, *rest, groups * level.size), 1
    )


@named("convolution_backward")
def _convolution_backward(
    level: Level,
    op: Any,
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> Any:
    rest = (stride, padding, dilation)
    of_input, of_weight, of_bias = output_mask
    made: list[Tensor | None] = [None, None, None]
    if of_input and not level.has(weight):
        folded = (_folded(level, grad_output), _folded(level, input), weight)
        made[0] = _unfolded(level, op(*folded, *rest, groups, [True, False, False])[0])
        of_input = False
    if of_input or of_weight:
        grouped = (_folded(level, grad_output, 1), _folded(level, input, 1), _folded(level, weight))
        found = op(*grouped, *rest, groups * level.size, [of_input, of_weight, False])
        if of_input:
            made[0] = _unfolded(level, found[0], 1)
        if of_weight:
            made[1] = _unfolded(level, found[1])
    if of_bias:
        grad = level.front(grad_output)
        made[2] = ops.sum(grad, [d for d in range(1, grad.ndim) if d != 2])
    return tuple(made)


# ---- planes: pools, resampling ----------------------------------------------------------------------------------------
def _planes(*tensors: int, sizes: int | None = None) -> Callable[..., Any]:
    """Of operators on planes, whose first dimension is one of many of them: the entries' is joined to it.

    Args:
        tensors: the places of the tensors among the arguments.
        sizes: the place of the sizes of a gradient's result.
    """

    def rule(level: Level, op: Any, *args: Any, **kwargs: Any) -> Any:
        given = list(args)
        if any(given[i].ndim < 3 for i in tensors):
            return by_entries(level, op, args, kwargs)
        for i in tensors:
            given[i] = _folded(level, args[i])
        if sizes is not None:
            given[sizes] = [level.size * args[sizes][0], *args[sizes][1:]]
        found = op(*given, **kwargs)
        if isinstance(found, tuple):
            return tuple(None if t is None else _unfolded(level, t) for t in found)
        return _unfolded(level, found)

    return rule


named(
    "max_pool2d_with_indices",
    "avg_pool2d",
    "adaptive_avg_pool2d",
    "adaptive_max_pool2d",
    "_upsample_2d",
)(_planes(0))
named("avg_pool2d_backward", "adaptive_avg_pool2d_backward")(_planes(0, sizes=1))
named("_grid_sample_2d")(_planes(0, 1))
named("_grid_sample_2d_backward")(_planes(0, 1, 2))


@named("max_pool2d_with_indices_backward")
def _max_pool_backward(
    level: Level, op: Any, grad_output: Tensor, input_size: Sequence[int], indices: Tensor
) -> Any:
    sizes = [level.size * input_size[0], *input_size[1:]]
    return _unfolded(level, op(_folded(level, grad_output), sizes, _folded(level, indices)))


# ---- normalizations ---------------------------------------------------------------------------------------------------
@named("native_layer_norm")
def _layer_norm(
    level: Level,
    op: Any,
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> Any:
    if not level.has(weight) and not level.has(bias):
        return op(level.of(input), normalized_shape, weight, bias, eps)
    out, mean, rstd = op(level.front(input), normalized_shape, None, None, eps)
    if weight is not None:
        out = ops.mul(out, level.aligned(weight, input.ndim))
    if bias is not None:
        out = ops.add(out, level.aligned(bias, input.ndim))
    return out, mean, rstd


@named("native_layer_norm_backward")
def _layer_norm_backward(
    level: Level,
    op: Any,
    grad_out: Tensor,
    input: Tensor,
    normalized_shape: Sequence[int],
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    output_mask: Sequence[bool],
) -> Any:
    grad, x, m, r = (level.front(t) for t in (grad_out, input, mean, rstd))
    made: list[Tensor | None] = [None, None, None]
    if output_mask[0]:
        scaled, scale = _scaled(level, grad, weight, input.ndim)
        made[0] = op(scaled, x, normalized_shape, m, r, scale, None, [True, False, False])[0]
    outer = list(range(1, 1 + input.ndim - len(normalized_shape)))
    if output_mask[1]:
        shape = [*x.shape[: 1 + len(outer)], *([1] * len(normalized_shape))]
        normal = ops.mul(ops.sub(x, ops.reshape(m, shape)), ops.reshape(r, shape))
        product = ops.mul(grad, normal)
        made[1] = ops.sum(product, outer) if outer else product
    if output_mask[2]:
        made[2] = ops.sum(grad, outer) if outer else ops.clone(grad)
    return tuple(made)


@named("fused_rms_norm")
def _rms_norm(
    level: Level,
    op: Any,
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    eps: float,
) -> Any:
    if not level.has(weight):
        return op(level.of(input), normalized_shape, weight, eps)
    out, rrms = op(level.front(input), normalized_shape, None, eps)
    return ops.mul(out, level.aligned(weight, input.ndim)), rrms


@named("fused_rms_norm_backward")
def _rms_norm_backward(
    level: Level,
    op: Any,
    grad_out: Tensor,
    input: Tensor,
    normalized_shape: Sequence[int],
    rrms: Tensor,
    weight: Tensor | None,
    output_mask: Sequence[bool],
) -> Any:
    grad, x, r = (level.front(t) for t in (grad_out, input, rrms))
    of_input = None
    if output_mask[0]:
        scaled, scale = _scaled(level, grad, weight, input.ndim)
        of_input = op(scaled, x, normalized_shape, r, scale, [True, False])[0]
    of_weight = None
    if output_mask[1]:
        lead = input.ndim - len(normalized_shape)
        rows = ops.reshape(r, [*x.shape[: 1 + lead], *([1] * len(normalized_shape))])
        of_weight = ops.mul(ops.mul(grad, x), rows)
        if lead:
            of_weight = ops.sum(of_weight, list(range(1, 1 + lead)))
    return of_input, of_weight


def _scaled(
    level: Level, grad: Tensor, weight: Tensor | None, ndim: int
) -> tuple[Tensor, Tensor | None]:
    """The whole gradients, and the weight of the operator, which gets none if entries have their own."""
    if not level.has(weight):
        return grad, weight
    return ops.mul(grad, level.aligned(weight, ndim)), None


@named("native_group_norm")
def _group_norm(
    level: Level,
    op: Any,
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> Any:
    mapped = level.has(weight) or level.has(bias)
    given = (None, None) if mapped else (weight, bias)
    found = op(_folded(level, input), *given, level.size * N, C, HxW, group, eps)
    out, mean, rstd = (_unfolded(level, t) for t in found)
    columns = [level.size, 1, -1] + [1] * (input.ndim - 2)
    if mapped and weight is not None:
        out = ops.mul(out, ops.reshape(level.front(weight), columns))
    if mapped and bias is not None:
        out = ops.add(out, ops.reshape(level.front(bias), columns))
    return out, mean, rstd


@named("native_group_norm_backward")
def _group_norm_backward(
    level: Level,
    op: Any,
    grad_out: Tensor,
    input: Tensor,
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    output_mask: Sequence[bool],
) -> Any:
    grad, x, m, r = (_folded(level, t) for t in (grad_out, input, mean, rstd))
    made: list[Tensor | None] = [None, None, None]
    if output_mask[0]:
        scaled, scale = grad, weight
        if level.has(weight):
            columns = ops.reshape(level.of(weight), [level.size, 1, C] + [1] * (input.ndim - 2))
            scaled, scale = _folded_whole(level, ops.mul(level.front(grad_out), columns)), None
        given = (scale, level.size * N, C, HxW, group, [True, False, False])
        made[0] = _unfolded(level, op(scaled, x, m, r, *given)[0])
    planes = [level.size, N, group, C // group, HxW]
    if output_mask[1]:
        rows = [level.size, N, group, 1, 1]
        normal = ops.mul(
            ops.sub(ops.reshape(x, planes), ops.reshape(m, rows)), ops.reshape(r, rows)
        )
        product = ops.mul(ops.reshape(grad, planes), normal)
        made[1] = ops.reshape(ops.sum(product, [1, 4]), [level.size, C])
    if output_mask[2]:
        made[2] = ops.reshape(ops.sum(ops.reshape(grad, planes), [1, 4]), [level.size, C])
    return tuple(made)


def _folded_whole(level: Level, whole: Tensor) -> Tensor:
    """A whole with its first two dimensions joined."""
    return ops.reshape(whole, [whole.shape[0] * whole.shape[1], *whole.shape[2:]])


# Entries are channels beside each other: a batch is normalized over all but those.
@named("native_batch_norm")
def _batch_norm(
    level: Level,
    op: Any,
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Any:
    statistics = [t for t in (running_mean, running_var) if t is not None]
    if training and statistics:
        if all(level.has(t) for t in statistics):
            level.remember_inputs(statistics)
        else:
            level.run_alone(
                "got native_batch_norm, which updates statistics that all entries share"
            )
            given = (input, weight, bias, running_mean, running_var, training, momentum, eps)
            return by_entries(level, op, given, {})
    columns = [None if t is None else _folded(level, t) for t in (weight, bias)]
    kept = [None if t is None else _folded(level, t) for t in (running_mean, running_var)]
    out, *found = op(_folded(level, input, 1), *columns, *kept, training, momentum, eps)
    if training:
        for t, folded in zip((running_mean, running_var), kept, strict=True):
            if t is not None and folded is not None:
                ops.copy_(level.of(t), _unfolded(level, folded))
    saved = (_unfolded(level, t) if training else ops.new_empty(t, [level.size, 0]) for t in found)
    return _unfolded(level, out, 1), *saved


@named("native_batch_norm_backward")
def _batch_norm_backward(
    level: Level,
    op: Any,
    grad_out: Tensor,
    input: Tensor,
    weight: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    save_mean: Tensor | None,
    save_invstd: Tensor | None,
    train: bool,
    eps: float,
    output_mask: Sequence[bool],
) -> Any:
    columns = [
        None if t is None else _folded(level, t) if t.numel() else ops.new_empty(level.of(t), [0])
        for t in (weight, running_mean, running_var, save_mean, save_invstd)
    ]
    planes = (_folded(level, t, 1) for t in (grad_out, input))
    found = op(*planes, *columns, train, eps, output_mask)
    return tuple(
        _unfolded(level, t, int(not i)) if wanted else None
        for i, (t, wanted) in enumerate(zip(found, output_mask, strict=True))
    )


# ---- attention --------------------------------------------------------------------------------------------------------
def _mask_of_rows(level: Level, mask: Tensor | None, query: Tensor) -> Tensor | None:
    """The mask of all entries' batches, joined as they are."""
    if mask is None or (not level.has(mask) and (mask.ndim < query.ndim or mask.shape[0] == 1)):
        return mask
    whole = level.front(mask)
    for _ in range(query.ndim - mask.ndim):
        whole = ops.unsqueeze(whole, 1)
    whole = ops.expand(whole, [level.size, query.shape[0], *whole.shape[2:]])
    return _folded_whole(level, whole)


@named("attention")
def _attention(
    level: Level,
    op: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    is_causal: bool,
    scale: float,
) -> Any:
    folded = (_folded(level, t) for t in (query, key, value))
    mask = _mask_of_rows(level, attn_mask, query)
    return tuple(_unfolded(level, t) for t in op(*folded, mask, is_causal, scale))


@named("attention_backward")
def _attention_backward(
    level: Level,
    op: Any,
    grad_out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    out: Tensor,
    logsumexp: Tensor,
    is_causal: bool,
    scale: float,
) -> Any:
    grads, q, k, v, o, sums = (
        _folded(level, t) for t in (grad_out, query, key, value, out, logsumexp)
    )
    mask = _mask_of_rows(level, attn_mask, query)
    return tuple(_unfolded(level, t) for t in op(grads, q, k, v, mask, o, sums, is_causal, scale))
