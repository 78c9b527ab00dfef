"""Functional transforms."""

from __future__ import annotations

import argand_autograd.func
from argand_autograd.func import *  # noqa: F403
from argand_c10 import Module
from argand_nn.modules.batchnorm import _BatchNorm
from argand_nn.utils.stateless import functional_call as functional_call
from argand_nn.utils.stateless import stack_module_state as stack_module_state

__all__ = sorted(
    [
        *argand_autograd.func.__all__,
        "functional_call",
        "replace_all_batch_norm_modules_",
        "stack_module_state",
    ]
)


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Let all batch norms of a module normalise by the batch alone, in training and in evaluation; returns the module."""
    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
