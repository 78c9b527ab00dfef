"""Names and literals of generated C."""

from __future__ import annotations

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


def c_string(text: str) -> str:
    """A C string literal; bytes outside printable ASCII are octal escapes."""
    out = []
    for byte in text.encode():
        c = chr(byte)
        if c in '"\\':
            out.append("\\" + c)
        elif 32 <= byte < 127 and c != "?":  # no trigraphs
            out.append(c)
        else:
            out.append(f"\\{byte:03o}")
    return '"' + "".join(out) + '"'


def comment(text: str) -> str:
    """A C comment of one line."""
    return "/* " + text.replace("*/", "* /").replace("/*", "/ *").replace("\n", " ") + " */"
