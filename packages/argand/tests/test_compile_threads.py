"""Compiled functions in several threads, after fork, in generators, coroutines and recursion; errors of users' code in them."""

from __future__ import annotations

import asyncio
import threading
import traceback
from collections.abc import Iterator
from typing import Any

import pytest
from concurrency import THREADS, in_child, in_threads

import argand as torch
from argand import nn
from argand_dynamo import _C, config

BACKENDS = ["eager", "inductor"]


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch.compiler.reset()
    with config.patch(cache_plans=False):
        yield
    torch.compiler.reset()


# -- threads -----------------------------------------------------------------------------------------


def helper(x: Any, k: Any) -> Any:
    return x * k + 1


def program(x: Any, k: Any) -> Any:
    y = helper(x, k)
    torch.compiler.graph_break()
    for i in range(3):
        y = y + i
    if y.sum() > 0:
        y = y.relu()
    return y, k


@pytest.mark.parametrize("backend", BACKENDS)
def test_one_function_called_by_all_threads(backend: str) -> None:
    compiled = torch.compile(program, backend=backend)

    def work(i: int) -> None:
        for step in range(30):
            x = torch.arange(4, dtype=torch.float32) + (step % 5 - 2)
            want, got = program(x, i % 3), compiled(x, i % 3)
            assert torch.equal(want[0], got[0]) and want[1] == got[1]
            assert not _C.is_hook_enabled()

    in_threads(work)


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_thread_compiles_a_program_of_its_own(backend: str) -> None:
    def work(i: int) -> None:
        scope: dict[str, Any] = {"torch": torch, "helper": helper, "__name__": __name__}
        exec(
            f"def made(x, n):\n  for i in range(n):\n    x = helper(x, {i}) + i\n  return x.sum(), x",
            scope,
        )
        compiled = torch.compile(scope["made"], backend=backend)
        for n in (1, 2, 3):
            x = torch.ones(5).requires_grad_()
            y = torch.ones(5).requires_grad_()
            want, got = scope["made"](x, n), compiled(y, n)
            want[0].backward()
            got[0].backward()
            assert torch.equal(want[1], got[1])
            assert torch.equal(x.grad, y.grad)

    in_threads(work)


def test_modes_belong_to_their_thread() -> None:
    weight = torch.ones(3).requires_grad_()

    def run(x: Any) -> Any:
        y = x * weight
        torch.compiler.graph_break()
        return y, y.requires_grad, torch.is_grad_enabled()

    compiled = torch.compile(run, backend="inductor")

    def work(i: int) -> None:
        for _ in range(20):
            with torch.set_grad_enabled(i % 2 == 0):
                result = compiled(torch.ones(3))
            assert result[1:] == (i % 2 == 0, i % 2 == 0)
            assert result[0].requires_grad == (i % 2 == 0)

    in_threads(work)


def test_reset_while_others_call() -> None:
    compiled = torch.compile(program, backend="eager")
    x = torch.ones(4)
    want = program(x, 2)[0]
    done = threading.Event()

    def work(i: int) -> None:
        if i == 0:
            for _ in range(30):
                torch.compiler.reset()
            done.set()
            return
        while not done.is_set():
            assert torch.equal(compiled(x, 2)[0], want)

    in_threads(work)


def test_training_in_threads() -> None:
    def train(i: int, compile_it: bool) -> list[float]:
        generator = torch.Generator()
        generator.manual_seed(i)
        net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1)).double()
        for p in net.parameters():
            p.data.copy_(torch.randn(*p.shape, generator=generator).double())
        x = torch.randn(10, 6, generator=generator).double()
        model = torch.compile(net, backend="inductor") if compile_it else net
        losses = []
        for _ in range(4):
            loss = model(x).square().mean()
            loss.backward()
            with torch.no_grad():
                for p in net.parameters():
                    p -= 0.1 * p.grad
                    p.grad = None
            losses.append(loss.item())
        return losses

    want = [train(i, False) for i in range(THREADS)]
    for got, expected in zip(in_threads(lambda i: train(i, True)), want, strict=True):
        assert got == pytest.approx(expected, rel=1e-12)


