"""Matrix products of few rows or columns, which own kernels compute without packing, against float64."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import argand_aten as aten
import argand_c10 as c10
from argand_c10 import tensor

# Rows, columns and depth: whole and partial blocks and vectors, several depth blocks, fewer rows or fewer columns, more than a thread's work.
SHAPES = [
    *[(m, n, k) for m in (1, 2, 5, 32, 64) for n in (1, 3, 130) for k in (16, 33, 129, 1100, 2055)],
    (517, 10, 300),
    (1, 1030, 1000),
    (31, 515, 2050),
    (64, 1025, 129),
    (65, 1025, 130),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("m, n, k", SHAPES)
def test_few_rows(m: int, n: int, k: int, dtype: str) -> None:
    rng = np.random.default_rng(m * n * k)
    a, w, c = (rng.standard_normal(s).astype(dtype) for s in ((m, k), (n, k), (m, n)))
    product = a.astype(np.float64) @ w.T.astype(np.float64)
    bound = k * np.finfo(dtype).eps * 4

    def check(got: Any, expected: Any) -> None:
        assert np.abs(got.numpy() - expected).max() <= bound

    x, weight, addend = tensor(a), tensor(w), tensor(c)
    wide = tensor(np.concatenate([w, w], 1))[:, :k]  # rows that lie further apart
    for matrix in (weight.t(), wide.t(), weight.t().contiguous()):
        check(aten.mm(x, matrix), product)
        check(aten.addmm(addend, x, matrix), c + product)
        check(aten.addmm(addend, x, matrix, beta=0.5, alpha=2.0), 0.5 * c + 2 * product)
    check(aten.linear(x, weight, addend[0]), product + c[0])


@pytest.mark.parametrize("m, k", [(1, 9000), (300, 257), (1030, 70)])
def test_one_column_of_bfloat16(m: int, k: int) -> None:
    rng = np.random.default_rng(0)
    a, b, c = (rng.integers(-2, 3, s).astype(np.float32) for s in ((m, k), (k,), (m,)))
    matrix, column, addend = (tensor(t).to(c10.bfloat16) for t in (a, b, c))
    lying = tensor(np.ascontiguousarray(a.T)).to(c10.bfloat16).t()
    apart = aten.stack([column, column], 1)[:, 0]
    for x in (matrix, lying):
        for y in (column, apart):
            exact = tensor(a @ b).to(c10.bfloat16)
            assert aten.equal(aten.mv(x, y), exact)
            added = tensor(a @ b + c).to(c10.bfloat16)
            assert aten.equal(aten.addmm(addend[:, None], x, y[:, None])[:, 0], added)


def test_deep_blocks_of_avx2_on_a_processor_with_avx512() -> None:
    environment = {**os.environ, "ARGAND_CPU_TIER": "1"}
    environment.pop("OPENBLAS_L2_SIZE", None)
    program = """
import argand_aten as aten
import argand_c10 as c10
from argand_c10 import float64
x, y = (aten.ones(shape, dtype=float64) for shape in ((40, 1100), (1100, 70)))
assert (aten.mm(x, y) == 1100).all()
"""
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)


@pytest.mark.parametrize("tier", ["0", "1", "2"])
def test_threads_change_no_bit(tier: str) -> None:
    program = """
import argand_aten as aten, argand_c10 as c10

def check(run, *what):
    found = []
    for threads in (1, 2, 3, 16):
        c10.set_num_threads(threads)
        found.append(run())
    assert all(aten.equal(found[0], other) for other in found[1:]), what

many = (317, 411, 300), (512, 512, 512), (700, 330, 91), (601, 1023, 180), (1000, 5, 1000)
few = (64, 97, 300), (115, 105, 611), (626, 683, 52), (503, 141, 23), (33, 334, 102), (60, 99, 305), (43, 84, 141)
few += (64, 13, 2000), (60, 30, 768), (256, 40, 2000), (5, 777, 202)  # fewer columns than threads have parts
for dtype in (c10.float32, c10.float64, c10.complex64, c10.bfloat16):
    for m, n, k in many + few:
        x, y, z = (aten.randn(shape).to(dtype) for shape in ([m, k], [k, n], [n, k]))
        check(lambda: aten.mm(x, y), dtype, m, n, k)
        check(lambda: aten.mm(x, z.t()), dtype, m, n, k, "transposed")
        check(lambda: aten.bmm(aten.stack([x, x]), aten.stack([y, y])), dtype, m, n, k, "batch")
