"""Plain data of frame plans as JSON values and back, without loss: tuples stay tuples, floats keep their bits, dtypes and devices are named.

Tuples are JSON lists. Everything that JSON cannot say is an object with one key that names its kind. Reading looks types and functions up in modules that
are already loaded and runs nothing.
"""

from __future__ import annotations

import struct
import sys
import types
from collections.abc import Callable
from typing import Any

import argand_c10


class NotPlainError(ValueError):
    """A value that has no meaning in another process; the message says which."""


class UnknownNameError(ValueError):
    """A name in stored data that no loaded module defines."""


def _float_bits(value: float) -> int:
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])


def _bits_float(bits: int) -> float:
    return float(struct.unpack("<d", struct.pack("<Q", bits))[0])


def global_name(value: Any) -> tuple[str, str] | None:
    """Module and qualified name under which a loaded module holds exactly this object, or None."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if isinstance(value, types.ModuleType):
        module, name = value.__name__, ""
    if not isinstance(module, str) or not isinstance(name, str) or "<locals>" in name:
        return None
    try:
        return (module, name) if find_global(module, name) is value else None
    except UnknownNameError:
        return None


def find_global(module: str, qualname: str) -> Any:
    """The object of that name in a loaded module.

    Raises:
        UnknownNameError: the module is not loaded or has no such attribute.
    """
    found: Any = sys.modules.get(module)
    if found is None:
        raise UnknownNameError(f"module {module} is not loaded")
    for part in qualname.split(".") if qualname else ():
        # Entries of dicts only: nothing is imported lazily and no property runs.
        owners = found.__mro__ if isinstance(found, type) else (found,)
        for owner in owners:
            entries = getattr(owner, "__dict__", {})
            if part in entries:
                found = entries[part]
                break
        else:
            raise UnknownNameError(f"{module} has no {qualname}")
        if isinstance(found, (staticmethod, classmethod)):
            found = found.__func__
    return found


_TAGGED: dict[type, Callable[[Any], Any]] = {
    tuple: lambda v: [to_plain(item) for item in v],
    list: lambda v: {"list": [to_plain(item) for item in v]},
    dict: lambda v: {"dict": [[to_plain(k), to_plain(item)] for k, item in v.items()]},
    float: lambda v: {"float": _float_bits(v)},
    complex: lambda v: {"complex": [_float_bits(v.real), _float_bits(v.imag)]},
    bytes: lambda v: {"bytes": v.hex()},
    frozenset: lambda v: {"frozenset": sorted((to_plain(item) for item in v), key=repr)},
    slice: lambda v: {"slice": [to_plain(v.start), to_plain(v.stop), to_plain(v.step)]},
    range: lambda v: {"range": [v.start, v.stop, v.step]},
    type(Ellipsis): lambda v: {"ellipsis": 0},
    argand_c10.dtype: lambda v: {"dtype": str(v).rpartition(".")[2]},
    argand_c10.device: lambda v: {"device": str(v)},
}


def to_plain(value: Any) -> Any:
    """JSON value of a constant, a container of constants, or a class or function that a module holds by name.

    Raises:
        NotPlainError: there is none.
    """
    kind = type(value)
    if value is None or kind is bool or kind is int or kind is str:
        return value
    tagged = _TAGGED.get(kind)
    if tagged is not None:
        return tagged(value)
    name = global_name(value)
    if name is None:
        raise NotPlainError(f"{value!r} of type {kind.__qualname__} exists only in this process")
    return {"global": list(name)}


def _tuple(data: Any) -> tuple[Any, ...]:
    return tuple([from_plain(item) for item in data])


def _dtype(name: Any) -> Any:
    found = getattr(argand_c10, str(name), None)
    if not isinstance(found, argand_c10.dtype):
        raise UnknownNameError(f"no dtype {name!r}")
    return found


_READERS: dict[str, Callable[[Any], Any]] = {
    "list": lambda d: list(_tuple(d)),
    "dict": lambda d: {from_plain(k): from_plain(v) for k, v in d},
    "float": _bits_float,
    "complex": lambda d: complex(_bits_float(d[0]), _bits_float(d[1])),
    "bytes": bytes.fromhex,
    "frozenset": lambda d: frozenset(_tuple(d)),
    "slice": lambda d: slice(*_tuple(d)),
    "range": lambda d: range(*d),
    "ellipsis": lambda d: ...,
    "dtype": _dtype,
    "device": lambda d: argand_c10.device(d),
    "global": lambda d: find_global(*d),
}


def from_plain(data: Any) -> Any:
    """The value that `to_plain` wrote.

    Raises:
        UnknownNameError: it names something that is not loaded here.
        ValueError: the data is malformed.
    """
    if type(data) is list:
        return _tuple(data)
    if type(data) is not dict:
        return data
    if len(data) == 1:
        ((kind, payload),) = data.items()
        reader = _READERS.get(kind)
        if reader is not None:
            return reader(payload)
    raise ValueError(f"plan data: got {data!r}, expected an object with one of {sorted(_READERS)}")
