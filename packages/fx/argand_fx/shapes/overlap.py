"""Whether fake tensors lie on each other in memory: the rules by which kernels refuse tensors that they write to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argand_c10.errors import UnsupportedError
from argand_fx.shapes.fake_tensor import FakeTensor, identical
from argand_fx.shapes.layout import element_span
from argand_fx.symbolic import UNKNOWN

__all__ = ["are_one", "check_overlap", "meet", "overlap_partially", "tensors_of"]


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


def tensors_of(value: Any) -> list[FakeTensor]:
    """The fake tensors that an argument is or lists."""
    if type(value) is FakeTensor:
        return [value]
    return [x for x in value if type(x) is FakeTensor] if type(value) is list else []


def check_overlap(name: str, pointwise: bool, out: FakeTensor, values: Sequence[Any]) -> None:
    """Leaves to eager execution what it may refuse: to read memory that is written to."""
    for t in [t for v in values for t in tensors_of(v) if t.storage is out.storage]:
        if overlap_partially(out, t) if pointwise else meet(out, t):
            raise UnsupportedError(
                f"{name}: got a tensor to write to whose memory is that of another argument, expected memory of its own; "
                "clone() one of them first"
            )


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
