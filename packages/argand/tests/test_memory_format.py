"""Memory formats: strides of copies, new tensors and the results of network operators are PyTorch's, eager and compiled, and values do not depend on them."""

import numpy as np
import pytest

import argand as torch
from argand.nn import functional as F

LAST, LAST_3D = torch.channels_last, torch.channels_last_3d
N, C, H, W = 2, 3, 4, 6


def image(*shape):
    torch.manual_seed(0)
    return torch.randn(*(shape or (N, C, H, W)))


def last(t):
    return t.to(memory_format=LAST if t.ndim == 4 else LAST_3D)


def strides_of(shape):
    """Channels innermost, then the spatial dimensions from the last to the first."""
    n, c, *space = shape
    strides, step = [], c
    for size in reversed(space):
        strides.insert(0, step)
        step *= size
    return (step, 1, *strides)


COPIES = {
    "contiguous": lambda x: x.contiguous(memory_format=LAST),
    "to": lambda x: x.to(memory_format=LAST),
    "to dtype": lambda x: x.to(torch.float64, memory_format=LAST),
    "to device": lambda x: x.to("cpu", memory_format=LAST),
    "to other": lambda x: x.to(x.double(), memory_format=LAST),
    "clone": lambda x: x.clone(memory_format=LAST),
    "double": lambda x: x.double(memory_format=LAST),
    "kept by clone": lambda x: last(x).clone(),
    "kept by a conversion": lambda x: last(x).double(),
    "kept by a function": lambda x: (torch.relu(last(x)) + 1 - 1) + x.clamp(max=0),
}


@pytest.mark.parametrize("name", COPIES)
def test_copies(name):
    x = image()
    for f in (COPIES[name], torch.compile(COPIES[name])):
        y = f(x)
        assert y.stride() == strides_of(x.shape) and y.is_contiguous(memory_format=LAST)
        assert not y.is_contiguous()
        torch.testing.assert_close(y.float(), x, rtol=0, atol=1e-6)


COPIES_OF_GAPS = {
    "clone": lambda x: x.clone(),
    "double": lambda x: x.double(),
    "zeros_like": torch.zeros_like,
    "ones_like": lambda x: torch.ones_like(x) + 0,
    "randn_like": torch.randn_like,
    "neg": lambda x: -x,
    "flip": lambda x: x.flip(0),
    "sort": lambda x: x.sort(1)[0],
    "sum of clones": lambda x: x.clone() + x.clone(),
}


@pytest.mark.parametrize(
    ("shape", "strides", "expected"),
    [
        ((2, 3), (6, 2), (6, 2)),
        ((2, 3), (1, 4), (1, 4)),
        ((2, 1, 3), (3, 20, 1), (3, 20, 1)),
        ((2, 3), (0, 1), (3, 1)),
        ((2, 3), (0, 10), (3, 1)),
    ],
)
def test_copies_with_another_part_have_the_strides_of_their_first_argument(
    shape, strides, expected
):
    x = torch.arange(60.0).as_strided(shape, strides)
    part, row = torch.full(shape[1:], 7.0), torch.full((1, *shape[1:]), 7.0)
    for copy in (torch.select_scatter(x, part, 0, 1), torch.slice_scatter(x, row, 0, 1, 2)):
        assert copy.stride() == expected
        assert torch.equal(copy[0], x[0]) and (copy[1] == 7).all()
    diagonal = torch.diagonal_scatter(x, torch.zeros(x.diagonal().shape))
    assert diagonal.stride() == expected and (diagonal.diagonal() == 0).all()
    y = x.clone().requires_grad_()
    torch.select_scatter(y.as_strided(shape, y.stride()), part, 0, 1).sum().backward()
    assert (y.grad[0] == 1).all() and (y.grad[1] == 0).all()


