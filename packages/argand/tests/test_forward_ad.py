"""Tangents that go forward with tensors, against `func.jvp`."""

from __future__ import annotations

import threading

import pytest

import argand as torch
import argand.autograd.forward_ad as forward
import argand.nn.functional as F
from argand import nn

X = torch.tensor([1.0, 2.0, 3.0])
V = torch.tensor([1.0, 0.5, -1.0])


def copied(x):
    y = torch.zeros(3)
    return y.copy_(x).exp()


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        return 2 * grad * ctx.saved_tensors[0]


FUNCTIONS = [
    lambda x: x.sin() * x + 1,
    lambda x: (x @ x).exp().log(),
    lambda x: torch.cat([x, X, x * 2]),
    lambda x: torch.where(x > 1.5, x * x, X),
    lambda x: x.view(3, 1).t() + x[None],
    lambda x: torch.stack(x.unbind(0)).flip(0).double(),
    lambda x: F.conv1d(x.view(1, 1, 3), torch.ones(1, 1, 2)).softmax(-1),
    lambda x: F.scaled_dot_product_attention(*[x.view(1, 3, 1)] * 3),
    lambda x: F.cross_entropy(x.view(1, 3), torch.tensor([1])),
    lambda x: x.max(0)[0],
    lambda x: x.clone().mul_(x).add_(1),
    copied,
    Square.apply,
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_tangents_are_those_of_jvp(function):
    expected = torch.func.jvp(function, (X,), (V,))
    with forward.dual_level():
        found = forward.unpack_dual(function(forward.make_dual(X, V)))
        assert torch.allclose(found.primal, expected[0])
        assert found.tangent.shape == found.primal.shape
        assert torch.allclose(found.tangent, expected[1])


def test_modules_and_their_parameters():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.LayerNorm(4), nn.Linear(4, 2))
    expected = torch.func.jvp(model, (X,), (V,))
    compiled = torch.compile(model, backend="eager")
    with forward.dual_level():
        for run in (model, compiled):
            found = forward.unpack_dual(run(forward.make_dual(X, V)))
            assert torch.allclose(found.tangent, expected[1])
        duals = {n: forward.make_dual(p, torch.ones_like(p)) for n, p in model.named_parameters()}
        result = torch.func.functional_call(model, duals, (X,))
        assert forward.unpack_dual(result).tangent is not None


def test_gradients_of_tangents():
    x = X.clone().requires_grad_()
    with forward.dual_level():
        primal, tangent = forward.unpack_dual((forward.make_dual(x, V) ** 3).sum())
        assert torch.allclose(torch.autograd.grad(tangent, x)[0], 6 * X * V)
        assert torch.allclose(torch.autograd.grad(primal, x)[0], 3 * X**2)


def test_what_has_no_tangents():
    with forward.dual_level():
        dual = forward.make_dual(X, V)
        with torch.no_grad():
            assert torch.equal(forward.unpack_dual(dual * 2).tangent, V * 2)
        with torch.inference_mode():
            assert forward.unpack_dual(dual * 2).tangent is None
        assert all(
            forward.unpack_dual(t).tangent is None
            for t in (dual > 2, dual.detach() * 2, X * 2, dual.argmax())
        )
        assert forward.unpack_dual(dual.clone().zero_()).tangent.tolist() == [0.0] * len(V)
        assert forward.unpack_dual(forward.unpack_dual(dual).primal).tangent is None
    assert forward.unpack_dual(dual).tangent is None and X.tolist() == [1.0, 2.0, 3.0]


def tangent(t):
    return forward.unpack_dual(t).tangent


def test_views_have_views_of_tangents():
    with forward.dual_level():
        x = forward.make_dual(torch.arange(6.0).reshape(2, 3), torch.ones(2, 3).t().reshape(2, 3))
        row, flat = x[0], x.view(6)
        assert row._is_view() and tangent(row)._is_view()
        row.mul_(3)
        assert tangent(x).tolist() == [[3, 3, 3], [1, 1, 1]] and flat.tolist()[:3] == [0, 3, 6]
        x[1] = 5.0
        assert tangent(flat).tolist() == [3, 3, 3, 0, 0, 0]
        x.add_(x)
        assert tangent(row).tolist() == [6, 6, 6] and [
            tangent(t)[0].item() for t in x.unbind()
        ] == [6, 0]
        x.fill_(1.0)
        assert tangent(row).tolist() == [0, 0, 0]


