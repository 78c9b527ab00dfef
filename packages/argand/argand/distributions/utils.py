"""What distributions share: parameters of a common shape, probabilities and their logarithms, lazy attributes, packed triangles.

Names with an underscore are PyTorch's, which other libraries import.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any, Generic, TypeVar, overload

import argand_aten as aten
from argand_autograd import enable_grad
from argand_c10 import Size, Tensor, device, dtype, finfo, get_default_dtype, tensor

__all__ = [
    "broadcast_all", "clamp_probs", "euler_constant", "lazy_property", "logits_to_probs", "probs_to_logits", "tril_matrix_to_vec", "vec_to_tril_matrix",
]  # fmt: skip

euler_constant = 0.5772156649015329
HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
NUMBERS = (int, float)  # bool is an int
Shape = Sequence[int]
ValueT = TypeVar("ValueT")


def is_tensor_like(value: object) -> bool:
    """Whether operators take `value` as a tensor."""
    return isinstance(value, Tensor) or hasattr(type(value), "__argand_function__")


def broadcast_all(*values: Tensor | float) -> tuple[Tensor, ...]:
    """Views of all values with the shape they have in common; numbers take the dtype and device of the first tensor, or the default ones.

    Raises:
      ValueError: for what is neither a number nor a tensor.
      RuntimeError: for shapes that cannot be broadcast.
    """
    model = None
    for value in values:
        if is_tensor_like(value):
            model = value if model is None else model
        elif not isinstance(value, NUMBERS):
            raise ValueError(
                f"broadcast_all: got {type(value).__name__}, expected numbers and tensors"
            )
    if model is None:
        numbers: list[Tensor] = [tensor(v, dtype=get_default_dtype()) for v in values]
        return tuple(numbers)
    tensors = [
        v if is_tensor_like(v) else tensor(v, dtype=model.dtype, device=model.device)  # type: ignore[union-attr]
        for v in values
    ]
    return tuple(aten.broadcast_tensors(*tensors))


def _standard_normal(shape: Shape, dtype: dtype, device: device) -> Tensor:
    """Numbers of mean 0 and variance 1."""
    return aten.randn(shape, dtype=dtype, device=device)


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """`value` (..., *event) summed over its last `dim` dimensions."""
    if dim == 0:
        return value
    return value.reshape((*value.shape[: value.dim() - dim], -1)).sum(-1)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities of log odds (`is_binary`), or of logarithms of weights along the last dimension."""
    return logits.sigmoid() if is_binary else logits.softmax(dim=-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities at least an epsilon of their dtype from 0 and 1."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Log odds (`is_binary`) or logarithms of probabilities, which are clamped first."""
    inside = clamp_probs(probs)
    return inside.log() - (-inside).log1p() if is_binary else inside.log()


class lazy_property(Generic[ValueT]):
    """A method as an attribute that is computed, with gradients, at its first use and then kept in the object."""

    def __init__(self, wrapped: Callable[[Any], ValueT]) -> None:
        self.wrapped = wrapped
        update_wrapper(self, wrapped)  # type: ignore[arg-type]

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> lazy_property[ValueT]: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> ValueT: ...
    def __get__(
        self, instance: object, owner: type | None = None
    ) -> ValueT | lazy_property[ValueT]:
        if instance is None:
            return self
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class BinaryParameters:
    """For distributions with the probability `probs` or its log odds `logits`: the one that was not given comes of the other."""

    def _set_probs_or_logits(
        self, probs: Tensor | float | None, logits: Tensor | float | None
    ) -> None:
        check_one_of(type(self).__name__, probs, logits)
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
        else:
            assert logits is not None
            (self.logits,) = broadcast_all(logits)

    @lazy_property
    def logits(self) -> Tensor:
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def _param(self) -> Tensor:
        """The parameter that was given."""
        given = self.__dict__
        return given["probs"] if "probs" in given else given["logits"]  # type: ignore[no-any-return]

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._param.shape


def check_one_of(name: str, probs: object, logits: object) -> None:
    """Raise ValueError unless one of `probs` and `logits` was given."""
    if (probs is None) == (logits is None):
        got = "neither" if probs is None else "both"
        raise ValueError(f"{name}: got {got} of probs and logits, expected one of them")


def binary_cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """-log of the probability of `target` (0, 1 or between) at log odds `logits`, elementwise."""
    return logits.clamp(min=0) - logits * target + (-logits.abs()).exp().log1p()


def _lower(n: int, diag: int, like: Tensor) -> tuple[Any, ...]:
    """The index of what lies on the diagonal `diag` of matrices (..., n, n) or below, row by row."""
    rows, columns = aten.tril_indices(n, n, diag, device=like.device)
    return (..., rows, columns)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The lower triangles (..., D, D) row by row, up to the diagonal `diag`, as vectors.

    Raises:
      ValueError: where the matrices have no such diagonal.
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"tril_matrix_to_vec: got diag={diag}, expected one from {-n} to {n - 1}")
    return mat[_lower(n, diag, mat)]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """The inverse of `tril_matrix_to_vec`; what lies above the diagonal is 0.

    Raises:
      ValueError: where a triangle cannot have so many elements.
    """
    length = vec.shape[-1]
    # D (D + 1) / 2 elements lie on the main diagonal and below, and those of |diag| further diagonals are in or out.
    root = ((1 + 2 * diag) ** 2 + 8 * length + 4 * abs(diag) * (diag + 1)) ** 0.5
    size = (root - 1 - 2 * diag) / 2
    n = round(size)
    if n - size > finfo(vec.dtype).eps:
        raise ValueError(
            f"vec_to_tril_matrix: got {length} elements, which no lower triangle with the diagonal {diag} has"
        )
    mat = vec.new_zeros((*vec.shape[:-1], n, n))
    mat[_lower(n, diag, vec)] = vec
    return mat
