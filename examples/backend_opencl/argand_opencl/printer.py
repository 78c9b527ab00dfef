"""Prints the registry's element functions as OpenCL C: the handler that `argand_c10.lowerings` describes.

Elements of 16-bit floats are computed in float and rounded when they are stored, once an operator.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

# dtype -> (type in memory, type in computations)
TYPES = {
    "bool": ("uchar", "int"),
    "uint8": ("uchar", "uchar"),
    "int8": ("char", "char"),
    "int16": ("short", "short"),
    "int32": ("int", "int"),
    "int64": ("long", "long"),
    "float16": ("half", "float"),
    "bfloat16": ("ushort", "float"),
    "float32": ("float", "float"),
    "float64": ("double", "double"),
}
COMPUTED = {"float16": "float32", "bfloat16": "float32"}

PRELUDE = """
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define LOAD(T) static inline T load_##T(__global const T* p) { return *p; } static inline void store_##T(__global T* p, T x) { *p = x; }
LOAD(uchar) LOAD(char) LOAD(short) LOAD(int) LOAD(long) LOAD(float) LOAD(double)
static inline float load_half(__global const half* p) { return vload_half(0, p); }
static inline void store_half(__global half* p, float x) { vstore_half_rte(x, 0, p); }
static inline float load_bfloat(__global const ushort* p) { return as_float((uint)*p << 16); }
static inline void store_bfloat(__global ushort* p, float x) {
  uint u = as_uint(x);
  *p = isnan(x) ? (ushort)0x7fc0 : (ushort)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}
#define FLOATING(T) \\
  static inline T minimum_##T(T a, T b) { return isnan(a) || isnan(b) ? (T)NAN : fmin(a, b); } \\
  static inline T maximum_##T(T a, T b) { return isnan(a) || isnan(b) ? (T)NAN : fmax(a, b); } \\
  static inline T remainder_##T(T a, T b) { T r = fmod(a, b); return r != 0 && ((r < 0) != (b < 0)) ? r + b : r; } \\
  static inline T floor_divide_##T(T a, T b) { \\
    if (b == 0) return a / b; \\
    T m = fmod(a, b), q = (a - m) / b; \\
    if (m != 0 && ((b < 0) != (m < 0))) q -= 1; \\
    if (q == 0) return copysign((T)0, a / b); \\
    T f = floor(q); \\
    return q - f > (T)0.5 ? f + 1 : f; \\
  } \\
  static inline T trunc_divide_##T(T a, T b) { return trunc(a / b); } \\
  static inline T pow_##T(T a, T b) { return pow(a, b); } \\
  static inline T sign_##T(T a) { return (T)((a > 0) - (a < 0)); } \\
  static inline T frac_##T(T a) { return a - trunc(a); } \\
  static inline T sigmoid_##T(T a) { return 1 / (1 + exp(-a)); }
FLOATING(float) FLOATING(double)
#define INTEGER(T) \\
  static inline T minimum_##T(T a, T b) { return min(a, b); } \\
  static inline T maximum_##T(T a, T b) { return max(a, b); } \\
  static inline T trunc_divide_##T(T a, T b) { return b == 0 ? 0 : a / b; } \\
  static inline T fmod_##T(T a, T b) { return b == 0 ? 0 : a % b; } \\
  static inline T remainder_##T(T a, T b) { T r = b == 0 ? 0 : a % b; return r != 0 && ((r < 0) != (b < 0)) ? r + b : r; } \\
  static inline T floor_divide_##T(T a, T b) { return b == 0 ? 0 : a / b - (a % b != 0 && ((a < 0) != (b < 0))); } \\
  static inline T sign_##T(T a) { return (T)((a > 0) - (a < 0)); } \\
  static inline T pow_##T(T a, T b) { T r = 1; for (; b > 0; b >>= 1, a *= a) if (b & 1) r *= a; return r; }
INTEGER(uchar) INTEGER(char) INTEGER(short) INTEGER(int) INTEGER(long)
"""

_INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "bit_and": "&",
    "bit_or": "|",
    "bit_xor": "^",
}
_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_BOOLEAN = {
    "add": "|",
    "mul": "&",
    "minimum": "&",
    "fmin": "&",
    "maximum": "|",
    "fmax": "|",
    "ne": "^",
}
_TESTS = frozenset({"isnan", "isinf", "isfinite", "signbit"})
# Functions of OpenCL C for floats, under its name where that is another.
_BUILTIN = {
    **{name: name for name in (
        "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf "
        "erfc floor ceil trunc lgamma fmin fmax fmod atan2 hypot copysign"
    ).split()},
    "round": "rint",
    "abs": "fabs",
}  # fmt: skip
_HELPERS = frozenset(
    "minimum maximum remainder floor_divide trunc_divide sign frac sigmoid pow fmod".split()
)
_INTEGER_IDENTITIES = frozenset("floor ceil trunc round real conj".split())


class Unprintable(Exception):
    """The element language has this primitive and OpenCL C has not, for this dtype."""


@dataclass(frozen=True)
class Text:
    """An expression of OpenCL C and the dtype that it is computed in."""

    text: str
    dtype: str


def computed(dtype: str) -> str:
    """The dtype in which elements of a dtype are computed."""
    return COMPUTED.get(dtype, dtype)


def is_float(dtype: str) -> bool:
    return dtype.startswith("float")


def load(dtype: str, address: str) -> Text:
    """The element at an address."""
    memory = "bfloat" if dtype == "bfloat16" else TYPES[dtype][0]
    text = f"load_{memory}({address})"
    return Text(f"({text} != 0)" if dtype == "bool" else text, computed(dtype))


def store(dtype: str, address: str, value: Text) -> str:
    """A statement that stores a value as an element of a dtype."""
    memory = "bfloat" if dtype == "bfloat16" else TYPES[dtype][0]
    return f"store_{memory}({address}, {convert(value, dtype).text});"


def convert(x: Text, dtype: str) -> Text:
    """x as an element of another dtype; rounding to 16-bit floats is left to `store`."""
    target = computed(dtype)
    if x.dtype == target:
        return x
    if target == "bool":
        return Text(f"({x.text} != 0)", target)
    if is_float(x.dtype) and not is_float(target):
        # As in C, and defined for every value: through the widest integer.
        return Text(f"({TYPES[target][1]})convert_long_sat({x.text})", target)
    return Text(f"({TYPES[target][1]})({x.text})", target)


def number(value: float | str, dtype: str) -> Text:
    """A number of a computation's dtype; "lowest" and "highest" are those of the dtype."""
    if isinstance(value, str):
        return Text(_extreme(dtype, value == "highest"), dtype)
    if dtype == "bool":
        return Text(str(int(bool(value))), dtype)
    kind = TYPES[dtype][1]
    if not is_float(dtype):
        return Text(f"({kind}){int(value)}L", dtype)
    if math.isnan(value):
        return Text(f"({kind})NAN", dtype)
    if math.isinf(value):
        return Text(f"({kind}){'-' if value < 0 else ''}INFINITY", dtype)
    return Text(f"({float(value)!r}{'f' if dtype == 'float32' else ''})", dtype)


