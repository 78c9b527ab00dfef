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
    compiled = torch.compile(halved)
    with torch.compiler.collect_records() as records:
        for scale in (1.0, 1.0, 100.0, 0.0, 3.0):
            want, got = halved(X * scale), compiled(X * scale)
            assert torch.equal(got[0]["x"], want[0]["x"]) and torch.equal(got[1], want[1])
    assert not [r for r in records if r.kind == "fallback"]
    assert len([r for r in records if r.kind == "graph_break"]) <= 4

    def loss(x: Any) -> Any:
        return (halved(x)[0]["x"],)

    assert outcome(torch.compile(loss), X) == outcome(loss, X)


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
