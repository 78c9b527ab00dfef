"""Recurrent networks against PyTorch: outputs, states and gradients, dense and packed."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import argand_aten as aten
import argand_nn as nn

RNG = np.random.default_rng(0)
CASES = [
    *[
        (name, options)
        for name in ("RNN", "LSTM", "GRU")
        for options in (
            {},
            {"num_layers": 2, "bidirectional": True},
            {"bias": False, "batch_first": True},
            {"num_layers": 3, "batch_first": True, "bidirectional": True},
        )
    ],
    ("RNN", {"nonlinearity": "relu", "num_layers": 2}),
    ("LSTM", {"proj_size": 3, "num_layers": 2, "bidirectional": True}),
]


def both(*shape):
    array = RNG.standard_normal(shape).astype(np.float32)
    return aten.tensor(array).requires_grad_(), torch.tensor(array).requires_grad_()


def pair(name, *args, **options):
    """The same module in both libraries."""
    ours, theirs = (getattr(library, name)(*args, **options) for library in (nn, torch.nn))
    theirs.load_state_dict({k: torch.tensor(v.numpy()) for k, v in ours.state_dict().items()})
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert repr(ours) == repr(theirs)
    return ours, theirs


def tensors(value):
    if isinstance(value, tuple | list):
        return [t for part in value for t in tensors(part)]
    return [value]


def equal(ours, theirs):
    for a, b in zip(tensors(ours), tensors(theirs), strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["dense", "state", "unbatched", "packed", "unsorted with state"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_network(case, kind):
    name, options = case
    modules = pair(name, 5, 7, **options)
    batch_first = options.get("batch_first", False)
    shape = (11, 5) if kind == "unbatched" else (4, 11, 5) if batch_first else (11, 4, 5)
    inputs, states = both(*shape), [None, None]
    if "state" in kind:
        layers = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
        sizes = (options.get("proj_size", 7), 7) if name == "LSTM" else (7,)
        parts = list(zip(*[both(layers, 4, size) for size in sizes], strict=True))
        states = parts if name == "LSTM" else [part[0] for part in parts]
    lengths = [4, 1, 11, 4] if "unsorted" in kind else [11, 4, 4, 1]
    results = []
    for library, module, x, state in zip((nn, torch.nn), modules, inputs, states, strict=True):
        if "packed" in kind or "unsorted" in kind:
            utils = library.utils.rnn
            packed = utils.pack_padded_sequence(
                x, lengths, batch_first=batch_first, enforce_sorted="unsorted" not in kind
            )
            output, last = module(packed, state)
            output, found = utils.pad_packed_sequence(output, batch_first=batch_first)
            assert found.tolist() == lengths
        else:
            output, last = module(x, state)
        loss = (output * output).sum()
        for part in tensors(last):
            loss = loss + (part * part * part).sum()
        loss.backward()
        leaves = [x, *([] if state is None else tensors(state)), *module.parameters()]
        results.append((output, last, [leaf.grad for leaf in leaves]))
    equal(*results)


@pytest.mark.parametrize("name", ["RNNCell", "LSTMCell", "GRUCell"])
@pytest.mark.parametrize("bias", [False, True])
def test_cell(name, bias):
    modules = pair(name, 5, 7, bias=bias)
    for shape in ((4, 5), (5,)):
        inputs = both(*shape)
        results = []
        for module, x in zip(modules, inputs, strict=True):
            module.zero_grad()
            state = module(x, module(x))
            sum((part * part).sum() for part in tensors(state)).backward()
            results.append((state, x.grad, [p.grad for p in module.parameters()]))
        equal(*results)


def test_padding_and_packing():
    ours, theirs = nn.utils.rnn, torch.nn.utils.rnn
    parts = [both(length, 3) for length in (2, 5, 1)]
    mine, other = ([p[i] for p in parts] for i in (0, 1))
    for options in ({}, {"batch_first": True, "padding_value": 7.0}, {"padding_side": "left"}):
        equal(ours.pad_sequence(mine, **options), theirs.pad_sequence(other, **options))
    packed, expected = (u.pack_sequence(p, False) for u, p in ((ours, mine), (theirs, other)))
    equal(list(packed), list(expected))
    equal(ours.unpack_sequence(packed), theirs.unpack_sequence(expected))
    padded = [
        u.pad_packed_sequence(p, padding_value=-1.0, total_length=8)
        for u, p in ((ours, packed), (theirs, expected))
    ]
    equal(*padded)
    equal(
        ours.unpad_sequence(padded[0][0], padded[0][1]),
        theirs.unpad_sequence(padded[1][0], padded[1][1]),
    )
