"""Constants of a program as JSON."""

from __future__ import annotations

from typing import Any

import argand_c10 as c10


def to_plain(value: Any) -> Any:
    """A constant as JSON; floats by their text, which keeps every bit.

    Raises:
        TypeError: there is no such form of it.
    """
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return {"float": value.hex()}
    if isinstance(value, c10.dtype):
        return {"dtype": value.name}
    if isinstance(value, c10.device):
        return {"device": str(value)}
    raise TypeError(
        f"save: got the constant {value!r} of type {type(value).__name__}, expected None, bool, int, float, str, dtype or device"
    )


def from_plain(x: Any) -> Any:
    """What `to_plain` was given.

    Raises:
        ValueError: it is something else.
    """
    if not isinstance(x, dict):
        if x is None or type(x) in (bool, int, str):
            return x
        raise ValueError(f"got the constant {x!r}")
    ((kind, text),) = x.items()
    if kind == "float":
        return float.fromhex(text)
    if kind == "dtype":
        return c10._C._dtype_by_name(text)
    if kind == "device":
        return c10.device(text)
    raise ValueError(f"got a constant of kind {kind!r}")
