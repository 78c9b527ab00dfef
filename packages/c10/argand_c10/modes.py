"""Modes: objects that see every operator call of a thread while they are entered."""

from __future__ import annotations

from typing import Any

from argand_c10 import _C
from argand_c10._C import (
    Operator,
    define,
    register_device_backend,
    register_fallback,
    register_kernel,
)

__all__ = [
    "ArgandDispatchMode",
    "current_modes",
    "define",
    "find_operator",
    "register_device_backend",
    "register_fallback",
    "register_kernel",
]


class ArgandDispatchMode:
    """A context manager whose `__argand_dispatch__` is called for every operator call inside of it.

    While it runs, calls go to the mode around it, and finally to the kernels::

        class Log(ArgandDispatchMode):
            def __argand_dispatch__(self, op, types, args=(), kwargs=None):
                print(op.name)
                return op(*args, **(kwargs or {}))
    """

    def __argand_dispatch__(
        self,
        op: Operator,
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Take over one call.

        Args:
            op: the overload that was called; call it to go on.
            types: the distinct types of its tensors.
            args, kwargs: the schema's arguments; those that have their defaults may be left out.

        Returns:
            What the operator returns: a tensor, or a tuple for several results.
        """
        return op(*args, **(kwargs or {}))

    def __enter__(self) -> ArgandDispatchMode:
        _C._push_mode(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _C._pop_mode(self)


def current_modes() -> list[ArgandDispatchMode]:
    """The modes of this thread, innermost last."""
    return _C._mode_stack()


def find_operator(name: str) -> Operator:
    """The callable of an operator by its full name, as in 'max.dim'.

    Raises:
        LookupError: if no such operator is registered.
    """
    return _C._operator_by_name(name)
