"""Cross entropy of the scores that a linear map gives, whole or in chunks of rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import argand_aten as aten
from argand_autograd.checkpoint import checkpoint
from argand_c10 import Tensor, dtype, int64
from argand_nn.functional.linear_maps import linear
from argand_nn.functional.loss import cross_entropy, reduction_number

__all__ = ["linear_cross_entropy"]


@dataclass(frozen=True, slots=True)
class LinearCrossEntropyOptions:
    """How `linear_cross_entropy` goes through its rows in chunks; backward computes the scores of a chunk again.

    Args:
        allow_retain_graph: kept for callers of PyTorch's: the graph can always be kept.
        batch_chunk_size: rows of a chunk; None chooses by `chunking_method`.
        chunking_method: None takes all rows as one chunk; "auto" and "aspect_ratio" give a chunk's
            scores about the size of the input, "aspect_ratio:n" n times that.
        acc_policy: kept for callers of PyTorch's: autograd adds the gradients of the chunks.
        acc_dtype: dtype in which losses are added; that of the losses by default.
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str | None = "auto"
    acc_dtype: dtype | None = None


def rows_of_chunk(
    options: LinearCrossEntropyOptions, count: int, features: int, classes: int
) -> int:
    """How many of `count` rows go together."""
    if options.batch_chunk_size is not None:
        return options.batch_chunk_size
    if options.chunking_method is None:
        return max(count, 1)
    method, _, factor = options.chunking_method.partition(":")
    if method not in ("auto", "aspect_ratio") or (factor and not factor.isdecimal()):
        raise ValueError(
            f"linear_cross_entropy: got chunking_method {options.chunking_method!r}, expected "
            "'auto', 'aspect_ratio' or 'aspect_ratio:<integer>'"
        )
    share = count * int(factor or 1) // max(-(-classes // max(features, 1)), 1)
    return 1 << max(share - 1, 0).bit_length()


def _check_linear_shapes(input: Tensor, linear_weight: Tensor, linear_bias: Tensor | None) -> None:
    outputs = list(linear_weight.shape[:-1])
    if (
        input.dim() not in (1, 2)
        or not outputs
        or input.shape[-1] != linear_weight.shape[-1]
        or (input.dim() == 1 and len(outputs) > 1)
        or (linear_bias is not None and list(linear_bias.shape) != outputs)
    ):
        bias = "" if linear_bias is None else f" and linear_bias {list(linear_bias.shape)}"
        raise RuntimeError(
            f"linear_cross_entropy: got input of shape {list(input.shape)}, linear_weight "
            f"{list(linear_weight.shape)}{bias}, expected (N, features), (C, d1, ..., features) and "
            "(C, d1, ...); an input (features) only goes with a weight (C, features)"
        )


def _chunked_entropy(
    input: Tensor,
    linear_weight: Tensor,
    linear_bias: Tensor | None,
    target: Tensor,
    settings: tuple[Tensor | None, int, str],
    options: LinearCrossEntropyOptions,
) -> Tensor:
    """`linear_cross_entropy` of classes (C): chunks of rows, whose scores only exist while they count."""
    weight, ignore_index, reduction = settings
    number = reduction_number("linear_cross_entropy", reduction)
    rows = input if input.dim() == 2 else input.unsqueeze(0)
    places = target.reshape(-1)
    if places.shape[0] != rows.shape[0]:
        raise ValueError(
            f"linear_cross_entropy: got input of shape {list(input.shape)} and target of shape "
            f"{list(target.shape)}, expected a class number for each row"
        )
    size = rows_of_chunk(options, rows.shape[0], rows.shape[1], linear_weight.shape[0])

    def losses(x: Tensor, t: Tensor) -> Tensor:
        scores = linear(x, linear_weight, linear_bias)
        loss = cross_entropy(scores, t, weight, ignore_index=ignore_index, reduction="none")
        return loss if number == 0 else aten.sum(loss, dtype=options.acc_dtype)

    parts = [
        checkpoint(losses, x, t, use_reentrant=False, preserve_rng_state=False)
        for x, t in zip(aten.split(rows, size), aten.split(places, size), strict=True)
    ]
    if number == 0:
        return aten.cat(parts).reshape(target.shape)
    total = aten.sum(aten.stack(parts))
    if number == 1:
        counted = places != ignore_index
        total = total / (
            aten.sum(counted)
            if weight is None
            else aten.sum(weight[places[counted]], dtype=total.dtype)
        )
    return total.to(dtype=input.dtype)


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: LinearCrossEntropyOptions | None = None,
) -> Tensor:
    """Cross entropy of the scores that a linear map gives.

    Args:
        input: (N, features) or (features).
        linear_weight: (C, d1, ..., features).
        target: class numbers (N, d1, ...) or probabilities (N, C, d1, ...).
        linear_bias: (C, d1, ...).
        ignore_index: a class number that counts nothing; -100 by default.
        options: go through the rows in chunks, so that not all scores exist at a time; for class
            numbers (N) without smoothing, other calls warn and do without.

    The others are those of `cross_entropy`.
    """
    outputs = list(linear_weight.shape[:-1])
    _check_linear_shapes(input, linear_weight, linear_bias)
    if list(target.shape) == [*input.shape[:-1], *outputs] and ignore_index is not None:
        raise RuntimeError(
            "linear_cross_entropy: got ignore_index with probabilities as target, expected None"
        )
    if options is not None:
        if len(outputs) == 1 and not label_smoothing and target.dtype == int64:
            settings = (
                weight,
                -100 if ignore_index is None else ignore_index,
                reduction,
            )
            return _chunked_entropy(input, linear_weight, linear_bias, target, settings, options)
        warnings.warn(
            "linear_cross_entropy: options need class numbers (N) as target and no label_smoothing; "
            "all scores are computed at once",
            stacklevel=2,
        )
    flat = linear_weight.reshape(-1, linear_weight.shape[-1])
    scores = linear(input, flat, None if linear_bias is None else linear_bias.reshape(-1))
    return cross_entropy(
        scores.reshape([*input.shape[:-1], *outputs]),
        target,
        weight,
        ignore_index=-100 if ignore_index is None else ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )
