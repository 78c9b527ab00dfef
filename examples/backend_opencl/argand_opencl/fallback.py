"""Operators without a kernel of this device: run on the CPU, on copies. Each is reported once on the log "argand_opencl"."""

from __future__ import annotations

import logging
from typing import Any

import argand_c10
from argand_c10 import Operator, Tensor
from argand_opencl.device import DEVICE_KEY, DEVICE_NAME

_log = logging.getLogger("argand_opencl")
_reported: set[str] = set()


def _is_here(x: object) -> bool:
    return isinstance(x, Tensor) and x.device.type == DEVICE_NAME


def _map(function: Any, x: Any) -> Any:
    """`function` of every element of nested lists, tuples and dicts."""
    if isinstance(x, dict):
        return {k: _map(function, v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x)(_map(function, v) for v in x)
    return function(x)


def on_cpu(op: Operator, *args: Any, **kwargs: Any) -> Any:
    """Calls `op` on CPU copies and brings the results here; what the call changes in place is copied back."""
    if op.name not in _reported:
        _reported.add(op.name)
        _log.warning("%s: no %s kernel, runs on the CPU on copies", op.name, DEVICE_NAME)
    copies: dict[int, tuple[Tensor, Tensor]] = {}

    def to_cpu(x: Any) -> Any:
        if isinstance(x, argand_c10.device):
            return argand_c10.device("cpu") if x.type == DEVICE_NAME else x
        if not _is_here(x):
            return x
        if id(x) not in copies:
            copies[id(x)] = (x, x.to("cpu"))
        return copies[id(x)][1]

    result = op(*_map(to_cpu, args), **_map(to_cpu, kwargs))
    changed = [kwargs["out"]] if "out" in kwargs else [args[0]] if op.is_inplace else []
    for target in changed:
        target.copy_(to_cpu(target))
    back = {id(copy): original for original, copy in copies.values()}

    def to_device(x: Any) -> Any:
        if isinstance(x, Tensor) and id(x) in back:
            return back[id(x)]
        return x.to(DEVICE_NAME) if isinstance(x, Tensor) else x

    return _map(to_device, result)


def register() -> None:
    argand_c10.register_fallback(DEVICE_KEY, on_cpu)
