"""Every distribution with PyTorch's: shapes, scores, moments, gradients, divergences, transforms, kinds of errors and reprs, for the same random parameters."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributions
from distribution_cases import CASES, Case, make, parameters, tensors

import argand
import argand.distributions

SHAPES = [((), False), ((3,), False), ((2, 3), True)]
# What PyTorch 2.13 gets wrong, or computes in a narrower dtype.
PEER_FAULTS = {
    ("GeneralizedPareto", "float64"): "it compares with a float32 zero, and refuses",
    ("Kumaraswamy", "mode"): "its formula is NaN everywhere",
    ("Multinomial", "entropy"): "it takes the logarithm of the factorial in float32",
    ("Multinomial", "perplexity"): "the same",
    ("VonMises", "variance"): "its Bessel functions have seven digits",
    ("VonMises", "stddev"): "the same",
    ("VonMises", "log_prob"): "the same",
}


def values(x: Any) -> np.ndarray:
    return x.detach().to(torch.float64 if isinstance(x, torch.Tensor) else argand.float64).numpy()


def outcome(call: Callable[..., Any], *args: Any) -> tuple[Any, type[Exception] | None]:
    """The result, or the class of the exception."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call(*args), None
        except Exception as error:
            return None, type(error)


def agree(what: str, theirs: Any, ours: Any, tolerance: float) -> None:
    theirs, ours = values(theirs), values(ours)
    assert theirs.shape == ours.shape, what
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance, err_msg=what)


def pair(case: Case, dtype: str, batch: tuple[int, ...], broadcast: bool) -> tuple[Any, ...]:
    """The distribution of both libraries, and their parameters."""
    given = parameters(case, batch, broadcast)
    theirs, ours = (tensors(lib, given, dtype, True) for lib in (torch, argand))
    return make(torch, case, theirs), make(argand, case, ours), theirs, ours


def as_ours(value: torch.Tensor, dtype: str) -> Any:
    if not value.is_floating_point():
        return argand.tensor(value.numpy())
    return argand.tensor(values(value), dtype=getattr(argand, dtype), requires_grad=True)


def read(distribution: Any, name: str) -> Any:
    found = getattr(distribution, name)
    return found() if callable(found) else found


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_scores_and_moments(case: Case, dtype: str) -> None:
    if (case.name, dtype) in PEER_FAULTS:
        pytest.skip(PEER_FAULTS[case.name, dtype])
    tolerance = 1e-8 if dtype == "float64" else 3e-4
    torch.manual_seed(0)
    for batch, broadcast in SHAPES:
        theirs, ours, their_parameters, our_parameters = pair(case, dtype, batch, broadcast)
        assert tuple(theirs.batch_shape) == tuple(ours.batch_shape)
        assert tuple(theirs.event_shape) == tuple(ours.event_shape)
        assert theirs.has_rsample == ours.has_rsample
        assert theirs.has_enumerate_support == ours.has_enumerate_support
        value = theirs.sample((5,)).detach()
        found = ours.sample((5,))
        assert tuple(found.shape) == tuple(value.shape) and not found.requires_grad
        assert str(found.dtype).split(".")[1] == str(value.dtype).split(".")[1]
        ours.log_prob(found)  # own samples lie in the own support
        for name in ("mean", "mode", "variance", "stddev", "entropy", "perplexity"):
            (a, failed), (b, ours_failed) = (outcome(read, d, name) for d in (theirs, ours))
            assert failed is ours_failed, name
            if failed is None:
                slack = max(tolerance, 2e-6 if (case.name, name) in PEER_FAULTS else 0)
                if (case.name, name) != ("Kumaraswamy", "mode"):
                    agree(name, a, b, slack)
        if theirs.has_enumerate_support:
            for expand in (True, False):
                agree(
                    "support", theirs.enumerate_support(expand), ours.enumerate_support(expand), 0
                )
        our_value = as_ours(value, dtype)
        value.requires_grad_(value.is_floating_point())
        levels = np.linspace(0.1, 0.9, 5).reshape(5, *(1,) * len(batch))
        for name in ("log_prob", "cdf", "icdf"):
            at = (value, our_value)
            if name == "icdf":
                at = tuple(lib.tensor(levels, dtype=getattr(lib, dtype)) for lib in (torch, argand))
            a, failed = outcome(getattr(theirs, name), at[0])
            b, ours_failed = outcome(getattr(ours, name), at[1])
            assert failed is ours_failed, name
            if failed is not None:
                continue
            slack = max(tolerance, 2e-6 if (case.name, name) in PEER_FAULTS else 0)
            agree(name, a, b, slack)
            leaves = [*their_parameters.values(), *([value] if value.requires_grad else [])]
            our_leaves = [
                *our_parameters.values(),
                *([our_value] if our_value.requires_grad else []),
            ]
            slopes, unknown = outcome(
                partial(torch.autograd.grad, allow_unused=True), a.sum(), leaves
            )
            if unknown is not None:
                continue  # PyTorch has no derivative of the incomplete gamma function by its shape
            our_slopes = argand.autograd.grad(b.sum(), our_leaves, allow_unused=True)
            for slope, our_slope in zip(slopes, our_slopes, strict=True):
                assert (slope is None) == (our_slope is None), name
                if slope is not None:
                    # Sums of five terms each, some of them near infinities of the density.
                    agree(
                        f"gradient of {name}",
                        slope,
                        our_slope,
                        max(10 * slack, 1e-7) if dtype == "float64" else 2e-2,
                    )


