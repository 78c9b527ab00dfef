"""Rows of few elements, of which a program takes many: reductions, softmax, norms and order, on an emulated CUDA device against the CPU."""

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
RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _check() -> Any:
    emulated.launches.clear()
    yield
    emulated.check()


def make(rows: int, n: int, dtype: str) -> Any:
    """Whole numbers, many of them equal, and of floating-point dtypes a row with NaN, one with infinities and one of a number alone."""
    x = aten.tensor(RNG.integers(0 if dtype[0] == "u" else -9, 9, (rows, n)))
    x = (x > 0) if dtype == "bool" else x.to(getattr(c10, dtype))
    if x.dtype.is_floating_point:
        x[1, n // 2] = np.nan
        x[2, -1] = np.inf
        x[3, 0] = -np.inf
        x[4] = 0.1
    return x


def numbers(t: Any) -> np.ndarray:
    t = t.to("cpu")
    found: np.ndarray = (t.to(c10.float32) if t.dtype in (c10.bfloat16, c10.float16) else t).numpy()
    return found


def same(f: Any, x: Any, rtol: float = 0.0) -> None:
    got, want = f(x.to("cuda")), f(x)
    emulated.check()
    for a, b in zip(
        *(r if isinstance(r, tuple | list) else (r,) for r in (got, want)), strict=True
    ):
        assert a.dtype == b.dtype and a.shape == b.shape
        if rtol:
            np.testing.assert_allclose(numbers(a), numbers(b), rtol=rtol, atol=rtol)
        else:
            np.testing.assert_array_equal(numbers(a), numbers(b))


def constant(kernel: str, name: str) -> set[str]:
    """The values that a constant has had in launches of a kernel."""
    launched = [n.split(";") for n in emulated.launches if n.split(";")[0] == kernel]
    return {dict(part.split("=") for part in parts)[name] for _, *parts in launched}


LENGTHS = (1, 5, 8, 9, 20, 32, 33)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64", "int64", "uint8", "bool"])
def test_reductions(dtype: str) -> None:
    for n in LENGTHS:
        x = make(300, n, dtype)
        for f in (aten.sum, aten.amax, aten.amin, aten.any):
            if f is not aten.sum or dtype != "uint8":
                rounded = f is aten.sum and x.dtype.is_floating_point
                same(lambda t, f=f: f(t, [1]), x, 1e-2 * rounded)
    assert constant("amax_reduce", "X") == {"8", "32", "64"}
    assert constant("amax_reduce", "Y") == {"256", "64", "16"}


def test_aligned_rows_of_bytes() -> None:
    """Eight bytes of rows sixteen apart: fewer than a vector of sixteen."""
    for dtype in ("bool", "uint8", "float32"):
        x = make(40, 16, dtype)
        emulated.launches.clear()
        same(lambda t: aten.amax(t[:, :8], [1]), x)
        assert constant("amax_reduce", "ALIGNED") == {"True"}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64", "int16", "uint8"])
def test_extremes(dtype: str) -> None:
    for n in LENGTHS:
        x = make(300, n, dtype)
        same(lambda t: aten.max(t, 1), x)
        same(lambda t: aten.argmin(t, 1), x)
        same(lambda t: aten.aminmax(t, dim=1), x)
    assert constant("least_and_greatest", "BN") == {"8", "16", "32", "64"}


def test_integers_without_order_of_floats() -> None:
    """The greatest and the least numbers of a dtype are what a row's missing elements are not mistaken for."""
    for dtype, ends in (("int64", (-(2**63), 2**63 - 1)), ("int32", (-(2**31), 2**31 - 1)), ("uint8", (0, 255)), ("int8", (-128, 127))):  # fmt: skip
        x = aten.tensor(np.repeat(np.array([[ends[0]], [ends[1]]], dtype), 5, 1))
        same(lambda t: aten.aminmax(t, dim=1), x)
    x = aten.tensor(np.array([[np.inf] * 3, [-np.inf] * 3, [np.nan, 1, 2]], "float32"))
    same(lambda t: aten.aminmax(t, dim=1), x)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_spread(dtype: str) -> None:
    rtol = {"float32": 1e-6, "float64": 1e-14, "bfloat16": 1e-2}[dtype]
    for n in LENGTHS[1:]:
        same(lambda t: aten.var(t, [1]), make(300, n, dtype), rtol)
        same(lambda t: aten.var(t, [1], correction=0), make(3, n, "int64").to(getattr(c10, dtype)) + 1000, rtol)  # fmt: skip
    assert constant("moments", "BN") == {"8", "16", "32", "64"}
    equal = aten.tensor(RNG.standard_normal((300, 1))).to(getattr(c10, dtype)).expand(300, 49)
    assert not numbers(aten.var(equal.contiguous().to("cuda"), [1])).any()


def test_softmax() -> None:
    for n in (*LENGTHS, 16, 100):
        x = make(70, n, "float32")
        for f in (aten.softmax, aten.log_softmax):
            same(lambda t, f=f: f(t, 1), x, 1e-6)
    assert constant("softmax_forward", "ALIGN") == {"1", "4", "16"}
    assert constant("softmax_forward", "BLOCK") == {"8", "16", "32", "64", "128"}
    assert constant("softmax_forward", "ROWS") == {"256", "128", "64", "32", "16"}


def test_layer_norm() -> None:
    for n in (5, 16, 33, 100):
        x = aten.tensor(RNG.standard_normal((70, n)).astype("float32"))
        same(lambda t, n=n: aten.native_layer_norm(t, [n], None, None, 1e-5), x, 1e-5)
        g = aten.tensor(RNG.standard_normal((70, n)).astype("float32"))

        def gradients(t: Any, g: Any = g, n: int = n) -> Any:
            w = aten.ones([n], device=t.device)
            _, mean, rstd = aten.native_layer_norm(t, [n], w, w, 1e-5)
            return aten.native_layer_norm_backward(g.to(t.device), t, [n], mean, rstd, w, w, [True, True, True])  # fmt: skip

        same(gradients, x, 1e-4)
    assert constant("norm_forward", "ROWS") == {"128", "32", "4"}
    assert constant("norm_backward", "ROWS") == {"128", "32", "4"}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "uint8", "bool"])
def test_order(dtype: str) -> None:
    for n, rows in ((1, 3), (5, 140), (16, 130), (17, 40), (100, 20), (200, 9)):
        x = make(max(rows, 5), n, dtype)
        for descending in (False, True):
            same(lambda t, d=descending: aten.sort(t, 1, d, stable=True), x)
    assert constant("sort_rows", "BLOCK") == {"16", "64", "128", "256"}
    assert not constant("sort_tiles", "BLOCK")
    same(lambda t: aten.sort(t, 0, stable=True), make(20, 7, dtype))
    assert constant("sort_tiles", "BLOCK") == {"64"}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int16", "int64"])
def test_first(dtype: str) -> None:
    """Of equal elements those in front, as a stable sort has them."""
    for n in (5, 33, 130):
        x = make(40, n, dtype)
        for largest in (False, True):
            for k in {0, 1, n // 2, n}:
                got = aten.topk(x.to("cuda"), k, 1, largest)
                want = [t.narrow(1, 0, k) for t in aten.sort(x, 1, largest, stable=True)]
                for a, b in zip(got, want, strict=True):
                    np.testing.assert_array_equal(numbers(a), numbers(b))
    assert bool(constant("sort_rows", "ROWS")) == (dtype != "int64")
    assert not constant("topk_tiles", "BLOCK")
