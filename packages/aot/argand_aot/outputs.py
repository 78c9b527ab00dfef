"""What a compiled graph's results are, as plain data: fresh tensors, inputs, and views of either."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["Mutation", "OutputSpec", "Step"]


@dataclass(frozen=True, slots=True)
class Step:
    """A view operator that is replayed on the real tensor.

    Attributes:
        op: the overload's name.
        args: arguments after the tensor; symbolic ones as `("symbolic", expression)`, dtypes as `("dtype", name)`, tensors as
            `("value", number)` of the forward graph's results.
        recorded: whether gradients were recorded when it ran.
    """

    op: str
    args: tuple[Any, ...]
    recorded: bool


@dataclass(frozen=True, slots=True)
class OutputSpec:
    """One result of the graph.

    Attributes:
        kind: "value": number `index` of the forward graph's results; "input": the input `index` itself; "same": the object
            that result `index` of this graph is, which is of another kind or comes before; "constant": `value`; "symbolic":
            the expression `value`.
        steps: views of that.
    """

    kind: Literal["value", "input", "same", "constant", "symbolic"]
    index: int = 0
    value: Any = None
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Mutation:
    """An input that the graph changes: `value`, a number of the forward graph's results, is written into it.

    Attributes:
        recorded: whether the change has a gradient.
    """

    input: int
    value: int
    recorded: bool
