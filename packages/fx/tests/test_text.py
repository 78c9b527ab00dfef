"""The text form: what it looks like, and that it parses back."""

from __future__ import annotations

import math
import operator
from typing import Any

import fx_operators as ops
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import argand_c10 as c10
import argand_fx as fx
from argand_fx.symbolic import SymbolicValue, SymExpr

TEXT = """\
graph {
    %x = placeholder x {s0: size 0, s1: stride 1}
    %k = placeholder k = 2
    %n = placeholder n {s2: value 0}
    %rest = placeholder *rest
    %weight = get_attr layers.0.weight
    %add = call_function fxtest::add(%x, %weight, alpha=-1.5)
    %getitem = call_function operator.getitem(%rest, (slice(None, 3, None), ..., None))
    %view = call_method view(%add, [sym("s0*3"), -1])
    %layers_0 = call_module layers.0(%view, dtype=dtype.float32, name='a "b" %x    # no')
    %total_dim = call_function fxtest::total.dim(%view, [0, 1])
    %output = output (%layers_0, {'k': %total_dim, 'd': device("cpu")}, float("inf"), complex(1.0, -0.0), memory_format.channels_last, layout.strided)
}
"""


def test_text_parses_back_to_itself():
    graph = fx.parse(TEXT)
    assert graph.to_text() == TEXT
    nodes = {n.name: n for n in graph.nodes}
    assert nodes["add"].target is ops.add and nodes["add"].kwargs == {"alpha": -1.5}
    assert nodes["getitem"].args[1] == (slice(None, 3, None), ..., None)
    assert nodes["layers_0"].kwargs["dtype"] is c10.float32
    assert str(nodes["view"].args[1][0]) == "s0*3"
    assert nodes["x"].meta["binds"] == {"s0": ("size", 0), "s1": ("stride", 1)}
    assert nodes["output"].args[0][3] == 1 + 0j
    assert math.copysign(1, nodes["output"].args[0][3].imag) == -1
    assert list(nodes["view"].users) == [nodes["layers_0"], nodes["total_dim"]]


def test_comments_say_what_meta_knows():
    graph = fx.Graph()
    x = graph.placeholder("x")
    x.meta["val"] = c10.tensor([[1.0, 2.0]])
    y = graph.call_function(ops.neg, (x,))
    y.meta.update(val=[x.meta["val"]], location=("model.py", 3, "f"), grad_enabled=False)
    graph.output(y)
    assert graph.to_text().splitlines()[1:3] == [
        "    %x = placeholder x    # float32[1, 2]",
        "    %neg = call_function fxtest::neg(%x)    # [float32[1, 2]] no_grad model.py:3",
    ]
    assert fx.parse(graph.to_text()).to_text() == graph.to_text(comments=False)


def test_nested_graphs():
    inner = fx.symbolic_trace(lambda x: ops.neg(x))
    middle = fx.Graph()
    middle.output(middle.call_function(operator.getitem, (middle.get_attr("leaf"), 0)))
    graph = fx.Graph()
    body, cond = graph.get_attr("body"), graph.get_attr("parts.cond")
    graph.output((body, cond))
    gm = fx.GraphModule(
        {"body": inner, "parts.cond": fx.GraphModule({"leaf": inner}, middle)}, graph
    )
    text = gm.to_text(comments=False)
    assert (
        text
        == """\
graph {
    %body = get_attr body {
        %x = placeholder x
        %neg = call_function fxtest::neg(%x)
        %output = output %neg
    }
    %parts_cond = get_attr parts.cond {
        %leaf = get_attr leaf {
            %x = placeholder x
            %neg = call_function fxtest::neg(%x)
            %output = output %neg
        }
        %getitem = call_function operator.getitem(%leaf, 0)
        %output = output %getitem
    }
    %output = output (%body, %parts_cond)
}
"""
    )
    parsed = fx.parse(text)
    assert parsed.to_text() == text
    again = fx.GraphModule(parsed.owning_module, parsed)
    assert again.body(c10.tensor([1.0])).tolist() == [-1.0]
    assert again.to_text() == text


