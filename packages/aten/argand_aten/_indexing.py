"""Indexing in terms of operators, for objects that stand for tensors; `Tensor` does the same in C++ (csrc/python/indexing.cc).

Integers, slices, None, Ellipsis and bools are views, so are 0-d integer tensors; others and sequences gather (operator `index`).
"""

from __future__ import annotations

from typing import Any

import argand_c10

_MASKS = (argand_c10.bool, argand_c10.uint8)


def _is_integral(dtype: Any) -> bool:
    return not (dtype.is_floating_point or dtype.is_complex)


def _is_tensor(x: Any) -> bool:
    return hasattr(x, "ndim") and hasattr(x, "dtype") and hasattr(x, "requires_grad")


def _is_sequence(x: Any) -> bool:
    return isinstance(x, (list, tuple)) or (
        hasattr(x, "__len__")
        and hasattr(x, "__getitem__")
        and not _is_tensor(x)
        and not isinstance(x, str)
    )


def _consumed_dims(item: Any) -> int:
    if item is None or item is Ellipsis or isinstance(item, bool):
        return 0
    if _is_tensor(item):
        return item.ndim if item.dtype in _MASKS else 1
    return 1


class _Reader:
    """Applies the items of an index one after the other: first all views, then the tensors that gather."""

    def __init__(self, ops: Any, self_: Any) -> None:
        self.ops = ops
        self.view = self_
        self.indices: list[Any] = []
        self.masks: list[tuple[int, Any]] = []  # masks and their first dimensions, in order
        self._dim = 0  # of `view`
        self._selected = 0  # dimensions that integers took away

    def read(self, items: tuple[Any, ...]) -> _Reader:
        if sum(map(_consumed_dims, items)) > self.view.ndim:
            raise IndexError(f"too many indices for tensor of dimension {self.view.ndim}")
        for i, item in enumerate(items):
            if item is Ellipsis:
                self._dim = self.view.ndim - sum(map(_consumed_dims, items[i + 1 :]))
            else:
                self._apply(item)
        return self

    def _apply(self, item: Any) -> None:
        if item is None:
            self.view = self.ops.unsqueeze(self.view, self._dim)
            self._dim += 1
            self._selected -= 1
        elif isinstance(item, bool):
            self.view = self.ops.unsqueeze(self.view, self._dim)
            self._mask(self.ops.reshape(self.ops.full([], item, dtype=argand_c10.bool), [1]))
        elif isinstance(item, int):
            self._select(item)
        elif isinstance(item, slice):
            self._slice(item)
        elif _is_tensor(item):
            self._tensor(item)
        elif _is_sequence(item):
            found = argand_c10.tensor(item)
            empty = found.numel() == 0 and found.is_floating_point()
            self._tensor(argand_c10.tensor(item, dtype=argand_c10.int64) if empty else found)
        elif hasattr(type(item), "__index__"):
            self._select(item)
        else:
            raise (TypeError if isinstance(item, str) else IndexError)(
                "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
                f"(got {type(item).__name__})"
            )

    def _require_dims(self, n: int) -> None:
        """That the view has `n` more dimensions: a sequence counts as one until it is read."""
        if self._dim + n > self.view.ndim:
            raise IndexError(
                f"too many indices for tensor of dimension {self.view.ndim + self._selected}"
            )

    def _select(self, i: Any) -> None:
        self._require_dims(1)
        size = self.view.shape[self._dim]
        if i < -size or i >= size:
            raise IndexError(
                f"index {i} is out of bounds for dimension {self._dim + self._selected} with size {size}"
            )
        self.view = self.ops.select(self.view, self._dim, i)
        self._selected += 1

    def _slice(self, s: slice) -> None:
        start, stop = _bound(s.start), _bound(s.stop)
        step = 1 if s.step is None else _bound(s.step)
        if step <= 0:
            raise ValueError("step must be greater than zero")
        if start is not None or stop is not None or step != 1:
            self.view = self.ops.slice(self.view, self._dim, start, stop, step)
        self._dim += 1

    def _tensor(self, t: Any) -> None:
        if t.ndim == 0 and t.dtype not in _MASKS and _is_integral(t.dtype):
            index = (
                t if t.dtype is argand_c10.int64 else self.ops._to_copy(t, dtype=argand_c10.int64)
            )
            self.view = self.ops._select_at(self.view, self._dim, index)
            self._selected += 1
            return
        if t.dtype is argand_c10.uint8:  # as masks were before there was bool
            t = self.ops._to_copy(t, dtype=argand_c10.bool)
        if t.dtype is argand_c10.bool:
            self._require_dims(t.ndim)
            shape = self.view.shape
            for i in range(t.ndim):
                if t.shape[i] != shape[self._dim + i]:
                    raise IndexError(
                        f"The shape of the mask {list(t.shape)} at index {i} does not match the shape of the indexed tensor "
                        f"{list(shape)} at index {self._dim + i}"
                    )
            if t.ndim == 0:  # a bool scalar: a new dimension of size 1 or 0
                self.view = self.ops.unsqueeze(self.view, self._dim)
                t = self.ops.reshape(t, [1])
            self._mask(t)
            return
        if t.dtype not in (argand_c10.int64, argand_c10.int32):
            raise IndexError(
                f"tensors used as indices must be long, int, byte or bool tensors, but got {t.dtype.name}"
            )
        self._set(t)

    def _mask(self, mask: Any) -> None:
        self.masks.append((self._dim, mask))
        for _ in range(mask.ndim):
            self._set(None)

    def _set(self, index: Any) -> None:
        self.indices += [None] * (self._dim - len(self.indices)) + [index]
        self._dim += 1

    def gathered(self) -> list[Any]:
        """The indices, with masks as the places where they hold; empty where all are views."""
        for at, mask in self.masks:
            rows = self.ops.nonzero(mask)
            for i in range(mask.ndim):
                self.indices[at + i] = self.ops.select(rows, 1, i)
        self.masks = []
        return self.indices

    def only_mask(self) -> Any:
        """The mask over `view`, if that is all besides views."""
        if len(self.masks) != 1 or any(x is not None for x in self.indices):
            return None
        view = self.view
        if any(n != 1 and s == 0 for n, s in zip(view.shape, view.stride(), strict=True)):
            return None  # pointwise operators refuse to write there
        at, mask = self.masks[0]
        behind = self.view.ndim - at - mask.ndim
        return self.ops.reshape(mask, [*mask.shape, *[1] * behind]) if behind else mask


