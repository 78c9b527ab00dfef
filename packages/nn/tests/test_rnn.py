"""Recurrent networks: cells against NumPy, packed sequences against single ones, shapes and errors."""

from __future__ import annotations

import numpy as np
import pytest

import argand_aten as aten
import argand_c10 as c10
import argand_nn as nn
from argand_autograd import gradcheck
from argand_nn.utils import rnn


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def plain_step(x, h, c, w):
    return np.tanh(w["weight_ih"] @ x + w["bias_ih"] + w["weight_hh"] @ h + w["bias_hh"]), c


def lstm_step(x, h, c, w):
    gates = w["weight_ih"] @ x + w["bias_ih"] + w["weight_hh"] @ h + w["bias_hh"]
    i, f, g, o = np.split(gates, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    h = sigmoid(o) * np.tanh(c)
    return (w["weight_hr"] @ h if "weight_hr" in w else h), c


def gru_step(x, h, c, w):
    xr, xz, xn = np.split(w["weight_ih"] @ x + w["bias_ih"], 3)
    hr, hz, hn = np.split(w["weight_hh"] @ h + w["bias_hh"], 3)
    z = sigmoid(xz + hz)
    return (1 - z) * np.tanh(xn + sigmoid(xr + hr) * hn) + z * h, c


STEPS = {nn.RNN: plain_step, nn.LSTM: lstm_step, nn.GRU: gru_step}


def run_by_hand(module, sequence):
    """Outputs and last states (h, c) by layer and direction, of one sequence (steps, features)."""
    weights = {k: v.detach().numpy() for k, v in module.named_parameters()}
    states = []
    for layer in range(module.num_layers):
        columns = []
        for suffix in ("", "_reverse")[: 2 if module.bidirectional else 1]:
            end = f"_l{layer}{suffix}"
            w = {k[: -len(end)]: v for k, v in weights.items() if k.endswith(end)}
            h, c = np.zeros(w["weight_hh"].shape[1]), np.zeros(module.hidden_size)
            outputs = []
            for x in sequence[::-1] if suffix else sequence:
                h, c = STEPS[type(module)](x, h, c, w)
                outputs.append(h)
            columns.append(outputs[::-1] if suffix else outputs)
            states.append((h, c))
        sequence = np.concatenate([np.array(column) for column in columns], -1)
    return sequence, states


CASES = [
    (nn.RNN, {}),
    (nn.LSTM, {"num_layers": 2, "bidirectional": True}),
    (nn.LSTM, {"proj_size": 2, "num_layers": 2}),
    (nn.GRU, {"bidirectional": True}),
    (nn.GRU, {"num_layers": 2}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0].__name__}-{c[1]}")
def test_networks(case):
    kind, options = case
    module = kind(3, 4, dtype=c10.float64, **options)
    x = np.random.default_rng(0).standard_normal((19, 2, 3))
    output, last = module(aten.tensor(x))
    last = last if isinstance(last, tuple) else (last,)
    for i in range(2):
        expected, states = run_by_hand(module, x[:, i])
        np.testing.assert_allclose(output.detach().numpy()[:, i], expected, rtol=1e-9, atol=1e-12)
        for n, part in enumerate(last):
            found = part.detach().numpy()[:, i]
            np.testing.assert_allclose(found, [s[n] for s in states], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0].__name__}-{c[1]}")
