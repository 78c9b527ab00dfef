"""Convolutions, poolings, resampling and embedding bags: what needs no peer, and their error texts."""

from __future__ import annotations

import math

import numpy as np
import pytest

import argand_aten as aten
import argand_c10 as c10
import argand_nn as nn
import argand_nn.functional as F
from argand_autograd import gradcheck

RNG = np.random.default_rng(0)


def normal(*shape, dtype=np.float32, requires_grad=False):
    values = aten.tensor(RNG.standard_normal(shape).tolist(), dtype=c10.float64)
    return values.to(c10.float32 if dtype is np.float32 else c10.float64).requires_grad_(
        requires_grad
    )


def close(ours, expected, rtol=1e-4, atol=1e-5):
    expected = expected.detach().numpy() if isinstance(expected, c10.Tensor) else expected
    np.testing.assert_allclose(ours.detach().numpy(), expected, rtol=rtol, atol=atol)


@pytest.mark.parametrize("dtype", [c10.float16, c10.bfloat16])
def test_convolutions_of_16_bits_sum_in_32(dtype):
    x, w = normal(2, 8, 4, 5, 5).to(dtype), normal(6, 8, 3, 3, 3).to(dtype)
    exact = F.conv3d(x.to(c10.float32), w.to(c10.float32), padding=1)
    close(F.conv3d(x, w, padding=1).to(c10.float32), exact, rtol=1e-2, atol=2e-2)
    exact = F.avg_pool3d(x.to(c10.float32), 2)
    close(F.avg_pool3d(x, 2).to(c10.float32), exact, rtol=1e-2, atol=1e-2)


def test_conv3d_of_one_plane_is_conv2d():
    x, w = normal(2, 4, 7, 6), normal(6, 2, 3, 3)
    flat = F.conv2d(x, w, None, 2, 1, 1, 2)
    deep = F.conv3d(x.unsqueeze(2), w.unsqueeze(2), None, (1, 2, 2), (0, 1, 1), 1, 2)
    close(deep.squeeze(2), flat)


def test_transposed_convolution_is_the_transpose():
    x, w = normal(2, 4, 6, 5, 7, dtype=float), normal(3, 4, 3, 2, 3, dtype=float)
    y = F.conv3d(x, w, None, (2, 1, 2), (1, 0, 1), (1, 2, 1))
    g = normal(*y.shape, dtype=float)
    back = nn.ConvTranspose3d(3, 4, (3, 2, 3), (2, 1, 2), (1, 0, 1), dilation=(1, 2, 1), bias=False)
    back.to(dtype=c10.float64)
    back.weight.detach().copy_(w)
    close((back(g, output_size=x.shape) * x).sum(), (y * g).sum())
    close((back(g, output_size=(6, 5, 7)) * x).sum(), (y * g).sum())
    with pytest.raises(ValueError, match=r"ConvTranspose3d: got output_size \(9, 5, 7\)"):
        back(g, output_size=(9, 5, 7))


def test_lazy_convolutions_take_their_channels_from_the_input():
    for name in ("LazyConv3d", "LazyConvTranspose3d"):
        lazy = getattr(nn, name)(4, 2)
        out = lazy(normal(2, 6, 3, 4, 5))
        assert type(lazy) is getattr(nn, name.removeprefix("Lazy")) and lazy.in_channels == 6
        assert out.shape[1] == 4 and sorted(lazy.weight.shape[:2]) == [4, 6]


def test_settings_that_do_not_fit():
    with pytest.raises(ValueError, match="ConvTranspose1d: got padding_mode 'reflect'"):
        nn.ConvTranspose1d(2, 2, 3, padding_mode="reflect")
    with pytest.raises(RuntimeError, match="output padding must be smaller"):
        F.conv_transpose2d(normal(1, 2, 3, 3), normal(2, 2, 3, 3), output_padding=1)
    with pytest.raises(ValueError, match="ReflectionPad2d: got 3 amounts"):
        nn.ReflectionPad2d((1, 2, 3))
    with pytest.raises(ValueError, match="FractionalMaxPool2d: got output_size None"):
        nn.FractionalMaxPool2d(2)
    with pytest.raises(ValueError, match="expected numbers between 0 and 1"):
        nn.FractionalMaxPool2d(2, output_ratio=1.5)
    with pytest.raises(ValueError, match="interpolate: got size 3 and scale_factor 2"):
        F.interpolate(normal(1, 1, 4), 3, 2)
    with pytest.raises(NotImplementedError, match="mode 'bilinear' and an input of 3 dimensions"):
        F.interpolate(normal(1, 1, 4), 3, mode="bilinear")
    with pytest.raises(ValueError, match="grid_sample: got mode 'linear'"):
        F.grid_sample(normal(1, 1, 4, 4), normal(1, 2, 2, 2), "linear")
    with pytest.raises(ValueError, match="embedding_bag: got offsets with an input of two"):
        F.embedding_bag(aten.tensor([[0]]), normal(2, 2), aten.tensor([0]))


