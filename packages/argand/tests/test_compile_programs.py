"""Forty programs do the same eager and compiled: results, gradients, changed arguments, aliases, random state, output."""

from __future__ import annotations

from typing import Any

import compile_harness as harness
import compile_programs
import pytest

import argand as torch
from argand.nn import Module

BACKENDS = ["eager", "aot_eager", "inductor"]


@pytest.fixture(autouse=True)
def fresh_compiler() -> Any:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def instance(program: compile_programs.Program) -> Any:
    torch.manual_seed(11)
    return program.make()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", compile_programs.PROGRAMS, ids=lambda p: p.name)
def test_compiled_equals_eager(
    program: compile_programs.Program, backend: str, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.manual_seed(5)
    calls = program.calls()
    plain, traced = instance(program), instance(program)
    wide = instance(program)
    if isinstance(wide, Module):
        wide = wide.double()
    compiled = torch.compile(traced, backend=backend)
    for k, args in enumerate(calls):
        where = f"call {k}: "
        want = harness.run_once(plain, harness.duplicate(args), k, program.gradients)
        printed = capsys.readouterr().out
        got = harness.run_once(compiled, harness.duplicate(args), k, program.gradients)
        assert capsys.readouterr().out == printed
        assert got.pop("aliases") == want.pop("aliases"), where + "tensors share memory otherwise"
        exact = program.exact or backend == "eager"
        if not exact:
            assert isinstance(got["result"], type(want["result"]))
            want = harness.run_once(
                wide, harness.to_double(harness.duplicate(args)), k, program.gradients
            )
            want.pop("aliases")
        for name in want:
            if not exact and name == "random state after":
                continue
            harness.compare(
                want[name], got[name], where + name, None if exact else program.tolerance
            )
        if isinstance(plain, Module):
            for module in (plain, traced, wide):
                module.zero_grad()


def test_there_are_forty_programs() -> None:
    assert len(compile_programs.PROGRAMS) >= 40


def test_gradients_of_one_row_are_added() -> None:
    # The compiled backward gives the gradient of a sum over one row with a stride of 0: its elements are one.
    def f(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
        s = a.sum().clamp(-9, 9)
        v = b.sum(0).clamp(-9, 9)
        b = (b + b).clamp(-9, 9)
        return a.t().contiguous().t(), b, v, s

    compiled = torch.compile(f)
    for rows in (2, 2, 1, 1):
        a, b = (torch.arange(2.0 * rows).view(rows, 2).requires_grad_() for _ in range(2))
        sum((x * x).sum() for x in compiled(a, b)).backward()
        want = [x.detach().clone().requires_grad_() for x in (a, b)]
        sum((x * x).sum() for x in f(*want)).backward()
        assert (a.grad == want[0].grad).all() and (b.grad == want[1].grad).all()
