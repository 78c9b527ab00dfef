"""Compiled programs equal eager ones bit for bit: results, gradients, changed inputs, aliases."""

from __future__ import annotations

from typing import Any

import pytest
from programs import Ops, check, compare, compiled, run, same, trace

import argand_aten as aten
import argand_autograd as autograd
import argand_c10 as c10
from argand_aot import CompiledGraph, EagerGraph, aot_eager, joint
from argand_aot.derive import derive
from argand_autograd import graph_ops
from argand_c10 import records
from argand_fx import Graph, GraphModule
from argand_fx.shapes import GraphBuilder


def leaf(*shape: int, dtype: Any = None, seed: int = 0) -> Any:
    c10.manual_seed(seed + sum(shape))
    t = aten.randn(list(shape)).to(dtype or c10.float32)
    t.requires_grad = True
    return t


def data(*shape: int, dtype: Any = None, seed: int = 0) -> Any:
    t = leaf(*shape, dtype=dtype, seed=seed).detach()
    return t


def inner(*shape: int, seed: int = 0) -> Any:
    """A tensor with a history."""
    return leaf(*shape, seed=seed) * 1.0


ELEMENTWISE = {
    "chain": lambda o, x, w: o.tanh(o.mul(o.add(x, w), x)),
    "gelu": lambda o, x, w: o.gelu(o.mul(x, w)),
    "silu": lambda o, x, w: o.silu(o.sub(x, w, alpha=3)),
    "shared": lambda o, x, w: o.add(o.mul(o.sin(x), o.cos(x)), o.mul(x, o.mul(w, w))),
    "broadcast": lambda o, x, w: o.div(o.mul(x, o.select(w, 0, 0)), o.add(o.abs(w), 1.0)),
    "where": lambda o, x, w: o.where(o.gt(x, 0), o.mul(x, w), o.exp(x)),
    "pow": lambda o, x, w: o.add(o.pow(x, 3), o.sqrt(o.abs(w))),
    "clamp": lambda o, x, w: o.clamp(o.mul(x, w), -0.5, 0.5),
    "maximum": lambda o, x, w: o.maximum(x, o.minimum(w, o.mul(x, x))),
    "several": lambda o, x, w: (o.mul(x, w), o.sigmoid(x), o.add(w, 1)),
    "lerp": lambda o, x, w: o.lerp(x, w, 0.3),
    "addcmul": lambda o, x, w: o.addcmul(x, w, x, value=0.5),
}


@pytest.mark.parametrize("dtype", [c10.float32, c10.float64, c10.bfloat16, c10.float16])
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise(name: str, dtype: Any) -> None:
    check(ELEMENTWISE[name], [leaf(3, 5, dtype=dtype), leaf(3, 5, dtype=dtype, seed=1)])


def test_mixed_dtypes_and_inputs() -> None:
    program = lambda o, x, y, n: o.mul(o.add(x, y), n)  # noqa: E731
    check(program, [leaf(4, 3), leaf(3, dtype=c10.float64), data(4, 1)])


def test_gradients_that_are_not_wanted_are_none() -> None:
    graph = check(lambda o, x, w: (o.mul(x, 2), o.detach(w)), [leaf(3), leaf(3, seed=1)])
    x, w = leaf(3), leaf(3)
    graph(x, w)[0].sum().backward()
    assert w.grad is None


def test_only_some_gradients_arrive() -> None:
    """An output without a gradient adds nothing, not 0 * inf."""
    program = lambda o, x: (o.log(x), o.mul(x, 2.0))  # noqa: E731
    x = aten.zeros([3])
    x.requires_grad = True
    graph = compiled(program, [x])
    graph(x)[1].sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]
    x.grad = None
    graph(x)[0].sum().backward()
    assert x.grad.tolist() == [float("inf")] * 3


def loss_and_logits(o: Ops, x: Any, w: Any) -> Any:
    logits = o.matmul(o.tanh(o.matmul(x, w)), o.exp(w))
    return o.mean(o.mul(o.log_softmax(logits, -1), o.sigmoid(logits))), logits


def loss_and_view(o: Ops, x: Any, w: Any) -> Any:
    hidden = o.mul(o.sin(o.mul(x, w)), w)
    return o.sum(o.exp(hidden)), o.transpose(hidden, 0, 1), o.mul(x, 2)


def loss_and_other(o: Ops, x: Any, w: Any) -> Any:
    return o.sum(o.exp(x)), o.tanh(o.mul(x, w))


