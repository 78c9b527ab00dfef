"""Kullback and Leibler's divergences KL(p || q), the mean of log p(x) - log q(x) over x of p, by the types of p and q.

Source of most formulas: M. Gil, F. Alajaji, T. Linder, "Renyi divergence measures for commonly used univariate continuous distributions", 2013.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable
from typing import Any

import argand_aten as aten
from argand.distributions.bernoulli import Bernoulli
from argand.distributions.beta import Beta
from argand.distributions.binomial import Binomial
from argand.distributions.categorical import Categorical
from argand.distributions.cauchy import Cauchy
from argand.distributions.continuous_bernoulli import ContinuousBernoulli
from argand.distributions.dirichlet import Dirichlet
from argand.distributions.distribution import Distribution
from argand.distributions.exp_family import ExponentialFamily
from argand.distributions.exponential import Exponential
from argand.distributions.gamma import Gamma
from argand.distributions.geometric import Geometric
from argand.distributions.gumbel import Gumbel
from argand.distributions.half_normal import HalfNormal
from argand.distributions.independent import Independent
from argand.distributions.laplace import Laplace
from argand.distributions.lowrank_multivariate_normal import (
    LowRankMultivariateNormal,
    lowrank_log_det,
    lowrank_mahalanobis,
)
from argand.distributions.multivariate_normal import (
    MultivariateNormal,
    _batch_mahalanobis,
    half_log_det,
)
from argand.distributions.normal import Normal
from argand.distributions.one_hot_categorical import OneHotCategorical
from argand.distributions.pareto import Pareto
from argand.distributions.poisson import Poisson
from argand.distributions.transformed_distribution import TransformedDistribution
from argand.distributions.uniform import Uniform
from argand.distributions.utils import HALF_LOG_2PI, _sum_rightmost, euler_constant
from argand_c10 import Tensor

__all__ = ["kl_divergence", "register_kl"]

Divergence = Callable[[Any, Any], Tensor]
# By the names of p's and q's classes. Names, not the classes: so compiled programs find their function as well.
_REGISTRY: dict[str, Divergence] = {}
_COUNT = itertools.count()
INF = float("inf")


def register_kl(type_p: type, type_q: type) -> Callable[[Divergence], Divergence]:
    """Decorator: the function that gives KL(p || q) for p and q of these types, or of subclasses that have no nearer one.

    Raises:
      TypeError: for what are no classes.
    """
    for each in (type_p, type_q):  # perhaps a base that distributions have besides Distribution
        if not isinstance(each, type):
            raise TypeError(f"register_kl: got {each!r}, expected a class")
        if "_kl_name" not in vars(each):
            each._kl_name = f"{each.__qualname__} {next(_COUNT)}"  # type: ignore[attr-defined]

    def decorate(function: Divergence) -> Divergence:
        _REGISTRY[f"{type_p._kl_name}, {type_q._kl_name}"] = function  # type: ignore[attr-defined]
        return function

    return decorate


def _named(cls: type) -> list[type]:
    """The class and its bases for which something is registered, the nearest first."""
    return [base for base in cls.__mro__ if vars(base).get("_kl_name")]


def _nearest(type_p: type, type_q: type) -> Divergence | None:
    """The function of the nearest bases; if p and q disagree about which is nearest, p has its way, with a warning."""
    pairs = [
        (_REGISTRY[name], p, q)
        for p in _named(type_p)
        for q in _named(type_q)
        if (name := f"{p._kl_name}, {q._kl_name}") in _REGISTRY  # type: ignore[attr-defined]
    ]
    if not pairs:
        return None
    found, left_p, _ = pairs[0]
    other, _, right_q = min(pairs, key=lambda pair: type_q.__mro__.index(pair[2]))
    if found is not other:
        warnings.warn(
            f"kl_divergence: {type_p.__name__} and {type_q.__name__} are ambiguous; decide by register_kl({left_p.__name__}, {right_q.__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return found


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """KL(p || q), batch_shape, in closed form; infinite where p has values that q has not.

    Raises:
      NotImplementedError: where no function is registered for the types (`register_kl`).
    """
    # A class has the name of its nearest base that has one: a function for these names is the nearest.
    function = _REGISTRY.get(f"{p._kl_name}, {q._kl_name}") or _nearest(type(p), type(q))
    if function is None:
        raise NotImplementedError(
            f"kl_divergence: got {type(p).__name__} and {type(q).__name__}, for which no function is registered"
        )
    return function(p, q)


def _register_infinite(type_p: type, types_q: tuple[type, ...], parameter: str) -> None:
    """p has values that q never has; `parameter` of p has its shape."""

    def infinite(p: Any, q: Any) -> Tensor:
        return aten.full_like(getattr(p, parameter), INF)

    for type_q in types_q:
        register_kl(type_p, type_q)(infinite)


_register_infinite(Beta, (Pareto,), "concentration1")
_register_infinite(ContinuousBernoulli, (Pareto,), "probs")
_register_infinite(Exponential, (Beta, ContinuousBernoulli, Pareto, Uniform), "rate")
_register_infinite(Gamma, (Beta, ContinuousBernoulli, Pareto, Uniform), "concentration")
_ON_HALF_LINES = (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)
_register_infinite(Gumbel, _ON_HALF_LINES, "loc")
_register_infinite(Laplace, _ON_HALF_LINES, "loc")
_register_infinite(Normal, _ON_HALF_LINES, "loc")
_register_infinite(Pareto, (Beta, ContinuousBernoulli, Uniform), "scale")
_register_infinite(Poisson, (Bernoulli, Binomial), "rate")


def _infinite_where(beyond: Tensor, result: Tensor) -> Tensor:
    """`result`, infinite where p reaches beyond q's support."""
    return aten.where(beyond, INF, result)