def _extreme(dtype: str, highest: bool) -> str:
    if dtype == "bool":
        return str(int(highest))
    if is_float(dtype):
        return "INFINITY" if highest else "-INFINITY"
    names = {"uint8": "UCHAR", "int8": "CHAR", "int16": "SHRT", "int32": "INT", "int64": "LONG"}
    return f"{names[dtype]}_MAX" if highest else "0" if dtype == "uint8" else f"{names[dtype]}_MIN"


class Printer:
    """`v` of element functions: builds expressions of one dtype's computation."""

    def __init__(self, dtype: str) -> None:
        self.dtype = computed(dtype)

    def number(self, value: float) -> Text:
        return number(value, self.dtype)

    def cast(self, x: Text, dtype: str) -> Text:
        return convert(x, dtype)

    def call(self, name: str, *args: Text) -> Text:
        first = args[0]
        if name == "where":
            condition = convert(first, "bool")
            return Text(f"({condition.text} ? {args[1].text} : {args[2].text})", args[1].dtype)
        if name in _TESTS:
            return self._test(name, first)
        if first.dtype == "bool":
            return self._boolean(name, args)
        if name in _COMPARISONS:
            return Text(f"({first.text} {_COMPARISONS[name]} {args[1].text})", "bool")
        return Text(self._value(name, first.dtype, [a.text for a in args]), first.dtype)

    def _test(self, name: str, x: Text) -> Text:
        if is_float(x.dtype):
            return Text(f"({name}({x.text}) != 0)", "bool")
        texts = {"signbit": f"({x.text} < 0)", "isfinite": "1"}
        return Text(texts.get(name, "0"), "bool")

    def _boolean(self, name: str, args: tuple[Text, ...]) -> Text:
        texts = [a.text for a in args]
        if name in ("abs", "sign"):
            return args[0]
        if name == "bit_not":
            return Text(f"(!{texts[0]})", "bool")
        if name in _BOOLEAN or name in _INFIX:
            return Text(f"({texts[0]} {_BOOLEAN.get(name) or _INFIX[name]} {texts[1]})", "bool")
        if name in _COMPARISONS:
            return Text(f"({texts[0]} {_COMPARISONS[name]} {texts[1]})", "bool")
        raise Unprintable(f"{name} of bool")

    def _value(self, name: str, dtype: str, x: list[str]) -> str:
        kind, joined = TYPES[dtype][1], ", ".join(x)
        if name in _INFIX:
            if name == "div" and not is_float(dtype):
                raise Unprintable(f"div of {dtype}")
            # Short integers are computed as int in C: brought back to their width.
            return f"(({kind})({x[0]} {_INFIX[name]} {x[1]}))"
        if name == "neg":
            return f"(({kind})-{x[0]})"
        if name == "reciprocal" and is_float(dtype):
            return f"(1 / {x[0]})"
        if is_float(dtype):
            if name in ("real", "conj"):
                return x[0]
            if name in _BUILTIN:
                return f"{_BUILTIN[name]}({joined})"
            if name in _HELPERS:
                return f"{name}_{kind}({joined})"
            raise Unprintable(f"{name} of {dtype}")
        if name in _INTEGER_IDENTITIES:
            return x[0]
        if name == "abs":
            return f"(({kind})abs({x[0]}))"
        if name == "bit_not":
            return f"(({kind})~{x[0]})"
        if name in ("fmin", "fmax"):
            name = {"fmin": "minimum", "fmax": "maximum"}[name]
        if name in _HELPERS - {"frac", "sigmoid"}:
            return f"{name}_{kind}({joined})"
        bits = {"uchar": 8, "char": 8, "short": 16, "int": 32, "long": 64}[kind]
        if name == "lshift":
            return f"(({kind})({x[1]} < {bits} && {x[1]} >= 0 ? {x[0]} << {x[1]} : 0))"
        if name == "rshift":
            end = f"({x[0]} < 0 ? -1 : 0)"
            return f"(({kind})({x[1]} < {bits} && {x[1]} >= 0 ? {x[0]} >> {x[1]} : {end}))"
        raise Unprintable(f"{name} of {dtype}")
