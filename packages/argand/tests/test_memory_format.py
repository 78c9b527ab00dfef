"""Memory formats: strides of copies and of new tensors are PyTorch's, eager and compiled."""

import pytest

import argand as torch

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


def test_compiled_programs_ask_for_the_format():
    @torch.compile
    def f(x):
        return x * 2 if x.is_contiguous(memory_format=LAST) else x * 3

    x = image()
    torch.testing.assert_close(f(x), x * 3)
    torch.testing.assert_close(f(last(x)), x * 2)