# ---- of one family -----------------------------------------------------------------------------------------------------


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    ones = p.probs * (aten.softplus(-q.logits) - aten.softplus(-p.logits))
    ones = _infinite_where(q.probs == 0, ones).masked_fill(p.probs == 0, 0.0)
    zeros = (1 - p.probs) * (aten.softplus(q.logits) - aten.softplus(p.logits))
    return ones + _infinite_where(q.probs == 1, zeros).masked_fill(p.probs == 1, 0.0)


@register_kl(Beta, Beta)
def _beta(p: Beta, q: Beta) -> Tensor:
    return _dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Binomial, Binomial)
def _binomial(p: Binomial, q: Binomial) -> Tensor:
    if (p.total_count < q.total_count).any():
        raise NotImplementedError(
            "kl_divergence: got Binomials with a greater total_count of q, expected at most that of p"
        )
    one = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return _infinite_where(p.total_count > q.total_count, p.total_count * one)


@register_kl(Categorical, Categorical)
def _categorical(p: Categorical, q: Categorical) -> Tensor:
    terms = _infinite_where(q.probs == 0, p.probs * (p.logits - q.logits))
    return aten.where(p.probs == 0, 0.0, terms).sum(-1)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    distance = (p.scale + q.scale).square() + (p.loc - q.loc).square()
    return distance.log() - (4 * p.scale * q.scale).log()


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: ContinuousBernoulli, q: ContinuousBernoulli) -> Tensor:
    of_p = p._cont_bern_log_norm() + (-p.probs).log1p()
    of_q = q._cont_bern_log_norm() + (-q.probs).log1p()
    return p.mean * (p.logits - q.logits) + of_p - of_q


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    normalizers = total.lgamma() - b.sum(-1).lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
    return normalizers + ((a - b) * (a.digamma() - total.digamma().unsqueeze(-1))).sum(-1)


@register_kl(Exponential, Exponential)
def _exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - 1 - ratio.log()


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    """The Bregman divergence of the log normalizer between natural parameters."""
    if type(p) is not type(q):
        raise NotImplementedError(
            f"kl_divergence: got the exponential families {type(p).__name__} and {type(q).__name__}, expected one family"
        )
    params, normalizer, means = p._normalizer_slopes()
    others = q._natural_params
    result = q._log_normalizer(*others) - normalizer
    for param, other, mean in zip(params, others, means, strict=True):
        # Of the parameters one may have dimensions of the event, another none.
        result = result - _sum_rightmost((other - param) * mean, param.dim() - len(p.batch_shape))
    return result


