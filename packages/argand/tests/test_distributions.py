"""Distributions by what they say of themselves: samples by moments and by the distribution function, gradients of samples, transforms by their Jacobians,
divergences by samples, subclasses, checks of arguments."""

from __future__ import annotations

import copy
import math
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from distribution_cases import CASES, Case, make, parameters, tensors

import argand as torch
import argand.distributions as D
from argand.distributions import constraints

N = 20000
NAMES = sorted({case.name for case in CASES})
HEAVY_TAILS = {"Cauchy", "HalfCauchy", "FisherSnedecor", "InverseGamma", "Pareto", "StudentT"}


def built(
    case: Case, batch: tuple[int, ...] = (), dtype: str = "float64", **options
) -> D.Distribution:
    return make(torch, case, tensors(torch, parameters(case, batch), dtype), **options)


def has(distribution: D.Distribution, call) -> bool:
    try:
        call(distribution)
    except NotImplementedError:
        return False
    return True


# ---- samples -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=str)
def test_samples_have_the_moments(case):
    torch.manual_seed(1)
    distribution = built(case)
    x = distribution.sample((N,))
    assert distribution.support.check(x).all() and x.isfinite().all()
    if (
        case.name == "VonMises"
        or case.name in HEAVY_TAILS
        or not has(distribution, lambda d: d.variance)
    ):
        return
    error = (distribution.variance / N).sqrt()
    if distribution.mean.isnan().all():  # categories
        x = (x == torch.arange(4).unsqueeze(-1)).double().mean(-1)
        torch.testing.assert_close(x, distribution.probs, atol=0.02, rtol=0)
        return
    assert ((x.mean(0) - distribution.mean).abs() < 5 * error + 1e-12).all()
    assert (x.var(0) / distribution.variance - 1).abs().max() < 0.25


