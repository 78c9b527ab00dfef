"""In which modules a program is, forward and backward."""

from __future__ import annotations

import weakref
from typing import Any, Self

from argand.utils._pytree import tree_leaves
from argand_autograd.graph import register_multi_grad_hook
from argand_c10 import Module, Tensor
from argand_c10.module_hooks import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """Context manager that knows the modules around what runs, by their dotted names below the class of the outermost.

    Attributes:
        parents: the names of the modules around; "Global" always.
        is_bw: whether it is the backward that runs in them.
    """

    parents: set[str]

    def __init__(self) -> None:
        self.parents = {"Global"}
        self._names: weakref.WeakKeyDictionary[Module, str] = weakref.WeakKeyDictionary()
        self._handles: list[Any] = []
        self._backward: list[str] = []

    @property
    def is_bw(self) -> bool:
        """Whether the modules around are in their backward."""
        return bool(self._backward)

    def _name(self, module: Module) -> str:
        if module not in self._names:
            root = type(module).__name__
            for name, part in module.named_modules():
                self._names.setdefault(part, f"{root}.{name}" if name else root)
        return self._names[module]

    def _enter(self, name: str) -> None:
        self.parents.add(name)

    def _leave(self, name: str) -> None:
        self.parents.discard(name)

    def _before(self, module: Module, args: Any) -> None:
        name = self._name(module)
        self._enter(name)
        inputs = _recorded(args)
        if inputs:  # their gradients are the last that the module's backward makes
            register_multi_grad_hook(inputs, lambda grads: self._leave_backward(name))

    def _after(self, module: Module, args: Any, output: Any) -> None:
        name = self._name(module)
        self._leave(name)
        outputs = _recorded(output)
        if outputs:
            register_multi_grad_hook(outputs, lambda grads: self._enter_backward(name))

    def _enter_backward(self, name: str) -> None:
        self._backward.append(name)
        self._enter(name)

    def _leave_backward(self, name: str) -> None:
        if name in self._backward:
            self._backward.remove(name)
        self._leave(name)

    def __enter__(self) -> Self:
        self._handles = [
            register_module_forward_pre_hook(self._before),
            register_module_forward_hook(self._after, always_call=True),
        ]
        return self

    def __exit__(self, *exc: object) -> None:
        for handle in self._handles:
            handle.remove()
        self.parents.intersection_update({"Global"})
        self._backward.clear()


def _recorded(values: Any) -> list[Tensor]:
    """The tensors through which gradients flow."""
    return [v for v in tree_leaves(values) if isinstance(v, Tensor) and v.requires_grad]
