"""The statement language of shape rules, composite bodies and gradients: types and typed nodes.

body_reader.py makes these from text; every expression knows its type, every body its parameters, locals and result, so a
C++ printer can declare all variables. Nodes are immutable.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from tools.codegen.model import Schema, Type


@dataclass(frozen=True)
class LType:
    """A type of the language.

    base: Tensor Operand Scalar int float bool str dtype device generator none strided list tuple. `items` are the element
    type of a list, or the types of a tuple. optional: may be None.
    """

    base: str
    items: tuple[LType, ...] = ()
    optional: bool = False
    size: int | None = None  # of a sized list argument, int[2]: one int stands for copies

    def __str__(self) -> str:
        mark = "?" if self.optional else ""
        if self.base == "list":
            return f"{self.items[0] if self.items else ''}[]{mark}"
        if self.base == "tuple":
            return "(" + ", ".join(str(i) for i in self.items) + ")" + mark
        return self.base + mark

    @property
    def is_list(self) -> bool:
        return self.base == "list"

    @property
    def item(self) -> LType:
        """A list's element type."""
        return self.items[0] if self.items else NONE

    @property
    def is_tensor_like(self) -> bool:
        return self.base in ("Tensor", "Operand")

    @property
    def is_numeric(self) -> bool:
        return self.base in ("int", "float", "bool", "Scalar") and not self.optional

    def required(self) -> LType:
        return dataclasses.replace(self, optional=False)

    def maybe(self) -> LType:
        return dataclasses.replace(self, optional=True)


TENSOR: Final = LType("Tensor")
OPERAND: Final = LType("Operand")
SCALAR: Final = LType("Scalar")
INT: Final = LType("int")
FLOAT: Final = LType("float")
BOOL: Final = LType("bool")
STR: Final = LType("str")
DTYPE: Final = LType("dtype")
DEVICE: Final = LType("device")
NONE: Final = LType("none", optional=True)
STRIDED: Final = LType("strided")


def list_of(item: LType) -> LType:
    return LType("list", (item,))


INTS: Final = list_of(INT)
EMPTY_LIST: Final = LType("list")


def of_schema(type_: Type) -> LType:
    """The language's type of a schema type."""
    if type_.is_list:
        item = LType(type_.base, optional=type_.optional_elements)
        return LType("list", (item,), type_.optional, type_.list_size)
    return LType(type_.base, optional=type_.optional)


def fits(given: LType, wanted: LType) -> bool:
    """May a value of type `given` stand where `wanted` is expected, without being changed by the writer?"""
    if given.base == "none":
        return wanted.optional
    if given.optional and not wanted.optional:
        return False
    if wanted.base == "list":
        if given.base == "int" and wanted.item.base == "int":
            return wanted.size is not None
        return given.base == "list" and (not given.items or fits(given.item, wanted.item))
    if wanted.base == "tuple":
        return (
            given.base == "tuple"
            and len(given.items) == len(wanted.items)
            and all(map(fits, given.items, wanted.items))
        )
    if given.base == wanted.base:
        return True
    numbers = ("bool", "int", "float", "Scalar")
    if wanted.base == "Operand":
        return given.base == "Tensor" or given.base in numbers
    if wanted.base in numbers and given.base in numbers:
        return numbers.index(given.base) <= numbers.index(wanted.base) and not (
            given.base == "bool" and wanted.base == "int"
        )
    return False


def join(a: LType, b: LType) -> LType | None:
    """The type that holds both, or None."""
    if a == b:
        return a
    if a.base == "none":
        return b.maybe()
    if b.base == "none":
        return a.maybe()
    if fits(a, b):
        return dataclasses.replace(b, size=None)
    if fits(b, a):
        return dataclasses.replace(a, size=None)
    if a.required() == b.required():
        return a.maybe()
    return None


# ---- expressions -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Expr:
    """Base: every expression has a type."""

    type: LType

    def children(self) -> tuple[Expr, ...]:
        found: list[Expr] = []
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            if isinstance(value, Expr):
                found.append(value)
            elif isinstance(value, tuple):
                found += [v for v in value if isinstance(v, Expr)]
        return tuple(found)