@pytest.mark.parametrize("case", CASES, ids=str)
def test_expand_support_and_repr(case: Case) -> None:
    torch.manual_seed(0)
    theirs, ours, *_ = pair(case, "float32", (3,), False)
    assert repr(ours).replace("argand.", "torch.") == repr(theirs)
    assert str(type(ours.support).__name__) == str(type(theirs.support).__name__)
    assert ours.support.event_dim == theirs.support.event_dim
    assert ours.support.is_discrete == theirs.support.is_discrete
    wide, our_wide = theirs.expand((4, 3)), ours.expand((4, 3))
    assert type(our_wide) is type(ours)
    assert tuple(our_wide.batch_shape) == (4, 3) and our_wide.event_shape == ours.event_shape
    value = wide.sample((2,))
    assert our_wide.sample((2,)).shape == value.shape
    agree("log_prob", wide.log_prob(value), our_wide.log_prob(as_ours(value, "float32")), 3e-4)
    twice, our_twice = wide.expand((5, 4, 3)), our_wide.expand((5, 4, 3))
    value = twice.sample()
    agree("log_prob", twice.log_prob(value), our_twice.log_prob(as_ours(value, "float32")), 3e-4)
    assert set(ours.arg_constraints) == set(theirs.arg_constraints)
    for name, constraint in theirs.arg_constraints.items():
        assert type(ours.arg_constraints[name]).__name__ == type(constraint).__name__


def test_implicit_gradients() -> None:
    """PyTorch's own approximations have about three digits."""
    rng = np.random.default_rng(0)
    shape = rng.uniform(0.1, 20.0, (500, 3))
    x = rng.dirichlet([1.0, 2.0, 0.5], 500).clip(1e-6, 1 - 1e-6)
    total = np.broadcast_to(shape.sum(-1, keepdims=True), shape.shape).copy()
    theirs = torch._dirichlet_grad(*map(torch.tensor, (x, shape, total)))
    ours = argand._dirichlet_grad(*map(argand.tensor, (x, shape, total)))
    assert np.median(np.abs(values(ours) / values(theirs) - 1)) < 1e-3
    np.testing.assert_allclose(values(ours), values(theirs), rtol=2e-2, atol=1e-3)
    y = rng.gamma(shape)
    theirs = torch._standard_gamma_grad(*map(torch.tensor, (shape, y)))
    ours = argand._standard_gamma_grad(*map(argand.tensor, (shape, y)))
    np.testing.assert_allclose(values(ours), values(theirs), rtol=5e-3)


# ---- divergences ---------------------------------------------------------------------------------------------------------


