"""Steps of random programs that move elements: advanced indexing, gather and scatter, joining, rearranging, padding."""

from __future__ import annotations

from typing import Any

import numpy as np
import program_values as values
from program_machine import MAX_ELEMENTS, Choices, Machine, Pair, operation, overlaps_itself, write

import argand


def random_index(c: Choices, n: int, shape: tuple[int, ...], negative: bool = True) -> np.ndarray:
    low = -n if negative else 0
    count = int(np.prod(shape))
    return np.array([c.between(low, n - 1) for _ in range(count)], dtype=np.int64).reshape(shape)


def as_tensor(array: np.ndarray) -> Any:
    return argand.tensor(array.tolist(), dtype=values.argand_dtype(str(array.dtype))).reshape(
        list(array.shape)
    )


def advanced_key(p: Pair, c: Choices) -> tuple[tuple[Any, ...], tuple[Any, ...]] | None:
    """A subscript of slices, numbers, None, index tensors and masks, for both."""
    ours: list[Any] = []
    theirs: list[Any] = []
    shape = c.one_of([(2,), (3, 1), (2, 2), (0,), ()])
    dim = 0
    while dim < p.array.ndim and len(ours) < 5:
        n = p.array.shape[dim]
        kind = c.below(7)
        if kind <= 2 and n:
            index = random_index(c, n, shape)
            ours.append(as_tensor(index))
            theirs.append(index)
        elif kind == 3:
            mask = np.array([c.below(2) for _ in range(n)], dtype=bool)
            # A mask is an index of as many entries as it has true ones, which need not go with others.
            if any(isinstance(t, np.ndarray) for t in theirs):
                return None
            ours.append(as_tensor(mask))
            theirs.append(mask)
            shape = (int(mask.sum()),)
        elif kind == 4:
            ours.append(None)
            theirs.append(None)
            continue
        else:
            key = slice(c.below(n + 1), None, c.between(1, 2))
            ours.append(key)
            theirs.append(key)
        dim += 1
    if not any(isinstance(t, np.ndarray) for t in theirs):
        return None
    return tuple(ours), tuple(theirs)


@operation
def advanced_index(m: Machine, c: Choices) -> None:
    p = m.pick(c)
    keys = advanced_key(p, c)
    if keys is not None:
        m.add_result(f"index {keys[1]}", p.tensor[keys[0]], p.array[keys[1]], p.dtype)


@operation
def advanced_assign(m: Machine, c: Choices) -> None:
    p, n = m.pick(c), c.between(0, 3)
    keys = advanced_key(p, c)
    if keys is None or overlaps_itself(p.array):
        return
    expected = p.array.copy()
    if c.below(2) and p.category:
        # Accumulates: every occurrence of an index counts.
        if any(isinstance(k, slice) or k is None for k in keys[0]) or len(keys[0]) < p.array.ndim:
            return
        with np.errstate(all="ignore"):
            np.add.at(expected, keys[1], np.array(n, p.array.dtype))
        value = argand.tensor(n, dtype=values.argand_dtype(p.dtype))
        write(
            m,
            f"index_put_ {keys[1]} += {n}",
            p,
            lambda: p.tensor.index_put_(keys[0], value, accumulate=True),
            expected,
            values.largest(expected),
        )
    else:
        expected[keys[1]] = n

        def ours() -> None:
            p.tensor[keys[0]] = n

        write(m, f"[{keys[1]}] = {n}", p, ours, expected)


@operation
def gather(m: Machine, c: Choices) -> None:
    p = m.pick(c)
    dims = [d for d, n in enumerate(p.array.shape) if n]
    if not dims or not p.array.size:
        return
    dim = c.one_of(dims)
    shape = list(p.array.shape)
    shape[dim] = c.between(0, 3)
    index = random_index(c, p.array.shape[dim], tuple(shape), negative=False)
    expected = np.take_along_axis(p.array, index, dim)
    name, ours = c.one_of(
        [
            ("gather", lambda i: argand.gather(p.tensor, dim, i)),
            ("take_along_dim", lambda i: argand.take_along_dim(p.tensor, i, dim)),
        ]
    )
    m.add_result(f"{name} {dim} {index.tolist()}", ours(as_tensor(index)), expected, p.dtype)


