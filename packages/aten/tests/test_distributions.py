"""Samplers by their distributions: means, variances and Kolmogorov and Smirnov's distance, with fixed seeds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import argand_aten as torch
import argand_c10 as c10

N = 20000


def generator(seed: int = 1) -> c10.Generator:
    g = c10.Generator()
    g.manual_seed(seed)
    return g


def values(x) -> np.ndarray:
    return x.to(c10.float64).numpy()


def matches(found: np.ndarray, distribution) -> None:
    """`distribution`: a frozen distribution of SciPy."""
    assert np.isfinite(found).all()
    if isinstance(distribution.dist, stats.rv_discrete):
        low, high = int(distribution.ppf(1e-3)), int(distribution.ppf(1 - 1e-3))
        edges = np.arange(low, high + 1)
        gap = np.abs([np.mean(found <= k) - distribution.cdf(k) for k in edges]).max()
    else:
        gap = stats.kstest(found, distribution.cdf).statistic
    assert gap < 1.63 / np.sqrt(found.size)  # 1%, of fixed seeds
    if np.isfinite(distribution.var()) and distribution.dist.name != "lognorm":
        assert abs(found.mean() - distribution.mean()) < 4 * distribution.std() / np.sqrt(
            found.size
        )
        assert abs(found.var() / distribution.var() - 1) < 0.1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("name", "args", "distribution"),
    [
        ("uniform_", (-1.0, 3.0), stats.uniform(-1, 4)),
        ("normal_", (2.0, 3.0), stats.norm(2, 3)),
        ("exponential_", (2.0,), stats.expon(0, 0.5)),
        ("log_normal_", (0.5, 0.4), stats.lognorm(0.4, 0, np.exp(0.5))),
        ("cauchy_", (1.0, 2.0), stats.cauchy(1, 2)),
        ("geometric_", (0.3,), stats.geom(0.3)),
        ("bernoulli_", (0.3,), stats.bernoulli(0.3)),
        ("random_", (3, 17), stats.randint(3, 17)),
        ("random_", (9,), stats.randint(0, 9)),
    ],
)
def test_fills(name, args, distribution, dtype):
    x = torch.empty(N, dtype=getattr(c10, dtype))
    g = generator()
    assert getattr(x, name)(*args, generator=g) is x
    matches(values(x), distribution)
    again = getattr(torch.empty(N, dtype=x.dtype), name)(*args, generator=generator())
    np.testing.assert_array_equal(values(again), values(x))


@pytest.mark.parametrize("shape", [0.05, 0.7, 1.0, 4.5, 300.0])
def test_gamma(shape):
    a = torch.full((N,), shape, dtype=c10.float64)
    x = torch.ops._standard_gamma(a, generator())
    matches(values(x), stats.gamma(shape))
    assert (values(torch.ops._standard_gamma(torch.full((100,), 1e-3), generator())) > 0).all()


@pytest.mark.parametrize("shape", [0.1, 1.0, 3.0, 50.0, 1500.0, 5000.0])
def test_gamma_gradient(shape):
    q = np.array([0.01, 0.2, 0.5, 0.9, 0.999])
    x, step = stats.gamma(shape).ppf(q), 1e-4 * shape
    expected = (stats.gamma(shape + step).ppf(q) - stats.gamma(shape - step).ppf(q)) / (2 * step)
    found = torch.ops._standard_gamma_grad(
        torch.full((5,), shape, dtype=c10.float64), c10.from_numpy(x)
    )
    np.testing.assert_allclose(values(found), expected, rtol=1e-5)


def test_gamma_gradient_far_above_the_mean():
    shapes = [0.1, 1.5, 0.5, 12.0, 3.0, 100.0]
    x = [30.0, 30.0, 90.0, 1100.0, 10.0, 160.0]
    # (dQ/da) / (dP/dx) by mpmath, with 60 digits.
    expected = [
        13.464757570725502,
        3.4532196103662221,
        6.4388665790092339,
        4.6073524888773589,
        1.8151881913114016,
        1.2554191648515344,
    ]
    found = torch.ops._standard_gamma_grad(
        torch.tensor(shapes, dtype=c10.float64), torch.tensor(x, dtype=c10.float64)
    )
    np.testing.assert_allclose(values(found), expected, rtol=1e-12)


@pytest.mark.parametrize("rate", [0.3, 4.0, 12.0, 200.0])
def test_poisson(rate):
    matches(values(torch.poisson(torch.full((N,), rate), generator())), stats.poisson(rate))


@pytest.mark.parametrize(("n", "p"), [(7, 0.3), (40, 0.9), (100, 0.4), (1000, 0.001), (5000, 0.75)])
def test_binomial(n, p):
    found = torch.binomial(torch.full((N,), float(n)), torch.full((), p), generator())
    matches(values(found), stats.binom(n, np.float32(p)))


def test_edges_of_counts():
    assert values(torch.poisson(torch.zeros(3))).tolist() == [0, 0, 0]
    assert values(
        torch.binomial(torch.tensor([3.0, 0.0, 5.0]), torch.tensor([0.0, 0.5, 1.0]))
    ).tolist() == [0, 0, 5]
    for call in (
        lambda: torch.poisson(torch.tensor([-1.0])),
        lambda: torch.binomial(torch.tensor([1.0]), torch.tensor([1.5])),
    ):
        with pytest.raises(RuntimeError, match="expected"):
            call()
    x = torch.empty(2)
    for call in (
        lambda: x.log_normal_(0.0, -1.0),
        lambda: x.cauchy_(0.0, 0.0),
        lambda: x.geometric_(1.5),
    ):
        with pytest.raises(RuntimeError, match="expects"):
            call()


def test_dirichlet():
    a = np.array([0.5, 2.0, 3.5])
    x = values(torch.ops._sample_dirichlet(c10.from_numpy(np.tile(a, (N, 1))), generator()))
    np.testing.assert_allclose(x.sum(-1), np.ones(N))
    for k in range(3):
        matches(x[:, k], stats.beta(a[k], a.sum() - a[k]))


def test_dirichlet_of_small_concentrations():
    """Most of the mass lies in one part, and which one is drawn in proportion, though gamma-distributed numbers of these shapes are 0."""
    x = values(torch.ops._sample_dirichlet(torch.full((4000, 2), 1e-4), generator()))
    assert np.isfinite(x).all() and (x > 0).all() and (x < 1).all()
    assert abs((x[:, 0] > 0.5).mean() - 0.5) < 0.03
    with pytest.raises(RuntimeError, match="without dimensions"):
        torch.ops._sample_dirichlet(torch.ones(()))


@pytest.mark.parametrize("a", [0.02, 0.7, 3.0, 60.0, 4000.0])
@pytest.mark.parametrize("b", [0.02, 0.7, 3.0, 60.0, 4000.0])
def test_dirichlet_gradient(a, b):
    x = stats.beta(a, b).ppf(np.array([0.01, 0.2, 0.5, 0.9, 0.99]))
    x = np.unique(x[(x > 1e-12) & (x < 1 - 1e-9)])
    step = 1e-4 * a
    slope = (stats.beta(a + step, b).cdf(x) - stats.beta(a - step, b).cdf(x)) / (2 * step)
    expected = -slope / stats.beta(a, b).pdf(x) / (1 - x)
    of = [c10.from_numpy(np.broadcast_to(v, x.shape).copy()) for v in (x, a, a + b)]
    found = values(torch.ops._dirichlet_grad(*of))
    np.testing.assert_allclose(found, expected, rtol=2e-5)


def test_normal_forms():
    mean, std = torch.full((N,), 2.0), torch.full((N,), 3.0)
    for x in (
        torch.normal(mean, std, generator=generator()),
        torch.normal(mean, 3.0, generator=generator()),
        torch.normal(2.0, std, generator=generator()),
        torch.normal(2.0, 3.0, (N,), generator=generator()),
    ):
        matches(values(x), stats.norm(2, 3))


def test_bernoulli_forms():
    p = torch.full((N,), 0.2)
    for x in (
        torch.bernoulli(p, generator=generator()),
        torch.bernoulli(torch.empty(N), 0.2, generator=generator()),
        torch.empty(N).bernoulli_(0.2, generator=generator()),
        torch.empty(N).bernoulli_(p, generator=generator()),
    ):
        matches(values(x), stats.bernoulli(0.2))


@pytest.mark.parametrize(
    ("dtype", "high"),
    [("bool", 1), ("uint8", 255), ("int8", 127), ("int32", 2**31 - 1), ("float32", 2**24)],
)
def test_integers_of_a_dtype(dtype, high):
    x = values(torch.empty(N, dtype=getattr(c10, dtype)).random_(generator=generator()))
    assert x.min() >= 0 and x.max() <= high and x.max() > 0.99 * high
    assert abs(x.mean() / high - 0.5) < 0.02


def test_out_and_like():
    out = torch.empty(0)
    assert torch.rand(3, out=out) is out and tuple(out.shape) == (3,)
    assert torch.randn(2, 2, out=torch.empty(0, dtype=c10.float64)).dtype == c10.float64
    like = torch.randint_like(torch.zeros(100), 5)
    assert like.dtype == c10.float32 and 0 <= values(like).min() <= values(like).max() < 5
    counts = torch.multinomial(torch.tensor([0.1, 0.6, 0.3]), N, True, generator=generator())
    np.testing.assert_allclose(np.bincount(counts.numpy()) / N, [0.1, 0.6, 0.3], atol=0.02)
