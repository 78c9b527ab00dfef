"""Settings of the tracer."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

__all__ = ["Config", "config"]


@dataclass
class Config:
    """Settings; `config.patch(name=value)` changes them for a while.

    Attributes:
        recompile_limit: compilations of one function after which new kinds of calls run as plain Python.
        automatic_dynamic_shapes: whether a size or integer that has changed once becomes symbolic.
        specialize_int: whether integers are never symbolic (sizes of tensors still are).
        max_call_depth: inlined calls inside of each other.
        max_loop_steps: backward jumps in one trace; loops are unrolled.
        suppress_errors: whether an error of the tracer itself runs the frame as plain Python instead of being raised.
        cache_plans: whether frame plans are kept on disk for later processes.
    """

    recompile_limit: int = 8
    automatic_dynamic_shapes: bool = True
    specialize_int: bool = False
    max_call_depth: int = 150
    max_loop_steps: int = 50_000
    suppress_errors: bool = True
    cache_plans: bool = True

    @property
    def cache_size_limit(self) -> int:
        """`recompile_limit` under the name that it had before."""
        return self.recompile_limit

    @cache_size_limit.setter
    def cache_size_limit(self, limit: int) -> None:
        self.recompile_limit = limit

    @contextlib.contextmanager
    def patch(self, **changes: Any) -> Iterator[Config]:
        """Change settings until the end of the context.

        Raises:
            TypeError: if there is no such setting.
        """
        names = {field.name for field in fields(Config)} | {"cache_size_limit"}
        for name in changes:
            if name not in names:
                raise TypeError(
                    f"config.patch: got {name!r}, expected one of {', '.join(sorted(names))}"
                )
        saved = {name: getattr(self, name) for name in changes}
        for name, value in changes.items():
            setattr(self, name, value)
        try:
            yield self
        finally:
            for name, value in saved.items():
                setattr(self, name, value)


def _from_environment() -> Config:
    made = Config()
    for field in fields(Config):
        text = os.environ.get(f"ARGAND_DYNAMO_{field.name.upper()}")
        if text is not None:
            kind: Any = type(getattr(made, field.name))
            setattr(
                made, field.name, text not in ("0", "false", "") if kind is bool else kind(text)
            )
    return made


config = _from_environment()