@operation
def scatter(m: Machine, c: Choices) -> None:
    """Without duplicates, or adding them up: the last of several has no order."""
    p = m.pick(c, (1, 2, 3))
    if not p.array.ndim or not p.array.size or p.array.size > 60:
        return
    dim = c.below(p.array.ndim)
    add = bool(c.below(2))
    index = random_index(c, p.array.shape[dim], p.array.shape, negative=False)
    if not add:
        index = np.argsort(index, dim, kind="stable")
    source = np.roll(np.ascontiguousarray(p.array), 1)
    expected = np.zeros_like(p.array)
    places = list(np.indices(index.shape))
    places[dim] = index
    with np.errstate(all="ignore"):
        if add:
            wide = values.widen(expected)
            np.add.at(wide, tuple(places), values.widen(source))
            expected = wide
        else:
            expected[tuple(places)] = source
    zeros = argand.zeros_like(p.tensor)
    values_tensor = argand.roll(p.tensor, 1)
    name = "scatter_add" if add else "scatter"
    result = getattr(argand, name)(zeros, dim, as_tensor(index), values_tensor)
    m.add_result(
        f"{name} {dim} {index.tolist()}", result, expected, p.dtype, values.largest(source) * 8
    )


@operation
def index_along(m: Machine, c: Choices) -> None:
    p = m.pick(c, (1, 2, 3))
    dims = [d for d, n in enumerate(p.array.shape) if n]
    if not dims:
        return
    dim = c.one_of(dims)
    index = random_index(c, p.array.shape[dim], (c.between(0, 3),), negative=False)
    t = as_tensor(index)
    taken = np.take(p.array, index, dim)
    m.add_result(
        f"index_select {dim} {index}", argand.index_select(p.tensor, dim, t), taken, p.dtype
    )
    if overlaps_itself(p.array):
        return
    expected = values.widen(p.array.copy())
    at = (slice(None),) * dim + (index,)
    with np.errstate(all="ignore"):
        np.add.at(expected, at, values.widen(taken))
    added = p.tensor.index_select(dim, t)
    scale = values.largest(p.array) * 4
    m.add_result(
        f"index_add {dim} {index}",
        argand.index_add(p.tensor, dim, t, added),
        expected,
        p.dtype,
        scale,
    )
    expected = p.array.copy()
    expected[at] = 1
    write(m, f"index_fill_ {dim} {index}", p, lambda: p.tensor.index_fill_(dim, t, 1), expected)


@operation
def masked(m: Machine, c: Choices) -> None:
    p = m.pick(c)
    mask = values.widen(p.array) != 0
    ours = p.tensor != 0
    m.add_result("masked_select", argand.masked_select(p.tensor, ours), p.array[mask], p.dtype)
    m.add_result("nonzero", argand.nonzero(p.tensor), np.argwhere(p.array), "int64")
    if p.array.size:
        index = random_index(c, p.array.size, (3,))
        m.add_result(
            f"take {index}",
            argand.take(p.tensor, as_tensor(index)),
            np.take(p.array, index),
            p.dtype,
        )


# ---- joining ----------------------------------------------------------------------------------------------------------
@operation
def join(m: Machine, c: Choices) -> None:
    p, q = m.pick(c), m.pick(c)
    if not p.array.ndim or q.array.ndim != p.array.ndim:
        q = p
    if not p.array.ndim or p.array.size > MAX_ELEMENTS // 4:
        return
    dim = c.below(p.array.ndim)
    outer = [n for d, n in enumerate(p.array.shape) if d != dim]
    if outer != [n for d, n in enumerate(q.array.shape) if d != dim]:
        q = p
    dtype = values.promote(p.dtype, q.dtype)
    a, b = values.round_to(p.array, dtype), values.round_to(q.array, dtype)
    m.add_result(
        f"cat {dim}", argand.cat([p.tensor, q.tensor], dim), np.concatenate([a, b], dim), dtype
    )
    if p.array.shape == q.array.shape:
        m.add_result(
            f"stack {dim}", argand.stack([p.tensor, q.tensor], dim), np.stack([a, b], dim), dtype
        )
    if p.array.ndim <= 2:
        m.add_result(
            "hstack", argand.hstack([p.tensor, p.tensor]), np.hstack([p.array] * 2), p.dtype
        )


