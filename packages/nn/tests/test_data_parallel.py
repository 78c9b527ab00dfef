"""Modules on several devices of one process; copies on the CPU stand for those on other devices."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from typing import Any

import pytest

import argand_aten as aten
from argand_autograd import is_grad_enabled, no_grad
from argand_c10 import Tensor, tensor
from argand_nn import BatchNorm1d, DataParallel, Linear, Module, Sequential
from argand_nn.data_parallel import (
    data_parallel,
    gather,
    parallel_apply,
    replicate,
    scatter,
    scatter_kwargs,
)

TWO = ("cpu", "cpu")
Pair = namedtuple("Pair", "a b")


def same(a: Any, b: Any) -> bool:
    return bool(aten.equal(a, b))


def test_tensors_are_divided_and_joined() -> None:
    x = aten.arange(10.0).reshape(5, 2)
    parts = scatter(x, TWO)
    assert type(parts) is tuple and [p.shape[0] for p in parts] == [3, 2]
    assert same(gather(parts, "cpu"), x)
    assert [p.shape for p in scatter(x, TWO, 1)] == [(5, 1), (5, 1)]
    assert same(gather(scatter(x, TWO, dim=1), "cpu", dim=1), x)
    assert len(scatter(x[:1], TWO)) == 1  # fewer parts than devices


def test_collections_keep_their_types() -> None:
    x = aten.arange(4.0)
    for given in (
        (x, "word"),
        [x, (x, 3)],
        OrderedDict(a=x, b=[x]),
        Pair(x, x),
        {"n": Pair(x, 1)},
    ):
        left, right = scatter(given, TWO)
        assert type(left) is type(given) is type(right)
    left, right = scatter(Pair(x, {"k": x}), TWO)
    assert same(left.b["k"], x[:2]) and same(right.a, x[2:])
    assert scatter("word", TWO) == ["word", "word"] and scatter((), TWO) == [(), ()]
    joined = gather([left, right], "cpu")
    assert type(joined) is Pair and same(joined.b["k"], x)
    assert gather([None, None], "cpu") is None
    with pytest.raises(ValueError, match="same number of keys"):
        gather([{"a": x}, {}], "cpu")
    with pytest.warns(UserWarning, match="vector"):
        assert gather([x[0], x[1]], "cpu").shape == (2,)


def test_arguments_by_position_and_name_have_as_many_parts() -> None:
    x = aten.arange(4.0)
    positional, named = scatter_kwargs((x,), None, TWO)
    assert len(positional) == 2 and named == ({}, {})
    positional, named = scatter_kwargs((), {"x": x, "n": 3}, TWO)
    assert positional == ((), ()) and [k["n"] for k in named] == [3, 3]
    assert scatter_kwargs((), {}, TWO) == ((), ())


def test_copies_have_no_parameters_and_gradients_flow_back() -> None:
    network = Sequential(Linear(3, 3), BatchNorm1d(3))
    network.add_module("again", network[0])
    first, second = replicate(network, TWO)
    assert list(first.parameters()) == [] and type(first) is Sequential
    assert first[0] is first.again and first[0] is not network[0]
    x = aten.arange(6.0).reshape(2, 3)
    out = gather([first(x), second(x + 1)], "cpu")
    out.square().sum().backward()
    got = network[0].weight.grad.clone()
    network.zero_grad()
    network.eval(), network.train()
    (network(x).square().sum() + network(x + 1).square().sum()).backward()
    assert bool(aten.allclose(got, network[0].weight.grad, atol=1e-6))
    detached = replicate(network, TWO, detach=True)[0]
    assert not detached[0].weight.requires_grad


def test_calls_run_with_the_callers_modes() -> None:
    class Mode(Module):
        def forward(self, x: Tensor, scale: float = 1.0) -> Any:
            return x * scale, is_grad_enabled()

    x = tensor([1.0, 2.0])
    with no_grad():
        results = parallel_apply([Mode(), Mode()], [(x,), x], [{"scale": 2.0}, {}])
    assert [grad for _, grad in results] == [False, False]
    assert same(results[0][0], x * 2) and same(results[1][0], x)
    assert parallel_apply([Mode()], [(x,)])[0][1] is True

    class Failing(Module):
        def forward(self, x: Tensor) -> Tensor:
            raise KeyError("missing")

    with pytest.raises(KeyError, match="missing") as raised:
        parallel_apply([Mode(), Failing()], [(x,), (x,)])
    assert "replica 1" in raised.value.__notes__[0]
    with pytest.raises(RuntimeError, match="device cannot be resolved"):
        parallel_apply([Mode()], [(3,)])
    with pytest.raises(AssertionError, match="number of inputs 1"):
        parallel_apply([Mode(), Mode()], [(x,)])


def test_one_call_is_divided_and_joined() -> None:
    network = Linear(3, 2)
    x = aten.arange(15.0).reshape(5, 3)
    assert bool(aten.allclose(data_parallel(network, x, TWO), network(x)))
    assert bool(aten.allclose(data_parallel(network, (x,), ["cpu"]), network(x)))
    by_name = data_parallel(network, None, TWO, module_kwargs={"input": x})
    assert bool(aten.allclose(by_name, network(x)))
    data_parallel(network, x, TWO).sum().backward()
    assert bool(aten.allclose(network.weight.grad, x.sum(0).expand(2, 3)))
    with pytest.raises(RuntimeError, match="on device meta"):
        data_parallel(network, x, ["meta", "meta"])


def test_without_devices_the_module_is_called() -> None:
    network = Linear(3, 2)
    parallel = DataParallel(network, device_ids=[0, 1])
    x = aten.arange(6.0).reshape(2, 3)
    assert parallel.device_ids == [] and parallel.module is network
    assert same(parallel(x), network(x)) and same(parallel(input=x), network(x))
    assert list(parallel.state_dict()) == ["module.weight", "module.bias"]
    with pytest.raises(RuntimeError, match="no available devices"):
        data_parallel(network, x)
