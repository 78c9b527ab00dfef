"""Every registered operator by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from argand_aten import _C
from argand_c10 import Operator

if TYPE_CHECKING:
    from argand_aten.generated._ops import Operators
else:
    Operators = object


class _Operators(Operators):
    """Operators as attributes."""

    def __init__(self, operators: dict[str, Operator]) -> None:
        self.__dict__.update(operators)

    def __repr__(self) -> str:
        return f"<argand_aten.ops: {len(self.__dict__)} operators>"


ops = _Operators(_C.operators)
