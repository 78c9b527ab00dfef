"""Libraries and kernels on disk, so that nothing is compiled twice: not by a second process, nor for a second graph."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import argand_c10
from argand_c10 import logs, metrics
from argand_c10.disk_cache import DiskCache, Entry
from argand_c10.records import Record, emit
from argand_inductor.artifact import build
from argand_inductor.artifact import triton_pool as pool
from argand_inductor.artifact.build import Compiler
from argand_inductor.artifact.errors import CompilerError
from argand_inductor.program import KernelSource, TritonKernel

FORMAT = 1
LIBRARY = "program.so"
EXECUTOR = "argand_program_execute"
_OBJECT = "unit.o"
# How object files and libraries begin: ELF, Mach-O.
_OBJECT_FORMATS = (b"\x7fELF", b"\xcf\xfa\xed\xfe")
_PROGRAM_HEADERS = (
    "argand_inductor/artifact/program.h",
    "argand_inductor/artifact/kernel.h",
    "packages/c10/csrc/abi/argand.h",
)
_KERNEL_HEADERS = ("argand_inductor/artifact/kernel.h",)

programs = DiskCache("inductor-programs")
kernels_cache = DiskCache("inductor-kernels")


def _digest(*parts: str) -> str:
    h = hashlib.sha256()
    for part in parts:
        data = part.encode()
        h.update(len(data).to_bytes(8, "little"))
        h.update(data)
    return h.hexdigest()[:40]


@dataclass(frozen=True, slots=True)
class Sources:
    """All that a library is made from.

    Attributes:
        program: the C entry point's compile unit.
        kernels: each kernel once, then the executor.
        manifest: what the library says of itself, plain data.
        launched: kernels of devices, each once, and `arch`, for which they are compiled ("sm_90"; "" without any).
    """

    program: str
    kernels: tuple[KernelSource, ...]
    manifest: dict[str, Any]
    launched: tuple[TritonKernel, ...] = ()
    arch: str = ""


@dataclass(frozen=True, slots=True)
class _Setting:
    """What besides its source makes an object file what it is."""

    compiler: Compiler
    tier: int

    def kernel_key(self, kernel: KernelSource) -> str:
        if kernel.name == EXECUTOR and (shipped := build.shipped_executor(self.compiler)):
            return shipped.digest
        headers = [build.header_hash(name) for name in (*_KERNEL_HEADERS, *kernel.includes)]
        return _digest(
            "kernel", kernel.name, kernel.source, *headers, *self._flags(flags_of(kernel))
        )

    def program_key(self, sources: Sources) -> str:
        headers = [build.header_hash(name) for name in _PROGRAM_HEADERS]
        return _digest(
            "program",
            str(FORMAT),
            str(argand_c10.ABI_VERSION),
            sources.program,
            *(self.kernel_key(kernel) for kernel in sources.kernels),
            *(pool.key_of(kernel, sources.arch) for kernel in sources.launched),
            *headers,
            *self._flags(build.PROGRAM_FLAGS),
            *build.LINK_FLAGS,
            *build.LIBRARIES,
        )

    def _flags(self, flags: Iterable[str]) -> list[str]:
        return [self.compiler.identity, str(self.tier), *build.TIER_FLAGS[self.tier], *flags]


def flags_of(kernel: KernelSource) -> tuple[str, ...]:
    """The executor, where it has to be compiled, is compiled for a short compilation, not for speed: it is no loop over elements."""
    executor = kernel.name == EXECUTOR
    return build.PROGRAM_FLAGS if executor else build.KERNEL_FLAGS


@dataclass(frozen=True, slots=True)
class Library:
    """A shared library: in the cache under `key`, or only as bytes where the cache could not take it."""

    path: Path | None
    key: str | None
    data: bytes = b""

    def content(self) -> bytes:
        return self.data if self.path is None else self.path.read_bytes()


def obtain(sources: Sources, tier: int | None = None) -> Library:
    """The library of these sources, from the cache or built now.

    Args:
        tier: of the processor that it is for; by default of this process.

    Raises:
        CompilerError: if it has to be built and cannot be.
    """
    setting = _Setting(build.find_compiler(), argand_c10.cpu.tier() if tier is None else tier)
    key = setting.program_key(sources)
    if entry := programs.get(key):
        logs.channel("cache").info("program %s: found", key)
        return Library(entry.path(LIBRARY), key)
    limit = build.compile_timeout()
    with programs.lock(key, limit) as held:
        if not held:
            emit(
                Record(
                    "cache",
                    "IN006",
                    f"another process has been compiling the same graph for {limit:g} s; "
                    "it is compiled here too",
                    "end that process if it hangs",
                )
            )
        if entry := programs.get(key):
            logs.channel("cache").info("program %s: made by another process", key)
            return Library(entry.path(LIBRARY), key)
        with metrics.timed("compile"), build.noting_hangs(setting.compiler):
            data = _build(setting, sources)
        stored = programs.put(
            key, {LIBRARY: data, **source_files(sources)}, _manifest(setting, sources)
        )
    if stored is None:
        return Library(None, None, data)
    logs.channel("cache").info("program %s: written, %d bytes", key, len(data))
    return Library(stored.path(LIBRARY), key)


def source_files(sources: Sources) -> dict[str, bytes]:
    """The sources as files, from which `portable.read_sources` makes them again."""
    kernels = [
        {"name": k.name, "source": k.source, "includes": k.includes, "comment": k.comment}
        for k in sources.kernels
        if k.name != EXECUTOR
    ]
    launched = [asdict(kernel) for kernel in sources.launched]
    return {
        "program.c": sources.program.encode(),
        "kernels.json": json.dumps(kernels).encode(),
        "launched.json": json.dumps({"arch": sources.arch, "kernels": launched}).encode(),
    }


def _manifest(setting: _Setting, sources: Sources) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "abi": argand_c10.ABI_VERSION,
        "tier": setting.tier,
        "compiler": setting.compiler.identity,
        "program": sources.manifest,
    }


def _build(setting: _Setting, sources: Sources) -> bytes:
    """Compiles what no cache has, in parallel, and links."""
    shipped = build.shipped_executor(setting.compiler)
    kernels = [k for k in sources.kernels if shipped is None or k.name != EXECUTOR]
    keys = {kernel.name: setting.kernel_key(kernel) for kernel in kernels}
    ready, missing = _cached_units(kernels, keys)
    with build.scratch_folder() as folder, ThreadPoolExecutor(1) as aside:
        device_code = (
            aside.submit(pool.compile_kernels, sources.launched, sources.arch)
            if sources.launched
            else None
        )
        objects = [] if shipped is None else [shipped.path]
        for i, entry in enumerate(ready):
            objects.append(f"cached{i}.o")
            (folder / objects[-1]).write_bytes(entry.contents[_OBJECT])
        (folder / "program.c").write_text(sources.program)
        command = build.compile_command
        commands = [
            command(setting.compiler, build.PROGRAM_FLAGS, setting.tier, "program.c", "program.o")
        ]
        units = build.split_units(
            [kernel for kernel in missing if kernel.name != EXECUTOR], build.processes()
        )
        units += [[kernel] for kernel in missing if kernel.name == EXECUTOR]
        for i, unit in enumerate(units):
            (folder / f"unit{i}.c").write_text(build.unit_source(unit))
            objects.append(f"unit{i}.o")
            commands.append(
                command(
                    setting.compiler,
                    flags_of(unit[0]),
                    setting.tier,
                    f"unit{i}.c",
                    objects[-1],
                )
            )
        # The longest first: units of kernels before the program, unless that is large.
        commands.sort(key=lambda c: -(folder / c[-3]).stat().st_size)
        build.run_all(commands, folder)
        for i, unit in enumerate(units):
            _store_unit(_written(folder / f"unit{i}.o"), [keys[k.name] for k in unit])
        if device_code is not None:
            found = device_code.result()
            objects.append("images.o")
            _write_images(folder, [found[kernel.name] for kernel in sources.launched])
            build.run_all(
                [
                    command(
                        setting.compiler, build.PROGRAM_FLAGS, setting.tier, "images.c", "images.o"
                    )
                ],
                folder,
            )
        link = build.link_command(setting.compiler, ["program.o", *objects], LIBRARY)
        build.run_all([link], folder)
        return _written(folder / LIBRARY)


def _write_images(folder: Path, found: Sequence[pool.Image]) -> None:
    """The table of device code, in a compile unit of its own that takes the bytes from files."""
    lines = ['#include "argand_inductor/artifact/program.h"']
    rows = []
    for i, image in enumerate(found):
        (folder / f"image{i}").write_bytes(image.data)
        lines.append(
            f'__asm__(".pushsection .rodata\\n.balign 16\\nargand_image{i}:\\n.incbin \\"image{i}\\"\\n'
            f'argand_image{i}_end:\\n.popsection");'
        )
        hidden = '__attribute__((visibility("hidden")))'
        lines.append(
            f"extern const char argand_image{i}[] {hidden}, argand_image{i}_end[] {hidden};"
        )
        rows.append(f"{{argand_image{i}, argand_image{i}_end, {image.shared}, {image.threads}}}")
    lines.append(f"const ArgandImage argand_images[] = {{{', '.join(rows)}}};")
    (folder / "images.c").write_text("\n".join([*lines, ""]))


def _written(path: Path) -> bytes:
    """What the compiler made.

    Raises:
        CompilerError: if it made nothing, or nothing that a linker or loader reads.
    """
    data = path.read_bytes() if path.exists() else b""
    if not data.startswith(_OBJECT_FORMATS):
        what = "library" if path.name == LIBRARY else "object file"
        raise CompilerError(
            "IN002", f"the C compiler wrote no {what}", "set ARGAND_CC to a recent gcc or clang"
        )
    return data


def _cached_units(
    kernels: Sequence[KernelSource], keys: dict[str, str]
) -> tuple[list[Entry], list[KernelSource]]:
    """Object files that hold some of the kernels, and the kernels that none holds."""
    units: dict[str, Entry | None] = {}
    missing = []
    for kernel in kernels:
        pointer = kernels_cache.get(keys[kernel.name])
        unit = pointer.manifest.get("unit") if pointer else None
        if isinstance(unit, str) and unit not in units:
            units[unit] = kernels_cache.get(unit)
        if not isinstance(unit, str) or units[unit] is None:
            missing.append(kernel)
    return [entry for entry in units.values() if entry is not None], missing


def _store_unit(data: bytes, keys: list[str]) -> None:
    unit = "unit-" + hashlib.sha256(data).hexdigest()[:40]
    if kernels_cache.put(unit, {_OBJECT: data}, {}) is not None:
        for key in keys:
            kernels_cache.put(key, {}, {"unit": unit})
