"""Loss functions."""

from __future__ import annotations

import math
import warnings

import argand_aten as aten
from argand_autograd import is_autocast_enabled
from argand_c10 import Tensor, bfloat16, float16
from argand_nn.functional.activation import logsigmoid
from argand_nn.functional.linear_maps import cosine_similarity, pairwise_distance

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cosine_embedding_loss",
    "cross_entropy",
    "gaussian_nll_loss",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "margin_ranking_loss",
    "mse_loss",
    "nll_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
]

_REDUCTIONS = ("none", "mean", "sum")


def reduction_number(name: str, reduction: str) -> int:
    """The operators' number of a reduction: none 0, mean 1, sum 2."""
    if reduction not in _REDUCTIONS:
        raise ValueError(f"{name}: got reduction {reduction!r}, expected one of {_REDUCTIONS}")
    return _REDUCTIONS.index(reduction)


def _reduce(name: str, loss: Tensor, reduction: str) -> Tensor:
    number = reduction_number(name, reduction)
    if number == 0:
        return loss
    return aten.mean(loss) if number == 1 else aten.sum(loss)


def _wide(*tensors: Tensor) -> tuple[Tensor, ...]:
    """In an autocast region, float16 and bfloat16 tensors in float32: what operators with the policy "float32" get."""
    return tuple(
        t.float() if t.dtype in (float16, bfloat16) and is_autocast_enabled(t.device.type) else t
        for t in tensors
    )


def _weighted(name: str, loss: Tensor, weight: Tensor, reduction: str) -> Tensor:
    """`loss` times `weight`, reduced; the mean is divided by the sum of the weights."""
    loss = loss * weight
    if reduction == "mean":
        return aten.sum(loss) / aten.sum(weight.expand(loss.shape))
    return _reduce(name, loss, reduction)


def _check_same_shape(name: str, input: Tensor, target: Tensor) -> None:
    if input.shape != target.shape:
        raise ValueError(
            f"{name}: got input of shape {list(input.shape)} and target of shape "
            f"{list(target.shape)}, expected equal shapes"
        )


