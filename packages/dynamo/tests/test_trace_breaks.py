"""Graph breaks: what runs, what is recorded, and that results stay Python's."""

from __future__ import annotations

import copy
import logging
import random
import threading
import time
from typing import Any

import pytest
from tracing import check, equal, fresh, run, torch  # noqa: F401

import argand_dynamo as dynamo
from argand_c10 import Module, metrics
from argand_dynamo import GraphBreak
from argand_dynamo.causes import CAUSES

X = torch.arange(12, dtype=torch.float32).reshape(3, 4) / 7


def codes(*names: str) -> list[str]:
    return [CAUSES[name].code for name in names]


def test_codes_are_unique() -> None:
    assert len({cause.code for cause in CAUSES.values()}) == len(CAUSES)


def test_print(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any, n: int) -> Any:
        y = x + 1
        print("seen", n, y.shape)
        z = y * n
        print("again")
        return z - y, n

    outcome = run(f, (X, 2), (X, 2))
    assert outcome.breaks == codes("print", "print") and len(outcome.graphs) == 3
    assert capsys.readouterr().out.count("seen 2") == 4
    record = outcome.kinds("graph_break")[0]
    assert record.file == __file__ and record.line == f.__code__.co_firstlineno + 2 and record.fix


def test_item_and_numbers() -> None:
    def f(x: Any) -> Any:
        s = x.sum().item()
        y = x * s
        k = int(y.max())
        return y + k, s, float(x[0, 0])

    outcome = run(f, (X,), (X,), (X * 2,))
    assert set(outcome.breaks) == set(codes("data_dependent_value"))


def test_data_dependent_branch() -> None:
    def f(x: Any) -> Any:
        y = x * 2
        if y.sum() > 3:
            z = y + 1
        else:
            z = y - 1
        return z * y

    outcome = run(f, (X,), (-X,), (X,), (-X,))
    assert outcome.breaks == codes("data_dependent_branch") and len(outcome.graphs) == 3


def test_data_dependent_operators() -> None:
    def f(x: Any) -> Any:
        y = x[x > 0.5]
        return y * 2, (x + 1).nonzero()

    assert set(run(f, (X,)).breaks) == set(codes("data_dependent_shape"))


def test_break_in_a_loop_does_not_compile_forever() -> None:
    def f(x: Any, n: int) -> Any:
        for i in range(n):
            x = x + i
            if x.sum() > 1e6:
                break
            x = x * 1.5
        return x

    outcome = run(f, (X, 12), (X, 12))
    assert len(outcome.graphs) < 10


def test_messages_of_logging_are_given_at_each_call() -> None:
    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append((record.getMessage(), record.funcName, record.lineno - line))

    messages: list[Any] = []
    logger, handler = logging.getLogger("test_trace_breaks"), Kept()
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    logger.propagate = False

    def f(x: Any) -> Any:
        y = x * 2
        logger.info("a row of %s", y.shape[0])
        logger.debug("nobody hears it")
        return y + 1

    line = f.__code__.co_firstlineno
    f(X)
    outcome = run(f, (X,), (X,))
    assert outcome.breaks == codes("print")
    assert len(messages) >= 5 and set(messages) == {("a row of 3", "f", 2)}
    with pytest.raises(GraphBreak, match=r"a message of logging(?s:.)*fix: print outside"):
        dynamo.compile(f, backend="eager", fullgraph=True)(X)
    logger.setLevel(logging.WARNING)
    f(X)  # what is not given is in the graph, once the logger knows it
    assert equal(dynamo.compile(f, backend="eager", fullgraph=True)(X), X * 2 + 1)


def test_class_attributes_are_changed_once_a_call() -> None:
    class Counted:
        count = 0

        def scaled(self, x: Any) -> Any:
            y = x + 1
            type(self).count += 1
            return y * type(self).count

    compiled = dynamo.compile(Counted().scaled, backend="eager")
    for number in range(1, 4):
        assert equal(compiled(X), (X + 1) * number)
        assert Counted.count == number
    with pytest.raises(GraphBreak, match=r"attribute 'count' of class(?s:.)*test_trace_breaks.py"):
        dynamo.compile(Counted().scaled, backend="eager", fullgraph=True)(X)


