"""NCCL: NVIDIA's library, found in its wheel and opened by the first group that uses it."""

from __future__ import annotations

import datetime
import importlib.util
import os
from collections.abc import Sequence
from typing import Any

from argand_c10._C import _cuda_device_count
from argand_distributed import _C

_NAME = "libnccl.so.2"


def _candidates() -> list[str]:
    """ARGAND_NCCL_LIBRARY alone if it is set; else files of NVIDIA's wheel, then the name for the loader's own search."""
    named = os.environ.get("ARGAND_NCCL_LIBRARY")
    if named:
        return [named]
    spec = importlib.util.find_spec("nvidia")
    roots = list(spec.submodule_search_locations or ()) if spec is not None else []
    paths = [os.path.join(root, "nccl", "lib", _NAME) for root in roots]
    return [*(path for path in paths if os.path.exists(path)), _NAME]


def find_library() -> str | None:
    """The library's file; None if only the loader may know one."""
    first = _candidates()[0]
    return first if os.path.exists(first) else None


def is_usable() -> bool:
    """There is a CUDA device, and the library."""
    if find_library() is None:
        return False
    return bool(_cuda_device_count())  # asks the driver


def connect(
    name: str,
    rank: int,
    ranks: Sequence[int],
    timeout: datetime.timedelta,
    store: _C.Store,
    watched: _C.Store,
) -> Any:
    """A backend of CUDA tensors for a group."""
    return _C.nccl_group(
        name, rank, len(ranks), list(ranks), timeout, _candidates(), store, watched
    )
