"""Gradients: the tape and the engine (C++), custom functions, hooks, checks and functional transforms.

Importing this package makes every operator of `argand_aten` differentiable and completes `Tensor` (`requires_grad`,
`backward`, `grad_fn`, hooks).
"""

from __future__ import annotations

import argand_aten  # noqa: F401  (the operators whose derivatives are registered by _C)
import argand_c10

argand_c10.check_abi("argand-autograd", built_for=2)

from argand_autograd import early_gradients, func, functional, graph  # noqa: E402  (the ABI is checked first)
from argand_autograd._C import Node, is_grad_enabled, is_inference_mode_enabled  # noqa: E402
from argand_autograd.amp import (  # noqa: E402
    autocast,
    clear_autocast_cache,
    get_autocast_dtype,
    is_autocast_available,
    is_autocast_cache_enabled,
    is_autocast_enabled,
    set_autocast_cache_enabled,
    set_autocast_dtype,
    set_autocast_enabled,
)
from argand_autograd.anomaly import (  # noqa: E402
    detect_anomaly,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    set_detect_anomaly,
)
from argand_autograd.checkpoint import (  # noqa: E402
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
)
from argand_autograd.differentiate import backward, grad  # noqa: E402
from argand_autograd.function import (  # noqa: E402
    Function,
    FunctionCtx,
    gradient_barrier,
    once_differentiable,
)
from argand_autograd.grad_mode import (  # noqa: E402
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
)
from argand_autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck  # noqa: E402
from argand_autograd.sparse import sparse_coo_tensor  # noqa: E402

argand_c10.module_hooks.set_gradient_barrier(gradient_barrier)

__version__ = "0.1.0"
__all__ = [
    "CheckpointError",
    "Function",
    "FunctionCtx",
    "GradcheckError",
    "Node",
    "autocast",
    "backward",
    "checkpoint",
    "checkpoint_sequential",
    "clear_autocast_cache",
    "detect_anomaly",
    "early_gradients",
    "enable_grad",
    "func",
    "functional",
    "get_autocast_dtype",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "is_autocast_available",
    "is_autocast_cache_enabled",
    "is_autocast_enabled",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "once_differentiable",
    "set_autocast_cache_enabled",
    "set_autocast_dtype",
    "set_autocast_enabled",
    "set_detect_anomaly",
    "set_grad_enabled",
    "sparse_coo_tensor",
]
