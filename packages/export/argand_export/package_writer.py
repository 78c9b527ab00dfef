"""From an exported program to a package: compiled, with weights and sources, in one file."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import argand_c10 as c10
from argand_export.constraints import check_later
from argand_export.files import packed, tensors_to_bytes, write_at_once
from argand_export.operator_libraries import needed
from argand_export.packaged import MANIFEST, SOURCE
from argand_export.plain import to_plain
from argand_export.program import ExportedProgram
from argand_export.signature import InputKind, OutputKind
from argand_fx.shapes import SymInt
from argand_inductor.artifact import cache
from argand_inductor.artifact.make import write_sources
from argand_inductor.graph_compiler import graph_to_spec
from argand_inductor.options import Options
from argand_inductor.program import call_of

__all__ = ["package"]

FORMAT = "argand-package"
VERSION = 1
_WEIGHTS, _CONSTANTS = "weights.safetensors", "constants.safetensors"
_KINDS = {
    InputKind.PARAMETER: "parameter",
    InputKind.BUFFER: "buffer",
    InputKind.CONSTANT_TENSOR: "constant",
    InputKind.USER_INPUT: "input",
}


def package(
    program: ExportedProgram,
    path: str | os.PathLike[str],
    *,
    options: Mapping[str, Any] | None = None,
    tiers: Sequence[int] | None = None,
) -> str:
    """Compile a program ahead of time into one file, which `load_package` and C programs (`argand_package.h`) run.

    The file is a zip: a JSON manifest with the hashes of all else, a shared library for each tier, the C source that they are made from, and
    parameters, buffers and constants as safetensors. It is written at once, or not at all.

    Args:
        program: what `export` or `load` gave, with all tensors on the CPU.
        path: by convention with the ending .ag2p.
        options: of the compiler, see `argand_inductor.options.Options`.
        tiers: the processors that it is for: 0 SSE4.2, 1 AVX2, 2 AVX-512; by default the tier of this process. The highest
            that a processor has is run there. Elementwise results equal eager's bit for bit where it is the tier of eager's kernels.

    Returns:
        The package's digest: `load_package(path, digest=...)` opens no other.

    Raises:
        TypeError, ValueError: the program has what a package cannot hold; the message names it.
        ConstraintViolationError: the compiler needs sizes that dynamic_shapes does not promise.
        CompilerError: there is no C compiler, or it fails.
    """
    wanted = tuple(tiers) if tiers is not None else (c10.cpu.tier(),)
    if not wanted or any(t not in (0, 1, 2) for t in wanted):
        raise ValueError(f"package: got tiers={tiers!r}, expected numbers of 0, 1 and 2")
    inputs = _inputs(program)
    spec = _compiled(program, Options.of(options))
    constants = {**program.constants, **{f"graph:{n}": t for n, t in spec.constants.items()}}
    inputs += [_input("constant", f"graph:{n}", t, []) for n, t in spec.constants.items()]
    files: dict[str, bytes] = {}
    for tier in sorted(set(wanted)):
        sources = write_sources(spec, tier)
        files[_library(tier)] = cache.obtain(sources, tier).content()
        kept = {SOURCE + name: data for name, data in cache.source_files(sources).items()}
    files |= kept
    files[_WEIGHTS] = tensors_to_bytes(program.state_dict)
    files[_CONSTANTS] = tensors_to_bytes(constants)
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "abi": c10.ABI_VERSION,
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
        "operator_libraries": needed(
            {c.operator for c in map(call_of, spec.steps) if c is not None}
        ),
        "libraries": {str(tier): _library(tier) for tier in sorted(set(wanted))},
        "dimensions": [
            {"name": n, "low": r.low, "high": r.high} for n, r in program.range_constraints.items()
        ],
        "inputs": inputs,
        **_results(program),
        "arguments": _arguments(program),
        "in_tree": program.call_spec.in_tree,
        "out_tree": program.call_spec.out_tree,
        "program": sources.manifest,
    }
    text = json.dumps(manifest, indent=1).encode()
    write_at_once(Path(path), packed({MANIFEST: text, **files}))
    return hashlib.sha256(text).hexdigest()


def _compiled(program: ExportedProgram, options: Options) -> Any:
    """The compiler's work for all sizes that the program takes."""
    sizes = [
        size
        for node in program.graph.nodes
        for size in (node.meta["val"].shape if node.op == "placeholder" else ())
        if isinstance(size, SymInt)
    ]
    env = sizes[0].env if sizes else None
    known = set(map(id, env.guards)) if env is not None else set()
    spec = graph_to_spec(program.graph_module, options)
    later = [] if env is None else [g for g in env.guards if id(g) not in known]
    check_later(later, program.symbols, program.range_constraints)
    return spec