@dataclass(frozen=True)
class Var(Expr):
    """A parameter or local. `narrowed`: declared optional, known not to be None here (type is the narrowed one)."""

    id: str
    narrowed: bool = False


@dataclass(frozen=True)
class Lit(Expr):
    """None, bool, int, float or str."""

    value: Any


@dataclass(frozen=True)
class DTypeLit(Expr):
    """A dtype by its name."""

    name: str


@dataclass(frozen=True)
class Attr(Expr):
    """obj.shape, .strides, .offset, .ndim, .dtype, .numel, .device of a tensor; .shapes of a tensor list."""

    obj: Expr
    name: str


@dataclass(frozen=True)
class Arith(Expr):
    """Arithmetic on numbers: + - * / // % ** and unary "neg"."""

    op: str
    args: tuple[Expr, ...]


@dataclass(frozen=True)
class Concat(Expr):
    """Lists joined: a + b."""

    left: Expr
    right: Expr


@dataclass(frozen=True)
class Repeat(Expr):
    """A list repeated: [x] * n."""

    items: Expr
    count: Expr


@dataclass(frozen=True)
class Compare(Expr):
    """== != < <= > >= on numbers, strings, dtypes, int lists."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Contains(Expr):
    """x in list (negated: not in)."""

    item: Expr
    collection: Expr
    negated: bool


@dataclass(frozen=True)
class IsNone(Expr):
    obj: Expr
    negated: bool


@dataclass(frozen=True)
class Logic(Expr):
    """op: and, or (two or more arguments), not (one)."""

    op: str
    args: tuple[Expr, ...]


@dataclass(frozen=True)
class IfExp(Expr):
    condition: Expr
    then: Expr
    otherwise: Expr


@dataclass(frozen=True)
class OpCall(Expr):
    """A registered operator. `args` has one entry per schema argument; None: the default."""

    schema: Schema
    args: tuple[Expr | None, ...]

    def children(self) -> tuple[Expr, ...]:
        return tuple(a for a in self.args if a is not None)


@dataclass(frozen=True)
class Builtin(Expr):
    """A function of the language, see BUILTINS in body_reader.py."""

    fn: str
    args: tuple[Expr, ...]


@dataclass(frozen=True)
class Needs(Expr):
    """needs(arg): is a gradient wanted for this argument."""

    arg: str


@dataclass(frozen=True)
class ListLit(Expr):
    items: tuple[Expr, ...]


@dataclass(frozen=True)
class TupleLit(Expr):
    items: tuple[Expr, ...]


@dataclass(frozen=True)
class Index(Expr):
    """list[i] or tuple[constant]; negative counts from the end."""

    obj: Expr
    index: Expr


@dataclass(frozen=True)
class Slice(Expr):
    """list[low:high] with Python's clamping."""

    obj: Expr
    low: Expr | None
    high: Expr | None


@dataclass(frozen=True)
class Comprehension(Expr):
    """[element for var in iterable if condition]."""

    element: Expr
    var: str
    var_type: LType
    iterable: Expr
    condition: Expr | None


@dataclass(frozen=True)
class Range(Expr):
    """range(start, stop, step); only as an iterable. The step is a literal."""

    start: Expr
    stop: Expr
    step: int


# ---- statements ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stmt:
    pass


@dataclass(frozen=True)
class Assign(Stmt):
    """One target, or several for a tuple value; "_" drops a part."""

    targets: tuple[str, ...]
    value: Expr


@dataclass(frozen=True)
class SetItem(Stmt):
    """target[index] = value on a local list."""

    target: Var
    index: Expr
    value: Expr


@dataclass(frozen=True)
class Append(Stmt):
    target: Var
    value: Expr


@dataclass(frozen=True)
class If(Stmt):
    condition: Expr
    then: tuple[Stmt, ...]
    otherwise: tuple[Stmt, ...]


@dataclass(frozen=True)
class For(Stmt):
    """for var in iterable; counter: the first variable of enumerate()."""

    var: str
    var_type: LType
    iterable: Expr
    body: tuple[Stmt, ...]
    counter: str | None = None


@dataclass(frozen=True)
class While(Stmt):
    condition: Expr
    body: tuple[Stmt, ...]


