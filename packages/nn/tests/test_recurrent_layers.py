"""The CPU's kernels of recurrent layers: against their bodies, step by step, whatever the sizes, dtypes and threads."""

from __future__ import annotations

import numpy as np
import pytest

import argand_aten as aten
import argand_c10 as c10
import argand_nn as nn
from argand_autograd import no_grad
from argand_nn.functional import recurrent

RNG = np.random.default_rng(0)
SIZES = [(1, 1, 1), (3, 2, 5), (6, 1, 16), (9, 11, 50), (5, 70, 7)]  # steps, batch, hidden
TOLERANCE = {c10.float64: 1e-12, c10.float32: 2e-5, c10.bfloat16: 3e-2, c10.float16: 4e-3}


def values(*shape, dtype=c10.float64):
    return aten.tensor(RNG.standard_normal(shape) * 0.5).to(dtype)


def layer(mode, steps, batch, size, dtype):
    """(the operator, that of its gradient, its body, arguments before `reverse`)."""
    gates = {"lstm": 4, "gru": 3}.get(mode, 1)
    x, h = values(steps, batch, gates * size, dtype=dtype), values(batch, size, dtype=dtype)
    w = values(gates * size, size, dtype=dtype) / size**0.5
    if mode == "lstm":
        return aten.lstm_layer, aten.ops._lstm_by_steps, (x, h, values(batch, size, dtype=dtype), w)
    if mode == "gru":
        return aten.gru_layer, aten.ops._gru_by_steps, (x, h, w, values(3 * size, dtype=dtype))
    return aten.rnn_layer, aten.ops._rnn_by_steps, (x, h, w, mode == "relu")


def same(found, expected, tolerance):
    for a, b in zip(*(r if isinstance(r, tuple) else (r,) for r in (found, expected)), strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype and a.is_contiguous()
        a, b = (t.detach().to(c10.float64).numpy() for t in (a, b))
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def gradients(mode, arguments, results, reverse, recorded):
    """Of random gradients of all results: by the kernel, or where they are recorded by the body."""
    rng = np.random.default_rng(1)
    results = results if isinstance(results, tuple) else (results,)
    grads = [aten.tensor(rng.standard_normal(r.shape)).to(r.dtype) for r in results]
    grads[0] = grads[0].requires_grad_(recorded)
    x, h, *rest = arguments
    if mode == "lstm":
        return aten.lstm_layer_backward(*grads, h, *rest, reverse, *results)
    if mode == "gru":
        return aten.gru_layer_backward(*grads, x, h, rest[0], reverse, *results)
    return aten.rnn_layer_backward(*grads, h, *rest, reverse, *results)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("mode", ["lstm", "gru", "tanh", "relu"])
def test_kernels_do_what_their_bodies_do(mode, dtype, reverse):
    for sizes in SIZES:
        op, by_steps, arguments = layer(mode, *sizes, dtype)
        kept = () if mode in ("tanh", "relu") else (True,)
        results = op(*arguments, reverse, *kept)
        same(results, by_steps(*arguments, reverse, *kept), TOLERANCE[dtype])
        if kept:
            same(
                op(*arguments, reverse, False),
                by_steps(*arguments, reverse, False),
                TOLERANCE[dtype],
            )
        found, expected = (gradients(mode, arguments, results, reverse, r) for r in (False, True))
        assert expected[0].requires_grad and not found[0].requires_grad
        same(found, expected, 3 * TOLERANCE[dtype])


@pytest.mark.parametrize("mode", ["lstm", "gru", "tanh"])
def test_results_do_not_depend_on_threads_or_company(mode):
    before = c10.get_num_threads()
    op = layer(mode, 1, 1, 1, c10.float32)[0]
    for sizes in (
        (6, 37, 40),
        (5, 2, 300),
        (2, 5, 220),
    ):  # by sequences, by columns, without packing
        _, _, arguments = layer(mode, *sizes, c10.float32)
        found = []
        for threads in (1, 2, 3):
            c10.set_num_threads(threads)
            results = op(*arguments)
            results = results if isinstance(results, tuple) else (results,)
            grads = gradients(mode, arguments, results, False, False)
            found.append([t.numpy() for t in (*results, *grads)])
        c10.set_num_threads(before)
        for other in found[1:]:
            for a, b in zip(found[0], other, strict=True):
                np.testing.assert_array_equal(a, b)
    op, _, (x, h, *rest) = layer("lstm", 20, 37, 40, c10.float32)
    whole = op(x, h, *rest)[0]
    alone = op(x[:, 5:6], h[5:6], rest[0][5:6], rest[1])[0]
    np.testing.assert_array_equal(whole[:, 5:6].numpy(), alone.numpy())


def test_strides_and_dtypes():
    x, h, w = values(2, 3, 12), values(4, 2), values(4, 12)
    arguments = (x.transpose(0, 1)[:, :, :8], h.t()[:, 2:], h.t()[:, :2], w.t()[:8, :2])
    same(
        aten.lstm_layer(*arguments, False), aten.ops._lstm_by_steps(*arguments, False, True), 1e-12
    )
    x, h, w = (t.to(c10.float32) for t in (values(5, 2, 6), values(2, 2), values(6, 2)))
    with pytest.raises(c10.DTypeError):
        aten.gru_layer(x, h.double(), w, None)
    with pytest.raises(c10.ShapeError, match="rnn_layer: expected input of shape"):
        aten.rnn_layer(x[:0], h, w)
    with pytest.raises(c10.ShapeError):
        aten.gru_layer(x, h, w[:, :1], None)


def test_gradients_need_what_is_kept():
    _, _, arguments = layer("lstm", 3, 2, 5, c10.float64)
    x = arguments[0].requires_grad_()
    output = aten.lstm_layer(x, *arguments[1:], False, False)[0]
    with pytest.raises(c10.ShapeError, match="lstm_layer_backward: got"):
        output.sum().backward()
    assert aten.lstm_layer(*arguments, False, False)[2].numel() == 0
    output = aten.gru_layer(*layer("gru", 3, 2, 5, c10.float64)[2], True, False)
    assert output[1].shape == (0, 2, 15)
    with pytest.raises(c10.ShapeError, match="rnn_layer_backward: got"):
        h = aten.zeros(2, 5)
        aten.rnn_layer_backward(
            aten.zeros(3, 2, 4), h, aten.zeros(5, 5), False, False, aten.zeros(3, 2, 5)
        )


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_long_sequences_go_in_parts_where_nothing_is_recorded(kind, monkeypatch):
    module = kind(3, 5, num_layers=2, bidirectional=True, dtype=c10.float64)
    x = values(7, 2, 3)
    expected = module(x)
    monkeypatch.setattr(recurrent, "_PART", 2 * module.weight_ih_l0.shape[0] * 3)  # three steps
    with no_grad():
        output, state = module(x)
    same(output, expected[0], 1e-12)
    same(state, expected[1], 1e-12)
