"""Graphs made by calls on fake tensors compute what the same calls compute on real ones, also at other sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import operator_cases
import pytest

import argand_aten as aten
import argand_autograd  # noqa: F401
import argand_c10 as c10
from argand_fx import GraphModule, Interpreter
from argand_fx.graph import Graph
from argand_fx.shapes import (
    DataDependentError,
    FakeTensor,
    GraphBuilder,
    ShapeEnv,
    simplify_symbols,
)
from tools.codegen.runtime import optest, optest_calls, under_test


def build(
    program: Callable[..., Any], inputs: list[Any], dynamic: bool
) -> tuple[GraphModule, GraphBuilder, Any]:
    builder = GraphBuilder(Graph(), ShapeEnv())
    fakes = []
    for i, x in enumerate(inputs):
        dims = range(x.ndim) if dynamic else ()
        fakes.append(
            builder.placeholder(f"x{i}", builder.from_tensor(x, source=i, dynamic_dims=dims))
        )
    results = program(builder, *fakes)
    builder.output(results)
    assert builder.graph is not None
    builder.graph.lint()
    return GraphModule(dict(builder.constants), builder.graph), builder, results


def values(x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return [values(y) for y in x]
    if isinstance(x, c10.Tensor):
        return (str(x.dtype), tuple(x.shape), under_test.array_of(x).tobytes())
    return x


CASES = [
    c
    for c in operator_cases.cases()
    if "random" not in c.traits and not c.name.startswith(("empty", "new_empty"))
]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_operator(case: optest_calls.Case, dynamic: bool) -> None:
    op = optest.operator(case)
    dtype = optest._first(case, "float32", "float64", "complex64", "int64", "bool")[0]
    for call in operator_cases.calls(case, dtype):
        inputs: list[Any] = []

        def collect(x: Any) -> None:
            if isinstance(x, c10.Tensor):
                inputs.append(x)  # noqa: B023
            for y in x if isinstance(x, list) else ():
                collect(y)

        for x in [*call.args, *call.kwargs.values()]:
            collect(x)

        def program(builder: GraphBuilder, *fakes: Any) -> Any:
            rest = list(fakes)

            def swap(x: Any) -> Any:
                if isinstance(x, c10.Tensor):
                    return rest.pop(0)
                return [swap(y) for y in x] if isinstance(x, list) else x

            args = [swap(x) for x in call.args]  # noqa: B023
            return builder.call(op, args, {k: swap(v) for k, v in call.kwargs.items()})  # noqa: B023

        try:
            module, builder, results = build(program, inputs, dynamic)
        except DataDependentError:
            continue
        assert builder.shape_env.check_guards(builder.shape_env.hints) is None
        expected = values(op(*call.args, **call.kwargs))
        assert values(module(*inputs)) == expected, case.name
        assert values(Interpreter(module).run(*inputs)) == expected, case.name


def attention(b: GraphBuilder | None, x: Any, w: Any) -> Any:
    n, t, d = x.shape
    q, k, v = ((x @ w).view(n, t, 3, 2, d // 2).permute(2, 0, 3, 1, 4)).unbind(0)
    s = (q @ k.transpose(-2, -1)) / (d // 2) ** 0.5
    if t > 4:
        s = s - 1
    return (s.softmax(-1) @ v).transpose(1, 2).reshape(n, t, d) + t


def inplace(b: GraphBuilder | None, x: Any, w: Any) -> Any:
    y = x.clone()
    y[:, 1:] += 1
    y[0] = 3.0
    row = y[..., -1]
    row.mul_(2).relu_()
    y.view(-1)[::2].zero_()
    return y, row.sum(), y.max(1).values


def masks(b: GraphBuilder | None, x: Any, w: Any) -> Any:
    y = x.clone()
    y[y > 0] = 0.5
    y[:, y[0, :, 0] < 0.5] = x.sum()
    z = x.long()
    z[1][z[1] == 0] = 2.7
    return y, z


def constants(b: GraphBuilder | None, x: Any, w: Any) -> Any:
    return x[[0, 1]] + x[:, [1], None].sum() + x.new_tensor([1.0, 2.0]).sum(), x[
        x.new_tensor([1, 0]).long()
    ]


def out_argument(b: GraphBuilder | None, x: Any, w: Any) -> Any:
    target = x.new_zeros(x.shape)
    again = aten.add(x, 1, out=target)
    return target * 2, again


@pytest.mark.parametrize(
    "program", [attention, inplace, masks, constants, out_argument], ids=lambda f: f.__name__
)
def test_program(program: Any) -> None:
    def make(n: int, t: int) -> list[Any]:
        return [aten.randn(n, t, 8), aten.randn(8, 24)]

    inputs = make(3, 6)
    module, builder, _ = build(program, inputs, True)
    env = builder.shape_env
    assert values(module(*inputs)) == values(program(None, *inputs))
    names = {name: source for name, source in env.sources.items()}
    served = 0
    for n, t in ((2, 7), (5, 5), (4, 3), (2, 2), (3, 6)):
        others = make(n, t)
        bindings = {
            name: others[i].shape[d] for name, (i, kind, d) in names.items() if kind == "size"
        }
        if env.check_guards(bindings) is None:
            served += 1
            assert values(module(*others)) == values(program(None, *others)), (n, t)
    assert served >= 3, [g.expr for g in env.guards]


def test_grad_mode_and_locations() -> None:
    builder = GraphBuilder(Graph())
    x = builder.placeholder("x", builder.fake((2, 3), requires_grad=True))
    builder.location = ("model.py", 3, "forward")
    builder.stack = (builder.location,)
    y = x * 2
    builder.grad_enabled = False
    z = x * 2
    detached = y.detach()
    builder.grad_enabled = True
    assert (
        y.requires_grad
        and not z.requires_grad
        and not detached.requires_grad
        and not (x > 0).requires_grad
    )
    assert y.node.meta["location"] == builder.location and y.node.meta["stack"] == builder.stack
    assert z.node.meta["grad_enabled"] is False and "grad_enabled" not in y.node.meta
    w = builder.ops.zeros([2, 3])
    before = w.node
    w.add_(y)
    assert w.requires_grad and not before.meta["val"].requires_grad
    assert isinstance(before.meta["val"], FakeTensor) and before.meta["val"].storage is w.storage


def test_value_of_another_graph_is_refused() -> None:
    first, second = GraphBuilder(Graph()), GraphBuilder(Graph())
    x = first.placeholder("x", first.fake((2,)))
    with pytest.raises(RuntimeError, match="placeholder"):
        second.ops.add(x, 1)


def test_inplace_on_leaves_is_refused() -> None:
    leaf = aten.ones(3).requires_grad_()
    for f in (lambda x: x.add_(1), lambda x: x[:2].add_(1)):
        with pytest.raises(RuntimeError) as real:
            f(leaf)
        builder = GraphBuilder()
        fake = builder.from_tensor(leaf)
        with pytest.raises(RuntimeError) as faked:
            f(fake)
        assert str(faked.value) in str(real.value)
        builder.grad_enabled = False
        f(fake)


def test_equal_symbols_become_one() -> None:
    x, y = aten.randn(3, 4), aten.randn(3, 4)

    def program(b: Any, x: Any, y: Any) -> Any:
        z = (x.t() + y.t()) * y.shape[1]
        return z.reshape(y.shape[0], -1) + int(x.shape[0])

    module, builder, _ = build(program, [x, y], True)
    assert simplify_symbols(module.graph, builder.shape_env)
    fakes = [n.meta["val"] for n in module.graph.nodes if isinstance(n.meta.get("val"), FakeTensor)]
    assert {str(s) for f in fakes for s in (*f.shape, *f.strides, f.storage.nbytes)} <= {
        "3",
        "1",
        "s1",
        "12*s1",
    }
    mul = next(n for n in module.graph.nodes if n.name == "mul")
    assert str(mul.args[1]) == "s1"
    module.recompile()
    for width in (4, 7):
        x, y = aten.randn(3, width), aten.randn(3, width)
        assert values(module(x, y)) == values(program(None, x, y))
    assert not simplify_symbols(Graph(), ShapeEnv())
