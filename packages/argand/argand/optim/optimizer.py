"""The base class of optimizers, and the hooks of all optimizers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from argand_autograd import set_grad_enabled
from argand_c10 import Tensor
from argand_nn.optim.optimizer import *  # noqa: F403
from argand_nn.optim.optimizer import __all__ as __all__

ParamsT: TypeAlias = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]


def _use_grad_for_differentiable(step: Callable[..., Any]) -> Callable[..., Any]:
    """A `step` that records gradients only if the optimizer's option `differentiable` says so."""

    @functools.wraps(step)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        with set_grad_enabled(bool(self.defaults["differentiable"])):
            return step(self, *args, **kwargs)

    return guarded


def _default_to_fused_or_foreach(
    params: list[Tensor], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Whether a step is fused, and whether it works on lists of tensors, where its user says neither: no."""
    return False, False


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """The devices whose graphs may hold a step."""
    return ["cuda"]
