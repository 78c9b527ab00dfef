"""Recurrent layers: cells, and their run over the steps of sequences.

A state is a tuple of tensors (batch, size): (h,) or, of LSTMs, (h, c).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import argand_aten as aten
from argand_autograd import is_grad_enabled
from argand_c10 import Tensor
from argand_nn.functional.linear_maps import linear
from argand_nn.functional.normalization import dropout

__all__: list[str] = []

State = tuple[Tensor, ...]


class CellWeights(NamedTuple):
    """Weights of one layer in one direction: gates are rows."""

    input: Tensor
    hidden: Tensor
    input_bias: Tensor | None = None
    hidden_bias: Tensor | None = None
    projection: Tensor | None = None  # of LSTM's h, (proj_size, hidden_size)


# (projected input of a step (batch, gates), state) -> next state
Cell = Callable[[Tensor, State], State]


def _plain_cell(weights: CellWeights, activation: Callable[[Tensor], Tensor]) -> Cell:
    def cell(x: Tensor, state: State) -> State:
        return (activation(x + linear(state[0], weights.hidden)),)

    return cell


def _lstm_cell(weights: CellWeights) -> Cell:
    projection = weights.projection

    def step(x: Tensor, state: State) -> State:
        hidden, cell = state
        # linear's gradient has the weight's layout: it is added to the other steps' without a transposition
        gates = x + linear(hidden, weights.hidden)
        enter, forget, candidate, leave = aten.chunk(gates, 4, 1)
        cell = aten.lstm_cell_state(enter, forget, candidate, cell)
        hidden = aten.lstm_hidden_state(leave, cell)
        return (hidden if projection is None else linear(hidden, projection)), cell

    return step


def _gru_cell(weights: CellWeights) -> Cell:
    def cell(x: Tensor, state: State) -> State:
        (hidden,) = state
        x_reset, x_update, x_new = aten.chunk(x, 3, 1)
        h_reset, h_update, h_new = aten.chunk(
            linear(hidden, weights.hidden, weights.hidden_bias), 3, 1
        )
        return (aten.gru_hidden_state(x_reset, x_update, x_new, h_reset, h_update, h_new, hidden),)

    return cell


def make_cell(mode: str, weights: CellWeights) -> Cell:
    """The cell of a mode: LSTM, GRU, RNN_TANH or RNN_RELU."""
    if mode == "LSTM":
        return _lstm_cell(weights)
    if mode == "GRU":
        return _gru_cell(weights)
    return _plain_cell(weights, aten.tanh if mode == "RNN_TANH" else aten.relu)


def project_input(mode: str, input: Tensor, weights: CellWeights) -> Tensor:
    """What the input (*, features) gives the gates, with the biases that do not depend on the state."""
    bias = weights.input_bias
    if bias is not None and weights.hidden_bias is not None and mode != "GRU":
        bias = bias + weights.hidden_bias
    return linear(input, weights.input, bias)


def split_steps(projected: Tensor, sizes: Sequence[int] | None) -> list[Tensor]:
    """The steps of (steps, batch, gates), or of packed (places, gates) with places by step.

    By halves: where gradients of slices are not added in place (compiled, or differentiated again),
    each is as large as what it is a slice of, and n of n steps would cost n * n.
    """
    count = projected.shape[0] if sizes is None else len(sizes)
    if count <= 8:
        return list(projected.unbind(0) if sizes is None else aten.split(projected, sizes, 0))
    half = count // 2
    begin, end = (None, None) if sizes is None else (sizes[:half], sizes[half:])
    rows = half if begin is None else sum(begin)
    return split_steps(projected[:rows], begin) + split_steps(projected[rows:], end)


def scan_steps(
    cell: Cell, inputs: Sequence[Tensor], state: State, reverse: bool
) -> tuple[list[Tensor], State]:
    """Run a cell over projected inputs (batch of the step, gates), whose batches do not grow.

    Returns:
        The outputs by step, and the last state of every sequence.
    """
    outputs: list[Tensor] = []
    if reverse:
        initial, count = state, inputs[-1].shape[0]
        state = _rows(initial, 0, count)
        for x in reversed(inputs):
            if x.shape[0] > count:  # these sequences end here, so they begin here
                state = _join([state, _rows(initial, count, x.shape[0])])
                count = x.shape[0]
            state = cell(x, state)
            outputs.append(state[0])
        outputs.reverse()
        return outputs, state
    ended: list[State] = []
    count = state[0].shape[0]
    for x in inputs:
        if x.shape[0] < count:
            ended.insert(0, _rows(state, x.shape[0], count))
            count = x.shape[0]
            state = _rows(state, 0, count)
        state = cell(x, state)
        outputs.append(state[0])
    return outputs, (_join([state, *ended]) if ended else state)


def _rows(state: State, start: int, end: int) -> State:
    if start == 0 and end == state[0].shape[0]:
        return state
    return tuple(part[start:end] for part in state)


def _join(states: list[State]) -> State:
    return tuple(aten.cat(list(parts)) for parts in zip(*states, strict=True))


# Elements that the input gives the gates at once where nothing is recorded: a whole sequence's would be most of the memory.
_PART = 1 << 21


def _run_dense(
    mode: str, projected: Tensor, weights: CellWeights, state: State, reverse: bool, recorded: bool
) -> tuple[Tensor, State]:
    """One layer as one operator, which keeps what its derivative reads if gradients are recorded."""
    end = 0 if reverse else -1
    if mode == "LSTM":
        hidden, cell = state
        output, cells, _ = aten.lstm_layer(
            projected, hidden, cell, weights.hidden, reverse, recorded
        )
        return output, (output[end], cells[end])
    if mode == "GRU":
        output, _ = aten.gru_layer(
            projected, state[0], weights.hidden, weights.hidden_bias, reverse, recorded
        )
    else:
        relu = mode == "RNN_RELU"
        output = aten.rnn_layer(projected, state[0], weights.hidden, relu, reverse)
    return output, (output[end],)


def _run_parts(
    mode: str, data: Tensor, weights: CellWeights, state: State, reverse: bool, part: int
) -> tuple[Tensor, State]:
    """One layer without gradients, `part` steps at a time."""
    steps = data.shape[0]
    starts = range(0, steps, part)
    result: Tensor | None = None
    for start in reversed(starts) if reverse else starts:
        projected = project_input(mode, data[start : start + part], weights)
        output, state = _run_dense(mode, projected, weights, state, reverse, False)
        state = tuple(t.clone() for t in state)  # not a view that keeps the part's outputs
        if result is None:
            result = output.new_empty([steps, *output.shape[1:]])
        result[start : start + part] = output
    assert result is not None
    return result, state


def _run_layer(
    mode: str,
    data: Tensor,
    sizes: Sequence[int] | None,
    weights: CellWeights,
    state: State,
    reverse: bool,
) -> tuple[Tensor, State]:
    """One layer in one direction: the outputs in the form of `data`, and the last state."""
    if sizes is None and weights.projection is None:
        tensors = (data, *state, *weights)
        recorded = is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)
        part = max(_PART // max(data.shape[1] * weights.input.shape[0], 1), 1)
        if not recorded and data.device.type == "cpu" and data.shape[0] > part:
            return _run_parts(mode, data, weights, state, reverse, part)
        projected = project_input(mode, data, weights)
        return _run_dense(mode, projected, weights, state, reverse, recorded)
    steps = split_steps(project_input(mode, data, weights), sizes)
    outputs, last = scan_steps(make_cell(mode, weights), steps, state, reverse)
    return aten.stack(outputs) if sizes is None else aten.cat(outputs), last


def run_layers(
    mode: str,
    data: Tensor,
    sizes: Sequence[int] | None,
    weights: Sequence[CellWeights],
    directions: int,
    state: State,
    dropped: float,
) -> tuple[Tensor, State]:
    """Run layers over (steps, batch, features), or over packed (places, features) with sizes.

    Args:
        mode: LSTM, GRU, RNN_TANH or RNN_RELU.
        data: the first layer's input.
        sizes: places of each step, of packed data.
        weights: of each layer and direction.
        directions: 1, or 2 with a run from the end.
        state: tensors (layers * directions, batch, size).
        dropped: probability of dropout between layers.

    Returns:
        The outputs in the form of `data`, and the last states.
    """
    last: list[State] = []
    for layer in range(len(weights) // directions):
        if layer and dropped > 0:
            data = dropout(data, dropped)
        results = []
        for direction in range(directions):
            index = layer * directions + direction
            output, final = _run_layer(
                mode,
                data,
                sizes,
                weights[index],
                tuple(part[index] for part in state),
                direction == 1,
            )
            results.append(output)
            last.append(final)
        data = results[0] if directions == 1 else aten.cat(results, -1)
    return data, tuple(aten.stack(list(parts)) for parts in zip(*last, strict=True))
