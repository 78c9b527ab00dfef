"""Recomputing activations in backward instead of keeping them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from argand import cuda
from argand.utils._pytree import tree_leaves
from argand_autograd.checkpoint import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    noop_context_fn,
    set_checkpoint_early_stop,
)
from argand_autograd.selective_checkpoint import (
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)
from argand_c10 import Tensor

__all__ = [
    "CheckpointError",
    "CheckpointPolicy",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_early_stop",
    "set_device_states",
]


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The devices of the tensors among the arguments that lie on accelerators, and their generators' states."""
    found = [leaf for leaf in tree_leaves(args) if isinstance(leaf, Tensor)]
    devices = [t.device.index or 0 for t in found if t.device.type not in ("cpu", "meta")]
    return devices, [cuda.get_rng_state(device) for device in devices]


def set_device_states(
    devices: Sequence[int], states: Sequence[Tensor], *, device_type: str | None = None
) -> None:
    """Gives the generators of devices the states that `get_device_states` found."""
    for device, state in zip(devices, states, strict=False):
        cuda.set_rng_state(state, device)


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of a function that is to run again: tensors without their histories, which require gradients as before; all else as it is.

    Raises:
        RuntimeError: if `inputs` is not a tuple.
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"detach_variable: got {type(inputs).__name__}, expected a tuple")
    return tuple(
        value.detach().requires_grad_(value.requires_grad) if isinstance(value, Tensor) else value
        for value in inputs
    )


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn if no tensor among the inputs requires gradients, so that those of a checkpoint would be None."""
    if not any(isinstance(value, Tensor) and value.requires_grad for value in inputs):
        warnings.warn(
            "checkpoint: got inputs none of which requires grad, expected one that does; gradients will be None",
            stacklevel=2,
        )
