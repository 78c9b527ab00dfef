"""Marks and ranges in the timelines of NVIDIA's profilers, as `torch.cuda.nvtx`. Without NVIDIA's NVTX library nothing is marked.

The library is found among NVIDIA's wheels (`pip install nvidia-nvtx`), then by the loader; ARGAND_NVTX_LIBRARY names another file.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]

_NAMES = ("libnvtx3interop.so.1", "libnvtx3interop.so", "libnvToolsExt.so.1", "libnvToolsExt.so")
_NO_TRACKING = -2  # what NVTX returns as depth where no tool keeps count


def _candidates() -> list[str]:
    named = os.environ.get("ARGAND_NVTX_LIBRARY")
    if named:
        return [named]
    spec = importlib.util.find_spec("nvidia")
    roots = [] if spec is None else list(spec.submodule_search_locations or ())
    found = [path for name in _NAMES for root in roots for path in Path(root).glob(f"*/lib/{name}")]
    return [*map(str, found), *_NAMES]


@functools.cache
def _library() -> Any:
    """The library, None where there is none."""
    for path in _candidates():
        try:
            library: Any = ctypes.CDLL(path)
            library.nvtxRangeStartA.restype = ctypes.c_uint64
        except (OSError, AttributeError):
            continue
        return library
    return None


def range_push(msg: str) -> int:
    """Begin a range within the thread's open ones.

    Returns:
        How many ranges were open; negative where nothing keeps count.
    """
    library = _library()
    return _NO_TRACKING if library is None else int(library.nvtxRangePushA(msg.encode()))


def range_pop() -> int:
    """End the thread's innermost range.

    Returns:
        How many ranges are still open; negative where nothing keeps count.
    """
    library = _library()
    return _NO_TRACKING if library is None else int(library.nvtxRangePop())


def range_start(msg: str) -> int:
    """Begin a range that any thread may end; its handle."""
    library = _library()
    return 0 if library is None else int(library.nvtxRangeStartA(msg.encode()))


def range_end(range_id: int) -> None:
    """End the range of a handle from `range_start`."""
    library = _library()
    if library is not None:
        library.nvtxRangeEnd(ctypes.c_uint64(range_id))


def mark(msg: str) -> None:
    """Mark this moment."""
    library = _library()
    if library is not None:
        library.nvtxMarkA(msg.encode())


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """A range around a block or, as a decorator, a function; `msg` is formatted with the other arguments."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
