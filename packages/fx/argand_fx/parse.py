"""Reading the text form of graphs (see `argand_fx.text`)."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from typing import Any

import argand_c10
from argand_c10 import find_operator
from argand_fx.graph import Graph
from argand_fx.graph_module import GraphModule
from argand_fx.leaf_functions import find_leaf_function
from argand_fx.namespace import legal_name
from argand_fx.node import OPCODES, Node
from argand_fx.symbolic import SymExpr

__all__ = ["ParseError", "parse", "parse_symbolic", "resolve_target"]

_STRING = r"'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\""
_TOKEN = re.compile(rf"({_STRING})|%([A-Za-z_]\w*)|(    #.*)")
_LINE = re.compile(r"%(\w+) = (\w+) (.*)\Z")
_BINDINGS = re.compile(r" \{((?:s\d+: (?:size|stride|value) \d+(?:, )?)+)\}\Z")
_NODES = "_node"
_BUILTINS = (abs, bool, float, int, len, list, max, min, pow, round, sum, tuple)


class ParseError(ValueError):
    """Text that is no graph, with the line."""


def parse(
    text: str,
    resolve_target: Callable[[str], Callable[..., Any]] | None = None,
    *,
    resolve_symbol: Callable[[str], Any] | None = None,
) -> Graph:
    """The graph that `Graph.to_text` printed.

    Args:
        text: one graph.
        resolve_target: gives the function that a `call_function` names. By default registered operators, functions
            of `operator`, and harmless builtins.
        resolve_symbol: gives the symbolic value of a symbol (`s0`); without it symbolic values are kept as text.

    Returns:
        The graph. Graphs nested in it hang, as GraphModules, on its `owning_module`, else that is None:
        `GraphModule(graph.owning_module, graph)` makes a module of it.

    Raises:
        ParseError: with the number and text of the first line that is wrong.
    """
    lines = text.splitlines()
    parser = _Parser(lines, resolve_target or _default, resolve_symbol)
    parser.skip_empty()
    if parser.at >= len(lines) or lines[parser.at].strip() != "graph {":
        raise parser.error("expected 'graph {'")
    parser.at += 1
    graph = parser.block()
    parser.skip_empty()
    if parser.at < len(lines):
        raise parser.error("expected the end of the text after the graph")
    return graph


def parse_symbolic(text: str, resolve_symbol: Callable[[str], Any]) -> Any:
    """The value of a symbolic number's text, as "2*s0 + 1".

    Raises:
        ParseError: if it is more than arithmetic.
    """
    return _Parser([text], _default, resolve_symbol).symbolic(text)


def resolve_target(name: str) -> Callable[..., Any]:
    """What `parse` takes a function's name for by default: an operator, a function of `operator`, a harmless builtin, a library's leaf function.

    Raises:
        LookupError: if it is none of these.
    """
    module, _, function = name.partition(".")
    if module == "operator" and hasattr(operator, function):
        found: Callable[..., Any] = getattr(operator, function)
        return found
    for builtin in _BUILTINS:
        if name == f"builtins.{builtin.__name__}":
            return builtin
    return find_leaf_function(name) if "." in function else find_operator(name)


_default = resolve_target  # `parse` has a parameter of that name


class _Parser:
    def __init__(self, lines: list[str], target: Any, symbol: Any) -> None:
        self.lines = lines
        self.at = 0
        self.target = target
        self.symbol = symbol
        self.nodes: dict[str, Node] = {}

    def error(self, message: str) -> ParseError:
        line = self.lines[self.at].strip() if self.at < len(self.lines) else "end of text"
        return ParseError(f"parse: line {self.at + 1}: {message}\n  {line}")

    def skip_empty(self) -> None:
        while self.at < len(self.lines) and not self.lines[self.at].strip():
            self.at += 1

    def block(self) -> Graph:
        """The nodes up to the closing brace, which is passed."""
        graph = Graph()
        outer, self.nodes = self.nodes, {}
        nested: dict[str, Graph] = {}
        while True:
            self.skip_empty()
            if self.at >= len(self.lines):
                raise self.error("expected '}' at the end of a graph")
            line = self.lines[self.at].strip()
            if line == "}":
                self.at += 1
                break
            self.statement(graph, line, nested)
        self.nodes = outer
        if nested:
            owner = GraphModule({}, Graph())
            for path, inner in nested.items():
                owner.add_submodule(path, GraphModule(inner.owning_module, inner))
            graph.owning_module = owner
        return graph

    def statement(self, graph: Graph, line: str, nested: dict[str, Graph]) -> None:
        code = _TOKEN.sub(
            lambda m: m[1] or (f"{_NODES}.{m[2]}" if m[2] else ""), _protect_head(line)
        )
        found = _LINE.match(_restore_head(code))
        if not found:
            raise self.error("expected '%name = opcode ...'")
        name, op, rest = found[1], found[2], found[3].rstrip()
        if op not in OPCODES:
            raise self.error(f"got opcode {op!r}, expected one of {', '.join(sorted(OPCODES))}")
        if name in self.nodes or legal_name(name) != name:
            raise self.error(f"the name {name!r} is not unique or not legal")
        node = getattr(self, op)(graph, name, rest)
        self.nodes[name] = node
        self.at += 1
        if op == "get_attr" and rest.endswith(" {"):
            nested[node.target] = self.block()

    # The opcodes -----------------------------------------------------------------------------

    def placeholder(self, graph: Graph, name: str, rest: str) -> Node:
        bindings = _BINDINGS.search(rest)
        if bindings:
            rest = rest[: bindings.start()]
        target, separator, default = rest.partition(" = ")
        args = (self.value(default),) if separator else ()
        node = graph.create_node("placeholder", target, args, name=name)
        if bindings:
            entries = [entry.replace(":", "").split() for entry in bindings[1].split(", ")]
            node.meta["binds"] = {s: (kind, int(i)) for s, kind, i in entries}
        return node

    def get_attr(self, graph: Graph, name: str, rest: str) -> Node:
        return graph.create_node("get_attr", rest.removesuffix(" {"), name=name)

    def output(self, graph: Graph, name: str, rest: str) -> Node:
        return graph.create_node("output", "output", (self.value(rest),), name=name)

    def call_function(self, graph: Graph, name: str, rest: str) -> Node:
        path, args, kwargs = self.call(rest)
        try:
            target = self.target(path)
        except (LookupError, AttributeError) as error:
            raise self.error(
                f"no function is known by the name {path!r}; give resolve_target"
            ) from error
        return graph.create_node("call_function", target, args, kwargs, name)

    def call_method(self, graph: Graph, name: str, rest: str) -> Node:
        target, args, kwargs = self.call(rest)
        return graph.create_node("call_method", target, args, kwargs, name)

    def call_module(self, graph: Graph, name: str, rest: str) -> Node:
        target, args, kwargs = self.call(rest)
        return graph.create_node("call_module", target, args, kwargs, name)

    # Values ----------------------------------------------------------------------------------

    def call(self, rest: str) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
        path, bracket, _ = rest.partition("(")
        if not bracket or not path:
            raise self.error("expected 'target(arguments)'")
        tree = self.tree("_call" + rest[len(path) :])
        if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name):
            raise self.error("expected 'target(arguments)'")
        args = tuple([self.build(item) for item in tree.args])
        return path, args, {str(k.arg): self.build(k.value) for k in tree.keywords}

    def value(self, text: str) -> Any:
        return self.build(self.tree(text))

    def tree(self, text: str) -> ast.expr:
        try:
            return ast.parse(text.strip(), mode="eval").body
        except SyntaxError as error:
            raise self.error(f"not a value ({error.msg})") from None

    def build(self, tree: ast.expr) -> Any:
        if isinstance(tree, ast.Constant):
            return tree.value
        if isinstance(tree, ast.Tuple):
            return tuple([self.build(item) for item in tree.elts])
        if isinstance(tree, ast.List):
            return [self.build(item) for item in tree.elts]
        if isinstance(tree, ast.Dict) and None not in tree.keys:
            keys = [self.build(key) for key in tree.keys if key is not None]
            return dict(zip(keys, map(self.build, tree.values), strict=True))
        if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
            value = self.build(tree.operand)
            if isinstance(value, int | float):
                return -value
        if isinstance(tree, ast.Attribute) and isinstance(tree.value, ast.Name):
            return self.named(tree.value.id, tree.attr)
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
            return self.constructed(tree.func.id, [self.build(item) for item in tree.args])
        raise self.error(f"not a value: {ast.unparse(tree)}")

    def named(self, kind: str, name: str) -> Any:
        if kind == _NODES:
            if name not in self.nodes:
                raise self.error(f"%{name} is not defined before its use")
            return self.nodes[name]
        value = getattr(argand_c10, name, None)
        if kind in ("dtype", "memory_format", "layout") and type(value).__name__ == kind:
            return value
        raise self.error(f"not a value: {kind}.{name}")

    def constructed(self, kind: str, args: list[Any]) -> Any:
        if kind == "sym" and len(args) == 1 and isinstance(args[0], str):
            return self.symbolic(args[0])
        if kind in ("float", "complex", "slice", "device"):
            maker = {"float": float, "complex": complex, "slice": slice}.get(
                kind, argand_c10.device
            )
            try:
                return maker(*args)
            except (TypeError, ValueError, RuntimeError) as error:
                raise self.error(f"not a {kind}: {error}") from None
        raise self.error(f"not a value: {kind}(...)")

    def symbolic(self, text: str) -> Any:
        if self.symbol is None:
            return SymExpr(text)
        tree = self.tree(text)
        for part in ast.walk(tree):
            if not isinstance(part, _ARITHMETIC):
                raise self.error(f"not a symbolic expression: {text}")
        names = {part.id for part in ast.walk(tree) if isinstance(part, ast.Name)}
        scope = {name: self.symbol(name) for name in sorted(names)}
        return eval(compile(ast.Expression(tree), "<sym>", "eval"), {"__builtins__": {}}, scope)


_ARITHMETIC = (
    ast.BinOp,
    ast.UnaryOp,
    ast.operator,
    ast.unaryop,
    ast.Name,
    ast.Load,
    ast.Constant,
    ast.Compare,
    ast.cmpop,
)


def _protect_head(line: str) -> str:
    """The line without the '%' of the name that it defines, which is no use of a node."""
    return line[1:] if line.startswith("%") else line


def _restore_head(line: str) -> str:
    return "%" + line
