"""Every fault of a registry is shown, with file, line, column, source line and caret."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.codegen.tests.support import errors_of, load_text

GOOD = """\
- op: softcap(Tensor self, float cap) -> Tensor
  kind: pointwise
  dtypes: floating
  expr: cap * tanh(self / cap)
  grad: {self: d(expr)}
  doc: Soft limit.
"""


def test_a_good_entry_is_accepted(tmp_path: Path) -> None:
    names = list(load_text(tmp_path, GOOD.replace("d(expr)", "grad")).operators)
    assert names == ["softcap"]


def test_what_a_derivative_needs_is_said(tmp_path: Path) -> None:
    shown = errors_of(tmp_path, GOOD)
    assert (
        "things.yaml:5:16: error: softcap_backward: gradient for self: needs the operator" in shown
    )


def test_all_faults_are_shown_together(tmp_path: Path) -> None:
    text = """\
- op: f(Tensor self) -> Tensor
  kind: pointwise
  dtypes: floating
  exprr: exp(self)
  expr: expp(self)
  grad: {self: grad}
  doc: One.
- op: g(Tensr self) -> Tensor
  kind: pointwise
- op: h(Tensor self) -> Tensor
  kind: pointwise
  dtypes: floating
  expr: exp(self)
  doc: Two.
"""
    assert (
        errors_of(tmp_path, text)
        == """\
things.yaml:4:3: error: unknown key 'exprr' in an operator; did you mean 'expr'?
    exprr: exp(self)
    ^~~~~
things.yaml:5:9: error: unknown primitive 'expp'; did you mean 'exp'?
    expr: expp(self)
          ^~~~
things.yaml:8:9: error: schema: unknown type 'Tensr'; expected one of Tensor, Tensor|Scalar, Scalar, int, float, bool, str, ScalarType, Device, Generator
  - op: g(Tensr self) -> Tensor
          ^~~~~
