"""How each layer fares on integers: its noise, and its time against float's."""

from __future__ import annotations

import dataclasses
import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from argand_c10 import Module, Tensor, float64
from argand_export import ExportedProgram
from argand_fx import Interpreter, Node
from argand_quant.layer_modules import float_module, quantized_module, quantized_result
from argand_quant.layers import LAYER, layers_of
from argand_quant.lowering import lower_quantized
from argand_quant.prepare import PreparedProgram
from argand_quant.simplify import simplify

__all__ = ["LayerReport", "Limits", "QuantizationReport", "make_report", "warn_of"]

# Of a layer, for its time: runs, and the seconds after which two are enough.
_RUNS, _ENOUGH = 7, 0.5


@dataclasses.dataclass(frozen=True)
class Limits:
    """What `convert_pt2e` warns of.

    Attributes:
        signal_to_noise: a layer's own, in dB, that is still good.
        slowdown: quantized time over float time that is still good.
        least_difference: seconds by which a layer must be slower to be named: times of small layers are mostly those of the calls.
    """

    signal_to_noise: float = 15.0
    slowdown: float = 1.2
    least_difference: float = 50e-6


@dataclasses.dataclass(frozen=True)
class LayerReport:
    """One layer on integers against itself in float, on the first calibration call.

    Attributes:
        name, operator: which layer, and what it computes.
        signal_to_noise: 10 log10(sum float^2 / sum (float - quantized)^2) of its result in dB, when all before it is in float; infinite if equal.
        accumulated_signal_to_noise: the same when all before it is quantized too.
        float_time, quantized_time: seconds of a call, the shortest of several; quantized with integer inputs where it has them.
    """

    name: str
    operator: str
    signal_to_noise: float
    accumulated_signal_to_noise: float
    float_time: float
    quantized_time: float


@dataclasses.dataclass(frozen=True)
class QuantizationReport:
    """All layers of a converted program, the noisiest first. `str` gives a table."""

    layers: tuple[LayerReport, ...]

    def __str__(self) -> str:
        rows = [("layer", "operators", "own dB", "all dB", "float ms", "int8 ms", "ratio")]
        for x in self.layers:
            ratio = x.quantized_time / x.float_time
            noise = (f"{x.signal_to_noise:.1f}", f"{x.accumulated_signal_to_noise:.1f}")
            times = (f"{x.float_time * 1e3:.3f}", f"{x.quantized_time * 1e3:.3f}", f"{ratio:.2f}")
            rows.append((x.name, x.operator, *noise, *times))
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        return "\n".join(
            "  ".join(
                cell.ljust(width) if i < 2 else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in rows
        )


def warn_of(report: QuantizationReport, limits: Limits) -> None:
    """One warning that names all layers beyond the limits."""
    lines = []
    for x in report.layers:
        if x.signal_to_noise < limits.signal_to_noise:
            lines.append(
                f"{x.name}: signal to noise {x.signal_to_noise:.1f} dB, below {limits.signal_to_noise:g}"
            )
        difference = x.quantized_time - x.float_time
        if (
            difference > limits.least_difference
            and x.quantized_time > limits.slowdown * x.float_time
        ):
            lines.append(
                f"{x.name}: {x.quantized_time * 1e3:.3f} ms on integers, {x.float_time * 1e3:.3f} ms in float"
            )
    if lines:
        text = "\n  ".join(lines)
        warnings.warn(
            f"convert_pt2e: layers that may better stay in float (set_module_name_qconfig(name, None)):\n  {text}",
            stacklevel=3,
        )


def make_report(
    prepared: PreparedProgram, converted: ExportedProgram, origins: Mapping[Node, Node]
) -> QuantizationReport:
    """Run each layer alone, in float and on integers, on the program's first calibration call.

    Args:
        prepared: the observed program with its `example`.
        converted: the same with quantize and dequantize nodes, whose layers carry their names in `meta["quantized_layer"]`.
        origins: converted nodes to the prepared ones whose values they have.
    """
    values = _values(prepared.program, prepared.example, lambda node: True)
    floats = {new: values[old] for new, old in origins.items()}
    nodes: dict[str, list[Node]] = {}
    for node in converted.graph.nodes:
        if LAYER in node.meta and node.users:
            nodes.setdefault(node.meta[LAYER], []).append(node)
    results = {group[-1] for group in nodes.values()}
    quantized = _values(converted, prepared.example, results.__contains__)
    reports = []
    for layer in layers_of(prepared.program.graph_module):
        group = nodes[layer.name]
        expected = floats[group[-1]]
        module, inputs = quantized_module(
            converted.graph_module, group, floats, converted.state_dict
        )
        simplify(module)
        lower_quantized(module)
        own = signal_to_noise(expected, quantized_result(group[-1], module(*inputs)[0]))
        times = _times((float_module(group, floats), (module, inputs)))
        total = signal_to_noise(expected, quantized[group[-1]])
        reports.append(LayerReport(layer.name, layer.operator, own, total, *times))
    return QuantizationReport(tuple(sorted(reports, key=lambda x: x.signal_to_noise)))


def _times(calls: Sequence[tuple[Module, list[Tensor]]]) -> list[float]:
    """Seconds of each, the shortest of several runs that take turns."""
    best = [math.inf] * len(calls)
    begin = time.perf_counter()
    for run in range(_RUNS + 1):
        if run > 2 and time.perf_counter() - begin > _ENOUGH:
            break
        for i, (module, inputs) in enumerate(calls):
            start = time.perf_counter()
            module(*inputs)
            if run:  # the first warms up
                best[i] = min(best[i], time.perf_counter() - start)
    return best


def signal_to_noise(expected: Tensor, got: Tensor) -> float:
    """In dB; infinite where both are equal, and minus infinity where noise is all there is or not finite."""
    expected, got = expected.to(float64), got.to(float64)  # whose squares do not overflow
    noise = float(((expected - got) ** 2).sum())
    signal = float((expected**2).sum())
    if noise == 0:
        return math.inf
    ratio = signal / noise
    return 10 * math.log10(ratio) if ratio > 0 else -math.inf


class _Recorder(Interpreter):
    """Runs a graph, observers aside, and keeps the values that are asked for."""

    def __init__(self, module: Module, keep: Callable[[Node], bool]) -> None:
        super().__init__(module)
        self.keep = keep
        self.kept: dict[Node, Any] = {}

    def run_node(self, n: Node) -> Any:
        value = super().run_node(n)
        if self.keep(n):
            self.kept[n] = value
        return value

    def call_module(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return args[0]


def _values(
    program: ExportedProgram, example: Any, keep: Callable[[Node], bool]
) -> dict[Node, Any]:
    """Values of nodes in a run of a program."""
    by_name = {**program.state_dict, **{f"constant:{n}": c for n, c in program.constants.items()}}
    leaves = program.check_inputs(*example)
    recorder = _Recorder(program.graph_module, keep)
    recorder.run(*program.graph_inputs(by_name, leaves))
    return recorder.kept
