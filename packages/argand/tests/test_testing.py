"""assert_close, make_tensor."""

from __future__ import annotations

import math

import numpy as np
import pytest

import argand as torch
from argand.testing import assert_close, make_tensor


def message(*args, **kwargs):
    with pytest.raises(AssertionError) as caught:
        assert_close(*args, **kwargs)
    return str(caught.value)


def test_close_values_pass():
    x = torch.tensor([1.0, 2.0])
    assert_close(x, x + 1e-7)
    assert_close(x, x + 0.1, rtol=0, atol=0.2)
    assert_close(x.to(torch.bfloat16), x.to(torch.bfloat16) * 1.01)
    assert_close(torch.tensor([math.inf, -math.inf]), torch.tensor([math.inf, -math.inf]))
    assert_close(torch.tensor([math.nan]), torch.tensor([math.nan]), equal_nan=True)
    assert_close(torch.tensor([True, False]), torch.tensor([True, False]))
    assert_close(torch.zeros(0), torch.zeros(0))
    assert_close(torch.tensor([1 + 2j]), torch.tensor([1 + 2j]))
    assert_close([1.0, {"a": x}], [1.0 + 1e-9, {"a": x}])
    assert_close(3, 3)
    assert_close(x, x.double(), check_dtype=False)
    assert_close(None, None)
    assert_close(np.array([1.0, 2.0]), np.array([1.0, 2.0 + 1e-9]))
    assert_close(np.float32(3), np.float32(3))


def test_arrays_are_compared_as_tensors_and_not_with_tensors():
    assert "shapes differ" in message(np.zeros(2), np.zeros(3))
    assert "dtype differ" in message(np.zeros(2), np.zeros(2, np.float32))
    assert "Mismatched elements: 1 / 2" in message([np.arange(2)], [np.zeros(2, np.int64)])
    with pytest.raises(TypeError, match="got Tensor and ndarray"):
        assert_close(torch.zeros(2), np.zeros(2))


def test_mismatches_are_described():
    a, b = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[1.0, 2.5], [3.0, 8.0]])
    text = message(a, b)
    assert "Mismatched elements: 2 / 4 (50.0%)" in text
    assert "Greatest absolute difference: 4 at index (1, 1) (up to 1e-05 allowed)" in text
    assert "Greatest relative difference: 0.5 at index (1, 1) (up to 1.3e-06 allowed)" in text
    assert "Expected 2 but got 1" in message(1, 2)
    assert "shapes differ: [2, 2] != [2]" in message(a, b[0])
    assert "dtype differ: argand.float32 != argand.float64" in message(a, a.double())
    assert "stride differ" in message(a, a.t().contiguous().t(), check_stride=True)
    assert "device differ" in message(a, torch.zeros(2, 2, device="meta"))
    assert "at [1]['k']" in message([a, {"k": a}], [a, {"k": b}])
    assert "missing ['b'], unexpected ['a']" in message({"a": 1}, {"b": 1})
    assert "lengths" in message([1], [1, 2])
    assert "nan at index (0,)" in message(torch.tensor([math.nan]), torch.tensor([math.nan]))
    assert message(1, 2, msg="mine") == "mine"
    assert message(1, 2, msg=lambda m: "seen: " + m[:7]) == "seen: Scalars"


def test_wide_integers_are_compared_exactly():
    big = 2**62
    assert "1 / 1" in message(torch.tensor([big]), torch.tensor([big + 1]))


def test_numbers_have_types():
    assert "<class 'int'> != <class 'float'>" in message(1, 1.0)
    assert_close(1, 1.0, check_dtype=False)


def test_wrong_use():
    with pytest.raises(ValueError, match="expected both or neither"):
        assert_close(1.0, 1.0, rtol=1.0)
    with pytest.raises(TypeError, match="got str and int"):
        assert_close("a", 1)
    with pytest.raises(TypeError, match="got Parameter and Tensor"):
        assert_close(torch.nn.Parameter(torch.ones(1)), torch.ones(1), allow_subclasses=False)


def test_make_tensor_keeps_to_its_range_dtype_and_layout():
    for dtype in (
        torch.bool,
        torch.uint8,
        torch.int64,
        torch.float16,
        torch.float64,
        torch.complex64,
    ):
        x = make_tensor(20, 30, dtype=dtype, device="cpu", exclude_zero=True)
        assert x.shape == (20, 30) and x.dtype == dtype and bool((x != 0).all())
        parts = torch.view_as_real(x) if dtype.is_complex else x
        assert parts.double().abs().max().item() <= 9
    y = make_tensor(
        (4, 5),
        dtype=torch.float32,
        device="cpu",
        low=2,
        high=3,
        noncontiguous=True,
        requires_grad=True,
    )
    assert not y.is_contiguous() and y.requires_grad and 2 <= y.min().item() and y.max().item() < 3
    z = make_tensor(1, 2, 3, 4, dtype=torch.int8, device="cpu", memory_format=torch.channels_last)
    assert z.is_contiguous(memory_format=torch.channels_last)
    for wrong in (
        {"low": 3, "high": 2},
        {"noncontiguous": True, "memory_format": torch.channels_last},
    ):
        with pytest.raises(ValueError, match="make_tensor"):
            make_tensor(2, dtype=torch.float32, device="cpu", **wrong)
