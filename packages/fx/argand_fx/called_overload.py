"""Which of PyTorch's overloads a call is, where one operator here stands for several."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from argand_c10 import Operator, rules
from argand_c10.modes import find_operator
from argand_fx.schema import schema_of

__all__ = ["called_overload"]

# By which of two operands are numbers: the names that say so, best first.
_NAMES = {
    (False, False): ("Tensor_Tensor", "Tensor", "self", "List"),
    (False, True): ("Tensor_Scalar", "Scalar_Other", "ScalarOther", "Scalar"),
    (True, False): ("Scalar_Tensor", "Scalar_Self", "ScalarSelf", "Scalar"),
    (True, True): ("Scalar",),
}
# These take numbers for tensors of no dimensions.
_OF_TENSORS = frozenset({"add", "sub", "mul", "div", "floor_divide"})
# An argument that has no other overload, and the overload's name where it is given.
_ARGUMENTS = {
    "dim": ("dim_IntList", "dim"),
    "stable": ("stable",),
    "generator": ("generator",),
    "correction": ("correction",),
    "split_size": ("Tensor",),
}

# What is known of an operator: the overload itself, or the names among which a call decides.
_choices: dict[Operator, Operator | tuple[Operator, tuple[str, ...]]] = {}


def called_overload(
    op: Operator,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    is_number: Callable[[Any], bool] = lambda a: isinstance(a, int | float | complex),
) -> Operator:
    """The overload by its name elsewhere; an operator with all of its overloads stays what it is.

    Args:
        op: what is called.
        args, kwargs: its arguments.
        is_number: tells arguments that stand for numbers from those that stand for tensors.
    """
    choice = _choices.get(op)
    if choice is None:
        choice = _choices[op] = _choice_of(op)
    if isinstance(choice, Operator):
        return choice
    packet, names = choice
    return rules.named_overload(packet, _called_name(op, names, args, kwargs, is_number)) or op


def _choice_of(op: Operator) -> Operator | tuple[Operator, tuple[str, ...]]:
    try:
        packet = find_operator(op.name.partition(".")[0])
    except LookupError:  # there are overloads of it with names alone
        return op
    if packet is op or op.shown:
        return op
    names = rules.names_of(packet, op)
    if len(names) > 1:
        return packet, names
    return (rules.named_overload(packet, names[0]) if names else None) or op


def _called_name(
    op: Operator,
    names: tuple[str, ...],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    is_number: Callable[[Any], bool],
) -> str:
    parameters = schema_of(op).arguments
    given = {p.name: a for p, a in zip(parameters, args, strict=False)} | dict(kwargs)
    operands = [p.name for p in parameters if p.type == "Operand"]
    numbers = [name in given and is_number(given[name]) for name in operands]
    if len(operands) == 1 and parameters[0].name != operands[0]:
        numbers.insert(0, False)
    wanted: list[str] = []
    if numbers:
        first, second = (*numbers, False)[0], any(numbers[1:])
        family = op.name.partition(".")[0].removesuffix("_")
        wanted += _NAMES[first, second and family not in _OF_TENSORS]
        wanted += [f"{name}_mode" for name in wanted]
    for name, overloads in _ARGUMENTS.items():
        if given.get(name) is not None:
            is_list = isinstance(given[name], list | tuple) and len(given[name]) != 1
            wanted += [f"{name}s"] if is_list else []
            wanted += overloads
    wanted += ["correction", "default"]
    return next((name for name in wanted if name in names), names[0])
