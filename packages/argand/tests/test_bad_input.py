"""Bad input gets a typed error that says what was wrong; nothing is half-done, and later work is unaffected."""

from __future__ import annotations

import numpy as np
import pytest

import argand as torch
import argand.nn as nn
import argand.nn.functional as F

# (what is called, class of the error, words that the message must have)
CALLS = [
    # shapes
    ("torch.zeros(2, 3) + torch.zeros(2, 4)", RuntimeError, ["add", "3", "4"]),
    ("torch.mm(torch.zeros(2, 3), torch.zeros(4, 5))", RuntimeError, ["mm", "2", "3", "4", "5"]),
    ("torch.zeros(2, 3) @ torch.zeros(4)", RuntimeError, ["3", "4"]),
    ("torch.bmm(torch.zeros(2, 3), torch.zeros(2, 3))", RuntimeError, ["bmm"]),
    ("torch.zeros(2, 3).view(5)", RuntimeError, ["view", "5", "6"]),
    ("torch.zeros(2, 3).t().view(6)", RuntimeError, ["view", "reshape"]),
    ("torch.zeros(2, 3).reshape(4, -1)", RuntimeError, ["reshape", "4", "6"]),
    ("torch.zeros(2, 3).expand(2, 4)", RuntimeError, ["expand", "3", "4"]),
    ("torch.cat([torch.zeros(2, 3), torch.zeros(2, 4)])", RuntimeError, ["cat", "3", "4"]),
    ("torch.stack([torch.zeros(2), torch.zeros(3)])", RuntimeError, ["stack", "2", "3"]),
    ("nn.Linear(3, 4)(torch.zeros(2, 5))", RuntimeError, ["linear", "5", "3"]),
    ("nn.Conv2d(3, 4, 3)(torch.zeros(2, 2, 8, 8))", RuntimeError, ["conv", "3", "2"]),
    ("F.conv2d(torch.zeros(1, 1, 2, 2), torch.zeros(1, 1, 3, 3))", RuntimeError, ["conv"]),
    ("F.layer_norm(torch.zeros(2, 3), (4,))", RuntimeError, ["layer_norm", "4"]),
    ("F.cross_entropy(torch.zeros(3, 5), torch.zeros(2, dtype=torch.int64))", (RuntimeError, ValueError), ["3", "2"]),
    ("torch.zeros(2, 3).item()", RuntimeError, ["6"]),
    ("bool(torch.zeros(2))", RuntimeError, ["ambiguous"]),
    ("torch.zeros(-1)", RuntimeError, ["-1"]),
    ("torch.tensor([[1], [2, 3]])", ValueError, ["length"]),
    # dimensions and indices
    ("torch.zeros(2, 3).sum(2)", IndexError, ["2", "range"]),
    ("torch.softmax(torch.zeros(2), 1)", IndexError, ["1", "range"]),
    ("torch.zeros(2, 3)[2]", IndexError, ["2"]),
    ("torch.zeros(2, 3)[0, 0, 0]", IndexError, ["2"]),
    ("torch.zeros(2, 3)[torch.tensor([5])]", IndexError, ["5"]),
    ("torch.zeros(2, 3)[torch.tensor([0.5])]", IndexError, ["indices"]),
    ("torch.zeros(2, 3)['name']", (TypeError, IndexError), ["str"]),
    ("torch.index_select(torch.zeros(2), 0, torch.tensor([2]))", IndexError, ["2"]),
    ("F.embedding(torch.tensor([7]), torch.zeros(5, 2))", IndexError, ["7"]),
    ("F.cross_entropy(torch.zeros(1, 3), torch.tensor([3]))", IndexError, ["3"]),
    ("torch.zeros(2, 3).permute(0, 0)", RuntimeError, ["permute"]),
    ("torch.gather(torch.zeros(2, 2), 1, torch.tensor([[9], [0]]))", (IndexError, RuntimeError), ["9"]),
    *(
        (f"{call}", IndexError, [f"{name}: Dimension out of range (expected to be in range of [-2, 1], but got 5)"])
        for call, name in (
            ("torch.zeros(2, 3).sum(5)", "sum"), ("torch.zeros(2, 3).max(5)", "max"), ("torch.softmax(torch.zeros(2, 3), 5)", "softmax"),
            ("torch.zeros(2, 3).cumsum(5)", "cumsum"), ("torch.zeros(2, 3).sort(5)", "sort"), ("torch.zeros(2, 3).transpose(5, 0)", "transpose"),
            ("torch.zeros(2, 3).select(5, 0)", "select"), ("torch.cat([torch.zeros(2, 3)], 5)", "cat"), ("torch.zeros(2, 3).size(5)", "size"), ("torch.zeros(2, 3).argmax(5)", "argmax"),
            ("torch.zeros(2, 3).index_select(5, torch.tensor([0]))", "index_select"), ("torch.zeros(2, 3).median(5)", "median"), ("torch.zeros(2, 3).chunk(2, 5)", "chunk"),
            ("torch.zeros(2, 3, device='meta').sum(5)", "sum"), ("torch.zeros(2, 3, device='meta').sort(5)", "sort"), ("torch.zeros(2, 3).logsumexp(5)", "logsumexp"),
            ("torch.compile(lambda x: x.sum(5))(torch.zeros(2, 3))", "sum"), ("torch.compile(lambda x: x.median(5))(torch.zeros(2, 3))", "median"),
        )
    ),
    # dtypes
    *(
        (call, RuntimeError, [f"{name}: got", "float32", "float64"])
        for call, name in (
            ("torch.einsum('ij,jk', torch.zeros(2, 2), torch.zeros(2, 2).double())", "einsum"),
            ("torch.linalg.solve(torch.eye(2), torch.zeros(2, 2).double())", "linalg_solve"),
            ("torch.ormqr(torch.zeros(2, 2).requires_grad_(), torch.zeros(2), torch.zeros(2, 2).double())", "ormqr"),
            ("nn.LSTMCell(2, 3)(torch.zeros(1, 2).double())", "LSTMCell"),
            ("torch.tensordot(torch.zeros(2, 2), torch.zeros(2, 2).double(), 1)", "tensordot"),
        )
    ),
    ("torch.zeros(2) @ torch.zeros(2, dtype=torch.int64)", RuntimeError, ["float32", "int64"]),
    ("torch.zeros(2, dtype=torch.int64).add_(0.5)", RuntimeError, ["add", "Float", "Long"]),
    ("torch.zeros(2, dtype=torch.int64).mean()", RuntimeError, ["mean"]),
    ("torch.bitwise_and(torch.zeros(2), torch.zeros(2))", RuntimeError, ["bitwise_and", "float32"]),
    ("torch.zeros(2, dtype=torch.complex64) < 1", RuntimeError, ["complex64"]),
    ("torch.ones(2, dtype=torch.bool) - torch.ones(2, dtype=torch.bool)", RuntimeError, ["sub", "bool"]),
    ("torch.zeros(2, dtype=torch.int64, requires_grad=True)", RuntimeError, ["floating"]),
    ("torch.add(torch.zeros(2), 1, out=torch.zeros(2, dtype=torch.int64))", RuntimeError, ["add", "Float", "Long"]),
    ("torch.zeros(2, dtype=torch.bfloat16).numpy()", TypeError, ["bfloat16"]),
    ("torch.from_numpy(np.array(['a']))", TypeError, ["numpy.<U1", "float32"]),
    # gradients of other shapes than their results
    *(
        (f"torch.ops.{call}", RuntimeError, [call.partition("(")[0]])
        for call in (
            "avg_pool2d_backward(torch.ones(2, 2, 2), [1, 4, 4], [2, 2], [2, 2], [0, 0], False, True, None)",
            "adaptive_avg_pool2d_backward(torch.ones(2, 2, 2), [1, 4, 4])",
            "max_pool2d_with_indices_backward(torch.ones(1, 2, 2), [1, 4, 4], torch.zeros(1, 1, 2, dtype=torch.int64))",
            "max_pool2d_with_indices_backward(torch.ones(2, 2, 2), [1, 4, 4], torch.zeros(2, 2, 2, dtype=torch.int64))",
            "native_batch_norm_backward(torch.ones(1, 2), torch.ones(4, 2), None, None, None, torch.ones(2), torch.ones(2), True, 0.1, [True, True, True])",
            "native_layer_norm_backward(torch.ones(1, 2), torch.ones(4, 2), [2], torch.ones(4, 1), torch.ones(4, 1), None, None, [True, True, True])",
            "native_layer_norm_backward(torch.ones(4, 2), torch.ones(4, 2), [2], torch.ones(1), torch.ones(4, 1), None, None, [True, True, True])",
            "native_layer_norm_backward(torch.ones(4, 2), torch.ones(4, 2), [2], torch.ones(4).half(), torch.ones(4).half(), None, None, [True, True, True])",
            "fused_rms_norm_backward(torch.ones(1, 2), torch.ones(4, 2), [2], torch.ones(4, 1), None, [True, True])",
            "fused_rms_norm_backward(torch.ones(4, 2), torch.ones(4, 2), [2], torch.ones(1), None, [True, True])",
            "native_group_norm_backward(torch.ones(1, 4), torch.ones(1, 4), torch.ones(1, 2), torch.ones(1, 2), None, 1, 4, 9, 2, [True, True, True])",
            "native_group_norm_backward(torch.ones(1, 4), torch.ones(1, 4), torch.ones(1, 2), torch.ones(1, 2), None, 1, 4, 1, 0, [True, True, True])",
            "native_group_norm_backward(torch.ones(1, 4), torch.ones(1, 4), torch.ones(1), torch.ones(1, 2), None, 1, 4, 1, 2, [True, True, True])",
            "_resample_backward(torch.ones(2, 1), torch.zeros(3, dtype=torch.int64), torch.ones(3, 2), 1, 4)",
            "_weighted_scatter(torch.ones(1, 1, 1), torch.zeros(1, 3, 1, dtype=torch.int64), torch.ones(1, 3, 1), 4)",
            "_weighted_gather_weights(torch.ones(1, 1, 1), torch.ones(1, 1, 4), torch.zeros(1, 3, 1, dtype=torch.int64))",
        )
    ),
    ("torch.ops._resample(torch.ones(2, 4), torch.tensor([2**63 - 1]), torch.ones(1, 2), 1)", IndexError, ["starts"]),
    # not tensors
    ("torch.add(torch.zeros(2), 'a')", TypeError, ["add", "str"]),
    ("torch.exp([1.0])", TypeError, ["exp", "list"]),
    ("torch.add(torch.zeros(2))", TypeError, ["add", "other"]),
    ("torch.zeros(2).sum(dimension=0)", TypeError, ["sum", "dimension"]),
    ("torch.zeros(2).add(1, 2, 3)", TypeError, ["add"]),
    ("torch.zeros('two')", TypeError, ["zeros", "str"]),
    ("nn.Linear(3, 4)('text')", TypeError, ["linear", "str"]),
    ("torch.cat(torch.zeros(2))", TypeError, ["cat"]),
    ("torch.cat([torch.zeros(2), 1])", TypeError, ["cat", "int"]),
    ("torch.zeros(2).nothing", AttributeError, ["nothing"]),
    ("torch.nothing", AttributeError, ["nothing"]),
    # devices
    ("torch.zeros(2, device='nowhere')", RuntimeError, ["nowhere"]),
    ("torch.zeros(2, device='cuda')", RuntimeError, ["cuda"]),
    ("torch.zeros(2) + torch.zeros(2, device='meta')", RuntimeError, ["cpu", "meta"]),
    ("torch.zeros(2, 2) @ torch.zeros(2, 2, device='meta')", RuntimeError, ["cpu", "meta"]),
    ("torch.zeros((), device='meta').item()", RuntimeError, ["meta"]),
    ("torch.zeros(2, device='meta').numpy()", (RuntimeError, TypeError), ["meta"]),
    # values
    ("F.dropout(torch.zeros(2), 1.5)", ValueError, ["1.5"]),
    ("F.gelu(torch.zeros(2), approximate='other')", (RuntimeError, ValueError), ["other"]),
    ("torch.optim.SGD([torch.zeros(2, requires_grad=True)], lr=-1.0)", ValueError, ["-1.0"]),
    ("torch.optim.Adam([], lr=0.1)", ValueError, ["Adam", "no parameters"]),
    ("nn.Linear(2, 2).load_state_dict({'weight': torch.zeros(3, 2)})", RuntimeError, ["weight", "bias", "3"]),
    ("torch.zeros(2).requires_grad_().numpy()", RuntimeError, ["detach"]),
    ("torch.zeros(2).backward()", RuntimeError, ["grad"]),
    ("torch.zeros(2, requires_grad=True).add_(1)", RuntimeError, ["leaf"]),
    ("(torch.zeros(2, requires_grad=True) * 2).backward()", RuntimeError, ["scalar"]),
    ("torch.zeros(3).expand(2, 3).add_(1)", RuntimeError, ["add", "clone()"]),
    ("torch.multinomial(torch.tensor([-1.0, 1.0]), 1)", RuntimeError, ["multinomial"]),
    ("torch.save(1, 'no such folder/x.pt')", RuntimeError, ["Parent directory no such folder does not exist"]),
    ("torch.load('no such file')", FileNotFoundError, ["no such file"]),
    ("torch.zeros(0, 0).amax(1)", IndexError, ["amax", "non-zero size", "[0, 0]"]),
    ("torch.zeros(0, 0).max(0)", IndexError, ["max", "non-zero size", "[0, 0]"]),
    ("torch.zeros(0, 0).amin()", RuntimeError, ["amin", "non-zero size", "[0, 0]"]),
]  # fmt: skip

