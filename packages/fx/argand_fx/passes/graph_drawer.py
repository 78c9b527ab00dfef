"""Graphs of modules as pictures: DOT text, and SVG without external programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from argand_fx.describe import describe
from argand_fx.draw import draw_svg
from argand_fx.graph_module import GraphModule
from argand_fx.node import Node, target_name

__all__ = ["FxGraphDrawer"]


class Picture:
    """One graph."""

    def __init__(self, module: GraphModule, name: str) -> None:
        self._module, self._name = module, name

    def to_string(self) -> str:
        """The graph as DOT."""
        lines = [f"digraph {_quoted(self._name)} {{", "rankdir=TB;"]
        for node in self._module.graph.nodes:
            lines.append(
                f"{_quoted(node.name)} [label={_quoted(_label(node))}, shape=record, style=filled];"
            )
        for node in self._module.graph.nodes:
            lines += [f"{_quoted(m.name)} -> {_quoted(node.name)};" for m in node.all_input_nodes]
        return "\n".join([*lines, "}"]) + "\n"

    def create_svg(self) -> bytes:
        """The graph as an SVG document."""
        return draw_svg(self._module.graph).encode()

    def write_svg(self, path: str | Path) -> bool:
        """Write what `create_svg` returns."""
        Path(path).write_bytes(self.create_svg())
        return True

    def write(self, path: str | Path, prog: Any = None, format: str = "raw") -> bool:
        """Write the graph as DOT ("raw", "dot") or "svg"; other formats raise ValueError. `prog` changes nothing."""
        if format == "svg":
            return self.write_svg(path)
        if format not in ("raw", "dot"):
            raise ValueError(f"write: got format={format!r}, expected 'raw', 'dot' or 'svg'")
        Path(path).write_text(self.to_string())
        return True


class FxGraphDrawer:
    """Pictures of a module's graph, and of those of the modules that it calls.

    Args:
        graph_module: the module.
        name: of the picture.
        options: taken, and change nothing.
    """

    def __init__(self, graph_module: GraphModule, name: str, *args: Any, **options: Any) -> None:
        self._pictures = {name: Picture(graph_module, name)}
        for path, child in graph_module.named_modules():
            if path and isinstance(child, GraphModule):
                full = f"{name}_{path.replace('.', '_')}"
                self._pictures[full] = Picture(child, full)
        self._name = name

    def get_dot_graph(self, submod_name: str | None = None) -> Picture:
        """The picture of the module, or of one inside, by its name."""
        return self._pictures[self._name if submod_name is None else submod_name]

    def get_main_dot_graph(self) -> Picture:
        """The picture of the module."""
        return self._pictures[self._name]

    def get_submod_dot_graph(self, submod_name: str) -> Picture:
        """The picture of a module inside, by its name."""
        return self._pictures[submod_name]

    def get_all_dot_graphs(self) -> dict[str, Picture]:
        """All pictures by name: that of a module inside is the module's, and its path."""
        return dict(self._pictures)


def _label(node: Node) -> str:
    parts = [f"name=%{node.name}", f"op_code={node.op}", f"target={target_name(node.target)}"]
    if "val" in node.meta:
        parts.append(describe(node.meta["val"]))
    return "{" + "|".join(part.translate(_ESCAPED) for part in parts) + "}"


_ESCAPED = str.maketrans({c: f"\\{c}" for c in "{}|<>"})


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '\\"') + '"'
