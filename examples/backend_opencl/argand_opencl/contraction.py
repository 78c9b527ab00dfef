"""Matrix products: one work-item an element of the result, float32 and float64; 16-bit floats accumulate in float."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

import argand_c10
from argand_c10 import Tensor
from argand_opencl.arguments import dtype_name
from argand_opencl.device import DEVICE_KEY, DEVICE_NAME, Address, launch
from argand_opencl.printer import PRELUDE, TYPES, Text, computed, load, store

_FLOATS = frozenset({"float16", "bfloat16", "float32", "float64"})


def _source(dtype: str) -> str:
    memory, kind = TYPES[dtype]
    held = computed(dtype)
    a, b = (load(dtype, address).text for address in ("a + l * as + k * ac", "b + k * br + c * bs"))
    return f"""{PRELUDE}
__kernel void product(__global {memory}* out, __global const {memory}* a_all, __global const {memory}* b_all, long batch, long rows,
                      long inner, long columns, long ab, long as, long ac, long bb, long br, long bs) {{
  long i = get_global_id(0);
  if (i >= batch * rows * columns) return;
  long c = i % columns, l = i / columns % rows, z = i / columns / rows;
  __global const {memory}* a = a_all + z * ab;
  __global const {memory}* b = b_all + z * bb;
  {kind} total = 0;
  for (long k = 0; k < inner; k++) total += {a} * {b};
  {store(dtype, "out + i", Text("total", held))}
}}
"""


def bmm(self: Tensor, mat2: Tensor) -> Tensor:
    """(B, N, K) @ (B, K, M) -> (B, N, M)."""
    name = dtype_name(self.dtype)
    if self.dtype != mat2.dtype or name not in _FLOATS:
        raise RuntimeError(
            f"bmm: got {name} and {dtype_name(mat2.dtype)} on {DEVICE_NAME}, expected one floating dtype; convert with .to(dtype)"
        )
    if (
        self.ndim != 3
        or mat2.ndim != 3
        or self.shape[0] != mat2.shape[0]
        or self.shape[2] != mat2.shape[1]
    ):
        raise RuntimeError(
            f"bmm: got shapes {list(self.shape)} and {list(mat2.shape)}, expected (B, N, K) and (B, K, M)"
        )
    batch, rows, inner = self.shape
    columns = mat2.shape[2]
    out = argand_c10._C._empty_strided([batch, rows, columns], None, self.dtype, DEVICE_NAME)
    values = (batch, rows, inner, columns, *self.stride(), *mat2.stride())
    addresses = (Address(x.data_ptr()) for x in (out, self, mat2))
    launch(_source(name), "product", out.numel(), (*addresses, *map(numpy.int64, values)))
    return out


def mm(self: Tensor, mat2: Tensor) -> Tensor:
    """(N, K) @ (K, M) -> (N, M)."""
    if self.ndim != 2 or mat2.ndim != 2 or self.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"mm: got shapes {list(self.shape)} and {list(mat2.shape)}, expected (N, K) and (K, M)"
        )
    return bmm(self.unsqueeze(0), mat2.unsqueeze(0)).squeeze(0)


def addmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * self + alpha * mat1 @ mat2."""
    product = mm(mat1, mat2)
    product = product if alpha == 1 else product * alpha
    return product if beta == 0 else product + (self if beta == 1 else self * beta)


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input @ weight.T + bias over the last dimension."""
    if not input.ndim or not weight.ndim == 2 or input.shape[-1] != weight.shape[1]:
        raise RuntimeError(
            f"linear: got input {list(input.shape)} and weight {list(weight.shape)}, expected (..., K) and (M, K)"
        )
    rows = input.reshape(-1, input.shape[-1])
    out = mm(rows, weight.t()).view(*input.shape[:-1], weight.shape[0])
    return out if bias is None else out + bias


def register() -> list[str]:
    kernels: dict[str, Callable[..., Tensor]] = {
        "mm": mm,
        "bmm": bmm,
        "addmm": addmm,
        "linear": linear,
    }
    for name, kernel in kernels.items():
        argand_c10.register_kernel(name, DEVICE_KEY, kernel)
    return list(kernels)