things.yaml:10:7: error: h: computes on floating-point tensors but says nothing about its derivative; give `grad: {...}`, `grad: none` or `grad: missing`
  - op: h(Tensor self) -> Tensor
        ^"""
    )


def test_a_familys_defaults(tmp_path: Path) -> None:
    text = (
        "- defaults: {resized: row_major}\n"
        + entry()
        + entry(op="g(Tensor self, Tensor other) -> Tensor", resized="as_result")
    )
    found = load_text(tmp_path, text).operators
    assert [found[name].resized for name in ("f", "g")] == ["row_major", "as_result"]
    assert "unknown key 'resize' in a family's defaults; did you mean 'resized'?" in errors_of(
        tmp_path, "- defaults: {resize: row_major}\n" + entry()
    )


def entry(change: str = "", **keys: str) -> str:
    """A pointwise operator with some keys replaced, or removed by an empty text."""
    found = {
        "op": "f(Tensor self, Tensor other) -> Tensor",
        "kind": "pointwise",
        "dtypes": "floating",
        "expr": "self + other",
        "grad": "{self: grad, other: grad}",
        "doc": "Sum.",
    } | keys
    lines = [f"{k}: {v}" for k, v in found.items() if v]
    return "- " + "\n  ".join(lines) + "\n" + change


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (entry(kind="pointwize"), ":2:9: error: unknown kind 'pointwize'; did you mean 'pointwise'?"),
        (entry(dtypes="floatng"), ":3:11: error: unknown dtype 'floatng'; did you mean 'floating'?"),
        (entry(promote="flaot"), "error: unknown promote 'flaot'; did you mean 'float'?"),
        (entry(expr="self + othr"), ":4:16: error: unknown name 'othr'; did you mean 'other'?"),
        (entry(expr=""), ":1:7: error: f: kind pointwise needs `expr:`"),
        (entry(doc=""), "error: f: needs `doc:`, one sentence"),
        (entry(grad="{self: grad, othr: grad}"), ":5:22: error: f: gradient for unknown argument 'othr'; did you mean 'other'?"),
        (entry(grad="{self: grad, other: none}", tied="[other]"), "error: f: tied 'other' has no gradient here"),
        (entry(grad="{self: 'mull(grad, 2)'}"), ":5:17: error: unknown function 'mull'"),
        (entry(grad="{self: 1.0}"), "error: returns float, expected Tensor?"),
        (entry(op="f(Tensor(a) self, Tensor other) -> Tensor(a)"), "error: f: kind pointwise makes new tensors, but its schema has alias marks"),
        (entry(op="f_(Tensor self, Tensor other) -> Tensor"), "error: f_: an in-place operator changes its first argument; mark it Tensor(a!)"),
        (entry(op="f(Tensor self, Tensor other) -> Tensor(b)"), "error: f: a result is marked (b), but no argument is"),
        (entry() + entry(), ":7:7: error: operator 'f' is already defined by 'f'; give this an overload name"),
        (entry(kernel="{cpu: add}"), "error: f: kind pointwise has no kernel of its own; it is generated"),
        (entry(dtypes="real", expr="exp(self) + other"), "error: f: exp gives no integer, but dtypes has integers"),
        (entry(dtypes="real", expr="self + 0.5 * other"), "error: f: 0.5 is no integer, but dtypes has integers"),
        (entry(samples="[{args: ['T(2,3)']}]"), "error: sample does not fit f: argument 'other' is missing"),
        (entry(samples="[{args: ['T(2,3)', 'T(2;3)']}]"), "error: sample does not fit f: 'T(2;3)' is not a tensor"),
        (entry(samples="[{args: ['T(2)', 'T(2)'], kwargs: {alpa: 1}}]"), "no argument 'alpa'"),
        (entry(skips="{refrence: why}"), "unknown test 'refrence' in skips; did you mean 'reference'?"),
        (entry(variants="[function, inplce]"), "error: unknown variant 'inplce'; did you mean 'inplace'?"),
        (entry(kind="view", expr="", dtypes="", shape="strided(self.shape, self.strides, self.offset)"), "error: f: a view's first argument carries an alias mark"),
        (entry(kind="opaque", expr="", kernel="{cpu: a, cpu: b}"), "error: key 'cpu' is given twice in kernel"),
        (
            entry(kind="opaque", expr="", kernel="{cpu: k}") + entry(op="g(Tensor self, Tensor other) -> Tensor", kind="opaque", expr="", kernel="{cpu: k}"),
            "error: g: kernel cpu: k already belongs to 'f'",
        ),
        (entry(kind="opaque", expr="", kernel="{cpuu: k}"), "error: unknown key 'cpuu' in kernel; did you mean 'cpu'?"),
        (entry(expr="abs(self) * other", dtypes="floating_complex", grad="{self: d(expr), other: d(expr)}"), "error: d(expr): abs is not holomorphic"),
        ("- op: f(Tensor self) -> Tensor\n  doc: a: b\n", "error: not YAML"),
        ("op: f\n", "error: a registry file is a list of operators"),
    ],
)  # fmt: skip
def test_messages(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in errors_of(tmp_path, text)


def body(text: str) -> str:
    lines = "\n    ".join(text.splitlines())
    return f"- op: f(Tensor self, int dim, int[]? sizes=None) -> Tensor\n  kind: composite\n  doc: x.\n  body: |\n    {lines}\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("return slef", ":5:12: error: unknown name 'slef'; did you mean 'self'?"),
        ("x = self.shap\nreturn self", ":5:9: error: Tensor has no attribute 'shap'"),
        ("return dim", ":5:12: error: returns int, expected Tensor"),
        ("if dim:\n    return self\nreturn self", ":5:8: error: expected a condition, got int"),
        ("n = len(sizes)\nreturn self", "len: may be None here; test it with `is None` first"),
        (
            "if dim > 0:\n    x = self\nreturn x",
            ":7:12: error: 'x' is not set on every path to here",
        ),
        ("if dim > 0:\n    return self", "error: not every path returns a value"),
        ("return self\nreturn self", "error: this is never reached"),
        ("x = 1\nx = self\nreturn self", "'x' is int and cannot become Tensor"),
        ("self.shape[0] = 2\nreturn self", "only entries of a local list can be assigned"),
        ("sizes[0] = 2\nreturn self", "'sizes' is an argument"),
        ("check(dim > 0, 'no {dm}')\nreturn self", "unknown name 'dm'; did you mean 'dim'?"),
        ("import os\nreturn self", "Import is not part of the language"),
        ("dim + 1\nreturn self", "this value is not used"),
        ("x = [1, 'a']\nreturn self", "a list has elements of one type"),
        ("return self[0]", "tensors are indexed by select() and slice()"),
        ("return wrap_dim(self, dim)", "wrap_dim: argument 1 is Tensor, expected int"),
        ("return (self", "syntax error"),
    ],
)
def test_body_messages(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in errors_of(tmp_path, body(text))


def test_long_lines_are_cut_around_the_caret(tmp_path: Path) -> None:
    shown = errors_of(tmp_path, entry(expr="self + " + "other + " * 30 + "othr"))
    head, line, caret = shown.splitlines()
    assert len(line) <= 122
    assert line[caret.index("^") :].startswith("othr")


def test_autocast_policies_are_checked(tmp_path: Path) -> None:
    text = GOOD.replace("d(expr)", "grad")
    operators = load_text(tmp_path, text + "  autocast: lower\n").operators
    assert operators["softcap"].autocast == ("lower", "lower")
    both = text + "  autocast: {cpu: none, accelerator: float32}\n"
    assert load_text(tmp_path, both).operators["softcap"].autocast == ("none", "float32")
    shown = errors_of(tmp_path, text + "  autocast: lowr\n")
    assert "unknown autocast 'lowr'; did you mean 'lower'?" in shown
    shown = errors_of(tmp_path, text + "  autocast: {cpu: none}\n")
    assert "autocast: needs a policy for each of cpu, accelerator" in shown
