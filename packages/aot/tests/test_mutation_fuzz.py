"""Random programs of views, in-place changes and arithmetic: compiled equals eager, bit for bit."""

from __future__ import annotations

import os
from typing import Any

import hypothesis
import hypothesis.strategies as st
from programs import Ops, aot_eager, compare, copies, run, trace

import argand_aten as aten
import argand_c10 as c10
from argand_aot import UnsupportedGraph
from argand_aot.joint import build_joint

# Each step: what to do, on which values, with which number.
STEP = st.tuples(st.integers(0, 27), st.integers(0, 50), st.integers(0, 50), st.integers(0, 11))
PROGRAM = st.lists(STEP, min_size=1, max_size=12)


def view(o: Ops, x: Any, kind: int, n: int) -> Any:
    """A view of a tensor; `x` itself where that kind does not apply."""
    dims = x.ndim
    if kind == 0 and dims:
        return o.select(x, n % dims, 0 if n % 2 else -1) if x.shape[n % dims] else x
    if kind == 1 and dims:
        size = x.shape[n % dims]
        return o.slice(x, n % dims, n % 3, size - (n // 3) % 2, 1 + n % 2)
    if kind == 2 and dims > 1:
        return o.transpose(x, 0, -1)
    if kind == 3:
        return o.unsqueeze(x, 0)
    if kind == 4 and dims:
        return o.reshape(x, [-1])
    if kind == 5 and dims > 1:
        return o.diagonal(x, n % 2, 0, 1)
    if kind == 6 and dims > 1:
        return o.permute(x, list(range(dims - 1, -1, -1)))
    if kind == 7:
        return o.detach(x)
    if kind == 8 and dims:
        return o.squeeze(x)
    if kind == 9 and dims:
        return o.expand(o.slice(x, 0, 0, 1), [2, *x.shape[1:]])
    return o.alias(x)


def fits(x: Any, y: Any) -> bool:
    """Can y be broadcast to x?"""
    return len(y.shape) <= len(x.shape) and all(
        a == b or b == 1 for a, b in zip(reversed(x.shape), reversed(y.shape), strict=False)
    )


def change(o: Ops, x: Any, y: Any, kind: int, n: int) -> None:
    """An in-place change of x."""
    y = y if fits(x, y) else 0.5 + n
    if kind == 0:
        o.add_(x, y)
    elif kind == 1:
        o.mul_(x, y)
    elif kind == 2:
        o.tanh_(x)
    elif kind == 3:
        o.fill_(x, 1.0 + n)
    elif kind == 4:
        o.zero_(x)
    elif kind == 5 and not isinstance(y, float):
        o.copy_(x, y)
    elif kind == 6:
        with o.no_grad():
            o.add_(x, 1)
    else:
        o.relu_(x)


def interpret(steps: list[tuple[int, int, int, int]], o: Ops, inputs: list[Any]) -> list[Any]:
    """Run a program; returns values that it made."""
    values = list(inputs)
    for kind, a, b, n in steps:
        x, y = values[a % len(values)], values[b % len(values)]
        if kind < 11:
            values.append(view(o, x, kind, n))
        elif kind < 20:
            change(o, x, y, kind - 11, n)
        elif kind < 23:
            values.append(o.mul(x, y if fits(x, y) else 2.0))
        elif kind == 23:
            values.append(o.add(o.sin(x), x))
        elif kind == 24:
            with o.no_grad():
                values.append(o.mul(x, 3))
        elif kind == 25:
            values.append(o.clone(x))
        elif kind == 26:
            with o.no_grad():
                values.append(view(o, x, n % 7, n))
        else:
            values.append(o.sum(x, [0], True) if x.ndim else o.exp(x))
    return values[-4:]


def check_program(steps: list[tuple[int, int, int, int]], kinds: tuple[int, int]) -> str:
    """Compare compiled with eager; "" or why there was nothing to compare."""
    inputs = []
    for i, kind in enumerate(kinds):  # 0: leaf, 1: with a history, 2: without gradients
        c10.manual_seed(i)
        x = aten.randn([3, 4] if i == 0 else [4])
        x.requires_grad = kind < 2
        inputs.append(x * 1.0 if kind == 1 else x)
    program = lambda o, *given: interpret(steps, o, list(given))  # noqa: E731
    try:
        eager = run(lambda *given: program(Ops(aten.ops, None), *given), inputs)
    except (RuntimeError, IndexError) as error:
        return f"eager refuses it: {error}"
    traced = trace(program, copies(inputs)[1])
    try:
        build_joint(*traced)
    except UnsupportedGraph as error:
        return f"unsupported: {error}"
    got = run(aot_eager(*traced), inputs)
    compare(eager, got, strides=False)
    return ""


@hypothesis.settings(
    max_examples=300,
    deadline=None,
    derandomize="ARGAND_TEST_SEED" not in os.environ,
    suppress_health_check=list(hypothesis.HealthCheck),
)
@hypothesis.given(PROGRAM, st.tuples(st.integers(0, 2), st.integers(0, 2)))
def test_random_programs(steps: list[tuple[int, int, int, int]], kinds: tuple[int, int]) -> None:
    why = check_program(steps, kinds)
    hypothesis.event(why.split(":")[0] or "compared")
    hypothesis.assume(not why)
