"""Jacobians, Hessians, products, functional transforms and checkpointing."""

from __future__ import annotations

import gc
import weakref

import pytest
from helpers import close, leaf, random_leaf

import argand_aten as aten
import argand_autograd as autograd
import argand_c10
from argand_autograd import CheckpointError, checkpoint, checkpoint_sequential, func, functional

float64 = argand_c10.float64


def plain(data):
    return argand_c10.tensor(data, dtype=float64)


def cubes(x):
    return (x**3).sum()


def test_jacobian():
    x = plain([1.0, 2.0])
    assert close(functional.jacobian(lambda a: a * a, x), [[2, 0], [0, 4]])
    y = plain([3.0])
    rows = functional.jacobian(lambda a, b: (a * b, b * 2), (x, y))
    assert close(rows[0][0], [[3, 0], [0, 3]]) and close(rows[0][1], [[1], [2]])
    assert close(rows[1][0], [[0, 0]]) and close(rows[1][1], [[2]])
    assert not rows[0][0].requires_grad
    z = leaf([1.0, 2.0])
    forward = functional.jacobian(lambda a: a * a, x, vectorize=True, strategy="forward-mode")
    assert close(forward, [[2, 0], [0, 4]])
    with pytest.raises(ValueError, match="strategy 'sideways'"):
        functional.jacobian(cubes, x, strategy="sideways")
    made = functional.jacobian(lambda a: a * a, z, create_graph=True)
    (g,) = autograd.grad(made.sum(), z)
    assert close(g, [2, 2])
    with pytest.raises(RuntimeError, match="independent of all inputs"):
        functional.jacobian(lambda a: plain([1.0]), x, strict=True)
    with pytest.raises(TypeError, match="got int as inputs"):
        functional.jacobian(cubes, 3)


def test_hessian():
    x = plain([1.0, 2.0])
    assert close(functional.hessian(cubes, x), [[6, 0], [0, 12]])
    ((aa, ab), (ba, bb)) = functional.hessian(lambda a, b: (a * a * b).sum(), (x, plain([3.0])))
    assert (
        close(aa, [[6, 0], [0, 6]])
        and close(ab, [[2], [4]])
        and close(ba, [[2, 4]])
        and close(bb, [[0]])
    )
    with pytest.raises(RuntimeError, match="one tensor with one element"):
        functional.hessian(lambda a: a * a, x)


def test_products():
    x, v = plain([1.0, 2.0]), plain([10.0, 100.0])
    value, product = functional.vjp(lambda a: a * a, x, v)
    assert close(value, [1, 4]) and close(product, [20, 400])
    value, product = functional.jvp(lambda a: a * a.sum(), x, v)
    assert close(value, [3, 6]) and close(product, [140, 520])
    for f in (functional.hvp, functional.vhp):
        value, product = f(cubes, x, v)
        assert close(value, 9) and close(product, [60, 1200])
    with pytest.raises(RuntimeError, match="got v with shapes"):
        functional.vjp(lambda a: a * a, x, plain([1.0]))
    with pytest.raises(RuntimeError, match="got v=None"):
        functional.jvp(lambda a: a * a, x)


def test_grad_transforms():
    x = plain([1.0, 2.0])
    g = func.grad(cubes)(x)
    assert close(g, [3, 12]) and not g.requires_grad
    second = func.grad(lambda a: func.grad(cubes)(a).sum())(x)
    assert close(second, [6, 12])
    value, (ga, gb) = func.value_and_grad(lambda a, b: (a * b).sum(), argnums=(0, 1))(
        x, plain([3.0, 4.0])
    )
    assert close(value, 11) and close(ga, [3, 4]) and close(gb, [1, 2])
    g, extra = func.grad(lambda a: (cubes(a), "extra"), has_aux=True)(x)
    assert close(g, [3, 12]) and extra == "extra"
    g, value = func.grad_and_value(cubes)(x)
    assert close(g, [3, 12]) and close(value, 9)
    parameters = {"w": plain([2.0]), "b": [plain([1.0])]}
    g = func.grad(lambda p: (p["w"] * p["w"] + p["b"][0]).sum())(parameters)
    assert close(g["w"], [4]) and close(g["b"][0], [1])
    y = leaf([1.0, 2.0])
    func.grad(cubes)(y).sum().backward()
    assert close(y.grad, [6, 12])
    assert close(func.hessian(cubes)(x), [[6, 0], [0, 12]])
    results, pull_back = func.vjp(lambda a: a * a, x)
    assert close(results, [1, 4]) and close(pull_back(plain([1.0, 10.0]))[0], [2, 40])
    with pytest.raises(RuntimeError, match="expected a tensor with one element"):
        func.grad(lambda a: a)(x)
    for transform in (func.grad, func.jacrev, func.jacfwd):
        for argnums, message in (
            (1, "argnum=1, but only 1 positional inputs"),
            ((), "argnums must be non-empty"),
            ((0, -1), "argnums elements must be unique"),
        ):
            with pytest.raises(RuntimeError, match=message):
                transform(cubes, argnums=argnums)(x)
        with pytest.raises(RuntimeError, match="should be a tuple"):
            transform(cubes, has_aux=True)(x)


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_checkpoint(use_reentrant):
    x, w = random_leaf(4), random_leaf(4)
    runs = []

    def part(a):
        runs.append(autograd.is_grad_enabled())
        return ((a * w).exp() * a).sin()

    (expected,) = autograd.grad(part(x).sum(), x)
    runs.clear()
    y = checkpoint(part, x, use_reentrant=use_reentrant)
    assert len(runs) == 1
    y.sum().backward()
    assert len(runs) == 2
    assert x.grad.tolist() == expected.tolist() and w.grad is not None


