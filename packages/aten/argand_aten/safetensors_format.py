"""Tensors to and from safetensors files: the `safetensors` library, with this project's errors.

Checked here is what the library leaves open: dtypes and shapes that exist here, bytes of booleans.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import BinaryIO

import safetensors

import argand_aten as aten
import argand_c10 as c10
from argand_c10 import Tensor

__all__ = ["FileFormatError", "read_tensors", "write_tensors"]

# The file format's names; those of `safetensors.TensorSpec` are the ones used here.
_DTYPES = {
    "BOOL": c10.bool,
    "U8": c10.uint8,
    "I8": c10.int8,
    "I16": c10.int16,
    "I32": c10.int32,
    "I64": c10.int64,
    "U16": c10.uint16,
    "U32": c10.uint32,
    "U64": c10.uint64,
    "F16": c10.float16,
    "BF16": c10.bfloat16,
    "F32": c10.float32,
    "F64": c10.float64,
    "C64": c10.complex64,
    "F8_E4M3": c10.float8_e4m3fn,
    "F8_E5M2": c10.float8_e5m2,
}
_SAVED_DTYPES = frozenset(_DTYPES.values())
_PICKLE_STARTS = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")


class FileFormatError(RuntimeError):
    """A file is not what it should be: foreign, cut off or damaged."""


def write_tensors(
    file: str | BinaryIO, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]
) -> None:
    """Write tensors and text metadata to a path or a binary file object.

    Raises:
        TypeError: for dtypes that the format does not have; before anything is written.
        OSError: if the file cannot be written.
    """
    for name, tensor in tensors.items():
        _check_saved(name, tensor)
    # The library takes addresses: `kept` owns the memory until it has returned.
    kept = {name: tensor.detach().contiguous().to("cpu") for name, tensor in tensors.items()}
    specs = {
        name: safetensors.TensorSpec(
            dtype=str(tensor.dtype).rpartition(".")[2],
            shape=list(tensor.shape),
            data_ptr=tensor.data_ptr(),
            data_len=tensor.numel() * tensor.element_size(),
        )
        for name, tensor in kept.items()
    }
    if not isinstance(file, str):
        file.write(safetensors.serialize(specs, dict(metadata) or None))
        return
    try:
        safetensors.serialize_file(specs, file, dict(metadata) or None)
    except safetensors.SafetensorError as error:
        raise OSError(f"save: {error}") from None


def _check_saved(name: str, tensor: Tensor) -> None:
    if tensor.dtype not in _SAVED_DTYPES:
        raise TypeError(
            f"save: got {tensor.dtype} for {name!r}, which safetensors does not have; save its "
            "real and imaginary parts"
        )
    if tensor.is_meta:
        raise TypeError(
            f"save: got {name!r} on device {tensor.device}, which has no values to save; "
            "expected a tensor with data"
        )


def read_tensors(
    file: str | os.PathLike[str] | BinaryIO, source: str
) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors (in the order of the header) and the metadata of a path or binary file object.

    Raises:
        FileFormatError: if anything about the file is wrong; `source` names it in the message.
    """
    if isinstance(file, str | os.PathLike):
        with open(file, "rb") as opened:
            data = opened.read()
    else:
        data = file.read()
    try:
        entries = dict(safetensors.deserialize(data))  # type: ignore[no-untyped-call]
    except safetensors.SafetensorError as error:
        raise FileFormatError(_explain(data, source, error)) from None
    # The library checked the header but returns neither its metadata nor its order.
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    del data
    metadata = header.pop("__metadata__", None) or {}
    return {name: _to_tensor(name, **entries.pop(name), source=source) for name in header}, metadata


def _explain(data: bytes, source: str, error: Exception) -> str:
    # A header begins with "{"; its length, which comes before, may look like a pickle's start.
    if data[8:9] == b"{":
        return f"load: {source} is damaged or cut off ({error}); copy it or save it again"
    if data.startswith(_PICKLE_STARTS):
        return (
            f"load: {source} is a pickle (a PyTorch checkpoint?), which could run code when read; "
            "convert it once where PyTorch is installed: import torch; from safetensors.torch "
            "import save_file; save_file(torch.load('old.pt', weights_only=True), "
            "'new.safetensors')"
        )
    return (
        f"load: {source} is not a safetensors file (it begins with {data[:8]!r}: {error}); expected "
        "a file written by argand.save or another safetensors writer"
    )


def _to_tensor(name: str, dtype: str, shape: list[int], data: bytearray, source: str) -> Tensor:
    if dtype not in _DTYPES:
        raise FileFormatError(
            f"load: {source} has {name!r} of dtype {dtype!r}, expected one of {sorted(_DTYPES)}"
        )
    if dtype == "BOOL" and data.translate(None, b"\0\1"):
        raise FileFormatError(
            f"load: {source} is damaged: {name!r} of dtype 'BOOL' has bytes other than 0 and 1"
        )
    try:
        result = aten.empty(shape, dtype=_DTYPES[dtype])
    except (TypeError, c10.ShapeError) as error:  # beyond 64 bits, or beyond what there is
        raise FileFormatError(
            f"load: {source} has {name!r} of an unusable shape: {error}"
        ) from None
    if data:
        result.copy_(aten.reshape(c10.frombuffer(data, dtype=_DTYPES[dtype]), shape))
    return result
