"""Loss functions."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import TypeVar

import argand_aten as aten
from argand_autograd import is_autocast_enabled, is_grad_enabled
from argand_c10 import Tensor, bfloat16, float16, int64, uint8
from argand_c10.errors import DTypeError, ShapeError, require_tensors
from argand_nn.functional.activation import logsigmoid
from argand_nn.functional.linear_maps import pairwise_distance

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cosine_embedding_loss",
    "cross_entropy",
    "ctc_loss",
    "gaussian_nll_loss",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "margin_ranking_loss",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]

# Lengths, all of one kind.
_LengthsT = TypeVar("_LengthsT", Tensor, Sequence[int])

_REDUCTIONS = ("none", "mean", "sum")


def reduction_number(name: str, reduction: str) -> int:
    """The operators' number of a reduction: none 0, mean 1, sum 2."""
    if reduction not in _REDUCTIONS:
        raise ValueError(f"{name}: got reduction {reduction!r}, expected one of {_REDUCTIONS}")
    return _REDUCTIONS.index(reduction)


def legacy_reduction(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """The reduction that the deprecated arguments mean, if one of them is given."""
    if size_average is None and reduce is None:
        return reduction
    warnings.warn(
        "size_average and reduce are deprecated; use reduction='none', 'mean' or 'sum'",
        stacklevel=3,
    )
    if reduce is not None and not reduce:
        return "none"
    return "mean" if size_average is None or size_average else "sum"


def _reduce(name: str, loss: Tensor, reduction: str) -> Tensor:
    number = reduction_number(name, reduction)
    if number == 0:
        return loss
    return aten.mean(loss) if number == 1 else aten.sum(loss)


def _wide(name: str, **tensors: Tensor) -> tuple[Tensor, ...]:
    """In an autocast region, float16 and bfloat16 tensors in float32: what operators with the policy "float32" get."""
    require_tensors(name, **tensors)
    return tuple(
        t.float() if t.dtype in (float16, bfloat16) and is_autocast_enabled(t.device.type) else t
        for t in tensors.values()
    )


def _weighted(name: str, loss: Tensor, weight: Tensor, reduction: str) -> Tensor:
    """`loss` times `weight`, reduced; the mean is divided by the sum of the weights."""
    _check_weight(name, loss, weight)
    loss = loss * weight
    if reduction == "mean":
        return aten.sum(loss) / aten.sum(weight)
    return _reduce(name, loss, reduction)


def _check_constant(name: str, **tensors: Tensor | None) -> None:
    """Raise RuntimeError if one of them asks for a gradient, which `name` does not have."""
    given = {argument: tensor for argument, tensor in tensors.items() if tensor is not None}
    require_tensors(name, **given)
    for argument, tensor in given.items():
        if tensor.requires_grad and is_grad_enabled():
            raise RuntimeError(
                f"{name}: got {argument} that requires a gradient, which is not differentiable; detach it first"
            )


def _check_weight(name: str, loss: Tensor, weight: Tensor) -> None:
    if weight.shape != loss.shape:
        raise ValueError(
            f"{name}: got weight of shape {list(weight.shape)}, expected {list(loss.shape)}, one "
            "number an element"
        )


def _check_same_shape(name: str, input: Tensor, target: Tensor) -> None:
    if input.shape != target.shape:
        raise ValueError(
            f"{name}: got input of shape {list(input.shape)} and target of shape "
            f"{list(target.shape)}, expected equal shapes"
        )


def _check_same_dims(name: str, *tensors: Tensor) -> None:
    if len({t.dim() for t in tensors}) > 1:
        raise RuntimeError(
            f"{name}: got tensors of {', '.join(str(t.dim()) for t in tensors)} dimensions, expected as many in each"
        )


def _broadcast(name: str, input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Both of one shape, so that their dtypes count alike."""
    if input.shape == target.shape:
        return input, target
    warnings.warn(
        f"{name}: input of shape {list(input.shape)} and target of shape {list(target.shape)} "
        "are broadcast to one shape; this is seldom intended",
        stacklevel=3,
    )
    try:
        input, target = aten.broadcast_tensors(input, target)
    except ShapeError:
        raise ShapeError(
            f"{name}: got input of shape {list(input.shape)} and target of shape {list(target.shape)}, "
            "expected shapes that broadcast"
        ) from None
    return input, target


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """(input - target) ** 2."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    input, target = _broadcast("mse_loss", input, target)
    number = reduction_number("mse_loss", reduction)
    if weight is None:
        return aten.mse_loss(input, target, number)
    return _weighted("mse_loss", aten.mse_loss(input, target, 0), weight, reduction)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """|input - target|."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    input, target = _broadcast("l1_loss", input, target)
    number = reduction_number("l1_loss", reduction)
    if weight is None:
        return aten.l1_loss(input, target, number)
    return _weighted("l1_loss", aten.l1_loss(input, target, 0), weight, reduction)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Quadratic below `beta`, linear above: 0.5 d**2 / beta, or d - 0.5 beta, with d = |error|."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    if beta < 0:
        raise RuntimeError(f"smooth_l1_loss: got beta {beta}, expected one that is not negative")
    input, target = _broadcast("smooth_l1_loss", input, target)
    number = reduction_number("smooth_l1_loss", reduction)
    return aten.smooth_l1_loss(input, target, number, beta)


def check_delta(name: str, delta: float) -> None:
    """Raise TypeError unless it is a real number."""
    if not isinstance(delta, (float, int)):
        raise TypeError(
            f"{name}: got delta of type {type(delta).__name__}, expected a float or int"
        )


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """Quadratic below `delta`, linear above: 0.5 d**2, or delta * (d - 0.5 delta)."""
    check_delta("huber_loss", delta)
    if delta <= 0:
        raise RuntimeError(f"huber_loss: got delta {delta}, expected a positive one")
    input, target = _broadcast("huber_loss", input, target)
    number = reduction_number("huber_loss", reduction)
    if weight is None:
        return aten.huber_loss(input, target, number, delta)
    # Unlike the other losses' weights, these do not enter the mean's divisor, as in PyTorch.
    loss = aten.huber_loss(input, target, 0, delta)
    _check_weight("huber_loss", loss, weight)
    return _reduce("huber_loss", loss * weight, reduction)


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """-(target * log(input) + (1 - target) * log(1 - input)); logarithms are at least -100."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    _check_same_shape("binary_cross_entropy", input, target)
    number = reduction_number("binary_cross_entropy", reduction)
    if weight is not None:
        _check_constant("binary_cross_entropy", weight=weight)
    return aten.binary_cross_entropy(input, target, weight, number)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Binary cross entropy of sigmoid(input), without overflow; `pos_weight` scales positives."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    _check_same_shape("binary_cross_entropy_with_logits", input, target)
    number = reduction_number("binary_cross_entropy_with_logits", reduction)
    if weight is not None or pos_weight is not None:
        name = "binary_cross_entropy_with_logits"
        _check_constant(name, weight=weight, pos_weight=pos_weight)
    return aten.binary_cross_entropy_with_logits(input, target, weight, pos_weight, number)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """target * (log(target) - input), with `input` log-probabilities.

    `reduction` may also be batchmean: the sum divided by the size of dimension 0.
    """
    if reduction == "mean" and size_average is None and reduce is None:
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size; "
            "'batchmean' divides only by the batch size, and aligns with the KL div math definition",
            stacklevel=2,
        )
    reduction = legacy_reduction(size_average, reduce, reduction)
    if reduction == "batchmean":
        total = aten.kl_div(input, target, 2, log_target=log_target)
        return total / input.shape[0] if input.dim() else total
    number = reduction_number("kl_div", reduction)
    return aten.kl_div(input, target, number, log_target=log_target)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
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
    require_tensors("nll_loss", input=input, target=target)
    reduction = legacy_reduction(size_average, reduce, reduction)
    target = _class_numbers("nll_loss", input, target)
    number = reduction_number("nll_loss", reduction)
    if weight is not None:
        _check_constant("nll_loss", weight=weight)
    if input.ndim > 2:
        input = aten.ops._gradient_in_format(
            input, -1
        )  # classes are last where the loss reads them
    return aten.nll_loss(input, target, weight, number, ignore_index)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
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
    require_tensors("cross_entropy", input=input, target=target)
    reduction = legacy_reduction(size_average, reduce, reduction)
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(
            f"cross_entropy: got label_smoothing {label_smoothing}, expected one in [0, 1]"
        )
    if input.dim() == 0 and (target.dim() or target.is_floating_point()):
        raise IndexError("cross_entropy: got scores of shape (), expected a dimension of classes")
    if target.shape != input.shape:
        target = _class_numbers("cross_entropy", input, target)
        if weight is not None:
            _check_constant("cross_entropy", weight=weight)
    elif not target.is_floating_point():
        raise RuntimeError(
            f"cross_entropy: got a target of dtype {target.dtype} in the shape of the input, expected "
            "probabilities, which have a floating-point dtype"
        )
    elif ignore_index >= 0:
        raise RuntimeError(
            f"cross_entropy: got ignore_index {ignore_index} and probabilities, expected class numbers"
        )
    number = reduction_number("cross_entropy", reduction)
    return aten.cross_entropy_loss(input, target, weight, number, ignore_index, label_smoothing)


def _class_numbers(name: str, input: Tensor, target: Tensor) -> Tensor:
    """`target` as (N, ...) for scores (N, C, ...), as () for scores (C), which may go with (1)."""
    shape, given = list(input.shape), list(target.shape)
    if len(shape) == 1 and given == [1]:
        target = target.reshape([])
    elif not shape or given != (shape[1:] if len(shape) == 1 else shape[:1] + shape[2:]):
        batches_differ = len(given) == 1 if len(shape) == 1 else not shape or given[:1] != shape[:1]
        raise (ValueError if batches_differ else RuntimeError)(
            f"{name}: got input of shape {shape} and target of shape {given}, expected scores "
            "(N, C, ...) and class numbers (N, ...)"
        )
    if target.dtype not in (int64, uint8):
        raise DTypeError(f"{name}: got a target of dtype {target.dtype}, expected int64 or uint8")
    return target


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: _LengthsT,
    target_lengths: _LengthsT,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Connectionist temporal classification (Graves et al. 2006).

    Args:
        log_probs: logarithms of probabilities of the classes, (T, N, C) or (T, C).
        targets: class numbers without blanks, (N, S), or of all targets in one row.
        input_lengths: how many of the T steps count, (N).
        target_lengths: lengths of the targets, (N).
        blank: the class that stands for no label.
        reduction: none, mean (of losses divided by the targets' lengths) or sum.
        zero_infinity: the loss and the gradient of targets that do not fit are 0.
    """
    return aten.ctc_loss(
        log_probs,
        targets,
        input_lengths,
        target_lengths,
        blank,
        reduction_number("ctc_loss", reduction),
        zero_infinity,
    )


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """`input` where target is 1, max(0, margin - input) where it is -1."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    input, target = _wide("hinge_embedding_loss", input=input, target=target)
    zeros = aten.zeros_like(input)
    margins = aten.full_like(input, margin)  # of integers, an integer
    apart = aten.where(target != 1, aten.clamp(margins - input, min=0), zeros)
    together = aten.where(target != -1, input, zeros)
    return _reduce("hinge_embedding_loss", apart + together, reduction)


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, -target * (input1 - input2) + margin)."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    input1, input2, target = _wide(
        "margin_ranking_loss", input1=input1, input2=input2, target=target
    )
    _check_same_dims("margin_ranking_loss", input1, input2, target)
    loss = aten.clamp(-target * (input1 - input2) + margin, min=0.0)
    return _reduce("margin_ranking_loss", loss, reduction)


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """log(1 + exp(-target * input))."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    input, target = _wide("soft_margin_loss", input=input, target=target)
    if not input.is_floating_point():
        raise RuntimeError(
            f"soft_margin_loss: got input of dtype {input.dtype}, expected a floating-point dtype"
        )
    if aten.broadcast_shapes(input.shape, target.shape) != input.shape:
        raise RuntimeError(
            f"soft_margin_loss: got target of shape {list(target.shape)}, expected one that "
            f"broadcasts to that of input, {list(input.shape)}"
        )
    # logsigmoid of the product, which would be row-major
    x = input if reduction == "none" else aten.ops._gradient_in_own_format(input)
    loss = aten.softplus(-(x * target.to(input.dtype)), 1, 40)
    return _reduce("soft_margin_loss", loss, reduction)


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """1 - cos where target is 1, max(0, cos - margin) where it is -1."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    input1, input2, target = _wide(
        "cosine_embedding_loss", input1=input1, input2=input2, target=target
    )
    if target.dim() > 1 or {input1.dim(), input2.dim()} != {target.dim() + 1}:
        raise RuntimeError(
            f"cosine_embedding_loss: got inputs of {input1.dim()} and {input2.dim()} dimensions and a target of "
            f"{target.dim()}, expected matrices and a row of targets, or vectors and one target"
        )
    tiny = 1e-12
    squares = (aten.sum(input1 * input1, -1) + tiny) * (aten.sum(input2 * input2, -1) + tiny)
    cosine = aten.sum(input1 * input2, -1) / aten.sqrt(squares)
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
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, distance(anchor, positive) - distance(anchor, negative) + margin)."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    if margin <= 0:
        raise ValueError(f"triplet_margin_loss: got margin {margin}, expected a positive one")
    anchor, positive, negative = _wide(
        "triplet_margin_loss", anchor=anchor, positive=positive, negative=negative
    )
    _check_same_dims("triplet_margin_loss", anchor, positive, negative)
    near = pairwise_distance(anchor, positive, p, eps)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = aten.minimum(far, pairwise_distance(positive, negative, p, eps))
    return _reduce("triplet_margin_loss", aten.clamp(near - far + margin, min=0.0), reduction)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """max(0, distance(anchor, positive) - distance(anchor, negative) + margin).

    `distance_function` is the Euclidean distance by default; with `swap`, the distance of positive
    and negative counts if it is the smaller one.
    """
    if margin <= 0:
        raise ValueError(
            f"triplet_margin_with_distance_loss: got margin {margin}, expected a positive one"
        )
    _check_same_dims("triplet_margin_with_distance_loss", anchor, positive, negative)
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = aten.minimum(far, distance(positive, negative))
    loss = aten.clamp(near - far + margin, min=0.0)
    return _reduce("triplet_margin_with_distance_loss", loss, reduction)


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Mean over classes other than the target's of max(0, margin - score of target + score)**p.

    Args:
        input: scores (N, C), (C) or ().
        target: class numbers (N), or of one class.
        p: 1 or 2.
        margin: by which the target's score should be the highest.
        weight: a factor for each target class (C).
        reduction: none, mean or sum.
    """
    require_tensors("multi_margin_loss", input=input, target=target)
    reduction = legacy_reduction(size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueError(f"multi_margin_loss: got p={p}, expected 1 or 2")
    if weight is not None and weight.dim() != 1:
        raise ValueError(
            f"multi_margin_loss: got weight of shape {list(weight.shape)}, expected one dimension"
        )
    if weight is not None:
        _check_constant("multi_margin_loss", weight=weight)
    number = reduction_number("multi_margin_loss", reduction)
    _check_rows("multi_margin_loss", input, target, target.dim() < 2)
    classes = input.shape[-1] if input.dim() else 1
    (input,) = _wide("multi_margin_loss", input=input)
    rows = aten.ops._multi_margin(input.reshape(-1, classes), target.reshape(-1), p, margin)
    loss = rows / classes
    if weight is not None:
        loss = loss * aten.index_select(weight, 0, target.reshape(-1))
    return _reduce("multi_margin_loss", loss if number else loss.reshape(target.shape), reduction)


def _positive(excess: Tensor) -> Tensor:
    """What is positive of it, else 0: NaN counts nothing, in gradients too."""
    return aten.where(excess > 0, excess, 0.0)


def _check_rows(name: str, input: Tensor, target: Tensor, fits: bool) -> None:
    """Scores are (N, C), (C) or () with C > 0, and `target` has a number a row."""
    rows = input.shape[0] if input.dim() == 2 else 1
    if input.dim() > 2 or (input.dim() and not input.shape[-1]) or not fits:
        rows = -1
    if target.numel() != rows:
        raise RuntimeError(
            f"{name}: got input of shape {list(input.shape)} and target of shape "
            f"{list(target.shape)}, expected scores (N, C) or (C) and class numbers of each row"
        )


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Sum over target classes t and others c of max(0, 1 - score t + score c), divided by C.

    Args:
        input: scores (N, C), (C) or ().
        target: class numbers of the same shape; those from the first -1 on do not count.
        reduction: none, mean or sum.
    """
    require_tensors("multilabel_margin_loss", input=input, target=target)
    reduction = legacy_reduction(size_average, reduce, reduction)
    reduction_number("multilabel_margin_loss", reduction)
    if (
        input.dim() > 2
        or input.shape != target.shape
        and not (input.dim() < 2 and target.dim() < 2 and input.numel() == target.numel())
        or input.dim()
        and not input.shape[-1]
    ):
        raise RuntimeError(
            f"multilabel_margin_loss: got input of shape {list(input.shape)} and target of shape "
            f"{list(target.shape)}, expected scores (N, C) or (C) and as many class numbers"
        )
    (input,) = _wide("multilabel_margin_loss", input=input)
    if input.dim() < 2:
        input, target = input.reshape(-1), target.reshape(-1)
    counted = aten.cumprod((target != -1).to(dtype=int64), -1)
    places = aten.masked_fill(target, target == -1, 0)
    hits = aten.scatter_add(aten.zeros_like(target), -1, places, counted)
    scores = aten.gather(input, -1, places)
    # (..., targets, classes)
    excess = _positive(1 - scores.unsqueeze(-1) + input.unsqueeze(-2))
    left_out = (counted == 0).unsqueeze(-1) | (hits > 0).unsqueeze(-2)
    loss = aten.sum(aten.masked_fill(excess, left_out, 0.0), [-2, -1]) / input.shape[-1]
    return _reduce("multilabel_margin_loss", loss, reduction)


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Mean over classes of the binary cross entropy of sigmoid(input), times `weight`."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    input, target = _wide("multilabel_soft_margin_loss", input=input, target=target)
    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    return _reduce("multilabel_soft_margin_loss", aten.mean(loss, -1), reduction)


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Negative log likelihood of Poisson counts; `full` adds Stirling's term."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    input, target = _wide("poisson_nll_loss", input=input, target=target)
    if log_input:
        loss = aten.exp(input) - target * input
    else:
        loss = input - target * aten.log(input + eps)
    if full:
        stirling = target * aten.log(target) - target + 0.5 * aten.log(2 * math.pi * target)
        loss = loss + stirling.masked_fill(target <= 1, 0)
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
    if not isinstance(var, Tensor):
        var = aten.full_like(input.detach(), var)
    elif var.shape != input.shape:
        if var.shape == input.shape[:-1]:
            var = var.unsqueeze(-1)
        elif var.dim() != input.dim() or 1 != sum(
            v for v, n in zip(var.shape, input.shape, strict=True) if v != n
        ):
            raise ValueError(
                f"gaussian_nll_loss: got var of shape {list(var.shape)}, expected {list(input.shape)}, "
                "or the same with one dimension of size 1 or without the last"
            )
    if bool(aten.any(var < 0)):
        raise ValueError("gaussian_nll_loss: got a negative variance, expected none")
    # The floor changes the value of the variance, not its gradient.
    var = aten.where(var >= eps, var, eps + (var - var.detach()))
    difference = input - target
    loss = 0.5 * (aten.log(var) + difference * difference / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return _reduce("gaussian_nll_loss", loss, reduction)
