"""What programs ask of `torch.ops` besides calling it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from argand_c10 import Operator, rules
from argand_c10.modes import find_operator
from argand_fx.function_schema import FunctionSchema, function_schema

__all__ = ["OpOverload", "OpOverloadPacket", "attribute_of"]


def packet_of(op: Operator) -> Operator:
    """The operator with all overloads, whose overload it is."""
    return find_operator(op.name.partition(".")[0])


def namespace_of(op: Operator) -> str:
    """Where it is in `torch.ops`."""
    before, _, after = op.name.partition("::")
    return before if after else "aten"


def overload_name_of(op: Operator) -> str:
    """PyTorch's name of an overload, "default" for the one without; the first of several that are one here, if it was not asked for by name."""
    if op.shown:
        return op.shown.rpartition(".")[2]
    names = rules.names_of(packet_of(op), op)
    return names[0] if names else op.name.partition(".")[2] or "default"


def schema_of(op: Operator) -> FunctionSchema:
    """The schema as an object."""
    name = overload_name_of(op)
    return function_schema(op, namespace_of(op), "" if name == "default" else name)


def _qualified(op: Operator) -> str:
    return f"{namespace_of(op)}::{_name(op)}"


def _name(op: Operator) -> str:
    return op.name.rpartition("::")[2].partition(".")[0]


def _itself(op: Operator) -> Operator:
    return op


_OF_ALL: dict[str, Callable[[Operator], Any]] = {"_qualified_op_name": _qualified, "op": _itself}
_OF_OVERLOADS: dict[str, Callable[[Operator], Any]] = {
    "_opname": _name,
    "_overloadname": overload_name_of,
    "_overloadpacket": packet_of,
    "_schema": schema_of,
    "namespace": namespace_of,
    "overloadpacket": packet_of,
}


def attribute_of(op: Operator, name: str) -> Any:
    """What an operator has under this name; None of what overloads have alone, where it is no overload."""
    if name in _OF_ALL:
        return _OF_ALL[name](op)
    return _OF_OVERLOADS[name](op) if isinstance(op, OpOverload) else None


class _Kind(type):
    def __instancecheck__(cls, value: Any) -> bool:
        if not isinstance(value, Operator):
            return False
        is_packet = packet_of(value) is value
        return (
            is_packet
            if cls is OpOverloadPacket
            else not is_packet or value.name in rules.definitions
        )


class OpOverload(metaclass=_Kind):
    """Overloads, for `isinstance`."""


class OpOverloadPacket(metaclass=_Kind):
    """Operators with all their overloads, for `isinstance`."""