@pytest.mark.parametrize("name", COPIES_OF_GAPS)
@pytest.mark.parametrize(
    ("shape", "strides", "dense"),
    [
        ((3, 3, 4), (2, 20, 5), (1, 12, 3)),
        ((4, 5, 3), (5, 1, 0), (15, 3, 1)),
        ((2, 3, 4), (30, 1, 6), (12, 1, 3)),
        ((3, 4), (1, 2), (1, 3)),
    ],
)
def test_copies_of_tensors_with_gaps_keep_the_order_of_dimensions(name, shape, strides, dense):
    f = COPIES_OF_GAPS[name]
    x = torch.arange(60.0).as_strided(shape, strides)
    assert f(x).stride() == dense
    assert f(torch.empty_strided(shape, strides, device="meta")).stride() == dense
    for options in ({}, {"dynamic": True}, {"backend": "aot_eager"}):
        y = torch.compile(f, fullgraph=True, **options)(x)
        assert y.stride() == dense
        assert name == "randn_like" or torch.equal(y, f(x))


TURNED = {
    "x[i]": (lambda x, i, j: x[i], (60, 4, 1, 12)),
    "x[:, i]": (lambda x, i, j: x[:, i], (40, 20, 1, 4)),
    "x[..., i]": (lambda x, i, j: x[..., i], (24, 8, 2, 1)),
    "x[i, i]": (lambda x, i, j: x[i, i], (20, 1, 4)),
    "x[i, :, i]": (lambda x, i, j: x[i, :, i], (15, 1, 3)),
    "x[:, j.T]": (lambda x, i, j: x[:, j.T], (80, 20, 40, 1, 4)),
    "x[:, i[:, None], i]": (lambda x, i, j: x[:, i[:, None], i], (20, 10, 5, 1)),
    "x[0, i]": (lambda x, i, j: x[0, i], (20, 1, 4)),
    "masked_fill": (lambda x, i, j: x.masked_fill(x > 3, 1.0), (60, 20, 5, 1)),
    "masked_fill of one": (lambda x, i, j: x[:1].masked_fill(x > 3, 1.0), (60, 20, 5, 1)),
    "pow of a number": (lambda x, i, j: torch.pow(2.0, x), (60, 20, 5, 1)),
    "2 ** x": (lambda x, i, j: 2**x, (60, 20, 5, 1)),
    "x ** 2": (lambda x, i, j: x**2, (60, 4, 1, 12)),
    "logsigmoid": (lambda x, i, j: F.logsigmoid(x), (60, 20, 5, 1)),
    "angle": (lambda x, i, j: torch.angle(x), (60, 4, 1, 12)),
    "angle of complex": (lambda x, i, j: torch.angle(x + 1j), (60, 20, 5, 1)),
    "rsub": (lambda x, i, j: torch.rsub(x, x.contiguous() * 2), (60, 20, 5, 1)),
    "rsub of a number": (lambda x, i, j: 2 - x, (60, 4, 1, 12)),
    "expand": (lambda x, i, j: x[0, 0].expand(1, 2, 1, 4, 5), (0, 0, 4, 1, 12)),
    "expand of one": (lambda x, i, j: x[0, 0].expand(1, 1, 4, 5), (4, 4, 1, 12)),
    "take": (lambda x, i, j: torch.take(x, x.long() * 0), (60, 20, 5, 1)),
    "rrelu": (lambda x, i, j: F.rrelu(x), (60, 20, 5, 1)),
    "attention": (lambda x, i, j: F.scaled_dot_product_attention(x, x, x), (60, 20, 5, 1)),
}


@pytest.mark.parametrize("name", TURNED)
def test_results_of_turned_tensors_lie_as_pytorchs(name):
    f, strides = TURNED[name]
    x = torch.linspace(-4, 4, 120).reshape(2, 5, 3, 4).permute(0, 2, 3, 1)
    i, j = torch.tensor([1, 0]), torch.tensor([[0, 1], [1, 1]])
    y = f(x, i, j)
    assert y.stride() == strides
    assert torch.allclose(y, f(x.contiguous(), i, j.T.contiguous().T), rtol=1e-6)
    assert f(*(t.to("meta") for t in (x, i, j))).stride() == strides
    for options in ({}, {"backend": "aot_eager"}):
        z = torch.compile(f, fullgraph=True, **options)(x, i, j)
        assert z.stride() == strides and torch.equal(z, y)


