"""The package's operators (`registry/*.yaml`), registered when this module is imported.

Each overload is an attribute under its name without namespace, dots as underscores: `quantize_per_tensor`,
`quantize_per_tensor_tensor`, `choose_qparams_tensor`, `fake_quantize_per_channel_affine`. These are the operators themselves, which graphs hold.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import argand_aten  # noqa: F401  (its operators are called by the kernels)
import argand_c10 as c10
from argand_autograd import Function, no_grad
from argand_c10 import Operator, rules
from argand_export.operator_libraries import OperatorLibrary, register_operator_library
from argand_inductor import register_graph_pass
from argand_quant import _C  # registers operators and kernels
from argand_quant.generated import tables


def attribute_of(name: str) -> str:
    """The name under which this module has an overload: "max_dim" for "ns::max.dim"."""
    return name.rpartition("::")[2].replace(".", "_")


def _provide() -> dict[str, rules.Rules]:
    from argand_quant.lowering_rules import LOWERINGS

    return {
        name: rules.Rules(
            kind=kind,
            shape=tables.SHAPES.get(name),
            dtype=tables.DTYPES.get(name),
            derivative=tables.DERIVATIVES.get(name),
            differentiable=name not in tables.NOT_DIFFERENTIABLE,
            lowering=LOWERINGS.get(name),
        )
        for name, kind in tables.KINDS.items()
    }


class _Derived(Function):
    """An operator whose backward is the registry's derivative."""

    @staticmethod
    def forward(ctx: Any, name: str, *arguments: Any) -> Any:
        ctx.name, ctx.arguments = name, arguments
        return operators[attribute_of(name)](*arguments)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        derivative = tables.DERIVATIVES[ctx.name]
        needs = [True] * len(ctx.arguments)
        return (None, *derivative(_Namespace, grads, ctx.arguments, [None], needs))


class _Namespace:
    """What derivatives call operators by."""


def _with_history(name: str) -> Callable[..., Any]:
    """The kernel for tensors that require grad."""
    if name in tables.NOT_DIFFERENTIABLE:

        def constant(*arguments: Any, **keywords: Any) -> Any:
            detached = [a.detach() if isinstance(a, c10.Tensor) else a for a in arguments]
            with no_grad():
                return operators[attribute_of(name)](*detached, **keywords)

        return constant
    return lambda *arguments: _Derived.apply(name, *arguments)


def _lower(gm: Any) -> None:
    from argand_quant.lowering import lower_quantized

    lower_quantized(gm)


def _register() -> dict[str, Operator]:
    made = {}
    for name in tables.KINDS:
        made[attribute_of(name)] = operator = c10.find_operator(name)
        setattr(_Namespace, attribute_of(name), staticmethod(operator))
        c10.register_kernel(name, "autograd", _with_history(name))
    rules.register_rules(_provide)
    register_graph_pass("quantized_decomposed", _lower)
    path = Path(_C.__file__).parent / f"libargand_quant.so.{c10.ABI_VERSION}"
    names = frozenset(tables.KINDS)
    register_operator_library(OperatorLibrary(names, path, "argand_quant_init", "argand_quant"))
    return made


operators = _register()


def __getattr__(name: str) -> Operator:
    try:
        return operators[name]
    except KeyError:
        raise AttributeError(f"module 'argand_quant.operators' has no attribute {name!r}") from None
