"""Functions of PyTorch's main namespace that take by number what modules and `nn.functional` take by name.

A `reduction` is 1 (mean), 2 (sum) or another number, 0 by default (none), as PyTorch's functions have it; weights of recurrent layers are a list, as `RNNBase.all_weights` flattened has them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, overload

from argand_c10 import Tensor
from argand_nn.functional import loss, normalization
from argand_nn.functional.recurrent import (
    CellWeights,
    State,
    make_cell,
    project_input,
    run_layers,
)

__all__ = [
    "alpha_dropout",
    "alpha_dropout_",
    "cosine_embedding_loss",
    "dropout_",
    "feature_alpha_dropout",
    "feature_alpha_dropout_",
    "feature_dropout",
    "feature_dropout_",
    "gru",
    "gru_cell",
    "hinge_embedding_loss",
    "instance_norm",
    "lstm",
    "lstm_cell",
    "margin_ranking_loss",
    "poisson_nll_loss",
    "rnn_relu",
    "rnn_relu_cell",
    "rnn_tanh",
    "rnn_tanh_cell",
    "triplet_margin_loss",
]


def dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """`dropout`, in place."""
    normalization.check_probability("dropout_", p, RuntimeError)
    return normalization.dropout(input, p, train, True)


def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """See `nn.functional.alpha_dropout`."""
    normalization.check_probability("alpha_dropout", p, RuntimeError)
    return normalization.alpha_dropout(input, p, train)


def alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """`alpha_dropout`, in place."""
    normalization.check_probability("alpha_dropout_", p, RuntimeError)
    return normalization.alpha_dropout(input, p, train, True)


def _feature_dropout(name: str, input: Tensor, p: float, train: bool, inplace: bool) -> Tensor:
    normalization.check_probability(name, p, RuntimeError)
    if not train or p in (0.0, 1.0):  # nothing is drawn, so there need be no channels
        return normalization.dropout(input, p, train, inplace)
    return normalization.dropout2d(input, p, train, inplace)


def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Dropout of whole channels (dimension 1) of input (N, C, ...)."""
    return _feature_dropout("feature_dropout", input, p, train, False)


def feature_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """`feature_dropout`, in place."""
    return _feature_dropout("feature_dropout_", input, p, train, True)


def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """See `nn.functional.feature_alpha_dropout`."""
    normalization.check_probability("feature_alpha_dropout", p, RuntimeError)
    return normalization.feature_alpha_dropout(input, p, train)


def feature_alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """`feature_alpha_dropout`, in place."""
    normalization.check_probability("feature_alpha_dropout_", p, RuntimeError)
    return normalization.feature_alpha_dropout(input, p, train, True)


def instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """See `nn.functional.instance_norm`; `cudnn_enabled` changes nothing."""
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError(
            "instance_norm: got use_input_stats=False and no running statistics, expected "
            "running_mean and running_var"
        )
    return normalization.instance_norm(
        input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps
    )


def _reduction(number: int) -> str:
    return {1: "mean", 2: "sum"}.get(number, "none")


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0
) -> Tensor:
    """See `nn.functional.cosine_embedding_loss`."""
    name = _reduction(reduction)
    return loss.cosine_embedding_loss(input1, input2, target, margin, reduction=name)


def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 0
) -> Tensor:
    """See `nn.functional.hinge_embedding_loss`."""
    name = _reduction(reduction)
    return loss.hinge_embedding_loss(input, target, margin, reduction=name)


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0
) -> Tensor:
    """See `nn.functional.margin_ranking_loss`."""
    name = _reduction(reduction)
    return loss.margin_ranking_loss(input1, input2, target, margin, reduction=name)


def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int
) -> Tensor:
    """See `nn.functional.poisson_nll_loss`."""
    name = _reduction(reduction)
    return loss.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=name)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: int = 0,
) -> Tensor:
    """See `nn.functional.triplet_margin_loss`."""
    name = _reduction(reduction)
    return loss.triplet_margin_loss(
        anchor, positive, negative, margin, p, eps, swap, reduction=name
    )


