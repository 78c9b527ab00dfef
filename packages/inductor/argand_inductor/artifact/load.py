"""From a library to a callable, and from plain data to the same: what a fresh process does instead of compiling."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from typing import Any

import argand_c10
from argand_c10 import logs, metrics
from argand_c10.disk_cache import DiskCache
from argand_c10.records import Record, emit
from argand_c10.source_digest import source_digest
from argand_inductor._C import GraphRecorder, Program
from argand_inductor.artifact.device_compiler import is_current

FORMAT = 1
# A program that other sources made is compiled again.
COMPILER = source_digest("argand_inductor")
LIBRARY = "program.so"
_programs = DiskCache("inductor-programs")
_constants = DiskCache("inductor-constants")


def store_constants(tensors: Sequence[argand_c10.Tensor]) -> list[dict[str, Any]] | None:
    """Put tensors into the cache by content; plain data that `load` finds them with, or None if the cache does not take them."""
    found = []
    for tensor in tensors:
        data = bytes(argand_c10._C._tensor_to_bytes(tensor))
        key = hashlib.sha256(data).hexdigest()[:40]
        if _constants.get(key) is None and _constants.put(key, {"data": data}, {}) is None:
            return None
        found.append(
            {
                "key": key,
                "dtype": str(tensor.dtype).rpartition(".")[2],
                "sizes": list(tensor.shape),
                "strides": list(tensor.stride()),
            }
        )
    return found


def _load_constant(data: dict[str, Any]) -> argand_c10.Tensor | None:
    entry = _constants.get(data["key"])
    if entry is None:
        return None
    dtype = argand_c10._C._dtype_by_name(data["dtype"])
    dense = argand_c10._C._tensor_from_bytes(entry.contents["data"], dtype, data["sizes"])
    if list(dense.stride()) == data["strides"]:
        return dense
    placed = argand_c10._C._empty_strided(data["sizes"], data["strides"], dtype)
    placed.copy_(dense)
    return placed


def _refuse(key: str, reason: str) -> None:
    emit(
        Record(
            "cache",
            "IN007",
            f"compiled graph {key} was not loaded: {reason}",
            "nothing to do: it is compiled again",
        )
    )


def load(data: dict[str, Any]) -> Program | GraphRecorder | None:
    """The program that `Program.serialize()` described; None if the cache no longer has it or it does not fit this process.

    No compiler runs, and nothing that only compiling needs is imported.
    """
    key = data.get("library")
    if (data.get("format"), data.get("compiler")) != (FORMAT, COMPILER) or not isinstance(key, str):
        return None
    if not is_current(data["arch"], data["device_compiler"]):
        return None
    entry = _programs.get(key)
    if entry is None:
        return None
    manifest = entry.manifest
    for name, expected in (
        ("format", FORMAT),
        ("abi", argand_c10.ABI_VERSION),
        ("tier", argand_c10.cpu.tier()),
    ):
        if manifest.get(name) != expected:
            _refuse(key, f"its {name} is {manifest.get(name)}, expected {expected}")
            return None
    constants = [_load_constant(entry) for entry in data["constants"]]
    if any(tensor is None for tensor in constants):
        return None
    try:
        program = open_library(os.fspath(entry.path(LIBRARY)), data, constants)
    except (ImportError, RuntimeError) as error:
        _refuse(key, str(error))
        _programs.discard(key)
        return None
    metrics.count("artifacts_loaded")
    logs.channel("cache").info("program %s: loaded", key)
    return program


def open_library(
    path: str, data: dict[str, Any], constants: Sequence[Any]
) -> Program | GraphRecorder:
    """A callable over a library: a Program, or what records one.

    Raises:
        ImportError: if it is no such library.
        RuntimeError: if an operator that it calls is missing or has another schema.
    """
    import argand_aten  # noqa: F401  (its operators may be called)

    program = Program(path, data["inputs"], data["outputs"], tuple(constants), data)
    device = data.get("records")
    if device is None:
        return program
    from argand_inductor.device_graphs import recorded  # few programs are replayed

    return recorded(program, device)