def test_masks_of_turned_tensors():
    x = torch.arange(120.0).reshape(2, 5, 3, 4).permute(0, 2, 3, 1)
    found = x[:, torch.tensor([True, False, True])]
    assert found.stride() == (40, 20, 1, 4) and torch.equal(found, x[:, ::2])


def test_new_tensors():
    x = image()
    wanted = strides_of(x.shape)
    assert torch.empty(N, C, H, W, memory_format=LAST).stride() == wanted
    assert torch.empty((N, C, 2, H, W), memory_format=LAST_3D).stride() == strides_of(
        (N, C, 2, H, W)
    )
    for like in (
        torch.empty_like,
        torch.zeros_like,
        torch.ones_like,
        torch.rand_like,
        torch.randn_like,
    ):
        assert like(x, memory_format=LAST).stride() == wanted
        assert like(last(x)).stride() == wanted
        assert like(last(x), memory_format=torch.contiguous_format).is_contiguous()
    assert torch.full_like(x, 2.0, memory_format=LAST).sum().item() == 2 * x.numel()


def test_nothing_is_copied_that_has_the_format():
    x = last(image())
    assert x.contiguous(memory_format=LAST) is x and x.to(memory_format=LAST) is x
    assert x.to(memory_format=torch.preserve_format) is x
    assert x.to(memory_format=torch.contiguous_format).is_contiguous()
    one = image(2, 1, 4, 5)
    assert one.is_contiguous(memory_format=LAST) and one.contiguous(memory_format=LAST) is one
    assert one.to(memory_format=LAST).stride() == (20, 1, 5, 1)
    assert image(2, 3, 1, 1).to(memory_format=LAST).stride() == (3, 1, 3, 3)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.contiguous(memory_format=LAST),
        lambda x: x.clone(memory_format=LAST),
        lambda x: torch.empty(2, 3, memory_format=LAST),
    ],
)
def test_of_other_ranks_they_are_refused(call):
    with pytest.raises(RuntimeError, match="required rank 4 tensor to use channels_last format"):
        call(image(2, 3, 4))
    with pytest.raises(RuntimeError, match="required rank 5"):
        image().contiguous(memory_format=LAST_3D)


def test_modules_convert_their_weights():
    conv = torch.nn.Conv2d(C, 4, 3).to(memory_format=LAST)
    assert conv.weight.stride() == (27, 1, 9, 3) and conv.bias.stride() == (1,)
    conv3d = torch.nn.Conv3d(C, 4, 2).to(memory_format=LAST_3D)
    assert conv3d.weight.is_contiguous(memory_format=LAST_3D)


