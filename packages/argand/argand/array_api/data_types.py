"""Dtypes: kinds, limits, promotion, conversion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import argand
from argand import Tensor

__all__ = [
    "astype",
    "broadcast_arrays",
    "broadcast_to",
    "can_cast",
    "finfo",
    "iinfo",
    "isdtype",
    "result_type",
]

_SIGNED = (argand.int8, argand.int16, argand.int32, argand.int64)
_UNSIGNED = (argand.uint8, argand.uint16, argand.uint32, argand.uint64)
_REAL = (argand.float32, argand.float64)
_COMPLEX = (argand.complex64, argand.complex128)
KINDS: dict[str | None, tuple[argand.dtype, ...]] = {
    "bool": (argand.bool,),
    "signed integer": _SIGNED,
    "unsigned integer": _UNSIGNED,
    "integral": _SIGNED + _UNSIGNED,
    "real floating": _REAL,
    "complex floating": _COMPLEX,
    "numeric": _SIGNED + _UNSIGNED + _REAL + _COMPLEX,
    None: (argand.bool, *_SIGNED, *_UNSIGNED, *_REAL, *_COMPLEX),
}


def isdtype(dtype: argand.dtype, kind: Any) -> bool:
    """Whether a dtype is of a kind ("integral", "real floating"...), is the given dtype, or one of a tuple of such."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str):
        if kind not in KINDS:
            raise ValueError(
                f"isdtype: got kind {kind!r}, expected one of {', '.join(str(k) for k in KINDS if k)}"
            )
        return dtype in KINDS[kind]
    return bool(dtype == kind)


def astype(x: Tensor, dtype: argand.dtype, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """The tensor in another dtype; without `copy` itself where nothing changes."""
    moved = x if device is None else x.to(device)
    return moved.to(dtype, copy=copy and moved is x)


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """Views of all tensors in their common shape."""
    return list(argand.broadcast_tensors(*arrays)) if arrays else []


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """A view in a wider shape."""
    return argand.broadcast_to(x, shape)


def can_cast(from_: Any, to: argand.dtype, /) -> bool:
    """Whether promotion leads from one dtype to another."""
    try:
        return bool(argand.promote_types(_dtype(from_), to) == to)
    except RuntimeError:  # uint64 and a signed integer, float8 and another
        return False


def _dtype(x: Any) -> argand.dtype:
    return x.dtype if isinstance(x, Tensor) else x


def result_type(*arrays_and_dtypes: Any) -> argand.dtype:
    """The dtype to which tensors, dtypes and numbers are promoted; numbers only widen their own kind."""
    if not arrays_and_dtypes:
        raise ValueError("result_type: got no arguments, expected at least one array or dtype")
    numbers = [x for x in arrays_and_dtypes if isinstance(x, bool | int | float | complex)]
    dtypes = [
        _dtype(x) for x in arrays_and_dtypes if not isinstance(x, bool | int | float | complex)
    ]
    if not dtypes:
        raise ValueError("result_type: got numbers only, expected at least one array or dtype")
    found = dtypes[0]
    for d in dtypes[1:]:
        found = argand.promote_types(found, d)
    return argand.result_type(argand.empty(1, dtype=found), *numbers) if numbers else found


@dataclass(frozen=True)
class _Limits:
    """Of a floating-point dtype, or of the parts of a complex one."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: argand.dtype


@dataclass(frozen=True)
class _Range:
    """Of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: argand.dtype


def finfo(type: Any, /) -> _Limits:
    """The limits of a floating-point dtype, or of an array's."""
    dtype = _dtype(type)
    found = argand.finfo(dtype)
    return _Limits(
        found.bits, found.eps, found.max, found.min, found.smallest_normal, dtype.to_real()
    )


def iinfo(type: Any, /) -> _Range:
    """The limits of an integer dtype, or of an array's."""
    dtype = _dtype(type)
    found = argand.iinfo(dtype)
    return _Range(found.bits, found.max, found.min, dtype)