def test_tangents_that_views_bring():
    with forward.dual_level():
        dual = forward.make_dual(X, V)
        buffer = torch.zeros(2, 3)
        before = buffer.view(6)
        buffer[1] = dual
        assert tangent(buffer).tolist() == [[0.0] * 3, V.tolist()]
        assert tangent(before).tolist() == [0.0] * 3 + V.tolist()
        turned = torch.zeros(3, 2).t()
        last = turned[1]
        turned.add_(torch.stack([dual * 0, dual * 2]))
        assert tangent(last).tolist() == [2 * v for v in V.tolist()]
        assert tangent(buffer.detach()) is None and tangent(buffer.detach()[1]) is None


def test_results_are_changed_alone():
    with forward.dual_level():
        dual = forward.make_dual(X, V)
        for made in (dual + 1, dual.clone(), dual.contiguous() + 0, torch.cat([dual])):
            made.mul_(5)
            assert tangent(made).tolist() == [5 * v for v in V.tolist()]
        assert tangent(dual).tolist() == V.tolist()
        assert (
            tangent(torch.broadcast_tensors(dual, torch.ones(2, 1))[0]).tolist() == [V.tolist()] * 2
        )
        assert tangent(dual.expand(2, 3)).tolist() == [V.tolist()] * 2


def test_gradients_of_tangents_that_views_changed():
    w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    with forward.dual_level():
        x = forward.make_dual(torch.ones(3), w)
        y = x * 2
        y[0] = 7.0
        y[1:].mul_(y[1:])
        tangent(y).sum().backward()
    assert w.grad.tolist() == [0.0, 8.0, 8.0]


@pytest.mark.parametrize("fused", [False, True])
def test_optimizers_step_inside_of_a_level(fused):
    parameters = [X.clone().requires_grad_(), V.clone().requires_grad_()]
    step = torch.optim.Adam(parameters, lr=0.5, fused=fused).step

    @forward.dual_level()
    def train():
        for p in parameters:
            p.grad = torch.ones(3)
        step()
        parameters[0].grad = forward.make_dual(torch.ones(3), V)
        if fused:
            with pytest.raises(NotImplementedError, match="changes a tensor with a tangent"):
                step()

    train()
    assert train.__name__ == "train" and torch.allclose(parameters[1], V - 0.5, atol=1e-6)


def test_compiled_functions_are_plain_until_the_last_thread_has_no_level():
    graphs, entered, end = [], threading.Event(), threading.Event()
    compiled = torch.compile(lambda x: x + 1, backend=lambda graph, _: graphs.append(1) or graph)

    def other():
        with forward.dual_level():
            entered.set()
            end.wait(30)

    thread = threading.Thread(target=other)
    with forward.dual_level():
        thread.start()
        entered.wait(30)
    compiled(X)
    assert not graphs
    end.set()
    thread.join()
    compiled(X)
    assert graphs


def test_levels_and_shapes():
    with pytest.raises(RuntimeError, match="no level exists"):
        forward.make_dual(X, V)
    with pytest.raises(RuntimeError, match="not the last"):
        forward.exit_dual_level()
    with forward.dual_level():
        with pytest.raises(RuntimeError, match="Nested"):
            forward.enter_dual_level()
        with pytest.raises(RuntimeError, match="tangent of shape"):
            forward.make_dual(X, V[:2])
        with pytest.raises(ValueError, match="floating point"):
            forward.make_dual(torch.ones(2, dtype=torch.int64), V[:2])
    level = forward.enter_dual_level()
    forward.exit_dual_level(level=level)


def test_sizes_that_are_changed_in_place():
    with forward.dual_level():
        x = forward.make_dual(
            torch.arange(6.0).reshape(2, 3), torch.arange(6.0).reshape(2, 3) * 2
        ).clone()
        column = x[:, 1]
        x.t_()
        assert tangent(x).tolist() == [[0, 6], [2, 8], [4, 10]]
        x.unsqueeze_(0).mul_(3)
        assert tangent(x).shape == (1, 3, 2) and tangent(column).tolist() == [6, 24]
        assert tangent(x.squeeze_(0)[1]).tolist() == [6, 24]


def test_gradients_of_what_is_changed_in_place():
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    v = torch.tensor([1.0, 0.5, -1.0])
    with forward.dual_level():
        y = forward.make_dual(x, v).clone()
        y[1:] *= y[:-1].clone()
        y.sin_()
        (found,) = torch.autograd.grad(tangent(y.sum()), x)

    def plain(x):
        y = torch.cat([x[:1], x[1:] * x[:-1]])
        return y.sin().sum()

    leaf = x.detach().requires_grad_()
    (first,) = torch.autograd.grad(plain(leaf), leaf, create_graph=True)
    (expected,) = torch.autograd.grad((first * v).sum(), leaf)
    assert torch.allclose(found, expected)
