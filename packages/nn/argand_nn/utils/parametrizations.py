"""Parametrizations: orthogonal matrices, weights as direction and size, spectral norm 1."""

from __future__ import annotations

from typing import Any

import argand_aten as aten
from argand_autograd import no_grad
from argand_c10 import Module, Tensor, finfo
from argand_nn import functional as F
from argand_nn.utils import parametrize
from argand_nn.utils.weight_norm import norm_except_dim

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

_MAPS = ("matrix_exp", "cayley", "householder")


def _is_orthogonal(matrix: Tensor) -> bool:
    """Whether the columns are orthonormal up to rounding: ten epsilons for each summand."""
    count = matrix.shape[-1]
    unit = aten.eye(count, dtype=matrix.dtype, device=matrix.device)
    error = aten.abs(aten.matmul(matrix.mH, matrix) - unit)
    return bool(aten.all(error <= 10 * count * finfo(matrix.dtype).eps))


def _make_orthogonal(matrix: Tensor) -> Tensor:
    """The Q of a QR decomposition whose R has a positive diagonal."""
    packed, tau = aten.geqrf(matrix)
    q = aten.ops.linalg_householder_product(packed, tau)
    return q * aten.sgn(aten.diagonal(packed, 0, -2, -1)).unsqueeze(-2)


class _Orthogonal(Module):
    """Matrices with orthonormal columns (rows, if there are fewer) from any matrices.

    With `use_trivialization` they are `base` times a map that is the identity where learning starts
    (Lezcano-Casado, 2019).
    """

    base: Tensor | None

    def __init__(self, weight: Tensor, orthogonal_map: str, use_trivialization: bool) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError(
                "orthogonal: got a complex weight with the householder map, expected 'matrix_exp' "
                "or 'cayley'"
            )
        self.shape = tuple(weight.shape)
        self.orthogonal_map, self.use_trivialization = orthogonal_map, use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, x: Tensor) -> Tensor:
        wide = x.shape[-2] < x.shape[-1]
        if wide:
            x = x.mT
        rows, columns = x.shape[-2:]
        if self.orthogonal_map == "householder":
            vectors = aten.tril(x, -1)
            tau = 2.0 / (1.0 + aten.sum(vectors * vectors, -2))
            q = aten.ops.linalg_householder_product(vectors, tau)
            # The diagonal holds signs.
            signs = aten.diagonal(x, 0, -2, -1).detach().trunc()
            q = q * signs.unsqueeze(-2)
        else:
            lower = aten.tril(x)
            if rows != columns:
                padding = lower.new_zeros([*x.shape[:-2], rows, rows - columns])
                lower = aten.cat([lower, padding], -1)
            skew = lower - lower.mH
            if self.orthogonal_map == "matrix_exp":
                q = aten.matrix_exp(skew)
            else:
                unit = aten.eye(rows, dtype=x.dtype, device=x.device)
                q = aten.ops.linalg_solve(unit - 0.5 * skew, unit + 0.5 * skew)
            q = q[..., :columns]
        if self.use_trivialization:
            assert self.base is not None
            q = aten.matmul(self.base, q)
        return q.mT if wide else q

    @no_grad()
    def right_inverse(self, q: Tensor) -> Tensor:
        """What gives `q`, which is made orthogonal first if it is not."""
        if tuple(q.shape) != self.shape:
            raise ValueError(
                f"orthogonal: got a matrix of shape {list(q.shape)}, expected {list(self.shape)}"
            )
        wide = q.shape[-2] < q.shape[-1]
        matrix = q.mT if wide else q
        if not self.use_trivialization:
            result = self._packed(matrix)
            return result.mT if wide else result
        rows, columns = matrix.shape[-2:]
        if rows == columns:
            self.base = matrix.clone() if _is_orthogonal(matrix) else _make_orthogonal(matrix)
        else:
            noise = aten.empty(
                [*matrix.shape[:-2], rows, rows - columns], dtype=q.dtype, device=q.device
            ).normal_()
            self.base = _make_orthogonal(aten.cat([matrix, noise], -1))
        # All maps take this matrix to the identity's columns: it has no part below the diagonal.
        start = aten.zeros_like(q)
        aten.diagonal(start, 0, -2, -1).fill_(-1.0)
        return start

    def _packed(self, matrix: Tensor) -> Tensor:
        """Householder vectors of `matrix`, with signs on the diagonal."""
        if self.orthogonal_map != "householder":
            raise NotImplementedError(
                f"orthogonal: got an assignment with the map {self.orthogonal_map} and "
                "use_trivialization=False, expected none; use the householder map or trivialization"
            )
        packed, tau = aten.geqrf(matrix)
        diagonal = aten.diagonal(packed, 0, -2, -1)
        signs = aten.sign(diagonal)
        diagonal.copy_(aten.where(tau == 0.0, -signs, signs))
        return packed


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Let a weight's matrices (the last two dimensions) be orthogonal or unitary.

    Args:
        module: whose weight it is; it is changed.
        name: of the weight.
        orthogonal_map: matrix_exp, cayley or householder; by default matrix_exp where the matrix is
            square or complex, else householder.
        use_trivialization: start from the present weight, as a factor.

    Returns:
        `module`.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(
            f"orthogonal: {type(module).__name__} has no parameter or buffer {name!r}; expected the "
            "name of one"
        )
    if weight.dim() < 2:
        raise ValueError(
            f"orthogonal: got a tensor of shape {list(weight.shape)}, expected at least 2 dimensions"
        )
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1]
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in _MAPS:
        raise ValueError(
            f"orthogonal: got orthogonal_map {orthogonal_map!r}, expected one of {_MAPS}"
        )
    made = _Orthogonal(weight, orthogonal_map, use_trivialization)
    return parametrize.register_parametrization(module, name, made, unsafe=True)