def test_packed_sequences_run_as_single_ones(case):
    kind, options = case
    module = kind(3, 4, dtype=c10.float64, **options)
    lengths = [2, 19, 1, 11]
    rng = np.random.default_rng(0)
    parts = [aten.tensor(rng.standard_normal((n, 3))).requires_grad_() for n in lengths]
    output, last = module(rnn.pack_sequence(parts, enforce_sorted=False))
    last = last if isinstance(last, tuple) else (last,)
    found = rnn.unpack_sequence(output)
    sum((part * part).sum() for part in (*found, *last)).backward()
    grads = [part.grad.numpy().copy() for part in parts]
    for i, part in enumerate(parts):
        part.grad = None
        expected, state = module(part)
        state = state if isinstance(state, tuple) else (state,)
        np.testing.assert_allclose(found[i].detach().numpy(), expected.detach().numpy(), rtol=1e-9)
        for a, b in zip(last, state, strict=True):
            np.testing.assert_allclose(a[:, i].detach().numpy(), b.detach().numpy(), rtol=1e-9)
        sum((t * t).sum() for t in (expected, *state)).backward()
        np.testing.assert_allclose(grads[i], part.grad.numpy(), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
def test_gradients(kind):
    module = kind(2, 3, num_layers=2, bidirectional=True, dtype=c10.float64)
    x = aten.tensor(np.random.default_rng(0).standard_normal((3, 2, 2))).requires_grad_()
    assert gradcheck(lambda x: module(x)[0], (x,))


def test_cells_are_the_steps_of_networks():
    for cell_kind, kind in ((nn.RNNCell, nn.RNN), (nn.LSTMCell, nn.LSTM), (nn.GRUCell, nn.GRU)):
        module = kind(3, 4)
        cell = cell_kind(3, 4)
        cell.load_state_dict({k[:-3]: v for k, v in module.state_dict().items()})
        x, state = aten.randn(5, 2, 3), None
        for step in x:
            state = cell(step, state)
        output = state[0] if isinstance(state, tuple) else state
        np.testing.assert_allclose(
            output.detach().numpy(), module(x)[0][-1].detach().numpy(), rtol=1e-5, atol=1e-6
        )
        assert cell(x[0, 0]).shape == (4,) if kind is not nn.LSTM else len(cell(x[0, 0])) == 2


def test_forms_of_input():
    module = nn.LSTM(3, 4, num_layers=2, bidirectional=True, batch_first=True)
    x = aten.randn(2, 5, 3)
    output, (h, c) = module(x)
    assert output.shape == (2, 5, 8) and h.shape == c.shape == (4, 2, 4)
    single, (h1, _) = module(x[0])
    assert single.shape == (5, 8) and h1.shape == (4, 4)
    np.testing.assert_allclose(
        single.detach().numpy(), output[0].detach().numpy(), rtol=1e-5, atol=1e-6
    )
    again, _ = module(x, (h.detach() * 0, c.detach() * 0))
    np.testing.assert_array_equal(again.detach().numpy(), output.detach().numpy())


def test_dropout_between_layers():
    module = nn.GRU(3, 4, num_layers=2, dropout=1.0)
    x = aten.randn(5, 2, 3)
    zeros = aten.zeros(5, 2, 4)
    second = nn.GRU(4, 4)
    second.load_state_dict({k[:-1] + "0": v for k, v in module.state_dict().items() if "l1" in k})
    np.testing.assert_array_equal(module(x)[0].detach().numpy(), second(zeros)[0].detach().numpy())
    module.eval()
    assert abs((module(x)[0] - second(zeros)[0]).detach().numpy()).max() > 1e-3
    with pytest.warns(UserWarning, match="dropout acts between layers"):
        nn.GRU(3, 4, dropout=0.5)


def test_names_and_settings():
    module = nn.LSTM(3, 4, num_layers=1, bidirectional=True, proj_size=2)
    assert list(module.state_dict()) == [
        f"{name}_l0{suffix}"
        for suffix in ("", "_reverse")
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
    ]
    assert repr(module) == "LSTM(3, 4, proj_size=2, bidirectional=True)"
    assert len(module.all_weights) == 2 and module.flatten_parameters() is None
    bound = 0.5
    assert all(abs(p.detach().numpy()).max() <= bound for p in module.parameters())


def test_packing():
    parts = [aten.arange(n).to(c10.float32) + 10 * n for n in (2, 3)]
    with pytest.raises(RuntimeError, match=r"got lengths \[2, 3\], expected falling ones"):
        rnn.pack_sequence(parts)
    packed = rnn.pack_sequence(parts, enforce_sorted=False)
    assert packed.data.tolist() == [30, 20, 31, 21, 32]
    assert packed.batch_sizes.tolist() == [2, 2, 1]
    assert packed.sorted_indices.tolist() == [1, 0] == packed.unsorted_indices.tolist()
    padded, lengths = rnn.pad_packed_sequence(packed, padding_value=-1.0, total_length=4)
    assert padded.t().tolist() == [[20, 21, -1, -1], [30, 31, 32, -1]]
    assert lengths.tolist() == [2, 3]
    padded, _ = rnn.pad_packed_sequence(packed, batch_first=True)
    assert padded.tolist() == [[20, 21, 0], [30, 31, 32]] and padded.is_contiguous()
    for part, back in zip(parts, rnn.unpad_sequence(padded.t(), [2, 3]), strict=True):
        assert back.tolist() == part.tolist() and back.is_contiguous()
        back.zero_()
    assert [back.stride() for back in rnn.unpack_sequence(packed)] == [(1,), (1,)]
    assert padded[1].tolist() == [30, 31, 32]
    assert rnn.pad_sequence(parts, padding_side="left").t().tolist() == [[0, 20, 21], [30, 31, 32]]
    assert packed.double().data.dtype == c10.float64 and packed.to(c10.float32) is packed
    with pytest.raises(ValueError, match="got total_length 2, expected at least 3"):
        rnn.pad_packed_sequence(packed, total_length=2)
    with pytest.raises(RuntimeError, match=r"got lengths \[3, 0\], expected ones from 1 to 3"):
        rnn.pack_padded_sequence(aten.zeros(3, 2), [3, 0])
    with pytest.raises(RuntimeError, match="got 3 lengths, expected 2"):
        rnn.pack_padded_sequence(aten.zeros(3, 2), [3, 2, 1])


def test_errors():
    with pytest.raises(ValueError, match="LSTM: got proj_size 4, expected one from 0"):
        nn.LSTM(3, 4, proj_size=4)
    for kind in (nn.RNN, nn.GRU):
        with pytest.raises(ValueError, match="got proj_size 2"):
            kind(3, 4, proj_size=2)
        with pytest.raises(TypeError, match="got bias of type int, expected bool"):
            kind(3, 4, bias=0)
        with pytest.raises(ValueError, match="got input_size 0"):
            kind(0, 4)
    with pytest.raises(ValueError, match="GRU: got input of dtype"):
        nn.GRU(3, 4)(aten.zeros([5, 2, 3], dtype=c10.float64))
    with pytest.raises(ValueError, match="GRU: got dropout 1.5"):
        nn.GRU(3, 4, 2, dropout=1.5)
    with pytest.raises(ValueError, match="RNN: got nonlinearity 'gelu'"):
        nn.RNN(3, 4, nonlinearity="gelu")
    module = nn.GRU(3, 4)
    with pytest.raises(RuntimeError, match=r"GRU: got input of shape \[5, 2, 4\], expected 3"):
        module(aten.zeros(5, 2, 4))
    for lstm in (nn.LSTM(3, 4), nn.LSTMCell(3, 4)):
        for hx in (aten.zeros(1, 4), (aten.zeros(1, 4),)):
            with pytest.raises(
                TypeError, match=r"LSTM: got hx of type \w+, expected the pair \(h_0"
            ):
                lstm(aten.zeros(1, 3), hx)
    with pytest.raises(RuntimeError, match=r"GRU: got a state of shape \[1, 3, 4\]"):
        module(aten.zeros(5, 2, 3), aten.zeros(1, 3, 4))
    with pytest.raises(ValueError, match="GRU: got input of shape"):
        module(aten.zeros(5, 2, 3, 1))
    with pytest.raises(RuntimeError, match="3-d input and a 2-d state"):
        module(aten.zeros(5, 2, 3), aten.zeros(1, 4))
    with pytest.raises(RuntimeError, match="LSTMCell: got input of shape"):
        nn.LSTMCell(3, 4)(aten.zeros(2, 5))


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_networks_without_elements(kind):
    module = kind(3, 4, 2, batch_first=True, bidirectional=True, device="meta")
    output, state = module(aten.zeros(5, 7, 3, device="meta"))
    assert output.device.type == "meta" and output.shape == (5, 7, 8)
    for part in state if kind is nn.LSTM else [state]:
        assert part.device.type == "meta" and part.shape == (4, 5, 4)
    with pytest.raises(ValueError, match="got input of dtype"):
        module(aten.zeros(5, 7, 3, dtype=c10.float64, device="meta"))
