"""Reads and type-checks the statement language (see body.py): Python's `ast` in, typed nodes out."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from tools.codegen import body as b
from tools.codegen.body import (
    BOOL,
    EMPTY_LIST,
    FLOAT,
    INT,
    INTS,
    NONE,
    Body,
    Expr,
    LType,
    fits,
    join,
)
from tools.codegen.body_calls import CallReader
from tools.codegen.dtypes import DTYPES
from tools.codegen.expr import CONSTANTS, ExprError, suggest
from tools.codegen.model import Schema

# check functions -> error kinds
CHECKS: Final = {
    "check": "shape", "check_index": "index", "check_type": "type", "check_value": "value", "check_dtype": "dtype",
    "check_supported": "supported",
}  # fmt: skip

ATTRIBUTES: Final[dict[str, LType]] = {
    "shape": INTS, "strides": INTS, "offset": INT, "ndim": INT, "numel": INT, "dtype": b.DTYPE, "device": b.DEVICE,
}  # fmt: skip

_ARITH: Final[dict[type[ast.operator], tuple[str, str]]] = {  # symbol, and the operator for tensors
    ast.Add: ("+", "add"), ast.Sub: ("-", "sub"), ast.Mult: ("*", "mul"), ast.Div: ("/", "div"),
    ast.FloorDiv: ("//", "floor_divide"), ast.Mod: ("%", "remainder"), ast.Pow: ("**", "pow"),
    ast.MatMult: ("@", "matmul"), ast.BitAnd: ("&", "bitwise_and"), ast.BitOr: ("|", "bitwise_or"),
    ast.BitXor: ("^", "bitwise_xor"),
}  # fmt: skip
_COMPARE: Final[dict[type[ast.cmpop], tuple[str, str]]] = {
    ast.Eq: ("==", "eq"), ast.NotEq: ("!=", "ne"), ast.Lt: ("<", "lt"), ast.LtE: ("<=", "le"), ast.Gt: (">", "gt"),
    ast.GtE: (">=", "ge"),
}  # fmt: skip


@dataclass
class Scope:
    """What is known about variables at one point of the body."""

    types: dict[str, LType] = field(default_factory=dict)  # as declared
    present: set[str] = field(default_factory=set)  # optional ones that are not None here
    dead: bool = False  # after return

    def copy(self) -> Scope:
        return Scope(dict(self.types), set(self.present), self.dead)


class Reader(CallReader):
    """One body. `operators` finds the schemas that a name may call."""

    def __init__(
        self,
        parameters: Mapping[str, LType],
        operators: Callable[[str], list[Schema]],
        result: LType | None,
        needs: tuple[str, ...] = (),
        view: bool = True,
    ) -> None:
        self.parameters = dict(parameters)
        self.operators = operators
        self.result = result
        self.needs_args = needs
        self.scope = Scope(dict(parameters))
        self.locals: dict[str, LType] = {}
        self.loop_variables: set[str] = set()
        self.reassigned: set[str] = set()
        self.returned: LType | None = None

    # ---- statements

    def block(self, nodes: list[ast.stmt]) -> tuple[b.Stmt, ...]:
        found: list[b.Stmt] = []
        for node in nodes:
            if self.scope.dead:
                raise self.fail("this is never reached", node)
            found += self.statement(node)
        return tuple(found)

    def statement(self, node: ast.stmt) -> list[b.Stmt]:
        if isinstance(node, ast.Return):
            if node.value is None:
                raise self.fail("return needs a value", node)
            return [self.return_(node.value)]
        if isinstance(node, ast.Assign):
            return self.assign(node)
        if isinstance(node, ast.AugAssign):
            load = ast.copy_location(
                ast.parse(ast.unparse(node.target), mode="eval").body, node.target
            )
            for part in ast.walk(load):
                ast.copy_location(part, node.target)
            value = ast.copy_location(ast.BinOp(load, node.op, node.value), node)
            return self.assign(ast.copy_location(ast.Assign([node.target], value), node))
        if isinstance(node, ast.If):
            return [self.if_(node)]
        if isinstance(node, ast.For):
            return [self.for_(node)]
        if isinstance(node, ast.While):
            return [self.while_(node)]
        if isinstance(node, ast.Expr):
            return [self.effect(node.value)]
        if isinstance(node, ast.Pass):
            return []
        raise self.fail(f"{type(node).__name__} is not part of the language", node)

    def return_(self, node: ast.expr) -> b.Return:
        value = self.expr(node, wanted=self.result)
        if self.result is not None and not fits(value.type, self.result):
            raise self.fail(f"returns {value.type}, expected {self.result}", node)
        if self.returned is not None and join(self.returned, value.type) is None:
            raise self.fail(f"returns {value.type} here but {self.returned} before", node)
        self.returned = value.type if self.returned is None else join(self.returned, value.type)
        self.scope.dead = True
        return b.Return(value)

    def assign(self, node: ast.Assign) -> list[b.Stmt]:
        if len(node.targets) != 1:
            raise self.fail("one assignment at a time", node)
        target = node.targets[0]
        if isinstance(target, (ast.Tuple, ast.List)):
            return self.unpack(target, node.value)
        if isinstance(target, ast.Subscript):
            return [self.set_item(target, self.expr(node.value))]
        if not isinstance(target, ast.Name):
            raise self.fail("only names and list entries can be assigned", target)
        value = self.expr(node.value, wanted=self.scope.types.get(target.id))
        self.bind(target.id, value.type, target)
        return [b.Assign((target.id,), value)]

    def unpack(self, target: ast.Tuple | ast.List, node: ast.expr) -> list[b.Stmt]:
        if isinstance(node, ast.Tuple):  # a, b = b, a: through temporaries
            if len(node.elts) != len(target.elts):
                raise self.fail(f"{len(target.elts)} targets for {len(node.elts)} values", target)
            found: list[b.Stmt] = []
            temporaries = []
            for element in node.elts:
                value = self.expr(element)
                name = f"tmp{sum(n.startswith('tmp') for n in self.locals)}"
                self.bind(name, value.type, element)
                found.append(b.Assign((name,), value))
                temporaries.append((name, value.type))
            for part, (name, type_) in zip(target.elts, temporaries, strict=True):
                var = b.Var(type_, name)
                if isinstance(part, ast.Subscript):
                    found.append(self.set_item(part, var))
                elif isinstance(part, ast.Name):
                    self.bind(part.id, type_, part)
                    found.append(b.Assign((part.id,), var))
            return found
        value = self.expr(node)
        if value.type.base != "tuple" or len(value.type.items) != len(target.elts):
            raise self.fail(f"{len(target.elts)} targets for a value of type {value.type}", target)
        names = []
        for part, type_ in zip(target.elts, value.type.items, strict=True):
            if not isinstance(part, ast.Name):
                raise self.fail("a tuple is assigned to names", part)
            if part.id != "_":
                self.bind(part.id, type_, part)
            names.append(part.id)
        return [b.Assign(tuple(names), value)]

    def set_item(self, target: ast.Subscript, value: Expr) -> b.SetItem:
        obj = self.expr(target.value)
        if not isinstance(obj, b.Var) or not obj.type.is_list:
            raise self.fail("only entries of a local list can be assigned", target)
        if obj.id in self.parameters:
            raise self.fail(f"'{obj.id}' is an argument; change a copy: x = list({obj.id})", target)
        return b.SetItem(obj, self.int(target.slice), value)

    def bind(self, name: str, type_: LType, node: ast.AST) -> None:
        if name in self.loop_variables:
            raise self.fail(f"loop variable '{name}' cannot be assigned", node)
        declared = self.scope.types.get(name) or self.locals.get(name)
        if declared is None:
            merged = type_
        else:
            joined = (
                join(declared.required(), type_.required()) if type_.base != "none" else declared
            )
            if joined is None:
                raise self.fail(f"'{name}' is {declared} and cannot become {type_}", node)
            merged = joined.maybe() if declared.optional or type_.optional else joined
            if (
                name in self.parameters
                and merged != declared
                and merged.required() != declared.required()
            ):
                merged = declared
        self.scope.types[name] = merged
        if name in self.parameters:
            self.reassigned.add(name)
        else:
            self.locals[name] = merged
        if merged.optional and not type_.optional:
            self.scope.present.add(name)
        elif merged.optional:
            self.scope.present.discard(name)

    def if_(self, node: ast.If) -> b.If:
        condition = self.bool(node.test)
        yes, no = self.narrowing(condition)
        before = self.scope
        self.scope = before.copy()
        self.scope.present |= yes
        then = self.block(node.body)
        after_then, self.scope = self.scope, before.copy()
        self.scope.present |= no
        otherwise = self.block(node.orelse)
        self.scope = self.merge(after_then, self.scope, node)
        return b.If(condition, then, otherwise)

    def merge(self, x: Scope, y: Scope, node: ast.AST) -> Scope:
        if x.dead or y.dead:
            live = y if x.dead else x
            for name, type_ in (
                x if x.dead else y
            ).types.items():  # declared there, for C++; not readable here
                self.locals.setdefault(name, type_) if name not in self.parameters else None
            return live
        types: dict[str, LType] = {}
        for name in x.types.keys() & y.types.keys():
            joined = join(x.types[name], y.types[name])
            if joined is None:
                raise self.fail(f"'{name}' is {x.types[name]} or {y.types[name]} after this", node)
            types[name] = joined
            if name in self.locals:
                self.locals[name] = joined
        present = {n for n in types if types[n].optional and _known(x, n) and _known(y, n)}
        return Scope(types, present)

    def for_(self, node: ast.For) -> b.For:
        if node.orelse:
            raise self.fail("for has no else in this language", node)
        counter = None
        target, source = node.target, node.iter
        if (
            isinstance(source, ast.Call)
            and isinstance(source.func, ast.Name)
            and source.func.id == "enumerate"
        ):
            if not (
                isinstance(target, ast.Tuple)
                and len(target.elts) == 2
                and isinstance(target.elts[0], ast.Name)
            ):
                raise self.fail("enumerate gives two variables", target)
            counter, target, source = target.elts[0].id, target.elts[1], source.args[0]
        if not isinstance(target, ast.Name):
            raise self.fail("the loop variable is one name", target)
        iterable = self.iterable(source)
        item = INT if isinstance(iterable, b.Range) else iterable.type.item
        before = self.scope.copy()
        names = [n for n in (counter, target.id) if n]
        for n in names:
            self.loop_variables.add(n)
            self.scope.types[n] = INT if n == counter else item
        statements = self.block(node.body)
        for n in names:
            self.loop_variables.discard(n)
        self.scope = self.after_loop(before, names)
        return b.For(target.id, item, iterable, statements, counter)

    def while_(self, node: ast.While) -> b.While:
        condition = self.bool(node.test)
        before = self.scope.copy()
        statements = self.block(node.body)
        self.scope = self.after_loop(before, [])
        return b.While(condition, statements)

    def after_loop(self, before: Scope, names: list[str]) -> Scope:
        """Variables made in the loop are gone; lists may have learnt their element type."""
        types = {n: self.scope.types.get(n, t) for n, t in before.types.items() if n not in names}
        for n in names:
            if n in before.types:
                types[n] = before.types[n]
        return Scope(types, before.present & (self.scope.present | before.present))

    def effect(self, node: ast.expr) -> b.Stmt:
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in CHECKS
        ):
            return self.check(node, CHECKS[node.func.id])
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "append"
        ):
            return self.append(node, node.func)
        value = self.expr(node)
        if not (isinstance(value, b.OpCall) and value.schema.is_inplace):
            raise self.fail(
                "this value is not used; only in-place operators, check() and append() stand alone",
                node,
            )
        return b.Evaluate(value)

    def append(self, node: ast.Call, function: ast.Attribute) -> b.Append:
        obj = self.expr(function.value)
        if (
            not isinstance(obj, b.Var)
            or not obj.type.is_list
            or len(node.args) != 1
            or obj.id in self.parameters
        ):
            raise self.fail("append() takes one value and works on a local list", node)
        value = self.expr(node.args[0])
        item = join(obj.type.item, value.type) if obj.type.items else value.type
        if item is None:
            raise self.fail(f"appends {value.type} to a list of {obj.type.item}", node.args[0])
        self.scope.types[obj.id] = self.locals[obj.id] = b.list_of(item)
        return b.Append(b.Var(b.list_of(item), obj.id), value)

    def check(self, node: ast.Call, kind: str) -> b.Check:
        if len(node.args) != 2 or node.keywords:
            raise self.fail('check takes a condition and a message: check(a > 0, "got {a}")', node)
        condition = self.bool(node.args[0])
        text = node.args[1]
        if isinstance(text, ast.JoinedStr):
            raise self.fail('write the message as a plain string; "{name}" is filled in', text)
        if not (isinstance(text, ast.Constant) and isinstance(text.value, str)):
            raise self.fail("the message is a string literal", text)
        message = self.message(text.value, text)
        self.scope.present |= self.narrowing(condition)[0]
        return b.Check(kind, condition, message)

    def message(self, text: str, node: ast.AST) -> tuple[str | Expr, ...]:
        parts: list[str | Expr] = []
        for i, piece in enumerate(re.split(r"\{([^{}]*)\}", text)):
            if i % 2 == 0:
                if piece:
                    parts.append(piece)
                continue
            try:
                inner = ast.parse(piece, mode="eval").body
            except SyntaxError:
                raise self.fail(f"'{{{piece}}}' is not an expression", node) from None
            for part in ast.walk(inner):
                ast.copy_location(part, node)
            parts.append(self.expr(inner, keep_optional=True))
        return tuple(parts)

    # ---- expressions

    def expr(
        self, node: ast.expr, wanted: LType | None = None, keep_optional: bool = False
    ) -> Expr:
        if isinstance(node, ast.Constant):
            return self.constant(node)
        if isinstance(node, ast.Name):
            return self.name(node)
        if isinstance(node, ast.Attribute):
            return self.attribute(node)
        if isinstance(node, ast.BinOp):
            return self.binary(node)
        if isinstance(node, ast.UnaryOp):
            return self.unary(node)
        if isinstance(node, ast.BoolOp):
            return self.logic(node)
        if isinstance(node, ast.Compare):
            return self.compare(node)
        if isinstance(node, ast.IfExp):
            return self.conditional(node, wanted)
        if isinstance(node, ast.Call):
            return self.call(node)
        if isinstance(node, ast.List):
            return self.list_literal([self.expr(e) for e in node.elts], node)
        if isinstance(node, ast.Tuple):
            items = tuple(self.expr(e) for e in node.elts)
            return b.TupleLit(LType("tuple", tuple(i.type for i in items)), items)
        if isinstance(node, ast.Subscript):
            return self.subscript(node)
        if isinstance(node, ast.ListComp):
            return self.comprehension(node)
        raise self.fail(f"{type(node).__name__} is not part of the language", node)

    def constant(self, node: ast.Constant) -> Expr:
        value = node.value
        types: dict[type, LType] = {
            bool: BOOL,
            int: INT,
            float: FLOAT,
            str: b.STR,
            type(None): NONE,
        }
        if type(value) not in types:
            raise self.fail(f"literal {value!r} is not part of the language", node)
        return b.Lit(types[type(value)], value)

    def name(self, node: ast.Name) -> Expr:
        type_ = self.scope.types.get(node.id)
        if type_ is not None:
            narrowed = type_.optional and node.id in self.scope.present
            return b.Var(type_.required() if narrowed else type_, node.id, narrowed)
        if node.id in DTYPES or node.id == "bool_":
            return b.DTypeLit(b.DTYPE, node.id.rstrip("_"))
        if node.id in CONSTANTS:
            return b.Lit(FLOAT, CONSTANTS[node.id])
        if node.id in self.locals:
            raise self.fail(f"'{node.id}' is not set on every path to here", node)
        raise self.fail(f"unknown name '{node.id}'{suggest(node.id, list(self.scope.types))}", node)

    def attribute(self, node: ast.Attribute) -> Expr:
        obj = self.expr(node.value)
        if node.attr == "shapes" and obj.type.is_list and obj.type.item.base == "Tensor":
            return b.Attr(b.list_of(INTS), obj, "shapes")
        if obj.type.base != "Tensor" or node.attr not in ATTRIBUTES:
            known = ", ".join(ATTRIBUTES)
            raise self.fail(
                f"{obj.type} has no attribute '{node.attr}'; tensors have {known}", node
            )
        if obj.type.optional:
            raise self.fail(f"may be None here; test it with `is None` before .{node.attr}", node)
        return b.Attr(ATTRIBUTES[node.attr], obj, node.attr)

    def binary(self, node: ast.BinOp) -> Expr:
        if type(node.op) not in _ARITH:
            raise self.fail(f"operator {type(node.op).__name__} is not part of the language", node)
        symbol, operator = _ARITH[type(node.op)]
        left, right = self.expr(node.left), self.expr(node.right)
        if left.type.is_tensor_like or right.type.is_tensor_like:
            return self.operator_call(operator, [(None, left), (None, right)], node)
        if left.type.is_list and right.type.is_list and symbol == "+":
            joined = join(left.type, right.type) if left.type.items and right.type.items else None
            joined = joined or (left.type if left.type.items else right.type)
            return b.Concat(b.list_of(joined.item) if joined.items else EMPTY_LIST, left, right)
        if left.type.is_list and right.type.base == "int" and symbol == "*":
            return b.Repeat(left.type, left, right)
        if not (left.type.is_numeric and right.type.is_numeric):
            raise self.fail(f"{symbol} between {left.type} and {right.type}", node)
        floating = symbol == "/" or any(
            t.base in ("float", "Scalar") for t in (left.type, right.type)
        )
        if symbol in ("@", "&", "|", "^"):
            raise self.fail(f"{symbol} works on tensors only", node)
        return b.Arith(FLOAT if floating else INT, symbol, (left, right))

    def unary(self, node: ast.UnaryOp) -> Expr:
        if isinstance(node.op, ast.Not):
            return b.Logic(BOOL, "not", (self.bool(node.operand),))
        value = self.expr(node.operand)
        if value.type.is_tensor_like:
            name = {ast.USub: "neg", ast.Invert: "bitwise_not"}.get(type(node.op))
            return self.operator_call(name, [(None, value)], node) if name else value
        if (
            isinstance(node.op, ast.USub)
            and isinstance(value, b.Lit)
            and value.type in (INT, FLOAT)
        ):
            return b.Lit(value.type, -value.value)
        if not value.type.is_numeric or not isinstance(node.op, ast.USub):
            raise self.fail(f"this operator does not work on {value.type}", node)
        return b.Arith(INT if value.type.base == "int" else FLOAT, "neg", (value,))

    def logic(self, node: ast.BoolOp) -> Expr:
        op = "and" if isinstance(node.op, ast.And) else "or"
        before = set(self.scope.present)
        args = []
        for value in node.values:
            args.append(self.bool(value))
            yes, no = self.narrowing(args[-1])
            self.scope.present |= yes if op == "and" else no
        self.scope.present = before
        return b.Logic(BOOL, op, tuple(args))

    def compare(self, node: ast.Compare) -> Expr:
        if len(node.ops) > 1:  # a < x < b
            parts: list[Expr] = []
            left_node = node.left
            for op, next_node in zip(node.ops, node.comparators, strict=True):
                parts.append(
                    self.compare(ast.copy_location(ast.Compare(left_node, [op], [next_node]), node))
                )
                left_node = next_node
            return b.Logic(BOOL, "and", tuple(parts))
        op, right_node = node.ops[0], node.comparators[0]
        if isinstance(op, (ast.Is, ast.IsNot)):
            if not (isinstance(right_node, ast.Constant) and right_node.value is None):
                raise self.fail("`is` compares with None only", node)
            obj = self.expr(node.left)
            if isinstance(obj, b.Var):
                obj = b.Var(self.scope.types[obj.id], obj.id)
            if not obj.type.optional:
                raise self.fail(f"{obj.type} is never None", node)
            return b.IsNone(BOOL, obj, isinstance(op, ast.IsNot))
        left, right = self.expr(node.left), self.expr(right_node)
        if isinstance(op, (ast.In, ast.NotIn)):
            if isinstance(right, b.TupleLit):
                right = self.list_literal(list(right.items), right_node)
            if not right.type.is_list or join(left.type, right.type.item) is None:
                raise self.fail(f"looks for {left.type} in {right.type}", node)
            return b.Contains(BOOL, left, right, isinstance(op, ast.NotIn))
        symbol, operator = _COMPARE[type(op)]
        if left.type.is_tensor_like or right.type.is_tensor_like:
            return self.operator_call(operator, [(None, left), (None, right)], node)
        comparable = left.type.is_numeric and right.type.is_numeric
        if symbol in ("==", "!="):
            comparable = comparable or join(left.type.required(), right.type.required()) is not None
        if left.type.optional or right.type.optional:
            raise self.fail(
                f"{left.type} {symbol} {right.type}: may be None here; test with `is None` first",
                node,
            )
        if not comparable:
            raise self.fail(f"{symbol} between {left.type} and {right.type}", node)
        return b.Compare(BOOL, symbol, left, right)

    def conditional(self, node: ast.IfExp, wanted: LType | None) -> Expr:
        condition = self.bool(node.test)
        yes, no = self.narrowing(condition)
        before = set(self.scope.present)
        self.scope.present = before | yes
        then = self.expr(node.body, wanted)
        self.scope.present = before | no
        otherwise = self.expr(node.orelse, wanted)
        self.scope.present = before
        type_ = join(then.type, otherwise.type)
        if type_ is None:
            raise self.fail(f"gives {then.type} or {otherwise.type}", node)
        return b.IfExp(type_, condition, then, otherwise)

    def list_literal(self, items: list[Expr], node: ast.AST) -> b.ListLit:
        if not items:
            return b.ListLit(EMPTY_LIST, ())
        type_: LType | None = items[0].type
        for item in items[1:]:
            type_ = join(type_, item.type) if type_ is not None else None
        if type_ is None:
            raise self.fail(
                "a list has elements of one type, got " + ", ".join(str(i.type) for i in items),
                node,
            )
        return b.ListLit(b.list_of(type_), tuple(items))

    def subscript(self, node: ast.Subscript) -> Expr:
        obj = self.expr(node.value)
        if obj.type.optional:
            raise self.fail("may be None here; test it with `is None` first", node)
        if obj.type.base == "tuple":
            index = node.slice
            if not (isinstance(index, ast.Constant) and isinstance(index.value, int)):
                raise self.fail("a tuple's index is a literal", node)
            return b.Index(obj.type.items[index.value], obj, self.expr(index))
        if not obj.type.is_list:
            hint = (
                "; tensors are indexed by select() and slice()" if obj.type.base == "Tensor" else ""
            )
            raise self.fail(f"{obj.type} cannot be indexed{hint}", node)
        if isinstance(node.slice, ast.Slice):
            if node.slice.step is not None:
                raise self.fail("slices have no step", node)
            low = self.int(node.slice.lower) if node.slice.lower else None
            high = self.int(node.slice.upper) if node.slice.upper else None
            return b.Slice(b.list_of(obj.type.item), obj, low, high)
        return b.Index(obj.type.item, obj, self.int(node.slice))

    def comprehension(self, node: ast.ListComp) -> Expr:
        generator = node.generators[0]
        if (
            len(node.generators) != 1
            or not isinstance(generator.target, ast.Name)
            or len(generator.ifs) > 1
        ):
            raise self.fail(
                "a comprehension has one variable, one list and at most one condition", node
            )
        iterable = self.iterable(generator.iter)
        item = INT if isinstance(iterable, b.Range) else iterable.type.item
        name = generator.target.id
        outer = self.scope
        self.scope = outer.copy()
        self.scope.types[name] = item
        condition = self.bool(generator.ifs[0]) if generator.ifs else None
        element = self.expr(node.elt)
        self.scope = outer
        return b.Comprehension(b.list_of(element.type), element, name, item, iterable, condition)

    # ---- parts

    def bool(self, node: ast.expr) -> Expr:
        value = self.expr(node)
        if value.type != BOOL:
            hint = (
                "; use len(x) > 0 or `is not None`"
                if value.type.is_list or value.type.optional
                else ""
            )
            raise self.fail(f"expected a condition, got {value.type}{hint}", node)
        return value

    def int(self, node: ast.expr) -> Expr:
        value = self.expr(node)
        if value.type != INT:
            raise self.fail(f"expected an int, got {value.type}", node)
        return value

    def narrowing(self, condition: Expr) -> tuple[set[str], set[str]]:
        """Names that are not None when the condition holds, and when it does not."""
        if isinstance(condition, b.IsNone) and isinstance(condition.obj, b.Var):
            names = {condition.obj.id}
            return (names, set()) if condition.negated else (set(), names)
        if isinstance(condition, b.Logic):
            parts = [self.narrowing(a) for a in condition.args]
            if condition.op == "not":
                return parts[0][1], parts[0][0]
            yes = set().union(*(p[0] for p in parts)) if condition.op == "and" else set()
            no = set().union(*(p[1] for p in parts)) if condition.op == "or" else set()
            return yes, no
        return set(), set()

    def fail(self, message: str, node: ast.AST) -> ExprError:
        start = getattr(node, "col_offset", 0)
        same_line = getattr(node, "end_lineno", 0) == getattr(node, "lineno", 0)
        end = (getattr(node, "end_col_offset", None) or start + 1) if same_line else start + 1
        return ExprError(message, start, max(end - start, 1), getattr(node, "lineno", 1))


def _known(scope: Scope, name: str) -> bool:
    return not scope.types[name].optional or name in scope.present


def read_body(
    text: str,
    parameters: Mapping[str, LType],
    operators: Callable[[str], list[Schema]],
    result: LType | None = None,
    needs: tuple[str, ...] = (),
) -> Body:
    """Reads a body, or a single expression (which is what it returns).

    Args:
      parameters: names it may read.
      operators: the schemas that a called name stands for, in the order in which they are tried.
      result: what it must return; None: anything.
      needs: arguments that needs(...) may name.

    Raises:
      ExprError: with line and column in `text`.
    """
    try:
        try:
            tree: list[ast.stmt] = [ast.Return(ast.parse(text.strip(), mode="eval").body)]
        except SyntaxError:
            tree = ast.parse(text).body
    except SyntaxError as e:
        raise ExprError(
            f"syntax error: {e.msg}", max((e.offset or 1) - 1, 0), 1, e.lineno or 1
        ) from None
    reader = Reader(parameters, operators, result, needs)
    statements = reader.block(tree)
    if not reader.scope.dead:
        raise ExprError("not every path returns a value", 0, 1, max(text.count("\n"), 1))
    assert reader.returned is not None
    made = tuple((n, _settled(t)) for n, t in reader.locals.items())
    returned = _settled(result or reader.returned)
    return Body(
        statements, tuple(parameters.items()), made, frozenset(reader.reassigned), returned, text
    )


def _settled(t: LType) -> LType:
    """A list that never got an element is a list of ints."""
    if t.base == "list" and not t.items:
        return LType("list", (INT,), t.optional)
    return LType(t.base, tuple(_settled(i) for i in t.items), t.optional, t.size)
