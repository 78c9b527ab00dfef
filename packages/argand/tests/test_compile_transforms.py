"""`argand.func` in compiled functions: one graph, eager execution's bits where the graph runs operator by operator, and its gradients of gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from compile_harness import compare, duplicate, tensors

import argand as torch
from argand import func, nn
from argand_c10 import records

torch.manual_seed(0)
W = torch.randn(4, 4)
NET = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 1))


def x(*shape: int, grad: bool = False) -> torch.Tensor:
    return torch.randn(*(shape or (4, 4)), requires_grad=grad)


def parameters(grad: bool = False) -> dict[str, torch.Tensor]:
    return {"w": x(4, 3, grad=grad), "b": x(3, grad=grad)}


def number(t: Any) -> Any:
    return (torch.sin(t) @ W).tanh().sum()


def several(t: Any) -> Any:
    return torch.sin(t) * t.flip(0)


def loss(p: Any, t: Any) -> Any:
    return ((t @ p["w"] + p["b"]) ** 2).mean()


def loss_of_net(p: Any, t: Any) -> Any:
    return func.functional_call(NET, p, (t,)).square().mean()


def changing(t: Any) -> Any:
    t = t * 1
    t[0] *= 2
    t.add_(1)
    return (t * t).sum()


def pulled(t: Any, v: Any) -> Any:
    y, pull_back = func.vjp(several, t)
    return y, pull_back(v)[0]


def one_step(p: Any, t: Any) -> Any:
    grads = func.grad(loss)(p, t)
    return {k: v - 0.1 * grads[k] for k, v in p.items()}


def of_net(t: Any) -> Any:
    return func.grad(loss_of_net)(dict(NET.named_parameters()), t)


CASES: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "grad": (func.grad(number), [x()]),
    "grad, recorded": (func.grad(number), [x(grad=True)]),
    "value_and_grad": (func.value_and_grad(number), [x()]),
    "grad_and_value with aux": (
        func.grad_and_value(lambda t: (number(t), t * 2), has_aux=True),
        [x()],
    ),
    "by a dict": (func.grad(loss), [parameters(), x()]),
    "by a dict, recorded": (func.grad(loss), [parameters(grad=True), x()]),
    "by two arguments": (func.grad(loss, argnums=(0, 1)), [parameters(), x(grad=True)]),
    "by what nothing depends on": (
        func.grad(lambda a, b: (b * b).sum(), argnums=(0, 1)),
        [x(), x()],
    ),
    "what is recorded is not what it is taken by": (
        lambda t, w: func.grad(lambda a: (a * w).sin().sum())(t),
        [x(), x(grad=True)],
    ),
    "of a module": (of_net, [x()]),
    "a step": (one_step, [parameters(), x()]),
    "vjp": (pulled, [x(), x()]),
    "vjp, recorded": (pulled, [x(grad=True), x(grad=True)]),
    "jvp": (lambda t, v: func.jvp(several, (t,), (v,)), [x(), x()]),
    "jacrev": (func.jacrev(several), [x(3)]),
    "jacfwd": (func.jacfwd(several), [x(3)]),
    "hessian": (func.hessian(lambda t: (t**3).sum() * t.prod()), [x(3)]),
    "grad of grad": (func.grad(lambda t: func.grad(number)(t).square().sum()), [x()]),
    "grad of grad, recorded": (
        func.grad(lambda t: func.grad(number)(t).square().sum()),
        [x(grad=True)],
    ),
    "per entry": (func.vmap(func.grad(lambda t: t.exp().sum())), [x()]),
    "changes in place": (func.grad(changing), [x()]),
}


def run(function: Callable[..., Any], given: list[Any]) -> Any:
    """Results, and gradients through those that have a history."""
    args = duplicate(given)
    found = function(*args)
    recorded = [t for t in tensors(found) if t.requires_grad]
    grads: list[Any] = []
    if recorded:
        NET.zero_grad()
        torch.stack([(t * t).sum() for t in recorded]).sum().backward()
        grads = [t.grad for t in (*tensors(args), *NET.parameters())]
    return found, grads


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", CASES)
def test_transforms(name: str, backend: str) -> None:
    function, given = CASES[name]

    def called(*args: Any) -> Any:
        return function(*args)

    torch.compiler.reset()
    want, want_grads = run(called, given)
    with records.collect() as found:
        got, got_grads = run(torch.compile(called, fullgraph=True, backend=backend), given)
    assert not [r for r in found if not r.code.startswith("FP")]
    for a, b in ((want, got), (want_grads, got_grads)):
        if backend == "inductor":
            for one, other in zip(tensors(a), tensors(b), strict=True):
                assert one.requires_grad == other.requires_grad
                assert torch.allclose(one, other, rtol=1e-4, atol=1e-5)
        else:
            compare(a, b, name, None)


def test_new_tensors_and_sizes() -> None:
    fast = torch.compile(func.grad(number), dynamic=True, fullgraph=True, backend="aot_eager")
    for rows in (3, 5, 8):
        t = x(rows, 4)
        compare(func.grad(number)(t), fast(t), str(rows), None)


def test_gradients_of_gradients_through_changes_in_place_run_operator_by_operator() -> None:
    t = x(grad=True)
    with records.collect() as found:
        got, got_grads = run(torch.compile(func.grad(changing)), [t])
    assert [r.code for r in found if not r.code.startswith("FP")] == ["AOT001"]
    want, want_grads = run(func.grad(changing), [t])
    compare((want, want_grads), (got, got_grads), "changing", None)


def test_a_break_inside_of_a_transform() -> None:
    def looking(t: Any) -> Any:
        return (t * t).sum() if t.sum().item() > 0 else (t * 3).sum()

    def called(t: Any) -> Any:
        return func.grad(looking)(t + 1) * 2

    fast = torch.compile(called, backend="aot_eager")
    for t in (x(), x() - 5, x() + 5):
        compare(called(t), fast(t), "looking", None)


def test_what_leaves_a_transform_has_no_history_of_its_argument() -> None:
    kept: list[Any] = []

    def leaking(t: Any) -> Any:
        y = (t * 2).sin()
        kept.append(y)
        return y.sum()

    def called(t: Any) -> Any:
        kept.clear()
        return func.grad(leaking)(t)

    t = x()
    compare(called(t), torch.compile(called, backend="aot_eager")(t), "leaking", None)
    assert len(kept) == 1
