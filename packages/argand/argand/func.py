"""Functional transforms."""

from __future__ import annotations

import argand_autograd.func
from argand_autograd.func import *  # noqa: F403
from argand_nn.utils.stateless import functional_call as functional_call
from argand_nn.utils.stateless import stack_module_state as stack_module_state

__all__ = sorted([*argand_autograd.func.__all__, "functional_call", "stack_module_state"])
