"""Prints bodies as C++ on argand::Tensor and the functions of packages/aten/csrc/core/builtins.h.

Conventions: generated code stands inside namespace argand. `int[]` parameters are borrowed (`IntList`), locals and results
own their elements (`builtins::Ints`). Optional numbers and lists are std::optional; an undefined Tensor or Operand,
ARGAND_DTYPE_NONE and nullptr stand for None. The operator's name in messages comes from a builtins::OpScope around it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from tools.codegen import body as b
from tools.codegen.body import FLOAT, INTS, Body, Expr, LType, Stmt, of_schema
from tools.codegen.builtins_table import BUILTINS, MATH
from tools.codegen.dtypes import enum
from tools.codegen.emit_cpp_ops import default_cpp, function_name, safe
from tools.codegen.model import Argument

_KINDS: Final = {
    "shape": "ARGAND_SHAPE_ERROR", "index": "ARGAND_INDEX_ERROR", "type": "ARGAND_TYPE_ERROR",
    "value": "ARGAND_VALUE_ERROR", "dtype": "ARGAND_DTYPE_ERROR", "supported": "ARGAND_NOT_IMPLEMENTED_ERROR",
}  # fmt: skip
_SCALARS: Final = {
    "int": "int64_t", "float": "double", "bool": "bool", "str": "std::string_view", "Scalar": "Scalar",
    "device": "ArgandDevice",
}  # fmt: skip

# Types whose C++ form has its own "nothing", so that None needs no std::optional.
_NULLABLE: Final = {
    "Tensor": "Tensor",
    "Operand": "Operand",
    "dtype": "int",
    "generator": "ArgandGenerator*",
}


def cpp_type(t: LType) -> str:
    """The C++ type of a local variable or result, which owns what it holds."""
    if t.base in _NULLABLE:
        return _NULLABLE[t.base]
    if t.base == "none":
        return "std::nullopt_t"
    if t.base == "list":
        item = t.item.base
        plain = {
            "Tensor": "TensorList",
            "int": "builtins::Ints",
            "bool": "builtins::Ints",
            "none": "builtins::Ints",
        }.get(item)
        plain = plain or f"std::vector<{cpp_type(t.item)}>"
    elif t.base == "strided":
        plain = "builtins::Strided"
    elif t.base == "tuple":
        plain = f"std::tuple<{', '.join(cpp_type(i) for i in t.items)}>"
    else:
        plain = _SCALARS[t.base]
    return f"std::optional<{plain}>" if t.optional else plain


def quoted(text: str) -> str:
    """A C string literal."""
    return json.dumps(text, ensure_ascii=True)


class BodyPrinter:
    """Prints bodies.

    Args:
      names: other C++ text for parameters.
      needs: the C++ condition of needs(arg).
      shape_lists: parameters that are lists of tensors of which there are the shapes alone, under their name and `_shapes`.

    A parameter that the body assigns to must be declared by the caller under its own name, owning its value.
    `finish` turns a returned value into a statement.
    """

    def __init__(
        self,
        names: Mapping[str, str] | None = None,
        needs: Callable[[str], str] | None = None,
        shape_lists: Collection[str] = (),
    ) -> None:
        self.names = dict(names or {})
        self.needs = needs
        self.shape_lists = shape_lists
        self.finish: Callable[[str], str] = lambda value: f"return {value};"
        self.result: LType | None = None
        self.types: dict[str, LType] = {}
        self.parameters: dict[str, LType] = {}
        self.reassigned: frozenset[str] = frozenset()
        self.declared: set[str] = set()

    def enter(self, body: Body) -> None:
        """Makes `body` the one whose statements and expressions are printed."""
        self.result = body.result
        self.parameters = dict(body.parameters)
        self.types = self.parameters | dict(body.locals)
        self.reassigned = body.reassigned
        self.declared = set(self.parameters)

    def body(self, body: Body, indent: str = "  ") -> str:
        """Declarations of locals and all statements."""
        return "".join(f"{indent}{line}\n" for line in self.lines(body))

    def expression(self, body: Body) -> str | None:
        """The returned expression, when that is the whole body."""
        self.enter(body)
        x = body.expression
        return None if x is None else self.returned(x)

    # ---- statements

    def lines(self, body: Body) -> list[str]:
        """The statements; they end by returning on every path."""
        self.enter(body)
        found: list[str] = []
        read = {x.id for x in body.expressions() if isinstance(x, b.Var)}
        late = _first_assigned_inside(body)
        for name, t in body.locals:
            if name in late or name not in read:  # else declared where it is first assigned
                found.append(
                    f"{'' if name in read else '[[maybe_unused]] '}{cpp_type(t)} {safe(name)}{{}};"
                )
                self.declared.add(name)
        return found + self.block(body.statements)

    def block(self, statements: Iterable[Stmt]) -> list[str]:
        return [line for s in statements for line in self.statement(s)]

    def statement(self, s: Stmt) -> list[str]:
        if isinstance(s, b.Return):
            return [self.finish(self.returned(s.value))]
        if isinstance(s, b.Assign):
            return [self.assign(s)]
        if isinstance(s, b.SetItem):
            return [f"{self.entry(s.target, s.index)} = {self.top(s.value, s.target.type.item)};"]
        if isinstance(s, b.Append):
            return [f"{self.var(s.target)}.push_back({self.top(s.value, s.target.type.item)});"]
        if isinstance(s, b.Evaluate):
            return [f"{self.top(s.value)};"]
        if isinstance(s, b.Check):
            return [
                f"if (!({self.top(s.condition)})) builtins::raise({_KINDS[s.kind]}, {self.message(s.message)});"
            ]
        if isinstance(s, b.While):
            return [f"while ({self.top(s.condition)}) {{", *self.indented(s.body), "}"]
        if isinstance(s, b.For):
            return self.loop(s)
        assert isinstance(s, b.If)
        found = [f"if ({self.top(s.condition)}) {{", *self.indented(s.then)]
        if len(s.otherwise) == 1 and isinstance(s.otherwise[0], b.If):
            rest = self.statement(s.otherwise[0])
            return [*found, "} else " + rest[0], *rest[1:]]
        if s.otherwise:
            found += ["} else {", *self.indented(s.otherwise)]
        return [*found, "}"]

    def indented(self, statements: Iterable[Stmt]) -> list[str]:
        return ["  " + line for line in self.block(statements)]

    def assign(self, s: b.Assign) -> str:
        if len(s.targets) > 1:
            names = ", ".join("std::ignore" if t == "_" else self.local(t) for t in s.targets)
            return f"std::tie({names}) = {self.top(s.value)};"
        name = s.targets[0]
        t = self.types[name]
        value = self.top(s.value, t, owned=True)
        if name in self.declared:
            return f"{self.local(name)} = {value};"
        self.declared.add(name)
        return f"{cpp_type(t)} {safe(name)} = {value};"

    def local(self, name: str) -> str:
        return self.names.get(name, safe(name)) if name in self.parameters else safe(name)

    def loop(self, s: b.For) -> list[str]:
        inner = self.indented(s.body)
        if isinstance(s.iterable, b.Range):
            head = self.range_head(s.var, s.iterable)
        else:
            head = f"for ({self.item_type(s.var_type)} {safe(s.var)} : {self.iterated(s.iterable)})"
        if s.counter is None:
            return [f"{head} {{", *inner, "}"]
        counter = safe(s.counter)
        return [f"{{ int64_t {counter} = 0;", f"{head} {{", *inner, f"  {counter}++;", "} }"]

    def range_head(self, var: str, r: b.Range) -> str:
        v = safe(var)
        compare, step = ("<", r.step) if r.step > 0 else (">", r.step)
        move = {1: f"{v}++", -1: f"{v}--"}.get(step, f"{v} += {step}")
        return f"for (int64_t {v} = {self.top(r.start)}; {v} {compare} {self.expr(r.stop)}; {move})"

    def item_type(self, t: LType) -> str:
        kind = "const Tensor&" if t.base == "Tensor" else cpp_type(t)
        return f"[[maybe_unused]] {kind}"

    def iterated(self, x: Expr) -> str:
        # The sizes of a temporary tensor would die before the loop.
        return (
            self.owned(x) if isinstance(x, b.Attr) and not isinstance(x.obj, b.Var) else self.top(x)
        )

    def returned(self, x: Expr) -> str:
        return self.top(x, self.result, owned=True)

    def message(self, parts: tuple[str | Expr, ...]) -> str:
        texts = []
        for part in parts:
            if isinstance(part, str):
                texts.append(quoted(part))
            elif part.type.base == "Scalar" and not part.type.optional:
                texts.append(f"builtins::to_float({self.top(part)})")
            else:
                texts.append(self.top(part))
        return f"builtins::text({', '.join(texts)})"

    # ---- expressions

    def top(self, x: Expr, wanted: LType | None = None, owned: bool = False) -> str:
        """An expression where no parentheses are needed around it."""
        text = self.expr(x, wanted, owned)
        return text[1:-1] if _is_wrapped(text) else text

    def expr(self, x: Expr, wanted: LType | None = None, owned: bool = False) -> str:
        if wanted is not None:
            converted = self.converted(x, wanted, owned)
            if converted is not None:
                return converted
        if owned and x.type.is_list:
            return self.owned(x)
        return self.plain(x)

    def converted(self, x: Expr, wanted: LType, owned: bool) -> str | None:
        """Text where the C++ type that is expected is not the expression's own; None where nothing is to be done."""
        given = x.type
        if isinstance(x, b.Lit) and x.value is None:
            return {
                "Tensor": "Tensor()",
                "Operand": "Operand()",
                "dtype": "ARGAND_DTYPE_NONE",
                "generator": "nullptr",
            }.get(wanted.base, "std::nullopt")
        if isinstance(x, b.IfExp):
            return self.conditional(x, wanted, owned)
        if isinstance(x, b.TupleLit) and wanted.base == "tuple":
            items = ", ".join(
                self.top(i, t, owned=True) for i, t in zip(x.items, wanted.items, strict=True)
            )
            return f"{cpp_type(wanted)}{{{items}}}"
        if wanted.base == "list" and given.base == "int":
            return f"builtins::Ints({wanted.size or 1}, {self.top(x)})"
        if wanted.base == "list" and isinstance(x, b.ListLit):
            return self.list_literal(x, wanted)
        if wanted.base == "float" and given.base in ("int", "bool", "Scalar"):
            return self.as_float(x)
        if (
            wanted.base == "Scalar"
            and given.base in ("int", "float", "bool")
            and not given.optional
        ):
            return f"Scalar({self.top(x)})"
        if wanted.base == "Tensor" and given.base == "Operand":
            return f"builtins::as_tensor({self.top(x)})"
        return None

    def conditional(self, x: b.IfExp, wanted: LType | None, owned: bool) -> str:
        t = wanted if wanted is not None and wanted.base != "none" else x.type
        if t.is_list or t.base == "tuple":
            owned = True
        branches = [self.expr(v, t, owned) for v in (x.then, x.otherwise)]
        c = (
            cpp_type(t)
            if not (t.base == "list" and t.optional)
            else "std::optional<builtins::Ints>"
        )
        if t.optional and t.base not in _NULLABLE or t.base in ("Operand", "Scalar"):
            branches = [f"{c}({v})" for v in branches]
        return f"({self.expr(x.condition)} ? {branches[0]} : {branches[1]})"

    def as_float(self, x: Expr) -> str:
        if x.type.base == "float":
            return self.expr(x)
        if isinstance(x, b.Lit):
            return repr(float(x.value))
        if x.type.base == "Scalar":
            return f"builtins::to_float({self.top(x)})"
        return f"static_cast<double>({self.top(x)})"

    def is_span(self, x: Expr) -> bool:
        """Is its C++ value a borrowed IntList?"""
        if not x.type.is_list or x.type.item.base not in ("int", "bool"):
            return False
        if isinstance(x, b.Var):
            return x.id in self.parameters and x.id not in self.reassigned
        return isinstance(x, b.Attr)

    def owned(self, x: Expr) -> str:
        text = self.plain(x)
        if x.type.optional:
            return (
                f"({text} ? std::optional(builtins::list(*{text})) : std::nullopt)"
                if self.is_span(x)
                else text
            )
        return f"builtins::list({_bare(text)})" if self.is_span(x) else text

    def var(self, x: b.Var) -> str:
        name = self.local(x.id)
        return f"(*{name})" if x.narrowed and x.type.base not in _NULLABLE else name

    def plain(self, x: Expr) -> str:
        return _PRINTERS[type(x)](self, x)

    def literal(self, x: b.Lit) -> str:
        if isinstance(x.value, bool):
            return str(x.value).lower()
        if isinstance(x.value, str):
            return f"std::string_view({quoted(x.value)})"
        if isinstance(x.value, float):
            from tools.codegen.print_cpp import cpp_number

            return cpp_number(x.value)
        return f"({x.value})" if x.value < 0 else str(x.value)

    def attr(self, x: b.Attr) -> str:
        if x.name == "shapes":
            if isinstance(x.obj, b.Var) and x.obj.id in self.shape_lists:
                return f"{safe(x.obj.id)}_shapes"
            each = "r.push_back(builtins::list(builtins::shape_of(t)));"
            return f"[&] {{ std::vector<builtins::Ints> r; for (const auto& t : {self.expr(x.obj)}) {each} return r; }}()"
        return f"builtins::{x.name}_of({self.top(x.obj)})"

    def needed(self, x: b.Needs) -> str:
        assert self.needs is not None, "needs() outside a gradient"
        return self.needs(x.arg)

    def arith(self, x: b.Arith) -> str:
        floating = x.type.base == "float"
        args = [self.as_float(a) if floating else self.expr(a) for a in x.args]
        checked = {"+": "plus", "-": "minus", "*": "times"}
        if x.op == "neg":
            return f"(-{args[0]})" if floating else f"builtins::minus(0, {_bare(args[0])})"
        if x.op == "**":
            power = f"std::pow({_bare(args[0])}, {_bare(args[1])})"
            return power if floating else f"static_cast<int64_t>({power})"
        if x.op in ("//", "%"):
            if floating:
                quotient = f"std::floor({args[0]} / {args[1]})"
                return quotient if x.op == "//" else f"({args[0]} - {quotient} * {args[1]})"
            return f"builtins::{'floordiv' if x.op == '//' else 'mod'}({_bare(args[0])}, {_bare(args[1])})"
        if x.type.base == "int" and x.op in checked:
            return f"builtins::{checked[x.op]}({_bare(args[0])}, {_bare(args[1])})"
        return f"({args[0]} {x.op} {args[1]})"

    def concat(self, x: b.Concat) -> str:
        left, right = (self.top(side, x.type, owned=True) for side in (x.left, x.right))
        return f"builtins::concat({left}, {right})"

    def repeat(self, x: b.Repeat) -> str:
        if (
            x.type.item.base in ("int", "bool")
            and isinstance(x.items, b.ListLit)
            and len(x.items.items) == 1
        ):
            return f"builtins::Ints(std::max<int64_t>({self.top(x.count)}, 0), {self.top(x.items.items[0])})"
        return f"builtins::repeat({self.top(x.items, owned=True)}, {self.top(x.count)})"

    def compare(self, x: b.Compare) -> str:
        left, right = x.left, x.right
        if left.type.is_list:
            sides = [f"IntList({self.top(s, INTS)})" for s in (left, right)]
        elif "Scalar" in (left.type.base, right.type.base):
            sides = [self.as_float(left), self.as_float(right)]
        else:
            sides = [self.expr(left), self.expr(right)]
        return f"({sides[0]} {x.op} {sides[1]})"

    def contains(self, x: b.Contains) -> str:
        item = self.expr(x.item)
        if isinstance(x.collection, b.ListLit):
            tests = " || ".join(f"{item} == {self.expr(i)}" for i in x.collection.items) or "false"
        else:
            tests = f"[&] {{ for (auto v : {self.iterated(x.collection)}) if (v == {item}) return true; return false; }}()"
        return f"(!({tests}))" if x.negated else f"({tests})"

    def is_none(self, x: b.IsNone) -> str:
        text = self.expr(x.obj)
        base = x.obj.type.base
        if base in ("Tensor", "Operand"):
            return f"{text}.defined()" if x.negated else f"(!{text}.defined())"
        if base in ("dtype", "generator"):
            nothing = "ARGAND_DTYPE_NONE" if base == "dtype" else "nullptr"
            return f"({text} {'!=' if x.negated else '=='} {nothing})"
        return f"{text}.has_value()" if x.negated else f"(!{text}.has_value())"

    def logic(self, x: b.Logic) -> str:
        if x.op == "not":
            return f"(!{self.expr(x.args[0])})"
        return "(" + (" && " if x.op == "and" else " || ").join(self.expr(a) for a in x.args) + ")"

    def op_call(self, x: b.OpCall) -> str:
        if x.schema.name == "conj" and x.args[0] is not None and x.args[0].type.base == "Operand":
            return f"builtins::conj({self.top(x.args[0])})"
        count = max((i + 1 for i, a in enumerate(x.args) if a is not None), default=0)
        texts = []
        for argument, value in zip(x.schema.arguments[:count], x.args[:count], strict=True):
            texts.append(self.argument(argument, value))
        return f"ops::{function_name(x.schema)}({', '.join(texts)})"

    def argument(self, argument: Argument, value: Expr | None) -> str:
        if value is None:
            return default_cpp(argument.type, argument.default)
        wanted = of_schema(argument.type)
        return self.top(value, wanted)

    def builtin(self, x: b.Builtin) -> str:
        function = BUILTINS.get(x.fn)
        if function is not None:
            texts = [self.top(a, t) for a, t in zip(x.args, function.args, strict=True)]
            if x.fn == "strided":  # takes its lists by value
                texts = [
                    self.top(a, t, owned=t.is_list)
                    for a, t in zip(x.args, function.args, strict=True)
                ]
            return f"builtins::{x.fn}({', '.join(texts)})"
        if x.fn in MATH:
            return f"std::{x.fn}({', '.join(_bare(self.as_float(a)) for a in x.args)})"
        return self.common(x)

    def common(self, x: b.Builtin) -> str:
        first = self.top(x.args[0])
        if x.fn == "list":
            return self.owned(x.args[0])
        if x.fn in ("len", "sum", "prod"):
            return f"builtins::{x.fn}({first})"
        if x.fn in ("any", "all"):
            return (
                f"(builtins::sum({first}) > 0)"
                if x.fn == "any"
                else f"(builtins::prod({first}) != 0)"
            )
        if x.fn in ("min", "max"):
            kind = "double" if x.type == FLOAT else "int64_t"
            if len(x.args) == 1:
                return f"[&] {{ const auto v = {self.owned(x.args[0])}; return *std::{x.fn}_element(v.begin(), v.end()); }}()"
            text = first
            for a in x.args[1:]:
                text = f"std::{x.fn}<{kind}>({text}, {self.top(a)})"
            return text
        if x.fn == "reversed":
            return f"[&] {{ auto v = {self.owned(x.args[0])}; std::reverse(v.begin(), v.end()); return v; }}()"
        if x.fn == "abs":
            return f"std::abs({first})"
        if x.fn == "float":
            return self.as_float(x.args[0])
        source = _bare(self.as_float(x.args[0])) if x.args[0].type.base == "Scalar" else first
        if x.fn == "int" and x.args[0].type.base in ("float", "Scalar"):
            return f"builtins::truncated({source})"
        return f"static_cast<{_SCALARS[x.fn]}>({source})"

    def list_literal(self, x: b.ListLit, wanted: LType | None = None) -> str:
        t = wanted if wanted is not None and wanted.items else x.type
        items = ", ".join(self.top(i, t.item, owned=True) for i in x.items)
        return f"{cpp_type(LType('list', t.items))}{{{items}}}"

    def entry(self, obj: Expr, index: Expr) -> str:
        """list[index] as an lvalue."""
        text = self.expr(obj)
        if isinstance(index, b.Lit) and index.value < 0:
            return f"{text}[{text}.size() - {-index.value}]"
        return f"{text}[{self.top(index)}]"

    def index(self, x: b.Index) -> str:
        if x.obj.type.base == "tuple":
            assert isinstance(x.index, b.Lit)
            return f"std::get<{x.index.value}>({self.top(x.obj)})"
        if x.obj.type.item.base in ("int", "bool"):
            return f"builtins::at({self.top(x.obj)}, {self.top(x.index)})"
        return self.entry(x.obj, x.index)

    def slice(self, x: b.Slice) -> str:
        low = self.top(x.low) if x.low is not None else "std::nullopt"
        high = self.top(x.high) if x.high is not None else "std::nullopt"
        return f"builtins::slice({self.top(x.obj)}, {low}, {high})"

    def comprehension(self, x: b.Comprehension) -> str:
        if isinstance(x.iterable, b.Range):
            head = self.range_head(x.var, x.iterable)
        else:
            head = f"for ({self.item_type(x.var_type)} {safe(x.var)} : {self.iterated(x.iterable)})"
        push = f"r.push_back({self.top(x.element, x.type.item, owned=True)});"
        if x.condition is not None:
            push = f"if ({self.top(x.condition)}) {push}"
        return f"[&] {{ {cpp_type(x.type)} r; {head} {push} return r; }}()"


