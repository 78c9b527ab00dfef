"""Methods and properties of Tensor that are short forms of operators."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import argand_c10
from argand_aten import _C, _functions
from argand_c10 import Tensor

_op = _C.operators


def _to(dtype: Any) -> Callable[..., Tensor]:
    def convert(self: Tensor, *, memory_format: Any = None) -> Tensor:
        return _op["to"](self, dtype)

    convert.__doc__ = f"`self` as {dtype}."
    return convert


def _transposed(self: Tensor) -> Tensor:
    """All dimensions in reverse order."""
    if self.ndim != 2 and self.ndim != 0:
        warnings.warn(
            f"Tensor.T: got {self.ndim} dimensions, expected 2; use .mT for matrices or .permute(...)",
            DeprecationWarning,
            stacklevel=2,
        )
    return _op["permute"](self, tuple(range(self.ndim - 1, -1, -1)))


def _matrix_transposed(self: Tensor) -> Tensor:
    """The last two dimensions exchanged."""
    if self.ndim < 2:
        raise RuntimeError(f"Tensor.mT: got {self.ndim} dimensions, expected at least 2")
    return _op["transpose"](self, -2, -1)


def _adjoint(self: Tensor) -> Tensor:
    """The conjugate transpose of a matrix."""
    if self.ndim not in (0, 2):
        raise RuntimeError(f"Tensor.H: got {self.ndim} dimensions, expected 2; use .mH for batches of matrices")
    return _op["conj"](self) if self.ndim == 0 else _op["conj"](_op["transpose"](self, 0, 1))


def _type(self: Tensor, dtype: Any = None) -> Any:
    """`self` in another dtype; without one, the name of the tensor's type."""
    return str(self.dtype) if dtype is None else _op["to"](self, dtype)


def _cpu(self: Tensor, memory_format: Any = None) -> Tensor:
    """`self` in host memory."""
    return _op["to"](self, "cpu", memory_format=memory_format)


def _cuda(self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Tensor:
    """`self` on a CUDA device (default: the current one); `self` itself if it is there.

    Args:
        device: an index, a name or a device.
        non_blocking: return before a copy from page-locked memory is done.
        memory_format: of the copy.
    """
    device = argand_c10.device("cuda" if device is None else device)
    return _op["to"](self, device, non_blocking=non_blocking, memory_format=memory_format)


def _where(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """`self` where `condition` (bool) holds, `other` elsewhere."""
    return _op["where"](condition, self, other)


def _new_tensor(self: Tensor, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor from data, with the dtype and the device of `self`."""
    made = argand_c10.tensor(
        data, dtype=self.dtype if dtype is None else dtype, device=self.device if device is None else device
    )
    if requires_grad:
        made.requires_grad_()
    return made


def _contains(self: Tensor, item: Any) -> bool:
    """Whether any element equals `item`."""
    return bool(_op["any"](_op["eq"](self, item)))


def install(add: Callable[[str, Any], None]) -> None:
    """Adds everything to Tensor."""
    for name, dtype in {
        "float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16", "long": "int64",
        "int": "int32", "short": "int16", "char": "int8", "byte": "uint8", "bool": "bool", "cfloat": "complex64",
        "cdouble": "complex128",
    }.items():  # fmt: skip
        add(name, _to(getattr(argand_c10, dtype)))
    add("T", property(_transposed))
    add("mT", property(_matrix_transposed))
    add("H", property(_adjoint))
    add("mH", property(lambda self: _op["conj"](_matrix_transposed(self))))
    add("real", property(lambda self: _op["real"](self)))
    add("imag", property(lambda self: _op["imag"](self)))
    add("type", _type)
    add("cpu", _cpu)
    add("cuda", _cuda)
    add("where", _where)
    add("equal", _functions.equal)
    add("allclose", _functions.allclose)
    add("new_tensor", _new_tensor)
    add("__contains__", _contains)
