"""What the caching allocator of a CUDA device holds, and how to make it give memory back."""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Iterator
from typing import Any

from argand_c10 import _C
from argand_c10.cuda._device import index_of, is_available

__all__ = [
    "MemPool",
    "empty_cache",
    "get_per_process_memory_fraction",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_peak_memory_stats",
    "set_per_process_memory_fraction",
    "use_mem_pool",
]

_ALLOCATED_BYTES, _RESERVED_BYTES = 4, 5  # ArgandCounterKind of argand.h


def memory_stats(device: Any = None) -> collections.OrderedDict[str, int]:
    """All counters of a device's allocator, under PyTorch's names ("allocated_bytes.all.peak", "num_ooms").

    Kinds: allocation, segment, active, inactive_split and the same in bytes, requested_bytes; pools: all, small_pool,
    large_pool; values: current, peak, and allocated and freed since the last reset. Empty where there is no device.
    """
    stats = _C._cuda_memory_stats(index_of(device)) if is_available() else {}
    return collections.OrderedDict(sorted(stats.items()))


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """`memory_stats` as dicts in dicts: stats["allocated_bytes"]["all"]["peak"]."""
    nested: dict[str, Any] = {}
    for name, value in memory_stats(device).items():
        (*path, last) = name.split(".")
        place = nested
        for part in path:
            place = place.setdefault(part, {})
        place[last] = value
    return nested


def memory_allocated(device: Any = None) -> int:
    """Bytes in use by tensors on a device."""
    return _C._cuda_memory_counter(index_of(device), _ALLOCATED_BYTES)[0] if is_available() else 0


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that were in use by tensors at once since the last `reset_peak_memory_stats`."""
    return _C._cuda_memory_counter(index_of(device), _ALLOCATED_BYTES)[1] if is_available() else 0


def memory_reserved(device: Any = None) -> int:
    """Bytes that the allocator has from the driver, for tensors or for reuse."""
    return _C._cuda_memory_counter(index_of(device), _RESERVED_BYTES)[0] if is_available() else 0


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes that the allocator had from the driver at once since the last `reset_peak_memory_stats`."""
    return _C._cuda_memory_counter(index_of(device), _RESERVED_BYTES)[1] if is_available() else 0


def reset_peak_memory_stats(device: Any = None) -> None:
    """Let the peaks of all counters start from what they are now."""
    _C._cuda_memory_reset(index_of(device), 0)


def reset_max_memory_allocated(device: Any = None) -> None:
    """The same as `reset_peak_memory_stats`."""
    reset_peak_memory_stats(device)


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Let the sums (allocated, freed, num_ooms, ...) start from zero."""
    _C._cuda_memory_reset(index_of(device), 1)


def empty_cache() -> None:
    """Give memory that is kept for reuse back to the driver, on all devices in use; that of tensors stays."""
    for index in range(_C._cuda_device_count()):
        _C._cuda_empty_cache(index)


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Free and total bytes of a device, all processes together."""
    return _C._cuda_memory_info(index_of(device))


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Let this process have at most a part of a device's memory; more is an out-of-memory error.

    Args:
        fraction: from 0 to 1, of the total memory.
        device: default: the current one.

    Raises:
        ValueError: for a fraction outside of 0 to 1.
    """
    if not isinstance(fraction, (int, float)) or not 0 <= fraction <= 1:
        raise ValueError(
            f"set_per_process_memory_fraction: got {fraction!r}, expected a number from 0 to 1"
        )
    _C._cuda_memory_limit(index_of(device), float(fraction))


def get_per_process_memory_fraction(device: Any = None) -> float:
    """The part of a device's memory that this process may have; 1.0 unless it was set."""
    limit = _C._cuda_memory_stats(index_of(device))["limit_bytes"]
    return limit / mem_get_info(device)[1] if limit else 1.0


_STATES = ("inactive", "active_allocated", "active_pending_free")


