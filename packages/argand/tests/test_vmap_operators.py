"""`vmap` of every operator's sample calls, and of their gradients, in one run for all entries against a run for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from vmap_programs import CASES, Program, outcome, programs

import argand as torch
from argand.func import grad, vmap
from argand_autograd._tree import flatten
from argand_autograd.batching.level import NotBatchable, without_second_try
from tools.codegen.runtime import optest_calls


@pytest.fixture(autouse=True)
def one_run() -> Iterator[None]:
    without_second_try(True)
    yield
    without_second_try(False)


def loop(f: Callable[..., Any], dims: tuple[int | None, ...], batch: list[torch.Tensor]) -> Any:
    """The stacked results of a call with each entry."""
    results = [
        flatten(
            f(
                *(
                    x if d is None else x.select(d, i).clone()
                    for d, x in zip(dims, batch, strict=True)
                )
            )
        )[0]
        for i in range(2)
    ]
    return [torch.stack(list(column)) for column in zip(*results, strict=True)]


def close(got: Any, want: Any, where: str) -> None:
    found = flatten(got)[0]
    assert len(found) == len(want), where
    for a, b in zip(found, want, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype, (
            f"{where}: {a.shape} {a.dtype}, expected {b.shape} {b.dtype}"
        )
        tolerance = 2e-4 if b.dtype in (torch.float32, torch.complex64) else 1e-9
        assert torch.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True), (
            f"{where}: {a}, expected {b}"
        )


def mappings(program: Program) -> Iterator[tuple[tuple[int | None, ...], list[torch.Tensor]]]:
    """All tensors mapped over their first dimension; over the last; and each of several alone."""
    batch, n = program.batch, len(program.batch)
    yield (0,) * n, batch
    yield (-1,) * n, [x.movedim(0, -1) for x in batch]
    for k in range(n if n > 1 else 0):
        yield (
            tuple(0 if i == k else None for i in range(n)),
            [x if i == k else x[0] for i, x in enumerate(batch)],
        )


def compare(f: Callable[..., Any], program: Program, where: str) -> None:
    for dims, batch in mappings(program):
        want = outcome(lambda *b, dims=dims: loop(f, dims, list(b)), batch)
        if isinstance(want, type):
            continue
        try:
            got = vmap(f, dims)(*batch)
        except (NotBatchable, NotImplementedError):
            continue  # what the elements decide needs a run for each
        close(got, want, f"{where} {dims}")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_operators_and_gradients(case: optest_calls.Case) -> None:
    for program in programs(case):
        compare(program, program, case.name)
        wanted = program.floating()
        if case.differentiable and wanted:
            compare(grad(program.total, argnums=wanted), program, f"gradient of {case.name}")
