"""Plain data of frame plans as JSON values and back, without loss: tuples stay tuples, floats keep their bits, dtypes and devices are named.

Tuples are JSON lists. Paths (tuples of steps, most of a plan) are rows of a table: [row of the path without its last step or -1, last step]. Everything that JSON cannot say is an object with one key that names its kind. Reading looks types and functions up in modules that
are already loaded, or that loaded packages of Argand load at first use, and runs nothing else.
"""

from __future__ import annotations

import contextlib
import enum
import importlib
import struct
import sys
import types
from collections.abc import Callable
from typing import Any

import argand_c10
from argand_c10 import Operator, Tensor
from argand_c10._C import OperatorMethod
from argand_dynamo.result_types import find_result_type, name_of_result_type


class NotPlainError(ValueError):
    """A value that has no meaning in another process; the message says which."""


class UnknownNameError(ValueError):
    """A name in stored data that no loaded module defines."""


def _float_bits(value: float) -> int:
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])


def _bits_float(bits: int) -> float:
    return float(struct.unpack("<d", struct.pack("<Q", bits))[0])


# Packages whose modules find their names when asked, and their own modules too: the only ones whose code runs here.
_LAZY = ("argand",)
# Types that have no name where they say that they are from.
_TYPE_NAMES = {
    found: name for name, found in vars(types).items() if isinstance(found, type) and name[0] != "_"
}


def _name_of(value: Any) -> tuple[Any, Any]:
    if isinstance(value, types.ModuleType):
        return value.__name__, ""
    if isinstance(value, enum.Enum):
        return type(value).__module__, f"{type(value).__qualname__}.{value.name}"
    # Methods and slots of native types; their __new__.
    owner = getattr(value, "__objclass__", None)
    if isinstance(value, types.BuiltinFunctionType):
        owner = value.__self__
    if isinstance(owner, type):
        return owner.__module__, f"{owner.__qualname__}.{value.__name__}"
    if isinstance(value, type) and value in _TYPE_NAMES:
        return "types", _TYPE_NAMES[value]
    return getattr(value, "__module__", None), getattr(value, "__qualname__", None)


def global_name(value: Any) -> tuple[str, str] | None:
    """Module and qualified name under which a loaded module holds exactly this object, or None."""
    module, name = _name_of(value)
    if not isinstance(module, str) or not isinstance(name, str) or "<locals>" in name:
        return None
    try:
        return (module, name) if find_global(module, name) is value else None
    except UnknownNameError:
        return None


def _entry(owner: Any, name: str) -> Any:
    """An entry of an object's or class's dict; no property runs."""
    for holder in owner.__mro__ if isinstance(owner, type) else (owner,):
        entries = getattr(holder, "__dict__", {})
        members = entries.get("_member_map_")  # of an enumeration
        if isinstance(members, dict) and name in members:
            return members[name]
        if name in entries:
            found = entries[name]
            return found.__func__ if isinstance(found, (staticmethod, classmethod)) else found
    raise UnknownNameError(f"{owner!r} has no {name}")


def _find_module(name: str, lazy: bool) -> Any:
    """A loaded module, or a lazy package's module: a trace loads it when it asks the package for it, and so does what reads its plan."""
    found = sys.modules.get(name)
    if found is None and lazy and name.partition(".")[0] in sys.modules:
        with contextlib.suppress(ImportError):
            found = importlib.import_module(name)
    if found is None:
        raise UnknownNameError(f"module {name} is not loaded")
    return found


def find_global(module: str, qualname: str) -> Any:
    """The object of that name in a loaded module, or in one of a loaded package of Argand.

    Raises:
        UnknownNameError: the module is not loaded or has no such attribute.
    """
    lazy = module.partition(".")[0].partition("_")[0] in _LAZY
    found = _find_module(module, lazy)
    for part in qualname.split(".") if qualname else ():
        if lazy and isinstance(found, types.ModuleType):
            found = getattr(found, part, None)
            if found is None:
                raise UnknownNameError(f"{module} has no {qualname}")
        else:
            found = _entry(found, part)
    return found


_SCALARS = frozenset((str, int, bool, type(None)))
_NESTED = frozenset((list, dict))


def _is_path(value: tuple[Any, ...]) -> bool:
    return all([type(step) is tuple and step and type(step[0]) is str for step in value])


class PlainWriter:
    """Makes JSON values; `rows` is the table of the paths in them."""

    def __init__(self) -> None:
        self.rows: list[list[Any]] = []
        self._row_of: dict[tuple[Any, ...], int] = {}

    def plain(self, value: Any) -> Any:
        """JSON value of a constant, a container of constants, or a class or function that a module holds by name.

        Raises:
            NotPlainError: there is none.
        """
        kind = type(value)
        if kind in _SCALARS:
            return value
        if kind is tuple:
            if value and _is_path(value):
                return {"path": self._row(value)}
            return [self.plain(item) for item in value]
        tagged = _TAGGED.get(kind)
        if tagged is not None:
            return tagged(self, value)
        if kind is type and (result := name_of_result_type(value)) is not None:
            return {"results": list(result)}
        name = global_name(value)
        if name is None:
            raise NotPlainError(
                f"{value!r} of type {kind.__qualname__} exists only in this process"
            )
        return {"global": list(name)}

    def _row(self, path: tuple[tuple[Any, ...], ...]) -> int:
        row = -1
        for step in path:
            # Types tell 1 from True; what is no scalar gets a row of its own each time.
            shared = len(step) <= 2 and type(step[-1]) in _SCALARS
            key = (row, len(step), step[0], type(step[-1]), step[-1]) if shared else ()
            found = self._row_of.get(key)
            if found is None:
                parts = [self.plain(part) for part in step]
                found = len(self.rows)
                self.rows.append([row, parts])
                if shared:
                    self._row_of[key] = found
            row = found
        return row