def test_random_numbers_of_python_are_drawn_at_each_call() -> None:
    def f(x: Any) -> Any:
        items = [1, 2, 3]
        random.shuffle(items)
        y = x * random.random() + random.randint(0, 5)
        return (
            y * items[0] + random.choice(items) + random.uniform(1, 2) + random.Random(3).random()
        )

    compiled = dynamo.compile(f, backend="eager")
    for seed in range(3):
        random.seed(seed)
        want = f(X), f(X), random.random()
        random.seed(seed)
        assert equal((compiled(X), compiled(X), random.random()), want)


def test_deep_copies_of_tensors_and_modules() -> None:
    weight = torch.ones(3)
    module = Module()
    module.weight = weight.clone()

    def f(x: Any) -> Any:
        y, both = copy.deepcopy(x), copy.deepcopy({"a": [x, x]})
        y.add_(1)
        both["a"][0].mul_(2)
        other = copy.deepcopy(module)
        other.weight.add_(5)
        return x + y, both, both["a"][0] is both["a"][1], other.weight * module.weight

    run(f, (X,), (X,))
    assert equal(module.weight, weight)


def test_break_inside_with() -> None:
    def f(x: Any) -> Any:
        with torch.no_grad():
            y = x * 2
            print(end="")
            z = y + x
        w = z + x
        return w, z, torch.is_grad_enabled()

    outcome = run(f, (X.clone().requires_grad_(),))
    assert outcome.breaks == codes("print")


def test_break_with_live_containers_and_objects() -> None:
    class Box:
        def __init__(self, value: Any) -> None:
            self.value = value

    def f(x: Any, d: dict[str, Any]) -> Any:
        box = Box(x + 1)
        items = [x, box.value]
        d["n"] = items
        pairs = iter([1, 2, 3])
        first = next(pairs)
        print(end="")
        items.append(box.value * 2)
        box.value = 3
        return items, d["n"] is items, box.value, first, list(pairs), d

    outcome = run(f, (X, {}), (X, {}))
    assert outcome.breaks == codes("print", "generator")


def test_break_with_thread_local_state() -> None:
    class State(threading.local):
        depth = 0

    state = State()

    def f(x: Any) -> Any:
        state.depth += 1
        state.gone = 1
        y = x * state.depth
        print(end="")
        state.depth -= 1
        del state.gone
        return y, state.depth, hasattr(state, "gone")

    assert set(run(f, (X,), (X,)).breaks) == set(codes("print"))
    assert state.__dict__ == {"depth": 0}


def test_break_with_closures() -> None:
    def f(x: Any, n: int) -> Any:
        count = n

        def add(y: Any) -> Any:
            nonlocal count
            count += 1
            return y + count

        x = add(x)
        print(end="")
        x = add(x)
        return x, count, add(x)

    outcome = run(f, (X, 3), (X, 3))
    assert outcome.breaks == codes("print")


def test_break_in_called_functions() -> None:
    def inner(x: Any) -> Any:
        y = x + 1
        print(end="")
        return y * 2

    def middle(x: Any) -> Any:
        return inner(x * 3) - 1

    def f(x: Any) -> Any:
        y = x.sin()
        return middle(y) + middle(x)

    outcome = run(f, (X,), (X,))
    assert set(outcome.breaks) == set(codes("print"))
    # All of the arithmetic is in graphs: x.sin; x * 3; x + 1; y * 2; - 1; the last sum.
    names = [
        n.target.name for g in outcome.graphs for n in g.graph.nodes if n.op == "call_function"
    ]
    assert {"sin", "mul", "add", "sub"} <= set(names)


