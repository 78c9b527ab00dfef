"""Calls in the statement language: operators with overloads, built-ins, and functions of numbers and lists."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from tools.codegen import body as b
from tools.codegen.body import BOOL, FLOAT, INT, INTS, Expr, LType, fits, of_schema
from tools.codegen.builtins_table import BUILTINS, MATH
from tools.codegen.expr import ExprError, suggest
from tools.codegen.model import Argument, Schema

Given = list[tuple[str | None, Expr]]  # (keyword, value)

_COMMON: Final = (
    "len",
    "list",
    "min",
    "max",
    "abs",
    "sum",
    "prod",
    "any",
    "all",
    "int",
    "float",
    "bool",
    "reversed",
)


class CallReader:
    """The part of body_reader.Reader that reads calls."""

    operators: Callable[[str], list[Schema]]
    needs_args: tuple[str, ...]

    if TYPE_CHECKING:

        def expr(
            self, node: ast.expr, wanted: LType | None = None, keep_optional: bool = False
        ) -> Expr: ...
        def int(self, node: ast.expr) -> Expr: ...
        def fail(self, message: str, node: ast.AST) -> ExprError: ...

    def call(self, node: ast.Call) -> Expr:
        if isinstance(node.func, ast.Attribute):  # x.sum(dim): an operator on x
            given: Given = [(None, self.expr(node.func.value))]
            name = node.func.attr
        elif isinstance(node.func, ast.Name):
            given = []
            name = node.func.id
        else:
            raise self.fail("only functions can be called", node)
        if name == "needs":
            return self.needs(node)
        if name == "range":
            raise self.fail(
                "range() is for loops; a list of numbers is [i for i in range(n)]", node
            )
        for a in node.args:
            if isinstance(a, ast.Starred):
                raise self.fail("no * in calls", a)
            given.append((None, self.expr(a)))
        given += [(k.arg, self.expr(k.value)) for k in node.keywords]
        tensors = any(_holds_tensor(v.type) for _, v in given)
        schemas = self.operators(name)
        if name == "cast" and not schemas:
            name, schemas = "to", self.operators("to")
        if name in BUILTINS:
            return self.builtin(name, given, node)
        if (
            schemas
            and (tensors or name not in (*_COMMON, *MATH))
            and not (name in ("len", "list") and tensors)
        ):
            return self.operator_call(name, given, node)
        values = [v for _, v in given]
        if name in _COMMON:
            return self.common(name, values, node)
        if name in MATH:
            if not values or not all(v.type.is_numeric for v in values):
                raise self.fail(f"{name} of {', '.join(str(v.type) for v in values)}", node)
            return b.Builtin(FLOAT, name, tuple(values))
        raise self.fail(f"unknown function '{name}'{self.hint(name)}", node.func)

    def hint(self, name: str) -> str:
        return suggest(name, [*BUILTINS, *_COMMON])

    def needs(self, node: ast.Call) -> Expr:
        names = [a.id for a in node.args if isinstance(a, ast.Name)]
        if len(names) != 1 or names[0] not in self.needs_args:
            known = ", ".join(self.needs_args)
            raise self.fail(f"needs() names one differentiable argument; known are {known}", node)
        return b.Needs(BOOL, names[0])

    def builtin(self, name: str, given: Given, node: ast.Call) -> Expr:
        function = BUILTINS[name]
        values = [v for k, v in given if k is None]
        got = ", ".join(str(v.type) for _, v in given)
        if len(values) != len(given) or len(values) != len(function.args):
            raise self.fail(
                f"{name} takes ({', '.join(map(str, function.args))}), got ({got})", node
            )
        for i, (value, wanted) in enumerate(zip(values, function.args, strict=True)):
            if not fits(value.type, wanted):
                raise self.fail(
                    f"{name}: argument {i + 1} is {value.type}, expected {wanted}", node.args[i]
                )
        return b.Builtin(function.result, name, tuple(values))

    def common(self, name: str, values: list[Expr], node: ast.Call) -> Expr:
        types = [v.type for v in values]
        if any(t.optional for t in types):
            raise self.fail(f"{name}: may be None here; test it with `is None` first", node)
        one = types[0] if len(types) == 1 else None
        if name == "len" and one and one.is_list:
            return b.Builtin(INT, name, tuple(values))
        if name == "list" and one and one.is_list:
            return b.Builtin(b.list_of(one.item), name, tuple(values))
        if name == "reversed" and one == INTS:
            return b.Builtin(INTS, name, tuple(values))
        if name in ("sum", "prod") and one and one.is_list and one.item.base == "int":
            return b.Builtin(INT, name, tuple(values))
        if name in ("any", "all") and one and one.is_list and one.item.base == "bool":
            return b.Builtin(BOOL, name, tuple(values))
        if name in ("min", "max") and (
            len(types) > 1 or (one and one.is_list and one.item.base == "int")
        ):
            if one:
                return b.Builtin(INT, name, tuple(values))
            if all(t.is_numeric for t in types):
                floating = any(t.base in ("float", "Scalar") for t in types)
                return b.Builtin(FLOAT if floating else INT, name, tuple(values))
        if name == "abs" and one and one.is_numeric:
            return b.Builtin(INT if one.base == "int" else FLOAT, name, tuple(values))
        if name in ("int", "float", "bool") and one and one.is_numeric:
            return b.Builtin(LType(name), name, tuple(values))
        raise self.fail(f"{name} does not take ({', '.join(map(str, types))})", node)

    def operator_call(self, name: str, given: Given, node: ast.AST) -> Expr:
        schemas = self.operators(name)
        if not schemas:
            raise self.fail(f"needs the operator '{name}', which is not registered", node)
        problems = []
        for loose in (
            False,
            True,
        ):  # a number operand stands for a tensor only where nothing fits better
            for schema in schemas:
                args = bind_arguments(schema, given, loose)
                if isinstance(args, str):
                    problems.append(f"{schema}: {args}")
                    continue
                types = tuple(of_schema(r.type) for r in schema.results)
                result = types[0] if len(types) == 1 else LType("tuple", types)
                return b.OpCall(result, schema, args)
        got = ", ".join((f"{k}=" if k else "") + str(v.type) for k, v in given)
        raise self.fail(f"{name}({got}) fits no form: " + "; ".join(dict.fromkeys(problems)), node)

    def iterable(self, node: ast.expr) -> Expr:
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "range"
        ):
            parts = [self.int(a) for a in node.args]
            if len(parts) == 1:
                return b.Range(INTS, b.Lit(INT, 0), parts[0], 1)
            step = parts[2] if len(parts) == 3 else b.Lit(INT, 1)
            if len(parts) not in (2, 3) or not isinstance(step, b.Lit) or step.value == 0:
                raise self.fail(
                    "range takes (stop), (start, stop) or (start, stop, literal step)", node
                )
            return b.Range(INTS, parts[0], parts[1], step.value)
        value = self.expr(node)
        if not value.type.is_list or value.type.optional:
            raise self.fail(f"loops over lists and range(), not {value.type}", node)
        return value


def _holds_tensor(type_: LType) -> bool:
    return type_.is_tensor_like or (
        type_.is_list and bool(type_.items) and _holds_tensor(type_.item)
    )


def bind_arguments(
    schema: Schema, given: Given, loose: bool = False
) -> tuple[Expr | None, ...] | str:
    """The call's values in the order of the schema's arguments (None: default), or why they do not fit."""
    slots: list[Expr | None] = [None] * len(schema.arguments)
    positional = [a for a in schema.arguments if not a.kwonly]
    count = 0
    for keyword, value in given:
        if keyword is None:
            if count >= len(positional):
                return f"takes {len(positional)} positional arguments"
            slots[count] = value
            count += 1
            continue
        index = next((i for i, a in enumerate(schema.arguments) if a.name == keyword), None)
        if index is None:
            return f"has no argument '{keyword}'"
        if slots[index] is not None:
            return f"argument '{keyword}' is given twice"
        slots[index] = value
    for argument, slot in zip(schema.arguments, slots, strict=True):
        problem = _problem(argument, slot, loose)
        if problem:
            return problem
    return tuple(slots)


def _problem(argument: Argument, value: Expr | None, loose: bool) -> str | None:
    if value is None:
        return None if argument.has_default else f"argument '{argument.name}' is missing"
    wanted = of_schema(argument.type)
    if fits(value.type, wanted):
        return None
    if (
        loose
        and wanted.base == "Tensor"
        and value.type.base == "Operand"
        and not value.type.optional
    ):
        return None
    # Schemas write list sizes and numbers loosely: a Scalar argument may be given where a float is wanted.
    if (
        value.type.base == "Scalar"
        and wanted.base in ("float", "Scalar")
        and not value.type.optional
    ):
        return None
    return f"argument '{argument.name}' is {value.type}, expected {wanted}"
