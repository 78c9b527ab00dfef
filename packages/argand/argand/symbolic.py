"""Arithmetic on sizes that may be symbols of a trace, and on plain numbers alike; checks of them."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

import argand
from argand_c10 import Tensor, int64, tensor
from argand_c10 import bool as bool_dtype
from argand_c10.tracing import is_compiling
from argand_fx.shapes.sym_int import SymBool as SymBool
from argand_fx.shapes.sym_int import SymInt as SymInt
from argand_fx.symbolic import SymbolicValue

__all__ = [
    "SymBool",
    "SymFloat",
    "SymInt",
    "sym_float",
    "sym_int",
    "sym_ite",
    "sym_max",
    "sym_min",
    "sym_not",
    "sym_sqrt",
    "sym_sum",
]


_UNMET = "Expected cond to be True, but got False."


class SymFloat(SymbolicValue):
    """A float known only when a graph runs. There is none: what is computed of symbols as a float makes the program special for its value."""


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
        raise RuntimeError(f"{message()}" if message else _UNMET)


def _check_with(
    error_type: type[Exception], cond: Any, message: Callable[[], object] | None = None
) -> None:
    """`_check` with an error of that type."""
    if not cond:
        raise error_type(f"{message()}" if message else _UNMET)


def _check_tensor_all_with(
    error_type: type[Exception], cond: Tensor, message: Callable[[], object] | None = None
) -> None:
    """`_check_with` of every element of a tensor of bools.

    Raises:
        TypeError: `cond` is another tensor, or none.
    """
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype != bool_dtype:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    if is_compiling() and getattr(builtins, error_type.__name__, None) is error_type:
        argand._check_in_graph(cond, error_type.__name__, f"{message()}" if message else _UNMET)
        return
    _check_with(error_type, cond.all().item(), message)


def _check_tensor_all(cond: Tensor, message: Callable[[], object] | None = None) -> None:
    """`_check` of every element of a tensor of bools."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _assert(condition: Any, message: str) -> None:
    """`assert condition, message`; of a tensor, compiled, a part of the graph."""
    if isinstance(condition, Tensor) and condition.numel() == 1 and is_compiling():
        argand._check_in_graph(condition, "AssertionError", message)
        return
    recorded = getattr(type(condition), "__argand_function__", None)
    if recorded is not None and not isinstance(condition, Tensor):
        recorded(_assert, (type(condition),), (condition, message), {})
        return
    assert condition, message


def _assert_async(self: Tensor, assert_msg: str | None = None) -> None:
    """Raises RuntimeError if the one element of a tensor is zero."""
    message = assert_msg or "Expected Tensor with single nonzero value, but got zero"
    if is_compiling():
        argand._check_in_graph(self, "RuntimeError", message)
    elif not self.item():
        raise RuntimeError(message)


def _shape_as_tensor(self: Tensor) -> Tensor:
    """The sizes as an int64 tensor."""
    return tensor(list(self.shape), dtype=int64)
