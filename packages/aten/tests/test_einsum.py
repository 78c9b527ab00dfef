"""einsum against NumPy's, and its errors."""

from __future__ import annotations

import numpy as np
import pytest

import argand_aten as torch
import argand_c10 as c10
from argand_aten import contraction_path

CASES = {
    "...ij->...ji": [(2, 3, 4)],
    "...ij,...jk->...ik": [(2, 3, 4), (2, 4, 2)],
    "...ij,jk->...ik": [(2, 5, 3, 4), (4, 2)],
    "...a,...b->...ab": [(1, 3, 2), (4, 1, 2)],
    "b...i,b...i->b...": [(2, 3, 4), (2, 3, 4)],
    "...,...": [(3,), (2, 3)],
    "...ii->...i": [(2, 3, 3)],
    "...ij->...": [(3, 2, 3)],
    "bhid,bhjd->bhij": [(1, 2, 3, 4), (1, 2, 5, 4)],
    "ij,jk,kl->il": [(2, 3), (3, 4), (4, 2)],
    "ij,ij": [(2, 3), (2, 3)],
    "ba": [(2, 3)],
    "i j -> j i": [(2, 3)],
    "ii": [(3, 3)],
    "ij->": [(2, 0)],
    "i,j->ij": [(2,), (3,)],
}


@pytest.mark.parametrize("equation", CASES)
def test_values(equation):
    arrays = [np.cos(np.arange(np.prod(s), dtype=np.float64)).reshape(s) for s in CASES[equation]]
    found = torch.einsum(equation, [c10.from_numpy(a) for a in arrays]).numpy()
    expected = np.einsum(equation, *arrays)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_lists_of_indices():
    a, b = torch.rand(2, 3, 4), torch.rand(4, 5)
    expected = torch.einsum("abc,cd->dab", a, b)
    assert torch.equal(torch.einsum(a, [0, 1, 2], b, [2, 3], [3, 0, 1]), expected)
    assert torch.equal(torch.einsum(a, [..., 30], b, [30, 3]), torch.einsum("...c,cd", a, b))
    for wrong in ((a, b), (a, "abc")):
        with pytest.raises(RuntimeError, match="einsum: got"):
            torch.einsum(*wrong)


@pytest.mark.parametrize(
    ("equation", "shapes", "message"),
    [
        ("ij,jk", [(2, 3)], "got 1 operands, expected 2"),
        ("ij", [(2, 3, 4)], "does not fit 'ij'"),
        ("ij,jk", [(2, 3), (4, 5)], "index 'j' has sizes 3 and 4"),
        ("ii", [(2, 3)], "index 'i' of one operand has sizes 2 and 3"),
        ("ij->ii", [(2, 2)], "'i' of 'ij->ii' appears more than once"),
        ("ij->k", [(2, 2)], "output index 'k' of 'ij->k' is in no operand"),
        ("i1", [(2, 2)], "got the index '1' in 'i1'"),
        ("ij->...i...", [(2, 2)], "output index '.' of 'ij->...i...' is in no operand"),
    ],
)
def test_errors(equation, shapes, message):
    with pytest.raises(RuntimeError, match=message.replace("->", ".>")):
        torch.einsum(equation, *[torch.ones(s) for s in shapes])


def test_kinds_of_errors():
    x = torch.ones(2, 3)
    for error, given in (
        (ValueError, ("ij",)),
        (ValueError, ("ij", [])),
        (ValueError, (x, [0, 52])),
        (ValueError, (x, [0, -1])),
        (TypeError, (x, ["a", "b"])),
        (TypeError, (["ij"], x)),
        (TypeError, ("ij", [[1.0]])),
        (c10.DTypeError, ("ij,jk", x > 0, x.T > 0)),
    ):
        with pytest.raises(error, match="^einsum: got"):
            torch.einsum(*given)


@pytest.mark.parametrize("enabled", [False, True])
def test_several_operands_in_any_order_of_products(enabled, monkeypatch):
    monkeypatch.setattr(contraction_path.settings, "enabled", enabled)
    rng = np.random.default_rng(5)
    for equation, shapes in {
        "ij,jk,kl,lm->im": [(20, 3), (3, 30), (30, 2), (2, 10)],
        "a,ab,bc,cd,d->": [(2,), (2, 3), (3, 4), (4, 5), (5,)],
        "...ij,...jk,kl->...il": [(2, 3, 4), (1, 4, 5), (5, 2)],
        "ab,cd,ef->ace": [(2, 3), (3, 2), (2, 2)],
    }.items():
        arrays = [rng.standard_normal(s) for s in shapes]
        found = torch.einsum(equation, *map(torch.tensor, arrays))
        np.testing.assert_allclose(
            found.numpy(), np.einsum(equation, *arrays), rtol=1e-10, atol=1e-12
        )
    with pytest.raises(RuntimeError, match="sizes 5 and 6"):
        torch.einsum("ij,jk,kl->il", torch.ones(3, 4), torch.ones(4, 5), torch.ones(6, 2))


def test_the_order_is_the_librarys_where_it_is_installed():
    shapes = [(300, 4), (4, 500), (500, 2)]
    by_hand = [(0, 1), (1, 0)]
    with_library = contraction_path.contraction_path(["ij", "jk", "kl"], "il", shapes)
    assert with_library == (
        [(1, 2), (0, 1)] if contraction_path.settings.is_available() else by_hand
    )
    assert contraction_path.contraction_path(["ij", "jk"], "ik", shapes[:2]) == [(0, 1)]
    assert contraction_path.contraction_path(["ij"], "ij", shapes[:1]) == []


def test_the_product_lies_as_the_result_is_asked_for():
    x, y = torch.rand(3, 4), torch.rand(4, 5)
    assert torch.einsum("ij,jk->ik", x, y).is_contiguous()
    assert torch.einsum("ij,jk->ki", x, y).is_contiguous()
    assert torch.einsum("ij,jk->i", x, y).is_contiguous()
    assert torch.einsum("ij->ji", x).stride() == (1, 4)
    assert torch.einsum("bik,bkj->jbi", torch.rand(2, 3, 4), torch.rand(2, 4, 5)).stride() == (
        3,
        15,
        1,
    )
