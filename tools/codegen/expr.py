"""Element expressions: what a pointwise operator computes for one element.

An expression is a tree of `Number`, `Name`, `Call` and `Cast`. Every node is a "value" (of the computation's dtype) or a
"mask" (the result of a comparison); `parse_element` inserts the conversions between the two, so that printers never
guess. Primitives and operators are both `Call`s and have the names of the table `PRIMITIVES`.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from tools.codegen.dtypes import DTYPES

VALUE: Final = "value"
MASK: Final = "mask"

CONSTANTS: Final[dict[str, float]] = {
    "M_PI": math.pi,
    "M_E": math.e,
    "M_SQRT2": math.sqrt(2.0),
    "M_SQRT1_2": math.sqrt(0.5),
    "M_2_SQRTPI": 2.0 / math.sqrt(math.pi),
    "M_LN2": math.log(2.0),
    "M_LN10": math.log(10.0),
    "inf": math.inf,
    "nan": math.nan,
}


@dataclass(frozen=True)
class Primitive:
    """A function of the language. `args`: "v" wants a value, "m" a mask, "?" either, but all of one kind (result "?")."""

    name: str
    args: str
    result: str = VALUE
    symbol: str | None = None  # infix or prefix operator, in Python and C++


def _table() -> dict[str, Primitive]:
    found = [
        Primitive("add", "vv", symbol="+"),
        Primitive("sub", "vv", symbol="-"),
        Primitive("mul", "vv", symbol="*"),
        Primitive("div", "vv", symbol="/"),
        Primitive("neg", "v", symbol="-"),
        Primitive("bit_and", "??", "?", symbol="&"),
        Primitive("bit_or", "??", "?", symbol="|"),
        Primitive("bit_xor", "??", "?", symbol="^"),
        Primitive("bit_not", "?", "?", symbol="~"),
        Primitive("where", "mvv"),
        Primitive("lshift", "vv"),
        Primitive("rshift", "vv"),
    ]
    for name, symbol in {
        "eq": "==",
        "ne": "!=",
        "lt": "<",
        "le": "<=",
        "gt": ">",
        "ge": ">=",
    }.items():
        found.append(Primitive(name, "vv", MASK, symbol))
    unary = (
        "abs exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal sin cos tan asin acos atan sinh cosh tanh asinh "
        "acosh atanh erf erfc floor ceil trunc round frac sign sigmoid lgamma digamma trigamma erfinv real imag conj angle "
        "erfcx ndtri i0 i0e i1 i1e bessel_j0 bessel_j1 bessel_y0 bessel_y1 bessel_k0 bessel_k0e bessel_k1 bessel_k1e airy_ai "
        "frexp_mantissa frexp_exponent"
    )
    binary = "minimum maximum fmin fmax pow atan2 fmod remainder floor_divide trunc_divide hypot copysign nextafter gcd zeta igamma igammac"
    found += [Primitive(name, "v") for name in unary.split()]
    found += [Primitive(name, "vv") for name in binary.split()]
    found.append(Primitive("polynomial", "vvv"))  # of x, degree, kind (special.h)
    found += [Primitive(name, "v", MASK) for name in ("signbit", "isnan", "isinf", "isfinite")]
    return {p.name: p for p in found}


PRIMITIVES: Final[Mapping[str, Primitive]] = _table()

# Primitives whose result on integers is an integer: only these may appear where an operator computes in integers.
INTEGER_PRIMITIVES: Final = frozenset(
    "add sub mul neg bit_and bit_or bit_xor bit_not where eq ne lt le gt ge abs sign signbit isnan isinf isfinite minimum "
    "maximum fmin fmax pow fmod remainder floor_divide trunc_divide lshift rshift floor ceil trunc round real conj gcd".split()
)
# Primitives that give unsigned integers the bits that they give signed ones of the same width.
SIGNLESS_PRIMITIVES: Final = frozenset(
    "add sub mul neg bit_and bit_or bit_xor bit_not where eq ne lshift isnan isinf isfinite floor ceil trunc round real conj".split()
)


class Element:
    """Base of the nodes. Arithmetic on nodes builds simplified nodes (see `make`)."""

    __slots__ = ()
    kind: str

    def __add__(self, other: Element | float) -> Element:
        return make("add", self, wrap(other))

    def __radd__(self, other: float) -> Element:
        return make("add", wrap(other), self)

    def __sub__(self, other: Element | float) -> Element:
        return make("sub", self, wrap(other))

    def __rsub__(self, other: float) -> Element:
        return make("sub", wrap(other), self)

    def __mul__(self, other: Element | float) -> Element:
        return make("mul", self, wrap(other))

    def __rmul__(self, other: float) -> Element:
        return make("mul", wrap(other), self)

    def __truediv__(self, other: Element | float) -> Element:
        return make("div", self, wrap(other))

    def __rtruediv__(self, other: float) -> Element:
        return make("div", wrap(other), self)

    def __neg__(self) -> Element:
        return make("neg", self)

    def children(self) -> tuple[Element, ...]:
        return ()


@dataclass(frozen=True, eq=False)
class Number(Element):
    """A literal: int or float (also inf and nan)."""

    value: int | float
    kind: str = VALUE

    def _key(self) -> str:
        return repr(self.value)  # tells 1 from 1.0 and 0.0 from -0.0; nan equals nan

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Number) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


@dataclass(frozen=True)
class Name(Element):
    """An operand, or a scalar argument."""

    id: str
    kind: str = VALUE


@dataclass(frozen=True)
class Call(Element):
    """A primitive applied to its arguments; `fn` is a key of PRIMITIVES."""

    fn: str
    args: tuple[Element, ...]
    kind: str = VALUE

    def children(self) -> tuple[Element, ...]:
        return self.args


@dataclass(frozen=True)
class Cast(Element):
    """`cast(x, dtype)`: rounds to that dtype."""

    arg: Element
    dtype: str
    kind: str = VALUE

    def children(self) -> tuple[Element, ...]:
        return (self.arg,)


class ExprError(ValueError):
    """A faulty expression; `offset` and `length` point into its text."""

    def __init__(self, message: str, offset: int = 0, length: int = 1, line: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.length = length
        self.line = line


def wrap(value: Element | float) -> Element:
    return value if isinstance(value, Element) else Number(value)


def call(fn: str, *args: Element) -> Element:
    """A call as it stands, with conversions between values and masks."""
    primitive = PRIMITIVES[fn]
    wanted = list(primitive.args)
    kind = primitive.result
    if kind == "?":
        kind = MASK if any(a.kind == MASK for a in args) else VALUE
        wanted = ["m" if kind == MASK else "v"] * len(args)
    converted = tuple(
        as_mask(a) if w == "m" else as_value(a) for a, w in zip(args, wanted, strict=True)
    )
    return Call(fn, converted, kind)


def as_mask(x: Element) -> Element:
    return x if x.kind == MASK else Call("ne", (x, Number(0)), MASK)


def as_value(x: Element) -> Element:
    return x if x.kind == VALUE else Call("where", (x, Number(1), Number(0)), VALUE)


# ---- reading ---------------------------------------------------------------------------------------------------------

_BINARY: Final[dict[type[ast.operator], str]] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floor_divide", ast.Mod: "remainder",
    ast.Pow: "pow", ast.LShift: "lshift", ast.RShift: "rshift", ast.BitAnd: "bit_and", ast.BitOr: "bit_or", ast.BitXor: "bit_xor",
}  # fmt: skip
_COMPARE: Final[dict[type[ast.cmpop], str]] = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
}  # fmt: skip


class _Reader:
    def __init__(self, names: frozenset[str], masks: frozenset[str]) -> None:
        self.names = names
        self.masks = masks

    def fail(self, message: str, node: ast.AST) -> ExprError:
        start = getattr(node, "col_offset", 0)
        end = getattr(node, "end_col_offset", None) or start + 1
        return ExprError(message, start, max(end - start, 1), getattr(node, "lineno", 1))

    def read(self, node: ast.expr) -> Element:
        if isinstance(node, ast.Constant):
            if isinstance(node.value, bool) or not isinstance(node.value, (int, float)):
                raise self.fail(f"literal {node.value!r} is not a number", node)
            return Number(node.value)
        if isinstance(node, ast.Name):
            return self.name(node)
        if isinstance(node, ast.BinOp):
            fn = _BINARY.get(type(node.op))
            if fn is None:
                raise self.fail(
                    f"operator {type(node.op).__name__} is not part of element expressions", node
                )
            return fold(call(fn, self.read(node.left), self.read(node.right)))
        if isinstance(node, ast.UnaryOp):
            return self.unary(node)
        if isinstance(node, ast.Compare):
            fn = _COMPARE.get(type(node.ops[0]))
            if len(node.ops) != 1 or fn is None:
                raise self.fail(
                    "comparisons are == != < <= > >= between two values; join several with &", node
                )
            return call(fn, self.read(node.left), self.read(node.comparators[0]))
        if isinstance(node, ast.Call):
            return self.call(node)
        if isinstance(node, ast.IfExp):
            raise self.fail(
                "conditional expressions are not elementwise; use where(condition, a, b)", node
            )
        if isinstance(node, ast.BoolOp):
            raise self.fail("'and' and 'or' are not elementwise; use & and |", node)
        raise self.fail(f"{type(node).__name__} is not part of element expressions", node)

    def name(self, node: ast.Name) -> Element:
        if node.id in self.names:
            return Name(node.id, MASK if node.id in self.masks else VALUE)
        if node.id in CONSTANTS:
            return Number(CONSTANTS[node.id])
        hint = suggest(node.id, [*self.names, *CONSTANTS])
        raise self.fail(
            f"unknown name '{node.id}'{hint or '; known are ' + ', '.join(sorted(self.names))}",
            node,
        )

    def unary(self, node: ast.UnaryOp) -> Element:
        if isinstance(node.op, ast.USub):
            return fold(call("neg", self.read(node.operand)))
        if isinstance(node.op, ast.Invert):
            return call("bit_not", self.read(node.operand))
        if isinstance(node.op, ast.UAdd):
            return self.read(node.operand)
        raise self.fail("'not' is not elementwise; use ~", node)

    def call(self, node: ast.Call) -> Element:
        if not isinstance(node.func, ast.Name) or node.keywords:
            raise self.fail("only primitives with positional arguments can be called", node)
        fn = node.func.id
        if fn == "cast":
            if (
                len(node.args) != 2
                or not isinstance(node.args[1], ast.Name)
                or node.args[1].id not in DTYPES
            ):
                raise self.fail("cast takes a value and a dtype, as cast(x, float32)", node)
            return Cast(as_value(self.read(node.args[0])), node.args[1].id)
        primitive = PRIMITIVES.get(fn)
        if primitive is None:
            raise self.fail(f"unknown primitive '{fn}'{suggest(fn, PRIMITIVES)}", node.func)
        if len(node.args) != len(primitive.args):
            raise self.fail(
                f"{fn} takes {len(primitive.args)} arguments, got {len(node.args)}", node
            )
        return call(fn, *(self.read(a) for a in node.args))


def suggest(word: str, known: Mapping[str, object] | list[str] | tuple[str, ...]) -> str:
    """'; did you mean 'x'?' when one of the known words is near."""
    import difflib

    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean '{near[0]}'?" if near else ""


def parse_element(text: str, names: Iterable[str], masks: Iterable[str] = ()) -> Element:
    """Reads an expression over the given names; those in `masks` are conditions.

    Raises:
      ExprError: with the place of the fault in `text`.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as e:
        raise ExprError(
            f"syntax error: {e.msg}", max((e.offset or 1) - 1, 0), 1, e.lineno or 1
        ) from None
    try:
        return _Reader(frozenset(names), frozenset(masks)).read(tree.body)
    except ExprError as e:
        e.offset += len(text) - len(text.lstrip())
        raise


