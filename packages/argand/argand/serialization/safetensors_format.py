"""The safetensors file format (github.com/huggingface/safetensors, format section of its README).

A file is the header's length (8 bytes, little-endian), the header (JSON: dtype, shape and byte range
of each tensor, and text metadata), and the tensors' bytes. Reading checks every number before use.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

import argand_aten as aten
import argand_c10 as c10
from argand_c10 import Tensor

__all__ = ["FileFormatError", "read_tensors", "write_tensors"]

# Longest header that readers of the format accept, in bytes.
_MAX_HEADER = 100_000_000
_ALIGNMENT = 8
_DTYPE_NAMES = {
    c10.bool: "BOOL",
    c10.uint8: "U8",
    c10.int8: "I8",
    c10.int16: "I16",
    c10.int32: "I32",
    c10.int64: "I64",
    c10.float16: "F16",
    c10.bfloat16: "BF16",
    c10.float32: "F32",
    c10.float64: "F64",
    c10.complex64: "C64",
}
_DTYPES = {name: dtype for dtype, name in _DTYPE_NAMES.items()}
_PICKLE_STARTS = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")


class FileFormatError(RuntimeError):
    """A file is not what it should be: foreign, cut off or damaged."""


@dataclass(frozen=True)
class _Entry:
    """Where a tensor lies: its bytes are [start, end) of the part after the header."""

    name: str
    dtype: Any
    shape: tuple[int, ...]
    start: int
    end: int


def as_bytes(tensor: Tensor) -> Any:
    """The elements of a tensor in order, as a flat NumPy array of bytes; a view if possible."""
    tensor = tensor.detach().contiguous()
    if tensor.dtype == c10.bfloat16:  # NumPy has none
        tensor = tensor.view(c10.int16)
    return tensor.numpy().reshape(-1).view("u1")


def write_tensors(
    file: BinaryIO, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]
) -> None:
    """Write tensors and text metadata.

    Raises:
        TypeError: for dtypes that the format does not have; before anything is written.
    """
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    # Widest elements first, so that every tensor is aligned to its element size.
    order = sorted(tensors, key=lambda name: -tensors[name].element_size())
    place = 0
    for name in order:
        tensor = tensors[name]
        if tensor.dtype not in _DTYPE_NAMES:
            raise TypeError(
                f"save: got {tensor.dtype} for {name!r}, which safetensors does not have; save its "
                "real and imaginary parts"
            )
        if tensor.device.type != "cpu":
            raise TypeError(
                f"save: got {name!r} on device {tensor.device}, which has no values to save; "
                "expected a CPU tensor"
            )
        size = tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": _DTYPE_NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [place, place + size],
        }
        place += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    file.write(len(text).to_bytes(8, "little"))
    file.write(text)
    for name in order:
        if tensors[name].numel():
            file.write(as_bytes(tensors[name]).data)


def read_tensors(
    file: BinaryIO, size: int, source: str
) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors (in the order of their bytes) and the metadata of a file of `size` bytes.

    Raises:
        FileFormatError: if anything about the file is wrong; `source` names it in the message.
    """
    entries, metadata, data_size = _read_header(file, size, source)
    tensors: dict[str, Tensor] = {}
    place = 0
    for entry in entries:
        if entry.start != place:
            raise FileFormatError(
                f"load: {source} is damaged: the bytes of {entry.name!r} begin at {entry.start}, "
                f"expected {place}"
            )
        place = entry.end
        tensors[entry.name] = _read_tensor(file, entry, source)
    if place != data_size:
        raise FileFormatError(
            f"load: {source} is damaged: its header describes {place} bytes of data, but there are "
            f"{data_size}"
        )
    return tensors, metadata


def _read_header(
    file: BinaryIO, size: int, source: str
) -> tuple[list[_Entry], dict[str, str], int]:
    start = file.read(8)
    if start.startswith(_PICKLE_STARTS):
        raise FileFormatError(
            f"load: {source} is a pickle (a PyTorch checkpoint?), which could run code when read; "
            "convert it once where PyTorch is installed: import torch; from safetensors.torch "
            "import save_file; save_file(torch.load('old.pt', weights_only=True), "
            "'new.safetensors')"
        )
    length = int.from_bytes(start, "little")
    if len(start) < 8 or length > _MAX_HEADER or length < 2:
        raise FileFormatError(
            f"load: {source} is not a safetensors file (it begins with {start!r}); expected a file "
            "written by argand.save or another safetensors writer"
        )
    if length + 8 > size:
        raise FileFormatError(
            f"load: {source} is cut off: it has {size} bytes, and its header alone needs {length + 8}"
        )
    try:
        header = json.loads(file.read(length))
    except (ValueError, RecursionError) as error:
        raise FileFormatError(
            f"load: {source} is not a safetensors file: its header is no JSON ({error})"
        ) from None
    if not isinstance(header, dict):
        raise FileFormatError(f"load: {source} is damaged: its header is no JSON object")
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise FileFormatError(f"load: {source} is damaged: its metadata is not text")
    data_size = size - 8 - length
    entries = [_parse_entry(name, info, data_size, source) for name, info in header.items()]
    entries.sort(key=lambda entry: (entry.start, entry.end))
    return entries, metadata, data_size


def _parse_entry(name: str, info: Any, data_size: int, source: str) -> _Entry:
    def is_size(value: Any) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and value >= 0

    damaged = f"load: {source} is damaged: "
    if not isinstance(info, dict) or not {"dtype", "shape", "data_offsets"} <= set(info):
        raise FileFormatError(damaged + f"{name!r} lacks a dtype, shape or data_offsets")
    dtype, shape, offsets = info["dtype"], info["shape"], info["data_offsets"]
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        raise FileFormatError(
            f"load: {source} has {name!r} of dtype {dtype!r}, expected one of {sorted(_DTYPES)}"
        )
    if not isinstance(shape, list) or not all(is_size(s) for s in shape):
        raise FileFormatError(damaged + f"{name!r} has the shape {shape!r}")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(is_size(o) for o in offsets):
        raise FileFormatError(damaged + f"{name!r} has the data_offsets {offsets!r}")
    start, end = offsets
    expected = math.prod(shape) * _DTYPES[dtype].itemsize
    if end - start != expected:
        raise FileFormatError(
            damaged + f"{name!r} has {end - start} bytes, expected {expected} for {dtype} {shape}"
        )
    if end > data_size:
        raise FileFormatError(
            f"load: {source} is cut off: {name!r} ends at byte {end} of its data, which has "
            f"{data_size}"
        )
    return _Entry(name, _DTYPES[dtype], tuple(shape), start, end)


def _read_tensor(file: BinaryIO, entry: _Entry, source: str) -> Tensor:
    # A new tensor is contiguous, so that the bytes can be read straight into its memory.
    result = aten.empty(entry.shape, dtype=entry.dtype)
    if entry.end > entry.start:
        target = memoryview(as_bytes(result))
        while target:
            count = file.readinto(target) if hasattr(file, "readinto") else _read_into(file, target)
            if not count:
                raise FileFormatError(f"load: {source} is cut off within {entry.name!r}")
            target = target[count:]
    return result


def _read_into(file: BinaryIO, target: memoryview) -> int:
    data = file.read(len(target))
    target[: len(data)] = data
    return len(data)
