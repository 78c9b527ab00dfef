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
)


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