torch.manual_seed(1)
KERNEL, DEPTHWISE, BIAS = torch.randn(4, C, 3, 3), torch.randn(C, 1, 3, 3), torch.randn(4)
GROUPED = torch.randn(6, 1, 3, 3)
NETWORK = {
    "conv2d": lambda x: F.conv2d(x, KERNEL, BIAS, padding=1),
    "conv2d strided": lambda x: F.conv2d(x, KERNEL, stride=2),
    "conv2d same": lambda x: F.conv2d(x, KERNEL, padding="same"),
    "conv2d depthwise": lambda x: F.conv2d(x, DEPTHWISE, groups=C),
    "conv2d to one pixel": lambda x: F.conv2d(x, torch.ones(4, C, H, W)),
    "conv_transpose2d": lambda x: F.conv_transpose2d(x, KERNEL.transpose(0, 1).contiguous(), BIAS),
    "max_pool2d": lambda x: F.max_pool2d(x, 2),
    "max_pool2d indices": lambda x: F.max_pool2d(x, 2, return_indices=True)[1],
    "avg_pool2d": lambda x: F.avg_pool2d(x, 2, 1, 1),
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, 1),
    "adaptive_max_pool2d": lambda x: F.adaptive_max_pool2d(x, 2),
    "batch_norm": lambda x: F.batch_norm(x, torch.zeros(C), torch.ones(C)),
    "batch_norm training": lambda x: F.batch_norm(x, None, None, training=True),
    "native_batch_norm": lambda x: torch.native_batch_norm(
        x, None, None, None, None, True, 0.1, 1e-5
    )[0],
    "group_norm": lambda x: F.group_norm(x, 3),
    "rms_norm": lambda x: F.rms_norm(x, (W,)),
    "interpolate": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    "pad": lambda x: F.pad(x, (1, 1, 2, 0), value=1.0),
    "reflect": lambda x: F.pad(x, (1, 1, 2, 0), mode="reflect"),
    "pixel_unshuffle": lambda x: F.pixel_unshuffle(x, 2),
    "dropout": lambda x: F.dropout(x, 0.0),
    "mean of channels kept": lambda x: x * x.mean(1, keepdim=True),
}


@pytest.mark.parametrize("name", NETWORK)
def test_operators_of_networks_keep_the_format(name):
    f, x = NETWORK[name], image()
    row_major, y = f(x), f(last(x))
    assert row_major.is_contiguous() and y.stride() == strides_of(y.shape)
    torch.testing.assert_close(y, row_major)
    compiled = torch.compile(f)(last(x))
    assert compiled.stride() == y.stride()
    torch.testing.assert_close(compiled, y)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int32])
@pytest.mark.parametrize(
    ("shape", "kernel", "options"),
    [
        ((2, 20, 7, 7), (7, 7), {"padding": 3}),
        ((2, 33, 9, 40), (3, 5), {"stride": 2, "dilation": (2, 1)}),
        ((1, 16, 2, 2), (3, 3), {"padding": "same"}),
        ((2, 3, 5, 5), (3, 3), {"padding": 1}),
        ((2, 2, 1, 1), (3, 3), {"padding": 2}),
    ],
)
def test_depthwise_convolutions_read_and_give_the_format(shape, kernel, options, dtype):
    channels = shape[1]
    x = (image(*shape) * 8).to(dtype)
    w = (image(channels, 1, *kernel) * 8).to(dtype)
    b = (image(channels, 1, 1, 1).flatten() * 8).to(dtype)

    def f(x):
        return F.conv2d(x, w.to(x.device), b.to(x.device), groups=channels, **options)

    plain = f(x)
    assert plain.is_contiguous()
    gaps = last(torch.cat([x, x], 1))[:, :channels]
    for g in (f, torch.compile(f)):
        for y in (g(last(x)), g(gaps)):
            assert y.stride() == strides_of(y.shape)
            torch.testing.assert_close(y, plain)
    assert f(last(x).to("meta")).stride() == strides_of(plain.shape)


ONE = {
    "number": lambda x: x * 2,
    "compared": lambda x: x > 0,
    "where": lambda x: torch.where(x > 0, x, 0.0),
    "scalar": lambda x: x + torch.tensor(1.0),
}