SCOPE = {"torch": torch, "nn": nn, "F": F, "np": np}


def works():
    """Later work is unaffected."""
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    (x * x).sum().backward()
    assert x.grad.tolist() == [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]


@pytest.mark.parametrize(("call", "kind", "words"), CALLS, ids=[call for call, _, _ in CALLS])
def test_error_says_what_was_wrong(call, kind, words):
    with pytest.raises(kind) as caught:
        eval(call, dict(SCOPE))
    message = str(caught.value)
    for word in words:
        assert word in message, message
    works()


def test_in_place_errors_change_nothing():
    x = torch.arange(4.0)
    for bad in (torch.zeros(3), torch.zeros(2, 4), 1j, "a", None):
        with pytest.raises((RuntimeError, TypeError)):
            x.add_(bad)
    with pytest.raises(IndexError):
        x[torch.tensor([1, 9])] = 5.0
    with pytest.raises(RuntimeError):
        x.scatter_(0, torch.tensor([0, 8]), 7.0)
    with pytest.raises(RuntimeError):
        x[:2] = torch.zeros(3)
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert x._version == 0


def test_out_of_memory_is_typed_and_leaves_the_rest_alone():
    x = torch.ones(10)
    with pytest.raises(torch.OutOfMemoryError, match="could not allocate .* bytes"):
        torch.empty(1 << 58, dtype=torch.uint8)
    assert issubclass(torch.OutOfMemoryError, RuntimeError)
    with pytest.raises(RuntimeError):
        torch.empty(1 << 40, 1 << 40)  # more bytes than can be counted
    with pytest.raises(RuntimeError):
        x.expand(1 << 40, 10).contiguous()
    assert x.sum().item() == 10
    works()


