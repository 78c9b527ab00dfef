"""Tensors from anything, sharing memory where that is possible."""

from __future__ import annotations

from os import PathLike
from typing import Any

from argand_c10 import _C
from argand_c10._C import Tensor

__all__ = ["as_tensor", "asarray", "from_file"]


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of `data`, without a copy if it is a tensor or NumPy array of the wanted dtype on the wanted device.

    Args:
        data: a tensor, NumPy array, number or nested sequence.
        dtype: the dtype wanted; that of the data if it is None.
        device: the device wanted; that of the data, or the CPU, if it is None.

    Raises:
        TypeError: if `data` holds something other than numbers.
    """
    if isinstance(data, Tensor):
        same_dtype = dtype is None or _C.promote_types(dtype, dtype) == data.dtype
        target = data.device if device is None else _C.device(device)
        same_index = target.index is None or target.index == data.device.index
        same_device = target.type == data.device.type and (same_index or data.is_cpu)
        if same_dtype and same_device:
            return data
        convert = getattr(data, "to", None)
        if convert is not None:
            moved: Tensor = convert(device=device or data.device, dtype=dtype or data.dtype)
            return moved
        return _C.tensor(data, dtype=dtype, device=device or data.device)
    if type(data).__module__ == "numpy" and hasattr(data, "flags"):
        wanted = None if dtype is None else _C.promote_types(dtype, dtype).name
        device = _C.get_default_device() if device is None else device
        if (wanted is None or data.dtype.name == wanted) and device in (
            "cpu",
            _C.device("cpu"),
        ):
            shareable = data.flags.writeable and min(data.strides, default=0) >= 0
            if shareable and data.ndim > 0:
                return _C.from_numpy(data)
    return _C.tensor(data, dtype=dtype, device=device)


def asarray(
    obj: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """A tensor of `obj` by whatever it offers: DLPack, a buffer, or its values.

    Args:
        obj: a tensor, a NumPy array, an object with `__dlpack__`, a storage or what has a buffer (their bytes are
            elements of `dtype`), a number or nested sequence.
        dtype: of the result; that of `obj` if it is None, of buffers and storages the default dtype.
        copy: True: always; False: never, or ValueError; None: where needed.
        requires_grad: True: of the result, which may be `obj` itself; False: it has no history; None: as `obj`.
    """
    result = _as_array(obj, dtype, device, copy)
    if requires_grad is not None and result.requires_grad != requires_grad:
        if requires_grad:
            result.requires_grad = True
        else:
            result = Tensor._make_subclass(Tensor, result)
    return result


def _as_array(obj: Any, dtype: Any, device: Any, copy: bool | None) -> Tensor:
    if not isinstance(obj, Tensor) and type(obj).__module__ != "numpy":
        if hasattr(obj, "__dlpack__"):
            obj = _C.from_dlpack(obj)
        elif isinstance(obj, _C.UntypedStorage):
            obj = _C._empty_strided((0,), (1,), dtype or _C.get_default_dtype(), "cpu").set_(obj)
        elif _has_buffer(obj):
            obj = _C.frombuffer(obj, dtype=dtype or _C.get_default_dtype())
    if copy:
        clone = getattr(obj, "clone", None)
        if clone is not None:
            return as_tensor(clone(), dtype=dtype, device=device)
        return _C.tensor(obj, dtype=dtype, device=device)
    result = as_tensor(obj, dtype=dtype, device=device)
    if copy is False and not _shares(result, obj):
        raise ValueError(
            f"asarray: got copy=False for {type(obj).__name__}, which cannot be shared with this dtype and device"
        )
    return result


def _has_buffer(obj: Any) -> bool:
    try:
        memoryview(obj)
    except TypeError:
        return False
    return True


def _shares(result: Tensor, obj: Any) -> bool:
    if isinstance(obj, Tensor):
        return result.data_ptr() == obj.data_ptr()
    return hasattr(obj, "ctypes") and result.data_ptr() == obj.ctypes.data


def from_file(
    filename: str | PathLike[str],
    shared: bool | None = None,
    size: int = 0,
    *,
    dtype: _C.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor (size,) whose memory is a file's.

    Args:
        filename: the file; it is made, or made longer, if it is `shared` and too short.
        shared: whether what is written to the tensor reaches the file.
        size: the number of elements.
        dtype: of the elements; by default the default dtype.
        layout: accepted: every result is strided.
        device: the CPU.
        pin_memory: accepted if false.

    Raises:
        OSError: if the file cannot be opened.
        RuntimeError: if it is too short and not shared, or for another device or pinned memory.
    """
    dtype = dtype or _C.get_default_dtype()
    if pin_memory or (device is not None and _C.device(device).type != "cpu"):
        raise RuntimeError(
            f"from_file: got device={device}, pin_memory={pin_memory}, expected the CPU's plain memory; "
            "copy the tensor there"
        )
    storage = _C.UntypedStorage.from_file(filename, bool(shared), size * dtype.itemsize)
    return _C._empty_strided((0,), (1,), dtype, "cpu").set_(storage)
