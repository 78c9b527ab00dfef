"""What programs that were annotated for TorchScript ask of `torch.jit`.

There is no TorchScript here: `argand.compile` makes programs fast and `argand.export` saves them, both from the program as it is written. The annotations
mean nothing then, and what they annotate is given back as it came; `is_scripting()` and `is_tracing()` are False. `trace`, `save` and `load` are absent:
use `argand.export`.
"""

from __future__ import annotations

import typing
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
    "is_scripting",
    "is_tracing",
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


export = script_if_tracing = script_method = unused = _overload = _overload_method = _same


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """As `@ignore` or `@ignore(drop=...)`: the function itself."""
    return drop if callable(drop) else _same


publish(__name__, {"annotations": typing})  # whose names annotations are written with