def _first_assigned_inside(body: Body) -> set[str]:
    """Locals that are first assigned in a nested block, or as one of several targets: declared up front."""
    seen: set[str] = set()
    found: set[str] = set()
    for outer in body.statements:
        for s in b.statements_of((outer,)):
            for name in _targets(s):
                if name not in seen and not (
                    s is outer and isinstance(s, b.Assign) and len(s.targets) == 1
                ):
                    found.add(name)
                seen.add(name)
    return found


def _targets(s: Stmt) -> tuple[str, ...]:
    if isinstance(s, b.Assign):
        return s.targets
    return (s.target.id,) if isinstance(s, (b.SetItem, b.Append)) else ()


def _is_wrapped(text: str) -> bool:
    """Is the whole text one pair of parentheses?"""
    if not text.startswith("(") or not text.endswith(")"):
        return False
    depth, in_string, i = 0, False, 0
    while i < len(text):
        c = text[i]
        if in_string:
            i += c == "\\"
            in_string = c != '"'
        elif c == '"':
            in_string = True
        elif c == "(":
            depth += 1
        elif c == ")":
            depth -= 1
            if depth == 0:
                return i == len(text) - 1
        i += 1
    return False


def _bare(text: str) -> str:
    return text[1:-1] if _is_wrapped(text) else text


