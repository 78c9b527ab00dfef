"""Parametrizations, pruning and fusion against PyTorch, from equal weights and inputs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.utils.prune

import argand_aten as aten
import argand_nn as nn

pytestmark = pytest.mark.filterwarnings("ignore")
RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def close(ours, theirs, rtol=1e-4, atol=1e-5):
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=rtol, atol=atol)


def pair(name, *args, **options):
    """The same module in both libraries."""
    ours, theirs = (getattr(library, name)(*args, **options) for library in (nn, torch.nn))
    copy_state(ours, theirs)
    return ours, theirs


def copy_state(ours, theirs):
    assert list(ours.state_dict()) == list(theirs.state_dict())
    theirs.load_state_dict({k: torch.tensor(v.numpy()) for k, v in ours.state_dict().items()})


def same_calls(ours, theirs, *shape, calls=2):
    """Equal outputs, gradients and states over several calls in training, and one in evaluation."""
    for mode in [True] * calls + [False]:
        ours.train(mode)
        theirs.train(mode)
        x = normal(*shape)
        out, expected = ours(aten.tensor(x)), theirs(torch.tensor(x))
        close(out, expected)
        ours.zero_grad()
        theirs.zero_grad()
        (out * out).sum().backward()
        (expected * expected).sum().backward()
        for (name, a), b in zip(ours.named_parameters(), theirs.parameters(), strict=True):
            assert (a.grad is None) == (b.grad is None), name
            if a.grad is not None:
                close(a.grad, b.grad, 1e-3, 1e-4)
        for key, value in theirs.state_dict().items():
            close(ours.state_dict()[key], value)


WRAPPERS = {
    "weight norm": lambda u, m: u.parametrizations.weight_norm(m),
    "weight norm, one size": lambda u, m: u.parametrizations.weight_norm(m, dim=None),
    "weight norm, columns": lambda u, m: u.parametrizations.weight_norm(m, dim=1),
    "spectral norm": lambda u, m: u.parametrizations.spectral_norm(m, n_power_iterations=2),
    "spectral norm, columns": lambda u, m: u.parametrizations.spectral_norm(m, dim=1),
    "spectral norm of a vector": lambda u, m: u.parametrizations.spectral_norm(m, "bias"),
    "older weight norm": lambda u, m: u.weight_norm(m),
    "older spectral norm": lambda u, m: u.spectral_norm(m),
    "two": lambda u, m: u.parametrizations.weight_norm(u.parametrizations.spectral_norm(m), "bias"),
}


@pytest.mark.parametrize("name", WRAPPERS)
@pytest.mark.parametrize("layer", [("Linear", 4, 3), ("Conv2d", 4, 3, 2)], ids=lambda c: c[0])
def test_norms(name, layer):
    ours, theirs = pair(*layer)
    ours, theirs = WRAPPERS[name](nn.utils, ours), WRAPPERS[name](torch.nn.utils, theirs)
    copy_state(ours, theirs)
    assert repr(ours) == repr(theirs)
    same_calls(ours, theirs, *((5, 4) if layer[0] == "Linear" else (2, 4, 5, 5)))
    if name.startswith("older"):
        kind = name.split()[1]
        for utils, module in ((nn.utils, ours), (torch.nn.utils, theirs)):
            getattr(utils, f"remove_{kind}_norm")(module)
    else:
        for utils, module in ((nn.utils, ours), (torch.nn.utils, theirs)):
            for tensor in list(module.parametrizations):
                utils.parametrize.remove_parametrizations(module, tensor)
    assert sorted(ours.state_dict()) == sorted(theirs.state_dict())
    assert repr(ours) == repr(theirs)
    close(ours.weight, theirs.weight)


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
@pytest.mark.parametrize("map", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("trivial", [True, False])
def test_orthogonal(shape, map, trivial):
    ours, theirs = pair("Linear", *shape)
    options = {"orthogonal_map": map, "use_trivialization": trivial}
    if map != "householder" and not trivial:  # the start cannot be found
        with pytest.raises(NotImplementedError, match="orthogonal: got an assignment"):
            nn.utils.parametrizations.orthogonal(ours, **options)
        return
    for utils, module in ((nn.utils, ours), (torch.nn.utils, theirs)):
        utils.parametrizations.orthogonal(module, **options)
    copy_state(ours, theirs)
    assert repr(ours) == repr(theirs)
    same_calls(ours, theirs, 6, shape[0])
    for module in (ours, theirs):  # away from the start
        for p in module.parameters():
            p.data = p.data + 0.125
    same_calls(ours, theirs, 6, shape[0])


@pytest.mark.parametrize("bias", [False, True])
def test_fusion(bias):
    for layer, norm, shape in (
        (("Conv2d", 4, 3, 2), ("BatchNorm2d", 3), (2, 4, 5, 5)),
        (("Linear", 4, 3), ("BatchNorm1d", 3), (6, 4)),
    ):
        models = pair(*layer, bias=bias), pair(*norm)
        fused = []
        for i, (library, as_tensor) in enumerate(((nn, aten.tensor), (torch.nn, torch.tensor))):
            first, second = models[0][i], models[1][i]
            x = np.ones(shape, np.float32) * np.arange(shape[-1], dtype=np.float32)
            second(first(as_tensor(x)))
            kind = "conv" if layer[0] == "Conv2d" else "linear"
            fuse = getattr(library.utils, f"fuse_{kind}_bn_eval")
            fused.append(fuse(first.eval(), second.eval()))
        close(fused[0].weight, fused[1].weight)
        close(fused[0].bias, fused[1].bias)
        x = normal(*shape)
        ours = models[1][0](models[0][0](aten.tensor(x)))
        np.testing.assert_allclose(
            fused[0](aten.tensor(x)).detach().numpy(), ours.detach().numpy(), rtol=1e-3, atol=1e-4
        )


PRUNINGS = {
    "identity": lambda p, m: p.identity(m, "weight"),
    "smallest": lambda p, m: p.l1_unstructured(m, "weight", 5),
    "share": lambda p, m: p.l1_unstructured(m, "weight", 0.4),
    "rows": lambda p, m: p.ln_structured(m, "weight", 2, 2, 0),
    "columns": lambda p, m: p.ln_structured(m, "weight", 0.5, float("-inf"), -1),
    "several": lambda p, m: p.ln_structured(
        p.l1_unstructured(p.l1_unstructured(m, "weight", 4), "weight", 0.25), "weight", 1, 1, 1
    ),
    "global": lambda p, m: p.global_unstructured(
        [(m, "weight"), (m, "bias")], p.L1Unstructured, amount=0.3
    ),
}


@pytest.mark.parametrize("name", PRUNINGS)
def test_pruning(name):
    ours, theirs = pair("Linear", 4, 6)
    for utils, module in ((nn.utils, ours), (torch.nn.utils, theirs)):
        PRUNINGS[name](utils.prune, module)
        assert utils.prune.is_pruned(module)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for key, value in theirs.state_dict().items():
        close(ours.state_dict()[key], value, 0, 0)
    same_calls(ours, theirs, 5, 4)
    for utils, module in ((nn.utils, ours), (torch.nn.utils, theirs)):
        utils.prune.remove(module, "weight")
    close(ours.weight, theirs.weight)
    assert list(ours.state_dict()) == list(theirs.state_dict())
