"""Backward nodes run with their forward's device and stream; on the driver's stand-in."""

import ctypes
import os
import sys
import types
from pathlib import Path

import pytest

import argand_aten as aten
import argand_c10 as c10
from argand_autograd import Function
from argand_c10 import cuda

_DRIVER = os.environ.get("ARGAND_CUDA_DRIVER", "")
if not Path(_DRIVER).is_file():
    pytest.skip("ARGAND_CUDA_DRIVER does not name the driver's stand-in", allow_module_level=True)
sys.modules["argand_aten_cuda"] = types.ModuleType("argand_aten_cuda")  # no kernel is called here
fake = ctypes.CDLL(str(Path(_DRIVER).resolve()))


class Notes(Function):
    """Notes where forward and backward run; values are not computed."""

    seen = []

    @staticmethod
    def forward(ctx, x):
        Notes.seen.append((cuda.current_device(), cuda.current_stream().cuda_stream))
        return aten.empty_like(x)

    @staticmethod
    def backward(ctx, grad):
        Notes.seen.append((cuda.current_device(), cuda.current_stream().cuda_stream))
        return aten.empty_like(grad)


def _run(x, stream):
    Notes.seen.clear()
    with cuda.stream(stream):
        y = Notes.apply(x)
    y.backward(aten.empty_like(y))
    return y


@pytest.mark.parametrize("index", [0, 1])
def test_backward_runs_where_forward_ran(index):
    x = c10.tensor([1.0, 2.0], device=f"cuda:{index}").requires_grad_()
    s = cuda.Stream(index)
    events = fake.fakeCalls(b"cuEventRecord")
    _run(x, s)
    assert Notes.seen == [(index, s.cuda_stream)] * 2
    assert cuda.current_device() == 0 and cuda.current_stream(index).cuda_stream == 0
    assert fake.fakeCalls(b"cuEventRecord") - events >= 2  # ordered before and after
    assert x.grad is not None and x.grad.device == x.device


def test_nothing_to_order_on_the_same_stream():
    x = c10.tensor([1.0, 2.0], device="cuda").requires_grad_()
    events = fake.fakeCalls(b"cuEventRecord")
    _run(x, None)
    assert Notes.seen == [(0, 0)] * 2 and fake.fakeCalls(b"cuEventRecord") == events


def test_errors_leave_the_stream_as_it_was():
    class Fails(Function):
        @staticmethod
        def forward(ctx, x):
            return aten.empty_like(x)

        @staticmethod
        def backward(ctx, grad):
            raise KeyError("backward")

    x = c10.tensor([1.0], device="cuda:1").requires_grad_()
    with cuda.stream(cuda.Stream(1)):
        y = Fails.apply(x)
    with pytest.raises(KeyError):
        y.backward(aten.empty_like(y))
    assert cuda.current_device() == 0 and cuda.current_stream(1).cuda_stream == 0
