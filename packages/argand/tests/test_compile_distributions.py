"""Distributions in compiled functions: no graph breaks without checks of arguments, and eager's results."""

from __future__ import annotations

import pytest
from distribution_cases import CASES, make, parameters, tensors

import argand as torch
import argand.distributions as D

# Whose kernels are compiled as well; the others' graphs are run operator by operator.
WITH_KERNELS = {
    "Bernoulli", "Beta", "Categorical", "Dirichlet", "Gamma", "LogNormal", "MultivariateNormal", "Normal", "Poisson", "StudentT", "Weibull",
}  # fmt: skip


def same(f, *args, fullgraph: bool = True, backend: str = "inductor") -> None:
    """Compiled as plain, from the same seed, results and gradients."""
    torch.compiler.reset()
    outcomes = []
    for function in (f, torch.compile(f, fullgraph=fullgraph, backend=backend)):
        leaves = [
            {k: v.detach().clone().requires_grad_(v.is_floating_point()) for k, v in a.items()}
            for a in args
        ]
        torch.manual_seed(0)
        result = function(*leaves)
        wanted = [v for a in leaves for v in a.values() if v.requires_grad]
        slopes = (
            torch.autograd.grad(result.sum(), wanted, allow_unused=True)
            if result.requires_grad
            else ()
        )
        outcomes.append([result, *slopes])
    for plain, compiled in zip(*outcomes, strict=True):
        assert (plain is None) == (compiled is None)
        if plain is not None:
            torch.testing.assert_close(compiled, plain, equal_nan=True)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_log_prob(case):
    given = tensors(torch, parameters(case, (3,)), "float32")
    torch.manual_seed(1)
    value = make(torch, case, given, validate_args=False).sample((2,))
    same(
        lambda p, v: make(torch, case, p, validate_args=False).log_prob(v["value"]),
        given,
        {"value": value},
        backend="inductor" if case.name in WITH_KERNELS else "aot_eager",
    )


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rsample(case):
    """Graphs forward and backward; their kernels are others' tests' matter."""
    given = tensors(torch, parameters(case, (3,)), "float32")
    # Wishart looks at what it drew.
    if case.name != "Wishart" and make(torch, case, given, validate_args=False).has_rsample:
        same(
            lambda p: make(torch, case, p, validate_args=False).rsample((2,)),
            given,
            backend="aot_eager",
        )


def test_loss_of_a_variational_autoencoder():
    torch.manual_seed(0)
    encoder, decoder = torch.nn.Linear(6, 4), torch.nn.Linear(2, 6)

    def loss(given):
        x = given["x"]
        loc, log_scale = encoder(x).chunk(2, -1)
        posterior = D.Independent(
            D.Normal(loc, log_scale.exp(), validate_args=False), 1, validate_args=False
        )
        prior = D.Independent(
            D.Normal(torch.zeros(2), 1.0, validate_args=False).expand(loc.shape),
            1,
            validate_args=False,
        )
        likelihood = D.Bernoulli(logits=decoder(posterior.rsample()), validate_args=False)
        return D.kl_divergence(posterior, prior).mean() - likelihood.log_prob(x).sum(-1).mean()

    same(loss, {"x": torch.rand(5, 6)})


def test_policy_gradient():
    def loss(given):
        policy = D.Categorical(logits=given["logits"], validate_args=False)
        action = policy.sample()
        return -(policy.log_prob(action) * given["reward"]).mean() - 0.01 * policy.entropy().mean()

    same(loss, {"logits": torch.randn(5, 3), "reward": torch.randn(5)})


def test_divergences_of_changing_types():
    """The function for the types is a fact that is guarded."""

    def divergence(p, q):
        return D.kl_divergence(p, q)

    compiled = torch.compile(divergence, fullgraph=True)
    normals = [D.Normal(torch.tensor([0.1 * i, 1.0]), 1.0 + i) for i in range(2)]
    laplaces = [D.Laplace(torch.tensor([0.1 * i, 1.0]), 1.0 + i) for i in range(2)]
    for p, q in (
        (*normals,),
        (*laplaces,),
        (normals[0], laplaces[1]),
        (laplaces[0], normals[1]),
        (*normals,),
    ):
        torch.testing.assert_close(compiled(p, q), divergence(p, q))

    class Mine(D.Normal):
        pass

    mine = Mine(torch.zeros(2), 1.0)
    torch.testing.assert_close(compiled(mine, normals[1]), divergence(mine, normals[1]))
    D.register_kl(Mine, D.Normal)(lambda p, q: p.loc * 0 + 7)
    assert compiled(mine, normals[1]).tolist() == [7, 7]


def test_checked_arguments_are_checked():
    """Checks look at values, which breaks the graph; the error is the same."""

    def f(given):
        return D.Normal(given["loc"], given["scale"]).log_prob(given["x"])

    good = {"loc": torch.zeros(3), "scale": torch.ones(3), "x": torch.ones(3)}
    same(f, good, fullgraph=False)
    compiled = torch.compile(f)
    with pytest.raises(ValueError, match="Normal: got invalid values of the parameter scale"):
        compiled({**good, "scale": -torch.ones(3)})