# -- fork --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
def test_fork_after_compiling(backend: str) -> None:
    compiled = torch.compile(program, backend=backend)
    big = torch.ones(1 << 16)
    want = program(big, 2)[0]
    assert torch.equal(compiled(big, 2)[0], want)

    def child() -> None:
        assert torch.equal(compiled(big, 2)[0], want)  # what the parent compiled
        small = torch.arange(3, dtype=torch.int64)
        assert torch.equal(compiled(small, 3)[0], program(small, 3)[0])  # compiled here
        x = torch.ones(3).requires_grad_()
        compiled(x, 2)[0].sum().backward()
        assert torch.equal(x.grad, torch.full((3,), 2.0))

    for _ in range(2):
        in_child(child)
    assert torch.equal(compiled(big, 2)[0], want)


def test_fork_while_another_thread_compiles() -> None:
    started, stop = threading.Event(), threading.Event()

    def keep_compiling() -> None:
        k = 0
        while not stop.is_set():
            k += 1
            scope: dict[str, Any] = {}
            exec(f"def made(x):\n  return x + {k}", scope)
            torch.compile(scope["made"], backend="eager")(torch.ones(2))
            started.set()

    thread = threading.Thread(target=keep_compiling)
    thread.start()
    try:
        started.wait(20)

        def child() -> None:
            compiled = torch.compile(program, backend="eager")
            assert torch.equal(compiled(torch.ones(2), 2)[0], program(torch.ones(2), 2)[0])

        for _ in range(5):
            in_child(child, 20)
    finally:
        stop.set()
        thread.join()


# -- generators, coroutines, recursion ---------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
def test_generators_and_coroutines_call_compiled_functions(backend: str) -> None:
    compiled = torch.compile(program, backend=backend)
    inputs = [torch.arange(4, dtype=torch.float32) + i for i in range(4)]

    def produce() -> Iterator[Any]:
        for x in inputs:
            yield compiled(x, 2)[0]

    for got, x in zip(produce(), inputs, strict=True):
        assert torch.equal(got, program(x, 2)[0])

    async def one(x: Any) -> Any:
        before = compiled(x, 2)[0]
        await asyncio.sleep(0)
        return before + compiled(x, 3)[0]

    async def all_of_them() -> list[Any]:
        return list(await asyncio.gather(*[one(x) for x in inputs]))

    for got, x in zip(asyncio.run(all_of_them()), inputs, strict=True):
        assert torch.equal(got, program(x, 2)[0] + program(x, 3)[0])
    assert not _C.is_hook_enabled()


@pytest.mark.parametrize("backend", BACKENDS)
def test_compiled_generators_and_coroutines(backend: str) -> None:
    def produce(x: Any) -> Iterator[Any]:
        for i in range(3):
            sent = yield x * i
            if sent is not None:
                x = x + sent

    with torch.compiler.collect_records():
        made = torch.compile(produce, backend=backend)(torch.ones(2))
        assert next(made).sum().item() == 0
        assert made.send(torch.ones(2)).sum().item() == 4
        made.close()

    async def coroutine(x: Any) -> Any:
        await asyncio.sleep(0)
        return x + 1

    assert asyncio.run(torch.compile(coroutine, backend=backend)(torch.ones(2))).sum().item() == 4


@pytest.mark.parametrize("backend", BACKENDS)
def test_recursion(backend: str) -> None:
    @torch.compile(backend=backend)
    def down(x: Any, n: int) -> Any:
        return x if n == 0 else down(x * 2, n - 1) + 1

    @torch.compile(backend=backend)
    def broken(x: Any, n: int) -> Any:
        torch.compiler.graph_break()
        return x if n == 0 else broken(x * 2, n - 1) + 1

    def plain(x: Any, n: int) -> Any:
        return x if n == 0 else plain(x * 2, n - 1) + 1

    for n in (0, 1, 4, 9):
        assert torch.equal(down(torch.ones(3), n), plain(torch.ones(3), n))
        assert torch.equal(broken(torch.ones(3), n), plain(torch.ones(3), n))


@pytest.mark.parametrize("backend", BACKENDS)
def test_endless_recursion_is_a_recursion_error(backend: str) -> None:
    @torch.compile(backend=backend)
    def endless(x: Any) -> Any:
        torch.compiler.graph_break()
        return endless(x + 1)

    @torch.compile(backend=backend)
    def traced(x: Any) -> Any:
        return traced(x + 1)

    for function in (endless, traced):
        with pytest.raises(RecursionError):
            function(torch.ones(2))
        assert not _C.is_hook_enabled()
    assert torch.equal(
        torch.compile(program, backend=backend)(torch.ones(2), 2)[0], program(torch.ones(2), 2)[0]
    )