def _bound(x: Any) -> Any:
    """A slice bound: None, or a number that may be symbolic."""
    if x is None or (isinstance(x, int) and not isinstance(x, bool)):
        return x
    if _is_tensor(x):
        return x.__index__()
    if hasattr(type(x), "__index__"):
        return int(x) if isinstance(x, bool) else x
    raise TypeError(f"index: got a {type(x).__name__} as slice bound, expected an integer or None")


def _read(ops: Any, self: Any, index: Any) -> _Reader:
    if isinstance(index, tuple):
        return _Reader(ops, self).read(index)
    if isinstance(index, list) and len(index) < 32:
        for x in index:
            if (
                _is_tensor(x)
                or _is_sequence(x)
                or isinstance(x, slice)
                or x is None
                or x is Ellipsis
            ):
                return _Reader(ops, self).read(
                    tuple(index)
                )  # a short list of more than numbers stands for a tuple
    return _Reader(ops, self).read((index,))


def getitem(ops: Any, self: Any, index: Any) -> Any:
    """`self[index]`."""
    found = _read(ops, self, index)
    if found.indices:
        return ops.index(found.view, found.gathered())
    return ops.alias(self) if found.view is self else found.view


def setitem(ops: Any, self: Any, index: Any, value: Any) -> None:
    """`self[index] = value`; leading dimensions of size 1 of the value are dropped, one value fills where a mask holds."""
    found = _read(ops, self, index)
    view = found.view
    converts = not _is_tensor(value)
    if value is None:
        raise TypeError("index: got None to assign, expected a number, a tensor or a sequence")
    if converts:
        if isinstance(value, (bool, int, float, complex)) or not _is_sequence(value):
            value = ops.full([], value, dtype=view.dtype)
        else:
            value = argand_c10.tensor(value)
    if index is False:  # whatever the shape of the value
        return
    if found.indices:
        mask = found.only_mask() if value.ndim == 0 else None
        if (converts or mask is not None) and value.dtype is not view.dtype:
            value = ops._to_copy(value, dtype=view.dtype)
        if mask is not None:  # needs no look at the mask's elements
            ops.masked_fill_(view, mask, value)
        else:
            ops.index_put_(view, found.gathered(), value, False)
        return
    while value.ndim > view.ndim and value.shape[0] == 1:
        value = ops.squeeze(value, [0])
    ops.copy_(view, value)
