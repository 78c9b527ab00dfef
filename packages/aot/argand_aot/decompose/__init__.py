"""Decompositions: operators written with fewer, more basic ones, for backends that have no way of their own for them.

They are applied to the functional forward and backward graphs, after derivation, so that gradients are those of the operators
that eager execution differentiates. Each gives its operator's result bit for bit.
"""

from argand_aot.decompose import indexing, pointwise, views  # noqa: F401  (they register)
from argand_aot.decompose.apply import decompose
from argand_aot.decompose.table import Decomposition, decompositions, register_decomposition

__all__ = ["Decomposition", "decompose", "decompositions", "register_decomposition"]
