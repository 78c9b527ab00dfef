"""The library under test, and the device that its tensors are put on: ARGAND_TEST_DEVICE, by default the CPU."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pytest

from tools.codegen.model import Schema

DEVICE: Final = os.environ.get("ARGAND_TEST_DEVICE", "cpu")


def aten() -> Any:
    import argand_aten

    return argand_aten


def c10() -> Any:
    import argand_c10

    return argand_c10


@functools.cache
def _missing() -> str:
    """Why there is no such device; empty where there is one."""
    try:
        aten().empty([1], device=DEVICE)
    except (RuntimeError, ImportError) as e:
        return f"no device '{DEVICE}': {e}"
    return ""


def place(t: Any) -> Any:
    """The tensor on the device under test; the test is skipped where there is none."""
    if DEVICE == "cpu":
        return t
    if _missing():
        pytest.skip(_missing())
    return t.to(DEVICE)


def on_device(schema: Schema, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments that have a factory make its result on the device under test."""
    device = schema.argument("device")
    given = (*args, *kwargs.values())
    made = device is not None and not any(isinstance(a, c10().Tensor) for a in given)
    if DEVICE == "cpu" or not made or "device" in kwargs:
        return dict(kwargs)
    if _missing():
        pytest.skip(_missing())
    return {**kwargs, "device": DEVICE}


def dtype_object(name: str) -> Any:
    return getattr(c10(), name)


def dtype_name(t: Any) -> str:
    return str(t.dtype).rsplit(".", 1)[-1]


def make(array: Any, dtype: str) -> Any:
    """A fresh contiguous tensor with these values."""
    storable = np.array(
        array, dtype="float32" if dtype == "bfloat16" else dtype, order="C", copy=True
    )
    t = aten().from_numpy(storable)
    return place(t.to(dtype_object(dtype)) if dtype == "bfloat16" else t)


def array_of(t: Any) -> Any:
    """A result as NumPy (bfloat16 as float32); lists and tuples of tensors too."""
    if isinstance(t, (list, tuple)):
        return [array_of(x) for x in t]
    t = t.detach().to("cpu")
    return t.to(c10().float32).numpy() if dtype_name(t) == "bfloat16" else t.numpy()
