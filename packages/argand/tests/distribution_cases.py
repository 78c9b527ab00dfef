"""Distributions with random parameters, the same for every library with PyTorch's names.

A case names a class and the kinds of its parameters; `parameters` draws them with NumPy, `make` builds the distribution of a library from them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

K = 4  # categories, or dimensions of an event


def _matrix(rng: np.random.Generator, batch: tuple[int, ...]) -> np.ndarray:
    """Lower triangular with a positive diagonal."""
    low = np.tril(0.5 * rng.standard_normal((*batch, K, K)), -1)
    return low + np.eye(K) * rng.uniform(0.5, 2.0, (*batch, 1, K))


def _positive_definite(rng: np.random.Generator, batch: tuple[int, ...]) -> np.ndarray:
    factor = _matrix(rng, batch)
    return factor @ np.swapaxes(factor, -1, -2)


def _vector(rng: np.random.Generator, batch: tuple[int, ...]) -> np.ndarray:
    return rng.standard_normal((*batch, K))


KINDS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]] = {
    "real": lambda rng, batch: rng.standard_normal(batch),
    "positive": lambda rng, batch: rng.uniform(0.3, 4.0, batch),
    "above2": lambda rng, batch: rng.uniform(2.2, 8.0, batch),
    "unit": lambda rng, batch: rng.uniform(0.05, 0.95, batch),
    "small": lambda rng, batch: rng.uniform(-0.4, 0.4, batch),
    "low": lambda rng, batch: rng.uniform(-2.0, 0.0, batch),
    "high": lambda rng, batch: rng.uniform(0.5, 3.0, batch),
    "count": lambda rng, batch: rng.integers(1, 9, batch).astype(float),
    "degrees": lambda rng, batch: rng.uniform(K + 2.0, K + 6.0, batch),
    "vector": _vector,
    "weights": lambda rng, batch: rng.uniform(0.1, 2.0, (*batch, K)),
    "factor": lambda rng, batch: rng.standard_normal((*batch, K, 2)),
    "matrix": _matrix,
    "positive_definite": _positive_definite,
    "temperature": lambda rng, batch: np.asarray(rng.uniform(0.5, 2.0)),
}


@dataclass(frozen=True)
class Case:
    """`kinds`: of the tensor parameters by name; `fixed`: other arguments."""

    name: str
    kinds: dict[str, str]
    fixed: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return "-".join([self.name, *self.kinds])


def _case(name: str, fixed: dict[str, Any] | None = None, **kinds: str) -> Case:
    return Case(name, kinds, fixed or {})


CASES = [
    _case("Bernoulli", probs="unit"),
    _case("Bernoulli", logits="real"),
    _case("Beta", concentration1="positive", concentration0="positive"),
    _case("Binomial", {"total_count": 5}, probs="unit"),
    _case("Binomial", {"total_count": 3}, logits="real"),
    _case("Categorical", probs="weights"),
    _case("Categorical", logits="vector"),
    _case("Cauchy", loc="real", scale="positive"),
    _case("Chi2", df="positive"),
    _case("ContinuousBernoulli", probs="unit"),
    _case("ContinuousBernoulli", logits="real"),
    _case("Dirichlet", concentration="weights"),
    _case("Exponential", rate="positive"),
    _case("FisherSnedecor", df1="positive", df2="above2"),
    _case("Gamma", concentration="positive", rate="positive"),
    _case("GeneralizedPareto", loc="real", scale="positive", concentration="small"),
    _case("Geometric", probs="unit"),
    _case("Geometric", logits="real"),
    _case("Gumbel", loc="real", scale="positive"),
    _case("HalfCauchy", scale="positive"),
    _case("HalfNormal", scale="positive"),
    _case("InverseGamma", concentration="above2", rate="positive"),
    _case("Kumaraswamy", concentration1="positive", concentration0="positive"),
    _case("LKJCholesky", {"dim": 3}, concentration="positive"),
    _case("Laplace", loc="real", scale="positive"),
    _case("LogNormal", loc="real", scale="unit"),
    _case("LogisticNormal", loc="vector", scale="weights"),
    _case("LowRankMultivariateNormal", loc="vector", cov_factor="factor", cov_diag="weights"),
    _case("Multinomial", {"total_count": 6}, probs="weights"),
    _case("Multinomial", {"total_count": 6}, logits="vector"),
    _case("MultivariateNormal", loc="vector", scale_tril="matrix"),
    _case("MultivariateNormal", loc="vector", covariance_matrix="positive_definite"),
    _case("MultivariateNormal", loc="vector", precision_matrix="positive_definite"),
    _case("NegativeBinomial", total_count="positive", probs="unit"),
    _case("NegativeBinomial", total_count="count", logits="real"),
    _case("Normal", loc="real", scale="positive"),
    _case("OneHotCategorical", probs="weights"),
    _case("OneHotCategorical", logits="vector"),
    _case("OneHotCategoricalStraightThrough", probs="weights"),
    _case("Pareto", scale="positive", alpha="above2"),
    _case("Poisson", rate="positive"),
    _case("RelaxedBernoulli", temperature="temperature", probs="unit"),
    _case("RelaxedBernoulli", temperature="temperature", logits="real"),
    _case("RelaxedOneHotCategorical", temperature="temperature", probs="weights"),
    _case("RelaxedOneHotCategorical", temperature="temperature", logits="vector"),
    _case("StudentT", df="above2", loc="real", scale="positive"),
    _case("Uniform", low="low", high="high"),
    _case("VonMises", loc="real", concentration="positive"),
    _case("Weibull", scale="positive", concentration="positive"),
    _case("Wishart", df="degrees", scale_tril="matrix"),
    _case("Wishart", df="degrees", covariance_matrix="positive_definite"),
    _case("Wishart", df="degrees", precision_matrix="positive_definite"),
]  # fmt: skip


def seed_of(case: Case) -> int:
    return sum(map(ord, str(case)))


def parameters(
    case: Case, batch: tuple[int, ...], broadcast: bool = False
) -> dict[str, np.ndarray]:
    """Random parameters in float64; `broadcast`: of every second one the first batch dimension is missing."""
    rng = np.random.default_rng(seed_of(case))
    found = {}
    for i, (name, kind) in enumerate(case.kinds.items()):
        found[name] = KINDS[kind](rng, batch[1:] if broadcast and i % 2 else batch)
    return found


def tensors(
    lib: Any, values: dict[str, np.ndarray], dtype: str, requires_grad: bool = False
) -> dict[str, Any]:
    """The same as leaves of a library."""
    return {
        name: lib.tensor(value, dtype=getattr(lib, dtype), requires_grad=requires_grad)
        for name, value in values.items()
    }


def make(lib: Any, case: Case, given: dict[str, Any], **options: Any) -> Any:
    """The distribution of a library with these tensors."""
    return getattr(lib.distributions, case.name)(**case.fixed, **given, **options)
