"""Weights of spectral norm 1, by a hook; `parametrizations.spectral_norm` is the newer way."""

from __future__ import annotations

from typing import Any

import argand_aten as aten
from argand_autograd import no_grad
from argand_c10 import Module, Parameter, Tensor
from argand_nn import functional as F

__all__ = ["remove_spectral_norm", "spectral_norm"]


class SpectralNorm:
    """Forward pre-hook that divides a weight by its largest singular value, by power iteration."""

    def __init__(self, name: str, n_power_iterations: int, dim: int, eps: float) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                f"spectral_norm: got n_power_iterations {n_power_iterations}, expected a positive one"
            )
        self.name, self.dim = name, dim
        self.n_power_iterations, self.eps = n_power_iterations, eps

    def as_matrix(self, weight: Tensor) -> Tensor:
        """(size of `dim`, all others)."""
        return aten.movedim(weight, self.dim, 0).flatten(1)

    def compute_weight(self, module: Any, iterate: bool) -> Tensor:
        """The divided weight; `iterate` first improves the singular vectors."""
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = self.as_matrix(weight)
        if iterate:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(aten.mv(matrix.t(), u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(aten.mv(matrix, v), dim=0, eps=self.eps))
            # Copies: the next call changes the vectors, which this one's backward still needs.
            u, v = u.clone(), v.clone()
        divided: Tensor = weight / aten.dot(u, aten.mv(matrix, v))
        return divided

    def __call__(self, module: Module, args: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, iterate=module.training))


def _hook_key(module: Module, name: str) -> int | None:
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            return key
    return None


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divide the weight `<name>_orig` by its largest singular value (Miyato et al., 2018).

    Args:
        module: whose weight it is; it is changed.
        name: of the weight.
        n_power_iterations: steps of the power iteration at each call in training.
        eps: smallest norm that vectors are divided by.
        dim: the rows of the matrix; 1 for transposed convolutions, else 0.

    Returns:
        `module`.
    """
    if _hook_key(module, name) is not None:
        raise RuntimeError(f"spectral_norm: {name!r} of {type(module).__name__} has it already")
    if dim is None:
        dim = 1 if getattr(module, "transposed", False) else 0
    hook = SpectralNorm(name, n_power_iterations, dim, eps)
    weight = getattr(module, name)
    if not isinstance(weight, Parameter):
        raise ValueError(f"spectral_norm: got {name!r}, expected the name of a parameter")
    matrix = hook.as_matrix(weight.detach())
    delattr(module, name)
    module.register_parameter(name + "_orig", weight)
    # A plain tensor, so that an initialiser may still find the name.
    setattr(module, name, weight.detach())
    for end, size in zip(("_u", "_v"), matrix.shape, strict=True):
        vector = matrix.new_empty([size]).normal_()
        module.register_buffer(name + end, F.normalize(vector, dim=0, eps=eps))
    module.register_forward_pre_hook(hook)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Turn the divided weight into the parameter."""
    key = _hook_key(module, name)
    if key is None:
        raise ValueError(
            f"remove_spectral_norm: {name!r} of {type(module).__name__} has no spectral norm"
        )
    with no_grad():
        weight = module._forward_pre_hooks[key].compute_weight(module, iterate=False)
    delattr(module, name)
    del module._parameters[name + "_orig"]
    del module._buffers[name + "_u"], module._buffers[name + "_v"]
    del module._forward_pre_hooks[key]
    module.register_parameter(name, Parameter(weight.detach()))
    return module