# ---- traversal -------------------------------------------------------------------------------------------------------


def walk(x: Element) -> Iterator[Element]:
    """All nodes, children first; shared ones several times."""
    for child in x.children():
        yield from walk(child)
    yield x


def free_names(x: Element) -> frozenset[str]:
    return frozenset(n.id for n in walk(x) if isinstance(n, Name))


def shared_subexpressions(x: Element) -> list[Element]:
    """Calls that occur more than once, each after the ones it contains. Printers give them names."""
    counts: dict[Element, int] = {}

    def visit(node: Element) -> None:
        if not isinstance(node, (Call, Cast)):
            return
        counts[node] = counts.get(node, 0) + 1
        if counts[node] == 1:
            for child in node.children():
                visit(child)

    visit(x)
    order: list[Element] = []
    for node in walk(x):
        if counts.get(node, 0) > 1 and node not in order:
            order.append(node)
    return order


# ---- simplification --------------------------------------------------------------------------------------------------

_FOLD: Final[dict[str, Callable[..., float]]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "neg": lambda a: -a,
}


def fold(x: Element) -> Element:
    """Arithmetic on literals alone, in double (or exactly, on ints): `2*M_PI`, `-1`, `1/3`."""
    if not isinstance(x, Call) or not all(isinstance(a, Number) for a in x.args):
        return x
    values = [a.value for a in x.args if isinstance(a, Number)]
    if x.fn == "div" and values[1] != 0:
        return Number(values[0] / values[1])
    if x.fn == "neg" and repr(values[0]) == "0":
        return Number(-0.0)
    return Number(_FOLD[x.fn](*values)) if x.fn in _FOLD else x


