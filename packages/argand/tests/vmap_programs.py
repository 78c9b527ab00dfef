"""The registry's sample calls as functions of their tensors, with a batch of two for each, for tests of `vmap`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import argand as torch
import tools.codegen
from tools.codegen import emit_tests, loader
from tools.codegen.runtime import optest, optest_calls, under_test

REGISTRY = Path(tools.codegen.__file__).absolute().parents[2] / "packages/aten/registry"


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