@pytest.mark.parametrize(
    ("program", "derivations"), [(loss_and_logits, 1), (loss_and_view, 2), (loss_and_other, 2)]
)
def test_a_loss_beside_other_results_is_derived_once(
    program: Any, derivations: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever other gradients arrive later find what they read."""
    count = 0

    def counted(*args: Any) -> Any:
        nonlocal count
        count += 1
        return derive(*args)

    monkeypatch.setattr(joint, "derive", counted)
    x, w = leaf(4, 4), leaf(4, 4, seed=1)
    graph = compiled(program, [x, w])
    number = len(graph(x, w))
    for mask in [[0], *([k] for k in range(1, number)), list(range(number))]:
        found = []
        for function in (graph, lambda *a: program(Ops(aten.ops, None), *a)):
            results = function(x, w)
            roots = [results[k] for k in mask]
            weights = [aten.ones(list(r.shape)) * 0.3 for r in roots]
            found.append(autograd.grad(roots, [x, w], weights, allow_unused=True))
        assert all(a is b is None or same(a, b) for a, b in zip(*found, strict=True)), mask
        assert mask != [0] or count == derivations
    check(program, [x, w])


def test_no_grad_region() -> None:
    def program(o: Ops, x: Any, w: Any) -> Any:
        y = o.mul(x, w)
        with o.no_grad():
            z = o.mul(y, 2)
        return o.mul(y, z), z

    check(program, [leaf(4), leaf(4, seed=1)])


def test_gradients_turned_on_inside() -> None:
    builder = GraphBuilder(Graph())
    x = builder.placeholder("x", builder.from_tensor(leaf(4)))
    builder.grad_enabled = False
    y = builder.ops.sin(x)
    builder.grad_enabled = True
    builder.output((builder.ops.mul(x, y), builder.ops.select(x, 0, 1)))
    graph = aot_eager(GraphModule(builder.constants, builder.graph), [x])
    x = leaf(4)
    with autograd.no_grad():
        y, z = graph(x)
    assert y.requires_grad and z.requires_grad
    y.sum().backward()
    assert same(x.grad, x.detach().sin())


def test_detach() -> None:
    check(lambda o, x: o.mul(x, o.detach(o.exp(x))), [leaf(4)])


# ---- in-place changes and views -----------------------------------------------------------------


def in_place_chain(o: Ops, x: Any) -> Any:
    y = o.mul(x, 2)
    o.relu_(o.add_(y, 1))
    return y


def write_to_slice(o: Ops, x: Any, w: Any) -> Any:
    y = o.mul(x, 1.5)
    o.mul_(o.slice(y, 0, 1, 3), w)
    return o.mul(y, y)


def write_to_select(o: Ops, x: Any, w: Any) -> Any:
    y = o.mul(x, 1.5)
    z = o.select(y, 1, 2)
    o.copy_(z, o.sin(o.select(w, 0, 0)))
    return o.add(y, o.unsqueeze(z, 1))


def write_through_two_views(o: Ops, x: Any) -> Any:
    y = o.clone(x)
    a = o.slice(y, 0, 0, 3)
    b = o.slice(y, 0, 1, 4)
    o.mul_(a, 2)
    o.add_(b, o.clone(a))
    o.mul_(o.select(a, 0, 1), o.clone(o.select(b, 0, 0)))
    return y, o.mul(a, b)


def write_to_transposed(o: Ops, x: Any) -> Any:
    y = o.mul(x, 3)
    t = o.transpose(y, 0, 1)
    o.tanh_(o.select(t, 0, 1))
    return o.mul(y, 2), o.contiguous(t)


def write_to_reshaped(o: Ops, x: Any) -> Any:
    y = o.mul(x, 2)
    flat = o.reshape(y, [-1])
    o.neg_(o.slice(flat, 0, 2, 11, 3))
    return o.mul(y, y)


def write_to_diagonal(o: Ops, x: Any) -> Any:
    y = o.mul(x, 2)
    o.fill_(o.diagonal(y), 1.0)
    return o.sum(o.mul(y, y))


def zero_a_part(o: Ops, x: Any) -> Any:
    y = o.mul(x, 2)
    o.zero_(o.slice(y, 1, 1, 2))
    return o.sum(o.mul(y, x))


def fill_with_tensor(o: Ops, x: Any) -> Any:
    y = o.mul(x, 2)
    o.fill_(o.select(y, 0, 0), o.sum(x))
    return o.mul(y, y)


def strided(o: Ops, x: Any) -> Any:
    y = o.mul(x, 2)
    o.mul_(o.as_strided(y, [2, 2], [4, 1], 1), 5)
    return y, o.as_strided(y, [3], [5], 0)


def detached_write(o: Ops, x: Any) -> Any:
    y = o.mul(x, 2)
    o.add_(o.detach(y), 1)
    return o.add(y, 1)


def view_made_before_history(o: Ops, x: Any) -> Any:
    y = o.zeros_like(x)
    v = o.select(y, 0, 1)
    o.add_(y, x)
    return o.mul(v, 2), y


IN_PLACE = [
    in_place_chain, write_to_slice, write_to_select, write_through_two_views, write_to_transposed, write_to_reshaped,
    write_to_diagonal, zero_a_part, fill_with_tensor, strided, detached_write, view_made_before_history,
]  # fmt: skip


@pytest.mark.parametrize("program", IN_PLACE, ids=lambda p: p.__name__)
def test_in_place(program: Any) -> None:
    n = program.__code__.co_argcount - 1
    check(program, [leaf(4, 4, seed=i) if i == 0 else leaf(1, 4, seed=i) for i in range(n)])


# ---- changed inputs and aliased results ---------------------------------------------------------


def test_changed_input() -> None:
    def program(o: Ops, x: Any, w: Any) -> Any:
        o.add_(x, 1)
        return o.mul(x, w)

    check(program, [data(3, 4), leaf(3, 4)])
    check(program, [data(3, 4), data(3, 4)])


def test_changed_input_with_history() -> None:
    def program(o: Ops, x: Any, w: Any) -> Any:
        o.mul_(x, w)
        o.add_(o.select(x, 0, 1), 2)
        return o.sin(x)

    check(program, [inner(3, 4), leaf(3, 4, seed=1)])


def test_buffer_gets_a_history() -> None:
    def program(o: Ops, x: Any, w: Any) -> Any:
        o.add_(x, w)
        return o.mul(x, x)

    check(program, [data(3, 4), leaf(3, 4, seed=1)])


def test_changed_view_with_history() -> None:
    """The tensor that it is a view of gets the history: the call runs operator by operator."""

    def program(o: Ops, x: Any, w: Any) -> Any:
        o.mul_(x, w)
        return o.sin(x)

    found = []
    graph = compiled(program, [inner(4), leaf(4)])
    with records.collect() as made:
        for function in (graph, lambda *a: (program(Ops(aten.ops, None), *a),)):
            x, w = leaf(3, 4), leaf(4)
            y = x * 1
            results = function(y[1], w)
            (results[0].sum() + y.sum()).backward()
            found.append([*results, y, x.grad, w.grad])
    assert all(same(a, b) for a, b in zip(*found, strict=True))
    assert [r.code for r in made] == ["AOT002"]


def test_swapped_inputs() -> None:
    def program(o: Ops, x: Any, y: Any) -> Any:
        old = o.clone(x)
        o.copy_(x, y)
        o.copy_(y, old)
        return o.add(x, 0)

    check(program, [data(5), data(5, seed=3)])


def test_changed_leaf_raises_as_eager() -> None:
    def program(o: Ops, x: Any) -> Any:
        o.add_(x, 1)
        return o.mul(x, 2)

    graph = compiled(program, [inner(3)])
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        graph(leaf(3))


def test_leaf_changed_without_grad() -> None:
    def program(o: Ops, x: Any, g: Any) -> Any:
        with o.no_grad():
            o.add_(x, g, alpha=-0.1)
        return o.sum(g)

    graph = check(program, [leaf(3, 4), data(3, 4)])
    x = leaf(3, 4)
    version = x._version
    graph(x, data(3, 4))
    assert x._version > version


def test_aliased_results() -> None:
    def program(o: Ops, x: Any) -> Any:
        y = o.mul(x, 2)
        return (
            x,
            y,
            o.select(y, 0, 0),
            o.transpose(y, 0, 1),
            y,
            o.slice(x, 0, 1, 2),
            o.reshape(x, [-1]),
        )

    check(program, [inner(3, 4)])
    check(program, [data(3, 4)])


def test_result_is_a_view_of_a_changed_input() -> None:
    def program(o: Ops, x: Any) -> Any:
        v = o.select(x, 0, 1)
        o.mul_(v, 3)
        return v, o.expand(o.slice(v, 0, 0, 1), [5])

    check(program, [data(3, 4)])


def test_expanded_result() -> None:
    check(lambda o, x: o.expand(o.sum(x, [1], True), [3, 4]), [leaf(3, 4)])


def test_permuted_result_keeps_its_strides() -> None:
    check(lambda o, x: o.permute(o.exp(x), [2, 0, 1]), [leaf(2, 3, 4)])


def test_results_that_are_no_tensors() -> None:
    check(lambda o, x: (o.mul(x, 2), None, 3, "s"), [leaf(2)])


def test_non_contiguous_inputs() -> None:
    x = leaf(4, 3).detach().transpose(0, 1)
    x.requires_grad = True

    def program(o: Ops, x: Any) -> Any:
        y = o.mul(x, 2)
        o.add_(o.select(y, 0, 1), 1)
        return y, o.reshape(x, [-1])

    graph = compiled(program, [x])
    got, expected = graph(x), program(Ops(aten.ops, None), x)
    assert all(same(a, b) and a.stride() == b.stride() for a, b in zip(got, expected, strict=True))


# ---- models -------------------------------------------------------------------------------------


def test_transformer_block() -> None:
    def program(o: Ops, x: Any, wq: Any, wo: Any, w1: Any, w2: Any, g: Any, b: Any) -> Any:
        def norm(t: Any) -> Any:
            return o.layer_norm(t, [8], g, b)

        h = norm(x)
        q, k, v = o.split(o.linear(h, wq), 8, -1)
        heads = [o.transpose(o.reshape(t, [2, 5, 2, 4]), 1, 2) for t in (q, k, v)]
        a = o.scaled_dot_product_attention(*heads, is_causal=True)
        a = o.reshape(o.transpose(a, 1, 2), [2, 5, 8])
        x = o.add(x, o.linear(a, wo))
        x = o.add(x, o.linear(o.gelu(o.linear(norm(x), w1), approximate="tanh"), w2))
        return x, o.mean(x)

    shapes = [(2, 5, 8), (24, 8), (8, 8), (32, 8), (8, 32), (8,), (8,)]
    check(program, [leaf(*s, seed=i) for i, s in enumerate(shapes)])


def test_conv_net_in_training_mode() -> None:
    def program(
        o: Ops, x: Any, w: Any, g: Any, b: Any, mean: Any, var: Any, count: Any, f: Any, target: Any
    ) -> Any:
        o.add_(count, 1)
        y = o.conv2d(x, w, None, 1, 1)
        y = o.relu_(o.batch_norm(y, g, b, mean, var, True, 0.1, 1e-5))
        y = o.max_pool2d(y, 2)
        y = o.linear(o.flatten(y, 1), f)
        return o.cross_entropy_loss(y, target)

    target = aten.tensor([1, 0])
    count = aten.tensor(0)
    inputs = [
        data(2, 3, 4, 4),
        leaf(5, 3, 3, 3),
        leaf(5),
        leaf(5, seed=1),
        data(5),
        data(5).abs(),
        count,
        leaf(3, 20),
        target,
    ]
    graph = check(program, inputs)
    assert [m.input for m in graph.plan.mutations] == [4, 5, 6]


def test_batch_norm_in_evaluation_mode() -> None:
    program = lambda o, x, g, b, m, v: o.batch_norm(x, g, b, m, v, False, 0.1, 1e-5)  # noqa: E731
    check(program, [leaf(2, 3, 4, 4), leaf(3), leaf(3, seed=1), data(3), data(3).abs()])


@pytest.mark.parametrize(
    "program",
    [
        lambda o, x: o.native_dropout(x, 0.3, True),
        lambda o, x: (o.dropout(o.mul(x, 2), 0.5, True), o.dropout(x, 0.1, True)),
        lambda o, x: o.mul(x, o.rand_like(x)),
        lambda o, x: o.add(o.mul(x, o.bernoulli_(o.empty_like(x), 0.4)), o.randn([3, 4])),
        lambda o, x: (o.mul(x, 2), o.rand([2]), o.randint(0, 9, [5]), o.exponential_(o.zeros([3]))),
    ],
)
def test_random_numbers_are_eagers(program: Any) -> None:
    check(program, [leaf(3, 4)])


def test_unused_random_numbers_are_drawn() -> None:
    def program(o: Ops, x: Any) -> Any:
        o.rand([7])
        return o.mul(x, o.rand_like(x))

    check(program, [leaf(3, 4)])


def test_indexing() -> None:
    index = aten.tensor([0, 2, 0])

    def program(o: Ops, x: Any, i: Any) -> Any:
        y = o.mul(x, 2)
        o.index_put_(y, [i], o.index_select(x, 0, i), True)
        return (
            o.index(y, [None, i]),
            o.gather(y, 0, o.expand(o.unsqueeze(i, 1), [3, 4])),
            o.embedding(x, i),
        )

    check(program, [leaf(4, 4), index])


def test_reductions_sorts_and_joins() -> None:
    def program(o: Ops, x: Any, w: Any) -> Any:
        values, order = o.sort(x, 1)
        top, _ = o.topk(w, 2)
        joined = o.cat([values, top], 1)
        return (
            o.softmax(joined, -1),
            o.var(x, [0]),
            o.amax(w, [1]),
            o.logsumexp(x, [1]),
            order,
            o.cumsum(w, 0),
        )

    check(program, [leaf(3, 4), leaf(3, 4, seed=1)])


def test_complex_numbers() -> None:
    def program(o: Ops, x: Any, y: Any) -> Any:
        z = o.mul(o.complex(x, y), o.complex(y, x))
        return o.real(z), o.abs(o.view_as_real(z)), z

    check(program, [leaf(3), leaf(3, seed=1)])


# ---- the backward call --------------------------------------------------------------------------


def test_second_backward_needs_the_graph() -> None:
    x = leaf(4)
    y = compiled(lambda o, x: o.exp(x), [x])(x)[0].sum()
    y.backward(retain_graph=True)
    first = x.grad.clone()
    y.backward()
    assert same(x.grad, first + first)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()


def test_saved_values_are_checked() -> None:
    x = inner(4)
    y = compiled(lambda o, x: o.mul(x, x), [x])(x)[0]
    with autograd.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_double_backward() -> None:
    program = lambda o, x, w: o.sum(o.mul(o.sin(x), o.mul(x, w)))  # noqa: E731
    found = []
    for function in (
        compiled(program, [leaf(4), leaf(4)]),
        lambda *a: (program(Ops(aten.ops, None), *a),),
    ):
        x, w = leaf(4), leaf(4, seed=1)
        (gx,) = autograd.grad(function(x, w)[0], [x], create_graph=True)
        found.append(autograd.grad(gx.exp().sum(), [x, w]))
    assert all(same(a, b) for a, b in zip(*found, strict=True))


def test_double_backward_of_random_numbers_is_refused() -> None:
    x = leaf(4)
    y = compiled(lambda o, x: o.dropout(o.exp(x), 0.5, True), [x])(x)[0]
    with pytest.raises(
        NotImplementedError,
        match="create_graph=True for a compiled function that draws random numbers",
    ):
        autograd.grad(y.sum(), [x], create_graph=True)


def test_gradient_of_any_layout() -> None:
    x = leaf(3, 4)
    y = compiled(lambda o, x: o.exp(x), [x])(x)[0]
    y.sum().backward()
    assert same(x.grad, x.detach().exp())


def test_hooks_see_the_gradients() -> None:
    x = leaf(3)
    seen = []
    x.register_hook(lambda g: seen.append(g.clone()))
    compiled(lambda o, x: o.mul(x, 3), [x])(x)[0].sum().backward()
    assert seen[0].tolist() == [3.0] * 3


def test_same_input_twice() -> None:
    program = lambda o, x, y: o.mul(x, o.exp(y))  # noqa: E731
    graph = compiled(program, [leaf(3), leaf(3)])
    x, y = leaf(3), leaf(3)
    graph(x, x)[0].sum().backward()
    program(Ops(aten.ops, None), y, y).sum().backward()
    assert same(x.grad, y.grad)


def test_inference_makes_no_node() -> None:
    graph = compiled(lambda o, x: o.mul(x, 3), [data(3)])
    assert graph.call is graph.forward
    assert not graph(data(3))[0].requires_grad


# ---- what is not compiled -----------------------------------------------------------------------


def test_changed_inputs_that_share_memory_fall_back() -> None:
    base = data(6)

    def program(o: Ops, x: Any, y: Any) -> Any:
        o.add_(x, 1)
        return o.mul(y, 2)

    inputs = [base[:4], base[2:]]
    builder = GraphBuilder(Graph())
    fakes = [builder.placeholder(f"x{i}", builder.from_tensor(x)) for i, x in enumerate(inputs)]
    builder.output((program(Ops(builder.ops, builder), *fakes),))
    with records.collect() as found:
        graph = aot_eager(GraphModule(builder.constants, builder.graph), fakes)
    assert isinstance(graph, EagerGraph)
    assert [r.code for r in found] == ["AOT001"]
    assert "shares memory" in found[0].message
    expected = base.clone()
    expected[:4] += 1
    assert graph(*inputs)[0].tolist() == (expected[2:] * 2).tolist()


def test_compare_notices() -> None:
    """The comparison that these tests rest on fails where it should."""
    x = leaf(3)
    right, wrong = run(lambda t: t * 2, [x]), run(lambda t: t * 2 + 1e-7, [x])
    with pytest.raises(AssertionError):
        compare(right, wrong)
    assert trace(lambda o, t: o.mul(t, 2), [x])[0].graph is not None


# ---- custom Functions ---------------------------------------------------------------------------


def subgraph(program: Any, *inputs: Any) -> GraphModule:
    """A graph of its own, for `apply_function`."""
    builder = GraphBuilder(Graph())
    given = [
        x if x is None else builder.placeholder(f"a{i}", builder.from_tensor(x))
        for i, x in enumerate(inputs)
    ]
    builder.output(tuple(program(builder.ops, *given)))
    return GraphModule(builder.constants, builder.graph)


def with_function(materialize: bool, used: int) -> tuple[GraphModule, list[Any]]:
    """sum(results[used] of a Function of (x * w)), where the Function's own gradient is not that of its forward."""
    y = data(3)
    forward = subgraph(lambda o, y: (o.mul(y, y), o.sin(y), o.cos(y)), y)
    grads = [y if materialize or k == used else None for k in range(2)]
    count = sum(g is not None for g in grads)

    def derive(o: Any, kept: Any, *gs: Any) -> Any:
        gs = tuple(g for g in gs if g is not None)
        assert len(gs) == count
        return (o.mul(o.add(gs[0], gs[-1]), o.mul(kept, 10)),)

    backward = subgraph(derive, y, *grads)
    if not materialize:  # the graph takes None for the gradient that does not arrive
        missing = 1 - used
        with backward.graph.inserting_after(list(backward.graph.nodes)[missing]):
            backward.graph.placeholder("missing")
        backward.recompile()
    builder = GraphBuilder(Graph())
    fakes = [
        builder.placeholder(n, builder.from_tensor(leaf(3, seed=i))) for i, n in enumerate("xw")
    ]
    z = builder.ops.mul(*fakes)
    subgraphs = {"forward_graph": forward, "backward_graph": backward}
    nodes = [builder.graph.create_node("get_attr", name) for name in subgraphs]
    results = builder.create(
        graph_ops.apply_function,
        (*nodes, 2, (True, True), materialize, z),
        {},
        (builder.fake([3], requires_grad=True), builder.fake([3], requires_grad=True)),
    )
    builder.output((builder.ops.sum(results[used]), results[1 - used]))
    return GraphModule({**builder.constants, **subgraphs}, builder.graph), fakes


@pytest.mark.parametrize("used", [0, 1])
@pytest.mark.parametrize("materialize", [True, False])
def test_custom_function(materialize: bool, used: int) -> None:
    module, fakes = with_function(materialize, used)
    graph = aot_eager(module, fakes)
    assert isinstance(graph, CompiledGraph)
    found = []
    for function in (graph, module):
        x, w = leaf(3), leaf(3, seed=1)
        results = function(x, w)
        results[0].backward()
        found.append([*results, x.grad, w.grad])
    assert all(same(a, b) for a, b in zip(*found, strict=True))


def test_results_are_views_of_nothing_that_the_graph_keeps_to_itself() -> None:
    """What is changed in place after the graph is changed for the views that it gave, too."""

    def program(o: Any, w: Any) -> tuple[Any, Any]:
        whole = o.mul(w, 2.0)
        part = o.select(o.view_as_real(whole), -1, 1)
        o.mul_(part, -1)
        return whole, part

    for changed in (0, 1):
        gradients = []
        for run_it in (lambda w: program(Ops(aten, None), w), compiled(program, [complex_leaf()])):
            w = complex_leaf()
            whole, part = run_it(w)
            assert not whole._is_view() and part._base is whole
            (whole, part)[changed].mul_(3.0)
            (whole.abs().square().sum() + part.exp().sum()).backward()
            gradients.append(w.grad)
        assert same(*gradients)


def complex_leaf() -> Any:
    return leaf(3, 4, dtype=c10.complex64)
