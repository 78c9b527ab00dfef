"""Graph-level derivative rules of the real registry, run on NumPy against finite differences."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from tools.codegen import dtypes as dt
from tools.codegen.emit_python import emit_derivatives
from tools.codegen.emit_tests import domain
from tools.codegen.model import Operator
from tools.codegen.tests.support import (
    SOFTCAP,
    NumpyOps,
    language,
    load_text,
    module_from,
    registry,
)


@functools.cache
def ops() -> NumpyOps:
    return NumpyOps(registry())


@functools.cache
def rules(family: str) -> dict[str, Any]:
    module = module_from(
        emit_derivatives(registry(), family), f"derivatives_{family}", {"_language": language()}
    )
    return module.DERIVATIVES  # type: ignore[no-any-return]


def derived_pointwise() -> list[Operator]:
    return [
        op
        for op in registry().operators.values()
        if op.kind == "pointwise"
        and op.is_differentiable
        and "float64" in op.dtypes
        # The derivative by the shape is a kernel without an expression; gradcheck tests it.
        and op.name not in ("igamma", "igammac")
    ]


def arguments(op: Operator, choice: str | None) -> list[Any]:
    """Float64 arrays for operands (bools for conditions), numbers for scalars."""
    rng = np.random.default_rng(len(op.name))
    low, high = domain(op)
    found: list[Any] = []
    for a in op.schema.arguments:
        if a.name in ("condition", "mask"):
            found.append(rng.integers(0, 2, 6).astype(bool))
        elif a.type.is_tensor or a.type.is_operand:
            found.append(rng.permutation(np.linspace(low, high, 6)) + rng.uniform(0.01, 0.02, 6))
        elif a.type.base == "str":
            found.append(choice)
        else:
            found.append(a.default if a.has_default else 0.75)
    return found


def forward(op: Operator, args: list[Any]) -> Any:
    positional = [x for x, a in zip(args, op.schema.arguments, strict=True) if not a.kwonly]
    named = {a.name: x for x, a in zip(args, op.schema.arguments, strict=True) if a.kwonly}
    with np.errstate(all="ignore"):
        return np.asarray(ops().functions[op.public_name](*positional, **named))


@pytest.mark.parametrize("op", derived_pointwise(), ids=lambda op: op.name)
def test_rule_matches_finite_differences(op: Operator) -> None:
    rule = rules(op.family)[op.name]
    for choice in op.expr:
        args = arguments(op, choice)
        result = forward(op, args)
        grad = np.linspace(0.5, 1.5, result.size)
        with np.errstate(all="ignore"):
            grads = rule(ops(), (grad,), args, (result,), [True] * len(args))
        for i, a in enumerate(op.schema.arguments):
            derived = any(a.name in d.args and not d.is_none for d in op.grad)
            if not derived or args[i].dtype == bool:
                continue
            step = 1e-6
            up, down = (args[:i] + [args[i] + s] + args[i + 1 :] for s in (step, -step))
            expected = grad * (forward(op, up) - forward(op, down)) / (2 * step)
            got = np.broadcast_to(np.asarray(grads[i], float), expected.shape)
            np.testing.assert_allclose(
                got, expected, rtol=2e-4, atol=2e-5, err_msg=f"{op.name}: {a.name}"
            )


def test_unwanted_gradients_are_not_computed() -> None:
    class Refuse:
        def __getattr__(self, name: str) -> Any:
            raise AssertionError(f"ops.{name} was called")

    rule = rules("arithmetic")["mul"]
    assert rule(
        Refuse(), (np.ones(2),), [np.ones(2), np.ones(2)], (np.ones(2),), [False, False]
    ) == (None, None)


def test_one_entry_gives_first_and_second_derivatives(tmp_path: Any) -> None:
    source = load_text(tmp_path, SOFTCAP)
    backward = source.operators["softcap_backward"]
    assert (
        str(backward.schema)
        == "softcap_backward(Tensor grad_output, Tensor self, float cap) -> Tensor"
    )
    assert backward.backward_of == "softcap" and backward.kind == "pointwise"
    table = module_from(
        emit_derivatives(source, "things"), "d", {"_language": language()}
    ).DERIVATIVES
    numpy_ops = NumpyOps(source)
    x, g, cap, step = np.array([-1.5, 0.2, 0.9]), np.array([1.0, 2.0, 3.0]), 2.0, 1e-5
    first = table["softcap"](numpy_ops, (g,), (x, cap), (None,), [True, False])[0]
    np.testing.assert_allclose(first, g * (1 - np.tanh(x / cap) ** 2), rtol=1e-12)
    by_grad, by_self, _ = table["softcap_backward"](
        numpy_ops, (np.ones(3),), (g, x, cap), (None,), [True, True, False]
    )
    np.testing.assert_allclose(by_grad, first / g, rtol=1e-12)
    up, down = (numpy_ops.softcap_backward(g, x + s, cap) for s in (step, -step))
    np.testing.assert_allclose(by_self, (up - down) / (2 * step), rtol=1e-6)


def test_every_floating_operator_says_what_its_derivative_is() -> None:
    for op in registry().operators.values():
        if op.kind != "composite" and any(dt.is_differentiable(d) for d in op.dtypes):
            assert op.grad or op.grad_none or op.grad_missing, op.name
