"""Names and literals of generated C."""

from __future__ import annotations

import re

# In the order of ArgandDType.
DTYPES = (
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "float8_e4m3fn",
    "float8_e5m2",
    "uint16",
    "uint32",
    "uint64",
)


# In the order of ArgandDeviceType.
DEVICES = ("cpu", "cuda", "hip", "meta", "privateuse1", "privateuse2", "privateuse3")


def device_number(device: str) -> int:
    """The ArgandDevice of "cuda:1"; without an index the current one, which the CPU has not.

    Raises:
        ValueError: for a type that is not known.
    """
    kind, _, index = device.partition(":")
    if kind not in DEVICES:
        raise ValueError(
            f"program: got the device {device!r}, expected one of {', '.join(DEVICES)}"
        )
    return DEVICES.index(kind) << 8 | int(index or (0 if kind in ("cpu", "meta") else 0xFF))


# What is not itself in a string: quotes, backslashes, ? (trigraphs) and bytes outside printable ASCII.
_ESCAPED = re.compile(rb"[^ !#->@-\[\]-~]")


def _escape(match: re.Match[bytes]) -> bytes:
    byte = match.group()
    return b"\\" + byte if byte in b'"\\' else b"\\%03o" % byte[0]


def c_string(text: str) -> str:
    """A C string literal; bytes outside printable ASCII are octal escapes."""
    return f'"{_ESCAPED.sub(_escape, text.encode()).decode()}"'


def comment(text: str) -> str:
    """A C comment of one line."""
    return "/* " + text.replace("*/", "* /").replace("/*", "/ *").replace("\n", " ") + " */"