def test_checkpoint_frees_what_it_would_save():
    x = random_leaf(4)
    kept = []

    def part(a):
        b = a * 2
        kept.append(weakref.ref(b))
        return b.exp().sin()

    y = checkpoint(part, x)
    gc.collect()
    assert kept[0]() is None
    y.sum().backward()
    assert x.grad is not None
    gc.collect()
    assert all(r() is None for r in kept)


@pytest.mark.parametrize("early_stop", [True, False])
def test_checkpoint_of_a_function_that_takes_gradients(early_stop):
    def twice(a):
        y = (a**3).sin()
        (g,) = autograd.grad(y.sum(), a, create_graph=True)
        (h,) = autograd.grad(g.sum(), a, create_graph=True)
        return (y * g * h).sum()

    def once(a):
        y = (a**3).sin()
        (g,) = autograd.grad(y.sum(), a, retain_graph=True)
        return (y * g).sum()

    for f in (twice, once, lambda a: (func.grad(cubes)(a) ** 2).sum()):
        x = random_leaf(4)
        (expected,) = autograd.grad(f(x), x)
        checkpoint(f, x, use_reentrant=False, early_stop=early_stop).backward()
        assert x.grad.tolist() == expected.tolist()


def test_checkpoint_and_higher_order():
    x = random_leaf(3)
    (g,) = autograd.grad(checkpoint(lambda a: (a * a).exp(), x).sum(), x, create_graph=True)
    (second,) = autograd.grad(g.sum(), x)
    (g0,) = autograd.grad((x * x).exp().sum(), x, create_graph=True)
    (expected,) = autograd.grad(g0.sum(), x)
    assert close(second, expected.tolist())


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_checkpoint_draws_the_same_numbers(use_reentrant):
    x = random_leaf(50)
    argand_c10.manual_seed(3)
    drawn = []

    def part(a):
        noise = aten.rand([50], dtype=float64)
        drawn.append(noise.tolist())
        return a * noise

    y = checkpoint(part, x, use_reentrant=use_reentrant)
    after = argand_c10.get_rng_state().tolist()
    y.sum().backward()
    assert drawn[0] == drawn[1] == x.grad.tolist()
    assert argand_c10.get_rng_state().tolist() == after


def test_checkpoint_notices_different_runs():
    x = random_leaf(3)
    runs = []

    def part(a):
        runs.append(1)
        return (a * a).exp() if len(runs) == 1 else (a[:2] * a[:2]).exp()

    with pytest.raises(CheckpointError, match="the second run saved tensor 0 with shape"):
        checkpoint(part, x).sum().backward()
    runs.clear()

    def fewer(a):
        runs.append(1)
        return (a * a).exp() if len(runs) == 1 else a * 2

    with pytest.raises(CheckpointError, match="saved fewer tensors"):
        checkpoint(fewer, x).sum().backward()


def test_checkpoint_sequential():
    x = random_leaf(3)
    layers = [lambda a: a * 2, lambda a: a.exp(), lambda a: a * a, lambda a: a.sin()]
    y = x
    for layer in layers:
        y = layer(y)
    (expected,) = autograd.grad(y.sum(), x)
    checkpoint_sequential(layers, 2, x).sum().backward()
    assert close(x.grad, expected.tolist())
    with pytest.raises(ValueError, match="expected 1 to 4"):
        checkpoint_sequential(layers, 5, x)


def test_forward_products_and_auxiliary_results():
    x = aten.tensor([0.5, -1.0, 2.0]).double()
    v = aten.tensor([1.0, 2.0, -1.0]).double()

    def f(x):
        return aten.sin(x) * aten.sum(x), x + 1

    expected = aten.cos(x) * aten.sum(x) * v + aten.sin(x) * aten.sum(v)
    value, along, aux = func.jvp(f, (x,), (v,), has_aux=True)
    assert aten.allclose(along, expected) and aten.equal(value, f(x)[0]) and aten.equal(aux, x + 1)
    assert not along.requires_grad and not aux.requires_grad
    only = lambda x: f(x)[0]  # noqa: E731
    assert aten.allclose(func.linearize(only, x)[1](v), expected)
    jacobian, aux = func.jacrev(f, has_aux=True)(x)
    assert aten.allclose(aten.mv(jacobian, v), expected) and aten.equal(aux, x + 1)
    assert aten.equal(func.jacfwd(only)(x), jacobian)
    value, pull_back, aux = func.vjp(f, x, has_aux=True)
    assert aten.allclose(pull_back(v)[0], aten.mv(aten.transpose(jacobian, 0, 1), v))
    assert aten.equal(aux, x + 1)
    both = func.jacrev(lambda x, y, z=1.0: x * y * z, argnums=(0, 1))(x, v, z=2.0)
    assert aten.allclose(both[0], aten.diag(2 * v)) and aten.allclose(both[1], aten.diag(2 * x))
    second = func.jvp(func.grad(lambda x: aten.sum(x**3)), (x,), (v,))[1]
    assert aten.allclose(second, 6 * x * v)


