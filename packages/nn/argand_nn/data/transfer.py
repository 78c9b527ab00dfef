"""Batches between processes: tensors through files in shared memory, the rest through the pipe.

A worker writes the bytes of a batch's tensors into one file of the loader's own folder; the loader
maps it and removes its name at once, so that the memory lives as long as the tensors do. Writing
(not mapping) in the worker makes a full shared memory an error instead of a bus error.
"""

from __future__ import annotations

import math
import mmap
import os
import shutil
import tempfile
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import argand_aten as aten
import argand_c10 as c10
from argand_c10 import Tensor, bfloat16, float8_e4m3fn, float8_e5m2, int16, uint8

__all__ = ["PackedBatch", "make_folder", "pack", "remove_folder", "unpack"]

_SHARED_MEMORY = "/dev/shm"
_ALIGNMENT = 64
_WITHOUT_NUMPY = (bfloat16, float8_e4m3fn, float8_e5m2)


@dataclass(frozen=True)
class _Slot:
    """Where a tensor lies in the file: byte offset, NumPy dtype, shape, and the dtype of one that NumPy lacks."""

    offset: int
    dtype: str
    shape: tuple[int, ...]
    viewed_as: c10.dtype | None


@dataclass(frozen=True)
class PackedBatch:
    """A batch whose strided tensors are `_Slot`s in the file at `path` (None if it has none)."""

    tree: Any
    path: str | None
    size: int


def make_folder() -> str:
    """A new folder for batch files, in shared memory where there is some."""
    place = _SHARED_MEMORY if os.access(_SHARED_MEMORY, os.W_OK) else None
    return tempfile.mkdtemp(prefix="argand-data-", dir=place)


def remove_folder(path: str) -> None:
    """Remove a folder of `make_folder` and what is left in it."""
    shutil.rmtree(path, ignore_errors=True)


def _map_tree(tree: Any, kind: type, convert: Any) -> Any:
    """A copy of `tree` with `convert` applied to every `kind` in its containers."""
    if isinstance(tree, kind):
        return convert(tree)
    if type(tree) in (dict, OrderedDict):
        return type(tree)((key, _map_tree(value, kind, convert)) for key, value in tree.items())
    if isinstance(tree, Mapping):
        return {key: _map_tree(value, kind, convert) for key, value in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(_map_tree(value, kind, convert) for value in tree))
    if type(tree) in (list, tuple):
        return type(tree)(_map_tree(value, kind, convert) for value in tree)
    return tree


def pack(batch: Any, folder: str, name: str) -> PackedBatch:
    """Write the tensors of `batch` into the file `name` of `folder`.

    Raises:
        OSError: if there is no room; nothing is left behind.
    """
    path = os.path.join(folder, name)
    size = 0
    try:
        with open(path, "wb", buffering=0) as file:

            def write(tensor: Tensor) -> _Slot | Tensor:
                nonlocal size
                if tensor.is_sparse:  # it has no memory of its own: through the pipe
                    return tensor
                array, viewed_as = _as_array(tensor)
                offset = -(-size // _ALIGNMENT) * _ALIGNMENT
                file.seek(offset)
                data = array.reshape(-1).view("u1").data
                while data:
                    data = data[file.write(data) :]
                size = offset + array.nbytes
                return _Slot(offset, array.dtype.str, array.shape, viewed_as)

            tree = _map_tree(batch, Tensor, write)
    except BaseException as error:
        if os.path.exists(path):
            os.unlink(path)
        if isinstance(error, OSError):
            raise OSError(
                error.errno,
                f"DataLoader: cannot write a batch to {folder}: {error.strerror}; make more shared "
                "memory available, or use smaller batches or fewer workers",
            ) from error
        raise
    if size == 0:
        os.unlink(path)
        return PackedBatch(tree, None, 0)
    return PackedBatch(tree, path, size)


def _as_array(tensor: Tensor) -> tuple[Any, c10.dtype | None]:
    """The tensor's values as a contiguous NumPy array, or the bit patterns and the dtype where NumPy lacks it."""
    tensor = tensor.detach().contiguous()
    if tensor.dtype not in _WITHOUT_NUMPY:
        return tensor.numpy(), None
    return tensor.view(int16 if tensor.dtype == bfloat16 else uint8).numpy(), tensor.dtype


def unpack(packed: PackedBatch) -> Any:
    """The batch that a worker packed; its file's name is gone afterwards."""
    import numpy

    buffer: Any = b""
    if packed.path is not None:
        with open(packed.path, "r+b") as file:
            buffer = mmap.mmap(file.fileno(), packed.size)
        os.unlink(packed.path)

    def read(slot: _Slot) -> Tensor:
        count = math.prod(slot.shape)
        if count == 0:
            array = numpy.empty(slot.shape, slot.dtype)
        else:
            array = numpy.frombuffer(buffer, slot.dtype, count, slot.offset).reshape(slot.shape)
        tensor = aten.from_numpy(array)
        return tensor if slot.viewed_as is None else tensor.view(slot.viewed_as)

    return _map_tree(packed.tree, _Slot, read)
