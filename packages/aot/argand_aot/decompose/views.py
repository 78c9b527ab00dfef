"""Views by `view` and `permute`."""

from __future__ import annotations

from typing import Any

from argand_aot.decompose.table import register_decomposition


@register_decomposition("transpose")
def transpose(ops: Any, self: Any, dim0: int, dim1: int) -> Any:
    dims = list(range(self.ndim))
    if dims:
        dims[dim0], dims[dim1] = dims[dim1], dims[dim0]
    return ops.permute(self, dims)


@register_decomposition("unsqueeze")
def unsqueeze(ops: Any, self: Any, dim: int) -> Any:
    sizes = list(self.shape)
    sizes.insert(dim % (self.ndim + 1), 1)
    return ops.view(self, sizes)


@register_decomposition("squeeze")
def squeeze(ops: Any, self: Any) -> Any:
    return ops.view(self, [s for s in self.shape if not (isinstance(s, int) and s == 1)])


@register_decomposition("squeeze.dims")
def squeeze_dims(ops: Any, self: Any, dim: list[int]) -> Any:
    dropped = {d % max(self.ndim, 1) for d in dim}
    sizes = [
        s for i, s in enumerate(self.shape) if not (i in dropped and isinstance(s, int) and s == 1)
    ]
    return ops.view(self, sizes)
