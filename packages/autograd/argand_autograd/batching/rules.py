"""How an operator runs for all entries: a rule by its name or its kind, its body, or entry by entry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import argand_aten as aten
import argand_c10 as c10
from argand_autograd import _C
from argand_autograd.batching.level import (
    Level,
    default_states,
    drawn,
    give_up,
    level_of_call,
    refuse_random,
    restore_states,
    told,
)
from argand_c10 import _C as _core
from argand_c10 import Tensor
from argand_c10.modes import find_operator, refuse_entries_by
from argand_c10.rules import definitions, rules_of

# Compilers run these functions as they are.
__argand_plain__ = True
__all__ = ["Rule", "install", "named", "pointwise", "register", "rule_for", "tensors_of"]

# rule(level, op, args, kwargs) -> the whole results, with the entries along dimension 0
Rule = Callable[[Level, Any, tuple[Any, ...], dict[str, Any]], Any]
_RULES: dict[str, Rule] = {}
_chosen: dict[str, Rule] = {}
_F = TypeVar("_F", bound=Callable[..., Any])
# Random operators whose every element has its own number.
_ELEMENTWISE_DRAWS = {
    "native_dropout", "uniform_", "normal_", "exponential_", "bernoulli_", "bernoulli", "random_", "uniform_functional", "normal_functional",
    "exponential_functional", "bernoulli_functional", "random_functional", "poisson", "_binomial", "_standard_gamma", "_sample_dirichlet",
}  # fmt: skip


def register(rule: Rule, *names: str) -> None:
    """Sets the rule of operators, by their full names."""
    for name in names:
        _RULES[name] = rule


def named(*names: str) -> Callable[[_F], _F]:
    """Registers `function(level, op, *args, **kwargs)` as the rule of operators."""

    def decorator(function: _F) -> _F:
        register(lambda level, op, args, kwargs: function(level, op, *args, **kwargs), *names)
        return function

    return decorator


def tensors_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
    """The tensors of a call, in order."""
    found = []
    for x in (*args, *kwargs.values()):
        if isinstance(x, Tensor):
            found.append(x)
        elif isinstance(x, list | tuple):
            found += [t for t in x if isinstance(t, Tensor)]
    return found


def mapped(change: Callable[[Any], Any], x: Any) -> Any:
    """`change` of a tensor, or of those in a list; other arguments as they are."""
    if isinstance(x, Tensor):
        return change(x)
    if isinstance(x, list | tuple) and any(isinstance(t, Tensor) for t in x):
        return [change(t) if isinstance(t, Tensor) else t for t in x]
    return x


@dataclass(frozen=True, slots=True)
class Shared:
    """A result that is the same for all entries."""

    tensor: Tensor


# ---- elements ---------------------------------------------------------------------------------------------------------
def _category(t: Tensor) -> int:
    return 2 if t.is_complex() else 1 if t.is_floating_point() else 0


def _as_promoted(level: Level, tensors: list[Tensor]) -> dict[int, Any]:
    """By id those tensors that would promote differently with the entries' dimension: without dimensions they say nothing but their category."""
    if len({t.dtype for t in tensors}) < 2:
        return {}
    with_dims = [t for t in tensors if t.ndim]
    if not with_dims:  # what entries share must not count less than wholes
        return {id(t): level.front(t) for t in tensors if not level.has(t)}
    dtype = with_dims[0].dtype
    for t in with_dims[1:]:
        dtype = c10.promote_types(dtype, t.dtype)
    like = next((t for t in with_dims if t.dtype == dtype), with_dims[0])
    return {
        id(t): level.of(t).to(dtype)
        for t in tensors
        if not t.ndim
        and level.has(t)
        and t.dtype not in (dtype, c10.bool)
        and _category(t) <= _category(like)
    }


