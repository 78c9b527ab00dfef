"""Scans of associative functions, in logarithmically many steps (Blelloch: Prefix sums and their applications)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import argand_aten as aten
from argand.utils._pytree import tree_flatten, tree_unflatten
from argand_autograd.vmap import vmap
from argand_c10 import Tensor

__all__ = ["associative_scan"]

Combine = Callable[[list[Tensor], list[Tensor]], list[Tensor]]


def associative_scan(
    combine_fn: Callable[[Any, Any], Any],
    xs: Any,
    dim: int,
    reverse: bool = False,
    combine_mode: str = "pointwise",
) -> Any:
    """x[0], f(x[0], x[1]), f(f(x[0], x[1]), x[2]), ... of the entries of a dimension.

    Args:
        combine_fn: f, which is associative; it takes and returns what is structured as `xs`, without the dimension.
        xs: a tensor, or tensors in tuples, lists and dicts, of the same size in the dimension.
        dim: the dimension.
        reverse: from the last entry to the first.
        combine_mode: "pointwise": f works element by element, on tensors of CUDA devices; "generic": f may do anything.

    Raises:
        ValueError: for other arguments.
    """
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(
            f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}"
        )
    leaves, spec = tree_flatten(xs)
    if not leaves or not all(isinstance(leaf, Tensor) for leaf in leaves):
        raise ValueError("associative_scan: expected xs to be tensors, and at least one of them")
    if combine_mode == "pointwise" and not all(leaf.is_cuda for leaf in leaves):
        raise ValueError(
            "For combine_mode='pointwise', all input tensors need to be on CUDA or XPU"
        )
    leaves = [leaf.flip([dim]) if reverse else leaf for leaf in leaves]
    leaves = [leaf.movedim(dim, 0) for leaf in leaves]
    if len({leaf.shape[0] for leaf in leaves}) != 1:
        raise ValueError("All xs leaves must at least have same shape in the scanned dimension")

    def combine(a: list[Tensor], b: list[Tensor]) -> list[Tensor]:
        return tree_flatten(combine_fn(tree_unflatten(a, spec), tree_unflatten(b, spec)))[0]

    together = combine if combine_mode == "pointwise" else vmap(combine)
    found = [leaf.movedim(0, dim) for leaf in _scan(together, leaves)]
    return tree_unflatten([leaf.flip([dim]) if reverse else leaf for leaf in found], spec)


def _scan(combine: Combine, xs: list[Tensor]) -> list[Tensor]:
    """The scan along the first dimension: that of neighbours' pairs has every second entry, and gives those between."""
    n = xs[0].shape[0]
    if n < 2:
        return xs
    pairs = combine([x[0 : n - 1 : 2] for x in xs], [x[1::2] for x in xs])
    odd = _scan(combine, pairs)
    if n < 3:
        return [aten.cat([x[:1], o]) for x, o in zip(xs, odd, strict=True)]
    left = [o[: (n - 1) // 2] for o in odd]
    even = combine(left, [x[2::2] for x in xs])
    even = [aten.cat([x[:1], e]) for x, e in zip(xs, even, strict=True)]
    return [_interleaved(e, o) for e, o in zip(even, odd, strict=True)]


def _interleaved(a: Tensor, b: Tensor) -> Tensor:
    """a[0], b[0], a[1], b[1], ...; `a` may have one more."""
    both = aten.stack([a[: b.shape[0]], b], 1).flatten(0, 1)
    return aten.cat([both, a[b.shape[0] :]])
