"""Which sizes and integers are symbolic: those that have changed once, those that the user marked, or all."""

from __future__ import annotations

from typing import Any

import argand_c10
from argand_c10 import Tensor
from argand_dynamo.configuration import config
from argand_dynamo.history import FrameHistory, marked_dims
from argand_dynamo.variables.base import Source
from argand_fx.shapes.shape_env import ShapeEnv

__all__ = ["DynamicShapes"]


class DynamicShapes:
    """Decides for one compilation, by the history of its code.

    Args:
        history: of the code; it learns what this compilation sees.
        dynamic: True: all sizes from the start; False: none; None: those that change.
    """

    def __init__(self, history: FrameHistory, dynamic: bool | None) -> None:
        self.history = history
        self.dynamic = dynamic
        self.shape_env = ShapeEnv()
        # By source: dimensions that are symbolic.
        self.chosen: dict[Source, tuple[int, ...]] = {}

    def dims_of(self, tensor: Tensor, source: Source) -> tuple[int, ...]:
        """The dimensions of an input whose sizes become symbols."""
        found = self.chosen.get(source)
        if found is None:
            found = self.chosen[source] = self._choose(tensor, source)
        return found

    def _choose(self, tensor: Tensor, source: Source) -> tuple[int, ...]:
        sizes = tuple(tensor.shape)
        known = self.history.sizes.get(source)
        if known is not None and len(known) == len(sizes):
            merged: tuple[int | None, ...] = tuple(
                [a if a == b else None for a, b in zip(known, sizes, strict=True)]
            )
        else:
            merged = sizes
        self.history.sizes[source] = merged
        dims = set(marked_dims(tensor, "dynamic"))
        if self.dynamic:
            if not isinstance(tensor, argand_c10.Parameter | argand_c10.Buffer):
                dims |= set(range(len(sizes)))
        elif self.dynamic is None and config.automatic_dynamic_shapes:
            dims |= {d for d, size in enumerate(merged) if size is None}
        dims -= marked_dims(tensor, "static")
        return tuple(sorted(d for d in dims if sizes[d] > 1))

    def symbol_of(self, value: int, source: Source) -> Any:
        """A symbol for an integer, None to take it as a constant."""
        known = self.history.numbers.get(source, value)
        merged = value if known == value else None
        self.history.numbers[source] = merged
        if config.specialize_int or self.dynamic is False or value in (0, 1):
            return None
        if self.dynamic or (merged is None and config.automatic_dynamic_shapes):
            if not -(2**62) < value < 2**62:
                return None
            return self.shape_env.create_symbol(value, (source, "value", 0), positive=False)
        return None
