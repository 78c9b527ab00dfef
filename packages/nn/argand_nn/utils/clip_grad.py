"""Limiting gradients."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable

import argand_aten as aten
import argand_c10
from argand_autograd import no_grad
from argand_c10 import Tensor

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
]


def _grads(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    tensors = [parameters] if isinstance(parameters, Tensor) else parameters
    return [grad for tensor in tensors if (grad := tensor.grad) is not None]


def get_total_norm(
    tensors: Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The p-norm of all elements of all tensors together, as a 0-d tensor.

    Raises:
        RuntimeError: with `error_if_nonfinite`, if it is NaN or infinite.
    """
    norm_type = float(norm_type)
    with no_grad():
        places: dict[argand_c10.device, list[Tensor]] = {}
        for tensor in tensors:
            places.setdefault(tensor.device, []).append(tensor.detach())
        norms = [aten.ops._foreach_total_norm(group, norm_type) for group in places.values()]
        if not norms:
            return aten.tensor(0.0)
        first = norms[0].device
        norms = [norm.to(device=first) for norm in norms]
        total = norms[0] if len(norms) == 1 else aten.norm(aten.stack(norms), norm_type)
    if error_if_nonfinite and not math.isfinite(float(total)):
        raise RuntimeError(
            f"get_total_norm: got a norm of {float(total)} (p={norm_type}), expected a finite one; "
            "look for NaN or infinity in the gradients, or pass error_if_nonfinite=False"
        )
    return total


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    total_norm: Tensor,
    foreach: bool | None = None,
) -> None:
    """Scale gradients in place by max_norm / (total_norm + 1e-6) if that is below 1."""
    _limit(_grads(parameters), max_norm, total_norm)


def _limit(grads: list[Tensor], max_norm: float, total_norm: Tensor) -> None:
    with no_grad():
        scale = aten.clamp(max_norm / (total_norm + 1e-6), max=1.0)
        places: dict[argand_c10.device, list[Tensor]] = {}
        for grad in grads:
            places.setdefault(grad.device, []).append(grad)
        for place, group in places.items():
            aten.ops._foreach_mul_(group, scale.to(device=place))


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale gradients in place so that their total p-norm is at most `max_norm`.

    Returns:
        The norm before scaling, a 0-d tensor.
    """
    grads = _grads(parameters)
    total = get_total_norm(grads, norm_type, error_if_nonfinite)
    _limit(grads, max_norm, total)
    return total


def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Limit every gradient element in place to [-clip_value, clip_value]."""
    limit = float(clip_value)
    with no_grad():
        for grad in _grads(parameters):
            grad.clamp_(-limit, limit)


def clip_grad_norm(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """`clip_grad_norm_` under its old name, which warns."""
    warnings.warn(
        "nn.utils.clip_grad_norm is deprecated; use clip_grad_norm_", FutureWarning, stacklevel=2
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)
