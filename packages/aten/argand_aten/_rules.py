"""What compilers know of this package's operators: the generated tables as rules, loaded when first asked for."""

from __future__ import annotations

from typing import Any

from argand_aten import _indexing
from argand_c10 import protocol, rules

_PROTOCOL = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floor_divide", "mod": "remainder", "pow": "pow",
    "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift", "iadd": "add_", "isub": "sub_", "imul": "mul_", "itruediv": "div_",
    "ifloordiv": "floor_divide_", "imod": "remainder_", "ipow": "pow_", "iand": "bitwise_and_", "ior": "bitwise_or_",
    "ixor": "bitwise_xor_", "ilshift": "bitwise_left_shift_", "irshift": "bitwise_right_shift_", "neg": "neg",
    "pos": "positive", "abs": "abs", "invert": "bitwise_not", "eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt",
    "ge": "ge",
}  # fmt: skip


def _provide() -> dict[str, rules.Rules]:
    from argand_aten.generated import tables  # large: a program that is not compiled never loads it

    return {
        name: rules.Rules(
            kind=kind,
            shape=tables.SHAPES.get(name),
            dtype=tables.DTYPES.get(name),
            composite=tables.COMPOSITES.get(name),
            kernels=tables.KERNELS.get(name, frozenset()),
            derivative=tables.DERIVATIVES.get(name),
            derivative_body=tables.BODIES.get(name),
            differentiable=name not in tables.NOT_DIFFERENTIABLE,
            autocast=tables.AUTOCAST.get(name),
            lowering=tables.LOWERINGS.get(name),
        )
        for name, kind in tables.KINDS.items()
    }


def install(operators: dict[str, Any]) -> None:
    """Offers the rules to whoever asks `argand_c10.rules.rules_of`, and what syntax on tensors means."""
    rules.register_rules(_provide)
    protocol.register_protocol({f"__{name}__": operators[op] for name, op in _PROTOCOL.items()})
    protocol.register_protocol({"__getitem__": _indexing.getitem, "__setitem__": _indexing.setitem})
