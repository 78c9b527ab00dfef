"""Functions and modules against closed forms in NumPy, and their error texts."""

from __future__ import annotations

import math

import numpy as np
import pytest

import argand_aten as aten
import argand_c10 as c10
import argand_nn as nn
import argand_nn.functional as F
from argand_autograd import grad, no_grad

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def tensor(array, requires_grad=False):
    return aten.tensor(np.asarray(array).tolist(), requires_grad=requires_grad)


def close(ours, expected, rtol=1e-5, atol=1e-6):
    np.testing.assert_allclose(ours.detach().numpy(), expected, rtol=rtol, atol=atol)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "gelu": lambda x: x * np.vectorize(lambda v: 0.5 * (1 + math.erf(v / math.sqrt(2))))(x),
    "silu": lambda x: x * sigmoid(x),
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "sigmoid": sigmoid,
    "tanh": np.tanh,
    "logsigmoid": lambda x: -np.log1p(np.exp(-x)),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "celu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    "softplus": lambda x: np.log1p(np.exp(x)),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "tanhshrink": lambda x: x - np.tanh(x),
    "hardtanh": lambda x: np.clip(x, -1, 1),
    "hardsigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation(name):
    x = np.concatenate([normal(30) * 3, np.float32([0, -0.0, 3, -3, 6, 15, -15])])
    close(getattr(F, name)(tensor(x)), ACTIVATIONS[name](x.astype(np.float64)), 1e-4, 1e-5)


@pytest.mark.parametrize(
    "name",
    ["relu", "silu", "mish", "leaky_relu", "elu", "celu", "selu", "hardtanh", "hardsigmoid"],
)
def test_activation_in_place(name):
    x = normal(12)
    target = tensor(x)
    assert getattr(F, name)(target, inplace=True) is target
    close(target, ACTIVATIONS[name](x.astype(np.float64)), 1e-4, 1e-5)


def test_threshold_lets_nan_through():
    x = aten.tensor([math.nan, 1.0, 0.5, -1.0], requires_grad=True)
    out = F.threshold(x, 0.5, 7.0)
    out.sum().backward()
    np.testing.assert_array_equal(out.detach().numpy(), [math.nan, 1, 7, 7])
    assert x.grad.tolist() == [1, 1, 0, 0]


def test_activations_do_not_overflow():
    x = aten.tensor([-200.0, 200.0], requires_grad=True)
    for name in ("silu", "mish", "elu", "softplus", "logsigmoid", "sigmoid", "gelu"):
        x.grad = None
        out = getattr(F, name)(x)
        out.sum().backward()
        assert np.isfinite(out.detach().numpy()).all(), name
        assert np.isfinite(x.grad.numpy()).all(), name


def test_softmax_family():
    x = normal(3, 4)
    close(F.softmax(tensor(x), 1), softmax(x, 1))
    close(F.softmin(tensor(x), 0), softmax(-x, 0))
    close(F.log_softmax(tensor(x), -1), np.log(softmax(x, -1)))
    assert F.softmax(tensor(x), 1, dtype=c10.float64).dtype == c10.float64
    with pytest.warns(UserWarning, match="softmax: got dim=None"):
        F.softmax(tensor(x))
    c10.manual_seed(0)
    hard = F.gumbel_softmax(tensor(x), hard=True)
    assert sorted(set(np.round(hard.numpy().reshape(-1), 5).tolist())) == [0.0, 1.0]
    close(hard.sum(-1), np.ones(3))
    draws = F.gumbel_softmax(aten.log(aten.tensor([[0.2, 0.8]])).expand(4000, 2), hard=True)
    assert abs(float(draws.mean(0)[1]) - 0.8) < 0.03


def test_linear_maps():
    x, w, b = normal(4, 3), normal(5, 3), normal(5)
    close(F.linear(tensor(x), tensor(w), tensor(b)), x @ w.T + b, 1e-4)
    close(F.linear(tensor(x), tensor(w[0])), x @ w[0], 1e-4, 1e-5)
    with pytest.raises(RuntimeError, match="weight"):
        F.linear(tensor(x), tensor(w[0]), tensor(b[0]))
    u, v, weight = normal(6, 2, 3), normal(6, 2, 4), normal(5, 3, 4)
    expected = np.einsum("...i,oij,...j->...o", u, weight, v) + b
    close(F.bilinear(tensor(u), tensor(v), tensor(weight), tensor(b)), expected, 1e-4, 1e-5)
    with pytest.raises(RuntimeError, match="input batch dimensions do not match"):
        F.bilinear(tensor(u), tensor(v[:1]), tensor(weight))
    a, c = normal(4, 5), normal(4, 5)
    cosine = (a * c).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(c, axis=1)
    close(F.cosine_similarity(tensor(a), tensor(c)), cosine, 1e-4)
    huge = tensor(a).float() * 1e30
    assert not F.cosine_similarity(huge, huge).isnan().any()  # though the norms overflow
    close(F.pairwise_distance(tensor(a), tensor(c)), np.linalg.norm(a - c + 1e-6, axis=1), 1e-4)
    close(F.normalize(tensor(a)), a / np.linalg.norm(a, axis=1, keepdims=True), 1e-4)
    assert F.one_hot(aten.tensor([1, 0]), 3).tolist() == [[0, 1, 0], [1, 0, 0]]


