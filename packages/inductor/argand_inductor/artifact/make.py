"""From a ProgramSpec to a callable program."""

from __future__ import annotations

import os
from typing import Any

import argand_c10
from argand_c10 import debug_trace, logs, metrics
from argand_inductor import _C
from argand_inductor.artifact import build, cache, load
from argand_inductor.artifact.cache import Library, Sources
from argand_inductor.artifact.device_compiler import device_compiler
from argand_inductor.artifact.errors import CompilerError
from argand_inductor.artifact.write_program import (
    SourceWriter,
    constants_of,
    runtime_kernel,
)
from argand_inductor.memory_plan import plan_memory
from argand_inductor.program import (
    Buf,
    ProgramSpec,
    Sym,
    SymbolSpec,
    TensorSpec,
    call_of,
    check,
)

# Constants larger than this together are not copied into the cache: such a program is not stored.
_CONSTANT_BYTES = 64 << 20


def _describe_input(spec: TensorSpec | SymbolSpec) -> dict[str, Any]:
    if isinstance(spec, SymbolSpec):
        return {"symbol": spec.symbol}
    return {
        "name": spec.name,
        "dtype": spec.dtype,
        "sizes": list(spec.sizes),
        "strides": list(spec.strides),
        "device": spec.device,
    }


def _describe_output(spec: ProgramSpec, output: Any) -> Any:
    if isinstance(output, Sym):
        return {"integer": output.expr}
    if not isinstance(output, Buf):
        return output
    buffer = spec.buffers.get(output.name)
    if buffer is None:
        return {"name": output.name}
    return {
        "name": output.name,
        "dtype": buffer.dtype,
        "sizes": list(buffer.sizes),
        "strides": list(buffer.strides),
        "device": buffer.device,
    }


def write_sources(spec: ProgramSpec, tier: int | None = None) -> Sources:
    """The C of a program and its manifest.

    Args:
        tier: of the processor that it is for; by default of this process.

    Raises:
        ValueError: if the spec breaks a rule.
    """
    check(spec)
    metrics.count("codegen_runs")
    operators = dict.fromkeys(c.operator for s in spec.steps if (c := call_of(s)) is not None)
    hashes = {name: _C.schema_hash(name) for name in operators}
    manifest = {
        "format": cache.FORMAT,
        "abi": argand_c10.ABI_VERSION,
        "tier": argand_c10.cpu.tier() if tier is None else tier,
        "inputs": [_describe_input(entry) for entry in spec.inputs],
        "constants": [_describe_input(entry) for entry in constants_of(spec)],
        "outputs": [_describe_output(spec, entry) for entry in spec.outputs],
        "operators": {name: f"{value:016x}" for name, value in hashes.items()},
        "arch": spec.arch,
        "kernels": [k.name for k in spec.kernels()] + [k.name for k in spec.launched()],
    }
    plan = plan_memory(spec)
    if debug_trace.enabled():
        debug_trace.add("memory_plan", str(plan))
    writer = SourceWriter(spec, plan, hashes, manifest)
    kernels = (*spec.kernels(), runtime_kernel())
    return Sources(writer.source(), kernels, manifest, tuple(spec.launched()), spec.arch)


def make_program(spec: ProgramSpec, records: int | None = None) -> _C.Program | _C.GraphRecorder:
    """Compile a program, or find it compiled.

    Args:
        records: the number of a device whose work is recorded and replayed.

    Raises:
        ValueError: if the spec breaks a rule.
        CompilerError: if there is no compiler that does its work.
    """
    with metrics.timed("generate"):
        sources = write_sources(spec)
    _log(sources)
    constants = list(spec.constants.values())
    for attempt in range(2):
        library = cache.obtain(sources)
        data = {**_describe(spec, library, constants), "records": records}
        try:
            with metrics.timed("load"):
                return _open(library, data, constants)
        except ImportError as error:  # removed by another process since, or not for this machine
            if library.key is not None:
                cache.programs.discard(library.key)
            if library.key is None or attempt:
                why = f"the library that the C compiler made cannot be loaded: {error}"
                raise CompilerError(
                    "IN002", why, "set ARGAND_CC to a gcc or clang for this machine"
                ) from error
    raise AssertionError("unreachable")


def _describe(spec: ProgramSpec, library: Library, constants: list[Any]) -> dict[str, Any]:
    """What `load` makes the program from; its "library" is None where the cache does not hold everything."""
    key = library.key
    stored: list[dict[str, Any]] | None = []
    if constants and key is not None:
        small = sum(t.numel() * t.itemsize for t in constants) <= _CONSTANT_BYTES
        stored = load.store_constants(constants) if small else None
    return {
        "format": load.FORMAT,
        "compiler": load.COMPILER,
        "arch": spec.arch,
        "device_compiler": device_compiler(spec.arch),
        "library": None if stored is None else key,
        "inputs": len(spec.inputs),
        "outputs": len(spec.outputs),
        "constants": stored or [],
    }


def _open(
    library: Library, data: dict[str, Any], constants: list[Any]
) -> _C.Program | _C.GraphRecorder:
    if library.path is not None:
        return load.open_library(os.fspath(library.path), data, constants)
    with build.scratch_folder() as folder:
        path = folder / load.LIBRARY
        path.write_bytes(library.data)
        return load.open_library(os.fspath(path), data, constants)


def _log(sources: Sources) -> None:
    log = logs.channel("output_code")
    if log.isEnabledFor(20):
        launched = "\n".join(kernel.source for kernel in sources.launched)
        log.info("%s\n%s\n%s", sources.program, build.unit_source(sources.kernels[:-1]), launched)
    if debug_trace.enabled():
        code = [(k.name, k.source) for k in sources.kernels[:-1]]
        code += [(k.name, k.source) for k in sources.launched]
        debug_trace.add("output_code", [*code, ("program", sources.program)])
