"""Loop IR, index spaces, sizes and options, without a compiler."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lowered import trace

import argand_aten as at
from argand_inductor import sizes as sz
from argand_inductor.fuse import FULL, KEPT, Fuser, Limits, join, normalize
from argand_inductor.loop_ir import INDEX, Access, IRError, Loop, Value, check
from argand_inductor.lowering import lower_graph
from argand_inductor.options import Options
from argand_inductor.schedule import schedule


def load(k: int, dtype: str = "float32") -> Value:
    return Value("load", (), dtype, k)


def pointwise(name: str, sizes: tuple[Any, ...], *reads: Access) -> Loop:
    strides: list[Any] = []
    step: Any = 1
    for s in reversed(sizes):
        strides.insert(0, step)
        step = step * s
    body = load(0)
    for k in range(1, len(reads)):
        body = Value("add", (body, load(k)), "float32")
    return Loop(
        Access(name, tuple(strides)), "float32", sizes, list(reads), ["float32"] * len(reads), body
    )


# ---- sizes -----------------------------------------------------------------------------------------------------------

_VALUES = {"s0": 7, "s1": 5, "s2": 12}


@st.composite
def expressions(draw: st.DrawFn, depth: int = 0) -> str:
    if depth == 3 or draw(st.booleans()):
        return draw(st.sampled_from(["s0", "s1", "s2", "2", "3", "10"]))
    a, b = draw(expressions(depth + 1)), draw(expressions(depth + 1))
    return f"({a} {draw(st.sampled_from(['+', '-', '*']))} {b})"


@given(expressions(), expressions())
def test_arithmetic_agrees_with_python(a: str, b: str) -> None:
    x, y = sz.of(a), sz.of(b)
    want_a, want_b = eval(a, dict(_VALUES)), eval(b, dict(_VALUES))
    assert sz.evaluate(x, _VALUES) == want_a
    assert sz.evaluate(x * y + x, _VALUES) == want_a * want_b + want_a
    assert eval(str(sz.text(x)), dict(_VALUES)) == want_a
    assert sz.of(sz.text(x)) == x
    if y != 0:
        assert sz.divide(x * y, y) == x


def test_quotients() -> None:
    s0, s1 = sz.atom("s0"), sz.atom("s1")
    assert sz.divide(s0 * 256, 256) == s0
    assert sz.divide(s0 * s1 * 6, s1 * 2) == s0 * 3
    assert sz.divide(s0 * 3, 2) is None
    assert sz.divide(s0, s1) is None
    assert sz.divide((s0 + 1) * (s1 + 2), s1 + 2) == s0 + 1
    assert sz.text(sz.of("s0 // 2")) == "(s0 // 2)"
    assert sz.of("(s0 * 4) // 2") == s0 * 2


# ---- loops -----------------------------------------------------------------------------------------------------------


def test_lowered_graphs_read_as_loops() -> None:
    x, w = at.zeros([4, 6]), at.zeros([6])
    graph = lower_graph(trace(lambda o, a, b: o.sum(o.mul(o.relu(a), b), [1]), [x, w]))
    assert str(graph) == (
        "b2[6*i0 + i1]: float32 for [4, 6]\n"
        "  r0 = x0[6*i0 + i1]: float32\n"
        "  maximum(r0, 0.0)\n"
        "b3[6*i0 + i1]: float32 for [4, 6]\n"
        "  r0 = b2[6*i0 + i1]: float32\n"
        "  r1 = x1[i1]: float32\n"
        "  mul(r0, r1)\n"
        "b4[i0]: float32 for [4] over [6]\n"
        "  r0 = b3[6*i0 + i1]: float32\n"
        "  combine r0, then total\n"
        "return TensorRef(buffer='b4', dtype='float32', sizes=(4,), strides=(1,), offset=0)"
    )
    assert str(schedule(graph)) == "kernel over [4, +6]: b2 (relu), b3 (mul), b4 (sum)"


def test_loops_are_checked() -> None:
    good = pointwise("b", (2, 3), Access("a", (3, 1)))
    check(good)
    for change in (
        {"reads": [Access("a", (3,))]},
        {"body": load(1)},
        {"body": load(0, "float64")},
        {"dtype": "int64"},
        {"body": Value("total", (), "float32")},
    ):
        broken = pointwise("b", (2, 3), Access("a", (3, 1)))
        for name, value in change.items():
            setattr(broken, name, value)
        with pytest.raises(IRError, match="loop IR"):
            check(broken)


def test_normal_form_joins_neighbouring_dimensions() -> None:
    s0 = sz.atom("s0")
    group = normalize(pointwise("b", (s0, 1, 8, 4), Access("a", (32, 32, 4, 1))), {"s0": 5})
    assert group.sizes == [s0 * 32]
    group = normalize(
        pointwise("b", (s0, 8, 4), Access("a", (32, 4, 1)), Access("c", (0, 4, 1))), {"s0": 5}
    )
    assert group.sizes == [s0, 32]
    group = normalize(pointwise("b", (6, 4), Access("a", (1, 6))), {})
    assert group.sizes == [6, 4]


def test_spaces_of_other_shapes_are_refined() -> None:
    s0 = sz.atom("s0")
    flat = normalize(pointwise("b", (s0 * 32,), Access("a", (1,))), {"s0": 5}, 0)
    rows = normalize(
        pointwise("c", (s0, 32), Access("b", (32, 1)), Access("w", (0, 1))), {"s0": 5}, 1
    )
    made = join(flat, rows)
    assert made is not None and made.sizes == [s0, 32]
    assert [m.level for m in made.members] == [FULL, FULL]


def test_other_elements_of_a_buffer_do_not_flow_in_registers() -> None:
    first = normalize(pointwise("b", (8, 8), Access("a", (8, 1))), {}, 0)
    for access in (Access("b", (1, 8)), Access("b", (8, 1), 1), Access("b", (0, 1))):
        assert join(first, normalize(pointwise("c", (8, 8), access), {}, 1)) is None


def test_what_lies_between_two_groups_keeps_them_apart() -> None:
    fuser = Fuser({})
    fuser.add_loop(pointwise("b", (64,), Access("a", (1,))))
    fuser.add_call(["b"], ["c"], [])
    fuser.add_loop(pointwise("d", (64,), Access("b", (1,)), Access("c", (1,))))
    assert len(fuser.groups) == 2
    fuser.add_loop(pointwise("e", (64,), Access("b", (1,)), Access("a", (1,))))
    assert len(fuser.groups) == 2


def test_limits() -> None:
    for members, groups in ((1, 6), (3, 2), (96, 1)):
        fuser = Fuser({}, Limits(members=members))
        for k in range(6):
            fuser.add_loop(pointwise(f"b{k + 1}", (64,), Access(f"b{k}", (1,))))
        assert len(fuser.groups) == groups


def test_rows_take_in_what_is_computed_once_a_row() -> None:
    x = at.zeros([4, 6])
    graph = lower_graph(
        trace(lambda o, a: o.mul(a, o.rsqrt(o.add(o.mean(o.mul(a, a), [1], True), 1e-5))), [x])
    )
    plan = schedule(graph)
    assert len(plan.units) == 1
    levels = {m.loop.operators[0]: m.level for m in plan.units[0].members}  # type: ignore[union-attr]
    assert levels["rsqrt"] == KEPT and levels["mul"] == FULL


def test_index_reads_name_no_buffer() -> None:
    graph = lower_graph(trace(lambda o, a: o.triu(a), [at.zeros([3, 3])]))
    (loop,) = graph.items
    assert isinstance(loop, Loop) and [a.buffer for a in loop.reads] == ["x0", INDEX]
    assert schedule(graph).live == {loop.name, "x0"}


# ---- options ---------------------------------------------------------------------------------------------------------


def test_options(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Options.of(None) == Options()
    assert Options.of({"fusion": False}).limits().members == 1
    monkeypatch.setenv("ARGAND_INDUCTOR_MAX_FUSION_SIZE", "7")
    assert Options.of({}).max_fusion_size == 7
    assert Options.of({"max_fusion_size": 9}).max_fusion_size == 9
    for wrong in ({"fuse": True}, {"fusion": 1}, {"mode": "fastest"}, {"max_fusion_size": 0}):
        with pytest.raises(RuntimeError, match="options: got .*expected"):
            Options.of(wrong)
    monkeypatch.setenv("ARGAND_INDUCTOR_FUSION", "maybe")
    with pytest.raises(RuntimeError, match="ARGAND_INDUCTOR_FUSION: got 'maybe', expected 0 or 1"):
        Options.of({})


def test_inputs_read_in_another_order_are_no_reason_to_join() -> None:
    fuser = Fuser({})
    fuser.add_loop(pointwise("b", (64, 64), Access("a", (64, 1))))
    fuser.add_loop(pointwise("c", (64, 64), Access("a", (1, 64))))
    assert len(fuser.groups) == 2
    fuser.add_loop(pointwise("d", (64, 64), Access("a", (64, 1)), Access("w", (0, 1))))
    assert len(fuser.groups) == 2
