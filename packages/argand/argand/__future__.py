"""How conversions of modules treat parameters, as PyTorch's `torch.__future__` has it."""

from __future__ import annotations

from argand_c10.module import conversion

__all__ = [
    "get_overwrite_module_params_on_conversion",
    "get_swap_module_params_on_conversion",
    "set_overwrite_module_params_on_conversion",
    "set_swap_module_params_on_conversion",
]


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether `Module.to` and its kin give modules new parameters, instead of new data to those that they have."""
    conversion.overwrites = value


def get_overwrite_module_params_on_conversion() -> bool:
    """What `set_overwrite_module_params_on_conversion` has set; False at first."""
    return conversion.overwrites


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Kept, and changes nothing: parameters stay the same objects in any case."""
    conversion.swaps = value


def get_swap_module_params_on_conversion() -> bool:
    """What `set_swap_module_params_on_conversion` has set; False at first."""
    return conversion.swaps
