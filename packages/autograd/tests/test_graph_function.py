"""Compiled graphs as nodes, and the functions that stand in graphs beside operators."""

from __future__ import annotations

from typing import Any

import pytest

import argand_aten as aten
import argand_autograd as autograd
from argand_autograd import graph_ops
from argand_autograd._C import GraphFunction


def tensor(*values: float, grad: bool = True) -> Any:
    t = aten.tensor(list(values))
    t.requires_grad = grad
    return t


def make(again: Any = None, **changes: Any) -> tuple[Any, list[Any]]:
    """x * w with sin(x) as a value for backward alone, and what backward was asked for."""
    asked: list[Any] = []

    def forward(x: Any, w: Any) -> Any:
        assert not autograd.is_grad_enabled()
        return x * w, x + w, aten.sin(x)

    def backward_for(pattern: bytes) -> Any:
        asked.append(pattern)

        def backward(n: int, w: Any, kept: Any, *grads: Any) -> Any:
            assert n == 2 and len(grads) == sum(pattern)
            return grads[0] * w, grads[-1] * kept

        return backward

    spec = {
        "name": "GraphBackward", "forward": forward, "backward_for": backward_for, "again": again, "n_inputs": 2,
        "n_values": 2, "n_kept": 1, "differentiable_inputs": (0, 1), "differentiable_values": (0, 1),
        "kept_inputs": (1,), "kept_values": (2,), "mutations": (), "symbols": ((0, "size", 0),),
    }  # fmt: skip
    return GraphFunction(**(spec | changes)), asked


def test_call_and_backward() -> None:
    function, asked = make()
    x, w = tensor(1.0, 2.0), tensor(3.0, 4.0)
    y, z = function(x, w)
    assert y.grad_fn is z.grad_fn and y.grad_fn.name() == "GraphBackward"
    assert [node.name() for node, _ in y.grad_fn.next_functions] == ["AccumulateGrad"] * 2
    (y.sum() * 2).backward(retain_graph=True)
    assert x.grad.tolist() == [6.0, 8.0]
    assert w.grad.tolist() == (2 * x.detach().sin()).tolist()
    (y + z).sum().backward()
    assert asked == [b"\1\0", b"\1\1"]
    with pytest.raises(RuntimeError, match="a second time"):
        y.sum().backward()


def test_no_node_without_gradients() -> None:
    function, _ = make()
    x, w = tensor(1.0, 2.0), tensor(3.0, 4.0)
    with autograd.no_grad():
        assert not function(x, w)[0].requires_grad
    assert not function(x.detach(), w.detach())[0].requires_grad
    y = function(x.detach(), w)[0]
    y.sum().backward()
    assert w.grad is not None and x.grad is None


def test_versions_of_kept_tensors() -> None:
    function, _ = make()
    x, w = tensor(1.0, 2.0), tensor(3.0, 4.0)
    y = function(x, w)[0]
    with autograd.no_grad():
        x.add_(1)  # not kept
    y.sum().backward(retain_graph=True)
    with autograd.no_grad():
        w.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_saved_tensors_hooks() -> None:
    """They see what backward keeps: w and sin(x), not x."""
    function, _ = make()
    x, w = tensor(1.0, 2.0), tensor(3.0, 4.0)
    packed: list[Any] = []
    with autograd.graph.saved_tensors_hooks(
        lambda t: packed.append(t) or len(packed) - 1, packed.__getitem__
    ):
        y = function(x, w)[0]
    assert [t.tolist() for t in packed] == [w.tolist(), x.detach().sin().tolist()]
    y.sum().backward()
    assert x.grad.tolist() == w.tolist()


def test_inference_tensors_that_backward_does_not_read() -> None:
    function, _ = make()
    with autograd.inference_mode():
        x = aten.tensor([1.0, 2.0])
    w = tensor(3.0, 4.0)
    function(x, w)[0].sum().backward()
    assert w.grad is not None


def test_changed_inputs() -> None:
    forward = lambda x, w: (x * w, x + w, x * 10, aten.sin(x))  # noqa: E731
    function, _ = make(forward=forward, mutations=((0, 2, False),), kept_values=(3,))
    x, w = tensor(1.0, 2.0, grad=False), tensor(3.0, 4.0)
    version = x._version
    assert len(function(x, w)) == 2
    assert x.tolist() == [10.0, 20.0] and x._version == version + 1
    spec = {"differentiable_values": (0, 2), "mutations": ((0, 2, True),), "kept_values": (3,)}
    function, asked = make(forward=forward, **spec)
    x = tensor(1.0, 2.0) * 1
    function(x, w)
    x.sum().backward()
    assert x.grad_fn.name() == "GraphBackward" and asked == [b"\0\1"]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        function(tensor(1.0, 2.0), w)
    with pytest.raises(RuntimeError, match="input 0 is a view"):
        function((tensor(1.0, 2.0) * 1)[:], w)


def test_second_derivatives() -> None:
    def again(inputs: Any, grads: Any) -> Any:
        x, w = inputs
        return grads[0] * w, grads[0] * x

    function, _ = make(again)
    x, w = tensor(1.0, 2.0), tensor(3.0, 4.0)
    (gx,) = autograd.grad(function(x, w)[0].sum(), [x], create_graph=True)
    assert autograd.grad(gx.sum(), [w])[0].tolist() == [1.0, 1.0]
    function, _ = make(None)
    with pytest.raises(NotImplementedError, match="create_graph=True"):
        autograd.grad(function(x, w)[0].sum(), [x], create_graph=True)


def test_faults_of_the_programs() -> None:
    x, w = tensor(1.0, 2.0), tensor(3.0, 4.0)
    with pytest.raises(TypeError, match="got 1 inputs, expected 2"):
        make()[0](x)
    with pytest.raises(RuntimeError, match="expected|something else than a tuple of 3"):
        make(forward=lambda x, w: (x, w))[0](x, w)
    function, _ = make(backward_for=lambda pattern: lambda *args: None)
    with pytest.raises(
        RuntimeError, match="something else than a tuple that begins with 2 gradients"
    ):
        function(x, w)[0].sum().backward()

    def fail(*args: Any) -> Any:
        raise ZeroDivisionError("in forward")

    with pytest.raises(ZeroDivisionError, match="in forward"):
        make(forward=fail)[0](x, w)
    assert autograd.is_grad_enabled()


def test_custom_function_of_two_graphs() -> None:
    forward = lambda x, n: (x * n, x > 0, x, n)  # noqa: E731
    backward = lambda x, n, g, _: (g * n * x, None)  # noqa: E731
    x = tensor(-1.0, 2.0)
    y, mask = graph_ops.apply_function(forward, backward, 2, (True, False), False, x, 3)
    assert mask.tolist() == [False, True] and not mask.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [-3.0, 6.0]


def test_set_grad_mode() -> None:
    graph_ops.set_grad_mode(False)
    try:
        assert not autograd.is_grad_enabled()
    finally:
        graph_ops.set_grad_mode(True)
