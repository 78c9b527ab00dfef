"""`vmap`: a function of one entry, over the entries of a dimension."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import argand_aten as aten
from argand_autograd import _C
from argand_autograd._tree import flatten, flatten_as, unflatten
from argand_autograd.batching import is_entry, runs_at_once
from argand_autograd.batching.level import Draws, run_at_once, run_of_loop, share_memory
from argand_autograd.differentiate import run_keeping_graphs
from argand_autograd.grad_mode import no_grad
from argand_c10 import Tensor, contiguous_format

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

    `func` runs once, with tensors that stand for all entries, and operators on them run for all at once. What one run cannot do for
    all, as `.item()`, branches on values or writing into what entries share, makes it the run of the first entry, after which it runs once
    for each of the others. Compiled, it runs once an entry; the runs are one graph, whose loops are fused, and random numbers are
    not looked for. It nests, and goes with `grad` and its like in either order.

    Args:
        func: takes tensors, or dicts, lists and tuples of them; returns such. It sees its arguments without the dimension.
        in_dims: the dimension of every argument, None for one that all entries share: an int, or a tuple with an int, None
            or a nested structure for each positional argument. Keyword arguments are shared.
        out_dims: where the results have the dimension: an int, or a structure of them like the results'.
        randomness: what random numbers inside are: 'different' for each entry, the 'same', or an 'error'.
        chunk_size: how many entries run at once at most. Default: all.

    Raises:
        ValueError: if `in_dims` or `out_dims` does not fit, sizes differ along the dimension, nothing is mapped, `func`
            returns something else than tensors, or a result with `out_dims` None differs from entry to entry.
        RuntimeError: if random numbers are drawn and `randomness` is 'error'.
    """
    if randomness not in _RANDOMNESS:
        raise RuntimeError(
            f"vmap: got randomness {randomness!r}, expected one of {', '.join(_RANDOMNESS)}"
        )
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: got chunk_size {chunk_size}, expected a positive number or None")

    one_by_one = False  # what one run could not do once is not tried again

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        nonlocal one_by_one
        leaves, structure = flatten(args)
        dims = _input_dims(in_dims, args, leaves)
        count = _entries(leaves, dims)

        def call(chosen: list[Any]) -> Any:
            return func(*unflatten(structure, chosen), **kwargs)

        if count == 0:  # shapes follow from an entry of zeros
            zeros = [
                t
                if d is None
                else t.new_zeros([n for k, n in enumerate(t.shape) if k != d % t.ndim])
                for t, d in zip(leaves, dims, strict=True)
            ]
            with no_grad():
                return _put_together([_stack([call(zeros)], out_dims)], 0)
        draws = begin_draws(randomness)
        chunks: list[Any] = []
        results: list[Any] = []  # of the entries after those of the chunks
        if draws is not None and not one_by_one and runs_at_once(leaves):
            step = chunk_size or count
            chunks, results = _in_chunks(call, leaves, dims, count, step, out_dims, draws)
        done = len(results) + sum(size for *_, size in chunks)
        if done < count:
            one_by_one = one_by_one or runs_at_once(leaves)
            parts = [t if d is None else t.unbind(d) for t, d in zip(leaves, dims, strict=True)]

            def run(i: int) -> Any:
                return call([p if d is None else p[i] for p, d in zip(parts, dims, strict=True)])

            results = [*results, *_runs(run, done, count, draws)]
        if results:
            chunks = [*chunks, _stack(results, out_dims)]
        return _put_together(chunks, count)

    return wrapper


def detached(t: Tensor) -> Tensor:
    """`t.detach()`, but for the history of what it is an entry of."""
    return _C._cut(t) if is_entry(t) else t.detach()


def begin_draws(randomness: str) -> Draws | None:
    """What looks for random numbers; compiled code does not."""
    return Draws(randomness)


# The results of some entries: their leaves, with the entries in front but where `out_dims` is None; where the leaves get that dimension; their
# structure; and how many entries there are.
_Chunk = tuple[list[Tensor], list[int | None], Any, int]


def _in_chunks(
    call: Callable[[list[Any]], Any],
    leaves: list[Any],
    dims: list[int | None],
    count: int,
    chunk_size: int,
    out_dims: Any,
    draws: Draws,
) -> tuple[list[_Chunk], list[Any]]:
    """The results of entries `chunk_size` at a time, and that of the one after them, if one run was that of one entry."""
    chunks: list[_Chunk] = []
    for start in range(0, count, chunk_size):
        size = min(chunk_size, count - start)
        part = leaves
        if size < count:
            part = [
                t if d is None else t.narrow(d, start, size)
                for t, d in zip(leaves, dims, strict=True)
            ]
        draws.rewind()
        found = run_at_once(call, part, dims, size, draws)
        if found is None or found.alone:
            return chunks, [] if found is None else [unflatten(found.structure, found.leaves)]
        result = unflatten(found.structure, found.leaves)
        wholes, places = found.leaves, _output_dims(out_dims, result, found.leaves)
        for i, (d, t) in enumerate(zip(places, wholes, strict=True)):
            if d is None and found.differ[i]:
                _refuse_to_share()
            if d is not None:
                whole = t if found.differ[i] else t.expand(size, *t.shape)
                wholes[i] = stacked_memory(whole, part)
        chunks.append((wholes, places, found.structure, size))
    return chunks, []


