"""Compiles Triton kernels in parallel processes, which are started once and stay warm; results are kept on disk."""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import importlib.util
import os
import pickle
import selectors
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from argand_c10 import metrics
from argand_c10.disk_cache import DiskCache
from argand_inductor.artifact import build
from argand_inductor.artifact.device_compiler import other_python, own_triton, version_of
from argand_inductor.artifact.errors import CompilerError
from argand_inductor.program import TritonKernel

_INSTALL = "pip install triton==3.6.0, or set ARGAND_TRITON_PYTHON to a Python that has it, or use backend='aot_eager'"
_IMAGE = "image.bin"
_FIND_TRITON = "import importlib.util as u; s = u.find_spec('triton'); print(s.origin if s else '')"
# What generated kernels import.
_LIBRARY = (
    "conversion",
    "generated.primitives",
    "kernel",
    "kernels._accumulate",
    "math",
    "random",
)

images = DiskCache("inductor-images")


@dataclass(frozen=True, slots=True)
class Image:
    """Device code of one kernel: an ELF file, bytes of dynamic shared memory, threads of a program."""

    data: bytes
    shared: int
    threads: int


def python() -> str:
    """The interpreter that has Triton: ARGAND_TRITON_PYTHON, by default this one."""
    return other_python() or sys.executable


def environment() -> dict[str, str]:
    """The variables with which that interpreter finds what this one would import as Triton."""
    variables = dict(os.environ)
    if not other_python():
        found = importlib.util.find_spec("triton")
        if found is not None and found.origin is not None:
            variables["PYTHONPATH"] = str(Path(found.origin).parent.parent)
    return variables


