"""Bodies: types and narrowing, and what the printers make of them."""

from __future__ import annotations

from typing import Any

import pytest

from tools.codegen import body as b
from tools.codegen.body import INTS, LType, of_schema, uses
from tools.codegen.body_reader import read_body
from tools.codegen.model import Schema
from tools.codegen.print_cpp_body import BodyPrinter
from tools.codegen.print_python import python_function
from tools.codegen.tests.support import language

SCHEMAS = [
    Schema.parse(s)
    for s in (
        "add(Tensor|Scalar self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor",
        "mul(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
        "exp(Tensor self) -> Tensor",
        "sum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        "max(Tensor self) -> Tensor",
        "max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        "cat(Tensor[] tensors, int dim=0) -> Tensor",
        "fill_(Tensor(a!) self, Tensor|Scalar value) -> Tensor(a!)",
        "where(Tensor condition, Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
        "gt(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
    )
]
SIGNATURE = Schema.parse(
    "f(Tensor self, Tensor? bias, int dim, int[] size, int[1]? dims, Tensor[] tensors, Tensor|Scalar other, Scalar s, "
    "str mode, ScalarType? dtype) -> Tensor"
)
PARAMETERS = {a.name: of_schema(a.type) for a in SIGNATURE.arguments}


def read(text: str, result: LType | None = None) -> b.Body:
    return read_body(text, PARAMETERS, lambda n: [s for s in SCHEMAS if s.name == n], result)


def cpp(text: str) -> str:
    return BodyPrinter().body(read(text), "")


def python(text: str) -> str:
    return python_function("f", "op", "self", read(text))


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("self + 1", "Tensor"),
        ("self.shape[0] + 1", "int"),
        ("dim / 2", "float"),
        ("self.shape[:1] + [2]", "int[]"),
        ("max(self, dim)", "(Tensor, Tensor)"),
        ("max(dim, 1, self.ndim)", "int"),
        ("max(self)", "Tensor"),
        ("bias", "Tensor?"),
        ("bias if bias is not None else self", "Tensor"),
        ("self if dim > 0 else None", "Tensor?"),
        ("[t.ndim for t in tensors]", "int[]"),
        ("tensors.shapes", "int[][]"),
        ("dtype is None or dtype == float32", "bool"),
        ("0 <= dim < self.ndim and mode in ('a', 'b')", "bool"),
        ("s * 2", "float"),
        ("wrap_dim(dim, self.ndim)", "int"),
    ],
)
def test_types(text: str, type_: str) -> None:
    assert str(read(text).result) == type_


def test_overloads_are_chosen_by_type() -> None:
    calls = read("cat([max(self, 1)[0], exp(self)], dim=0)").calls()
    assert [c.full_name for c in calls] == ["cat", "max.dim", "exp"]


def test_empty_lists_learn_their_type() -> None:
    body = read("out = []\nfor t in tensors:\n    out.append(exp(t))\nreturn cat(out)\n")
    assert dict(body.locals)["out"] == b.list_of(b.TENSOR)
    assert "TensorList out = TensorList{};" in cpp(body.text)


def test_uses_tell_data_from_geometry() -> None:
    found = uses(read("sum(other * self.ndim, [dim]) + self.shape[0]"))
    assert found.data == {"other", "dim"}
    assert found.geometry == {("self", "ndim"), ("self", "shape")}


def test_cpp_statements() -> None:
    text = cpp(
        """\
n = self.ndim
d = wrap_dim(dim, n)
check(self.shape[d] > 0, "size {self.shape[d]} of {mode}")
out = list(self.shape)
out[-1], out[d] = out[d], 1
if dims is None:
    return sum(self, [d], True)
for i in range(n):
    out[i] = out[i] // 2
return sum(self, dims) + s
"""
    )
    assert text == (
        """\
int64_t n = builtins::ndim_of(self);
int64_t d = builtins::wrap_dim(dim, n);
if (!(builtins::at(builtins::shape_of(self), d) > 0)) builtins::raise(ARGAND_SHAPE_ERROR, """
        """builtins::text("size ", builtins::at(builtins::shape_of(self), d), " of ", mode));
builtins::Ints out = builtins::list(builtins::shape_of(self));
int64_t tmp0 = builtins::at(out, d);
int64_t tmp1 = 1;
out[out.size() - 1] = tmp0;
out[d] = tmp1;
if (!dims.has_value()) {
  return ops::sum(self, builtins::Ints{d}, true);
}
for (int64_t i = 0; i < n; i++) {
  out[i] = builtins::floordiv(builtins::at(out, i), 2);
}
return ops::add(ops::sum(self, *dims), s);
"""
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("return self if dim > 0 else exp(self)", "return (dim > 0) ? self : ops::exp(self);"),
        ("return exp(other)", "return ops::exp(builtins::as_tensor(other));"),
        (
            "return dims is None or len(dims) == 0",
            "return (!dims.has_value()) || (builtins::len(*dims) == 0);",
        ),
        ("return sum(self, dtype=dtype)", "return ops::sum(self, std::nullopt, false, dtype);"),
        ("return self.shape == size", "return IntList(builtins::shape_of(self)) == IntList(size);"),
        ("return [1] * dim", "return builtins::Ints(std::max<int64_t>(dim, 0), 1);"),
        ("return dim % 3 - -2", "return builtins::minus(builtins::mod(dim, 3), -2);"),
        ("return 1 / s", "return 1.0 / builtins::to_float(s);"),
        ("return dtype is None", "return dtype == ARGAND_DTYPE_NONE;"),
        ("return bias is not None", "return bias.defined();"),
        ("return min(dim, 1)", "return std::min<int64_t>(dim, 1);"),
        ("return mode == 'a\"b'", 'return mode == std::string_view("a\\"b");'),
    ],
)
def test_cpp_expressions(text: str, expected: str) -> None:
    assert cpp(text).strip().splitlines()[-1] == expected


def test_python_statements() -> None:
    text = python(
        """\
d = wrap_dim(dim, self.ndim)
check_index(d < 3, "got {d} for '{mode}'")
while d > 1:
    d -= 1
out = [x * 2 for x in size if x != d]
return sum(exp(self) * 2.0, out, dtype=float64)
"""
    )
    assert text == (
        """\
def f(self):
    size = lang.ints(size)
    d = lang.wrap_dim(dim, self.ndim)
    if not (d < 3):
        raise lang.IndexError(f"op: got {d} for '{mode}'")
    while d > 1:
        d = d - 1
    out = [x * 2 for x in size if x != d]
    return ops.sum(ops.mul(ops.exp(self), 2.0), out, dtype=lang.float64)
"""
    )


class Meta:
    """A tensor without data, as shape functions see it."""

    def __init__(self, shape: list[int], strides: list[int], offset: int = 0) -> None:
        self.shape, self.strides, self.offset = shape, strides, offset
        self.ndim = len(shape)


def test_shape_functions_run_in_python() -> None:
    text = (
        "a = wrap_dim(dim, self.ndim)\nsizes = list(self.shape)\nstrides = list(self.strides)\n"
        "sizes[a], sizes[0] = sizes[0], sizes[a]\nstrides[a], strides[0] = strides[0], strides[a]\n"
        "return strided(sizes, strides, self.offset)\n"
    )
    body = read(text)
    assert body.result == b.STRIDED
    space: dict[str, Any] = {"lang": language()}
    exec(python_function("f", "op", "self, dim", body), space)
    assert space["f"](Meta([2, 3, 4], [12, 4, 1], 5), -1) == ([4, 3, 2], [1, 4, 12], 5)


def test_result_of_a_shape_is_settled() -> None:
    assert read("return []").result == INTS
