"""Switches of this thread: whether operations are recorded, and inference mode.

Each is a context manager and a decorator; a decorated generator has the mode while its own code runs.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator
from typing import Any, TypeVar, cast

from argand_autograd import _C

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled"]

F = TypeVar("F", bound=Callable[..., Any])


def _wrap_generator(
    make_mode: Callable[[], Any], function: Callable[..., Any]
) -> Callable[..., Any]:
    """The mode is left while the generator is suspended, so that its caller keeps its own."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        generator = function(*args, **kwargs)
        resume: Callable[[], Any] = functools.partial(generator.send, None)
        try:
            while True:
                try:
                    with make_mode():
                        value = resume()
                except StopIteration as stop:
                    return stop.value
                try:
                    sent = yield value
                except GeneratorExit:
                    raise
                except BaseException as error:
                    resume = functools.partial(generator.throw, error)
                else:
                    resume = functools.partial(generator.send, sent)
        finally:
            with make_mode():
                generator.close()

    return wrapper


class _Mode:
    """A context manager that can be entered again and again, and decorates functions and classes."""

    def clone(self) -> _Mode:
        return type(self)()

    def __enter__(self) -> None:
        raise AssertionError("overridden by every mode")

    def __exit__(self, *exc: object) -> None:
        raise AssertionError("overridden by every mode")

    def __call__(self, func: F) -> F:
        if inspect.isclass(func):
            raise TypeError(
                f"{type(self).__name__}: got the class {func.__name__}, expected a function; "
                "decorate its methods"
            )
        if inspect.isgeneratorfunction(func):
            return cast(F, _wrap_generator(self.clone, func))

        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return func(*args, **kwargs)

        return cast(F, wrapper)


class _FlagMode(_Mode):
    """`@no_grad` without parentheses decorates too."""

    _value: bool

    def __new__(cls, orig_func: Callable[..., Any] | None = None) -> Any:
        mode = super().__new__(cls)
        mode._outer = []
        return mode if orig_func is None else mode(orig_func)

    def __init__(self, orig_func: Callable[..., Any] | None = None) -> None:
        self._outer: list[bool] = []

    def __enter__(self) -> None:
        self._outer.append(_C.is_grad_enabled())
        _C._set_grad_enabled(self._value)

    def __exit__(self, *exc: object) -> None:
        _C._set_grad_enabled(self._outer.pop())


class no_grad(_FlagMode):
    """Operations are not recorded: their results do not require grad. Factories' `requires_grad=True` still counts."""

    _value = False


class enable_grad(_FlagMode):
    """Operations are recorded again, inside of `no_grad`."""

    _value = True


class set_grad_enabled(_Mode):
    """Sets recording on or off: as a function at once, as a context manager until its end.

    Args:
        mode: whether operations are recorded.
    """

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(f"set_grad_enabled: got {type(mode).__name__}, expected a bool")
        self._previous = _C.is_grad_enabled()
        self._mode = mode
        _C._set_grad_enabled(self._mode)

    def clone(self) -> set_grad_enabled:
        return type(self)(self._mode)

    def __repr__(self) -> str:
        return f"{type(self).__module__}.{type(self).__name__}(mode={self._mode})"

    def __call__(self, func: F) -> F:
        _C._set_grad_enabled(self._previous)
        return super().__call__(func)

    def __enter__(self) -> None:
        _C._set_grad_enabled(self._mode)

    def __exit__(self, *exc: object) -> None:
        _C._set_grad_enabled(self._previous)


class inference_mode(_Mode):
    """As `no_grad`, and tensors made inside count no versions: they can never take part in recorded operations.

    Args:
        mode: False leaves inference mode for the block. A function given here is decorated.
    """

    def __new__(cls, mode: bool | Callable[..., Any] = True) -> Any:
        if callable(mode):
            return cls()(mode)
        return super().__new__(cls)

    def __init__(self, mode: bool = True) -> None:
        self._mode = bool(mode)
        self._outer: list[tuple[bool, bool]] = []

    def clone(self) -> inference_mode:
        return type(self)(self._mode)

    def __enter__(self) -> None:
        self._outer.append((_C.is_inference_mode_enabled(), _C.is_grad_enabled()))
        _C._set_inference_mode(self._mode)
        if self._mode:
            _C._set_grad_enabled(False)
        elif self._outer[-1][0]:
            _C._set_grad_enabled(True)

    def __exit__(self, *exc: object) -> None:
        inference, recording = self._outer.pop()
        _C._set_inference_mode(inference)
        _C._set_grad_enabled(recording)
