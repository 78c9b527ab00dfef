"""Graphs as pictures: SVG, laid out here, without external programs.

A layered layout: a node's layer is the longest path to it from an input, nodes in a layer are ordered by where their
neighbours lie, edges are curves from layer to layer, around the nodes of the layers that they pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from argand_fx.describe import describe
from argand_fx.node import Node, target_name
from argand_fx.text import print_value

if TYPE_CHECKING:
    from argand_fx.graph import Graph

__all__ = ["draw_svg"]

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
_LONGEST = 40  # layers; a longer edge is drawn straight through


def draw_svg(graph: Graph, *, groups: dict[Node, int] | None = None) -> str:
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
    width = _place(layers)
    height = len(layers) * _LAYER + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" '
        f'width="{width:.0f}" height="{height}" font-family="monospace" font-size="11">',
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" '
        'orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="#667"/></marker></defs>',
    ]
    places = [place for layer in layers for place in layer]
    parts += [_edge(before, place) for place in places for before in place.above]
    parts += [
        _box(place.node, place, None if groups is None else groups.get(place.node))
        for place in places
        if place.node is not None
    ]
    return "\n".join([*parts, "</svg>"]) + "\n"


class _Place:
    """A node in the picture, or (`node` None) a point through which an edge passes a layer."""

    __slots__ = ("above", "below", "node", "width", "x", "y")

    def __init__(self, node: Node | None) -> None:
        self.node = node
        self.above: list[_Place] = []
        self.below: list[_Place] = []
        self.x = self.y = 0.0
        self.width = 2.0
        if node is not None:
            self.width = max(len(line) for line in _label(node)) * _CHARACTER + 16


def _layers(nodes: Sequence[Node]) -> list[list[_Place]]:
    depth: dict[Node, int] = {}
    for node in nodes:
        depth[node] = 1 + max((depth[used] for used in node.all_input_nodes), default=-1)
    last = max(depth.values(), default=0)
    for node in nodes:
        if node.op in ("placeholder", "get_attr") and node.users:
            depth[node] = max(0, min(depth[user] for user in node.users) - 1)
        if node.op == "output":
            depth[node] = last
    layers: list[list[_Place]] = [[] for _ in range(last + 1)] if nodes else []
    places = {node: _Place(node) for node in nodes}
    passing: dict[tuple[Node, int], _Place] = {}  # shared by all users of a value
    for node in nodes:
        layers[depth[node]].append(places[node])
        for used in node.all_input_nodes:
            before = places[used]
            if depth[node] - depth[used] <= _LONGEST:
                for layer in range(depth[used] + 1, depth[node]):
                    point = passing.get((used, layer))
                    if point is None:
                        point = passing[used, layer] = _Place(None)
                        layers[layer].append(point)
                        _connect(before, point)
                    before = point
            _connect(before, places[node])
    return layers


def _connect(upper: _Place, lower: _Place) -> None:
    lower.above.append(upper)
    upper.below.append(lower)


def _order(layers: list[list[_Place]]) -> None:
    """Order each layer by the mean place of its neighbours, downwards and upwards in turn; `x` counts places here."""
    for layer in layers:
        for i, place in enumerate(layer):
            place.x = float(i)
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            means = {}
            for place in layer:
                others = place.above if down else place.below
                means[place] = sum(o.x for o in others) / len(others) if others else place.x
            layer.sort(key=means.__getitem__)
            for i, place in enumerate(layer):
                place.x = float(i)


def _place(layers: list[list[_Place]]) -> float:
    """Give every place its left and top; the width of the whole."""
    rows = [sum(place.width + _GAP for place in layer) - _GAP for layer in layers]
    total = max(rows, default=0.0) + 20
    for i, layer in enumerate(layers):
        x = (total - rows[i]) / 2
        for place in layer:
            place.x, place.y = x, i * _LAYER + 10.0
            x += place.width + _GAP
    return total


def _label(node: Node) -> list[str]:
    target = target_name(node.target)
    first = node.name if node.op in ("placeholder", "output") else f"{node.name} = {target}"
    second = describe(node.meta["val"]) if "val" in node.meta else node.op
    return [_shorten(first), _shorten(second)]


def _shorten(text: str) -> str:
    return text if len(text) <= _WIDEST else text[: _WIDEST - 3] + "..."


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _edge(start: _Place, end: _Place) -> str:
    x0, y0 = start.x + start.width / 2, start.y + (_BOX if start.node is not None else _BOX / 2)
    x1, y1 = end.x + end.width / 2, end.y + (0 if end.node is not None else _BOX / 2)
    bend = max(14.0, (y1 - y0) / 2)
    arrow = ' marker-end="url(#arrow)"' if end.node is not None else ""
    return (
        f'<path d="M{x0:.0f} {y0:.0f} C{x0:.0f} {y0 + bend:.0f} {x1:.0f} {y1 - bend:.0f} {x1:.0f} {y1:.0f}" '
        f'fill="none" stroke="#667"{arrow}/>'
    )


def _box(node: Node, place: _Place, group: int | None) -> str:
    x, y, width = place.x, place.y, place.width
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
