"""Functions that take by number what modules take by name, against PyTorch: results and gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import argand_aten as aten
import argand_nn as nn
from argand_c10 import Tensor, float16, int32, manual_seed
from argand_nn.functional import native
from argand_nn.utils.weight_norm import norm_except_dim

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
RNG = np.random.default_rng(0)


def array(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def both(value):
    """The arguments in both libraries; float32 arrays require gradients."""
    if isinstance(value, np.ndarray):
        ours, theirs = aten.tensor(value), torch.tensor(value)
        if value.dtype == np.float32:
            ours.requires_grad_(), theirs.requires_grad_()
        return ours, theirs
    if isinstance(value, list):
        pairs = [both(part) for part in value]
        return [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    return value, value


def flat(value):
    return [t for part in value for t in flat(part)] if isinstance(value, tuple | list) else [value]


def check(ours_function, theirs_function, *args):
    pairs = [both(arg) for arg in args]
    ours = ours_function(*[pair[0] for pair in pairs])
    theirs = theirs_function(*[pair[1] for pair in pairs])
    for a, b in zip(flat(ours), flat(theirs), strict=True):
        assert tuple(a.shape) == tuple(b.shape)
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-4, atol=1e-5)
    sum((t * t).sum() for t in flat(ours)).backward()
    sum((t * t).sum() for t in flat(theirs)).backward()
    for a, b in zip(flat([p[0] for p in pairs]), flat([p[1] for p in pairs]), strict=True):
        if isinstance(a, Tensor) and a.requires_grad:
            assert (a.grad is None) == (b.grad is None)
            if a.grad is not None:
                np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-3, atol=1e-4)


def weights(name, layers, directions, features, size, biases, projection=0):
    gates, output = GATES[name] * size, projection or size
    result = []
    for layer in range(layers):
        width = features if layer == 0 else output * directions
        for _ in range(directions):
            result += [array(gates, width), array(gates, output)]
            result += [array(gates), array(gates)] if biases else []
            result += [array(projection, size)] if projection else []
    return [weight * np.float32(0.4) for weight in result]  # rnn_relu's states do not grow


@pytest.mark.parametrize("biases", [True, False])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("name", [*GATES, "projected lstm"])
def test_recurrent_layers(name, bidirectional, packed, biases):
    projection = 2 if name.startswith("projected") else 0
    name = name.split()[-1]
    layers, directions = 2, 2 if bidirectional else 1
    hx = array(layers * directions, 3, projection or 4)
    state = [hx, array(layers * directions, 3, 4)] if name == "lstm" else hx
    params = weights(name, layers, directions, 5, 4, biases, projection)
    common = [state, params, biases, layers, 0.0, False, bidirectional]
    functions = getattr(native, name), getattr(torch, name)
    if packed:
        check(*functions, array(6, 5), np.array([3, 2, 1]), *common)
    else:
        check(*functions, array(7, 3, 5), *common, False)
        check(*functions, array(3, 7, 5), *common, True)


@pytest.mark.parametrize("biases", [True, False])
@pytest.mark.parametrize("name", GATES)
def test_cells(name, biases):
    cell = name + "_cell"
    state = [array(3, 4), array(3, 4)] if name == "lstm" else array(3, 4)
    params = weights(name, 1, 1, 5, 4, biases)
    check(getattr(native, cell), getattr(torch, cell), array(3, 5), state, *params)


def test_recurrent_arguments_by_name():
    x, state = aten.ones([2, 1, 3]), aten.zeros([1, 1, 3])
    args = {"input": x, "hx": state, "params": [aten.ones([9, 3])] * 2, "has_biases": False}
    rest = {"num_layers": 1, "dropout": 0.0, "train": False, "bidirectional": False}
    output, last = native.gru(**args, **rest, batch_first=False)
    assert aten.equal(output[-1:], last)
    with pytest.raises(TypeError, match="gru: got 0 arguments"):
        native.gru(**args, **rest)
    with pytest.raises(RuntimeError, match="expected h and c"):
        native.lstm(x, [state], [], False, 1, 0.0, False, False, False)
    with pytest.raises(RuntimeError, match="got 2 weights, expected 4"):
        native.gru(x, state, args["params"], True, 1, 0.0, False, False, False)
    with pytest.raises(RuntimeError, match="each of 2 layers"):
        native.gru(x, state, args["params"] * 2, False, 2, 0.0, False, False, False)
    with pytest.raises(RuntimeError, match="batch of 2"):
        native.gru_cell(aten.ones([2, 3]), aten.ones([1, 3]), *args["params"])


STEPS = aten.tensor([2, 1])


@pytest.mark.parametrize(
    ("message", "error", "data", "sizes", "hx"),
    [
        ("each of 2 sequences", RuntimeError, [3, 2, 5], None, [1, 3, 4]),
        ("each of 2 sequences", RuntimeError, [3, 2, 5], None, [1, 1, 4]),
        ("each of 2 sequences", RuntimeError, [3, 5], STEPS, [1, 1, 4]),
        ("sizes \\[1", RuntimeError, [3, 2, 5], None, [1, 2, 1]),
        ("sizes \\[3", RuntimeError, [3, 2, 5], None, [1, 2, 3]),
        ("no steps", RuntimeError, [0, 2, 5], None, [1, 2, 4]),
        ("no steps", RuntimeError, [0, 5], aten.tensor([], dtype=int32), [1, 2, 4]),
        ("do not grow", RuntimeError, [3, 5], aten.tensor([1, 2]), [1, 1, 4]),
        ("that of places, 4", RuntimeError, [4, 5], STEPS, [1, 2, 4]),
        ("steps, batch", IndexError, [3, 5], None, [1, 2, 4]),
        ("places, features", IndexError, [3, 2, 5], STEPS, [1, 2, 4]),
        ("steps, batch", IndexError, [3, 2, 5], None, [2, 4]),
    ],
)
@pytest.mark.parametrize("name", GATES)
def test_bad_states(name, message, error, data, sizes, hx):
    state = aten.ones(hx)
    params = [aten.tensor(weight) for weight in weights(name, 1, 1, 5, 4, False)]
    given = [aten.ones(data), *([] if sizes is None else [sizes])]
    common = [(state, state) if name == "lstm" else state, params, False, 1, 0.0, False, False]
    with pytest.raises(error, match=message):
        getattr(native, name)(*given, *common, *([False] if sizes is None else []))
    if name == "lstm" and hx[-1] == 1:  # a memory of one column would spread over all
        with pytest.raises(RuntimeError, match="got 2 weights, expected 3"):
            native.lstm(*given, (aten.ones([1, 2, 4]), state), *common[1:], False)
    if sizes is None and data[0] and hx[-1] != 4:
        inputs = aten.ones([2, 5]), [state[0]] * 2 if name == "lstm" else state[0]
        with pytest.raises(RuntimeError, match="those of the weights"):
            getattr(native, name + "_cell")(*inputs, *params)


def test_no_layers():
    with pytest.raises(RuntimeError, match="no layers"):
        native.gru(aten.ones([3, 2, 5]), aten.ones([0, 2, 4]), [], True, 0, 0.0, *[False] * 3)


@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_losses(reduction):
    x, y, z, signs = array(4, 6), array(4, 6), array(4, 6), np.sign(array(4))
    signs = signs.astype(np.float64).astype(np.int64)
    for name, args in {
        "cosine_embedding_loss": [x, y, signs, 0.1, reduction],
        "hinge_embedding_loss": [x, np.sign(y).astype(np.float64), 0.5, reduction],
        "margin_ranking_loss": [x, y, np.sign(z).astype(np.float64), 0.5, reduction],
        "poisson_nll_loss": [x, abs(y), True, True, 1e-8, reduction],
        "triplet_margin_loss": [x, y, z, 0.7, 2.0, 1e-6, True, reduction],
    }.items():
        check(getattr(native, name), getattr(torch, name), *args)
    check(native.hinge_embedding_loss, torch.hinge_embedding_loss, x, np.sign(y).astype(np.float64))


@pytest.mark.parametrize("dim", [-1, 0, 1, 2])
@pytest.mark.parametrize("pow", [1, 2, 3])
def test_norm_except_dim(pow, dim):
    check(norm_except_dim, torch.norm_except_dim, array(3, 4, 5), pow, dim)
    if dim < 1:
        check(norm_except_dim, torch.norm_except_dim, array(3), pow, dim)


def test_instance_norm():
    settings = [True, 0.1, 1e-5, False]
    check(
        native.instance_norm,
        torch.instance_norm,
        array(2, 3, 4),
        array(3),
        array(3),
        None,
        None,
        *settings,
    )
    with pytest.raises(RuntimeError, match="running_mean"):
        native.instance_norm(aten.ones([2, 3, 4]), None, None, None, None, False, 0.1, 1e-5, False)


@pytest.mark.parametrize(
    "name", ["dropout_", "alpha_dropout", "feature_dropout", "feature_alpha_dropout"]
)
def test_dropouts(name):
    ones = aten.ones([50, 40, 3])
    manual_seed(0)
    result = getattr(native, name)(ones.clone(), 0.3, True)
    kept = (result == result.max()).float()
    assert abs(kept.mean().item() - 0.7) < 0.05
    if name.startswith("feature"):
        assert aten.equal(kept.amin(2), kept.amax(2))
    assert aten.equal(getattr(native, name)(ones, 0.3, False), ones)
    if not name.endswith("_"):
        written = ones.clone()
        manual_seed(0)
        assert getattr(native, name + "_")(written, 0.3, True) is written
        assert aten.equal(written, result)
    else:
        assert getattr(native, name)(ones, 0.3, True) is ones


@pytest.mark.parametrize("name", ["feature_dropout", "feature_alpha_dropout"])
def test_dropouts_of_no_channels(name):
    function, ones = getattr(native, name), aten.ones([5])
    assert function(ones, 0.0, True).tolist() == function(ones, 0.5, False).tolist() == [1.0] * 5
    assert function(ones, 1.0, True).tolist() == [0.0] * 5
    with pytest.raises(RuntimeError, match="at least 2 dimensions"):
        function(ones, 0.5, True)
    with pytest.raises(RuntimeError, match="between 0 and 1"):
        function(ones, 1.5, False)


GROUPED = {
    "rows": ((8, 4), (3, 4, 5)),
    "columns": ((3, 5, 4), (4, 8)),
    "inner": ((5, 8), (8, 4)),
}


@pytest.mark.parametrize("kind", GROUPED)
def test_grouped_products(kind):
    offsets, shapes = [2, 2, 8], GROUPED[kind]
    ours, theirs = both([array(*shape) for shape in shapes])
    result = nn.functional.grouped_mm(*ours, offs=aten.tensor(offsets, dtype=int32))
    result.square().sum().backward()
    begins = [0, *offsets]
    groups = [slice(*ends) for ends in zip(begins, offsets, strict=False)]
    a, b = theirs
    if kind == "rows":
        expected = torch.cat([a[group] @ b[i] for i, group in enumerate(groups)])
    elif kind == "columns":
        expected = torch.cat([a[i] @ b[:, group] for i, group in enumerate(groups)], 1)
    else:
        expected = torch.stack([a[:, group] @ b[group] for group in groups])
    expected.square().sum().backward()
    pairs = [(result, expected), *[(x.grad, y.grad) for x, y in zip(ours, theirs, strict=True)]]
    for x, y in pairs:
        np.testing.assert_allclose(x.detach().numpy(), y.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_grouped_products_leave_no_row_undefined():
    product = nn.functional.grouped_mm(
        aten.ones([5, 4]), aten.ones([2, 4, 3]), offs=aten.tensor([1, 3], dtype=int32)
    )
    assert product.tolist() == [[4.0] * 3] * 3 + [[0.0] * 3] * 2
    a, b = aten.ones([2, 3, 4]), aten.ones([2, 4, 5])
    assert aten.equal(nn.functional.grouped_mm(a, b), a @ b)


def test_no_groups():
    none = aten.tensor([], dtype=int32)
    a, b = aten.ones([5, 4]), aten.ones([0, 4, 3])
    assert aten.equal(nn.functional.grouped_mm(a, b, offs=none), aten.zeros([5, 3]))
    assert nn.functional.grouped_mm(a, aten.ones([4, 3]), offs=none).shape == (0, 5, 3)
    rows = nn.functional.grouped_mm(aten.ones([0, 5, 4]), aten.ones([4, 3]), offs=none)
    assert aten.equal(rows, aten.zeros([5, 3]))


@pytest.mark.parametrize("ends", [[4, 2], [2, 6], [-1, 2]])
@pytest.mark.parametrize("shapes", [[(5, 4), (2, 4, 3)], [(2, 3, 4), (4, 5)], [(4, 5), (5, 3)]])
def test_ends_outside_of_matrices(shapes, ends):
    with pytest.raises(RuntimeError, match="between 0 and 5"):
        nn.functional.grouped_mm(
            *[aten.ones(shape) for shape in shapes], offs=aten.tensor(ends, dtype=int32)
        )


@pytest.mark.parametrize(
    ("message", "shapes", "options"),
    [
        ("inner sizes 4 and 3", [(5, 4), (2, 3, 3)], {"offs": aten.tensor([5], dtype=int32)}),
        ("without offs", [(5, 4), (2, 4, 3)], {}),
        ("with offs", [(2, 5, 4), (2, 4, 3)], {"offs": aten.tensor([5, 5], dtype=int32)}),
        ("expected 1-d int32", [(5, 4), (2, 4, 3)], {"offs": aten.tensor([5, 5])}),
        ("numbers of groups", [(5, 4), (2, 4, 3)], {"offs": aten.tensor([5], dtype=int32)}),
        ("2 or 3 dimensions", [(4,), (2, 4, 3)], {}),
        ("got a bias", [(2, 5, 4), (2, 4, 3)], {"bias": aten.ones([3])}),
        ("got out_dtype", [(2, 5, 4), (2, 4, 3)], {"out_dtype": float16}),
    ],
)
def test_bad_groups(message, shapes, options):
    with pytest.raises(RuntimeError, match=message):
        nn.functional.grouped_mm(*[aten.ones(shape) for shape in shapes], **options)
