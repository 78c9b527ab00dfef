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


# Of each package: itself, where `vmap` and its like are, and arguments.
BESIDE_RESULTS = {
    "counter": lambda t, f, x: _counted(t, f, x),
    "written arguments": lambda t, f, x: (f.vmap(lambda a: a.mul_(2)[0])(x), x),
    "views in place": lambda t, f, x: f.vmap(lambda a: (a * 1).t_().unsqueeze_(0).mul_(2))(x),
    "other sizes": lambda t, f, x: f.vmap(lambda a: (a * 1).resize_(2, 4))(x),
    "printed": lambda t, f, x: f.vmap(lambda a: (repr(a), a * 1)[1])(x),
    "statistics": lambda t, f, x: _normalized(t, f, x),
}


def _counted(t, f, x):
    counter = t.zeros([])
    return f.vmap(lambda a: (counter.add_(1), a * 1)[1])(x), counter


def _normalized(t, f, x):
    state = [t.zeros([3, 2]), t.ones([3, 2])]

    def norm(a, mean, var):
        if t is torch:
            return t.nn.functional.batch_norm(a, mean, var, None, None, True)
        return t.batch_norm(a, None, None, mean, var, True, 0.1, 1e-5)

    return f.vmap(norm)(x, *state), *state


@pytest.mark.parametrize("name", BESIDE_RESULTS)
def test_what_is_done_beside_results(name):
    array = np.random.default_rng(2).standard_normal((3, 4, 2)).astype(np.float32)
    found = BESIDE_RESULTS[name](aten, func, c10.tensor(array))
    want = BESIDE_RESULTS[name](torch, torch.func, torch.tensor(array))
    for a, b in zip(*(x if isinstance(x, tuple) else (x,) for x in (found, want)), strict=True):
        assert tuple(a.shape) == tuple(b.shape)
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)


DRAWS = {
    "new": lambda t, a, g: a * 0 + t.rand([2], generator=g),
    "of entries": lambda t, a, g: (a * 0 + 0.5).bernoulli(generator=g),
    "in place": lambda t, a, g: (a * 1).uniform_(generator=g),
}


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("randomness", ["error", "different", "same"])
@pytest.mark.parametrize("name", DRAWS)
def test_randomness(name, randomness, own):
    """How many rows differ, or what is raised."""
    if name == "of entries" and randomness == "same":
        pytest.skip("the peer refuses the same numbers for entries")

    def outcome(t, f, tensor, generator):
        given = generator.manual_seed(1) if own else None
        run = f.vmap(lambda a: DRAWS[name](t, a, given), randomness=randomness)
        try:
            rows = run(tensor(np.zeros((40, 2), np.float32))).tolist()
        except RuntimeError as error:
            return str(error)[:60]
        return len({tuple(row) for row in rows}) if name != "of entries" else len(rows[0])

    assert outcome(aten, func, c10.tensor, c10.Generator()) == outcome(
        torch, torch.func, torch.tensor, torch.Generator()
    )


REFUSED = {
    "results that differ without a dimension": lambda t, f, x: f.vmap(lambda a: a, 0, None)(x),
    "an entry that outlives its vmap": lambda t, f, x: _kept(f, x).sum().item(),
    "the memory of one that does": lambda t, f, x: _kept(f, x).numpy(),
    "data": lambda t, f, x: f.vmap(lambda a: setattr(a, "data", x))(x),
}


def _kept(f, x):
    kept = []
    f.vmap(lambda a: (kept.append(a), a * 1)[1])(x)
    return kept[0]


@pytest.mark.parametrize("name", REFUSED)
def test_what_both_refuse(name):
    array = np.ones((3, 2), np.float32)
    errors = []
    for t, f, tensor in ((aten, func, c10.tensor), (torch, torch.func, torch.tensor)):
        with pytest.raises((RuntimeError, ValueError)) as caught:
            REFUSED[name](t, f, tensor(array))
        errors.append(isinstance(caught.value, ValueError))
    assert errors[0] == errors[1]
