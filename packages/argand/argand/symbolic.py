"""Arithmetic on sizes that may be symbols of a trace, and on plain numbers alike."""

from __future__ import annotations

import builtins
import math
from typing import Any

__all__ = [
    "sym_float",
    "sym_int",
    "sym_ite",
    "sym_max",
    "sym_min",
    "sym_not",
    "sym_sqrt",
    "sym_sum",
]


def sym_int(a: Any) -> Any:
    """A number rounded towards zero; integers and their symbols as they are."""
    return builtins.int(a) if isinstance(a, builtins.float) else a


def sym_float(a: Any) -> Any:
    """A number as a float."""
    return builtins.float(a)


def sym_max(a: Any, b: Any) -> Any:
    """The greater of two numbers; a float where one of them is."""
    greater = a if a >= b else b
    return (
        builtins.float(greater)
        if isinstance(a, builtins.float) or isinstance(b, builtins.float)
        else greater
    )


def sym_min(a: Any, b: Any) -> Any:
    """The smaller of two numbers; a float where one of them is."""
    smaller = a if a <= b else b
    return (
        builtins.float(smaller)
        if isinstance(a, builtins.float) or isinstance(b, builtins.float)
        else smaller
    )


def sym_not(a: Any) -> Any:
    """The opposite of a truth value."""
    return not a


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """`t` where `b` holds, else `f`."""
    return t if b else f


def sym_sqrt(a: Any) -> Any:
    """The square root."""
    return math.sqrt(a)


def sym_sum(*args: Any) -> Any:
    """The sum of numbers, given one by one or as one sequence."""
    return builtins.sum(args[0] if len(args) == 1 else args)
