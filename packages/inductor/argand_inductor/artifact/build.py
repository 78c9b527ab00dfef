"""From C sources to one shared library: which compiler, which flags, in parallel, with a time limit."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import argand_c10
from argand_c10 import metrics
from argand_inductor.artifact.errors import CompilerError
from argand_inductor.program import KernelSource

_CANDIDATES = ("gcc", "cc", "clang")
_INSTALL = (
    "install one (Debian: apt-get install gcc), or set ARGAND_CC or CC to it, or use "
    "backend='aot_eager'"
)
_HUNG = "set ARGAND_COMPILE_TIMEOUT to more seconds, or ARGAND_CC to another compiler"
# As c10's and aten's kernels of the same tier, so that generated code rounds as eager does.
TIER_FLAGS = {
    0: ("-msse4.2", "-DARGAND_TIER_BASELINE=1"),
    1: ("-mavx2", "-mfma", "-mf16c", "-DARGAND_TIER_AVX2=1"),
    2: (
        "-mavx512f",
        "-mavx512bw",
        "-mavx512dq",
        "-mavx512vl",
        "-mfma",
        "-mf16c",
        "-mprefer-vector-width=512",
        "-DARGAND_TIER_AVX512=1",
    ),
}
_COMMON = (
    "-std=gnu11",
    "-w",
    "-g0",
    "-fPIC",
    "-fvisibility=hidden",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-strict-aliasing",
    "-fwrapv",
    "-fno-asynchronous-unwind-tables",
    "-fno-stack-protector",
    "-fno-ident",
    "-ffunction-sections",
)
KERNEL_FLAGS = ("-O2", "-ftree-vectorize", *_COMMON)
PROGRAM_FLAGS = ("-Og", *_COMMON)
LINK_FLAGS = ("-shared", "-nostdlib", "-Wl,--gc-sections", "-Wl,-s", "-Wl,--build-id=none")
LIBRARIES = ("-lmvec", "-lm")
# Characters of source that take about as long to compile as the headers that each unit includes.
_UNIT_LENGTH = 2000


def compile_timeout() -> float:
    """Seconds that one compiler process may take: ARGAND_COMPILE_TIMEOUT, 120 by default."""
    try:
        return float(os.environ.get("ARGAND_COMPILE_TIMEOUT", "120"))
    except ValueError:
        return 120.0


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C compiler: its command, and what tells it from another one without running it."""

    command: tuple[str, ...]
    identity: str


# Compilers that hung, by identity: nobody waits for them again in this process.
_hung: dict[str, str] = {}


def find_compiler() -> Compiler:
    """ARGAND_CC, CC, gcc, cc or clang, whichever comes first.

    Raises:
        CompilerError: if there is none, the one that was named is not there, or it has hung before.
    """
    compiler = _find()
    if message := _hung.get(compiler.identity):
        raise CompilerError("IN003", message, _HUNG)
    return compiler


@contextlib.contextmanager
def noting_hangs(compiler: Compiler) -> Iterator[None]:
    """Remember the compiler if it hangs inside."""
    try:
        yield
    except CompilerError as error:
        if error.code == "IN003":
            _hung[compiler.identity] = f"{error}, and is not tried again"
        raise


def _find() -> Compiler:
    for variable in ("ARGAND_CC", "CC"):
        if words := os.environ.get(variable, "").split():
            path = shutil.which(words[0])
            if path is None:
                raise CompilerError(
                    "IN001", f"{variable}={words[0]!r} is no program that can be run", _INSTALL
                )
            return _identify((path, *words[1:]))
    for name in _CANDIDATES:
        if path := shutil.which(name):
            return _identify((path,))
    raise CompilerError("IN001", "no C compiler was found (gcc, cc, clang)", _INSTALL)


def _identify(command: tuple[str, ...]) -> Compiler:
    """An update of a compiler changes its file, so there is no need to ask it for its version."""
    real = os.path.realpath(command[0])
    found = os.stat(real)
    identity = "|".join((real, str(found.st_size), str(found.st_mtime_ns), *command[1:]))
    return Compiler(command, identity)


# ---- headers ---------------------------------------------------------------------------------------------------------
@functools.cache
def include_folders() -> tuple[str, ...]:
    """Folders with the headers that generated code may include, in a wheel or in the source tree.

    Raises:
        CompilerError: if a header is missing, which means a damaged installation.
    """
    import argand_aten

    wanted = (
        (argand_c10, "packages/c10/csrc/abi/argand.h"),
        (argand_aten, "packages/aten/csrc/kernels/cpu/math.h"),
    )
    own = Path(__file__).parent.parent.parent
    folders = [str(own)]
    for package, header in wanted:
        folder = Path(package.__file__ or "").parent
        places = [
            folder / "include",
            folder.parent.parent.parent,
            Path(package.__file__ or "").resolve().parent.parent.parent.parent,
        ]
        found = next((str(place) for place in places if (place / header).is_file()), None)
        if found is None:
            raise CompilerError(
                "IN004", f"{package.__name__} lacks its header {header}", "install it again"
            )
        if found not in folders:
            folders.append(found)
    return tuple(folders)


def find_header(name: str) -> Path:
    """The file of a header as `#include` finds it.

    Raises:
        CompilerError: if there is none.
    """
    for folder in include_folders():
        if (path := Path(folder, name)).is_file():
            return path
    raise CompilerError("IN004", f"header {name} was not found", "install argand-inductor again")


