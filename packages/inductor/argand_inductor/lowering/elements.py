"""The handler that element functions of the registry are called with: builds loop IR values."""

from __future__ import annotations

import math
import struct
from typing import Any

from argand_inductor.loop_ir import HALF, ITEMSIZE, Value, compute_dtype, number

COMPARISONS = frozenset(
    {"eq", "ne", "lt", "le", "gt", "ge", "signbit", "isnan", "isinf", "isfinite"}
)
_BOOLEAN = {
    "add": "bit_or",
    "mul": "bit_and",
    "minimum": "bit_and",
    "fmin": "bit_and",
    "maximum": "bit_or",
    "fmax": "bit_or",
    "ne": "bit_xor",
}
_INTEGER_IDENTITIES = frozenset({"floor", "ceil", "trunc", "round"})
# Results are one of the operands, or one with another sign.
_SELECTS = frozenset({"minimum", "maximum", "fmin", "fmax", "neg", "abs"})
_INTEGER_BITS = {
    "uint8": (8, False),
    "int8": (8, True),
    "int16": (16, True),
    "int32": (32, True),
    "int64": (64, True),
    "uint16": (16, False),
    "uint32": (32, False),
    "uint64": (64, False),
}


def is_float(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat"))


def round_half(value: float, dtype: str) -> float:
    """What a 16-bit float holds of a number, to nearest even."""
    if math.isnan(value) or math.isinf(value):
        return value
    if dtype == "float16":
        try:
            return float(
                struct.unpack(
                    "<e", struct.pack("<e", struct.unpack("<f", struct.pack("<f", value))[0])
                )[0]
            )
        except OverflowError:
            return math.copysign(math.inf, value)
    try:
        bits = struct.unpack("<I", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return float(struct.unpack("<f", struct.pack("<I", bits))[0])


def literal(value: float, dtype: str) -> Value:
    """A number as an element of a (storage) dtype: converted as a tensor of that dtype would hold it."""
    held = compute_dtype(dtype)
    if held == "bool":
        return number(bool(value), held)
    if held in _INTEGER_BITS:
        bits, signed = _INTEGER_BITS[held]
        large = held == "uint64" and 2.0**63 <= value < 2.0**64
        held_whole = isinstance(value, int) or -9.3e18 < value < 9.2e18 or large
        whole = int(value) if held_whole else -(1 << 63)
        wrapped = whole & ((1 << bits) - 1)
        return number(wrapped - (1 << bits) if signed and wrapped >> (bits - 1) else wrapped, held)
    return number(round_half(float(value), dtype) if dtype in HALF else float(value), held)


class Elements:
    """`v` of element functions: the computation is of `dtype` (as computed: no 16-bit floats)."""

    def __init__(self, dtype: str) -> None:
        self.dtype = compute_dtype(dtype)

    def number(self, value: float) -> Value:
        return literal(value, self.dtype)

    def cast(self, x: Value, dtype: str) -> Value:
        return convert(x, dtype)

    def call(self, fn: str, *args: Value) -> Value:
        if fn == "where":
            condition, a, b = args
            return Value(fn, (truth(condition), a, b), a.dtype, half=common_half(a, b))
        first = args[0]
        if fn in ("real", "conj") or (not is_float(first.dtype) and fn in _INTEGER_IDENTITIES):
            return first
        if fn in COMPARISONS:
            return self._compare(fn, args)
        if fn == "mul" and first.dtype != "bool":
            for one, other in ((args[0], args[1]), (args[1], args[0])):
                if one.op == "number" and one.detail == 1:
                    return other  # exact, as for `alpha=1`
        if first.dtype == "bool":
            if fn in ("abs", "sign"):
                return first
            fn = _BOOLEAN.get(fn, fn)
        return Value(fn, args, first.dtype, half=common_half(*args) if fn in _SELECTS else "")

    def _compare(self, fn: str, args: tuple[Value, ...]) -> Value:
        first = args[0]
        if not is_float(first.dtype):
            if fn in ("isnan", "isinf"):
                return Value("number", (), "bool", False)
            if fn == "isfinite":
                return Value("number", (), "bool", True)
        if first.dtype != "bool":
            if fn == "signbit" and not is_float(first.dtype):
                return Value("lt", (first, literal(0, first.dtype)), "bool")
            return Value(fn, args, "bool")
        if fn == "signbit":
            return Value("number", (), "bool", False)
        a, b = args
        if fn in ("eq", "ne"):
            different = Value("bit_xor", (a, b), "bool")
            return different if fn == "ne" else invert(different)
        if fn in ("lt", "ge"):  # a < b: not a, and b
            less = Value("bit_and", (invert(a), b), "bool")
            return less if fn == "lt" else invert(less)
        greater = Value("bit_and", (a, invert(b)), "bool")
        return greater if fn == "gt" else invert(greater)


def common_half(*values: Value) -> str:
    """The 16-bit dtype that holds each of the values exactly, or ""."""
    half = next((v.half for v in values if v.half), "")
    return half if half and all(holds(half, v) for v in values) else ""


def holds(half: str, x: Value) -> bool:
    """Whether a 16-bit dtype is known to hold the value."""
    if x.op == "number":
        return math.isnan(x.detail) or round_half(x.detail, half) == x.detail
    return x.half == half


def invert(x: Value) -> Value:
    return Value("bit_not", (x,), "bool")


def truth(x: Value) -> Value:
    """x as a condition."""
    return convert(x, "bool")


def convert(x: Value, dtype: str) -> Value:
    """x as an element of a storage dtype, as eager's conversion between tensors makes it; 16-bit floats are rounded to."""
    held = compute_dtype(dtype)
    if x.dtype != held:
        if x.op == "number":
            x = _convert_number(x, held)
        elif held == "bool":
            x = Value("ne", (x, literal(0, x.dtype)), "bool")
        else:
            if dtype in HALF and x.dtype in ("float64", "int64", "uint64"):
                x = Value("convert", (x,), "float32")
            x = x if x.dtype == held else Value("convert", (x,), held)
    return round_to(x, dtype)


def _convert_number(x: Value, dtype: str) -> Value:
    value: Any = x.detail
    if not is_float(dtype) and dtype != "bool" and is_float(x.dtype) and not math.isfinite(value):
        return Value("convert", (x,), dtype)
    return literal(value, dtype)


def round_to(x: Value, dtype: str) -> Value:
    """x rounded to what a 16-bit dtype holds; other dtypes: x."""
    if dtype not in HALF or x.half == dtype:
        return x
    if x.op == "number":
        return literal(x.detail, dtype)
    return Value("narrow", (x,), "float32", dtype, dtype)


def extreme(dtype: str, highest: bool) -> float | int | bool:
    """What no element of a computation's dtype is above (below)."""
    if dtype == "bool":
        return highest
    if dtype.startswith("float"):
        return math.inf if highest else -math.inf
    bits = 8 * ITEMSIZE[dtype]
    if dtype.startswith("u"):
        return (1 << bits) - 1 if highest else 0
    largest = (1 << (bits - 1)) - 1
    return largest if highest else -largest - 1
