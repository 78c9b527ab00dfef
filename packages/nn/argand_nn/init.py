"""Initialisers: they fill a tensor in place, without recording gradients, and return it."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

import argand_aten as aten
from argand_autograd import no_grad
from argand_c10 import Generator, Tensor, float64

__all__ = [
    "calculate_gain",
    "constant",
    "constant_",
    "dirac",
    "dirac_",
    "eye",
    "eye_",
    "kaiming_normal",
    "kaiming_normal_",
    "kaiming_uniform",
    "kaiming_uniform_",
    "normal",
    "normal_",
    "ones_",
    "orthogonal",
    "orthogonal_",
    "sparse",
    "sparse_",
    "trunc_normal_",
    "uniform",
    "uniform_",
    "xavier_normal",
    "xavier_normal_",
    "xavier_uniform",
    "xavier_uniform_",
    "zeros_",
]


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which a nonlinearity wants its weights' deviation enlarged.

    Args:
        nonlinearity: a function's name: linear, conv1d..., conv_transpose1d..., sigmoid, tanh, relu,
            leaky_relu, selu.
        param: the negative slope for leaky_relu (0.01 by default).
    """
    maps = [f"{kind}{n}d" for kind in ("conv", "conv_transpose") for n in (1, 2, 3)]
    if nonlinearity in ("linear", "sigmoid", *maps):
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3.0
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else float(param)
        return math.sqrt(2.0 / (1.0 + slope**2))
    if nonlinearity == "selu":
        return 0.75
    raise ValueError(
        f"calculate_gain: got nonlinearity {nonlinearity!r}, expected linear, conv1d, conv2d, "
        "sigmoid, tanh, relu, leaky_relu or selu"
    )


def _calculate_fan_in_and_fan_out(
    tensor: Tensor, name: str = "_calculate_fan_in_and_fan_out"
) -> tuple[int, int]:
    """Inputs and outputs of one unit of a weight (out, in, *receptive field). Layers written for PyTorch call it by this name."""
    if tensor.dim() < 2:
        raise ValueError(
            f"{name}: got a tensor of shape {list(tensor.shape)}, expected at least 2 dimensions"
        )
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def uniform_(
    tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fill from the uniform distribution on [a, b)."""
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fill from the normal distribution."""
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Fill from the normal distribution cut to [a, b] (by inversion of its distribution function)."""
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            f"trunc_normal_: mean {mean} is more than 2 deviations from [{a}, {b}]; the values may "
            "be distributed wrongly",
            stacklevel=2,
        )

    def below(x: float) -> float:
        return (1.0 + math.erf((x - mean) / (std * math.sqrt(2.0)))) / 2.0

    with no_grad():
        tensor.uniform_(2 * below(a) - 1, 2 * below(b) - 1, generator=generator)
        tensor.erfinv_().mul_(std * math.sqrt(2.0)).add_(mean)
        return tensor.clamp_(a, b)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with `val`."""
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros."""
    return constant_(tensor, 0.0)


def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with ones on its diagonal and zeros elsewhere."""
    if tensor.dim() != 2:
        raise ValueError(f"eye_: got a tensor of shape {list(tensor.shape)}, expected 2 dimensions")
    with no_grad():
        rows, columns = tensor.shape
        return tensor.copy_(aten.eye(rows, columns, dtype=tensor.dtype, device=tensor.device))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill a convolution's weight so that it copies its input channels, in each group."""
    if tensor.dim() not in (3, 4, 5):
        raise ValueError(
            f"dirac_: got a tensor of shape {list(tensor.shape)}, expected 3, 4 or 5 dimensions"
        )
    if tensor.shape[0] % groups:
        raise ValueError(
            f"dirac_: got {tensor.shape[0]} output channels, expected a multiple of groups {groups}"
        )
    outputs = tensor.shape[0] // groups
    centre = tuple(size // 2 for size in tensor.shape[2:])
    with no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(outputs, tensor.shape[1])):
                tensor[(group * outputs + channel, channel, *centre)] = 1
        return tensor


def xavier_uniform_(
    tensor: Tensor, gain: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fill uniformly on [-a, a], a = gain * sqrt(6 / (fan_in + fan_out)) (Glorot, Bengio, 2010)."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor, "xavier_uniform_")
    bound = gain * math.sqrt(6.0 / (fan_in + fan_out))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill normally, std = gain * sqrt(2 / (fan_in + fan_out)) (Glorot and Bengio, 2010)."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor, "xavier_normal_")
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / (fan_in + fan_out)), generator)


