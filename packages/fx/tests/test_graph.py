"""Graph and Node: making, changing, erasing."""

from __future__ import annotations

import copy
import operator
import pickle

import fx_operators as ops
import pytest

import argand_fx as fx
from argand_fx.node import target_name


def chain() -> tuple[fx.Graph, list[fx.Node]]:
    graph = fx.Graph()
    x = graph.placeholder("x")
    a = graph.call_function(ops.add, (x, 1))
    b = graph.call_function(ops.mul, (a, x))
    out = graph.output((b, [a]))
    return graph, [x, a, b, out]


def test_nodes_know_inputs_and_users():
    graph, (x, a, b, out) = chain()
    assert list(graph.nodes) == [x, a, b, out] == list(reversed(list(reversed(graph.nodes))))
    assert len(graph.nodes) == 4
    assert list(x.users) == [a, b] and list(a.users) == [b, out] and list(b.users) == [out]
    assert b.all_input_nodes == [a, x] and out.all_input_nodes == [b, a]
    assert [n.name for n in graph.nodes] == ["x", "add", "mul", "output"]
    assert graph.output_node() is out
    assert x.next is a and a.prev is x
    assert graph.find_nodes(op="call_function", target=ops.mul) == [b]
    a.mark = 1  # of somebody's pass
    assert a.mark == 1 and not hasattr(b, "mark")


def test_nodes_at_any_depth_are_inputs():
    graph = fx.Graph()
    x, y, z = (graph.placeholder(n) for n in "xyz")
    n = graph.call_function(len, ([x, (1, {"k": y})],), {"s": slice(None, z)})
    assert n.all_input_nodes == [x, y, z] and n in z.users
    n.replace_input_with(y, 5)
    assert n.all_input_nodes == [x, z] and not y.users
    assert n.args == ([x, (1, {"k": 5})],)
    n.update_kwarg("s", None)
    assert n.all_input_nodes == [x]
    n.update_arg(0, z)
    n.insert_arg(0, 7)
    assert n.args == (7, z) and not x.users
    with pytest.raises(ValueError, match="insert_arg: got index 9"):
        n.insert_arg(9, 1)


def test_containers_of_arguments_are_read_only():
    graph = fx.Graph()
    x = graph.placeholder("x")
    sizes = [1, x]
    n = graph.call_function(ops.reshape, (x, sizes))
    sizes.append(3)
    assert n.args[1] == [1, x]
    with pytest.raises(TypeError, match="read-only; assign node.args"):
        n.args[1].append(2)
    m = graph.call_function(dict, (), {"a": {"b": x}})
    with pytest.raises(TypeError, match="read-only"):
        m.kwargs["a"]["b"] = 1
    with pytest.raises(TypeError, match="read-only"):
        m.kwargs["a"] = 1


def test_names_are_unique_and_legal():
    graph = fx.Graph()
    names = [graph.placeholder(n).name for n in ("x", "x", "s0", "for", "len", "self", "a.b", "1")]
    assert names == ["x", "x_1", "s0_1", "for_1", "len_1", "self_1", "a_b", "_1"]
    assert graph.create_node("placeholder", "x_1").name == "x_2"
    assert graph.call_function(ops.total, (1, [0])).name == "total_dim"
    assert graph.placeholder("*rest").name == "rest"


def test_insertion_points():
    graph, (x, a, b, out) = chain()
    with graph.inserting_before(a):
        first = graph.call_function(ops.neg, (x,))
        with graph.inserting_after(a):
            second = graph.call_function(ops.neg, (a,))
            third = graph.call_function(ops.neg, (second,))
        fourth = graph.call_function(ops.neg, (first,))
    assert list(graph.nodes) == [x, first, fourth, a, second, third, b, out]
    with graph.inserting_before():
        assert graph.placeholder("w").next is x
    graph.lint()


