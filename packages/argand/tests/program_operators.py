"""Steps of random programs that compute: elementwise operators with promotion, reductions, scans, sorting, products, casts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import program_values as values
import pytest
from program_machine import (
    Choices,
    Machine,
    Pair,
    broadcastable,
    is_castable,
    operation,
    refuses,
    write,
)

import argand

ALL, REAL, NUMBERS = (0, 1, 2, 3), (1, 2), (1, 2, 3)


def float_of(dtype: str) -> str:
    """The dtype in which functions with real values compute."""
    return "float32" if values.category(dtype) < 2 else dtype


def real_of(dtype: str) -> str:
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


def converted(array: np.ndarray, dtype: str) -> np.ndarray:
    return values.widen(values.round_to(array, dtype))


# ---- elementwise ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Function:
    """An elementwise operator: NumPy's function, the dtype of its result (of the operands' or else) and the categories it is for."""

    reference: Callable[..., Any]
    result: str = "same"  # same | float | bool | real
    categories: tuple[int, ...] = REAL
    in_place: bool = True
    numbers: bool = True  # whether the second operand may be a number

    def dtypes(self, computation: str) -> tuple[str, str]:
        """Of the computation and of the result."""
        if self.result == "float":
            computation = float_of(computation)
        result = {"bool": "bool", "real": real_of(computation)}.get(self.result, computation)
        return computation, result


erf = np.vectorize(math.erf, otypes=[float])


def round_half(x: Any) -> Any:
    return np.round(x) if x.dtype.kind == "f" else x


UNARY = {
    "neg": Function(np.negative, categories=NUMBERS),
    "abs": Function(np.abs, "real", NUMBERS),
    "sign": Function(lambda x: (x > 0).astype(x.dtype) - (x < 0).astype(x.dtype)),
    "square": Function(np.square, categories=NUMBERS),
    "floor": Function(lambda x: np.floor(x) if x.dtype.kind == "f" else x),
    "ceil": Function(lambda x: np.ceil(x) if x.dtype.kind == "f" else x),
    "trunc": Function(lambda x: np.trunc(x) if x.dtype.kind == "f" else x),
    "round": Function(round_half),
    "relu": Function(lambda x: np.maximum(x, np.zeros((), x.dtype))),
    "bitwise_not": Function(np.bitwise_not, categories=(0, 1)),
    "logical_not": Function(np.logical_not, "bool", ALL, in_place=False),
    "isnan": Function(np.isnan, "bool", ALL, in_place=False),
    "isinf": Function(np.isinf, "bool", ALL, in_place=False),
    "isfinite": Function(np.isfinite, "bool", ALL, in_place=False),
    "signbit": Function(
        lambda x: np.signbit(x) if x.dtype.kind == "f" else x < 0, "bool", REAL, in_place=False
    ),
    "exp": Function(np.exp, "float", ALL),
    "exp2": Function(np.exp2, "float", (0, 1, 2)),
    "expm1": Function(np.expm1, "float", (0, 1, 2)),
    "log": Function(np.log, "float", (0, 1, 2)),
    "log1p": Function(np.log1p, "float", (0, 1, 2)),
    "log2": Function(np.log2, "float", (0, 1, 2)),
    "log10": Function(np.log10, "float", (0, 1, 2)),
    "sqrt": Function(np.sqrt, "float", (0, 1, 2)),
    "rsqrt": Function(lambda x: 1 / np.sqrt(x), "float", (0, 1, 2)),
    "reciprocal": Function(np.reciprocal, "float", (0, 1, 2)),
    "sin": Function(np.sin, "float", ALL),
    "cos": Function(np.cos, "float", ALL),
    "atan": Function(np.arctan, "float", (0, 1, 2)),
    "asin": Function(np.arcsin, "float", (0, 1, 2)),
    "acos": Function(np.arccos, "float", (0, 1, 2)),
    "sinh": Function(np.sinh, "float", (0, 1, 2)),
    "cosh": Function(np.cosh, "float", (0, 1, 2)),
    "tanh": Function(np.tanh, "float", (0, 1, 2)),
    "asinh": Function(np.arcsinh, "float", (0, 1, 2)),
    "acosh": Function(np.arccosh, "float", (0, 1, 2)),
    "atanh": Function(np.arctanh, "float", (0, 1, 2)),
    "sigmoid": Function(lambda x: 1 / (1 + np.exp(-x)), "float", (0, 1, 2)),
    "erf": Function(erf, "float", (0, 1, 2)),
    "deg2rad": Function(np.deg2rad, "float", (0, 1, 2)),
    "nan_to_num": Function(lambda x: np.nan_to_num(x, posinf=7, neginf=-7), categories=REAL),
}
CALLS: dict[str, Callable[..., Any]] = {
    "nan_to_num": lambda x: argand.nan_to_num(x, posinf=7, neginf=-7),
    "div_floor": lambda a, b: argand.div(a, b, rounding_mode="floor"),
    "div_trunc": lambda a, b: argand.div(a, b, rounding_mode="trunc"),
    "add_alpha": lambda a, b: argand.add(a, b, alpha=2),
}


BINARY = {
    "add": Function(np.add, categories=ALL),
    "add_alpha": Function(lambda a, b: a + b * np.array(2, b.dtype), categories=NUMBERS),
    "sub": Function(np.subtract, categories=NUMBERS),
    "mul": Function(np.multiply, categories=ALL),
    "div": Function(np.divide, "float", ALL),
    "div_floor": Function(np.floor_divide),
    "div_trunc": Function(lambda a, b: np.trunc(a / b) if a.dtype.kind == "f" else truncated(a, b)),
    "remainder": Function(np.remainder),
    "fmod": Function(np.fmod),
    "maximum": Function(np.maximum, "same", (0, 1, 2), False, False),
    "minimum": Function(np.minimum, "same", (0, 1, 2), False, False),
    "fmax": Function(np.fmax, in_place=False, numbers=False),
    "fmin": Function(np.fmin, in_place=False, numbers=False),
    "atan2": Function(np.arctan2, "float", (0, 1, 2), numbers=False),
    "hypot": Function(np.hypot, categories=(2,), numbers=False),
    "copysign": Function(np.copysign, "float", (0, 1, 2)),
    "eq": Function(np.equal, "bool", ALL),
    "ne": Function(np.not_equal, "bool", ALL),
    "lt": Function(np.less, "bool", (0, 1, 2)),
    "le": Function(np.less_equal, "bool", (0, 1, 2)),
    "gt": Function(np.greater, "bool", (0, 1, 2)),
    "ge": Function(np.greater_equal, "bool", (0, 1, 2)),
    "logical_and": Function(np.logical_and, "bool", ALL, numbers=False),
    "logical_or": Function(np.logical_or, "bool", ALL, numbers=False),
    "logical_xor": Function(np.logical_xor, "bool", ALL, numbers=False),
    "bitwise_and": Function(np.bitwise_and, categories=(0, 1)),
    "bitwise_or": Function(np.bitwise_or, categories=(0, 1)),
    "bitwise_xor": Function(np.bitwise_xor, categories=(0, 1)),
    "xlogy": Function(
        lambda a, b: np.where((a == 0) & ~np.isnan(b), 0, a * np.log(b)), "float", (0, 1, 2)
    ),
}
DIVISIONS = ("div_floor", "div_trunc", "remainder", "fmod")


def truncated(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    quotient = np.floor_divide(a, b)
    return quotient + ((a % b != 0) & ((a < 0) != (b < 0))).astype(a.dtype)


def call_of(name: str) -> Callable[..., Any]:
    return CALLS.get(name) or getattr(argand, name)


def divides_by_zero(name: str, dtype: str, divisor: np.ndarray) -> bool:
    return name in DIVISIONS and values.category(dtype) < 2 and not np.all(divisor)


@operation
def unary(m: Machine, c: Choices) -> None:
    name = c.one_of(sorted(UNARY))
    function = UNARY[name]
    p = m.pick(c, function.categories)
    computation, result = function.dtypes(p.dtype)
    x = converted(p.array, computation)
    with np.errstate(all="ignore"):
        expected = function.reference(x)
    scale = values.largest(x)
    if function.in_place and c.below(4) == 0 and name not in CALLS:
        method = getattr(p.tensor, name + "_")
        # abs_ of complex numbers is refused although its result would fit.
        if values.category(result) <= p.category and (p.category < 3 or result == p.dtype):
            write(m, f"{name}_", p, method, expected, scale)
        else:
            assert refuses(method), f"{name}_ of {p.dtype}"
    else:
        m.add_result(name, call_of(name)(p.tensor), expected, result, scale)


def other_operand(
    m: Machine, c: Choices, function: Function
) -> tuple[Any, Any, list[Any], list[Any]]:
    """The second operand for both, and what it adds to `result_type`'s operands and numbers."""
    if function.numbers and c.below(3) == 0:
        number = c.one_of([2, -3, 0, 1, 0.5, -1.25, True])
        if values.category(values.scalar_dtype(number)) in function.categories:
            return number, np.asarray(number), [], [number]
    q = m.pick(c, function.categories)
    return q.tensor, q.array, [q.operand], []


