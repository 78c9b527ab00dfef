"""Prints loop IR values as Triton statements. Arithmetic is that of the functions that eager's kernels call, so that both round alike."""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from argand_inductor.loop_ir import Value

# Of elements in registers.
TYPES = {
    "bool": "tl.int1", "uint8": "tl.uint8", "int8": "tl.int8", "int16": "tl.int16", "int32": "tl.int32", "int64": "tl.int64",
    "uint16": "tl.uint16", "uint32": "tl.uint32", "uint64": "tl.uint64",
    "float16": "tl.float16", "bfloat16": "tl.bfloat16", "float32": "tl.float32", "float64": "tl.float64",
}  # fmt: skip
# Of parameters.
POINTERS = {
    "bool": "*i1", "uint8": "*u8", "int8": "*i8", "int16": "*i16", "int32": "*i32", "int64": "*i64",
    "uint16": "*u16", "uint32": "*u32", "uint64": "*u64", "float16": "*fp16", "bfloat16": "*bf16", "float32": "*fp32", "float64": "*fp64",
}  # fmt: skip

FUNCTION, LOOP = range(2)


@functools.cache
def primitives() -> Mapping[str, str]:
    """Primitive -> format of its Triton text. They come with the device's eager kernels, a wheel that machines without one lack."""
    found: Mapping[str, str] = importlib.import_module(
        "argand_aten_cuda.generated.primitives"
    ).PRIMITIVES
    return found


@dataclass(frozen=True, slots=True)
class Var:
    """A Triton variable. `axes`: the kernel's axes along which it varies; `level`: the scope that holds it."""

    name: str
    dtype: str
    axes: frozenset[str] = frozenset()
    level: int = FUNCTION


@dataclass(slots=True)
class Scope:
    """A block of statements under construction."""

    lines: list[str] = field(default_factory=list)
    known: dict[object, Var] = field(default_factory=dict)


class Emitter:
    """Statements in nested scopes: each value goes to the outermost scope in which its arguments exist."""

    def __init__(self) -> None:
        self.scopes = [Scope()]
        self.count = 0

    def open(self) -> None:
        self.scopes.append(Scope())

    def close(self) -> list[str]:
        return self.scopes.pop().lines

    def line(self, level: int, text: str) -> None:
        self.scopes[min(level, len(self.scopes) - 1)].lines.append(text)

    def fresh(self, prefix: str = "t") -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def find(self, key: object) -> Var | None:
        for scope in reversed(self.scopes):
            if (var := scope.known.get(key)) is not None:
                return var
        return None

    def remember(self, key: object, var: Var) -> Var:
        self.scopes[min(var.level, len(self.scopes) - 1)].known[key] = var
        return var

    def declare(
        self, text: str, dtype: str, axes: frozenset[str], level: int, prefix: str = "t"
    ) -> Var:
        """A variable with this value; equal texts are declared once."""
        level = min(level, len(self.scopes) - 1)
        key = (dtype, text)
        known = self.find(key)
        if known is not None:
            return known
        name = self.fresh(prefix)
        self.line(level, f"{name} = {text}")
        return self.remember(key, Var(name, dtype, axes, level))

    # ---- values

    def number(self, value: float, dtype: str) -> Var:
        return self.declare(number_text(value, dtype), dtype, frozenset(), FUNCTION)

    def size(self, text: str, dtype: str) -> Var:
        """A size, which has 64 bits."""
        return self.declare(f"({text}).to({TYPES[dtype]})", dtype, frozenset(), FUNCTION)

    def apply(self, node: Value, args: list[Var]) -> Var:
        """The value of a primitive (or conversion) of the given arguments."""
        axes = frozenset().union(*(a.axes for a in args))
        level = max((a.level for a in args), default=FUNCTION)
        return self.declare(_text(node, args), node.dtype, axes, level)


# On other than bools these are the functions' whole bodies, which need no compilation of their own.
_INFIX = {"add": "+", "sub": "-", "mul": "*"}


def _text(node: Value, args: list[Var]) -> str:
    names = [a.name for a in args]
    if node.op in _INFIX and node.dtype != "bool":
        return f"({names[0]} {_INFIX[node.op]} {names[1]})"
    if node.op == "convert":
        return convert_text(names[0], args[0].dtype, node.dtype)
    if node.op == "narrow":
        return f"{names[0]}.to({TYPES[node.detail]}).to(tl.float32)"
    return primitives()[node.op].format(*names)


def convert_text(name: str, source: str, dtype: str) -> str:
    """A conversion between dtypes of computations."""
    if source == dtype:
        return name
    if dtype == "bool":
        return f"({name} != 0)"
    if source.startswith("float") and not dtype.startswith("float"):
        return f"conversion.convert({name}, {TYPES[dtype]})"
    return f"{name}.to({TYPES[dtype]})"


def number_text(value: float, dtype: str) -> str:
    """A scalar of exactly this dtype."""
    if dtype == "bool":
        text = str(bool(value))
    elif dtype.startswith("float"):
        x = float(value)
        text = repr(x) if math.isfinite(x) else f'float("{x}")'
    else:
        text = str(int(value))
    return f"tl.full((), {text}, {TYPES[dtype]})"
