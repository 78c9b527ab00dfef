"""Operators of the tests, defined in Python over NumPy: this layer knows none by name."""

from __future__ import annotations

from typing import Any

import numpy as np

import argand_c10 as c10
from argand_c10 import Operator, Tensor


def _array(x: Any) -> Any:
    return x.numpy(force=True) if isinstance(x, Tensor) else x


def _define(schema: str, function: Any) -> Operator:
    op = c10.define(f"fxtest::{schema}")

    def kernel(*args: Any, **kwargs: Any) -> Tensor:
        return c10.tensor(np.asarray(function(*map(_array, args), **kwargs)))

    c10.register_kernel(f"fxtest::{schema.partition('(')[0]}", "cpu", kernel)
    return op


add = _define(
    "add(Tensor|Scalar self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor",
    lambda a, b, alpha=1: a + alpha * b,
)
mul = _define("mul(Tensor|Scalar self, Tensor|Scalar other) -> Tensor", np.multiply)
neg = _define("neg(Tensor self) -> Tensor", np.negative)
total = _define(
    "total.dim(Tensor self, int[] dim) -> Tensor", lambda a, dim: a.sum(axis=tuple(dim))
)
reshape = _define("reshape(Tensor self, int[] shape) -> Tensor", lambda a, shape: a.reshape(shape))
noise = _define(
    "noise(Tensor self, *, Generator? generator=None) -> Tensor",
    lambda a, generator=None: a + np.random.rand(),
)


def _add_in_place(a: Tensor, b: Any) -> Tensor:
    array = a.numpy()
    array += _array(b)
    return a


add_ = c10.define("fxtest::add_(Tensor(a!) self, Tensor|Scalar other) -> Tensor(a!)")
c10.register_kernel("fxtest::add_", "cpu", _add_in_place)
view = c10.define("fxtest::view(Tensor(a) self) -> Tensor(a)")
c10.register_kernel("fxtest::view", "cpu", lambda a: a)