def test_unknown_function() -> None:
    def f(x: Any) -> Any:
        y = x + 1
        started = time.perf_counter() > 0
        return y * 2, started

    outcome = run(f, (X,))
    record = outcome.kinds("graph_break")[0]
    assert record.code == CAUSES["unknown_function"].code and "perf_counter" in record.message


def test_disabled_and_requested() -> None:
    @dynamo.disable
    def plain(x: Any) -> Any:
        return x * 2

    def f(x: Any) -> Any:
        y = plain(x + 1)
        dynamo.graph_break()
        return y + 1

    assert run(f, (X,)).breaks == codes("disabled", "requested")


def test_operator_errors_are_eagers() -> None:
    def f(x: Any, y: Any) -> Any:
        z = x + 1
        return z @ y

    outcome = run(f, (X, X))
    assert outcome.breaks == codes("operator_error")
    with pytest.raises(Exception) as plain:
        f(X, X)
    with pytest.raises(type(plain.value)):
        dynamo.compile(f, backend="eager", fullgraph=True)(X, X)


def test_break_in_try() -> None:
    def f(x: Any, log: list[str]) -> Any:
        try:
            y = x + 1
            print(end="")
            y = y * 2
            if y.sum() > 0:
                raise KeyError("big")
        except KeyError as error:
            log.append(str(error))
            y = y - 1
        finally:
            log.append("end")
        return y * 3

    run(f, (X, []), (-X, []))


def test_exceptions_pass_through_frames() -> None:
    def inner(x: Any) -> Any:
        print(end="")
        raise ValueError("from inside")

    def f(x: Any) -> Any:
        y = x + 1
        try:
            inner(y)
        except ValueError as error:
            return y, str(error)
        return None

    run(f, (X,), (X,))


def test_fullgraph_names_the_line() -> None:
    def f(x: Any) -> Any:
        y = x + 1
        print(y)
        return y

    with pytest.raises(GraphBreak) as info:
        dynamo.compile(f, backend="eager", fullgraph=True)(X)
    assert info.value.code == CAUSES["print"].code
    assert info.value.line == f.__code__.co_firstlineno + 2 and "fix:" in str(info.value)


def test_errors_of_the_tracer_are_no_errors_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    from argand_dynamo.tracer import Tracer

    def fail(*args: Any) -> Any:
        raise AssertionError("a bug")

    monkeypatch.setattr(Tracer, "tensor_input", fail)
    with dynamo.config.patch(suppress_errors=True):
        outcome = run(lambda x: x + 1, (X,))
    assert [r.code for r in outcome.kinds("fallback")] == ["FB0001"]
    with pytest.raises(AssertionError, match="a bug"):
        dynamo.compile(lambda x: x + 1, backend="eager", fullgraph=True)(X)


def test_backward_inside() -> None:
    def f(x: Any, w: Any) -> Any:
        loss = (x * w).sum()
        loss.backward()
        return loss.detach(), w.grad * 2

    outcome = run(f, (X, torch.ones(4).requires_grad_()))
    assert CAUSES["backward"].code in outcome.breaks