def _refuse_to_share() -> NoReturn:
    raise ValueError(
        "vmap: got out_dims None for a result that differs from entry to entry, expected one that all share; give the dimension that it gets"
    )


def stacked_memory(whole: Tensor, arguments: Sequence[Any]) -> Tensor:
    """`whole` in memory of its own, as `stack_as_they_lie` makes it of the entries."""
    strides = whole.stride()[1:]
    order = list(range(whole.ndim))
    if 0 not in strides and not whole[0].is_contiguous():
        order[1:] = sorted(order[1:], key=lambda i: (-strides[i - 1], i))
    lying = whole.permute(order)
    shared = any(isinstance(t, Tensor) and share_memory(t, whole) for t in arguments)
    if shared or not lying.is_contiguous():
        lying = aten.clone(lying, memory_format=contiguous_format)
    usual = lying.reshape(-1).view(lying.shape)  # strides of dimensions of size 1 may be others
    return usual.permute([order.index(i) for i in range(whole.ndim)])


def _put_together(chunks: list[_Chunk], count: int) -> Any:
    _, dims, structure, _ = chunks[0]
    leaves = []
    for d, parts in zip(dims, zip(*(c[0] for c in chunks), strict=True), strict=True):
        if d is None:
            leaves.append(shared_result(parts))
            continue
        whole = parts[0] if len(parts) == 1 else aten.cat(list(parts))
        leaves.append((whole if count else whole.narrow(0, 0, 0)).movedim(0, d))
    return unflatten(structure, leaves)


def shared_result(column: Sequence[Tensor]) -> Tensor:
    """That of all entries; compiled code does not look whether it is."""
    first = column[0]
    for other in column[1:]:
        if other is not first and not aten.equal(other, first):
            _refuse_to_share()
    return first


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


def _runs(run: Callable[[int], Any], first: int, count: int, draws: Draws | None) -> list[Any]:
    """The results of entries from `first` on."""

    def entry(i: int) -> Any:
        return run_keeping_graphs(run, i) if i < count - 1 else run(i)

    if draws is None:
        return [entry(i) for i in range(first, count)]
    return [run_of_loop(functools.partial(entry, i), draws) for i in range(first, count)]


def stack_as_they_lie(entries: Sequence[Tensor]) -> Tensor:
    """`stack(entries)` whose entries have the order of dimensions in memory that the first has by itself, if it is no expanded tensor."""
    first = entries[0]
    strides = first.stride()
    if first.is_contiguous() or 0 in strides:
        return aten.stack(list(entries))
    order = sorted(range(first.ndim), key=lambda i: (-strides[i], i))
    whole = aten.stack([t.permute(order) for t in entries])
    return whole.permute([0, *(1 + order.index(i) for i in range(first.ndim))])


def _output_dims(out_dims: Any, result: Any, leaves: list[Any]) -> list[int | None]:
    """Where each of the tensors of one entry's result has the new dimension."""
    for x in leaves:
        if not isinstance(x, Tensor):
            raise ValueError(
                f"vmap: the function returned {type(x).__name__}, expected tensors only"
            )
    if isinstance(out_dims, tuple) and len(out_dims) == 1 and isinstance(result, Tensor):
        out_dims = out_dims[0]
    dims = _spread(out_dims, result)
    if dims is None:
        raise ValueError(
            f"vmap: out_dims {out_dims!r} is not structured as the results; expected an int or a structure like theirs"
        )
    return dims


def _stack(results: list[Any], out_dims: Any) -> _Chunk:
    structure = flatten(results[0])[1]
    flat: list[list[Any]] = []
    for result in results:
        entry = flatten_as(structure, result)
        if entry is None:
            raise ValueError(
                "vmap: the function returned results of different structures, expected one for all entries"
            )
        flat.append(entry)
    dims = _output_dims(out_dims, results[0], flat[0])
    leaves = [
        shared_result(column) if d is None else stack_as_they_lie(column)
        for d, column in zip(dims, zip(*flat, strict=True), strict=True)
    ]
    return leaves, dims, structure, len(results)
