"""New tensors."""

from __future__ import annotations

from array import array
from typing import Any

import argand
from argand import Tensor

__all__ = [
    "arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like", "linspace", "meshgrid", "ones", "ones_like", "tril",
    "triu", "zeros", "zeros_like",
]  # fmt: skip


def arange(
    start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None
) -> Tensor:
    """The numbers from `start` up to, not including, `stop`; none where `step` leads away from it."""
    start, stop = (0, start) if stop is None else (start, stop)
    if (step > 0 and stop <= start) or (step < 0 and stop >= start):
        if dtype is None:
            dtype = (
                argand.int64
                if all(isinstance(x, int) for x in (start, stop, step))
                else argand.get_default_dtype()
            )
        return argand.empty(0, dtype=dtype, device=device)
    return argand.arange(start, stop, step, dtype=dtype, device=device)


def asarray(
    obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None
) -> Tensor:
    """A tensor of numbers, sequences, or of what shares its memory; `copy=False` refuses to copy."""
    if isinstance(obj, (bytes, bytearray, memoryview, array)):
        obj = memoryview(obj).tolist()  # its numbers, where `argand.asarray` takes its bytes
    return argand.asarray(obj, dtype=dtype, device=device, copy=copy)


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Uninitialised."""
    return argand.empty(shape, dtype=dtype, device=device)


def empty_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Uninitialised, of an array's shape."""
    return argand.empty_like(x, dtype=dtype, device=device)


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None
) -> Tensor:
    """Ones on a diagonal."""
    n_cols = n_rows if n_cols is None else n_cols
    made = argand.zeros((n_rows, n_cols), dtype=dtype, device=device)
    if -n_rows <= k <= n_cols:
        argand.diagonal(made, k).fill_(1)
    return made


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """The array of another library; its memory is shared, or copied with `copy` or to another device."""
    return argand.from_dlpack(x, device=device, copy=copy)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """One value."""
    return argand.full(
        (shape,) if isinstance(shape, int) else shape, fill_value, dtype=dtype, device=device
    )


def full_like(x: Tensor, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """One value in an array's shape."""
    return argand.full_like(x, fill_value, dtype=dtype, device=device)


def linspace(
    start: Any,
    stop: Any,
    /,
    num: int,
    *,
    dtype: Any = None,
    device: Any = None,
    endpoint: bool = True,
) -> Tensor:
    """Evenly spaced numbers; without `endpoint` up to, not including, `stop`."""
    if endpoint:
        return argand.linspace(start, stop, num, dtype=dtype, device=device)
    return argand.linspace(start, stop, num + 1, dtype=dtype, device=device)[:num]


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Tensor]:
    """Coordinate grids of vectors."""
    return list(argand.meshgrid(*arrays, indexing=indexing)) if arrays else []


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones."""
    return argand.ones(shape, dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones in an array's shape."""
    return argand.ones_like(x, dtype=dtype, device=device)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The part of matrices on and below a diagonal."""
    return argand.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The part of matrices on and above a diagonal."""
    return argand.triu(x, k)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros."""
    return argand.zeros(shape, dtype=dtype, device=device)


def zeros_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros in an array's shape."""
    return argand.zeros_like(x, dtype=dtype, device=device)
