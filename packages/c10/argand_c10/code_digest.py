"""Names for what code does, so that what was made with other code is not taken for what this would make."""

from __future__ import annotations

import hashlib
import struct
import weakref
from types import CodeType
from typing import Any

__all__ = ["hash_code"]

_hashes: weakref.WeakKeyDictionary[CodeType, str] = weakref.WeakKeyDictionary()


def _feed(digest: Any, value: Any) -> None:
    """Add a constant, unambiguously: its type, its length, its bits."""
    kind = type(value)
    if kind is CodeType:
        digest.update(b"code" + hash_code(value).encode())
    elif kind is tuple:
        digest.update(b"tuple%d" % len(value))
        for item in value:
            _feed(digest, item)
    elif kind is frozenset:
        digest.update(b"set%d" % len(value))
        for part in sorted(_digest(item) for item in value):
            digest.update(part)
    elif kind is float:
        digest.update(b"float" + struct.pack("<d", value))
    elif kind is complex:
        digest.update(b"complex" + struct.pack("<dd", value.real, value.imag))
    else:
        data = value if kind is bytes else repr(value).encode("utf-8", "surrogatepass")
        digest.update(b"%s%d:" % (kind.__name__.encode(), len(data)) + data)


def _digest(value: Any) -> bytes:
    digest = hashlib.sha256()
    _feed(digest, value)
    return digest.digest()


def hash_code(code: CodeType) -> str:
    """A name for what a code object does: bytecode, constants (nested code too), names, arguments; not for where it stands."""
    found = _hashes.get(code)
    if found is None:
        parts = (
            code.co_code, code.co_consts, code.co_names, code.co_varnames, code.co_cellvars, code.co_freevars, code.co_flags,
            code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_exceptiontable, code.co_qualname,
        )  # fmt: skip
        found = _hashes[code] = _digest(parts).hex()
    return found
