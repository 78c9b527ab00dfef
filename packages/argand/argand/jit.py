"""What programs that were annotated for TorchScript ask of `torch.jit`.

There is no TorchScript here: `argand.compile` makes programs fast and `argand.export` saves them, both from the program as it is written. The annotations
mean nothing then, and what they annotate is given back as it came; `is_scripting()` and `is_tracing()` are False. `trace`, `save` and `load` are absent:
use `argand.export`.
"""

from __future__ import annotations

import builtins
import typing
from types import ModuleType, UnionType
from typing import Any, Final, NamedTuple, TypeVar

from argand.import_paths import publish
from argand_c10.module import Module

__all__ = [
    "Attribute",
    "Final",
    "ScriptModule",
    "TracerWarning",
    "annotate",
    "export",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "script",
    "script_if_tracing",
    "script_method",
    "unused",
]

T = TypeVar("T")


class Attribute(NamedTuple):
    """A value and its type."""

    value: Any
    type: Any


class ScriptModule(Module):
    """A module; no module is made one by `script`."""


class TracerWarning(Warning):
    """Never warned of: programs are not traced by examples."""


def is_scripting() -> bool:
    """Whether TorchScript compiles the function: never."""
    return False


def is_tracing() -> bool:
    """Whether `torch.jit.trace` runs the function: never."""
    return False


def annotate(the_type: Any, the_value: T) -> T:
    """`the_value`."""
    return the_value


def script(
    obj: T,
    optimize: None = None,
    _frames_up: int = 0,
    _rcb: Any = None,
    example_inputs: Any = None,
) -> T:
    """`obj`, a function, class or module, itself: it runs as it is written. `argand.compile(obj)` compiles it."""
    return obj


def _same(fn: T) -> T:
    """`fn`."""
    return fn


export = interface = script_if_tracing = script_method = unused = _same
_overload = _overload_method = _script_if_tracing = _same


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """As `@ignore` or `@ignore(drop=...)`: the function itself."""
    return drop if callable(drop) else _same


# The names that annotations are written with; a list of this length may be given as one number.
_annotations = ModuleType(f"{__name__}.annotations", "Names of annotations.")
vars(_annotations).update({name: getattr(typing, name) for name in typing.__all__})
vars(_annotations).update(dict.fromkeys((f"BroadcastingList{n}" for n in range(1, 7)), list))


def _is_instance(obj: Any, target_type: Any) -> bool:
    """Whether `obj` is of a type, or of one of a tuple of types; the items of lists, tuples and dicts are looked at too."""
    if type(target_type) is tuple:
        return any(_is_instance(obj, item) for item in target_type)
    kind, items = typing.get_origin(target_type), typing.get_args(target_type)
    if kind is None:
        return target_type is Any or builtins.isinstance(obj, target_type or type(None))
    if kind in (typing.Union, UnionType):
        return any(_is_instance(obj, item) for item in items)
    if not builtins.isinstance(obj, kind) or not items:
        return builtins.isinstance(obj, kind)
    if kind is tuple and items[-1:] != (...,):
        return len(obj) == len(items) and all(map(_is_instance, obj, items))
    if kind is dict:
        return all(_is_instance(k, items[0]) and _is_instance(v, items[1]) for k, v in obj.items())
    return all(_is_instance(item, items[0]) for item in obj)


isinstance = _is_instance
publish(__name__, {"annotations": _annotations})
