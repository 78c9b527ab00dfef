"""What an operator does besides computing its result."""

from __future__ import annotations

import functools

from argand_c10 import Operator, find_operator
from argand_c10.rules import rules_of

__all__ = ["draws_random", "has_effect", "may_alias"]


@functools.lru_cache(4096)
def draws_random(op: Operator) -> bool:
    """Whether a call may draw random numbers: itself, or through the operators that its body calls."""
    return _draws(op, frozenset())


def _draws(op: Operator, above: frozenset[str]) -> bool:
    for overload in op.overloads:
        if overload.is_random or "Generator" in overload.schema:
            return True
        rules = rules_of(overload) if overload.is_composite else None
        body = rules.composite if rules else None
        if body is None or overload.name in above:
            continue
        for name in body.__code__.co_names:
            try:
                called = find_operator(name)
            except LookupError:
                continue  # an attribute of something else
            if _draws(called, above | {overload.name}):
                return True
    return False


@functools.lru_cache(4096)
def has_effect(op: Operator) -> bool:
    """Whether a call must stay though nothing uses its result: it writes an argument, may draw random numbers, or has no result."""
    return draws_random(op) or any("!" in s or s.endswith("-> ()") for s in op.schemas)


@functools.lru_cache(4096)
def may_alias(op: Operator) -> bool:
    """Whether the result may share memory with an argument."""
    return any(o.is_view or o.is_inplace or o.is_composite for o in op.overloads)
