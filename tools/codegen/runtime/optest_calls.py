"""What is called in generated operator tests: a `Case` per operator, and its `Call`s with arguments of every dtype.

Random numbers are seeded by operator, dtype and sample, so that everything is deterministic.
"""

from __future__ import annotations

import dataclasses
import functools
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from tools.codegen import dtypes as dt
from tools.codegen.model import Argument, Schema
from tools.codegen.runtime.under_test import dtype_object, make
from tools.codegen.samples import TensorSample, parse_tensor

Array: TypeAlias = Any  # a NumPy array


@dataclass(frozen=True)
class Case:
    """One operator under test; see emit_tests.py for where the fields come from."""

    schema: str
    kind: str
    dtypes: tuple[str, ...]
    domain: tuple[float, float] = (-2.0, 2.0)
    promote: str = "default"
    result: Any = None
    variants: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    differentiable: tuple[str, ...] = ()
    samples: tuple[tuple[tuple[Any, ...], Mapping[str, Any]], ...] = ()
    traits: tuple[str, ...] = ()
    tolerance: Mapping[str, float] = field(default_factory=dict)
    skips: Mapping[str, str] = field(default_factory=dict)
    reference: Callable[..., Any] | None = None
    moments: Callable[..., Any] | None = None  # mean and variance of the random numbers
    ruled: bool = False  # has a derivative rule of its own

    @functools.cached_property
    def parsed(self) -> Schema:
        return Schema.parse(self.schema)

    @property
    def name(self) -> str:
        return self.parsed.full_name

    @property
    def operands(self) -> list[Argument]:
        return [a for a in self.parsed.arguments if a.type.is_tensor or a.type.is_operand]

    @property
    def inplace(self) -> bool:
        """Is an in-place operator itself, not only has such a form."""
        return self.parsed.is_inplace

    @property
    def random(self) -> bool:
        return "random" in self.traits

    @property
    def pointwise(self) -> bool:
        return self.kind == "pointwise"


