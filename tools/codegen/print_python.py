"""Prints bodies as Python: shape functions (on ints or symbolic ints), composites and gradients over an `ops` namespace.

Generated modules import runtime/language.py as `lang`; operators are called as `ops.name(...)` by their public names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, Final

from tools.codegen import body as b
from tools.codegen.body import Body, Expr, Stmt, of_schema
from tools.codegen.builtins_table import BUILTINS, MATH
from tools.codegen.model import Argument, Schema

ERRORS: Final = {
    "shape": "ShapeError", "index": "IndexError", "type": "TypeError", "value": "ValueError", "dtype": "DTypeError",
    "supported": "NotImplementedError",
}  # fmt: skip
KEYWORDS: Final = frozenset({"from", "lambda", "in", "is", "not", "and", "or", "if", "ops", "lang"})


def safe(name: str) -> str:
    return name + "_" if name in KEYWORDS else name


def literal(value: Any) -> str:
    if isinstance(value, tuple):
        return "(" + ", ".join(literal(v) for v in value) + ("," if len(value) == 1 else "") + ")"
    if isinstance(value, float) and not math.isfinite(value):
        return "lang.nan" if math.isnan(value) else ("lang.inf" if value > 0 else "-lang.inf")
    return repr(value)


def parameters(arguments: Iterable[Argument]) -> str:
    """A Python parameter list with the schema's defaults."""
    parts: list[str] = []
    keyword = False
    for a in arguments:
        if a.kwonly and not keyword:
            parts.append("*")
            keyword = True
        parts.append(safe(a.name) + (f"={literal(a.default)}" if a.has_default else ""))
    return ", ".join(parts)


