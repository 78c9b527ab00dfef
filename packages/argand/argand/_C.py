"""What programs call in PyTorch's C++ module although it is private."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from argand_autograd.func import transforms_are_active
from argand_c10 import DisableArgandFunction as DisableTorchFunctionSubclass
from argand_c10 import Tensor, get_default_device
from argand_c10.module import _parse_to

__all__ = ["DisableTorchFunctionSubclass"]

_TensorMeta = type(Tensor)
_nn = SimpleNamespace(_parse_to=_parse_to)


def _log_api_usage_once(event: str) -> None:
    """Nothing is counted."""


def _get_tracing_state() -> None:
    """The trace that `torch.jit.trace` makes: none."""


def _are_functorch_transforms_active() -> bool:
    """Whether a function whose gradients `argand.func` takes runs in this thread, not whether `vmap` does."""
    return transforms_are_active()


def _get_default_device() -> str:
    """The name of the device where tensors are made."""
    return str(get_default_device())


def _get_privateuse1_backend_name() -> str:
    """The name of devices whose kernels come from elsewhere."""
    return "privateuseone"


def _disabled_torch_function_impl(
    func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
) -> Any:
    """The `__torch_function__` of a class that does not take part in calls."""
    with DisableTorchFunctionSubclass():
        return func(*args, **(kwargs or {}))
