"""Schemas are read as the C++ core reads them, and `bind` converts and refuses as an operator's call does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import argand_c10 as c10
from argand_fx import schema

SEEN: list[tuple[tuple[Any, ...], dict[str, Any]]] = []


def _define(text: str, results: int = 1) -> Any:
    """An operator whose kernel notes its arguments, and the same as a graph's `bind` gives them."""
    op = c10.define(text)

    def kernel(*args: Any, **kwargs: Any) -> Any:
        SEEN.append((args, kwargs))
        return args[0] if results == 1 else (args[0],) * results

    c10.register_kernel(op.name, "CPU", kernel)
    return op


MIXED = _define(
    'fxtest_mixed(Tensor self, int[2] size=1, *, float scale=0.5, str mode="a, b", bool flag=False, int? n=None, '
    "Scalar alpha=1, ScalarType? dtype=None, Device? device=None) -> Tensor"
)
SIZES = _define("fxtest_sizes(int[] size) -> Tensor")
LIST = _define("fxtest_list(Tensor[] tensors, int dim=0) -> Tensor", 1)
WRITE = _define("fxtest_write_(Tensor(a!) self, Tensor?[] indices, Tensor values) -> Tensor(a!)")
PAIR = _define("fxtest_pair(Tensor self, int dim) -> (Tensor values, Tensor indices)", 2)
X = c10.tensor([1.0, 2.0])


def test_arguments() -> None:
    s = schema.schema_of(MIXED)
    assert [a.name for a in s.arguments][:3] == ["self", "size", "scale"] and s.positional == 2
    size, mode = s.arguments[1], s.arguments[3]
    assert (
        size.is_list
        and size.size == 2
        and size.default == [1, 1]
        and mode.default == "a, b"
        and mode.kwonly
    )
    assert s.arguments[5].optional and s.arguments[5].default is None and s.is_factory
    written = schema.schema_of(WRITE)
    assert (
        written.written == (0,)
        and written.arguments[1].item_optional
        and written.arguments[0].alias
    )
    assert (
        schema.schema_of(PAIR).result_names == ("values", "indices")
        and schema.schema_of(PAIR).results == 2
    )
    assert schema.schema_of(SIZES).arguments[0].varargs and not size.varargs


@pytest.mark.parametrize(
    "text",
    ["f(Tensor self)", "f Tensor self -> Tensor", "f(Matrix x) -> Tensor", "f(Tensor x) -> Matrix"],
)
def test_malformed(text: str) -> None:
    with pytest.raises(ValueError, match="schema: got"):
        schema.parse_schema(text)


@pytest.mark.parametrize(
    ("op", "args", "kwargs"),
    [
        (MIXED, (X,), {}),
        (MIXED, (X, 3), {}),
        (MIXED, (X, [3]), {}),
        (MIXED, (X, (3, 4)), {"scale": 2, "mode": "c", "flag": True, "n": 5, "alpha": 2.5}),
        (MIXED, (X,), {"size": (np.int64(2), 3), "dtype": float}),
        (MIXED, (X,), {"dtype": "int64", "scale": np.float32(0.25)}),
        (MIXED, (X,), {"alpha": c10.tensor(3), "n": c10.tensor(7)}),
        (MIXED, (), {"input": X, "size": 5}),
        (MIXED, (X,), {"pin_memory": False, "layout": c10.strided}),
        (SIZES, (2, 3), {}),
        (SIZES, ((2, 3),), {}),
        (SIZES, ([],), {}),
        (LIST, ([X, X], 1), {}),
        (LIST, ((X,),), {}),
        (WRITE, (X, [None, c10.tensor([1])], X), {}),
    ],
)
def test_values(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    overload, values = schema.bind(op, args, kwargs)
    assert overload is op.variants[0]
    SEEN.clear()
    op(*args, **kwargs)
    positional, named = SEEN[0]
    for i, (a, got) in enumerate(zip(schema.schema_of(op).arguments, values, strict=True)):
        want = positional[i] if i < len(positional) else named.get(a.name, a.default)
        if isinstance(want, c10.Tensor):
            assert got is want
        elif isinstance(want, (list, tuple)) and any(isinstance(x, c10.Tensor) for x in want):
            assert all(x is y for x, y in zip(got, want, strict=True))
        else:
            assert (list(want) if isinstance(want, tuple) else want) == got and (want is None) == (
                got is None
            )


@pytest.mark.parametrize(
    ("op", "args", "kwargs"),
    [
        (MIXED, (), {}),
        (MIXED, ("x",), {}),
        (MIXED, (X, (1, 2, 3)), {}),
        (MIXED, (X, (1, "b")), {}),
        (MIXED, (X, 1.5), {}),
        (MIXED, (X, 1, 2), {}),
        (MIXED, (X,), {"size": 1, "other": 2}),
        (MIXED, (X,), {"self": X}),
        (MIXED, (X,), {"flag": 1}),
        (MIXED, (X,), {"flag": c10.tensor(True)}),
        (MIXED, (X,), {"n": True}),
        (MIXED, (X,), {"scale": "a"}),
        (MIXED, (X,), {"dtype": 3}),
        (SIZES, (True,), {}),
        (SIZES, (2, "a"), {}),
        (LIST, ([X, None],), {}),
        (LIST, (X,), {}),
        (WRITE, (X, [1], X), {}),
    ],
)
def test_refusals(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """The same error as the operator's own."""
    with pytest.raises((TypeError, RuntimeError)) as real:
        op(*args, **kwargs)
    with pytest.raises(real.type) as bound:
        schema.bind(op, args, kwargs)
    assert str(bound.value) == str(real.value)


def test_a_numpy_scalar_is_no_flag() -> None:
    for call in (MIXED, lambda *a, **k: schema.bind(MIXED, a, k)):
        with pytest.raises(TypeError, match="must be bool, not "):
            call(X, flag=np.bool_(True))


def test_leaf_in_a_graph_is_refused() -> None:
    with pytest.raises(ValueError, match="requires_grad=True"):
        schema.bind(MIXED, (X,), {"requires_grad": True})


def test_overload_by_name() -> None:
    assert schema.overload("fxtest_pair") is PAIR.variants[0]
    with pytest.raises(LookupError, match="fxtest_unknown"):
        schema.overload("fxtest_unknown")


def test_devices() -> None:
    assert schema.bind(MIXED, (X,), {"device": "cpu:0"})[1][-1] == X.device
    assert schema.bind(MIXED, (X,), {"device": c10.device("meta")})[1][-1] == c10.device("meta")
