"""The random numbers of CUDA kernels are the CPU's."""

from __future__ import annotations

import numpy as np
import pytest
from interpreter import run

import argand_aten as aten
import argand_c10 as c10
from argand_aten_cuda.kernels import random as kernels
from argand_aten_cuda.kernels import sampling

SEED, FIRST = 0x123456789ABCDEF, 2**32 - 100  # the counter crosses 32 bits
N = 1500
FILLS = {
    "uniform_": (kernels.uniform_fill, (-1.5, 2.25), (-1.5, 3.75, 2.25)),
    "normal_": (kernels.normal_fill, (0.5, 2.0), (0.5, 2.0)),
    "exponential_": (kernels.exponential_fill, (1.5,), (1.5, -1 / 1.5)),
    "bernoulli_": (kernels.bernoulli_fill, (0.3,), (0.3,)),
}


def cpu_generator(first: int = FIRST) -> c10.Generator:
    g = c10.Generator()
    g.set_state(c10.tensor(np.array([SEED, first], "uint64").view("uint8")))
    return g


def cpu(name: str, n: int, dtype: str, *args: float) -> np.ndarray:
    x = aten.empty([n], dtype=getattr(c10, dtype))
    getattr(x, name)(*args, generator=cpu_generator())
    return x.numpy()


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "float16"]
)  # the interpreter truncates to bfloat16
@pytest.mark.parametrize("name", FILLS)
def test_fills_have_the_bits_of_the_cpu(name: str, dtype: str) -> None:
    kernel, args, parameters = FILLS[name]
    out = np.zeros(N, dtype)
    run(kernel, (2,), out, N, SEED, FIRST, 0, *parameters, BLOCK=1024)
    expected = cpu(name, N, dtype, *args)
    if dtype == "float64" and name in ("normal_", "exponential_"):  # the C library's log and cos
        np.testing.assert_allclose(out, expected, rtol=1e-14, atol=1e-15)
    else:
        np.testing.assert_array_equal(out, expected)


def test_a_captured_graph_reads_seed_and_offset_from_memory() -> None:
    out, state = np.zeros(N, "float32"), np.array([SEED, FIRST - 5], "uint64")
    run(kernels.normal_fill, (2,), out, N, 99, 5, state.ctypes.data, 0.0, 1.0, BLOCK=1024)
    np.testing.assert_array_equal(out, cpu("normal_", N, "float32", 0.0, 1.0))


@pytest.mark.parametrize(("low", "high"), [(0, 100), (-5, 10**15), (-(2**62), 2**62), (7, 8)])
def test_integers(low: int, high: int) -> None:
    out = np.zeros(200, "int64")
    run(
        kernels.integer_fill,
        (1,),
        out,
        200,
        SEED,
        FIRST,
        0,
        low,
        high - low,
        BLOCK=256,
        TO_BOOL=False,
    )
    np.testing.assert_array_equal(out, cpu("random_", 200, "int64", low, high))


@pytest.mark.parametrize(("length", "orders"), [(2, 2), (3, 6), (4, 24)])
def test_equal_keys_are_shuffled_evenly(length: int, orders: int) -> None:
    runs = 2000  # some of which lie in two programs' blocks; behind each comes a key of its own
    keys = np.stack([np.arange(runs)] * length + [np.arange(runs)], 1) * 2
    keys[:, length] += 1
    order = np.arange(keys.size)
    programs = -(-keys.size // 256)
    run(
        kernels.shuffle_equal, (programs,), order, keys.astype("int32"), keys.size, SEED, FIRST, 0, BLOCK=256
    )  # fmt: skip
    order = order.reshape(keys.shape) - np.arange(0, keys.size, length + 1)[:, None]
    assert (order[:, length] == length).all()
    found, counts = np.unique(order[:, :length], axis=0, return_counts=True)
    assert (np.sort(found, 1) == np.arange(length)).all() and len(found) == orders
    expected = runs / orders
    assert ((counts - expected) ** 2 / expected).sum() < orders - 1 + 4 * (2 * orders) ** 0.5


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_dropout(p: float) -> None:
    x = np.random.default_rng(0).standard_normal(N).astype("float32")
    out, mask = np.zeros(N, "float32"), np.zeros(N, "uint8")
    scale = 0.0 if p == 1 else 1 / (1 - p)
    c10.manual_seed(SEED)
    run(
        kernels.dropout_forward,
        (1,),
        x,
        out,
        mask,
        N,
        SEED,
        0,
        0,
        int(p * 2**32),
        scale,
        BLOCK=2048,
    )
    expected, kept = aten.native_dropout(c10.tensor(x), p, True)
    np.testing.assert_array_equal(mask.astype(bool), kept.numpy())
    np.testing.assert_array_equal(out, expected.numpy())


def test_bernoulli_takes_the_probabilities_of_elements() -> None:
    p = np.random.default_rng(0).random(N).astype("float32")
    out = np.zeros(N, "float32")
    run(kernels.bernoulli_each, (2,), out, p, N, SEED, FIRST, 0, BLOCK=1024)
    expected = aten.bernoulli(c10.tensor(p), generator=cpu_generator())
    np.testing.assert_array_equal(out, expected.numpy())


@pytest.mark.parametrize("replacement", [True, False])
def test_multinomial(replacement: bool) -> None:
    weights = np.random.default_rng(0).random((3, 300)).astype("float32")
    weights[1, ::2] = 0
    weights[2, 5:] = 0
    work, flag, samples = np.zeros((3, 300)), np.zeros(1, "int32"), 5
    out = np.zeros((3, samples), "int64")
    if replacement:
        run(sampling.cumulate_weights, (3,), weights, work, flag, 300, BLOCK=128)
        run(
            sampling.draw_with_replacement,
            (1, 3),
            work,
            out,
            SEED,
            FIRST,
            0,
            300,
            samples,
            BLOCK=64,
        )
    else:
        run(
            sampling.draw_without_replacement,
            (3,),
            weights,
            work,
            out,
            flag,
            SEED,
            FIRST,
            0,
            300,
            samples,
            BLOCK=128,
        )
    expected = aten.multinomial(
        c10.tensor(weights), samples, replacement, generator=cpu_generator()
    )
    np.testing.assert_array_equal(out, expected.numpy())
    assert flag[0] == 0


@pytest.mark.parametrize(
    ("row", "flag"),
    [([1.0, -1.0], 1), ([1.0, np.nan], 1), ([np.inf, 0.0], 1), ([0.0, 0.0], 2), ([0.0, 3.0], 2)],
)
def test_weights_that_cannot_be_sampled_are_flagged(row: list[float], flag: int) -> None:
    weights, found = np.array([row], "float32"), np.zeros(1, "int32")
    out = np.zeros((1, 2), "int64")
    run(
        sampling.draw_without_replacement,
        (1,),
        weights,
        np.zeros((1, 2)),
        out,
        found,
        SEED,
        0,
        0,
        2,
        2,
        BLOCK=16,
    )
    assert found[0] == flag
    assert ((out >= 0) & (out < 2)).all()
    if row != [0.0, 3.0]:
        run(sampling.cumulate_weights, (1,), weights, np.zeros((1, 2)), found, 2, BLOCK=16)
        assert found[0] == flag
