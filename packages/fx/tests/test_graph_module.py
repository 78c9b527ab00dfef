"""GraphModule and its generated code."""

from __future__ import annotations

import copy
import gc
import linecache
import math
import operator
import pickle
import traceback
import weakref
from collections import namedtuple

import fx_operators as ops
import pytest

import argand_c10 as c10
import argand_fx as fx
from argand_c10 import Module, Parameter, Tensor, tensor
from argand_fx.symbolic import SymExpr

Pair = namedtuple("Pair", "first second")


def test_code_is_readable():
    graph = fx.Graph()
    x = graph.placeholder("x")
    scale = graph.placeholder("scale", default_value=2.0)
    a = graph.call_function(ops.add, (x, scale), {"alpha": -3})
    a.meta["location"] = (__file__, 1, "forward")
    b = graph.call_function(ops.total, (a, [0]))
    b.meta["location"] = (__file__, 1, "forward")
    c = graph.call_function(operator.getitem, ((b, a), slice(None, 1)))
    d = graph.call_function(operator.mul, (c, -1))
    graph.output((d, a))
    gm = fx.GraphModule({}, graph)
    assert (
        gm.code
        == f'''\
def forward(self, x, scale=2.0):

    # {__file__}:1 in forward: """GraphModule and its generated code."""
    add = ops.add(x, scale, alpha=-3);  x = scale = None
    total_dim = ops.total_dim(add, [0])
    getitem = ((total_dim, add))[slice(None, 1, None)];  total_dim = None
    mul = getitem * (-1);  getitem = None
    return (mul, add)
'''
    )
    empty, sum_ = gm(tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert empty == () and sum_.tolist() == [[-5.0, -4.0], [-3.0, -2.0]]
    assert gm(tensor([[1.0]]), scale=0)[1].tolist() == [[1.0]]


def test_every_kind_of_constant_survives():
    values = (
        (1, -2.5, True, None, "it's", ...),
        [float("inf"), float("-inf"), 1 + 2j, complex(0.0, float("inf"))],
        {"k": (1,), "l": slice(1, None, 2)},
        c10.float32,
        c10.device("cpu"),
        c10.channels_last,
        c10.strided,
        Pair(1, [2]),
    )
    graph = fx.Graph()
    graph.output(values)
    assert fx.GraphModule({}, graph)() == values
    assert fx.Interpreter(fx.GraphModule({}, graph)).run() == values


def test_names_of_inputs_do_not_hide_targets():
    graph = fx.Graph()
    x, o, m = (graph.placeholder(n) for n in ("math_sqrt", "ops", "float32"))
    r = graph.call_function(math.sqrt, (x,))
    s = graph.call_function(ops.neg, (o,))
    graph.output((r, s, m, c10.float32))
    result = fx.GraphModule({}, graph)(4.0, tensor([1.0]), 7)
    assert result[0] == 2.0 and result[1].tolist() == [-1.0] and result[2:] == (7, c10.float32)


def test_parameters_and_nested_modules_are_shared():
    class Inner(Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = Parameter(tensor([2.0]))
            self.register_buffer("offset", tensor([1.0]), persistent=False)

        def forward(self, x: Tensor) -> Tensor:
            return ops.mul(x, self.weight)

    root = Module()
    root.add_module("layers", Module())
    root.layers.add_module("0", Inner())
    graph = fx.Graph(root)
    x = graph.placeholder("x")
    y = graph.call_module("layers.0", (x,))
    o = graph.get_attr("layers.0.offset")
    graph.output(graph.call_function(ops.add, (y, o)))
    gm = fx.GraphModule(root, graph, "Net")
    assert 'getattr(self.layers, "0")(x)' in gm.code
    assert gm(tensor([3.0])).tolist() == [7.0]
    assert [name for name, _ in gm.named_parameters()] == ["layers.0.weight"]
    assert gm.get_parameter("layers.0.weight") is root.layers.get_submodule("0").weight
    assert list(gm.state_dict(keep_vars=True)) == ["layers.0.weight"]
    assert repr(gm).startswith("Net(")
    with pytest.raises(RuntimeError, match="get_attr: got 'missing'"):
        graph.get_attr("missing")
    with pytest.raises(RuntimeError, match="names 'layers.0', which the root dictionary lacks"):
        fx.GraphModule({"layers.0.offset": tensor([1.0])}, graph)


def test_change_needs_recompile_and_assignment_does_it():
    graph = fx.Graph()
    x = graph.placeholder("x")
    n = graph.call_function(operator.add, (x, 1))
    graph.output(n)
    gm = fx.GraphModule({}, graph)
    assert gm(1) == 2
    n.args = (x, 10)
    assert gm(1) == 2
    assert "x + 10" in gm.recompile().src
    assert gm(1) == 11
    other = fx.Graph()
    other.output(other.placeholder("y"))
    gm.graph = other
    assert gm(y=5) == 5 and gm.graph is other and other.owning_module is gm
    with pytest.raises(TypeError, match="got int, expected a Graph"):
        gm.graph = 3


def test_hooks_and_forward_override():
    gm = fx.symbolic_trace(lambda x: x + 1)
    handle = gm.register_forward_hook(lambda m, args, result: result * 10)
    assert gm(1) == 20
    handle.remove()
    gm.forward = lambda x: x - 1
    assert gm(1) == 0


def test_symbols_are_bound_at_the_start():
    graph = fx.Graph()
    x, n = graph.placeholder("x"), graph.placeholder("n")
    x.meta["binds"] = {"s0": ("size", 0), "s2": ("stride", 0)}
    n.meta["binds"] = {"s1": ("value", 0)}
    y = graph.call_function(ops.reshape, (x, [SymExpr("s0*3"), SymExpr("s1 - 1")]))
    graph.output((y, SymExpr("s2 + max(s0, 5)")))
    graph.lint()
    gm = fx.GraphModule({}, graph)
    assert gm.code.splitlines()[1:4] == [
        "    s0 = x.shape[0]",
        "    s2 = x.stride(0)",
        "    s1 = n",
    ]
    arg = tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])
    for run in (gm, fx.Interpreter(gm).run):
        value, number = run(arg, 2)
        assert tuple(value.shape) == (6, 1) and number == 3 + 5