def _of(name: str, lib: Any, seed: int) -> Any:
    case = next(c for c in CASES if c.name == name)
    rng_case = Case(case.name, case.kinds, case.fixed)
    given = parameters(rng_case, (3,))
    if name == "Pareto" and seed:
        given["scale"] = given["scale"] * 0.2
    return make(
        lib,
        case,
        tensors(lib, {k: v * (1 + 0.1 * seed * (v > 0)) for k, v in given.items()}, "float64"),
        validate_args=False,
    )


PAIRS = sorted((p.__name__, q.__name__) for p, q in torch.distributions.kl._KL_REGISTRY)
ABSTRACT = {"ExponentialFamily", "TransformedDistribution", "Independent"}
# ContinuousBernoulli's support is [0, 1], as Uniform(0, 1)'s may be; PyTorch calls every pair of the two infinite.
PEER_INFINITE = {("ContinuousBernoulli", "Uniform"), ("Uniform", "ContinuousBernoulli")}


@pytest.mark.parametrize(("p", "q"), [x for x in PAIRS if not ABSTRACT & {*x}])
def test_divergences(p: str, q: str) -> None:
    def divergence(lib: Any) -> Any:
        return lib.distributions.kl_divergence(
            _of(p, lib, 0), _of(q, lib, 0 if p == q == "Uniform" else 1)
        )

    (a, failed), (b, ours_failed) = outcome(divergence, torch), outcome(divergence, argand)
    assert failed is ours_failed
    if failed is None and (p, q) not in PEER_INFINITE:
        agree("kl", a, b, 1e-8)
        assert b.shape == (3,)


def test_every_other_pair_is_refused() -> None:
    names = sorted({case.name for case in CASES} - {"GeneralizedPareto"})
    for p in names:
        for q in names:
            (_, failed), (_, ours_failed) = (
                outcome(lib.distributions.kl_divergence, _of(p, lib, 0), _of(q, lib, 1))
                for lib in (torch, argand)
            )
            assert failed is ours_failed, (p, q)


def test_divergences_of_compounds() -> None:
    def divergences(lib: Any) -> list[Any]:
        D = lib.distributions
        loc, scale = lib.tensor([[0.1, 0.2], [0.3, -0.4]]), lib.tensor([0.5, 2.0])
        p, q = D.Normal(loc, scale), D.Normal(loc * 2, scale + 1)
        return [
            D.kl_divergence(D.Independent(p, 1), D.Independent(q, 1)),
            D.kl_divergence(D.LogNormal(loc, scale), D.LogNormal(loc * 2, scale + 1)),
            D.kl_divergence(
                D.TransformedDistribution(p, [D.AffineTransform(1, 2), D.ExpTransform()]),
                D.TransformedDistribution(q, [D.AffineTransform(1, 2), D.ExpTransform()]),
            ),
            D.kl_divergence(D.Chi2(scale + 1), D.Gamma(scale, scale)),
            D.kl_divergence(
                D.Bernoulli(lib.tensor([0.0, 1.0, 0.5])), D.Bernoulli(lib.tensor([0.5, 0.0, 0.0]))
            ),
            D.kl_divergence(
                D.Categorical(lib.tensor([0.0, 1.0])), D.Categorical(lib.tensor([0.5, 0.5]))
            ),
        ]

    for a, b in zip(divergences(torch), divergences(argand), strict=True):
        agree("kl", a, b, 1e-5)


# ---- transforms and constraints ------------------------------------------------------------------------------------------