@functools.cache
def header_hash(name: str) -> str:
    return hashlib.sha256(find_header(name).read_bytes()).hexdigest()


@dataclass(frozen=True, slots=True)
class ObjectFile:
    """An object file that links into every program, and the hash of its bytes."""

    path: str
    digest: str


@functools.cache
def _shipped_executor() -> ObjectFile | None:
    path = Path(__file__).parent.absolute() / "runtime.o"
    try:
        return ObjectFile(os.fspath(path), hashlib.sha256(path.read_bytes()).hexdigest())
    except OSError:
        return None


def shipped_executor(compiler: Compiler) -> ObjectFile | None:
    """The executor as it was compiled when this package was built. None for a compiler that is called with flags: they hold for the executor too."""
    return _shipped_executor() if len(compiler.command) == 1 else None


# ---- running the compiler --------------------------------------------------------------------------------------------
def processes() -> int:
    """How many compilers may run at once: ARGAND_COMPILE_THREADS, by default as many as there are processors."""
    try:
        return max(1, int(os.environ["ARGAND_COMPILE_THREADS"]))
    except (KeyError, ValueError):
        return len(os.sched_getaffinity(0))


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder of our own for the time of a build, removed afterwards.

    Raises:
        CompilerError: if there is no place for it.
    """
    try:
        folder = tempfile.mkdtemp(prefix="argand-")
    except OSError as error:
        raise CompilerError(
            "IN005", f"no folder for compiling: {error}", "make room, or set TMPDIR"
        ) from None
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(slots=True)
class _Run:
    """A compiler at work. Its messages go to a file, so that it never waits for us."""

    process: subprocess.Popen[bytes]
    messages: Path
    deadline: float


def _start(command: Sequence[str], folder: Path, number: int, timeout: float) -> _Run:
    metrics.count("compiler_runs")
    messages = folder / f"messages{number}"
    try:
        with open(messages, "wb") as file:
            process = subprocess.Popen(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=file,
                start_new_session=True,
            )
    except OSError as error:
        raise CompilerError("IN001", f"{command[0]} cannot be run: {error}", _INSTALL) from None
    return _Run(process, messages, time.monotonic() + timeout)


def _kill(run: _Run) -> None:
    """Ends a compiler and what it started (it leads a process group)."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(run.process.pid, signal.SIGKILL)
    run.process.wait()


def _is_done(run: _Run, timeout: float) -> bool:
    status = run.process.poll()
    if status is None:
        if time.monotonic() < run.deadline:
            return False
        message = f"the C compiler took longer than {timeout:g} s and was stopped"
        raise CompilerError("IN003", message, _HUNG)
    if status:
        text = run.messages.read_text(errors="replace").strip()
        raise CompilerError(
            "IN002",
            f"the C compiler failed with status {status}: {text[-2000:] or 'no message'}",
            "set ARGAND_CC to a recent gcc or clang; if it is one, please report this",
        )
    return True


def run_all(commands: Sequence[Sequence[str]], folder: Path) -> None:
    """Run commands, as many at once as `processes()` says, each within the time limit.

    Raises:
        CompilerError: of the first that fails; the others are stopped.
    """
    timeout, width = compile_timeout(), processes()
    waiting = list(enumerate(commands))
    running: list[_Run] = []
    try:
        while waiting or running:
            while waiting and len(running) < width:
                number, command = waiting.pop(0)
                running.append(_start(command, folder, number, timeout))
            left = [run for run in running if not _is_done(run, timeout)]
            if len(left) == len(running):
                time.sleep(0.001)
            running = left
    finally:
        for run in running:
            _kill(run)


# ---- units -----------------------------------------------------------------------------------------------------------
def unit_source(kernels: Sequence[KernelSource]) -> str:
    """One compile unit of several kernels, with the headers that they ask for."""
    includes = dict.fromkeys(name for kernel in kernels for name in kernel.includes)
    lines = ['#include "argand_inductor/artifact/kernel.h"']
    lines += [f'#include "{name}"' for name in includes]
    return "\n".join([*lines, "", *(kernel.source for kernel in kernels), ""])


def split_units(kernels: Sequence[KernelSource], n: int) -> list[list[KernelSource]]:
    """At most `n` units of about equal length of source, none so short that its headers take longer."""
    n = min(n, len(kernels), 1 + sum(len(kernel.source) for kernel in kernels) // _UNIT_LENGTH)
    units: list[list[KernelSource]] = [[] for _ in range(n if kernels else 0)]
    lengths = [0] * len(units)
    for kernel in sorted(kernels, key=lambda k: -len(k.source)):
        i = lengths.index(min(lengths))
        units[i].append(kernel)
        lengths[i] += len(kernel.source)
    return units


def compile_command(
    compiler: Compiler, flags: Sequence[str], tier: int, source: str, out: str
) -> list[str]:
    includes = [f"-I{folder}" for folder in include_folders()]
    return [*compiler.command, *flags, *TIER_FLAGS[tier], *includes, "-c", source, "-o", out]


def link_command(compiler: Compiler, objects: Sequence[str], out: str) -> list[str]:
    return [*compiler.command, *LINK_FLAGS, *objects, "-o", out, *LIBRARIES]
