"""Summaries as messages, for programs that give them to a `FileWriter` themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argand.utils.tensorboard import plugins
from argand.utils.tensorboard.messages import float32, message, number

__all__ = ["hparams", "scalar"]


def _summary(tag: str, value: bytes) -> bytes:
    return message(1, message(1, tag) + value)


def hparams(
    hparam_dict: Mapping[str, Any],
    metric_dict: Mapping[str, Any],
    hparam_domain_discrete: Mapping[str, Any] | None = None,
) -> tuple[bytes, ...]:
    """What describes, begins and ends a run with these settings; see `SummaryWriter.add_hparams`."""
    values = plugins.hparams(hparam_dict, metric_dict, hparam_domain_discrete)
    return tuple(_summary(tag, value) for tag, value in values)


def scalar(name: str, value: Any) -> bytes:
    """A number of a curve."""
    return _summary(name, float32(2, number(value)))
