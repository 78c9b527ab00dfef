"""Schemas of operators by the annotations of functions."""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable, Iterable
from typing import Any

import argand_c10
from argand_c10 import Tensor

__all__ = ["infer_schema"]

_SCALARS: dict[Any, str] = {
    Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str", int | float | bool: "Scalar", int | float | complex: "Scalar",
    int | float | complex | bool: "Scalar", argand_c10.dtype: "ScalarType", argand_c10.device: "Device",
}  # fmt: skip
_LISTED = ("Tensor", "SymInt", "float", "bool", "Scalar")
_RETURNED = ("Tensor", "Tensor[]", "SymInt", "float", "bool", "Scalar")


def _type_name(annotation: Any) -> str | None:
    """An annotation in the words of a schema; None: it has none."""
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType) and type(None) in parts:
        inner = _type_name(typing.Union[tuple(p for p in parts if p is not type(None))])  # noqa: UP007
        return None if inner is None or inner.endswith("?") else f"{inner}?"
    if origin in (list, collections.abc.Sequence) and len(parts) == 1:
        inner = _type_name(parts[0])
        return f"{inner}[]" if inner is not None and inner.removesuffix("?") in _LISTED else None
    return None


def infer_schema(
    prototype_function: Callable[..., Any],
    /,
    *,
    mutates_args: str | Iterable[str],
    op_name: str | None = None,
    tags: Any = (),
) -> str:
    """The schema of a function by its annotations.

    Args:
      prototype_function: has an annotation for each argument and for its result.
      mutates_args: names of the arguments that it writes into, or "unknown": all tensors.
      op_name: the name at the schema's beginning; without one the schema begins with "(".
      tags: taken and not used.

    Raises:
      ValueError: for a function without annotations, or with types that no schema has.
    """
    signature = inspect.signature(prototype_function)

    def refuse(what: str) -> typing.NoReturn:
        raise ValueError(f"infer_schema(func): {what} Got func with signature {signature})")

    if isinstance(mutates_args, str) and mutates_args != "unknown":
        raise ValueError(
            "mutates_args must either be a sequence of the names of the arguments that are mutated or the string 'unknown'. "
        )
    try:
        hints = typing.get_type_hints(prototype_function)
    except Exception as error:
        refuse(f"Unsupported type annotation ({error}).")
    mutated = mutates_args if isinstance(mutates_args, str) else tuple(mutates_args)
    arguments: list[str] = []
    for index, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            refuse("We do not support positional-only args, varargs, or varkwargs.")
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in arguments:
            arguments.append("*")
        if name not in hints:
            refuse(f"Parameter {name} must have a type annotation.")
        kind = _type_name(hints[name])
        if kind is None:
            refuse(f"Parameter {name} has unsupported type {parameter.annotation}.")
        if kind.startswith("Tensor") if mutated == "unknown" else name in mutated:
            if not kind.startswith("Tensor"):
                refuse(
                    f"Parameter {name} is in mutable_args but only Tensors or collections of Tensors can be mutated"
                )
            kind = f"Tensor(a{index}!){kind.removeprefix('Tensor')}"
        default = ""
        if parameter.default is not parameter.empty:
            value = parameter.default
            if isinstance(value, (str, argand_c10.device)):
                default = f'="{value}"'
            elif value is None or isinstance(value, (int, float, bool)):
                default = f"={value}"
            elif isinstance(value, argand_c10.dtype):
                default = f"={value.name}"
            else:
                refuse(f"Parameter {name} has an unsupported default value type {type(value)}.")
        arguments.append(f"{kind} {name}{default}")
    if mutated != "unknown" and (unseen := set(mutated) - signature.parameters.keys()):
        refuse(f"{unseen} in mutates_args were not found in the custom op's signature.")
    if "return" not in hints:
        refuse("No return type annotation was provided. Please add one.")
    returned = hints["return"]
    parts = typing.get_args(returned) if typing.get_origin(returned) is tuple else (returned,)
    kinds = [] if returned is type(None) else [_type_name(p) for p in parts]
    if any(kind not in _RETURNED for kind in kinds):
        refuse(f"Return has unsupported type {returned}.")
    result = str(kinds[0]) if len(kinds) == 1 else f"({', '.join(map(str, kinds))})"
    return f"{op_name or ''}({', '.join(arguments)}) -> {result}"
