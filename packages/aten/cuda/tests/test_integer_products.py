"""Products of integer matrices on an emulated CUDA device equal the CPU's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import emulated
import pytest

if emulated.missing:
    pytest.skip(emulated.missing, allow_module_level=True)

import argand_aten as aten
import argand_c10 as c10

emulated.start()


def integers(shape: tuple[int, ...], dtype: Any) -> Any:
    """The whole range of the dtype, so that products exceed it."""
    wide = aten.randint(-(2**62), 2**62, shape, generator=c10.Generator().manual_seed(3))
    return wide.to(dtype)


def check(f: Callable[..., Any], *args: Any) -> None:
    found, expected = f(*(a.to("cuda") for a in args)), f(*args)
    emulated.check()
    assert found.device.type == "cuda" and found.dtype == expected.dtype
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize(
    "dtype", [c10.uint8, c10.int8, c10.int16, c10.int32, c10.int64, c10.uint16, c10.uint64], ids=str
)
def test_dtypes(dtype: Any) -> None:
    check(aten.mm, integers((5, 9), dtype), integers((9, 3), dtype))


def test_shapes_and_strides() -> None:
    a, b = integers((41, 19), c10.int64), integers((19, 35), c10.int64)
    check(aten.mm, a, b)
    check(lambda a, b: aten.mm(b.t(), a.t()), a, b)
    check(lambda a: aten.mm(a[::2, 1:], a[::2, 1:].t()), a)
    check(lambda a: aten.mm(a[:, :0], a[:, :0].t()), a)
    check(aten.bmm, integers((3, 4, 6), c10.int32), integers((3, 6, 2), c10.int32))
    check(lambda a, b: aten.matmul(a, b[:, 0]), a, b)


def test_sums() -> None:
    x, a, b = integers((3, 4), c10.int64), integers((3, 5), c10.int64), integers((5, 4), c10.int64)
    check(lambda x, a, b: aten.addmm(x, a, b, beta=-2, alpha=3), x, a, b)
    check(lambda x, a, b: aten.addmm(x.t().contiguous().t(), a, b), x, a, b)
    check(lambda x, a, b: aten.addmm(x[0], a, b), x, a, b)
    check(lambda x, a, b: aten.addmm(x[0], a, b, alpha=2), x, a, b)
    check(lambda x, a, b: aten.addmm(x[:, :1], a, b, beta=0), x, a, b)
    inputs, bias = integers((2, 3, 5), c10.int64), integers((4,), c10.int64)
    check(lambda x, w, bias: aten.linear(x, w.t(), bias), inputs, b, bias)
    check(lambda x, w: aten.linear(x, w.t()), inputs, b)
