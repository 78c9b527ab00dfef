"""Calls of what `functools.lru_cache` has made, in traced programs."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from typing import Any

import pytest
from tracing import check, equal, fresh, run, torch  # noqa: F401

import argand_c10
import argand_dynamo as dynamo
from argand_c10 import Tensor, records
from argand_dynamo import known_packages
from argand_dynamo._C import cache_holds

X = torch.arange(12, dtype=torch.float32).reshape(3, 4) / 7


def torch_compile(f: Callable[..., Any]) -> Callable[..., Any]:
    return dynamo.compile(f, backend="eager", fullgraph=True)


@functools.lru_cache
def doubled(n: int) -> int:
    return n * 2


@functools.cache
def table(n: int) -> Any:
    return torch.ones(n)


class Sized:
    @functools.lru_cache  # noqa: B019
    def size(self, n: int) -> tuple[int, str]:
        return n + 1, "cached"


def test_cached_functions_of_python_values() -> None:
    sized = Sized()
    outcome = check(lambda x: (x * doubled(3), sized.size(2), doubled.__wrapped__(4)), X)
    assert not outcome.breaks
    assert torch_compile(lambda x: (doubled, x + 1))(X)[0] is doubled


def test_what_cached_functions_do_once() -> None:
    calls: list[int] = []

    @functools.lru_cache
    def noted(n: int) -> int:
        calls.append(n)
        return n

    @functools.lru_cache
    def kept() -> tuple[list[int]]:
        return ([],)

    @functools.lru_cache
    def counter() -> Any:
        count = 0

        def step() -> int:
            nonlocal count
            count += 1
            return count

        return step

    def f(x: Any) -> Any:
        calls.append(0)
        kept()[0].append(1)
        return x + noted(1) + len(kept()[0]) + counter()()

    compiled = dynamo.compile(f, backend="eager")
    assert [compiled(X)[0, 0].item() for _ in range(3)] == [3, 5, 7]
    assert calls == [0, 1, 0, 0]


def test_cached_functions_of_tensors_are_called() -> None:
    def f(x: Any) -> Any:
        return x + table(4).add_(1)

    compiled = dynamo.compile(f, backend="eager")
    table.cache_clear()
    want = [f(X).sum().item() for _ in range(3)]
    table.cache_clear()
    assert [compiled(X).sum().item() for _ in range(3)] == want


def test_calls_of_caches_are_those_of_eager_execution() -> None:
    scale = [2.0]

    @functools.lru_cache
    def factor(n: int) -> float:
        return n * scale[0]

    compiled = torch_compile(lambda x: x * factor(3))
    one = torch.ones(1)
    assert compiled(one).item() == 6
    scale[0] = 5.0
    assert compiled(one).item() == 6 == factor(3)
    info = factor.cache_info()
    assert info.misses == 1 and info.hits >= 2
    factor.cache_clear()
    assert compiled(one).item() == 15 == factor(3)
    assert factor.cache_info().misses == 1


def test_caches_of_tensors_are_inputs() -> None:
    @functools.lru_cache
    def rotations(n: int, dtype: Any = argand_c10.float32, *, base: float = 2.0) -> Tensor:
        return torch.arange(n, dtype=dtype) * base

    class Module:
        @functools.lru_cache  # noqa: B019
        def mask(self, size: Any) -> Tensor:
            return torch.ones(*size).tril()

    module = Module()

    def f(x: Any, m: Any) -> Any:
        table = rotations(x.shape[1], base=3.0)
        return x * table + m.mask(x.shape), table, rotations(x.shape[1], base=3.0) is table

    outcome = check(f, X, module)
    (graph,) = outcome.graphs
    assert [node.op for node in graph.graph.nodes].count("placeholder") == 3
    compiled = torch_compile(f)
    assert compiled(X, module)[1] is rotations(4, base=3.0)
    rotations.cache_clear()
    assert compiled(X, module)[1] is rotations(4, base=3.0)


class Recipe:
    def __init__(self, name: str) -> None:
        self.name = name


@functools.lru_cache
def recipe(name: str) -> Recipe:
    return Recipe(name)


@functools.lru_cache
def layout_of(made: Recipe, shape: tuple[int, ...]) -> tuple[list[int], dict[str, int]]:
    return [shape[1], shape[0]], {made.name: len(shape)}


def transposed(x: Any, name: str) -> Any:
    sizes, places = layout_of(recipe(name), x.shape)
    return x.reshape(sizes) * places[name]


def test_contents_of_caches_are_used() -> None:
    check(transposed, X, "b")
    sizes = [(torch.ones(n, 4), "b") for n in (3, 5, 6, 7)]
    assert run(transposed, *sizes, fullgraph=True).recompiles == 1

    def written(x: Any) -> Any:
        y = x.clone().add_(1)
        return transposed(y, "c")

    check(written, X)


def test_what_stands_for_a_cached_object_stays_in_the_trace() -> None:
    def changed(x: Any) -> Any:
        sizes, _ = layout_of(recipe("changed"), x.shape)
        sizes.append(x.shape[0])
        return x * len(sizes)

    def returned(x: Any) -> Any:
        return x + 1, layout_of(recipe("returned"), x.shape)

    def compared(x: Any) -> Any:
        first, second = (layout_of(recipe("compared"), x.shape) for _ in range(2))
        return x + (1 if first[0] is second[0] else 2)

    def written(x: Any) -> Any:
        return x + ramp(x.shape[0]).add_(1).sum()

    def viewed(x: Any) -> Any:
        return x + 1, ramp(x.shape[0])[1:]

    for f in (changed, returned, compared, written, viewed):
        results = []
        for call in (f, dynamo.compile(f, backend="eager")):
            layout_of.cache_clear(), ramp.cache_clear()
            results.append([call(torch.ones(n, 4)) for n in (3, 5, 6, 5)])
            last = results[-1][-1]
        assert equal(*results)
    assert last[1].storage_offset() and last[1]._is_view()
    compiled = dynamo.compile(returned, backend="eager")
    for n in (3, 5, 6):
        x = torch.ones(n, 4)
        assert compiled(x)[1] is layout_of(recipe("returned"), x.shape)


@functools.lru_cache
def ramp(n: int) -> Tensor:
    return torch.arange(n, dtype=torch.float32).mul_(2)


def test_tensors_of_caches_with_symbolic_sizes() -> None:
    calls = [(torch.ones(n, 4),) for n in (3, 5, 6, 5)]
    outcome = run(lambda x: x + ramp(x.shape[0])[:, None] * 2, *calls, fullgraph=True)
    assert outcome.recompiles == 1


def test_caches_of_symbolic_sizes_that_read_state() -> None:
    results = []
    for compiled in (False, True):
        state = {"scale": 2.0}
        scaled = functools.cache(lambda n, state=state: n * state["scale"])
        f = lambda x, scaled=scaled: x * scaled(x.shape[0])  # noqa: E731
        call: Any = dynamo.compile(f, backend="eager") if compiled else f
        found = []
        for n, scale in ((2, 2.0), (3, 2.0), (4, 2.0), (4, 5.0), (5, 5.0), (3, 7.0)):
            state["scale"] = scale
            found.append(call(torch.ones(n)))
        results.append(found)
    assert equal(*results)


HOLDER = types.SimpleNamespace(scale=2.0)


def test_caches_of_symbolic_sizes_that_read_attributes_of_globals() -> None:
    results = []
    for compiled in (False, True):
        scaled = functools.cache(lambda n: n * HOLDER.scale)
        f = lambda x, scaled=scaled: x * scaled(x.shape[0])  # noqa: E731
        call: Any = dynamo.compile(f, backend="eager") if compiled else f
        found = []
        for n, HOLDER.scale in ((2, 2.0), (3, 2.0), (4, 2.0), (4, 5.0), (5, 5.0), (3, 7.0)):
            found.append(call(torch.ones(n)))
        results.append(found)
    assert equal(*results)


SCALE = 2.0


class Scaled:
    scale = 2.0

    @staticmethod
    def by_global(n: int) -> float:
        return n * SCALE


@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.parametrize("kind", ["global", "read before", "callee", "closure", "class"])
def test_caches_of_symbolic_sizes_that_read_variables(
    monkeypatch: pytest.MonkeyPatch, kind: str, fullgraph: bool
) -> None:
    results = []
    for compiled in (False, True):
        scale = 2.0
        monkeypatch.setitem(globals(), "SCALE", scale)
        monkeypatch.setattr(Scaled, "scale", scale)
        scaled = functools.cache(
            {
                "callee": lambda n: Scaled.by_global(n),
                "closure": lambda n: n * scale,  # noqa: B023
                "class": lambda n: n * Scaled.scale,
            }.get(kind, lambda n: n * SCALE)
        )
        f = lambda x, scaled=scaled: x * scaled(x.shape[0])  # noqa: E731
        if kind == "read before":
            f = lambda x, scaled=scaled: x * SCALE * scaled(x.shape[0])  # noqa: E731
        call: Any = dynamo.compile(f, backend="eager", fullgraph=fullgraph) if compiled else f
        found = []
        for n, new in ((2, 2.0), (3, 2.0), (4, 2.0), (4, 5.0), (5, 5.0), (3, 7.0)):
            scale = new
            monkeypatch.setitem(globals(), "SCALE", scale)
            monkeypatch.setattr(Scaled, "scale", scale)
            found.append(call(torch.ones(n)))
        results.append(found)
    assert equal(*results)


def test_caches_that_forget_within_a_trace() -> None:
    count = [0]

    @functools.lru_cache(maxsize=1)
    def numbered(n: int) -> tuple[int, int]:
        count[0] += 1
        return n, count[0]

    def f(x: Any) -> Any:
        return x * numbered(1)[1], numbered(2)[1], numbered(1)[1]

    results = []
    for call in (f, dynamo.compile(f, backend="eager")):
        count[0] = 0
        numbered.cache_clear()
        results.append([call(torch.ones(2)) for _ in range(4)])
    assert equal(*results)


def test_caches_after_changes_are_traced() -> None:
    state = [1]

    @functools.lru_cache
    def read(n: int) -> int:
        return n + state[0]

    def f(x: Any) -> Any:
        state[0] += 1
        return x * read(1)

    one = torch.ones(1)
    assert torch_compile(f)(one).item() == 3
    read.cache_clear()
    assert f(one).item() == 4
    dynamo.reset()
    state[0] = 7
    assert torch_compile(f)(one).item() == 4
    assert read.cache_info().hits >= 1


def test_caches_after_changes_of_tensors_and_random_numbers() -> None:
    """What a cache would keep of them is what eager execution finds at its first call, and in its order."""

    def written(x: Any) -> Callable[..., Any]:
        weight = torch.zeros(3)
        total = functools.cache(lambda n: weight.sum() + n)

        def f(x: Any) -> Any:
            weight.add_(1)
            return x * total(2)

        return f

    def given(x: Any) -> Callable[..., Any]:
        total = functools.cache(lambda t: t.sum())
        weight = torch.zeros(3)

        def f(x: Any) -> Any:
            weight.add_(1)
            return x * total(weight)

        return f

    def drawn(x: Any) -> Callable[..., Any]:
        noise = functools.cache(torch.rand)

        def f(x: Any) -> Any:
            return torch.rand(3) * x, noise(3)

        return f

    one = torch.ones(1)
    for make in (written, given, drawn):
        results = []
        for f in (make(one), dynamo.compile(make(one), backend="eager")):
            torch.manual_seed(0)
            results.append([f(one) for _ in range(3)])
        assert equal(*results), make.__name__


def test_equal_arguments_of_other_types() -> None:
    kind = functools.lru_cache(typed=True)(lambda n: str(type(n)))
    plain = functools.cache(lambda *n: repr(n))

    def f(x: Any) -> Any:
        kinds = kind(1), kind(True), kind(1.0)
        return x + 1, kinds, plain(0.0), plain((1, 2)), plain((1.0, 2)), plain("1"), plain(1)

    check(f, X, graphs=None)


@pytest.mark.parametrize("size", [None, 2])
@pytest.mark.parametrize("typed", [False, True])
def test_what_a_cache_holds_is_seen(size: int | None, typed: bool) -> None:
    cached = functools.lru_cache(size, typed)(lambda *args, **kwargs: (args, kwargs))
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((), {}), ((1,), {}), (("a",), {}), ((1, 2.5), {}), (((1, 2),), {}), ((), {"a": 1}), ((1,), {"b": 2, "a": 1}),
    ]  # fmt: skip
    for args, kwargs in calls:
        given = (*args, *kwargs.values()), tuple(kwargs)
        assert not cache_holds(cached, *given)
        cached(*args, **kwargs)
        assert cache_holds(cached, *given)
    assert cache_holds(cached, (1.0, 2, 1), ("b", "a")) is not typed
    held = functools.lru_cache(size)(lambda n: {n + 1: n})
    held(1)
    assert cache_holds(held, (1,), ()) and not cache_holds(held, (2,), ())
    held.cache_clear()
    assert not cache_holds(held, (1,), ()) and not cache_holds(held, ([],), ())
    with pytest.raises(ValueError, match="more names than values"):
        cache_holds(held, (), ("n",))
    assert not cache_holds(len, (1,), ())


def setter() -> tuple[Callable[..., Any], Callable[[], None]]:
    state = {"v": 0}
    set_v = functools.lru_cache(lambda n: state.update(v=n) or n)

    def f(x: Any) -> Any:
        before, given, after = state["v"], set_v(3), state["v"]
        return x * before, given, after

    def again() -> None:
        set_v.cache_clear()
        state["v"] = 7

    return f, again


def writer() -> tuple[Callable[..., Any], Callable[[], None]]:
    weight = torch.ones(2)
    grow = functools.cache(lambda t, *, by: (t.add_(by), by)[1])

    def f(x: Any) -> Any:
        before = weight * 2
        return x + before.sum(), grow(weight, by=2), weight * 1

    return f, grow.cache_clear


def method() -> tuple[Callable[..., Any], Callable[[], None]]:
    class Counter:
        def __init__(self) -> None:
            self.count = 0

        @functools.lru_cache(maxsize=2)  # noqa: B019
        def add(self, n: int) -> int:
            self.count += n
            return self.count

        @functools.cached_property
        def total(self) -> int:
            self.count += 10
            return self.count

    counter = Counter()

    def f(x: Any) -> Any:
        return x * counter.count, counter.add(2), counter.count, counter.total, counter.count

    return f, Counter.add.cache_clear


def reader() -> tuple[Callable[..., Any], Callable[[], None]]:
    state = [1]
    read = functools.cache(lambda n: n + state[0])

    def f(x: Any) -> Any:
        state[0] += 1
        return x * read(1)

    return f, read.cache_clear


@pytest.mark.parametrize("make", [setter, writer, method, reader])
@pytest.mark.parametrize("fullgraph", [False, True])
def test_first_calls_that_do_more_than_compute(make: Any, fullgraph: bool) -> None:
    results = []
    for compiled in (False, True):
        f, again = make()
        call = dynamo.compile(f, backend="eager", fullgraph=fullgraph) if compiled else f
        found = [call(torch.ones(2)) for _ in range(3)]
        again()
        results.append([*found, *(call(torch.ones(2)) for _ in range(2))])
        caches = [c.cell_contents for c in f.__closure__ if hasattr(c.cell_contents, "cache_info")]
        results[-1].append([cache.cache_info().misses for cache in caches])
    assert equal(*results)


def test_cached_functions_that_call_themselves() -> None:
    @functools.cache
    def fibonacci(n: int) -> int:
        return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

    compiled = dynamo.compile(lambda x, n: x * fibonacci(n), backend="eager")
    for n in (60, 60, 61, 80):
        assert compiled(torch.ones(1), n).item() == torch.tensor(float(fibonacci(n))).item()


def test_first_calls_are_left_to_python_where_they_may_do_more() -> None:
    f, _ = setter()
    with records.collect() as found:
        assert dynamo.explain(f, X).graph_count == 1
    (record,) = (r for r in found if r.code == "FB0002")
    assert record.file == __file__ and record.line == f.__code__.co_firstlineno + 1
    assert "cached function" in record.fix and "set_v" not in record.message

    @functools.lru_cache(maxsize=1)
    def unheld(n: int, state: list[int] = []) -> int:  # noqa: B006
        state.append(n)
        return n + len(state)

    compiled = dynamo.compile(lambda x: x * unheld(1) * unheld(2), backend="eager")
    with records.collect() as found:
        calls = [int(compiled(torch.ones(1))) for _ in range(dynamo.config.recompile_limit + 2)]
    assert calls == [(2 * n + 2) * (2 * n + 4) for n in range(len(calls))]
    assert {r.code for r in found} >= {"FB0002", "GB0007"}


def test_changed_contents_of_caches() -> None:
    @functools.lru_cache
    def table(n: int) -> dict[str, int]:
        return {"n": n}

    def f(x: Any) -> Any:
        table(5)["n"] += 1
        return x * table(5)["n"]

    compiled = torch_compile(f)
    one = torch.ones(1)
    assert [compiled(one).item() for _ in range(3)] == [6, 7, 8]
    assert table(5) == {"n": 8}


def test_caches_that_keep_nothing_are_traced() -> None:
    calls = []

    @functools.lru_cache(maxsize=0)
    def made(n: int) -> list[int]:
        calls.append(n)
        return [n]

    compiled = dynamo.compile(lambda x: x * made(2)[0], backend="eager")
    for _ in range(3):
        compiled(X)
    assert calls == [2, 2, 2]


def test_caches_raise() -> None:
    @functools.lru_cache
    def refuse(n: int) -> int:
        raise ValueError(f"not {n}")

    def f(x: Any) -> Any:
        try:
            return x * refuse(2)
        except ValueError as error:
            return x, str(error)

    def unhashable(x: Any) -> Any:
        try:
            return x * doubled(([],))
        except TypeError as error:
            return x, str(error)

    check(f, X, graphs=None)
    check(unhashable, X, graphs=None)


def test_interrupts_of_caches_are_not_lost() -> None:
    interrupts: list[type[BaseException]] = []

    @functools.lru_cache
    def slow(n: int) -> int:
        if interrupts:
            raise interrupts.pop()
        return n

    compiled = torch_compile(lambda x: x * slow(2))
    assert equal(compiled(X), X * 2)
    slow.cache_clear()
    interrupts.append(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        compiled(X)
    assert equal(compiled(X), X * 2)


@dynamo.allow_in_graph
def of_kind(x: Any) -> Any:
    """As einops, which is allowed in graphs and looks for the framework of what it is given."""
    if not isinstance(x, Tensor):
        raise RuntimeError("unknown kind of tensor")
    return x * 2


def test_allowed_functions_that_ask_for_kinds_are_traced() -> None:
    check(lambda x: of_kind(x + 1), X)


def test_packages_are_prepared_before_anything_is_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    found: dict[type, str] = {}

    def get_backend(tensor: Any) -> str:
        if type(tensor) not in found:
            sys.stdout.flush()  # no trace could do that
            found[type(tensor)] = "argand"
        return found[type(tensor)]

    package = types.SimpleNamespace()
    monkeypatch.setitem(sys.modules, "einops", package)
    monkeypatch.setitem(known_packages._waiting, "einops", known_packages._einops)
    known_packages.prepare_packages()  # it is being imported
    package.einops = types.SimpleNamespace(get_backend=get_backend)
    check(lambda x: x * len(get_backend(x)), X)
    assert "einops" not in known_packages._waiting