@register_kl(Gamma, Gamma)
def _gamma(p: Gamma, q: Gamma) -> Tensor:
    a, b = p.concentration, q.concentration
    normalizers = b * (p.rate / q.rate).log() + b.lgamma() - a.lgamma()
    return normalizers + (a - b) * a.digamma() + (q.rate - p.rate) * (a / p.rate)


@register_kl(Geometric, Geometric)
def _geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc) / q.scale
    extreme = ((1 + ratio).lgamma() - distance).exp()
    return distance - ratio.log() + euler_constant * (ratio - 1) + extreme - 1


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: HalfNormal, q: HalfNormal) -> Tensor:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _independent(p: Independent[Any], q: Independent[Any]) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError(
            f"kl_divergence: got reinterpreted_batch_ndims {p.reinterpreted_batch_ndims} and {q.reinterpreted_batch_ndims}, expected the same"
        )
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return distance / q.scale + ratio * (-distance / p.scale).exp() - ratio.log() - 1


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale).square()
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).square() - 1 - ratio.log())


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot_categorical(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return _categorical(p._categorical, q._categorical)


@register_kl(Pareto, Pareto)
def _pareto(p: Pareto, q: Pareto) -> Tensor:
    ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return _infinite_where(p.scale < q.scale, result)


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    """A bijection changes no divergence."""
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError(
            "kl_divergence: got distributions with transforms or event shapes that differ, expected the same"
        )
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Uniform, Uniform)
def _uniform(p: Uniform, q: Uniform) -> Tensor:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return _infinite_where((q.low > p.low) | (q.high < p.high), result)


# ---- multivariate normal -------------------------------------------------------------------------------------------------


def _check_events(p: Distribution, q: Distribution) -> None:
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"kl_divergence: got event shapes {tuple(p.event_shape)} and {tuple(q.event_shape)}, expected the same"
        )


def _squares(x: Tensor) -> Tensor:
    """The sum of the squares of each matrix: trace(x x^T)."""
    return x.square().sum(-1).sum(-1)


def _normal_divergence(
    trace: Tensor, distance: Tensor, log_dets: Tensor, p: Distribution
) -> Tensor:
    return 0.5 * (trace + distance + log_dets - p.event_shape[0])


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    _check_events(p, q)
    Lp, Lq = p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril
    trace = _squares(aten.ops.linalg_solve_triangular(Lq, Lp, upper=False))
    log_dets = 2 * (half_log_det(Lq) - half_log_det(Lp))
    return _normal_divergence(trace, _batch_mahalanobis(Lq, q.loc - p.loc), log_dets, p)


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _low_rank_and_multivariate_normal(
    p: LowRankMultivariateNormal, q: MultivariateNormal
) -> Tensor:
    _check_events(p, q)
    (W, d), Lq = p._parts, q._unbroadcasted_scale_tril
    trace = sum(
        _squares(aten.ops.linalg_solve_triangular(Lq, part, upper=False))
        for part in (W, d.sqrt().diag_embed())
    )
    log_dets = 2 * half_log_det(Lq) - lowrank_log_det(W, d, p._capacitance_tril)
    return _normal_divergence(trace, _batch_mahalanobis(Lq, q.loc - p.loc), log_dets, p)  # type: ignore[arg-type]


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _low_rank_multivariate_normal(
    p: LowRankMultivariateNormal, q: LowRankMultivariateNormal
) -> Tensor:
    W, d = p._parts
    log_det = lowrank_log_det(W, d, p._capacitance_tril)
    return _from_low_rank(p, q, [W], (d / q._unbroadcasted_cov_diag).sum(-1), d.sqrt(), log_det)


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _multivariate_normal_and_low_rank(
    p: MultivariateNormal, q: LowRankMultivariateNormal
) -> Tensor:
    Lp = p._unbroadcasted_scale_tril
    return _from_low_rank(p, q, [Lp], 0.0, None, 2 * half_log_det(Lp))