_TAGGED: dict[type, Callable[[PlainWriter, Any], Any]] = {
    list: lambda w, v: {"list": [w.plain(item) for item in v]},
    dict: lambda w, v: {"dict": [[w.plain(k), w.plain(item)] for k, item in v.items()]},
    float: lambda w, v: {"float": _float_bits(v)},
    complex: lambda w, v: {"complex": [_float_bits(v.real), _float_bits(v.imag)]},
    bytes: lambda w, v: {"bytes": v.hex()},
    frozenset: lambda w, v: {"frozenset": sorted((w.plain(item) for item in v), key=repr)},
    slice: lambda w, v: {"slice": [w.plain(v.start), w.plain(v.stop), w.plain(v.step)]},
    range: lambda w, v: {"range": [v.start, v.stop, v.step]},
    type(Ellipsis): lambda w, v: {"ellipsis": 0},
    **dict.fromkeys(
        (argand_c10.dtype, argand_c10.layout, argand_c10.memory_format),
        lambda w, v: {type(v).__name__: str(v).rpartition(".")[2]},
    ),
    argand_c10.device: lambda w, v: {"device": str(v)},
    argand_c10.Size: lambda w, v: {"size": list(v)},
    Operator: lambda w, v: {"operator": _operator_name(v, _operator)},
    OperatorMethod: lambda w, v: {"method": _operator_name(v, _method)},
}


def _operator_name(value: Any, find: Callable[[str], Any]) -> str:
    name = str(value.name)
    if find(name) is not value:
        raise NotPlainError(f"{value!r} exists only in this process")
    return name


def _operator(name: Any) -> Any:
    try:
        return argand_c10.find_operator(str(name))
    except LookupError as error:
        raise UnknownNameError(str(error)) from None


def _method(name: Any) -> Any:
    found = vars(Tensor).get(str(name))
    if not isinstance(found, OperatorMethod):
        raise UnknownNameError(f"tensors have no operator {name!r} as a method")
    return found


def _results(data: Any) -> Any:
    try:
        return find_result_type(*data)
    except LookupError as error:
        raise UnknownNameError(str(error)) from None


def _named(kind: type, name: Any) -> Any:
    """A dtype, layout or memory format."""
    found = getattr(argand_c10, str(name), None)
    if not isinstance(found, kind):
        raise UnknownNameError(f"no {kind.__name__} {name!r}")
    return found


class PlainReader:
    """Makes values of JSON values.

    Args:
        rows: the writer's.

    Raises:
        ValueError: the table is malformed.
    """

    def __init__(self, rows: list[Any]) -> None:
        self._paths: list[tuple[Any, ...]] = []
        for parent, parts in rows:
            if type(parent) is not int or not -1 <= parent < len(self._paths):
                raise ValueError(f"plan data: got row {parent!r} before it is there")
            before = self._paths[parent] if parent >= 0 else ()
            self._paths.append((*before, self.items(parts)))

    def items(self, data: Any) -> tuple[Any, ...]:
        """The values of a list."""
        return tuple([self.value(item) if type(item) in _NESTED else item for item in data])

    def value(self, data: Any) -> Any:
        """The value that `PlainWriter.plain` wrote.

        Raises:
            UnknownNameError: it names something that is not loaded here.
            ValueError: the data is malformed.
        """
        if type(data) is list:
            return self.items(data)
        if type(data) is not dict:
            return data
        if len(data) == 1:
            ((kind, payload),) = data.items()
            if kind == "path" and type(payload) is int and 0 <= payload < len(self._paths):
                return self._paths[payload]
            reader = _READERS.get(kind)
            if reader is not None:
                return reader(self, payload)
        raise ValueError(
            f"plan data: got {data!r}, expected an object with one of {sorted(_READERS)} or a path"
        )


_READERS: dict[str, Callable[[PlainReader, Any], Any]] = {
    "list": lambda r, d: list(r.items(d)),
    "dict": lambda r, d: {r.value(k): r.value(v) for k, v in d},
    "float": lambda r, d: _bits_float(d),
    "complex": lambda r, d: complex(_bits_float(d[0]), _bits_float(d[1])),
    "bytes": lambda r, d: bytes.fromhex(d),
    "frozenset": lambda r, d: frozenset(r.items(d)),
    "slice": lambda r, d: slice(*r.items(d)),
    "range": lambda r, d: range(*d),
    "ellipsis": lambda r, d: ...,
    "dtype": lambda r, d: _named(argand_c10.dtype, d),
    "layout": lambda r, d: _named(argand_c10.layout, d),
    "memory_format": lambda r, d: _named(argand_c10.memory_format, d),
    "device": lambda r, d: argand_c10.device(d),
    "size": lambda r, d: argand_c10.Size(d),
    "operator": lambda r, d: _operator(d),
    "method": lambda r, d: _method(d),
    "results": lambda r, d: _results(d),
    "global": lambda r, d: find_global(*d),
}
