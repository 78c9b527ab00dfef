"""Settings of this layer."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Config", "config", "patch"]


@dataclass
class Config:
    """Settings; `patch` changes them for a while.

    Attributes:
        check_passes: check the rules of the IR before and after each pass (environment variable ARGAND_CHECK_PASSES).
    """

    check_passes: bool = False


config = Config(check_passes=os.environ.get("ARGAND_CHECK_PASSES", "0") not in ("", "0", "false"))


@contextlib.contextmanager
def patch(*, check_passes: bool) -> Iterator[Config]:
    """Change settings until the end of the context."""
    saved, config.check_passes = config.check_passes, check_passes
    try:
        yield config
    finally:
        config.check_passes = saved
