"""`vmap` of the registry's sample calls, and of their derivatives, gives compiled what it gives plain.

ARGAND_VMAP_EVERY=1 compares every operator; by default it is one in so many.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import compile_harness as harness
import pytest
from vmap_programs import CASES as ALL_CASES
from vmap_programs import outcome, programs

import argand as torch
from argand.func import grad, jacfwd, jacrev, vmap
from tools.codegen.runtime import optest_calls

# Its offsets count from the beginning of the memory, in which compiled entries lie behind each other.
CASES = [case for case in ALL_CASES if not case.name.startswith("as_strided")]
EVERY = int(os.environ.get("ARGAND_VMAP_EVERY", "6"))


def check(
    f: Callable[..., Any],
    batch: list[torch.Tensor],
    backend: str,
    where: str,
    tolerance: float | None = None,
    *,
    is_gradient: bool = False,
) -> None:
    torch.compiler.reset()
    want = outcome(f, batch)
    got = outcome(torch.compile(f, backend=backend), batch)
    if isinstance(want, type) or isinstance(got, type):
        assert got is want, f"{where}: got {got}, expected {want}"
        return
    for a, b in zip(harness.tensors(got), harness.tensors(want), strict=True):
        assert a.dtype == b.dtype, f"{where}: {a}, expected {b}"
        # Gradients of all entries at once may lie as that makes them. Entries that lie by columns are put together by rows unless that is compiled.
        by_columns = a.ndim > 2 and a.mT.is_contiguous() and b.is_contiguous()
        assert is_gradient or by_columns or a.stride() == b.stride(), f"{where}: {a}, expected {b}"
    # Without a compiler all entries are reduced at once, which may add in another order.
    harness.compare(want, got, where, (tolerance or 1e-5) if backend != "inductor" else 1e-4)


@pytest.mark.parametrize("case", CASES[::EVERY], ids=lambda case: case.name)
def test_operators_and_gradients(case: optest_calls.Case) -> None:
    for program in programs(case):
        check(vmap(program), program.batch, "aot_eager", case.name)
        wanted = program.floating()
        if case.differentiable and wanted:
            derived = vmap(grad(program.total, argnums=wanted))
            # The engine may add a batch's gradients in another order.
            check(
                derived,
                program.batch,
                "aot_eager",
                f"gradient of {case.name}",
                1e-5,
                is_gradient=True,
            )


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
                check(derived, program.batch, backend, where, tolerance, is_gradient=True)


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


@pytest.mark.parametrize(
    "transform",
    [
        vmap,
        lambda f: vmap(grad(lambda x: f(x).sum())),
        lambda f: lambda x: jacrev(f)(x[0]),
        lambda f: lambda x: jacfwd(f)(x[0]),
        lambda f: lambda x: torch.autograd.functional.jacobian(f, x[0], vectorize=True),
    ],
    ids=["vmap", "vmap of grad", "jacrev", "jacfwd", "jacobian"],
)
def test_a_program_that_was_compiled_before_runs_for_every_entry(
    transform: Callable[..., Any],
) -> None:
    """It reads memory, which is that of one entry."""

    def f(x: torch.Tensor) -> torch.Tensor:
        return x.sin() * x.sum()

    x = torch.arange(6.0).view(3, 2) + 1
    compiled = torch.compile(f)
    for _ in range(3):
        torch.testing.assert_close(transform(compiled)(x), transform(f)(x))


def test_a_break_inside_of_vmap() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return vmap(lambda row: row * row.sum().item())(x)

    compiled = torch.compile(f)
    x = torch.arange(6.0).view(3, 2) + 1
    for _ in range(3):
        torch.testing.assert_close(compiled(x), x * x.sum(1, keepdim=True))


class _Tripled(torch.autograd.Function):
    """Its gradient says whether it was asked."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return grad * 3


