"""What calls return: several results as tuples, and those of operators whose fakes are functions of programs."""

from __future__ import annotations

import functools
from collections import namedtuple
from typing import TYPE_CHECKING, Any

import argand_c10 as c10
from argand_c10 import Tensor
from argand_c10.errors import DataDependentError
from argand_fx.schema import Schema
from argand_fx.shapes.fake_tensor import FakeTensor

if TYPE_CHECKING:
    from argand_fx.shapes.builder import GraphBuilder
    from argand_fx.shapes.overload import Spec

__all__ = ["as_results", "results_of_fake"]


@functools.cache
def _result_type(name: str, fields: tuple[str, ...]) -> type[tuple[Any, ...]]:
    """The named tuple of an operator's results, as `argand.return_types.max`."""
    found = namedtuple(name, fields)  # type: ignore[misc]  # names known only here
    found.__module__ = "argand.return_types"
    return found


def as_results(s: Schema, values: Any) -> Any:
    """Several results as a tuple, with names where the schema has them."""
    if s.result_names is not None:
        name = s.name.partition(".")[0].rpartition(":")[2]
        return _result_type(name, s.result_names)(*values)
    return tuple(values) if isinstance(values, list) else values


def _elsewhere(value: Any, builder: GraphBuilder) -> Any:
    """Fakes of their own for those in an argument, which another builder computes with."""
    if isinstance(value, FakeTensor):
        return builder.fake(value.shape, value.dtype, strides=value.strides, device=value.device)
    return [_elsewhere(x, builder) for x in value] if isinstance(value, list) else value


def results_of_fake(
    builder: GraphBuilder,
    twin: GraphBuilder,
    spec: Spec,
    values: list[Any],
    keywords: dict[str, Any],
    grad: bool,
) -> Any:
    """What an operator's fake returns, computed by the builder `twin`, as fakes of `builder`; with `grad` they require it.

    Raises:
        DataDependentError: a result is no tensor.
        TypeError: the results are not those of the schema.
    """
    assert spec.fake is not None
    n = spec.positional
    apart = [_elsewhere(v, twin) for v in values]
    before = c10._C._override_factories(twin.call)
    try:
        found = spec.fake(*apart[:n], **dict(zip(keywords, apart[n:], strict=True)))
    finally:
        c10._C._override_factories(before)
    if spec.schema.results == 0:
        return None

    def own(x: Any) -> Any:
        if isinstance(x, (list, tuple)):
            return [own(one) for one in x]
        if x is None:
            return None
        if isinstance(x, Tensor):
            x = twin.from_tensor(x)
        elif not isinstance(x, FakeTensor):
            raise DataDependentError(
                f"{spec.name}: got {type(x).__name__} as a result, expected tensors: a number is known only when the operator runs"
            )
        flows = grad and (x.dtype.is_floating_point or x.dtype.is_complex)
        return FakeTensor(x.shape, x.strides, 0, x.dtype, x.device, flows, builder=builder)

    result = own(found)
    one = spec.schema.results == 1
    if one and isinstance(result, list) == spec.schema.list_result:
        return result
    if not one and isinstance(result, list) and len(result) == spec.schema.results:
        return as_results(spec.schema, result)
    raise TypeError(
        f"{spec.name}: its fake returned {found!r}, which is not what {spec.op.schema} returns"
    )
