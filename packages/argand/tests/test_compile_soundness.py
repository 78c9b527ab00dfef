"""Guards of compiled functions notice every change of what the program relies on: after it, compiled and plain Python agree.

A case gives a plain function, the arguments of a call, and changes of single facts. The changes are made in seeded random
order, over and over, so that earlier compiled forms meet states that they were not made for.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import compile_harness as harness
import pytest
import soundness_cases as cases
from soundness_cases import CASES

import argand as torch
from argand import nn
from argand_dynamo import _C, config


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    saved = {name: getattr(cases, name) for name in ("SCALE", "helper")}
    threads = torch.get_num_threads()
    functional, tanh = torch.nn.functional.relu, nn.Tanh.forward
    code = cases.changing.__code__, cases.changing.__defaults__
    torch.compiler.reset()
    with config.patch(recompile_limit=500, cache_plans=False):
        yield
    torch.compiler.reset()
    vars(cases).update(saved)
    vars(cases).pop("max", None)
    torch.nn.functional.relu, nn.Tanh.forward = functional, tanh
    cases.changing.__code__, cases.changing.__defaults__ = code
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    torch.set_num_threads(threads)


def outcome(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Result, changed arguments and shared memory; or the type of the exception."""
    torch.manual_seed(1)
    try:
        result = function(*args)
    except Exception as error:
        return type(error).__name__
    return [result, list(args), harness.alias_pattern(args, result)]


def after_break(run: Callable[..., Any]) -> Callable[..., Any]:
    """`run` in the frame that goes on after a graph break."""

    def broken(*args: Any) -> Any:
        before = args[0] + 1 if isinstance(args[0], torch.Tensor) else args[0]
        torch.compiler.graph_break()
        return run(*args), before

    return broken


def inside_of_break(run: Callable[..., Any]) -> Callable[..., Any]:
    """`run` in a frame that is compiled on its own, because its caller breaks at it."""

    def inner(*args: Any) -> Any:
        result = run(*args)
        torch.compiler.graph_break()
        return result

    def outer(*args: Any) -> Any:
        return inner(*args)

    return outer


WAYS: dict[str, Callable[..., Any]] = {
    "direct": lambda run: run,
    "after a break": after_break,
    "inside of a break": inside_of_break,
}


def check(name: str, backend: str, rounds: int, seed: int, way: str = "direct") -> int:
    """Runs a case beside another instance of it, which stays plain Python; the number of different results."""
    rng = random.Random(seed)
    plain, traced = CASES[name](), CASES[name]()
    compiled = torch.compile(WAYS[way](traced.run), backend=backend)
    reference = WAYS[way](plain.run)
    seen = set()
    for step in range(rounds):
        if step:
            for _ in range(rng.choice((1, 1, 2))):
                number = rng.randrange(len(plain.changes))
                plain.changes[number]()
                traced.changes[number]()
        want = outcome(reference, plain.args())
        with torch.compiler.collect_records() as records:
            got = outcome(compiled, traced.args())
        given_up = [r.message for r in records if r.code == "FB0001"]
        assert not given_up, f"step {step}: {given_up}"
        assert isinstance(got, str) == isinstance(want, str), f"step {step}: {got}, expected {want}"
        tolerance = 1e-5 if name in APPROXIMATE and backend == "inductor" else None
        harness.compare(want, got, f"step {step}: ", tolerance)
        assert not _C.is_hook_enabled()
        seen.add(repr(want))
    return len(seen)


# Sums and products of matrices, which a compiled program may order otherwise.
APPROXIMATE = {"a_module", "forward_of_a_library_class", "resized_and_replaced_data"}


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("name", CASES)
def test_changes_are_noticed(name: str, backend: str) -> None:
    count = len(CASES[name]().changes)
    assert check(name, backend, 3 * count if backend == "eager" else count, 1) > 1


@pytest.mark.parametrize("way", ["after a break", "inside of a break"])
@pytest.mark.parametrize("name", CASES)
def test_changes_are_noticed_in_broken_frames(name: str, way: str) -> None:
    assert check(name, "eager", 2 * len(CASES[name]().changes), 2, way) > 1


def test_a_function_that_calls_itself_after_a_break_is_that_of_its_closure() -> None:
    def build(values: list[int], shape: list[None]) -> Any:
        def inner(part: list[None] | None) -> Any:
            if part is None:
                torch.compiler.graph_break()
                return values[0]
            return [inner(part[0]), inner(part[1])]

        return inner(shape)

    compiled = torch.compile(build, backend="eager")
    assert [compiled([i], [None, None]) for i in range(3)] == [[0, 0], [1, 1], [2, 2]]
