"""How precise float32 matrix products must at least be."""

from __future__ import annotations

__all__ = ["get_float32_matmul_precision", "set_float32_matmul_precision"]

_LEVELS = ("highest", "high", "medium")
_level = "highest"


def set_float32_matmul_precision(precision: str) -> None:
    """Allow float32 matrix products to be computed less precisely: highest, high or medium.

    It is a permission. CPU kernels make no use of it: they always compute in float32.
    """
    global _level
    if precision not in _LEVELS:
        raise ValueError(
            f"set_float32_matmul_precision: got {precision!r}, expected one of {_LEVELS}"
        )
    _level = precision


def get_float32_matmul_precision() -> str:
    """The least precision that was asked for."""
    return _level