def _from_low_rank(
    p: Any, q: Any, factors: list[Tensor], trace: Any, root: Tensor | None, log_det: Tensor
) -> Tensor:
    """KL to a q of low rank from a p whose covariance is the sum of B B^T over `factors` and of diag(root^2), the latter's part of the trace being given."""
    _check_events(p, q)
    W, d = q._parts
    # (W W^T + D)^-1 = D^-1 - A^T A
    A = aten.ops.linalg_solve_triangular(q._capacitance_tril, W.mT / d.unsqueeze(-2), upper=False)
    for factor in factors:
        trace = trace + _squares(factor * d.rsqrt().unsqueeze(-1)) - _squares(A @ factor)
    if root is not None:
        trace = trace - _squares(A * root.unsqueeze(-2))
    distance = lowrank_mahalanobis(W, d, q.loc - p.loc, q._capacitance_tril)
    log_dets = lowrank_log_det(W, d, q._capacitance_tril) - log_det
    return _normal_divergence(trace, distance, log_dets, p)


# ---- of two families: -entropy of p less the mean of log q ---------------------------------------------------------------


def _from_gamma(p: Distribution, q: Gamma, mean: Tensor, mean_log: Tensor) -> Tensor:
    """To Gamma, by the means of x and log x."""
    normalizer = q.concentration.lgamma() - q.concentration * q.rate.log()
    return -p.entropy() + normalizer - (q.concentration - 1) * mean_log + q.rate * mean


def _from_normal(p: Distribution, q: Normal, mean: Tensor, variance: Tensor) -> Tensor:
    """To Normal, by mean and variance."""
    square = (variance + (mean - q.loc).square()) / q.scale.square()
    return -p.entropy() + HALF_LOG_2PI + q.scale.log() + 0.5 * square


def _from_exponential(p: Distribution, q: Exponential, mean: Tensor) -> Tensor:
    """To Exponential, by the mean."""
    return -p.entropy() - q.rate.log() + q.rate * mean


def _from_gumbel(p: Distribution, q: Gumbel, mean: Tensor, mean_exp: Tensor) -> Tensor:
    """To Gumbel, by the means of z = (x - loc) / scale and of exp(-z)."""
    return -p.entropy() + q.scale.log() + mean + mean_exp


def _from_continuous_bernoulli(p: Distribution, q: ContinuousBernoulli) -> Tensor:
    """To ContinuousBernoulli, by the mean."""
    return -p.entropy() - p.mean * q.logits - (-q.probs).log1p() - q._cont_bern_log_norm()


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Beta, ContinuousBernoulli)
def _beta_continuous_bernoulli(p: Beta, q: ContinuousBernoulli) -> Tensor:
    return _from_continuous_bernoulli(p, q)


@register_kl(Beta, Exponential)
@register_kl(ContinuousBernoulli, Exponential)
@register_kl(Gamma, Exponential)
def _mean_exponential(p: Any, q: Any) -> Tensor:
    return _from_exponential(p, q, p.mean)


@register_kl(Beta, Gamma)
def _beta_gamma(p: Beta, q: Gamma) -> Tensor:
    mean_log = p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    return _from_gamma(p, q, p.mean, mean_log)


@register_kl(Beta, Normal)
@register_kl(ContinuousBernoulli, Normal)
@register_kl(Exponential, Normal)
@register_kl(Gamma, Normal)
@register_kl(Gumbel, Normal)
@register_kl(Laplace, Normal)
@register_kl(Uniform, Normal)
def _moments_normal(p: Any, q: Any) -> Tensor:
    return _from_normal(p, q, p.mean, p.variance)


@register_kl(Pareto, Normal)
def _pareto_normal(p: Pareto, q: Normal) -> Tensor:
    return _infinite_where(p.alpha <= 2, _from_normal(p, q, p.mean, p.variance))