def _calculate_correct_fan(tensor: Tensor, mode: str, name: str = "_calculate_correct_fan") -> int:
    """The fan that `mode` names, in any case of letters. Layers written for PyTorch call it by this name."""
    if mode.lower() not in ("fan_in", "fan_out"):
        raise ValueError(f"{name}: got mode {mode!r}, expected 'fan_in' or 'fan_out'")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor, name)
    return fan_in if mode.lower() == "fan_in" else fan_out


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str, name: str) -> float:
    fan = _calculate_correct_fan(tensor, mode, name)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fill uniformly with deviation gain / sqrt(fan) (He et al., 2015); `a` is the leak's slope."""
    if 0 in tensor.shape:
        warnings.warn("kaiming_uniform_: the tensor has no elements", stacklevel=2)
        return tensor
    std = _kaiming_std(tensor, a, mode, nonlinearity, "kaiming_uniform_")
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fill normally with deviation gain / sqrt(fan) (He et al., 2015); `a` is the leak's slope."""
    if 0 in tensor.shape:
        warnings.warn("kaiming_normal_: the tensor has no elements", stacklevel=2)
        return tensor
    std = _kaiming_std(tensor, a, mode, nonlinearity, "kaiming_normal_")
    return normal_(tensor, 0.0, std, generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """Fill with a (semi-)orthogonal matrix (rows, rest), uniformly distributed, times `gain`.

    It is the Q of a normal matrix's QR decomposition, in float64 on the CPU, with signs that make R's
    diagonal positive (Mezzadri, 2007).
    """
    if tensor.dim() < 2:
        raise ValueError(
            f"orthogonal_: got a tensor of shape {list(tensor.shape)}, expected at least 2 dimensions"
        )
    if tensor.numel() == 0:
        return tensor
    rows, columns = tensor.shape[0], tensor.numel() // tensor.shape[0]
    with no_grad():
        tall = (max(rows, columns), min(rows, columns))
        normal = aten.empty(tall, dtype=float64, device=tensor.device)
        normal.normal_(0.0, 1.0, generator=generator)
        q, r = aten.ops.linalg_qr(normal.cpu())
        result = q * (gain * aten.sgn(aten.diagonal(r)))
        if rows < columns:
            result = result.t()
        return tensor.copy_(result.reshape(tensor.shape))


def sparse_(
    tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None
) -> Tensor:
    """Fill a matrix normally, then zero the share `sparsity` of each column (Martens, 2010)."""
    if tensor.dim() != 2:
        raise ValueError(
            f"sparse_: got a tensor of shape {list(tensor.shape)}, expected 2 dimensions"
        )
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with no_grad():
        tensor.normal_(0.0, std, generator=generator)
        for column in range(columns):
            tensor[aten.randperm(rows, generator=generator)[:zeros], column] = 0
    return tensor


def _old_name(initialiser: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The initialiser under its name without the underscore, which warns."""
    name = initialiser.__name__

    @functools.wraps(initialiser)
    def fill(*args: Any, **kwargs: Any) -> Tensor:
        warnings.warn(
            f"nn.init.{name[:-1]} is deprecated; use nn.init.{name}", FutureWarning, stacklevel=2
        )
        return initialiser(*args, **kwargs)

    return fill


constant = _old_name(constant_)
dirac = _old_name(dirac_)
eye = _old_name(eye_)
kaiming_normal = _old_name(kaiming_normal_)
kaiming_uniform = _old_name(kaiming_uniform_)
normal = _old_name(normal_)
orthogonal = _old_name(orthogonal_)
sparse = _old_name(sparse_)
uniform = _old_name(uniform_)
xavier_normal = _old_name(xavier_normal_)
xavier_uniform = _old_name(xavier_uniform_)
