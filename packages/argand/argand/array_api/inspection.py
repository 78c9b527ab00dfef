"""What this namespace can do, as data."""

from __future__ import annotations

from typing import Any

import argand
from argand.array_api.data_types import KINDS, isdtype

__all__ = ["__array_namespace_info__"]


class __array_namespace_info__:
    """Capabilities, devices and dtypes."""

    def capabilities(self) -> dict[str, Any]:
        """Boolean indexing and results whose shapes depend on data are supported; tensors have at most 64 dimensions."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> argand.device:
        """The device of new tensors."""
        return argand.device("cpu")

    def default_dtypes(self, *, device: Any = None) -> dict[str, argand.dtype]:
        """The dtypes of new tensors, by kind."""
        real = argand.get_default_dtype()
        return {
            "real floating": real,
            "complex floating": real.to_complex(),
            "integral": argand.int64,
            "indexing": argand.int64,
        }

    def dtypes(
        self, *, device: Any = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, argand.dtype]:
        """The standard's dtypes, all or of one or several kinds, by name."""
        every = {d.name: d for d in KINDS[None]}
        return every if kind is None else {name: d for name, d in every.items() if isdtype(d, kind)}

    def devices(self) -> list[argand.device]:
        """The CPU and the CUDA devices."""
        return [
            argand.device("cpu"),
            *(argand.device("cuda", i) for i in range(argand.cuda.device_count())),
        ]
