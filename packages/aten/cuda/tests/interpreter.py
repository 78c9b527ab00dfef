"""Runs Triton kernels on NumPy arrays in Triton's interpreter. Import it before any module with kernels.

    from interpreter import run
    run(kernel, (2,), out, x, n, BLOCK=1024)

Tests that use it are skipped where Triton is not installed. bfloat16 arrays are uint16 arrays given as `bfloat16(array)`.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

os.environ["TRITON_INTERPRET"] = "1"
pytest.importorskip("triton", reason="Triton is not installed")

from triton.runtime import interpreter as _interpreter

_TYPES = {
    "bool": "u8", "uint8": "u8", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint16": "u16", "uint32": "u32", "uint64": "u64", "float16": "fp16", "float32": "fp32", "float64": "fp64",
}  # fmt: skip

REAL = tuple(d for d in _TYPES if d != "bool")


class Array:
    """What the interpreter asks of a tensor argument."""

    def __init__(self, array: np.ndarray, dtype: str) -> None:
        self.array, self.dtype = array, dtype

    def data_ptr(self) -> int:
        return int(self.array.ctypes.data)

    def untyped_storage(self) -> Array:
        return self

    def cpu(self) -> Array:
        return self

    def new_empty(self, *size: int, device: str) -> Array:
        return Array(self.array, self.dtype)

    def set_(self, *geometry: Any) -> None:
        pass

    def copy_(self, other: Array) -> None:
        pass

    def storage_offset(self) -> int:
        return 0

    def size(self) -> tuple[int, ...]:
        return self.array.shape

    def stride(self) -> tuple[int, ...]:
        return ()

    def element_size(self) -> int:
        return int(self.array.itemsize)


def bfloat16(array: np.ndarray) -> Array:
    """A uint16 array as bfloat16."""
    assert array.dtype == np.uint16
    return Array(array, "bf16")


def _index(self: Any) -> int:
    return int(np.asarray(self.handle.data).reshape(-1)[0])


_patch_tensor = _interpreter._patch_lang_tensor


def _patch(tensor: Any, scope: Any) -> None:
    # Bounds of `range` are arrays of one element, which NumPy 2.4 no longer takes for integers.
    _patch_tensor(tensor, scope)
    scope.set_attr(tensor, "__index__", _index)


_interpreter._patch_lang_tensor = _patch


def run(kernel: Any, grid: tuple[int, ...], *args: Any, **constants: Any) -> None:
    """Runs every program of the grid; arrays are changed in place.

    Args:
        kernel: a @triton.jit function.
        grid: up to three numbers of programs.
        args: arrays (C-contiguous), `bfloat16(array)`, numbers.
        constants: constexpr parameters.
    """
    given = [Array(a, _TYPES[a.dtype.name]) if isinstance(a, np.ndarray) else a for a in args]
    with np.errstate(all="ignore"):
        kernel[grid](*given, **constants)