class PythonBody:
    """Prints one body of the operator `op_name`.

    needs: the condition of needs(arg).
    """

    def __init__(
        self, op_name: str, needs: Callable[[str], str] = lambda arg: f"needs_{arg}"
    ) -> None:
        self.op_name = op_name
        self.needs = needs

    # ---- statements

    def lines(self, body: Body, indent: str = "    ") -> list[str]:
        return [indent + line for line in (*self.normalised(body), *self.block(body.statements))]

    def normalised(self, body: Body) -> list[str]:
        """List arguments that the body reads become lists of their full length."""
        read = {x.id for x in body.expressions() if isinstance(x, b.Var)}
        found = []
        for name, t in body.parameters:
            if name in read and t.base == "list" and t.item.base in ("int", "bool"):
                size = f", {t.size}" if t.size is not None else ""
                found.append(f"{safe(name)} = lang.ints({safe(name)}{size})")
        return found

    def block(self, statements: Iterable[Stmt]) -> list[str]:
        return [line for s in statements for line in self.statement(s)] or ["pass"]

    def nested(self, statements: Iterable[Stmt]) -> list[str]:
        return ["    " + line for line in self.block(statements)]

    def statement(self, s: Stmt) -> list[str]:
        if isinstance(s, b.Return):
            return [f"return {self.expr(s.value, top=True)}"]
        if isinstance(s, b.Assign):
            targets = ", ".join(t if t == "_" else safe(t) for t in s.targets)
            return [f"{targets} = {self.expr(s.value, top=True)}"]
        if isinstance(s, b.SetItem):
            return [
                f"{safe(s.target.id)}[{self.expr(s.index, top=True)}] = {self.expr(s.value, top=True)}"
            ]
        if isinstance(s, b.Append):
            return [f"{safe(s.target.id)}.append({self.expr(s.value, top=True)})"]
        if isinstance(s, b.Evaluate):
            return [self.expr(s.value, top=True)]
        if isinstance(s, b.Check):
            text = self.message(s.message)
            if (
                isinstance(s.condition, b.Lit) and s.condition.value is False
            ):  # no shape without data
                return [f"raise lang.DataDependentError({text})"]
            return [
                f"if not ({self.expr(s.condition, top=True)}):",
                f"    raise lang.{ERRORS[s.kind]}({text})",
            ]
        if isinstance(s, b.While):
            return [f"while {self.expr(s.condition, top=True)}:", *self.nested(s.body)]
        if isinstance(s, b.For):
            source = self.expr(s.iterable, top=True)
            if s.counter is not None:
                return [
                    f"for {safe(s.counter)}, {safe(s.var)} in enumerate({source}):",
                    *self.nested(s.body),
                ]
            return [f"for {safe(s.var)} in {source}:", *self.nested(s.body)]
        assert isinstance(s, b.If)
        found = [f"if {self.expr(s.condition, top=True)}:", *self.nested(s.then)]
        if len(s.otherwise) == 1 and isinstance(s.otherwise[0], b.If):
            rest = self.statement(s.otherwise[0])
            return [*found, "el" + rest[0], *rest[1:]]
        return [*found, "else:", *self.nested(s.otherwise)] if s.otherwise else found

    def message(self, parts: tuple[str | Expr, ...]) -> str:
        """An f-string; quotes inside it are of the other kind (CPython 3.11 demands it)."""
        text = f"{self.op_name}: "
        for part in parts:
            if isinstance(part, str):
                text += part.replace("{", "{{").replace("}", "}}")
            else:
                text += "{" + self.expr(part, top=True).replace('"', "'") + "}"
        escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'f"{escaped}"' if any(not isinstance(p, str) for p in parts) else f'"{escaped}"'

    # ---- expressions

    def expr(self, x: Expr, top: bool = False) -> str:
        text = _PRINTERS[type(x)](self, x)
        return (
            text[1:-1]
            if top
            and text.startswith("(")
            and _closes_at_end(text)
            and not isinstance(x, b.TupleLit)
            else text
        )

    def attr(self, x: b.Attr) -> str:
        obj = self.expr(x.obj)
        if x.name in ("dtype", "ndim", "device"):
            return f"{obj}.{x.name}"
        return f"lang.{x.name}({obj})"

    def arith(self, x: b.Arith) -> str:
        args = [self.expr(a) for a in x.args]
        return f"(-{args[0]})" if x.op == "neg" else f"({args[0]} {x.op} {args[1]})"

    def op_call(self, x: b.OpCall) -> str:
        parts: list[str] = []
        by_name = False
        if x.schema.name == "conj" and x.args[0] is not None and x.args[0].type.base == "Operand":
            return f"lang.conj(ops, {self.expr(x.args[0], top=True)})"
        for argument, value in zip(x.schema.arguments, x.args, strict=True):
            by_name = by_name or argument.kwonly
            if value is None:
                by_name = True
                continue
            text = self.argument(argument, value)
            parts.append(f"{argument.name}={text}" if by_name else text)
        return f"ops.{x.schema.name}({', '.join(parts)})"

    def argument(self, argument: Argument, value: Expr) -> str:
        text = self.expr(value, top=True)
        wanted = of_schema(argument.type)
        if wanted.base == "Tensor" and value.type.base == "Operand":
            return f"lang.as_tensor(ops, {text})"
        return text

    def builtin(self, x: b.Builtin) -> str:
        args = ", ".join(self.expr(a, top=True) for a in x.args)
        if x.fn in BUILTINS:
            function = BUILTINS[x.fn]
            passed = "ops, " if function.result.base == "Tensor" else ""
            return f"lang.{x.fn}({passed}{args})"
        if x.fn in MATH:
            return f"math.{x.fn}({args})"
        if x.fn == "prod":
            return f"lang.prod({args})"
        if x.fn == "reversed":
            return f"list(reversed({args}))"
        return f"{x.fn}({args})"

    def slice(self, x: b.Slice) -> str:
        low = self.expr(x.low, top=True) if x.low is not None else ""
        high = self.expr(x.high, top=True) if x.high is not None else ""
        return f"{self.expr(x.obj)}[{low}:{high}]"

    def range(self, x: b.Range) -> str:
        stop = self.expr(x.stop, top=True)
        if x.step != 1:
            return f"range({self.expr(x.start, top=True)}, {stop}, {x.step})"
        if isinstance(x.start, b.Lit) and x.start.value == 0:
            return f"range({stop})"
        return f"range({self.expr(x.start, top=True)}, {stop})"

    def comprehension(self, x: b.Comprehension) -> str:
        condition = f" if {self.expr(x.condition, top=True)}" if x.condition is not None else ""
        element = self.expr(x.element, top=True)
        return f"[{element} for {safe(x.var)} in {self.expr(x.iterable, top=True)}{condition}]"

    def logic(self, x: b.Logic) -> str:
        if x.op == "not":
            return f"(not {self.expr(x.args[0])})"
        return "(" + f" {x.op} ".join(self.expr(a) for a in x.args) + ")"

    def items(self, items: tuple[Expr, ...]) -> str:
        return ", ".join(self.expr(i, top=True) for i in items)


