"""Fake tensors of real ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argand_c10 import Tensor
from argand_fx.shapes.fake_tensor import FakeStorage, FakeTensor

__all__ = ["from_tensor"]


def from_tensor(
    tensor: Tensor,
    env: Any = None,
    *,
    source: Any = None,
    dynamic_dims: Sequence[int] = (),
    storages: dict[Any, FakeStorage] | None = None,
) -> FakeTensor:
    """The fake of a real tensor.

    Args:
        env: the `ShapeEnv` for symbols; needed with `dynamic_dims`.
        source: where the tensor comes from; the symbols' sources are `(source, "size", dim)` and `(source, "stride", dim)`.
        dynamic_dims: dimensions whose sizes become symbols, unless they are 0 or 1.
        storages: fake storages by real ones, shared by calls whose tensors may share memory.
    """
    sizes: list[Any] = list(tensor.shape)
    strides: list[Any] = list(tensor.stride())
    if dynamic_dims:
        wrapped = {d + len(sizes) if d < 0 else d for d in dynamic_dims}
        hints = list(sizes)
        for d in sorted(wrapped):
            if hints[d] > 1:
                sizes[d] = env.create_symbol(hints[d], (source, "size", d))
        if any(type(s) is not int for s in sizes):
            strides = _symbolic_strides(hints, sizes, strides, env, source)
    real = tensor.untyped_storage()
    storage = None if storages is None else storages.get(real)
    if storage is None:
        symbolic = any(type(n) is not int for n in (*sizes, *strides))
        extent = (sizes, strides, tensor.storage_offset(), tensor.dtype.itemsize)
        storage = FakeStorage(extent if symbolic else real.nbytes())
        if storages is not None:
            storages[real] = storage
    fake = FakeTensor(
        sizes,
        strides,
        tensor.storage_offset(),
        tensor.dtype,
        tensor.device,
        tensor.requires_grad,
        storage,
    )
    fake._leaf = tensor.is_leaf
    return fake


def _symbolic_strides(
    hints: Sequence[int], sizes: Sequence[Any], strides: Sequence[int], env: Any, source: Any
) -> list[Any]:
    """Strides as products of the sizes inside, where that is what they are; else numbers.

    A stride that no product explains becomes a symbol if a symbolic size lies inside of it, since it may well change
    with that.
    """
    found: list[Any] = list(strides)
    expected: dict[int, Any] = {1: 1}  # strides that are explained, by their value
    inside = False
    for d in sorted(range(len(sizes)), key=lambda d: (strides[d], -d)):
        if hints[d] == 1 or strides[d] == 0:
            continue
        if strides[d] in expected:
            found[d] = expected[strides[d]]
        elif inside:
            found[d] = env.create_symbol(strides[d], (source, "stride", d))
        expected[strides[d] * hints[d]] = found[d] * sizes[d]
        inside = inside or type(sizes[d]) is not int
    for d in range(len(sizes)):  # sizes of 1 lie anywhere
        if hints[d] == 1 and strides[d] in expected:
            found[d] = expected[strides[d]]
    return found
