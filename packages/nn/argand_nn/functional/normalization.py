"""Normalization and dropout."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import argand_aten as aten
from argand_autograd import is_grad_enabled
from argand_c10 import Tensor, float32, promote_types

__all__ = [
    "alpha_dropout",
    "batch_norm",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "feature_alpha_dropout",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "local_response_norm",
    "normalize",
    "rms_norm",
]


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each channel (dimension 1) over the batch (Ioffe and Szegedy, 2015).

    In training, batch statistics are used and the running ones are updated in place; otherwise the
    running ones are used.
    """
    if training:
        channels = input.shape[1] if input.dim() > 1 or input.numel() else 0
        size = math.prod(input.shape) // channels if channels else 0
        if size == 1:
            raise ValueError(
                f"batch_norm: got input of shape {list(input.shape)} in training, expected more "
                "than 1 value per channel; use a larger batch, or eval()"
            )
    elif running_mean is None or running_var is None:
        raise RuntimeError(
            "batch_norm: got no running statistics, expected them with training=False"
        )
    if eps < 0 or (training and eps == 0):
        raise ValueError(
            f"batch_norm: got eps {eps}, expected a positive one (outside of training 0 will do)"
        )
    for name, kept in (("running_mean", running_mean), ("running_var", running_var)):
        if kept is not None and kept.requires_grad and is_grad_enabled():
            raise RuntimeError(
                f"batch_norm: got a {name} that requires grad, expected one without: running statistics get no gradients; detach() it"
            )
    return aten.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


def _computed_with(stat: Tensor | None, input: Tensor, weight: Tensor | None) -> Tensor | None:
    """Statistics in the weight's dtype, without one in the dtype that the input is computed in."""
    if stat is None:
        return None
    return stat.to(promote_types(input.dtype, float32) if weight is None else weight.dtype)


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each channel of each sample over its places (Ulyanov et al., 2016)."""
    means = _computed_with(running_mean, input, weight)
    variances = _computed_with(running_var, input, weight)
    if not use_input_stats:
        return batch_norm(input, means, variances, weight, bias, False, momentum, eps)
    if math.prod(input.shape[2:]) == 1:
        raise ValueError(
            f"instance_norm: got input of shape {list(input.shape)} in training, expected more than "
            "1 place per channel"
        )
    if (running_mean is None) != (running_var is None):
        raise ValueError(
            "instance_norm: got one of running_mean and running_var, expected both or neither"
        )
    if running_mean is None or running_var is None or means is None or variances is None:
        return aten.group_norm(input.contiguous(), input.shape[1], weight, bias, eps)
    # Each sample's channels as channels of one sample, with running statistics of their own.
    batch, channels = input.shape[:2]
    means, variances = means.repeat(batch), variances.repeat(batch)
    result = batch_norm(
        input.reshape(1, batch * channels, *input.shape[2:]),
        means,
        variances,
        None if weight is None else weight.repeat(batch),
        None if bias is None else bias.repeat(batch),
        True,
        momentum,
        eps,
    )
    running_mean.copy_(aten.mean(means.reshape(batch, channels), 0))
    running_var.copy_(aten.mean(variances.reshape(batch, channels), 0))
    return result.reshape(input.shape)


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise over the last dimensions, whose sizes are `normalized_shape` (Ba et al., 2016)."""
    return aten.layer_norm(input, normalized_shape, weight, bias, eps)


