"""Averaging as it is, or with fewer bits."""

from __future__ import annotations

from argand_distributed import allreduce_hook as allreduce_hook
from argand_distributed import bf16_compress_hook as bf16_compress_hook
from argand_distributed import bf16_compress_wrapper as bf16_compress_wrapper
from argand_distributed import fp16_compress_hook as fp16_compress_hook
from argand_distributed import fp16_compress_wrapper as fp16_compress_wrapper

__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]
