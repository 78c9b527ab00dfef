"""What a thread calls, recorded: events of operators, of nodes in a backward, and of what programs name."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, Self

from argand_c10 import _C

__all__ = ["RawEvent", "record_function", "start", "stop"]


class RawEvent(NamedTuple):
    """Something that began and ended. Times are nanoseconds of the monotonic clock."""

    name: str
    kind: int  # 0: an operator, 1: a node of a backward, 2: what a program named
    parent: int  # index of the event around it, -1: none
    begin: int
    end: int
    nbytes: int  # by which the CPU's storages grew meanwhile
    shapes: list[
        Any
    ]  # of the arguments: of a tensor its sizes, of a list of tensors theirs, else []
    types: list[str]  # of the arguments: a dtype's name, "TensorList", "Scalar", else ""


def start(*, shapes: bool = False, memory: bool = False) -> None:
    """Record this thread's calls from now on.

    Raises:
        RuntimeError: they are being recorded already.
    """
    _C._profiler_start(shapes, memory)


def stop() -> list[RawEvent]:
    """End the recording; its events in order of their beginnings. What has not ended yet ends now."""
    return [RawEvent(*event) for event in _C._profiler_stop()]


class record_function:
    """A context manager, or a decorator of functions: an event of the profiler that is named `name`. Compiled programs leave it out."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args

    def __enter__(self) -> Self:
        self._event = _C._profiler_enter(self.name)
        return self

    def __exit__(self, *exc: object) -> None:
        _C._profiler_leave(self._event)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return recorded
