"""Recompilation, symbolic sizes and integers, and what guards notice."""

from __future__ import annotations

import random
import types
from typing import Any

import pytest
from tracing import check, equal, fresh, run, torch  # noqa: F401

import argand_dynamo as dynamo
from argand_c10 import Module, Parameter
from argand_c10.records import collect
from argand_dynamo import RecompileLimitError

X = torch.arange(12, dtype=torch.float32).reshape(3, 4) / 7


def rows(n: int, m: int = 4) -> Any:
    return torch.arange(n * m, dtype=torch.float32).reshape(n, m) / 5


def test_a_changed_size_becomes_symbolic() -> None:
    def f(x: Any) -> Any:
        return (x * 2).reshape(-1, 2) + x.shape[0], x.shape, x.mean(0)

    outcome = run(f, *[(rows(n),) for n in (3, 5, 7, 2, 11, 30)])
    assert len(outcome.graphs) == 2 and outcome.recompiles == 1
    outcome = run(f, (rows(3),), (rows(1),), (rows(4),), (rows(1),))
    assert len(outcome.graphs) <= 3


class Doubling(Module):
    def forward(self, x: Any) -> Any:
        return x * 2


def test_recompilations_of_a_module_name_its_forward() -> None:
    compiled = dynamo.compile(Doubling(), backend="eager")
    with collect() as records:
        for n in (3, 5, 7):
            compiled(rows(n))
    (record,) = records
    assert record.file == __file__ and "Doubling.forward is compiled again" in str(record)
    assert record.line == Doubling.forward.__code__.co_firstlineno


def test_branches_on_symbolic_sizes_are_guarded() -> None:
    def f(x: Any) -> Any:
        if x.shape[0] > 8:
            return x * 2
        return x + x.shape[0]

    outcome = run(f, *[(rows(n),) for n in (3, 5, 9, 20, 4, 12)])
    assert len(outcome.graphs) == 3