def _warn_broadcast(name: str, input: Tensor, target: Tensor) -> None:
    if input.shape != target.shape:
        warnings.warn(
            f"{name}: input of shape {list(input.shape)} and target of shape {list(target.shape)} "
            "are broadcast to one shape; this is seldom intended",
            stacklevel=3,
        )


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: None = None,
    reduce: None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """(input - target) ** 2."""
    _no_legacy("mse_loss", size_average, reduce)
    _warn_broadcast("mse_loss", input, target)
    number = reduction_number("mse_loss", reduction)
    if weight is None:
        return aten.mse_loss(input, target, number)
    return _weighted("mse_loss", aten.mse_loss(input, target, 0), weight, reduction)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: None = None,
    reduce: None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """|input - target|."""
    _no_legacy("l1_loss", size_average, reduce)
    _warn_broadcast("l1_loss", input, target)
    number = reduction_number("l1_loss", reduction)
    if weight is None:
        return aten.l1_loss(input, target, number)
    return _weighted("l1_loss", aten.l1_loss(input, target, 0), weight, reduction)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: None = None,
    reduce: None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Quadratic below `beta`, linear above: 0.5 d**2 / beta, or d - 0.5 beta, with d = |error|."""
    _no_legacy("smooth_l1_loss", size_average, reduce)
    if beta < 0:
        raise ValueError(f"smooth_l1_loss: got beta {beta}, expected one that is not negative")
    _warn_broadcast("smooth_l1_loss", input, target)
    number = reduction_number("smooth_l1_loss", reduction)
    return aten.smooth_l1_loss(input, target, number, beta)


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """Quadratic below `delta`, linear above: 0.5 d**2, or delta * (d - 0.5 delta)."""
    if delta <= 0:
        raise ValueError(f"huber_loss: got delta {delta}, expected a positive one")
    _warn_broadcast("huber_loss", input, target)
    number = reduction_number("huber_loss", reduction)
    if weight is None:
        return aten.huber_loss(input, target, number, delta)
    # Unlike the other losses' weights, these do not enter the mean's divisor, as in PyTorch.
    return _reduce("huber_loss", aten.huber_loss(input, target, 0, delta) * weight, reduction)


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: None = None,
    reduce: None = None,
    reduction: str = "mean",
) -> Tensor:
    """-(target * log(input) + (1 - target) * log(1 - input)); logarithms are at least -100."""
    _no_legacy("binary_cross_entropy", size_average, reduce)
    _check_same_shape("binary_cross_entropy", input, target)
    number = reduction_number("binary_cross_entropy", reduction)
    return aten.binary_cross_entropy(input, target, weight, number)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: None = None,
    reduce: None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Binary cross entropy of sigmoid(input), without overflow; `pos_weight` scales positives."""
    _no_legacy("binary_cross_entropy_with_logits", size_average, reduce)
    _check_same_shape("binary_cross_entropy_with_logits", input, target)
    number = reduction_number("binary_cross_entropy_with_logits", reduction)
    return aten.binary_cross_entropy_with_logits(input, target, weight, pos_weight, number)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: None = None,
    reduce: None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """target * (log(target) - input), with `input` log-probabilities.

    `reduction` may also be batchmean: the sum divided by the size of dimension 0.
    """
    _no_legacy("kl_div", size_average, reduce)
    if reduction == "batchmean":
        total = aten.kl_div(input, target, 2, log_target=log_target)
        return total / input.shape[0] if input.dim() else total
    number = reduction_number("kl_div", reduction)
    return aten.kl_div(input, target, number, log_target=log_target)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: None = None,
    ignore_index: int = -100,
    reduce: None = None,
    reduction: str = "mean",
) -> Tensor:
    """Negative log likelihood of the target classes.

    Args:
        input: log-probabilities (N, C), (C) or (N, C, d1, ...).
        target: class numbers (N), () or (N, d1, ...).
        weight: a factor for each class; the mean is then weighted.
        ignore_index: a class number that counts nothing.
        reduction: none, mean or sum.
    """
    _no_legacy("nll_loss", size_average, reduce)
    _check_class_shapes("nll_loss", input, target)
    number = reduction_number("nll_loss", reduction)
    return aten.nll_loss_nd(input, target, weight, number, ignore_index)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: None = None,
    ignore_index: int = -100,
    reduce: None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Cross entropy of softmax(input) over dimension 1 (0 if 1-d).

    Args:
        input: unnormalised scores (N, C), (C) or (N, C, d1, ...).
        target: class numbers (N), () or (N, d1, ...), or probabilities of the shape of `input`.
        weight: a factor for each class; the mean is then weighted.
        ignore_index: a class number that counts nothing.
        reduction: none, mean or sum.
        label_smoothing: share of the target spread evenly over all classes, in [0, 1].
    """
    _no_legacy("cross_entropy", size_average, reduce)
    if not 0.0 <= label_smoothing <= 1.0:
        raise ValueError(
            f"cross_entropy: got label_smoothing {label_smoothing}, expected one in [0, 1]"
        )
    if target.is_floating_point():
        _check_same_shape("cross_entropy", input, target)
    else:
        _check_class_shapes("cross_entropy", input, target)
    number = reduction_number("cross_entropy", reduction)
    return aten.cross_entropy_loss(input, target, weight, number, ignore_index, label_smoothing)


def _check_class_shapes(name: str, input: Tensor, target: Tensor) -> None:
    shape = list(input.shape)
    expected = shape[1:] if len(shape) == 1 else shape[:1] + shape[2:]
    if not shape or list(target.shape) != expected:
        raise ValueError(
            f"{name}: got input of shape {shape} and target of shape {list(target.shape)}, expected "
            "scores (N, C, ...) and class numbers (N, ...)"
        )


def _no_legacy(name: str, size_average: object, reduce: object) -> None:
    if size_average is not None or reduce is not None:
        raise TypeError(
            f"{name}: got size_average or reduce, expected neither; use reduction='none', 'mean' or "
            "'sum'"
        )


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: None = None,
    reduce: None = None,
    reduction: str = "mean",
) -> Tensor:
    """`input` where target is 1, max(0, margin - input) where it is -1."""
    _no_legacy("hinge_embedding_loss", size_average, reduce)
    input, target = _wide(input, target)
    zeros = aten.zeros_like(input)
    apart = aten.where(target != 1, aten.clamp(margin - input, min=0.0), zeros)
    together = aten.where(target != -1, input, zeros)
    return _reduce("hinge_embedding_loss", apart + together, reduction)


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    size_average: None = None,
    reduce: None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, -target * (input1 - input2) + margin)."""
    _no_legacy("margin_ranking_loss", size_average, reduce)
    input1, input2, target = _wide(input1, input2, target)
    loss = aten.clamp(-target * (input1 - input2) + margin, min=0.0)
    return _reduce("margin_ranking_loss", loss, reduction)


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: None = None,
    reduce: None = None,
    reduction: str = "mean",
) -> Tensor:
    """log(1 + exp(-target * input))."""
    _no_legacy("soft_margin_loss", size_average, reduce)
    input, target = _wide(input, target)
    return _reduce("soft_margin_loss", -logsigmoid(target * input), reduction)


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    size_average: None = None,
    reduce: None = None,
    reduction: str = "mean",
) -> Tensor:
    """1 - cos where target is 1, max(0, cos - margin) where it is -1."""
    _no_legacy("cosine_embedding_loss", size_average, reduce)
    input1, input2, target = _wide(input1, input2, target)
    cosine = cosine_similarity(input1, input2, -1)
    zeros = aten.zeros_like(cosine)
    together = aten.where(target == 1, 1 - cosine, zeros)
    apart = aten.where(target == -1, aten.clamp(cosine - margin, min=0.0), zeros)
    return _reduce("cosine_embedding_loss", together + apart, reduction)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: None = None,
    reduce: None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, distance(anchor, positive) - distance(anchor, negative) + margin)."""
    _no_legacy("triplet_margin_loss", size_average, reduce)
    anchor, positive, negative = _wide(anchor, positive, negative)
    near = pairwise_distance(anchor, positive, p, eps)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = aten.minimum(far, pairwise_distance(positive, negative, p, eps))
    return _reduce("triplet_margin_loss", aten.clamp(near - far + margin, min=0.0), reduction)


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: None = None,
    eps: float = 1e-8,
    reduce: None = None,
    reduction: str = "mean",
) -> Tensor:
    """Negative log likelihood of Poisson counts; `full` adds Stirling's term."""
    _no_legacy("poisson_nll_loss", size_average, reduce)
    input, target = _wide(input, target)
    if log_input:
        loss = aten.exp(input) - target * input
    else:
        loss = input - target * aten.log(input + eps)
    if full:
        known = aten.clamp(target, min=1.0)
        stirling = known * aten.log(known) - known + 0.5 * aten.log(2 * math.pi * known)
        loss = loss + aten.where(target > 1, stirling, aten.zeros_like(stirling))
    return _reduce("poisson_nll_loss", loss, reduction)


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Negative log likelihood of a Gaussian with mean `input` and variance `var`."""
    if isinstance(var, float | int):
        var = aten.full_like(input.detach(), var)
    elif var.dim() == input.dim() - 1 and var.shape == input.shape[:-1]:
        var = var.unsqueeze(-1)
    if bool(aten.any(var < 0)):
        raise ValueError("gaussian_nll_loss: got a negative variance, expected none")
    # The floor changes the value of the variance, not its gradient.
    var = var + (aten.clamp(var, min=eps) - var).detach()
    difference = input - target
    loss = 0.5 * (aten.log(var) + difference * difference / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return _reduce("gaussian_nll_loss", loss, reduction)