def test_fractional_pooling_draws_windows_inside():
    c10.manual_seed(0)
    x = aten.arange(2 * 3 * 81, dtype=c10.float32).reshape(2, 3, 9, 9)
    values, places = nn.FractionalMaxPool2d(2, output_ratio=0.6, return_indices=True)(x)
    assert values.shape == (2, 3, 5, 5)
    close(values, aten.gather(x.flatten(2), 2, places.flatten(2)).reshape(values.shape))
    assert (values[:, :, 1:] > values[:, :, :-1]).all()
    close(values[:, :, -1, -1], x[:, :, -1, -1])


def test_fractional_pooling_by_given_samples():
    x, samples = normal(4, 5, 5, 5), aten.rand([2, 4, 3])
    pool = F.fractional_max_pool3d
    alone = pool(x, 2, output_ratio=0.5, _random_samples=samples)  # the first batch's
    close(alone, pool(x[None], 2, output_ratio=0.5, _random_samples=samples[:1])[0])
    empty = pool(aten.empty([0, 4, 5, 5, 5]), 2, output_size=2, _random_samples=samples)
    assert empty.shape == (0, 4, 2, 2, 2)
    with pytest.raises(RuntimeError, match="expected _random_samples of shape"):
        pool(aten.empty([3, 4, 5, 5, 5]), 2, output_size=2, _random_samples=samples)
    with pytest.raises(RuntimeError, match="_random_samples of the input's dtype"):
        pool(x, 2, output_size=2, _random_samples=samples.double())


@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_unpooling_puts_the_maxima_back(spatial):
    x = normal(2, 3, *(4, 6, 4)[:spatial], requires_grad=True)
    pool = getattr(F, f"max_pool{spatial}d")
    values, places = pool(x, 2, return_indices=True)
    back = getattr(nn, f"MaxUnpool{spatial}d")(2)(values, places)
    kept = back != 0
    assert back.shape == x.shape and int(kept.sum()) == values.numel()
    close(back, x.detach().numpy() * kept.numpy())
    back.sum().backward()
    close(x.grad, kept.to(c10.float32))


def test_interpolation_of_a_line_is_the_line():
    x = aten.arange(6, dtype=c10.float32).reshape(1, 1, 6)
    out = F.interpolate(x, 11, mode="linear", align_corners=True)
    close(out[0, 0], np.arange(11) / 2)
    plane = x[..., None] * 2 + aten.arange(5, dtype=c10.float32)
    for mode in ("bilinear", "bicubic"):
        out = F.interpolate(plane, (11, 9), mode=mode, align_corners=True)
        inner = np.arange(11)[:, None] + np.arange(9) / 2
        close(out[0, 0, 3:-3, 3:-3], inner[3:-3, 3:-3])
    means = F.interpolate(plane, (3, 5), mode="bilinear", antialias=True)
    close(means[0, 0, 1, 1:-1], plane[0, 0, 2:4, 1:-1].mean(0))


def test_places_that_are_no_numbers():
    """NaN shows where it makes weights; else padding takes it for the first place."""
    x, grid = aten.ones(1, 1, 3, 3), aten.tensor([[[[0.2, float("nan")]]]])
    for padding in ("zeros", "border", "reflection"):
        for mode, shown in (
            ("bilinear", padding == "zeros"),
            ("bicubic", True),
            ("nearest", False),
        ):
            found = F.grid_sample(x, grid, mode, padding, align_corners=False)
            assert bool(found.isnan()) == shown
            assert shown or found.item() == (padding != "zeros")


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_what_is_not_finite_shows_wherever_the_other_number_is(mode):
    places = [[math.nan, 5], [5, math.nan], [math.inf, 5], [-5, -math.inf], [math.nan, 0]]
    grid = aten.tensor([[places]])
    for width in (1, 3):
        x = aten.ones(1, 1, 3, width)
        assert F.grid_sample(x, grid, mode, align_corners=False).isnan().all()
        composed = aten.ops._grid_sample(x, grid, mode, "zeros", False)
        assert composed.isnan().all()


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_places_of_volumes_that_are_not_finite(mode):
    """They lie outside; moved inside, with the last element."""
    x = aten.arange(8, dtype=c10.float32).reshape(1, 1, 2, 2, 2)
    places = [[math.nan, -1, -1], [math.inf, -1, -1], [-math.inf, -1, -1]]
    grid = aten.tensor([[[places]]])
    for padding, expected in (
        ("zeros", [0, 0, 0]),
        ("border", [1, 1, 0]),
        ("reflection", [1, 1, 1]),
    ):
        found = F.grid_sample(x, grid, mode, padding, align_corners=True)
        assert found.flatten().tolist() == expected


