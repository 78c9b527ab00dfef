"""Joining samples into batches."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import argand_aten as aten
from argand_c10 import Tensor, float64
from argand_nn.data.transfer import empty_for_batch

__all__ = ["collate", "default_collate", "default_convert", "pin_memory"]


# Of the names of NumPy's dtypes that no tensor has. Programs written for PyTorch use it.
np_str_obj_array_pattern = re.compile(r"[SaUO]")


def _is_numpy(value: Any) -> bool:
    # By name, so that NumPy is not imported for its sake.
    return any(cls.__module__ == "numpy" for cls in type(value).__mro__)


def _like(sample: Any, content: Any) -> Any:
    """`content`, a list or dict, in a container of the sample's class; as it is where that cannot be made so."""
    try:
        if isinstance(sample, MutableMapping):
            filled: Any = copy.copy(sample)
            filled.update(content)
        elif isinstance(sample, MutableSequence):
            filled = copy.copy(sample)
            for i, value in enumerate(content):
                filled[i] = value
        else:
            filled = type(sample)(content)
        return filled
    except TypeError:
        return content


def default_convert(data: Any) -> Any:
    """NumPy arrays and numbers inside `data` as tensors; all else as it is."""
    if isinstance(data, Tensor):
        return data
    if _is_numpy(data):
        if data.dtype.kind in "SUOV":
            return data
        return aten.as_tensor(data)
    if isinstance(data, Mapping):
        return _like(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(value) for value in data))
    if isinstance(data, tuple):
        return [default_convert(value) for value in data]
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        return _like(data, [default_convert(value) for value in data])
    return data


def pin_memory(data: Any) -> Any:
    """The tensors inside `data`, and what has a method `pin_memory`, in page-locked memory; all else as it is."""
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, Mapping):
        return _like(data, {key: pin_memory(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(pin_memory(value) for value in data))
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        return _like(data, [pin_memory(value) for value in data])
    return data


def collate(
    batch: Sequence[Any], *, collate_fn_map: Mapping[Any, Callable[..., Any]] | None = None
) -> Any:
    """Samples as one batch: containers are entered, and what is in them is joined by the functions of a map.

    Args:
        batch: the samples, of one type.
        collate_fn_map: functions by class (or tuple of classes) of samples, called with the samples and this map by name.

    Raises:
        RuntimeError: if samples have different sizes.
        TypeError: for samples of other types.
    """
    first, functions = batch[0], collate_fn_map or {}
    join = functions.get(type(first)) or next(
        (function for kind, function in functions.items() if isinstance(first, kind)), None
    )
    if join is None and _is_numpy(first) and functions:
        join = _collate_numpy
    if join is not None:
        return join(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        fields = {
            key: collate([sample[key] for sample in batch], collate_fn_map=collate_fn_map)
            for key in first
        }
        return _like(first, fields)
    if isinstance(first, Sequence):
        return _collate_sequences(batch, collate_fn_map)
    raise TypeError(
        f"default_collate: got samples of type {type(first).__name__}, expected tensors, NumPy "
        "arrays, numbers, strings, mappings or sequences; pass a collate_fn of your own"
    )


def _collate_sequences(batch: Sequence[Any], functions: Any) -> Any:
    first = batch[0]
    lengths = sorted({len(sample) for sample in batch})
    if len(lengths) != 1:
        raise RuntimeError(
            f"default_collate: got samples of lengths {lengths}, expected equal ones; "
            "pass a collate_fn of your own"
        )
    fields = [collate(field, collate_fn_map=functions) for field in zip(*batch, strict=True)]
    if isinstance(first, tuple):
        return type(first)(*fields) if hasattr(first, "_fields") else fields
    return _like(first, fields)


def collate_tensor_fn(batch: Sequence[Tensor], *, collate_fn_map: Any = None) -> Tensor:
    """Tensors of one shape, stacked."""
    return _stack(batch)


def _collate_numpy(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Tensor:
    if batch[0].dtype.kind in "SUOV":
        raise TypeError(
            f"default_collate: got NumPy data of dtype {batch[0].dtype}, expected numbers; "
            "pass a collate_fn of your own"
        )
    return _stack([aten.as_tensor(sample) for sample in batch])


def collate_float_fn(batch: Sequence[float], *, collate_fn_map: Any = None) -> Tensor:
    """Numbers as a tensor of float64."""
    return aten.tensor(list(batch), dtype=float64)


def collate_int_fn(batch: Sequence[int], *, collate_fn_map: Any = None) -> Tensor:
    """Integers or bools as a tensor."""
    return aten.tensor(list(batch))


def collate_str_fn(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Sequence[Any]:
    """The samples themselves."""
    return batch


# What `default_collate` does with samples by their class; NumPy's besides. Programs add to it.
default_collate_fn_map: dict[Any, Callable[..., Any]] = {
    Tensor: collate_tensor_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def default_collate(batch: Sequence[Any]) -> Any:
    """`collate` by `default_collate_fn_map`: tensors and arrays are stacked, numbers become tensors, strings stay."""
    return collate(batch, collate_fn_map=default_collate_fn_map)


def _stack(tensors: Sequence[Tensor]) -> Tensor:
    shapes = {tuple(tensor.shape) for tensor in tensors if isinstance(tensor, Tensor)}
    if len(shapes) != 1:
        raise RuntimeError(
            f"default_collate: got samples of shapes {sorted(map(list, shapes))}, expected equal "
            "ones; pad them, or pass a collate_fn of your own"
        )
    first = tensors[0]
    if all(
        type(tensor) is Tensor
        and tensor.is_cpu
        and tensor.dtype == first.dtype
        and not tensor.requires_grad
        for tensor in tensors
    ):
        out = empty_for_batch((len(tensors), *first.shape), first.dtype)
        if out is not None:
            for part, tensor in zip(out, tensors, strict=True):
                part.copy_(tensor)
            return out
    return aten.stack(list(tensors), 0)
