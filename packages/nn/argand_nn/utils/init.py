"""Modules without initialisation."""

from __future__ import annotations

import inspect
from typing import Any

from argand_c10 import Module

__all__ = ["skip_init"]


def skip_init(module_cls: type[Module], *args: Any, **kwargs: Any) -> Module:
    """A module whose parameters are not initialised, for those that are loaded anyway.

    Args:
        module_cls: its class, whose constructor takes `device`.
        args: of the constructor.
        kwargs: of the constructor.
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"skip_init: got {module_cls}, expected a class of modules")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError(
            f"skip_init: got {module_cls.__name__}, expected a class whose constructor takes device"
        )
    place = kwargs.pop("device", "cpu")
    return module_cls(*args, device="meta", **kwargs).to_empty(device=place)
