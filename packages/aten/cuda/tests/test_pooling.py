"""Pooling on an emulated CUDA device against the CPU: equal bit for bit, but for means of whole planes."""

from __future__ import annotations

from typing import Any

import emulated
import numpy as np
import pytest

if emulated.missing:
    pytest.skip(emulated.missing, allow_module_level=True)

import argand_aten as aten
import argand_c10 as c10

emulated.start()

FLOATING = [
    c10.float32,
    c10.float64,
    c10.float16,
]  # the interpreter converts to bfloat16 in another way


def same(function: Any, *tensors: Any, atol: float = 0) -> None:
    expected, got = function(*tensors), function(*(t.to("cuda") for t in tensors))
    emulated.check()
    for a, b in (
        [(expected, got)] if isinstance(expected, c10.Tensor) else zip(expected, got, strict=True)
    ):
        assert a.shape == b.shape and a.dtype == b.dtype and str(b.device) == "cuda:0"
        np.testing.assert_allclose(
            b.to("cpu").to(c10.float64).numpy(), a.to(c10.float64).numpy(), rtol=0, atol=atol
        )


def planes(shape: tuple[int, ...], dtype: Any) -> Any:
    return aten.tensor(np.random.default_rng(0).standard_normal(shape) * 9).to(dtype)


@pytest.mark.parametrize("dtype", [*FLOATING, c10.int64, c10.uint8, c10.uint32])
def test_max_pool2d(dtype: Any) -> None:
    x = planes((2, 3, 9, 7), dtype)
    if x.dtype.is_floating_point:
        x[0, 0, 2, 3], x[0, 0, 3, 3], x[1] = float("nan"), float("nan"), float("-inf")
    same(lambda x: aten.max_pool2d_with_indices(x, [2, 2]), x)
    same(lambda x: aten.max_pool2d_with_indices(x, [3, 2], [2, 1], [1, 1], [2, 1], True), x)
    same(lambda x: aten.max_pool2d_with_indices(x[0], [3, 3], [1, 1], [1, 1]), x)
    same(lambda x: aten.max_pool2d_with_indices(x[:, :, :2, :2], [2, 2], [1, 1], [1, 1], [3, 3]), x)


def test_max_pool2d_backward() -> None:
    x, grad = (
        planes((2, 3, 9, 7), c10.float32),
        aten.tensor(np.arange(2 * 3 * 4 * 3.0)).to(c10.float32).reshape(2, 3, 4, 3),
    )
    _, indices = aten.max_pool2d_with_indices(x, [3, 3], [2, 2])
    assert indices.shape == grad.shape
    for dtype in (c10.float32, c10.float16):
        same(
            lambda g, i: aten.max_pool2d_with_indices_backward(g, [2, 3, 9, 7], i),
            grad.to(dtype),
            indices,
        )
    # -1: a window that sees padding alone
    indices[0, 1, 2] = -1
    same(lambda g, i: aten.max_pool2d_with_indices_backward(g, [2, 3, 9, 7], i), grad, indices)


CASES: list[tuple[Any, ...]] = [
    ([2, 2], [2, 2], [0, 0], False, True, None),
    ([3, 2], [2, 1], [1, 1], False, True, None),
    ([3, 2], [2, 1], [1, 1], True, False, None),
    ([3, 3], [1, 2], [1, 0], True, True, 5),
]


@pytest.mark.parametrize("dtype", [*FLOATING, c10.int64])
@pytest.mark.parametrize("case", CASES)
def test_avg_pool2d(dtype: Any, case: tuple[Any, ...]) -> None:
    x = planes((2, 3, 9, 7), dtype)
    same(lambda x: aten.avg_pool2d(x, *case), x)
    same(lambda x: aten.avg_pool2d(x.permute(0, 1, 3, 2), *case), x)
    if not dtype.is_floating_point:
        return
    out = aten.avg_pool2d(x, *case)
    same(
        lambda g: aten.avg_pool2d_backward(g, [2, 3, 9, 7], *case), planes(tuple(out.shape), dtype)
    )


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("size", [[1, 1], [4, 3], [9, 7], [13, 20]])
def test_adaptive_avg_pool2d(dtype: Any, size: list[int]) -> None:
    # The CPU adds whole planes in another order.
    atol = 9 * c10.finfo(dtype).eps if size == [1, 1] else 0
    same(lambda x: aten.adaptive_avg_pool2d(x, size), planes((2, 3, 9, 7), dtype), atol=atol)
    same(lambda g: aten.adaptive_avg_pool2d_backward(g, [2, 3, 9, 7]), planes((2, 3, *size), dtype))


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("size", [[1, 1], [4, 3], [13, 20]])
def test_adaptive_max_pool2d(dtype: Any, size: list[int]) -> None:
    x = planes((2, 3, 9, 7), dtype)
    x[0, 0, 2, 3], x[0, 0, 3, 3], x[1] = float("nan"), float("nan"), float("-inf")
    same(lambda x: aten.adaptive_max_pool2d(x, size), x)


def test_volumes() -> None:
    x = planes((2, 2, 5, 7, 6), c10.float32)
    same(lambda x: aten.max_pool3d_with_indices(x, [2, 3, 2], [2, 1, 2], [1, 1, 0]), x)
    same(lambda x: aten.avg_pool3d(x, [2, 3, 2], [2, 1, 2], [1, 1, 0]), x)
    same(lambda x: aten.adaptive_max_pool3d(x, [2, 3, 4]), x)
    same(lambda x: aten.adaptive_avg_pool3d(x, [2, 3, 4]), x)


@pytest.mark.parametrize("shape", [(2, 0, 4, 4), (2, 3, 0, 4), (0, 4, 4), (0, 3, 4, 4)])
def test_only_batches_are_empty(shape: tuple[int, ...]) -> None:
    x = aten.zeros(shape)
    for call in (
        lambda x: aten.max_pool2d_with_indices(x, [2, 2]),
        lambda x: aten.avg_pool2d(x, [2, 2]),
        lambda x: aten.adaptive_avg_pool2d(x, [2, 2]),
        lambda x: aten.adaptive_avg_pool2d(x, [1, 1]),
    ):
        try:
            call(x)
        except Exception as error:
            with pytest.raises(type(error)):
                call(x.to("cuda"))
        else:
            same(call, x)