@dataclass(frozen=True)
class Call:
    """Arguments of one call; tensors are NumPy arrays until `tensors` makes them."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def rng_for(*key: object) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(repr(key).encode()))


def spread(rng: np.random.Generator, shape: tuple[int, ...], low: float, high: float) -> Array:
    """Numbers that keep a distance from each other and from integers, so that kinks and ties are never near."""
    n = int(np.prod(shape))
    step = (high - low) / max(n, 1)
    values = low + step * (rng.permutation(n) + rng.uniform(0.3, 0.7))
    near = np.abs(values - np.round(values)) < 1e-3
    return (values + near * 2e-3).reshape(shape)


def random_array(
    case: Case, dtype: str, rng: np.random.Generator, shape: tuple[int, ...], second: bool = False
) -> Array:
    """Values of the tested dtype, rounded to it. `second`: not the first operand (a divisor, an exponent)."""
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype in dt.INTEGRAL:
        low = (
            0
            if dtype.startswith("u")
            or (second and ("shifts" in case.traits or "pow" in case.traits))
            else -6
        )
        high = 4 if second and ("shifts" in case.traits or "pow" in case.traits) else 7
        n = int(np.prod(shape))
        # so that sorting has one answer
        distinct = (case.kind == "opaque" or "places" in case.traits) and 0 < n <= 100
        values = (
            (rng.permutation(n) - (0 if low == 0 else n // 2)).reshape(shape)
            if distinct
            else rng.integers(low, high, shape)
        )
        if second and "divides" in case.traits:
            values = np.where(values == 0, 3, values)
        return values.astype(dtype)
    values = spread(rng, shape, *case.domain)
    if dtype in dt.COMPLEX:
        return (values + 1j * spread(rng, shape, 0.2, 1.0)).astype(dtype)
    return rounded(values, dtype)


def rounded(values: Array, dtype: str) -> Array:
    """float values rounded to a dtype, held in float64 for the half types."""
    if dtype == "bfloat16":
        bits = np.asarray(values, np.float32).view(np.uint32)
        even = bits + 0x7FFF + ((bits >> 16) & 1)
        finite = ((even >> 16) << 16).astype(np.uint32).view(np.float32)
        return np.where(np.isfinite(values), finite, values).astype(np.float64)
    return np.asarray(values).astype(dtype)


def sample_array(
    case: Case, dtype: str, rng: np.random.Generator, s: TensorSample, second: bool
) -> Array:
    floating = dtype if dtype in dt.FLOATING or dtype in dt.COMPLEX else "float32"
    if s.kind in "TA":
        values = random_array(case, dtype, rng, s.shape, second)
        return np.sort(values) if s.kind == "A" else values
    if s.kind == "R":
        return random_array(case, dt.real_dtype(dtype), rng, s.shape, second)
    if s.kind in "SL":
        values = random_array(case, floating, rng, s.shape)
        n = s.shape[-1]
        if s.kind == "L":
            return rounded_matrix(0.4 * values + 2 * np.eye(n), floating)
        return rounded_matrix(
            values @ values.conj().swapaxes(-1, -2) / max(n, 1) + np.eye(n), floating
        )
    if s.kind in "IJW":
        whole = rng.integers(s.bounds[0], s.bounds[1], s.shape)
        return whole if s.kind == "I" else whole.astype("int32" if s.kind == "J" else _held(dtype))
    if s.kind == "B":
        return rng.integers(0, 2, s.shape).astype(bool)
    if s.kind == "D":
        rows = int(np.prod(s.shape[:-1]))
        picked = [rng.permutation(s.bounds[0])[: s.shape[-1]] for _ in range(rows)]
        return np.array(picked, np.int64).reshape(s.shape)
    low, high = (0.05, 0.95) if s.kind == "U" else (0.4, 2.0)
    values = spread(rng, s.shape, low, high)
    return values.astype(floating) if floating in dt.COMPLEX else rounded(values, floating)


def _held(dtype: str) -> str:
    """The NumPy dtype that holds values of a dtype."""
    return "float64" if dtype == "bfloat16" else dtype


def rounded_matrix(values: Array, dtype: str) -> Array:
    return values.astype(dtype) if dtype in dt.COMPLEX else rounded(values, dtype)


@dataclass(frozen=True)
class Value:
    """A tensor argument: values and dtype. `hermitian`: only changes that keep it Hermitian are of interest."""

    array: Array
    dtype: str
    hermitian: bool = False


def value_of(array: Array, dtype: str) -> Value:
    kind = np.asarray(array).dtype
    held = kind == _held(dtype) or kind.kind == "c"
    return Value(np.asarray(array), dtype if held else str(kind))


def resolve(
    case: Case,
    dtype: str,
    rng: np.random.Generator,
    x: Any,
    argument: Argument | None,
    position: int,
) -> Any:
    """A sample's argument: texts become Values, dtype names dtypes."""
    if isinstance(x, str):
        s = parse_tensor(x)
        if s is not None:
            made = value_of(sample_array(case, dtype, rng, s, position > 0), dtype)
            return dataclasses.replace(made, hermitian=s.kind == "S")
        if argument is not None and argument.type.base == "dtype":
            return dtype_object(dtype if x == "T" else x)
        return x
    if isinstance(x, (tuple, list)):
        return [resolve(case, dtype, rng, v, argument, position) for v in x]
    return x


def sample_calls(case: Case, dtype: str) -> list[Call]:
    """The calls that a case's samples describe; pointwise operators get theirs from `pointwise_calls`."""
    if case.pointwise:
        return pointwise_calls(case, dtype, [(3, 4)] * len(case.operands)) + extra_pointwise_calls(
            case, dtype
        )
    found = []
    positional = [a for a in case.parsed.arguments if not a.kwonly]
    for number, (args, kwargs) in enumerate(case.samples):
        rng = rng_for(case.name, dtype, number)
        resolved = [resolve(case, dtype, rng, x, positional[i], i) for i, x in enumerate(args)]
        named = {
            k: resolve(case, dtype, rng, v, case.parsed.argument(k), 1) for k, v in kwargs.items()
        }
        found.append(Call(tuple(resolved), named))
    return found


