"""What is known of sizes and integers before a compilation: what earlier ones saw, and what users marked."""

from __future__ import annotations

from typing import Any

from argand_c10 import Tensor

__all__ = ["FrameHistory", "mark_dynamic", "mark_static", "marked_dims"]

Source = tuple[tuple[Any, ...], ...]


def marked_dims(tensor: Tensor, how: str) -> frozenset[int]:
    """The dimensions marked "dynamic" or "static"."""
    fields = getattr(tensor, "__dict__", None)
    found: frozenset[int] = (
        fields.get(f"_argand_{how}_dims", frozenset()) if fields else frozenset()
    )
    return found


def _mark(how: str, tensor: Tensor, dim: Any) -> None:
    if not isinstance(tensor, Tensor):
        raise TypeError(f"mark_{how}: got {type(tensor).__name__}, expected a Tensor")
    dims = dim if isinstance(dim, list | tuple) else [dim]
    for d in dims:
        if not -tensor.dim() <= d < tensor.dim():
            raise IndexError(
                f"mark_{how}: got dimension {d}, expected one of the tensor's {tensor.dim()}"
            )
    wrapped = {d % tensor.dim() for d in dims}
    tensor.__dict__[f"_argand_{how}_dims"] = marked_dims(tensor, how) | wrapped


def mark_dynamic(tensor: Tensor, dim: int | list[int] | tuple[int, ...]) -> None:
    """Have compiled functions take a size of this tensor as any number from 2 on.

    Args:
        tensor: an argument of later calls.
        dim: the dimension, or several.

    Raises:
        IndexError: if the tensor has no such dimension.
    """
    _mark("dynamic", tensor, dim)


def mark_static(tensor: Tensor, dim: int | list[int] | tuple[int, ...]) -> None:
    """Have compiled functions take a size of this tensor as fixed, though it may have changed before."""
    _mark("static", tensor, dim)


class FrameHistory:
    """What earlier compilations of one code object have seen.

    Attributes:
        sizes: sizes of tensors by source, as first seen; None where two differed.
        numbers: integers by source; None where two differed.
        contents: of arrays by source, and how often they have changed.
    """

    __slots__ = ("contents", "numbers", "sizes")

    def __init__(self) -> None:
        self.sizes: dict[Source, tuple[int | None, ...]] = {}
        self.numbers: dict[Source, int | None] = {}
        self.contents: dict[Source, tuple[int, int]] = {}

    def changes(self, source: Source, content: bytes) -> int:
        """How often the content of an array has been another one than before."""
        now = hash(content)
        before, count = self.contents.get(source, (now, 0))
        count += before != now
        self.contents[source] = (now, count)
        return count
