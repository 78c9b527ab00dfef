"""Initialisers, gradient clipping, parameter vectors and containers."""

from __future__ import annotations

import math
from collections import OrderedDict

import numpy as np
import pytest

import argand_aten as aten
import argand_c10 as c10
import argand_nn as nn
from argand_nn import init


def filled(name, *shape, **options):
    c10.manual_seed(0)
    tensor = aten.empty(shape)
    assert getattr(init, name)(tensor, **options) is tensor
    return tensor.numpy()


def test_simple_fills():
    assert filled("zeros_", 2, 3).tolist() == [[0] * 3] * 2
    assert filled("ones_", 2).tolist() == [1, 1]
    assert filled("constant_", 2, val=2.5).tolist() == [2.5, 2.5]
    assert filled("eye_", 2, 3).tolist() == [[1, 0, 0], [0, 1, 0]]


@pytest.mark.parametrize(
    ("name", "options", "std", "bound"),
    [
        ("uniform_", {"a": -1, "b": 3}, 4 / math.sqrt(12), 3),
        ("normal_", {"mean": 0.0, "std": 2.0}, 2.0, None),
        ("xavier_uniform_", {}, math.sqrt(2 / 500), math.sqrt(6 / 500)),
        ("xavier_normal_", {"gain": 2}, 2 * math.sqrt(2 / 500), None),
        ("kaiming_uniform_", {}, math.sqrt(2 / 300), math.sqrt(6 / 300)),
        ("kaiming_normal_", {"mode": "fan_out", "nonlinearity": "relu"}, math.sqrt(2 / 200), None),
        ("trunc_normal_", {}, 0.87963, 2.0),
    ],
)
def test_distributions(name, options, std, bound):
    values = filled(name, 200, 300, **options)
    mean = 1.0 if name == "uniform_" else 0.0
    np.testing.assert_allclose(values.std(), std, rtol=0.02)
    np.testing.assert_allclose(values.mean(), mean, atol=0.02 * std)
    if bound is not None:
        assert np.abs(values).max() <= bound * (1 + 1e-6)
    other = filled(name, 200, 300, **options)
    assert np.array_equal(values, other)


@pytest.mark.parametrize("shape", [(8, 5), (5, 8), (6, 6), (4, 2, 3)])
def test_orthogonal(shape):
    matrix = filled("orthogonal_", *shape, gain=2.0).reshape(shape[0], -1) / 2.0
    gram = matrix @ matrix.T if matrix.shape[0] <= matrix.shape[1] else matrix.T @ matrix
    np.testing.assert_allclose(gram, np.eye(len(gram)), atol=1e-5)


def test_dirac_and_sparse():
    conv = nn.Conv2d(4, 4, 3, padding=1, groups=2, bias=False)
    init.dirac_(conv.weight, groups=2)
    x = aten.randn(1, 4, 5, 5)
    np.testing.assert_allclose(conv(x).detach().numpy(), x.numpy(), atol=1e-6)
    values = filled("sparse_", 20, 30, sparsity=0.25, std=1.0)
    assert ((values == 0).sum(0) == 5).all()


def test_gains_and_errors():
    assert repr(init.calculate_gain("conv2d")) == "1"
    assert init.calculate_gain("tanh") == 5 / 3
    assert init.calculate_gain("leaky_relu", 2.0) == pytest.approx(math.sqrt(2 / 5))
    with pytest.raises(ValueError, match="nonlinearity 'swish'"):
        init.calculate_gain("swish")
    with pytest.raises(ValueError, match=r"shape \[3\], expected at least 2"):
        init.xavier_uniform_(aten.empty(3))
    with pytest.raises(ValueError, match="mode 'fan'"):
        init.kaiming_normal_(aten.empty(3, 3), mode="fan")
    with pytest.raises(ValueError, match="expected 2 dimensions"):
        init.eye_(aten.empty(3))


def test_initialisers_record_nothing():
    parameter = nn.Parameter(aten.empty(4, 4))
    init.kaiming_uniform_(parameter)
    assert parameter.is_leaf
    assert parameter.requires_grad


def test_modules_start_from_the_seed():
    def weights():
        c10.manual_seed(3)
        return nn.Linear(5, 4).weight.detach().numpy().copy()

    assert np.array_equal(weights(), weights())
    assert np.abs(weights()).max() <= 1 / math.sqrt(5)