@operation
def binary(m: Machine, c: Choices) -> None:
    name = c.one_of(sorted(BINARY))
    function = BINARY[name]
    p = m.pick(c, function.categories)
    other, array, operands, numbers = other_operand(m, c, function)
    computation, result = function.dtypes(values.result_type([p.operand, *operands], numbers))
    if values.category(computation) not in function.categories:
        return
    shape = broadcastable(p.array, array)
    text = f"{name} {computation} {'' if operands else array}"
    if shape is None:
        assert refuses(lambda: call_of(name)(p.tensor, other)), (
            f"{text} {p.array.shape} {array.shape}"
        )
        return
    a, b = converted(p.array, computation), converted(array, computation)
    if divides_by_zero(name, computation, b):
        return
    with np.errstate(all="ignore"):
        expected = function.reference(a, b)
    scale = values.largest(a, b)
    if c.below(4) or not function.in_place or name in CALLS:
        m.add_result(text, call_of(name)(p.tensor, other), expected, result, scale)
    elif shape != p.array.shape or values.category(result) > p.category:
        assert refuses(lambda: getattr(p.tensor, name + "_")(other)), (
            f"{text} in place of {p.dtype}"
        )
    else:
        expected = values.round_to(values.round_to(expected, result), p.dtype)
        write(
            m,
            f"{text} in place",
            p,
            lambda: getattr(p.tensor, name + "_")(other),
            expected,
            scale,
            read=array,
        )


