"""Copies, conversions and fills."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import argand_c10
from argand_c10 import Tensor
from argand_opencl.arguments import Arguments, dtype_name
from argand_opencl.device import DEVICE_KEY, DEVICE_NAME, device
from argand_opencl.elementwise import run
from argand_opencl.printer import TYPES, Text


def _identity(v: Any, x: Text) -> Text:
    return x


def _empty_like(x: Tensor, dtype: Any, where: Any) -> Tensor:
    return argand_c10._C._empty_strided(list(x.shape), None, dtype, where)


def _is_here(x: Tensor) -> bool:
    return x.device.type == DEVICE_NAME


def _raw(target: Tensor, source: Tensor) -> None:
    """Copies bytes between contiguous tensors of one dtype and size."""
    if target.nbytes:
        wait = not (_is_here(target) and _is_here(source))
        device().copy(target.data_ptr(), source.data_ptr(), target.nbytes, wait=wait)


def copy_(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """Copies between this device and itself or the CPU, converting and broadcasting."""
    if _is_here(self) and _is_here(src):
        if dtype_name(self.dtype) not in TYPES or dtype_name(src.dtype) not in TYPES:
            raise NotImplementedError(
                f"copy_: not implemented from {dtype_name(src.dtype)} to {dtype_name(self.dtype)} on {DEVICE_NAME}"
            )
        return run(_identity, [(src, dtype_name(self.dtype))], dtype_name(self.dtype), self)
    if _is_here(self):  # from the CPU: convert and broadcast there
        dense = src.to(self.dtype).expand(self.shape).contiguous()
        if self.is_contiguous():
            _raw(self, dense)
            return self
        here = _empty_like(dense, self.dtype, DEVICE_NAME)
        _raw(here, dense)
        return copy_(self, here)
    dense = src.contiguous()
    there = _empty_like(dense, src.dtype, "cpu")
    _raw(there, dense)
    self.copy_(there)
    return self


_to_copy_arguments = Arguments("_to_copy")


def to_copy(*args: Any, **kwargs: Any) -> Tensor:
    bound = _to_copy_arguments.read(args, kwargs)
    x: Tensor = bound["self"]
    where = bound["device"] if bound["device"] is not None else x.device
    dtype = bound["dtype"] if bound["dtype"] is not None else x.dtype
    if _is_here(x) and not argand_c10.device(where).type == DEVICE_NAME:
        x, dtype_there = copy_(_empty_like(x, x.dtype, "cpu"), x), dtype
        return x.to(device=where, dtype=dtype_there)
    return copy_(_empty_like(x, dtype, where), x)


def clone(self: Tensor, *, memory_format: int | None = None) -> Tensor:
    return copy_(_empty_like(self, self.dtype, self.device), self)


def fill_(self: Tensor, value: Any) -> Tensor:
    name = dtype_name(self.dtype)
    return run(_identity, [(value, name)], name, self)


def zero_(self: Tensor) -> Tensor:
    return fill_(self, 0)


def register() -> list[str]:
    kernels: dict[str, Callable[..., Tensor]] = {
        "copy_": copy_,
        "_to_copy": to_copy,
        "clone": clone,
        "fill_": fill_,
        "zero_": zero_,
    }
    for name, kernel in kernels.items():
        argand_c10.register_kernel(name, DEVICE_KEY, kernel)
    return list(kernels)