def _layers(
    name: str, params: Sequence[Tensor], has_biases: bool, projected: bool, count: int
) -> list[CellWeights]:
    """The weights of `count` layers and directions."""
    each = (4 if has_biases else 2) + projected
    if len(params) != count * each:
        raise RuntimeError(
            f"{name}: got {len(params)} weights, expected {each} for each of {count} layers and "
            "directions"
        )
    result = []
    for begin in range(0, len(params), each):
        input, hidden, *rest = params[begin : begin + each]
        projection = rest.pop() if projected else None
        first, second = rest or (None, None)
        result.append(CellWeights(input, hidden, first, second, projection))
    return result


_COMMON = ("hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional")
_DENSE = ("input", *_COMMON, "batch_first")
_PACKED = ("data", "batch_sizes", *_COMMON)


def _shapes(data: Tensor, states: tuple[Tensor, ...]) -> str:
    return f"input of shape {list(data.shape)} and states of {[list(s.shape) for s in states]}"


def _check_run(
    mode: str, data: Tensor, sizes: list[int] | None, states: tuple[Tensor, ...], count: int
) -> None:
    """That there are steps, and states of `count` layers and directions for each of the batch."""
    name = mode.lower()
    if data.dim() != (3 if sizes is None else 2) or any(state.dim() != 3 for state in states):
        form = "(steps, batch, features)" if sizes is None else "(places, features)"
        raise IndexError(
            f"{name}: got {_shapes(data, states)}, expected {form} and (layers, batch, size)"
        )
    if count < 1:
        raise RuntimeError(f"{name}: got no layers, expected at least one")
    steps, batch = data.shape[:2] if sizes is None else (len(sizes), (sizes or [0])[0])
    if steps == 0:
        raise RuntimeError(f"{name}: got no steps, expected sequences of at least one")
    if sizes is not None and (sizes != sorted(sizes, reverse=True) or sum(sizes) != data.shape[0]):
        raise RuntimeError(
            f"{name}: got batch_sizes {sizes}, expected numbers that do not grow, whose sum is that "
            f"of places, {data.shape[0]}"
        )
    if any(state.shape[:2] != (count, batch) for state in states):
        raise RuntimeError(
            f"{name}: got {_shapes(data, states)}, expected a state for each of {count} layers and directions and "
            f"each of {batch} sequences"
        )


