"""`set_stance`: what compiled functions do instead of compiling."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

from argand_dynamo import _C

__all__ = ["current_stance", "refuse_to_compile", "set_stance"]

_STANCES = (
    "default",
    "eager_on_recompile",
    "eager_then_compile",
    "fail_on_recompile",
    "force_eager",
)
_stance = "default"


def current_stance() -> str:
    """The stance of this process."""
    return _stance


class set_stance:
    """Sets what calls of compiled functions do, in all threads; also a context manager, and a decorator, that ends it.

    Args:
        stance: "default" compiles calls of new kinds; "force_eager" runs functions as they are; "eager_on_recompile" runs what is
            compiled, and others as they are; "fail_on_recompile" raises RuntimeError for others; "eager_then_compile" runs the first call of a
            function as it is.
        skip_guard_eval_unsafe: accepted for compatibility; guards are always evaluated.
        force_backend: must be None.

    Raises:
        ValueError: for another stance.
        NotImplementedError: for a backend; give it to `compile`.
    """

    def __init__(
        self,
        stance: str = "default",
        *,
        skip_guard_eval_unsafe: bool = False,
        force_backend: str | Callable[..., Any] | None = None,
    ) -> None:
        if stance not in _STANCES:
            raise ValueError(f"set_stance: got {stance!r}, expected one of {list(_STANCES)}")
        if force_backend is not None:
            raise NotImplementedError(
                "set_stance: got force_backend, expected None; give the backend to compile"
            )
        self._stance, self._before = stance, _stance
        _set(stance)

    def __enter__(self) -> None:
        _set(self._stance)

    def __exit__(self, *exc: object) -> None:
        _set(self._before)

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        _set(self._before)

        @functools.wraps(fn)
        def run(*args: Any, **kwargs: Any) -> Any:
            with set_stance(self._stance):
                return fn(*args, **kwargs)

        return run


def _set(stance: str) -> None:
    global _stance
    _stance = stance
    _C.set_all_plain(stance == "force_eager")


def refuse_to_compile(function: types.FunctionType, first: bool, why: str) -> bool:
    """Whether a call that would be compiled runs as it is.

    Args:
        first: whether the function has been called before.
        why: what kept what is compiled from it.

    Raises:
        RuntimeError: the stance is "fail_on_recompile".
    """
    if _stance == "fail_on_recompile":
        code = function.__code__
        raise RuntimeError(
            f"Detected recompile when torch.compile stance is 'fail_on_recompile': {function.__qualname__} "
            f"({code.co_filename}:{code.co_firstlineno}), {why}"
        )
    return _stance == "eager_on_recompile" or (_stance == "eager_then_compile" and first)