def pointwise(level: Level, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Of operators on elements: the entries' dimensions are aligned as those of one entry are."""
    tensors = tensors_of(args, kwargs)
    ndim = max(t.ndim for t in tensors)
    changed = _as_promoted(level, tensors) if len(tensors) > 1 else {}

    def place(t: Tensor) -> Tensor:
        if id(t) not in changed:
            return level.aligned(t, ndim)  # type: ignore[no-any-return]
        whole: Tensor = changed[id(t)]
        for _ in range(ndim - t.ndim):
            whole = aten.ops.unsqueeze(whole, 1)
        return whole

    return op(
        *(mapped(place, x) for x in args), **{name: mapped(place, x) for name, x in kwargs.items()}
    )


# ---- entry by entry ---------------------------------------------------------------------------------------------------
def by_entries(level: Level, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """An operator without a rule: a call for every entry; results are stacked."""
    told(op.name)
    parts = {
        id(t): aten.ops.unbind(level.of(t), 0) for t in tensors_of(args, kwargs) if level.has(t)
    }

    def call(i: int) -> Any:
        def pick(t: Tensor) -> Tensor:
            return parts[id(t)][i] if id(t) in parts else t

        return op(
            *(mapped(pick, x) for x in args),
            **{name: mapped(pick, x) for name, x in kwargs.items()},
        )

    results = []
    for i in range(level.size):
        if op.is_random and level.randomness == "same":
            restore_states(level.states)
        results.append(call(i))
    if op.is_inplace:
        return None
    return _stacked(results)


def _stacked(results: list[Any]) -> Any:
    first = results[0]
    if isinstance(first, tuple | list):
        if any(len(r) != len(first) for r in results):
            give_up("an operator with different results")
        return tuple(_stacked(list(column)) for column in zip(*results, strict=True))
    if first is None:
        return None
    if not isinstance(first, Tensor) or any(r.shape != first.shape for r in results):
        give_up("an operator with results of different sizes")
    return aten.stack(results)


def _random(level: Level, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if level.randomness == "error":
        refuse_random()
    if level.randomness == "different":
        run = pointwise if op.name in _ELEMENTWISE_DRAWS else by_entries
        return drawn(level, lambda: run(level, op, args, kwargs))
    level.states = default_states()
    result = by_entries(level, op, args, kwargs)
    level.states = default_states()
    return result


# ---- choice -----------------------------------------------------------------------------------------------------------
def _functional(name: str) -> str:
    """ "max.dim" of "max_.dim", "add" of "add_"."""
    base, dot, overload = name.partition(".")
    return base.removesuffix("_") + dot + overload if not base.endswith("__") else name


def forget(name: str) -> None:
    """Have the rule of an operator looked up again."""
    _chosen.pop(name, None)


def _is_out_form(name: str) -> bool:
    return name.endswith("_out") or name.endswith(".out")


def _then_copied(functional: str) -> Rule:
    """Of an in-place form without a rule of its own: the result of the operator is copied."""
    op = find_operator(functional)
    rule = rule_for(functional)

    def run(level: Level, _: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        whole = level.of(args[0])
        result = rule(level, op, args, kwargs)
        if result.shape != whole.shape:
            give_up("an operator in place that changes sizes")
        aten.ops.copy_(whole, result)

    return run


def _writes_out(level: Level, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    give_up(f"{op.name} with out=")


def rule_for(name: str) -> Rule:
    """The rule of an operator, by its full name."""
    if name in _RULES:
        return _RULES[name]
    op = find_operator(name)
    if _is_out_form(name):
        return _writes_out
    if op.is_random and name not in definitions:
        return _random
    found = rules_of(name)
    if found is not None:
        return pointwise if found.kind == "pointwise" else by_entries
    functional = _functional(name)
    if functional == name or (known := rules_of(functional)) is None:
        return by_entries
    return pointwise if known.kind == "pointwise" else _then_copied(functional)


def _has_rule(name: str) -> bool:
    """Whether an operator runs by a rule; else by the body that it is made of."""
    if name in _RULES or _is_out_form(name) or find_operator(name).is_random:
        return True
    found = rules_of(name) or rules_of(_functional(name))
    return found is None or found.kind != "composite"


def _run(op: Any, *args: Any, **kwargs: Any) -> Any:
    """Every call of an operator by a rule with a tensor that stands for entries."""
    level = level_of_call(tensors_of(args, kwargs))
    name: str = op.name
    rule = _chosen.get(name)
    if rule is None:
        rule = _chosen[name] = rule_for(name)
    if op.is_inplace and not level.has(args[0]):
        give_up(f"{name} in place of a tensor that all entries share")
    result = rule(level, op, args, kwargs)
    if op.is_inplace:
        return args[0]
    if isinstance(result, Shared):
        return result.tensor
    # What is detached does not follow its source when that gets a history.
    return level.entry(result, args[0] if op.is_view and name != "detach" else None)


def install() -> None:
    """Has the dispatcher ask."""
    _C._install_batching(_has_rule, _core._batched_kernel(_run))
    refuse_entries_by(give_up)