@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("shape", [(2, 1, 4, 5), (2, 6, 1, 1), (2, 1, 3, 4, 5), (2, 1, 300, 400)])
def test_numbers_leave_the_format_of_one_channel_or_pixel(name, shape):
    f, x = ONE[name], last(image(*shape))
    for y in (f(x), torch.compile(f)(x), f(x.to("meta"))):
        assert y.stride() == x.stride()
    # Contiguous tensors of one shape say nothing of formats.
    assert (x + x).stride() == image(*shape).stride() == torch.compile(lambda x: x + x)(x).stride()


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "int64", "complex128"])
@pytest.mark.parametrize("mode, numpy_mode", [("reflect", "reflect"), ("replicate", "edge")])
def test_borders_of_images_by_whole_rows(mode, numpy_mode, dtype):
    for width in (5, 40, 300):
        x = (np.arange(2 * 3 * 4 * width) % 100).reshape(2, 3, 4, width).astype(dtype)
        wide = np.pad(x, [(0, 0), (0, 0), (3, 2), (1, 4)], mode=numpy_mode)
        narrow = np.pad(x, [(0, 0), (0, 0), (0, 2), (2, 0)], mode=numpy_mode)[:, :, 1:, :-1]
        t = torch.from_numpy(x)
        ours = last(t)
        for image in (t, ours, ours.transpose(0, 1).contiguous().transpose(0, 1)):
            assert np.array_equal(F.pad(image, (1, 4, 3, 2), mode).numpy(), wide)
            assert np.array_equal(F.pad(image, (2, -1, -1, 2), mode).numpy(), narrow)
        assert F.pad(ours, (1, 4, 3, 2), mode).is_contiguous(memory_format=LAST)
        gaps = torch.cat([ours, ours], 1)[:, :3]
        assert np.array_equal(F.pad(gaps, (1, 4, 3, 2), mode).numpy(), wide)


def test_volumes():
    x = image(2, C, 3, H, W)
    for f in (
        lambda x: F.conv3d(x, torch.ones(4, C, 2, 2, 2)),
        lambda x: F.max_pool3d(x, 2),
        lambda x: F.batch_norm(x, None, None, training=True),
    ):
        y = f(last(x))
        assert y.stride() == strides_of(y.shape)
        torch.testing.assert_close(y, f(x))


def test_weights_with_the_format_make_such_results():
    conv = torch.nn.Conv2d(C, 4, 3, padding=1).to(memory_format=LAST)
    assert conv.weight.stride() == (27, 1, 9, 3) and conv.bias.stride() == (1,)
    assert conv(image()).stride() == strides_of((N, 4, H, W))


def test_gradients_are_laid_out_as_their_leaves_are():
    model = torch.nn.Sequential(
        torch.nn.Conv2d(C, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.MaxPool2d(2)
    )
    plain = image().requires_grad_()
    model(plain).square().sum().backward()
    wanted = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    model.to(memory_format=LAST)
    for f in (model, torch.compile(model)):
        x = last(image()).requires_grad_()
        model.zero_grad()
        f(x).square().sum().backward()
        assert x.grad.stride() == x.stride()
        torch.testing.assert_close(x.grad, plain.grad, rtol=1e-4, atol=1e-5)
        for p, g in zip(model.parameters(), wanted, strict=True):
            assert p.grad.stride() == p.stride()
            torch.testing.assert_close(p.grad, g, rtol=1e-4, atol=1e-4)


GRADIENTS = {
    **{name: NETWORK[name] for name in NETWORK if name not in ("max_pool2d indices", "mean of channels kept")},
    "conv2d dilated groups": lambda x: F.conv2d(x, GROUPED, groups=C, dilation=(1, 2)),
    "pad within": lambda x: F.pad(x, (-1, 1, 0, -1)),
    "replicate": lambda x: F.pad(x, (2, 1, 0, 1), mode="replicate"),
    "lp_pool2d": lambda x: F.lp_pool2d(x, 2.0, 2),
    "max_unpool2d": lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2),
    "adaptive_max_pool2d indices": lambda x: F.adaptive_max_pool2d(x, 3, return_indices=True)[0],
    "nearest": lambda x: F.interpolate(x, scale_factor=2),
    "area": lambda x: F.interpolate(x, size=(3, 4), mode="area"),
    "channel_shuffle": lambda x: F.channel_shuffle(x, 3),
    "roll": lambda x: x.roll((1, 2), (2, 3)),
    "prelu": lambda x: F.prelu(x, torch.full((C,), 0.2)),
    "rrelu": lambda x: F.rrelu(x),
    "prod": lambda x: x.prod(),
    "prod of channels": lambda x: x.prod(1),
    "take": lambda x: x.take(torch.tensor([0, 7, 7])),
    "masked_select": lambda x: x.masked_select(torch.arange(W) > 2),
    "binary_cross_entropy": lambda x: F.binary_cross_entropy(x.sigmoid(), last(image() > 0).float()),
    "binary_cross_entropy_with_logits": lambda x: F.binary_cross_entropy_with_logits(x, last(image() > 0).float()),
    "soft_margin_loss": lambda x: F.soft_margin_loss(x, last(image()).sign()),
}  # fmt: skip
ROW_MAJOR = {"adaptive_avg_pool2d"}  # means of whole planes


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_that_are_asked_for_have_the_format(name):
    f = GRADIENTS[name]
    x = last(image()).requires_grad_()
    for g in (f, torch.compile(f)):
        torch.manual_seed(3)
        y = g(x)
        (grad,) = torch.autograd.grad(y, x, torch.ones_like(y))
        assert grad.is_contiguous() if name in ROW_MAJOR else grad.stride() == x.stride()
        torch.manual_seed(3)
        plain = image().requires_grad_()
        z = f(plain)
        (wanted,) = torch.autograd.grad(z, plain, torch.ones_like(z))
        assert wanted.is_contiguous()
        torch.testing.assert_close(grad, wanted)


