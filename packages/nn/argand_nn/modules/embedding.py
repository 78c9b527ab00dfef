"""Embeddings."""

from __future__ import annotations

from typing import Any

import argand_aten as aten
from argand_c10 import Module, Parameter, Tensor
from argand_nn import functional as F
from argand_nn import init

__all__ = ["Embedding"]


class Embedding(Module):
    """A table of vectors, looked up by integers.

    Args:
        num_embeddings: rows of the table.
        embedding_dim: size of a vector.
        padding_idx: a row that starts as zeros and gets no gradient.
        max_norm: rows looked up are first shortened in place to this norm.
        norm_type: the p of that norm.
        scale_grad_by_freq: divide gradients by how often a row occurs in the batch.
    """

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
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise ValueError(
                    f"Embedding: got padding_idx {padding_idx}, expected one in "
                    f"[{-num_embeddings}, {num_embeddings})"
                )
            padding_idx %= num_embeddings
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx, self.max_norm, self.norm_type = padding_idx, max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        shape = (num_embeddings, embedding_dim)
        if _weight is None:
            table = aten.empty(shape, device=device, dtype=dtype)
            self.weight = Parameter(table, requires_grad=not _freeze)
            self.reset_parameters()
        else:
            if tuple(_weight.shape) != shape:
                raise ValueError(
                    f"Embedding: got a table of shape {list(_weight.shape)}, expected {list(shape)}"
                )
            self.weight = Parameter(_weight, requires_grad=not _freeze)

    def reset_parameters(self) -> None:
        """Fill from the standard normal distribution; the padding row with zeros."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            self.weight.detach()[self.padding_idx].fill_(0)

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
            raise ValueError(
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
        if self.scale_grad_by_freq:
            text += ", scale_grad_by_freq=True"
        return text
