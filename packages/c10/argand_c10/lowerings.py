"""What a code generator knows of an operator that is computed element by element: data that operator registries register.

Element functions take a handler `v` first and build a value from its primitives: `v.call(name, *values)` with the names of
the registry's element language, `v.number(value)` and `v.cast(value, dtype)`. Dtypes are named as in "float32".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

# (handler, values) -> value
ElementFunction = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class PointwiseLowering:
    """One value of each element, from the operands' elements at the same place.

    Attributes:
        arguments: names of the schema's arguments in order.
        operands: the arguments that are tensors or numbers of the computation's dtype, in the functions' order.
        scalars: number arguments that the functions take after the operands; they are not rounded to a 16-bit dtype, but for an `alpha` on the CPU.
        functions: by value of the argument `variant`, a string or a dtype; {None: f} where there is none.
        conditions: operands that are bool whatever the dtype of the computation.
        computation: of the operands that are no conditions -> the dtype that is computed in.
        result: the result's dtype where it is not the computation's: "bool", or "named" where the functions convert to it.
        dtypes: that the computation may have.
        costs: of one element in additions, by variant.
        divides: the last operand is a divisor: zeros among integers are an error.
        exact_numbers: numbers among the operands are not rounded to a 16-bit dtype either.
    """

    arguments: tuple[str, ...]
    operands: tuple[str, ...]
    functions: Mapping[Any, ElementFunction]
    dtypes: frozenset[str]
    computation: Callable[..., Any]
    scalars: tuple[str, ...] = ()
    conditions: frozenset[str] = frozenset()
    variant: str | None = None
    result: str | None = None
    costs: Mapping[Any, int] = field(default_factory=dict)
    divides: bool = False
    exact_numbers: bool = False


@dataclass(frozen=True, slots=True)
class ReductionLowering:
    """Elements of some dimensions combined to one.

    Attributes:
        init: the start value; "lowest" or "highest" of the accumulator's dtype.
        map: of an element x, converted to the accumulator's dtype (as it is where that is bool).
        combine: of two partial results, associative.
        final: of the total and the number of elements.
        accumulators: computation's dtype -> (accumulator's, result's).
        nonempty: reducing nothing is an error.
    """

    arguments: tuple[str, ...]
    init: float | str
    map: ElementFunction
    combine: ElementFunction
    final: ElementFunction
    accumulators: Mapping[str, tuple[str, str]]
    nonempty: bool = False


@dataclass(frozen=True, slots=True)
class ScanLowering:
    """Running combinations along the dimension `dim`; fields as those of ReductionLowering."""

    arguments: tuple[str, ...]
    init: float | str
    combine: ElementFunction
    accumulators: Mapping[str, tuple[str, str]]


Lowering = PointwiseLowering | ReductionLowering | ScanLowering
