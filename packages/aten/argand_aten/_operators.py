"""Every registered operator by name."""

from __future__ import annotations

import ctypes
import importlib.resources
import os
from typing import TYPE_CHECKING, Self

from argand_aten import _C
from argand_c10 import Operator, rules

if TYPE_CHECKING:
    from argand_aten.generated._ops import Operators
else:
    Operators = object


class _Operators(Operators):
    """Operators as attributes."""

    def __init__(self, operators: dict[str, Operator]) -> None:
        self.__dict__.update(operators)

    def load_library(self, path: str | os.PathLike[str]) -> None:
        """Open a shared library, which registers operators as it is opened.

        Raises:
            OSError: there is none, or it is built for another framework.
        """
        ctypes.CDLL(os.path.realpath(path))

    @property
    def aten(self) -> Self:
        """The operators of this package, whose namespace has this name in PyTorch."""
        return self

    def __repr__(self) -> str:
        return f"<argand_aten.ops: {len(self.__dict__)} operators>"


def _overload_names() -> dict[str, str]:
    """PyTorch's names of overloads, by operator."""
    text = importlib.resources.files("argand_aten").joinpath("overload_names.txt").read_text()
    pairs = (line.split(": ", 1) for line in text.splitlines()[1:])
    return {name: names for name, names in pairs}


ops = _Operators(_C.operators)
rules.register_overload_names(_overload_names)
