"""Strides of new tensors: the rules by which kernels lay out what they allocate.

Sizes and strides may be symbolic. Comparisons go through numbers that are known without guards where possible.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = [
    "contiguous_strides",
    "element_span",
    "is_contiguous",
    "pointwise_strides",
    "reinterpreted",
]


def contiguous_strides(sizes: Sequence[Any]) -> tuple[Any, ...]:
    """Row-major strides in elements; a size of 0 counts as 1."""
    n = len(sizes)
    if n == 0:
        return ()
    found: list[Any] = [1] * n
    step: Any = 1
    for i in range(n - 1, 0, -1):
        size = sizes[i]
        if type(size) is not int or size > 1:
            step = step * size
        found[i - 1] = step
    return tuple(found)


def is_contiguous(sizes: Sequence[Any], strides: Sequence[Any]) -> bool:
    """Whether the elements lie in row-major order without gaps; also true of no elements."""
    step: Any = 1
    for i in range(len(sizes) - 1, -1, -1):
        size, stride = sizes[i], strides[i]
        if type(size) is int:
            if size == 1:
                continue
            if size == 0:
                return True
        if stride is not step and (type(size) is int or not size == 1) and not stride == step:
            return any(type(s) is int and s == 0 for s in sizes[:i])
        step = step * size
    return True


def element_span(sizes: Sequence[Any], strides: Sequence[Any]) -> Any:
    """How many elements of storage a tensor reaches, from its first on."""
    span: Any = 1
    for size, stride in zip(sizes, strides, strict=True):
        if type(size) is int and size == 0:
            return 0
        span = span + (size - 1) * stride
    return span


def _order(shape: Sequence[Any], operands: Sequence[Sequence[Any]], a: int, b: int) -> int:
    """> 0: dimension a must come outside of b; < 0: inside; 0: the operands do not say."""
    for strides in operands:
        sa, sb = strides[a], strides[b]
        if (type(sa) is int and sa == 0) or (type(sb) is int and sb == 0):
            continue
        if sa is not sb and not sa == sb:
            return -1 if sa < sb else 1
        if shape[a] is not shape[b] and shape[a] > shape[b]:
            return 1
    return 0


def pointwise_strides(
    sizes: Sequence[Any], operands: Sequence[tuple[Sequence[Any], Sequence[Any]]]
) -> tuple[Any, ...]:
    """The strides of a new result whose dimensions lie in memory as the operands' do.

    Args:
        sizes: of the result.
        operands: sizes and strides of each tensor operand, in order.
    """
    n = len(sizes)
    if n < 2:
        return contiguous_strides(sizes)
    # Dimension 0 is the innermost from here on.
    shape = list(reversed(sizes))
    broadcast = []
    for have, strides in operands:
        row: list[Any] = [0] * n
        for d in range(len(have)):
            size = have[len(have) - 1 - d]
            stretched = (
                type(size) is int and size == 1 and not (type(shape[d]) is int and shape[d] == 1)
            )
            row[d] = 0 if stretched else strides[len(have) - 1 - d]
        broadcast.append(row)
    order = list(range(n))
    for i in range(1, n):
        at = i
        for other in range(i - 1, -1, -1):
            c = _order(shape, broadcast, order[other], order[at])
            if c < 0:
                break
            if c == 0:
                continue
            order[other], order[at] = order[at], order[other]
            at = other
    found: list[Any] = [0] * n
    step: Any = 1
    for d in order:
        found[n - 1 - d] = step
        size = shape[d]
        if type(size) is not int or size > 1:
            step = step * size
    return tuple(found)


def reinterpreted(
    name: str, sizes: Sequence[Any], strides: Sequence[Any], offset: Any, old: int, new: int
) -> tuple[tuple[Any, ...], Any]:
    """Strides and offset of a view of the same bytes as elements of another size.

    Args:
        name: of the operator, for errors.
        sizes: of the view; it may have one dimension more or less than `strides`.
        strides, offset: of the tensor, in its elements.
        old, new: bytes of an element of the tensor and of the view.

    Raises:
        RuntimeError: where the elements do not lie together.
    """
    if old == new and len(sizes) == len(strides):
        return tuple(strides), offset
    if len(sizes) > len(strides):  # each element in parts
        return (*(s * (old // new) for s in strides), 1), offset * (old // new)
    if strides[-1] != 1:
        raise RuntimeError(
            f"{name}: self.stride(-1) must be 1 to view elements as others of another size, got {strides[-1]}"
        )
    if len(sizes) == len(strides) and old > new:
        return (*(s * (old // new) for s in strides[:-1]), 1), offset * (old // new)
    ratio = new // old
    if offset % ratio != 0 or any(s % ratio != 0 for s in strides[:-1]):
        raise RuntimeError(
            f"{name}: offset and strides must be divisible by {ratio}, got {offset} and {list(strides)}"
        )
    outer = tuple(s // ratio for s in strides[:-1])
    return (outer if len(sizes) < len(strides) else (*outer, 1)), offset // ratio
