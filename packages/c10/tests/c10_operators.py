"""Operators of the tests, defined in Python over NumPy: c10 has none of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

import argand_c10 as c10
from argand_c10 import _C, Operator, Tensor

SLOTS = {
    name: i
    for i, name in enumerate(
        "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift "
        "iadd isub imul itruediv ifloordiv imod ipow iand ior ixor ilshift irshift "
        "neg pos abs invert eq ne lt le gt ge".split()
    )
}


def array(x: Any) -> Any:
    return x.numpy() if isinstance(x, Tensor) else x


def from_array(x: Any) -> Tensor:
    return c10.tensor(np.asarray(x))


def binary(name: str, function: Any) -> Operator:
    op = c10.define(f"test::{name}(Tensor|Scalar self, Tensor|Scalar other) -> Tensor")
    c10.register_kernel(
        f"test::{name}", "cpu", lambda a, b: from_array(function(array(a), array(b)))
    )
    return op


def inplace(name: str, function: Any) -> Operator:
    def kernel(a: Tensor, b: Any) -> Tensor:
        target = a.numpy()
        target[...] = function(target, array(b))
        return a

    op = c10.define(f"test::{name}(Tensor(a!) self, Tensor|Scalar other) -> Tensor(a!)")
    c10.register_kernel(f"test::{name}", "cpu", kernel)
    return op


def unary(name: str, function: Any) -> Operator:
    op = c10.define(f"test::{name}(Tensor self) -> Tensor")
    c10.register_kernel(f"test::{name}", "cpu", lambda a: from_array(function(array(a))))
    return op


add = binary("add", np.add)
sub = binary("sub", np.subtract)
eq = binary("eq", np.equal)
lt = binary("lt", np.less)
add_ = inplace("add_", np.add)
neg = unary("neg", np.negative)


def select(x: Tensor, index: Any) -> Tensor:
    return from_array(array(x)[index])


def assign(x: Tensor, index: Any, value: Any) -> None:
    array(x)[index] = array(value)


def install() -> None:
    """Put the operators behind Tensor's symbols."""
    for slot, op in {"add": add, "sub": sub, "eq": eq, "lt": lt, "iadd": add_, "neg": neg}.items():
        _C._set_slot(SLOTS[slot], op)
    _C._set_tensor_method("plus", add)
    _C._set_indexing(select, assign)