def test_nested_graphs():
    inner = fx.symbolic_trace(lambda x: x * 2)

    def apply(module: Module, value: int) -> int:
        return module(value)

    graph = fx.Graph()
    x = graph.placeholder("x")
    body = graph.get_attr("body")
    graph.output(graph.call_function(apply, (body, x)))
    gm = fx.GraphModule({"body": inner}, graph)
    assert gm(4) == 8 and fx.Interpreter(gm).run(4) == 8
    text = gm.print_readable(print_output=False)
    assert "# self.body" in text and "mul = x * 2" in text


def test_copies():
    root = Module()
    root.weight = Parameter(tensor([2.0]))
    graph = fx.Graph(root)
    graph.output(graph.call_function(ops.mul, (graph.placeholder("x"), graph.get_attr("weight"))))
    gm = fx.GraphModule(root, graph)
    gm.meta["key"] = 1
    deep, shallow = copy.deepcopy(gm), copy.copy(gm)
    assert deep.weight is not gm.weight and shallow.weight is gm.weight
    assert deep(tensor([3.0])).tolist() == [6.0] and deep.meta == {"key": 1}
    assert deep.graph is not gm.graph and gm.graph.owning_module is gm
    with pytest.raises(TypeError, match="GraphModule: cannot be pickled; keep its text"):
        pickle.dumps(gm)


def test_submodules_are_managed():
    gm = fx.symbolic_trace(lambda x: x)
    assert gm.add_submodule("a.b", Module()) and gm.get_submodule("a.b") is not None
    assert gm.delete_submodule("a.b") and not gm.delete_submodule("a.b")
    gm.delete_all_unused_submodules()
    assert list(gm.children()) == []


def test_tracebacks_show_the_generated_line_and_memory_is_given_back():
    gm = fx.symbolic_trace(lambda x: x.missing + 1)
    with pytest.raises(AttributeError) as info:
        gm(3)
    shown = "".join(traceback.format_exception(info.value))
    assert "getattr_1 = x.missing" in shown
    names = [n for n in linecache.cache if n.startswith("<<lambda>")]
    assert names
    gone = weakref.ref(gm)
    del gm, info
    gc.collect()
    assert gone() is None
    assert not [n for n in linecache.cache if n in names[-1:]]


def test_values_are_dropped_after_their_last_use():
    alive = []

    class Value:
        pass

    def make(x: object) -> Value:
        value = Value()
        alive.append(weakref.ref(value))
        return value

    graph = fx.Graph()
    x = graph.placeholder("x")
    a = graph.call_function(make, (x,))
    b = graph.call_function(make, (a,))
    c = graph.call_function(lambda v: [ref() is not None for ref in alive], (b,))
    graph.output(c)
    gm = fx.GraphModule({}, graph)
    assert gm(0) == [False, True]
    alive.clear()
    assert fx.Interpreter(gm).run(0) == [False, True]
