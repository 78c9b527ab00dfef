"""Switches that programs set before they run: for libraries of other devices, which this build does not use.

They are kept, so that a program can read back what it set, and change nothing on the CPU.
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["cuda", "cudnn", "mps"]


@dataclass
class _Matmul:
    """Precision of matrix products on CUDA devices."""

    allow_tf32: bool = False
    allow_fp16_reduced_precision_reduction: bool = True
    allow_bf16_reduced_precision_reduction: bool = True


@dataclass
class _Cuda:
    matmul: _Matmul = field(default_factory=_Matmul)

    def is_built(self) -> bool:
        """Whether this build can use CUDA devices."""
        return False


@dataclass
class _Cudnn:
    allow_tf32: bool = True
    benchmark: bool = False
    deterministic: bool = False
    enabled: bool = True

    def is_available(self) -> bool:
        """Whether cuDNN can be used."""
        return False


class _Mps:
    def is_available(self) -> bool:
        """Whether Metal devices can be used."""
        return False

    def is_built(self) -> bool:
        """Whether this build can use Metal devices."""
        return False


cuda = _Cuda()
cudnn = _Cudnn()
mps = _Mps()
