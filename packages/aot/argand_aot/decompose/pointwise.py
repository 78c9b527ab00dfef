"""Elementwise operators by others that round the same number of times."""

from __future__ import annotations

from typing import Any

from argand_aot.decompose.table import register_decomposition


@register_decomposition("rsub")
def rsub(ops: Any, self: Any, other: Any, *, alpha: Any) -> Any:
    return ops.sub(other, self, alpha=alpha)


@register_decomposition("square")
def square(ops: Any, self: Any) -> Any:
    return ops.mul(self, self)


@register_decomposition("relu")
def relu(ops: Any, self: Any) -> Any:
    return ops.where(ops.lt(self, 0), 0, self)  # -0 and NaN stay