@dataclass(frozen=True)
class Check(Stmt):
    """Raises an error of `kind` (shape, index, type, value, dtype) when the condition is false.

    message: texts and the expressions shown between them; printers prefix the operator's name.
    """

    kind: str
    condition: Expr
    message: tuple[str | Expr, ...]


@dataclass(frozen=True)
class Evaluate(Stmt):
    """A call for its effect: an in-place operator."""

    value: Expr


@dataclass(frozen=True)
class Return(Stmt):
    value: Expr


@dataclass(frozen=True)
class Body:
    """A checked body.

    parameters: the names that it may read, with types. locals: variables that it makes (loop variables excluded).
    reassigned: parameters that it assigns to. result: the type of what it returns.
    """

    statements: tuple[Stmt, ...]
    parameters: tuple[tuple[str, LType], ...]
    locals: tuple[tuple[str, LType], ...]
    reassigned: frozenset[str]
    result: LType
    text: str

    @property
    def expression(self) -> Expr | None:
        """The returned expression, when that is the whole body."""
        only = self.statements[0] if len(self.statements) == 1 else None
        return only.value if isinstance(only, Return) else None

    def expressions(self) -> Iterator[Expr]:
        """Every expression node."""
        for statement in statements_of(self.statements):
            for root in roots(statement):
                yield from walk(root)

    def calls(self) -> tuple[Schema, ...]:
        """The operators that it calls, each once."""
        found: dict[str, Schema] = {}
        for e in self.expressions():
            if isinstance(e, OpCall):
                found[e.schema.full_name] = e.schema
        return tuple(found.values())


def walk(x: Expr) -> Iterator[Expr]:
    yield x
    for child in x.children():
        yield from walk(child)


def statements_of(statements: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """All statements, nested ones too."""
    for s in statements:
        yield s
        if isinstance(s, If):
            yield from statements_of(s.then)
            yield from statements_of(s.otherwise)
        elif isinstance(s, (For, While)):
            yield from statements_of(s.body)


def roots(s: Stmt) -> tuple[Expr, ...]:
    """The expressions that a statement holds itself (not those of nested statements)."""
    if isinstance(s, (Assign, Evaluate, Return)):
        return (s.value,)
    if isinstance(s, SetItem):
        return (s.target, s.index, s.value)
    if isinstance(s, Append):
        return (s.target, s.value)
    if isinstance(s, (If, While)):
        return (s.condition,)
    if isinstance(s, For):
        return (s.iterable,)
    assert isinstance(s, Check)
    return (s.condition, *(m for m in s.message if isinstance(m, Expr)))


# Attributes that are known without a tensor's data.
GEOMETRY: Final = frozenset({"shape", "strides", "offset", "ndim", "numel", "dtype", "shapes"})


def is_device_of(x: Expr) -> bool:
    """`device_of(name)`: asks for no data."""
    return isinstance(x, Builtin) and x.fn == "device_of" and isinstance(x.args[0], Var)


@dataclass(frozen=True)
class Uses:
    """What a body reads: `data`: names used as a whole (a tensor's data must be there); `geometry`: (name, attribute) pairs;
    `needs`: arguments asked for by needs(...)."""

    data: frozenset[str]
    geometry: frozenset[tuple[str, str]]
    needs: frozenset[str]


def uses(body: Body) -> Uses:
    """Which parameters' data a body reads, and of which it only wants the geometry."""
    names = {name for name, _ in body.parameters}
    data: set[str] = set()
    geometry: set[tuple[str, str]] = set()
    needs: set[str] = set()

    def visit(x: Expr) -> None:
        if (
            isinstance(x, Attr)
            and isinstance(x.obj, Var)
            and x.obj.id in names
            and x.name in GEOMETRY
        ):
            geometry.add((x.obj.id, x.name))
            return
        if is_device_of(x):
            return
        if isinstance(x, Needs):
            needs.add(x.arg)
        if isinstance(x, Var) and x.id in names:
            data.add(x.id)
        for child in x.children():
            visit(child)

    for statement in statements_of(body.statements):
        for root in roots(statement):
            visit(root)
    return Uses(frozenset(data), frozenset(geometry), frozenset(needs))
