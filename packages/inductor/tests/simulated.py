"""Programs for a device, run without one: kernels in Triton's interpreter, operators on the CPU."""

from __future__ import annotations

import functools
import pickle
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lowered import trace

import argand_aten as at
import argand_c10 as c10
from argand_inductor.artifact import triton_pool
from argand_inductor.fuse import Limits
from argand_inductor.lowering import lower_graph
from argand_inductor.options import Options
from argand_inductor.program import (
    AliasStep,
    Buf,
    ExternStep,
    LaunchStep,
    Named,
    ProgramSpec,
    ReportStep,
    Sym,
)
from argand_inductor.schedule import compile_to_program

_NUMPY = {"bool": np.uint8, "bfloat16": np.uint16}
SEED = 1234
_NAME = 77  # in the place of the address of an operator's name


def skip_without_triton() -> None:
    """Skip the module's tests where there is no Triton, or not the functions that kernels call."""
    pytest.importorskip("argand_aten_cuda.generated.primitives")
    done = subprocess.run(
        [triton_pool.python(), "-c", "import triton"],
        env=triton_pool.environment(),
        capture_output=True,
        check=False,
    )
    if done.returncode:
        pytest.skip("needs Triton: set ARGAND_TRITON_PYTHON", allow_module_level=True)


@functools.cache
def _child() -> subprocess.Popen[bytes]:
    environment = {**triton_pool.environment(), "TRITON_INTERPRET": "1"}
    return subprocess.Popen(
        [
            triton_pool.python(),
            str(Path(__file__).parent / "triton_child.py"),
            triton_pool.library()[0],
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    )


def interpret(job: dict[str, Any]) -> list[Any]:
    """The arrays after a kernel has run on them."""
    child = _child()
    assert child.stdin is not None and child.stdout is not None
    pickle.dump(job, child.stdin)
    child.stdin.flush()
    status, result = pickle.load(child.stdout)
    assert status == "ok", f"{result}\n{job['source']}"
    return list(result)


def error_record() -> int:
    """The address of the simulated device's error record."""
    return int(interpret({"what": "address", "source": ""})[0])


def reported() -> list[int]:
    """What the error record holds; it is empty afterwards."""
    return [int(n) for n in interpret({"what": "errors", "source": ""})]


def spec_of(
    body: Callable[..., Any],
    inputs: Sequence[c10.Tensor],
    dynamic: Sequence[Sequence[int]] = (),
    devices: Sequence[str] = (),
    limits: Limits | None = None,
    options: Options | None = None,
) -> ProgramSpec:
    """The program for inputs on a device (`devices`: an entry an input)."""
    graph = lower_graph(trace(body, inputs, dynamic, devices or ["cuda:0"] * len(inputs)))
    return compile_to_program(graph, limits, options or Options(arch="sm_90"))


class Simulation:
    """One call of a program. Memory is NumPy's; symbols are bound by the inputs' sizes."""

    def __init__(self, spec: ProgramSpec, inputs: Sequence[c10.Tensor]) -> None:
        self.spec = spec
        self.memory: dict[str, Any] = {}
        self.symbols: dict[str, int] = {}
        self.counter = 0
        self.launches = 0
        self.geometry: dict[str, Any] = dict(spec.buffers)
        for entry, tensor in zip(spec.inputs, inputs, strict=True):
            name = entry.name  # type: ignore[union-attr]
            self.geometry[name] = entry
            for expr, value in zip(entry.sizes, tensor.shape, strict=True):  # type: ignore[union-attr]
                if isinstance(expr, str) and expr.isidentifier():
                    self.symbols[expr] = int(value)
            self.memory[name] = _flat(tensor)
        for name, tensor in spec.constants.items():
            self.memory[name] = _flat(tensor)

    def number(self, expr: int | str) -> int:
        return int(eval(str(expr), {"min": min, "max": max}, self.symbols))

    def run(self) -> list[Any]:
        for step in self.spec.steps:
            if isinstance(step, LaunchStep):
                self.launch(step)
            elif isinstance(step, ExternStep):
                self.extern(step)
            elif isinstance(step, ReportStep):
                self.symbols[step.record], self.symbols[step.name] = error_record(), _NAME
            elif isinstance(step, AliasStep):
                self.memory[step.out] = self.memory[step.source][self.number(step.offset) :]
            else:
                self.reserve(step)
        return [self.tensor(o.name) if isinstance(o, Buf) else o for o in self.spec.outputs]

    def reserve(self, step: Any) -> None:
        assert step.device == "cuda:0"
        self.symbols[step.seed] = SEED
        self.symbols[step.counter] = self.counter
        self.symbols[step.state] = 0
        self.counter += self.number(step.count)

    def allocate(self, name: str) -> None:
        buffer = self.spec.buffers[name]
        n = int(np.prod([self.number(s) for s in buffer.sizes], dtype=np.int64))
        self.memory[name] = np.full(max(n, 1), 77, _NUMPY.get(buffer.dtype, buffer.dtype))

    def launch(self, step: LaunchStep) -> None:
        self.launches += 1
        for name in step.writes:
            if name not in self.memory:
                self.allocate(name)
        pointers = [t for _, t in step.kernel.signature if t.startswith("*")]
        job = {
            "source": step.kernel.source,
            "name": step.kernel.name,
            "constants": step.kernel.constants,
            "arrays": [self.memory[a] for a in step.args],
            "types": pointers,
            "scalars": [self.memory[s.name][self.number(s.offset)].item() for s in step.scalars],
            "sizes": [self.number(s) for s in step.sizes],
            "grid": self.number(step.grid),
        }
        for name, array in zip(step.args, interpret(job), strict=True):
            if name in step.writes:
                self.memory[name] = array

    def tensor(self, name: str) -> c10.Tensor:
        entry = self.geometry[name]
        sizes = [self.number(s) for s in entry.sizes]
        strides = [self.number(s) for s in entry.strides]
        return at.as_strided(_tensor(self.memory[name], entry.dtype), sizes, strides, 0)

    def argument(self, value: Any) -> Any:
        if isinstance(value, Buf):
            return self.tensor(value.name)
        if isinstance(value, Sym):
            return self.number(value.expr)
        if isinstance(value, Named):
            return getattr(c10, value.name) if value.kind == "dtype" else c10.device("cpu")
        return [self.argument(v) for v in value] if isinstance(value, tuple) else value

    def laid_out(self, name: str, result: c10.Tensor) -> c10.Tensor:
        """An operator's result with the strides that the program expects, as the executor brings it there."""
        strides = [self.number(s) for s in self.geometry[name].strides]
        if not result.numel() or list(result.stride()) == strides:
            return result
        return at.empty_strided(list(result.shape), strides, dtype=result.dtype).copy_(result)

    def extern(self, step: ExternStep) -> None:
        from argand_fx.schema import overload, schema_of

        op = overload(step.operator)
        schema = schema_of(op)
        args = [self.argument(a) for a in step.args]
        n = schema.positional
        names = [a.name for a in schema.arguments[n:]]
        results = op(*args[:n], **dict(zip(names, args[n:], strict=True)))
        results = results if isinstance(results, (list, tuple)) else [results]
        for name, result in zip(step.outputs, results, strict=True):
            if isinstance(name, str):
                self.memory[name] = _flat(self.laid_out(name, result))


def _flat(tensor: c10.Tensor) -> Any:
    """The memory of a tensor from its first element on, gaps behind its rows included."""
    n = tensor.untyped_storage().nbytes() // tensor.itemsize - tensor.storage_offset()
    if not tensor.numel():
        return np.zeros(1, _NUMPY.get(_name(tensor), _name(tensor)))
    flat = at.as_strided(tensor, [int(n)], [1], tensor.storage_offset())
    if tensor.dtype is c10.bfloat16:
        return (flat.to(c10.float32).numpy().view(np.uint32) >> 16).astype(np.uint16)
    array = flat.contiguous().numpy().copy()
    return array.view(np.uint8) if array.dtype == np.bool_ else array


def _name(tensor: c10.Tensor) -> str:
    return str(tensor.dtype).rpartition(".")[2]


def _tensor(array: Any, dtype: str) -> c10.Tensor:
    if dtype == "bfloat16":
        wide = (array.astype(np.uint32) << 16).view(np.float32)
        return at.from_numpy(wide).to(c10.bfloat16)
    if dtype == "bool":
        return at.from_numpy(array.view(np.bool_).copy())
    return at.from_numpy(array.copy())


def simulate(body: Callable[..., Any], inputs: Sequence[c10.Tensor], **choices: Any) -> Simulation:
    """A program, run; its results are `results`."""
    simulation = Simulation(spec_of(body, inputs, **choices), inputs)
    simulation.results = simulation.run()  # type: ignore[attr-defined]
    return simulation
