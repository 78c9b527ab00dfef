"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

import argand_aten as aten
from argand_c10 import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements of all parameters, in order, as a 1-d tensor."""
    return aten.cat([parameter.reshape(-1) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Let the parameters take consecutive pieces of `vec` as their data.

    Raises:
        TypeError: if `vec` is not a tensor.
        ValueError: if its length is not the number of all elements.
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"vector_to_parameters: got {type(vec).__name__}, expected a Tensor")
    targets = list(parameters)
    total = sum(parameter.numel() for parameter in targets)
    if vec.numel() != total:
        raise ValueError(f"vector_to_parameters: got {vec.numel()} elements, expected {total}")
    place = 0
    for parameter in targets:
        piece = vec[place : place + parameter.numel()]
        parameter.data = piece.reshape(parameter.shape).detach()
        place += parameter.numel()
