"""`set_stance`: what compiled functions do instead of compiling."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

from argand_dynamo import _C
from argand_dynamo.backends import check_backend

__all__ = ["current_stance", "forced_backend", "refuse_to_compile", "set_stance", "when_forced"]

_STANCES = (
    "aot_eager_then_compile",
    "default",
    "eager_on_recompile",
    "eager_then_compile",
    "fail_on_recompile",
    "force_eager",
)
_stance = "default"
_backend: str | Callable[..., Any] | None = None
# Called when another backend is forced, or none any longer.
when_forced: list[Callable[[], None]] = []


def forced_backend() -> str | Callable[..., Any] | None:
    """The backend that compiles whatever functions ask for; None: theirs."""
    return _backend


def current_stance() -> str:
    """The stance of this process."""
    return _stance


class set_stance:
    """Sets what calls of compiled functions do, in all threads; also a context manager, and a decorator, that ends it.

    Args:
        stance: "default" compiles calls of new kinds; "force_eager" runs functions as they are; "eager_on_recompile" runs what is
            compiled, and others as they are; "fail_on_recompile" raises RuntimeError for others; "eager_then_compile" and "aot_eager_then_compile"
            run the first call of a function as it is.
        skip_guard_eval_unsafe: accepted for compatibility; guards are always evaluated.
        force_backend: compiles in place of the backends that functions were given, without their options.

    Raises:
        ValueError: for another stance.
        RuntimeError: for a backend beside another stance than "default", or one that nobody has registered.
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
            if stance != "default":
                raise RuntimeError(
                    f"set_stance: got force_backend beside {stance!r}, expected it beside 'default'"
                )
            check_backend(force_backend)
        self._wanted, self._before = (stance, force_backend), (_stance, _backend)
        _set(*self._wanted)

    def __enter__(self) -> None:
        _set(*self._wanted)

    def __exit__(self, *exc: object) -> None:
        _set(*self._before)

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        _set(*self._before)
        stance, backend = self._wanted

        @functools.wraps(fn)
        def run(*args: Any, **kwargs: Any) -> Any:
            with set_stance(stance, force_backend=backend):
                return fn(*args, **kwargs)

        return run


def _set(stance: str, backend: str | Callable[..., Any] | None) -> None:
    global _stance, _backend
    changed = backend is not _backend
    _stance, _backend = stance, backend
    _C.set_all_plain(stance == "force_eager")
    if changed:
        for forget in when_forced:
            forget()


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
    return _stance == "eager_on_recompile" or (_stance.endswith("eager_then_compile") and first)