@pytest.mark.parametrize("case", CASES, ids=str)
def test_samples_have_the_distribution_function(case):
    """Kolmogorov and Smirnov's distance; 1.95 / sqrt(N) is passed once in a thousand."""
    torch.manual_seed(2)
    distribution = built(case)
    if not has(distribution, lambda d: d.cdf(d.sample())):
        return
    x = distribution.sample((N,)).sort()[0]
    ideal = (torch.arange(N, dtype=torch.float64) + 0.5) / N
    assert (distribution.cdf(x) - ideal).abs().max() < 1.95 / math.sqrt(N)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_densities_integrate_to_distribution_functions(case):
    distribution = built(case, validate_args=False)
    if not has(distribution, lambda d: d.icdf(torch.tensor(0.5, dtype=torch.float64))):
        return
    # Not at the cusp of Laplace's density.
    level = torch.linspace(0.02, 0.98, 8, dtype=torch.float64)
    x = distribution.icdf(level).requires_grad_()
    torch.testing.assert_close(distribution.cdf(x), level)
    (slope,) = torch.autograd.grad(distribution.cdf(x).sum(), x)
    torch.testing.assert_close(slope.log(), distribution.log_prob(x), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_masses_have_the_sum_one(case):
    distribution = built(case, (3,), validate_args=False)
    if case.name in ("Poisson", "NegativeBinomial", "Geometric"):
        values = torch.arange(400, dtype=torch.float64).unsqueeze(-1)
    elif distribution.has_enumerate_support:
        values = distribution.enumerate_support()
    else:
        return
    total = distribution.log_prob(values).exp().sum(0)
    torch.testing.assert_close(total, torch.ones_like(total), atol=1e-6, rtol=0)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_entropies_are_those_of_samples(case):
    torch.manual_seed(3)
    distribution = built(case)
    if not has(distribution, lambda d: d.entropy()):
        return
    found = -distribution.log_prob(distribution.sample((N,)))
    error = found.std() / math.sqrt(N)
    assert (found.mean() - distribution.entropy()).abs() < 5 * error + 1e-9


@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradients_of_samples_are_those_of_means(case):
    """With parameters of their own for all samples, their gradients are independent estimates of those of the mean."""
    if getattr(D, case.name).has_rsample is not True and case.name not in ("Gumbel", "Weibull"):
        return
    if (
        case.name in ("Cauchy", "HalfCauchy", "OneHotCategoricalStraightThrough")
        or "scale_tril" in case.kinds
    ):
        return  # no mean, no true gradient, or a parameter with zeros that are none of its own
    torch.manual_seed(4)
    given = parameters(case, ())
    leaves = {k: torch.tensor(v, requires_grad=True) for k, v in given.items()}
    try:
        mean = make(torch, case, leaves).mean
    except NotImplementedError:
        return
    wide = {
        k: torch.tensor(np.broadcast_to(v, (N, *v.shape)).copy(), requires_grad=True)
        for k, v in given.items()
    }
    if case.name == "Kumaraswamy":
        return  # the slope of the quantile has no mean
    weights = torch.tensor(np.random.default_rng(0).uniform(0.5, 2.0, tuple(mean.shape)))
    x = make(torch, case, wide, validate_args=False).rsample()
    expected = torch.autograd.grad((mean * weights).sum(), list(leaves.values()), allow_unused=True)
    found = torch.autograd.grad((x * weights).sum(), list(wide.values()), allow_unused=True)
    for name, e, f in zip(given, expected, found, strict=True):
        if f is None:
            continue
        e = torch.zeros_like(f[0]) if e is None else e
        if "matrix" in name:
            # Of symmetric matrices only the sums of both triangles' gradients are said.
            e, f = e + e.mT, f + f.mT
        error = f.std(0) / math.sqrt(N)
        assert ((f.mean(0) - e).abs() < 5.5 * error + 1e-9).all(), (name, f.mean(0), e, error)


def test_samples_of_small_concentrations_have_finite_logarithms():
    torch.manual_seed(5)
    small = torch.full((1000,), 1e-3, requires_grad=True)
    for x in (
        D.Gamma(small, 100.0).rsample(),
        D.Beta(small, small).rsample(),
        D.Dirichlet(small.reshape(-1, 4)).rsample(),
    ):
        (slope,) = torch.autograd.grad(x.log().sum(), small)
        assert x.log().isfinite().all() and slope.isfinite().all()


def test_samples_repeat_with_the_seed():
    for case in CASES:
        distribution = built(case)
        torch.manual_seed(6)
        first = distribution.sample((3,))
        torch.manual_seed(6)
        assert torch.equal(first, distribution.sample((3,)))


def test_gradients_of_the_incomplete_gamma_function_by_its_shape():
    shape = torch.tensor([0.3, 2.0, 15.0], dtype=torch.float64, requires_grad=True)
    for level in (0.3, 1.0):
        x = level * shape.detach()
        assert torch.autograd.gradcheck(lambda a, x=x: D.Gamma(a, 1.0).cdf(x), (shape,))
    wide = torch.tensor([[0.5], [2.0]], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda a: D.Gamma(a, 1.0).cdf(wide), (shape,))


# ---- divergences ---------------------------------------------------------------------------------------------------------


def of_name(name: str, scaled: float = 1.0) -> D.Distribution:
    case = next(c for c in CASES if c.name == name)
    given = {k: v * np.where(v > 0, scaled, 1.0) for k, v in parameters(case, ()).items()}
    return make(torch, case, tensors(torch, given, "float64"), validate_args=False)


@pytest.mark.parametrize("p", NAMES)
@pytest.mark.parametrize("q", NAMES)
def test_divergences_are_those_of_samples(p, q):
    torch.manual_seed(7)
    first, second = of_name(p), of_name(q, 1.1)
    try:
        expected = D.kl_divergence(first, second)
    except NotImplementedError:
        return
    x = first.sample((N,))
    terms = first.log_prob(x) - second.log_prob(x)
    if expected.isinf():
        # Of a Pareto distribution these samples do not reach beyond the end of Uniform's support.
        assert p == "Pareto" or not terms.isfinite().all() or not second.support.check(x).all()
        return
    assert expected >= -1e-12
    error = terms.std() / math.sqrt(N)
    assert (terms.mean() - expected).abs() < 6 * error + 1e-9


def test_divergences_at_the_ends_of_the_unit_interval():
    p, q = D.ContinuousBernoulli(0.3), D.Uniform(0.0, 1.0)
    assert abs(D.kl_divergence(p, q) + p.entropy()) < 1e-6
    assert D.kl_divergence(p, D.Uniform(0.1, 1.0)).isinf()
    assert D.kl_divergence(q, p).isfinite() and D.kl_divergence(D.Uniform(0.0, 1.1), p).isinf()


def test_divergences_of_subclasses():
    class Mine(D.Normal):
        pass

    class Other(D.Normal):
        pass

    p, q = Mine(0.0, 1.0), Other(1.0, 2.0)
    assert torch.equal(
        D.kl_divergence(p, q), D.kl_divergence(D.Normal(0.0, 1.0), D.Normal(1.0, 2.0))
    )

    @D.register_kl(Mine, D.Normal)
    def of_mine(p, q):
        return torch.tensor(1.0)

    assert D.kl_divergence(p, q) == 1 and D.kl_divergence(q, p) != 1

    @D.register_kl(D.Normal, Other)
    def to_other(p, q):
        return torch.tensor(2.0)

    with pytest.warns(RuntimeWarning, match="ambiguous"):
        assert D.kl_divergence(p, q) == 1

    @D.register_kl(Mine, Other)
    def decided(p, q):
        return torch.tensor(3.0)

    assert D.kl_divergence(p, q) == 3
    with pytest.raises(TypeError, match="register_kl"):
        D.register_kl(3, Mine)

    class Named:
        pass

    class Both(D.Normal, Named):
        pass

    @D.register_kl(Named, D.Uniform)
    def of_named(p, q):
        return torch.tensor(4.0)

    assert D.kl_divergence(Both(0.0, 1.0), D.Uniform(0.0, 1.0)) == torch.inf
    assert D.kl_divergence(Both(0.0, 1.0), q) == D.kl_divergence(D.Normal(0.0, 1.0), q)


def test_exponential_families_by_their_normalizers():
    """Entropies and divergences of the base class, where a family has formulas of its own."""
    for name in (
        "Bernoulli",
        "Beta",
        "ContinuousBernoulli",
        "Dirichlet",
        "Exponential",
        "Gamma",
        "Normal",
    ):
        p, q = of_name(name), of_name(name, 0.9)
        if name not in ("Beta", "Dirichlet"):  # whose carrier measures are not said
            torch.testing.assert_close(D.ExponentialFamily.entropy(p), p.entropy())
        torch.testing.assert_close(D.kl._exponential_family(p, q), D.kl_divergence(p, q))
    wishart = of_name("Wishart")
    torch.testing.assert_close(D.ExponentialFamily.entropy(wishart), wishart.entropy())


# ---- transforms ----------------------------------------------------------------------------------------------------------

TRANSFORMS = [
    (D.AffineTransform(1.0, -2.0), ()),
    (D.AffineTransform(torch.arange(3.0).double(), torch.tensor([2.0, -1.0, 3.0]).double(), event_dim=1), (3,)),
    (D.ComposeTransform([D.AffineTransform(0.5, 2), D.SigmoidTransform(), D.PowerTransform(2.0)]), ()),
    (D.ComposeTransform([D.ExpTransform(), D.ReshapeTransform((4,), (2, 2))]), (4,)),
    (D.CorrCholeskyTransform(), (6,)),
    (D.CumulativeDistributionTransform(D.Laplace(0.5, 2.0)), ()),
    (D.ExpTransform(), ()),
    (D.IndependentTransform(D.TanhTransform(), 1), (3,)),
    (D.ReshapeTransform((2, 3), (6,)), (2, 3)),
    (D.SigmoidTransform(), ()),
    (D.SoftplusTransform(), ()),
    (D.StickBreakingTransform(), (3,)),
    (D.TanhTransform(), ()),
    (D.CatTransform([D.ExpTransform(), D.identity_transform], dim=0, lengths=[1, 2]), (3,)),
    (D.StackTransform([D.ExpTransform(), D.TanhTransform()], dim=0), (2,)),
]  # fmt: skip


@pytest.mark.parametrize(("transform", "event"), TRANSFORMS, ids=lambda x: type(x).__name__)
def test_transforms_have_inverses_and_jacobians(transform, event):
    torch.manual_seed(8)
    x = torch.randn(event, dtype=torch.float64)
    y = transform(x)
    torch.testing.assert_close(transform.inv(y), x)
    assert transform.inv.inv is transform and transform.codomain.check(y).all()
    assert tuple(transform.forward_shape(x.shape)) == tuple(y.shape)
    assert tuple(transform.inverse_shape(y.shape)) == tuple(x.shape)
    jacobian = torch.autograd.functional.jacobian(transform, x).reshape(y.numel(), x.numel())
    if isinstance(transform, D.CorrCholeskyTransform):
        rows, columns = torch.tril_indices(4, 4, -1)
        jacobian = jacobian.reshape(4, 4, 6)[rows, columns]  # the diagonal follows
    if isinstance(transform, D.StickBreakingTransform):
        jacobian = jacobian[:-1]  # the last part follows
    expected = torch.linalg.slogdet(jacobian)[1]
    terms = transform.log_abs_det_jacobian(x, y)
    torch.testing.assert_close(terms.sum(), expected)
    torch.testing.assert_close(transform.inv.log_abs_det_jacobian(y, x).sum(), -expected)


def test_transforms_are_compared_and_kept():
    assert D.ExpTransform() == D.ExpTransform() and D.ExpTransform() != D.TanhTransform()
    assert D.AffineTransform(1.0, 2.0) == D.AffineTransform(torch.tensor(1.0), 2.0)
    assert D.AffineTransform(1.0, 2.0) != D.AffineTransform(1.0, 3.0)
    assert D.PowerTransform(2.0) == D.PowerTransform(2.0) != D.PowerTransform(3.0)
    assert D.ExpTransform().inv == D.ExpTransform().inv != D.ExpTransform()
    for transform in (
        D.TanhTransform(cache_size=1),
        D.ComposeTransform([D.TanhTransform()]).with_cache().parts[0],
    ):
        x = torch.tensor(30.0)
        assert transform.inv(transform(x)) is x
        assert copy.deepcopy(transform).inv(transform(x)).isinf()  # a copy has a cache of its own
    assert pickle.loads(pickle.dumps(D.SigmoidTransform().inv))(torch.tensor(0.5)) == 0


def test_transform_to_every_parameter():
    """Optimizers move freely what `transform_to` maps into the constraints."""
    torch.manual_seed(9)
    for case in CASES:
        distribution = built(case, dtype="float32", validate_args=False)
        for constraint in distribution.arg_constraints.values():
            if isinstance(constraint, type(constraints.nonnegative_integer)):
                continue
            free = torch.randn(3, 4, 4)
            assert constraint.check(D.transform_to(constraint)(free)).all(), case


# ---- arguments -----------------------------------------------------------------------------------------------------------


def test_messages():
    with pytest.raises(
        ValueError, match=r"Normal: got invalid values of the parameter scale.*\n.*-1"
    ):
        D.Normal(0.0, torch.tensor([1.0, -1.0]))
    with pytest.raises(
        ValueError,
        match=r"Beta: got values .* outside of the support Interval\(lower_bound=0.0, upper_bound=1.0\)",
    ):
        D.Beta(1.0, 1.0).log_prob(torch.tensor(2.0))
    with pytest.raises(ValueError, match="broadcast with batch_shape"):
        D.Normal(torch.zeros(3), 1.0).log_prob(torch.zeros(2))
    with pytest.raises(ValueError, match="FisherSnedecor: .*df2"):
        D.FisherSnedecor(1.0, -1.0)
    with pytest.raises(ValueError, match="Wishart: got df"):
        D.Wishart(1.5, torch.eye(3))
    with pytest.raises(ValueError, match="ContinuousBernoulli"):
        D.ContinuousBernoulli(1.5)
    with pytest.warns(UserWarning, match="singular"):
        D.Wishart(2.5, torch.eye(3))
    with pytest.warns(FutureWarning, match="deprecated"):
        assert D.Normal(0.0, 1.0).sample_n(2).shape == (2,)


def test_checks_can_be_switched_off():
    D.Normal(0.0, -1.0, validate_args=False)
    D.Distribution.set_default_validate_args(False)
    try:
        D.Normal(0.0, -1.0)
        assert D.Uniform(0.0, 1.0).log_prob(torch.tensor(2.0)) == -float("inf")
    finally:
        D.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError, match="Normal"):
        D.Normal(0.0, -1.0)


