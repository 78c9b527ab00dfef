"""What the forward graph keeps for the backward graph, and the minimum cut behind it."""

from __future__ import annotations

import random
from typing import Any

import networkx
import pytest
from programs import trace

import argand_aten as aten
import argand_c10 as c10
from argand_aot import aot_eager
from argand_aot.joint import build_joint
from argand_aot.min_cut import FlowNetwork
from argand_aot.partition import Partition, extract_backward, extract_forward, partition
from argand_autograd import no_grad
from argand_c10 import Operator
from argand_fx import GraphModule


def leaf(*shape: int) -> Any:
    t = aten.zeros(list(shape))
    t.requires_grad = True
    return t


def parts(program: Any, *inputs: Any) -> tuple[Partition, GraphModule, GraphModule]:
    """What is kept, the forward and the backward graph."""
    joint = build_joint(*trace(program, inputs))
    derived = joint.backward([True] * len(joint.differentiable_results))
    chosen = partition(joint, derived)
    forward, backward = extract_forward(joint, chosen), extract_backward(joint, chosen, derived, [])
    forward.graph.lint()
    backward.graph.lint()
    return chosen, forward, backward


def operators(module: GraphModule) -> list[str]:
    return [n.target.name for n in module.graph.nodes if isinstance(n.target, Operator)]


def names(nodes: Any) -> list[str]:
    return [n.name for n in nodes]


def test_cheap_operators_are_computed_again() -> None:
    chosen, _, backward = parts(lambda o, x, w: o.relu(o.add(o.mul(x, w), 1)), leaf(9), leaf(9))
    assert names(chosen.inputs) == ["x0", "x1"] and not chosen.values
    assert operators(backward)[:3] == ["mul", "add", "relu"]


def test_inputs_that_eager_does_not_keep_may_change() -> None:
    """relu(x + 1) keeps its result, as in eager, since x may be changed before backward."""
    program = lambda o, x: o.relu(o.add(o.mul(x, 1), 1))  # noqa: E731
    x = leaf(9) * 1.0
    chosen, _, _ = parts(program, x)
    assert not chosen.inputs
    graph = aot_eager(*trace(program, [x]))
    y = graph(x)[0]
    with no_grad():
        x.add_(5)
    y.sum().backward()


def test_costly_operators_are_kept() -> None:
    chosen, _, backward = parts(lambda o, x: o.tanh(o.exp(o.mm(x, x))), leaf(9, 9))
    assert names(chosen.inputs) == ["x0"]
    assert names(chosen.values) == ["exp", "tanh"]
    assert names(chosen.extra) == ["exp"]
    assert "exp" not in operators(backward)


def test_random_numbers_are_never_drawn_again() -> None:
    chosen, _, backward = parts(lambda o, x: o.mul(x, o.rand_like(x)), leaf(9))
    assert names(chosen.values) == ["uniform_functional"]
    assert not any("uniform" in n for n in operators(backward))


def test_what_products_read_is_kept() -> None:
    """relu(x) is read by the backward of mm as a whole."""
    chosen, _, backward = parts(
        lambda o, x, w: o.mm(o.relu(o.mul(x, 2)), w), leaf(9, 9), leaf(9, 9)
    )
    assert "relu" in names(chosen.values)
    assert "relu" not in operators(backward)


@pytest.mark.parametrize(
    "step",
    [
        lambda o, x: o.relu(x),
        lambda o, x: o.leaky_relu(x, 0.2),
        lambda o, x: o.hardtanh(x, -2, 2),
        lambda o, x: o.threshold(x, 0.5, 1),
        lambda o, x: o.hardshrink(x),
        lambda o, x: o.softshrink(x),
    ],
)
def test_masks_are_kept(step: Any) -> None:
    """Of straight pieces, where nothing else reads what they are chosen by."""
    chosen, _, _ = parts(lambda o, x, w: o.sum(step(o, o.mm(x, w))), leaf(9, 9), leaf(9, 9) * 1.0)
    assert [n.meta["val"].dtype for n in chosen.values if n.name != "sum_1"] == [c10.bool]


def test_less_is_kept() -> None:
    """A cut through the small value, not through what is made from it."""
    program = lambda o, x, big: o.mul(o.mul(o.exp(x), 2), big)  # noqa: E731
    chosen, _, _ = parts(program, leaf(1, 9), aten.zeros([100, 9]))
    assert names(chosen.inputs) == ["x1"]
    assert names(chosen.values) == ["exp"]


def test_long_chains_are_not_computed_again() -> None:
    def program(o: Any, x: Any, w: Any) -> Any:
        x = o.mm(x, w)
        for _ in range(20):
            x = o.relu(o.mul(x, w))
        return x

    chosen, _, backward = parts(program, leaf(9, 9), leaf(9, 9))
    assert 2 <= len(chosen.values) <= 12
    assert len([n for n in operators(backward) if n == "relu"]) < 20


def test_changed_inputs_are_kept_as_copies() -> None:
    def program(o: Any, x: Any, w: Any) -> Any:
        o.mul_(x, w)  # the gradient of w needs what x was
        return o.exp(x)

    chosen, forward, _ = parts(program, aten.zeros([2, 9]), leaf(9))
    assert not any(n.name == "x0" for n in chosen.inputs)
    assert len(chosen.copied) == 1
    assert "clone" in operators(forward)


def test_graphs_have_fresh_results() -> None:
    """No result of a program is an input or shares memory with another."""

    def program(o: Any, x: Any, y: Any) -> Any:
        z = o.zeros_like(x)
        o.copy_(z, x)
        return z, o.alias(o.exp(y)), o.transpose(o.exp(y), 0, 1)

    _, forward, backward = parts(program, leaf(3, 3), leaf(3, 3))
    for module in (forward, backward):
        results = [n for n in module.graph.output_node().args[0] if n is not None]
        storages = [n.meta["val"].storage for n in results]
        assert len(set(map(id, storages))) == len(storages)
        assert all(n.op == "call_function" for n in results)


@pytest.mark.parametrize("seed", range(30))
def test_minimum_cut(seed: int) -> None:
    draw = random.Random(seed)
    n = draw.randint(2, 12)
    network, expected = FlowNetwork(), networkx.DiGraph()
    for _ in range(n):
        network.add_node()
    expected.add_nodes_from(range(n + 2))
    edges = []
    for _ in range(draw.randint(1, 40)):
        a, b, capacity = draw.randrange(n + 2), draw.randrange(n + 2), draw.randint(1, 20)
        if a == b or (a, b) in [(x, y) for x, y, _ in edges]:
            continue
        edges.append((a, b, capacity))
        network.add_edge(a, b, capacity)
        expected.add_edge(a, b, capacity=capacity)
    side = network.source_side()
    assert side[0] and not side[1]
    cut = sum(c for a, b, c in edges if side[a] and not side[b])
    assert cut == networkx.minimum_cut_value(expected, 0, 1)


def test_dtypes_of_kept_values() -> None:
    chosen, _, _ = parts(lambda o, x: o.mul(o.exp(x), o.gt(o.exp(x), 1)), leaf(4))
    assert all(n.meta["val"].dtype in (c10.float32, c10.bool) for n in chosen.values)
