"""The order of the products of an einsum."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

__all__ = ["PathSettings", "contraction_path", "settings"]


@dataclass
class PathSettings:
    """Attributes:
    enabled: whether to ask opt_einsum, where it is installed.
    strategy: its method: auto, greedy, optimal...
    """

    enabled: bool = True
    strategy: str = "auto"

    def library(self) -> Any:
        """The package opt_einsum, or None where it is not installed."""
        return _library()

    def is_available(self) -> bool:
        """Whether opt_einsum is installed."""
        return _library() is not None


settings = PathSettings()


@lru_cache(maxsize=1)
def _library() -> Any:
    try:
        return importlib.import_module("opt_einsum")
    except ImportError:
        return None


def contraction_path(
    terms: Sequence[str], output: str, shapes: Sequence[Sequence[int]]
) -> list[tuple[int, int]]:
    """Pairs of operands to be multiplied, by their places in a list from which they are taken and to whose end their product goes.

    Args:
        terms: the operands' indices, one character each.
        output: the result's indices.
        shapes: the operands' sizes.
    """
    if len(terms) > 2 and settings.enabled and settings.is_available():
        equation = ",".join(terms) + "->" + output
        try:
            path, _ = _library().contract_path(
                equation, *map(tuple, shapes), shapes=True, optimize=settings.strategy
            )
        except ValueError:  # sizes that do not fit: the product that meets them says so
            path = [()]
        if all(len(places) == 2 for places in path):
            return [(min(places), max(places)) for places in path]
    return [(0, 1)] * (len(terms) > 1) + [(len(terms) - k, 0) for k in range(2, len(terms))]
