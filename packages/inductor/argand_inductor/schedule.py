"""Order of execution, and the program: groups become kernels, calls stay calls, views become aliases where somebody needs a tensor."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import argand_c10.logs as logs
from argand_c10 import debug_trace
from argand_inductor import _C
from argand_inductor import sizes as sz
from argand_inductor.artifact.texts import device_number
from argand_inductor.codegen.backend import Backend, backend_class
from argand_inductor.fuse import Fuser, Group, Limits
from argand_inductor.fuse_epilogues import Epilogue, fuse_epilogues
from argand_inductor.loop_ir import Loop, random_words
from argand_inductor.lowering.graph import ExternCall, LoweredGraph, Reservation
from argand_inductor.lowering.tensors import TensorRef
from argand_inductor.options import Options
from argand_inductor.program import (
    AliasStep,
    Buf,
    BufferSpec,
    EpilogueStep,
    ExternStep,
    KernelStep,
    LaunchStep,
    ProgramSpec,
    RandomStep,
    ReportStep,
    Step,
    Sym,
    call_of,
    kernel_of,
)

Unit = Group | ExternCall | Reservation | Epilogue


@dataclass(slots=True)
class Schedule:
    """Units in the order of execution."""

    units: list[Unit]
    live: set[str] = field(default_factory=set)

    def __str__(self) -> str:
        return "\n".join(_text(unit) for unit in self.units)


def _text(unit: Unit) -> str:
    if isinstance(unit, Group):
        space = ", ".join(
            f"{'+' if r else ''}{sz.text(s)}" for s, r in zip(unit.sizes, unit.reduced, strict=True)
        )
        members = [f"{m.loop.name} ({'.'.join(m.loop.operators)})" for m in unit.members]
        return f"kernel over [{space}]: {', '.join(members)}"
    if isinstance(unit, Epilogue):
        return f"{_text(unit.call)}, on its parts {_text(unit.group)}"
    if isinstance(unit, Reservation):
        return f"reserve {sz.text(unit.count)} counters"
    return f"call {unit.operator} -> {unit.outputs}"


def _output_names(outputs: tuple[Any, ...]) -> list[str]:
    names: list[str] = []
    for o in outputs:
        names += [o] if isinstance(o, str) else [n for n in o or () if n is not None]
    return names


def schedule(graph: LoweredGraph, limits: Limits | None = None) -> Schedule:
    """Fuse the loops of a lowered graph and order what results; loops whose buffers nobody reads are dropped."""
    used: set[str] = {o.buffer for o in graph.outputs if isinstance(o, TensorRef)}
    kept: list[Loop | ExternCall | Reservation] = []
    for item in reversed(graph.items):
        if isinstance(item, Loop):
            if item.name not in used:
                continue
            used |= {a.buffer for a in item.reads}
        elif isinstance(item, ExternCall):
            used |= set(item.reads())
        kept.append(item)
    kept.reverse()
    fuser = Fuser(graph.hints, limits)
    calls: dict[int, ExternCall | Reservation] = {}
    for item in kept:
        if isinstance(item, Loop):
            fuser.add_loop(item)
        elif isinstance(item, Reservation):
            words = random_words(item.seed, item.counter, item.state)
            calls[fuser.add_call([], [words], [], ordered=True)] = item
        else:
            names = _output_names(item.outputs)
            calls[fuser.add_call(item.reads(), names, item.writes, item.ordered)] = item
    epilogues = fuse_epilogues(fuser, calls, graph.buffers)
    units: list[Unit] = [
        fuser.groups.get(i) or epilogues.get(i) or calls[i] for i in _topological(fuser)
    ]
    return Schedule(units, live_buffers(graph, units))


def _topological(fuser: Fuser) -> list[int]:
    """Units after what they depend on, otherwise in program order."""
    waiting: dict[int, set[int]] = {i: set() for i in fuser.ancestors}
    for i, users in fuser.users.items():
        for user in users:
            waiting[user].add(i)
    ready = [i for i, above in waiting.items() if not above]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        i = heapq.heappop(ready)
        order.append(i)
        for user in fuser.users[i]:
            waiting[user].discard(i)
            if not waiting[user]:
                heapq.heappush(ready, user)
    assert len(order) == len(waiting), "units depend on one another in a circle"
    return order


def live_buffers(graph: LoweredGraph, units: Sequence[Unit]) -> set[str]:
    """Buffers that have to be in memory: outputs, and what another unit reads."""
    live = {o.buffer for o in graph.outputs if isinstance(o, TensorRef)}
    for unit in units:
        if isinstance(unit, ExternCall):
            live |= set(unit.reads())
        elif isinstance(unit, Group):
            live |= set(unit.external_reads())
        elif isinstance(unit, Epilogue):
            live |= {*unit.call.reads(), *unit.group.external_reads()}
    return live


class StepWriter:
    """Turns a schedule into the program's steps; each device's groups by its own generator."""

    def __init__(self, graph: LoweredGraph, plan: Schedule, options: Options) -> None:
        self.graph, self.plan, self.options = graph, plan, options
        self.generators: dict[str, Backend] = {}
        self.steps: list[Step] = []
        self.specs: dict[str, BufferSpec] = {}
        self.aliases: dict[TensorRef, str] = {}
        self.given = {spec.name for spec in graph.inputs if hasattr(spec, "name")} | set(
            graph.constants
        )

    def buffer(self, name: str) -> None:
        b = self.graph.buffers[name]
        if name not in self.given:
            self.specs[name] = BufferSpec(b.dtype, _texts(b.sizes), _texts(b.strides), b.device)

    def tensor(self, ref: TensorRef) -> Buf:
        """A tensor with a reference's geometry."""
        whole = self.graph.buffers[ref.buffer]
        if whole.is_whole(ref):
            return Buf(ref.buffer)
        if ref not in self.aliases:
            name = f"v{len(self.aliases)}_{ref.buffer}"
            self.aliases[ref] = name
            self.specs[name] = BufferSpec(
                ref.dtype, _texts(ref.sizes), _texts(ref.strides), whole.device
            )
            self.steps.append(AliasStep(name, ref.buffer, sz.text(ref.offset)))
        return Buf(self.aliases[ref])

    def argument(self, value: Any) -> Any:
        if isinstance(value, TensorRef):
            return self.tensor(value)
        if isinstance(value, tuple):
            return tuple(self.argument(v) for v in value)
        return Sym(sz.text(value)) if isinstance(value, sz.Poly) else value

    def generator(self, device: str) -> Backend:
        """The code generator of a device."""
        if device not in self.generators:
            made = backend_class(device)
            assert made is not None, "loops are made for devices with a generator"
            self.generators[device] = made(
                self.graph.buffers, self.plan.live, self.graph.hints, self.options
            )
        return self.generators[device]

    def write(self) -> ProgramSpec:
        for device, check in self.graph.checks:
            self.steps.append(ReportStep(check.record, check.name, check.operator, device))
        for unit in self.plan.units:
            if isinstance(unit, Group):
                self.steps.append(self.kernel(unit))
            elif isinstance(unit, Epilogue):
                self.steps.append(self.epilogue(unit))
            elif isinstance(unit, Reservation):
                count = sz.text(unit.count)
                self.steps.append(
                    RandomStep(
                        unit.seed, unit.counter, count, unit.device, unit.state, unit.location
                    )
                )
            else:
                self.steps.append(self.call(unit))
        outputs = tuple(self.argument(o) for o in self.graph.outputs)
        return ProgramSpec(
            tuple(self.graph.inputs),
            outputs,
            tuple(self.steps),
            self.specs,
            dict(self.graph.constants),
            self.arch(),
        )

    def arch(self) -> str:
        """What the kernels of devices are compiled for."""
        devices = {step.device for step in self.steps if isinstance(step, LaunchStep)}
        if not devices:
            return ""
        found = {self.options.arch or _C.device_arch(device_number(d)) for d in devices}
        if len(found) > 1:
            raise RuntimeError(
                f"inductor: got a graph over devices of the architectures {sorted(found)}, expected one; "
                "compile the parts for each as functions of their own"
            )
        return found.pop()

    def kernel(self, group: Group) -> KernelStep | LaunchStep:
        step = self.generator(group.device).step(group)
        for name in step.writes:
            self.buffer(name)
        return step

    def call(self, unit: ExternCall) -> ExternStep:
        args = tuple(self.argument(a) for a in unit.args)
        for name in _output_names(unit.outputs):
            self.buffer(name)
        writes = tuple(dict.fromkeys(self.changed(unit, name) for name in unit.writes))
        return ExternStep(unit.operator, args, unit.outputs, writes, unit.location)

    def epilogue(self, unit: Epilogue) -> EpilogueStep:
        """The kernel writes while the call still reads: a result may not lie where an operand does, nor where parts come and go."""
        call = self.call(unit.call)
        kernel = self.kernel(unit.group)
        assert isinstance(kernel, KernelStep), "epilogues are the CPU's"
        read = {*unit.call.reads(), unit.result}
        kernel = replace(kernel, reuse=tuple(p for p in kernel.reuse if p[1] not in read))
        row, units = sz.text(unit.row), sz.text(unit.units)
        return EpilogueStep(call, kernel, row, units, kernel.location or call.location)

    def changed(self, unit: ExternCall, buffer: str) -> str:
        """The name under which a call changes a buffer: the buffer's, or that of the view it is given."""
        for value in unit.args:
            if isinstance(value, TensorRef) and value.buffer == buffer:
                return self.tensor(value).name
        return buffer


