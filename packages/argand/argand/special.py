"""Special functions."""

from __future__ import annotations

from argand_aten import (
    erf,
    erfc,
    erfinv,
    exp2,
    expm1,
    log1p,
    log_softmax,
    logsumexp,
    round,
    softmax,
)
from argand_aten import sigmoid as expit

__all__ = [
    "erf",
    "erfc",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "log1p",
    "log_softmax",
    "logsumexp",
    "round",
    "softmax",
]
