"""Loops as functions: `while_loop`, `scan` and `map`.

Compiled, `scan` and `map` are unrolled, as is a `while_loop` whose condition is known while tracing. Where tensors decide, the
loop is one node, whose condition and body are graphs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import argand_aten as aten
from argand.compiler import is_compiling
from argand.utils._pytree import tree_flatten, tree_map_only, tree_unflatten
from argand_c10 import Tensor
from argand_dynamo.loops import register_while_loop

__all__ = ["map", "scan", "while_loop"]


def while_loop(
    cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any
) -> Any:
    """Calls `carried = body_fn(*carried)` as long as `cond_fn(*carried)` holds.

    Args:
        cond_fn: gives a bool, or a tensor of one element.
        body_fn: gives values structured as those it takes, tensors of the same dtypes and devices.
        carried_inputs: a tuple or list of tensors and integers, in tuples, lists and dicts or not.

    Returns:
        The last values; copies where they are tensors of `carried_inputs`.

    Raises:
        RuntimeError: the arguments, or what the functions give, are not those; the functions write to what they are given.
    """
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("while_loop: expected cond_fn and body_fn to be functions")
    if not isinstance(carried_inputs, tuple | list):
        raise RuntimeError(
            f"while_loop: got carried_inputs of type {type(carried_inputs).__name__}, expected a tuple or list"
        )
    result = carried = carried_inputs
    expected = _facts("while_loop", "carried_inputs", carried)
    while True:
        before = _versions(carried)
        if not _holds(cond_fn(*carried)):
            break
        result = body_fn(*carried)
        if _versions(carried) != before:
            raise RuntimeError(
                "while_loop: body_fn wrote to a tensor that it was given, expected new tensors; clone it first"
            )
        carried = result if isinstance(result, tuple | list) else (result,)
        if _facts("while_loop", "body_fn's result", tuple(carried)) != expected:
            raise RuntimeError(
                "while_loop: body_fn gave other structures, dtypes or devices than it was given; expected the same"
            )
    given = [x for x in tree_flatten(carried_inputs)[0] if isinstance(x, Tensor)]
    return tree_map_only(Tensor, lambda x: x.clone() if any(x is y for y in given) else x, result)


def _versions(values: Any) -> list[int]:
    """How often tensors were written to; not known while tracing, which breaks where loops write."""
    if is_compiling():
        return []
    return [x._version for x in tree_flatten(values)[0] if isinstance(x, Tensor)]


register_while_loop(while_loop, _versions)


def _holds(condition: Any) -> Any:
    if isinstance(condition, bool) or (isinstance(condition, Tensor) and condition.numel() == 1):
        return condition
    got = f"shape {list(condition.shape)}" if isinstance(condition, Tensor) else repr(condition)
    raise RuntimeError(
        f"while_loop: cond_fn gave {got}, expected a bool or a tensor of one element"
    )


def _facts(operation: str, what: str, values: Any) -> Any:
    leaves, spec = tree_flatten(list(values) if isinstance(values, tuple) else values)
    for leaf in leaves:
        if not isinstance(leaf, Tensor | int):
            raise RuntimeError(
                f"{operation}: got {type(leaf).__name__} in {what}, expected tensors and integers"
            )
    return spec, [(x.dtype, x.device) if isinstance(x, Tensor) else int for x in leaves]


def scan(
    combine_fn: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any,
    *,
    dim: int = 0,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """Calls `carry, y = combine_fn(carry, x)` for the entries x of a dimension.

    Args:
        combine_fn: gives the next carry, structured as `init` and with its shapes and dtypes, and a result.
        init: the first carry: a tensor, or tensors in tuples, lists and dicts.
        xs: tensors of the same size in the dimension, structured as the function likes them; x is without the dimension.
        dim: the dimension.
        reverse: from the last entry to the first; the results are in the order of the entries nevertheless.

    Returns:
        The last carry, and the results, stacked in a new first dimension.

    Raises:
        RuntimeError: the arguments, or what the function gives, are not those.
    """
    if not callable(combine_fn):
        raise RuntimeError(f"scan: got {combine_fn!r} as combine_fn, expected a function")
    starts = _tensors("scan", "init", init)
    leaves, spec = tree_flatten(xs)
    if not leaves:
        return init, []
    entries = _entries("scan", leaves, dim)
    places = range(len(entries) - 1, -1, -1) if reverse else range(len(entries))
    carry, results = init, [None] * len(entries)
    for i in places:
        found = combine_fn(carry, tree_unflatten(entries[i], spec))
        if not isinstance(found, tuple | list) or len(found) != 2:
            raise RuntimeError("scan: combine_fn has to return two values, the next carry and y")
        carry, results[i] = found
        now = _tensors("scan", "the carry that combine_fn returned", carry)
        if [(x.shape, x.dtype) for x in now] != [(x.shape, x.dtype) for x in starts]:
            raise RuntimeError(
                "scan: combine_fn returned a carry of other shapes or dtypes than it was given; expected the same"
            )
    return carry, _stacked(results)


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """The results of `f(x, *args)` for the entries x of the first dimension, stacked.

    Args:
        f: the function; what is None in its results stays so.
        xs: a tensor, or tensors in tuples, lists and dicts, of the same size in the first dimension, which is not 0.
        args: what every call gets.

    Raises:
        RuntimeError: the arguments are not those.
    """
    leaves, spec = tree_flatten(xs)
    if not leaves or not all(isinstance(leaf, Tensor) for leaf in leaves):
        raise RuntimeError(f"map: got xs of {leaves}, expected tensors")
    return _stacked([f(tree_unflatten(entry, spec), *args) for entry in _entries("map", leaves, 0)])


def _tensors(operation: str, what: str, values: Any) -> list[Tensor]:
    leaves = tree_flatten(values)[0]
    if not leaves or not all(isinstance(leaf, Tensor) for leaf in leaves):
        raise RuntimeError(f"{operation}: got {what} of {leaves}, expected tensors")
    return leaves


def _entries(operation: str, leaves: list[Tensor], dim: int) -> list[list[Tensor]]:
    sizes = {leaf.shape[dim] for leaf in leaves}
    if len(sizes) != 1 or 0 in sizes:
        raise RuntimeError(
            f"{operation}: got sizes {sorted(sizes)} in dimension {dim}, expected one that is not 0"
        )
    return [list(entry) for entry in zip(*[leaf.unbind(dim) for leaf in leaves], strict=True)]


def _stacked(results: list[Any]) -> Any:
    parts = [tree_flatten(result) for result in results]
    columns = [list(column) for column in zip(*[leaves for leaves, _ in parts], strict=True)]
    return tree_unflatten(
        [None if all(x is None for x in column) else aten.stack(column) for column in columns],
        parts[0][1],
    )
