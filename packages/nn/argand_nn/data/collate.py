"""Joining samples into batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import argand_aten as aten
from argand_c10 import Tensor, float64

__all__ = ["default_collate", "default_convert", "pin_memory"]


def _is_numpy(value: Any) -> bool:
    # By name, so that NumPy is not imported for its sake.
    return any(cls.__module__ == "numpy" for cls in type(value).__mro__)


def default_convert(data: Any) -> Any:
    """NumPy arrays and numbers inside `data` as tensors; all else as it is."""
    if isinstance(data, Tensor):
        return data
    if _is_numpy(data):
        if data.dtype.kind in "SUOV":
            return data
        return aten.as_tensor(data)
    if isinstance(data, Mapping):
        return {key: default_convert(value) for key, value in data.items()}
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(value) for value in data))
    if isinstance(data, tuple):
        return [default_convert(value) for value in data]
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        return [default_convert(value) for value in data]
    return data


def pin_memory(data: Any) -> Any:
    """The tensors inside `data`, and what has a method `pin_memory`, in page-locked memory; all else as it is."""
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, Mapping):
        return {key: pin_memory(value) for key, value in data.items()}
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(pin_memory(value) for value in data))
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        return [pin_memory(value) for value in data]
    return data


def default_collate(batch: Sequence[Any]) -> Any:
    """Samples as one batch: tensors are stacked, numbers become tensors, containers are entered.

    Raises:
        RuntimeError: if samples have different sizes.
        TypeError: for samples of other types.
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return _stack(batch)
    if _is_numpy(first):
        if first.dtype.kind in "SUOV":
            raise TypeError(
                f"default_collate: got NumPy data of dtype {first.dtype}, expected numbers; "
                "pass a collate_fn of your own"
            )
        return _stack([aten.as_tensor(sample) for sample in batch])
    if isinstance(first, float):
        return aten.tensor(list(batch), dtype=float64)
    if isinstance(first, int):
        return aten.tensor(list(batch))
    if isinstance(first, str | bytes):
        return batch
    if isinstance(first, Mapping):
        return {key: default_collate([sample[key] for sample in batch]) for key in first}
    if isinstance(first, Sequence):
        lengths = sorted({len(sample) for sample in batch})
        if len(lengths) != 1:
            raise RuntimeError(
                f"default_collate: got samples of lengths {lengths}, expected equal ones; "
                "pass a collate_fn of your own"
            )
        fields = [default_collate(field) for field in zip(*batch, strict=True)]
        return type(first)(*fields) if hasattr(first, "_fields") else fields
    raise TypeError(
        f"default_collate: got samples of type {type(first).__name__}, expected tensors, NumPy "
        "arrays, numbers, strings, mappings or sequences; pass a collate_fn of your own"
    )


def _stack(tensors: Sequence[Tensor]) -> Tensor:
    shapes = {tuple(tensor.shape) for tensor in tensors}
    if len(shapes) != 1:
        raise RuntimeError(
            f"default_collate: got samples of shapes {sorted(map(list, shapes))}, expected equal "
            "ones; pad them, or pass a collate_fn of your own"
        )
    return aten.stack(list(tensors), 0)