@pytest.mark.parametrize("name", ["reflect", "replicate"])
def test_gradients_of_borders_have_the_format_whatever_flows_in(name):
    x = last(image()).requires_grad_()
    y = GRADIENTS[name](x)
    (grad,) = torch.autograd.grad(y, x, torch.ones(y.shape))
    assert grad.stride() == x.stride()


@pytest.mark.parametrize(
    "f",
    [
        lambda x: F.pixel_shuffle(x, 2),
        lambda x: F.pixel_unshuffle(x, 2),
        lambda x: F.channel_shuffle(x, 2),
    ],
)
def test_gradients_of_moved_pixels_lie_as_what_flows_in(f):
    plain = image(N, 8, H, W)
    for x in (plain, last(plain)):
        x.requires_grad_()
        y = f(x)
        for flowing in (torch.randn(y.shape), last(torch.randn(y.shape))):
            (grad,) = torch.autograd.grad(y, x, flowing, retain_graph=True)
            row_major = flowing.is_contiguous()
            assert grad.stride() == (plain.stride() if row_major else strides_of(x.shape))


def test_complex_convolutions_keep_the_format():
    x = torch.complex(image(), image())
    for f, shape in ((F.conv2d, (4, C, 3, 3)), (F.conv_transpose2d, (C, 4, 3, 3))):
        w = torch.complex(image(*shape), image(*shape))
        for y in (f(last(x), w), f(x, last(w))):
            assert y.stride() == strides_of(y.shape)
            torch.testing.assert_close(y, f(x, w))


def test_gradients_of_weights_and_volumes_have_the_format():
    x = image().requires_grad_()
    for f, shape in ((F.conv2d, (4, C, 3, 3)), (F.conv_transpose2d, (C, 4, 3, 3))):
        w = last(image(*shape)).requires_grad_()
        for g in torch.autograd.grad(f(x, w).sum(), (x, w)):
            assert g.is_contiguous(memory_format=LAST)
    v = last(image(2, C, 4, H, W)).requires_grad_()
    for f in (
        lambda v: F.conv3d(v, torch.ones(4, C, 2, 2, 2)),
        lambda v: F.conv_transpose3d(v, torch.ones(C, 4, 2, 2, 2)),
        lambda v: F.max_pool3d(v, 2),
        lambda v: F.batch_norm(v, None, None, training=True),
        lambda v: F.pad(v, (1, 1, 0, 2), mode="constant"),
    ):
        y = f(v)
        for g in (torch.ones_like(y), torch.ones(y.shape)):
            (grad,) = torch.autograd.grad(y, v, g, retain_graph=True)
            assert grad.stride() == v.stride() or g.is_contiguous()
    assert F.conv2d(image()[0], last(KERNEL)).stride() == (1, 16, 4)


