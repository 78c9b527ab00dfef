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

import triton.language as tl
from triton.runtime import interpreter as _interpreter

_TYPES = {
    "bool": "u8", "uint8": "u8", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint16": "u16", "uint32": "u32", "uint64": "u64", "float16": "fp16", "float32": "fp32", "float64": "fp64",
}  # fmt: skip

REAL = tuple(d for d in _TYPES if d != "bool")


class Array:
    """What the interpreter asks of a tensor argument: an address."""

    def __init__(self, array: np.ndarray, dtype: str) -> None:
        self.array, self.dtype = array, dtype

    def data_ptr(self) -> int:
        return int(self.array.ctypes.data)


def bfloat16(array: np.ndarray) -> Array:
    """A uint16 array as bfloat16."""
    assert array.dtype == np.uint16
    return Array(array, "bf16")


_patch_language = _interpreter._patch_lang
_find_dtype = _interpreter._get_np_dtype
_patch_tensor = _interpreter._patch_lang_tensor
_patched: set[int] = set()  # globals of functions


_dtypes: dict[str, np.dtype[Any]] = {}


def _numpy_dtype(dtype: Any) -> np.dtype[Any]:
    """Kept by name; the interpreter makes a table of all dtypes at every operation."""
    if type(dtype) is not tl.dtype:
        return _find_dtype(dtype)
    if dtype.name not in _dtypes:
        _dtypes[dtype.name] = _find_dtype(dtype)
    return _dtypes[dtype.name]


def _patch_once(function: Any) -> Any:
    """Patches triton.language as a function sees it for good; the interpreter looks for what to patch at every call of a function."""
    if id(function.__globals__) not in _patched:
        _patched.add(id(function.__globals__))
        _patch_language(function)
    return _interpreter._LangPatchScope()


def _patch_tensors(tensor: Any, scope: Any) -> None:
    # Bounds of `range` are arrays of one element, which NumPy 2.4 no longer takes for integers.
    _patch_tensor(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.reshape(-1)[0]))


def _combined(self: Any, left: list[Any], right: list[Any], dtypes: list[Any]) -> list[Any]:
    tensors = [
        self.to_tensor(x, t) for x, t in zip((*left, *right), (*dtypes, *dtypes), strict=True)
    ]
    results = self.combine_fn.fn(*tensors)
    results = results if isinstance(results, tuple) else (results,)
    return [r.handle.data.astype(x.dtype) for r, x in zip(results, left, strict=True)]


def _parts(self: Any, input: Any) -> tuple[list[Any], list[Any]]:
    return [np.moveaxis(x.handle.data, self.axis, 0) for x in input], [x.dtype for x in input]


def _reduce(self: Any, input: Any) -> Any:
    """By whole arrays, in a logarithmic number of steps; the interpreter goes from element to element."""
    if self.axis is None:
        return _walk(self, input)
    data, dtypes = _parts(self, input)
    while len(data[0]) > 1:
        data = _combined(self, [x[::2] for x in data], [x[1::2] for x in data], dtypes)
    data = [np.expand_dims(x[0], self.axis) if self.keep_dims else x[0] for x in data]
    return [self.to_tensor(x, t) for x, t in zip(data, dtypes, strict=True)]


def _scan(self: Any, input: Any) -> Any:
    data, dtypes = _parts(self, input)
    step = 1
    while step < len(data[0]):
        earlier = [np.roll(x, step, 0) for x in data]
        later = _combined(self, earlier, data, dtypes)
        data = [np.concatenate([x[:step], y[step:]]) for x, y in zip(data, later, strict=True)]
        step *= 2
    return [
        self.to_tensor(np.moveaxis(x, 0, self.axis), t) for x, t in zip(data, dtypes, strict=True)
    ]


def _sort(x: Any, dim: int | None = None, descending: bool = False) -> Any:
    """Of integers, along the last dimension, by NumPy; Triton's own takes hundreds of steps."""
    assert dim is None
    data = np.sort(x.handle.data, -1)
    return tl.tensor(
        _interpreter.TensorHandle(data[..., ::-1] if descending else data, x.dtype), x.type
    )


def _topk(x: Any, k: int) -> Any:
    data = np.sort(x.handle.data, -1)[..., : -k - 1 : -1]
    block = tl.block_type(x.dtype, list(data.shape))
    return tl.tensor(_interpreter.TensorHandle(data, x.dtype), block)


_walk = _interpreter.ReduceOps.generic_reduce
_interpreter._get_np_dtype = _numpy_dtype
_interpreter._patch_lang = _patch_once
_interpreter._patch_lang_tensor = _patch_tensors
_interpreter.ReduceOps.generic_reduce = _reduce
_interpreter.ScanOps.generic_scan = _scan
tl.sort, tl.topk = _sort, _topk
# Arguments are addresses of the host's memory already.
_interpreter.GridExecutor._init_args_hst = lambda self, args, kwargs: (list(args), kwargs)
_interpreter.GridExecutor._restore_args_dev = lambda self, *args: None


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
