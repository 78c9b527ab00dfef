"""Fused programs compute what eager does: random programs over views, broadcasts and reductions, and known patterns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lowered import program_of, same_bits

import argand_aten as at
import argand_c10 as c10
from argand_inductor.program import ExternStep, KernelStep


class Eager:
    """Operators by public name, on real tensors."""

    def __getattr__(self, name: str) -> Any:
        return c10.find_operator(name)


def whole(*shape: int, seed: int = 0, dtype: str = "float32") -> c10.Tensor:
    """Small integers, whose sums are exact in any order."""
    rng = np.random.default_rng(seed)
    return at.from_numpy(rng.integers(-4, 5, shape).astype(dtype))


# ---- random programs ------------------------------------------------------------------------------------------------------

_UNARY = ("relu", "neg", "abs", "sign")
_BINARY = ("add", "sub", "maximum", "minimum")
_REDUCE = ("sum", "amax", "amin")


@st.composite
def programs(draw: st.DrawFn) -> list[tuple[Any, ...]]:
    """Instructions over a growing list of values; operands are indices from its end."""
    steps: list[tuple[Any, ...]] = []
    for _ in range(draw(st.integers(2, 10))):
        kind = draw(
            st.sampled_from(
                ("unary", "binary", "binary", "reduce", "view", "where", "call", "shrink")
            )
        )
        a, b = draw(st.integers(1, 6)), draw(st.integers(1, 6))
        if kind == "unary":
            steps.append((kind, draw(st.sampled_from(_UNARY)), a))
        elif kind == "binary":
            steps.append((kind, draw(st.sampled_from(_BINARY)), a, b))
        elif kind == "reduce":
            steps.append(
                (
                    kind,
                    draw(st.sampled_from(_REDUCE)),
                    a,
                    draw(st.integers(0, 2)),
                    draw(st.booleans()),
                )
            )
        elif kind == "view":
            steps.append(
                (
                    kind,
                    draw(st.sampled_from(("transpose", "flatten", "slice", "expand", "unsqueeze"))),
                    a,
                    b,
                )
            )
        else:
            steps.append((kind, a, b))
    return steps


def _bounded(o: Any, x: Any) -> Any:
    return o.clamp_max(o.clamp_min(x, -8.0), 8.0)


def _view(o: Any, name: str, x: Any, b: int) -> Any:
    n = len(x.shape)
    if name == "transpose":
        return o.transpose(x, 0, n - 1) if n else x
    if name == "flatten":
        return o.flatten(x) if n else x
    if name == "slice":
        return o.slice(x, b % n, 1, int(x.shape[b % n]), 2) if n and int(x.shape[b % n]) > 2 else x
    if name == "unsqueeze":
        return o.unsqueeze(x, b % (n + 1))
    return o.expand(x, [2, *[int(s) for s in x.shape]]) if n < 4 else x


def run(o: Any, steps: list[tuple[Any, ...]], *inputs: Any) -> list[Any]:
    """The program on fake or real tensors; shapes that do not broadcast make an instruction a no-op."""
    values = list(inputs)
    for kind, *rest in steps:
        if kind == "unary":
            values.append(getattr(o, rest[0])(values[-(rest[1] % len(values)) - 1]))
            continue
        if kind == "reduce":
            x = values[-(rest[1] % len(values)) - 1]
            if len(x.shape):
                r = getattr(o, rest[0])(x, [rest[2] % len(x.shape)], rest[3])
                values.append(_bounded(o, r))
            continue
        if kind == "view":
            values.append(_view(o, rest[0], values[-(rest[1] % len(values)) - 1], rest[2]))
            continue
        i, j = (rest[-2], rest[-1])
        x, y = values[-(i % len(values)) - 1], values[-(j % len(values)) - 1]
        if kind == "shrink":
            values.append(_bounded(o, x))
            continue
        if kind == "call":  # an operator without a lowering
            if len(x.shape):
                values.append(o.sort(x, 0)[0])
            continue
        try:
            shape = np.broadcast_shapes(
                tuple(int(s) for s in x.shape), tuple(int(s) for s in y.shape)
            )
        except ValueError:
            continue
        if np.prod(shape) > 4000:
            continue
        if kind == "where":
            values.append(o.where(o.gt(x, y), x, o.neg(y)))
        else:
            values.append(_bounded(o, getattr(o, rest[0])(x, y)))
    return values[len(inputs) :] or [o.relu(values[0])]


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(
    programs(),
    st.sampled_from([(3, 5), (1, 7), (4, 33), (17, 2)]),
    st.sampled_from(["float32", "float64", "int64"]),
)
def test_random_programs(steps: list[tuple[Any, ...]], shape: tuple[int, int], dtype: str) -> None:
    r, c = shape
    inputs = [
        whole(r, c, seed=1, dtype=dtype),
        whole(c, seed=2, dtype=dtype),
        whole(2, r, c, seed=3, dtype=dtype),
    ]
    program, _ = program_of(lambda o, *x: run(o, steps, *x), inputs)
    expected = run(Eager(), steps, *inputs)
    results = program(*inputs)
    for i, (got, want) in enumerate(zip(results, expected, strict=True)):
        assert same_bits(got, want), (i, got, want)
        assert [s for s, n in zip(got.stride(), got.shape, strict=True) if n > 1] == [
            s for s, n in zip(want.stride(), want.shape, strict=True) if n > 1
        ], i


# ---- known patterns -----------------------------------------------------------------------------------------------------------


def kernels(spec: Any) -> int:
    return sum(isinstance(s, KernelStep) for s in spec.steps)


def test_elementwise_chain_is_one_kernel() -> None:
    x, y = whole(8, 33), whole(33, seed=1)
    _, spec = program_of(lambda o, a, b: o.relu(o.mul(o.add(a, b), 2.0)), [x, y])
    assert kernels(spec) == 1
    assert len(spec.buffers) == 1


@pytest.mark.parametrize("columns", [9001, 9008, 8192])
def test_large_results_whose_rows_are_not_aligned(columns: int) -> None:
    """Results of 16 MB go past the caches, vector by vector, where every row starts at a multiple of one."""
    x, y = whole(500, columns), whole(columns, seed=1)
    program, _ = program_of(lambda o, a, b: o.relu(o.add(a, b)), [x, y])
    assert same_bits(program(x, y)[0], at.relu(at.add(x, y)))


def test_independent_chains_join() -> None:
    x, y = whole(8, 33), whole(8, 33, seed=1)
    program, spec = program_of(lambda o, a, b: o.add(o.relu(a), o.abs(b)), [x, y])
    assert kernels(spec) == 1
    assert same_bits(program(x, y)[0], at.add(at.relu(x), at.abs(y)))


def test_softmax_chain_is_one_kernel() -> None:
    def softmax(o: Any, x: Any) -> Any:
        e = o.exp(o.sub(x, o.amax(x, [1], True)))
        return o.div(e, o.sum(e, [1], True))

    for columns in (1, 7, 130, 5000):
        x = at.randn([5, columns])
        program, spec = program_of(softmax, [x])
        assert kernels(spec) == 1
        exact = at.softmax(x.to(c10.float64), 1)
        assert float(at.abs(at.sub(program(x)[0].to(c10.float64), exact)).max()) < 3e-7


def test_a_value_that_is_returned_too_is_read_again_by_later_passes() -> None:
    x = whole(6, 40)

    def body(o: Any, a: Any) -> Any:
        e = o.relu(a)
        return e, o.sub(e, o.sum(e, [1], True))

    program, spec = program_of(body, [x])
    assert kernels(spec) == 1
    e, d = program(x)
    assert same_bits(e, at.relu(x))
    assert same_bits(d, at.sub(e, at.sum(e, [1], True)))


def test_reduction_of_rows_and_columns_with_epilogues() -> None:
    for shape, dims in (
        ((9, 40), [0]),
        ((9, 40), [1]),
        ((3, 5, 130), [0, 2]),
        ((3, 5, 130), [1]),
        ((2, 3, 4, 17), [0, 2, 3]),
    ):
        x = whole(*shape)
        program, spec = program_of(lambda o, a, d=dims: o.relu(o.add(o.sum(o.abs(a), d), 1.0)), [x])
        assert kernels(spec) == 1
        assert same_bits(program(x)[0], at.relu(at.add(at.sum(at.abs(x), dims), 1.0)))


def test_calls_between_loops_keep_their_order() -> None:
    x = whole(8, 8)

    def body(o: Any, a: Any) -> Any:
        b = o.relu(a)
        c = o.mm(b, o.t(a))
        return o.add(o.add(b, c), o.relu(c))

    program, spec = program_of(body, [x])
    assert [type(s) for s in spec.steps if isinstance(s, (KernelStep, ExternStep))] == [
        KernelStep,
        ExternStep,
        KernelStep,
    ]
    assert same_bits(program(x)[0], body(Eager(), x))


def test_one_kernel_serves_every_length() -> None:
    def body(o: Any, a: Any, b: Any) -> Any:
        y = o.relu(o.add(a, b))
        return y, o.sum(y, [1]), o.sum(y, [0])

    x, w = whole(6, 40), whole(40, seed=1)
    program, _ = program_of(body, [x, w], [(0,), ()])
    for rows in (1, 2, 7, 100):
        x = whole(rows, 40, seed=rows)
        for got, want in zip(program(x, w), body(Eager(), x, w), strict=True):
            assert same_bits(got, want)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_reductions_sum_in_float32(dtype: str) -> None:
    x = at.randn([7, 300]).to(getattr(c10, dtype))
    program, _ = program_of(lambda o, a: o.sum(o.relu(a), [1]), [x])
    exact = at.sum(at.relu(x).to(c10.float64), [1])
    got = program(x)[0]
    assert str(got.dtype).endswith(dtype)
    assert float(at.abs(at.div(at.sub(got.to(c10.float64), exact), exact)).max()) < 2.0**-8


def test_empty_tensors() -> None:
    x = at.zeros([0, 5])
    program, _ = program_of(
        lambda o, a: (o.relu(a), o.sum(o.relu(a), [0]), o.sum(o.relu(a), [1])), [x]
    )
    a, b, c = program(x)
    assert tuple(a.shape) == (0, 5) and tuple(c.shape) == (0,)
    assert same_bits(b, at.zeros([5]))


def test_scalars() -> None:
    x = at.tensor(3.0)
    program, _ = program_of(lambda o, a: (o.exp(a), o.add(a, a)), [x])
    assert same_bits(program(x)[0], at.exp(x))
    assert same_bits(program(x)[1], at.add(x, x))


def test_constants_and_indices_cost_nothing() -> None:
    x = whole(6, 6)

    def body(o: Any, a: Any) -> Any:
        mask = o.le(o.unsqueeze(o.arange(0, 6, 1), 0), o.unsqueeze(o.arange(0, 6, 1), 1))
        return (
            o.where(mask, o.add(a, o.full([6, 6], 2.0)), o.full([], -1.0)),
            o.tril(o.abs(a), 1),
            o.triu(a),
        )

    program, spec = program_of(body, [x])
    for got, want in zip(program(x), body(Eager(), x), strict=True):
        assert same_bits(got, want)


def test_batch_norm_with_running_statistics_fuses() -> None:
    x, w, b, m = at.randn([2, 3, 5, 7]), at.randn([3]), at.randn([3]), at.randn([3])
    v = at.add(at.abs(at.randn([3])), 0.5)

    def body(o: Any, *x: Any) -> Any:
        return o.relu(o.native_batch_norm(*x, False, 0.1, 1e-5)[0])

    program, spec = program_of(body, [x, w, b, m, v])
    assert kernels(spec) == 1 and len(spec.steps) == 1
    exact = body(Eager(), *[t.to(c10.float64) for t in (x, w, b, m, v)])
    assert float(at.abs(at.sub(program(x, w, b, m, v)[0].to(c10.float64), exact)).max()) < 2e-6


def test_gradients_of_slices_are_one_kernel() -> None:
    for columns in (4, 5, 16, 33):
        parts = [whole(6, columns, seed=k) for k in range(3)]

        def body(o: Any, *x: Any, n: int = columns) -> Any:
            padded = [
                o.slice_backward(g, [6, 3 * n], 1, k * n, (k + 1) * n, 1) for k, g in enumerate(x)
            ]
            rows = o.slice_backward(x[0], [9, n], 0, 2, 8, 1)
            return (
                o.add(o.add(padded[0], padded[1]), padded[2]),
                o.relu(rows),
                o.select_backward(x[1], [2, 6, n], 0, 1),
            )

        program, spec = program_of(body, parts)
        assert all(isinstance(s, KernelStep) for s in spec.steps)
        for got, want in zip(program(*parts), body(Eager(), *parts), strict=True):
            assert same_bits(got, want), columns


def test_transposed_inputs_go_through_tiles() -> None:
    for shape in ((16, 128), (9, 8), (33, 200), (40, 17)):
        for dtype in ("float32", "float64", "bfloat16", "int8"):
            x = whole(*shape).to(getattr(c10, dtype))
            y = whole(shape[1], shape[0], seed=1).to(getattr(c10, dtype))
            z = whole(3, *shape, seed=2).to(getattr(c10, dtype))

            def body(o: Any, a: Any, b: Any, c: Any) -> Any:
                return (
                    o.add(a, o.transpose(b, 0, 1)),
                    o.add(o.transpose(b, 0, 1), c),
                    o.sub(o.transpose(c, 1, 2), b),
                )

            program, spec = program_of(body, [x, y, z])
            assert any("argand_tile" in k.source for k in spec.kernels())
            for got, want in zip(program(x, y, z), body(Eager(), x, y, z), strict=True):
                assert same_bits(got, want), (shape, dtype)


def test_long_reductions_are_split() -> None:
    for shape, dims in (
        ((256, 1024), [0]),
        ((96, 1000), [0, 1]),
        ((2, 40000), [1]),
        ((64, 8, 512), [0, 1]),
    ):
        x = whole(*shape)

        def body(o: Any, a: Any, d: Any = dims) -> Any:
            y = o.relu(a)
            return (
                y,
                o.sum(y, d),
                o.amax(y, d),
                o.any(o.gt(a, 3.0), d) if len(d) == 1 else o.all(o.ge(y, 0.0)),
            )

        program, spec = program_of(body, [x])
        assert kernels(spec) >= 2
        for got, want in zip(program(x), body(Eager(), x), strict=True):
            assert same_bits(got, want), shape


def test_results_in_the_memory_of_inputs_are_written_last() -> None:
    """`b` dies in the kernel that makes `c` and `d`; `c` may take its memory though it does not read it."""
    x, y = whole(64, 64), whole(64, 64, seed=1)

    def body(o: Any, a: Any, w: Any) -> Any:
        b = o.mm(a, w)
        return o.mul(w, 3.0), o.add(b, w), o.relu(a)

    program, _ = program_of(body, [x, y])
    for got, want in zip(program(x, y), body(Eager(), x, y), strict=True):
        assert same_bits(got, want)


def test_integer_division_by_a_number_fuses_and_by_a_tensor_refuses_zeros() -> None:
    x, y = whole(50, dtype="int64"), whole(50, seed=1, dtype="int64")
    program, spec = program_of(lambda o, a: o.add(o.remainder(a, 3), o.floor_divide(a, -2)), [x])
    assert kernels(spec) == len(spec.steps) == 1
    assert same_bits(program(x)[0], at.add(at.remainder(x, 3), at.floor_divide(x, -2)))
    program, spec = program_of(lambda o, a, b: o.remainder(a, b), [x, y])
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        program(x, at.zeros([50], dtype=c10.int64))
    program, spec = program_of(lambda o, a: o.remainder(a, 256), [whole(50, dtype="uint8")])
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        program(whole(50, dtype="uint8"))


def test_loops_of_both_sides_of_a_call_do_not_make_a_circle() -> None:
    x = whole(16, 16)

    def body(o: Any, a: Any) -> Any:
        b = o.relu(a)
        c = o.mm(b, b)
        d = o.mm(a, a)
        return c, o.add(b, d), d

    program, _ = program_of(body, [x])
    for got, want in zip(program(x), body(Eager(), x), strict=True):
        assert same_bits(got, want)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_dropout_draws_what_eager_draws(dtype: str) -> None:
    for shape in ((7,), (3, 130), (5, 4097), (2, 3, 64), (1, 1)):
        x = whole(*shape, dtype="float32").to(getattr(c10, dtype))

        def body(o: Any, a: Any) -> Any:
            y, mask = o.native_dropout(o.add(a, 1.0), 0.3, True)
            z, other = o.native_dropout(o.relu(y), 0.5, True)
            return y, mask, z, o.sum(o.mul(z, other), [len(a.shape) - 1]), o.bernoulli(o.sigmoid(z))

        program, spec = program_of(body, [x])
        called = [s.operator for s in spec.steps if isinstance(s, ExternStep)]
        assert "native_dropout" not in called
        c10.manual_seed(7)
        results = program(x)
        c10.manual_seed(7)
        for i, (got, want) in enumerate(zip(results, body(Eager(), x), strict=True)):
            if i == 3:
                near = at.abs(at.sub(got.to(c10.float64), want.to(c10.float64))).max()
                assert float(near) <= 0.02 * shape[-1] ** 0.5, (shape, i)
            else:
                assert same_bits(got, want), (shape, i)


def test_maxima_of_symbolic_rows_fuse() -> None:
    x = whole(6, 40)
    program, spec = program_of(lambda o, a: o.sub(a, o.amax(a, [1], True)), [x], [(0, 1)])
    assert len(spec.steps) == 1
    for shape in ((2, 3), (9, 130), (3, 5000)):
        x = whole(*shape)
        assert same_bits(program(x)[0], at.sub(x, at.amax(x, [1], True)))
