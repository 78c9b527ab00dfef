"""Parametrizations, older norms by hooks, and calls with other parameters."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import argand_aten as aten
import argand_c10 as c10
import argand_nn as nn
from argand_autograd import gradcheck
from argand_nn.utils import parametrizations, parametrize, stateless

RNG = np.random.default_rng(0)


def array(tensor):
    return tensor.detach().numpy()


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).t()


class Exp(nn.Module):
    def forward(self, x):
        return aten.exp(x)

    def right_inverse(self, y):
        return aten.log(y)


class Product(nn.Module):
    """A matrix as a product of two: a parametrization of several tensors."""

    def forward(self, a, b):
        return a @ b

    def right_inverse(self, y):
        return y, aten.eye(y.shape[1])


def test_a_parametrization():
    layer = nn.Linear(3, 3)
    parameter, start = layer.weight, array(layer.weight).copy()
    assert parametrize.register_parametrization(layer, "weight", Symmetric()) is layer
    assert repr(layer).startswith("ParametrizedLinear(\n  in_features=3")
    assert list(layer.state_dict()) == ["bias", "parametrizations.weight.original"]
    assert layer.parametrizations.weight.original is parameter
    expected = np.triu(start) + np.triu(start, 1).T
    np.testing.assert_array_equal(array(layer.weight), expected)
    x = RNG.standard_normal((4, 3)).astype(np.float32)
    layer(aten.tensor(x)).sum().backward()
    full = np.ones((4, 3)).T @ x
    np.testing.assert_allclose(array(parameter.grad), np.triu(full) + np.triu(full.T, 1), rtol=1e-5)
    with pytest.raises(RuntimeError, match="Symmetric: got an assignment"):
        layer.weight = aten.ones(3, 3)
    assert parametrize.is_parametrized(layer) and parametrize.is_parametrized(layer, "weight")
    assert not parametrize.is_parametrized(layer, "bias")
    assert parametrize.type_before_parametrizations(layer) is nn.Linear
    twin = copy.deepcopy(layer)
    np.testing.assert_array_equal(array(twin.weight), expected)
    with pytest.raises(RuntimeError, match="cannot be pickled"):
        pickle.dumps(layer)
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear and layer.weight is parameter
    np.testing.assert_array_equal(array(layer.weight), expected)
    parametrize.remove_parametrizations(twin, "weight", leave_parametrized=False)
    np.testing.assert_array_equal(array(twin.weight), start)
    assert type(nn.Linear(1, 1)) is nn.Linear and not hasattr(nn.Linear, "weight")


def test_chains_and_assignment():
    layer = nn.Linear(3, 3)
    layer.weight.data = aten.rand(3, 3) + 0.5
    before = array(layer.weight).copy()
    parametrize.register_parametrization(layer, "weight", Exp())
    np.testing.assert_allclose(array(layer.weight), before, rtol=1e-5)
    np.testing.assert_allclose(
        array(layer.parametrizations.weight.original), np.log(before), rtol=1e-5
    )
    parametrize.register_parametrization(layer, "weight", Symmetric())
    np.testing.assert_allclose(
        array(layer.weight), np.triu(before) + np.triu(before, 1).T, rtol=1e-5
    )
    other = nn.Linear(3, 3)
    parametrize.register_parametrization(other, "weight", Exp(), unsafe=True)
    other.weight = aten.full((3, 3), 2.0)
    np.testing.assert_allclose(array(other.parametrizations.weight.original), np.log(2), rtol=1e-6)
    np.testing.assert_allclose(array(other.weight), 2.0, rtol=1e-6)
    third = nn.Linear(3, 3)
    parametrize.transfer_parametrizations_and_params(layer, third)
    np.testing.assert_array_equal(array(third.weight), array(layer.weight))
    assert third.parametrizations.weight[0] is not layer.parametrizations.weight[0]


def test_a_second_one_leaves_what_is_learned():
    class Skew(nn.Module):
        def forward(self, x):
            return x.triu(1) - x.triu(1).t()

    class Cayley(nn.Module):
        def forward(self, x):
            return aten.inverse(aten.eye(3) - x) @ (aten.eye(3) + x)

        def right_inverse(self, x):
            return aten.inverse(x + aten.eye(3)) @ (x - aten.eye(3))

    class Wide(nn.Module):
        def forward(self, x):
            return x

        def right_inverse(self, x):
            return x.double()

    layer = nn.Linear(3, 3)
    start = array(layer.weight).copy()
    parametrize.register_parametrization(layer, "weight", Skew())
    parametrize.register_parametrization(layer, "weight", Cayley())
    np.testing.assert_array_equal(array(layer.parametrizations.weight.original), start)
    np.testing.assert_allclose(array(layer.weight @ layer.weight.t()), np.eye(3), atol=1e-5)
    with pytest.raises(ValueError, match="float64, expected"):
        parametrize.register_parametrization(layer, "weight", Wide())


def test_several_originals_and_buffers():
    layer = nn.Linear(4, 3)
    before = array(layer.weight).copy()
    parametrize.register_parametrization(layer, "weight", Product())
    assert layer.parametrizations.weight.original1.shape == (4, 4)
    np.testing.assert_allclose(array(layer.weight), before, rtol=1e-6)
    with pytest.raises(ValueError, match="expected True, because what is learned are several"):
        parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    parametrize.remove_parametrizations(layer, "weight")
    assert isinstance(layer.weight, nn.Parameter) and len(list(layer.parameters())) == 2
    norm = nn.BatchNorm1d(3)
    parametrize.register_parametrization(norm, "running_var", Exp())
    assert "parametrizations.running_var.original" in dict(norm.named_buffers())
    np.testing.assert_allclose(array(norm.running_var), 1.0)


def test_cached_values():
    layer = nn.Linear(3, 3)
    parametrize.register_parametrization(layer, "weight", Symmetric())
    with parametrize.cached():
        first = layer.weight
        assert layer.weight is first
        with parametrize.cached():
            assert layer.weight is first
        assert layer.weight is first
    assert layer.weight is not first


def test_refused_parametrizations():
    class Longer(nn.Module):
        def forward(self, x):
            return aten.cat([x, x])

    layer = nn.Linear(3, 3)
    with pytest.raises(ValueError, match=r"parametrization: got \[6, 3\] in argand.float32"):
        parametrize.register_parametrization(layer, "weight", Longer())
    assert type(layer) is nn.Linear and layer.weight.shape == (3, 3)
    with pytest.raises(ValueError, match="has no parameter or buffer 'scale'"):
        parametrize.register_parametrization(layer, "scale", Exp())
    parametrize.register_parametrization(layer, "weight", Longer(), unsafe=True)
    assert layer.weight.shape == (6, 3)


@pytest.mark.parametrize("dim", [0, 1, None])
@pytest.mark.parametrize("kind", ["parametrization", "hook"])
def test_weight_norm(dim, kind):
    layer = nn.Linear(4, 3)
    v = array(layer.weight).copy()
    axes = None if dim is None else (1 - dim,)
    g = np.linalg.norm(v) if dim is None else np.sqrt((v * v).sum(axes, keepdims=True))
    if kind == "hook":
        nn.utils.weight_norm(layer, dim=dim)
        assert sorted(layer.state_dict()) == ["bias", "weight_g", "weight_v"]
        parts = layer.weight_g, layer.weight_v
    else:
        parametrizations.weight_norm(layer, dim=dim)
        parts = layer.parametrizations.weight.originals()
    np.testing.assert_allclose(array(parts[0]), g, rtol=1e-6)
    parts[0].data = parts[0].data * 2
    x = RNG.standard_normal((2, 4)).astype(np.float32)
    expected = x @ (2 * v).T + array(layer.bias)
    np.testing.assert_allclose(array(layer(aten.tensor(x))), expected, rtol=1e-4, atol=1e-5)
    if kind == "hook":
        newer = parametrizations.weight_norm(nn.Linear(4, 3), dim=dim)
        newer.load_state_dict(layer.state_dict())
        np.testing.assert_array_equal(array(newer.weight), array(layer.weight))
        nn.utils.remove_weight_norm(layer)
        np.testing.assert_allclose(array(layer.weight), 2 * v, rtol=1e-5)
        with pytest.raises(ValueError, match="'weight' of Linear has no weight norm"):
            nn.utils.remove_weight_norm(layer)


@pytest.mark.parametrize("kind", ["parametrization", "hook"])
def test_spectral_norm(kind):
    layer = nn.Conv2d(3, 5, 2)
    matrix = array(layer.weight).reshape(5, -1).copy()
    wrap = parametrizations.spectral_norm if kind == "parametrization" else nn.utils.spectral_norm
    wrap(layer, n_power_iterations=50)
    x = aten.randn(2, 3, 4, 4)
    for _ in range(3):
        layer(x).sum().backward()
    expected = matrix / np.linalg.svd(matrix, compute_uv=False)[0]
    np.testing.assert_allclose(array(layer.weight).reshape(5, -1), expected, rtol=1e-3, atol=1e-5)
    layer.eval()
    state = {k: array(v).copy() for k, v in layer.state_dict().items()}
    layer(x)
    for key, value in layer.state_dict().items():
        np.testing.assert_array_equal(array(value), state[key])
    if kind == "hook":
        nn.utils.remove_spectral_norm(layer)
        assert sorted(layer.state_dict()) == ["bias", "weight"]
        np.testing.assert_allclose(
            array(layer.weight).reshape(5, -1), expected, rtol=1e-3, atol=1e-5
        )


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3)])
@pytest.mark.parametrize("map", ["matrix_exp", "cayley", "householder"])
def test_orthogonal(shape, map):
    layer = nn.Linear(*shape, dtype=c10.float64)
    parametrizations.orthogonal(layer, orthogonal_map=map)
    away = 0.3 * aten.randn(*layer.weight.shape).double()
    if map == "householder":  # the diagonal is signs, vectors lie on the longer side
        away = away.tril(-1) if shape[1] >= shape[0] else away.triu(1)
    layer.parametrizations.weight.original.data += away

    def check():
        w = array(layer.weight)
        product = w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w
        np.testing.assert_allclose(product, np.eye(min(shape)), atol=1e-10)

    check()
    optimizer = nn_optimizer(layer)
    for _ in range(3):
        optimizer.zero_grad()
        (layer(aten.ones(2, shape[0], dtype=c10.float64)) ** 2).sum().backward()
        optimizer.step()
        check()
    target = np.linalg.qr(RNG.standard_normal((max(shape), min(shape))))[0]
    target = target if layer.weight.shape[0] >= layer.weight.shape[1] else target.T
    layer.weight = aten.tensor(target)
    np.testing.assert_allclose(array(layer.weight), target, atol=1e-10)
    made = layer.parametrizations.weight[0]
    x = aten.tensor(RNG.standard_normal(target.shape)).requires_grad_()
    if map != "householder":  # whose diagonal is signs
        assert gradcheck(made, (x,))


def nn_optimizer(layer):
    from argand_nn.optim import SGD

    return SGD(layer.parameters(), lr=0.1)


def test_orthogonal_errors():
    with pytest.raises(ValueError, match=r"orthogonal: got a tensor of shape \[3\]"):
        parametrizations.orthogonal(nn.Linear(2, 3), "bias")
    with pytest.raises(ValueError, match="orthogonal_map 'svd'"):
        parametrizations.orthogonal(nn.Linear(2, 3), orthogonal_map="svd")
    with pytest.raises(ValueError, match="Linear has no parameter or buffer 'w'"):
        parametrizations.spectral_norm(nn.Linear(2, 3), "w")


def test_functional_call():
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    before = {k: array(v).copy() for k, v in model.state_dict().items()}
    given = {
        "0.weight": aten.ones(2, 3).requires_grad_(),
        "1.running_mean": aten.zeros(2),
    }
    x = RNG.standard_normal((5, 3)).astype(np.float32)
    out = stateless.functional_call(model, given, aten.tensor(x))
    h = x.sum(1, keepdims=True) + before["0.bias"]
    np.testing.assert_allclose(
        array(out), (h - h.mean(0)) / np.sqrt(h.var(0) + 1e-5), rtol=1e-3, atol=1e-4
    )
    out.sum().backward()
    assert given["0.weight"].grad is not None and model[0].weight.grad is None
    np.testing.assert_allclose(
        array(given["1.running_mean"]), 0.1 * h.mean(0), rtol=1e-4, atol=1e-6
    )
    np.testing.assert_array_equal(array(model[0].weight), before["0.weight"])
    np.testing.assert_array_equal(array(model[1].running_mean), before["1.running_mean"])
    own = dict(model.state_dict(keep_vars=True))
    more = {**own, "2.weight": aten.ones(1)}
    stateless.functional_call(model, more, aten.tensor(x))
    assert more.keys() == own.keys() | {"2.weight"}
    with pytest.raises(RuntimeError, match=r"got no \[\], and unexpected \['2.weight'\]"):
        stateless.functional_call(model, more, aten.tensor(x), strict=True)
    with pytest.raises(RuntimeError, match="got no .*'0.bias'"):
        stateless.functional_call(model, given, aten.tensor(x), strict=True)
    with pytest.raises(ValueError, match="in several mappings"):
        stateless.functional_call(model, (given, given), aten.tensor(x))


def test_functional_call_of_tied_weights():
    model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    model[1].weight = model[0].weight
    x, double = aten.ones(1, 2), {"0.weight": 2 * aten.eye(2)}
    assert array(stateless.functional_call(model, double, x)).tolist() == [[4.0, 4.0]]
    apart = stateless.functional_call(model, double, x, tie_weights=False)
    np.testing.assert_allclose(array(apart), array(model[1](2 * x)), rtol=1e-6)
    two = {**double, "1.weight": aten.zeros(2, 2)}
    with pytest.raises(ValueError, match=r"several values for \['0.weight', '1.weight'\]"):
        stateless.functional_call(model, two, x)
    apart = stateless.functional_call(model, two, x, tie_weights=False)
    assert array(apart).tolist() == [[0.0, 0.0]]
    assert model[1].weight is model[0].weight
    stacked, buffers = stateless.stack_module_state([nn.BatchNorm1d(3) for _ in range(4)])
    assert stacked["weight"].shape == (4, 3) and stacked["weight"].requires_grad
    assert buffers["running_mean"].shape == (4, 3)