def naive_conv2d(x, w, stride, padding, dilation, groups):
    x = np.pad(x, [(0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2])
    n, o = x.shape[0], w.shape[0]
    kh, kw = w.shape[2:]
    h = (x.shape[2] - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    wd = (x.shape[3] - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    out = np.zeros((n, o, h, wd))
    channels = w.shape[1]
    for oc in range(o):
        first = oc // (o // groups) * channels
        for i in range(h):
            for j in range(wd):
                top, left = i * stride[0], j * stride[1]
                window = x[
                    :,
                    first : first + channels,
                    top : top + dilation[0] * (kh - 1) + 1 : dilation[0],
                    left : left + dilation[1] * (kw - 1) + 1 : dilation[1],
                ]
                out[:, oc, i, j] = (window * w[oc]).sum((1, 2, 3))
    return out


def test_convolutions():
    x, w, b = normal(2, 4, 7, 6), normal(6, 2, 3, 2), normal(6)
    args = ((2, 1), (1, 2), (1, 2), 2)
    expected = naive_conv2d(x, w, *args) + b[:, None, None]
    close(F.conv2d(tensor(x), tensor(w), tensor(b), *args), expected, 1e-4, 1e-5)
    close(F.conv2d(tensor(x[0]), tensor(w), tensor(b), *args), expected[0], 1e-4, 1e-5)
    same = naive_conv2d(np.pad(x, [(0, 0), (0, 0), (1, 1), (0, 1)]), w, (1, 1), (0, 0), (1, 1), 2)
    close(F.conv2d(tensor(x), tensor(w), padding="same", groups=2), same, 1e-4, 1e-5)
    line, kernel = normal(2, 3, 9), normal(4, 3, 3)
    expected = naive_conv2d(line[:, :, None], kernel[:, :, None], (1, 2), (0, 1), (1, 1), 1)[
        :, :, 0
    ]
    close(F.conv1d(tensor(line), tensor(kernel), None, 2, 1), expected, 1e-4, 1e-5)


@pytest.mark.parametrize("length, kernel", [(1000, 600), (5000, 4900)])
def test_gradients_of_long_kernels_read_nothing_but_the_input(length, kernel):
    x, w = tensor(normal(1, 2, length)), tensor(normal(2, 1, kernel), requires_grad=True)
    left = [aten.full((n,), math.nan) for n in (length, length + 300, 2 * length)]
    del left  # in memory that is taken next
    F.conv1d(x, w, groups=2).sum().backward()
    assert aten.isfinite(w.grad).all()


def test_convolution_errors():
    x = tensor(normal(1, 2, 5, 5))
    with pytest.raises(RuntimeError, match="padding='same' is not supported for strided"):
        F.conv2d(x, tensor(normal(2, 2, 3, 3)), stride=2, padding="same")
    with pytest.raises(RuntimeError, match="Invalid padding string: 'full'"):
        F.conv2d(x, tensor(normal(2, 2, 3, 3)), padding="full")
    with pytest.raises(RuntimeError, match="got input of shape"):
        F.conv1d(x, tensor(normal(2, 2, 3)))
    with pytest.raises(ValueError, match="Conv2d: got 3 input and 4 output channels with groups 2"):
        nn.Conv2d(3, 4, 3, groups=2)
    with pytest.raises(ValueError, match="padding_mode 'mirror'"):
        nn.Conv2d(3, 4, 3, padding_mode="mirror")
    with pytest.raises(ValueError, match="kernel_size: got 3 values"):
        nn.Conv2d(3, 4, (3, 3, 3))


@pytest.mark.parametrize(
    ("mode", "numpy_mode"),
    [("constant", "constant"), ("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")],
)
def test_pad(mode, numpy_mode):
    x = normal(2, 3, 4, 5)
    expected = np.pad(x, [(0, 0), (0, 0), (0, 3), (2, 1)], mode=numpy_mode)
    close(F.pad(tensor(x), (2, 1, 0, 3), mode), expected)


def test_pad_modules():
    assert isinstance(nn.ZeroPad2d(1), nn.ConstantPad2d) and nn.ZeroPad2d(1).value == 0.0
    assert repr(nn.ZeroPad2d(1)) == "ZeroPad2d((1, 1, 1, 1))"
    with pytest.raises(ValueError, match="CircularPad2d: got input of shape"):
        nn.CircularPad2d(1)(aten.ones([3, 4]))


def test_pad_amounts():
    x = normal(3, 4)
    close(
        F.pad(tensor(x), (1, -2), value=7.0), np.pad(x[:, :2], [(0, 0), (1, 0)], constant_values=7)
    )
    unchanged = tensor(x)
    assert F.pad(unchanged, (0, 0)).data_ptr() != unchanged.data_ptr()
    with pytest.raises(RuntimeError, match="pad must be even"):
        F.pad(tensor(x), (1, 2, 3))
    with pytest.raises(RuntimeError, match="negative padding -3 and -3"):
        F.pad(tensor(x), (-3, -3))
    with pytest.raises(RuntimeError, match=r"Padding size should be less .* \[4, 0\]"):
        F.pad(tensor(x), (4, 0), "reflect")
    with pytest.raises(NotImplementedError, match="mode mirror"):
        F.pad(tensor(x), (1, 0), "mirror")
    for mode in ("reflect", "replicate"):
        for amount in ((-1, -3), (2, -6)):
            with pytest.raises(RuntimeError, match="positive sizes"):
                F.pad(tensor(x), amount, mode)
    with pytest.raises(RuntimeError, match="wrapping around"):
        F.pad(tensor(x), (1, -5), "circular")
    for mode in ("reflect", "replicate", "circular"):
        for ndim, amounts in ((1, 1), (2, 2), (4, 1), (5, 2), (6, 3), (4, 4), (2, 0)):
            with pytest.raises(NotImplementedError, match=f"tensor of {ndim} dimensions"):
                F.pad(aten.ones([2] * ndim), (1, 1) * amounts, mode)


def test_pooling():
    x = normal(2, 3, 6, 4)
    blocks = x.reshape(2, 3, 3, 2, 2, 2)
    close(F.max_pool2d(tensor(x), 2), blocks.max((3, 5)))
    close(F.avg_pool2d(tensor(x), 2), blocks.mean((3, 5)), 1e-5)
    close(F.adaptive_avg_pool2d(tensor(x), (3, 2)), blocks.mean((3, 5)))
    close(F.adaptive_avg_pool2d(tensor(x), (None, 1)), x.mean(3, keepdims=True))
    close(F.adaptive_max_pool2d(tensor(x), (3, 2)), blocks.max((3, 5)))
    close(F.adaptive_max_pool2d(tensor(x), (1, 3))[:, :, 0, 1], x[:, :, :, 1:3].max((2, 3)))
    values, indices = F.max_pool2d(tensor(x), 2, return_indices=True)
    flat = x.reshape(2, 3, -1)
    picked = np.take_along_axis(flat, indices.numpy().reshape(2, 3, -1), 2)
    close(values, picked.reshape(2, 3, 3, 2))
    line = normal(2, 3, 6)
    close(F.max_pool1d(tensor(line), 2), line.reshape(2, 3, 3, 2).max(3))
    close(F.avg_pool1d(tensor(line), 3), line.reshape(2, 3, 2, 3).mean(3), 1e-5)
    for sizes in ((1, 2, 3), (1,)):
        with pytest.raises(RuntimeError, match="output_size"):
            F.adaptive_avg_pool2d(tensor(x), sizes)
    close(F.adaptive_avg_pool2d(tensor(x[0, 0]), 1), x[0, 0].mean(keepdims=True), 1e-5)
    for pool in (F.avg_pool2d, F.adaptive_avg_pool2d):
        with pytest.raises(IndexError, match="expected at least"):
            pool(tensor(x[0, 0, 0]), 1)
    with pytest.raises(RuntimeError, match="3D or 4D"):
        F.adaptive_max_pool2d(tensor(x[0, 0]), 1)
    assert F.avg_pool2d(aten.zeros(0, 3, 6, 4), 2).shape == (0, 3, 3, 2)
    nothing = aten.zeros(2, 3, 0, 4)
    assert F.adaptive_avg_pool2d(nothing, 1).isnan().all()
    for call in (F.avg_pool2d, F.adaptive_avg_pool2d):
        with pytest.raises(RuntimeError, match="only the batch"):
            call(nothing, 2)


def test_batch_norm_and_its_statistics():
    x = normal(6, 3, 2, 2) * 2 + 1
    norm = nn.BatchNorm2d(3)
    norm.weight.data.copy_(aten.tensor([1.0, 2.0, 3.0]))
    mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3))
    shape = (1, 3, 1, 1)
    scaled = (x - mean.reshape(shape)) / np.sqrt(var.reshape(shape) + 1e-5)
    close(norm(tensor(x)), scaled * np.array([1, 2, 3]).reshape(shape), 1e-4, 1e-5)
    close(norm.running_mean, 0.1 * mean, 1e-4)
    close(norm.running_var, 0.9 + 0.1 * x.var((0, 2, 3), ddof=1), 1e-4)
    assert int(norm.num_batches_tracked) == 1
    norm.eval()
    y = norm(tensor(x)).detach().numpy()
    m, v = norm.running_mean.numpy().reshape(shape), norm.running_var.numpy().reshape(shape)
    np.testing.assert_allclose(
        y, (x - m) / np.sqrt(v + 1e-5) * np.array([1, 2, 3]).reshape(shape), rtol=1e-4, atol=1e-5
    )
    assert int(norm.num_batches_tracked) == 1


def test_batch_norm_of_mixed_dtypes():
    x, single, double = aten.ones(2, 3), aten.ones(3), aten.ones(3, dtype=c10.float64)
    assert F.batch_norm(x.to(c10.bfloat16), single, single).dtype == c10.bfloat16
    for wrong in ({"weight": double}, {"bias": double}):
        with pytest.raises(RuntimeError, match="float64 for an input of float32"):
            F.batch_norm(x, single, single, **wrong)
    for wrong in ((double, single), (single, double)):
        with pytest.raises(
            RuntimeError, match="statistics of float64|running_var of dtype float64"
        ):
            F.batch_norm(x, *wrong)
    half = single.to(c10.bfloat16)
    assert F.batch_norm(x.to(c10.bfloat16), half, half, half).dtype == c10.bfloat16
    for wrong in ((single, single, half), (half, half, single)):
        with pytest.raises(RuntimeError, match="one dtype of all parameters"):
            F.batch_norm(x.to(c10.bfloat16), *wrong)


def test_batch_norm_in_several_calls_before_backward():
    """What a network trains with twice, as the discriminator of two batches: the second call moves the running statistics."""
    norm = nn.BatchNorm1d(3)
    x, y = (tensor(normal(4, 3), requires_grad=True) for _ in range(2))
    (norm(x).pow(3).sum() + norm(y).pow(3).sum()).backward()
    for t in (x, y):
        alone = t.detach().requires_grad_()
        nn.BatchNorm1d(3)(alone).pow(3).sum().backward()
        assert aten.equal(alone.grad, t.grad)
    by_running = norm.eval()(x).sum()
    norm.train()(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        by_running.backward()


def test_batch_norm_options():
    x = normal(6, 3)
    average = nn.BatchNorm1d(3, momentum=None)
    average(tensor(x))
    average(tensor(x + 2))
    close(average.running_mean, x.mean(0) + 1, 1e-4, 1e-5)
    free = nn.BatchNorm1d(3, affine=False, track_running_stats=False).eval()
    close(free(tensor(x)), (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5), 1e-4, 1e-5)
    with pytest.raises(ValueError, match="BatchNorm2d: got input of shape"):
        nn.BatchNorm2d(3)(tensor(x))
    for eps, train in ((0.0, True), (-1.0, True), (-1.0, False)):
        with pytest.raises(ValueError, match="batch_norm: got eps"):
            nn.BatchNorm1d(3, eps=eps).train(train)(aten.ones([2, 3]))
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        nn.BatchNorm1d(3)(tensor(x[:1]))


def test_other_normalizations():
    x = normal(4, 6)
    scaled = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    close(F.layer_norm(tensor(x), (6,)), scaled, 1e-4, 1e-5)
    w = normal(6)
    root = np.sqrt((x * x).mean(1, keepdims=True) + 1e-6)
    close(F.rms_norm(tensor(x), (6,), tensor(w), 1e-6), x / root * w, 1e-4, 1e-5)
    for half in (c10.float16, c10.bfloat16):  # eps is that of the dtype in which they are computed
        close(
            F.rms_norm(aten.full((4,), 2**-10, dtype=half), (4,)).float(), np.full(4, 0.9428), 4e-3
        )
    images = normal(2, 4, 3, 3)
    groups = images.reshape(2, 2, -1)
    expected = (groups - groups.mean(2, keepdims=True)) / np.sqrt(
        groups.var(2, keepdims=True) + 1e-5
    )
    close(F.group_norm(tensor(images), 2), expected.reshape(images.shape), 1e-4, 1e-5)
    mean, var = images.mean((2, 3), keepdims=True), images.var((2, 3), keepdims=True)
    instance = (images - mean) / np.sqrt(var + 1e-5)
    close(nn.InstanceNorm2d(4)(tensor(images)), instance, 1e-4, 1e-5)
    close(nn.InstanceNorm2d(4)(tensor(images[0])), instance[0], 1e-4, 1e-5)
    with pytest.raises(ValueError, match="GroupNorm: got 5 channels in 2 groups"):
        nn.GroupNorm(2, 5)


def expected_alone(x):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


def test_instance_norm_statistics():
    module = nn.InstanceNorm1d(2, momentum=0.25, affine=True, track_running_stats=True)
    x = RNG.standard_normal((3, 2, 5)).astype(np.float32)
    means, variances = x.mean(2).mean(0), x.var(2, ddof=1).mean(0)
    out = module(tensor(x))
    expected = (x - x.mean(2, keepdims=True)) / np.sqrt(x.var(2, keepdims=True) + 1e-5)
    close(out, expected, 1e-4, 1e-5)
    close(module.running_mean, 0.25 * means, 1e-4, 1e-6)
    close(module.running_var, 0.75 + 0.25 * variances, 1e-4, 1e-6)
    module.eval()
    expected = (x - 0.25 * means[:, None]) / np.sqrt(0.75 + 0.25 * variances + 1e-5)[:, None]
    close(module(tensor(x)), expected, 1e-4, 1e-5)
    with pytest.raises(ValueError, match="expected more than 1 place per channel"):
        F.instance_norm(tensor(x[:, :, :1]))
    with pytest.raises(ValueError, match="got 2 channels, expected num_features=3"):
        nn.InstanceNorm1d(3, affine=True)(tensor(x))
    with pytest.warns(UserWarning, match="got 2 channels"):
        close(nn.InstanceNorm1d(3)(tensor(x[0])), expected_alone(x[0]), 1e-4, 1e-5)
    wide, module = tensor(x).double(), nn.InstanceNorm1d(2, momentum=1.0, track_running_stats=True)
    for expected in (
        (x - x.mean(2, keepdims=True)) / np.sqrt(x.var(2, keepdims=True) + 1e-5),
        (x - means[:, None]) / np.sqrt(variances + 1e-5)[:, None],
    ):
        out = module(wide)
        assert out.dtype == c10.float64 and module.running_mean.dtype == c10.float32
        close(out, expected, 1e-4, 1e-5)
        module.eval()
    close(module.running_var, variances, 1e-4, 1e-6)


def test_dropout():
    x = aten.ones(200, 100)
    c10.manual_seed(1)
    y = F.dropout(x, 0.25)
    values = set(np.round(y.numpy().reshape(-1).astype(np.float64), 5).tolist())
    assert values == {0.0, round(1 / 0.75, 5)}
    assert abs(float((y == 0).to(c10.float32).mean()) - 0.25) < 0.02
    c10.manual_seed(1)
    assert aten.equal(F.dropout(x, 0.25), y)
    assert F.dropout(x, 0.25, training=False) is x
    assert float(F.dropout(x, 1.0).sum()) == 0
    nothing = F.dropout(aten.ones(3, dtype=c10.int64), 1.0)
    assert nothing.dtype == c10.int64 and nothing.tolist() == [0, 0, 0]
    assert F.alpha_dropout(aten.ones(3, dtype=c10.int64), 1.0, True).dtype == c10.int64
    channels = F.dropout2d(aten.ones(8, 16, 3, 3), 0.5).numpy()
    assert set(channels.reshape(8 * 16, 9).std(1).tolist()) == {0.0}
    assert 0.2 < (channels[:, :, 0, 0] == 0).mean() < 0.8
    places = F.dropout3d(aten.ones(8, 16, 2, 2, 2), 0.5).numpy().reshape(8, 16, 8)
    assert (places.min(2) == places.max(2)).all() and 40 < (places[:, :, 0] == 0).sum() < 88
    kept = F.alpha_dropout(aten.randn(100, 100), 0.3, training=True)
    channels = F.feature_alpha_dropout(aten.ones(8, 16, 3), 0.5, training=True).numpy()
    assert (channels.min(2) == channels.max(2)).all() and len(np.unique(channels)) == 2
    with pytest.raises(RuntimeError, match="feature_alpha_dropout: got input of shape"):
        F.feature_alpha_dropout(x[0], 0.5, training=True)
    assert abs(float(kept.mean())) < 0.05
    assert abs(float(kept.std()) - 1) < 0.05
    for wrong in (-0.1, 1.5):
        with pytest.raises(ValueError, match="expected a probability"):
            F.dropout(x, wrong)
        with pytest.raises(ValueError, match="Dropout: got p="):
            nn.Dropout(wrong)
    layer = nn.Dropout(0.5).eval()
    assert layer(x) is x
    for call in (F.dropout2d, F.dropout3d):
        with pytest.warns(UserWarning, match="got 0 dim"):
            assert call(aten.ones(()), training=False).tolist() == 1.0
    for call, shape in ((F.dropout2d, [2, 3]), (F.dropout2d, [2, 3, 4]), (F.dropout3d, [2, 3, 4])):
        with pytest.warns(UserWarning, match=f"{call.__name__}: got {len(shape)} dim"):
            call(aten.ones(shape))


def test_old_forms_warn():
    with pytest.warns(FutureWarning, match="use min_val"):
        assert nn.Hardtanh(min_value=0).min_val == 0
    with pytest.warns(FutureWarning, match="use NLLLoss"):
        nn.NLLLoss2d()
    with pytest.warns(UserWarning, match="no effect"):
        F.gumbel_softmax(aten.ones(2), eps=1e-5)
    with pytest.warns(FutureWarning, match="parametrizations.weight_norm"):
        nn.utils.weight_norm(nn.Linear(2, 2))
    with pytest.warns(UserWarning, match="complex64"):
        nn.Linear(2, 2).to(c10.complex64)
    with pytest.warns(UserWarning, match="size of 1"):
        F.affine_grid(aten.ones(1, 2, 3), (1, 1, 4, 1), align_corners=True)
    rows, table = aten.tensor([[0, 1]]), aten.ones(3, 2)
    with pytest.warns(UserWarning, match=r"use embedding_bag\(input, weight\)"):
        assert F.embedding_bag(table, rows).tolist() == [[1, 1]]
    layer = nn.Linear(2, 2)
    with pytest.warns(FutureWarning, match="name them"):
        state = layer.state_dict({"kept": 1}, "a.", True)
    assert list(state) == ["kept", "a.weight", "a.bias"] and state["a.bias"] is layer.bias


def test_unflatten_keeps_its_sizes():
    assert repr(nn.Unflatten(1, c10.Size([2, 3]))).endswith("Size([2, 3]))")
    assert repr(nn.Unflatten(1, (2, 3))) == "Unflatten(dim=1, unflattened_size=(2, 3))"
    for wrong in (6, (2, 3.0)):
        with pytest.raises(TypeError, match="unflattened_size"):
            nn.Unflatten(1, wrong)


def test_embedding():
    assert repr(nn.Embedding(5, 3, norm_type=1.0)) == "Embedding(5, 3, norm_type=1.0)"
    table = nn.Embedding(5, 3, padding_idx=-1)
    assert table.padding_idx == 4
    assert table.weight[4].tolist() == [0.0] * 3
    index = aten.tensor([[0, 4], [2, 0]])
    out = table(index)
    close(out, table.weight.detach().numpy()[index.numpy()])
    out.sum().backward()
    assert table.weight.grad.sum(1).tolist() == [6.0, 0.0, 3.0, 0.0, 0.0]
    frozen = nn.Embedding.from_pretrained(tensor([[3.0, 4.0], [0.3, 0.4]]), max_norm=1.0)
    assert not frozen.weight.requires_grad
    close(frozen(aten.tensor([0, 1])), [[0.6, 0.8], [0.3, 0.4]], 1e-5)
    with pytest.raises(AssertionError, match="padding_idx 9"):
        nn.Embedding(5, 3, padding_idx=9)
    assert repr(nn.Embedding(5, 3, sparse=True)) == "Embedding(5, 3, sparse=True)"


def test_sparse_changes_nothing_where_no_gradient_is_recorded():
    index = aten.tensor([[0, 4], [2, 0]])
    for module in (nn.Embedding(5, 3, sparse=True), nn.EmbeddingBag(5, 3, sparse=True)):
        frozen = type(module).from_pretrained(module.weight.detach(), sparse=True)
        with no_grad():
            assert module(index).equal(frozen(index))


def test_sparse_gradients_of_embeddings():
    table = nn.Embedding(5, 3, padding_idx=0, sparse=True)
    scale = aten.arange(1.0, 13.0).reshape(2, 2, 3)
    (table(aten.tensor([[0, 4], [2, 4]])) * scale).sum().backward()
    gradient = table.weight.grad
    assert gradient._indices().tolist() == [[4, 2, 4]] and not gradient.is_coalesced()
    assert gradient._values().tolist() == [[4, 5, 6], [7, 8, 9], [10, 11, 12]]
    with pytest.raises(RuntimeError, match="scale_grad_by_freq not supported"):
        F.embedding(
            aten.tensor([1]), table.weight, sparse=True, scale_grad_by_freq=True
        ).sum().backward()
    table.zero_grad(set_to_none=False)
    assert table.weight.grad._nnz() == 0
    tied = nn.Linear(3, 5, bias=False)
    tied.weight = table.weight
    tied(table(aten.tensor([1]))).sum().backward()
    assert not table.weight.grad.is_sparse
    with no_grad():
        assert not table(aten.tensor([1])).requires_grad


@pytest.mark.parametrize("mode", ["sum", "mean"])
@pytest.mark.parametrize("padding_idx", [None, 1, -3])
def test_sparse_gradients_of_bags_are_the_dense_ones(mode, padding_idx):
    rows, offsets = aten.tensor([1, 2, 1, 0, 2]), aten.tensor([0, 3, 3])
    results = []
    for sparse in (True, False):
        bag = nn.EmbeddingBag(4, 3, mode=mode, padding_idx=padding_idx, sparse=sparse)
        bag.weight.data = aten.arange(12.0).reshape(4, 3)
        result = bag(rows, offsets)
        (result * aten.arange(9.0).reshape(3, 3)).sum().backward()
        assert bag.weight.grad.is_sparse == sparse
        results.append((result.tolist(), bag.weight.grad.to_dense().tolist()))
    assert results[0] == results[1]


@pytest.mark.parametrize("dtype", [c10.float16, c10.bfloat16], ids=str)
def test_attention_of_16_bits_keeps_its_scores_exact(dtype):
    """Composed of products, too: of three dimensions, and where weights may drop out."""
    q, k, v = ((tensor(3 * normal(2, 20, 8))).to(dtype) for _ in range(3))
    exact = F.scaled_dot_product_attention(q.double(), k.double(), v.double())
    bound = float(exact.abs().max()) * 2.0 ** (-8 if dtype == c10.bfloat16 else -11)
    for dims, p in ((3, 0.0), (4, 1e-12)):
        x = [t if dims == 3 else t[None] for t in (q, k, v)]
        found = F.scaled_dot_product_attention(*x, dropout_p=p)
        assert found.dtype == dtype
        assert float((found.reshape(exact.shape).double() - exact).abs().max()) < bound


def test_shuffles():
    x = normal(2, 12, 3, 4)
    places = x.reshape(2, 3, 2, 2, 3, 4).transpose(0, 1, 4, 2, 5, 3).reshape(2, 3, 6, 8)
    close(nn.PixelShuffle(2)(tensor(x)), places)
    close(nn.PixelUnshuffle(2)(tensor(places)), x)
    mixed = x.reshape(2, 3, 4, 3, 4).transpose(0, 2, 1, 3, 4).reshape(x.shape)
    close(nn.ChannelShuffle(3)(tensor(x)), mixed)


CONVOLUTIONS = {
    1: (F.conv1d, F.conv_transpose1d, (2, 4, 9), (6, 2, 3)),
    2: (F.conv2d, F.conv_transpose2d, (2, 4, 7, 6), (6, 2, 3, 2)),
    3: (F.conv3d, F.conv_transpose3d, (1, 4, 4, 5, 6), (6, 2, 2, 3, 2)),
}


@pytest.mark.parametrize("n", CONVOLUTIONS)
@pytest.mark.parametrize("transposed", [False, True])
def test_convolutions_of_integers(n, transposed):
    """Those of float64, as far as it is exact; sums wrap."""
    plain, transpose, shape, kernel = CONVOLUTIONS[n]
    x = RNG.integers(-99, 99, (2, 6, *shape[2:]) if transposed else shape)
    w = RNG.integers(-99, 99, kernel)
    b = RNG.integers(-99, 99, 4 if transposed else 6)
    settings = {"stride": 2, "padding": 1, "dilation": 2 if n < 3 else 1, "groups": 2}
    of = transpose if transposed else plain
    args = [aten.from_numpy(v) for v in (x, w, b)]
    exact = of(*(v.double() for v in args), **settings)
    found = of(*args, **settings)
    assert found.dtype == c10.int64 and found.tolist() == exact.tolist()
    large = aten.full(x.shape, 2**62, dtype=c10.int64)
    large = aten.full(x.shape, 2**62, dtype=c10.int64)
    whole = of(large, args[1] * 4, **settings)  # multiples of 2**64
    assert not whole.any()


@pytest.mark.parametrize("n", CONVOLUTIONS)
@pytest.mark.parametrize("transposed", [False, True])
def test_convolutions_of_complex_numbers(n, transposed):
    """A product of sums is a sum of products: by real convolutions, also for gradients."""
    plain, transpose, shape, kernel = CONVOLUTIONS[n]
    x = [RNG.standard_normal((2, 6, *shape[2:]) if transposed else shape) for _ in range(2)]
    w = [RNG.standard_normal(kernel) for _ in range(2)]
    settings = {"stride": 2, "padding": 1, "groups": 2}
    of = transpose if transposed else plain

    def real(a, b):
        return of(aten.from_numpy(a), aten.from_numpy(b), **settings).numpy()

    args = [aten.from_numpy(v[0] + 1j * v[1]).requires_grad_() for v in (x, w)]
    found = of(*args, **settings)
    expected = real(x[0], w[0]) - real(x[1], w[1]) + 1j * (real(x[0], w[1]) + real(x[1], w[0]))
    close(found, expected)
    # The derivative along x itself of |y|**2 is twice it.
    aten.sum(aten.real(found * found.conj())).backward()
    size = np.sum(np.abs(expected) ** 2)
    for v in args:
        along = np.sum(np.conj(v.grad.numpy()) * v.detach().numpy()).real
        np.testing.assert_allclose(along, 2 * size)


@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize("count_include_pad", [False, True])
def test_means_of_integers_are_rounded_towards_zero(ceil_mode, count_include_pad):
    x = aten.from_numpy(RNG.integers(-9, 9, (2, 3, 5, 6, 7)))
    settings = {"ceil_mode": ceil_mode, "count_include_pad": count_include_pad}
    for of, planes in ((F.avg_pool3d, x), (F.avg_pool2d, x[0]), (F.avg_pool1d, x[0, 0])):
        exact = of(planes.double(), 3, 2, 1, **settings)
        found = of(planes, 3, 2, 1, **settings)
        assert found.dtype == c10.int64
        # One rounding of a sum of thirds and halves: never off where it is not near an integer.
        np.testing.assert_array_equal(found.numpy(), np.trunc(np.round(exact.numpy(), 9)))


def test_gradients_of_complex_linear_maps():
    """A real loss's gradient g gives its slope along d as Re(sum(conj(g) * d))."""
    x, w, b = (
        aten.from_numpy(RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape))
        for shape in ((4, 3), (5, 3), 5)
    )
    for v in (x, w, b):
        v.requires_grad_()
    y = F.linear(x, w, b)
    aten.sum(aten.real(y * y.conj())).backward()
    residual = y.detach().numpy()
    close(x.grad, 2 * residual @ w.detach().numpy().conj())
    close(w.grad, 2 * residual.T @ x.detach().numpy().conj())
    close(b.grad, 2 * residual.sum(0))


def test_no_bags():
    table, none = aten.ones(3, 2), aten.zeros(0, dtype=c10.int64)
    for mode in ("sum", "mean", "max"):
        for offsets, ends in ((none, False), (aten.zeros(1, dtype=c10.int64), True)):
            made = F.embedding_bag(
                aten.tensor([1, 2]), table, offsets, mode=mode, include_last_offset=ends
            )
            assert made.shape == (0, 2)


@pytest.mark.parametrize(
    "norm, given", [("group_norm", "float16"), ("layer_norm", "float16"), ("rms_norm", "float64")]
)
def test_gradients_of_norms_whose_weights_have_another_dtype(norm, given):
    values, scales = RNG.standard_normal((3, 4)), RNG.standard_normal(4)
    tolerance = 0.05 if given == "float16" else 1e-4
    gradients = []
    for dtypes in [(given, "float32"), ("float64", "float64")]:
        x = aten.tensor(values, dtype=getattr(c10, dtypes[0])).requires_grad_()
        weight = aten.tensor(scales, dtype=getattr(c10, dtypes[1])).requires_grad_()
        shape = 2 if norm == "group_norm" else (4,)
        gradients.append(grad((getattr(F, norm)(x, shape, weight) ** 2).sum(), (x, weight)))
        assert [g.dtype for g in gradients[-1]] == [x.dtype, weight.dtype]
    for found, expected in zip(*gradients, strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=tolerance, atol=tolerance)


def test_no_rows_to_normalise():
    x = aten.ones(0, 3, requires_grad=True)
    weight, bias = (aten.ones(3, requires_grad=True) for _ in range(2))
    y = F.batch_norm(x, None, None, weight, bias, training=True)
    assert [g.tolist() for g in grad(y.sum(), (x, weight, bias))] == [[], [0.0] * 3, [0.0] * 3]


def test_settings_that_modules_do_not_use_or_show():
    x = aten.ones(2, 3, requires_grad=True)
    assert nn.AlphaDropout(0.5, inplace=True)(x) is not x
    assert nn.FeatureAlphaDropout(0.5, inplace=True)(x) is not x
    assert [repr(m) for m in (nn.Hardswish(True), nn.Hardsigmoid(True))] == [
        "Hardswish()",
        "Hardsigmoid()",
    ]
    with pytest.raises(ValueError, match="in1_features=0"):
        nn.Bilinear(0, 2, 3)