def transforms(lib: Any) -> list[tuple[Any, tuple[int, ...]]]:
    """Transforms, with the shape of an event."""
    D = lib.distributions
    T = D.transforms
    t = lib.tensor
    return [
        (T.AbsTransform(), ()),
        (T.AffineTransform(1.0, -2.0), ()),
        (T.AffineTransform(t([0.5, 1.0, 2.0]), t([2.0, -1.0, 3.0]), event_dim=1), (3,)),
        (T.ComposeTransform([T.AffineTransform(0.5, 2), T.SigmoidTransform(), T.PowerTransform(2.0)]), ()),
        (T.ComposeTransform([T.StickBreakingTransform(), T.AffineTransform(0.0, 2.0)]), (3,)),
        (T.ComposeTransform([T.ExpTransform(), T.ReshapeTransform((4,), (2, 2))]), (4,)),
        (T.ComposeTransform([]), ()),
        (T.CorrCholeskyTransform(), (6,)),
        (T.CumulativeDistributionTransform(D.Normal(0.5, 2.0)), ()),
        (T.ExpTransform(), ()),
        (T.ExpTransform().inv, ()),
        (T.IndependentTransform(T.ExpTransform(), 2), (2, 3)),
        (T.LowerCholeskyTransform(), (3, 3)),
        (T.PositiveDefiniteTransform(), (3, 3)),
        (T.PowerTransform(t(0.5)), ()),
        (T.ReshapeTransform((2, 3), (6,)), (2, 3)),
        (T.SigmoidTransform(), ()),
        (T.SoftmaxTransform(), (3,)),
        (T.SoftplusTransform(), ()),
        (T.StickBreakingTransform(), (3,)),
        (T.TanhTransform(), ()),
        (T.TanhTransform(cache_size=1), ()),
        (T.CatTransform([T.ExpTransform(), T.identity_transform], dim=-1, lengths=[2, 1]), (3,)),
        (T.CatTransform([T.ExpTransform(), T.TanhTransform()], dim=0, lengths=[2, 3]), ()),
        (T.StackTransform([T.ExpTransform(), T.TanhTransform(), T.SigmoidTransform()], dim=-1), (3,)),
    ]  # fmt: skip


@pytest.mark.parametrize("i", range(25))
def test_transforms(i: int) -> None:
    (theirs, event), (ours, _) = transforms(torch)[i], transforms(argand)[i]
    shape = (5, *event)
    assert repr(ours) == repr(theirs)
    assert ours.bijective == theirs.bijective
    x = np.random.default_rng(i).uniform(0.1, 1.5, shape)
    if "StickBreaking" not in repr(theirs):
        x = np.sort(x, -1)
    a = torch.tensor(x, requires_grad=True)
    b = argand.tensor(x, requires_grad=True)
    y, our_y = theirs(a), ours(b)
    agree("call", y, our_y, 1e-9)
    agree("inverse", theirs.inv(y), ours.inv(our_y), 1e-9)
    assert tuple(theirs.forward_shape(shape)) == tuple(ours.forward_shape(shape)) == our_y.shape
    assert tuple(theirs.inverse_shape(y.shape)) == tuple(ours.inverse_shape(our_y.shape))
    for call in (
        lambda t, x, y: t.log_abs_det_jacobian(x, y),
        lambda t, x, y: t.inv.log_abs_det_jacobian(y, x),
        lambda t, x, y: t.sign * y,
        lambda t, x, y: t.event_dim * y,
        lambda t, x, y: t.domain.event_dim * y,
        lambda t, x, y: t.codomain.event_dim * y,
        lambda t, x, y: t.with_cache()(x),
    ):
        (c, failed), (d, ours_failed) = outcome(call, theirs, a, y), outcome(call, ours, b, our_y)
        assert failed is ours_failed
        if failed is None:
            agree("log_abs_det_jacobian", c, d, 1e-9)


def constraints(lib: Any) -> list[Any]:
    C = lib.distributions.constraints
    t = lib.tensor
    return [
        C.boolean, C.one_hot, C.nonnegative_integer, C.positive_integer, C.integer_interval(-1, 2), C.real, C.real_vector, C.positive, C.nonnegative,
        C.greater_than(0.5), C.greater_than_eq(1), C.less_than(0.5), C.multinomial(3), C.unit_interval, C.interval(-1.0, 2.0),
        C.half_open_interval(0.0, 1.0), C.simplex, C.lower_triangular, C.lower_cholesky, C.corr_cholesky, C.square, C.symmetric, C.positive_semidefinite,
        C.positive_definite, C.independent(C.positive, 2), C.MixtureSameFamilyConstraint(C.positive), C.cat([C.positive, C.real], -1, [1, 2]),
        C.stack([C.positive, C.real, C.unit_interval], -1), C.interval(t([0.0, 1.0, 0.0]), t(1.0)),
    ]  # fmt: skip


