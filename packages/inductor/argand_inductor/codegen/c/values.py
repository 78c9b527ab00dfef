"""Prints loop IR values as C statements on vectors (argand_vec.h)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from argand_inductor.codegen.c.sizes_text import c_size
from argand_inductor.loop_ir import ITEMSIZE, WIDE_UNSIGNED, Value
from argand_inductor.sizes import Size

SUFFIX = {
    "uint8": "u8", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "float32": "f32", "float64": "f64",
    "uint16": "u16", "uint32": "u32", "uint64": "u64",
}  # fmt: skip
SCALAR = {
    "uint8": "unsigned char", "int8": "signed char", "int16": "short", "int32": "int", "int64": "long", "float32": "float",
    "float64": "double", "uint16": "unsigned short", "uint32": "unsigned int", "uint64": "unsigned long",
}  # fmt: skip
_INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "bit_and": "&",
    "bit_or": "|",
    "bit_xor": "^",
}
# What integers go through on their way to floating-point numbers, which it holds exactly, and unsigned ones on their way back.
_THROUGH = {
    "uint8": "int32", "int8": "int32", "int16": "int32", "uint16": "int32", "uint32": "int64",
}  # fmt: skip
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_FLOAT_UNARY = frozenset(
    "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc "
    "floor ceil trunc round frac sign sigmoid lgamma digamma trigamma erfinv angle abs "
    "erfcx ndtri i0 i0e i1 i1e bessel_j0 bessel_j1 bessel_y0 bessel_y1 bessel_k0 bessel_k0e bessel_k1 bessel_k1e airy_ai "
    "frexp_mantissa frexp_exponent".split()
)
_BINARY = frozenset(
    "pow atan2 hypot fmod remainder floor_divide copysign minimum maximum fmin fmax nextafter zeta igamma igammac".split()
)
_INTEGER_BINARY = frozenset("pow fmod remainder floor_divide trunc_divide gcd".split())


@dataclass(frozen=True, slots=True)
class Var:
    """A C vector variable. Bool values are masks whose lanes have `lane` bytes; `level` is the scope that holds it."""

    name: str
    dtype: str
    level: int
    lane: int = 0


@dataclass(slots=True)
class Scope:
    """A block of C under construction."""

    indent: int
    lines: list[str] = field(default_factory=list)
    known: dict[object, Var | str] = field(default_factory=dict)


FUNCTION, UNIT, NEST, INNER = range(4)


class Emitter:
    """Statements in nested scopes: each value goes to the outermost scope in which its arguments exist.

    bytes_per_lane: D of argand_vec.h. size_parameter: the C name of a symbolic size.
    """

    def __init__(self, bytes_per_lane: int, size_parameter: Callable[[Size], str]) -> None:
        self.d = bytes_per_lane
        self.scopes = [Scope(1)]
        self.count = 0
        self.size_parameter = size_parameter

    # ---- scopes

    def open(self) -> Scope:
        self.scopes.append(Scope(len(self.scopes) + 1))
        return self.scopes[-1]

    def close(self) -> list[str]:
        return self.scopes.pop().lines

    def line(self, level: int, text: str) -> None:
        scope = self.scopes[min(level, len(self.scopes) - 1)]
        scope.lines.append("  " * scope.indent + text)

    def find(self, key: object) -> Var | str | None:
        for scope in reversed(self.scopes):
            if key in scope.known:
                return scope.known[key]
        return None

    def remember(self, level: int, key: object, value: Var | str) -> None:
        self.scopes[min(level, len(self.scopes) - 1)].known[key] = value

    def fresh(self, prefix: str = "t") -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    # ---- declarations

    def type_of(self, dtype: str, lane: int = 0) -> str:
        return f"w{self.d}_i{8 * lane}" if dtype == "bool" else f"w{self.d}_{SUFFIX[dtype]}"

    def declare(self, level: int, dtype: str, text: str, lane: int = 0) -> Var:
        """A constant of a vector type; equal texts are declared once."""
        level = min(level, len(self.scopes) - 1)
        key = (dtype, lane, text)
        known = self.find(key)
        if isinstance(known, Var):
            return known
        name = self.fresh()
        self.line(level, f"const {self.type_of(dtype, lane)} {name} = {text};")
        var = Var(name, dtype, level, lane)
        self.remember(level, key, var)
        return var

    def scalar(self, level: int, ctype: str, text: str, prefix: str = "n") -> str:
        """A scalar constant; plain names and numbers stand for themselves."""
        if text.isidentifier() or text.lstrip("-").isdigit():
            return text
        level = min(level, len(self.scopes) - 1)
        key = (ctype, text)
        known = self.find(key)
        if isinstance(known, str):
            return known
        name = self.fresh(prefix)
        self.line(
            level,
            f"{ctype} const {name} = {text};"
            if "*" in ctype
            else f"const {ctype} {name} = {text};",
        )
        self.remember(level, key, name)
        return name

    # ---- numbers

    def number(self, value: float, dtype: str) -> Var:
        if dtype == "bool":
            lane = self.d
            return self.declare(
                FUNCTION, dtype, f"(w{self.d}_i{8 * lane}){{}} - {int(bool(value))}", lane
            )
        v = self.type_of(dtype)
        return self.declare(FUNCTION, dtype, f"({SCALAR[dtype]}){number_text(value)} - ({v}){{}}")

    def size(self, size: Size, dtype: str) -> Var:
        v = self.type_of(dtype)
        text = c_size(size, self.size_parameter)
        return self.declare(FUNCTION, dtype, f"({SCALAR[dtype]})({text}) - ({v}){{}}")

    # ---- masks

    def mask(self, x: Var, lane: int) -> Var:
        """A bool value as a mask of another lane size."""
        if x.lane == lane:
            return x
        return self.declare(
            x.level,
            "bool",
            f"__builtin_convertvector({x.name}, {self.type_of('bool', lane)})",
            lane,
        )

    # ---- primitives

    def apply(self, node: Value, args: list[Var]) -> Var:
        """The value of a primitive (or conversion) of the given arguments."""
        level = max((a.level for a in args), default=FUNCTION)
        fn, dtype = node.op, node.dtype
        if fn == "convert":
            return self.convert(args[0], dtype)
        if fn == "narrow":
            half = {"bfloat16": "bf16", "float16": "f16"}[node.detail]
            return self.declare(level, dtype, f"w{self.d}_narrow_{half}({args[0].name})")
        if fn == "where":
            return self.where(args[0], args[1], args[2], level)
        if dtype == "bool":
            return self.boolean(fn, args, level)
        v = self.type_of(dtype)
        names = [a.name for a in args]
        if fn in _INFIX:
            return self.declare(level, dtype, f"{names[0]} {_INFIX[fn]} {names[1]}")
        if fn == "neg":
            return self.declare(level, dtype, f"-{names[0]}")
        if fn == "bit_not":
            return self.declare(level, dtype, f"~{names[0]}")
        if dtype.startswith("float"):
            if fn == "trunc_divide":
                quotient = self.declare(level, dtype, f"{names[0]} / {names[1]}")
                return self.function("trunc", [quotient], level)
            if (
                (fn in _FLOAT_UNARY and len(args) == 1)
                or (fn in _BINARY and len(args) == 2)
                or fn == "polynomial"
            ):
                return self.function(fn, args, level)
        else:
            text = self.integer(fn, names, v, dtype)
            if text is not None:
                return self.declare(level, dtype, text)
            if fn in _INTEGER_BINARY:
                return self.function(fn, args, level)
        raise NotImplementedError(
            f"inductor: got the primitive {fn!r} on {dtype}, which C kernels do not have"
        )

    def function(self, fn: str, args: list[Var], level: int) -> Var:
        """A function of math.h, on vectors of any size."""
        dtype = args[0].dtype
        s, v = SUFFIX[dtype], self.type_of(dtype)
        f = f"argand_{fn}_{s}"
        names = ", ".join(a.name for a in args)
        if ITEMSIZE[dtype] == self.d:
            return self.declare(level, dtype, f"{f}({names})")
        return self.declare(
            level, dtype, f"ARGAND_MAP{len(args)}({v}, {v}, v{s}, v{s}, {f}, {names})"
        )

    def integer(self, fn: str, x: list[str], v: str, dtype: str) -> str | None:
        unsigned = f"w{self.d}_u{8 * ITEMSIZE[dtype]}"
        bits = 8 * ITEMSIZE[dtype]
        if fn == "abs":
            return (
                x[0]
                if dtype.startswith("u")
                else f"ARGAND_SELECT({v}, {x[0]} < 0, -{x[0]}, {x[0]})"
            )
        if fn == "sign":
            negative = "" if dtype.startswith("u") else f"({v})({x[0]} < 0) + "
            return f"{negative}({v})(({x[0]} > 0) & 1)"
        if fn in ("minimum", "fmin", "maximum", "fmax"):
            return (
                f"ARGAND_SELECT({v}, {x[0]} {'<' if 'min' in fn else '>'} {x[1]}, {x[0]}, {x[1]})"
            )
        if fn == "lshift":
            return f"({v})(({unsigned})(({unsigned}){x[0]} << (({unsigned}){x[1]} & {bits - 1})) & ({unsigned})(({unsigned}){x[1]} < {bits}))"
        if fn == "rshift":
            end = f"({v}){{}}" if dtype.startswith("u") else f"({v})({x[0]} < 0)"
            return f"ARGAND_SELECT({v}, ({unsigned}){x[1]} < {bits}, {x[0]} >> ({v})(({unsigned}){x[1]} & {bits - 1}), {end})"
        return None

    def boolean(self, fn: str, args: list[Var], level: int) -> Var:
        if args[0].dtype == "bool":
            lane = max(a.lane for a in args)
            names = [self.mask(a, lane).name for a in args]
            if fn == "bit_not":
                return self.declare(level, "bool", f"~{names[0]}", lane)
            return self.declare(level, "bool", f"{names[0]} {_INFIX[fn]} {names[1]}", lane)
        dtype = args[0].dtype
        lane = ITEMSIZE[dtype]
        m, v, x = self.type_of("bool", lane), self.type_of(dtype), args[0].name
        if fn in _COMPARE:
            text = f"{x} {_COMPARE[fn]} {args[1].name}"
        elif fn == "isnan":
            text = f"{x} != {x}"
        elif fn == "signbit":
            text = f"({m}){x} < 0"
        else:
            magnitude = f"({v})(({m}){x} & ~(({m}){{}} + ({SCALAR[f'int{8 * lane}']})(1ul << {8 * lane - 1})))"
            text = f"{magnitude} {'==' if fn == 'isinf' else '<'} ({SCALAR[dtype]})__builtin_inf()"
        return self.declare(level, "bool", f"({m})({text})", lane)

    def where(self, condition: Var, a: Var, b: Var, level: int) -> Var:
        if a.dtype == "bool":
            lane = max(a.lane, b.lane, condition.lane)
            m = self.type_of("bool", lane)
            parts = [self.mask(x, lane).name for x in (condition, a, b)]
            return self.declare(level, "bool", f"ARGAND_SELECT({m}, {', '.join(parts)})", lane)
        v = self.type_of(a.dtype)
        chosen = self.mask(condition, ITEMSIZE[a.dtype]).name
        return self.declare(level, a.dtype, f"ARGAND_SELECT({v}, {chosen}, {a.name}, {b.name})")

    def convert(self, x: Var, dtype: str) -> Var:
        if x.dtype == dtype:
            return x
        v = self.type_of(dtype)
        if x.dtype == "bool":
            return self.declare(x.level, dtype, f"__builtin_convertvector({x.name} & 1, {v})")
        through = _THROUGH.get(x.dtype)
        if through is not None and dtype in ("float32", "float64"):
            whole = (
                f"__builtin_convertvector(ARGAND_IN_REGISTER({x.name}), {self.type_of(through)})"
            )
            x = self.declare(x.level, through, whole)  # exact
        elif x.dtype.startswith("float") and dtype in WIDE_UNSIGNED:
            if dtype == "uint64":
                return self.to_uint64(x)
            x = self.convert(x, _THROUGH[dtype])
        return self.declare(x.level, dtype, f"__builtin_convertvector({x.name}, {v})")

    def to_uint64(self, x: Var) -> Var:
        """Of floating-point numbers: those of 2**63 or more without their highest bit, which is then set."""
        half = self.number(2.0**63, x.dtype)
        level = x.level
        large = self.declare(
            level, "bool", f"({self.type_of('bool', ITEMSIZE[x.dtype])})({x.name} >= {half.name})", ITEMSIZE[x.dtype]
        )  # fmt: skip
        rest = self.declare(level, x.dtype, f"{x.name} - {half.name}")
        whole = self.convert(self.where(large, rest, x, level), "int64")
        v, bit = self.type_of("uint64"), self.mask(large, 8)
        return self.declare(
            level, "uint64", f"({v}){whole.name} ^ (({v}){bit.name} & (({v}){{}} + (1ul << 63)))"
        )

    # ---- memory

    def load(self, level: int, dtype: str, address: str, left: str) -> Var:
        """A vector of consecutive elements of a storage dtype; `left` of them count."""
        if dtype in ("bfloat16", "float16"):
            half = {"bfloat16": "bf16", "float16": "f16"}[dtype]
            return self.declare(
                level, "float32", f"w{self.d}_{half}_to_f32(w{self.d}_load_u16({address}, {left}))"
            )
        if dtype == "bool":
            return self.declare(
                level, "bool", f"(w{self.d}_i8)(w{self.d}_load_i8({address}, {left}) != 0)", 1
            )
        return self.declare(level, dtype, f"w{self.d}_load_{SUFFIX[dtype]}({address}, {left})")

    def splat(self, level: int, dtype: str, address: str) -> Var:
        """One element in all lanes."""
        if dtype in ("bfloat16", "float16"):
            half = {"bfloat16": "bf16", "float16": "f16"}[dtype]
            return self.declare(
                level, "float32", f"w{self.d}_{half}_to_f32(w{self.d}_splat_u16({address}))"
            )
        if dtype == "bool":
            return self.declare(
                level, "bool", f"(w{self.d}_i8)(w{self.d}_splat_i8({address}) != 0)", 1
            )
        return self.declare(level, dtype, f"w{self.d}_splat_{SUFFIX[dtype]}({address})")

    def gather(
        self, level: int, dtype: str, address: str, stride: str, first: str, end: str
    ) -> Var:
        """Elements `stride` apart in the lanes from `first` up to `end`, 0 in the others."""
        d, arguments = self.d, f"{address}, {stride}, {first}, {end}"
        if dtype in ("bfloat16", "float16"):
            half = {"bfloat16": "bf16", "float16": "f16"}[dtype]
            return self.declare(
                level, "float32", f"w{d}_{half}_to_f32(w{d}_gather_u16({arguments}))"
            )
        if dtype == "bool":
            return self.declare(level, "bool", f"(w{d}_i8)(w{d}_gather_i8({arguments}) != 0)", 1)
        return self.declare(level, dtype, f"w{d}_gather_{SUFFIX[dtype]}({arguments})")

    def stored(self, x: Var, dtype: str) -> tuple[str, str, str]:
        """(vector, its suffix, its scalar type) of a value as elements of a storage dtype (which holds it exactly)."""
        if dtype in ("bfloat16", "float16"):
            half = {"bfloat16": "bf16", "float16": "f16"}[dtype]
            name = self.fresh("h")
            self.line(x.level, f"const w{self.d}_u16 {name} = w{self.d}_f32_as_{half}({x.name});")
            return name, "u16", "unsigned short"
        if dtype == "bool":
            name = self.fresh("h")
            self.line(x.level, f"const w{self.d}_i8 {name} = {self.mask(x, 1).name} & 1;")
            return name, "i8", "signed char"
        return x.name, SUFFIX[dtype], SCALAR[dtype]

    def store(
        self,
        level: int,
        x: Var,
        dtype: str,
        address: str,
        left: str,
        stride: str = "1",
        streams: bool = False,
    ) -> None:
        vector, suffix, scalar = self.stored(x, dtype)
        if stride != "1":
            self.line(level, f"ARGAND_SCATTER({scalar}, {address}, {stride}, {left}, {vector});")
        elif streams and ITEMSIZE[dtype] >= self.d:  # a narrower dtype fills part of a vector
            lanes = f"ARGAND_VECTOR_BYTES / {self.d}"
            self.line(
                level,
                f"if ({left} >= {lanes}) argand_stream_bytes({address}, &{vector}, sizeof {vector});",
            )
            self.line(level, f"else w{self.d}_store_{suffix}({address}, {left}, {vector});")
        else:
            self.line(level, f"w{self.d}_store_{suffix}({address}, {left}, {vector});")


def number_text(value: float) -> str:
    """A C literal."""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, int):
        if value == -(2**63):
            return "(-9223372036854775807L - 1)"
        if value >= 2**63:
            return f"{value}UL"
        return f"{value}L" if abs(value) >= 2**31 else f"({value})" if value < 0 else str(value)
    if math.isnan(value):
        return '__builtin_nan("")'
    if math.isinf(value):
        return "__builtin_inf()" if value > 0 else "(-__builtin_inf())"
    return f"({value!r})" if math.copysign(1.0, value) < 0 else repr(value)
