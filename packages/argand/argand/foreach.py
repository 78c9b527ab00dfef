"""`torch._foreach_add` and its kin: one operator of every tensor of a list, as optimizers write it.

Each is a loop over the operator of the same name, in place over the method: the results, their dtypes and gradients are that operator's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import repeat
from typing import Any

from argand_aten import ops
from argand_c10 import Tensor

__all__ = ["foreach_function"]

_UNARY = frozenset(
    "abs acos asin atan ceil clone cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 max neg reciprocal round rsqrt "
    "sigmoid sign sin sinh sqrt tan tanh trunc zero".split()
)
_BINARY = frozenset("add clamp_max clamp_min copy div maximum minimum mm mul pow sub".split())
_TERNARY = frozenset(("addcdiv", "addcmul", "lerp"))
_INPLACE_ONLY = frozenset(("copy", "zero"))
_NEW_ONLY = frozenset(("clone", "max", "mm", "norm"))
_METHODS = {"maximum": "clamp_min", "minimum": "clamp_max"}  # they take numbers, and are in place


def foreach_function(name: str) -> Callable[..., Any] | None:
    """`_foreach_<op>` or `_foreach_<op>_` by its name; None if there is none."""
    op = name.removeprefix("_foreach_")
    in_place = op.endswith("_")
    op = op.removesuffix("_")
    if op in (_NEW_ONLY if in_place else _INPLACE_ONLY):
        return None
    if op == "norm":
        return _norm
    if op in _UNARY:
        function: Callable[..., Any] = partial(_unary, name, op, in_place)
    elif op in _BINARY:
        function = partial(_binary, name, op, in_place)
    elif op in _TERNARY:
        function = partial(_ternary, name, op, in_place)
    else:
        return None
    function.__doc__ = f"`{op}` of every tensor of a list{', in place' if in_place else ''}."
    return function


def _tensors(name: str, values: Any) -> list[Tensor]:
    if not isinstance(values, (list, tuple)) or not all(isinstance(v, Tensor) for v in values):
        raise TypeError(f"{name}(): got {type(values).__name__}, expected a list of tensors")
    if not values:
        raise RuntimeError(f"{name}(): Tensor list must have at least one tensor.")
    return list(values)


def _column(name: str, values: Any, n: int) -> Any:
    """An argument for each tensor: a list has one each, a number or tensor is everyone's."""
    if not isinstance(values, (list, tuple)):
        return repeat(values)
    if len(values) != n:
        raise RuntimeError(
            f"{name}(): Tensor lists must have the same number of tensors, got {n} and {len(values)}"
        )
    return values


def _apply(
    op: str, in_place: bool, tensors: Sequence[Tensor], *columns: Any, options: Any = None
) -> Any:
    """The results as a tuple; in place the tensors themselves. `options`: the keyword arguments for each tensor."""
    method = _METHODS.get(op, op) + ("_" if in_place else "")
    found = [
        getattr(t, method)(*rest, **keywords)
        for t, keywords, *rest in zip(tensors, options or repeat({}), *columns, strict=False)
    ]
    return list(tensors) if in_place else tuple(found)


def _unary(name: str, op: str, in_place: bool, self: Any) -> Any:
    return _apply(op, in_place, _tensors(name, self))


def _binary(name: str, op: str, in_place: bool, self: Any, other: Any, **options: Any) -> Any:
    """`other`: a number or tensor for all, or a list of one each. `alpha` of `add` and `sub`, `non_blocking` of `copy_`."""
    if op == "pow" and not in_place and isinstance(self, (int, float, complex)):
        return tuple(ops.pow(self, exponent) for exponent in _tensors(name, other))
    tensors = _tensors(name, self)
    others = _column(name, other, len(tensors))
    return _apply(op, in_place, tensors, others, options=repeat(options))


def _ternary(
    name: str, op: str, in_place: bool, self: Any, tensor1: Any, *rest: Any, **options: Any
) -> Any:
    """lerp(self, ends, weights); addcdiv and addcmul(self, tensors1, tensors2, value=1): numbers one each in a list or a 1-d tensor."""
    tensors = _tensors(name, self)
    n = len(tensors)
    first = _column(name, _tensors(name, tensor1), n)
    if op == "lerp":
        (weight,) = rest or options.values()
        return _apply(op, in_place, tensors, first, _column(name, weight, n))
    tensor2, *given = rest
    (value,) = given or options.values() or (1,)
    if isinstance(value, Tensor):
        value = value.tolist()
    second = _column(name, _tensors(name, tensor2), n)
    values = ({"value": v} for v in _column(name, value, n))
    return _apply(op, in_place, tensors, first, second, options=values)


def _norm(self: Any, ord: float = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    """The vector norm of every tensor of a list."""
    return tuple(
        ops.linalg_vector_norm(t, ord, dtype=dtype) for t in _tensors("_foreach_norm", self)
    )