def test_constraints() -> None:
    rng = np.random.default_rng(0)
    low = np.tril(rng.uniform(0.2, 1.0, (2, 3, 3)))
    samples = [
        rng.uniform(-2, 2, (2, 3, 3)), rng.integers(-1, 3, (2, 3, 3)).astype(float), np.eye(3)[None].repeat(2, 0), rng.dirichlet([1, 1, 1], (2, 3)),
        low, low @ low.swapaxes(-1, -2), low / np.linalg.norm(low, axis=-1, keepdims=True), np.full((2, 3, 3), np.nan), np.zeros((2, 3, 3)),
    ]  # fmt: skip
    for theirs, ours in zip(constraints(torch), constraints(argand), strict=True):
        assert repr(ours) == repr(theirs)
        assert (ours.event_dim, ours.is_discrete) == (theirs.event_dim, theirs.is_discrete)
        for sample in samples:
            for dtype in ("float64", "float32"):
                a, b = (lib.tensor(sample, dtype=getattr(lib, dtype)) for lib in (torch, argand))
                np.testing.assert_array_equal(
                    ours.check(b).numpy(), theirs.check(a).numpy(), repr(ours)
                )


@pytest.mark.parametrize("name", ["biject_to", "transform_to"])
def test_registries(name: str) -> None:
    for theirs, ours in zip(constraints(torch), constraints(argand), strict=True):
        (a, failed), (b, ours_failed) = (
            outcome(getattr(lib.distributions, name), c)
            for lib, c in ((torch, theirs), (argand, ours))
        )
        assert failed is ours_failed
        if failed is None:
            assert repr(a) == repr(b)
            # Where it is a square that is needed, and where a triangle is.
            x = np.random.default_rng(1).standard_normal((2, 3, 3))
            y, our_y = a(torch.tensor(x)), b(argand.tensor(x))
            agree(repr(ours), y, our_y, 1e-9)
            assert ours.check(our_y).all()


# ---- errors --------------------------------------------------------------------------------------------------------------

