"""Resizing and sampling at a grid on an emulated CUDA device, against the CPU's kernels."""

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


def close(function: Any, *tensors: Any) -> None:
    expected, got = function(*tensors), function(*(t.to("cuda") for t in tensors))
    emulated.check()
    assert got.shape == expected.shape and str(got.device) == "cuda:0"
    np.testing.assert_allclose(got.to("cpu").numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)


def values(*shape: int) -> Any:
    return aten.tensor(np.random.default_rng(0).standard_normal(shape)).to(c10.float32)


def test_resampling() -> None:
    starts, weights = aten.tensor([0, 0, 1, 3]), values(4, 2)
    for dim, shape in ((2, (2, 3, 5)), (1, (2, 5, 3))):
        close(
            lambda x, s, w, d=dim: aten.ops._resample(x, s, w, d), values(*shape), starts, weights
        )
        grad = values(*(4 if i == dim else n for i, n in enumerate(shape)))
        close(
            lambda g, s, w, d=dim: aten.ops._resample_backward(g, s, w, d, 5), grad, starts, weights
        )


def test_weighted_gathers() -> None:
    index = aten.tensor(np.random.default_rng(1).integers(-1, 6, (2, 4, 3)))
    x, weights, grad = values(2, 3, 6), values(2, 4, 3), values(2, 3, 4)
    close(aten.ops._weighted_gather, x, index, weights)
    close(lambda g, i, w: aten.ops._weighted_scatter(g, i, w, 6), grad, index, weights)
    close(aten.ops._weighted_gather_weights, grad, x, index)


MODES = ["nearest", "nearest-exact", "linear", "cubic"]


@pytest.mark.parametrize("mode", MODES)
def test_images_resized(mode: str) -> None:
    x = values(2, 3, 5, 7)
    for size in ([9, 4], [5, 20], [1, 1], [3, 14]):
        for align in (False, True) if mode in ("linear", "cubic") else (False,):
            for scales in ((None, None), (size[0] / 5 + 0.1, None)):
                close(lambda x, a=(size, mode, align, *scales, None): aten.ops._upsample(x, *a), x)
    close(lambda x: aten.ops._upsample(x.to(c10.float64), [7, 8], mode, False, None, None, None), x)
    assert any(name.startswith("upsample_2d") for name in emulated.launches)


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("padding", [0, 1, 2])
@pytest.mark.parametrize("align", [False, True])
def test_grid_samples(mode: int, padding: int, align: bool) -> None:
    x, grid = values(2, 5, 4, 6), values(2, 3, 7, 2) * 1.5
    grid[0, 0, 0, 0], grid[1, 1, 1, 1] = float("nan"), 30.0
    close(lambda x, g: aten.ops.grid_sampler(x, g, mode, padding, align), x, grid)
    x = values(2, 5, 1, 6)
    close(lambda x, g: aten.ops.grid_sampler(x.double(), g.double(), mode, padding, align), x, grid)
    assert any(name.startswith("grid_sample_2d") for name in emulated.launches)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "complex64"])
def test_columns_added(dtype: str) -> None:
    emulated.launches.clear()
    for shape, *sizes in (
        ((2, 12, 6), [3, 4], [2, 2], [1, 1], [0, 0], [1, 1]),
        ((3, 30, 12), [7, 5], [2, 3], [2, 1], [1, 2], [2, 3]),
        ((1, 8, 3), [2, 9], [1, 2], [1, 1], [0, 0], [3, 3]),
    ):
        x = values(*shape).to(getattr(c10, dtype))
        if dtype == "complex64":
            x = x * (1 + 2j)
        expected, got = aten.col2im(x, *sizes), aten.col2im(x.to("cuda"), *sizes)
        emulated.check()
        assert got.dtype == x.dtype
        np.testing.assert_array_equal(got.to("cpu").numpy(), expected.numpy())
    assert any(name.startswith("sum_columns") for name in emulated.launches)
