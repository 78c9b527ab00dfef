"""`vmap`: a function of one entry, over the entries of a dimension."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import argand_aten as aten
from argand_autograd._tree import flatten, flatten_as, unflatten
from argand_autograd.differentiate import run_keeping_graphs
from argand_autograd.grad_mode import no_grad
from argand_c10 import Generator, Tensor, random, tensor, uint8

__all__ = ["vmap"]

_RANDOMNESS = ("error", "different", "same")


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """A function that applies `func` to every entry of a dimension of its arguments and stacks the results.

    `func` runs once an entry, so it may do whatever Python does, `.item()` and branches on values included; compiled,
    the runs are one graph, whose loops are fused, and random numbers are not looked for. It nests, and goes with `grad`
    and its like in either order.

    Args:
        func: takes tensors, or dicts, lists and tuples of them; returns such. It sees its arguments without the dimension.
        in_dims: the dimension of every argument, None for one that all entries share: an int, or a tuple with an int, None
            or a nested structure for each positional argument. Keyword arguments are shared.
        out_dims: where the results have the dimension: an int, or a structure of them like the results'.
        randomness: what random numbers inside are: 'different' for each entry, the 'same', or an 'error'.
        chunk_size: accepted; entries run one by one.

    Raises:
        ValueError: if `in_dims` or `out_dims` does not fit, sizes differ along the dimension, nothing is mapped, or `func`
            returns something else than tensors.
        RuntimeError: if random numbers are drawn and `randomness` is 'error'.
    """
    if randomness not in _RANDOMNESS:
        raise RuntimeError(
            f"vmap: got randomness {randomness!r}, expected one of {', '.join(_RANDOMNESS)}"
        )
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: got chunk_size {chunk_size}, expected a positive number or None")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = flatten(args)
        dims = _input_dims(in_dims, args, leaves)
        count = _entries(leaves, dims)
        parts = [t if d is None else t.unbind(d) for t, d in zip(leaves, dims, strict=True)]

        def call(chosen: list[Any]) -> Any:
            return func(*unflatten(structure, chosen), **kwargs)

        def run(i: int) -> Any:
            return call([p if d is None else p[i] for p, d in zip(parts, dims, strict=True)])

        if count == 0:  # shapes follow from an entry of zeros
            zeros = [
                t
                if d is None
                else t.new_zeros([n for k, n in enumerate(t.shape) if k != d % t.ndim])
                for t, d in zip(leaves, dims, strict=True)
            ]
            with no_grad():
                return _stack([call(zeros)], out_dims, 0)
        return _stack(_runs(run, count, randomness), out_dims, count)

    return wrapper


def _spread(dims: Any, node: Any) -> list[int | None] | None:
    """One dimension for each leaf of `node`; None if the structures differ."""
    if dims is None or isinstance(dims, int):
        return [dims] * len(flatten(node)[0])
    if isinstance(dims, dict):
        if not isinstance(node, dict) or dims.keys() != node.keys():
            return None
        pairs = [(dims[key], value) for key, value in node.items()]
    elif isinstance(dims, tuple | list):
        if not isinstance(node, tuple | list) or len(dims) != len(node):
            return None
        pairs = list(zip(dims, node, strict=True))
    else:
        return None
    found: list[int | None] = []
    for one, value in pairs:
        part = _spread(one, value)
        if part is None:
            return None
        found += part
    return found


def _input_dims(in_dims: Any, args: tuple[Any, ...], leaves: list[Any]) -> list[int | None]:
    if not isinstance(in_dims, int | tuple):
        raise ValueError(
            f"vmap: got in_dims of type {type(in_dims).__name__}, expected an int or a tuple with an entry for each positional argument"
        )
    if not leaves:
        raise ValueError("vmap: got no inputs, expected at least one positional argument")
    dims = _spread(in_dims, args)
    if dims is None:
        raise ValueError(
            f"vmap: in_dims {in_dims!r} is not structured as the inputs; expected an int, None or a structure for each of {len(args)} arguments"
        )
    for t, d in zip(leaves, dims, strict=True):
        if d is None:
            continue
        if not isinstance(t, Tensor):
            raise ValueError(
                f"vmap: got an input of type {type(t).__name__} for in_dim {d}, expected a tensor; give None for what all entries share"
            )
        if not -t.ndim <= d < t.ndim:
            raise ValueError(
                f"vmap: got in_dim {d} for a tensor of {t.ndim} dimensions, expected -{t.ndim} <= in_dim < {t.ndim}"
            )
    return dims


def _entries(leaves: list[Any], dims: list[int | None]) -> int:
    sizes = [t.shape[d] for t, d in zip(leaves, dims, strict=True) if d is not None]
    if not sizes:
        raise ValueError(
            "vmap: got in_dims of None only, expected at least one input with a dimension to map over"
        )
    if any(n != sizes[0] for n in sizes):
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes}"
        )
    return int(sizes[0])


def _runs(run: Callable[[int], Any], count: int, randomness: str) -> list[Any]:
    def entry(i: int) -> Any:
        return run_keeping_graphs(run, i) if i < count - 1 else run(i)

    if randomness == "different":
        return [entry(i) for i in range(count)]
    before = random_states(randomness)
    found = [entry(0)]
    draws = before != random_states(randomness)
    if draws and randomness == "error":
        raise RuntimeError(
            "vmap: called random operation while in randomness error mode; pass randomness='different' or randomness='same'"
        )
    for i in range(1, count):
        if draws:
            random.set_rng_states((g, tensor(state, dtype=uint8)) for g, state in before)
        found.append(entry(i))
    return found


def random_states(randomness: str) -> list[tuple[Generator, list[int]]]:
    """The default generators and their states, which differ once numbers are drawn; compiled code does not look for that."""
    return [(generator, state.tolist()) for generator, state in random.get_rng_states()]


def stack_as_they_lie(entries: Sequence[Tensor]) -> Tensor:
    """`stack(entries)` whose entries have the order of dimensions in memory that the first has by itself, if it is no expanded tensor."""
    first = entries[0]
    strides = first.stride()
    if first.is_contiguous() or 0 in strides:
        return aten.stack(list(entries))
    order = sorted(range(first.ndim), key=lambda i: (-strides[i], i))
    whole = aten.stack([t.permute(order) for t in entries])
    return whole.permute([0, *(1 + order.index(i) for i in range(first.ndim))])


def _stack(results: list[Any], out_dims: Any, count: int) -> Any:
    """The results of `count` entries, or of one in place of none, with the new dimension at `out_dims`; that of None is the first's."""
    structure = flatten(results[0])[1]
    flat: list[list[Any]] = []
    for result in results:
        entry = flatten_as(structure, result)
        if entry is None:
            raise ValueError(
                "vmap: the function returned results of different structures, expected one for all entries"
            )
        flat.append(entry)
    for x in flat[0]:
        if not isinstance(x, Tensor):
            raise ValueError(
                f"vmap: the function returned {type(x).__name__}, expected tensors only"
            )
    if isinstance(out_dims, tuple) and len(out_dims) == 1 and isinstance(results[0], Tensor):
        out_dims = out_dims[0]
    dims = _spread(out_dims, results[0])
    if dims is None:
        raise ValueError(
            f"vmap: out_dims {out_dims!r} is not structured as the results; expected an int or a structure like theirs"
        )
    leaves = []
    for d, column in zip(dims, zip(*flat, strict=True), strict=True):
        if d is None:
            leaves.append(column[0])
            continue
        whole = stack_as_they_lie(column)
        leaves.append((whole if count else whole.narrow(0, 0, 0)).movedim(0, d))
    return unflatten(structure, leaves)
