"""The tracer under the name that programs know it by: `argand._dynamo.reset()`, `argand._dynamo.config`, ..."""

from __future__ import annotations

import sys
from typing import Any, TypeVar

from argand.compiler import reset as reset
from argand.import_paths import publish
from argand_dynamo import *  # noqa: F403
from argand_dynamo import __all__ as __all__
from argand_dynamo import config as config
from argand_dynamo.api import OptimizedModule

T = TypeVar("T")


def assume_constant_result(fn: T) -> T:
    """`fn` itself: it is traced as any function, which needs no such promise."""
    return fn


def mark_static_address(t: Any, guard: bool = False) -> None:
    """Taken, and changes nothing: compiled programs read a tensor from where it is at each call."""


publish(__name__, {"eval_frame": sys.modules[OptimizedModule.__module__]})
