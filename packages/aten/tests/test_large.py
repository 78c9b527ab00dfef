"""Operators on more than the caches hold: every other pass over memory goes backward, which results must not show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import argand_aten as aten
from argand_c10 import bfloat16, float16, int16, tensor

ROWS, COLUMNS = 1031, 509  # threads' parts and their pieces end inside rows
rng = np.random.default_rng(7)
X, Y = (rng.standard_normal((ROWS, COLUMNS)).astype(np.float32) for _ in "xy")
INDEX = rng.integers(0, ROWS, 2000)


def softmax(x: Any) -> Any:
    e = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layer_norm(x: Any) -> Any:
    x = x.astype(np.float64)
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


CALLS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "add": (lambda x, y: x + y, lambda x, y: x + y),
    "add in place": (lambda x, y: x.clone().add_(y), lambda x, y: x + y),
    "add of a column": (lambda x, y: x + y[:, :1], lambda x, y: x + y[:, :1]),
    "add of a transposed": (lambda x, y: x.t() + y.t(), lambda x, y: x.T + y.T),
    "widened": (lambda x, y: x.double(), lambda x, y: x.astype(np.float64)),
    "transposed": (lambda x, y: x.t().contiguous(), lambda x, y: x.T),
    "cat": (
        lambda x, y: aten.cat([x, y[:0], y, x[:3]]),
        lambda x, y: np.concatenate([x, y, x[:3]]),
    ),
    "cat of columns": (
        lambda x, y: aten.cat([x, y, x[:, :5]], 1),
        lambda x, y: np.concatenate([x, y, x[:, :5]], 1),
    ),
    "sum": (lambda x, y: x.sum(), lambda x, y: x.sum(dtype=np.float64)),
    "sums of rows": (lambda x, y: x.sum(1), lambda x, y: x.sum(1, dtype=np.float64)),
    "sums of columns": (lambda x, y: x.sum(0), lambda x, y: x.sum(0, dtype=np.float64)),
    "maxima": (lambda x, y: x.amax(1), lambda x, y: x.max(1)),
    "softmax": (lambda x, y: aten.softmax(x, -1), lambda x, y: softmax(x)),
    "layer_norm": (lambda x, y: aten.layer_norm(x, [COLUMNS]), lambda x, y: layer_norm(x)),
    "embedding": (lambda x, y: aten.embedding(x, tensor(INDEX)), lambda x, y: x[INDEX]),
}


@pytest.mark.parametrize("name", CALLS)
def test_every_pass_gives_the_same(name: str) -> None:
    call, reference = CALLS[name]
    x, y = tensor(X), tensor(Y)
    first, second = call(x, y).numpy(), call(x, y).numpy()
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(first, reference(X, Y), rtol=2e-5, atol=2e-5)


def test_fused_optimizer_steps() -> None:
    shapes = [(300_000,), (17,), (70_001,), (500, 500)]

    def stepped(passes_before: int) -> list[Any]:
        source = np.random.default_rng(3)
        params, grads = (
            [tensor(source.standard_normal(s).astype(np.float32)) for s in shapes] for _ in "pg"
        )
        m, v = ([p.mul(0) for p in params] for _ in "mv")
        steps = [tensor(np.zeros((), np.float32)) for _ in shapes]
        for _ in range(passes_before):
            tensor(X).sum()
        options = dict(lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0.1, eps=1e-8)
        aten.ops.fused_adamw_(
            params, grads, m, v, [], steps, amsgrad=False, maximize=False, **options
        )
        return [t.numpy() for t in params + m + v]

    for a, b in zip(stepped(0), stepped(1), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(
    "dtype, low, high",
    [
        (np.int64, -3, 3),
        (np.int64, -(2**40), 2**40),
        (np.int64, 10**15, 10**15 + 10**6),
        (np.uint8, 0, 255),
        (np.int32, -(2**31), 2**31 - 1),
        (np.float32, -9, 9),
        (np.float64, -9, 9),
    ],
)
def test_sort_of_one_long_row(dtype: Any, low: int, high: int, descending: bool) -> None:
    for n in (65_535, 65_536, 300_001):
        x = np.random.default_rng(n).integers(low, high, n).astype(dtype)
        values, places = aten.sort(tensor(x), -1, descending)
        keys = x.astype(np.float64 if dtype in (np.float32, np.float64) else np.int64)
        expected = np.argsort(-keys if descending else keys, kind="stable")
        np.testing.assert_array_equal(places.numpy(), expected)
        np.testing.assert_array_equal(values.numpy(), x[expected])


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.uint8])
def test_few_of_many(dtype: Any, largest: bool) -> None:
    x = np.random.default_rng(2).integers(0, 100, (7, 3001)).astype(dtype)
    if dtype in (np.float32, np.float64):
        x -= 50
        x[2, 5] = x[2, 7] = x[3, 2999] = x[4, 3000] = np.nan
        x[5, 64:] = np.nan
        x[6, ::7], x[6, 1::7] = np.inf, -np.inf
    for k in (1, 10, 46, 47):
        values, places = aten.topk(tensor(x), k, 1, largest)
        ordered = np.sort(x, 1)  # NaN is the greatest
        expected = ordered[:, ::-1][:, :k] if largest else ordered[:, :k]
        np.testing.assert_array_equal(values.numpy(), expected)
        np.testing.assert_array_equal(np.take_along_axis(x, places.numpy(), 1), expected)
        assert all(len(set(row)) == k for row in places.numpy().tolist())


@pytest.mark.parametrize("dtype", [bfloat16, float16])
def test_16_bit_functions_of_numbers(dtype: Any) -> None:
    """Of many elements they are looked up, by their numbers; of few they are computed."""
    x = tensor(np.arange(1 << 18).astype(np.uint16)).view(dtype)
    functions: list[Callable[..., Any]] = [
        lambda x, number: aten.softplus(x, number),
        lambda x, number: aten.softplus(x, 1, number),
        lambda x, number: aten.elu(x, number),
    ]
    for number in [1, 2.5, 1.0, 7, *(0.1 * i for i in range(1, 20))]:
        for function in functions:
            few = aten.cat([function(part, number) for part in x.split(1 << 14)])
            assert aten.equal(function(x, number).view(int16), few.view(int16))


def test_adaptive_maxima() -> None:
    x = np.random.default_rng(5).integers(0, 4, (3, 13, 37)).astype(np.float32)
    x[0, :4, :4] = x[1, 6, 20:22] = x[1, 7, 19] = np.nan
    x[2, 5:] = -np.inf
    wide, wide_places = aten.adaptive_max_pool2d(tensor(x.astype(np.float64)), [5, 7])
    values, places = aten.adaptive_max_pool2d(tensor(x), [5, 7])
    np.testing.assert_array_equal(values.numpy(), wide.numpy())
    np.testing.assert_array_equal(places.numpy(), wide_places.numpy())