@pytest.mark.parametrize("huge", [1 << 31, 1 << 40, 1 << 62, (1 << 63) - 1])
def test_arguments_that_no_size_reaches(huge):
    """Sizes computed from them would not fit 64 bits, and loops over them would not end."""
    x = torch.arange(36.0).view(1, 1, 6, 6)
    cube = torch.ones(1, 1, 3, 4, 4)
    for call in (
        lambda: F.max_pool2d(x, huge, ceil_mode=True),
        lambda: F.max_pool2d(x.double(), 2, padding=1, stride=1, dilation=huge),
        lambda: F.avg_pool2d(x, huge, ceil_mode=True),
        lambda: F.conv2d(x, torch.ones(1, 1, 3, 3), padding=(2, huge)),
        lambda: F.conv2d(x, torch.ones(1, 1, 3, 3), dilation=huge),
        lambda: F.conv3d(cube, torch.ones(1, 1, 2, 2, 2), padding=(huge, 0, 0)),
        lambda: F.pixel_shuffle(x, huge),
        lambda: torch.linalg.matrix_power(torch.eye(2), -(1 << 63)),
        lambda: F.unfold(x, (huge, 2), dilation=2, padding=1),
    ):
        with pytest.raises(RuntimeError):
            call()
    x.requires_grad_()
    weight = torch.ones(1, 1, 3, 3, requires_grad=True)
    far, near = (F.conv2d(x, weight, stride=(stride, 2), padding=1) for stride in (huge, 100))
    assert torch.equal(far, near)
    grads = [torch.autograd.grad(y.square().sum(), (x, weight)) for y in (far, near)]
    assert all(torch.equal(a, b) for a, b in zip(*grads, strict=True))
    works()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_pooling_windows_that_see_padding_alone(dtype):
    x = torch.arange(81.0, dtype=dtype).view(1, 1, 9, 9).requires_grad_()
    y, indices = F.max_pool2d(x, 2, padding=1, dilation=10, stride=1, return_indices=True)
    assert y.shape == (1, 1, 1, 1)
    assert indices.item() == -1
    y.sum().backward()
    assert torch.equal(x.grad, torch.zeros_like(x))
    z = F.max_pool2d(x, 100, stride=3, padding=50)  # far larger than its input
    assert torch.equal(z, torch.full_like(z, 80.0))