@operation
def power(m: Machine, c: Choices) -> None:
    p = m.pick(c, REAL)
    exponent = c.one_of(
        [0, 1, 2, 3, 0.5, 2.0] if p.category == 1 else [0, 1, 2, 3, 0.5, -1, -0.5, 2.0]
    )
    dtype = values.result_type([p.operand], [exponent])
    x = converted(p.array, dtype)
    with np.errstate(all="ignore"):
        # Arrays of exponents are C's pow; NumPy takes a single 0.5 for a square root, which differs at -inf.
        flat = x.reshape(-1)
        expected = np.power(flat, np.full_like(flat, exponent)).reshape(x.shape)
    m.add_result(f"pow {exponent}", p.tensor**exponent, expected, dtype, values.largest(expected))


@operation
def shift(m: Machine, c: Choices) -> None:
    p, n = m.pick(c, (1,)), c.below(8)
    for name, function in (
        ("bitwise_left_shift", np.left_shift),
        ("bitwise_right_shift", np.right_shift),
    ):
        expected = function(p.array, np.array(n, p.array.dtype))
        m.add_result(f"{name} {n}", getattr(argand, name)(p.tensor, n), expected, p.dtype)


@operation
def where(m: Machine, c: Choices) -> None:
    condition, a, b = m.pick(c, (0,)), m.pick(c), m.pick(c)
    if broadcastable(condition.array, a.array, b.array) is not None:
        dtype = values.result_type([a.operand, b.operand])
        expected = np.where(condition.array, converted(a.array, dtype), converted(b.array, dtype))
        m.add_result("where", argand.where(condition.tensor, a.tensor, b.tensor), expected, dtype)


@operation
def clamp(m: Machine, c: Choices) -> None:
    p = m.pick(c, REAL)
    low, high = c.one_of([(0, 3), (1, None), (None, 2), (0.5, 2), (3, 1)])
    dtype = values.result_type([p.operand], [x for x in (low, high) if x is not None])
    x = converted(p.array, dtype)
    if low is not None:
        x = np.maximum(x, np.array(low, x.dtype))
    if high is not None:
        x = np.minimum(x, np.array(high, x.dtype))
    m.add_result(f"clamp {low} {high}", p.tensor.clamp(low, high), x, dtype)