_PRINTERS: Final[dict[type, Callable[[BodyPrinter, object], str]]] = {
    b.Var: BodyPrinter.var,  # type: ignore[dict-item]
    b.Lit: BodyPrinter.literal,  # type: ignore[dict-item]
    b.DTypeLit: lambda p, x: enum(x.name),  # type: ignore[attr-defined]
    b.Attr: BodyPrinter.attr,  # type: ignore[dict-item]
    b.Arith: BodyPrinter.arith,  # type: ignore[dict-item]
    b.Concat: BodyPrinter.concat,  # type: ignore[dict-item]
    b.Repeat: BodyPrinter.repeat,  # type: ignore[dict-item]
    b.Compare: BodyPrinter.compare,  # type: ignore[dict-item]
    b.Contains: BodyPrinter.contains,  # type: ignore[dict-item]
    b.IsNone: BodyPrinter.is_none,  # type: ignore[dict-item]
    b.Logic: BodyPrinter.logic,  # type: ignore[dict-item]
    b.IfExp: lambda p, x: p.conditional(x, None, False),  # type: ignore[arg-type]
    b.OpCall: BodyPrinter.op_call,  # type: ignore[dict-item]
    b.Builtin: BodyPrinter.builtin,  # type: ignore[dict-item]
    b.Needs: BodyPrinter.needed,  # type: ignore[dict-item]
    b.ListLit: BodyPrinter.list_literal,  # type: ignore[dict-item]
    b.TupleLit: lambda p, x: f"std::tuple{{{', '.join(p.top(i, owned=True) for i in x.items)}}}",  # type: ignore[attr-defined]
    b.Index: BodyPrinter.index,  # type: ignore[dict-item]
    b.Slice: BodyPrinter.slice,  # type: ignore[dict-item]
    b.Comprehension: BodyPrinter.comprehension,  # type: ignore[dict-item]
}