def test_saved_tensor_changed_in_place():
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    z = y.sum()
    y.add_(1)
    with pytest.raises(RuntimeError, match="version|modified|in-?place"):
        z.backward()
        # `exp` needs its result; the sum alone does not.
    assert x.grad is None
    works()


def test_saved_view_changed_through_its_base():
    base = torch.ones(4)
    x = torch.ones(2, requires_grad=True)
    y = x * base[:2]
    base.add_(1)
    with pytest.raises(RuntimeError, match="version|modified|in-?place"):
        y.sum().backward()
    works()


def test_backward_twice():
    x = torch.ones(3, requires_grad=True)
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="second time|retain_graph"):
        y.backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]
    z = (x * x).sum()
    z.backward(retain_graph=True)
    z.backward()
    assert x.grad.tolist() == [6.0, 6.0, 6.0]


def test_gradient_of_the_wrong_shape_or_dtype():
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="shape|size"):
        (x * 2).backward(torch.ones(4))
    with pytest.raises((RuntimeError, TypeError)):
        x.grad = torch.ones(4)
    with pytest.raises((RuntimeError, TypeError)):
        x.grad = "gradient"
    assert x.grad is None


def test_grad_of_what_was_not_used():
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="used|allow_unused"):
        torch.autograd.grad((x * 2).sum(), [x, y])
    grads = torch.autograd.grad((x * 2).sum(), [x, y], allow_unused=True)
    assert grads[0].tolist() == [2.0, 2.0] and grads[1] is None


def test_an_error_inside_backward_reaches_the_caller():
    class Broken(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            raise KeyError("inside")

    x = torch.ones(2, requires_grad=True)
    with pytest.raises(KeyError, match="inside"):
        Broken.apply(x).sum().backward()
    assert x.grad is None
    works()


def test_state_dict_errors_name_every_problem_and_load_nothing():
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = {"0.weight": torch.zeros(3, 2), "0.bias": torch.zeros(4), "extra": torch.zeros(1)}
    with pytest.raises(RuntimeError) as caught:
        model.load_state_dict(state)
    for word in ("1.weight", "1.bias", "extra", "0.bias"):
        assert word in str(caught.value)
    for name, value in model.state_dict().items():
        if name != "0.weight":  # the peer too has loaded what fits when it reports the rest
            assert torch.equal(value, before[name])
