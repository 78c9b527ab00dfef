"""The generated operators whose kernels the wheel's archives hold. Those of the others are compiled at their first use."""

from __future__ import annotations

# Kernels' names (argand_aten_cuda/generated) without the ends "_contiguous", "_strided", "_reduce" and "_scan".
OPERATORS = frozenset(
    """
    add sub rsub mul div floor_divide remainder neg abs sign sqrt rsqrt reciprocal pow floor ceil round maximum minimum
    clamp_min clamp_max clamp_between lerp addcmul addcdiv
    exp expm1 log log1p erf sigmoid sin cos tanh
    relu threshold leaky_relu elu elu_backward softplus hardtanh hardswish log_sigmoid
    threshold_backward leaky_relu_backward hardtanh_backward hardswish_backward
    gelu_none gelu_tanh gelu_backward_none gelu_backward_tanh silu silu_backward
    eq ne lt le gt ge isnan isinf isfinite logical_not logical_and logical_or bitwise_and bitwise_or bitwise_not where masked_fill
    binary_cross_entropy_each mse_each mse_each_backward_self mse_each_backward_target smooth_l1_each
    lstm_cell_state lstm_hidden_state lstm_cell_state_backward_input lstm_cell_state_backward_forget
    lstm_cell_state_backward_candidate lstm_cell_state_backward_cell lstm_hidden_state_backward_output lstm_hidden_state_backward_cell
    gru_hidden_state gru_hidden_state_backward_input_reset gru_hidden_state_backward_input_update gru_hidden_state_backward_input_new
    gru_hidden_state_backward_hidden_reset gru_hidden_state_backward_hidden_update gru_hidden_state_backward_hidden_new
    gru_hidden_state_backward_hidden
    sum mean amax amin norm2 any _any_dim all _all_dim cumsum
    """.split()
)


def is_usual(kernel: str) -> bool:
    """Whether a generated kernel, "add_contiguous" for one, belongs to these operators."""
    return kernel.rsplit("_", 1)[0] in OPERATORS
