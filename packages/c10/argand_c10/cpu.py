"""The CPU's caching allocator: what it holds, and how to make it give memory back."""

from __future__ import annotations

from argand_c10 import _C

__all__ = [
    "empty_cache",
    "max_memory_allocated",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "set_cache_limit",
    "tier",
]


def memory_stats() -> dict[str, int]:
    """Byte and call counts: allocated_bytes, cached_bytes, peak_allocated_bytes, allocations, cache_hits, limit_bytes."""
    return _C.memory_stats("cpu")


def memory_allocated() -> int:
    """Bytes in use by tensors."""
    return memory_stats()["allocated_bytes"]


def max_memory_allocated() -> int:
    """The most bytes that were ever in use by tensors at once."""
    return memory_stats()["peak_allocated_bytes"]


def memory_reserved() -> int:
    """Bytes in use by tensors or kept for reuse."""
    stats = memory_stats()
    return stats["allocated_bytes"] + stats["cached_bytes"]


def empty_cache() -> None:
    """Give the blocks that are kept for reuse back to the system."""
    _C.empty_cache("cpu")


def set_cache_limit(nbytes: int) -> None:
    """Keep at most this many free bytes for reuse."""
    _C.set_cache_limit(nbytes, "cpu")


def tier() -> int:
    """The instruction tier that kernels run at: 0 baseline, 1 AVX2, 2 AVX-512."""
    return _C.cpu_tier()
