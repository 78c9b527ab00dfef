"""The cache as a file for another machine: sources, manifests and constants, never a library."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import argand_c10
from argand_c10.records import Record, emit
from argand_inductor.artifact import cache, load
from argand_inductor.artifact.cache import Sources
from argand_inductor.artifact.write_program import runtime_kernel
from argand_inductor.program import KernelSource, TritonKernel

FORMAT = "argand-inductor-cache-1"
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_HEADER = re.compile(r"(packages|argand_inductor)(/\w+)+\.h")
_KEY = re.compile(r"[0-9a-f]{40}")


def export_cache(path: str | os.PathLike[str]) -> int:
    """Write all programs of the local cache to a zip file, atomically; the number of programs.

    Raises:
        OSError: if the file cannot be written.
    """
    target = Path(path)
    count = 0
    fd, name = tempfile.mkstemp(prefix=target.name, dir=target.parent)
    try:
        with os.fdopen(fd, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as out:
            out.writestr("format", FORMAT)
            for key in _keys(cache.programs.folder):
                if entry := cache.programs.get(key):
                    out.writestr(f"programs/{key}/manifest.json", json.dumps(entry.manifest))
                    for member in ("program.c", "kernels.json", "launched.json"):
                        out.writestr(f"programs/{key}/{member}", entry.contents[member])
                    count += 1
            for key in _keys(load._constants.folder):
                if entry := load._constants.get(key):
                    out.writestr(f"constants/{key}", entry.contents["data"])
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise
    return count


def import_cache(path: str | os.PathLike[str]) -> int:
    """Compile the programs of an exported cache into the local one; the number of programs taken.

    Programs for another processor tier, ABI or format are left out, with one record. Compiling C is trusting it: import only files
    from whom you would run a program.

    Raises:
        ValueError: if the file is no exported cache.
        CompilerError: if there is no compiler that does its work.
    """
    taken, left = 0, 0
    try:
        archive = zipfile.ZipFile(path)
    except zipfile.BadZipFile as error:
        raise ValueError(f"import_cache: {os.fspath(path)} is no exported cache: {error}") from None
    with archive:
        if "format" not in archive.namelist() or archive.read("format") != FORMAT.encode():
            raise ValueError(
                f"import_cache: {os.fspath(path)} is no exported cache of this version; "
                "export it again with the version that you run"
            )
        _import_constants(archive)
        for key in _members(archive, "programs"):
            manifest = json.loads(archive.read(f"programs/{key}/manifest.json"))
            if _fits(manifest):
                _import_program(archive, key, manifest)
                taken += 1
            else:
                left += 1
    if left:
        emit(
            Record(
                "cache",
                "IN008",
                f"{left} programs of {os.fspath(path)} are for another processor tier or version",
                "compile them here by calling the functions",
            )
        )
    return taken


def _keys(folder: Path) -> Iterator[str]:
    try:
        names = sorted(os.listdir(folder / "entries"))
    except OSError:
        return
    yield from (name for name in names if _KEY.fullmatch(name))


def _members(archive: zipfile.ZipFile, room: str) -> list[str]:
    parts = [name.split("/") for name in archive.namelist()]
    return list(dict.fromkeys(p[1] for p in parts if p[0] == room and _KEY.fullmatch(p[1])))


def _fits(manifest: dict[str, Any]) -> bool:
    return (manifest.get("format"), manifest.get("abi"), manifest.get("tier")) == (
        cache.FORMAT,
        argand_c10.ABI_VERSION,
        argand_c10.cpu.tier(),
    )


def _import_constants(archive: zipfile.ZipFile) -> None:
    for key in _members(archive, "constants"):
        data = archive.read(f"constants/{key}")
        if hashlib.sha256(data).hexdigest()[:40] != key:
            raise ValueError(f"import_cache: the constant {key} is damaged; export it again")
        load._constants.put(key, {"data": data}, {})


def _read_launched(data: dict[str, Any]) -> TritonKernel:
    signature = tuple((name, kind) for name, kind in data.pop("signature"))
    constants = tuple((name, int(value)) for name, value in data.pop("constants"))
    return TritonKernel(signature=signature, constants=constants, **data)


def read_sources(read: Callable[[str], bytes], manifest: dict[str, Any], name: str) -> Sources:
    """The sources that `cache.source_files` wrote.

    Args:
        read: gives a file's content.
        manifest: the program's.
        name: of the program in an error.

    Raises:
        ValueError: kernels have names or headers that none has.
    """
    kernels = []
    for data in json.loads(read("kernels.json")):
        kernel = KernelSource(
            data["name"], data["source"], tuple(data["includes"]), data["comment"]
        )
        good = _IDENTIFIER.fullmatch(kernel.name) and all(map(_HEADER.fullmatch, kernel.includes))
        if not good:
            raise ValueError(f"{name} includes {kernel.includes}; export again")
        kernels.append(kernel)
    device = json.loads(read("launched.json"))
    launched = tuple(_read_launched(data) for data in device["kernels"])
    source = read("program.c").decode()
    return Sources(source, (*kernels, runtime_kernel()), manifest, launched, device["arch"])


def _import_program(archive: zipfile.ZipFile, key: str, manifest: dict[str, Any]) -> None:
    def read(name: str) -> bytes:
        return archive.read(f"programs/{key}/{name}")

    sources = read_sources(read, manifest["program"], f"import_cache: program {key}")
    library = cache.obtain(sources)
    # Whoever refers to the program knows it by the key that it had.
    if library.key not in (None, key) and library.path is not None:
        entry = cache.programs.get(str(library.key))
        if entry is not None:
            cache.programs.put(key, entry.contents, entry.manifest)
