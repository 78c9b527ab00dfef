"""Recurrent networks: Elman networks, LSTM (Hochreiter and Schmidhuber, 1997) and GRU (Cho et al., 2014)."""

from __future__ import annotations

import math
import warnings
from typing import Any

import argand_aten as aten
from argand_autograd import get_autocast_dtype, is_autocast_enabled
from argand_c10 import DTypeError, Module, Parameter, Tensor, float32
from argand_nn import init
from argand_nn.functional.recurrent import (
    CellWeights,
    State,
    make_cell,
    project_input,
    run_layers,
)
from argand_nn.packed_sequence import PackedSequence

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class RNNBase(Module):
    """Layers of recurrent cells over sequences (steps, batch, input_size) or packed ones.

    Args:
        mode: LSTM, GRU, RNN_TANH or RNN_RELU.
        input_size: features of a step.
        hidden_size: features of the state.
        num_layers: layers, each over the outputs of the one before.
        bias: whether gates add learned vectors.
        batch_first: dense inputs and outputs are (batch, steps, features).
        dropout: probability between layers, in training.
        bidirectional: a second run over each layer from the end, whose outputs are appended.
        proj_size: LSTM: features that outputs and hidden state are mapped to, if above 0.
        device: where the parameters live.
        dtype: of the parameters; the default dtype if None.
    """

    __constants__ = [
        "mode",
        "input_size",
        "hidden_size",
        "num_layers",
        "bias",
        "batch_first",
        "dropout",
        "bidirectional",
        "proj_size",
    ]

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if mode not in _GATES:
            raise ValueError(f"{name}: got mode {mode!r}, expected one of {list(_GATES)}")
        _check_types(name, int, input_size=input_size, hidden_size=hidden_size)
        _check_types(name, bool, bias=bias, batch_first=batch_first)
        if input_size <= 0:
            raise ValueError(f"{name}: got input_size {input_size}, expected a positive one")
        _check_settings(name, mode, hidden_size, num_layers, dropout, proj_size)
        self.mode, self.input_size, self.hidden_size = mode, input_size, hidden_size
        self.num_layers, self.bias, self.batch_first = num_layers, bias, batch_first
        self.dropout, self.bidirectional, self.proj_size = float(dropout), bidirectional, proj_size
        output = proj_size if proj_size > 0 else hidden_size
        directions = 2 if bidirectional else 1
        gates = _GATES[mode] * hidden_size
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            features = input_size if layer == 0 else output * directions
            shapes: dict[str, tuple[int, ...]] = {
                "weight_ih": (gates, features),
                "weight_hh": (gates, output),
            }
            if bias:
                shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
            if proj_size > 0:
                shapes["weight_hr"] = (proj_size, hidden_size)
            for direction in range(directions):
                suffix = f"_l{layer}" + ("_reverse" if direction else "")
                for kind, shape in shapes.items():
                    parameter = Parameter(aten.empty(shape, device=device, dtype=dtype))
                    self.register_parameter(kind + suffix, parameter)
                self._all_weights.append([kind + suffix for kind in shapes])
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Fill uniformly on [-k, k] with k = 1 / sqrt(hidden_size)."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def flatten_parameters(self) -> None:
        """Do nothing: parameters need no common memory here."""

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def _cell_weights(self, index: int) -> CellWeights:
        weights = [getattr(self, name) for name in self._all_weights[index]]
        projection = weights.pop() if self.proj_size > 0 else None
        biases = weights[2:] if self.bias else (None, None)
        return CellWeights(weights[0], weights[1], biases[0], biases[1], projection)

    def _run(self, steps: Tensor, state: State, sizes: list[int] | None) -> tuple[Tensor, State]:
        """All layers; see `run_layers`."""
        directions = 2 if self.bidirectional else 1
        weights = [self._cell_weights(index) for index in range(self.num_layers * directions)]
        dropout = self.dropout if self.training else 0.0
        return run_layers(self.mode, steps, sizes, weights, directions, state, dropout)

    def _state_sizes(self) -> tuple[int, ...]:
        output = self.proj_size if self.proj_size > 0 else self.hidden_size
        return (output, self.hidden_size) if self.mode == "LSTM" else (output,)

    def _initial_state(self, hx: State | None, batch: int, like: Tensor) -> State:
        layers = self.num_layers * (2 if self.bidirectional else 1)
        shapes = [[layers, batch, size] for size in self._state_sizes()]
        if hx is None:
            return tuple(like.new_zeros(shape) for shape in shapes)
        for part, shape in zip(hx, shapes, strict=True):
            if list(part.shape) != shape:
                raise RuntimeError(
                    f"{type(self).__name__}: got a state of shape {list(part.shape)}, expected {shape}"
                )
        return hx

    def _autocast_state(self, state: State, input: Tensor, packed: bool) -> State:
        """`state` in autocast's dtype, which decides that of all results, where PyTorch's fused networks have it.

        Those are all of an accelerator's, and on the CPU LSTMs without `proj_size` over dense sequences.
        """
        device = input.device.type
        narrow = device != "cpu" or (self.mode == "LSTM" and self.proj_size == 0 and not packed)
        if not narrow or not _in_region(device):
            return state
        dtype = get_autocast_dtype(device)
        if input.dtype not in (float32, dtype):
            return state
        return tuple(part.to(dtype) for part in state)

    def _check_input(self, input: Tensor) -> None:
        _check_dtype(type(self).__name__, input, getattr(self, self._all_weights[0][0]), ValueError)
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                f"{type(self).__name__}: got input of shape {list(input.shape)}, expected "
                f"{self.input_size} features in the last dimension"
            )

    def _forward_packed(self, input: PackedSequence, hx: State | None) -> Any:
        data, batch_sizes, order, inverse = input
        self._check_input(data)
        sizes: list[int] = batch_sizes.tolist()
        if hx is not None and order is not None:
            hx = tuple(aten.index_select(part, 1, order) for part in hx)
        state = self._autocast_state(self._initial_state(hx, sizes[0], data), data, True)
        output, last = self._run(data, state, sizes)
        if inverse is not None:
            last = tuple(aten.index_select(part, 1, inverse) for part in last)
        return PackedSequence(output, batch_sizes, order, inverse), last

    def _forward_state(self, input: Tensor | PackedSequence, hx: State | None) -> Any:
        """Outputs and last state; both without the batch if the input has none."""
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        if input.dim() not in (2, 3):
            raise ValueError(
                f"{type(self).__name__}: got input of shape {list(input.shape)}, expected 2 or 3 "
                "dimensions"
            )
        self._check_input(input)
        batched = input.dim() == 3
        for part in hx or ():
            if part.dim() != input.dim():
                raise RuntimeError(
                    f"{type(self).__name__}: got {input.dim()}-d input and a {part.dim()}-d state, "
                    "expected as many dimensions"
                )
        if not batched:
            input = input.unsqueeze(1)
            hx = None if hx is None else tuple(part.unsqueeze(1) for part in hx)
        elif self.batch_first:
            input = input.transpose(0, 1)
        if input.shape[0] == 0:
            raise RuntimeError(f"{type(self).__name__}: got no steps, expected at least one")
        state = self._autocast_state(self._initial_state(hx, input.shape[1], input), input, False)
        output, last = self._run(input, state, None)
        if not batched:
            return output.squeeze(1), tuple(part.squeeze(1) for part in last)
        return (output.transpose(0, 1) if self.batch_first else output), last

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.proj_size != 0:
            text += f", proj_size={self.proj_size}"
        if self.num_layers != 1:
            text += f", num_layers={self.num_layers}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if self.batch_first is not False:
            text += f", batch_first={self.batch_first}"
        if self.dropout != 0:
            text += f", dropout={self.dropout}"
        if self.bidirectional is not False:
            text += f", bidirectional={self.bidirectional}"
        return text


