"""symbolic_trace, Tracer and Proxy."""

from __future__ import annotations

import operator
import threading
from typing import Any

import fx_operators as ops
import pytest

import argand_fx as fx
from argand_c10 import Module, Parameter, tensor
from argand_fx.proxy import GraphAppendingTracer, Proxy, TracerBase


def targets(gm: fx.GraphModule) -> list[Any]:
    return [n.target for n in gm.graph.nodes if n.op not in ("placeholder", "output")]


@fx.wrap
def branchy(x: Any) -> Any:
    return x if x > 0 else -x


fx.wrap("len")


class Scale(Module):
    def __init__(self) -> None:
        super().__init__()
        self.factor = Parameter(tensor([2.0]), requires_grad=False)
        self.constant = tensor([1.0])

    def forward(self, x: Any) -> Any:
        return ops.add(ops.mul(x, self.factor), self.constant)


class Net(Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = Scale()
        self.second = Scale()

    def forward(self, x: Any, flag: bool = False) -> Any:
        y = self.first(x)
        return self.second(y) if flag else y


def test_every_operation_of_python_is_recorded():
    def everything(x, y):
        a = x + 1 - y * 2 / x // y % 3
        b = 1 + x, 2 - x, 3 * x, 4 / x, 5 // x, 6 % x, 2**x, 7 & x, 8 | x, 9 ^ x, 1 << x, 64 >> x
        c = -x, +x, ~x, abs(x)
        d = x < y, x <= y, x > y, x >= y, x == y, x != y
        return a, b, c, d, x & y, x | y, x ^ y, x << y, x >> y, x**y

    gm = fx.symbolic_trace(everything)
    for args in ((5, 3), (2, 4)):
        assert gm(*args) == everything(*args) == fx.Interpreter(gm).run(*args)


def test_indexing_attributes_and_methods():
    def program(x, i):
        a, b = x[0], x[1:i]
        first, second = x
        return a.real + b.count(7), x.index(first), second.bit_length()

    gm = fx.symbolic_trace(program)
    assert gm([7, 7], 2) == program([7, 7], 2)
    assert "bit_length" in targets(gm) and getattr in targets(gm)


def test_operators_record_themselves():
    def program(x, y):
        return ops.add(x, y, alpha=2), ops.total(x, [0]), ops.mul(tensor([1.0]), x)

    gm = fx.symbolic_trace(program)
    assert targets(gm) == [ops.add, ops.total, "_tensor_constant0", ops.mul]
    result = gm(tensor([1.0, 2.0]), 3)
    assert [r.tolist() for r in result] == [[7.0, 8.0], 3.0, [1.0, 2.0]]


def test_modules_are_traced_through_and_their_tensors_fetched():
    net = Net()
    gm = fx.symbolic_trace(net, {"flag": False})
    assert targets(gm) == ["first.factor", ops.mul, "first.constant", ops.add]
    x = tensor([3.0])
    assert gm(x).tolist() == net(x).tolist() == [7.0]
    assert gm.get_parameter("first.factor") is net.first.factor
    assert not hasattr(gm, "second")


def test_concrete_arguments():
    gm = fx.symbolic_trace(Net(), concrete_args={"flag": True})
    assert len(gm.graph.find_nodes(op="placeholder")) == 1
    assert gm(tensor([3.0])).tolist() == [15.0]
    with pytest.raises(
        TypeError, match="concrete_args names other, expected parameters of forward"
    ):
        fx.symbolic_trace(Net(), concrete_args={"other": 1})

    def mixed(pair, scale):
        return pair["a"] * scale + pair["b"]

    gm = fx.symbolic_trace(mixed, concrete_args={"pair": {"a": fx.PH, "b": 3}})
    assert gm(2, 10) == 23


def test_leaf_modules():
    class Leaves(fx.Tracer):
        def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
            return module_qualified_name == "first"

    net = Net()
    graph = Leaves().trace(net, {"flag": True})
    gm = fx.GraphModule(net, graph)
    assert targets(gm) == ["first", "second.factor", ops.mul, "second.constant", ops.add]
    assert gm(tensor([3.0])).tolist() == [15.0]


def test_module_that_is_no_attribute():
    stray = Scale()
    with pytest.raises(fx.TraceError, match="got a Scale that is no submodule"):
        fx.symbolic_trace(lambda x: stray(x))


def test_wrapped_functions_stay_single_calls():
    wrapped = branchy
    gm = fx.symbolic_trace(lambda x: branchy(x) + len(x))
    assert [t.__name__ for t in targets(gm)] == ["branchy", "len", "add"]
    assert targets(gm)[0] is wrapped and branchy is wrapped and len([1]) == 1
    assert branchy(-2) == 2
    with pytest.raises(RuntimeError, match="expected the top level of a module"):
        fx.wrap("abs")


def test_any_signature():
    def program(a, /, b, *rest, c=3, **named):
        return a + b * c + rest[0] + named["d"]

    gm = fx.symbolic_trace(program)
    assert gm(1, 2, 10, c=5, d=100) == program(1, 2, 10, c=5, d=100) == 121
    assert gm(1, 2, 10, d=0) == 17

    def keyword_only(*, k):
        return k + 1

    assert fx.symbolic_trace(keyword_only)(k=1) == 2


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (
            lambda x: 1 if x > 0 else 2,
            r"bool: got gt, .* in control flow at .*test_tracer.py:\d+.*",
        ),
        (lambda x: [y for y in x], "for: got x, .* loop over a range"),
        (lambda x: int(x), "int: got x"),
        (lambda x: float(x), "float: got x"),
        (lambda x: list(range(x)), "int: got x"),
        (lambda x: x.__len__(), "len: got x"),
        (lambda x: 3 in x, "in: got x"),
        (lambda x: ops.add(x, object()), "create_arg: got object"),
        (lambda x: {x: 1}, "dict: got the traced value"),
    ],
)
def test_what_is_not_known_says_what_to_do(program: Any, message: str):
    with pytest.raises(fx.TraceError, match=message):
        fx.symbolic_trace(program)


