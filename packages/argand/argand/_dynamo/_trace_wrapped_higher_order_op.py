"""What functions of masks are run in, under the name that programs know it by."""

from __future__ import annotations

from typing import Self

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex:
    """A context manager in which `x[i]` may have tensors without dimensions for indices under `vmap`: here it always may, so nothing changes."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        pass