def memory_snapshot(device: Any = None) -> list[dict[str, Any]]:
    """All segments of a device's memory with their blocks, ordered by address.

    A segment is a dict of device, address, total_size, allocated_size, active_size, requested_size, stream,
    segment_type ("small" or "large"), segment_pool_id, and blocks: dicts of address, size, requested_size and state
    ("active_allocated", "active_pending_free": freed, but waited for by a stream, or "inactive").
    """
    index = index_of(device)
    segments: dict[int, dict[str, Any]] = {}
    for (
        start,
        total,
        address,
        size,
        requested,
        pool,
        stream,
        large,
        state,
    ) in _C._cuda_memory_snapshot(index):
        segment = segments.setdefault(
            start,
            {
                "device": index,
                "address": start,
                "total_size": total,
                "allocated_size": 0,
                "active_size": 0,
                "requested_size": 0,
                "stream": stream,
                "segment_type": "large" if large else "small",
                "segment_pool_id": (0, pool),
                "blocks": [],
            },
        )
        segment["allocated_size"] += size if state == 1 else 0
        segment["active_size"] += size if state else 0
        segment["requested_size"] += requested
        segment["blocks"].append(
            {"address": address, "size": size, "requested_size": requested, "state": _STATES[state]}
        )
    return list(segments.values())


def _size_text(size: int) -> str:
    units = ["B", "KiB", "MiB", "GiB", "TiB"]
    value = float(size)
    while abs(value) >= 10000 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{value:.0f} {units[0]}"


_ROWS = (
    ("Allocated memory", "allocated_bytes", True),
    ("Active memory", "active_bytes", True),
    ("Requested memory", "requested_bytes", True),
    ("Reserved memory", "reserved_bytes", True),
    ("Non-releasable memory", "inactive_split_bytes", True),
    ("Allocations", "allocation", False),
    ("Active allocs", "active", False),
    ("Reserved segments", "segment", False),
    ("Non-releasable allocs", "inactive_split", False),
)


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """A table of the allocator's counters for people.

    Args:
        device: default: the current one.
        abbreviated: leave out the split into small and large pools.
    """
    index = index_of(device)
    stats = memory_stats(index)
    line = "|" + "-" * 77 + "|"
    header = f"| {'Metric':<23} | {'Cur Usage':>10} | {'Peak Usage':>10} | {'Tot Alloc':>10} | {'Tot Freed':>10} |"
    title = f"Argand CUDA memory summary, device {index}"
    counts = f"CUDA OOMs: {stats.get('num_ooms', 0)}, cudaMalloc retries: {stats.get('num_alloc_retries', 0)}"
    lines = [line, f"|{title:^77}|", line, f"|{counts:^77}|", line, header, line]
    pools = ["all"] if abbreviated else ["all", "large_pool", "small_pool"]
    for name, kind, in_bytes in _ROWS:
        for pool in pools:
            label = name if pool == "all" else f"  from {pool.replace('_', ' ')}"
            cells = []
            for value in ("current", "peak", "allocated", "freed"):
                number = stats.get(f"{kind}.{pool}.{value}", 0)
                cells.append(f"{_size_text(number) if in_bytes else number:>10}")
            lines.append(f"| {label:<23} | " + " | ".join(cells) + " |")
        lines.append(line)
    return "\n".join(lines) + "\n"


class MemPool:
    """Memory that only allocations under `use_mem_pool`, or graphs that are given its `id`, draw from.

    Args:
        device: default: the current one.
    """

    def __init__(self, device: Any = None) -> None:
        self._index = index_of(device)
        self._pool = _C._cuda_pool_new(self._index)

    @property
    def id(self) -> tuple[int, int]:
        """What `graph(pool=...)` takes."""
        return self._index, self._pool

    def __del__(self) -> None:
        if hasattr(self, "_pool") and _C is not None:
            _C._cuda_pool_release(self._index, self._pool)


@contextlib.contextmanager
def use_mem_pool(pool: MemPool) -> Iterator[None]:
    """Context manager in which this thread's allocations on the pool's device come from the pool."""
    index, number = pool.id
    _C._cuda_pool_begin(index, number)
    try:
        yield
    finally:
        _C._cuda_pool_end(index, number)
