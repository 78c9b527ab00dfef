"""Schemas: text round trips, forms, hashes, errors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.codegen.model import REQUIRED, Argument, Result, Schema, Type
from tools.codegen.schema_parser import SchemaError

SCHEMAS = [
    'gelu(Tensor self, *, str approximate="none") -> Tensor',
    "max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    "add(Tensor|Scalar self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor",
    "index(Tensor self, Tensor?[] indices) -> Tensor",
    "split(Tensor(a) self, int[] s, int dim=0) -> Tensor(a)[]",
    "copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)",
    "conv(Tensor x, int[2] padding=0, int[] stride=[], ScalarType? dtype=None, float eps=1e-05) -> Tensor",
    "step_(Tensor(a!)[] params, Tensor[] grads, *, float lr) -> ()",
    "clamp(Tensor self, Tensor|Scalar? min=None, int[1]? dim=[0, 1], Device? device=None) -> Tensor",
    "ns::decode.tensor(Tensor x, Tensor scale) -> Tensor",
]


@pytest.mark.parametrize("text", SCHEMAS)
def test_text_round_trips(text: str) -> None:
    assert str(Schema.parse(text)) == text


def test_parts() -> None:
    schema = Schema.parse(SCHEMAS[1])
    assert (schema.name, schema.overload, schema.full_name) == ("max", "dim", "max.dim")
    assert schema.arguments[2] == Argument("keepdim", Type("bool"), False)
    assert schema.arguments[1].default is REQUIRED
    assert [r.name for r in schema.results] == ["values", "indices"]
    assert Schema.parse(SCHEMAS[-1]).identifier == "ns_decode_tensor"
    sized = Schema.parse(SCHEMAS[6]).argument("padding")
    assert sized is not None and (sized.type.list_size, sized.default) == (2, 0)


def test_forms() -> None:
    schema = Schema.parse(SCHEMAS[2])
    assert (
        str(schema.inplace())
        == "add_(Tensor(a!) self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor(a!)"
    )
    assert schema.inplace().is_inplace and schema.inplace().base_name == "add"
    assert str(schema.out_form()).endswith("*, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)")
    several = Schema.parse(SCHEMAS[1]).out_form()
    assert several.full_name == "max.dim_out"
    assert [a.name for a in several.arguments if a.is_out] == ["values", "indices"]


def test_hash_is_stable_and_tells_schemas_apart() -> None:
    assert Schema.parse(SCHEMAS[0]).hash == 0x2AD746F9B7A6FF69
    assert len({Schema.parse(s).hash for s in SCHEMAS}) == len(SCHEMAS)
    assert (
        Schema.parse("f( Tensor  x )  -> Tensor").hash == Schema.parse("f(Tensor x) -> Tensor").hash
    )


@pytest.mark.parametrize(
    ("text", "offset", "message"),
    [
        ("f(Tensr x) -> Tensor", 2, "unknown type 'Tensr'"),
        ("f(Tensor x -> Tensor", 11, "expected ','"),
        ("f(Tensor x) Tensor", 12, "expected '->'"),
        ("f(Tensor x, Tensor x) -> Tensor", 19, "given twice"),
        ("f(Tensor x, int n=1.5) -> Tensor", 18, "does not fit type int"),
        ("f(int n=1, Tensor x) -> Tensor", 18, "has no default but follows one that has"),
        ("f(Tensor x, int n=None) -> Tensor", 18, "does not fit"),
        ("f(Tensor x) -> Tensor extra stuff", 21, "after the end"),
        ("f(Tensor|int x) -> Tensor", 9, "only Tensor|Scalar"),
    ],
)
def test_errors_point_at_the_fault(text: str, offset: int, message: str) -> None:
    with pytest.raises(SchemaError, match=message.replace("|", r"\|").replace("(", r"\(")) as e:
        Schema.parse(text)
    assert abs(e.value.offset - offset) <= 1


_names = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
_types = st.builds(
    Type,
    base=st.sampled_from(
        ["Tensor", "Scalar", "int", "float", "bool", "str", "dtype", "device", "generator"]
    ),
    is_list=st.booleans(),
    optional=st.booleans(),
)


@given(
    name=_names,
    arguments=st.lists(st.tuples(_names, _types), max_size=6, unique_by=lambda p: p[0]),
    kwonly=st.integers(0, 6),
    results=st.lists(st.builds(Result, st.none() | _names, st.just(Type("Tensor"))), max_size=3),
)
def test_generated_schemas_round_trip(
    name: str, arguments: list[tuple[str, Type]], kwonly: int, results: list[Result]
) -> None:
    args = tuple(Argument(n, t, kwonly=i >= kwonly) for i, (n, t) in enumerate(arguments))
    schema = Schema(name, "", args, tuple(results))
    assert Schema.parse(str(schema)) == schema
