"""`Spec`: what a graph builder needs to know of an overload."""

from __future__ import annotations

from typing import Any

from argand_c10 import Operator
from argand_c10.rules import rules_of
from argand_fx import schema

__all__ = ["Spec"]


class Spec:
    """What a builder needs to know of one overload, looked up once."""

    __slots__ = (
        "arg_mask",
        "autocast",
        "composite",
        "differentiable",
        "dtype",
        "fake",
        "inplace",
        "kind",
        "name",
        "op",
        "out_of",
        "placed",
        "operand_places",
        "pointwise",
        "positional",
        "result_mask",
        "rules",
        "schema",
        "shape",
        "view",
    )

    def __init__(self, op: Operator) -> None:
        s = schema.schema_of(op)
        rules = rules_of(op)
        self.op = op
        self.name = op.name
        self.schema = s
        self.rules = rules
        self.positional = s.positional
        self.inplace = bool(s.written)
        self.view = op.is_view
        self.placed = self.view and [a.type for a in s.arguments].count("Tensor") > 1
        self.out_of = _functional_of_out(op.name)
        functional = rules
        base, dot, rest = op.name.partition(".")
        if self.inplace and rules is None:
            functional = rules_of(base.removesuffix("_"))
        elif self.inplace and rules and rules.composite:
            found = rules_of(base.removesuffix("_") + dot + rest)
            if found and found.derivative:  # which its body's operators do not give
                rules, functional = None, found
        self.kind = rules.kind if rules else "opaque"
        self.autocast = rules.autocast if rules else None
        self.shape = rules.shape if rules else None
        self.dtype = rules.dtype if rules else None
        self.fake = rules.fake if rules else None
        derived = rules is not None and (rules.derivative or rules.derivative_body)
        self.composite = rules.composite if rules and not derived else None
        self.pointwise = self.kind == "pointwise"
        self.operand_places = tuple(
            i for i, a in enumerate(s.arguments) if a.type in ("Tensor", "Operand")
        )
        self.differentiable = bool(derived) or self.inplace
        mark = getattr(functional.derivative if functional else None, "differentiable", None)
        self.arg_mask = None if mark is None else frozenset(mark[0])
        self.result_mask = None if mark is None or self.inplace else frozenset(mark[1])

    def operands(self, values: list[Any]) -> list[Any]:
        """Of a pointwise operator: the arguments that are tensors, or numbers in their place."""
        return [values[i] for i in self.operand_places]

    def keywords(self, values: list[Any]) -> dict[str, Any]:
        """The keyword-only arguments among all."""
        n = self.positional
        if len(values) == n:
            return {}
        return {a.name: v for a, v in zip(self.schema.arguments[n:], values[n:], strict=True)}


def _functional_of_out(name: str) -> str | None:
    """The overload of which this is the form with `out=`: "add.out" -> "add", "max.dim_out" -> "max.dim"."""
    base, _, rest = name.partition(".")
    if rest == "out":
        return base
    return f"{base}.{rest.removesuffix('_out')}" if rest.endswith("_out") else None
