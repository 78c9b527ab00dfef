"""Tries several shapes of each kernel of a device and keeps the fastest; what was found is kept on disk, by kernel and device."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from argand_c10 import logs, metrics
from argand_c10.agreement import decide
from argand_c10.disk_cache import DiskCache
from argand_inductor import _C
from argand_inductor.artifact import triton_pool
from argand_inductor.artifact.errors import CompilerError
from argand_inductor.artifact.texts import device_number
from argand_inductor.memory_plan import ITEM_SIZE
from argand_inductor.options import Options
from argand_inductor.program import Expr, LaunchStep, ProgramSpec, RandomStep, ReportStep

choices = DiskCache("inductor-autotune")
# Memory that a kernel's operands may take while it is tried.
_MOST_BYTES = 8 << 30


def autotuned(spec: ProgramSpec, options: Options) -> ProgramSpec:
    """The program with the fastest of the shapes that its launches allow; sizes that are symbols are not tried."""
    if not options.autotunes or not any(isinstance(s, LaunchStep) and s.others for s in spec.steps):
        return spec
    with metrics.timed("autotune"):
        chosen: dict[str, int] = {}
        steps = [_best(spec, s, chosen) if isinstance(s, LaunchStep) else s for s in spec.steps]
    return replace(spec, steps=tuple(steps))


def _best(spec: ProgramSpec, step: LaunchStep, chosen: dict[str, int]) -> LaunchStep:
    """The step with the shape that is best for its kernel; each has an order of operands of its own."""
    if not step.others:
        return step
    ways = [replace(step, others=()), *step.others]
    name = step.kernel.name
    if name not in chosen:
        key = _key(spec, ways)
        chosen[name] = int(decide(f"autotune/{key}", lambda: _choose(spec, ways, key)))
    return ways[chosen[name]]


def _choose(spec: ProgramSpec, ways: Sequence[LaunchStep], key: str) -> int:
    entry = choices.get(key)
    return int(entry.manifest["best"]) if entry is not None else _try(spec, ways, key)


def _key(spec: ProgramSpec, ways: Sequence[LaunchStep]) -> str:
    device = _C.device_name(device_number(ways[0].device))
    text = repr((device, [triton_pool.key_of(way.kernel, spec.arch) for way in ways]))
    return hashlib.sha256(text.encode()).hexdigest()[:40]


def _try(spec: ProgramSpec, ways: Sequence[LaunchStep], key: str) -> int:
    """Measure each way on memory of its own; the first one where that is not possible."""
    if _operand_bytes(spec, ways[0]) is None:
        return 0
    times: list[float] = []
    for way, image in zip(ways, _images(spec, ways), strict=True):
        sizes, integers = _operand_bytes(spec, way), _integers(spec, way)
        if image is None or sizes is None or integers is None or not isinstance(way.grid, int):
            times.append(float("inf"))
            continue
        metrics.count("kernels_tried")
        times.append(_measured(way, image, sizes, integers))
    best = min(range(len(times)), key=times.__getitem__)
    if times[best] == float("inf"):
        return 0
    logs.channel("perf_hints").info(
        "autotuned %s: %s us, the first one %s us", ways[best].kernel.name, times[best], times[0]
    )
    choices.put(key, {}, {"best": best, "microseconds": times})
    return best


def _measured(
    way: LaunchStep, image: triton_pool.Image, sizes: list[int], integers: list[int]
) -> float:
    """Microseconds; infinite where the device refuses the kernel or has no memory for its operands."""
    device = device_number(way.device)
    launch = (image.shared, image.threads, int(way.grid), sizes, integers)
    try:
        return _C.measure_kernel(device, image.data, way.kernel.name, *launch)
    except RuntimeError as error:
        logs.channel("perf_hints").info("%s was not measured: %s", way.kernel.name, error)
        return float("inf")


def _images(spec: ProgramSpec, ways: Sequence[LaunchStep]) -> list[triton_pool.Image | None]:
    """The ways' device code; None where one cannot be compiled (too much shared memory)."""
    try:
        found = triton_pool.compile_kernels([way.kernel for way in ways], spec.arch)
        return [found[way.kernel.name] for way in ways]
    except CompilerError:
        made: list[triton_pool.Image | None] = []
        for way in ways:
            try:
                made.append(triton_pool.compile_kernels([way.kernel], spec.arch)[way.kernel.name])
            except CompilerError:
                made.append(None)
        return made


def _integers(spec: ProgramSpec, step: LaunchStep) -> list[int] | None:
    """What the kernel gets behind its operands: numbers of the host, seeds and addresses of records are 0; None where sizes are symbols."""
    absent: set[Expr] = set()
    for other in spec.steps:
        if isinstance(other, RandomStep):
            absent |= {other.seed, other.counter, other.state}
        elif isinstance(other, ReportStep):
            absent |= {other.record, other.name}
    if not all(isinstance(s, int) or s in absent for s in step.sizes):
        return None
    return [0] * len(step.scalars) + [s if isinstance(s, int) else 0 for s in step.sizes]


def _operand_bytes(spec: ProgramSpec, step: LaunchStep) -> list[int] | None:
    """Bytes of each operand, None where they are not known."""
    inputs: dict[str, Any] = {getattr(entry, "name", ""): entry for entry in spec.inputs}
    found = []
    for name in step.args:
        entry = spec.buffers.get(name) or inputs.get(name)
        if entry is None:
            return None
        extent = _extent(entry.sizes, entry.strides)
        if extent is None:
            return None
        found.append(extent * ITEM_SIZE[entry.dtype])
    return found if sum(found) <= _MOST_BYTES else None


def _extent(sizes: Sequence[Expr], strides: Sequence[Expr]) -> int | None:
    """Elements from the first to behind the last one, and what lies behind a last row as behind the others, which kernels read and write too."""
    last, rows = 0, 0
    for size, stride in zip(sizes, strides, strict=True):
        if not isinstance(size, int) or not isinstance(stride, int):
            return None
        last += (size - 1) * stride
        rows = max(rows, size * stride)
    return max(last + 1, rows, 1)