def test_starred_unpacking_is_refused():
    def program(x):
        first, *rest = x
        return first

    with pytest.raises(fx.TraceError, match="starred target"):
        fx.symbolic_trace(program)


def test_trace_leaves_nothing_behind():
    call, read = Module.__call__, Module.__getattr__

    def fails(x):
        raise KeyError("inside")

    with pytest.raises(KeyError, match="inside"):
        fx.symbolic_trace(fails)
    assert Module.__call__ is call and Module.__getattr__ is read


def test_other_threads_are_not_traced():
    net = Net()
    results = []

    class Slow(fx.Tracer):
        def call_module(self, m: Any, forward: Any, args: Any, kwargs: Any) -> Any:
            other = threading.Thread(target=lambda: results.append(net(tensor([3.0])).tolist()))
            other.start()
            other.join()
            return super().call_module(m, forward, args, kwargs)

    Slow().trace(net, {"flag": False})
    assert results == [[7.0]]


def test_places_in_the_users_code():
    def program(x):
        return inner(x) + 1

    def inner(x):
        return x * 2

    gm = fx.symbolic_trace(program)
    mul, add = (n for n in gm.graph.nodes if n.op == "call_function")
    first = program.__code__.co_firstlineno
    assert mul.meta["location"] == (__file__, first + 4, "inner")
    assert add.meta["location"] == (__file__, first + 1, "program")
    assert [place[2] for place in mul.meta["stack"]] == ["program", "inner"]
    assert "return x * 2" in gm.code


def test_tracers_can_take_decisions():
    class Decides(fx.Tracer):
        def to_bool(self, obj: Proxy) -> bool:
            return True

        def iter(self, obj: Proxy) -> Any:
            return iter([obj[0], obj[1]])

    graph = Decides().trace(lambda x: sum(y for y in x) if x else 0)
    assert fx.GraphModule({}, graph)([1, 2]) == 3
    assert [n.target for n in graph.nodes if n.op == "call_function"][-1] is operator.add


def test_graph_modules_trace_again():
    gm = fx.symbolic_trace(Net(), {"flag": False})
    again = fx.symbolic_trace(gm)
    assert [n.target for n in again.graph.nodes] == [n.target for n in gm.graph.nodes]
    assert again(tensor([3.0])).tolist() == [7.0]


def test_proxies_without_a_tracer_add_to_the_graph_of_their_node():
    graph = fx.Graph()
    x = Proxy(graph.placeholder("x"))
    graph.output(((x + 1) * x).node)
    assert fx.GraphModule({}, graph)(3) == 12
    tracer = GraphAppendingTracer(graph)
    assert tracer.graph is graph and isinstance(tracer, TracerBase)
    assert isinstance(x.tracer, GraphAppendingTracer)
