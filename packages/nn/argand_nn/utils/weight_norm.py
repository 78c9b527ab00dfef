"""Weights as size times direction, by a hook; `parametrizations.weight_norm` is the newer way."""

from __future__ import annotations

import warnings
from typing import Any

import argand_aten as aten
from argand_c10 import Module, Parameter, Tensor

__all__ = ["remove_weight_norm", "weight_norm"]


def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """The norm of each slice of dimension `dim`, as a size for it; of all of `v` if `dim` is -1."""
    if dim == -1:
        return aten.norm(v, pow)
    if v.dim() == 1:
        return aten.abs(v)
    return aten.norm(v, pow, [i for i in range(v.dim()) if i != dim % v.dim()], True)


class WeightNorm:
    """Forward pre-hook that computes a weight from its size and direction."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name, self.dim = name, -1 if dim is None else dim

    def compute_weight(self, module: Any) -> Tensor:
        """The weight of the present size and direction."""
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        weight: Tensor = v * (g / norm_except_dim(v, 2, self.dim))
        return weight

    def __call__(self, module: Module, args: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def _hook_key(module: Module, name: str) -> int | None:
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            return key
    return None


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Learn a weight's size `<name>_g` and direction `<name>_v` apart (Salimans and Kingma, 2016).

    Args:
        module: whose weight it is; it is changed.
        name: of the weight.
        dim: each of whose slices has a size of its own; None: one size for all.

    Returns:
        `module`.
    """
    warnings.warn(
        "weight_norm: is deprecated; use nn.utils.parametrizations.weight_norm",
        FutureWarning,
        stacklevel=2,
    )
    if _hook_key(module, name) is not None:
        raise RuntimeError(f"weight_norm: {name!r} of {type(module).__name__} has it already")
    hook = WeightNorm(name, dim)
    weight = getattr(module, name)
    delattr(module, name)
    size = norm_except_dim(weight.detach(), 2, hook.dim)
    module.register_parameter(name + "_g", Parameter(size))
    module.register_parameter(name + "_v", Parameter(weight.detach()))
    setattr(module, name, hook.compute_weight(module))
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Turn size and direction back into one parameter."""
    key = _hook_key(module, name)
    if key is None:
        raise ValueError(
            f"remove_weight_norm: {name!r} of {type(module).__name__} has no weight norm"
        )
    weight = module._forward_pre_hooks[key].compute_weight(module)
    delattr(module, name)
    del module._parameters[name + "_g"], module._parameters[name + "_v"]
    del module._forward_pre_hooks[key]
    module.register_parameter(name, Parameter(weight.detach()))
    return module
