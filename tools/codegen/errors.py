"""Diagnostics: every fault of a registry is collected, then all are shown together with their source lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tools.codegen.model import Location


@dataclass(frozen=True, order=True)
class Diagnostic:
    """One fault. line and column start at 1; `length` characters are underlined."""

    file: str
    line: int
    column: int
    message: str
    length: int = 1


class RegistryError(Exception):
    """The registry is faulty; `str()` shows every diagnostic with an excerpt and a caret."""

    def __init__(self, diagnostics: list[Diagnostic], sources: Mapping[str, list[str]]) -> None:
        self.diagnostics = sorted(set(diagnostics))
        super().__init__("\n".join(render(d, sources) for d in self.diagnostics))


def render(d: Diagnostic, sources: Mapping[str, list[str]]) -> str:
    """`file:line:col: error: message`, the source line, and a caret under the fault."""
    head = f"{d.file}:{d.line}:{d.column}: error: {d.message}"
    lines = sources.get(d.file, [])
    if not 0 < d.line <= len(lines):
        return head
    text = lines[d.line - 1]
    length = max(1, min(d.length, len(text) - d.column + 1))
    # Long lines are cut around the fault, so that the caret stays on a normal screen.
    start = max(0, d.column - 60) if len(text) > 120 else 0
    shown = text[start : start + 120]
    return f"{head}\n  {shown}\n  {' ' * (d.column - 1 - start)}{'^' + '~' * (length - 1)}"


class Diagnostics:
    """Collects faults while a registry is read."""

    def __init__(self) -> None:
        self.found: list[Diagnostic] = []
        self.sources: dict[str, list[str]] = {}

    def add(self, location: Location, message: str, length: int = 1) -> None:
        self.found.append(
            Diagnostic(location.file, location.line, location.column, message, length)
        )

    def raise_if_any(self) -> None:
        if self.found:
            raise RegistryError(self.found, self.sources)
