"""Embeddings."""

from __future__ import annotations

from typing import Any

import argand_aten as aten
from argand_c10 import Module, Parameter, Tensor
from argand_nn import functional as F
from argand_nn import init

__all__ = ["Embedding", "EmbeddingBag"]


def _row(name: str, padding_idx: int | None, rows: int) -> int | None:
    """The padding row, counted from the first one; ValueError where the table has no such row."""
    if padding_idx is None:
        return None
    if not -rows <= padding_idx < rows:
        raise AssertionError(
            f"{name}: got padding_idx {padding_idx}, expected one in [{-rows}, {rows})"
        )
    return padding_idx % rows


class _Table(Module):
    """What both kinds of embeddings share: the table, and how it begins."""

    num_embeddings: int
    embedding_dim: int
    padding_idx: int | None
    weight: Parameter

    def _make_table(
        self, name: str, given: Tensor | None, freeze: bool, device: Any, dtype: Any
    ) -> None:
        shape = (self.num_embeddings, self.embedding_dim)
        if given is None:
            table = aten.empty(shape, device=device, dtype=dtype)
            self.weight = Parameter(table, requires_grad=not freeze)
            self.reset_parameters()
        else:
            if tuple(given.shape) != shape:
                raise AssertionError(
                    f"{name}: got a table of shape {list(given.shape)}, expected {list(shape)}"
                )
            self.weight = Parameter(given, requires_grad=not freeze)

    def reset_parameters(self) -> None:
        """Fill from the standard normal distribution; the padding row with zeros."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            self.weight.detach()[self.padding_idx].fill_(0)


class Embedding(_Table):
    """A table of vectors, looked up by integers.

    Args:
        num_embeddings: rows of the table.
        embedding_dim: size of a vector.
        padding_idx: a row that starts as zeros and gets no gradient.
        max_norm: rows looked up are first shortened in place to this norm.
        norm_type: the p of that norm.
        scale_grad_by_freq: divide gradients by how often a row occurs in the batch.
    """

    __constants__ = [
        "num_embeddings",
        "embedding_dim",
        "padding_idx",
        "max_norm",
        "norm_type",
        "scale_grad_by_freq",
        "sparse",
    ]

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        padding_idx = _row("Embedding", padding_idx, num_embeddings)
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx, self.max_norm, self.norm_type = padding_idx, max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        self._make_table("Embedding", _weight, _freeze, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """An embedding whose table is `embeddings` (rows, features); frozen by default."""
        if embeddings.dim() != 2:
            raise AssertionError(
                f"Embedding: got a table of shape {list(embeddings.shape)}, expected 2 dimensions"
            )
        rows, features = embeddings.shape
        return cls(
            rows,
            features,
            padding_idx,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            sparse,
            _weight=embeddings,
            _freeze=freeze,
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq:
            text += ", scale_grad_by_freq=True"
        if self.sparse:
            text += ", sparse=True"
        return text


class EmbeddingBag(_Table):
    """Sums, means or maxima of rows of a table, bag by bag of integers.

    Args:
        num_embeddings: rows of the table.
        embedding_dim: size of a row.
        max_norm: rows looked up are first shortened in place to this norm.
        norm_type: the p of that norm.
        scale_grad_by_freq: divide gradients by how often a row occurs in the batch.
        mode: sum, mean or max.
        include_last_offset: the last of `offsets` is the end of the last bag.
        padding_idx: a row that starts as zeros, gets no gradient and is left out.
    """

    __constants__ = [
        "num_embeddings",
        "embedding_dim",
        "max_norm",
        "norm_type",
        "scale_grad_by_freq",
        "mode",
        "sparse",
        "include_last_offset",
        "padding_idx",
    ]

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
        _freeze: bool = False,
    ) -> None:
        super().__init__()
        padding_idx = _row("EmbeddingBag", padding_idx, num_embeddings)
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.mode, self.sparse = scale_grad_by_freq, mode, sparse
        self.include_last_offset, self.padding_idx = include_last_offset, padding_idx
        self._make_table("EmbeddingBag", _weight, _freeze, device, dtype)

    def forward(
        self,
        input: Tensor,
        offsets: Tensor | None = None,
        per_sample_weights: Tensor | None = None,
    ) -> Tensor:
        """(bags, embedding_dim) of `input` (bags, length), or (all) with the bags' beginnings."""
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """An embedding bag whose table is `embeddings` (rows, features); frozen by default."""
        if embeddings.dim() != 2:
            raise ValueError(
                f"EmbeddingBag: got a table of shape {list(embeddings.shape)}, expected 2 "
                "dimensions"
            )
        rows, features = embeddings.shape
        return cls(
            rows,
            features,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            mode,
            sparse,
            _weight=embeddings,
            include_last_offset=include_last_offset,
            padding_idx=padding_idx,
            _freeze=freeze,
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq:
            text += ", scale_grad_by_freq=True"
        text += f", mode={self.mode!r}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        return text