def is_number(x: Element, value: float) -> bool:
    return isinstance(x, Number) and x.value == value


def make(fn: str, *args: Element) -> Element:
    """A call simplified by identities: literals fold, 0*x, 1*x, x+0, x-0, x/1, --x, x**1, where with equal branches.

    `0*x -> 0` is not exact for inf and nan: only derivatives are built this way, never an operator's own expression.
    """
    args = tuple(wrap(a) for a in args)
    rule = _SIMPLIFY.get(fn)
    if rule is not None:
        simpler = rule(*args)
        if simpler is not None:
            return simpler
    return fold(call(fn, *args))


def _add(a: Element, b: Element) -> Element | None:
    if is_number(a, 0):
        return b
    if is_number(b, 0):
        return a
    if isinstance(b, Call) and b.fn == "neg":
        return make("sub", a, b.args[0])
    if a == b:
        return make("mul", Number(2), a)
    return None


def _sub(a: Element, b: Element) -> Element | None:
    if is_number(b, 0):
        return a
    if is_number(a, 0):
        return make("neg", b)
    if isinstance(b, Call) and b.fn == "neg":
        return make("add", a, b.args[0])
    return None


def _mul(a: Element, b: Element) -> Element | None:
    for x, y in ((a, b), (b, a)):
        if is_number(x, 0):
            return Number(0)
        if is_number(x, 1):
            return y
        if is_number(x, -1):
            return make("neg", y)
        if isinstance(x, Call) and x.fn == "neg":
            return make("neg", make("mul", *((x.args[0], y) if x is a else (y, x.args[0]))))
    for x, y in ((a, b), (b, a)):  # literal factors are gathered in front
        if (
            isinstance(x, Number)
            and isinstance(y, Call)
            and y.fn == "mul"
            and isinstance(y.args[0], Number)
        ):
            return make("mul", Number(x.value * y.args[0].value), y.args[1])
    if isinstance(b, Number) and not isinstance(a, Number):
        return make("mul", b, a)
    for x, y in ((a, b), (b, a)):
        if (
            isinstance(x, Call)
            and x.fn == "mul"
            and isinstance(x.args[0], Number)
            and not isinstance(y, Number)
        ):
            rest = (x.args[1], y) if x is a else (y, x.args[1])
            return make("mul", x.args[0], make("mul", *rest))
    for x, y in (
        (b, a),
        (a, b),
    ):  # into branches that are literal: the other branch then never multiplies by zero
        if (
            isinstance(x, Call)
            and x.fn == "where"
            and any(is_number(v, k) for v in x.args[1:] for k in (0, 1))
        ):
            return make("where", x.args[0], make("mul", y, x.args[1]), make("mul", y, x.args[2]))
    return None