def test_functions_and_symbols_are_resolved():
    class Symbol(SymbolicValue):
        def __init__(self, text: str) -> None:
            self.text = text

        def __str__(self) -> str:
            return self.text

        def __add__(self, other: Any) -> Symbol:
            return Symbol(f"{self.text} + {other}")

    def custom(x: Any, n: Any) -> Any:
        return x

    text = (
        'graph {\n    %a = call_function my.custom(1, sym("s0 + 2"))\n    %output = output %a\n}\n'
    )
    graph = fx.parse(text, {"my.custom": custom}.__getitem__, resolve_symbol=Symbol)
    node = next(iter(graph.nodes))
    assert node.target is custom
    assert type(node.args[1]) is Symbol and str(node.args[1]) == "s0 + 2"
    assert fx.parse(text, {"my.custom": custom}.__getitem__).find_nodes(op="call_function")[0].args[
        1
    ] == SymExpr("s0 + 2")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%a = call_function fxtest::neg(%b)", "%b is not defined before its use"),
        ("%a = call_function nothing(1)", "no function is known by the name 'nothing'"),
        ("%a = call_function operator.nothing(1)", "no function is known by the name"),
        ("%a = call_function builtins.eval('1')", "no function is known by the name"),
        ("%a = jump here", "got opcode 'jump'"),
        ("%x = placeholder x\n    %x = placeholder x", "the name 'x' is not unique"),
        ("%a = output (1", "not a value"),
        ("%a = output open('f')", "not a value: open"),
        ("%a = output __import__", "not a value: __import__"),
        ("%a = output c10.tensor", "not a value: c10.tensor"),
        ("%a = output dtype.tensor", "not a value: dtype.tensor"),
        ("%a = output <Generator>", "not a value"),
        ("%a = call_method view", "expected 'target"),
        ("nonsense", "expected '%name = opcode"),
    ],
)
def test_wrong_text_is_named_with_its_line(line: str, message: str):
    with pytest.raises(fx.ParseError) as info:
        fx.parse("graph {\n    " + line + "\n}\n")
    number = 2 + line.count("\n")
    assert str(info.value).startswith(f"parse: line {number}: ") and message in str(info.value)


def test_symbolic_text_holds_arithmetic_only():
    text = "graph {\n    %output = output sym(\"__import__('os')\")\n}\n"
    with pytest.raises(fx.ParseError, match="not a symbolic expression"):
        fx.parse(text, resolve_symbol=SymExpr)


@pytest.mark.parametrize("text", ["", "graph", "graph {", "graph {\n}\nmore"])
def test_unfinished_text(text: str):
    with pytest.raises(fx.ParseError, match="parse: line"):
        fx.parse(text)


leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(),
    st.sampled_from([c10.float32, c10.bool, c10.device("cpu"), c10.channels_last, ...]),
    st.complex_numbers(allow_nan=False),
    st.integers(0, 4).map(lambda i: ("node", i)),
)
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=3), inner, max_size=2),
        st.tuples(inner, inner, inner).map(lambda parts: slice(*parts)),
    ),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None)
@given(st.lists(values, min_size=1, max_size=3))
def test_any_arguments_parse_back(arguments: list[Any]):
    graph = fx.Graph()
    inputs = [graph.placeholder(f"x{i}") for i in range(5)]

    def nodes_in(value: Any) -> Any:
        if isinstance(value, tuple) and len(value) == 2 and value[0] == "node":
            return inputs[value[1]]
        if isinstance(value, list | tuple):
            return type(value)(map(nodes_in, value))
        if isinstance(value, dict):
            return {key: nodes_in(item) for key, item in value.items()}
        if isinstance(value, slice):
            return slice(*map(nodes_in, (value.start, value.stop, value.step)))
        return value

    node = graph.call_function(ops.add, tuple(map(nodes_in, arguments)))
    graph.output(node)
    parsed = fx.parse(graph.to_text())
    assert parsed.to_text() == graph.to_text()
    assert repr(parsed.find_nodes(op="call_function")[0].args) == repr(node.args)
