"""What takes part in dispatch: PyTorch's private module, which programs use nevertheless."""

from __future__ import annotations

from typing import Any

from argand_c10 import Operator
from argand_c10.modes import ArgandDispatchMode, current_modes
from argand_fx.called_overload import called_overload

__all__ = ["TorchDispatchMode", "is_traceable_wrapper_subclass"]


class TorchDispatchMode(ArgandDispatchMode):
    """A context manager whose `__torch_dispatch__` is called for every operator call inside of it, those of backwards included.

    It is asked before gradients are recorded: the tensors that it sees require grad, where PyTorch's do not.
    """

    def __torch_dispatch__(
        self,
        func: Operator,
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Take over one call; `func(*args, **kwargs)` goes on with it."""
        raise NotImplementedError

    def __argand_dispatch__(
        self,
        op: Operator,
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        func = called_overload(op, args, kwargs or {})
        return self.__torch_dispatch__(func, types, args, kwargs)


def _get_current_dispatch_mode() -> ArgandDispatchMode | None:
    """The innermost mode of this thread."""
    modes = current_modes()
    return modes[-1] if modes else None


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether it is a tensor made of others, which tracing looks into: there are none."""
    return False