def _check_types(name: str, kind: type, **arguments: Any) -> None:
    for what, value in arguments.items():
        if not isinstance(value, kind):
            raise TypeError(
                f"{name}: got {what} of type {type(value).__name__}, expected {kind.__name__}"
            )


def _check_settings(
    name: str, mode: str, hidden_size: int, num_layers: int, dropout: float, proj_size: int
) -> None:
    if isinstance(dropout, bool | str) or not 0 <= dropout <= 1:
        raise ValueError(f"{name}: got dropout {dropout}, expected a probability between 0 and 1")
    if dropout > 0 and num_layers == 1:
        warnings.warn(
            f"{name}: got dropout {dropout} with one layer, but dropout acts between layers",
            stacklevel=4,
        )
    if hidden_size <= 0 or num_layers <= 0:
        raise ValueError(
            f"{name}: got hidden_size {hidden_size} and num_layers {num_layers}, expected positive ones"
        )
    if proj_size < 0 or proj_size >= hidden_size or (proj_size > 0 and mode != "LSTM"):
        raise ValueError(
            f"{name}: got proj_size {proj_size}, expected one from 0 to hidden_size {hidden_size}"
            + ("" if mode == "LSTM" else ", and 0 but for LSTM")
        )


class _OneState(RNNBase):
    """Networks whose state is one tensor."""

    def forward(self, input: Any, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        """Outputs of the last layer, and the last state of every layer.

        Args:
            input: (steps, batch, input_size), (steps, input_size) or packed.
            hx: the first state (layers * directions, batch, hidden_size); zeros by default.
        """
        output, last = self._forward_state(input, None if hx is None else (hx,))
        return output, last[0]


class RNN(_OneState):
    """h' = activation(W_ih x + b_ih + W_hh h + b_hh) at each step (Elman, 1990).

    Args:
        input_size: features of a step.
        hidden_size: features of the state.
        num_layers: layers, each over the outputs of the one before.
        nonlinearity: tanh or relu.
        bias: whether to add learned vectors.
        batch_first: dense inputs and outputs are (batch, steps, features).
        dropout: probability between layers, in training.
        bidirectional: a second run over each layer from the end, whose outputs are appended.
        proj_size: 0; `LSTM` takes others.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        proj_size: int = 0,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"RNN: got nonlinearity {nonlinearity!r}, expected 'tanh' or 'relu'")
        self.nonlinearity = nonlinearity
        super().__init__(
            f"RNN_{nonlinearity.upper()}",
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            proj_size,
            device,
            dtype,
        )


class GRU(_OneState):
    """Gated recurrent units: h' = (1 - z) * n + z * h, with gates r, z and n.

    Arguments as `RNN`, without `nonlinearity`.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        proj_size: int = 0,
    ) -> None:
        super().__init__(
            "GRU",
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            proj_size,
            device,
            dtype,
        )


