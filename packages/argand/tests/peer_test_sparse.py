"""Sparse tensors against PyTorch: the lists of elements, whether they are coalesced, dtypes, text, and what is refused."""

from __future__ import annotations

import warnings

import pytest
import torch

import argand
import argand.nn.functional
import argand.optim
import argand.sparse


def operands(torch):
    """By name: not coalesced (U, V), coalesced (C), with a dense dimension (H), dense (D, W)."""
    u = torch.sparse_coo_tensor([[1, 0, 1], [0, 2, 0]], [0.3, 0.4, 0.5], (2, 3))
    v = torch.sparse_coo_tensor([[0, 1, 0], [2, 1, 2]], [1.0, 2.0, 3.0], (2, 3))
    values = torch.arange(6.0).reshape(3, 2)
    return {
        "torch": torch,
        "F": torch.nn.functional,
        "U": u,
        "V": v,
        "C": u.coalesce(),
        "K": v.coalesce(),
        "H": torch.sparse_coo_tensor([[1, 0, 1]], values, (3, 2)),
        "D": torch.arange(6.0).reshape(2, 3),
        "W": torch.arange(12.0).reshape(3, 4),
        "I": torch.sparse_coo_tensor([[0, 0, 1]], [1, 2, 3], (2,)),
    }


UNARY = (
    "abs neg sign sgn sqrt sin tan asin atan sinh tanh asinh atanh expm1 log1p floor ceil round trunc frac relu erf erfinv deg2rad rad2deg "
    "signbit isnan isinf isposinf isneginf positive nan_to_num square conj real any sum norm zeros_like clone t exp cos sigmoid all mean"
).split()
CALLS = [
    "U.to_dense()", "H.to_dense()", "I.to_dense()", "U.coalesce()", "H.coalesce()", "I.coalesce()", "D.to_sparse()", "D.to_sparse(1)",
    "D.to_sparse_coo()", "torch.tensor(3.0).to_sparse()", "torch.sparse_coo_tensor((2, 3))", "torch.sparse_coo_tensor(size=(2,))",
    "torch.sparse_coo_tensor([[0, 1]], torch.ones(2, 3))", "torch.sparse_coo_tensor([[0, 1]], torch.ones(2, 3), (4, 4))",
    "torch.sparse_coo_tensor([[0, 1]], [1.0], (4,))", "torch.sparse_coo_tensor([[0, 1]], torch.ones(2, 3), (4,))",
    "torch.sparse_coo_tensor([[1]], 1.0, (3,))", "torch.sparse_coo_tensor([[1, 5]], [1.0, 2], (3,), check_invariants=True)",
    "torch.sparse_coo_tensor([[1, -5]], [1.0, 2])", "torch.sparse_coo_tensor([[1, 0]], [1.0, 2], (3,), is_coalesced=True)",
    "torch.sparse_coo_tensor([[0, 0, 1]], [True, True, False], (2,)).coalesce()", "torch.sparse_coo_tensor([[0, 1]], [1, 2], dtype=torch.float64)",
    "U.indices()", "U.values()", "C.indices()", "C.values()", "D.coalesce()", "D.indices()", "D.values()", "D.is_coalesced()", "D._nnz()",
    "D.sparse_dim()", "D.dense_dim()", "(H.sparse_dim(), H.dense_dim(), H._nnz())", "(U.is_sparse, D.is_sparse, U.requires_grad)",
    "U + V", "C + V", "C + K", "U + K", "U - V", "C - K", "D + U", "D - U", "U + D", "U + 2", "H + H", "H + H.coalesce()", "H + torch.ones(3, 2).to_sparse()",
    "torch.add(U, V, alpha=2)", "torch.add(D, V, alpha=2)", "C + C.double()", "D + C.double()", "D.double() + C", "U + U.t()",
    "torch.ones(3, 2) + U", "D.clone().add_(U, alpha=-0.5)", "D.clone().sub_(U)", "U.clone().add_(V)", "C.clone().add_(K)",
    "U * V", "U * K", "C * V", "C * K", "U * D", "D * K", "U * 2", "2 * K", "U * torch.tensor(2.0, dtype=torch.float64)", "C * torch.ones(3)",
    "C * torch.ones(2, 1).double()", "C * 2.5j", "I * 2.5", "I / 2", "I.sin()", "C * C.t()", "H * torch.ones(2)", "H * H.coalesce()",
    "U / 2", "C / 2", "U / V", "U / D", "D / U", "2 / U", "torch.div(U, 2, rounding_mode='floor')", "U ** 2", "C ** 0.5", "C ** 0", "C ** -1",
    "C.clone().mul_(2)", "C.clone().div_(2)", "C.clone().neg_()", "U.clone().abs_()", "C.clone().sqrt_()", "U.clone().zero_()",
    "U.clone().copy_(V)", "U.clone().copy_(D)", "D.clone().copy_(U)", "U.clone().mul_(D)", "D.clone().mul_(U)", "-U",
    "U @ W", "C @ W", "torch.mm(U, W)", "torch.sparse.mm(U, W)", "torch.mv(U, W[:, 0])", "U @ W[:, 0]", "W.t() @ U.t()", "U @ V.t()",
    "torch.sparse.mm(C, K.t())", "C @ W.to_sparse()", "torch.ones(2, 4, 3) @ C.t()", "torch.bmm(torch.stack([C, C]), W.expand(2, 3, 4))",
    "C @ torch.ones(2, 3, 4)", "torch.dsmm(C, W)", "torch.hspmm(C, W)", "torch.spmm(C, W)", "torch.smm(U, W)", "torch.sparse.mm(C, D)",
    "torch.mm(C, W.double())", "F.linear(C, torch.ones(2, 3), torch.ones(2))", "F.linear(torch.ones(4, 3), C)", "H @ torch.ones(2, 2)",
    "torch.addmm(torch.ones(2, 4), U, W)", "torch.sparse.addmm(torch.ones(2, 4), U, W, beta=0.5, alpha=2)",
    "torch.sspaddmm(torch.ones(2, 4).to_sparse(), C, W)", "torch.addmm(torch.ones(2, 4).to_sparse(), C, W)",
    *(f"torch.sparse.sum({x}, {d})" for x in "UCH" for d in (0, 1, -1, (0, 1))),
    "torch.sparse.sum(U)", "torch.sparse.sum(U, 1, dtype=torch.float64)", "torch.sum(U, 0, keepdim=True)", "I.sum()", "I.sum(0)",
    *(f"torch.sparse.{f}({x}, {d})" for f in ("softmax", "log_softmax") for x in "UVH" for d in (0, 1)),
    "U.transpose(0, 1)", "C.T", "C.mT", "H.t()", "H.transpose(0, 1)", "H.permute(1, 0)", "U.permute(1, 0)", "C.clone().t_()", "C.movedim(0, 1)",
    "U.unsqueeze(0)", "C.unsqueeze(-1)", "H.unsqueeze(1)", "H.unsqueeze(2)", "torch.cat([U, V])", "torch.cat([C, K], 1)", "torch.cat([H, H], 1)",
    "torch.cat([U, D])", "torch.stack([U, V])", "torch.stack([H, H], 2)", "torch.index_select(C, 0, torch.tensor([1, 0]))",
    "torch.index_select(U, 1, torch.tensor([0, 0, 2]))", "H.index_select(1, torch.tensor([0, 0]))", "C.narrow_copy(1, 0, 2)", "C.select(1, 0)",
    "U[1]", "U[1, 0]", "C[None]", "C[..., 0]", "H[1]", "H[:, 1]", "C[0:1]", "C.unbind(0)", "len(U)",
    "D.sparse_mask(C)", "D.sparse_mask(U)", "K.sparse_mask(C)", "V.sparse_mask(U)", "H.coalesce().sparse_mask(H)",
    "U.to(torch.float64)", "C.half()", "C.bool()", "U.to(torch.float32) is U", "U.to_sparse() is U", "C.coalesce() is C", "U.cpu() is U",
    "torch.norm(C, 1)", "torch.norm(C, float('inf'))", "torch.norm(C, dim=1)", "U.new_zeros(2)", "torch.empty_like(H)", "torch.zeros_like(H, layout=torch.strided)", "U.item()", "bool(U)",
    "U.clone().sparse_resize_((3, 4), 2, 0)", "U.clone().sparse_resize_and_clear_((3, 4), 2, 0)", "U.clone().resize_as_sparse_(C)",
    "torch.sparse.spdiags(torch.arange(9.0).reshape(3, 3), torch.tensor([0, -1, 1]), (3, 3))", "U.exp()", "U.view(6)", "U == U", "U.numpy()",
    *(f"torch.{name}({x})" for name in UNARY for x in "UC"),
]  # fmt: skip


