"""What an operator does besides computing its result."""

from __future__ import annotations

import functools
from collections.abc import Callable

from argand_c10 import Operator, find_operator
from argand_c10.rules import rules_of

__all__ = ["checks_values", "draws_random", "has_effect", "may_alias"]


@functools.lru_cache(4096)
def draws_random(op: Operator) -> bool:
    """Whether a call may draw random numbers: itself, or through the operators that its body calls."""
    return _calls(op, lambda o: o.is_random or "Generator" in o.schema, frozenset())


def _calls(op: Operator, asked: Callable[[Operator], bool], above: frozenset[str]) -> bool:
    """Whether `asked` holds for an overload, or one of the operators that its body calls."""
    for overload in op.variants:
        if asked(overload):
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
            if _calls(called, asked, above | {overload.name}):
                return True
    return False


@functools.lru_cache(4096)
def checks_values(op: Operator, whole: bool) -> bool:
    """Whether a call may fail by what elements are, as by an index; `whole`: the result's elements are integers."""
    return _calls(op, lambda o: _checks(o, whole), frozenset())


def _checks(op: Operator, whole: bool) -> bool:
    name = op.name.partition(".")[0]
    rules = rules_of(op) or rules_of(name.removesuffix("_"))
    if rules is None or rules.kind == "index":
        return True
    return (
        name in _CHECKING
        or name.lstrip("_").startswith("linalg_")
        or (whole and name.removesuffix("_") in _DIVIDING)
    )


_CHECKING = frozenset(("bincount", "nll_loss_forward", "_ctc_loss", "multinomial", "one_hot"))
_DIVIDING = frozenset(("div", "floor_divide", "fmod", "remainder", "pow"))


@functools.lru_cache(4096)
def has_effect(op: Operator) -> bool:
    """Whether a call must stay though nothing uses its result: it writes an argument, may draw random numbers, or has no result."""
    return draws_random(op) or any("!" in s or s.endswith("-> ()") for s in op.schemas)


@functools.lru_cache(4096)
def may_alias(op: Operator) -> bool:
    """Whether the result may share memory with an argument."""
    return any(o.is_view or o.is_inplace or o.is_composite for o in op.variants)