def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """Divide by the root mean square over the last dimensions (Zhang and Sennrich, 2019)."""
    return aten.rms_norm(input, normalized_shape, weight, eps)


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise groups of channels (dimension 1) of each sample (Wu and He, 2018)."""
    if input.dim() >= 2 and (
        input.shape[0] * input.shape[1] // num_groups * math.prod(input.shape[2:]) == 1
    ):
        raise ValueError(
            f"group_norm: got input of shape {list(input.shape)} and {num_groups} groups, expected "
            "more than 1 value per group"
        )
    return aten.group_norm(input, num_groups, weight, bias, eps)


def normalize(
    input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """Divide by the p-norm along `dim`, which counts as at least `eps`."""
    size = aten.clamp(aten.norm(input, p, dim, True), min=eps)
    return input / size if out is None else aten.div(input, size, out=out)


def check_probability(name: str, p: float, error: type[Exception] = ValueError) -> None:
    if not 0.0 <= p <= 1.0:
        raise error(f"{name}: got p={p}, expected a probability between 0 and 1")


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """In training, zero elements with probability `p` and scale the others by 1 / (1 - p)."""
    check_probability("dropout", p)
    if not training or p == 0.0:
        return input
    result = aten.dropout(input, p, True)
    return input.copy_(result) if inplace else result


def _feature_dropout(input: Tensor, p: float, kept: int, inplace: bool) -> Tensor:
    """One draw for each place of the first `kept` dimensions."""
    ones = aten.ones(
        list(input.shape[:kept]) + [1] * (input.dim() - kept),
        dtype=input.dtype,
        device=input.device,
    )
    result = input * aten.dropout(ones, p, True)
    return input.copy_(result) if inplace else result


def _check_channels(name: str, input: Tensor, least: int) -> None:
    if input.dim() < least:
        raise RuntimeError(
            f"{name}: got input of shape {list(input.shape)}, expected at least {least} dimensions"
        )


def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Dropout of whole channels of (N, C, L) or (C, L)."""
    check_probability("dropout1d", p)
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: got input of shape {list(input.shape)}, expected 2 or 3 dimensions"
        )
    return _feature_dropout(input, p, input.dim() - 1, inplace) if training and p > 0.0 else input


def _warn_of_dims(name: str, input: Tensor, expected: str) -> None:
    warnings.warn(
        f"{name}: got {input.dim()} dimensions, which is deprecated; expected {expected}",
        stacklevel=3,
    )


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Dropout of whole channels of (N, C, H, W) or (N, C, L)."""
    check_probability("dropout2d", p)
    if training and p > 0.0:
        _check_channels("dropout2d", input, 2)
    if input.dim() not in (3, 4):
        _warn_of_dims("dropout2d", input, "3 or 4")
    elif input.dim() == 3:
        warnings.warn(
            "dropout2d: got 3 dimensions, which are taken as (N, C, L); use dropout1d", stacklevel=2
        )
    return _feature_dropout(input, p, 2, inplace) if training and p > 0.0 else input


def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Dropout of whole channels of (N, C, D, H, W) or (C, D, H, W)."""
    check_probability("dropout3d", p)
    if input.dim() not in (4, 5):
        _warn_of_dims("dropout3d", input, "4 or 5")
    kept = 2 if input.dim() == 5 else 1
    if training and p > 0.0:
        _check_channels("dropout3d", input, kept)
    return _feature_dropout(input, p, kept, inplace) if training and p > 0.0 else input


def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Dropout that keeps mean and variance of SELU activations (Klambauer et al., 2017)."""
    check_probability("alpha_dropout", p)
    if not training or p == 0.0:
        return input
    return _alpha_dropout(input, p, list(input.shape), inplace)


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """`alpha_dropout` of whole channels (dimension 1)."""
    check_probability("feature_alpha_dropout", p)
    if not training or p == 0.0:
        return input
    if input.dim() < 2 and p < 1.0:
        raise RuntimeError(
            f"feature_alpha_dropout: got input of shape {list(input.shape)}, expected at least 2 "
            "dimensions"
        )
    shape = list(input.shape[:2]) + [1] * (input.dim() - 2)
    return _alpha_dropout(input, p, shape, inplace)


def _alpha_dropout(input: Tensor, p: float, shape: list[int], inplace: bool) -> Tensor:
    """`shape` is that of the decisions, which broadcast to the input."""
    saturation = -1.7580993408473766  # -(scale * alpha) of SELU
    if p == 1.0:
        result = input * aten.zeros([], dtype=input.dtype, device=input.device)
    else:
        keep = aten.bernoulli(aten.full(shape, 1.0 - p, dtype=input.dtype, device=input.device))
        scale = ((1.0 - p) * (1.0 + p * saturation**2)) ** -0.5
        shift = -scale * saturation * p
        result = (input * keep + saturation * (1.0 - keep)) * scale + shift
    return input.copy_(result) if inplace else result


def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """(N, C, ...) divided by (k + alpha * mean of squares over `size` near channels) ** beta.

    The channels outside count as zeros (Krizhevsky et al. 2012).
    """
    if input.dim() < 3:
        raise ValueError(
            f"local_response_norm: got input of shape {list(input.shape)}, expected (N, C, ...)"
        )
    if input.numel() == 0:
        return input
    squares = aten.flatten(input * input, 2)
    padded = aten.constant_pad_nd(squares, [0, 0, size // 2, (size - 1) // 2], 0.0)
    means = aten.avg_pool2d(padded, [size, 1], [1, 1]).reshape(input.shape)
    return input / (means * alpha + k) ** beta
