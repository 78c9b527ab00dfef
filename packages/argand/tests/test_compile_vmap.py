"""`vmap` of the registry's sample calls, and of their derivatives, gives compiled what it gives plain.

ARGAND_VMAP_EVERY=1 compares every operator; by default it is one in so many.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import compile_harness as harness
import pytest

import argand as torch
import tools.codegen
from argand.func import grad, jacfwd, jacrev, vmap
from tools.codegen import emit_tests, loader
from tools.codegen.runtime import optest, optest_calls, under_test

REGISTRY = Path(tools.codegen.__file__).absolute().parents[2] / "packages/aten/registry"
EVERY = int(os.environ.get("ARGAND_VMAP_EVERY", "6"))


def cases() -> list[optest_calls.Case]:
    """Of operators with samples that draw no random numbers and whose results are defined."""
    registry = loader.load([str(REGISTRY)])
    found = [
        optest_calls.Case(**emit_tests.facts(op))
        for family in registry.families
        for op in emit_tests.tested(registry, family)
        if "all" not in op.skips and not op.is_inplace
    ]
    undefined = "the contents are not defined"
    return [
        case
        for case in found
        if not case.random and case.kind != "factory" and undefined not in case.skips.values()
    ]


CASES = cases()


@dataclass(frozen=True)
class Slot:
    """The place of a tensor among the arguments of a call."""

    number: int


def filled(x: Any, tensors: tuple[torch.Tensor, ...]) -> Any:
    if isinstance(x, Slot):
        return tensors[x.number]
    return [filled(item, tensors) for item in x] if isinstance(x, list) else x


@dataclass
class Program:
    """A sample call as a function of its tensors, with a batch of two for each."""

    op: Callable[..., Any]
    call: optest_calls.Call
    batch: list[torch.Tensor] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.call = optest_calls.with_tensors(self.call, self._take)

    def _take(self, value: optest_calls.Value) -> Slot:
        x = under_test.make(value.array, value.dtype)
        self.batch.append(torch.stack([x, x.flip(list(range(x.ndim)))]))
        return Slot(len(self.batch) - 1)

    def __call__(self, *tensors: torch.Tensor) -> Any:
        args = [filled(x, tensors) for x in self.call.args]
        return self.op(*args, **{k: filled(x, tensors) for k, x in self.call.kwargs.items()})

    def total(self, *tensors: torch.Tensor) -> torch.Tensor:
        """A number to take gradients of."""
        results = self(*tensors)
        several = results if isinstance(results, (list, tuple)) else [results]
        return sum((r * r).sum() for r in several if r.is_floating_point())  # type: ignore[return-value]

    def floating(self) -> tuple[int, ...]:
        return tuple(i for i, x in enumerate(self.batch) if x.is_floating_point())


def programs(case: optest_calls.Case) -> Iterator[Program]:
    dtype = optest._first(case, "float32", "float64", "int64", "bool")[0]
    op = optest.operator(case)
    for call in optest_calls.sample_calls(case, dtype):
        program = Program(op, call)
        if program.batch:
            yield program


def outcome(f: Callable[..., Any], batch: list[torch.Tensor]) -> Any:
    try:
        return f(*batch)
    except Exception as error:  # what a program raises is part of what it does
        return type(error)


def check(
    f: Callable[..., Any],
    batch: list[torch.Tensor],
    backend: str,
    where: str,
    tolerance: float | None = None,
) -> None:
    torch.compiler.reset()
    want = outcome(f, batch)
    got = outcome(torch.compile(f, backend=backend), batch)
    if isinstance(want, type) or isinstance(got, type):
        assert got is want, f"{where}: got {got}, expected {want}"
        return
    harness.compare(want, got, where, tolerance if backend != "inductor" else 1e-4)


@pytest.mark.parametrize("case", CASES[::EVERY], ids=lambda case: case.name)
def test_operators_and_gradients(case: optest_calls.Case) -> None:
    for program in programs(case):
        check(vmap(program), program.batch, "aot_eager", case.name)
        wanted = program.floating()
        if case.differentiable and wanted:
            derived = vmap(grad(program.total, argnums=wanted))
            # The engine may add a batch's gradients in another order.
            check(derived, program.batch, "aot_eager", f"gradient of {case.name}", 1e-5)


@pytest.mark.parametrize("case", CASES[:: EVERY * 8], ids=lambda case: case.name)
def test_loops_and_jacobians(case: optest_calls.Case) -> None:
    for program in list(programs(case))[:1]:
        check(vmap(program), program.batch, "inductor", case.name)
        wanted = program.floating()
        if case.differentiable and wanted:
            for derive in (grad, jacrev, jacfwd):
                derived = vmap(derive(program.total, argnums=wanted))
                backend = "inductor" if derive is grad else "aot_eager"
                # The engine adds the gradients of their results in another order, which lie otherwise.
                unordered = ("triangular_solve", "lstm_layer", "gru_layer", "rnn_layer")
                tolerance = 1e-5 if any(name in case.name for name in unordered) else None
                where = f"{derive.__name__} of {case.name}"
                check(derived, program.batch, backend, where, tolerance)


def test_most_samples_are_compared() -> None:
    """The programs above do not all raise."""
    found = [
        isinstance(outcome(vmap(program), program.batch), type)
        for case in CASES[::EVERY]
        for program in list(programs(case))[:1]
    ]
    assert len(found) > 100 and sum(found) < len(found) / 10


@pytest.fixture(autouse=True)
def fresh_compiler() -> Any:
    yield
    torch.compiler.reset()
