"""Tests of the generated Python: shape functions and composites against the library, derivative rules against its engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tools.codegen.runtime.optest import (
    TOLERANCE,
    _differentiable_call,
    _gradient_calls,
    as_list,
    drawn,
    run,
    sizes,
)
from tools.codegen.runtime.optest_calls import Call, Case, Value, sample_calls, tensors
from tools.codegen.runtime.under_test import DEVICE, array_of, aten, dtype_name, make, on_device


def tables() -> Any:
    from argand_aten.generated import tables as found

    return found


def bound(case: Case, call: Call) -> list[Any]:
    """One value per schema argument, defaults filled in."""
    values: list[Any] = []
    rest = list(call.args)
    for a in case.parsed.arguments:
        if not a.kwonly and rest:
            values.append(rest.pop(0))
        else:
            values.append(call.kwargs.get(a.name, a.default if a.has_default else None))
    return values


def as_sizes(shape: Any, results: int) -> list[list[int]]:
    """What a shape function returns, as one list of sizes per result."""
    if hasattr(shape, "sizes"):
        return [list(shape.sizes)]
    if results == 1:
        return [list(shape)]
    return [list(s.sizes) if hasattr(s, "sizes") else list(s) for s in shape]


def check_shapes(case: Case, dtype: str) -> None:
    """The Python shape and dtype functions say what the operator does."""
    shape = tables().SHAPES.get(case.name)
    result_dtype = tables().DTYPES.get(case.name)
    for call in sample_calls(case, dtype):
        ready = tensors(call)
        real = as_list(run(case, ready))
        if shape is not None:
            found = as_sizes(shape(*ready.args, **ready.kwargs), len(real))
            assert found == [list(r.shape) for r in real], case.name
        if result_dtype is not None:
            dtypes = as_list(result_dtype(*ready.args, **ready.kwargs))
            dtypes = dtypes * (len(real) if len(dtypes) == 1 else 1)
            assert dtypes == [r.dtype for r in real], case.name


def check_composite(case: Case, dtype: str) -> None:
    """A composite's Python body over the library's operators computes what the library does."""
    body = tables().COMPOSITES[case.name]
    own = DEVICE in tables().KERNELS.get(case.name, ())
    for call in sample_calls(case, dtype):
        expected = as_list(array_of(run(case, tensors(call))))
        ready = tensors(call)
        given = on_device(case.parsed, ready.args, ready.kwargs)
        actual = as_list(array_of(drawn(case, body, aten().ops, *ready.args, **given)))
        assert len(actual) == len(expected)
        for a, e in zip(actual, expected, strict=True):
            assert a.dtype == e.dtype and a.shape == e.shape, case.name
            if not own and (DEVICE == "cpu" or dtype not in TOLERANCE):
                np.testing.assert_array_equal(a, e, err_msg=case.name)
            else:  # a kernel's sums have another order, those by atomic additions none
                near = TOLERANCE[dtype]
                np.testing.assert_allclose(a, e, rtol=near, atol=near, err_msg=case.name)


def _reduced(gradient: Any, shape: Sequence[int]) -> Any:
    """A gradient summed to its argument's shape, as the caller of a rule does."""
    array = array_of(gradient)
    extra = array.ndim - len(shape)
    array = array.sum(axis=tuple(range(extra)))
    kept = tuple(i for i, s in enumerate(shape) if s == 1 and array.shape[i] != 1)
    return array.sum(axis=kept, keepdims=True)


def check_rule(case: Case, dtype: str) -> None:
    """A derivative rule over the library's operators gives the engine's gradients."""
    import argand_autograd

    rule = tables().DERIVATIVES[case.name]
    checked = 0
    for call in _gradient_calls(case, dtype):
        if 0 in sizes(call):
            continue
        function, inputs = _differentiable_call(case, call)
        outputs = as_list(function(*inputs))
        if not inputs or not outputs:
            continue
        incoming = [
            make(np.linspace(0.5, 1.5, int(o.numel())).reshape(tuple(o.shape)), dtype_name(o))
            for o in outputs
        ]
        expected = argand_autograd.grad(outputs, inputs, incoming, allow_unused=True)
        checked += _compare_rule(case, call, rule, incoming, list(expected))
    assert checked, f"{case.name}: no gradient was compared"


def _compare_rule(
    case: Case, call: Call, rule: Any, incoming: list[Any], expected: list[Any]
) -> int:
    ready = tensors(call)
    args = bound(case, ready)
    results = as_list(run(case, ready))
    floating = [r for r in results if dtype_name(r) in TOLERANCE]
    grads: list[Any] = [None] * len(results)
    for result, grad in zip(floating, incoming, strict=False):
        grads[next(i for i, r in enumerate(results) if r is result)] = grad
    names = [a.name for a in case.parsed.arguments]
    needs = [n in case.differentiable for n in names]
    found = rule(aten().ops, tuple(grads), tuple(args), tuple(results), needs)
    given = bound(case, call)
    position = 0
    compared = 0
    for name, value, gradient in zip(names, given, found, strict=True):
        parts = value if isinstance(value, list) else [value]
        for k, part in enumerate(parts):
            if name not in case.differentiable or not isinstance(part, Value):
                continue
            if part.dtype not in TOLERANCE:
                continue
            want = expected[position]
            position += 1
            got = gradient[k] if isinstance(value, list) else gradient
            if want is None or got is None:
                continue
            actual = _reduced(got, part.array.shape)
            if part.hermitian:
                actual = (actual + actual.conj().swapaxes(-1, -2)) / 2
            np.testing.assert_allclose(
                actual, array_of(want), rtol=1e-9, atol=1e-9, err_msg=f"{case.name}: {name}"
            )
            compared += 1
    return compared


def rule_parameters(cases: Sequence[Case]) -> list[Any]:
    """Operators with a rule: not composites, whose bodies are derived operator by operator."""
    return [
        pytest.param(case, "float64", id=case.name)
        for case in cases
        if "float64" in case.dtypes
        and case.ruled
        and (case.pointwise or case.samples)
        and not case.random
        and not {"all", "gradcheck"} & set(case.skips)
    ]