@operation
def ternary(m: Machine, c: Choices) -> None:
    a, b, d = m.pick(c, (2,)), m.pick(c, (2,)), m.pick(c, (2,))
    if not a.dtype == b.dtype == d.dtype or broadcastable(a.array, b.array, d.array) is None:
        return
    x, y, z = (values.widen(p.array) for p in (a, b, d))
    name, ours, theirs = c.one_of(
        [
            ("lerp", lambda p, q, r: argand.lerp(p, q, 0.25), lambda: x + 0.25 * (y - x) + 0 * z),
            (
                "addcmul",
                lambda p, q, r: argand.addcmul(p, q, r, value=0.5),
                lambda: x + 0.5 * y * z,
            ),
            ("addcdiv", lambda p, q, r: argand.addcdiv(p, q, r, value=2), lambda: x + 2 * y / z),
        ]
    )
    with np.errstate(all="ignore"):
        expected = theirs()
    if name == "lerp":
        if (
            broadcastable(a.array, b.array) == expected.shape
            and np.isfinite(y).all()
            and np.isfinite(z).all()
        ):
            m.add_result(
                name, ours(a.tensor, b.tensor, d.tensor), expected, a.dtype, values.largest(x, y)
            )
    else:
        m.add_result(
            name, ours(a.tensor, b.tensor, d.tensor), expected, a.dtype, values.largest(x, expected)
        )


# ---- dtypes -----------------------------------------------------------------------------------------------------------
@operation
def cast(m: Machine, c: Choices) -> None:
    p, dtype = m.pick(c), c.one_of(sorted(values.CARRIERS))
    if p.category == 3 and values.category(dtype) < 3:
        dtype = "complex128"
    if is_castable(p.array, dtype):
        m.add_result(
            f"to {dtype}",
            p.tensor.to(values.argand_dtype(dtype)),
            values.round_to(p.array, dtype),
            dtype,
        )


