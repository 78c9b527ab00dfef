"""How an operator runs for all entries: a rule by its name or its kind, its body, or entry by entry."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import argand_aten as aten
import argand_c10 as c10
from argand_autograd import _C
from argand_autograd.batching.level import (
    Draws,
    EntriesDiffer,
    Level,
    NotForEntries,
    active_levels,
    ask_before_reading,
    first_entry,
    level_of_call,
    run_again,
    run_below,
    run_of_loop,
    shares_history,
    states_of,
    text_of_entry,
)
from argand_c10 import _C as _core
from argand_c10 import Generator, Tensor, random
from argand_c10.modes import find_operator
from argand_c10.printing import show_entries_by
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

    if op.name in definitions:  # which may draw random numbers, whatever it is said to do
        draws = Draws(level.draws.randomness)

        def one(i: int) -> Any:
            return run_of_loop(lambda: call(i), draws)

    else:
        one = call
    results: list[Any] = []
    for i in range(level.size):
        try:
            results.append(one(i))
        except Exception as error:  # the function may catch it, for that entry
            if not i:
                raise
            level.run_alone(error)
            results = results[:1]
            break
    if _is_out_form(op.name) or op.is_inplace:
        return None
    if level.size > 1 and not _stackable([_tensors_in(r) for r in results]):
        level.run_alone(f"got {op.name}, whose results have different sizes")
        results = results[:1]
    return _stacked(results)


def _tensors_in(result: Any) -> tuple[Any, ...]:
    return tuple(result) if isinstance(result, tuple | list) else (result,)


def _stackable(results: list[tuple[Any, ...]]) -> bool:
    def form(t: Any) -> Any:
        return t.shape if isinstance(t, Tensor) else t

    return all([form(t) for t in r] == [form(t) for t in results[0]] for r in results)


def _stacked(results: list[Any]) -> Any:
    first = results[0]
    if isinstance(first, tuple | list):
        return tuple(_stacked(list(column)) for column in zip(*results, strict=True))
    return aten.stack(results) if isinstance(first, Tensor) else first


# ---- random numbers ---------------------------------------------------------------------------------------------------
def _generator_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Generator | None:
    return next((x for x in (*args, *kwargs.values()) if isinstance(x, Generator)), None)


def _random(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Of operators that draw: the levels are asked from the innermost on, until one has entries of its own for it."""
    tensors = tensors_of(args, kwargs)
    generator = _generator_of(args, kwargs)
    levels = active_levels()
    if any(_C._level(t) != 0 for t in tensors) and (own := level_of_call(tensors)) not in levels:
        levels = (own, *levels)
    for level in reversed(levels):
        level.draws.look_at(generator)
        has_entries = any(level.has(t) for t in tensors)
        if op.is_inplace and has_entries and not level.has(args[0]):
            level.run_alone(f"{op.name} in place of a tensor that all entries share")
        different = level.draws.randomness == "different"
        if has_entries:
            rule = _different if different else _same
        elif different and op.is_inplace:  # that all entries share
            level.run_alone(f"{op.name} in place of a tensor that all entries share")
            continue
        elif different and not level.alone:
            rule = _new
        else:
            continue
        return _entries_by(rule, level, op, args, kwargs)
    return run_below(levels[0], lambda: op(*args, **kwargs))


def _different(level: Level, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    run = pointwise if op.name in _ELEMENTWISE_DRAWS else by_entries
    return run(level, op, args, kwargs)


def _same(level: Level, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    before = states_of(_generator_of(args, kwargs))

    def drawn_again(*entry: Any, **rest: Any) -> Any:
        random.set_rng_states(before)
        return op(*entry, **rest)

    return by_entries(level, _Called(op, drawn_again), args, kwargs)


@dataclass(frozen=True, slots=True)
class _Called:
    """An operator that is called by a function of ours."""

    op: Any
    run: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.run(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.op, name)


def _new(level: Level, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Numbers for each entry, of none."""
    return aten.stack([op(*args, **kwargs) for _ in range(level.size)])


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
            raise EntriesDiffer(f"got {functional} in place, which changes sizes")
        aten.ops.copy_(whole, result)

    return run


def rule_for(name: str) -> Rule:
    """The rule of an operator, by its full name."""
    if name in _RULES:
        return _RULES[name]
    if _is_out_form(name):
        return by_entries
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
    """Every call of an operator by a rule with a tensor that stands for entries, and of one that draws random numbers."""
    if op.is_random and op.name not in definitions:
        return _random(op, args, kwargs)
    name: str = op.name
    rule = _chosen.get(name)
    if rule is None:
        rule = _chosen[name] = rule_for(name)
    level = level_of_call(tensors_of(args, kwargs))
    return _entries_by(rule, level, op, args, kwargs)


def _entries_by(
    rule: Rule, level: Level, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """What a rule makes, as entries."""
    name: str = op.name
    written = _written(op, args, kwargs)
    if all(level.has(t) for t in written):
        level.remember_inputs(written)
    else:
        entries = [t for t in tensors_of(args, kwargs) if level.has(t)]
        outside = any(t.requires_grad for t in written) and not any(
            t.requires_grad for t in entries
        )
        if _C.is_grad_enabled() and (outside or any(map(shares_history, entries))):
            run_again(
                f"{name} in place of a tensor that all entries share, with gradients from outside,"
            )
        level.run_alone(f"got {name}, which writes into a tensor that all entries share")
        rule = by_entries
    try:
        result = run_below(level, lambda: rule(level, op, args, kwargs))
    except NotForEntries:
        raise
    except Exception as error:  # of some entry: a loop comes to it in its turn
        if level.alone and level.size == 1 and rule is by_entries:
            raise
        level.run_alone(error)
        result = run_below(level, lambda: by_entries(level, op, args, kwargs))
    if op.is_inplace:
        return args[0]
    if _is_out_form(name):
        return tuple(written) if len(written) > 1 else written[0]
    if isinstance(result, Shared):
        return result.tensor
    # What is detached does not follow its source when that gets a history.
    return level.entry(result, args[0] if op.is_view and name != "detach" else None)


def _written(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
    """The tensors that a call writes into."""
    places = _writes.get(op.name)
    if places is None:
        schema = next(s for s in op.schema.split("\n") if s.startswith(op.name + "("))
        inside = schema[schema.index("(") + 1 : schema.rindex(") ->")]
        inside = re.sub(r"\[[^\]]*\]", "", inside).replace("*, ", "")
        places = _writes[op.name] = tuple(
            (i, part.split("=")[0].split()[-1])
            for i, part in enumerate(inside.split(", "))
            if "!)" in part
        )
    found = []
    for i, name in places:
        x = args[i] if i < len(args) else kwargs.get(name)
        found += [t for t in (x if isinstance(x, list | tuple) else [x]) if isinstance(t, Tensor)]
    return found


_writes: dict[str, tuple[tuple[int, str], ...]] = {}


def install() -> None:
    """Has the dispatcher ask."""
    _C._install_batching(_has_rule, _core._batched_kernel(_run), first_entry)
    _core._set_entry_reader(ask_before_reading)
    show_entries_by(text_of_entry)
