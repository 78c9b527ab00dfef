"""gradcheck and gradgradcheck find what is wrong and accept what is right."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import leaf, random_leaf

import argand_aten as aten
import argand_autograd as autograd
import argand_c10
from argand_autograd import Function, GradcheckError, gradcheck, gradgradcheck


class Off(Function):
    """A gradient that is wrong in one element."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        g = grad * 2
        g[0] = g[0] * 1.5
        return g


def test_right_gradients():
    x, y = random_leaf(2, 3), random_leaf(3, start=2.0)
    for check in (gradcheck, gradgradcheck):
        assert check(lambda a, b: a * b + (a / b).exp(), (x, y))
        assert check(lambda a, b: (a * b, a - b), (x, y))
        assert check(lambda a: a.t() * 2, x)
        assert check(lambda a, b: a * b, (x, y), fast_mode=True)
    assert gradgradcheck(lambda a: a * a * a, x, gen_non_contig_grad_outputs=True)


def test_complex_gradients():
    z = argand_c10.tensor([1 + 2j, -0.5 + 0.3j], dtype=argand_c10.complex128, requires_grad=True)
    x = leaf([0.7, -1.2])
    for check in (gradcheck, gradgradcheck):
        assert check(lambda a: a * a, z)
        assert check(lambda a, b: a * b, (z, x))
        assert check(lambda a: a.conj() * 2j, z)
        assert check(lambda a: aten.view_as_real(a) * 2, z)


def test_wrong_gradients():
    x = random_leaf(3)
    with pytest.raises(
        GradcheckError,
        match="Jacobian mismatch for output 0 with respect to input 0(.|\n)*numerical(.|\n)*analytical(.|\n)*largest difference 1 at output element 0, input element 0",
    ):
        gradcheck(Off.apply, x)
    with pytest.raises(GradcheckError, match="along a random direction"):
        gradcheck(Off.apply, x, fast_mode=True)
    assert gradcheck(Off.apply, x, raise_exception=False) is False


def test_hidden_dependence():
    with pytest.raises(GradcheckError, match="expected to be zero"):
        gradcheck(lambda a: a.detach() * 2, random_leaf(2))


def test_irreproducible_gradients():
    class Drifting(Function):
        calls = 0

        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            Drifting.calls += 1
            return grad * (2 + 1e-7 * Drifting.calls)

    with pytest.raises(GradcheckError, match="not reentrant"):
        gradcheck(Drifting.apply, random_leaf(2))
    assert gradcheck(Drifting.apply, random_leaf(2), nondet_tol=1e-3)


def test_refusals():
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(lambda a: a, argand_c10.tensor([1.0]))
    with pytest.raises(ValueError, match="check_forward_ad=True"):
        gradcheck(lambda a: a, random_leaf(2), check_forward_ad=True)
    with pytest.warns(UserWarning, match="not a double precision"):
        gradcheck(
            lambda a: a * 2, argand_c10.tensor([1.0], requires_grad=True), eps=1e-2, atol=1e-2
        )


def test_inputs_are_left_alone():
    x = random_leaf(2)
    before = x.tolist()
    gradgradcheck(lambda a: a * a, x)
    assert x.tolist() == before and x.grad is None
    assert autograd.is_grad_enabled()


@pytest.mark.parametrize("dtype", [argand_c10.float32, argand_c10.float64])
def test_derivatives_of_bessel_functions_near_0(dtype):
    x = argand_c10.tensor([0.0, 1e-300, 1e-30, -1e-20, 1e-10], dtype=dtype).requires_grad_()
    for function, curvature in ((aten.ops.i1, 0.0), (aten.ops.i1e, 1.0)):
        (first,) = autograd.grad(aten.sum(function(x)), [x], create_graph=True)
        (second,) = autograd.grad(aten.sum(first), [x])
        np.testing.assert_allclose(first.detach().numpy(), 0.5, rtol=1e-6)
        assert (np.abs(second.numpy()) <= curvature + 1e-6).all()
