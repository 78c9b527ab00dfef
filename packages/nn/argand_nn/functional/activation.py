"""Activation functions."""

from __future__ import annotations

import warnings
from typing import Any

import argand_aten as aten
from argand_c10 import Tensor, finfo, is_complex, uint8

__all__ = [
    "celu",
    "celu_",
    "elu",
    "elu_",
    "gelu",
    "glu",
    "gumbel_softmax",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "leaky_relu",
    "leaky_relu_",
    "log_softmax",
    "logsigmoid",
    "mish",
    "prelu",
    "relu",
    "relu6",
    "relu_",
    "rrelu",
    "rrelu_",
    "selu",
    "selu_",
    "sigmoid",
    "silu",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "threshold_",
]


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(input, 0), elementwise."""
    return aten.relu_(input) if inplace else aten.relu(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(input, 0), 6), elementwise."""
    return hardtanh(input, 0.0, 6.0, inplace)


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """`input` limited to [min_val, max_val]."""
    if min_val > max_val:
        raise ValueError(f"hardtanh: got min_val {min_val} above max_val {max_val}; swap them")
    if input.dtype is uint8:
        if min_val < 0:
            raise RuntimeError(f"hardtanh: got min_val {min_val} for uint8, expected at least 0")
        return (aten.clamp_ if inplace else aten.clamp)(input, int(min_val), int(max_val))
    return (aten.hardtanh_ if inplace else aten.hardtanh)(input, min_val, max_val)


def hardtanh_(input: Tensor, min_val: float = -1, max_val: float = 1) -> Tensor:
    """`hardtanh` in the place of `input`."""
    return hardtanh(input, min_val, max_val, True)


def gelu(input: Tensor, *, approximate: str = "none", out: Tensor | None = None) -> Tensor:
    """Gaussian error linear unit (Hendrycks and Gimpel, 2016); `approximate` is none or tanh."""
    return aten.gelu(input, approximate=approximate, out=out)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """input * sigmoid(input), elementwise."""
    if is_complex(input):
        result = input * aten.sigmoid(input)
        return input.copy_(result) if inplace else result
    return aten.silu_(input) if inplace else aten.silu(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """input * tanh(softplus(input)), elementwise (Misra, 2019)."""
    return aten.mish_(input) if inplace else aten.mish(input)


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-input)), elementwise."""
    return aten.sigmoid(input)


def tanh(input: Tensor) -> Tensor:
    """Hyperbolic tangent, elementwise."""
    return aten.tanh(input)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """`input` where positive, `negative_slope * input` elsewhere."""
    return (aten.leaky_relu_ if inplace else aten.leaky_relu)(input, negative_slope)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Leaky ReLU with a learned slope: one for all channels, or one a channel (dimension 1)."""
    return aten.prelu(input, weight)


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """Leaky ReLU with a slope drawn from [lower, upper) in training, their mean otherwise (Xu et al., 2015)."""
    return (aten.rrelu_ if inplace else aten.rrelu)(input, lower, upper, training)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """`input` where positive, `alpha * (exp(input) - 1)` elsewhere (Clevert et al., 2015)."""
    return (aten.elu_ if inplace else aten.elu)(input, alpha)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """`input` where positive, `alpha * (exp(input / alpha) - 1)` elsewhere (Barron, 2017)."""
    return (aten.celu_ if inplace else aten.celu)(input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Scaled ELU with the fixed constants of Klambauer et al., 2017."""
    return aten.selu_(input) if inplace else aten.selu(input)


def hardshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """0 where |input| <= lambd, `input` elsewhere."""
    return aten.hardshrink(input, lambd, out=out)


def softshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """`input` moved towards 0 by `lambd`, 0 where |input| <= lambd."""
    if lambd < 0:
        raise RuntimeError(f"softshrink: got lambd {lambd}, expected a number of at least 0")
    return aten.softshrink(input, lambd, out=out)


def softplus(
    input: Tensor, beta: float = 1.0, threshold: float = 20.0, *, out: Tensor | None = None
) -> Tensor:
    """log(1 + exp(beta * input)) / beta; linear where beta * input exceeds `threshold`."""
    return aten.softplus(input, beta, threshold, out=out)


def softsign(input: Tensor) -> Tensor:
    """input / (1 + |input|), elementwise."""
    return input / (aten.abs(input) + 1)


def tanhshrink(input: Tensor) -> Tensor:
    """input - tanh(input), elementwise."""
    return input - aten.tanh(input)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """`input` where it exceeds `threshold`, `value` elsewhere."""
    return (aten.threshold_ if inplace else aten.threshold)(input, threshold, value)


def logsigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """log(sigmoid(input)), without overflow."""
    return aten.log_sigmoid(input, out=out)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(input + 3, 0), 6) / 6, elementwise."""
    return aten.hardsigmoid_(input) if inplace else aten.hardsigmoid(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """input * hardsigmoid(input), elementwise."""
    return aten.hardswish_(input) if inplace else aten.hardswish(input)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """First half of `input` along `dim` times the sigmoid of the second half."""
    return aten.glu(input, dim)


def _softmax_dim(name: str, input: Tensor, dim: int | None, stacklevel: int) -> int:
    if dim is not None:
        return dim
    warnings.warn(
        f"{name}: got dim=None, which is deprecated; pass the dimension to normalise",
        stacklevel=stacklevel + 1,
    )
    return 0 if input.dim() in (0, 1, 3) else 1


def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """exp(input) normalised to sum 1 along `dim`; computed in `dtype` if that is given."""
    return aten.softmax(input, _softmax_dim("softmax", input, dim, _stacklevel), dtype=dtype)


def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """softmax(-input) along `dim`."""
    return aten.softmax(-input, _softmax_dim("softmin", input, dim, _stacklevel), dtype=dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """Logarithm of softmax along `dim`; computed in `dtype` if that is given."""
    return aten.log_softmax(
        input, _softmax_dim("log_softmax", input, dim, _stacklevel), dtype=dtype
    )


def gumbel_softmax(
    logits: Tensor, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """A sample of the Gumbel-softmax distribution (Jang et al., 2016); `hard` makes it one-hot."""
    if eps != 1e-10:
        warnings.warn(
            "gumbel_softmax: got eps, which is deprecated and has no effect", stacklevel=2
        )
    uniform = aten.clamp(aten.rand_like(logits), min=finfo(logits.dtype).tiny)
    gumbels = -aten.log(-aten.log(uniform))
    soft = aten.softmax((logits + gumbels) / tau, dim)
    if not hard:
        return soft
    index = aten.argmax(soft, dim, keepdim=True)
    one_hot = aten.scatter(aten.zeros_like(logits), dim, index, 1.0)
    return one_hot - soft.detach() + soft


relu_, celu_, elu_, leaky_relu_, selu_, rrelu_, threshold_ = (
    aten.relu_,
    aten.celu_,
    aten.elu_,
    aten.leaky_relu_,
    aten.selu_,
    aten.rrelu_,
    aten.threshold_,
)