def test_circular_padding_that_leaves_nothing():
    x = normal(1, 1, 4)
    assert F.pad(x, (-4, 0), "circular").shape == F.pad(x, (-2, -2), "circular").shape == (1, 1, 0)
    assert F.pad(x[..., None], (0, 0, -1, -3), "circular").shape == (1, 1, 0, 1)
    for wrong in ((-5, 0), (-4, 1), (-5, 1)):
        with pytest.raises(RuntimeError, match="padding"):
            F.pad(x, wrong, "circular")


def test_nearest_elements_have_a_gradient_of_zero_by_their_places():
    x, grid = aten.ones(1, 1, 3, 3), aten.tensor([[[[0.2, float("nan")]]]], requires_grad=True)
    F.grid_sample(x, grid, "nearest", align_corners=False).sum().backward()
    assert grid.grad.tolist() == [[[[0.0, 0.0]]]]


@pytest.mark.parametrize("padding", ["border", "reflection"])
def test_places_at_an_edge_have_no_gradient(padding):
    x = aten.arange(9, dtype=c10.float32).reshape(1, 1, 3, 3)
    grid = aten.tensor([[[[-1.0, 1.0], [0.5, -1.0]]]], requires_grad=True)
    F.grid_sample(x, grid, "bilinear", padding, align_corners=True).sum().backward()
    assert grid.grad.tolist() == [[[[0.0, 0.0], [1.0, 0.0]]]]
    one = aten.tensor([[[[0.3, 2.0]]]], requires_grad=True)
    F.grid_sample(x[..., :1, :1], one, "bilinear", padding, align_corners=True).sum().backward()
    assert one.grad.tolist() == [[[[0.0, 0.0]]]]


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic", "area"])
def test_images_of_the_same_size_are_copies(mode):
    x = aten.arange(24, dtype=c10.float32).reshape(1, 4, 2, 3).mT
    out = F.interpolate(x, (3, 2), mode=mode)
    close(out, x)
    assert out.data_ptr() != x.data_ptr() and (mode == "area" or out.is_contiguous())


def test_interpolated_bytes_are_rounded_after_each_dimension():
    # Worked out with weights of 16 bits: columns first, each pass to the nearest byte.
    x = (aten.arange(9) * 13).to(c10.uint8).reshape(1, 1, 3, 3)
    for mode, antialias, expected in (
        ("bilinear", False, [[10, 18, 28, 36], [68, 76, 86, 94]]),
        ("bilinear", True, [[15, 23, 33, 41], [63, 71, 81, 89]]),
        ("bicubic", False, [[7, 14, 26, 34], [70, 78, 90, 98]]),
        ("bicubic", True, [[12, 19, 31, 39], [65, 73, 85, 93]]),
    ):
        out = F.interpolate(x, (2, 4), mode=mode, antialias=antialias)
        assert out.dtype is c10.uint8
        assert out.tolist() == [[expected]]


def test_transposed_convolution_of_one_image_with_channels_last():
    weight = normal(3, 2, 3, 3)
    last = weight.contiguous(memory_format=c10.channels_last)
    image, volume = normal(3, 4, 4), normal(3, 4, 4, 4)
    expected = F.conv_transpose2d(image, weight, stride=2)
    assert expected.shape == (2, 9, 9)
    close(F.conv_transpose2d(image, last, stride=2), expected)
    kernel = normal(3, 3, 1, 1, 1)
    turned = volume.contiguous(memory_format=c10.channels_last)
    close(F.conv3d(turned, kernel, padding="same"), F.conv3d(volume, kernel, padding="same"))
    close(F.conv_transpose3d(turned, kernel), F.conv_transpose3d(volume, kernel))


