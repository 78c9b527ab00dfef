"""Where the code of a kernel comes from: the wheel's archives, the disk cache, or Triton, which compiles it now."""

from __future__ import annotations

import hashlib
import importlib
import pkgutil
import threading
from functools import cache
from pathlib import Path

from argand_aten_cuda.archive import Archive, Compiled
from argand_aten_cuda.kernel import Kernel
from argand_c10.disk_cache import DiskCache

_FOLDER = Path(__file__).parent
_PACKAGES = ("kernels", "generated")
# So that a kernel is compiled once; reentrant, since compiling may run operators.
_lock = threading.RLock()


def find(name: str, architecture: int) -> tuple[bytes, str, int, int]:
    """The code of a specialization.

    Args:
      name: as "softmax_forward;T=bfloat16;BLOCK=1024".
      architecture: compute capability as major * 10 + minor.

    Returns:
      (code object, its entry's name, threads of a block, shared bytes of a block).

    Raises:
      RuntimeError: when it must be compiled and cannot be.
    """
    with _lock:
        found = _from_archive(name, architecture) or _from_cache(name, f"sm_{architecture}")
    return found.image, found.entry, found.threads, found.shared


@cache
def _archive(architecture: int) -> Archive | None:
    path = _FOLDER / "archives" / f"kernels_sm_{architecture}.bin"
    return Archive(path) if path.exists() else None


def _from_archive(name: str, architecture: int) -> Compiled | None:
    # Code for 8.0 runs on 8.6, 8.7 and 8.9; from 9.0 on Triton's code is for one architecture.
    archive = _archive(80 if architecture // 10 == 8 else architecture)
    return None if archive is None else archive.get(name)


@cache
def _disk() -> DiskCache:
    return DiskCache("cuda_kernels")


@cache
def _modules() -> list[str]:
    """Every module that may list kernels."""
    names = []
    for package in _PACKAGES:
        folder = _FOLDER / package
        names += [
            f"argand_aten_cuda.{package}.{m.name}" for m in pkgutil.iter_modules([str(folder)])
        ]
    return names


@cache
def _kernels() -> dict[str, tuple[Kernel, str]]:
    """Kernel name -> the kernel and a hash of the sources it may use."""
    shared = hashlib.sha256()
    for path in sorted([*_FOLDER.glob("*.py"), *_FOLDER.glob("kernels/*.py")]):
        shared.update(path.read_bytes())
    found = {}
    for module in _modules():
        loaded = importlib.import_module(module)
        own = shared.copy()
        own.update(Path(str(loaded.__file__)).read_bytes())
        for kernel in getattr(loaded, "KERNELS", ()):
            found[kernel.name] = (kernel, own.hexdigest())
    return found


def _from_cache(name: str, arch: str) -> Compiled:
    try:
        import triton
    except ImportError:
        raise RuntimeError(
            f"{name}: the wheel has no code for {arch}, and Triton, which compiles it, is not installed; pip install 'argand-aten-cuda[jit]'"
        ) from None
    from argand_aten_cuda.compile import compile_variant

    kernels = _kernels()
    kernel, sources = kernels.get(name.split(";")[0], (None, ""))
    if kernel is None:
        raise RuntimeError(
            f"{name}: no kernel of this name; expected one of {len(kernels)} known ones, as {next(iter(kernels), 'none')}"
        )
    key = hashlib.sha256("\0".join([name, arch, sources, triton.__version__]).encode()).hexdigest()
    entry = _disk().get(key)
    if entry is not None:
        m = entry.manifest
        return Compiled(name, entry.contents["code"], m["entry"], m["threads"], m["shared"])
    done = compile_variant(kernel, kernel.parse(name), arch)
    manifest = {"name": name, "entry": done.entry, "threads": done.threads, "shared": done.shared}
    _disk().put(key, {"code": done.image}, manifest)
    return done
