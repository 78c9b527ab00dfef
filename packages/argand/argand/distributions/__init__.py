"""Probability distributions, their transforms and divergences, as PyTorch's `torch.distributions`.

    policy = Categorical(logits=network(state))
    action = policy.sample()
    loss = -policy.log_prob(action) * reward

A distribution has a `batch_shape` of parameters and an `event_shape` of one value (`Distribution`); `sample` draws, `rsample` draws with gradients,
`log_prob`, `cdf`, `entropy`... give tensors that have them as well. Parameters and values are checked unless `validate_args=False`.
"""

from __future__ import annotations

from argand.distributions import constraints, kl, transforms
from argand.distributions.bernoulli import Bernoulli
from argand.distributions.beta import Beta
from argand.distributions.binomial import Binomial
from argand.distributions.categorical import Categorical
from argand.distributions.cauchy import Cauchy
from argand.distributions.chi2 import Chi2
from argand.distributions.constraint_registry import biject_to, transform_to
from argand.distributions.continuous_bernoulli import ContinuousBernoulli
from argand.distributions.dirichlet import Dirichlet
from argand.distributions.distribution import Distribution
from argand.distributions.exp_family import ExponentialFamily
from argand.distributions.exponential import Exponential
from argand.distributions.fishersnedecor import FisherSnedecor
from argand.distributions.gamma import Gamma
from argand.distributions.generalized_pareto import GeneralizedPareto
from argand.distributions.geometric import Geometric
from argand.distributions.gumbel import Gumbel
from argand.distributions.half_cauchy import HalfCauchy
from argand.distributions.half_normal import HalfNormal
from argand.distributions.independent import Independent
from argand.distributions.inverse_gamma import InverseGamma
from argand.distributions.kl import kl_divergence, register_kl
from argand.distributions.kumaraswamy import Kumaraswamy
from argand.distributions.laplace import Laplace
from argand.distributions.lkj_cholesky import LKJCholesky
from argand.distributions.log_normal import LogNormal
from argand.distributions.logistic_normal import LogisticNormal
from argand.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from argand.distributions.mixture_same_family import MixtureSameFamily
from argand.distributions.multinomial import Multinomial
from argand.distributions.multivariate_normal import MultivariateNormal
from argand.distributions.negative_binomial import NegativeBinomial
from argand.distributions.normal import Normal
from argand.distributions.one_hot_categorical import (
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
)
from argand.distributions.pareto import Pareto
from argand.distributions.poisson import Poisson
from argand.distributions.relaxed_bernoulli import LogitRelaxedBernoulli, RelaxedBernoulli
from argand.distributions.relaxed_categorical import RelaxedOneHotCategorical
from argand.distributions.studentT import StudentT
from argand.distributions.transformed_distribution import TransformedDistribution
from argand.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    CatTransform,
    ComposeTransform,
    CorrCholeskyTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    StackTransform,
    StickBreakingTransform,
    TanhTransform,
    Transform,
    identity_transform,
)
from argand.distributions.uniform import Uniform
from argand.distributions.von_mises import VonMises
from argand.distributions.weibull import Weibull
from argand.distributions.wishart import Wishart

__all__ = [
    "AbsTransform", "AffineTransform", "Bernoulli", "Beta", "Binomial", "CatTransform", "Categorical", "Cauchy", "Chi2", "ComposeTransform",
    "ContinuousBernoulli", "CorrCholeskyTransform", "CumulativeDistributionTransform", "Dirichlet", "Distribution", "ExpTransform", "Exponential",
    "ExponentialFamily", "FisherSnedecor", "Gamma", "GeneralizedPareto", "Geometric", "Gumbel", "HalfCauchy", "HalfNormal", "Independent",
    "IndependentTransform", "InverseGamma", "Kumaraswamy", "LKJCholesky", "Laplace", "LogNormal", "LogisticNormal", "LogitRelaxedBernoulli",
    "LowRankMultivariateNormal", "LowerCholeskyTransform", "MixtureSameFamily", "Multinomial", "MultivariateNormal", "NegativeBinomial", "Normal",
    "OneHotCategorical", "OneHotCategoricalStraightThrough", "Pareto", "Poisson", "PositiveDefiniteTransform", "PowerTransform", "RelaxedBernoulli",
    "RelaxedOneHotCategorical", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform", "SoftplusTransform", "StackTransform",
    "StickBreakingTransform", "StudentT", "TanhTransform", "Transform", "TransformedDistribution", "Uniform", "VonMises", "Weibull", "Wishart",
    "biject_to", "constraints", "identity_transform", "kl", "kl_divergence", "register_kl", "transform_to", "transforms",
]  # fmt: skip
