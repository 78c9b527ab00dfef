"""Exchanging what two tensors are."""

from __future__ import annotations

import copyreg
import weakref
from typing import Any, NoReturn

from argand_autograd.graph import get_gradient_edge
from argand_c10 import _C, Tensor

__all__ = ["swap_tensors"]


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Let each of two tensors become the other: their elements, classes, attributes, hooks, gradients and histories; whoever holds one finds the other.

    Args:
        t1, t2: tensors that nothing but Python refers to: no view, no graph that saved them. A graph that leads to a leaf can't be run
            backward any more.

    Raises:
        RuntimeError: something else refers to one of them, as a weak reference does, or their classes have other slots.
    """
    for name, t in (("t1", t1), ("t2", t2)):
        if weakref.getweakrefs(t):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    slots = set(copyreg._slotnames(type(t1)))  # type: ignore[attr-defined]
    if slots != set(copyreg._slotnames(type(t2))):  # type: ignore[attr-defined]
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    poisoned = [_accumulator("t1", t1), _accumulator("t2", t2)]
    first, second = _attributes(t1, slots), _attributes(t2, slots)
    t1.__class__, t2.__class__ = type(t2), type(t1)
    for t, attributes in ((t1, second), (t2, first)):
        for name in slots:
            if hasattr(t, name):
                delattr(t, name)
        t.__dict__ = attributes.pop("__dict__")
        for name, value in attributes.items():
            setattr(t, name, value)
    _C._swap(t1, t2)
    for node in poisoned:
        if node is not None:
            node.register_prehook(_refuse)


def _attributes(t: Tensor, slots: set[str]) -> dict[str, Any]:
    return {name: getattr(t, name) for name in ("__dict__", *slots) if hasattr(t, name)}


def _accumulator(name: str, t: Tensor) -> Any:
    """The node that adds to the leaf's gradient, if a graph has it: it would add to what is another tensor now."""
    count = t._use_count()
    if count == 2 and t.is_leaf and t.requires_grad:
        node = get_gradient_edge(t).node
        if (
            t._use_count() == count
        ):  # else it was made here, and something else refers to the tensor
            return node
    if count > 1:
        raise RuntimeError(
            f"Expected use_count of {name} to be 1, got {count}: a view of it or a graph that saved it refers to it too"
        )
    return None


def _refuse(grads: Any) -> NoReturn:
    raise RuntimeError(
        "swap_tensors: got a backward through a graph that leads to a tensor that was swapped since, expected none; compute the graph anew"
    )
