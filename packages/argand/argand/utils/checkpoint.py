"""Recomputing activations in backward instead of keeping them."""

from __future__ import annotations

from collections.abc import Sequence
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
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
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
