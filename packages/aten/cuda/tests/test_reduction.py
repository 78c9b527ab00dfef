"""Generated reductions and scans on an emulated CUDA device against NumPy: layouts, alignment, and how rows are divided."""

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


def make(*shape: int, dtype: str = "int32") -> tuple[np.ndarray, Any]:
    """Whole numbers, whose sums are exact in any order."""
    x = RNG.integers(-4, 5, shape)
    return x, aten.tensor(x).to(getattr(c10, dtype)).to("cuda")


def numbers(x: Any) -> np.ndarray:
    emulated.check()
    if x.dtype == c10.bfloat16:
        x = x.to(c10.float32)
    found: np.ndarray = x.to("cpu").numpy()
    return found


def constants() -> list[dict[str, str]]:
    """Of the launches of reductions and scans since the test's start."""
    names = [n.split(";") for n in emulated.launches if "_reduce;" in n or "_scan;" in n]
    return [dict(part.split("=") for part in parts) for _, *parts in names]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
@pytest.mark.parametrize("count", [1, 5, 9001])
def test_sum_of_a_vector(count: int, dtype: str) -> None:
    x, t = make(count, dtype=dtype)
    got = numbers(aten.sum(t))
    assert got == np.float32(x.sum()) if dtype != "bfloat16" else abs(got - x.sum()) <= 2
    first = constants()[0]
    assert first["ALIGNED"] == ("False" if count == 1 else "True")
    if count > 1:
        assert numbers(aten.amax(t[1:])) == x[1:].max()
        assert constants()[-1]["ALIGNED"] == "False"


@pytest.mark.parametrize("columns", [64, 72, 70])
def test_sums_of_columns_and_rows(columns: int) -> None:
    for dtype in ("float32", "bfloat16"):
        x, t = make(40, columns, dtype=dtype)
        for dim in (0, 1):
            emulated.launches.clear()
            assert numbers(aten.amin(t, [dim])).tolist() == x.min(dim).tolist()
            whole = columns * t.element_size() % 16 == 0
            assert constants()[0]["ALIGNED"] == str(whole)
            assert constants()[0]["LAYOUT"] == str(1 - dim)


def test_sums_of_planes() -> None:
    x, t = make(4, 6, 8, 12, dtype="float32")
    for dims in ([0, 2], [1, 3], [0, 2, 3], [0], [1, 2]):
        assert numbers(aten.sum(t, dims)).tolist() == x.sum(tuple(dims)).tolist()
        assert (
            numbers(aten.sum(t.permute(1, 0, 3, 2), dims)).tolist()
            == x.transpose(1, 0, 3, 2).sum(tuple(dims)).tolist()
        )
        assert (
            numbers(aten.sum(t[:, :, ::2], dims)).tolist() == x[:, :, ::2].sum(tuple(dims)).tolist()
        )


def test_nan_and_infinity() -> None:
    x = np.arange(5000.0, dtype="float32")
    for value in (np.nan, np.inf, -np.inf):
        x[4321] = value
        t = aten.tensor(x).to("cuda")
        np.testing.assert_array_equal(numbers(aten.sum(t)), value)
        np.testing.assert_array_equal(numbers(aten.amax(t)), x.max())
        np.testing.assert_array_equal(numbers(aten.amin(t)), x.min())


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int8", "uint8", "int64"])
def test_both_extremes(dtype: str) -> None:
    """In one kernel, along any dimension, by pieces too; NaN wins."""
    for shape in ((40_000,), (5, 700), (70, 3), (3, 4, 5)):
        x = RNG.integers(0, 100, shape).astype("float32")
        if dtype in ("float32", "bfloat16"):
            x -= 50
            x.reshape(-1)[7] = np.nan
        t = aten.tensor(x).to(getattr(c10, dtype)).to("cuda")
        for dim in (None, *range(len(shape))):
            emulated.launches.clear()
            got = aten.aminmax(t, dim=dim)
            assert {n.split(";")[0] for n in emulated.launches} <= {
                "least_and_greatest",
                "join_least_and_greatest",
            }
            for a, want in zip(got, (np.min(x, dim), np.max(x, dim)), strict=True):
                np.testing.assert_array_equal(numbers(a), want)


@pytest.mark.parametrize("dtype", ["float32", "int8", "bfloat16"])
@pytest.mark.parametrize("count", [1, 7, 20003])
def test_running_sums_of_a_vector(count: int, dtype: str) -> None:
    x = RNG.integers(-1, 2, count)
    t = aten.tensor(x).to(getattr(c10, dtype)).to("cuda")
    got, want = numbers(aten.cumsum(t, 0)), x.cumsum()
    assert abs(got - want).max() <= (2 if dtype == "bfloat16" and count > 256 else 0)
    assert [c["STAGE"] for c in constants()] == (["1", "2"] if count > 20000 else ["0"])
    assert constants()[0]["ALIGNED"] == "True"
    assert abs(numbers(aten.cumsum(t[count // 2 :: 2], 0)) - x[count // 2 :: 2].cumsum()).max() <= 1


@pytest.mark.parametrize("shape", [(2, 5000), (520, 33), (300, 64), (300, 68), (40, 5, 12)])
def test_running_sums_along_each_dimension(shape: tuple[int, ...]) -> None:
    x, t = make(*shape, dtype="int32")
    for dim in range(len(shape)):
        assert numbers(aten.cumsum(t, dim)).tolist() == x.cumsum(dim).tolist()
    if len(shape) == 2:
        assert {c["LAYOUT"] for c in constants()} == {"0", "1"}
        turned = t.t()
        assert numbers(aten.cumsum(turned, 0)).tolist() == x.T.cumsum(0).tolist()


def test_running_products() -> None:
    x = np.where(RNG.random(8200) < 0.5, 1.0, -1.0)
    t = aten.tensor(x).to(c10.float32).to("cuda")
    assert numbers(aten.cumprod(t, 0)).tolist() == x.cumprod().tolist()
    x[5000] = np.nan
    t = aten.tensor(x).to(c10.float32).to("cuda")
    np.testing.assert_array_equal(numbers(aten.cumprod(t, 0)), x.cumprod().astype("float32"))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("shape", [(3, 300), (2, 5000), (1, 70000)])
def test_scans_of_extremes_and_logarithms(shape: tuple[int, int], dtype: str) -> None:
    x = aten.tensor(RNG.standard_normal(shape) * 9).to(getattr(c10, dtype))
    x[0, :3], x[-1, 200] = float("-inf"), float("nan")
    x[0, 250] = float("inf") if shape[0] > 1 else 3.0
    on = x.to("cuda")
    for call in (aten.running_max, aten.running_min, aten.logcumsumexp):
        got, want = numbers(call(on, 1)), call(x, 1).numpy()
        np.testing.assert_allclose(got, want, rtol=1e-3 if dtype == "float16" else 1e-5)
    wide = "float64" if dtype == "float64" else "float32"
    assert {accumulator(n) for n in emulated.launches} == {wide}


def accumulator(launch: str) -> str:
    """The dtype in which a launched scan keeps its totals."""
    from argand_aten_cuda import provider

    kernel = provider._kernels()[launch.split(";")[0]][0]
    return kernel.dtypes(kernel.parse(launch))["ACC"]
