"""The rules of the graph IR, as a checker. Passes are run between two checks in tests (`passes.run`)."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from argand_c10 import Module, Operator, Tensor
from argand_fx.bindings import symbol_bindings
from argand_fx.node import OPCODES, Node, map_aggregate, target_name
from argand_fx.symbolic import SymbolicValue, symbol_names

if TYPE_CHECKING:
    from argand_fx.graph import Graph

__all__ = ["SpecError", "check", "graph_function", "problems"]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_graph_functions: set[Any] = {operator.getitem}


class SpecError(RuntimeError):
    """A graph breaks a rule of the IR."""


def graph_function(function: _Function) -> _Function:
    """Register a function, other than an operator, that graphs of the compiler may call; returns it."""
    _graph_functions.add(function)
    return function


def check(graph: Graph, *, compiler: bool = False) -> None:
    """Check a graph and the graphs nested in it.

    Args:
        graph: what to check.
        compiler: also the narrower rules for graphs between the compiler's stages: each call is of one
            overload of an operator or of a registered `graph_function`, there is an output, and each
            symbol is bound by an input.

    Raises:
        SpecError: naming every rule that is broken and where.
    """
    found = list(problems(graph, compiler=compiler))
    if found:
        raise SpecError("check: the graph breaks the rules of the IR:\n  " + "\n  ".join(found))


def problems(graph: Graph, *, compiler: bool = False) -> Iterator[str]:
    """The broken rules, one line each."""
    seen: set[Node] = set()
    names: set[str] = set()
    nodes = list(graph.nodes)
    body_begun = False
    for i, node in enumerate(nodes):
        where = f"%{node.name}"
        if node.name in names or not node.name.isidentifier():
            yield f"{where}: the name is not unique or not a Python name"
        names.add(node.name)
        if node.op == "placeholder":
            if body_begun:
                yield f"{where}: a placeholder stands after other nodes; expected all of them first"
        else:
            body_begun = True
        if node.op == "output" and i != len(nodes) - 1:
            yield f"{where}: the output is not the last node"
        yield from _links(node, seen, graph)
        yield from _target(node, graph.owning_module)
        yield from _arguments(node)
        seen.add(node)
    if compiler:
        yield from _compiler_rules(graph, nodes)
    yield from _nested(graph, nodes, compiler)


def _links(node: Node, seen: set[Node], graph: Graph) -> Iterator[str]:
    if node.graph is not graph:
        yield f"%{node.name}: belongs to another graph"
    for used in node._inputs:
        if used not in seen:
            state = "erased" if used._erased else "later, or in another graph"
            yield f"%{node.name}: uses %{used.name}, which is {state}; expected a node before it"
        if node not in used.users:
            yield f"%{node.name}: uses %{used.name}, but is not among its users"
    for user in node.users:
        if node not in user._inputs or user._erased:
            yield f"%{node.name}: has the user %{user.name}, which does not use it"


def _target(node: Node, owner: Module | None) -> Iterator[str]:
    if node.op not in OPCODES:
        yield f"%{node.name}: got opcode {node.op!r}, expected one of {', '.join(sorted(OPCODES))}"
    elif node.op == "call_function":
        if not callable(node.target):
            yield f"%{node.name}: the target {node.target!r} of call_function is not callable"
    elif not isinstance(node.target, str):
        yield f"%{node.name}: the target of {node.op} is {type(node.target).__name__}, expected str"
    elif node.op in ("get_attr", "call_module") and owner is not None:
        value: Any = owner
        for name in node.target.split("."):
            value = getattr(value, name, _MISSING)
            if value is _MISSING:
                yield f"%{node.name}: the owning module has no {node.target!r}"
                return
        if node.op == "call_module" and not isinstance(value, Module):
            yield f"%{node.name}: {node.target!r} is {type(value).__name__}, expected a module"
    if node.op == "call_method" and not node.args:
        yield f"%{node.name}: call_method without arguments; expected the object as first one"
    if node.op == "output" and (len(node.args) != 1 or node.kwargs):
        yield f"%{node.name}: the output has {len(node.args)} arguments, expected 1"


_MISSING = object()


def _arguments(node: Node) -> Iterator[str]:
    bad: list[str] = []

    def leaf(value: Any) -> Any:
        if isinstance(value, Tensor | Module):
            bad.append(type(value).__name__)
        return value

    for item in (*node.args, *node.kwargs.values()):
        if not isinstance(item, Node):
            map_aggregate(item, leaf)
    for kind in bad:
        yield f"%{node.name}: a {kind} stands among the arguments; expected a get_attr node for it"


def _compiler_rules(graph: Graph, nodes: list[Node]) -> Iterator[str]:
    if not nodes or nodes[-1].op != "output":
        yield "the graph has no output"
    bound = symbol_bindings(n for n in nodes if n.op == "placeholder")
    for node in nodes:
        if node.op in ("call_method", "call_module"):
            yield f"%{node.name}: {node.op} in a compiler graph; expected operators only"
        if node.op == "call_function":
            target = node.target
            if isinstance(target, Operator):
                if len(target.variants) > 1:
                    yield (
                        f"%{node.name}: {target.name} stands for {len(target.variants)} overloads; "
                        "expected one of them (bind the arguments first)"
                    )
            elif target not in _graph_functions:
                yield (
                    f"%{node.name}: {target_name(target)} is neither an operator nor registered by "
                    "argand_fx.spec.graph_function"
                )
        free: list[str] = []

        def leaf(value: Any, free: list[str] = free) -> Any:
            if isinstance(value, SymbolicValue):
                free.extend(name for name in symbol_names(value) if name not in bound)
            return value

        map_aggregate(node.args, leaf)
        map_aggregate(node.kwargs, leaf)
        for name in dict.fromkeys(free):
            yield f"%{node.name}: uses the symbol {name}, which no placeholder binds"


def _nested(graph: Graph, nodes: list[Node], compiler: bool) -> Iterator[str]:
    if graph.owning_module is None:
        return
    for node in nodes:
        if node.op == "get_attr" and isinstance(node.target, str):
            value: Any = graph.owning_module
            for name in node.target.split("."):
                value = getattr(value, name, None)
            inner = getattr(value, "graph", None) if isinstance(value, Module) else None
            if inner is not None and hasattr(inner, "owning_module"):
                for problem in problems(inner, compiler=compiler):
                    yield f"in {node.target}: {problem}"
