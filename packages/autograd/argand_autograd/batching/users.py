"""Rules that programs give: of operators of their own, and of a `Function`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from argand_autograd._tree import flatten, unflatten
from argand_autograd.batching.level import Level, level_of_call
from argand_autograd.batching.rules import forget, mapped, register, tensors_of
from argand_c10 import Tensor

# Compilers run these functions as they are.
__argand_plain__ = True
__all__ = ["VmapInfo", "apply_by_rule", "register_user_rule"]


class VmapInfo(NamedTuple):
    """What a rule is told.

    Attributes:
        batch_size: the number of entries.
        randomness: what random numbers are, as `vmap` has it.
    """

    batch_size: int
    randomness: str


def _by_rule(level: Level, rule: Callable[..., Any], args: tuple[Any, ...], kwargs: Any) -> Any:
    """The whole results of `rule(info, in_dims, *args)` -> (results, out_dims)."""

    def dims(x: Any) -> Any:
        if isinstance(x, list | tuple):
            return type(x)(dims(y) for y in x)
        return 0 if level.has(x) else None

    wholes = tuple(mapped(level.of, x) for x in args)
    info = VmapInfo(level.size, level.draws.randomness)
    result, out_dims = rule(info, dims(args), *wholes, **kwargs)
    leaves, structure = flatten(result)
    places = (
        flatten(out_dims)[0] if isinstance(out_dims, list | tuple) else [out_dims] * len(leaves)
    )
    moved = [
        t if not isinstance(t, Tensor) else level.front(t) if d is None else t.movedim(d, 0)
        for t, d in zip(leaves, places, strict=True)
    ]
    return unflatten(structure, moved)


def register_user_rule(name: str, rule: Callable[..., Any]) -> None:
    """Sets what an operator does for all entries: `rule(info, in_dims, *args, **kwargs)` -> (results, out_dims)."""
    register(lambda level, op, args, kwargs: _by_rule(level, rule, args, kwargs), name)
    forget(name)


def apply_by_rule(cls: Any, args: tuple[Any, ...]) -> Any:
    """`cls.apply(*args)` by its `vmap`."""
    level = level_of_call(tensors_of(args, {}))
    leaves, structure = flatten(_by_rule(level, cls.vmap, args, {}))
    return unflatten(structure, [level.entry(t) for t in leaves])
