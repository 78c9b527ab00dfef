"""Batch norms in evaluation, merged into the linear map before them."""

from __future__ import annotations

import copy
from typing import Any

import argand_aten as aten
from argand_c10 import Parameter, Tensor

__all__ = [
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
]


def _fused(
    weight: Tensor,
    bias: Tensor | None,
    running: tuple[Tensor, Tensor, float],
    bn_weight: Tensor | None,
    bn_bias: Tensor | None,
    dim: int,
) -> tuple[Parameter, Parameter]:
    """Weight and bias after (mean, variance, eps) and the norm's own; outputs lie in `dim`."""
    mean, variance, eps = running
    scale = aten.rsqrt(variance + eps)
    if bn_weight is not None:
        scale = scale * bn_weight
    shift = -mean if bias is None else bias - mean
    shift = shift * scale
    if bn_bias is not None:
        shift = shift + bn_bias
    shape = [1] * weight.dim()
    shape[dim] = -1
    return (
        Parameter((weight * scale.reshape(shape)).to(weight.dtype).detach(), weight.requires_grad),
        Parameter(
            shift.to(weight.dtype if bias is None else bias.dtype).detach(),
            bias is not None and bias.requires_grad,
        ),
    )


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a convolution that a batch norm follows.

    Args:
        conv_w: the convolution's weight (out, in, ...); (in, out, ...) with `transpose`.
        conv_b: its bias.
        bn_rm: running mean of the norm.
        bn_rv: running variance.
        bn_eps: added to the variance.
        bn_w: weight of the norm.
        bn_b: bias of the norm.
        transpose: whether it is a transposed convolution.
    """
    running = (bn_rm, bn_rv, bn_eps)
    return _fused(conv_w, conv_b, running, bn_w, bn_b, 1 if transpose else 0)


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a linear map that a batch norm follows; see `fuse_conv_bn_weights`."""
    return _fused(linear_w, linear_b, (bn_rm, bn_rv, bn_eps), bn_w, bn_b, 0)


def _check_eval(name: str, layer: Any, bn: Any) -> None:
    if layer.training or bn.training:
        raise AssertionError(f"{name}: got a module in training, expected eval() on both")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError(f"{name}: got a batch norm without running statistics, expected some")


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A copy of `conv` that computes bn(conv(x)) in evaluation."""
    _check_eval("fuse_conv_bn_eval", conv, bn)
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        conv.weight,
        conv.bias,
        bn.running_mean,
        bn.running_var,
        bn.eps,
        bn.weight,
        bn.bias,
        transpose,
    )
    return fused


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A copy of `linear` that computes bn(linear(x)) in evaluation."""
    _check_eval("fuse_linear_bn_eval", linear, bn)
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError(
            f"fuse_linear_bn_eval: got {linear.out_features} outputs and {bn.num_features} features, "
            "expected as many, or 1 feature"
        )
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        linear.weight,
        linear.bias,
        bn.running_mean,
        bn.running_var,
        bn.eps,
        bn.weight,
        bn.bias,
    )
    return fused