def facts(x):
    """What is compared exactly, and the numbers that are compared nearly."""
    if isinstance(x, tuple):
        parts = [facts(part) for part in x]
        return [part[0] for part in parts], sum((part[1] for part in parts), [])
    if not hasattr(x, "is_sparse"):
        return x, []
    head = [list(x.shape), str(x.dtype).rpartition(".")[2], x.is_sparse]
    if x.is_sparse:
        return [*head, x._indices().tolist(), x.is_coalesced()], [x._values().flatten().tolist()]
    return head, [x.flatten().tolist()]


def outcome(call, library):
    try:
        return facts(eval(call, operands(library)))
    except (RuntimeError, ValueError, TypeError) as error:
        kinds = (IndexError, RuntimeError, TypeError, ValueError)
        return next(kind for kind in kinds if isinstance(error, kind)), []


@pytest.mark.parametrize("call", CALLS)
def test_calls(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, actual = outcome(call, torch), outcome(call, argand)
    assert actual[0] == expected[0]
    assert len(actual[1]) == len(expected[1])
    for ours, theirs in zip(actual[1], expected[1], strict=True):
        assert ours == pytest.approx(theirs, rel=1e-6, abs=1e-7, nan_ok=True)


TEXTS = [
    "U", "C", "H", "I", "U.double()", "U.detach().requires_grad_()", "torch.sparse_coo_tensor((2, 3))", "torch.sparse_coo_tensor(torch.zeros(3, 0), torch.zeros(0, 2), (50, 50, 3, 2))",
    "torch.sparse_coo_tensor(torch.arange(2000).reshape(2, 1000) % 7, torch.arange(1000.0), (50, 50)).coalesce()",
    "torch.sparse_coo_tensor(torch.arange(60).reshape(2, 30) % 7, torch.arange(30.0) * 1000.12345, (50, 50))", "[U, 1]",
]  # fmt: skip


@pytest.mark.parametrize("call", TEXTS)
def test_text(call):
    expected, actual = repr(eval(call, operands(torch))), repr(eval(call, operands(argand)))
    assert actual.replace("argand.", "torch.") == expected


def trained(torch, optimizer, options):
    """Losses of 20 steps in which rows occur twice, and at times the table is used twice."""
    weight = (torch.arange(12.0).reshape(4, 3) / 7 - 0.6).requires_grad_()
    options = {k: torch.tensor(v) if isinstance(v, list) else v for k, v in options.items()}
    made = getattr(torch.optim, optimizer)([weight], **options)
    losses = []
    for step in range(20):
        rows = torch.tensor([(step * j) % 4 if (step + j) % 3 else 2 for j in range(1, 4)])
        made.zero_grad()
        loss = (torch.nn.functional.embedding(rows, weight, sparse=True) - 0.3).pow(2).sum()
        if step % 3 == 0:
            loss = loss + torch.nn.functional.embedding(rows[:2], weight, sparse=True).pow(2).sum()
        loss.backward()
        made.step()
        losses.append(loss.item())
    return losses, weight, made.state_dict()


@pytest.mark.parametrize(
    ("optimizer", "options"),
    [
        ("SparseAdam", {}),
        ("SparseAdam", {"lr": 0.1, "eps": 1e-3, "betas": (0.8, 0.95)}),
        ("SparseAdam", {"maximize": True}),
        ("SparseAdam", {"lr": [0.05]}),
        ("SGD", {"lr": 0.05}),
        ("SGD", {"lr": 0.05, "momentum": 0.5}),
        ("SGD", {"lr": 0.05, "momentum": 0.5, "nesterov": True}),
        ("SGD", {"lr": 0.05, "momentum": 0.5, "dampening": 0.5, "maximize": True}),
        ("Adagrad", {"lr": 0.1}),
        ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.2}),
    ],
)
def test_training(optimizer, options):
    losses, weight, state = trained(argand, optimizer, options)
    expected, their_weight, their_state = trained(torch, optimizer, options)
    assert losses == pytest.approx(expected, rel=1e-5)
    assert weight.flatten().tolist() == pytest.approx(
        their_weight.flatten().tolist(), rel=1e-5, abs=1e-6
    )
    assert weight.grad._indices().tolist() == their_weight.grad._indices().tolist()
    assert list(state["state"]) == list(their_state["state"])
    for ours, theirs in zip(state["state"].values(), their_state["state"].values(), strict=True):
        assert list(ours) == list(theirs)
        for name, value in theirs.items():
            if name == "momentum_buffer":
                assert ours[name]._indices().tolist() == value._indices().tolist()
            elif name == "step":
                assert float(ours[name]) == float(value)
                assert isinstance(ours[name], int) == isinstance(value, int)
            else:
                assert ours[name].flatten().tolist() == pytest.approx(
                    value.flatten().tolist(), rel=1e-4, abs=1e-6
                )


