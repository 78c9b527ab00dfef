"""Loading of published weights under an older name."""

from __future__ import annotations

from typing import Any

from argand.hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]


def __getattr__(name: str) -> Any:
    # Of a library that need not be installed.
    if name == "tqdm":
        from tqdm import tqdm

        return tqdm
    raise AttributeError(f"module 'argand.utils.model_zoo' has no attribute {name!r}")
