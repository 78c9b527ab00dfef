"""Functions of PyTorch that only its compilers and its modules call, where they differ from the operators here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import argand_c10
from argand_aten._operators import ops
from argand_c10 import Tensor

__all__ = [
    "_batch_norm_no_update",
    "_batch_norm_with_update",
    "_native_batch_norm_legit",
    "_native_batch_norm_legit_no_training",
    "_unsafe_index",
    "_unsafe_index_put",
    "_unsafe_masked_index",
    "_unsafe_masked_index_put_accumulate",
    "native_batch_norm",
    "native_group_norm",
    "native_layer_norm",
]

_Normalized = tuple[Tensor, Tensor, Tensor]


def _with_statistics(results: _Normalized, input: Tensor, *affine: Tensor | None) -> _Normalized:
    """Means and reciprocal deviations in the dtype of `input`, unless they lie on a device or the weights are wider."""
    narrow = input.dtype in (argand_c10.float16, argand_c10.bfloat16) and input.is_cpu
    if not narrow or any(t is not None and t.dtype != input.dtype for t in affine):
        return results
    normalized, mean, reciprocal = results
    return normalized, ops.to(mean, input.dtype), ops.to(reciprocal, input.dtype)


def native_layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> _Normalized:
    """Layer normalisation (Ba et al. 2016), the mean and the reciprocal standard deviation."""
    results = ops.native_layer_norm(input, normalized_shape, weight, bias, eps)
    return _with_statistics(results, input, weight, bias)


def native_group_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> _Normalized:
    """Group normalisation (Wu and He 2018) of (N, C, HxW), the mean and the reciprocal standard deviation."""
    results = ops.native_group_norm(input, weight, bias, N, C, HxW, group, eps)
    return _with_statistics(results, input, weight, bias)


def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    *,
    out: Sequence[Tensor] | None = None,
) -> _Normalized:
    """Batch normalisation (Ioffe and Szegedy 2015), the mean and the reciprocal standard deviation of the batch."""
    arguments = (input, weight, bias, running_mean, running_var, training, momentum, eps)
    if out is not None:
        return ops.native_batch_norm(*arguments, out=out)
    result, mean, reciprocal = ops.native_batch_norm(*arguments)
    results = (ops._in_format_of(result, input), mean, reciprocal)
    return _with_statistics(results, input, weight, bias)


def _native_batch_norm_legit(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, *arguments: Any, **named: Any
) -> _Normalized:
    """`native_batch_norm`; `running_mean` and `running_var` are both given or both left out."""
    names: tuple[str, ...] = ("running_mean", "running_var", "training", "momentum", "eps")
    if len(arguments) + len(named) - ("out" in named) == 3:
        names, named = names[2:], {"running_mean": None, "running_var": None, **named}
    return native_batch_norm(
        input, weight, bias, **dict(zip(names, arguments, strict=False)), **named
    )


def _native_batch_norm_legit_no_training(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> _Normalized:
    """`native_batch_norm` by the running statistics."""
    return native_batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)


def _with_reserve(results: _Normalized, input: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return (*results, ops.empty([0], dtype=argand_c10.uint8, device=input.device))


def _batch_norm_with_update(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`native_batch_norm` while training, and an empty tensor."""
    return _with_reserve(
        native_batch_norm(input, weight, bias, running_mean, running_var, True, momentum, eps),
        input,
    )


def _batch_norm_no_update(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`native_batch_norm` by the running statistics, and an empty tensor."""
    return _with_reserve(
        native_batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps),
        input,
    )


def _within(input: Tensor, indices: Sequence[Tensor | None]) -> list[Tensor | None]:
    return [
        None if i is None else ops.clamp(i, -n, n - 1)
        for i, n in zip(indices, input.shape, strict=False)
    ]


def _unsafe_masked_index(
    self: Tensor, mask: Tensor, indices: Sequence[Tensor | None], fill: Any
) -> Tensor:
    """`self` at `indices` where `mask` holds, elsewhere `fill`; indices that are not read may lie outside."""
    picked = ops.index(self, _within(self, indices))
    return ops.masked_fill(picked, ops.logical_not(mask), fill)


def _unsafe_masked_index_put_accumulate(
    self: Tensor, mask: Tensor, indices: Sequence[Tensor | None], values: Tensor
) -> Tensor:
    """`self` with `values` added at `indices` where `mask` holds; other indices may lie outside."""
    kept = ops.masked_fill(values, ops.logical_not(mask), 0)
    return ops.index_put(self, _within(self, indices), kept, True)


def _unsafe_index(self: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    """`self` at `indices`."""
    return ops.index(self, indices)


def _unsafe_index_put(
    self: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False
) -> Tensor:
    """`self` with `values` written (or added) at `indices`."""
    return ops.index_put(self, indices, values, accumulate)
