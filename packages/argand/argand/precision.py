"""How precise float32 matrix products must at least be."""

from __future__ import annotations

from argand_c10 import math_settings

__all__ = ["get_float32_matmul_precision", "set_float32_matmul_precision"]

_LEVELS = ("highest", "high", "medium")
_level = "highest"


def set_float32_matmul_precision(precision: str) -> None:
    """Allow float32 matrix products to be computed less precisely: highest, high or medium.

    It is a permission. "high" and "medium" allow CUDA's products TF32; CPU kernels always compute in float32.
    """
    global _level
    if precision not in _LEVELS:
        raise ValueError(
            f"set_float32_matmul_precision: got {precision!r}, expected one of {_LEVELS}"
        )
    _level = precision
    math_settings.change(matmul_tf32=precision != "highest")


def get_float32_matmul_precision() -> str:
    """The least precision that was asked for."""
    if not math_settings.current().matmul_tf32:
        return "highest"
    return "high" if _level == "highest" else _level