ERRORS: list[Callable[[Any, Any], Any]] = [
    lambda t, D: D.Normal(t.zeros(3), t.tensor([1.0, -1.0, 1.0])),
    lambda t, D: D.Normal("a", 1.0),
    lambda t, D: D.Normal(float("nan"), 1.0),
    lambda t, D: D.Normal(t.zeros(3), t.ones(2)),
    lambda t, D: D.Normal(0.0, 1.0).log_prob(1.0),
    lambda t, D: D.Normal(t.zeros(3), 1.0).log_prob(t.zeros(2)),
    lambda t, D: D.Normal(0.0, 1.0).log_prob(t.tensor(float("nan"))),
    lambda t, D: D.Normal(0.0, 1.0).enumerate_support(),
    lambda t, D: D.Bernoulli(),
    lambda t, D: D.Bernoulli(0.5, 0.5),
    lambda t, D: D.Bernoulli(1.5),
    lambda t, D: D.Bernoulli(0.5).log_prob(t.tensor(0.5)),
    lambda t, D: D.Bernoulli(0.5).rsample(),
    lambda t, D: D.Bernoulli(0.5).cdf(t.tensor(1.0)),
    lambda t, D: D.Categorical(t.tensor(1.0)),
    lambda t, D: D.Categorical(logits=t.tensor(1.0)),
    lambda t, D: D.Categorical(t.tensor([-1.0, 2.0])),
    lambda t, D: D.Categorical(t.ones(3)).log_prob(t.tensor(3)),
    lambda t, D: D.Dirichlet(t.tensor(1.0)),
    lambda t, D: D.Dirichlet(t.ones(3)).log_prob(t.ones(3)),
    lambda t, D: D.Dirichlet(t.ones(3)).log_prob(t.ones(2) / 2),
    lambda t, D: D.Beta(-1.0, 1.0),
    lambda t, D: D.Binomial(t.tensor([1, 2]), t.tensor([0.5, 0.5])).enumerate_support(),
    lambda t, D: D.Binomial(t.tensor([1, 2]), t.tensor([0.5, 0.5])).entropy(),
    lambda t, D: D.Multinomial(t.tensor([1, 2]), t.ones(2)),
    lambda t, D: D.Geometric(0.0),
    lambda t, D: D.Uniform(1.0, 0.0),
    lambda t, D: D.Uniform(0.0, 1.0).cdf(t.tensor(2.0)),
    lambda t, D: D.Gamma(1.0, 1.0).log_prob(t.tensor(-1.0)),
    lambda t, D: D.Independent(D.Normal(0.0, 1.0), 1),
    lambda t, D: D.Independent(D.Bernoulli(t.ones(2) / 2), 1).enumerate_support(),
    lambda t, D: D.LKJCholesky(1),
    lambda t, D: D.LowRankMultivariateNormal(t.zeros(3), t.ones(2, 1), t.ones(3)),
    lambda t, D: D.LowRankMultivariateNormal(t.zeros(2, 3), t.ones(4, 3, 1), t.ones(3)),
    lambda t, D: D.MultivariateNormal(t.tensor(0.0), t.eye(2)),
    lambda t, D: D.MultivariateNormal(t.zeros(2)),
    lambda t, D: D.MultivariateNormal(t.zeros(2), t.eye(2), t.eye(2)),
    lambda t, D: D.MultivariateNormal(t.zeros(2), -t.eye(2)),
    lambda t, D: D.MultivariateNormal(t.zeros(2), t.ones(2)),
    lambda t, D: D.MixtureSameFamily(D.Normal(0.0, 1.0), D.Normal(t.zeros(2), 1.0)),
    lambda t, D: D.MixtureSameFamily(D.Categorical(t.ones(3)), D.Normal(t.zeros(2), 1.0)),
    lambda t, D: D.MixtureSameFamily(D.Categorical(t.ones(4, 2)), D.Normal(t.zeros(3, 2), 1.0)),
    lambda t, D: D.TransformedDistribution(D.Normal(0.0, 1.0), [1]),
    lambda t, D: D.TransformedDistribution(D.Normal(0.0, 1.0), D.StickBreakingTransform()),
    lambda t, D: D.Wishart(1.0, t.eye(3)),
    lambda t, D: D.Wishart(4.0),
    lambda t, D: D.Wishart(4.0, t.ones(3)),
    lambda t, D: D.Distribution.set_default_validate_args(2),
    lambda t, D: D.Distribution(validate_args=False).mean,
    lambda t, D: D.Distribution(validate_args=False).expand((2,)),
    lambda t, D: D.ExpTransform(cache_size=2),
    lambda t, D: D.ReshapeTransform((2,), (3,)),
    lambda t, D: D.ReshapeTransform((4,), (2, 2)).event_dim,
    lambda t, D: D.CorrCholeskyTransform().forward_shape((4,)),
    lambda t, D: D.CatTransform([1]),
    lambda t, D: D.CatTransform([D.ExpTransform()], lengths=[1, 2]),
    lambda t, D: D.CatTransform([D.ExpTransform()], lengths=[2])(t.ones(3)),
    lambda t, D: D.StackTransform([D.ExpTransform()])(t.ones(3)),
    lambda t, D: D.AbsTransform().sign,
    lambda t, D: D.SoftmaxTransform().log_abs_det_jacobian(t.ones(2), t.ones(2)),
    lambda t, D: D.kl_divergence(D.Normal(0.0, 1.0), D.Bernoulli(0.5)),
    lambda t, D: D.biject_to.register(int, None)(1),
    lambda t, D: D.biject_to(D.constraints.square),
    lambda t, D: D.constraints.dependent.check(t.ones(2)),
    lambda t, D: D.constraints.dependent.event_dim,
    lambda t, D: D.constraints.independent(1, 1),
    lambda t, D: D.constraints.independent(D.constraints.real, -1),
    lambda t, D: D.constraints.real_vector.check(t.tensor(1.0)),
    lambda t, D: D.constraints.cat([1]),
]  # fmt: skip


