"""vmap against PyTorch's, on the same programs."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import argand_aten as aten  # noqa: E402
import argand_c10 as c10  # noqa: E402
from argand_autograd import func  # noqa: E402

PROGRAMS = {
    "pointwise": lambda f, a, b: (a * b.sin() + 2).relu(),
    "reductions": lambda f, a, b: a.sum() + a.mean(0) * b.amax(-1, keepdim=True) - b.var(),
    "products": lambda f, a, b: a @ b.t() + (a.t() @ b).sum(),
    "views": lambda f, a, b: a.t().reshape(-1)[2:5] + b[1:, 0].unsqueeze(0).expand(3, -1)[0].sum(),
    "sorted": lambda f, a, b: a.sort(-1)[0] + b.cumsum(0).flip(0),
    "softmax": lambda f, a, b: a.softmax(-1).log() * b.argmax(0),
    "written": lambda f, a, b: (a - b).mul_(b).add_(a).t().contiguous().fill_(2.0) * a.t(),
    "per-sample gradients": lambda f, a, b: f.grad(lambda x: (x * b).sin().prod(1).sum())(a),
    "nested": lambda f, a, b: f.vmap(lambda x: x * b[0] + b.sum(), 0, 1)(a),
    "jacobian": lambda f, a, b: f.jacrev(lambda x: (x * b).tanh().sum(0))(a),
    "hessian": lambda f, a, b: f.hessian(lambda x: (x * b).tanh().sum() ** 2)(a[0]),
    "jvp": lambda f, a, b: f.jvp(lambda x: (x * b).exp(), (a,), (b,))[1],
    "vjp": lambda f, a, b: f.vjp(lambda x: (x * b).exp(), a)[1](b)[0],
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("dims", [(0, 0, 0), (1, None, 0), (None, -1, 1)])
def test_programs(name, dims):
    rng = np.random.default_rng(1)
    in_a, in_b, out = dims
    shape = [(3, 4)] * 2
    arrays = [
        rng.standard_normal(s) if d is None else np.moveaxis(rng.standard_normal((2, *s)), 0, d)
        for s, d in zip(shape, (in_a, in_b), strict=True)
    ]
    found = func.vmap(lambda a, b: PROGRAMS[name](func, a, b), (in_a, in_b), out)(
        *(c10.tensor(x) for x in arrays)
    )
    want = torch.vmap(lambda a, b: PROGRAMS[name](torch.func, a, b), (in_a, in_b), out)(
        *(torch.tensor(x) for x in arrays)
    )
    assert tuple(found.shape) == tuple(want.shape)
    np.testing.assert_allclose(found.numpy(), want.numpy(), rtol=1e-9, atol=1e-12)
    assert aten.isfinite(found).all()
