"""argand.masked against NumPy's masked arrays."""

from __future__ import annotations

import numpy as np
import pytest

import argand as torch
from argand import masked

SHAPE = (3, 4, 5)
INF = float("inf")


def case(seed, dtype=np.float64, empty_row=True):
    """An array, a mask (with a row that chooses nothing), and NumPy's masked array of both."""
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal(SHAPE) * 4).astype(dtype)
    mask = rng.random(SHAPE) < 0.6
    mask[1] |= rng.random(SHAPE[1:]) < 0.9
    if empty_row:
        mask[0, 2] = False
    return x, mask, np.ma.masked_array(x, ~mask)


def same(got, expected, fill, tolerance=1e-12):
    expected = np.ma.filled(np.ma.asarray(expected).astype(np.float64), fill)
    np.testing.assert_allclose(got.numpy(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dim", [0, 2, -1, (0, 2), (2, 0), (), None, [1]])
@pytest.mark.parametrize("keepdim", [False, True])
def test_reductions(dim, keepdim):
    x, mask, reference = case(1)
    axes = None if dim is None or dim == () else tuple(np.atleast_1d(dim))
    t, m = torch.from_numpy(x), torch.from_numpy(mask)
    arguments = {"keepdim": keepdim, "mask": m}
    rest = {"axis": axes, "keepdims": keepdim}
    same(masked.sum(t, dim, **arguments), reference.sum(**rest), 0)
    same(masked.prod(t, dim, **arguments), np.where(mask, x, 1).prod(**rest), 1)
    same(masked.amax(t, dim, **arguments), np.where(mask, x, -INF).max(**rest), -INF)
    same(masked.amin(t, dim, **arguments), np.where(mask, x, INF).min(**rest), INF)
    same(masked.mean(t, dim, **arguments), reference.mean(**rest), np.nan)
    same(masked.var(t, dim, False, **arguments), reference.var(**rest), np.nan)
    same(masked.std(t, dim, correction=0, **arguments), reference.std(**rest), np.nan)
    exponentials = np.exp(np.ma.filled(reference, -INF)).sum(**rest)
    with np.errstate(divide="ignore"):
        same(masked.logsumexp(t, dim, **arguments), np.log(exponentials), -INF)
    for order, start in ((2.0, 0), (1, 0), (3, 0), (0, 0), (INF, 0), (-INF, INF), (-1, INF)):
        length = np.where(mask, np.abs(x), start)
        with np.errstate(divide="ignore"):
            powers = {
                INF: lambda v: v.max(**rest),
                -INF: lambda v: v.min(**rest),
                0: lambda v: (v != 0).sum(**rest),
            }.get(order, lambda v, p=order: (v**p).sum(**rest) ** (1 / p))
            same(masked.norm(t, order, dim, **arguments), powers(length), 0)


def test_correction_of_the_variance():
    x, mask, reference = case(2, empty_row=False)
    t, m = torch.from_numpy(x), torch.from_numpy(mask)
    count = mask.sum(-1)
    for given, taken in (({}, 1), ({"correction": 0.5}, 0.5), ({"unbiased": True}, 1)):
        with np.errstate(divide="ignore"):
            factor = count / np.maximum(count - taken, 0)
        same(masked.var(t, -1, mask=m, **given), reference.var(-1) * factor, np.nan)
        same(masked.std(t, -1, mask=m, **given), np.ma.sqrt(reference.var(-1) * factor), np.nan)
    z = x + 1j * np.roll(x, 1)
    got = masked.var(torch.from_numpy(z), -1, mask=m, correction=0)
    assert got.dtype == torch.complex128 and (got.imag == 0).all()
    same(got.real, np.ma.masked_array(z, ~mask).var(-1), np.nan)
    with pytest.raises(ValueError, match=r"masked.var: got unbiased=True and correction=1"):
        masked.var(t, -1, True, correction=1, mask=m)


def test_places_scans_and_medians():
    x, mask, reference = case(3)
    t, m = torch.from_numpy(x), torch.from_numpy(mask)
    some = mask.any(-1)
    for ours, theirs in ((masked.argmax, reference.argmax), (masked.argmin, reference.argmin)):
        got = ours(t, -1, mask=m, dtype=torch.int64).numpy()
        assert (got[some] == theirs(-1)[some]).all()
        assert ours(t, mask=m).dtype == torch.float64
        assert ours(t, None, keepdim=True, mask=m).shape == (1, 1, 1)
    same(masked.cumsum(t, 1, mask=m), np.where(mask, x, 0).cumsum(1), 0)
    same(masked.cumprod(t, 1, mask=m), np.where(mask, x, 1).cumprod(1), 0)
    lower = [sorted(row[chosen])[(chosen.sum() - 1) // 2] if chosen.any() else np.nan
             for row, chosen in zip(x.reshape(-1, 5), mask.reshape(-1, 5), strict=True)]  # fmt: skip
    same(masked.median(t, -1, mask=m), np.reshape(lower, SHAPE[:2]), np.nan)
    same(masked.median(t, -1), np.sort(x)[..., 2], np.nan)
    whole = torch.tensor([[5, 1, 9], [7, 2, 8]])
    chosen = torch.tensor([[True, False, True], [False, True, True]])
    assert masked.median(whole, 1, mask=chosen).tolist() == [5, 2]
    with pytest.raises(ValueError, match="has no NaN"):
        masked.median(whole, 1, mask=torch.tensor([[True], [False]]))


def test_normalisations():
    x, mask, reference = case(4)
    t, m = torch.from_numpy(x), torch.from_numpy(mask)
    for ours, sign in ((masked.softmax, 1), (masked.softmin, -1)):
        weights = np.where(mask, np.exp(sign * x), 0)
        with np.errstate(invalid="ignore"):
            same(ours(t, -1, mask=m), weights / weights.sum(-1, keepdims=True), np.nan)
    got = masked.log_softmax(t, -1, mask=m)
    np.testing.assert_allclose(got.exp().numpy(), masked.softmax(t, -1, mask=m).numpy())
    lengths = np.sqrt((reference**2).sum(-1, keepdims=True))
    expected = np.where(mask, x, 0) / np.maximum(np.ma.filled(lengths, 0), 1e-12)
    same(masked.normalize(t, 2.0, -1, mask=m), expected, 0)
    other = torch.from_numpy(np.roll(x, 1))
    sums = np.where(mask, np.exp(x), 0) + np.exp(np.roll(x, 1))
    same(masked.logaddexp(t, other, input_mask=m), np.log(sums), 0)


def test_dtypes():
    whole = torch.tensor([[3, -1, 2]], dtype=torch.int8)
    mask = torch.tensor([False, True, False])
    assert masked.sum(whole, 1, mask=mask).dtype == torch.int64
    assert masked.prod(whole > 0, 1).dtype == torch.int64
    assert masked.cumsum(whole, 1, mask=mask).dtype == torch.int8
    nothing = torch.tensor([False])
    assert masked.amax(whole, mask=nothing).item() == -128
    assert masked.amin(whole, mask=nothing).item() == 127
    assert masked.var(whole, 1).dtype == torch.float32
    assert masked.sum(whole, 1, dtype=torch.float16, mask=mask).dtype == torch.float16
    with pytest.raises(ValueError, match="masked.mean: got dtype argand.int8"):
        masked.mean(whole, 1, mask=mask)
    assert masked.mean(whole, 1, mask=mask, dtype=torch.float32).tolist() == [-1]


def test_masks_broadcast_to_the_input_only():
    x = torch.ones(2, 3)
    assert masked.sum(x, 1, mask=torch.tensor([True, False, True])).tolist() == [2, 2]
    assert masked.sum(x, 1, mask=torch.tensor([0.0, 2.0, 0.0])).tolist() == [1, 1]
    with pytest.raises(IndexError, match=r"masked.sum: got a mask of shape \[1, 2, 3\]"):
        masked.sum(x, 1, mask=torch.ones(1, 2, 3, dtype=torch.bool))
    with pytest.raises(RuntimeError, match="3"):
        masked.sum(x, 1, mask=torch.ones(2, dtype=torch.bool))


FUNCTIONS = {
    "sum": lambda t, m: masked.sum(t, -1, mask=m),
    "prod": lambda t, m: masked.prod(t, (0, 1), mask=m),
    "mean": lambda t, m: masked.mean(t, -1, mask=m),
    "var": lambda t, m: masked.var(t, -1, mask=m),
    "norm": lambda t, m: masked.norm(t, 3.0, -1, mask=m),
    "amax": lambda t, m: masked.amax(t, -1, mask=m),
    "softmax": lambda t, m: masked.softmax(t, -1, mask=m),
    "normalize": lambda t, m: masked.normalize(t, 2.0, -1, mask=m),
    "logsumexp": lambda t, m: masked.logsumexp(t, -1, mask=m),
    "cumprod": lambda t, m: masked.cumprod(t, -1, mask=m),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_and_compiled(name):
    f = FUNCTIONS[name]
    x, mask, _ = case(5, empty_row=False)
    mask[..., :2] = True
    t, m = torch.from_numpy(x).requires_grad_(), torch.from_numpy(mask)
    assert torch.autograd.gradcheck(lambda v: f(v, m), (t,))
    (grad,) = torch.autograd.grad(f(t, m).sum(), t)
    assert (grad[~m] == 0).all()
    # A reduction fused with what it reduces adds in an order of its own.
    got = torch.compile(f, fullgraph=True)(t.detach(), m)
    torch.testing.assert_close(got, f(t.detach(), m), rtol=1e-13, atol=1e-13)
