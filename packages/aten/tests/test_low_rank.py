"""Iterative decompositions against NumPy's complete ones."""

import numpy as np
import pytest

import argand_aten as aten
from argand_c10 import manual_seed


def low_rank(*sizes, rank, seed=0, is_complex=False):
    rng = np.random.default_rng(seed)
    shapes = [(*sizes[:-2], sizes[-2], rank), (*sizes[:-2], rank, sizes[-1])]
    left, right = (
        rng.standard_normal(s) + (1j * rng.standard_normal(s) if is_complex else 0) for s in shapes
    )
    return left @ right


@pytest.mark.parametrize("sizes", [(9, 6), (6, 9), (2, 12, 7)])
@pytest.mark.parametrize("is_complex", [False, True])
def test_svd_lowrank_of_a_matrix_of_that_rank_is_exact(sizes, is_complex):
    a = low_rank(*sizes, rank=3, is_complex=is_complex)
    u, s, v = aten.svd_lowrank(aten.tensor(a), q=4)
    assert u.shape == (*sizes[:-1], 4) and v.shape == (*sizes[:-2], sizes[-1], 4)
    assert np.allclose(s.numpy()[..., :3], np.linalg.svd(a, compute_uv=False)[..., :3])
    assert np.allclose((u * s[..., None, :]).numpy() @ np.swapaxes(v.numpy().conj(), -1, -2), a)
    shifted = aten.svd_lowrank(aten.tensor(a + 1), q=4, M=aten.ones(1, 1, dtype=u.dtype))
    assert np.allclose(shifted[1].numpy(), s.numpy(), atol=1e-6)


def test_pca_lowrank_is_the_svd_of_centered_data():
    a = low_rank(20, 5, rank=5) + 7
    u, s, v = aten.pca_lowrank(aten.tensor(a))
    assert u.shape == (20, 5) and s.shape == (5,) and v.shape == (5, 5)
    assert np.allclose(s.numpy(), np.linalg.svd(a - a.mean(0), compute_uv=False))
    plain = aten.pca_lowrank(aten.tensor(a), q=5, center=False)[1]
    assert np.allclose(plain.numpy(), np.linalg.svd(a, compute_uv=False))
    for wrong in ({"q": 6}, {"q": -1}, {"niter": -1}):
        with pytest.raises(ValueError, match="pca_lowrank"):
            aten.pca_lowrank(aten.tensor(a), **wrong)


def positive(n, *batch, seed=0):
    a = np.random.default_rng(seed).standard_normal((*batch, n, n))
    return a @ np.swapaxes(a, -1, -2) + n * np.eye(n)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_lobpcg_finds_the_ends_of_the_spectrum(largest, batch):
    manual_seed(0)
    a = positive(30, *batch)
    values, vectors = aten.lobpcg(aten.tensor(a), k=3, largest=largest, tol=1e-9)
    every = np.linalg.eigvalsh(a)
    expected = every[..., ::-1][..., :3] if largest else every[..., :3]
    assert np.allclose(values.numpy(), expected)
    x = vectors.numpy()
    assert np.allclose(a @ x, x * values.numpy()[..., None, :], atol=1e-5)
    assert np.allclose(np.swapaxes(x, -1, -2) @ x, np.eye(3), atol=1e-7)


def test_lobpcg_of_a_pencil_with_a_preconditioner_and_a_start():
    a, b = positive(24, seed=1), positive(24, seed=2)
    start = aten.tensor(np.random.default_rng(3).standard_normal((24, 4)))
    values, x = aten.lobpcg(
        aten.tensor(a),
        2,
        aten.tensor(b),
        start,
        iK=aten.tensor(np.linalg.inv(a)),
        largest=False,
        tol=1e-9,
    )
    lower = np.linalg.inv(np.linalg.cholesky(b))
    assert np.allclose(values.numpy(), np.linalg.eigvalsh(lower @ a @ lower.T)[:2])
    assert np.allclose(x.numpy().T @ b @ x.numpy(), np.eye(2), atol=1e-7)


def test_lobpcg_refuses_small_matrices():
    with pytest.raises(ValueError, match="at least 3"):
        aten.lobpcg(aten.eye(8), k=3)
    with pytest.raises(ValueError, match="method"):
        aten.lobpcg(aten.eye(8), method="other")


@pytest.mark.parametrize("density", [False, True])
def test_histogramdd_is_numpys(density):
    rng = np.random.default_rng(4)
    points, weight = rng.standard_normal((50, 3)), rng.random(50)
    for bins, range_ in (
        (4, None),
        ([2, 3, 4], None),
        ([2, 3, 4], [-1.0, 1.0, -2.0, 0.5, 0.0, 3.0]),
    ):
        pairs = None if range_ is None else [range_[i : i + 2] for i in (0, 2, 4)]
        expected, edges = np.histogramdd(points, bins, pairs, density=density, weights=weight)
        found = aten.histogramdd(
            aten.tensor(points), bins, range=range_, weight=aten.tensor(weight), density=density
        )
        assert np.allclose(found[0].numpy(), expected)
        for a, b in zip(found[1], edges, strict=True):
            assert np.allclose(a.numpy(), b)
    edges = [np.array([-1.0, 0.0, 0.5]), np.array([-2.0, 2.0]), np.array([0.0, 0.1, 1.0, 3.0])]
    found = aten.histogramdd(
        aten.tensor(points).reshape(5, 10, 3), [aten.tensor(e) for e in edges]
    )[0]
    assert np.array_equal(found.numpy(), np.histogramdd(points, edges)[0])
    with pytest.raises(RuntimeError, match="histogramdd"):
        aten.histogramdd(aten.tensor(points), [2, 3])
    with pytest.raises(RuntimeError, match="histogramdd"):
        aten.histogramdd(aten.tensor(points), 2, weight=aten.ones(3))
