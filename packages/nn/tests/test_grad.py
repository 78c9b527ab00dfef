"""Gradients of convolutions by themselves, against the tape's."""

import pytest

import argand_aten as aten
import argand_autograd as autograd
import argand_nn.functional as F
from argand_nn import grad


@pytest.mark.parametrize("n", [1, 2, 3])
def test_gradients_of_convolutions(n):
    x = aten.randn([2, 4, *[7] * n], dtype=aten.ops.zeros([]).double().dtype).requires_grad_()
    w = aten.randn([6, 2, *[3] * n], dtype=x.dtype).requires_grad_()
    for options in ({}, {"stride": 2, "padding": 1}, {"dilation": (2,) * n, "padding": (2,) * n}):
        y = getattr(F, f"conv{n}d")(x, w, groups=2, **options)
        g = aten.randn(list(y.shape), dtype=x.dtype)
        expected = autograd.grad(y, (x, w), g)
        of_input, of_weight = getattr(grad, f"conv{n}d_input"), getattr(grad, f"conv{n}d_weight")
        found = (
            of_input(x.shape, w, g, groups=2, **options),
            of_weight(x, w.shape, g, groups=2, **options),
        )
        for a, b in zip(found, expected, strict=True):
            assert a.shape == b.shape and aten.allclose(a, b)