def _library(tier: int) -> str:
    return f"program.tier{tier}.so"


def _inputs(program: ExportedProgram) -> list[dict[str, Any]]:
    """What the library takes: the graph's inputs, in its order."""
    placeholders = {n.name: n.meta["val"] for n in program.graph.nodes if n.op == "placeholder"}
    dimensions = list(program.range_constraints)
    relations = program.call_spec.relations
    found, leaf = [], -1
    for spec in program.graph_signature.input_specs:
        leaf += spec.kind is InputKind.USER_INPUT
        if spec.arg is None:
            continue
        fake = placeholders[spec.arg]
        sizes: list[Any] = list(fake.shape)
        if spec.kind is InputKind.USER_INPUT:
            for d in range(len(sizes)):
                if (r := relations.get((leaf, d))) is not None:
                    sizes[d] = [dimensions.index(r.name), r.factor, r.offset]
        name = spec.arg if spec.target is None else spec.target
        found.append(_input(_KINDS[spec.kind], name, fake, sizes))
    return found


def _input(kind: str, name: str, like: Any, sizes: list[Any]) -> dict[str, Any]:
    if like.device.type != "cpu":
        raise ValueError(
            f"package: got {name!r} on {like.device}, expected the CPU; export the module on the CPU"
        )
    return {
        "kind": kind,
        "name": name,
        "dtype": like.dtype.name,
        "sizes": sizes or [int(s) for s in like.shape],
        "order": _order(name, like),
    }


def _order(name: str, like: Any) -> list[int]:
    """The dimensions of a dense tensor, the one with the largest stride first."""
    sizes, strides = list(like.shape), list(like.stride())
    hints = [int(getattr(s, "hint", s)) for s in strides]
    order = sorted(range(len(sizes)), key=lambda d: -hints[d])
    # A size of 1 has any stride, and stands where its index does.
    ones = [d for d in order if type(sizes[d]) is int and sizes[d] == 1]
    order = [d for d in order if d not in ones]
    for d in ones:
        order.insert(next((k for k, x in enumerate(order) if x > d), len(order)), d)
    step: Any = 1
    for d in reversed(order):
        if d not in ones and (strides[d] == step) is not True and 0 not in sizes:
            raise ValueError(
                f"package: got {name!r} of sizes {sizes} with strides {strides}, expected a tensor without gaps; export with {name}.contiguous()"
            )
        step = step * sizes[d]
    return order


def _results(program: ExportedProgram) -> dict[str, Any]:
    """What the library gives: numbers of the inputs that take a result as content, -1 for the caller's; and what the caller gets."""
    signature = program.graph_signature
    inputs = [s for s in signature.input_specs if s.arg is not None]
    places = {s.arg: i for i, s in enumerate(inputs)}
    buffers = {s.target: i for i, s in enumerate(inputs) if s.kind is InputKind.BUFFER}
    results: list[int] = []
    outputs: list[dict[str, Any]] = []
    for spec in signature.output_specs:
        if spec.kind is OutputKind.USER_OUTPUT:
            number = -1 if spec.arg is None else len(results)
            outputs.append({"result": number, "value": to_plain(spec.value)})
            if spec.arg is not None:
                results.append(-1)
        elif spec.kind is OutputKind.BUFFER_MUTATION:
            results.append(buffers[spec.target])
        else:
            results.append(places[spec.target])
    return {"results": results, "outputs": outputs}


def _arguments(program: ExportedProgram) -> list[Any]:
    """Of each argument: None for a tensor, [value] for what is part of the program."""
    specs = [s for s in program.graph_signature.input_specs if s.kind is InputKind.USER_INPUT]
    return [None if s.arg is not None else [to_plain(s.value)] for s in specs]
