"""Nothing of what was compiled stays behind: tensors, modules, code objects, memory; Python outside compiled calls runs without a hook."""

from __future__ import annotations

import gc
import itertools
import os
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import argand as torch
import argand_c10
from argand import nn
from argand_dynamo import _C, GraphBreak, config

BACKENDS = ["eager", "inductor"]


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch.compiler.reset()
    with config.patch(cache_plans=False):
        yield
    torch.compiler.reset()


def allocated() -> int:
    """Bytes that tensors hold."""
    gc.collect()
    return argand_c10.cpu.memory_allocated()


def new_function(text: str = "return (x * 2).relu() + {k}", k: int = 1) -> types.FunctionType:
    """A function with a code object of its own."""
    scope: dict[str, Any] = {"torch": torch, "__name__": __name__}
    exec(f"def made(x):\n    {text.format(k=k)}\n", scope)
    made = scope["made"]
    assert isinstance(made, types.FunctionType)
    return made


# -- memory ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
def test_tensors_of_calls_die(backend: str) -> None:
    held = nn.Linear(8, 8)

    def run(x: Any) -> Any:
        y = held(x)
        return y.sum(), y * 2

    compiled = torch.compile(run, backend=backend)
    for _ in range(3):
        x = torch.ones(4, 8)
        compiled(x)[0].backward()
    del x
    before = allocated()
    for _ in range(1000):
        x = torch.ones(4, 8)
        result = compiled(x)
        result[0].backward()
    dead = [weakref.ref(x), weakref.ref(result[1])]
    del x, result
    assert allocated() == before
    assert [r() for r in dead] == [None, None]


@pytest.mark.parametrize("backend", BACKENDS)
def test_exceptions_leave_nothing(backend: str) -> None:
    class Odd(Exception):
        pass

    def run(x: Any, fail: bool) -> Any:
        y = x * 2
        if fail:
            raise Odd("no")
        return y

    compiled = torch.compile(run, backend=backend)

    def attempt() -> weakref.ref[Any]:
        x = torch.ones(100)
        with pytest.raises(Odd):
            compiled(x, True)
        compiled(x, False)
        return weakref.ref(x)

    attempt()
    before = allocated()
    for _ in range(300):
        last = attempt()
    assert allocated() == before
    assert last() is None


def alive(kind: type) -> int:
    gc.collect()
    return sum(1 for thing in gc.get_objects() if type(thing) is kind)


@pytest.mark.parametrize("backend", BACKENDS)
def test_reset_gives_everything_back(backend: str) -> None:
    class Small(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(64, 64))

        def forward(self, x: Any) -> Any:
            return x @ self.weight

    constant = torch.ones(64)

    def use() -> list[weakref.ref[Any]]:
        module = Small()
        compiled = torch.compile(module, backend=backend)
        compiled(torch.ones(2, 64)).sum().backward()
        function = new_function("y = x + 1\n    torch.compiler.graph_break()\n    return y * 3")
        broken = torch.compile(function, backend=backend)
        broken(constant)
        return [
            weakref.ref(t) for t in (module, module.weight, function, function.__code__, compiled)
        ]

    use()
    torch.compiler.reset()
    before = allocated()
    left = [r for _ in range(3) for r in use()]
    torch.compiler.reset()
    assert allocated() == before
    assert [r() for r in left if r() is not None] == []


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_compiled_module_is_not_kept_alive(backend: str) -> None:
    """Without reset(): what guards name dies with its owner."""
    module = nn.Sequential(nn.Linear(32, 32), nn.ReLU())
    compiled = torch.compile(module, backend=backend)
    compiled(torch.ones(2, 32))
    dead = [weakref.ref(module), weakref.ref(module[0].weight), weakref.ref(compiled)]
    del module, compiled
    gc.collect()
    assert [r() for r in dead] == [None] * 3


def growth(step: Callable[[int], None], rounds: int) -> tuple[int, int, int]:
    """What `rounds` more steps add to bytes of tensors, objects that the collector knows, and blocks of Python's memory.

    The least of two such measurements: what a process keeps once becomes less, what every step keeps does not.
    """

    def measure() -> tuple[int, int, int]:
        bytes_ = allocated()
        return bytes_, len(gc.get_objects()), sys.getallocatedblocks()

    kept = []
    for part in range(3):
        for i in range(rounds):
            step(part * rounds + i)
        kept.append(measure())
    first, second = (
        [b - a for a, b in zip(*pair, strict=True)] for pair in itertools.pairwise(kept)
    )
    bytes_, objects, blocks = map(min, first, second)
    return bytes_, objects, blocks


@pytest.mark.parametrize("backend", BACKENDS)
def test_recompiling_forever(backend: str) -> None:
    """A form is dropped with the object that it was made for; thousands of them do not add up."""
    rounds = 400 if backend == "eager" else 60

    def step(i: int) -> None:
        compiled = torch.compile(new_function(k=i % 5), backend=backend)
        compiled(torch.ones(i % 3 + 1, 5))
        if i % 20 == 19:
            torch.compiler.reset()

    bytes_, objects, blocks = growth(step, rounds)
    assert bytes_ == 0
    assert objects < rounds // 4, f"{objects} objects more"
    assert blocks < rounds, f"{blocks} blocks more"