for batch, length, stride in ((33, 5, 1), (16, 14, 2), (33, 9, 1)):  # images that are gone through as one
    for channels, out, kernel in ((64, 64, 3), (32, 16, 5)):
        x, w = aten.randn([batch, channels, length]), aten.randn([out, channels, kernel])
        y = aten.conv1d(x, w, stride=stride, padding=kernel // 2)
        settings = ([stride], [kernel // 2], [1], 1)
        check(lambda: aten.conv1d(x, w, stride=stride, padding=kernel // 2), batch, length, channels)
        check(lambda: aten.ops.convolution_backward(y, x, w, *settings, [True, False, False])[0], batch, length, channels)
"""
    environment = {**os.environ, "ARGAND_CPU_TIER": tier}  # at most the processor's
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)


@pytest.mark.parametrize("dtype", [c10.float32, c10.float64, c10.bfloat16, c10.complex64])
@pytest.mark.parametrize("n", [2, 5, 70, 200])
def test_factors_of_zero_hide_infinities_and_nan(n: int, dtype: c10.dtype) -> None:
    wild, ones = aten.full([n, n], float("inf"), dtype=dtype), aten.ones(n, n, dtype=dtype)
    wild[0, 0] = float("nan")
    for x, y in ((wild, wild), (wild.t(), wild), (wild, wild[:, :1]), (wild[:1], wild)):
        addend = ones[: x.size(0), : y.size(1)]
        assert aten.equal(aten.addmm(addend, x, y, alpha=0, beta=0.5), addend * 0.5)
        assert not aten.addmm(wild[: x.size(0), : y.size(1)], x, y, alpha=0, beta=0).any()
    assert aten.equal(aten.addmv(ones[0], wild, wild[1], alpha=0), ones[0])
    assert aten.equal(aten.addmv(wild[0], ones, ones[0], beta=0), ones[0] * n)
    assert aten.equal(aten.baddbmm(ones[None], wild[None], wild[None], alpha=0), ones[None])
    assert aten.equal(aten.baddbmm(wild[None], ones[None], ones[None], beta=0), ones[None] * n)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("m, n", [(1, 1), (1, 50), (3, 9), (50, 4)])
def test_dot_products_of_few_complex_rows(m: int, n: int, dtype: str) -> None:
    rng = np.random.default_rng(m + n)
    for k in (1, 2, 7, 16, 33, 130, 100003 // (m * n)):
        a, b = (
            (rng.standard_normal((r, k + 1)) + 1j * rng.standard_normal((r, k + 1))).astype(dtype)
            for r in (m, n)
        )
        x, y = tensor(a)[:, :k], tensor(b)[:, :k]
        want = a[:, :k].astype("complex128") @ b[:, :k].T
        found = aten.mm(x, y.t())
        close = (
            {"rtol": 1e-5, "atol": 1e-3} if dtype == "complex64" else {"rtol": 1e-12, "atol": 1e-11}
        )
        np.testing.assert_allclose(found.numpy(), want, **close)
        norm = aten.vdot(x[0], x[0])
        assert not aten.imag(norm).any()
        threads = c10.get_num_threads()
        c10.set_num_threads(3)
        assert aten.equal(found, aten.mm(x, y.t()))
        c10.set_num_threads(threads)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("m, n, k", [(1, 1, 1), (3, 5, 7), (40, 600, 33), (0, 3, 2), (3, 2, 0)])
def test_integers_wrap(m: int, n: int, k: int, dtype: str) -> None:
    rng = np.random.default_rng(m + n + k)
    ends = np.iinfo(dtype)
    a, b, c = (
        rng.integers(ends.min, ends.max, s, dtype, endpoint=True) for s in ((m, k), (k, n), (m, n))
    )
    with np.errstate(over="ignore"):
        product = np.matmul(a, b, dtype=dtype)
        scaled = (3 * product.astype(np.int64) - 2 * c.astype(np.int64)).astype(dtype)
    turned = tensor(np.ascontiguousarray(b.T)).t()
    for x in (tensor(b), turned):
        np.testing.assert_array_equal(aten.mm(tensor(a), x).numpy(), product)
        found = aten.addmm(tensor(c), tensor(a), x, beta=-2, alpha=3).numpy()
        np.testing.assert_array_equal(found, scaled)