def test_subclasses_of_programs():
    class Coin(D.Distribution):
        arg_constraints = {"p": constraints.unit_interval}
        support = constraints.boolean

        def __init__(self, p, validate_args=None):
            self.p = p
            super().__init__(p.shape, validate_args=validate_args)

        def sample(self, sample_shape=()):
            return torch.bernoulli(self.p.expand(self._extended_shape(sample_shape)))

        def log_prob(self, value):
            if self._validate_args:
                self._validate_sample(value)
            return torch.where(value == 1, self.p, 1 - self.p).log()

    coin = Coin(torch.tensor([0.2, 0.7]))
    assert repr(coin) == "Coin(p: argand.Size([2]))"
    assert D.Independent(coin, 1).log_prob(coin.sample((5,))).shape == (5,)
    with pytest.raises(ValueError, match="Coin"):
        coin.log_prob(torch.tensor(0.5))
    with pytest.raises(NotImplementedError, match="expand"):
        coin.expand((3, 2))

    class Shifted(D.Normal):
        def __init__(self, loc):
            super().__init__(loc + 1, 1.0)

    with pytest.raises(NotImplementedError, match="expand of its own"):
        Shifted(torch.zeros(2)).expand((3, 2))

    class Bare(D.Distribution):
        pass

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Bare()
    assert any("arg_constraints" in str(w.message) for w in caught)