@pytest.mark.parametrize("backend", BACKENDS)
def test_modules_take_their_compiled_forms_along(backend: str) -> None:
    """Without reset(); a first call's arguments are not kept either."""

    def step(i: int) -> None:
        compiled = torch.compile(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), backend=backend)
        compiled(torch.ones(2, 4)).sum().backward()

    bytes_, objects, blocks = growth(step, 40)
    assert (bytes_, objects < 200, blocks < 1000) == (0, True, True), (objects, blocks)


def libraries() -> int:
    """Loaded compiled programs."""
    with open("/proc/self/maps") as file:
        return len({line.split()[-1] for line in file if "inductor-programs" in line})


def test_libraries_are_unloaded() -> None:
    torch.compiler.reset()
    gc.collect()
    before, files = libraries(), len(os.listdir("/proc/self/fd"))
    for i in range(5):
        torch.compile(new_function(k=i), backend="inductor")(torch.ones(3, 7))
    assert libraries() == before + 5
    torch.compiler.reset()
    gc.collect()
    assert libraries() == before
    assert len(os.listdir("/proc/self/fd")) == files


def test_reset_forgets_functions_that_live_on() -> None:
    calls = []

    def backend(module: Any, inputs: Any) -> Any:
        calls.append(module)
        return module.forward

    def run(x: Any) -> Any:
        return x + 1

    compiled = torch.compile(run, backend=backend)
    module = torch.compile(nn.ReLU(), backend=backend)
    for expected in (2, 2, 4):
        if expected == 4:
            torch.compiler.reset()
        compiled(torch.ones(2))
        module(torch.ones(2))
        assert len(calls) == expected


def test_many_guard_failures() -> None:
    """A number that always changes, beyond the limit: plain Python, and nothing piles up."""

    def run(x: Any, text: str) -> Any:
        return x + len(text), text

    compiled = torch.compile(run, backend="eager")
    x = torch.ones(3)

    def step(i: int) -> None:
        assert compiled(x, f"text {i}")[1] == f"text {i}"

    bytes_, objects, blocks = growth(step, 2000)
    assert (bytes_, objects < 50, blocks < 200) == (0, True, True), (objects, blocks)


@pytest.mark.parametrize("backend", BACKENDS)
def test_ten_thousand_calls(backend: str) -> None:
    scale = torch.ones(3)

    def run(x: Any, k: Any) -> Any:
        y = x * scale
        torch.compiler.graph_break()
        return [y + 1, {"k": k}]

    compiled = torch.compile(run, backend=backend)
    x = torch.ones(3)

    def step(i: int) -> None:
        compiled(x, "k")

    bytes_, objects, blocks = growth(step, 5000)
    assert (bytes_, objects < 50, blocks < 200) == (0, True, True), (objects, blocks)


# -- the hook --------------------------------------------------------------------------------------


def quiet() -> bool:
    return not _C.is_hook_enabled()


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_hook_is_off_outside(backend: str) -> None:
    seen: list[bool] = []

    def inner(x: Any) -> Any:
        if x.sum() > 0:
            return x + 1
        raise ValueError("negative")

    def outer(x: Any) -> Any:
        y = x * 2
        try:
            y = inner(y)
        finally:
            y = y - 1
        return y

    compiled = torch.compile(outer, backend=backend)
    for _ in range(3):
        compiled(torch.ones(3))
        seen.append(quiet())
        with pytest.raises(ValueError, match="negative"):
            compiled(-torch.ones(3))
        seen.append(quiet())
    with pytest.raises(TypeError):
        compiled()
    seen.append(quiet())
    with pytest.raises(GraphBreak):
        torch.compile(outer, backend=backend, fullgraph=True)(torch.ones(3))
    seen.append(quiet())

    def failing_backend(module: Any, inputs: Any) -> Any:
        raise MemoryError("backend")

    with config.patch(suppress_errors=False), pytest.raises(MemoryError):
        torch.compile(new_function(), backend=failing_backend)(torch.ones(3))
    seen.append(quiet())
    assert all(seen), seen


def test_the_hook_is_off_in_generators_between_items() -> None:
    def double(x: Any) -> Any:
        y = x * 2
        torch.compiler.graph_break()
        return y

    compiled = torch.compile(double, backend="eager")

    def produce() -> Iterator[Any]:
        for i in range(3):
            yield compiled(torch.ones(2) * i)

    def consume(items: Any) -> Any:
        total = 0
        for item in items:
            total = total + item.sum()
            torch.compiler.graph_break()
        return total

    assert consume(produce()).item() == 12
    assert quiet()
    assert torch.compile(consume, backend="eager")(produce()).item() == 12
    assert quiet()
    # A generator made in a compiled frame is run outside of it.

    def make(x: Any) -> Any:
        torch.compiler.graph_break()
        return (x * i for i in range(3))

    items = torch.compile(make, backend="eager")(torch.ones(2))
    states = []
    for _ in items:
        states.append(quiet())
    assert states == [True] * 3