def test_insertion_point_survives_its_erasure():
    graph, (x, a, b, out) = chain()
    spare = graph.call_function(ops.neg, (x,))
    b.prepend(spare)
    with graph.inserting_before(spare):
        with graph.inserting_before(a):
            graph.erase_node(spare)
            early = graph.call_function(ops.neg, (x,))
        late = graph.call_function(ops.neg, (x,))
    assert list(graph.nodes) == [x, early, a, late, b, out]


def test_moving():
    graph, (x, a, b, out) = chain()
    n = graph.call_function(ops.neg, (x,))
    a.append(n)
    assert list(graph.nodes) == [x, a, n, b, out]
    a.prepend(n)
    assert list(graph.nodes) == [x, n, a, b, out]
    with pytest.raises(ValueError, match="another graph"):
        a.prepend(fx.Graph().placeholder("y"))


def test_erasing_while_iterating():
    graph, (x, a, b, out) = chain()
    out.args = (x,)
    for node in reversed(graph.nodes):
        if node in (a, b):
            graph.erase_node(node)
    assert list(graph.nodes) == [x, out] and list(x.users) == [out] and len(graph.nodes) == 2
    assert graph.call_function(ops.add, (x, 1)).name == "add"  # the name is free again


def test_erasing_what_is_used_is_refused():
    graph, (x, a, b, out) = chain()
    with pytest.raises(RuntimeError, match="erase_node: add is used by mul, output"):
        graph.erase_node(a)


def test_replace_all_uses():
    graph, (x, a, b, out) = chain()
    with graph.inserting_after(a):
        n = graph.call_function(ops.neg, (a,))
    changed = a.replace_all_uses_with(n, lambda user: user is not n)
    assert changed == [b, out] and list(a.users) == [n] and b.args == (n, x)
    assert out.args == ((b, [n]),)
    a.meta["val"] = 3
    with pytest.raises(ValueError, match="meta of its own"):
        n.meta["k"] = 1
        a.replace_all_uses_with(n, propagate_meta=True)


def test_copies():
    graph, _ = chain()
    graph.find_nodes(op="call_function")[0].meta["val"] = 5
    other = copy.deepcopy(graph)
    assert str(other) == str(graph) and all(n.graph is other for n in other.nodes)
    assert not set(other.nodes) & set(graph.nodes)
    joined = fx.Graph()
    y = joined.placeholder("y")
    value = joined.graph_copy(graph, {next(iter(graph.nodes)): y})
    joined.output(value)
    joined.lint()
    assert [n.name for n in joined.nodes] == ["y", "add", "mul", "output"]


def test_what_cannot_be_pickled_says_so():
    graph, nodes = chain()
    with pytest.raises(TypeError, match="Graph: cannot be pickled; keep its text"):
        pickle.dumps(graph)
    with pytest.raises(TypeError, match="Node: cannot be pickled"):
        pickle.dumps(nodes[0])


def test_impurity():
    graph = fx.Graph()
    x = graph.placeholder("x")

    def impure(target: object, op: str = "call_function") -> bool:
        return graph.create_node(op, target, (x,)).is_impure()

    assert x.is_impure()
    assert not impure(ops.neg) and not impure(ops.view) and not impure(operator.getitem)
    assert impure(ops.add_) and impure(ops.noise) and impure(operator.iadd) and impure(print)
    assert impure("add_", "call_method") and not impure("add", "call_method")
    assert not impure("__add__", "call_method") and impure("__setitem__", "call_method")

    @fx.has_side_effect
    def log(value: object) -> None:
        pass

    assert impure(log)


def test_wrong_opcode():
    with pytest.raises(ValueError, match="got opcode 'call', expected one of call_function"):
        fx.Graph().create_node("call", ops.add)


def test_target_names():
    assert [target_name(t) for t in (ops.add, operator.getitem, len, "a.b")] == [
        "fxtest::add",
        "operator.getitem",
        "builtins.len",
        "a.b",
    ]


def test_tabular(capsys: pytest.CaptureFixture[str]):
    chain()[0].print_tabular()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["opcode", "name", "target", "args", "kwargs"]
    assert lines[3].split()[:3] == ["call_function", "add", "fxtest::add"]
