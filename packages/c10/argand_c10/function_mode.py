"""Modes: objects that are asked about every call of an operator in a thread, whatever its arguments are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

from argand_c10 import _C

__all__ = ["BaseTorchFunctionMode", "TorchFunctionMode", "no_function_modes"]


class TorchFunctionMode:
    """While entered, its `__torch_function__` is called in place of operators, and of functions that ask.

    Of several modes the one that was entered last is asked; within its answer the one before it is. NotImplemented leaves
    the call to the classes of the arguments. Compiled programs ask no modes.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        raise NotImplementedError(
            f"{type(self).__name__}: define __torch_function__(self, func, types, args=(), kwargs=None)"
        )

    def __enter__(self) -> Self:
        _C._exchange_modes((*_C._exchange_modes(()), self))
        return self

    def __exit__(self, *exc: object) -> None:
        _C._exchange_modes(_C._exchange_modes(())[:-1])


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that calls the function itself."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        return func(*args, **(kwargs or {}))


@contextmanager
def no_function_modes() -> Iterator[None]:
    """Inside of it, no mode that was entered before is asked."""
    before = _C._exchange_modes(())
    try:
        yield
    finally:
        _C._exchange_modes(before)
