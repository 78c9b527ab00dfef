"""`Module` and the hooks of all modules, where PyTorch users look for them."""

from __future__ import annotations

from argand_c10 import Module
from argand_c10.module_hooks import (
    RemovableHandle,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from argand_c10.module_state import EXTRA_STATE_KEY as _EXTRA_STATE_KEY_SUFFIX  # noqa: F401
from argand_c10.module_state import IncompatibleKeys as _IncompatibleKeys  # noqa: F401

__all__ = [
    "Module",
    "RemovableHandle",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]
