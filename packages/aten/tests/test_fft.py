"""Fourier transforms: precision, inverses, `out=`, compiled programs of them and errors; values are compared by the generated tests."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import argand_aten as torch
import argand_c10 as c10
from argand_aten import _fft_kernels, ops

PAIRS = {"fft": "ifft", "rfft": "irfft", "ihfft": "hfft"}


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize("n", [1, 2, 5, 12, 97])
@pytest.mark.parametrize("name", PAIRS)
def test_inverses(name, n, norm):
    for dtype in ("float32", "float64"):
        x = c10.from_numpy(np.random.default_rng(0).standard_normal((3, n)).astype(dtype))
        there = getattr(ops, f"fft_{name}")(x, norm=norm)
        back = getattr(ops, f"fft_{PAIRS[name]}")(there, n, norm=norm)
        assert there.dtype == (c10.complex64 if dtype == "float32" else c10.complex128)
        np.testing.assert_allclose(
            back.numpy(), x.numpy(), atol=1e-5 if dtype == "float32" else 1e-12
        )
        assert back.dtype == (x.dtype if name != "fft" else there.dtype)


def test_an_extension_with_other_arguments_is_left():
    pytest.importorskip("scipy")
    found = _fft_kernels._library()
    assert found is not np.fft and _fft_kernels._has_arguments(found)
    other = SimpleNamespace(c2c=found.c2c, r2c=found.r2c, c2r=found.c2c)
    assert not _fft_kernels._has_arguments(other)
    assert not _fft_kernels._has_arguments(SimpleNamespace())


@pytest.mark.parametrize("name", ["fft2", "ifft2", "rfft2", "irfft2", "hfft2", "ihfft2"])
def test_libraries_agree(name, monkeypatch):
    """NumPy's transforms stand in for SciPy's."""
    pytest.importorskip("scipy")
    x = c10.from_numpy(np.random.default_rng(0).standard_normal((3, 6, 8)))
    x = x.to(c10.complex128) if name in ("irfft2", "hfft2") else x
    found = []
    for library in (np.fft, _fft_kernels._library()):
        monkeypatch.setattr(_fft_kernels, "_library", lambda library=library: library)
        found.append(getattr(ops, f"fft_{name}")(x.mT, norm="ortho"))
    np.testing.assert_allclose(found[0].numpy(), found[1].numpy(), rtol=0, atol=1e-13)
    assert found[0].stride() == found[1].stride()


def test_integers_and_out():
    x = torch.arange(6)
    assert ops.fft_fft(x).dtype == c10.complex64
    out = torch.empty(0, dtype=c10.complex64)
    assert ops.fft_rfft(x, out=out) is out
    np.testing.assert_allclose(out.numpy(), np.fft.rfft(np.arange(6)), atol=1e-5)


def test_no_dimensions():
    x = torch.ones(2, 3)
    np.testing.assert_array_equal(ops.fft_fftn(x, dim=()).numpy(), np.ones((2, 3), np.complex64))
    assert tuple(ops.fft_fft(torch.empty(0, 4)).shape) == (0, 4)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ops.fft_fft(torch.ones(3), 0), RuntimeError, "number of data points"),
        (lambda: ops.fft_irfft(torch.ones(1)), RuntimeError, "number of data points"),
        (lambda: ops.fft_fft(torch.ones(())), IndexError, "no dimensions"),
        (lambda: ops.fft_fft(torch.ones(3), dim=1), IndexError, "out of range"),
        (lambda: ops.fft_fft(torch.ones(3), norm="best"), RuntimeError, "normalization mode"),
        (lambda: ops.fft_fftn(torch.ones(3, 3), dim=(0, -2)), RuntimeError, "unique"),
        (lambda: ops.fft_fftn(torch.ones(3), (3, 3)), RuntimeError, "only has 1 dimensions"),
        (lambda: ops.fft_fftn(torch.ones(3, 3), (3,), (0, 1)), RuntimeError, "same length"),
        (lambda: ops.fft_rfft(torch.ones(3, dtype=c10.complex64)), RuntimeError, "real input"),
        (lambda: ops.fft_fft(torch.ones(3, dtype=c10.float16)), RuntimeError, "float16"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("name", ["fft2", "ifft2", "fftn", "ifftn"])
def test_no_dimensions_make_a_copy(name):
    x = torch.tensor([[1 + 2j, 3j]])
    y = getattr(ops, f"fft_{name}")(x, dim=[])
    assert y.data_ptr() != x.data_ptr()
    assert y.tolist() == x.tolist()
