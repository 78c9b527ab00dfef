"""Look-ups by `index_select`."""

from __future__ import annotations

from typing import Any

from argand_aot.decompose.table import register_decomposition


@register_decomposition("embedding")
def embedding(
    ops: Any,
    weight: Any,
    indices: Any,
    padding_idx: int,
    scale_grad_by_freq: bool,
    sparse: bool,
) -> Any:
    rows = ops.index_select(weight, 0, ops.reshape(indices, [-1]))
    return ops.reshape(rows, [*indices.shape, *weight.shape[1:]])