def test_modules_that_break() -> None:
    class Noisy(Module):
        def forward(self, x: Any) -> Any:
            y = x * 2
            print(end="")
            return y + 1

    class Net(Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = Noisy()
            self.b = Noisy()

        def forward(self, x: Any) -> Any:
            return self.b(self.a(x.sin())).cos()

    net = Net()
    compiled = dynamo.compile(net, backend="eager")
    metrics.reset()
    assert equal(compiled(X), net(X)) and equal(compiled(X), net(X))
    assert metrics.counters()["graphs"] == 4


def test_generators_as_compiled_functions_run_plain() -> None:
    def numbers(x: Any) -> Any:
        yield x + 1
        yield x + 2

    def f(x: Any) -> Any:
        return numbers(x)

    values = list(dynamo.compile(f, backend="eager")(X))
    assert equal(values, [X + 1, X + 2])
    assert equal(list(dynamo.compile(numbers, backend="eager")(X)), [X + 1, X + 2])


def test_iterators_from_outside() -> None:
    def f(x: Any, items: Any) -> Any:
        for i in items:
            x = x + i
        return x

    compiled = dynamo.compile(f, backend="eager")
    assert equal(compiled(X, iter([1, 2, 3])), X + 1 + 2 + 3)
    assert equal(compiled(X, (k for k in range(3))), X + 0 + 1 + 2)


def test_random_numbers_and_seeds() -> None:
    def f(x: Any) -> Any:
        torch.manual_seed(3)
        return x + torch.rand(4)

    run(f, (X,), (X,))
    g = lambda x: torch.rand(3) * x.sum() + torch.randn(3)  # noqa: E731
    compiled = dynamo.compile(g, backend="eager", fullgraph=True)
    torch.manual_seed(1)
    want = [g(X), g(X)]
    torch.manual_seed(1)
    assert equal([compiled(X), compiled(X)], want)


def test_python_outside_of_compiled_calls_is_not_traced() -> None:
    from argand_dynamo import _C

    seen = []

    def g(x: Any) -> Any:
        seen.append(_C.is_hook_enabled())
        return x

    def f(x: Any) -> Any:
        y = x + 1
        print(end="")
        return g(y)

    dynamo.compile(f, backend="eager")(X)
    assert not _C.is_hook_enabled()


def test_explain() -> None:
    def f(x: Any) -> Any:
        y = x + 1
        print(end="")
        return y * 2

    found = dynamo.explain(f, X)
    assert (found.graph_count, found.graph_break_count, found.op_count) == (2, 1, 2)
    assert "Graph breaks: 1" in str(found) and found.break_reasons[0].code == CAUSES["print"].code
    assert any("'x'" in guard for guard in found.guards)
    assert dynamo.explain(f)(X).graph_count == 2


def test_break_inside_generator_contexts_and_lazy_iterators() -> None:
    import contextlib

    @contextlib.contextmanager
    def scope(log: list[str]) -> Any:
        log.append("in")
        try:
            yield len(log)
        finally:
            log.append("out")

    def f(x: Any, log: list[str]) -> Any:
        y = x + 1
        with scope(log) as n:
            y = y * n
            print(end="")
            y = y - 1
        doubled = map(lambda v: v * 2, [1, 2, 3])
        y = y * next(doubled)
        print(end="")
        return y, list(doubled), log

    outcome = run(f, (X, []), (X, []))
    assert not outcome.kinds("fallback") and len(outcome.graphs) >= 3


def test_whether_an_input_is_a_view() -> None:
    def f(x: Any) -> Any:
        y = x + 1
        view = y.view(2, 6)
        print(end="")
        return view._is_view(), y * 2, view * 2

    assert f(X)[0] and dynamo.compile(f, backend="eager")(X)[0]


def prints(x: Any) -> Any:
    print(end="")
    return x.sin()


def plain(x: Any) -> Any:
    return x.sin()


class Calls(Module):
    def __init__(self, *functions: Any) -> None:
        super().__init__()
        self.functions = list(functions)

    def forward(self, x: Any) -> Any:
        for function in self.functions:
            x = function(x)
        return x + 1


def test_a_break_of_one_callee_is_not_that_of_another() -> None:
    def outer(function: Any, x: Any) -> Any:
        return function(x * 2) * 3

    callees = ((prints, plain), (Calls(plain, prints), Calls(plain, plain)), (prints, len))
    for breaking, whole in callees:
        dynamo.reset()
        graphs: list[Any] = []

        def backend(gm: Any, inputs: Any, graphs: list[Any] = graphs) -> Any:
            graphs.append(gm)
            return gm.forward

        compiled = dynamo.compile(outer, backend=backend)
        compiled(breaking, X)
        if whole is len:
            assert compiled(whole, X) == len(X) * 3
            continue
        del graphs[:]
        assert equal(compiled(whole, X), outer(whole, X)) and len(graphs) == 1
        assert equal(compiled(breaking, X), outer(breaking, X)) and len(graphs) == 1