@register_kl(Beta, Uniform)
@register_kl(ContinuousBernoulli, Uniform)
def _unit_interval_uniform(p: Any, q: Any) -> Tensor:
    return _infinite_where((q.low > 0) | (q.high < 1), -p.entropy() + (q.high - q.low).log())


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Exponential, q: Gamma) -> Tensor:
    return _from_gamma(p, q, p.mean, -p.rate.log() - euler_constant)


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p: Exponential, q: Gumbel) -> Tensor:
    product = p.rate * q.scale
    mean_exp = (q.loc / q.scale).exp() * product / (product + 1)
    return _from_gumbel(p, q, (p.mean - q.loc) / q.scale, mean_exp)


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p: Gamma, q: Gumbel) -> Tensor:
    mean_exp = (q.loc / q.scale).exp() * (1 + 1 / (p.rate * q.scale)).pow(-p.concentration)
    return _from_gumbel(p, q, (p.mean - q.loc) / q.scale, mean_exp)


@register_kl(Normal, Gumbel)
def _normal_gumbel(p: Normal, q: Gumbel) -> Tensor:
    mean = (p.loc - q.loc) / q.scale
    mean_exp = (0.5 * (p.scale / q.scale).square() - mean).exp()
    return _from_gumbel(p, q, mean, mean_exp)


@register_kl(Normal, Laplace)
def _normal_laplace(p: Normal, q: Laplace) -> Tensor:
    distance = p.loc - q.loc
    z = distance / (p.scale * math.sqrt(2))
    mean_abs = math.sqrt(2 / math.pi) * p.scale * (-z.square()).exp() + distance * z.erf()
    return -p.entropy() + (2 * q.scale).log() + mean_abs / q.scale


@register_kl(Pareto, Exponential)
def _pareto_exponential(p: Pareto, q: Exponential) -> Tensor:
    return _infinite_where(p.alpha <= 1, _from_exponential(p, q, p.mean))


@register_kl(Pareto, Gamma)
def _pareto_gamma(p: Pareto, q: Gamma) -> Tensor:
    mean_log = p.scale.log() + p.alpha.reciprocal()
    return _infinite_where(p.alpha <= 1, _from_gamma(p, q, p.mean, mean_log))


def _mean_log(p: Uniform) -> Tensor:
    """Of p evenly distributed: the mean of log x."""
    low, high = p.low, p.high
    return (aten.xlogy(high, high) - aten.xlogy(low, low)) / (high - low) - 1


@register_kl(Uniform, Beta)
def _uniform_beta(p: Uniform, q: Beta) -> Tensor:
    a, b = q.concentration1, q.concentration0
    mirrored = Uniform(1 - p.high, 1 - p.low, validate_args=False)
    powers = (a - 1) * _mean_log(p) + (b - 1) * _mean_log(mirrored)
    result = -p.entropy() + a.lgamma() + b.lgamma() - (a + b).lgamma() - powers
    return _infinite_where((p.high > 1) | (p.low < 0), result)


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p: Uniform, q: ContinuousBernoulli) -> Tensor:
    return _infinite_where((p.high > 1) | (p.low < 0), _from_continuous_bernoulli(p, q))


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Uniform, q: Exponential) -> Tensor:
    return _infinite_where(p.low < 0, _from_exponential(p, q, p.mean))


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Uniform, q: Gamma) -> Tensor:
    return _infinite_where(p.low < 0, _from_gamma(p, q, p.mean, _mean_log(p)))


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p: Uniform, q: Gumbel) -> Tensor:
    high, low = (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    mean_exp = ((-low).exp() - (-high).exp()) / (high - low)
    return _from_gumbel(p, q, 0.5 * (high + low), mean_exp)


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Uniform, q: Pareto) -> Tensor:
    powers = q.alpha.log() + q.alpha * q.scale.log() - (q.alpha + 1) * _mean_log(p)
    return _infinite_where(p.low < q.scale, -p.entropy() - powers)
