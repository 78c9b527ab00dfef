"""Names that programs allow `load` to import. It imports none, whatever they are: they are only kept."""

from __future__ import annotations

from typing import Any

__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "safe_globals"]

_allowed: dict[Any, None] = {}  # in order


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Keep functions, classes, and pairs of one and its name."""
    _allowed.update(dict.fromkeys(safe_globals))


def get_safe_globals() -> list[Any]:
    """What is kept."""
    return list(_allowed)


def clear_safe_globals() -> None:
    """Keep nothing."""
    _allowed.clear()


class safe_globals:
    """A context manager: what it is given is kept inside of it."""

    def __init__(self, safe_globals: list[Any]) -> None:
        self.safe_globals = safe_globals

    def __enter__(self) -> None:
        self._before = dict(_allowed)
        add_safe_globals(self.safe_globals)

    def __exit__(self, *exc: object) -> None:
        clear_safe_globals()
        _allowed.update(self._before)
