"""Copies, conversions, fills, ranges, triangles and joins in Triton's interpreter against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from interpreter import REAL, Array, run

from argand_aten_cuda.kernels import copy as kernels
from argand_aten_cuda.kernels import position

RNG = np.random.default_rng(0)


def values(dtype: str, *shape: int) -> np.ndarray:
    x = RNG.standard_normal(shape) * 20
    return (np.abs(x) if dtype.startswith("u") else x).astype(dtype)


def converted(x: np.ndarray, dtype: str) -> np.ndarray:
    """As the CPU converts: 16-bit floats through float32, floats to small integers through int32, to unsigned ones through int64."""
    if dtype == "float16" or x.dtype == np.float16:
        x = x.astype("float32")
    if x.dtype.kind == "f" and np.dtype(dtype).kind in "iu" and np.dtype(dtype).itemsize < 4:
        x = x.astype("int32")
    elif x.dtype.kind == "f" and np.dtype(dtype).kind == "u":
        x = x.astype("int64")
    return x.astype(dtype)


@pytest.mark.parametrize("to", REAL)
@pytest.mark.parametrize("source", REAL)
def test_conversions(source: str, to: str) -> None:
    x, out = values(source, 300), np.zeros(300, to)
    run(kernels.copy_flat, (2,), out, x, 0, 300, BLOCK=256, ALIGNED=False, FILL=False, TO_BOOL=0)
    np.testing.assert_array_equal(out, converted(x, to))


def test_upper_half_of_uint64() -> None:
    x = np.array([2.0**63, 1.5 * 2.0**63, 2.0**64 - 2048, 2.0**63 - 1024, 0.0])
    out = np.zeros(5, "uint64")
    run(kernels.copy_flat, (1,), out, x, 0, 5, BLOCK=16, ALIGNED=False, FILL=False, TO_BOOL=0)
    np.testing.assert_array_equal(out, x.astype("uint64"))
    back = np.zeros(5)
    run(kernels.copy_flat, (1,), back, out, 0, 5, BLOCK=16, ALIGNED=False, FILL=False, TO_BOOL=0)
    np.testing.assert_array_equal(back, x)


# Every number of the formats, from their definitions.
FLOAT8 = {"fp8e4nv": (3, 7), "fp8e5": (2, 15)}


def float8_values(name: str) -> np.ndarray:
    mantissa, bias = FLOAT8[name]
    code = np.arange(128)
    exponent, fraction = code >> mantissa, (code & ((1 << mantissa) - 1)) / (1 << mantissa)
    x = np.where(exponent > 0, 1 + fraction, fraction) * 2.0 ** (np.maximum(exponent, 1) - bias)
    if name == "fp8e4nv":
        x[127] = np.nan
    else:
        x[124:] = np.inf, np.nan, np.nan, np.nan
    return np.concatenate([x, -x])


@pytest.mark.parametrize("name", FLOAT8)
def test_float8(name: str) -> None:
    table = float8_values(name)
    codes, out = np.arange(256, dtype=np.uint8), np.zeros(256, "float32")
    plain = dict(BLOCK=1024, ALIGNED=False, FILL=False, TO_BOOL=0)
    run(kernels.copy_flat, (1,), out, Array(codes, name), 0, 256, **plain)
    np.testing.assert_array_equal(out, table)
    finite = table[:128][np.isfinite(table[:128])]
    middles = (finite[1:] + finite[:-1]) / 2  # go to the even code
    end = finite[-1] + middles[-1] - finite[-2]  # from here on there is nothing finite
    x = np.concatenate(
        [finite, middles, finite * 1.01, RNG.standard_normal(300) * 3, [end, 1e30, np.inf]]
    )
    x = np.concatenate([x, -x, [np.nan]]).astype("float32")
    run(
        kernels.copy_flat,
        (2,),
        Array(out := np.zeros(len(x), "uint8"), name),
        x,
        0,
        len(x),
        **plain,
    )
    assert np.isnan(table[out[-1]])
    x, out = x[:-1], out[:-1]
    distance = np.abs(np.abs(x)[:, None] - finite)
    expected = np.array(
        [min(np.flatnonzero(d == d.min()), key=lambda code: code % 2) for d in distance]
    )
    expected[np.abs(x) >= end] = len(finite) - (name == "fp8e4nv")
    np.testing.assert_array_equal(out, np.where(np.signbit(x), expected + 128, expected))


def test_to_bool() -> None:
    x, out = np.array([0.0, -0.0, 1e-45, np.nan, np.inf, -2.0], "float32"), np.zeros(6, "uint8")
    run(kernels.copy_flat, (1,), out, x, 0, 6, BLOCK=16, ALIGNED=False, FILL=False, TO_BOOL=1)
    assert out.tolist() == [0, 0, 1, 1, 1, 1]
    run(
        kernels.copy_flat,
        (1,),
        out,
        out[::-1].copy(),
        0,
        6,
        BLOCK=16,
        ALIGNED=False,
        FILL=False,
        TO_BOOL=2,
    )
    assert out.tolist() == [1, 1, 1, 1, 1, 1]


@pytest.mark.parametrize(("dtype", "value"), [("int16", -5), ("int64", -(2**62)), ("uint8", 200)])
def test_fill(dtype: str, value: int) -> None:
    out = np.zeros(700, dtype)
    run(
        kernels.copy_flat,
        (2,),
        out[:600],
        out,
        value,
        600,
        BLOCK=512,
        ALIGNED=False,
        FILL=True,
        TO_BOOL=0,
    )
    assert (out[:600] == np.array(value, dtype)).all()
    assert (out[600:] == 0).all()


def tile(out: np.ndarray, x: np.ndarray, **constants: Any) -> None:
    """out[i, y, x] = x[i, y, x] for views with any strides."""
    n_2, n_y, n_x = out.shape
    to, from_ = ([s // a.itemsize for s in a.strides] for a in (out, x))
    tiles = [-(-n_x // constants["BX"]), -(-n_y // constants["BY"])]
    run(
        kernels.copy_tile, (tiles[0] * tiles[1] * n_2,), base(out), base(x), 0, n_x, n_y, to[1], from_[2], from_[1],
        n_2, to[0], from_[0], 1, 0, 0, 0, 0, *tiles, **{"ALIGNED": False, "WIDE": False, "FILL": False, "TO_BOOL": 0, **constants},
    )  # fmt: skip


def base(x: np.ndarray) -> np.ndarray:
    return x if x.base is None else x.base


@pytest.mark.parametrize("plane", [(64, 64), (16, 256), (256, 16)])
@pytest.mark.parametrize("wide", [False, True])
def test_transpose(plane: tuple[int, int], wide: bool) -> None:
    x = values("float32", 3, 70, 45)
    x = x.copy()
    out = np.zeros((3, 45, 70), "float64")
    tile(out, x.transpose(0, 2, 1), BX=plane[0], BY=plane[1], UNIT=2, WIDE=wide)
    np.testing.assert_array_equal(out, x.transpose(0, 2, 1))


def test_aligned_planes() -> None:
    x = values("int32", 2, 64, 128).copy()
    out = np.zeros((2, 128, 64), "int32")
    tile(out, x.transpose(0, 2, 1), BX=64, BY=64, UNIT=2, ALIGNED=True)
    np.testing.assert_array_equal(out, x.transpose(0, 2, 1))
    out = np.zeros((2, 64, 128), "int32")
    tile(out, x, BX=128, BY=32, UNIT=1, ALIGNED=True)
    np.testing.assert_array_equal(out, x)


def test_rows_into_wider_rows() -> None:
    x = values("int16", 4, 30, 60)
    padded = np.zeros((4, 30, 80), "int16")
    tile(padded[:, :, :60], x, BX=128, BY=32, UNIT=1)
    np.testing.assert_array_equal(padded[:, :, :60], x)
    assert (padded[:, :, 60:] == 0).all()


@pytest.mark.parametrize("wide", [False, True])
def test_many_dimensions(wide: bool) -> None:
    x = values("float64", 2, 3, 5, 2, 3, 2).copy()
    view = x.transpose(5, 3, 1, 4, 0, 2)
    out = np.zeros(view.shape, "float32")
    to, from_ = ([s // a.itemsize for s in reversed(a.strides)] for a in (out, view))
    sizes = list(reversed(view.shape))
    run(
        kernels.copy_strided, (2,), out, x, 0, x.size, *sizes[:5], *to[:5], to[5], *from_[:5], from_[5],
        BLOCK=256, INNER=5, WIDE=wide, FILL=False, TO_BOOL=0,
    )  # fmt: skip
    np.testing.assert_array_equal(out, view.astype("float32"))


def test_backwards_and_broadcast() -> None:
    x, out = values("int32", 50), np.zeros((4, 50), "int32")
    run(
        kernels.copy_strided, (1,), out, x[-1:], 0, 200, 50, 1, 1, 1, 1, 1, 0, 0, 0, 0, 50, -1, 0, 0, 0, 0, 0,
        BLOCK=256, INNER=1, WIDE=False, FILL=False, TO_BOOL=0,
    )  # fmt: skip
    np.testing.assert_array_equal(out, np.broadcast_to(x[::-1], (4, 50)))


# ---- by position ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["int16", "int64", "float32", "float16"])
def test_integer_range(dtype: str) -> None:
    out = np.zeros(600, dtype)
    run(position.integer_range, (2,), out, 600, -5, 7, BLOCK=512, TO_BOOL=False)
    np.testing.assert_array_equal(out, converted(np.arange(600) * 7 - 5, dtype))


def test_float_range_meets_both_ends() -> None:
    out = np.zeros(1001, "float64")
    run(position.float_range, (2,), out, 1001, 0.1, 7.3, 7.2 / 1000, 501, BLOCK=512, TO_BOOL=False)
    assert out[0] == 0.1
    assert out[-1] == 7.3
    np.testing.assert_allclose(out, np.linspace(0.1, 7.3, 1001), rtol=1e-15)


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("diagonal", [-40, -3, 0, 5, 80])
def test_triangles(lower: bool, diagonal: int) -> None:
    x = values("int32", 2, 33, 66)
    out = np.full_like(x, 9)
    sizes = {"BX": 32, "BY": 16, "LOWER": lower, "ALIGNED": False}
    run(position.triangle, (3 * 3 * 2,), x, out, 33, 66, diagonal, 3, 3, PARTS=1, **sizes)
    np.testing.assert_array_equal(out, (np.tril if lower else np.triu)(x, diagonal))
    pairs = x.reshape(2, 33, 33, 2)
    run(position.triangle, (3 * 3 * 2,), x, out, 33, 66, diagonal, 3, 3, PARTS=2, **sizes)
    expected = np.stack(
        [(np.tril if lower else np.triu)(pairs[..., i], diagonal) for i in range(2)], -1
    )
    np.testing.assert_array_equal(out.reshape(expected.shape), expected)


@pytest.mark.parametrize("aligned", [False, True])
def test_join(aligned: bool) -> None:
    lengths = (16, 64, 4, 128, 0) if aligned else (3, 70, 1, 64, 0)
    inputs = [values("int32", 50, n) for n in lengths]
    row = sum(lengths) + 12
    out = np.zeros((50, row), "int32")
    padding = 16 - len(inputs)
    tiles_x = -(-max(lengths) // 64)
    run(
        position.join, (tiles_x, 16), out, *inputs, *inputs[:1] * padding, *lengths, *[0] * padding, 8, 50, row, tiles_x,
        BX=64, BY=64, ALIGNED=aligned,
    )  # fmt: skip
    np.testing.assert_array_equal(out[:, 8:-4], np.concatenate(inputs, 1))
    assert (out[:, :8] == 0).all()
    assert (out[:, -4:] == 0).all()
