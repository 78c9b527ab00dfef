"""Running a graph node by node, and rebuilding it that way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from argand_c10 import Module
from argand_fx.bindings import symbol_bindings
from argand_fx.graph import Graph
from argand_fx.immutable import immutable_dict, immutable_list
from argand_fx.node import Node, map_arg, target_name
from argand_fx.symbolic import SymbolicValue

__all__ = ["Interpreter", "evaluate_symbolic"]

_compiled: dict[str, Any] = {}


def evaluate_symbolic(value: SymbolicValue, symbols: dict[str, Any]) -> Any:
    """The number that a symbolic value is for these values of its symbols."""
    expression = str(value)
    code = _compiled.get(expression)
    if code is None:
        code = _compiled[expression] = compile(expression, "<symbolic>", "eval")
    return eval(code, {"__builtins__": _ALLOWED}, symbols)


_ALLOWED = {"min": min, "max": max, "abs": abs, "int": int, "float": float, "bool": bool}


class Interpreter:
    """Runs a graph one node at a time; override the methods named after the opcodes to do something else.

    Args:
        module: the GraphModule.
        garbage_collect_values: drop each value after its last use.
        graph: run this graph, with the attributes of `module`, instead of the module's own.
    """

    def __init__(
        self,
        module: Module,
        garbage_collect_values: bool = True,
        graph: Graph | None = None,
    ) -> None:
        self.module: Any = module
        self.graph: Graph = self.module.graph if graph is None else graph
        self.garbage_collect_values = garbage_collect_values
        self.env: dict[Node, Any] = {}
        self.symbols: dict[str, Any] = {}
        self.args_iter: Iterator[Any] = iter(())
        self.user_to_last_uses: dict[Node, list[Node]] = {}
        if garbage_collect_values:
            seen: set[Node] = set()
            for node in reversed(self.graph.nodes):
                last = [used for used in node._inputs if used not in seen]
                if last:
                    seen.update(last)
                    self.user_to_last_uses[node] = last

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None) -> Any:
        """Run the graph.

        Args:
            args: the inputs, in order.
            initial_env: values of nodes that are not to be run.

        Returns:
            The output.
        """
        self.env = dict(initial_env) if initial_env else {}
        self.args_iter = iter(args)
        self.symbols = {}
        bindings = symbol_bindings(n for n in self.graph.nodes if n.op == "placeholder")
        by_node: dict[Node, list[tuple[str, tuple[str, int]]]] = {}
        for symbol, (node, binding) in bindings.items():
            by_node.setdefault(node, []).append((symbol, binding))
        for node in self.graph.nodes:
            if node not in self.env:
                try:
                    self.env[node] = self.run_node(node)
                except Exception as error:
                    _add_context(error, node)
                    raise
            for symbol, (kind, i) in by_node.get(node, ()):
                value = self.env[node]
                self.symbols[symbol] = (
                    value
                    if kind == "value"
                    else value.shape[i]
                    if kind == "size"
                    else value.stride(i)
                )
            if self.garbage_collect_values:
                for used in self.user_to_last_uses.get(node, ()):
                    self.env.pop(used, None)
            if node.op == "output":
                return self.env[node]
        return None

    def run_node(self, n: Node) -> Any:
        """Run one node in the current environment."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    # The opcodes -----------------------------------------------------------------------------

    def placeholder(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The next input; `args` holds the default value, if there is one."""
        if target.startswith("**"):
            return {}
        if target.startswith("*"):
            return tuple(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(
                f"Interpreter: expected an input for {target!r}, got no more; "
                "give one value for each placeholder"
            ) from None

    def get_attr(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An attribute of the module."""
        return self.fetch_attr(target)

    def call_function(
        self, target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """The result of calling a function or operator."""
        return target(*args, **kwargs)

    def call_method(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of calling a method of `args[0]`."""
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of calling a child module."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The graph's result."""
        return args[0]

    # Helpers ---------------------------------------------------------------------------------

    def fetch_attr(self, target: str) -> Any:
        """What lies at a dotted path of the module."""
        value: Any = self.module
        for i, name in enumerate(target.split(".")):
            if not hasattr(value, name):
                path = ".".join(target.split(".")[: i + 1])
                raise RuntimeError(
                    f"Interpreter: the graph names {target!r}, but {type(self.module).__name__} "
                    f"has no {path!r}"
                )
            value = getattr(value, name)
        return value

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The node's arguments with values for nodes and numbers for symbols."""
        args = self.map_nodes_to_values(n.args, n)
        return args, self.map_nodes_to_values(n.kwargs, n) if n.kwargs else {}

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """`args` with values for nodes, numbers for symbols, and ordinary lists and dicts."""
        kind = type(args)
        if kind is Node:
            if args not in self.env:
                raise RuntimeError(
                    f"Interpreter: {n.name} uses {args.name}, which has no value; check the graph "
                    "with graph.lint()"
                )
            return self.env[args]
        if kind is tuple:
            return tuple([self.map_nodes_to_values(item, n) for item in args])
        if kind is immutable_list or kind is list:
            return [self.map_nodes_to_values(item, n) for item in args]
        if kind is immutable_dict or kind is dict:
            return {key: self.map_nodes_to_values(item, n) for key, item in args.items()}
        if isinstance(args, SymbolicValue):
            return evaluate_symbolic(args, self.symbols)
        if isinstance(args, slice | tuple):
            return _map_other(args, lambda item: self.map_nodes_to_values(item, n))
        return args


def _map_other(value: Any, function: Callable[[Any], Any]) -> Any:
    if isinstance(value, slice):
        return slice(function(value.start), function(value.stop), function(value.step))
    if hasattr(value, "_fields"):
        return type(value)(*map(function, value))
    return map_arg(value, function)


def _add_context(error: Exception, node: Node) -> None:
    """Tell in the exception which node ran, and where the user wrote it."""
    if getattr(error, "_argand_fx_noted", False):
        return
    place = node.stack_trace
    error.add_note(
        f"while running %{node.name} = {node.op} {target_name(node.target)}"
        + (f", made by\n{place}" if place else "")
    )
    try:
        error._argand_fx_noted = True  # type: ignore[attr-defined]
    except AttributeError:
        pass