def test_identity_grid_gives_the_image():
    x = normal(2, 3, 5, 4)
    theta = aten.tensor([[[1.0, 0, 0], [0, 1.0, 0]]] * 2)
    for corners in (True, False):
        grid = F.affine_grid(theta, x.shape, corners)
        for mode in ("bilinear", "nearest", "bicubic"):
            close(F.grid_sample(x, grid, mode, align_corners=corners), x)
    with pytest.warns(UserWarning, match="align_corners"):
        F.affine_grid(theta, x.shape)


def test_embedding_renorm():
    table = aten.tensor([[3.0, 4.0], [0.3, 0.4], [6.0, 8.0]])
    aten.embedding_renorm_(table, aten.tensor([0, 1, 0]), 1.0, 2.0)
    close(table, [[0.6, 0.8], [0.3, 0.4], [6.0, 8.0]])


def test_maxima_of_bags_have_dense_gradients_that_are_not_scaled():
    for option in ("scale_grad_by_freq", "sparse"):
        with pytest.raises(ValueError, match="with mode 'max'"):
            F.embedding_bag(aten.tensor([[0]]), aten.ones(2, 3), mode="max", **{option: True})


@pytest.mark.parametrize(
    ("offsets", "last", "message"),
    [
        ([0, 9], False, "input's length 7"),
        ([0, 3, 9], True, "input's length 7"),
        ([1, 3], False, r"offsets\[0\] has"),
    ],
)
def test_bags_lie_in_the_input(offsets, last, message):
    with pytest.raises(RuntimeError, match=message):
        F.embedding_bag(
            aten.arange(7), normal(10, 3), aten.tensor(offsets), include_last_offset=last
        )


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bag(mode):
    table = normal(6, 3, requires_grad=True)
    rows = table.detach().numpy()
    bags = [[4, 1, 1], [], [0, 2, 5, 1]]
    offsets = aten.tensor([0, 3, 3])
    out = F.embedding_bag(aten.tensor([i for bag in bags for i in bag]), table, offsets, mode=mode)
    how = {"sum": np.sum, "mean": np.mean, "max": np.max}[mode]
    expected = [how(rows[bag], axis=0) if bag else np.zeros(3) for bag in bags]
    close(out, np.array(expected))
    out.sum().backward()
    counts = np.zeros((6, 3))
    for bag in filter(None, bags):
        if mode == "max":
            counts[np.array(bag)[rows[bag].argmax(0)], np.arange(3)] += 1
        else:
            np.add.at(counts, bag, 1 if mode == "sum" else 1 / len(bag))
    close(table.grad, counts)


def test_ctc_gradient():
    scores = normal(6, 2, 4, dtype=float, requires_grad=True)
    targets = aten.tensor([[1, 2, 2], [3, 1, 0]])
    for reduction in ("mean", "sum", "none"):
        assert gradcheck(
            lambda x, r=reduction: F.ctc_loss(
                x.log_softmax(2), targets, (6, 5), (3, 2), reduction=r
            ),
            scores,
        )
    loss = F.ctc_loss(scores.log_softmax(2), targets, (2, 5), (3, 2), reduction="none")
    assert loss[0] == float("inf") and loss[1] < 100
    loss = nn.CTCLoss(zero_infinity=True)(scores.log_softmax(2), targets, (2, 2), (3, 2))
    loss.backward()
    assert not scores.grad[:, 0].any() and scores.grad[:, 1].any()


def test_local_response_norm():
    x = normal(2, 5, 3, 2)
    squares = np.pad(x.numpy() ** 2, [(0, 0), (1, 1), (0, 0), (0, 0)])
    means = sum(squares[:, i : i + 5] for i in range(3)) / 3
    close(nn.LocalResponseNorm(3, 0.5, 0.75, 2.0)(x), x.numpy() / (2 + 0.5 * means) ** 0.75)
    means[:, 2:] += squares[:, 1:2] / 3  # the first channel counts for all that follow it
    close(nn.CrossMapLRN2d(3, 0.5, 0.75, 2.0)(x), x.numpy() / (2 + 0.5 * means) ** 0.75)


def test_upsample_is_named_by_its_class():
    assert nn.Upsample(scale_factor=2).name == "Upsample"
    assert nn.UpsamplingNearest2d(2).name == "UpsamplingNearest2d"


def test_adaptive_maxima_of_no_windows():
    x = normal(2, 3, 4)
    values, places = F.adaptive_max_pool2d(x, (0, 2), return_indices=True)
    assert values.shape == places.shape == (2, 0, 2)
    assert F.adaptive_max_pool1d(x, 0).shape == (2, 3, 0)
    assert F.adaptive_max_pool3d(x[None], (0, 1, 1)).shape == (1, 0, 1, 1)