def test_transforms_of_nested_arguments_and_results():
    parameters = {"w": plain([2.0, 3.0]), "b": [plain([1.0])]}

    def f(p, x):
        return {"sum": (p["w"] * x).sum() + p["b"][0], "parts": (p["w"] * x,)}

    x = plain([10.0, 20.0])
    found = func.jacrev(f)(parameters, x)
    assert close(found["sum"]["w"], [[10, 20]]) and close(found["sum"]["b"][0], [[1]])
    assert close(found["parts"][0]["w"], [[10, 0], [0, 20]])
    assert close(found["parts"][0]["b"][0], [[0], [0]])
    by_both = func.jacrev(f, argnums=(0, 1))(parameters, x)["parts"][0]
    assert close(by_both[0]["w"], [[10, 0], [0, 20]]) and close(by_both[1], [[2, 0], [0, 3]])
    second = func.hessian(lambda p: (p["w"] * p["w"]).sum() * p["b"][0].sum())(parameters)
    assert close(second["w"]["w"], [[2, 0], [0, 2]]) and close(second["w"]["b"][0], [[4], [6]])
    assert close(
        func.vmap(func.jacrev(f), (None, 0))(parameters, plain([[1.0, 2.0], [3.0, 4.0]]))["sum"][
            "w"
        ][1],
        [[3, 4]],
    )

    value, pull_back = func.vjp(f, parameters, x)
    ones = {"parts": (plain([0.0, 1.0]),), "sum": plain([1.0])}  # in another order than the result
    of_p, of_x = pull_back(ones)
    assert close(value["parts"][0], [20, 60])
    assert close(of_p["w"], [10, 40]) and close(of_p["b"][0], [1]) and close(of_x, [2, 6])
    with pytest.raises(RuntimeError, match="vjp: got gradients of another structure"):
        pull_back(plain([1.0]))

    direction = {"b": [plain([5.0])], "w": plain([1.0, 0.0])}
    _, along = func.jvp(f, (parameters, x), (direction, plain([0.0, 1.0])))
    assert close(along["sum"], [10 + 5 + 3]) and close(along["parts"][0], [10, 3])
    with pytest.raises(RuntimeError, match="jvp: got tangents of another structure"):
        func.jvp(f, (parameters, x), (x, x))


def test_transforms_keep_the_history_of_what_functions_close_over():
    x, w = plain([1.0, 2.0]), leaf([3.0, 5.0])

    def closed(a):
        return a * a * w

    def alone(a):
        return a * a

    def history(f, *args):
        value, pull_back = func.vjp(f, *args)
        found = [
            func.grad(lambda a: f(a).sum())(*args),
            *func.value_and_grad(lambda a: f(a).sum())(*args),
            value,
            *pull_back(plain([1.0, 1.0])),
            *func.jvp(f, args, (x,)),
            func.jacrev(f)(*args),
            func.jacfwd(f)(*args),
        ]
        return {t.requires_grad for t in found}

    assert history(closed, x) == history(alone, w) == {True} and history(alone, x) == {False}
    with autograd.no_grad():
        assert history(closed, x) == history(alone, w) == {False}

    func.grad(lambda a: closed(a).sum())(x).square().sum().backward()
    assert close(w.grad, [24, 160])  # of sum((2 x w)^2): 8 x^2 w
    (of_hessian,) = autograd.grad(func.hessian(lambda a: (a**3 * w).sum())(x).sum(), w)
    assert close(of_hessian, [6, 12])
    of_inner = func.grad(lambda a: func.grad(lambda b: (b * b * a * w).sum())(x).sum())(x)
    assert close(autograd.grad(of_inner.sum(), w)[0], [2, 4])

    # Each result by itself: what only arguments make comes without history.
    gradient, (of_argument, of_both, itself) = func.grad(
        lambda a: (alone(a).sum() + w.sum(), (a * 3, a * w, w)), has_aux=True
    )(x)
    assert not gradient.requires_grad and not of_argument.requires_grad
    assert of_both.requires_grad and itself is w
    assert not func.grad(lambda a: func.grad(lambda b: (b * b * a).sum())(x).sum())(x).requires_grad
    _, pull_back = func.vjp(alone, x)
    assert pull_back(w)[0].requires_grad and func.jvp(alone, (x,), (w,))[1].requires_grad


def test_primals_are_a_tuple():
    x = plain([1.0, 2.0])
    for primals, tangents in [(x, (x,)), ((x,), [x])]:
        with pytest.raises(RuntimeError, match="expected a tuple"):
            func.jvp(lambda x: x**2, primals, tangents)