def test_functions_without_vmap_pass_gradients_to_what_lies_outside() -> None:
    x = torch.arange(6.0).view(3, 2).requires_grad_()
    vmap(lambda row: _Tripled.apply(row) + row)(x).sum().backward()
    assert x.grad.unique().tolist() == [4]
    w = torch.ones(2, requires_grad=True)
    derived = vmap(grad(lambda row: (_Tripled.apply(row * w) ** 2).sum()))(x.detach())
    (found,) = torch.autograd.grad(derived.sum(), w)
    rows = [
        torch.autograd.grad((_Tripled.apply(row * w) ** 2).sum(), row, create_graph=True)[0]
        for row in x.detach().clone().requires_grad_().unbind()
    ]
    (expected,) = torch.autograd.grad(sum(row.sum() for row in rows), w)
    torch.testing.assert_close(found, expected)


def test_an_embedding_reads_the_table_of_its_entry() -> None:
    tables = torch.arange(12.0).view(2, 3, 2)

    def look_up(table: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.embedding(places, table)

    found = vmap(look_up)(tables, torch.tensor([[2], [0]]))
    assert found.tolist() == [[[4, 5]], [[6, 7]]]
    for outside in ([[3], [0]], [[0], [-1]]):
        with pytest.raises(IndexError, match="out of range"):
            vmap(look_up)(tables, torch.tensor(outside))


def _filled(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(4)
    for i in range(4):
        out[i] = a[i % 2] * b[(i + 1) % 2] * i
    return out


def _changed(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    out = torch.ones(2)
    out += a
    out *= b
    return out


@pytest.mark.parametrize("function", [_filled, _changed])
def test_gradients_from_outside_reach_what_a_new_tensor_was_filled_with(function: Any) -> None:
    x, y = (torch.randn(3, 2, requires_grad=True) for _ in range(2))
    found = vmap(function)(x, y)
    expected = torch.stack([function(a, b) for a, b in zip(x, y, strict=True)])
    torch.testing.assert_close(found, expected)
    for got, wanted in zip(
        torch.autograd.grad((found**2).sum(), (x, y)),
        torch.autograd.grad((expected**2).sum(), (x, y)),
        strict=True,
    ):
        torch.testing.assert_close(got, wanted)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_gradients_from_outside_reach_what_compiled_functions_of_entries_share(
    backend: str,
) -> None:
    w, x = torch.randn(5, requires_grad=True), torch.randn(4, 5)
    function = torch.compile(lambda a: (a * w).sum(), backend=backend)
    (found,) = torch.autograd.grad(vmap(function)(x).sum() + w.sum(), w)
    torch.testing.assert_close(found, 1 + x.sum(0))


@pytest.mark.parametrize("rows", [torch.ones(4, 50), torch.rand(4, 50) + 1])
@pytest.mark.parametrize("randomness, count", [("different", 4), ("same", 1)])
def test_compiled_functions_of_entries_draw_as_they_are_told(
    rows: torch.Tensor, randomness: str, count: int
) -> None:
    drop = torch.compile(lambda a: torch.nn.functional.dropout(a, 0.5))
    kept = vmap(drop, randomness=randomness)(rows) > 0
    assert len({tuple(row) for row in kept.tolist()}) == count


def test_memory_that_is_given_away_is_that_of_one_entry() -> None:
    def add(x: torch.Tensor) -> torch.Tensor:
        array = x.detach().numpy()
        array += 1
        return x * 2

    assert vmap(add)(torch.ones(3, 2)).unique().tolist() == [4]


def test_masks_of_entries_get_gradients_from_outside() -> None:
    q, k, v = (torch.randn(3, 2, 3, 4, 6) for _ in range(3))
    mask = torch.randn(3, 4, 4, requires_grad=True)

    def attend(*args: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.scaled_dot_product_attention(*args[:3], attn_mask=args[3])

    found = vmap(attend)(q, k, v, mask)
    expected = torch.stack([attend(*entry) for entry in zip(q, k, v, mask, strict=True)])
    (got,) = torch.autograd.grad((found**2).sum(), mask)
    (wanted,) = torch.autograd.grad((expected**2).sum(), mask)
    torch.testing.assert_close(got, wanted)
