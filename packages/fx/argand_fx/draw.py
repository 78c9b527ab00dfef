"""Graphs as pictures: SVG, laid out here, without external programs.

A layered layout: a node's layer is the longest path to it from an input, nodes in a layer are ordered by where their
neighbours lie, edges are curves from layer to layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from argand_fx.describe import describe
from argand_fx.node import Node, target_name
from argand_fx.text import print_value

if TYPE_CHECKING:
    from argand_fx.graph import Graph

__all__ = ["draw"]

_COLORS = {
    "placeholder": "#d5e8d4",
    "get_attr": "#fff2cc",
    "call_function": "#dae8fc",
    "call_method": "#e1d5e7",
    "call_module": "#ffe6cc",
    "output": "#f8cecc",
}
_BOX = 34  # height of a node, in pixels
_LAYER = 64  # from layer to layer
_GAP = 18  # between neighbours
_CHARACTER = 6.8  # width of a character of the 11-pixel font
_WIDEST = 46  # characters of a label
_SWEEPS = 4


def draw(graph: Graph, *, groups: dict[Node, int] | None = None) -> str:
    """The graph as an SVG document.

    Nodes are coloured by opcode and show name, target and result; pointing at one shows its arguments and the
    user's line.

    Args:
        graph: what to draw.
        groups: nodes with the same number get an outline of the same colour (fusion groups, for example).
    """
    nodes = list(graph.nodes)
    layers = _layers(nodes)
    _order(layers)
    boxes, width = _place(layers)
    height = len(layers) * _LAYER + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" '
        f'width="{width:.0f}" height="{height}" font-family="monospace" font-size="11">',
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" '
        'orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="#667"/></marker></defs>',
    ]
    for node in nodes:
        parts += [_edge(boxes[used], boxes[node]) for used in node.all_input_nodes]
    parts += [
        _box(node, boxes[node], None if groups is None else groups.get(node)) for node in nodes
    ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _layers(nodes: Sequence[Node]) -> list[list[Node]]:
    depth: dict[Node, int] = {}
    for node in nodes:
        depth[node] = 1 + max((depth[used] for used in node.all_input_nodes), default=-1)
    last = max(depth.values(), default=0)
    layers: list[list[Node]] = [[] for _ in range(last + 1)] if nodes else []
    for node in nodes:
        if node.op in ("placeholder", "get_attr") and node.users:
            depth[node] = max(0, min(depth[user] for user in node.users) - 1)
        if node.op == "output":
            depth[node] = last
        layers[depth[node]].append(node)
    return layers


def _order(layers: list[list[Node]]) -> None:
    """Order each layer by the mean place of its neighbours, downwards and upwards in turn."""
    place = {node: float(i) for layer in layers for i, node in enumerate(layer)}
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            means: dict[Node, float] = {}
            for node in layer:
                others = node.all_input_nodes if down else list(node.users)
                means[node] = (
                    sum(place[other] for other in others) / len(others) if others else place[node]
                )
            layer.sort(key=means.__getitem__)
            place.update({node: float(i) for i, node in enumerate(layer)})


def _place(layers: list[list[Node]]) -> tuple[dict[Node, tuple[float, float, float]], float]:
    """Left, top and width of each node, and the width of the whole."""
    widths = {
        node: max(len(line) for line in _label(node)) * _CHARACTER + 16
        for layer in layers
        for node in layer
    }
    rows = [sum(widths[n] + _GAP for n in layer) - _GAP for layer in layers]
    total = max(rows, default=0.0) + 20
    boxes = {}
    for i, layer in enumerate(layers):
        x = (total - rows[i]) / 2
        for node in layer:
            boxes[node] = (x, i * _LAYER + 10.0, widths[node])
            x += widths[node] + _GAP
    return boxes, total


def _label(node: Node) -> list[str]:
    target = target_name(node.target)
    first = node.name if node.op in ("placeholder", "output") else f"{node.name} = {target}"
    second = describe(node.meta["val"]) if "val" in node.meta else node.op
    return [_shorten(first), _shorten(second)]


def _shorten(text: str) -> str:
    return text if len(text) <= _WIDEST else text[: _WIDEST - 3] + "..."


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _edge(start: tuple[float, float, float], end: tuple[float, float, float]) -> str:
    x0, y0 = start[0] + start[2] / 2, start[1] + _BOX
    x1, y1 = end[0] + end[2] / 2, end[1]
    bend = max(14.0, (y1 - y0) / 2)
    return (
        f'<path d="M{x0:.0f} {y0:.0f} C{x0:.0f} {y0 + bend:.0f} {x1:.0f} {y1 - bend:.0f} {x1:.0f} {y1:.0f}" '
        'fill="none" stroke="#667" marker-end="url(#arrow)"/>'
    )


def _box(node: Node, box: tuple[float, float, float], group: int | None) -> str:
    x, y, width = box
    lines = _label(node)
    stroke = "#556" if group is None else f"hsl({group * 137 % 360},75%,40%)"
    thick = 1 if group is None else 3
    return (
        f'<g><title>{_escape(_tooltip(node))}</title><rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{_BOX}" '
        f'rx="5" fill="{_COLORS.get(node.op, "#eee")}" stroke="{stroke}" stroke-width="{thick}"/>'
        f'<text x="{x + 8:.0f}" y="{y + 14:.0f}">{_escape(lines[0])}</text>'
        f'<text x="{x + 8:.0f}" y="{y + 27:.0f}" fill="#556">{_escape(lines[1])}</text></g>'
    )


def _tooltip(node: Node) -> str:
    parts: list[Any] = [f"%{node.name} = {node.op} {target_name(node.target)}"]
    parts += [f"  {print_value(item)}" for item in node.args]
    parts += [f"  {key}={print_value(item)}" for key, item in node.kwargs.items()]
    if "val" in node.meta:
        parts.append(f"result: {describe(node.meta['val'])}")
    if node.stack_trace:
        parts.append(node.stack_trace)
    return "\n".join(map(str, parts))