def with_grads(*grads):
    params = []
    for grad in grads:
        grad = aten.tensor(grad)
        parameter = nn.Parameter(aten.zeros(grad.shape))
        parameter.grad = grad
        params.append(parameter)
    return params


def test_clip_grad_norm():
    params = with_grads([3.0, 0.0], [[4.0]])
    params.append(nn.Parameter(aten.zeros(2)))
    assert float(nn.utils.clip_grad_norm_(params, 1.0)) == pytest.approx(5.0)
    np.testing.assert_allclose(params[0].grad.numpy(), [0.6, 0.0], rtol=1e-5)
    np.testing.assert_allclose(params[1].grad.numpy(), [[0.8]], rtol=1e-5)
    assert float(nn.utils.clip_grad_norm_(params, 10.0)) == pytest.approx(1.0, rel=1e-5)
    np.testing.assert_allclose(params[1].grad.numpy(), [[0.8]], rtol=1e-5)
    assert float(nn.utils.clip_grad_norm_(with_grads([3.0, -4.0]), 1, math.inf)) == 4.0
    assert float(nn.utils.clip_grad_norm_(with_grads([3.0, -4.0]), 1, 1)) == 7.0
    # With order 0 it is the number of tensors that are not zero.
    assert float(nn.utils.clip_grad_norm_(with_grads([3.0, -4.0]), 1, 0)) == 1.0
    assert float(nn.utils.clip_grad_norm_([], 1.0)) == 0.0
    with pytest.raises(RuntimeError, match="expected a finite one"):
        nn.utils.clip_grad_norm_(with_grads([math.nan]), 1.0, error_if_nonfinite=True)


def test_clip_grad_value():
    (p,) = with_grads([3.0, -0.1, -7.0])
    nn.utils.clip_grad_value_(p, 0.5)
    np.testing.assert_allclose(p.grad.numpy(), [0.5, -0.1, -0.5])


def test_parameter_vectors():
    model = nn.Linear(2, 3)
    vector = nn.utils.parameters_to_vector(model.parameters())
    assert vector.shape[0] == 9
    nn.utils.vector_to_parameters(aten.arange(9).to(c10.float32), model.parameters())
    assert model.weight.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert model.bias.tolist() == [6, 7, 8]
    with pytest.raises(ValueError, match="got 8 elements, expected 9"):
        nn.utils.vector_to_parameters(aten.zeros(8), model.parameters())
    with pytest.raises(TypeError, match="got list"):
        nn.utils.vector_to_parameters([1.0], model.parameters())


def test_sequential():
    first, second = nn.Linear(2, 3), nn.ReLU()
    model = nn.Sequential(first, second)
    assert model[0] is first
    assert model[-1] is second
    assert list(model[:1]) == [first]
    x = aten.randn(4, 2)
    np.testing.assert_array_equal(model(x).detach().numpy(), second(first(x)).detach().numpy())
    model.append(nn.Linear(3, 1)).insert(0, nn.Identity())
    assert [type(m).__name__ for m in model] == ["Identity", "Linear", "ReLU", "Linear"]
    assert list(model.state_dict()) == ["1.weight", "1.bias", "3.weight", "3.bias"]
    popped = model.pop(0)
    assert isinstance(popped, nn.Identity)
    del model[-1]
    assert len(model) == 2
    named = nn.Sequential({"a": first, "b": second})
    assert list(named.state_dict()) == ["a.weight", "a.bias"]
    assert named.a is first
    del named[0]
    assert list(named._modules) == ["b"]
    assert len(model + named) == 3
    with pytest.raises(IndexError, match="Sequential: got index 9"):
        model[9]


def test_lists_and_dicts():
    layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
    assert len(list(layers.parameters())) == 6
    assert len(layers[1:]) == 2
    layers += [nn.ReLU()]
    layers[0] = nn.Identity()
    assert [type(m).__name__ for m in layers] == ["Identity", "Linear", "Linear", "ReLU"]
    with pytest.raises(NotImplementedError, match="ModuleList.forward"):
        layers(1)
    assert repr(layers).split("\n")[1:-1] == [
        "  (0): Identity()",
        "  (1-2): 2 x Linear(in_features=2, out_features=2, bias=True)",
        "  (3): ReLU()",
    ]
    assert repr(nn.ModuleList()) == "ModuleList()"
    table = nn.ModuleDict({"a": nn.Linear(1, 1)})
    table["b"] = nn.ReLU()
    table.update([("c", nn.Identity())])
    assert list(table) == ["a", "b", "c"]
    assert "b" in table
    assert isinstance(table.pop("b"), nn.ReLU)
    assert list(table.state_dict()) == ["a.weight", "a.bias"]


