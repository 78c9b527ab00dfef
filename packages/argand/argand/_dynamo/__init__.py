"""The tracer under the name that programs know it by: `argand._dynamo.reset()`, `argand._dynamo.config`, ..."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from argand._dynamo import exc as exc
from argand._dynamo import utils as utils
from argand.compiler import assume_constant_result as assume_constant_result
from argand.compiler import reset as reset
from argand.import_paths import publish, submodules
from argand_dynamo import *  # noqa: F403
from argand_dynamo import __all__ as __all__
from argand_dynamo import config as config
from argand_dynamo.api import OptimizedModule


def mark_static_address(t: Any, guard: bool = False) -> None:
    """Taken, and changes nothing: compiled programs read a tensor from where it is at each call."""


def optimize(
    backend: str | Callable[..., Any] = "inductor",
    *,
    nopython: bool = False,
    dynamic: bool | None = None,
    disable: bool = False,
    **kwargs: Any,
) -> Callable[[Any], Any]:
    """A decorator that compiles; the older form of `argand.compile(fn, backend=..., fullgraph=nopython)`."""
    return lambda fn: compile(
        fn, backend=backend, fullgraph=nopython, dynamic=dynamic, disable=disable
    )


publish(__name__, {"config": config, "eval_frame": sys.modules[OptimizedModule.__module__]})
__getattr__ = submodules(__name__, "backends")
