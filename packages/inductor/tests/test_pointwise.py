"""Generated kernels of pointwise operators have the bits of eager's, at every length."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from lowered import program_of, same_bits

import argand_aten as at
import argand_c10 as c10
from argand_c10.lowerings import PointwiseLowering
from argand_c10.rules import rules_of
from argand_inductor.fuse import Limits
from argand_inductor.program import KernelStep

_EDGES = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    math.inf,
    -math.inf,
    math.nan,
    1e-40,
    -3.0,
    2.0,
    88.0,
    -104.0,
    20.0,
    1e30,
    0.99999,
)
_WHOLE = (0, 1, -1, 2, 3, 7, 31, 64, 127, -128, 100, -5)
# Drawn from a generator, or refused by eager for some of the edge values.
_LEFT_OUT = {"bernoulli"}


def _names(dtype: str) -> list[str]:
    from argand_aten.generated import tables

    found = []
    for name, rule in tables.LOWERINGS.items():
        if not isinstance(rule, PointwiseLowering) or name in _LEFT_OUT or dtype not in rule.dtypes:
            continue
        if "_polynomial_" in name:  # a degree of 1e30 is as many steps
            continue
        if rule.divides and not dtype.startswith(("float", "bfloat")):
            continue
        found.append(name)
    return found


def _inputs(dtype: str, length: int, seed: int) -> list[c10.Tensor]:
    rng = np.random.default_rng(seed)
    tensors = []
    for _ in range(4):
        if dtype == "bool":
            values = rng.integers(0, 2, length).astype(np.bool_)
        elif dtype.startswith(("float", "bfloat")):
            values = rng.standard_normal(length) * 3
            where = rng.random(length) < 0.3
            values[where] = rng.choice(_EDGES, int(where.sum()))
        else:
            values = rng.integers(-100, 100, length)
            where = rng.random(length) < 0.3
            values[where] = rng.choice(_WHOLE, int(where.sum()))
            if dtype == "uint8":
                values = np.abs(values)
        with np.errstate(over="ignore"):
            tensors.append(at.from_numpy(np.asarray(values)).to(getattr(c10, dtype)))
    return tensors


def _call(
    name: str, x: list[Any], condition: Any, variant: str | None
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    rule = rules_of(name).lowering
    operands = itertools.cycle(x)
    numbers = iter((2, 0.5, 3))
    args: dict[str, Any] = {}
    for a in rule.arguments:
        if a in rule.conditions:
            args[a] = condition
        elif a in rule.operands:
            one = name.startswith("masked_fill") and a == "value"  # has no dimensions
            args[a] = True if one else next(operands)
        elif a in rule.scalars:
            args[a] = next(numbers)
        elif a == rule.variant:
            args[a] = variant
    return args


def _apply(find: Any, name: str, x: list[Any], condition: Any) -> list[Any]:
    """Results of an overload's call in every variant."""
    rule = rules_of(name).lowering
    results = []
    for variant in rule.functions:
        results.append(find(name, _call(name, x, condition, variant)))
    return results


def _integral_scalars(dtype: str, args: dict[str, Any], rule: PointwiseLowering) -> dict[str, Any]:
    if dtype.startswith(("float", "bfloat")):
        return args
    return {k: int(v) if k in rule.scalars and isinstance(v, float) else v for k, v in args.items()}


@pytest.mark.parametrize(
    "dtype",
    ["float32", "float64", "bfloat16", "float16", "int64", "int32", "int8", "uint8", "bool"],
)
def test_every_operator_at_every_length(dtype: str) -> None:
    names = _names(dtype)
    assert len(names) > (15 if dtype == "bool" else 30)
    example = _inputs(dtype, 24, 0)
    condition = at.from_numpy(np.arange(24) % 3 == 0)

    def body(ops: Any, a: Any, b: Any, c: Any, d: Any, mask: Any) -> list[Any]:
        def call(name: str, args: dict[str, Any]) -> Any:
            return ops._builder.call(
                c10.find_operator(name), (), _integral_scalars(dtype, args, rules_of(name).lowering)
            )

        return [r for name in names for r in _apply(call, name, [a, b, c, d], mask)]

    def eager(name: str, args: dict[str, Any]) -> Any:
        return c10.find_operator(name)(**_integral_scalars(dtype, args, rules_of(name).lowering))

    program, spec = program_of(body, [*example, condition], [(0,)] * 5, Limits(members=24))
    assert all(isinstance(s, KernelStep) for s in spec.steps), [
        s for s in spec.steps if not isinstance(s, KernelStep)
    ]
    wrong: dict[str, int] = {}
    for length in [*range(0, 70), 96, 127, 128, 129, 130]:
        inputs = _inputs(dtype, length, length)
        mask = at.from_numpy(np.arange(length) % 3 == 0)
        results = iter(program(*inputs, mask))
        for name in names:
            for expected in _apply(eager, name, inputs, mask):
                if not same_bits(next(results), expected):
                    wrong.setdefault(name, length)
    assert not wrong, f"{dtype}: operator and first length that differ: {wrong}"