def _in_region(device_type: str) -> bool:
    """Whether autocast casts tensors of this device type; those of "meta" have nothing to cast."""
    return device_type != "meta" and is_autocast_enabled(device_type)


def _check_dtype(name: str, input: Tensor, weight: Tensor, error: type[Exception]) -> None:
    dtype = weight.dtype
    if input.dtype != dtype and not _in_region(input.device.type):
        raise error(
            f"{name}: got input of dtype {input.dtype} and weights of {dtype}, "
            f"expected one dtype; convert by input.to({dtype}) or model.to({input.dtype})"
        )


def _check_pair(name: str, hx: Any) -> None:
    if hx is not None and (isinstance(hx, Tensor) or len(hx) != 2):
        raise TypeError(
            f"{name}: got hx of type {type(hx).__name__}, expected the pair (h_0, c_0) of tensors"
        )


class LSTM(RNNBase):
    """Long short-term memory: c' = f * c + i * g and h' = o * tanh(c'), with gates i, f, g and o.

    Arguments as `RNN`, without `nonlinearity`, and `proj_size`: features that h' is mapped to.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            "LSTM",
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            proj_size,
            device,
            dtype,
        )

    def forward(
        self, input: Any, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Any, tuple[Tensor, Tensor]]:
        """Outputs of the last layer, and the last states (h, c) of every layer; see `RNN.forward`."""
        _check_pair("LSTM", hx)
        output, last = self._forward_state(input, hx)
        return output, (last[0], last[1])


class RNNCellBase(Module):
    """One step of a recurrent layer.

    Args:
        input_size: features of a step.
        hidden_size: features of the state.
        bias: whether gates add learned vectors.
        num_chunks: gates.
        device: where the parameters live.
        dtype: of the parameters; the default dtype if None.
    """

    __constants__ = ["input_size", "hidden_size", "bias"]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        gates = num_chunks * hidden_size

        def parameter(*shape: int) -> Parameter:
            return Parameter(aten.empty(shape, device=device, dtype=dtype))

        self.weight_ih = parameter(gates, input_size)
        self.weight_hh = parameter(gates, hidden_size)
        self.register_parameter("bias_ih", parameter(gates) if bias else None)
        self.register_parameter("bias_hh", parameter(gates) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Fill uniformly on [-k, k] with k = 1 / sqrt(hidden_size)."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _step(self, mode: str, input: Tensor, hx: State | None, parts: int) -> State:
        name = type(self).__name__
        for what, tensor, size in [
            ("input", input, self.input_size),
            *[("a state", part, self.hidden_size) for part in hx or ()],
        ]:
            if tensor.dim() not in (1, 2):
                raise ValueError(
                    f"{name}: got {what} of shape {list(tensor.shape)}, expected 1 or 2 dimensions"
                )
            if tensor.shape[-1] != size:
                raise RuntimeError(
                    f"{name}: got {what} of shape {list(tensor.shape)}, expected {size} features"
                )
        _check_dtype(name, input, self.weight_ih, DTypeError)
        batched = input.dim() == 2
        x = input if batched else input.unsqueeze(0)
        if hx is None:
            state: State = tuple(x.new_zeros([x.shape[0], self.hidden_size]) for _ in range(parts))
        else:
            state = hx if batched else tuple(part.unsqueeze(0) for part in hx)
        weights = CellWeights(self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        result = make_cell(mode, weights)(project_input(mode, x, weights), state)
        return result if batched else tuple(part.squeeze(0) for part in result)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text


class RNNCell(RNNCellBase):
    """A step of `RNN`: (batch, input_size) and (batch, hidden_size) to (batch, hidden_size)."""

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(
                f"RNNCell: got nonlinearity {self.nonlinearity!r}, expected 'tanh' or 'relu'"
            )
        mode = f"RNN_{self.nonlinearity.upper()}"
        return self._step(mode, input, None if hx is None else (hx,), 1)[0]


class GRUCell(RNNCellBase):
    """A step of `GRU`: (batch, input_size) and (batch, hidden_size) to (batch, hidden_size)."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step("GRU", input, None if hx is None else (hx,), 1)[0]


class LSTMCell(RNNCellBase):
    """A step of `LSTM`: (batch, input_size) and (h, c) to (h, c), each (batch, hidden_size)."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        _check_pair("LSTM", hx)
        hidden, memory = self._step("LSTM", input, hx, 2)
        return hidden, memory