def _div(a: Element, b: Element) -> Element | None:
    if is_number(a, 0):
        return Number(0)
    if isinstance(a, Call) and a.fn == "neg":
        return make("neg", make("div", a.args[0], b))
    return a if is_number(b, 1) else None


def _neg(a: Element) -> Element | None:
    if isinstance(a, Number):
        return Number(0) if a.value == 0 else Number(-a.value)
    if isinstance(a, Call) and a.fn == "neg":
        return a.args[0]
    if isinstance(a, Call) and a.fn == "sub":
        return make("sub", a.args[1], a.args[0])
    return None


def _pow(a: Element, b: Element) -> Element | None:
    if is_number(b, 1):
        return a
    return Number(1) if is_number(b, 0) else None


def _where(c: Element, a: Element, b: Element) -> Element | None:
    return a if a == b else None


def _conj(a: Element) -> Element | None:
    if isinstance(a, Number):
        return a
    return a.args[0] if isinstance(a, Call) and a.fn == "conj" else None


_SIMPLIFY: Final[dict[str, Callable[..., Element | None]]] = {
    "add": _add, "sub": _sub, "mul": _mul, "div": _div, "neg": _neg, "pow": _pow, "where": _where, "conj": _conj,
}  # fmt: skip


# ---- back to source --------------------------------------------------------------------------------------------------

