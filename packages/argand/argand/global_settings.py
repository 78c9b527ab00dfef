"""Switches for the whole process: determinism, repeated warnings, threads, and names for objects."""

from __future__ import annotations

import importlib
import warnings
from types import ModuleType
from typing import Any

import argand_autograd
import argand_c10
from argand_c10 import _C, Tensor, get_num_threads, math_settings

__all__ = [
    "are_deterministic_algorithms_enabled",
    "get_autocast_cpu_dtype",
    "get_autocast_gpu_dtype",
    "get_deterministic_debug_mode",
    "get_device_module",
    "get_num_interop_threads",
    "is_autocast_cpu_enabled",
    "is_deterministic_algorithms_warn_only_enabled",
    "is_vulkan_available",
    "is_warn_always_enabled",
    "set_autocast_cpu_dtype",
    "set_autocast_cpu_enabled",
    "set_autocast_gpu_dtype",
    "set_deterministic_debug_mode",
    "set_flush_denormal",
    "set_num_interop_threads",
    "set_warn_always",
    "typename",
    "use_deterministic_algorithms",
]

_MODES = ("default", "warn", "error")
_deterministic = "default"
_warn_always = False
_interop_threads: int | None = None


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask that the same program on the same device gives the same bits.

    Argand's own kernels always do; what it changes is that CUDA's libraries choose among their deterministic algorithms only.
    """
    global _deterministic
    _deterministic = ("warn" if warn_only else "error") if mode else "default"
    math_settings.change(deterministic=bool(mode))


def are_deterministic_algorithms_enabled() -> bool:
    """Whether deterministic algorithms were asked for."""
    return _deterministic != "default"


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether they were asked for with `warn_only`."""
    return _deterministic == "warn"


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """`use_deterministic_algorithms` by a number or a name: 0 or "default", 1 or "warn", 2 or "error".

    Raises:
        RuntimeError: for other modes.
    """
    if debug_mode not in (*_MODES, 0, 1, 2):
        raise RuntimeError(
            f"set_deterministic_debug_mode: got {debug_mode!r}, expected one of {_MODES}, or 0, 1, 2"
        )
    mode = debug_mode if isinstance(debug_mode, str) else _MODES[debug_mode]
    use_deterministic_algorithms(mode != "default", warn_only=mode == "warn")


def get_deterministic_debug_mode() -> int:
    """0, 1 or 2: see `set_deterministic_debug_mode`."""
    return _MODES.index(_deterministic)


def set_warn_always(b: bool) -> None:
    """Show warnings every time, not once a place."""
    global _warn_always
    _warn_always = b
    warnings.simplefilter("always" if b else "default", UserWarning)


def is_warn_always_enabled() -> bool:
    """Whether `set_warn_always` is on."""
    return _warn_always


def set_flush_denormal(mode: bool) -> bool:
    """Have the calling thread, and the operators that it calls, count numbers too small for a normal form as zero, operands and results.

    Returns:
        Whether the processor has that mode: x86 and ARM have.
    """
    return _C.set_flush_denormal(mode)


def get_num_interop_threads() -> int:
    """How many operators may run at once; they share one pool of threads."""
    return get_num_threads() if _interop_threads is None else _interop_threads


def set_num_interop_threads(num: int) -> None:
    """Remembers a number: operators called by different threads share one pool, whatever it is.

    Raises:
        RuntimeError: for numbers below 1.
    """
    global _interop_threads
    if num < 1:
        raise RuntimeError(f"set_num_interop_threads: got {num}, expected a positive number")
    _interop_threads = num


def is_vulkan_available() -> bool:
    """False: there are no Vulkan kernels."""
    return False


def typename(obj: Any, /) -> str:
    """The name of an object's type with its module; of a tensor that of `Tensor.type`."""
    if isinstance(obj, Tensor):
        return str(obj.type())
    kind = obj if isinstance(obj, type) or hasattr(obj, "__qualname__") else type(obj)
    module = getattr(kind, "__module__", None) or ""
    return kind.__qualname__ if module in ("", "builtins") else f"{module}.{kind.__qualname__}"


def get_device_module(device: Any = None) -> ModuleType:
    """The module of a device's kind, as `argand.cuda`; without a device, the accelerator's, or the CPU's where there is none."""
    if device is None:
        kind = "cuda" if argand_c10.cuda.is_available() else "cpu"
    else:
        kind = argand_c10.device(device).type
    if kind not in ("cpu", "cuda"):
        raise RuntimeError(f"get_device_module: got {device}, expected a device of the CPU or CUDA")
    return importlib.import_module(f"argand.{kind}")


def get_autocast_cpu_dtype() -> Any:
    """`get_autocast_dtype("cpu")`."""
    return argand_autograd.get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype: Any) -> None:
    """`set_autocast_dtype("cpu", dtype)`."""
    argand_autograd.set_autocast_dtype("cpu", dtype)


def get_autocast_gpu_dtype() -> Any:
    """`get_autocast_dtype("cuda")`."""
    return argand_autograd.get_autocast_dtype("cuda")


def set_autocast_gpu_dtype(dtype: Any) -> None:
    """`set_autocast_dtype("cuda", dtype)`."""
    argand_autograd.set_autocast_dtype("cuda", dtype)


def is_autocast_cpu_enabled() -> bool:
    """`is_autocast_enabled("cpu")`."""
    return argand_autograd.is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """`set_autocast_enabled("cpu", enabled)`."""
    argand_autograd.set_autocast_enabled("cpu", enabled)
