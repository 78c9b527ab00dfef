"""Gradients of leaves that a compiled backward program has computed before it ends.

A backward program is one node of the graph, so leaves get their gradients when all of it has run. Who wants to use a gradient while the
program goes on listens to its leaf: programs that are compiled meanwhile call `gradient_ready` with each gradient that is final.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import argand_c10 as c10
from argand_aten import empty
from argand_autograd import _C
from argand_c10 import Tensor, rules
from argand_c10.cuda import is_current_stream_capturing

__all__ = ["GRADIENT_READY", "Listener", "listen", "wanted"]

# listener(leaf, gradient), before the gradient is added to leaf.grad; it may read both, and must change neither.
Listener = Callable[[Tensor, Tensor], Any]

GRADIENT_READY = "gradient_ready"
_SCHEMA = f"{GRADIENT_READY}(Tensor gradient, int index) -> Tensor"
_listeners: dict[int, Callable[[], Listener | None]] = {}  # by the address of the leaf


def listen(leaves: list[Tensor], listener: Any) -> None:
    """Call a bound method with gradients of these leaves that are ready early, as long as its object lives.

    Only gradients that nothing will be added to on their way to the leaf are told of. `leaf.grad` gets them later in any case.
    """
    method = weakref.WeakMethod(listener)
    keys = [id(leaf) for leaf in leaves]
    _listeners.update(dict.fromkeys(keys, method))
    weakref.finalize(listener.__self__, _forget, keys, method)


def _forget(keys: list[int], method: Any) -> None:
    for key in keys:
        if _listeners.get(key) is method:
            del _listeners[key]


def wanted() -> bool:
    """Whether anybody listens."""
    return bool(_listeners)


def _gradient_ready(gradient: Tensor, index: int) -> Tensor:
    # Work that is recorded for replays, which do not come here, leaves gradients to their usual way.
    heard = _listeners and not (gradient.is_cuda and is_current_stream_capturing())
    leaf = _C._leaf_of_gradient(index) if heard else None
    if leaf is not None and (method := _listeners.get(id(leaf))) is not None:
        listener = method()
        if listener is not None:
            listener(leaf, gradient)
    return _token(gradient, index)


def _token(gradient: Tensor, index: int) -> Tensor:
    """What stands for the call in a graph."""
    return empty([0], dtype=gradient.dtype, device=gradient.device)


def _register() -> None:
    c10.define(_SCHEMA)
    for key in ("cpu", "cuda"):
        c10.register_kernel(GRADIENT_READY, key, _gradient_ready)
    c10.register_kernel(GRADIENT_READY, "meta", _token)
    rule = rules.Rules(kind="opaque", shape=lambda gradient, index: [0], differentiable=False)
    rules.register_rules(lambda: {GRADIENT_READY: rule})


_register()
