"""`while_loop`, `scan`, `map` and `associative_scan`: results and gradients, eager and compiled."""

from __future__ import annotations

from typing import Any

import pytest

import argand as torch
from argand._higher_order_ops import associative_scan, scan
from argand._higher_order_ops.map import map as map_entries

X = torch.arange(6.0).reshape(3, 2) / 5 + 0.1


def accumulate(carry: Any, x: Any) -> tuple[Any, Any]:
    return carry * 0.5 + x.sin(), carry * x


def scanned(x: Any) -> Any:
    carry, ys = scan(accumulate, torch.ones(2), x)
    return carry, ys


def scanned_backwards(x: Any) -> Any:
    def step(carry: Any, entry: Any) -> tuple[Any, Any]:
        total = {"sum": carry["sum"] + entry["a"] * entry["b"]}
        return total, [total["sum"].exp(), entry["a"]]

    carry, ys = scan(step, {"sum": x[:, 0] * 0}, {"a": x, "b": x + 1}, dim=1, reverse=True)
    return carry["sum"], ys[0], ys[1]


def mapped(x: Any) -> Any:
    return map_entries(lambda pair, s: (pair[0] * s, pair[1].sum()), (x, x.cos()), x[0])


def counted(x: Any) -> Any:
    return torch.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * y + i), (0, x))[1:]


def cumulated(x: Any) -> Any:
    return (associative_scan(lambda a, b: a * b, x, 0, combine_mode="generic"),)


def outcome(function: Any, of: Any) -> Any:
    x = of.clone().requires_grad_()
    results = function(x)
    sum(y.sum() for y in results).backward()
    return [y.tolist() for y in results], x.grad.tolist()


@pytest.mark.parametrize("function", [scanned, scanned_backwards, mapped, counted, cumulated])
@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_one_graph_with_the_results_of_plain_python(function: Any, backend: str) -> None:
    compiled = torch.compile(function, fullgraph=True, backend=backend)
    assert outcome(compiled, X) == outcome(function, X)


def test_scan_as_a_loop() -> None:
    carry, rows = torch.ones(2), []
    for row in X:
        carry, y = accumulate(carry, row)
        rows.append(y)
    found, ys = scanned(X)
    assert torch.equal(found, carry) and torch.equal(ys, torch.stack(rows))
    last, (sums, _) = scanned_backwards(X)[0], scanned_backwards(X)[1:]
    assert sums.shape == (2, 3) and torch.equal(sums[0], last.exp())


def halved(x: Any) -> Any:
    """A tensor decides how often."""

    def body(state: Any, n: Any) -> Any:
        return {"x": state["x"] / 2}, n + 1

    return torch.while_loop(
        lambda state, n: state["x"].sum() > 0.1, body, ({"x": x}, torch.tensor(0))
    )


def test_a_loop_whose_length_tensors_decide() -> None:
    compiled = torch.compile(halved, fullgraph=True)
    with torch.compiler.collect_records() as records:
        for scale in (1.0, 1.0, 100.0, 0.0, 3.0):
            want, got = halved(X * scale), compiled(X * scale)
            assert torch.equal(got[0]["x"], want[0]["x"]) and torch.equal(got[1], want[1])
    assert not [r for r in records if r.kind != "cache"]

    def loss(x: Any) -> Any:
        return (halved(x)[0]["x"],)

    assert outcome(torch.compile(loss), X) == outcome(loss, X)


WEIGHT = torch.full((2,), 1.1, requires_grad=True)


def recurrent(x: Any, n: Any) -> Any:
    """The state carries gradients from the first turn on."""
    _, state = torch.while_loop(
        lambda i, h: i < n,
        lambda i, h: (i + 1, (h * WEIGHT + x).tanh()),
        (torch.zeros((), dtype=torch.int64), torch.zeros(3, 2)),
    )
    return (state * x.cos(), n + 1)


def loop_of_loops(x: Any, n: Any) -> Any:
    def inner(i: Any, y: Any) -> Any:
        return i + 1, torch.while_loop(
            lambda j, z: j < i, lambda j, z: (j + 1, z * 0.5 + x), (n * 0, y)
        )[1]

    return torch.while_loop(lambda i, y: i < n, inner, (n * 0, x.sin()))[1] * 2, n


def random_steps(x: Any, n: Any) -> Any:
    count, found = torch.while_loop(
        lambda i, y: y.sum() < 9, lambda i, y: (i + 1, y + torch.rand(2)), (n * 0, x)
    )
    return found * torch.rand(2), count


def without_gradients(x: Any, n: Any) -> Any:
    scaled = x * WEIGHT
    with torch.no_grad():
        _, found = torch.while_loop(
            lambda i, y: i < n, lambda i, y: (i + 1, (y * WEIGHT).sin()), (n * 0, scaled)
        )
    return scaled * found, found + 1


LAYER = torch.nn.Linear(2, 2)