def pointwise_calls(
    case: Case, dtype: str, shapes: Sequence[tuple[int, ...]], plain: bool = False
) -> list[Call]:
    """One call per value of the str argument, operands of the given shapes; `plain`: only the first, all defaults."""
    found = []
    for choice in case.choices[: 1 if plain else None] or (None,):
        rng = rng_for(case.name, dtype, choice, tuple(shapes))
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        remaining = list(shapes)
        for a in case.parsed.arguments:
            value: Any
            if a.type.is_tensor or a.type.is_operand:
                kind = "bool" if a.name in ("condition", "mask") else dtype
                shape = remaining.pop(0)
                if case.promote == "self" and a.type.is_operand:
                    shape = ()  # a number, of whatever type
                value = value_of(random_array(case, kind, rng, shape, second=len(args) > 0), kind)
            elif a.type.base == "str":
                value = choice if choice is not None else a.default
            elif a.has_default:
                continue
            else:
                value = scalar_for(dtype, a)
            if a.kwonly or len(args) < sum(
                1 for b in case.parsed.arguments[: case.parsed.index(a.name)] if not b.kwonly
            ):
                kwargs[a.name] = value
            else:
                args.append(value)
        found.append(Call(tuple(args), kwargs))
    return found


def extra_pointwise_calls(case: Case, dtype: str) -> list[Call]:
    """Numbers as operands, and scalar arguments other than their defaults."""
    found = []
    base = pointwise_calls(case, dtype, [(3, 4)] * len(case.operands), plain=True)[0]
    number: Any = 2 if dtype not in dt.FLOATING and dtype not in dt.COMPLEX else 0.75
    if dtype == "bool":
        number = True
    for i, a in enumerate(case.operands):
        if a.type.is_operand and i > 0 and not a.kwonly and i < len(base.args):
            found.append(Call((*base.args[:i], number, *base.args[i + 1 :]), base.kwargs))
    scalars = [
        a
        for a in case.parsed.arguments
        if a.type.is_number and a.has_default and a.type.base in ("Scalar", "float")
    ]
    if scalars and dtype != "bool":
        changed = {
            a.name: (2 if dtype in dt.INTEGRAL else a.default * 0.5 + 0.25)
            for a in scalars
            if a.default is not None
        }
        found.append(Call(base.args, base.kwargs | changed))
    return found


def scalar_for(dtype: str, a: Argument) -> Any:
    if a.type.base == "bool":
        return True
    if a.type.base == "int":
        return 2
    return 2 if dtype in dt.INTEGRAL or dtype == "bool" else 0.75


def mapped(x: Any, f: Callable[[Value], Any]) -> Any:
    if isinstance(x, Value):
        return f(x)
    return [mapped(v, f) for v in x] if isinstance(x, list) else x


def with_tensors(call: Call, f: Callable[[Value], Any]) -> Call:
    """The call with every Value replaced."""
    return Call(
        tuple(mapped(a, f) for a in call.args), {k: mapped(v, f) for k, v in call.kwargs.items()}
    )


def mixed_calls(call: Call) -> list[Call]:
    """The call with its first tensor of floats narrower than the others, and the other way round."""
    held: list[Value] = []
    with_tensors(call, held.append)
    floats = [v for v in held if v.dtype == "float32"]
    if len(floats) < 2:
        return []

    def narrowed(first: bool) -> Call:
        return with_tensors(
            call,
            lambda v: (
                dataclasses.replace(v, dtype="bfloat16")
                if v.dtype == "float32" and (v is floats[0]) == first
                else v
            ),
        )

    return [narrowed(True), narrowed(False)]


def tensors(call: Call) -> Call:
    return with_tensors(call, lambda v: make(v.array, v.dtype))