ACCUMULATED = [
    ["E([1, 2, 1])", "E([1, 2, 1])", "E([0, 3, 1, 1])"],
    ["E([1, 2, 1]) * S", "E([1, 2, 1]) * S", "E([0, 3, 1]) * S"],
    ["E([3, 2, 1])", "w * 2", "E([1])"],
    ["w * 2", "E([1])"],
    ["E([1, 2]).sum() + E([2, 3, 0]).sum() + E([0, 1]).sum()"],
    ["(E([1, 2, 0]) * S).sum() + (E([2, 3, 0]) * S).sum() + (E([0, 1, 1]) * S).sum()"],
    ["E([1, 2]).sum() + (w * 3).sum()"],
    ["(w * 3).sum() + E([1, 2]).sum() + E([0]).sum()"],
    ["E([[1, 3], [3, 0]], padding_idx=3)", "E([3], padding_idx=3)"],
    ["B([1, 2, 1, 0], 'sum')", "B([1, 2, 1, 0], 'mean') * S[:2]"],
    ["B([1, 2, 1, 0], 'mean', padding_idx=1)", "B([1, 2, 1, 0], 'sum', per_sample_weights=S[:, 0].repeat(2)[:4])"],
]  # fmt: skip


@pytest.mark.parametrize("terms", ACCUMULATED)
def test_gradients_accumulate(terms):
    seen = []
    for library in (torch, argand):
        F, tensor = library.nn.functional, library.tensor
        w = (library.arange(12.0).reshape(4, 3) / 7 - 0.6).requires_grad_()
        names = {
            "w": w,
            "S": library.arange(9.0).reshape(3, 3),
            "E": lambda rows, F=F, tensor=tensor, w=w, **k: F.embedding(
                tensor(rows), w, sparse=True, **k
            ),
            "B": lambda rows, mode, F=F, tensor=tensor, w=w, **k: F.embedding_bag(
                tensor(rows), w, tensor([0, 3]), sparse=True, mode=mode, **k
            ),
        }
        steps = []
        for term in terms:
            eval(term, names).sum().backward()
            steps.append(facts(w.grad))
        seen.append(steps)
    for theirs, ours in zip(*seen, strict=True):
        assert ours[0] == theirs[0]
        assert ours[1][0] == pytest.approx(theirs[1][0], rel=1e-6)
