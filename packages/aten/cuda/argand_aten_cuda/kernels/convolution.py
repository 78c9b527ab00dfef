"""What cuDNN's convolutions leave to be done."""

import triton
import triton.language as tl

from argand_aten_cuda.kernel import Kernel
from argand_aten_cuda.kernels._accumulate import widen


@triton.jit
def add_channel_bias(y, bias, n, channels, inner, BLOCK: tl.constexpr):
    """y[i] += bias[i // inner % channels] for all n elements of (batch, channel, inner). Grid: tiles of n."""
    start = tl.program_id(0).to(n.dtype) * BLOCK
    at = start + tl.arange(0, BLOCK)
    channel = at // inner % channels
    if start + BLOCK <= n:
        value = widen(tl.load(y + at)) + widen(tl.load(bias + channel))
        tl.store(y + at, value.to(y.dtype.element_ty))
    else:
        value = widen(tl.load(y + at, mask=at < n, other=0.0)) + widen(
            tl.load(bias + channel, mask=at < n, other=0.0)
        )
        tl.store(y + at, value.to(y.dtype.element_ty), mask=at < n)


KERNELS = [
    Kernel(
        add_channel_bias,
        {"y": "*T", "bias": "*T", "n": "I", "channels": "i32", "inner": "i32"},
        {"T": ["float32", "bfloat16", "float16", "float64"], "I": ["i32", "i64"]},
        {"BLOCK": [1024]},
        {"I": ["i32"]},
        divisible=("y",),
    ),
]