def _texts(sizes: tuple[sz.Size, ...]) -> tuple[int | str, ...]:
    return tuple(sz.text(s) for s in sizes)


def compile_to_program(
    graph: LoweredGraph, limits: Limits | None = None, options: Options | None = None
) -> ProgramSpec:
    """The program of a lowered graph."""
    logs.channel("loop_ir").info("%s", graph)
    options = options or Options()
    plan = schedule(graph, limits or options.limits())
    logs.channel("fusion").info("%s", plan)
    spec = StepWriter(graph, plan, options).write()
    steps = logs.channel("schedule")
    if steps.isEnabledFor(20):
        for number, (name, computed, _) in enumerate(_describe(plan.units, spec)):
            steps.info("step %d, %s: %s", number, name, ", ".join(computed))
    if debug_trace.enabled():
        debug_trace.add("loop_ir", str(graph))
        debug_trace.add("schedule", _describe(plan.units, spec))
    return spec


def _describe(
    units: Sequence[Unit], spec: ProgramSpec
) -> list[tuple[str, list[str], list[tuple[str, int]]]]:
    """What each step computes and for which of the user's lines."""
    found = []
    steps = [s for s in spec.steps if not isinstance(s, AliasStep | ReportStep)]
    for unit, step in zip(units, steps, strict=True):
        group = unit.group if isinstance(unit, Epilogue) else unit
        loops = [m.loop for m in group.members] if isinstance(group, Group) else []
        call, kernel = call_of(step), kernel_of(step)
        names = [kernel.kernel.name] if kernel is not None else []
        operators = [o for loop in loops for o in loop.operators]
        if call is not None:
            names.insert(0, f"call of {call.operator}")
            operators.insert(0, call.operator)
        name = ", on its parts ".join(names) or "call of random numbers"
        locations = [step.location, call and call.location, *(loop.location for loop in loops)]
        places = {(at[0], at[1]) for at in locations if at}
        found.append((name, operators or ["random numbers"], sorted(places)))
    return found
