"""Functions of each element. Two tensors promote as the standard says, also where one of them has no dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import argand
from argand import Tensor

FunctionT = TypeVar("FunctionT", bound=Callable[..., Tensor])

_UNARY = (
    "abs acos acosh asin asinh atan atanh ceil conj cos cosh exp expm1 floor imag isfinite isinf isnan log log10 log1p log2 logical_not negative "
    "positive real reciprocal round sign signbit sin sinh sqrt square tan tanh trunc"
).split()
_BINARY = (
    "add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide floor_divide hypot logaddexp logical_and logical_or logical_xor maximum minimum "
    "multiply nextafter pow subtract"
).split()
_COMPARISON = {
    "equal": "eq",
    "not_equal": "ne",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
}

__all__ = sorted([*_UNARY, *_BINARY, *_COMPARISON, "bitwise_invert", "clip", "remainder"])

_ROUNDING = frozenset({"ceil", "floor", "round", "trunc"})  # of integers: the integers


def _unary(name: str) -> Callable[[Tensor], Tensor]:
    operator = getattr(argand, name)

    def function(x: Tensor, /) -> Tensor:
        if name == "round" and x.is_complex():
            return argand.complex(operator(x.real), operator(x.imag))
        if name in _ROUNDING and not x.is_floating_point() and not x.is_complex():
            return x.clone()
        if name == "imag" and not x.is_complex():
            return argand.zeros_like(x)
        if name == "sign" and x.is_complex():
            return argand.sgn(x)
        if name == "sign" and x.is_floating_point():
            return argand.where(argand.isnan(x), x, operator(x))
        return operator(x)

    return _named(function, name, operator)


def promoted(x1: Any, x2: Any) -> tuple[Any, Any]:
    """Two operands, tensors of them in one dtype: a tensor without dimensions counts as any other."""
    if isinstance(x1, Tensor) and isinstance(x2, Tensor) and x1.dtype != x2.dtype:
        dtype = argand.promote_types(x1.dtype, x2.dtype)
        return x1.to(dtype), x2.to(dtype)
    return x1, x2


def _as_tensors(x1: Any, x2: Any) -> tuple[Any, Any]:
    """Numbers beside a tensor become tensors of its dtype, or of a wider kind's."""
    if isinstance(x1, Tensor) and not isinstance(x2, Tensor):
        return x1, argand.tensor(x2, dtype=argand.result_type(x1, x2), device=x1.device)
    if isinstance(x2, Tensor) and not isinstance(x1, Tensor):
        return argand.tensor(x1, dtype=argand.result_type(x2, x1), device=x2.device), x2
    return x1, x2


def _binary(name: str, given: str) -> Callable[[Any, Any], Tensor]:
    operator = getattr(argand, given)

    def function(x1: Any, x2: Any, /) -> Tensor:
        return operator(*promoted(*_as_tensors(x1, x2)))

    return _named(function, name, operator)


def _named(function: FunctionT, name: str, operator: Any) -> FunctionT:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = getattr(operator, "__doc__", None)
    return function


for _name in _UNARY:
    globals()[_name] = _unary(_name)
for _name in _BINARY:
    globals()[_name] = _binary(_name, _name)
for _name, _given in _COMPARISON.items():
    globals()[_name] = _binary(_name, _given)


def remainder(x1: Any, x2: Any, /) -> Tensor:
    """What is left of a division rounded down; it has the sign of `x2`, a zero too."""
    x1, x2 = promoted(*_as_tensors(x1, x2))
    result = argand.remainder(x1, x2)
    return argand.copysign(result, x2) if result.is_floating_point() else result


def bitwise_invert(x: Tensor, /) -> Tensor:
    """The bits turned over; of truth values the opposite."""
    return argand.bitwise_not(x)


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """Elements moved into a range, in the dtype of `x`; NaN stays, and a range of NaN gives NaN."""
    result = x
    if min is not None:
        result = argand.maximum(result, _bound(x, min))
    if max is not None:
        result = argand.minimum(result, _bound(x, max))
    return result.clone() if result is x else result


def _bound(x: Tensor, bound: Any) -> Tensor:
    """A bound in the dtype of `x`; a number beyond an integer dtype's range is its end."""
    if isinstance(bound, Tensor):
        return bound.to(x.dtype)
    if not x.is_floating_point():
        limits = argand.iinfo(x.dtype)
        bound = max(limits.min, min(limits.max, bound))
    return argand.tensor(bound, dtype=x.dtype, device=x.device)
