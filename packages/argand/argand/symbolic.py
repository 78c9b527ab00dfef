"""Arithmetic on sizes that may be symbols of a trace, and on plain numbers alike; checks of them."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

from argand_c10 import Tensor, int64, tensor

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


def _check(cond: bool, message: Callable[[], object] | None = None) -> None:
    """A condition that a program relies on; where it is traced, what holds for symbols becomes a guard.

    Raises:
        RuntimeError: with what `message()` gives, if `cond` is false.
    """
    if not cond:
        raise RuntimeError(
            f"{message()}" if message else "Expected cond to be True, but got False."
        )


def _assert_async(self: Tensor, assert_msg: str | None = None) -> None:
    """Raises RuntimeError if the one element of a tensor is zero."""
    if not self.item():
        raise RuntimeError(assert_msg or "Expected Tensor with single nonzero value, but got zero")


def _shape_as_tensor(self: Tensor) -> Tensor:
    """The sizes as an int64 tensor."""
    return tensor(list(self.shape), dtype=int64)