@functools.cache
def triton_version() -> str:
    """Of the Triton that compiles kernels; "" where there is none. Another interpreter is asked, once a process (50 ms)."""
    if not other_python():
        return own_triton()
    try:
        done = subprocess.run(
            [python(), "-c", _FIND_TRITON], capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    found = done.stdout.strip()
    return version_of(found) if found else ""


@functools.cache
def library() -> tuple[str, str]:
    """(folder of what kernels import, its content's hash).

    Raises:
        CompilerError: if it is not installed.
    """
    digest = hashlib.sha256()
    for module in _LIBRARY:
        name = f"argand_aten_cuda.{module}"
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            raise CompilerError("IN010", f"{name} is missing", "pip install argand-aten-cuda")
        digest.update(Path(spec.origin).read_bytes())
    package = importlib.util.find_spec("argand_aten_cuda")
    assert package is not None and package.origin is not None
    return str(Path(package.origin).parent.parent), digest.hexdigest()


def key_of(kernel: TritonKernel, arch: str) -> str:
    """The name under which an image is kept."""
    text = repr(
        (
            kernel.name,
            kernel.source,
            kernel.signature,
            kernel.constants,
            arch,
            library()[1],
            triton_version(),
            _worker_hash(),
        )
    )
    return hashlib.sha256(text.encode()).hexdigest()[:40]


@functools.cache
def _worker_hash() -> str:
    return hashlib.sha256((Path(__file__).parent / "triton_worker.py").read_bytes()).hexdigest()


def processes() -> int:
    """Workers: as many as processors, from 2 to 16; ARGAND_COMPILE_THREADS sets it."""
    return max(2, min(16, build.processes()))


class _Worker:
    """One process; `kernel` is what it compiles now."""

    def __init__(self, folder: str) -> None:
        variables = {
            **environment(),
            "TRITON_CACHE_DIR": folder,
            "TRITON_DISABLE_LINE_INFO": "1",
            "OMP_NUM_THREADS": "1",
        }
        self.process = subprocess.Popen(
            [python(), str(Path(__file__).parent / "triton_worker.py"), library()[0]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=variables,
            start_new_session=True,
        )
        self.kernel: TritonKernel | None = None
        self.deadline = 0.0

    def give(self, kernel: TritonKernel, arch: str) -> None:
        assert self.process.stdin is not None
        self.kernel = kernel
        self.deadline = time.monotonic() + build.compile_timeout()
        job = {
            "name": kernel.name,
            "source": kernel.source,
            "signature": kernel.signature,
            "constants": kernel.constants,
            "num_warps": kernel.num_warps,
            "num_stages": kernel.num_stages,
            "arch": arch,
        }
        pickle.dump(job, self.process.stdin)
        self.process.stdin.flush()

    def take(self) -> tuple[Any, ...]:
        assert self.process.stdout is not None
        self.kernel = None
        result: tuple[Any, ...] = pickle.load(self.process.stdout)
        return result

    def end(self) -> None:
        with contextlib.suppress(OSError):
            self.process.kill()
        self.process.wait()


class Pool:
    """The workers of this process; used by one thread at a time."""

    def __init__(self) -> None:
        self.workers: list[_Worker] = []
        self.folder = ""  # Triton's own cache
        self.owner = 0
        self.lock = threading.Lock()

    def start(self) -> None:
        """Start the workers, which takes about a second of theirs, none of ours."""
        with self.lock:
            self._start()

    def _start(self) -> None:
        if self.owner != os.getpid():  # nobody else's after a fork
            self.workers, self.owner, self.folder = [], os.getpid(), ""
        if not self.folder:
            self.folder = tempfile.mkdtemp(prefix="argand-triton-")
        alive = [w for w in self.workers if w.process.poll() is None]
        for _ in range(processes() - len(alive)):
            try:
                alive.append(_Worker(self.folder))
            except OSError as error:
                raise CompilerError(
                    "IN010", f"{python()} cannot be run: {error}", _INSTALL
                ) from None
        self.workers = alive

    def compile(self, kernels: Iterable[TritonKernel], arch: str) -> dict[str, Image]:
        """Compile kernels, each within the compiler's time limit.

        Raises:
            CompilerError: if one fails.
        """
        with self.lock:
            self._start()
            try:
                return self._compile(list(kernels), arch)
            except BaseException:
                self.end()
                raise

    def _compile(self, waiting: list[TritonKernel], arch: str) -> dict[str, Image]:
        found: dict[str, Image] = {}
        waiting.sort(key=lambda k: len(k.source))  # the longest first, from the end
        with selectors.DefaultSelector() as selector:
            for worker in self.workers:
                assert worker.process.stdout is not None
                selector.register(worker.process.stdout, selectors.EVENT_READ, worker)
            idle = list(self.workers)
            while waiting or len(idle) < len(self.workers):
                while waiting and idle:
                    self._give(idle.pop(), waiting.pop(), arch)
                for ready, _ in selector.select(1.0):
                    worker = ready.data
                    name = worker.kernel.name if worker.kernel else ""
                    found[name] = _image(name, worker)
                    idle.append(worker)
                late = [w for w in self.workers if w.kernel and w.deadline < time.monotonic()]
                if late:
                    raise CompilerError(
                        "IN003",
                        f"Triton took longer than {build.compile_timeout():g} s for {late[0].kernel.name}",  # type: ignore[union-attr]
                        "set ARGAND_COMPILE_TIMEOUT to more seconds",
                    )
        return found

    def _give(self, worker: _Worker, kernel: TritonKernel, arch: str) -> None:
        metrics.count("triton_compilations")
        try:
            worker.give(kernel, arch)
        except OSError:
            raise CompilerError("IN010", f"Triton is not there for {python()}", _INSTALL) from None

    def end(self) -> None:
        """End the workers."""
        if self.owner == os.getpid():
            for worker in self.workers:
                worker.end()
            shutil.rmtree(self.folder, ignore_errors=True)
        self.workers, self.folder = [], ""


def _image(name: str, worker: _Worker) -> Image:
    try:
        status, *result = worker.take()
    except (EOFError, pickle.UnpicklingError):
        raise CompilerError("IN010", f"Triton is not there for {python()}", _INSTALL) from None
    if status != "ok":
        raise CompilerError(
            "IN011", f"Triton failed on kernel {name}: {result[0]}", "please report this"
        )
    return Image(*result)


pool = Pool()
atexit.register(pool.end)


def compile_kernels(kernels: Iterable[TritonKernel], arch: str) -> Mapping[str, Image]:
    """Images of kernels by name, from disk or compiled now.

    Raises:
        CompilerError: if Triton is missing, or fails.
    """
    found: dict[str, Image] = {}
    missing: dict[str, TritonKernel] = {}
    for kernel in kernels:
        entry = images.get(key_of(kernel, arch))
        if entry is None:
            missing[kernel.name] = kernel
        else:
            found[kernel.name] = Image(
                entry.contents[_IMAGE], entry.manifest["shared"], entry.manifest["threads"]
            )
    if missing:
        with metrics.timed("triton"):
            made = pool.compile(missing.values(), arch)
        for name, image in made.items():
            manifest = {"shared": image.shared, "threads": image.threads}
            images.put(key_of(missing[name], arch), {_IMAGE: image.data}, manifest)
        found |= made
    return found
