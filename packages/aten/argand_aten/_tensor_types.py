"""PyTorch's names of tensors of one dtype: FloatTensor, LongTensor... as constructors, in `isinstance` and in `Tensor.type`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import argand_c10
from argand_aten._operators import ops
from argand_c10 import Tensor

_DTYPES = {
    "BFloat16Tensor": "bfloat16", "BoolTensor": "bool", "ByteTensor": "uint8", "CharTensor": "int8", "DoubleTensor": "float64",
    "FloatTensor": "float32", "HalfTensor": "float16", "IntTensor": "int32", "LongTensor": "int64", "ShortTensor": "int16",
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in _DTYPES.items()} | {
    "complex64": "ComplexFloatTensor",
    "complex128": "ComplexDoubleTensor",
    "uint16": "UInt16Tensor",
    "uint32": "UInt32Tensor",
    "uint64": "UInt64Tensor",
}

__all__ = [
    "BFloat16Tensor",
    "BoolTensor",
    "ByteTensor",
    "CharTensor",
    "DoubleTensor",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
    "set_default_tensor_type",
]

if TYPE_CHECKING:

    class BFloat16Tensor(Tensor): ...

    class BoolTensor(Tensor): ...

    class ByteTensor(Tensor): ...

    class CharTensor(Tensor): ...

    class DoubleTensor(Tensor): ...

    class FloatTensor(Tensor): ...

    class HalfTensor(Tensor): ...

    class IntTensor(Tensor): ...

    class LongTensor(Tensor): ...

    class ShortTensor(Tensor): ...


class _TensorType(type):
    """The type of such names: a tensor is an instance by its dtype and its device's type."""

    dtype: argand_c10.dtype
    place: str

    def __instancecheck__(cls, instance: object) -> bool:
        return (
            isinstance(instance, Tensor)
            and instance.dtype == cls.dtype
            and instance.device.type == cls.place
        )

    def __call__(cls, *args: Any) -> Tensor:
        """An uninitialised tensor of the given sizes, or a tensor of the given values."""
        if len(args) == 1 and isinstance(args[0], Tensor):
            if args[0].dtype != cls.dtype:
                raise TypeError(
                    f"{cls.__name__}: got a tensor of {args[0].dtype}, expected {cls.dtype}; use .to({cls.dtype})"
                )
            return args[0].view_as(args[0])
        if len(args) == 1 and not isinstance(args[0], (int, argand_c10.Size)):
            return argand_c10.tensor(args[0], dtype=cls.dtype, device=cls.place)
        sizes = (
            list(args[0]) if args and isinstance(args[0], argand_c10.Size) else list(args or (0,))
        )
        return ops.empty(sizes, dtype=cls.dtype, device=cls.place)


def _types(place: str, module: str) -> dict[str, _TensorType]:
    return {
        name: _TensorType(
            name,
            (),
            {
                "dtype": getattr(argand_c10, dtype),
                "place": place,
                "__doc__": f"Tensors of {dtype} on {place} devices.",
                "__module__": module,
            },
        )
        for name, dtype in _DTYPES.items()
    }


globals().update(_types("cpu", "argand"))
cuda_types = _types("cuda", "argand.cuda")


def type_name(tensor: Tensor) -> str:
    """As "argand.FloatTensor", "argand.cuda.LongTensor"."""
    name = str(tensor.dtype).rpartition(".")[2]
    place = "" if tensor.is_cpu else tensor.device.type + "."
    return f"argand.{place}{_NAMES.get(name, name)}"


def type_target(given: Any) -> tuple[argand_c10.dtype, str | None]:
    """The dtype, and the device if it is said, of a dtype, of a class above, or of a name that `type_name` gives.

    Raises:
      ValueError: for other names and classes.
      TypeError: for anything else.
    """
    if isinstance(given, _TensorType):
        return given.dtype, given.place
    if given is Tensor:
        return argand_c10.get_default_dtype(), "cpu"
    if isinstance(given, argand_c10.dtype):
        return given, None
    if not isinstance(given, (type, str)):
        raise TypeError(f"type: got {given!r}, expected a dtype, a class or a name")
    if isinstance(given, type):
        raise ValueError(f"type: got {given!r}, expected a dtype or a class as argand.FloatTensor")
    *path, name = given.split(".")
    for dtype, known in _NAMES.items():
        if name == known:
            return getattr(argand_c10, dtype), path[-1] if path and path[-1] not in (
                "argand",
                "torch",
            ) else "cpu"
    found = getattr(argand_c10, name, None)
    if not isinstance(found, argand_c10.dtype):
        raise ValueError(f"type: got {given!r}, expected a dtype or a name as 'argand.FloatTensor'")
    return found, None


def set_default_tensor_type(t: Any) -> None:
    """The dtype of new tensors from a class or a name: `set_default_dtype` of its dtype.

    Raises:
      TypeError: where it is not of a floating-point dtype.
    """
    argand_c10.set_default_dtype(type_target(t)[0])
