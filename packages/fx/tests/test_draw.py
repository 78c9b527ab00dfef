"""Pictures of graphs."""

from __future__ import annotations

from xml.etree import ElementTree

import fx_operators as ops

import argand_c10 as c10
import argand_fx as fx

SVG = "{http://www.w3.org/2000/svg}"


def test_every_node_and_edge_is_drawn():
    gm = fx.symbolic_trace(lambda x, y: ops.add(ops.mul(x, y), ops.neg(x)))
    for node in gm.graph.nodes:
        node.meta["val"] = c10.tensor([[1.0]])
    tree = ElementTree.fromstring(fx.draw_svg(gm.graph))
    titles = [t.text.splitlines()[0] for t in tree.iter(SVG + "title")]
    assert sorted(titles) == sorted(
        [
            "%x = placeholder x",
            "%y = placeholder y",
            "%mul = call_function fxtest::mul",
            "%neg = call_function fxtest::neg",
            "%add = call_function fxtest::add",
            "%output = output output",
        ]
    )
    edges = [p for p in tree.iter(SVG + "path") if p.get("marker-end")]
    assert len(edges) == sum(len(n.all_input_nodes) for n in gm.graph.nodes) == 6
    assert any("float32[1, 1]" in (t.text or "") for t in tree.iter(SVG + "text"))
    assert any(__file__ in (t.text or "") for t in tree.iter(SVG + "title"))


def test_boxes_do_not_overlap_and_lie_inside():
    def wide(*xs):
        return [ops.add(x, i) for i, x in enumerate(xs)]

    graph = fx.Graph()
    x = graph.placeholder("a_rather_long_name_of_an_input_that_is_shortened_in_the_picture")
    nodes = [graph.call_function(ops.add, (x, i)) for i in range(30)]
    total = nodes[0]
    for node in nodes[1:]:
        total = graph.call_function(ops.add, (total, node))
    graph.output(total)
    tree = ElementTree.fromstring(fx.draw_svg(graph))
    width, height = float(tree.get("width")), float(tree.get("height"))
    boxes = [
        tuple(float(r.get(key)) for key in ("x", "y", "width", "height"))
        for r in tree.iter(SVG + "rect")
    ]
    assert len(boxes) == len(graph.nodes)
    for i, (x0, y0, w0, h0) in enumerate(boxes):
        assert 0 <= x0 and x0 + w0 <= width and y0 + h0 <= height
        for x1, y1, w1, _ in boxes[i + 1 :]:
            assert y0 != y1 or x0 + w0 <= x1 or x1 + w1 <= x0


def test_text_is_escaped_and_groups_are_outlined():
    graph = fx.Graph()
    x = graph.placeholder("x")
    n = graph.call_function(ops.add, (x, "<&>"))
    graph.output(n)
    svg = fx.draw_svg(graph, groups={n: 3})
    assert "&lt;&amp;&gt;" in svg and svg.count('stroke-width="3"') == 1
    ElementTree.fromstring(svg)


def test_empty_graph():
    ElementTree.fromstring(fx.draw_svg(fx.Graph()))