def test_sizes_in_results_and_loops() -> None:
    def f(x: Any, y: Any) -> Any:
        n = x.shape[0]
        total = torch.zeros(n, 4)
        for _ in range(2):
            total = total + x
        return (
            total,
            n * 2 + 1,
            [n, (n // 2, n % 3)],
            torch.cat([x, y]).shape,
            y[: n - 1],
            torch.arange(n),
        )

    run(f, *[(rows(n), rows(n + 2)) for n in (4, 6, 9, 5)])


def test_integers_become_symbolic() -> None:
    def f(x: Any, n: int) -> Any:
        return x * n + 1, n * 2

    outcome = run(f, *[(X, n) for n in (3, 5, 8, 100, -4)])
    assert len(outcome.graphs) == 2


def test_dynamic_true_and_false() -> None:
    def f(x: Any) -> Any:
        return x * x.shape[0]

    assert len(run(f, *[(rows(n),) for n in (3, 5, 7)], dynamic=True).graphs) == 1
    assert len(run(f, *[(rows(n),) for n in (3, 5, 7)], dynamic=False).graphs) == 3


def test_mark_dynamic() -> None:
    x = rows(3)
    dynamo.mark_dynamic(x, 0)
    graphs: list[Any] = []

    def backend(module: Any, inputs: Any) -> Any:
        graphs.append(module)
        return module.forward

    compiled = dynamo.compile(lambda x: x * 2, backend=backend)
    compiled(x)
    compiled(rows(6))
    assert len(graphs) == 1
    with pytest.raises(IndexError):
        dynamo.mark_dynamic(x, 2)


def test_transposed_and_strided_inputs() -> None:
    def f(x: Any) -> Any:
        return x + 1, x.t().contiguous(), x.stride()

    run(f, *[(rows(n).t(),) for n in (3, 5, 7)], (rows(4),), (rows(8)[::2],), (rows(12)[::2],))


def test_recompile_limit() -> None:
    def f(x: Any, name: str) -> Any:
        return x + len(name), name

    with dynamo.config.patch(recompile_limit=3):
        outcome = run(f, *[(X, "a" * k) for k in range(6)])
        assert len(outcome.graphs) == 3
        assert (
            outcome.kinds("recompile")[-1].code == "RC0002"
            and "'name'" in outcome.kinds("recompile")[-1].message
        )
        compiled = dynamo.compile(f, backend="eager", fullgraph=True)
        with pytest.raises(RecompileLimitError):
            for k in range(6):
                compiled(X, "b" * k)


def test_same_code_compiled_again_shares_its_forms() -> None:
    graphs: list[Any] = []

    def backend(module: Any, inputs: Any) -> Any:
        graphs.append(module)
        return module.forward

    def make(k: int) -> Any:
        return lambda x: x * k

    for _ in range(5):
        assert equal(dynamo.compile(make(3), backend=backend)(X), X * 3)
    assert equal(dynamo.compile(make(4), backend=backend)(X), X * 4)
    assert len(graphs) == 2


class Inner(Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = Parameter(torch.ones(4))
        self.factor = 2.0
        self.names = ["a", "b"]
        self.table = {"k": 1}

    def forward(self, x: Any) -> Any:
        if self.training:
            x = x + 1
        return x * self.weight * self.factor * len(self.names) + self.table["k"]


LEVEL = 1.0


class Holder:
    ratio = 3

    def __init__(self) -> None:
        self.inner = Inner()

    def scaled(self, x: Any) -> Any:
        return x * self.ratio


def other_scaled(self: Any, x: Any) -> Any:
    return x * 100


def _mutations(holder: Holder, state: dict[str, Any]) -> list[Any]:
    def set_global() -> None:
        global LEVEL
        LEVEL += 1

    def set_level() -> None:
        state["cell"](random.randint(0, 50))

    inner = holder.inner
    return [
        set_global,
        set_level,
        lambda: inner.train(not inner.training),
        lambda: setattr(inner, "factor", inner.factor + 1),
        lambda: inner.names.append("c"),
        lambda: inner.table.update(k=inner.table["k"] + 1),
        lambda: setattr(Holder, "ratio", Holder.ratio + 1),
        lambda: setattr(Holder, "scaled", other_scaled),
        lambda: setattr(holder, "ratio", random.randint(0, 50)),
        lambda: inner.weight.requires_grad_(not inner.weight.requires_grad),
        lambda: setattr(inner, "weight", Parameter(torch.full((1,), 2.0))),
        lambda: setattr(holder, "inner", Inner()),
        lambda: setattr(inner, "forward", lambda x: x * 7),
        lambda: inner.register_forward_hook(lambda m, a, out: out + 5),
        lambda: torch.set_grad_enabled(not torch.is_grad_enabled()),
        lambda: state.update(x=rows(3).t().contiguous().t()),
        lambda: state.update(x=rows(5)),
        lambda: state.update(x=rows(3).to(torch.float64)),
        lambda: state.update(y=state["x"]),
        lambda: state.update(n=state["n"] + 1),
        lambda: state.update(items=[1, 2, 3]),
        lambda: setattr(other_scaled, "__defaults__", None),
    ]


@pytest.mark.parametrize("seed", range(40))
def test_every_change_is_noticed(seed: int) -> None:
    """Changes of anything that a compiled function has read, in random order: it must do what plain Python does."""
    global LEVEL
    rng = random.Random(seed)
    holder = Holder()
    level = 1
    state: dict[str, Any] = {"x": rows(3), "y": rows(3), "n": 2, "items": [1, 2]}

    def set_cell(value: int) -> None:
        nonlocal level
        level = value

    state["cell"] = set_cell

    def f(x: Any, y: Any, n: int, items: list[int], holder: Holder) -> Any:
        z = holder.inner(x) + holder.scaled(y).sum() * n + sum(items) + LEVEL * level
        return z, x is y, x.is_contiguous(), torch.is_grad_enabled()

    compiled = dynamo.compile(f, backend="eager")
    ratio, scaled, LEVEL = Holder.ratio, Holder.scaled, 1.0
    try:
        with dynamo.config.patch(recompile_limit=1000):
            for _ in range(12):
                args = (state["x"], state["y"], state["n"], state["items"], holder)
                assert equal(compiled(*args), f(*args))
                assert equal(compiled(*args), f(*args))
                rng.choice(_mutations(holder, state))()
    finally:
        Holder.ratio, Holder.scaled = ratio, scaled
        torch.set_grad_enabled(True)


def test_aliased_inputs_that_are_changed() -> None:
    def f(x: Any, y: Any) -> Any:
        x.add_(1)
        return x + y

    compiled = dynamo.compile(f, backend="eager")
    for make in (
        lambda: (rows(3), rows(3)),
        lambda: (lambda t: (t, t))(rows(3)),
        lambda: (lambda t: (t, t[:]))(rows(3)),
    ):
        assert equal(compiled(*make()), f(*make()))


def test_aliased_lists_that_are_changed() -> None:
    def f(x: Any, a: list[int], b: list[int]) -> Any:
        a.append(1)
        return x + len(b)

    compiled = dynamo.compile(f, backend="eager")
    assert equal(compiled(X, [], []), X + 0)
    same: list[int] = []
    assert equal(compiled(X, same, same), X + 1)
    assert equal(compiled(X, [], []), X + 0)


def test_missing_attributes_that_appear_are_noticed() -> None:
    class Plain:
        pass

    def f(x: Any, module: Inner, plain: Plain) -> Any:
        if hasattr(module, "extra"):
            x = x + module.extra
        return x * getattr(plain, "k", 1), hasattr(module, "child")

    compiled = dynamo.compile(f, backend="eager")
    module, plain = Inner(), Plain()
    changes: list[Any] = [
        lambda: None,
        lambda: setattr(module, "extra", Parameter(torch.ones(4))),
        lambda: setattr(plain, "k", 5),
        lambda: setattr(Plain, "k", 6),
        lambda: delattr(plain, "k"),
        lambda: setattr(module, "child", Inner()),
        lambda: module.register_buffer("other", torch.ones(1)),
        lambda: delattr(module, "extra"),
        lambda: setattr(module, "extra", 3),
    ]
    for change in changes:
        change()
        assert equal(compiled(X, module, plain), f(X, module, plain))


def test_changed_methods_of_bases_are_noticed() -> None:
    class A:
        def g(self, x: Any) -> Any:
            return x + 1

    class B(A):
        def g(self, x: Any) -> Any:
            return super().g(x) * 2

    compiled = dynamo.compile(lambda x, b: b.g(x), backend="eager")
    b = B()
    assert equal(compiled(X, b), (X + 1) * 2)
    A.g = lambda self, x: x - 1  # type: ignore[method-assign]
    assert equal(compiled(X, b), (X - 1) * 2)
    B.g = lambda self, x: x * 5  # type: ignore[method-assign]
    assert equal(compiled(X, b), X * 5)


def test_compiled_functions_call_compiled_functions() -> None:
    @dynamo.compile(backend="eager")
    def inner(x: Any) -> Any:
        return x * 2

    module = dynamo.compile(Inner(), backend="eager")
    check(lambda x: inner(x + 1) + module(x), X)


def test_numbers_that_are_counted_up_are_dynamic() -> None:
    counter = types.SimpleNamespace(step=1)

    def f(x: Any, n: int) -> Any:
        counter.step += 1
        n *= 2
        n -= counter.step
        n //= 3
        return x * 2, n

    compiled = dynamo.compile(f, backend="eager")
    with collect() as records:
        for k in range(2, 12):
            assert compiled(X, 10 * k)[1] == (20 * k - k) // 3
    assert counter.step == 11
    assert len([r for r in records if "is compiled again" in str(r)]) <= 2
