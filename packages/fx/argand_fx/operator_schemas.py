"""Signatures of what graphs call, and calls with all arguments under their names."""

from __future__ import annotations

import inspect
import numbers
import types
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Union, get_args, get_origin

import argand_c10 as c10
from argand_c10 import Module, Operator, Tensor
from argand_fx.schema import Argument, overloads_of, schema_of

__all__ = [
    "ArgsKwargsPair",
    "create_type_hint",
    "get_signature_for_torch_op",
    "normalize_function",
    "normalize_module",
    "type_matches",
]

_TYPES: dict[str, Any] = {
    "Tensor": Tensor,
    "Operand": Union[Tensor, numbers.Number],  # noqa: UP007
    "Scalar": numbers.Number,
    "int": int,
    "float": float,
    "bool": bool,
    "str": str,
    "dtype": c10.dtype,
    "Device": c10.device,
    "Generator": c10.Generator,
}
_RESULTS: dict[str, Any] = {**_TYPES, "Tensor[]": list[Tensor]}
# PyTorch's names of arguments whose names in schemas are words of Python.
_NAMES = {"self": "input", "from": "from_"}
_Kind = inspect.Parameter
_Types = Mapping[str, Any] | None


class ArgsKwargsPair(NamedTuple):
    """Arguments of a call."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def _parameter(a: Argument) -> inspect.Parameter:
    kind: Any = _TYPES[a.type]
    if a.item_optional:
        kind = kind | None
    if a.is_list:
        kind = list[kind]
    if a.optional:
        kind = kind | None
    return _Kind(
        _NAMES.get(a.name, a.name),
        _Kind.KEYWORD_ONLY if a.kwonly else _Kind.POSITIONAL_OR_KEYWORD,
        default=a.default if a.has_default else _Kind.empty,
        annotation=kind,
    )


def _signature(op: Operator) -> inspect.Signature:
    schema = schema_of(op)
    results = tuple(_RESULTS[kind] for kind in schema.result_types)
    returned: Any = results[0] if len(results) == 1 else types.GenericAlias(tuple, results)
    return inspect.Signature([*map(_parameter, schema.arguments)], return_annotation=returned)


def get_signature_for_torch_op(op: Callable[..., Any], return_schemas: bool = False) -> Any:
    """The signatures of an operator's overloads; None for what is no operator. With `return_schemas` also the overloads themselves."""
    if not isinstance(op, Operator):
        return (None, None) if return_schemas else None
    overloads = overloads_of(op)
    signatures = [_signature(one) for one in overloads]
    return (signatures, list(overloads)) if return_schemas else signatures


def create_type_hint(x: Any) -> Any:
    """The type of a list or tuple whose items are types; anything else as it is."""
    if not isinstance(x, (list, tuple)):
        return x
    if not x:
        return list[Any] if isinstance(x, list) else tuple[Any, ...]
    bases = [
        base
        for base in x
        if isinstance(base, type) and all(isinstance(t, type) and issubclass(t, base) for t in x)
    ]
    inner = bases[0] if bases else Any
    return list[inner] if isinstance(x, list) else tuple[inner, ...]  # type: ignore[valid-type]


def type_matches(signature_type: Any, argument_type: Any) -> bool:
    """Whether an argument of a type can be passed where a signature has another."""
    if signature_type is argument_type or argument_type is Any:
        return True
    origin, inner = get_origin(signature_type), get_args(signature_type)
    if type(None) in inner or origin is Union:
        return any(type_matches(one, argument_type) for one in inner)
    if origin is list and get_origin(argument_type) in (list, tuple):
        return all(t is ... or type_matches(inner[0], t) for t in get_args(argument_type))
    if origin is list:  # one value may stand for a list
        return type_matches(inner[0], argument_type)
    if signature_type is numbers.Number:
        return argument_type in (int, float, complex)
    if not isinstance(argument_type, type) or not isinstance(signature_type, type):
        return False
    return issubclass(argument_type, signature_type)


def _fits(signature: inspect.Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return False
    hints = signature.parameters
    return all(type_matches(hints[k].annotation, v) for k, v in bound.arguments.items())


def _chosen(
    target: Operator,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    arg_types: tuple[Any, ...] | None,
    kwarg_types: _Types,
) -> inspect.Signature | None:
    """The first signature that takes such a call."""
    candidates = []
    for signature in get_signature_for_torch_op(target):
        try:
            signature.bind(*args, **kwargs)
        except TypeError:
            continue
        candidates.append(signature)
    if len(candidates) > 1 and (arg_types is not None or kwarg_types is not None):
        typed = [s for s in candidates if _fits(s, arg_types or (), kwarg_types or {})]
        if not typed:
            raise RuntimeError(
                f"Tried to normalize arguments to {target.name} but the schema match was ambiguous! No schema takes these types of arguments: "
                f"{arg_types} {kwarg_types}. Available schemas: {', '.join(map(str, candidates))}"
            )
        candidates = typed
    return candidates[0] if candidates else None


def normalize_function(
    target: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    arg_types: tuple[Any, ...] | None = None,
    kwarg_types: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The arguments of a call with defaults filled in, by keyword where they can be.

    Args:
        target: an operator or a Python function of this framework; anything else gives None.
        args, kwargs: the call's; values may be of any kind, nodes among them.
        arg_types, kwarg_types: their types, where several overloads take the call.
        normalize_to_only_use_kwargs: positional arguments by keyword too.

    Raises:
        RuntimeError: if no overload takes arguments of these types.
    """
    kwargs = kwargs or {}
    signature: inspect.Signature | None
    if isinstance(target, Operator):
        signature = _chosen(target, args, kwargs, arg_types, kwarg_types)
    elif inspect.isfunction(target) and target.__module__.startswith("argand"):
        signature = inspect.signature(target)
    else:
        signature = None
    return _normalized(signature, args, kwargs, normalize_to_only_use_kwargs)


def normalize_module(
    root: Module,
    target: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """As `normalize_function`, of a call of a module of this framework; None for others.

    Raises:
        RuntimeError: if `root` has no such module.
    """
    try:
        module = root.get_submodule(target)
    except AttributeError:
        raise RuntimeError(
            f"Tried to normalize node with target {target} but root did not have that target!"
        ) from None
    if not type(module).__module__.startswith("argand"):
        return None
    signature = inspect.signature(module.forward)
    return _normalized(signature, args, kwargs or {}, normalize_to_only_use_kwargs)


def _normalized(
    signature: inspect.Signature | None,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    by_keyword: bool,
) -> ArgsKwargsPair | None:
    if signature is None:
        return None
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return None
    bound.apply_defaults()
    given: list[Any] = []
    named: dict[str, Any] = {}
    for i, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind in (_Kind.VAR_POSITIONAL, _Kind.VAR_KEYWORD):
            return None
        if parameter.kind is not _Kind.KEYWORD_ONLY and not by_keyword and i < len(args):
            given.append(bound.arguments[name])
        else:
            named[name] = bound.arguments[name]
    return ArgsKwargsPair(tuple(given), named)