class _WeightNorm(Module):
    """Size times direction, for each slice of dimension `dim`."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weight_v * (weight_g / norm_except_dim(weight_v, 2, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Learn a weight's size and direction apart (Salimans and Kingma, 2016).

    Args:
        module: whose weight it is; it is changed.
        name: of the weight.
        dim: each of whose slices has a size of its own; None: one size for all.

    Returns:
        `module`. Its states with `<name>_g` and `<name>_v`, of the older `weight_norm`, load too.
    """
    made = _WeightNorm(dim)
    parametrize.register_parametrization(module, name, made, unsafe=True)

    def rename(module: Module, state_dict: Any, prefix: str, *args: Any) -> None:
        for i, end in enumerate(("g", "v")):
            old = f"{prefix}{name}_{end}"
            if old in state_dict:
                new = f"{prefix}parametrizations.{name}.original{i}"
                state_dict[new] = state_dict.pop(old)

    module.register_load_state_dict_pre_hook(rename)
    return module


class _SpectralNorm(Module):
    """A weight divided by its largest singular value, by power iteration."""

    _u: Tensor
    _v: Tensor

    def __init__(
        self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        super().__init__()
        if not -weight.dim() <= dim < weight.dim():
            raise IndexError(
                f"spectral_norm: got dim {dim}, expected one from {-weight.dim()} to "
                f"{weight.dim() - 1}"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                f"spectral_norm: got n_power_iterations {n_power_iterations}, expected a positive one"
            )
        self.dim = dim if dim >= 0 else dim + weight.dim()
        self.eps, self.n_power_iterations = eps, n_power_iterations
        if weight.dim() > 1:
            matrix = self._as_matrix(weight.detach())
            rows, columns = matrix.shape
            for name, size in (("_u", rows), ("_v", columns)):
                vector = matrix.new_empty([size]).normal_()
                self.register_buffer(name, F.normalize(vector, dim=0, eps=eps))
            self._iterate(matrix, 15)

    def _as_matrix(self, weight: Tensor) -> Tensor:
        """(size of `dim`, all others)."""
        return aten.movedim(weight, self.dim, 0).flatten(1)

    @no_grad()
    def _iterate(self, matrix: Tensor, count: int) -> None:
        for _ in range(count):
            self._u.copy_(F.normalize(aten.mv(matrix, self._v), dim=0, eps=self.eps))
            self._v.copy_(F.normalize(aten.mv(matrix.mH, self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.dim() == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._as_matrix(weight)
        if self.training:
            self._iterate(matrix.detach(), self.n_power_iterations)
        # Copies: the next call changes the vectors, which this one's backward still needs.
        u, v = self._u.clone(), self._v.clone()
        return weight / aten.vdot(u, aten.mv(matrix, v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divide a weight by its largest singular value (Miyato et al., 2018).

    Args:
        module: whose weight it is; it is changed.
        name: of the weight.
        n_power_iterations: steps of the power iteration at each use in training.
        eps: smallest norm that vectors are divided by.
        dim: the rows of the matrix; 1 for transposed convolutions, else 0.

    Returns:
        `module`.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(
            f"spectral_norm: {type(module).__name__} has no parameter or buffer {name!r}; expected "
            "the name of one"
        )
    if dim is None:
        dim = 1 if getattr(module, "transposed", False) else 0
    made = _SpectralNorm(weight, n_power_iterations, dim, eps)
    return parametrize.register_parametrization(module, name, made)