def test_parameter_lists_and_dicts():
    values = nn.ParameterList([aten.ones(1), nn.Parameter(aten.zeros(2))])
    values.append(aten.ones(3))
    assert [tuple(p.shape) for p in values.parameters()] == [(1,), (2,), (3,)]
    assert isinstance(values[-1], nn.Parameter)
    table = nn.ParameterDict({"x": aten.ones(2)})
    table["y"] = aten.zeros(1)
    assert list(table.state_dict()) == ["x", "y"]
    assert table.pop("x").tolist() == [1.0, 1.0]
    assert "x" not in table
    with pytest.raises(KeyError, match="name of an attribute"):
        table["forward"] = aten.ones(1)


def test_parameter_dict_is_a_mapping():
    table = nn.ParameterDict({"a": aten.ones(1), "b": 3})
    other = nn.ParameterDict([("b", 4), ("c", aten.zeros(2))])
    falling = [("b", 1), ("a", 2)]
    assert list(nn.ParameterDict(dict(falling))) == [
        "a",
        "b",
    ]  # a plain dict: in the order of the names
    assert list(nn.ParameterDict(falling)) == ["b", "a"]
    assert list(nn.ParameterDict(nn.ParameterDict(OrderedDict(falling))).copy()) == ["b", "a"]
    joined = table | other
    assert list(joined) == ["a", "b", "c"] and joined["b"] == 4 and joined["a"] is table["a"]
    assert list(reversed(joined)) == ["c", "b", "a"]
    assert table.get("z") is None and table.get("z", 1) == 1 and table.setdefault("d", 5) == 5
    assert table.popitem() == ("d", 5) and list(table.fromkeys("xy", 0).items()) == [
        ("x", 0),
        ("y", 0),
    ]
    table |= other
    assert len(table) == 3
    table.clear()
    assert not list(table.parameters()) and "a" not in table
    with pytest.raises(KeyError, match="ParameterDict.popitem: it is empty"):
        table.popitem()


def test_sequential_products():
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    assert [type(m).__name__ for m in 2 * model] == ["Linear", "ReLU"] * 2
    model *= 3
    assert len(model) == 6 and model[4] is model[0]
    with pytest.raises(ValueError, match="got 0 times"):
        model * 0


def test_containers_take_what_can_be_iterated_over():
    weight = nn.Parameter(aten.ones(2, 3))
    parameters = nn.ParameterList()
    for wrong in (weight, aten.ones(2), 3):
        with pytest.raises(TypeError, match="extend should be called with an iterable"):
            parameters.extend(wrong)
    assert len(parameters) == 0 and len(parameters.extend([weight])) == 1
    with pytest.raises(TypeError, match="but got ReLU"):
        nn.ModuleList().extend(nn.ReLU())
    for mapping in (nn.ModuleDict(), nn.ParameterDict()):
        with pytest.raises(TypeError, match="update should be called with an iterable"):
            mapping.update(3)


@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv2d(1, 1, 1),
        nn.BatchNorm1d(2),
        nn.LSTM(2, 2),
        nn.RNNCell(2, 2),
        nn.EmbeddingBag(2, 2),
        nn.RMSNorm(2),
        nn.MaxPool2d(2),
        nn.AdaptiveMaxPool1d(1),
        nn.Upsample(scale_factor=2),
        nn.RReLU(),
        nn.Unflatten(1, (1, 1)),
        nn.ConstantPad1d(1, 1),
        nn.TransformerEncoderLayer(2, 1, 2),
        nn.TripletMarginLoss(),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_constants_name_attributes(layer):
    names = type(layer).__constants__
    assert names and all(hasattr(layer, name) for name in names)


def test_constants_are_extended_by_subclasses():
    class Scaled(nn.Linear):
        __constants__ = [*nn.Linear.__constants__, "scale"]

    assert Scaled.__constants__ == ["in_features", "out_features", "scale"]
    assert nn.ReLU6.__constants__ == ["min_val", "max_val", "inplace"]
    assert not hasattr(nn.Module, "__constants__")