def _check_sizes(mode: str, weights: list[CellWeights], states: tuple[Tensor, ...]) -> None:
    """That every state has the size that the weights make."""
    expected = [weights[0].hidden.shape[1], weights[0].hidden.shape[0] // 4][: len(states)]
    if [state.shape[2] for state in states] != expected:
        raise RuntimeError(
            f"{mode.lower()}: got states of sizes {[state.shape[2] for state in states]}, expected "
            f"{expected}, those of the weights"
        )


def _recurrent(mode: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Outputs and last states of either form: over `input`, or over packed `data`."""
    name = mode.lower()
    packed = "batch_sizes" in kwargs or (
        len(args) > 2
        and isinstance(args[1], Tensor)
        and (mode == "LSTM" or isinstance(args[2], Tensor))
    )
    names = _PACKED if packed else _DENSE
    given = dict(zip(names, args, strict=False)) | kwargs
    if len(args) + len(kwargs) != len(names) or given.keys() != set(names):
        raise TypeError(
            f"{name}: got {len(args)} arguments and {sorted(kwargs)} by name, expected "
            f"({', '.join(_DENSE)}) or ({', '.join(_PACKED)})"
        )
    states = (given["hx"],) if isinstance(given["hx"], Tensor) else tuple(given["hx"])
    if len(states) != (2 if mode == "LSTM" else 1):
        raise RuntimeError(
            f"{name}: got {len(states)} states, expected {'h and c' if mode == 'LSTM' else 'one'}"
        )
    directions = 2 if given["bidirectional"] else 1
    count = given["num_layers"] * directions
    data = given["data" if packed else "input"]
    if not packed and given["batch_first"] and data.dim() == 3:
        data = data.transpose(0, 1)
    sizes = given["batch_sizes"].tolist() if packed else None
    _check_run(mode, data, sizes, states, count)
    projected = states[0].shape[-1] != states[-1].shape[-1]
    weights = _layers(name, given["params"], given["has_biases"], projected, count)
    _check_sizes(mode, weights, states)
    dropped = given["dropout"] if given["train"] else 0.0
    output, last = run_layers(mode, data, sizes, weights, directions, states, dropped)
    return (output.transpose(0, 1) if not packed and given["batch_first"] else output), last


@overload
def lstm(
    input: Tensor,
    hx: Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor, Tensor]: ...
@overload
def lstm(
    data: Tensor,
    batch_sizes: Tensor,
    hx: Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> tuple[Tensor, Tensor, Tensor]: ...
def lstm(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor, Tensor]:
    """What `nn.LSTM` computes, with the weights as arguments.

    Args:
        *args: (input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first), or of
            packed sequences (data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional).
            `hx` is the pair of first states, (layers * directions, batch, size).
        **kwargs: the same by name.

    Returns:
        The outputs of the last layer, and the last h and c of every layer.

    Raises:
        RuntimeError: states or weights are not as many, or not of the sizes, that layers, directions and sequences
            need, or there are no steps.
        IndexError: the input or a state has another number of dimensions.
        TypeError: the arguments are of neither form.
    """
    output, (hidden, memory) = _recurrent("LSTM", args, kwargs)
    return output, hidden, memory


class _OneState(Protocol):
    """A recurrent function of one state, in either form."""

    @overload
    def __call__(
        self,
        input: Tensor,
        hx: Tensor,
        params: Sequence[Tensor],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ) -> tuple[Tensor, Tensor]: ...
    @overload
    def __call__(
        self,
        data: Tensor,
        batch_sizes: Tensor,
        hx: Tensor,
        params: Sequence[Tensor],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
    ) -> tuple[Tensor, Tensor]: ...


def _one_state(function: Callable[..., tuple[Tensor, Tensor]]) -> _OneState:
    return function


@_one_state
def gru(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """What `nn.GRU` computes, with the weights as arguments: as `lstm`, with one state."""
    output, (hidden,) = _recurrent("GRU", args, kwargs)
    return output, hidden


@_one_state
def rnn_tanh(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """What `nn.RNN` computes, with the weights as arguments: as `lstm`, with one state."""
    output, (hidden,) = _recurrent("RNN_TANH", args, kwargs)
    return output, hidden


@_one_state
def rnn_relu(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """What `nn.RNN` with nonlinearity relu computes: as `lstm`, with one state."""
    output, (hidden,) = _recurrent("RNN_RELU", args, kwargs)
    return output, hidden


def _cell(mode: str, input: Tensor, state: State, layer: CellWeights) -> State:
    name = f"{mode.lower()}_cell"
    if input.dim() != 2 or any(part.dim() != 2 for part in state):
        raise IndexError(
            f"{name}: got input and states of shapes "
            f"{[list(part.shape) for part in (input, *state)]}, expected (batch, size)"
        )
    if any(part.shape[0] != input.shape[0] for part in state):
        raise RuntimeError(
            f"{name}: got a batch of {input.shape[0]} and states of "
            f"{[part.shape[0] for part in state]}, expected one size"
        )
    if input.shape[1] != layer.input.shape[1] or any(
        part.shape[1] != layer.hidden.shape[1] for part in state
    ):
        raise RuntimeError(
            f"{name}: got input and states of sizes {[part.shape[1] for part in (input, *state)]}, "
            f"expected {layer.input.shape[1]} and {layer.hidden.shape[1]}, those of the weights"
        )
    return make_cell(mode, layer)(project_input(mode, input, layer), state)


def lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """One step of `lstm`: input (batch, features) and the states (h, c), each (batch, size), to the next states."""
    if len(hx) != 2:
        raise RuntimeError(f"lstm_cell: got {len(hx)} states, expected h and c")
    hidden, memory = _cell("LSTM", input, tuple(hx), CellWeights(w_ih, w_hh, b_ih, b_hh))
    return hidden, memory


def gru_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """One step of `gru`: input (batch, features) and state (batch, size) to the next state."""
    return _cell("GRU", input, (hx,), CellWeights(w_ih, w_hh, b_ih, b_hh))[0]


def rnn_tanh_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """One step of `rnn_tanh`: input (batch, features) and state (batch, size) to the next state."""
    return _cell("RNN_TANH", input, (hx,), CellWeights(w_ih, w_hh, b_ih, b_hh))[0]


def rnn_relu_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """One step of `rnn_relu`: input (batch, features) and state (batch, size) to the next state."""
    return _cell("RNN_RELU", input, (hx,), CellWeights(w_ih, w_hh, b_ih, b_hh))[0]
