"""Compiled programs treat memory as Python does: strides, sharing, versions, writes that the caller sees. ARGAND_FUZZ_PROGRAMS sets their number."""

from __future__ import annotations

import os
from typing import Any

import compile_harness as harness
import pytest
from alias_fuzz import AliasProgram, Call, alias_programs
from hypothesis import HealthCheck, given, settings

import argand as torch

COUNT = int(os.environ.get("ARGAND_FUZZ_PROGRAMS", "40"))
BACKENDS = ["eager", "aot_eager", "inductor"]


def facts(tensor: torch.Tensor, everything: list[torch.Tensor]) -> dict[str, Any]:
    """What a program can see of a tensor besides its elements."""
    memory = tensor.untyped_storage().data_ptr()
    base = tensor._base
    sharing = [
        i
        for i, t in enumerate(everything)
        if t.numel() and tensor.numel() and t.untyped_storage().data_ptr() == memory
    ]
    return {
        "strides": [s for s, n in zip(tensor.stride(), tensor.shape, strict=True) if n > 1],
        "offset": tensor.storage_offset() - everything[sharing[0]].storage_offset()
        if sharing
        else 0,
        "requires_grad": tensor.requires_grad,
        "is_leaf": tensor.is_leaf,
        "is": next(i for i, t in enumerate(everything) if t is tensor),
        "shares memory with": sharing,
        "is a view of": next((i for i, t in enumerate(everything) if t is base), None),
    }


def packed(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().clone(memory_format=torch.contiguous_format)


def attempt(fn: Any, *args: Any) -> Any:
    try:
        return fn(*args)
    except Exception as error:  # what a program raises is part of what it does
        return type(error)


def observe(fn: Any, call: Call) -> dict[str, Any]:
    """Everything that a caller can see of a call, in the order of a program that goes on with the results."""
    args, leaves = call.arguments()
    versions = [x._version for x in args]
    results = attempt(fn, *args)
    raised = isinstance(results, type)
    everything = [*args, *(() if raised else results)]
    seen = {
        "raises": results if raised else None,
        "values": [packed(x) for x in everything],
        "facts": [facts(x, everything) for x in everything],
        "written": [x._version > old for x, old in zip(args, versions, strict=True)],
    }
    outputs = [x for x in everything if x.requires_grad]
    if outputs:
        weights = harness.seeded_weights(outputs)
        total = sum((x * w).sum() for x, w in zip(outputs, weights, strict=True))
        seen["backward"] = attempt(total.backward)
        seen["gradients"] = [leaf.grad for leaf in leaves]
    seen["later writes"] = []
    with torch.no_grad():
        for k, x in enumerate(everything):
            seen["later writes"].append(isinstance(attempt(x.add_, k + 1), type))
    seen["values after"] = [packed(x) for x in everything]
    return seen


def same(want: Any, got: Any, name: str) -> None:
    """`want` and `got` as observed."""
    if name == "gradients":
        for u, v in zip(want, got, strict=True):
            assert (u is None) == (v is None), f"gradient {v}, expected {u}"
            if u is not None:
                harness.compare(u, v, name, 1e-6)
    elif name in ("values", "values after"):
        for k, (u, v) in enumerate(zip(want, got, strict=True)):
            harness.compare(u, v, f"{name}, tensor {k}", None)
    elif name == "facts":
        for k, (u, v) in enumerate(zip(want, got, strict=True)):
            for fact in u:
                assert v[fact] == u[fact], f"tensor {k}: {fact}: got {v[fact]}, expected {u[fact]}"
    else:
        assert got == want, f"{name}: got {got}, expected {want}"


def check(program: AliasProgram, backend: str, dynamic: bool | None = None) -> None:
    torch.compiler.reset()
    plain = program.function()
    compiled = torch.compile(program.function(), backend=backend, dynamic=dynamic)
    for call in program.calls:
        want, got = observe(plain, call), observe(compiled, call)
        try:
            assert list(got) == list(want), f"got {got}, expected {want}"
            for name in want:
                same(want[name], got[name], name)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{call}\n{program.source}") from None


def many(count: int) -> Any:
    return settings(
        max_examples=count,
        derandomize="ARGAND_FUZZ_PROGRAMS" not in os.environ,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )


@pytest.mark.parametrize("backend", BACKENDS)
@many(COUNT)
@given(alias_programs())
def test_memory_is_treated_as_in_python(backend: str, program: AliasProgram) -> None:
    check(program, backend)


def raises_and_records(f: Any, backend: str) -> None:
    """Compiled, `f` refuses the expanded tensor that it changes, and leaves recording on."""
    compiled = torch.compile(f, backend=backend)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="more than one element"):
            compiled(torch.ones(1, 3).expand(2, 3))
        assert torch.is_grad_enabled()


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_error_inside_of_no_grad_leaves_the_mode(backend: str) -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            x[:, 0] *= 2
        return x

    raises_and_records(f, backend)


def test_a_backend_of_the_user_leaves_the_mode_too() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            x[:, 0] *= 2
        return x

    compiled = torch.compile(f, backend=lambda module, inputs: module.forward)
    with pytest.raises(RuntimeError, match="more than one element"):
        compiled(torch.ones(1, 3).expand(2, 3))
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("backend", BACKENDS)
def test_out_takes_no_part_in_gradients(backend: str) -> None:
    compiled = torch.compile(lambda x, y: torch.neg(x, out=y), backend=backend)
    x, y = torch.ones(3).requires_grad_(), torch.zeros(3)
    with pytest.raises(RuntimeError, match="neg.out: functions with out="):
        compiled(x, y)
    with torch.no_grad():
        compiled(x, y)
    assert y.tolist() == [-1, -1, -1]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_mask_fills_an_expanded_tensor(backend: str) -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        x[x > 1] = 0
        return x + 1

    x = torch.tensor([[1.0], [2.0]]).expand(2, 2)
    assert torch.compile(f, backend=backend)(x).tolist() == [[2, 2], [1, 1]]
    assert x.tolist() == [[1, 1], [0, 0]]


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_error_behind_a_block_that_was_broken_leaves_the_outer_mode(backend: str) -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            torch.compiler.graph_break()
        x[:, 0] *= 2
        return x

    raises_and_records(f, backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_index_that_is_a_symbol_may_count_from_the_end(backend: str) -> None:
    def f(x: torch.Tensor, i: int) -> torch.Tensor:
        y = x.clone()
        y.select(0, i).fill_(7)
        return y * 1 + x.select(0, i)

    compiled = torch.compile(f, backend=backend, dynamic=True)
    for n, i in ((3, -1), (4, -2), (5, 2), (4, -3)):
        x, z = (torch.ones(n, 3).requires_grad_() for _ in range(2))
        u, v = f(x, i), compiled(z, i)
        (u * u).sum().backward()
        (v * v).sum().backward()
        assert torch.equal(u, v) and torch.equal(x.grad, z.grad)


@pytest.fixture(autouse=True)
def fresh_compiler() -> Any:
    yield
    torch.compiler.reset()
    torch.set_grad_enabled(True)
