"""Prints bodies of the statement language as C++ over packages/aten/csrc/core/builtins.h and the generated ops.h.

Values of type int[] are `Ints` (owned) or `IntList` (borrowed, parameters and attributes); every place that keeps one makes
an `Ints` by `builtins::list`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tools.codegen import body as b
from tools.codegen.body import Body, Expr, LType, of_schema
from tools.codegen.builtins_table import BUILTINS, MATH
from tools.codegen.dtypes import enum
from tools.codegen.emit_cpp_ops import default_cpp, function_name, safe
from tools.codegen.print_cpp import cpp_number

KINDS = {
    "shape": "ARGAND_SHAPE_ERROR", "index": "ARGAND_INDEX_ERROR", "type": "ARGAND_TYPE_ERROR",
    "value": "ARGAND_VALUE_ERROR", "dtype": "ARGAND_DTYPE_ERROR",
}  # fmt: skip

_PLAIN = {
    "Tensor": "Tensor", "Operand": "Operand", "Scalar": "Scalar", "int": "int64_t", "float": "double", "bool": "bool",
    "str": "std::string_view", "dtype": "int", "device": "ArgandDevice", "strided": "builtins::Strided",
    "generator": "ArgandGenerator*",
}  # fmt: skip
_OWN_NONE = {"Tensor", "Operand", "dtype", "generator"}  # types that have a None of their own


def cpp_type(t: LType) -> str:
    """The C++ type of a local variable."""
    if t.base == "list":
        item = t.item
        plain = "Ints" if item.base in ("int", "bool") else "TensorList" if item.base == "Tensor" else f"std::vector<{cpp_type(item)}>"
        return f"std::optional<{plain}>" if t.optional else plain
    if t.base == "tuple":
        return f"std::tuple<{', '.join(cpp_type(i) for i in t.items)}>"
    plain = _PLAIN[t.base]
    return f"std::optional<{plain}>" if t.optional and t.base not in _OWN_NONE else plain


def none_of(t: LType) -> str:
    return {"Tensor": "Tensor()", "Operand": "Operand()", "dtype": "ARGAND_DTYPE_NONE", "generator": "nullptr"}.get(t.base if not t.is_list else "", "std::nullopt")


class BodyPrinter:
    """`names` maps variables to other C++ text; `needs` prints needs(arg)."""

    def __init__(self, names: Mapping[str, str] | None = None, needs: Callable[[str], str] | None = None) -> None:
        self.names = dict(names or {})
        self.needs = needs
        self.result: LType | None = None
        self.finish: Callable[[str], str] = lambda value: f"return {value};"

    # ---- statements

    def body(self, body: Body, indent: str = "  ") -> str:
        """Declarations of locals and all statements."""
        self.result = body.result
        lines = [f"{cpp_type(t)} {safe(n)}{{}};" for n, t in body.locals]
        lines += self.block(body.statements, "")
        return "".join(f"{indent}{line}\n" for line in lines)

    def block(self, statements: tuple[b.Stmt, ...], indent: str = "  ") -> list[str]:
        return [indent + line for s in statements for line in self.statement(s)]

    def statement(self, s: b.Stmt) -> list[str]:
        if isinstance(s, b.Assign):
            if len(s.targets) > 1:
                targets = ", ".join("std::ignore" if t == "_" else safe(t) for t in s.targets)
                return [f"std::tie({targets}) = {self.expr(s.value)};"]
            return [f"{self.name(s.targets[0])} = {self.keep(s.value)};"]
        if isinstance(s, b.SetItem):
            return [f"builtins::entry({self.expr(s.target)}, {self.expr(s.index)}) = {self.keep(s.value)};"]
        if isinstance(s, b.Append):
            return [f"{self.expr(s.target)}.push_back({self.keep(s.value)});"]
        if isinstance(s, b.If):
            lines = [f"if ({self.expr(s.condition)}) {{", *self.block(s.then)]
            if s.otherwise:
                lines += ["} else {", *self.block(s.otherwise)]
            return [*lines, "}"]
        if isinstance(s, b.For):
            return self.for_(s)
        if isinstance(s, b.While):
            return [f"while ({self.expr(s.condition)}) {{", *self.block(s.body), "}"]
        if isinstance(s, b.Check):
            parts = ", ".join(f'"{_escape(m)}"' if isinstance(m, str) else self.expr(m) for m in s.message)
            return [f"if (!({self.expr(s.condition)})) builtins::raise({KINDS[s.kind]}, builtins::text({parts}));"]
        if isinstance(s, b.Evaluate):
            return [self.expr(s.value) + ";"]
        assert isinstance(s, b.Return)
        return [self.finish(self.returned(s.value))]

    def returned(self, value: Expr) -> str:
        if isinstance(value, b.TupleLit):
            assert self.result is not None
            items = ", ".join(self.keep(i, t) for i, t in zip(value.items, self.result.items, strict=True))
            return f"{cpp_type(self.result)}({items})"
        return self.keep(value, self.result)

    def for_(self, s: b.For) -> list[str]:
        body = self.block(s.body)
        if isinstance(s.iterable, b.Range):
            r, v = s.iterable, safe(s.var)
            compare = "<" if r.step > 0 else ">"
            start, stop = self.expr(r.start), self.expr(r.stop)
            return [f"for (int64_t {v} = {start}; {v} {compare} {stop}; {v} += {r.step}) {{", *body, "}"]
        head = []
        tail = []
        if s.counter:
            head = [f"int64_t {safe(s.counter)} = -1;"]
            body = [f"  {safe(s.counter)}++;", *body]
        lines = [f"for (const auto& {safe(s.var)} : {self.expr(s.iterable)}) {{", *body, "}", *tail]
        return ["{", *["  " + x for x in [*head, *lines]], "}"] if head else lines

    # ---- expressions

    def name(self, n: str) -> str:
        return self.names.get(n, safe(n))

    def keep(self, x: Expr, wanted: LType | None = None) -> str:
        """A value to store or return: lists are owned."""
        t = wanted if wanted is not None else x.type
        if isinstance(x, b.Lit) and x.value is None:
            return none_of(t) if t.base != "none" else "std::nullopt"
        if isinstance(x, b.IfExp):
            return self.conditional(x, t)
        text = self.expr(x)
        if t.is_list and not t.optional and t.item.base in ("int", "bool", "none"):
            return f"builtins::list({text})"
        return text

    def expr(self, x: Expr) -> str:
        method = getattr(self, "_" + type(x).__name__.lower())
        text: str = method(x)
        return text

    def _var(self, x: b.Var) -> str:
        text = self.name(x.id)
        own = x.type.base in _OWN_NONE and not x.type.is_list
        return f"(*{text})" if x.narrowed and not own else text

    def _lit(self, x: b.Lit) -> str:
        if x.value is None:
            return "std::nullopt"
        if isinstance(x.value, bool):
            return str(x.value).lower()
        if isinstance(x.value, int):
            return f"int64_t{{{x.value}}}"
        if isinstance(x.value, float):
            return cpp_number(x.value)
        return f'std::string_view("{_escape(x.value)}")'

    def _dtypelit(self, x: b.DTypeLit) -> str:
        return f"int{{{enum(x.name)}}}"

    def _attr(self, x: b.Attr) -> str:
        return f"builtins::{x.name}_of({self.expr(x.obj)})"

    def _arith(self, x: b.Arith) -> str:
        args = [self.number(a) for a in x.args]
        if x.op == "neg":
            return f"(-{args[0]})"
        if x.op == "/":
            return f"(static_cast<double>({args[0]}) / static_cast<double>({args[1]}))"
        if x.op in ("//", "%"):
            return f"builtins::{'floordiv' if x.op == '//' else 'mod'}({args[0]}, {args[1]})"
        if x.op == "**":
            return f"std::pow({args[0]}, {args[1]})"
        return f"({args[0]} {x.op} {args[1]})"

    def number(self, x: Expr) -> str:
        """A number as int64_t, double or bool."""
        text = self.expr(x)
        return f"({text}).to_double()" if x.type.base == "Scalar" else text

    def _concat(self, x: b.Concat) -> str:
        return f"builtins::concat({self.keep(x.left, x.type)}, {self.keep(x.right, x.type)})"

    def _repeat(self, x: b.Repeat) -> str:
        return f"builtins::repeat({self.keep(x.items, x.type)}, {self.expr(x.count)})"

    def _compare(self, x: b.Compare) -> str:
        if x.left.type.is_list:
            left, right = f"IntList({self.expr(x.left)})", f"IntList({self.expr(x.right)})"
            return f"({left} == {right})" if x.op == "==" else f"!({left} == {right})"
        return f"({self.number(x.left)} {x.op} {self.number(x.right)})"

    def _contains(self, x: b.Contains) -> str:
        return f"{'!' if x.negated else ''}builtins::contains({self.expr(x.collection)}, {self.expr(x.item)})"

    def _isnone(self, x: b.IsNone) -> str:
        text = self.expr(x.obj)
        t = x.obj.type
        if isinstance(x.obj, b.Var):
            text = self.name(x.obj.id)
        if t.base in ("Tensor", "Operand") and not t.is_list:
            return f"{'' if x.negated else '!'}{text}.defined()"
        if t.base == "dtype":
            return f"({text} {'!=' if x.negated else '=='} ARGAND_DTYPE_NONE)"
        if t.base == "generator":
            return f"({text} {'!=' if x.negated else '=='} nullptr)"
        return f"{'' if x.negated else '!'}{text}.has_value()"

    def _logic(self, x: b.Logic) -> str:
        if x.op == "not":
            return f"!({self.expr(x.args[0])})"
        return "(" + (" && " if x.op == "and" else " || ").join(self.expr(a) for a in x.args) + ")"

    def _ifexp(self, x: b.IfExp) -> str:
        return self.conditional(x, x.type)

    def conditional(self, x: b.IfExp, t: LType) -> str:
        then, otherwise = self.keep(x.then, t), self.keep(x.otherwise, t)
        kind = cpp_type(t)
        return f"({self.expr(x.condition)} ? {kind}({then}) : {kind}({otherwise}))"

    def _opcall(self, x: b.OpCall) -> str:
        schema = x.schema
        given = max((i for i, a in enumerate(x.args) if a is not None), default=-1)
        parts = []
        for argument, value in zip(schema.arguments[: given + 1], x.args[: given + 1], strict=True):
            wanted = of_schema(argument.type)
            if value is None:
                parts.append(default_cpp(argument.type, argument.default))
            elif isinstance(value, b.Lit) and value.value is None:
                parts.append(none_of(wanted))
            elif wanted.is_list and wanted.size is not None and value.type.base == "int":
                parts.append(f"Ints({wanted.size}, {self.expr(value)})")
            elif wanted.base == "Tensor" and not wanted.is_list and value.type.base == "Operand":
                parts.append(f"builtins::as_tensor({self.expr(value)})")
            elif wanted.base in ("float", "int") and value.type.base == "Scalar":
                parts.append(self.number(value))
            elif wanted.is_list and not value.type.optional and wanted.item.base in ("int", "bool"):
                parts.append(self.expr(value) if not isinstance(value, (b.ListLit, b.IfExp)) else self.keep(value, wanted.required()))
            else:
                parts.append(self.expr(value))
        return f"ops::{function_name(schema)}({', '.join(parts)})"

    def _builtin(self, x: b.Builtin) -> str:
        if x.fn in BUILTINS:
            wanted = BUILTINS[x.fn].args
            parts = [none_of(w) if isinstance(a, b.Lit) and a.value is None else self.expr(a) for a, w in zip(x.args, wanted, strict=True)]
            return f"builtins::{x.fn}({', '.join(parts)})"
        args = [self.number(a) if a.type.is_numeric else self.expr(a) for a in x.args]
        if x.fn in MATH:
            return f"std::{x.fn.removesuffix('_float')}(static_cast<double>({args[0]})" + "".join(f", {a}" for a in args[1:]) + ")"
        if x.fn in ("min", "max"):
            if len(args) == 1:
                return f"builtins::{x.fn}_entry({args[0]})"
            text = args[0]
            for a in args[1:]:
                text = f"builtins::{x.fn}_of({text}, {a})"
            return text
        if x.fn in ("int", "float", "bool"):
            return f"static_cast<{_PLAIN[x.fn]}>({args[0]})"
        if x.fn == "abs":
            return f"std::abs({args[0]})"
        return f"builtins::{x.fn}({', '.join(args)})"

    def _needs(self, x: b.Needs) -> str:
        assert self.needs is not None
        return self.needs(x.arg)

    def _listlit(self, x: b.ListLit) -> str:
        kind = cpp_type(x.type) if x.type.items else "Ints"
        if kind == "TensorList":
            return "TensorList{" + ", ".join("Tensor()" if isinstance(i, b.Lit) else self.expr(i) for i in x.items) + "}"
        return kind + "{" + ", ".join(self.expr(i) for i in x.items) + "}"

    def _tuplelit(self, x: b.TupleLit) -> str:
        return f"{cpp_type(x.type)}({', '.join(self.keep(i) for i in x.items)})"

    def _index(self, x: b.Index) -> str:
        if x.obj.type.base == "tuple":
            assert isinstance(x.index, b.Lit)
            return f"std::get<{x.index.value}>({self.expr(x.obj)})"
        return f"builtins::at({self.expr(x.obj)}, {self.expr(x.index)})"

    def _slice(self, x: b.Slice) -> str:
        low = self.expr(x.low) if x.low is not None else "std::nullopt"
        high = self.expr(x.high) if x.high is not None else "std::nullopt"
        return f"builtins::slice({self.expr(x.obj)}, {low}, {high})"

    def _comprehension(self, x: b.Comprehension) -> str:
        append = f"found.push_back({self.keep(x.element)});"
        if x.condition is not None:
            append = f"if ({self.expr(x.condition)}) {append}"
        loop = b.For(x.var, x.var_type, x.iterable, ())
        head, *_ = self.for_(loop)
        return f"[&] {{ {cpp_type(x.type)} found; {head} {append} }} return found; }}()"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