# -- exceptions --------------------------------------------------------------------------------------


class Refused(Exception):
    """An exception of users."""


def lines(error: BaseException) -> list[tuple[int, str]]:
    """The source lines of this file's frames in the traceback."""
    found = traceback.extract_tb(error.__traceback__)
    return [(f.lineno or 0, f.line or "") for f in found if f.filename == __file__]


def validate(x: Any, limit: Any) -> Any:
    if limit < 0:
        raise Refused(f"limit {limit}")
    return x + limit


def fill(x: Any, into: list[Any], limits: list[Any]) -> Any:
    for limit in limits:
        into.append(limit)
        x = validate(x, limit)
        into.append(x)
    return x


def break_and_fill(x: Any, into: list[Any], limits: list[Any]) -> Any:
    x = x * 1
    torch.compiler.graph_break()
    return fill(x, into, limits)


def catches(x: Any, into: list[Any], limits: list[Any]) -> Any:
    try:
        return fill(x, into, limits)
    except Refused as error:
        into.append(str(error))
        raise ValueError("wrapped") from error
    finally:
        into.append("finally")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", [fill, break_and_fill, catches], ids=lambda f: f.__name__)
def test_errors_of_user_code(function: Any, backend: str) -> None:
    compiled = torch.compile(function, backend=backend)
    for _ in range(3):
        outcomes = []
        for run in (function, compiled):
            into: list[Any] = []
            with pytest.raises((Refused, ValueError)) as caught:
                run(torch.ones(2), into, [1, 2, -1, 5])
            error = caught.value
            outcomes.append((error, into))
        (want, plain), (got, traced) = outcomes
        assert type(got) is type(want) and got.args == want.args
        assert type(got.__cause__) is type(want.__cause__)
        assert [str(v) for v in traced] == [str(v) for v in plain]
        assert lines(got)[-1] == lines(want)[-1]
        assert [line for line in lines(want)[1:] if line not in lines(got)] == []
        assert compiled(torch.ones(2), [], [1, 2]).sum().item() == 8
        assert not _C.is_hook_enabled()


def wrong_shapes(x: Any, y: Any, into: list[Any]) -> Any:
    z = x * 2
    into.append(1)
    return z @ y


def wrong_index(x: Any, y: Any, into: list[Any]) -> Any:
    into.append(x + 1)
    return x[y]


def wrong_value(x: Any, y: Any, into: list[Any]) -> Any:
    picked = torch.nn.functional.embedding(y, x)
    into.append(2)
    return picked + 1


ONES = torch.ones(2, 3)
# A function, arguments that are right, arguments that are not.
MISTAKES = [
    (wrong_shapes, (ONES, torch.ones(3, 2)), (ONES, torch.ones(2, 3))),
    (wrong_index, (ONES, 1), (ONES, 2)),
    (wrong_value, (ONES, torch.tensor([0, 1])), (ONES, torch.tensor([0, 7]))),
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("function", "good", "bad"), MISTAKES, ids=[function.__name__ for function, _, _ in MISTAKES]
)
def test_errors_of_operators(function: Any, good: Any, bad: Any, backend: str) -> None:
    """Type, text, line and the state of a list; whether shapes or, when the graph runs, values are at fault."""
    compiled = torch.compile(function, backend=backend)
    assert torch.equal(compiled(*good, []), function(*good, []))
    for _ in range(2):
        plain: list[Any] = []
        traced: list[Any] = []
        with pytest.raises(Exception) as want:
            function(*bad, plain)
        with pytest.raises(Exception) as got:
            compiled(*bad, traced)
        assert type(got.value) is type(want.value), got.value
        assert str(got.value).partition("\n")[0] == str(want.value).partition("\n")[0]
        assert str(traced) == str(plain)
        number, line = lines(want.value)[-1]
        text = "".join(traceback.format_exception(got.value))
        assert (number, line) in lines(got.value) or f"{__file__}:{number}" in text, text
        assert not _C.is_hook_enabled()
