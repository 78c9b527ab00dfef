"""Switches of numerical libraries that programs set before they run.

Those of CUDA's libraries reach their kernels (`argand_c10.math_settings`); the CPU's kernels always compute in float32.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from argand.import_paths import publish
from argand_aten.contraction_path import settings as opt_einsum
from argand_c10 import math_settings
from argand_c10.cpu import tier

__all__ = [
    "cpu",
    "cuda",
    "cudnn",
    "cusparselt",
    "kleidiai",
    "mha",
    "mkl",
    "mkldnn",
    "mps",
    "nnpack",
    "openmp",
    "opt_einsum",
]


class _Setting:
    """An attribute that stands for a field of the settings."""

    def __init__(self, field: str) -> None:
        self.field = field

    def __get__(self, owner: Any, cls: Any = None) -> bool:
        value: bool = getattr(math_settings.current(), self.field)
        return value

    def __set__(self, owner: Any, value: bool) -> None:
        math_settings.change(**{self.field: bool(value)})


@dataclass
class _Matmul:
    """Precision of matrix products on CUDA devices."""

    allow_tf32 = _Setting("matmul_tf32")
    allow_fp16_reduced_precision_reduction: bool = True
    allow_bf16_reduced_precision_reduction: bool = True


class _Cuda:
    def __init__(self) -> None:
        self.matmul = _Matmul()
        self._attention = dict.fromkeys(("flash", "mem_efficient", "math", "cudnn"), True)
        self._preferred = {"linalg": "default", "blas": "default"}

    def enable_flash_sdp(self, enabled: bool) -> None:
        """Kept for `flash_sdp_enabled`: a device has one implementation of attention here. The same of the other three."""
        self._attention["flash"] = bool(enabled)

    def flash_sdp_enabled(self) -> bool:
        """What `enable_flash_sdp` was told last."""
        return self._attention["flash"]

    def enable_mem_efficient_sdp(self, enabled: bool) -> None:
        """See `enable_flash_sdp`."""
        self._attention["mem_efficient"] = bool(enabled)

    def mem_efficient_sdp_enabled(self) -> bool:
        """What `enable_mem_efficient_sdp` was told last."""
        return self._attention["mem_efficient"]

    def enable_math_sdp(self, enabled: bool) -> None:
        """See `enable_flash_sdp`."""
        self._attention["math"] = bool(enabled)

    def math_sdp_enabled(self) -> bool:
        """What `enable_math_sdp` was told last."""
        return self._attention["math"]

    def enable_cudnn_sdp(self, enabled: bool) -> None:
        """See `enable_flash_sdp`."""
        self._attention["cudnn"] = bool(enabled)

    def cudnn_sdp_enabled(self) -> bool:
        """What `enable_cudnn_sdp` was told last."""
        return self._attention["cudnn"]

    @contextmanager
    def sdp_kernel(
        self,
        enable_flash: bool = True,
        enable_math: bool = True,
        enable_mem_efficient: bool = True,
        enable_cudnn: bool = True,
    ) -> Iterator[None]:
        """Other switches for a block; see `enable_flash_sdp`."""
        before = dict(self._attention)
        self._attention.update(
            flash=enable_flash,
            math=enable_math,
            mem_efficient=enable_mem_efficient,
            cudnn=enable_cudnn,
        )
        try:
            yield
        finally:
            self._attention.update(before)

    def is_flash_attention_available(self) -> bool:
        """False: attention is one operator, whose implementation is not chosen."""
        return False

    def preferred_linalg_library(self, backend: str | None = None) -> str:
        """What it was told last: there is one library of each kind. The same of `preferred_blas_library`."""
        return self._prefer("linalg", backend)

    def preferred_blas_library(self, backend: str | None = None) -> str:
        """See `preferred_linalg_library`."""
        return self._prefer("blas", backend)

    def _prefer(self, kind: str, backend: str | None) -> str:
        if backend is not None:
            self._preferred[kind] = str(backend)
        return self._preferred[kind]

    def is_built(self) -> bool:
        """Whether CUDA devices can be used where there are any: their kernels come in a package of their own."""
        return True


class _Cudnn:
    allow_tf32 = _Setting("conv_tf32")
    benchmark = _Setting("benchmark")
    deterministic = _Setting("deterministic")
    enabled = True

    def version(self) -> int | None:
        """cuDNN's version number; None where it cannot be used."""
        try:
            libraries = importlib.import_module("argand_aten_cuda.libraries")
            found: int = libraries.version("cudnn")
        except (ImportError, RuntimeError):
            return None
        return found

    def is_available(self) -> bool:
        """Whether cuDNN can be used."""
        return self.version() is not None

    @contextmanager
    def flags(
        self,
        enabled: bool = False,
        benchmark: bool = False,
        deterministic: bool = False,
        allow_tf32: bool = True,
    ) -> Iterator[None]:
        """Other settings for a block; `enabled` changes nothing: CUDA convolutions have no other library."""
        before = math_settings.current()
        math_settings.change(benchmark=benchmark, deterministic=deterministic, conv_tf32=allow_tf32)
        try:
            yield
        finally:
            math_settings.change(
                benchmark=before.benchmark,
                deterministic=before.deterministic,
                conv_tf32=before.conv_tf32,
            )


class _Mps:
    def is_available(self) -> bool:
        """Whether Metal devices can be used."""
        return False

    def is_built(self) -> bool:
        """Whether this build can use Metal devices."""
        return False


class _Cpu:
    def get_cpu_capability(self) -> str:
        """The instructions that kernels use: "DEFAULT", "AVX2" or "AVX512"."""
        return ("DEFAULT", "AVX2", "AVX512")[tier()]


class _Missing:
    """A library that is not used here."""

    def is_available(self) -> bool:
        """Whether it can be used."""
        return False


class _Mkldnn(_Missing):
    enabled = False


class _Nnpack(_Missing):
    def set_flags(self, _enabled: bool) -> tuple[bool]:
        """Nothing is enabled or disabled; (False,), which it was before."""
        return (False,)

    @contextmanager
    def flags(self, enabled: bool = False) -> Iterator[None]:
        """A block in which nothing is enabled or disabled."""
        yield


class _Mha:
    """Encoders have no other path in inference here; what programs set is kept."""

    def __init__(self) -> None:
        self._fastpath = True

    def get_fastpath_enabled(self) -> bool:
        """What `set_fastpath_enabled` was told last."""
        return self._fastpath

    def set_fastpath_enabled(self, value: bool) -> None:
        """Kept for `get_fastpath_enabled`."""
        self._fastpath = bool(value)


cpu = _Cpu()
cuda = _Cuda()
cudnn = _Cudnn()
cusparselt = _Missing()
kleidiai = _Missing()
mha = _Mha()
mkl = _Missing()
mkldnn = _Mkldnn()
mps = _Mps()
nnpack = _Nnpack()
openmp = _Missing()
publish(__name__, {name: globals()[name] for name in __all__})