@pytest.mark.parametrize("name", ["cos", "acos", "erfc", "atan2", "copysign", "nansum"])
def test_gradients_of_elements_lie_as_the_argument_does(name):
    x = (torch.rand(4, 3, 5) * 0.5).permute(2, 0, 1).requires_grad_()
    y = getattr(x, name)(*([x.detach() + 1] if name in ("atan2", "copysign") else []))
    (grad,) = torch.autograd.grad(y.sum(), x)
    assert grad.stride() == x.stride()


def test_compiled_programs_ask_for_the_format():
    @torch.compile
    def f(x):
        return x * 2 if x.is_contiguous(memory_format=LAST) else x * 3

    x = image()
    torch.testing.assert_close(f(x), x * 3)
    torch.testing.assert_close(f(last(x)), x * 2)


LAYOUTS = {
    "mm of columns": (lambda x: x @ torch.ones(4, 5), (3, 4), (1, 3), (1, 3)),
    "mm by columns": (lambda x: torch.ones(5, 3) @ x, (3, 4), (1, 3), (1, 3)),
    "mm of complex columns": (
        lambda x: x @ torch.ones(4, 5, dtype=torch.complex64),
        (3, 4),
        (1, 3),
        (1, 3),
    ),
    "mm of rows": (lambda x: x @ torch.ones(4, 5), (3, 4), (4, 1), (4, 1)),
    "mm of rows with gaps": (lambda x: x @ torch.ones(4, 5), (3, 4), (8, 2), (4, 1)),
    "mv": (lambda x: x @ torch.ones(4), (3, 4), (1, 3), (4, 1)),
    "addmm": (lambda x: torch.addmm(torch.ones(5), x, torch.ones(4, 5)), (3, 4), (1, 3), (1, 3)),
    "weight": (lambda x: F.linear(torch.ones(2, 4), x, torch.ones(3)), (3, 4), (4, 1), (4, 1)),
    "weight of columns": (lambda x: F.linear(torch.ones(2, 4), x), (3, 4), (1, 3), (1, 3)),
    "input of columns": (lambda x: F.linear(x, torch.ones(5, 4)), (3, 4), (1, 3), (1, 3)),
    "norm": (lambda x: x.norm(2, 1), (2, 4, 6, 8), (192, 1, 32, 4), (192, 1, 32, 4)),
    "norm of all": (lambda x: x.norm(), (2, 4, 6, 8), (192, 1, 32, 4), (192, 1, 32, 4)),
    "masked_fill": (
        lambda x: x.masked_fill(x > 0, 1.0),
        (2, 4, 6, 8),
        (192, 1, 32, 4),
        (192, 48, 8, 1),
    ),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_gradients_lie_as_pytorchs(name):
    f, shape, strides, expected = LAYOUTS[name]
    dtype = torch.complex64 if "complex" in name else torch.float32
    room = torch.linspace(
        -1, 1, 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    ).to(dtype)
    x = room.as_strided(shape, strides).requires_grad_()
    y = f(x)
    weights = (
        torch.linspace(1, 2, y.numel())
        .reshape(y.shape)
        .to(dtype if y.is_complex() else torch.float32)
    )
    (gradient,) = torch.autograd.grad(y, x, weights)
    assert gradient.stride() == expected
    rows = x.detach().contiguous().requires_grad_()
    (wanted,) = torch.autograd.grad(f(rows), rows, weights)
    torch.testing.assert_close(gradient, wanted)


def test_gradients_of_norms_of_zeros_are_zeros():
    for f in (
        lambda x: x.norm(2, 1),
        lambda x: x.norm(),
        lambda x: torch.linalg.vector_norm(x, dim=0),
    ):
        x = torch.zeros(2, 3, requires_grad=True)
        (gradient,) = torch.autograd.grad(f(x).sum(), x)
        assert gradient.tolist() == [[0] * 3] * 2