_PRECEDENCE: Final = {
    "eq": 1, "ne": 1, "lt": 1, "le": 1, "gt": 1, "ge": 1, "bit_or": 2, "bit_xor": 3, "bit_and": 4,
    "add": 6, "sub": 6, "mul": 7, "div": 7, "neg": 8, "bit_not": 8,
}  # fmt: skip

_BITWISE: Final = frozenset({"bit_and", "bit_or", "bit_xor"})


def precedence(x: Element) -> int:
    """How tightly a node's own text binds; 9 for names and calls, so that only infix operators get parentheses."""
    if isinstance(x, Number):
        return 8 if math.copysign(1.0, x.value) < 0 else 9
    return _PRECEDENCE.get(x.fn, 9) if isinstance(x, Call) else 9


def number_text(value: float) -> str:
    if isinstance(value, int):
        return str(value)
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return repr(value)


def source(x: Element) -> str:
    """The expression in the language's own syntax; parse_element reads it back to an equal tree."""
    return infix(x, number_text, lambda fn, args: f"{fn}({', '.join(args)})")


def infix(
    x: Element,
    number: Callable[[float], str],
    function: Callable[[str, list[str]], str],
    named: Mapping[Element, str] | None = None,
    name: Callable[[str], str] = lambda n: n,
    cast: Callable[[str, str], str] = lambda arg, dtype: f"cast({arg}, {dtype})",
    infix_ops: bool = True,
) -> str:
    """Prints with infix operators where the precedence table has them; the callbacks print the rest."""
    named = named or {}

    def show(node: Element, top: bool = False) -> str:
        if not top and node in named:
            return named[node]
        if isinstance(node, Number):
            return number(node.value)
        if isinstance(node, Name):
            return name(node.id)
        if isinstance(node, Cast):
            return cast(show(node.arg), node.dtype)
        assert isinstance(node, Call)
        level = _PRECEDENCE.get(node.fn)
        if level is None or not infix_ops:
            return function(node.fn, [show(a) for a in node.args])
        symbol = PRIMITIVES[node.fn].symbol

        def operand(a: Element, minimum: int) -> str:
            text = show(a)
            loose = precedence(a) < minimum
            # C++ ranks bitwise operators and comparisons differently from Python: say it with parentheses.
            mixed = (
                isinstance(a, Call) and a.fn != node.fn and len(a.args) == 2 and a.fn in _PRECEDENCE
            )
            loose = loose or (
                mixed and isinstance(a, Call) and (a.fn in _BITWISE or node.fn in _BITWISE)
            )
            return f"({text})" if loose and a not in named else text

        if len(node.args) == 1:
            return f"{symbol}{operand(node.args[0], level + 1)}"
        # Comparisons do not chain; everything else associates to the left.
        left = operand(node.args[0], level + 1 if level == 1 else level)
        return f"{left} {symbol} {operand(node.args[1], level + 1)}"

    return show(x, top=True)
