"""Sample arguments: what the registry's `samples:` may say, and samples for operators that give none.

A tensor is a text: `T(2,3)` random numbers of the tested dtype, `A(2,3)` such numbers, ascending along the last dimension, `R(2,3)` real ones of its parts' dtype, `U(2,3)` in (0, 1), `P(2,3)` positive, `B(2,3)` booleans,
`I(2,3;0,5)` int64 in [0, 5), `J(2,3;0,5)` such numbers of int32, `W(2,3;0,5)` of the tested dtype, `P(2,3;5)` int64, distinct along the last dimension, from range(5), `S(2,3,3)` Hermitian positive-definite matrices (gradients are
those of a Hermitian argument), `L(3,3)` matrices with large diagonals. `T()` is 0-d. Anything else is itself: numbers, lists, None, texts; where the schema wants a dtype, its name, or `T` for the tested one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tools.codegen.model import Operator, Sample

_TENSOR: Final = re.compile(r"^([TARUPBIJWSL])\(([0-9, ]*)(?:;([-0-9, ]*))?\)$")

# How texts of floating-point tensors begin.
FLOAT_TENSORS: Final = tuple(f"{kind}(" for kind in "TARUPSL")


@dataclass(frozen=True)
class TensorSample:
    """How to make one tensor. `kind`: T, A, R, U, P, B, I, J, W, S, L, or D (distinct integers); `bounds`: (low, high) of I, J and W, (count,) of D."""

    kind: str
    shape: tuple[int, ...]
    bounds: tuple[int, ...] = ()


def parse_tensor(text: str) -> TensorSample | None:
    """The tensor that a text stands for; None when it is no such text."""
    match = _TENSOR.match(text)
    if match is None:
        return None
    kind, dims, bounds = match.groups()
    shape = tuple(int(d) for d in dims.split(",") if d.strip())
    limits = tuple(int(d) for d in (bounds or "").split(",") if d.strip())
    if kind == "P" and limits:
        kind = "D"
    if (kind in "IJW" and len(limits) != 2) or (kind in "TARUBSL" and limits):
        return None
    return TensorSample(kind, shape, limits)


def looks_like_tensor(text: str) -> bool:
    """Was a tensor meant? (To report texts that parse_tensor refuses.)"""
    return bool(re.match(r"^[TARUPBIJWSL]\(.*\)$", text))


def _s(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    return args, kwargs


# Operators whose arguments follow from their schema alone.
DEFAULTS: Final[dict[str, list[tuple[tuple[Any, ...], Mapping[str, Any]]]]] = {
    "div.mode": [
        _s("T(2,3)", "P(2,3)", rounding_mode="floor"),
        _s("T(2,3)", "P(3)", rounding_mode="trunc"),
    ],
    "clamp": [_s("T(2,3)", -0.5, 0.5), _s("T(2,3)", None, 0.25), _s("T(2,3)", "T(3)")],
    "where.condition": [_s("B(2,3)")],
    "view_as_real": [_s("T(2,3)"), _s("T()")],
    "isclose": [_s("T(2,3)", "T(2,3)")],
    "nan_to_num": [_s("T(2,3)"), _s("T(2,3)", 1.0, 2.0, 3.0)],
    "zeros": [_s((2, 3)), _s((0,), dtype="int64"), _s(())],
    "ones": [_s((2, 3)), _s((2, 0), dtype="float64"), _s(())],
    "full": [_s((2, 3), 1.5), _s((2,), 7), _s((), True)],
    "scalar_tensor": [_s(2.5), _s(3, dtype="int64")],
    "zeros_like": [_s("T(2,3)"), _s("T(2,3)", dtype="float64")],
    "ones_like": [_s("T(2,3)"), _s("T()")],
    "full_like": [_s("T(2,3)", 2)],
    "new_zeros": [_s("T(2)", (3, 2))],
    "new_ones": [_s("T(2)", (3, 2))],
    "new_full": [_s("T(2)", (3, 2), 4)],
    "empty_like": [_s("T(2,3)")],
    "new_empty": [_s("T(2)", (3, 2))],
    "empty": [_s((2, 3)), _s((0, 2), dtype="int32")],
    "empty_strided": [_s((2, 3), (1, 2))],
    "arange": [_s(5), _s(2.5)],
    "eye": [_s(3), _s(2, 4)],
    "clone": [_s("T(2,3)"), _s("T()")],
    "type_as": [_s("T(2,3)", "I(2;0,3)")],
    "conj": [_s("T(2,3)")],
    "real": [_s("T(2,3)")],
    "complex": [_s("T(2,3)", "T(2,3)")],
    "polar": [_s("P(2,3)", "T(2,3)")],
    "tril_indices": [_s(3, 4), _s(3, 3, 1)],
    "triu_indices": [_s(3, 4), _s(3, 3, -1)],
    "argsort": [_s("T(3,5)"), _s("T(3,5)", 0, True)],
    "count_nonzero": [_s("T(2,3)"), _s("T(2,3)", 1)],
    "max": [_s("T(2,3)"), _s("T()")],
    "min": [_s("T(2,3)"), _s("T()")],
    "max.other": [_s("T(2,3)", "T(3)")],
    "min.other": [_s("T(2,3)", "T(3)")],
    "argmax": [_s("T(3,4)"), _s("T(3,4)", 1), _s("T(3,4)", 0, True)],
    "argmin": [_s("T(3,4)"), _s("T(3,4)", 1), _s("T(3,4)", 0, True)],
    "var": [_s("T(3,4)"), _s("T(3,4)", 1), _s("T(3,4)", (0, 1), correction=0, keepdim=True)],
    "var.unbiased": [_s("T(3,4)", False)],
    "var.dim_unbiased": [_s("T(3,4)", 1, False), _s("T(3,4)", (0,), True, True)],
    "std": [_s("T(3,4)"), _s("T(3,4)", 1, correction=0)],
    "std.unbiased": [_s("T(3,4)", False)],
    "std.dim_unbiased": [_s("T(3,4)", 1, False)],
    "var_mean": [_s("T(3,4)"), _s("T(3,4)", 1, correction=0, keepdim=True)],
    "prod.dim": [_s("T(3,4)", 0), _s("T(3,4)", 1, True)],
    "cumsum": [_s("T(3,4)", 0), _s("T(3,4)", -1), _s("T(0,4)", 0), _s("T()", 0)],
    "cumprod": [_s("T(3,4)", 0), _s("T(3,4)", -1)],
    "alias": [_s("T(2,3)")],
    "detach": [_s("T(2,3)")],
    "as_strided": [
        _s("T(12)", (2, 3), (1, 2)),
        _s("T(12)", (2, 2), (3, 1), 2),
        _s("T(4,3)", (3, 2), (2, 2), 1),
    ],
    "view": [
        _s("T(2,6)", (3, 4)),
        _s("T(2,6)", (-1,)),
        _s("T(2,6)", (2, 1, 6)),
        _s("T(0,3)", (3, 0)),
    ],
    "reshape": [_s("T(2,6)", (3, 4)), _s("T(2,6)", (-1, 2)), _s("T()", (1, 1))],
    "view_as": [_s("T(2,6)", "T(3,4)")],
    "reshape_as": [_s("T(2,6)", "T(3,4)")],
    "permute": [_s("T(2,3,4)", (2, 0, 1)), _s("T(2,3,4)", (0, -1, 1)), _s("T()", ())],
    "transpose": [_s("T(2,3,4)", 0, 2), _s("T(2,3)", -1, -2), _s("T()", 0, 0)],
    "t": [_s("T(2,3)"), _s("T(3)")],
    "expand": [_s("T(3,1)", (3, 4)), _s("T(3)", (2, 3)), _s("T(1,3)", (2, -1))],
    "expand_as": [_s("T(3,1)", "T(3,4)")],
    "broadcast_to": [_s("T(3,1)", (2, 3, 4))],
    "squeeze": [_s("T(2,1,3,1)"), _s("T(2,3)")],
    "unsqueeze": [_s("T(2,3)", 0), _s("T(2,3)", -1), _s("T()", 0)],
    "flatten": [_s("T(2,3,4)"), _s("T(2,3,4)", 1), _s("T(2,3,4)", 0, 1), _s("T()")],
    "ravel": [_s("T(2,3)")],
    "unbind": [_s("T(2,3)"), _s("T(2,3)", 1)],
    "contiguous": [_s("T(2,3)")],
    "native_dropout": [_s("T(3,4)", 0.5, False)],
    "narrow": [_s("T(5,4)", 0, 1, 3)],
}
# Reductions over argument lists that all of them understand.
_REDUCTION: Final = [
    _s("T(2,3,4)"),
    _s("T(2,3,4)", 1),
    _s("T(2,3,4)", (0, 2), True),
    _s("T(0,3)", 1),
    _s("T()"),
]


def samples_of(op: Operator) -> tuple[Sample, ...]:
    """The registry's samples, else those made here; pointwise operators are sampled by the tests themselves."""
    if op.samples:
        return op.samples
    if op.name in DEFAULTS:
        return tuple(Sample(a, k) for a, k in DEFAULTS[op.name])
    if op.kind == "reduction":
        takes_dim = op.schema.argument("dim") is not None
        nonempty = op.reduce is not None and op.reduce.nonempty
        chosen = [(a, k) for a, k in _REDUCTION if takes_dim or len(a) == 1]
        return tuple(
            Sample(a, k) for a, k in chosen if not (nonempty and a[0] == "T(0,3)" and len(a) == 1)
        )
    return ()