@pytest.mark.parametrize("i", range(len(ERRORS)))
def test_errors_are_of_pytorchs_classes(i: int) -> None:
    _, theirs = outcome(ERRORS[i], torch, torch.distributions)
    _, ours = outcome(ERRORS[i], argand, argand.distributions)
    assert theirs is not None and ours is not None and issubclass(ours, theirs)


# ---- compounds -----------------------------------------------------------------------------------------------------------


def compounds(lib: Any) -> list[Any]:
    D, t = lib.distributions, lib.tensor
    weights = D.Categorical(t([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]))
    loc, scale = t([[0.0, 1.0, 2.0], [-1.0, 0.5, 3.0]]), t([[1.0, 0.5, 2.0], [0.7, 1.5, 0.3]])
    vectors = lib.stack([loc, loc + 1], -1)
    return [
        D.MixtureSameFamily(weights, D.Normal(loc, scale)),
        D.MixtureSameFamily(weights, D.Poisson(scale * 3)),
        D.MixtureSameFamily(weights, D.Independent(D.Normal(vectors, 1.0), 1)),
        D.Independent(D.Normal(vectors, 1.0), 2),
        D.Independent(D.Bernoulli(scale / 4), 0),
        D.Independent(D.Dirichlet(scale), 1),
        D.TransformedDistribution(D.Normal(loc, scale), []),
        D.TransformedDistribution(D.Normal(loc, scale), [D.ExpTransform(), D.AffineTransform(1.0, 2.0)]),
        D.TransformedDistribution(D.Normal(loc, scale), D.StickBreakingTransform()),
        D.TransformedDistribution(D.Normal(0.0, 1.0), D.AffineTransform(t([1.0, 2.0]), 2.0)),
        D.TransformedDistribution(D.Uniform(0.0, 1.0), [D.SigmoidTransform().inv, D.AffineTransform(t(1.0), t(-2.0))]),
        D.TransformedDistribution(D.Independent(D.Normal(vectors, 1.0), 1), [D.ReshapeTransform((2,), (1, 2))]),
    ]  # fmt: skip


@pytest.mark.parametrize("i", range(12))
def test_compounds(i: int) -> None:
    torch.manual_seed(0)
    theirs, ours = compounds(torch)[i], compounds(argand)[i]
    assert (
        repr(ours).replace("argand", "torch").replace(" at 0x", "@").split("@")[0]
        == repr(theirs).replace(" at 0x", "@").split("@")[0]
    )
    for wide, our_wide in (
        (theirs, ours),
        (theirs.expand((4, *theirs.batch_shape)), ours.expand((4, *ours.batch_shape))),
    ):
        value = wide.sample((3,))
        assert tuple(our_wide.sample((3,)).shape) == tuple(value.shape)
        assert tuple(our_wide.batch_shape) == tuple(wide.batch_shape)
        assert tuple(our_wide.event_shape) == tuple(wide.event_shape)
        our_value = as_ours(value, "float32")
        our_wide.log_prob(our_wide.sample())
        for call in (
            lambda d, x: d.log_prob(x), lambda d, x: d.cdf(x), lambda d, x: d.icdf(d.cdf(x)), lambda d, x: d.mean, lambda d, x: d.variance,
            lambda d, x: d.entropy(), lambda d, x: d.support.check(x), lambda d, x: d.support.event_dim * x, lambda d, x: d.enumerate_support(),
        ):  # fmt: skip
            (a, failed), (b, ours_failed) = (
                outcome(call, wide, value),
                outcome(call, our_wide, our_value),
            )
            assert failed is ours_failed
            if failed is None:
                agree("compound", a, b, 1e-4)


def test_names_and_order_of_arguments() -> None:
    for name in torch.distributions.__all__:
        theirs, ours = getattr(torch.distributions, name), getattr(argand.distributions, name)
        if isinstance(theirs, type):
            mine = inspect.signature(ours.__init__).parameters
            for given, (key, p) in zip(
                mine.values(), inspect.signature(theirs.__init__).parameters.items(), strict=True
            ):
                assert given.name == key and (given.default == p.default or key.endswith("shape"))
    for name in torch.distributions.constraints.__all__:
        assert hasattr(argand.distributions.constraints, name)