@operation
def complex_parts(m: Machine, c: Choices) -> None:
    p = m.pick(c, (3,))
    real = real_of(p.dtype)
    which = c.below(5)
    if which == 0:
        m.add("real", p.tensor.real, p.array.real, real)
    elif which == 1:
        m.add("imag", p.tensor.imag, p.array.imag, real)
    elif which == 2:
        m.add_result("conj", p.tensor.conj().resolve_conj(), p.array.conj(), p.dtype)
    elif which == 3:
        m.add_result("angle", argand.angle(p.tensor), np.angle(values.widen(p.array)), real)
    elif p.array.ndim and all(step % p.array.itemsize == 0 for step in p.array.strides):
        steps = (*p.array.strides, p.array.itemsize // 2)
        parts = np.lib.stride_tricks.as_strided(p.array.real, (*p.array.shape, 2), steps)
        m.add("view_as_real", argand.view_as_real(p.tensor), parts, real)


@operation
def complex_of(m: Machine, c: Choices) -> None:
    a, b = m.pick(c, (2,)), m.pick(c, (2,))
    if (
        a.dtype == b.dtype
        and a.dtype in ("float32", "float64")
        and broadcastable(a.array, b.array) is not None
    ):
        expected = values.widen(a.array) + 1j * values.widen(b.array)
        dtype = "complex64" if a.dtype == "float32" else "complex128"
        m.add_result("complex", argand.complex(a.tensor, b.tensor), expected, dtype)


# ---- reductions and scans ---------------------------------------------------------------------------------------------
def log_sum_exp(x: np.ndarray, axis: Any, keepdims: bool) -> np.ndarray:
    if x.size == 0:
        return np.log(np.sum(np.exp(x), axis, keepdims=keepdims))
    top = np.max(x, axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0)
    result = np.log(np.sum(np.exp(x - top), axis, keepdims=True)) + top
    return result if keepdims else result.reshape(np.sum(x, axis).shape)


def total(dtype: str) -> str:
    return "int64" if values.category(dtype) < 2 else dtype


REDUCTIONS: dict[str, tuple[tuple[int, ...], Callable[[str], str], Callable[..., Any]]] = {
    "sum": (ALL, total, np.sum),
    "nansum": ((1, 2), total, np.nansum),
    "mean": ((2, 3), lambda d: d, np.mean),
    "amax": ((0, 1, 2), lambda d: d, np.max),
    "amin": ((0, 1, 2), lambda d: d, np.min),
    "any": (ALL, lambda d: "bool", np.any),
    "all": (ALL, lambda d: "bool", np.all),
    "count_nonzero": (ALL, lambda d: "int64", np.count_nonzero),
    "logsumexp": ((2,), lambda d: d, log_sum_exp),
    "var": ((2,), lambda d: d, lambda x, a, keepdims: np.var(x, a, ddof=1, keepdims=keepdims)),
    "std": ((2,), lambda d: d, lambda x, a, keepdims: np.std(x, a, ddof=0, keepdims=keepdims)),
}


@operation
def reduce(m: Machine, c: Choices) -> None:
    name = c.one_of(sorted(REDUCTIONS))
    categories, result, reference = REDUCTIONS[name]
    p = m.pick(c, categories)
    if name in ("any", "all") and p.dtype == "uint8":
        return
    dims = tuple(d for d in range(p.array.ndim) if c.below(2))
    if not dims:
        dims = tuple(range(p.array.ndim))
    if not dims:
        return
    keepdim = bool(c.below(2)) and name != "count_nonzero"
    count = int(np.prod([p.array.shape[d] for d in dims]))
    arguments: dict[str, Any] = {} if name == "count_nonzero" else {"keepdim": keepdim}
    if name == "std":
        arguments["correction"] = 0
    x = values.widen(p.array)
    text = f"{name} {dims} {keepdim}"
    if not count and name in ("amax", "amin"):
        with pytest.raises(IndexError):
            getattr(argand, name)(p.tensor, dims, **arguments)
        return
    if p.category == 1 and result(p.dtype) == "int64" and name != "count_nonzero":
        x = x.astype(np.int64)
    with np.errstate(all="ignore"):
        expected = np.asarray(reference(x, dims, keepdims=keepdim))
    scale = values.largest(x) * max(count, 1)
    if name in ("var", "std") and p.category == 2:
        scale = values.largest(x) ** (2 if name == "var" else 1)
    m.add_result(
        text, getattr(argand, name)(p.tensor, dims, **arguments), expected, result(p.dtype), scale
    )


@operation
def prod(m: Machine, c: Choices) -> None:
    p = m.pick(c)
    if p.array.ndim:
        dim = c.below(p.array.ndim)
        x = values.widen(p.array)
        x = x if p.category >= 2 else x.astype(np.int64)
        with np.errstate(all="ignore"):
            expected = np.prod(x, dim)
        if p.category < 2 or np.isfinite(x).all() and values.largest(x) ** x.shape[dim] < 1e4:
            scale = values.largest(x) ** x.shape[dim] if p.category > 1 else 1
            m.add_result(f"prod {dim}", p.tensor.prod(dim), expected, total(p.dtype), scale)


def picked(array: np.ndarray, indices: np.ndarray, dim: int) -> np.ndarray:
    return np.take_along_axis(array, indices, dim)


@operation
def extremum(m: Machine, c: Choices) -> None:
    """Values and where they are: the first for arg-functions, any for max and min."""
    p = m.pick(c, REAL)
    dims = [d for d, n in enumerate(p.array.shape) if n]
    if len(dims) != p.array.ndim or not dims:
        return
    dim, high = c.one_of(dims), bool(c.below(2))
    extreme, arg = (np.max, np.argmax) if high else (np.min, np.argmin)
    found, indices = (argand.max if high else argand.min)(p.tensor, dim)
    m.add_result(f"max/min {dim}", found, extreme(p.array, dim), p.dtype)
    at = picked(p.array, np.expand_dims(values.values_of(indices), dim), dim)
    assert values.same(at.squeeze(dim), np.asarray(extreme(p.array, dim))), (
        f"indices: {'; '.join(m.log)}"
    )
    arg_ours = (argand.argmax if high else argand.argmin)(p.tensor, dim, keepdim=True)
    m.add_result(f"argmax/argmin {dim}", arg_ours, arg(p.array, dim, keepdims=True), "int64")


@operation
def scan(m: Machine, c: Choices) -> None:
    p = m.pick(c)
    if not p.array.ndim:
        return
    dim, name = (
        c.below(p.array.ndim),
        c.one_of(["cumsum", "cumprod", "cummax", "cummin", "diff", "logcumsumexp"]),
    )
    x = values.widen(p.array)
    if name in ("cumsum", "cumprod"):
        x = x.astype(np.int64) if p.category < 2 else x
        with np.errstate(all="ignore"):
            expected = getattr(np, name)(x, dim)
        if (
            name == "cumprod"
            and p.category > 1
            and not (np.isfinite(x).all() and values.largest(x) ** x.shape[dim] < 1e4)
        ):
            return
        scale = (
            values.largest(x) * x.shape[dim]
            if name == "cumsum"
            else values.largest(x) ** x.shape[dim]
        )
        m.add_result(
            f"{name} {dim}",
            getattr(argand, name)(p.tensor, dim),
            expected,
            total(p.dtype),
            scale if p.category > 1 else 1,
        )
    elif name in ("cummax", "cummin") and p.category in REAL:
        function = np.maximum if name == "cummax" else np.minimum
        found, indices = getattr(argand, name)(p.tensor, dim)
        m.add_result(f"{name} {dim}", found, function.accumulate(p.array, dim), p.dtype)
        at = picked(p.array, values.values_of(indices), dim)
        assert values.same(at, function.accumulate(p.array, dim)), f"indices: {'; '.join(m.log)}"
    elif name == "diff" and p.category:
        with np.errstate(all="ignore"):
            m.add_result(
                f"diff {dim}",
                argand.diff(p.tensor, dim=dim),
                np.diff(x, axis=dim),
                p.dtype,
                values.largest(x),
            )
    elif name == "logcumsumexp" and p.category == 2 and np.isfinite(x).all():
        with np.errstate(all="ignore"):
            expected = np.logaddexp.accumulate(x, dim)
        m.add_result(
            f"{name} {dim}",
            argand.logcumsumexp(p.tensor, dim),
            expected,
            p.dtype,
            values.largest(x),
        )


@operation
def softmax(m: Machine, c: Choices) -> None:
    p = m.pick(c, (2,))
    if p.array.ndim and np.isfinite(p.array).all() and p.array.size:
        dim = c.below(p.array.ndim)
        x = values.widen(p.array)
        e = np.exp(x - x.max(dim, keepdims=True))
        expected = e / e.sum(dim, keepdims=True)
        if c.below(2):
            m.add_result(f"softmax {dim}", argand.softmax(p.tensor, dim), expected, p.dtype)
        else:
            expected = x - x.max(dim, keepdims=True) - np.log(e.sum(dim, keepdims=True))
            m.add_result(
                f"log_softmax {dim}",
                argand.log_softmax(p.tensor, dim),
                expected,
                p.dtype,
                values.largest(x),
            )


# ---- order ------------------------------------------------------------------------------------------------------------
@operation
def sort(m: Machine, c: Choices) -> None:
    """Stable, ascending or descending; NaN is greatest, equal numbers keep their places."""
    p, descending = m.pick(c, (0, 1, 2)), bool(c.below(2))
    if not p.array.ndim:
        return
    dim = c.below(p.array.ndim)
    if descending:
        flipped = np.flip(p.array, dim)
        order = np.flip(np.argsort(flipped, dim, stable=True), dim)
        order = p.array.shape[dim] - 1 - order
    else:
        order = np.argsort(p.array, dim, stable=True)
    found, indices = argand.sort(p.tensor, dim=dim, descending=descending, stable=True)
    m.add_result(f"sort {dim} {descending}", found, picked(p.array, order, dim), p.dtype)
    m.add_result("its indices", indices, order, "int64")


@operation
def topk(m: Machine, c: Choices) -> None:
    p = m.pick(c, REAL)
    if not p.array.ndim:
        return
    dim, largest = c.below(p.array.ndim), bool(c.below(2))
    k = c.between(0, p.array.shape[dim])
    ordered = np.sort(p.array, dim)
    ordered = np.flip(ordered, dim) if largest else ordered
    found, indices = argand.topk(p.tensor, k, dim, largest)
    expected = np.take(ordered, range(k), dim)
    m.add_result(f"topk {k} {dim} {largest}", found, expected, p.dtype)
    assert values.same(picked(p.array, values.values_of(indices), dim), expected), (
        f"indices: {'; '.join(m.log)}"
    )


@operation
def order_statistics(m: Machine, c: Choices) -> None:
    p = m.pick(c, REAL)
    if not p.array.ndim or not p.array.size or np.isnan(values.widen(p.array)).any():
        return
    dim = c.below(p.array.ndim)
    n = p.array.shape[dim]
    ordered = np.sort(p.array, dim)
    k = c.between(1, n)
    m.add_result(
        f"kthvalue {k} {dim}",
        argand.kthvalue(p.tensor, k, dim)[0],
        np.take(ordered, k - 1, dim),
        p.dtype,
    )
    m.add_result(
        f"median {dim}",
        argand.median(p.tensor, dim)[0],
        np.take(ordered, (n - 1) // 2, dim),
        p.dtype,
    )
    found, inverse, counts = argand.unique(p.tensor, return_inverse=True, return_counts=True)
    expected, positions, numbers = np.unique(p.array, return_inverse=True, return_counts=True)
    m.add_result("unique", found, expected, p.dtype)
    m.add_result("its inverse", inverse, positions.reshape(p.array.shape), "int64")
    m.add_result("its counts", counts, numbers, "int64")


@operation
def search(m: Machine, c: Choices) -> None:
    p, q = m.pick(c, (1, 2)), m.pick(c, (1, 2))
    if (
        p.dtype != q.dtype
        or np.isnan(values.widen(p.array)).any()
        or np.isnan(values.widen(q.array)).any()
    ):
        return
    right = bool(c.below(2))
    edges, order = np.sort(p.array.reshape(-1)), argand.sort(p.tensor.reshape(-1))[0]
    expected = np.searchsorted(edges, q.array, "right" if right else "left")
    m.add_result(
        f"searchsorted {right}",
        argand.searchsorted(order, q.tensor, right=right),
        expected,
        "int64",
    )


# ---- products ---------------------------------------------------------------------------------------------------------
def products(
    m: Machine, text: str, tensor: Callable[[], Any], function: Callable[..., Any], a: Pair, b: Pair
) -> None:
    x, y = values.widen(a.array), values.widen(b.array)
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return
    with np.errstate(all="ignore"):
        expected = np.asarray(function(x, y))
        bound = (
            values.largest(np.asarray(function(np.abs(x), np.abs(y)))) if a.category > 1 else 1.0
        )
    m.add_result(text, tensor(), expected, a.dtype, bound)


@operation
def matmul(m: Machine, c: Choices) -> None:
    """Operands of any rank, made to fit by transposing a copy of the first where nothing else does."""
    a, b = m.pick(c, NUMBERS), m.pick(c, NUMBERS)
    if a.dtype != b.dtype or not a.array.ndim:
        return
    if not b.array.ndim or not _fits(a.array, b.array):
        b = (
            Pair(a.tensor.transpose(-1, -2), np.swapaxes(a.array, -1, -2), a.dtype)
            if a.array.ndim > 1
            else a
        )
    products(
        m, f"matmul {a.array.shape} {b.array.shape}", lambda: a.tensor @ b.tensor, np.matmul, a, b
    )


def _fits(a: np.ndarray, b: np.ndarray) -> bool:
    inner = b.shape[-2] if b.ndim > 1 else b.shape[0]
    return (
        a.shape[-1] == inner
        and broadcastable(
            a[..., 0, 0] if a.ndim > 1 else a[0], b[..., 0, 0] if b.ndim > 1 else b[0]
        )
        is not None
        if a.size and b.size
        else False
    )


@operation
def contraction(m: Machine, c: Choices) -> None:
    a, b = m.pick(c, (2, 3)), m.pick(c, (2, 3))
    if a.dtype != b.dtype:
        return
    name = c.one_of(["outer", "dot", "kron", "einsum", "tensordot"])
    x, y = a.array, b.array
    if name == "outer" and x.ndim == y.ndim == 1 and x.size * y.size < 600:
        products(m, name, lambda: argand.outer(a.tensor, b.tensor), np.outer, a, b)
    elif name == "dot" and x.ndim == y.ndim == 1 and x.shape == y.shape:
        products(m, name, lambda: argand.dot(a.tensor, b.tensor), np.dot, a, b)
    elif name == "kron" and x.size * y.size < 600 and 0 < x.ndim <= 2 and 0 < y.ndim <= 2:
        products(m, name, lambda: argand.kron(a.tensor, b.tensor), np.kron, a, b)
    elif name == "einsum" and x.ndim == 2:
        products(
            m,
            name,
            lambda: argand.einsum("ij,kj->ik", a.tensor, a.tensor),
            lambda p, q: p @ p.T,
            a,
            a,
        )
    elif name == "tensordot" and x.ndim and x.size:
        dims = [list(range(x.ndim))] * 2
        products(
            m,
            name,
            lambda: argand.tensordot(a.tensor, a.tensor, dims=dims),
            lambda p, q: np.tensordot(p, p, dims),
            a,
            a,
        )
