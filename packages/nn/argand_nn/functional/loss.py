"""Loss functions."""

from __future__ import annotations

import math
import warnings

import argand_aten as aten
from argand_c10 import Tensor

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
    input: Tensor, target: Tensor, reduction: str = "mean", weight: Tensor | None = None
) -> Tensor:
    """(input - target) ** 2."""
    _warn_broadcast("mse_loss", input, target)
    if weight is None:
        return aten.mse_loss(input, target, reduction_number("mse_loss", reduction))
    difference = input - target
    loss = difference * difference * weight
    if reduction == "mean":
        return aten.sum(loss) / aten.sum(weight.expand(loss.shape))
    return _reduce("mse_loss", loss, reduction)


def l1_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", weight: Tensor | None = None
) -> Tensor:
    """|input - target|."""
    _warn_broadcast("l1_loss", input, target)
    loss = aten.abs(input - target)
    if weight is None:
        return _reduce("l1_loss", loss, reduction)
    loss = loss * weight
    if reduction == "mean":
        return aten.sum(loss) / aten.sum(weight.expand(loss.shape))
    return _reduce("l1_loss", loss, reduction)


def smooth_l1_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0
) -> Tensor:
    """Quadratic below `beta`, linear above: 0.5 d**2 / beta, or d - 0.5 beta, with d = |error|."""
    if beta < 0:
        raise ValueError(f"smooth_l1_loss: got beta {beta}, expected one that is not negative")
    if beta == 0:
        return l1_loss(input, target, reduction)
    _warn_broadcast("smooth_l1_loss", input, target)
    error = aten.abs(input - target)
    loss = aten.where(error < beta, error * error * (0.5 / beta), error - 0.5 * beta)
    return _reduce("smooth_l1_loss", loss, reduction)


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
    error = aten.abs(input - target)
    loss = aten.where(error <= delta, error * error * 0.5, delta * (error - 0.5 * delta))
    if weight is None:
        return _reduce("huber_loss", loss, reduction)
    loss = loss * weight
    if reduction == "mean":
        return aten.sum(loss) / aten.sum(weight.expand(loss.shape))
    return _reduce("huber_loss", loss, reduction)


def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """-(target * log(input) + (1 - target) * log(1 - input)); logarithms are at least -100."""
    _check_same_shape("binary_cross_entropy", input, target)
    log_input = aten.clamp(aten.log(input), min=-100.0)
    log_other = aten.clamp(aten.log1p(-input), min=-100.0)
    loss = (target - 1) * log_other - target * log_input
    if weight is not None:
        loss = loss * weight
    return _reduce("binary_cross_entropy", loss, reduction)


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
    log_weight = 1 if pos_weight is None else (pos_weight - 1) * target + 1
    loss = (1 - target) * input - log_weight * logsigmoid(input)
    if weight is not None:
        loss = loss * weight
    return _reduce("binary_cross_entropy_with_logits", loss, reduction)


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
    if log_target:
        loss = aten.exp(target) * (target - input)
    else:
        # 0 * log(0) counts as 0.
        positive = target > 0
        log_of = aten.log(aten.where(positive, target, aten.ones_like(target)))
        loss = target * log_of - target * input
    if reduction == "batchmean":
        return aten.sum(loss) / input.shape[0] if input.dim() else aten.sum(loss)
    return _reduce("kl_div", loss, reduction)


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
    if input.dim() == 1:
        result = aten.nll_loss(
            input.unsqueeze(0), target.unsqueeze(0), weight, number, ignore_index
        )
        return result.squeeze(0) if number == 0 else result
    if input.dim() == 2:
        return aten.nll_loss(input, target, weight, number, ignore_index)
    classes = input.shape[1]
    rows = input.movedim(1, -1).reshape(-1, classes)
    result = aten.nll_loss(rows, target.reshape(-1), weight, number, ignore_index)
    return result.reshape(target.shape) if number == 0 else result


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
    class_dim = 0 if input.dim() == 1 else 1
    log_probs = aten.log_softmax(input, class_dim)
    if target.is_floating_point():
        _check_same_shape("cross_entropy", input, target)
        return _probability_loss(log_probs, target, weight, reduction, label_smoothing, class_dim)
    loss = nll_loss(log_probs, target, weight, ignore_index=ignore_index, reduction=reduction)
    if label_smoothing == 0.0:
        return loss
    smooth = _smooth_loss(log_probs, target, weight, ignore_index, reduction, class_dim)
    classes = input.shape[class_dim]
    return (1.0 - label_smoothing) * loss + (label_smoothing / classes) * smooth


def _class_weight(weight: Tensor, log_probs: Tensor, class_dim: int) -> Tensor:
    return weight.reshape([-1] + [1] * (log_probs.dim() - class_dim - 1))


def _probability_loss(
    log_probs: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: str,
    label_smoothing: float,
    class_dim: int,
) -> Tensor:
    if label_smoothing > 0.0:
        classes = log_probs.shape[class_dim]
        target = target * (1.0 - label_smoothing) + label_smoothing / classes
    loss = log_probs * target
    if weight is not None:
        loss = loss * _class_weight(weight, log_probs, class_dim)
    loss = -aten.sum(loss, class_dim)
    if reduction == "mean":
        return aten.sum(loss) / max(loss.numel(), 1)
    return _reduce("cross_entropy", loss, reduction)


def _smooth_loss(
    log_probs: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    class_dim: int,
) -> Tensor:
    """The loss of an even target: all classes together, averaged as nll_loss averages."""
    scores = -log_probs
    if weight is not None:
        scores = scores * _class_weight(weight, log_probs, class_dim)
    loss = aten.sum(scores, class_dim)
    ignored = target == ignore_index
    loss = aten.masked_fill(loss, ignored, 0.0)
    if reduction != "mean":
        return _reduce("cross_entropy", loss, reduction)
    if weight is None:
        count = aten.sum((~ignored).to(loss.dtype))
    else:
        known = aten.masked_fill(target, ignored, 0)
        factors = aten.index_select(weight, 0, known.reshape(-1)).reshape(target.shape)
        count = aten.sum(aten.masked_fill(factors, ignored, 0.0))
    return aten.sum(loss) / count


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
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """`input` where target is 1, max(0, margin - input) where it is -1."""
    zeros = aten.zeros_like(input)
    apart = aten.where(target != 1, aten.clamp(margin - input, min=0.0), zeros)
    together = aten.where(target != -1, input, zeros)
    return _reduce("hinge_embedding_loss", apart + together, reduction)


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """max(0, -target * (input1 - input2) + margin)."""
    loss = aten.clamp(-target * (input1 - input2) + margin, min=0.0)
    return _reduce("margin_ranking_loss", loss, reduction)


def soft_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """log(1 + exp(-target * input))."""
    return _reduce("soft_margin_loss", -logsigmoid(target * input), reduction)


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """1 - cos where target is 1, max(0, cos - margin) where it is -1."""
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
    reduction: str = "mean",
) -> Tensor:
    """max(0, distance(anchor, positive) - distance(anchor, negative) + margin)."""
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
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Tensor:
    """Negative log likelihood of Poisson counts; `full` adds Stirling's term."""
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
