"""Sparse tensors: elements and gradients, what the engine does with them, and that nothing computes with what is not there."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest
from helpers import close, leaf

import argand_aten as aten
import argand_autograd as autograd
import argand_c10 as c10
from argand_autograd import gradcheck, sparse_coo_tensor
from argand_autograd.sparse import embedding
from argand_c10 import Tensor

INDICES = [[1, 0, 1], [0, 2, 0]]


def matrix(values=(0.5, 0.25, 1.0)):
    """(2, 3), the element (1, 0) given twice."""
    return sparse_coo_tensor(INDICES, aten.tensor(list(values)), (2, 3))


def elements(x):
    return x._indices().tolist(), x._values().tolist(), x.is_coalesced()


def test_what_a_sparse_tensor_is():
    x = matrix()
    assert (x.is_sparse, x.layout, x.device.type, x.is_cpu, x.is_meta) == (
        True, c10.sparse_coo, "cpu", True, False,
    )  # fmt: skip
    assert (x.shape, x.dtype, x.dim(), x.numel(), len(x)) == ((2, 3), c10.float32, 2, 6, 2)
    assert (x._nnz(), x.sparse_dim(), x.dense_dim(), x.is_coalesced()) == (3, 2, 0, False)
    dense = aten.ones(2)
    assert (dense.is_sparse, dense.layout, dense.sparse_dim(), dense.dense_dim()) == (
        False, c10.strided, 0, 1,
    )  # fmt: skip
    assert c10.sparse_coo is not c10.strided and repr(c10.sparse_csr) == "argand.sparse_csr"
    assert pickle.loads(pickle.dumps(c10.sparse_coo)) is c10.sparse_coo


def test_doubles_are_added_in_order():
    assert elements(matrix().coalesce()) == ([[0, 1], [2, 0]], [0.25, 1.5], True)
    assert matrix().to_dense().tolist() == [[0, 0, 0.25], [1.5, 0, 0]]
    with pytest.raises(RuntimeError, match="uncoalesced"):
        matrix().values()
    for wrong, message in (
        ([[0, 1], [0, 5]], "size is 3 but found index 5"),
        ([[0, 1], [0, -1]], "negative index -1 for dim 1"),
    ):
        x = sparse_coo_tensor(wrong, [1.0, 2.0], (2, 3))
        for use in (lambda x: x.to_dense(), lambda x: x.coalesce(), lambda x: x @ aten.ones(3, 2)):
            with pytest.raises(RuntimeError, match=message):
                use(x)


def test_nothing_computes_with_missing_elements():
    x, dense = matrix(), aten.ones(2, 3)
    for call in (
        lambda: aten.exp(x), lambda: aten.where(dense > 0, x, dense), lambda: aten.stack([dense, x]), lambda: x.view(6), lambda: dense == x,
        lambda: x.reshape(3, 2), lambda: x.sort(), lambda: dense.copy_(x), lambda: x.expand(4, 2, 3), lambda: x.tolist(), lambda: x.data_ptr(),
        lambda: x.untyped_storage(), lambda: x.contiguous(), lambda: x.fill_(1), lambda: aten.einsum("ii", x),
    ):  # fmt: skip
        with pytest.raises((RuntimeError, TypeError)):
            call()
    for read in (
        np.asarray,
        memoryview,
        Tensor.numpy,
        c10.Parameter,
        lambda x: x.as_subclass(Tensor),
    ):
        with pytest.raises((RuntimeError, TypeError, BufferError)):
            read(x)
    # Also where no Python code chooses the operator.
    with c10.DisableArgandFunction(), pytest.raises(NotImplementedError, match="exp: got a tensor"):
        aten.exp(x)
    with c10.DisableArgandFunction():
        assert elements(aten.neg(x))[1] == [-0.5, -0.25, -1.0]


@pytest.mark.parametrize(
    "function",
    [
        lambda s, d: s.to_dense() * d,
        lambda s, d: s.coalesce().values() * d[:, 0],
        lambda s, d: s @ d.t(),
        lambda s, d: d.t() @ s,
        lambda s, d: s @ d[0],
        lambda s, d: (s * d).to_dense(),
        lambda s, d: (s + s * 2 - s / 3).to_dense() * d,
        lambda s, d: d + s,
        lambda s, d: (s @ s.t()).to_dense(),
        lambda s, d: s.sum(0).to_dense() * d,
        lambda s, d: (s * s.coalesce()).to_dense() * s.norm(),
        lambda s, d: aten.cat([s, s.tanh()]).to_dense(),
        lambda s, d: s.index_select(1, aten.tensor([0, 2, 0])).to_dense() * d,
        lambda s, d: d.sparse_mask(s).to_dense() * s.to_dense(),
        lambda s, d: aten.addmm(d[:, :2], s, d.t(), beta=0.5, alpha=2.0),
        lambda s, d: (d * d).to_sparse().sum(1).to_dense(),
    ],
)
def test_gradients_go_through_values_and_dense_operands(function):
    values = leaf([0.5, 0.25, 1.0])
    dense = leaf([[1.0, 2.0, 3.0], [4.0, 5.0, 6.5]])
    assert gradcheck(
        lambda v, d: function(sparse_coo_tensor(INDICES, v, (2, 3)), d), (values, dense)
    )


def test_a_sparse_leaf_has_a_sparse_gradient():
    x = matrix().coalesce().requires_grad_()
    dense = aten.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert x.is_leaf and x.requires_grad and not (x * 2).is_leaf
    (x.to_dense() * dense).sum().backward()
    assert elements(x.grad) == ([[0, 1], [2, 0]], [3.0, 4.0], True)
    (gradient,) = autograd.grad((x @ dense.t()).sum(), x)
    assert gradient._values().tolist() == [9.0, 5.0]
    assert x.detach().requires_grad is False
    x.grad = None
    assert x.grad is None
    values = aten.ones(3, requires_grad=True)
    made = sparse_coo_tensor(INDICES, values, (2, 3))
    assert made.requires_grad and not made.is_leaf
    assert sparse_coo_tensor(INDICES, values, (2, 3), requires_grad=True).is_leaf


def test_gradients_hold_a_double_once():
    x = matrix().requires_grad_()
    seen = []
    x.register_hook(lambda grad: seen.append(elements(grad)))
    dense = aten.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
    expected = ([[0, 1], [2, 0]], [3.0, 4.0], True)
    (gradient,) = autograd.grad((x.to_dense() * dense).sum(), x, create_graph=True)
    assert elements(gradient) == expected
    gradient.to_dense().sum().backward()
    assert dense.grad.tolist() == [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    (x.to_dense() * dense).sum().backward()
    assert elements(x.grad) == expected and seen == [expected] * 2
    x.grad = x.grad
    x.register_hook(lambda grad: grad * 2)
    (x.to_dense() * dense).sum().backward()
    assert x.grad._values().tolist() == [9.0, 12.0]


def test_gradients_of_a_table():
    weight = (aten.arange(12.0).reshape(4, 3)).requires_grad_()
    scale = aten.arange(1.0, 10.0).reshape(3, 3)
    rows = aten.tensor([1, 2, 1])
    (embedding(weight, rows) * scale).sum().backward()
    first = weight.grad
    assert elements(first) == ([[1, 2, 1]], scale.tolist(), False)
    (embedding(weight, rows) * scale).sum().backward()
    # Merged as lists in order would be, in the same object.
    assert weight.grad is first and elements(first)[:2] == ([[1, 2, 1]], (scale * 2).tolist())
    embedding(weight, rows).sum().backward()  # an expanded gradient: concatenated
    assert first._indices().tolist() == [[1, 2, 1, 1, 2, 1]]
    (weight * 1.0).sum().backward()
    assert not weight.grad.is_sparse
    assert weight.grad.tolist() == [[1] * 3, [19, 23, 27], [10, 12, 14], [1] * 3]
    kept = weight.grad
    embedding(weight, rows).sum().backward()
    assert weight.grad is kept and kept[1].tolist() == [21, 25, 29]


@pytest.mark.parametrize("dense_first", [False, True])
def test_sparse_and_dense_gradients_of_one_value(dense_first):
    weight = aten.ones(4, 3).requires_grad_()
    uses = [embedding(weight, aten.tensor([1, 1])).sum(), (weight * 2).sum()]
    a, b = uses[::-1] if dense_first else uses
    (a + b).backward()
    assert not weight.grad.is_sparse and weight.grad[:, 0].tolist() == [2, 4, 2, 2]


def test_hooks_and_values_in_between_get_sparse_gradients():
    seen = []
    weight = aten.ones(4, 3).requires_grad_()
    weight.register_hook(lambda g: seen.append(elements(g)[0]) or g * 2)
    weight.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.is_sparse))
    between = weight * 1
    between.retain_grad()
    embedding(weight, aten.tensor([2])).sum().backward()
    assert seen == [[[2]], True] and weight.grad._values().tolist() == [[2.0] * 3]
    with autograd.detect_anomaly():
        embedding(weight, aten.tensor([0])).sum().backward()
    (gradient,) = autograd.grad(embedding(weight, aten.tensor([3, 0])).sum(), weight)
    assert gradient.is_sparse and gradient._indices().tolist() == [[3, 0]]


def test_gradients_of_sparse_gradients():
    weight = leaf([[1.0, 2.0], [3.0, 4.0]])
    (gradient,) = autograd.grad(
        embedding(weight, aten.tensor([1, 1])).pow(3).sum(), weight, create_graph=True
    )
    (gradient.to_dense() ** 2).sum().backward()
    # d/dw of (2 * 3 w^2)^2
    assert close(weight.grad.to_dense(), [[0.0, 0.0], [144 * 27.0, 144 * 64.0]])


def test_assigned_gradients():
    weight = aten.ones(4, 3).requires_grad_()
    weight.grad = sparse_coo_tensor([[1]], aten.ones(1, 3), (4, 3))
    assert weight.grad._indices().tolist() == [[1]]
    with pytest.raises(RuntimeError, match="different size"):
        weight.grad = sparse_coo_tensor([[1]], aten.ones(1, 3), (5, 3))
    with pytest.raises(RuntimeError, match="different type"):
        weight.grad = weight.grad.double()
    weight.grad.zero_()
    assert weight.grad._nnz() == 0 and weight.grad.to_dense().sum().item() == 0


def test_gradients_live_as_long_as_they_are_held():
    weight = aten.ones(4, 3).requires_grad_()
    embedding(weight, aten.tensor([1])).sum().backward()
    gc.collect()
    gradient = weight.grad
    assert gradient._indices().tolist() == [[1]]
    dead = weakref.ref(gradient._values())
    del gradient
    weight.grad = None
    gc.collect()
    assert dead() is None


def test_a_gradient_that_somebody_holds_is_copied():
    weight, held = aten.ones(4, 3).requires_grad_(), []
    weight.register_hook(held.append)
    embedding(weight, aten.tensor([1])).sum().backward()
    weight.grad._values().mul_(5)
    assert held[0]._values().tolist() == [[1.0] * 3]


def test_copies():
    with pytest.warns(UserWarning, match="copy construct"):
        assert elements(c10.tensor(matrix())) == elements(matrix())
    x = matrix().requires_grad_()
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert elements(y) == elements(x) and y.requires_grad and y.is_leaf
        assert y._values().data_ptr() != x._values().data_ptr()
    assert copy.copy(x)._values() is x._values()
    assert elements(x.detach().clone()) == elements(x)
    y = x.detach().double().t()
    assert y.dtype == c10.float64 and y.shape == (3, 2) and y._indices().tolist() == INDICES[::-1]


def test_in_place_operators_keep_the_object():
    x = matrix()
    same = x
    x += matrix()
    x *= 2
    x.t_()
    assert x is same and x.shape == (3, 2) and x.to_dense()[0, 1].item() == 6.0
    with pytest.raises(RuntimeError, match="leaf"):
        matrix().requires_grad_().add_(matrix())
    out = aten.zeros(2, 3)
    aten.mm(matrix(), aten.eye(3), out=out)
    assert out.tolist() == matrix().to_dense().tolist()
    with pytest.raises(RuntimeError, match="out= of layout"):
        aten.mm(matrix(), aten.eye(3), out=matrix())
