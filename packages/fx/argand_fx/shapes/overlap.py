"""Whether fake tensors lie on each other in memory: the rules by which kernels refuse tensors that they write to."""

from __future__ import annotations

from typing import Any

from argand_fx.shapes.fake_tensor import FakeTensor, identical
from argand_fx.shapes.layout import element_span
from argand_fx.symbolic import UNKNOWN

__all__ = ["are_one", "meet", "overlap_partially"]


def meet(a: FakeTensor, b: FakeTensor) -> bool:
    """Whether the spans of two tensors' elements have bytes in common. Comparing symbolic sizes leaves guards."""
    if a.storage is not b.storage or any(type(n) is int and n == 0 for n in (*a.shape, *b.shape)):
        return False
    if a.offset is UNKNOWN or b.offset is UNKNOWN:
        return a is b
    (first, last), (start, end) = _bytes(a), _bytes(b)
    return bool(first < end) and bool(start < last)


def are_one(a: FakeTensor, b: FakeTensor) -> bool:
    """Whether they are the same elements in the same order."""
    return a is b or (
        a.storage is b.storage
        and a.dtype == b.dtype
        and a.offset is not UNKNOWN
        and b.offset is not UNKNOWN
        and bool(a.offset == b.offset)
        and identical(a.shape, b.shape)
        and all(bool(s == t) for s, t in zip(a.strides, b.strides, strict=True))
    )


def overlap_partially(a: FakeTensor, b: FakeTensor) -> bool:
    """Whether two tensors without gaps overlap, but are not the same elements: with gaps, eager execution does not ask."""
    return not are_one(a, b) and meet(a, b) and _is_dense(a) and _is_dense(b)


def _bytes(t: FakeTensor) -> tuple[Any, Any]:
    size = t.dtype.itemsize
    return t.offset * size, (t.offset + element_span(t.shape, t.strides)) * size


def _is_dense(t: FakeTensor) -> bool:
    step: Any = 1
    dims = [(s, n) for s, n in zip(t.strides, t.shape, strict=True) if type(n) is not int or n != 1]
    for stride, size in sorted(dims, key=lambda item: int(getattr(item[0], "hint", item[0]))):
        if not stride == step:
            return False
        step = step * size
    return True
