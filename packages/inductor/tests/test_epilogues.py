"""Kernels that run on the parts of a call's result: the bits of the two one after the other, and only where that is legal and pays."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lowered import program_of, same_bits, trace

import argand_aten as at
import argand_c10 as c10
from argand_inductor.fuse import EPILOGUE_BYTES, Limits
from argand_inductor.fuse_epilogues import DEPTH, MAX_DEPTH, Epilogue
from argand_inductor.lowering import lower_graph
from argand_inductor.memory_plan import plan_memory
from argand_inductor.options import Options
from argand_inductor.program import EpilogueStep, ExternStep, KernelStep, ProgramSpec
from argand_inductor.schedule import StepWriter, _describe, schedule

ALWAYS, NEVER = Limits(epilogue_bytes=0), Limits(epilogue_bytes=1 << 62)

Body = Callable[..., Any]


def epilogues(spec: ProgramSpec) -> list[EpilogueStep]:
    return [s for s in spec.steps if isinstance(s, EpilogueStep)]


def compare(
    body: Body, inputs: Sequence[c10.Tensor], count: int = 1, dynamic: Sequence[Any] = ()
) -> ProgramSpec:
    """Run with and without epilogues; the results have the same bits, and `count` epilogues were found."""
    fused, spec = program_of(body, inputs, dynamic, ALWAYS)
    plain, _ = program_of(body, inputs, dynamic, NEVER)
    assert len(epilogues(spec)) == count, [type(s).__name__ for s in spec.steps]
    for got, want in zip(fused(*inputs), plain(*inputs), strict=True):
        assert same_bits(got, want)
    return spec


def rows(
    m: int = 2100, k: int = 64, n: int = 48, dtype: c10.dtype = c10.float32
) -> list[c10.Tensor]:
    """An input, a weight and a bias: enough rows for several parts."""
    return [
        at.randn([m, k], dtype=dtype),
        at.randn([n, k], dtype=dtype),
        at.randn([n], dtype=dtype),
    ]


# ---- operators that hand over their result ---------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [c10.float32, c10.float64])
def test_linear(dtype: c10.dtype) -> None:
    x, w, b = rows(dtype=dtype)
    compare(lambda o, x, w, b: o.gelu(o.linear(x, w, b)), [x, w, b])
    compare(lambda o, x, w: o.relu(o.linear(x, w)), [x, w])


def test_linear_of_more_columns_than_rows() -> None:
    for columns in (1500, 1536):
        x, w, b = rows(1100, 64, columns)
        compare(lambda o, x, w, b: o.relu(o.linear(x, w, b)), [x, w, b])


def test_products_of_processors_with_avx2_alone() -> None:
    environment = {**os.environ, "ARGAND_CPU_TIER": "1"}
    chosen = "test_linear or test_mm or test_bmm"
    command = [sys.executable, "-m", "pytest", "-qpno:cacheprovider", __file__, "-k", chosen]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-2000:]


def test_linear_over_more_dimensions_and_strided_inputs() -> None:
    x, w, b = rows()
    compare(lambda o, x, w, b: o.relu(o.linear(x, w, b)), [x.reshape([3, 700, 64]), w, b])
    turned = at.randn([64, 2100]).transpose(0, 1)
    compare(lambda o, x, w, b: o.relu(o.linear(x, w, b)), [turned, w, b])
    compare(
        lambda o, x, w, b: o.relu(o.linear(x, w, b)), [x, at.randn([64, 48]).transpose(0, 1), b]
    )


def test_mm_and_addmm() -> None:
    x, w, b = rows()
    compare(lambda o, x, w: o.relu(o.mm(x, o.transpose(w, 0, 1))), [x, w])
    add = at.randn([2100, 48])
    for self in (b, add, at.randn([2100, 1]), at.randn([1])):
        compare(
            lambda o, s, x, w: o.tanh(o.addmm(s, x, o.transpose(w, 0, 1), beta=0.5, alpha=2.0)),
            [self, x, w],
        )


def test_bmm() -> None:
    for batch, m in ((5, 40), (2, 1300), (1, 2100)):
        inputs = [at.randn([batch, m, 64]), at.randn([batch, 64, 48])]
        compare(lambda o, x, y: o.relu(o.mul(o.bmm(x, y), 0.125)), inputs)


@pytest.mark.parametrize("batch", [1, 2, 5, 8])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("size", [1, 3])
def test_convolution(batch: int, groups: int, size: int) -> None:
    x, w, b = at.randn([batch, 8, 14, 14]), at.randn([12, 8 // groups, size, size]), at.randn([12])

    def body(o: Any, x: Any, w: Any, b: Any) -> Any:
        return o.relu(o.convolution(x, w, b, [1, 1], [size // 2, size // 2], [1, 1], groups))

    compare(body, [x, w, b])


def test_convolution_of_one_dimension_and_strides() -> None:
    compare(
        lambda o, x, w: o.relu(o.convolution(x, w, None, [2], [1], [1], 1)),
        [at.randn([4, 6, 101]), at.randn([10, 6, 3])],
    )


def test_half_precision_is_called_by_itself() -> None:
    x, w, b = rows(dtype=c10.bfloat16)
    compare(lambda o, x, w, b: o.relu(o.linear(x, w, b)), [x, w, b], count=0)


# ---- what a kernel may be ----------------------------------------------------------------------------------------------


def test_several_inputs_that_broadcast() -> None:
    x, w, b = rows()
    extra = [at.randn([2100, 48]), at.randn([48]), at.randn([2100, 1]), at.randn([])]

    def body(
        o: Any, x: Any, w: Any, b: Any, residual: Any, scale: Any, gate: Any, number: Any
    ) -> Any:
        y = o.gelu(o.mul(o.linear(x, w, b), scale))
        return o.add(o.mul(o.add(y, residual), gate), number)

    compare(body, [x, w, b, *extra])


def test_batch_norm_of_a_convolution_in_inference() -> None:
    x, w = at.randn([4, 8, 15, 15]), at.randn([12, 8, 3, 3])
    mean, variance, scale, shift = at.randn([12]), at.rand([12]), at.randn([12]), at.randn([12])
    residual = at.randn([4, 12, 15, 15])

    def body(o: Any, x: Any, w: Any, m: Any, v: Any, s: Any, t: Any, r: Any) -> Any:
        y = o.convolution(x, w, None, [1, 1], [1, 1], [1, 1], 1)
        return o.relu(o.add(o.batch_norm(y, s, t, m, v, False, 0.1, 1e-5), r))

    compare(body, [x, w, mean, variance, scale, shift, residual])


def test_reductions_over_a_row() -> None:
    x, w, b = rows()

    def softmax(o: Any, x: Any, w: Any, b: Any) -> Any:
        y = o.linear(x, w, b)
        e = o.exp(o.sub(y, o.amax(y, [1], True)))
        return o.div(e, o.sum(e, [1], True)), o.sum(y, [1])

    compare(softmax, [x, w, b])


def test_long_rows_are_several_units() -> None:
    compare(
        lambda o, x, w: o.relu(o.linear(x, w)), [at.randn([1100, 8]), at.randn([9000, 8])], count=1
    )


def test_dropout_draws_the_same_numbers() -> None:
    x, w, b = rows()

    def body(o: Any, x: Any, w: Any, b: Any) -> Any:
        return o.dropout(o.linear(x, w, b), 0.3, True)

    results = []
    for limits in (ALWAYS, NEVER):
        program, spec = program_of(body, [x, w, b], limits=limits)
        assert len(epilogues(spec)) == (limits is ALWAYS)
        c10.manual_seed(7)
        results.append(program(x, w, b)[0])
    assert same_bits(*results)


def test_other_dtypes_of_the_result() -> None:
    x, w, b = rows()
    compare(lambda o, x, w, b: o.gt(o.linear(x, w, b), 0.0), [x, w, b])


# ---- what is refused ---------------------------------------------------------------------------------------------------


def product(o: Any, x: Any, w: Any, b: Any) -> Any:
    return o.linear(o.slice(x, 1, 0, 64, 1), o.slice(w, 1, 0, 64, 1), b)


REFUSED: dict[str, Body] = {
    "a sum over rows": lambda o, *x: o.sum(product(o, *x), [0]),
    "a transposed result": lambda o, *x: o.add(o.transpose(product(o, *x), 0, 1), x[0]),
    "a transposed operand": lambda o, *x: o.add(product(o, *x), o.transpose(x[0], 0, 1)),
    "some of the rows": lambda o, *x: o.relu(o.slice(product(o, *x), 0, 3, 500, 1)),
    "rows turned round": lambda o, *x: o.relu(o.flip(product(o, *x), [0])),
    "more than the result": lambda o, *x: o.relu(o.expand(product(o, *x), [2, 600, 600])),
}


@pytest.mark.parametrize("name", REFUSED)
def test_readers_in_another_order_run_afterwards(name: str) -> None:
    compare(REFUSED[name], [at.randn([600, 600]), at.randn([600, 600]), at.randn([600])], count=0)


def test_only_what_pays() -> None:
    """Large results of short sums, by default."""

    def found(m: int, k: int, n: int) -> int:
        inputs = [at.empty([m, k]), at.empty([n, k])]
        graph = lower_graph(trace(lambda o, x, w: o.relu(o.linear(x, w)), inputs))
        return sum(isinstance(unit, Epilogue) for unit in schedule(graph).units)

    assert found(EPILOGUE_BYTES // 1024, 64, 256) == 1
    assert found(EPILOGUE_BYTES // 1024 - 1, 64, 256) == 0
    assert found(EPILOGUE_BYTES // 1024, 2 * DEPTH, 256) == 0
    assert found(EPILOGUE_BYTES // 1024, 2 * DEPTH, 512) == 1
    assert found(EPILOGUE_BYTES // 1024, MAX_DEPTH + 1, 4096) == 0


def test_the_report_names_the_call_and_the_kernel() -> None:
    x, w, _ = rows()
    graph = lower_graph(trace(lambda o, x, w: o.relu(o.linear(x, w)), [x, w]))
    plan = schedule(graph, ALWAYS)
    ((name, operators, _),) = _describe(plan.units, StepWriter(graph, plan, Options()).write())
    assert name.startswith("call of linear, on its parts k_")
    assert operators == ["linear", "relu"]
    assert str(plan).startswith("call linear -> ('b2',), on its parts kernel over [2100, 48]: ")


def test_a_call_between_the_two_keeps_them_apart() -> None:
    x, w, b = rows()

    def body(o: Any, x: Any, w: Any, b: Any) -> Any:
        y = o.linear(x, w, b)
        return o.add(o.sort(y, 1)[0], o.relu(y))

    spec = compare(body, [x, w, b], count=0)
    assert sum(isinstance(s, KernelStep) for s in spec.steps) >= 1


def test_a_sum_of_two_products_runs_on_the_later_one() -> None:
    x, w, b = rows()

    def body(o: Any, x: Any, w: Any, b: Any) -> Any:
        return o.relu(o.add(o.linear(x, w, b), o.linear(o.neg(x), w)))

    spec = compare(body, [x, w, b])
    assert [s for s in spec.steps if isinstance(s, ExternStep | EpilogueStep)][-1] is epilogues(
        spec
    )[0]


# ---- memory --------------------------------------------------------------------------------------------------------------


def test_other_users_of_the_result_find_it() -> None:
    x, w, b = rows()

    def body(o: Any, x: Any, w: Any, b: Any) -> Any:
        y = o.linear(x, w, b)
        return o.relu(y), o.sort(y, 1)[0], o.slice(y, 1, 3, 7, 1), y

    spec = compare(body, [x, w, b])
    (step,) = epilogues(spec)
    assert plan_memory(spec).last_use[step.result] > spec.steps.index(step)


def test_nothing_is_written_where_the_call_still_reads() -> None:
    """The residual is the input itself, whose memory would otherwise be the result's."""
    x, w = at.randn([2100, 64]), at.randn([64, 64])

    def body(o: Any, x: Any, w: Any) -> Any:
        y = o.relu(o.add(x, 1.0))
        z = o.add(o.linear(y, w), y)
        return o.sort(z, 1)[0]

    spec = compare(body, [x, w])
    (step,) = epilogues(spec)
    assert not step.kernel.reuse


