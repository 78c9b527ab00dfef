"""Anomaly detection: where in the forward the operation was whose backward failed or made NaN."""

from __future__ import annotations

import traceback
import warnings

from argand_autograd import _C
from argand_autograd._C import Node, is_anomaly_check_nan_enabled, is_anomaly_enabled

__all__ = [
    "detect_anomaly",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "set_detect_anomaly",
]

_KEY = "traceback_"


def _remember(node: Node) -> None:
    node.metadata.setdefault(_KEY, traceback.format_stack()[:-1])


def _describe(node: Node) -> None:
    lines = node.metadata.get(_KEY)
    if lines is None:
        text = "No forward pass information available; enable anomaly detection during the forward pass."
    else:
        text = "Traceback of the forward call that caused the error:\n" + "".join(lines)
    warnings.warn(f"Error detected in {node.name()}. {text}", stacklevel=2)


_C._set_anomaly_hooks(_remember, _describe)


class set_detect_anomaly:
    """Switches anomaly detection: as a function at once, as a context manager until its end.

    Args:
        mode: on or off.
        check_nan: whether a backward that makes NaN raises a RuntimeError.
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._previous = (is_anomaly_enabled(), is_anomaly_check_nan_enabled())
        _C._set_anomaly(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        _C._set_anomaly(*self._previous)


class detect_anomaly(set_detect_anomaly):
    """Context manager: failures in backward come with the forward's traceback, and NaN raises.

    Args:
        check_nan: whether a backward that makes NaN raises a RuntimeError.
    """

    def __init__(self, check_nan: bool = True) -> None:
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should "
            "only be enabled for debugging.",
            stacklevel=2,
        )
        super().__init__(True, check_nan)
