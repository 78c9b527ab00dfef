"""The text form of graphs: one line a node, nested graphs in braces.

    graph {
        %x = placeholder x {s0: size 0}    # float32[s0, 3]
        %add = call_function add(%x, 2, alpha=1.5)    # float32[s0, 3]
        %view = call_function view(%add, [sym("3*s0")])
        %output = output (%view,)
    }

What follows `    # ` is a comment. Values are Python literals, `%name` for nodes, `sym("...")` for symbolic numbers,
`dtype.float32`, `device("cpu")`, `memory_format.channels_last`, `layout.strided`, `slice(...)`, `float("inf")`, `complex(1.0, 2.0)`.
`<Type>` stands for an object without text form: such a graph prints, but does not parse back.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from argand_c10 import Module, device, dtype, layout, memory_format
from argand_fx.bindings import node_bindings
from argand_fx.describe import describe
from argand_fx.node import Node, target_name
from argand_fx.symbolic import SymbolicValue

if TYPE_CHECKING:
    from argand_fx.graph import Graph

__all__ = ["print_graph", "print_value"]


def print_graph(graph: Graph, *, comments: bool = True) -> str:
    """The graph's text, graphs nested in its owning module included.

    Args:
        graph: what to print.
        comments: write what `meta` says (results, places in the user's code) as comments.
    """
    return "\n".join(_lines(graph, "graph", comments)) + "\n"


def _lines(graph: Graph, head: str, comments: bool) -> list[str]:
    lines = [head + " {"]
    for node in graph.nodes:
        nested = _nested_graph(graph.owning_module, node)
        start = f"%{node.name} = {node.op} {_rest(node)}"
        if nested is not None:
            lines += ["    " + line for line in _lines(nested, start, comments)]
            continue
        remark = _remark(node) if comments else ""
        lines.append(f"    {start}" + (f"    # {remark}" if remark else ""))
    lines.append("}")
    return lines


def _nested_graph(owner: Module | None, node: Node) -> Graph | None:
    if node.op != "get_attr" or owner is None:
        return None
    value: Any = owner
    for name in node.target.split("."):
        value = getattr(value, name, None)
    graph = getattr(value, "graph", None) if isinstance(value, Module) else None
    return graph if hasattr(graph, "owning_module") else None


def _rest(node: Node) -> str:
    name = target_name(node.target)
    if node.op == "output":
        return print_value(node.args[0]) if node.args else "None"
    if node.op == "placeholder":
        text = name + (f" = {print_value(node.args[0])}" if node.args else "")
        bindings = [f"{symbol}: {kind} {i}" for symbol, (kind, i) in node_bindings(node).items()]
        return text + (f" {{{', '.join(bindings)}}}" if bindings else "")
    if node.op == "get_attr":
        return name
    arguments = [print_value(item) for item in node.args]
    arguments += [f"{key}={print_value(item)}" for key, item in node.kwargs.items()]
    return f"{name}({', '.join(arguments)})"


def _remark(node: Node) -> str:
    parts = []
    if "val" in node.meta:
        parts.append(describe(node.meta["val"]))
    if not node.meta.get("grad_enabled", True):
        parts.append("no_grad")
    if "location" in node.meta:
        file, line, _ = node.meta["location"]
        parts.append(f"{file}:{line}")
    return " ".join(parts).replace("\n", " ")


def print_value(value: Any) -> str:
    """An argument as text."""
    if isinstance(value, Node):
        return "%" + value.name
    if value is None or isinstance(value, bool | int | str):
        return repr(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else f'float("{value!r}")'
    if isinstance(value, complex):
        return f"complex({print_value(value.real)}, {print_value(value.imag)})"
    if isinstance(value, tuple):
        return f"({', '.join(map(print_value, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, list):
        return f"[{', '.join(map(print_value, value))}]"
    if isinstance(value, dict):
        items = [f"{print_value(key)}: {print_value(item)}" for key, item in value.items()]
        return f"{{{', '.join(items)}}}"
    if isinstance(value, slice):
        parts = (value.start, value.stop, value.step)
        return f"slice({', '.join(map(print_value, parts))})"
    if isinstance(value, SymbolicValue):
        return f'sym("{value}")'
    if isinstance(value, dtype):
        return f"dtype.{value.name}"
    if isinstance(value, device):
        return f'device("{value}")'
    if isinstance(value, memory_format | layout):
        return f"{type(value).__name__}.{str(value).rpartition('.')[2]}"
    return "..." if value is ... else f"<{type(value).__name__}>"
