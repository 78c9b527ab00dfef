"""Pruning, fusion of batch norms, and modules without initialisation."""

from __future__ import annotations

import numpy as np
import pytest

import argand_aten as aten
import argand_c10 as c10
import argand_nn as nn
from argand_nn.utils import prune


def array(tensor):
    return tensor.detach().numpy()


def test_masks_and_calls():
    layer = nn.Linear(4, 3)
    start = array(layer.weight).copy()
    assert prune.l1_unstructured(layer, "weight", 5) is layer
    assert list(layer.state_dict()) == ["bias", "weight_orig", "weight_mask"]
    assert prune.is_pruned(nn.Sequential(layer)) and not prune.is_pruned(nn.Linear(1, 1))
    kept = np.abs(start) > np.sort(np.abs(start).ravel())[4]
    np.testing.assert_array_equal(array(layer.weight_mask), kept)
    np.testing.assert_array_equal(array(layer.weight), start * kept)
    layer.weight_orig.data = layer.weight_orig.data * 2  # as an optimizer does
    x = np.random.default_rng(0).standard_normal((2, 4)).astype(np.float32)
    out = layer(aten.tensor(x))
    expected = x @ (2 * start * kept).T + array(layer.bias)
    np.testing.assert_allclose(array(out), expected, rtol=1e-5, atol=1e-6)
    out.sum().backward()
    assert (array(layer.weight_orig.grad)[~kept] == 0).all()
    original = layer.weight_orig
    prune.remove(layer, "weight")
    assert layer.weight is original and not layer._forward_pre_hooks
    np.testing.assert_array_equal(array(layer.weight), 2 * start * kept)
    with pytest.raises(ValueError, match="'weight' of Linear is not pruned"):
        prune.remove(layer, "weight")


def test_structured():
    layer = nn.Conv2d(3, 6, 2)
    sizes = np.sqrt((array(layer.weight) ** 2).sum((1, 2, 3)))
    prune.ln_structured(layer, "weight", 0.5, 2, 0)
    rows = array(layer.weight_mask).reshape(6, -1)
    assert (rows.min(1) == rows.max(1)).all()
    assert set(np.flatnonzero(rows[:, 0] == 0)) == set(np.argsort(sizes)[:3])
    prune.random_structured(layer, "weight", 1, 1)  # of the three channels, within what is left
    mask = array(layer.weight_mask)
    assert (mask.reshape(6, 3, 4).sum(2) > 0).sum() == 3 * 2
    with pytest.raises(IndexError, match="prune: got dim 4"):
        prune.random_structured(nn.Linear(2, 2), "weight", 1, 4)


def test_several_rounds_prune_what_is_left():
    layer = nn.Linear(10, 10)
    c10.manual_seed(0)
    for share, left in ((0.5, 50), (0.2, 40), (10, 30)):
        prune.random_unstructured(layer, "weight", share)
        assert array(layer.weight_mask).sum() == left
    assert len(layer._forward_pre_hooks) == 1
    hook = next(iter(layer._forward_pre_hooks.values()))
    assert isinstance(hook, prune.PruningContainer) and len(hook) == 3
    mask = aten.ones(10, 10)
    mask[0] = 0
    before = array(layer.weight_mask)
    prune.custom_from_mask(layer, "weight", mask)
    np.testing.assert_array_equal(array(layer.weight_mask), before * array(mask))


def test_global_pruning():
    layers = nn.Linear(4, 3), nn.Linear(3, 2)
    pairs = [(layer, "weight") for layer in layers]
    values = np.concatenate([np.abs(array(layer.weight)).ravel() for layer in layers])
    limit = np.sort(values)[7]
    prune.global_unstructured(pairs, prune.L1Unstructured, amount=8)
    for layer in layers:
        kept = np.abs(array(layer.weight_orig)) > limit
        np.testing.assert_array_equal(array(layer.weight_mask), kept)
    scores = {pairs[0]: aten.ones(3, 4), pairs[1]: aten.zeros(2, 3)}
    others = [(nn.Linear(4, 3), "weight"), (nn.Linear(3, 2), "weight")]
    scores = dict(zip(others, scores.values(), strict=True))
    prune.global_unstructured(others, prune.L1Unstructured, importance_scores=scores, amount=6)
    assert array(others[0][0].weight_mask).all() and not array(others[1][0].weight_mask).any()
    with pytest.raises(TypeError, match="got a method of type 'structured'"):
        prune.global_unstructured(pairs, prune.LnStructured, amount=1, n=2)


def test_scores_errors_and_tensors():
    layer = nn.Linear(2, 2)
    scores = aten.tensor([[4.0, 3.0], [2.0, 1.0]])
    prune.l1_unstructured(layer, "weight", 2, importance_scores=scores)
    assert layer.weight_mask.tolist() == [[1.0, 1.0], [0.0, 0.0]]
    with pytest.raises(ValueError, match="got amount 9, expected at most 2"):
        prune.l1_unstructured(layer, "weight", 9)
    layer(aten.ones(1, 2))  # is as it was
    assert len(layer._forward_pre_hooks) == 1
    with pytest.raises(ValueError, match="a share in"):
        prune.L1Unstructured(1.5)
    with pytest.raises(TypeError, match="got amount 'half'"):
        prune.L1Unstructured("half")
    fresh = nn.Linear(2, 2)
    with pytest.raises(ValueError, match="got amount 9, expected at most 4"):
        prune.l1_unstructured(fresh, "weight", 9)
    assert set(fresh.state_dict()) == {"weight", "bias"} and not fresh._forward_pre_hooks
    pruned = prune.L1Unstructured(1).prune(scores)
    assert pruned.tolist() == [[4.0, 3.0], [2.0, 0.0]]


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("affine", [False, True])
def test_fusion(bias, affine):
    for first, norm, shape in (
        (nn.Conv2d(3, 4, 2, bias=bias), nn.BatchNorm2d(4, affine=affine), (2, 3, 5, 5)),
        (nn.Linear(3, 4, bias=bias), nn.BatchNorm1d(4, affine=affine), (6, 3)),
    ):
        x = aten.randn(*shape)
        for p in norm.parameters():
            p.data = aten.rand(4) + 0.5
        for _ in range(3):
            norm(first(x) * 3)
        fuse = nn.utils.fuse_conv_bn_eval if shape[2:] else nn.utils.fuse_linear_bn_eval
        with pytest.raises(AssertionError, match="got a module in training"):
            fuse(first, norm)
        fused = fuse(first.eval(), norm.eval())
        np.testing.assert_allclose(array(fused(x)), array(norm(first(x))), rtol=1e-4, atol=1e-5)
        assert (first.bias is None) == (not bias) and type(fused) is type(first)


def test_skip_init():
    layer = nn.utils.skip_init(nn.Linear, 4, 3, bias=False)
    assert layer.weight.device.type == "cpu" and layer.weight.shape == (3, 4)
    assert isinstance(layer.weight, nn.Parameter)
    with pytest.raises(RuntimeError, match="constructor takes device"):
        nn.utils.skip_init(nn.ReLU)
