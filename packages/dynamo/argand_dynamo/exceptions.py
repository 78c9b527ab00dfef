"""What stops the tracer: breaks, exceptions of the traced program, and the errors that users see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from argand_dynamo.causes import CAUSES, Cause

if TYPE_CHECKING:
    from argand_dynamo.variables.base import Variable

__all__ = [
    "BreakTrace",
    "GraphBreak",
    "PlainOnce",
    "Raised",
    "RecompileLimitError",
    "SkipFrame",
    "break_trace",
]


class GraphBreak(RuntimeError):
    """A function compiled with `fullgraph=True` cannot be one graph.

    Attributes:
        code: the cause's identifier.
        file, line: the user's line.
    """

    def __init__(
        self, message: str, code: str = "", file: str | None = None, line: int = 0
    ) -> None:
        super().__init__(message)
        self.code = code
        self.file = file
        self.line = line


class RecompileLimitError(RuntimeError):
    """A function compiled with `fullgraph=True` was compiled for too many different inputs."""


class BreakTrace(Exception):
    """Tracing cannot go past the current instruction of the outermost frame.

    `cause` says why; `detail` names the thing, as in "time.time". `original` is the error of an operator.
    """

    def __init__(self, cause: Cause, detail: str, original: BaseException | None = None) -> None:
        super().__init__(f"{cause.summary}: {detail}" if detail else cause.summary)
        self.cause = cause
        self.detail = detail
        self.original = original
        # Innermost user lines, filled in by the frames that the exception passes.
        self.stack: list[tuple[str, int, str]] = []


class SkipFrame(Exception):
    """The whole frame is left to Python."""

    def __init__(self, reason: str, cause: Cause | None = None, guards: Sequence[Any] = ()) -> None:
        super().__init__(reason)
        self.cause = cause
        self.guards = guards  # while they hold


class PlainOnce(Exception):
    """This call of the frame is left to Python, which fills a cache; the next one is traced. `location` is the user's line."""

    def __init__(self, reason: str, location: tuple[str, int, str] | None) -> None:
        super().__init__(reason)
        self.location = location


class Raised(Exception):
    """The traced program raises; `variable` is the exception object, `stack` the lines of the inlined frames that it has left."""

    def __init__(self, variable: Variable) -> None:
        super().__init__()
        self.variable: Any = variable
        self.stack: list[tuple[str, int, str]] = []


def break_trace(cause: str, detail: str = "", original: BaseException | None = None) -> BreakTrace:
    """The exception of a break by the cause's name in `CAUSES`."""
    return BreakTrace(CAUSES[cause], detail, original)