def in_lower_precision(x: Any, n: Any) -> Any:
    """Weights are cast once for all turns, and gradients added in the lower precision."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        i, h = torch.while_loop(
            lambda i, h: i < n,
            lambda i, h: (i + 1, (LAYER(h.float()) * WEIGHT).to(h.dtype)),
            (n * 0, x.bfloat16()),
        )
        return LAYER(h).float(), i


def of_sizes(x: Any, n: Any) -> Any:
    joined = torch.cat([x, x])[1:]
    return (
        torch.while_loop(
            lambda y: y.sum() < 9, lambda y: (y * x.shape[0] + joined.shape[0],), (joined,)
        )[0],
        n,
    )


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize(
    "f", [recurrent, loop_of_loops, random_steps, without_gradients, of_sizes, in_lower_precision]
)
def test_loops_are_one_graph_with_the_results_of_plain_python(f: Any, backend: str) -> None:
    compiled = torch.compile(f, backend=backend, fullgraph=True)
    for n, rows in ((3, 3), (0, 3), (1, 3), (2, 3), *([(2, 4), (3, 5)] if f is of_sizes else [])):
        found = []
        for function in (f, compiled):
            torch.manual_seed(0)
            LAYER.zero_grad()
            WEIGHT.grad, x = None, (torch.arange(2.0 * rows).reshape(rows, 2) / 5).requires_grad_()
            results = function(x, torch.tensor(n))
            results[0].sum().backward()
            found.append(
                repr(
                    [
                        [y.tolist() for y in results],
                        [y.requires_grad for y in results],
                        x.grad,
                        WEIGHT.grad,
                        [p.grad for p in LAYER.parameters()],
                    ]
                )
            )
        assert found[0] == found[1]


def test_the_node_of_a_loop() -> None:
    graphs: list[Any] = []

    def backend(module: Any, inputs: Any) -> Any:
        graphs.append(module)
        return module.forward

    torch.compile(halved, backend=backend, fullgraph=True)(X)
    (module,) = graphs
    assert "run_loop" in str(module.graph) and "lt" not in str(module.graph)
    assert torch.compiler.explain(halved, X).graph_count == 1
    text = [str(graph.graph) for graph in module.children()]
    assert len(text) == 2 and "gt" in text[0] and "div" in text[1]


@pytest.mark.parametrize("compiled", [False, True])
def test_results_of_loops_and_branches_have_memory_of_their_own(compiled: bool) -> None:
    def loops(x: Any, n: Any) -> Any:
        (kept,) = torch.while_loop(lambda y: y.sum() < 0, lambda y: (y + 1,), (x,))
        _, a, b = torch.while_loop(
            lambda i, y, z: i < n, lambda i, y, z: (i + 1, z, y), (n * 0, x, x * 2)
        )
        for y in (kept, a, b):
            y.mul_(3)
        return kept, a, b, x + 0

    def branches(x: Any, n: Any) -> Any:
        # integers may fail to be divided: one branch runs
        y = torch.cond(n > 0, lambda x, n: x, lambda x, n: x * (n // n), (x, n))
        return y.mul_(3) if compiled else y * 3, x + 0

    for function in (loops, branches):
        call = torch.compile(function, fullgraph=True) if compiled else function
        for n in (1, 2):
            x = X.clone()
            *found, same = call(x, torch.tensor(n))
            assert torch.equal(same, X) and torch.equal(x, X)
            assert torch.equal(found[0], X * 3)


def test_loops_that_write_to_what_they_are_given_are_refused() -> None:
    def writing(x: Any) -> Any:
        return torch.while_loop(lambda y: y.sum() < 9, lambda y: (y.add_(1),), (x.clone(),))

    for call in (writing, torch.compile(writing), torch.compile(writing, fullgraph=True)):
        with pytest.raises(RuntimeError, match="fullgraph=True|wrote to a tensor that it was"):
            call(X)


def test_loops_that_are_left_to_plain_python() -> None:
    def growing(x: Any) -> Any:
        return torch.while_loop(lambda y: y.sum() < 9, lambda y: (torch.cat([y, y]),), (x,))

    def counting(x: Any) -> Any:
        return torch.while_loop(lambda i, y: y.sum() < 9, lambda i, y: (i + 1, y * 2), (0, x))

    for f in (growing, counting):
        assert repr(torch.compile(f)(X)) == repr(f(X))
        with pytest.raises(RuntimeError, match="fullgraph=True"):
            torch.compile(f, fullgraph=True)(X)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: torch.while_loop(3, lambda i: i, (0,)), "expected cond_fn and body_fn"),
        (
            lambda: torch.while_loop(lambda i: i, lambda i: i, X),
            "got carried_inputs of type Tensor",
        ),
        (lambda: torch.while_loop(lambda i: i, lambda i: i, ("a",)), "got str in carried_inputs"),
        (lambda: torch.while_loop(lambda x: x > 0, lambda x: (x,), (X,)), r"gave shape \[3, 2\]"),
        (
            lambda: torch.while_loop(lambda x: x.sum() > 0, lambda x: (x.double(),), (X,)),
            "other structures, dtypes",
        ),
        (lambda: scan(3, X[0], X), "got 3 as combine_fn"),
        (lambda: scan(accumulate, 3.0, X), "got init of"),
        (lambda: scan(lambda c, x: (c,), X[0], X), "return two values"),
        (lambda: scan(lambda c, x: (c.double(), x), X[0], X), "other shapes or dtypes"),
        (lambda: scan(accumulate, X[0], X[:0]), "expected one that is not 0"),
        (lambda: map_entries(lambda x: x, 3), "expected tensors"),
    ],
)
def test_wrong_arguments(call: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        call()


def test_results_that_are_none() -> None:
    y, nothing = map_entries(lambda x: (x + 1, None), torch.arange(3.0))
    assert y.tolist() == [1.0, 2.0, 3.0] and nothing is None
