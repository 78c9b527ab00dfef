"""Index spaces: tensors broadcast to one shape, with neighbouring dimensions merged where all strides allow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def broadcast_shape(shapes: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The shape of an element-wise result; shapes are known to fit."""
    ndim = max(map(len, shapes), default=0)
    padded = [(1,) * (ndim - len(s)) + tuple(s) for s in shapes]
    return tuple(next((n for n in sizes if n != 1), 1) for sizes in zip(*padded, strict=True))


def expanded_strides(tensor: Any, shape: Sequence[int]) -> tuple[int, ...]:
    """Strides over `shape`, in elements; 0 where the tensor is repeated."""
    missing: int = len(shape) - tensor.ndim
    own: list[int] = [
        0 if n == 1 else s for n, s in zip(tensor.shape, tensor.stride(), strict=True)
    ]
    return (0,) * missing + tuple(own)


def merge(
    shape: Sequence[int], strides: Sequence[Sequence[int]]
) -> tuple[list[int], list[list[int]]]:
    """The same elements in fewer dimensions, last one fastest: sizes, and the strides of each operand."""
    sizes: list[int] = []
    merged: list[list[int]] = [[] for _ in strides]
    for d, n in enumerate(shape):
        if n == 1:
            continue
        if sizes and all(m[-1] == s[d] * n for m, s in zip(merged, strides, strict=True)):
            sizes[-1] *= n
            for m, s in zip(merged, strides, strict=True):
                m[-1] = s[d]
            continue
        sizes.append(n)
        for m, s in zip(merged, strides, strict=True):
            m.append(s[d])
    return sizes, merged


def offsets_text(names: Sequence[str], ndim: int, item: str, sizes: str = "n") -> str:
    """OpenCL C that finds the offsets `names` of element `item`; sizes are `n0..`, strides `<name>0..`."""
    lines = [f"long rest_{names[0]} = {item};", *(f"long {name} = 0;" for name in names)]
    for d in reversed(range(ndim)):
        step = f"rest_{names[0]} % {sizes}{d}" if d else f"rest_{names[0]}"
        lines.append(f"{{ long i = {step}; " + " ".join(f"{x} += i * {x}{d};" for x in names))
        lines[-1] += f" rest_{names[0]} /= {sizes}{d}; }}" if d else " }"
    return "\n  ".join(lines)


def parameters(names: Sequence[str], ndim: int, sizes: str = "n") -> list[str]:
    """Declarations of what `offsets_text` uses, in the order of `values`."""
    return [f"long {x}{d}" for x in (sizes, *names) for d in range(ndim)]
