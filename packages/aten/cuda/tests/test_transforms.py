"""Fourier transforms through a stand-in of cuFFT, against the CPU's."""

from __future__ import annotations

from typing import Any

import emulated
import numpy as np
import pytest

if emulated.missing:
    pytest.skip(emulated.missing, allow_module_level=True)

import argand_aten as aten
import argand_c10 as c10
from argand_aten_cuda import libraries
from argand_c10 import Tensor, float32, float64

emulated.start()
RNG = np.random.default_rng(7)


def numbers(dtype: Any, *shape: int) -> Tensor:
    return c10.from_numpy(RNG.standard_normal(shape)).to(dtype)


def transforms(a: Tensor, dim: list[int], way: int) -> list[Tensor]:
    """The three kinds of a real tensor; `way`: the normalization and the direction."""
    norm = way % 3
    half = aten.ops._fft_r2c(a, dim, norm, True)
    full = aten.ops._fft_r2c(a, dim, norm, False)
    size = a.shape[dim[-1]]
    return [
        half,
        full,
        aten.ops._fft_c2c(full, dim, norm, way < 3),
        aten.ops._fft_c2r(half, dim, norm, size),
        aten.ops._fft_c2r(half, dim, norm, max(size ^ 1, 1)),
    ]


@pytest.mark.parametrize("dtype", [float32, float64])
@pytest.mark.parametrize(
    "shape,dim,arrange",
    [
        ((6,), [0], lambda x: x),
        ((3, 5), [1], lambda x: x),
        ((3, 6), [0], lambda x: x),
        ((5, 3, 4), [0, 2], lambda x: x),
        ((5, 3, 4), [2, 0], lambda x: x.permute(2, 0, 1)),
        ((2, 3, 4, 3), [3, 1, 2], lambda x: x),
        ((2, 3, 2, 3, 2), [0, 4, 1, 3], lambda x: x),
        ((2, 3, 2, 3, 2), [0, 1, 2, 3, 4], lambda x: x.transpose(0, 3)),
        ((4, 9), [1], lambda x: x[:, 1:8]),
        ((4, 9), [1], lambda x: x[1:, ::2]),
        ((1, 4, 1), [0, 1, 2], lambda x: x),
        ((0, 4), [1], lambda x: x),
    ],
)
def test_transforms(dtype: Any, shape: Any, dim: Any, arrange: Any) -> None:
    values = numbers(dtype, *shape)
    x, y = arrange(values), arrange(values.to("cuda"))
    for way in range(6) if len(shape) == 1 else (1, 5):
        for got, want in zip(transforms(y, dim, way), transforms(x, dim, way), strict=True):
            assert got.device.type == "cuda" and got.dtype == want.dtype
            assert got.shape == want.shape and got.stride() == want.stride()
            tolerance = 1e-4 if dtype == float32 else 1e-11
            np.testing.assert_allclose(
                got.to("cpu").numpy(), want.numpy(), rtol=tolerance, atol=tolerance
            )


@pytest.mark.parametrize("dtype", [float32, float64])
@pytest.mark.parametrize(
    ("shape", "dim"),
    [((3, 40), [1]), ((33,), [0]), ((2, 5, 34), [1, 2]), ((2, 3, 4, 32), [1, 2, 3]), ((3, 4, 35), [2])],
)  # fmt: skip
def test_spectra_of_real_numbers_are_mirrored(dtype: Any, shape: Any, dim: Any) -> None:
    emulated.launches.clear()
    values = numbers(dtype, *shape)
    for normalization in (0, 2):
        got = aten.ops._fft_r2c(values.to("cuda"), dim, normalization, False)
        want = aten.ops._fft_r2c(values, dim, normalization, False)
        emulated.check()
        assert got.dtype == want.dtype and got.stride() == want.stride()
        np.testing.assert_allclose(got.to("cpu").numpy(), want.numpy(), rtol=1e-4, atol=1e-4)
    assert any(name.startswith("fourier_mirror") for name in emulated.launches)


def test_input_is_left_as_it_was() -> None:
    before = numbers(c10.complex128, 3, 5)
    x = before.to("cuda")
    aten.ops._fft_c2r(x, [1], 0, 8)
    assert x.to("cpu").tolist() == before.tolist()
    assert libraries.version("cufft") == 12000


def test_halves_of_another_length_are_refused() -> None:
    with pytest.raises(RuntimeError, match="3 .* 8"):
        aten.ops._fft_c2r(numbers(float32, 2, 3).to(c10.complex64).to("cuda"), [1], 0, 8)
