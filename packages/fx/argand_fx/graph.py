"""`Graph`: operations in the order in which they run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from argand_c10 import Module
from argand_fx import codegen, spec, text
from argand_fx.namespace import Namespace, base_name
from argand_fx.node import OPCODES, Argument, Node, Target, map_arg, target_name

__all__ = ["Graph"]


class NodeList:
    """The nodes of a graph, in order. Nodes may be added and erased while it is iterated over."""

    __slots__ = ("_graph",)

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def __len__(self) -> int:
        return self._graph._count

    def __iter__(self) -> Iterator[Node]:
        root = self._graph._root
        node = root._next
        while node is not root:
            if not node._erased:
                yield node
            node = node._next

    def __reversed__(self) -> Iterator[Node]:
        root = self._graph._root
        node = root._prev
        while node is not root:
            if not node._erased:
                yield node
            node = node._prev

    def __contains__(self, node: object) -> bool:
        return isinstance(node, Node) and node.graph is self._graph and not node._erased

    def __repr__(self) -> str:
        return repr(list(self))


class Graph:
    """A list of nodes, each of which uses values of nodes before it; the last is the `output`.

    New nodes go to the insertion point: the end, or what `inserting_before` and `inserting_after` say.

    Attributes:
        owning_module: the module in which `get_attr` and `call_module` targets are looked up, or None.
    """

    def __init__(self, owning_module: Module | None = None) -> None:
        self.owning_module = owning_module
        self._names = Namespace()
        self._count = 0
        self._root = Node(self, "", "root", "", (), {})
        self._root._erased = True
        self._insertion = self._root
        self._output: Node | None = None

    # Looking ---------------------------------------------------------------------------------

    @property
    def nodes(self) -> NodeList:
        """The nodes in order; supports iteration, `reversed` and `len`."""
        return NodeList(self)

    def find_nodes(self, *, op: str, target: Target = None) -> list[Node]:
        """The nodes with this opcode and, if given, this target."""
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    def output_node(self) -> Node:
        """The output node.

        Raises:
            RuntimeError: if the graph has none yet.
        """
        node = self._root._prev
        if node.op != "output":
            raise RuntimeError(
                "Graph.output_node: the graph has no output; call graph.output first"
            )
        return node

    # Making nodes ----------------------------------------------------------------------------

    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a node at the insertion point.

        Args:
            op: one of the six opcodes, see `Node`.
            target, args, kwargs: what the opcode says.
            name: the wished name; made legal and unique. By default it follows from the target.
            type_expr: annotation of the result.
        """
        if op not in OPCODES:
            raise ValueError(
                f"create_node: got opcode {op!r}, expected one of {', '.join(sorted(OPCODES))}"
            )
        names = self._names
        final = names.unique(base_name(target)) if name is None else names.create_name(name)
        node = Node(self, final, op, target, args or (), kwargs or {}, type_expr)
        after = self._insertion
        before = after._prev
        before._next = node
        node._prev = before
        node._next = after
        after._prev = node
        self._count += 1
        return node

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """Add an input; `default_value` makes it optional."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Add a node that fetches an attribute of the owning module by its dotted path."""
        owner = self.owning_module
        if owner is not None and not _has_path(owner, qualified_name):
            raise RuntimeError(
                f"get_attr: got {qualified_name!r}, which {type(owner).__name__} does not have; "
                "assign it to the module that owns the graph first"
            )
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """Add a call of a free function or an operator."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a call of the method `method_name` of `args[0]`."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a call of the child module at the dotted path `module_name`."""
        owner = self.owning_module
        if owner is not None and not _has_path(owner, module_name):
            raise RuntimeError(
                f"call_module: got {module_name!r}, which {type(owner).__name__} does not have; "
                "add it with add_submodule first"
            )
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def output(self, result: Argument, type_expr: Any = None) -> Node:
        """Add the output node, which ends the graph."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(
        self, node: Node, arg_transform: Callable[[Node], Argument] = lambda n: n
    ) -> Node:
        """Add a copy of a node, of this graph or another; its meta dictionary is copied too.

        Args:
            node: what to copy.
            arg_transform: gives this graph's value for each node among the arguments.
        """
        args = map_arg(node._args, arg_transform)
        kwargs = map_arg(node._kwargs, arg_transform) if node._kwargs else None
        copy = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        copy.meta = dict(node.meta)
        return copy

    def graph_copy(
        self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False
    ) -> Any:
        """Add copies of the nodes of `g`, except its output.

        Args:
            g: the other graph.
            val_map: nodes of `g` that stand for nodes of this graph already; filled with the others.
            return_output_node: return `(value, node)` with the output node of `g` as well.

        Returns:
            What `g` returns, in nodes of this graph; None if it has no output.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                value = map_arg(node.args[0], val_map.__getitem__)
                return (value, node) if return_output_node else value
            val_map[node] = self.node_copy(node, val_map.__getitem__)
        return None

    # Changing --------------------------------------------------------------------------------

    def erase_node(self, to_erase: Node) -> None:
        """Remove a node that nothing uses."""
        if to_erase.users:
            raise RuntimeError(
                f"erase_node: {to_erase.name} is used by {', '.join(map(str, to_erase.users))}; "
                "replace its uses first (Node.replace_all_uses_with)"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"erase_node: {to_erase.name} belongs to another graph")
        if to_erase._erased:
            return
        if self._insertion is to_erase:
            self._insertion = to_erase._next
        to_erase._unlink()  # its own links stay, so that iterators can go on from it
        to_erase._erased = True
        self._names.release(to_erase.name)
        self._count -= 1
        to_erase._set_arguments((), {})

    @contextlib.contextmanager
    def inserting_before(self, n: Node | None = None) -> Iterator[None]:
        """New nodes go before `n`, in order; without `n` to the beginning of the graph."""
        yield from self._inserting(self._root._next if n is None else n)

    @contextlib.contextmanager
    def inserting_after(self, n: Node | None = None) -> Iterator[None]:
        """New nodes go after `n`, in order; without `n` to the end of the graph."""
        yield from self._inserting(self._root if n is None else n._next)

    def _inserting(self, point: Node) -> Iterator[None]:
        if point.graph is not self:
            raise ValueError(f"inserting: {point.name} belongs to another graph")
        saved, self._insertion = self._insertion, point
        try:
            yield
        finally:
            while saved._erased and saved is not self._root:
                saved = saved._next
            self._insertion = saved

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Erase nodes whose value nothing uses, except impure ones (`Node.is_impure`); True if any was."""
        impure = is_impure_node or Node.is_impure
        before = self._count
        for node in reversed(self.nodes):
            if not node.users and (node.op in ("placeholder", "output") or impure(node)) is False:
                self.erase_node(node)
        return self._count != before

    def lint(self) -> None:
        """Check the rules of the IR (`argand_fx.spec`).

        Raises:
            SpecError: naming each node that breaks a rule.
        """
        spec.check(self)

    # Other forms -----------------------------------------------------------------------------

    def python_code(
        self, root_module: str = "self", *, annotate: bool = False
    ) -> codegen.PythonCode:
        """The graph as the source of a function `forward`; see `codegen.PythonCode`."""
        return codegen.generate(self, root_module, annotate=annotate)

    def to_text(self, *, comments: bool = True) -> str:
        """The text form, with results and places in the user's code as comments; `argand_fx.parse` reads it back."""
        return text.print_graph(self, comments=comments)

    def __str__(self) -> str:
        return self.to_text()

    def print_tabular(self) -> None:
        """Print one row a node: opcode, name, target, args, kwargs."""
        rows = [("opcode", "name", "target", "args", "kwargs")]
        for n in self.nodes:
            rows.append((n.op, n.name, target_name(n.target), repr(n.args), repr(n.kwargs)))
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        rows.insert(1, tuple("-" * width for width in widths))  # type: ignore[arg-type]
        for row in rows:
            print(
                "  ".join(
                    cell.ljust(width) for cell, width in zip(row, widths, strict=True)
                ).rstrip()
            )

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Graph:
        copy = Graph()
        val_map: dict[Node, Node] = {}
        result = copy.graph_copy(self, val_map, return_output_node=True)
        if result is not None:
            value, old = result
            new = copy.output(value, old.type)
            new.meta = dict(old.meta)
        return copy

    def __reduce__(self) -> Any:
        raise TypeError("Graph: cannot be pickled; keep its text (Graph.to_text, argand_fx.parse)")


def _has_path(owner: Any, path: str) -> bool:
    for name in path.split("."):
        if not hasattr(owner, name):
            return False
        owner = getattr(owner, name)
    return True