def test_another_operand_may_give_its_memory() -> None:
    x, w = at.randn([2100, 32]), at.randn([64, 32])
    residual = at.randn([2100, 64])

    def body(o: Any, x: Any, w: Any, r: Any) -> Any:
        return o.sort(o.add(o.linear(x, w), o.exp(r)), 1)[0], o.sort(o.exp(r), 0)[0]

    compare(body, [x, w, residual])


@pytest.mark.skipif(
    "-fsanitize" in os.environ.get("ARGAND_CC", ""), reason="sanitizers keep no freed blocks"
)
def test_a_result_that_nobody_else_reads_is_never_whole() -> None:
    x, w = at.randn([65536, 16]), at.randn([64, 16])
    left = []  # bytes that a call took from the allocator and gave back
    for limits in (ALWAYS, NEVER):
        program, spec = program_of(
            lambda o, x, w: o.sum(o.relu(o.linear(x, w)), [1]), [x, w], limits=limits
        )
        assert len(epilogues(spec)) == (limits is ALWAYS)
        c10.cpu.empty_cache()
        program(x, w)
        left.append(c10.cpu.memory_stats()["cached_bytes"])
    whole = 65536 * 64 * 4
    assert left[1] >= whole > left[0]


# ---- shapes ----------------------------------------------------------------------------------------------------------------