def _closes_at_end(text: str) -> bool:
    """Does the parenthesis that opens the text close at its end?"""
    depth, quote, i = 0, "", 0
    while i < len(text):
        c = text[i]
        if quote:
            if c == "\\":
                i += 1
            elif c == quote:
                quote = ""
        elif c in "\"'":
            quote = c
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
            if depth == 0:
                return i == len(text) - 1
        i += 1
    return False


_PRINTERS: Final[dict[type, Callable[[PythonBody, Any], str]]] = {
    b.Var: lambda p, x: safe(x.id),
    b.Lit: lambda p, x: (
        f"({literal(x.value)})"
        if isinstance(x.value, (int, float)) and x.value < 0
        else literal(x.value)
    ),
    b.DTypeLit: lambda p, x: f"lang.{'bool_' if x.name == 'bool' else x.name}",
    b.Attr: PythonBody.attr,
    b.Arith: PythonBody.arith,
    b.Concat: lambda p, x: f"({p.expr(x.left)} + {p.expr(x.right)})",
    b.Repeat: lambda p, x: f"({p.expr(x.items)} * {p.expr(x.count)})",
    b.Compare: lambda p, x: f"({p.expr(x.left)} {x.op} {p.expr(x.right)})",
    b.Contains: lambda p, x: (
        f"({p.expr(x.item)} {'not in' if x.negated else 'in'} {p.expr(x.collection)})"
    ),
    b.IsNone: lambda p, x: f"({p.expr(x.obj)} is {'not ' if x.negated else ''}None)",
    b.Logic: PythonBody.logic,
    b.IfExp: lambda p, x: (
        f"({p.expr(x.then)} if {p.expr(x.condition, top=True)} else {p.expr(x.otherwise)})"
    ),
    b.OpCall: PythonBody.op_call,
    b.Builtin: PythonBody.builtin,
    b.Needs: lambda p, x: p.needs(x.arg),
    b.ListLit: lambda p, x: f"[{p.items(x.items)}]",
    b.TupleLit: lambda p, x: f"({p.items(x.items)}{',' if len(x.items) == 1 else ''})",
    b.Index: lambda p, x: f"{p.expr(x.obj)}[{p.expr(x.index, top=True)}]",
    b.Slice: PythonBody.slice,
    b.Comprehension: PythonBody.comprehension,
    b.Range: PythonBody.range,
}


def python_function(
    name: str,
    op_name: str,
    parameter_text: str,
    body: Body,
    needs: Callable[[str], str] | None = None,
    doc: str = "",
) -> str:
    """`def name(...)` with the body's statements."""
    printer = PythonBody(op_name, needs) if needs is not None else PythonBody(op_name)
    head = [f"def {name}({parameter_text}):"]
    if doc:
        head.append(f'    """{doc}"""')
    return "\n".join([*head, *printer.lines(body)]) + "\n"


def expression(x: Body, op_name: str = "") -> str | None:
    """The returned expression as Python, when that is the whole body."""
    return None if x.expression is None else PythonBody(op_name).expr(x.expression, top=True)


def argument_names(schema: Schema) -> str:
    return ", ".join(safe(a.name) for a in schema.arguments)
