"""Random programs do the same compiled as in Python. ARGAND_FUZZ_PROGRAMS sets their number."""

from __future__ import annotations

import os
from typing import Any

import compile_harness as harness
import pytest
from compile_fuzz import FuzzProgram, programs
from hypothesis import HealthCheck, given, settings

import argand as torch

COUNT = int(os.environ.get("ARGAND_FUZZ_PROGRAMS", "60"))


def outcome(fn: Any, args: tuple[Any, ...], gradients: bool) -> Any:
    try:
        return harness.run_once(fn, args, 0, gradients)
    except Exception as error:  # what a program raises is part of what it does
        return error


def check(program: FuzzProgram, backend: str) -> None:
    torch.compiler.reset()
    plain = program.function()
    compiled = torch.compile(program.function(), backend=backend)
    for call in program.calls:
        want = outcome(plain, program.arguments(call), program.grad)
        got = outcome(compiled, program.arguments(call), program.grad)
        if isinstance(want, Exception) or isinstance(got, Exception):
            assert type(got) is type(want), f"got {got!r}, expected {want!r}\n{program.source}"
            continue
        try:
            assert got["aliases"] == want["aliases"], "tensors share memory otherwise"
            for name in ("result", "arguments"):
                harness.compare(want[name], got[name], name, None)
            for u, v in zip(want.get("gradients", ()), got.get("gradients", ()), strict=True):
                harness.compare(u, v, "gradient", 1e-6)
        except AssertionError as error:
            raise AssertionError(f"{error}\ncall {call}\n{program.source}") from None


def many(count: int) -> Any:
    return settings(
        max_examples=count, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True
    )


@many(COUNT)
@given(programs())
def test_backend_eager(program: FuzzProgram) -> None:
    check(program, "eager")


@many(COUNT)
@given(programs())
def test_backend_inductor(program: FuzzProgram) -> None:
    check(program, "inductor")


@pytest.fixture(autouse=True)
def fresh_compiler() -> Any:
    yield
    torch.compiler.reset()
