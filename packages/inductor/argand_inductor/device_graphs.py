"""Recorded device graphs ("CUDA graphs"): which programs can be replayed as one, and the callable that does it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from argand_c10 import Operator
from argand_c10.records import Record, emit
from argand_c10.rules import rules_of
from argand_inductor import _C
from argand_inductor.artifact.texts import device_number
from argand_inductor.program import (
    ExternStep,
    KernelStep,
    LaunchStep,
    ProgramSpec,
    RandomStep,
    SymbolSpec,
)

_FIX = "compile the part of the function that runs on one device by itself, or use mode='default'"


def obstacle_of_program(spec: ProgramSpec) -> str:
    """Why a program cannot be replayed; "" if it can."""
    devices = {entry.device for entry in spec.inputs if not isinstance(entry, SymbolSpec)}
    devices |= {buffer.device for buffer in spec.buffers.values()}
    devices |= {str(tensor.device) for tensor in spec.constants.values()}
    for step in spec.steps:
        if isinstance(step, RandomStep) and not step.device.startswith("cuda"):
            return "it draws random numbers of the host"
        if isinstance(step, KernelStep) or (isinstance(step, LaunchStep) and step.scalars):
            return "it reads tensors of the host"
        if isinstance(step, ExternStep) and _works_on_host(step.operator):
            return f"{step.operator} works on the host too"
    return _obstacle_of_devices(devices)


def _works_on_host(operator: str) -> bool:
    rules = rules_of(operator)
    return rules is not None and rules.host_work


def obstacle_of_graph(gm: Any) -> str:
    """Why a graph that runs operator by operator cannot be replayed; "" if it can."""
    devices: set[str] = set()
    for node in gm.graph.nodes:
        if isinstance(node.target, Operator) and _works_on_host(node.target.name):
            return f"{node.target.name} works on the host too"
        value = node.meta.get("val")
        for fake in value if isinstance(value, (list, tuple)) else (value,):
            if hasattr(fake, "storage_offset"):
                devices.add(str(fake.device))
    return _obstacle_of_devices(devices)


def _obstacle_of_devices(devices: set[str]) -> str:
    if len(devices) != 1:
        return f"it has tensors on {', '.join(sorted(devices)) or 'no device'}"
    (device,) = devices
    return "" if device.startswith("cuda") else f"its tensors are on {device}"


def device_of(spec: ProgramSpec) -> int:
    """The number of the one device that a program without obstacles uses."""
    names = [entry.device for entry in spec.inputs if not isinstance(entry, SymbolSpec)]
    names += [buffer.device for buffer in spec.buffers.values()]
    return device_number(names[0])


def recorded(
    callable: Callable[..., Any], device: int, file: str | None = None, line: int = 0
) -> _C.GraphRecorder:
    """The callable, recorded at its second call with inputs of one kind and replayed from then on."""
    return _C.GraphRecorder(callable, device, functools.partial(note, file, line))


def note(file: str | None, line: int, reason: str) -> None:
    """Say why a graph is not replayed."""
    message = f"a graph is not recorded for the device: {reason}"
    emit(Record("perf_hint", "IN012", message, _FIX, file, line))
