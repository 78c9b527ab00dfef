"""PyTorch's namespaces in argand."""

from __future__ import annotations

import importlib
from typing import Any

import argand


def namespace(path: str) -> Any:
    """The namespace `torch.x` of argand.

    Raises:
        ImportError: where there is none.
    """
    here: Any = argand
    for i, part in enumerate(path.split(".")[1:], 2):
        try:
            here = getattr(here, part)
        except AttributeError:
            here = importlib.import_module("argand." + ".".join(path.split(".")[1:i]))
    return here
