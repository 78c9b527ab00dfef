"""Operators that a device has no kernel for, run on the CPU."""

from __future__ import annotations

import re
import sys
import threading
import warnings
from typing import Any

from argand_c10 import records
from argand_c10._C import Operator, Tensor, device
from argand_c10.fork import renew_in_child

_CHANGED = re.compile(r"Tensor\(\w+!\) (\w+)")  # names in a schema
_lock = threading.Lock()
renew_in_child(_lock)
_reported: set[tuple[str, str]] = set()  # (operator, device)


def _map(function: Any, x: Any) -> Any:
    """`function` of every element of nested lists, tuples and dicts."""
    if isinstance(x, dict):
        return {k: _map(function, v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):  # results may be named
        return tuple(_map(function, v) for v in x)
    return function(x)


def _users_place() -> tuple[str, int]:
    """The innermost line outside of argand's packages."""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("argand"):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def _report(op: Operator, device_type: str) -> None:
    with _lock:
        if (op.name, device_type) in _reported:
            return
        _reported.add((op.name, device_type))
    file, line = _users_place()
    record = records.Record(
        "fallback",
        "CPU001",
        f"{op.name} has no kernel for '{device_type}': it runs on the CPU, on copies, and waits for the device",
        "move the tensors before a series of such calls, as with .cpu(), and the results back after it",
        file,
        line,
    )
    records.emit(record)
    warnings.warn_explicit(f"{record.message}; {record.fix}", UserWarning, file, line)


def run_on_cpu(op: Operator, *args: Any, **kwargs: Any) -> Any:
    """Call `op` on CPU copies of its tensors and bring the results to their device; for `register_fallback`.

    What the call changes in place is copied back. The first call of each operator warns, with the user's line.

    Args:
        op: an operator with a kernel for the CPU.
        args, kwargs: the schema's arguments; the tensors among them may be on one other device and on the CPU.

    Returns:
        What `op` returns, on the first tensor's (or else the device argument's) device.

    Raises:
        Whatever `op` raises on the CPU.
    """
    found: list[device] = []
    copies: dict[int, tuple[Tensor, Tensor]] = {}

    def to_cpu(x: Any) -> Any:
        if isinstance(x, device) and x.type != "cpu":
            found.append(x)
            return device("cpu")
        if not isinstance(x, Tensor) or x.device.type == "cpu":
            return x
        if id(x) not in copies:
            found.append(x.device)
            copies[id(x)] = (x, x.to("cpu"))
        return copies[id(x)][1]

    on_cpu, named = _map(to_cpu, args), _map(to_cpu, kwargs)
    result = op(*on_cpu, **named)
    _report(op, found[0].type)
    changed = [kwargs[name] for name in _CHANGED.findall(op.schema) if name in kwargs]
    for target in [args[0], *changed] if op.is_inplace else changed:
        if target.shape != to_cpu(target).shape:
            target.resize_(to_cpu(target).shape)
        target.copy_(to_cpu(target))
    back = {id(copy): original for original, copy in copies.values()}

    def to_device(x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        return back[id(x)] if id(x) in back else x.to(found[0])

    return _map(to_device, result)
