"""Compiled linear algebra, transforms and samplers: the values, gradients, random numbers and errors of plain ones."""

from __future__ import annotations

import pytest

import argand as torch

LINALG = {
    "solve": lambda a, s: torch.linalg.solve(s, a).sum(),
    "inverse and determinant": lambda a, s: (
        torch.linalg.inv(s).sum() + torch.linalg.slogdet(s).logabsdet
    ),
    "cholesky": lambda a, s: torch.linalg.cholesky(s).sum() * torch.linalg.det(s),
    "qr": lambda a, s: torch.linalg.qr(a).R.abs().sum(),
    "lu": lambda a, s: torch.linalg.lu(a)[2].sum(),
    "svd": lambda a, s: (lambda f: (f.U * f.S) @ f.Vh)(torch.linalg.svd(a)).square().sum(),
    "eigh": lambda a, s: (lambda f: (f[1] * f[0].exp()) @ f[1].mT)(torch.linalg.eigh(s)).sum(),
    "pinv": lambda a, s: torch.linalg.pinv(a).square().sum(),
    "lstsq": lambda a, s: torch.linalg.lstsq(s, a).solution.sum(),
    "matrix_exp": lambda a, s: torch.matrix_exp(a * 0.1).sum(),
    "norms": lambda a, s: (
        torch.linalg.norm(a) + torch.linalg.norm(a, "nuc") + torch.linalg.matrix_norm(s, 1)
    ),
    "products": lambda a, s: (
        torch.linalg.multi_dot([a, s, a.mT]).sum()
        + torch.kron(a, s).sum()
        + torch.cdist(a, s).sum()
    ),
    "power": lambda a, s: torch.matrix_power(s, -2).sum() + torch.tensordot(a, s, 1).sum(),
}
TRANSFORMS = {
    "fft": lambda x: torch.view_as_real(torch.fft.fft(x)).square().sum(),
    "rfft and irfft": lambda x: torch.fft.irfft(torch.fft.rfft(x) * 2, x.shape[-1]).sin().sum(),
    "two dimensions": lambda x: torch.view_as_real(torch.fft.fft2(x, norm="ortho")).cos().sum(),
    "hfft": lambda x: torch.fft.hfft(torch.fft.ihfft(x), x.shape[-1]).square().sum(),
}
SAMPLERS = {
    "log_normal": lambda x: torch.empty_like(x).log_normal_(),
    "cauchy": lambda x: torch.empty_like(x).cauchy_() + x,
    "geometric": lambda x: torch.empty_like(x).geometric_(0.4),
    "poisson": lambda x: torch.poisson(x.abs() * 20),
    "binomial": lambda x: torch.binomial(torch.full_like(x, 12.0), x.sigmoid()),
    "normal": lambda x: torch.normal(x, x.abs()),
    "bernoulli": lambda x: torch.bernoulli(x, 0.3) + torch.empty_like(x).bernoulli_(x.sigmoid()),
    "randint_like": lambda x: torch.randint_like(x, 7) + torch.empty_like(x).random_(5),
}


def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(3)
    a = torch.randn(4, 4, dtype=torch.float64)
    return a.requires_grad_(), (
        a.detach() @ a.detach().mT + 2 * torch.eye(4, dtype=torch.float64)
    ).requires_grad_()


def agree(function, *leaves) -> None:
    compiled = torch.compile(function, fullgraph=True)
    outcomes = []
    for f in (function, compiled):
        value = f(*leaves)
        value.backward()
        outcomes.append(
            [value.detach(), *(None if t.grad is None else t.grad.clone() for t in leaves)]
        )
        for t in leaves:
            t.grad = None
    for x, y in zip(*outcomes, strict=True):
        assert (x is None) == (y is None)
        if x is not None:
            torch.testing.assert_close(x, y)


@pytest.mark.parametrize("name", LINALG)
def test_linalg(name):
    agree(LINALG[name], *inputs())


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name):
    agree(TRANSFORMS[name], inputs()[0])


@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers(name):
    x = torch.linspace(-2, 2, 50)
    values = []
    for f in (SAMPLERS[name], torch.compile(SAMPLERS[name], fullgraph=True)):
        torch.manual_seed(5)
        values.append(f(x))
    assert torch.equal(*values)


def test_errors():
    f = torch.compile(lambda a: torch.linalg.inv(a) + 1)
    torch.testing.assert_close(f(torch.eye(2)), torch.eye(2) + 1)
    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        f(torch.zeros(2, 2))
