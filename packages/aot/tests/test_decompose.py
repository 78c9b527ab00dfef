"""Decompositions give their operators' results bit for bit, and those of gradients too."""

from __future__ import annotations

from typing import Any

import pytest
from programs import Ops, compare, copies, run, trace

import argand_aot
import argand_aten as aten
import argand_c10 as c10
from argand_aot.decompose import decompositions, register_decomposition
from argand_c10 import Operator


def leaf(*shape: int, dtype: Any = None) -> Any:
    c10.manual_seed(sum(shape))
    t = aten.randn(list(shape)).to(dtype or c10.float32)
    t.requires_grad = True
    return t


class Compiler:
    """Runs graphs as they are, and notes what is in them."""

    def __init__(self) -> None:
        self.operators: set[str] = set()

    def __call__(self, module: Any, inputs: Any) -> Any:
        module.graph.lint()
        self.operators |= {
            n.target.name for n in module.graph.nodes if isinstance(n.target, Operator)
        }
        return module.forward


def check(program: Any, inputs: list[Any], names: list[str] | None = None) -> set[str]:
    compiler = Compiler()
    table = decompositions(names)
    module, fakes = trace(program, copies(inputs)[1])
    graph = argand_aot.compile(module, fakes, forward_compiler=compiler, decompositions=table)
    compare(run(lambda *x: program(Ops(aten.ops, None), *x), inputs), run(graph, inputs))
    assert not compiler.operators & set(table)
    return compiler.operators


PROGRAMS = {
    "transpose": (lambda o, x: o.transpose(o.mul(x, 2), 0, -1), (2, 3, 4)),
    "unsqueeze": (lambda o, x: (o.unsqueeze(x, -1), o.unsqueeze(o.exp(x), 1)), (2, 3)),
    "squeeze": (lambda o, x: o.squeeze(o.exp(x)), (2, 1, 3, 1)),
    "squeeze.dims": (lambda o, x: (o.squeeze(o.exp(x), 1), o.squeeze(o.sin(x), -1)), (2, 1, 3, 1)),
    "rsub": (lambda o, x: (o.rsub(x, 2, alpha=3), o.rsub(x, o.exp(x))), (2, 3)),
    "square": (lambda o, x: o.square(x), (40,)),
    "relu": (lambda o, x: o.relu(o.sub(o.exp(x), 1)), (40,)),
    "embedding": (lambda o, x: o.embedding(x, aten.tensor([[0, 2], [1, 0]])), (3, 5)),
}


def test_every_decomposition_is_tested() -> None:
    assert set(decompositions()) == set(PROGRAMS)


@pytest.mark.parametrize("dtype", [c10.float32, c10.bfloat16, c10.float64])
@pytest.mark.parametrize("name", PROGRAMS)
def test_exact(name: str, dtype: Any) -> None:
    program, shape = PROGRAMS[name]
    x = leaf(*shape, dtype=dtype)
    check(program, [x], [name])
    check(program, [x])


def test_values_of_relu() -> None:
    """Zeros of both signs, infinities and NaN."""
    x = aten.tensor([0.0, -0.0, float("inf"), float("-inf"), float("nan"), -1.0, 2.0])
    check(lambda o, x: o.relu(x), [x])


def test_empty_indices() -> None:
    index = aten.zeros([0, 2], dtype=c10.int64)
    check(lambda o, x: o.embedding(x, index), [leaf(3, 4)])


def test_results_stay_apart() -> None:
    """Operators that become the same still give tensors of their own."""
    check(lambda o, x: (o.square(x), o.mul(x, x)), [leaf(4)])


def test_unknown_name() -> None:
    with pytest.raises(
        ValueError, match="decompositions: got 'nothing', expected one of embedding, "
    ):
        decompositions(["nothing"])


def test_registering() -> None:
    from argand_aot.decompose import table

    before = dict(table._table)
    try:
        register_decomposition("neg")(lambda ops, self: ops.mul(self, -1))
        assert "neg" not in check(lambda o, x: o.neg(x), [leaf(4)], ["neg"])
    finally:
        table._table.clear()
        table._table.update(before)