def test_dynamic_columns_and_images() -> None:
    compare(
        lambda o, x, w: o.relu(o.linear(x, w)),
        [at.randn([1100, 64]), at.randn([48, 64])],
        dynamic=[(0,), (0,)],
    )
    compare(
        lambda o, x, w: o.relu(o.convolution(x, w, None, [1, 1], [1, 1], [1, 1], 1)),
        [at.randn([5, 8, 14, 14]), at.randn([12, 8, 3, 3])],
        dynamic=[(0, 2, 3), ()],
        count=1,
    )


@pytest.mark.parametrize(
    "shape", [(0, 64, 48), (2100, 0, 48), (2100, 64, 0), (1, 64, 48), (2100, 64, 1)]
)
def test_degenerate_shapes(shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    inputs = [at.randn([m, k]), at.randn([n, k]), at.randn([n])]
    results = []
    for limits in (ALWAYS, NEVER):
        program, _ = program_of(lambda o, x, w, b: o.relu(o.linear(x, w, b)), inputs, limits=limits)
        results.append(program(*inputs)[0])
    assert same_bits(*results)


@pytest.fixture(scope="module")
def of_any_size(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """A linear layer and relu for any number of rows, columns and features: with and without an epilogue."""
    inputs = [at.randn([2000, 40]), at.randn([70, 40]), at.randn([70])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARGAND_CACHE_DIR", str(tmp_path_factory.mktemp("any")))
        made = [
            program_of(
                lambda o, x, w, b: o.relu(o.linear(x, w, b)), inputs, [(0, 1), (0, 1), (0,)], limits
            )
            for limits in (ALWAYS, NEVER)
        ]
    assert [len(epilogues(spec)) for _, spec in made] == [1, 0]
    return [program for program, _ in made]


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.integers(0, 2300), st.integers(0, 700), st.integers(0, 300))
def test_parts_have_the_bits_of_the_whole(of_any_size: list[Any], m: int, k: int, n: int) -> None:
    """Whatever kernels OpenBLAS takes for the edges of a part; few rows are computed as a whole."""
    inputs = [at.randn([m, k]), at.randn([n, k]), at.randn([n])]
    with_parts, whole = (program(*inputs)[0] for program in of_any_size)
    assert same_bits(with_parts, whole)