def test_distributions_are_copied_and_pickled():
    for case in CASES:
        distribution = built(case, (2,))
        value = distribution.sample()
        for twin in (copy.deepcopy(distribution), pickle.loads(pickle.dumps(distribution))):
            assert torch.equal(twin.log_prob(value), distribution.log_prob(value))


def test_lazy_attributes_have_gradients():
    p = torch.tensor([0.3], requires_grad=True)
    distribution = D.Bernoulli(p)
    with torch.no_grad():
        distribution.logits  # noqa: B018
    assert distribution.logits.requires_grad


def test_edges():
    assert (
        D.Bernoulli(torch.tensor([0.0, 1.0])).entropy().tolist() == [pytest.approx(0, abs=1e-5)] * 2
    )
    assert D.Geometric(1.0).log_prob(torch.tensor(0.0)) == 0
    assert (
        D.Multinomial(2, torch.tensor([0.0, 1.0])).log_prob(torch.tensor([0.0, 2.0])).abs() < 1e-6
    )
    assert D.Categorical(torch.tensor([0.0, 1.0])).entropy() < 1e-6
    assert D.Categorical(logits=torch.tensor([-float("inf"), 0.0])).entropy() == 0
    assert D.NegativeBinomial(0.0, torch.tensor(0.5)).log_prob(torch.tensor(0.0)) == 0
    assert D.Poisson(0.0).log_prob(torch.tensor(0.0)) == 0
    assert D.VonMises(0.0, 1e4).log_prob(torch.tensor(0.0)).isfinite()
    mode = D.Kumaraswamy(2.0, 3.0).mode
    x = torch.linspace(0.01, 0.99, 981)
    assert abs(x[D.Kumaraswamy(2.0, 3.0).log_prob(x).argmax()] - mode) < 2e-3
    assert D.StudentT(torch.tensor([0.5, 1.5, 3.0])).variance.tolist() == [
        pytest.approx(float("nan"), nan_ok=True),
        float("inf"),
        3.0,
    ]
    one_mixture = D.MixtureSameFamily(
        D.Categorical(torch.ones(3)), D.Normal(torch.zeros(2, 3), 1.0)
    )
    assert one_mixture.log_prob(one_mixture.sample((5,))).shape == (5, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no sample of these is singular
        assert D.Wishart(5.0, torch.eye(3)).sample((100,)).shape == (100, 3, 3)


def test_import_is_lazy():
    program = "import sys, argand; assert not any('distributions' in m for m in sys.modules); argand.distributions.Normal(0.0, 1.0)"
    program += "; from argand.distributions.normal import Normal; from argand.distributions import Beta, kl_divergence, constraints"
    program += "; from argand.distributions.utils import _standard_normal, _sum_rightmost, broadcast_all, lazy_property"
    program += "; from argand.distributions.multivariate_normal import _batch_mahalanobis, _batch_mv, _precision_to_scale_tril"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_second_derivatives_that_nobody_wrote_are_refused():
    shape = torch.tensor([2.0, 3.0], requires_grad=True)
    for sample in (torch._standard_gamma(shape), torch._sample_dirichlet(shape)):
        (gradient,) = torch.autograd.grad(sample.square().sum(), shape, create_graph=True)
        with pytest.raises(NotImplementedError, match="_grad"):
            gradient.sum().backward()