# ---- rearranging ------------------------------------------------------------------------------------------------------
@operation
def rearrange(m: Machine, c: Choices) -> None:
    p = m.pick(c)
    x, t, rank = p.array, p.tensor, p.array.ndim
    if not rank or x.size > MAX_ELEMENTS // 4:
        return
    dim, other = c.below(rank), c.below(rank)
    n, k = c.between(-3, 3), c.between(0, 2)
    choices: list[tuple[str, Any, Any]] = [
        (f"flip {dim}", lambda: argand.flip(t, [dim]), lambda: np.flip(x, dim)),
        (f"roll {n} {dim}", lambda: argand.roll(t, n, dim), lambda: np.roll(x, n, dim)),
        (f"roll {n}", lambda: argand.roll(t, n), lambda: np.roll(x, n)),
        (f"tile {k}", lambda: argand.tile(t, (k, 2)), lambda: np.tile(x, (k, 2))),
        (
            f"repeat_interleave {k} {dim}",
            lambda: argand.repeat_interleave(t, k, dim),
            lambda: np.repeat(x, k, dim),
        ),
        ("reshape", lambda: t.reshape(-1), lambda: x.reshape(-1)),
        ("flatten", lambda: argand.flatten(t), lambda: x.reshape(-1)),
        ("clone", lambda: t.clone(), lambda: x),
        ("contiguous", lambda: t.contiguous(), lambda: x),
        (
            f"movedim {dim} {other}",
            lambda: argand.movedim(t, dim, other),
            lambda: np.moveaxis(x, dim, other),
        ),
    ]
    if rank > 1:
        choices += [
            (f"tril {n}", lambda: argand.tril(t, n), lambda: np.tril(x, n)),
            (f"triu {n}", lambda: argand.triu(t, n), lambda: np.triu(x, n)),
        ]
        if dim != other:
            choices.append(
                (
                    f"rot90 {k}",
                    lambda: argand.rot90(t, k, [dim, other]),
                    lambda: np.rot90(x, k, (dim, other)),
                )
            )
    name, ours, theirs = c.one_of(choices)
    m.add_result(name, ours(), theirs(), p.dtype)


@operation
def pad(m: Machine, c: Choices) -> None:
    p = m.pick(c)
    if not p.array.ndim or p.array.size > MAX_ELEMENTS // 4:
        return
    left, right = c.between(-1, 2), c.between(0, 2)
    n = p.array.shape[-1]
    if n + min(left, 0) < 0 or p.category == 0:
        return
    widths = [(0, 0)] * (p.array.ndim - 1) + [(max(left, 0), right)]
    x = p.array[..., max(-left, 0) :]
    expected = np.pad(x, widths, constant_values=2)
    m.add_result(
        f"pad {left} {right}",
        argand.nn.functional.pad(p.tensor, (left, right), value=2),
        expected,
        p.dtype,
    )
    channels = p.array.shape[-2] if p.array.ndim > 1 else 0  # only the batch may be empty
    fits = left >= 0 and max(left, right) < n and channels > 0
    if p.category == 2 and p.array.ndim in (2, 3) and fits:
        mode, name = c.one_of([("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")])
        ours = argand.nn.functional.pad(p.tensor, (left, right), mode=mode)
        m.add_result(
            f"pad {mode} {left} {right}", ours, np.pad(p.array, widths, mode=name), p.dtype
        )


@operation
def into_out(m: Machine, c: Choices) -> None:
    """`out=` writes through a view of others' memory."""
    p = m.pick(c, (2,))
    x = values.widen(p.array)
    with np.errstate(all="ignore"):
        expected = x + x
    write(
        m,
        "add out=",
        p,
        lambda: argand.add(p.tensor, p.tensor, out=p.tensor),
        expected,
        values.largest(x),
    )
