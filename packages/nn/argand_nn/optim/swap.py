"""An optimizer that works on other parameters for a while."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from argand_c10 import Tensor
from argand_nn.optim.optimizer import Optimizer

# Compilers run these functions as they are.
__argand_plain__ = True
__all__ = ["swap_in_optimizer_params_and_state"]


@contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: Optimizer,
    swapin_parameters: Mapping[str, Tensor],
    swapin_optim_state: dict[str, Any],
) -> Iterator[None]:
    """Inside, `optimizer` steps `swapin_parameters` by `swapin_optim_state`.

    Args:
        optimizer: has its own parameters, state and options back afterwards.
        swapin_parameters: in the order of the optimizer's parameters.
        swapin_optim_state: in the form of `Optimizer.state_dict`; its tensors are used themselves.

    Raises:
        ValueError: if the numbers of parameters differ.
    """
    groups, state = optimizer.param_groups, optimizer.state
    given = list(swapin_parameters.values())
    sizes = [len(group["params"]) for group in groups]
    saved = swapin_optim_state["param_groups"]
    if len(given) != sum(sizes) or [len(group["params"]) for group in saved] != sizes:
        raise ValueError(
            f"swap_in_optimizer_params_and_state: got {len(given)} parameters in groups of "
            f"{[len(group['params']) for group in saved]}, expected {sizes}"
        )
    numbers = [number for group in saved for number in group["params"]]
    by_number = dict(zip(numbers, given, strict=True))
    try:
        optimizer.state = type(state)(dict)
        for key, entries in swapin_optim_state["state"].items():
            optimizer.state[by_number.get(key, key)] = entries
        optimizer.param_groups = [
            {**group, "params": [by_number[number] for number in group["params"]]}
            for group in saved
        ]
        yield
    finally:
        optimizer.param_groups, optimizer.state = groups, state
