"""`torch._foreach_*`: the operator of the same name on every tensor of a list."""

from __future__ import annotations

from typing import Any

import pytest

import argand as torch


def lists() -> tuple[list[torch.Tensor], ...]:
    torch.manual_seed(0)
    shapes = [(3,), (2, 4), (), (0, 2)]
    return tuple([torch.rand(shape) + 0.5 for shape in shapes] for _ in range(3))


def equal(found: Any, wanted: Any) -> None:
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize(
    "name",
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round rsqrt sigmoid sign "
    "sin sinh sqrt tan tanh trunc".split(),
)
def test_unary(name: str) -> None:
    x, _, _ = lists()
    wanted = [getattr(torch, name)(t) for t in x]
    found = getattr(torch, f"_foreach_{name}")(x)
    assert isinstance(found, tuple)
    equal(found, wanted)
    assert all(a is b for a, b in zip(getattr(torch, f"_foreach_{name}_")(x), x, strict=True))
    equal(x, wanted)


@pytest.mark.parametrize(
    "name", ["add", "sub", "mul", "div", "pow", "maximum", "minimum", "clamp_min", "clamp_max"]
)
def test_binary(name: str) -> None:
    x, y, _ = lists()
    operator = {"maximum": torch.clamp_min, "minimum": torch.clamp_max}.get(name) or getattr(
        torch, name
    )
    for other in (y, 0.75, [0.5, 1.0, 2.0, 3.0]):
        others = other if isinstance(other, list) else [other] * 4
        wanted = [operator(a, b) for a, b in zip(x, others, strict=True)]
        equal(getattr(torch, f"_foreach_{name}")(x, other), wanted)
        changed = [t.clone() for t in x]
        getattr(torch, f"_foreach_{name}_")(changed, other)
        equal(changed, wanted)


def test_scaled_operands() -> None:
    x, y, z = lists()
    equal(torch._foreach_add(x, y, alpha=3), [a + 3 * b for a, b in zip(x, y, strict=True)])
    equal(torch._foreach_mul(x, torch.tensor(2.0)), [2 * a for a in x])
    equal(torch._foreach_pow(2.0, x), [2.0**a for a in x])
    for name, operator in (("addcmul", torch.addcmul), ("addcdiv", torch.addcdiv)):
        for value in (0.5, [1.0, 2.0, 3.0, 4.0], torch.tensor([1.0, 2.0, 3.0, 4.0])):
            values = [value] * 4 if isinstance(value, float) else list(value)
            wanted = [
                operator(a, b, c, value=float(v))
                for a, b, c, v in zip(x, y, z, values, strict=True)
            ]
            equal(getattr(torch, f"_foreach_{name}")(x, y, z, value), wanted)
            changed = [t.clone() for t in x]
            getattr(torch, f"_foreach_{name}_")(changed, y, z, value)
            equal(changed, wanted)
    equal(torch._foreach_addcmul(x, y, z), [torch.addcmul(*t) for t in zip(x, y, z, strict=True)])
    for weight in (0.3, [0.1, 0.2, 0.3, 0.4], z):
        weights = weight if isinstance(weight, list) else [weight] * 4
        wanted = [torch.lerp(*t) for t in zip(x, y, weights, strict=True)]
        equal(torch._foreach_lerp(x, y, weight), wanted)
    changed = [t.clone() for t in x]
    equal(torch._foreach_lerp_(changed, y, weight=0.3), torch._foreach_lerp(x, y, 0.3))


def test_norms_copies_and_what_is_refused() -> None:
    x, y, _ = lists()
    equal(torch._foreach_norm(x), [torch.linalg.vector_norm(t) for t in x])
    equal(torch._foreach_norm(x, 1), [t.abs().sum() for t in x])
    equal(torch._foreach_max(x[:3]), [t.max() for t in x[:3]])
    torch._foreach_copy_(x, y)
    equal(x, y)
    torch._foreach_zero_(x)
    assert all(float(t.sum()) == 0 for t in x)
    with pytest.raises(RuntimeError, match="same number of tensors, got 4 and 2"):
        torch._foreach_add(x, y[:2])
    with pytest.raises(RuntimeError, match="at least one tensor"):
        torch._foreach_abs([])
    with pytest.raises(TypeError, match="list of tensors"):
        torch._foreach_add(torch.ones(2), 1)
    with pytest.raises(AttributeError, match="_foreach_nothing"):
        torch._foreach_nothing  # noqa: B018
    for absent in ("_foreach_zero", "_foreach_norm_"):
        assert not hasattr(torch, absent)


def test_gradients_and_compilation() -> None:
    x, y, _ = lists()
    leaves = [t.requires_grad_() for t in x]

    def f(tensors: list[torch.Tensor], others: list[torch.Tensor]) -> torch.Tensor:
        scaled = torch._foreach_mul(torch._foreach_add(tensors, others, alpha=2), 0.5)
        return sum(t.sum() for t in torch._foreach_exp(list(scaled)))

    wanted = torch.autograd.grad(f(leaves, y), leaves)
    equal(torch.autograd.grad(torch.compile(f, fullgraph=True)(leaves, y), leaves), wanted)
