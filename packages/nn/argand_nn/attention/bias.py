"""Causal masks of attention that are not held in memory."""

from __future__ import annotations

import enum
import warnings
from typing import Any

import argand_aten as aten
from argand_c10 import Tensor, device
from argand_c10 import bool as bool_

__all__ = ["causal_upper_left", "causal_lower_right", "CausalVariant", "CausalBias"]


class CausalVariant(enum.IntEnum):
    """In which corner the diagonal of a causal mask of L queries and S keys lies.

    UPPER_LEFT: query i sees the keys up to i. LOWER_RIGHT: the last query sees all keys. With L = S they are the same.
    """

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """A causal mask (L, S) for `scaled_dot_product_attention`; other operators get its bool elements, made when they ask.

    Args:
        variant: where its diagonal lies.
        seq_len_q: L, the number of queries.
        seq_len_kv: S, the number of keys.

    Raises:
        AssertionError: for another variant.
    """

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> CausalBias:
        shape = aten.empty((seq_len_q, seq_len_kv), dtype=bool_, device="meta")
        return Tensor._make_subclass(cls, shape)

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(
                f"CausalBias: got variant {variant!r}, expected one of {list(CausalVariant)}"
            )
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv
        if variant == CausalVariant.LOWER_RIGHT and seq_len_q > seq_len_kv:
            warnings.warn(
                f"CausalBias: {seq_len_q} queries and {seq_len_kv} keys: the first queries see no "
                "key, and their results are NaN",
                stacklevel=2,
            )

    def _materialize(self, device: device | str | None = None) -> Tensor:
        """Its elements, True where a query sees a key."""
        diagonal = 0
        if self.variant == CausalVariant.LOWER_RIGHT:
            diagonal = self.seq_len_kv - self.seq_len_q
        seen = aten.ones((self.seq_len_q, self.seq_len_kv), dtype=bool_, device=device or "cpu")
        return aten.tril(seen, diagonal)

    @classmethod
    def __argand_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        options = dict(kwargs or {})
        mask = options.get("attn_mask")
        if func.__name__ == "scaled_dot_product_attention" and isinstance(mask, CausalBias):
            if options.get("is_causal"):
                raise ValueError(
                    "scaled_dot_product_attention: got is_causal=True and a CausalBias, expected one of them"
                )
            square = mask.seq_len_q == mask.seq_len_kv
            if square or mask.variant == CausalVariant.UPPER_LEFT:
                options |= {"attn_mask": None, "is_causal": True}
            else:
                options["attn_mask"] = mask._materialize(args[0].device)
            return func(*args, **options)

        def elements(value: Any) -> Any:
            return value._materialize() if isinstance(value, CausalBias) else value

        return func(*map(elements, args), **{name: elements(v) for name, v in options.items()})

    def __repr__(self, **kwargs: Any) -> str:
        return repr(self._materialize())


def _bias(name: str, variant: CausalVariant, size: tuple[int, ...]) -> CausalBias:
    if len(size) != 2:
        raise AssertionError(f"{name}: got sizes {size}, expected two, of queries and of keys")
    return CausalBias(variant, *size)


def causal_upper_left(*size: int) -> CausalBias:
    """The mask (L, S) in which query i sees the keys up to i: what `is_causal=True` means."""
    return _bias("causal_upper_left", CausalVariant.UPPER_LEFT, size)


def causal_lower_right(*size: int) -> CausalBias:
    """The mask (L, S) in which the last query sees all keys, and each one before one less."""
    return _bias("causal_lower_right", CausalVariant.LOWER_RIGHT, size)
