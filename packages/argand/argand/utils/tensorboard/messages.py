"""Messages of protocol buffers: a field is its number and the kind of its bytes, then these."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from argand_c10 import Tensor, bfloat16

__all__ = [
    "array",
    "double",
    "doubles",
    "float32",
    "integer",
    "message",
    "number",
    "summary_metadata",
    "tensor",
    "varint",
]


def varint(value: int) -> bytes:
    """A whole number in groups of seven bits."""
    value &= (1 << 64) - 1
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def integer(field: int, value: int) -> bytes:
    """A field with a whole number."""
    return varint(field << 3) + varint(value)


def double(field: int, value: float) -> bytes:
    """A field with a number of 64 bits."""
    return varint(field << 3 | 1) + struct.pack("<d", value)


def float32(field: int, value: float) -> bytes:
    """A field with a number of 32 bits."""
    with np.errstate(over="ignore"):  # numbers beyond 32 bits are infinite
        return varint(field << 3 | 5) + np.asarray(value, dtype="<f4").tobytes()


def message(field: int, value: bytes | str) -> bytes:
    """A field with a text, with bytes or with a message."""
    data = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(data)) + data


def doubles(field: int, values: Any) -> bytes:
    """A field with several numbers of 64 bits."""
    return message(field, np.asarray(values, dtype="<f8").tobytes())


def array(values: Any) -> Any:
    """NumPy's array of a tensor, or of what NumPy takes."""
    if isinstance(values, Tensor):
        values = values.detach().cpu()
        return (values.float() if values.dtype == bfloat16 else values).numpy()
    return np.asarray(values)


def number(value: Any) -> float:
    """The number in a tensor or array of one.

    Raises:
        ValueError: there are more, or none.
    """
    found = array(value)
    if found.size != 1:
        raise ValueError(
            f"SummaryWriter: got a value of shape {list(found.shape)}, expected one number"
        )
    return float(found.reshape(()))


def tensor(values: Any) -> bytes:
    """A TensorProto of numbers with 32 bits, or of texts."""
    found = np.asarray(values)
    shape = b"".join(message(2, integer(1, n)) for n in found.shape)
    if found.dtype.kind in "SU":
        content = b"".join(message(8, str(text)) for text in found.reshape(-1))
        return integer(1, 7) + message(2, shape) + content
    kind, dtype = (3, "<i4") if found.dtype.kind in "iu" else (1, "<f4")
    return integer(1, kind) + message(2, shape) + message(4, found.astype(dtype).tobytes())


def summary_metadata(plugin: str, content: bytes = b"") -> bytes:
    """The field of a value that says which plugin shows it."""
    data = message(1, plugin) + (message(2, content) if content else b"")
    return message(9, message(1, data))
