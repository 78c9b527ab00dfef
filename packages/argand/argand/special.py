"""Special functions."""

from __future__ import annotations

from argand_aten import (
    entr,
    erf,
    erfc,
    erfinv,
    exp2,
    expm1,
    log1p,
    log_softmax,
    logit,
    logsumexp,
    ndtr,
    round,
    sinc,
    softmax,
    xlog1py,
    xlogy,
)
from argand_aten import sigmoid as expit

__all__ = [
    "entr",
    "erf",
    "erfc",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "log1p",
    "log_softmax",
    "logit",
    "logsumexp",
    "ndtr",
    "round",
    "sinc",
    "softmax",
    "xlog1py",
    "xlogy",
]
