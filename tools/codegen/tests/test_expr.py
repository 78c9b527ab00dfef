"""Element expressions: reading, printing, simplification; derivatives against finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.codegen.derive import _REAL_RULES, _RULES, derive
from tools.codegen.expr import (
    PRIMITIVES,
    Call,
    Element,
    ExprError,
    Name,
    Number,
    call,
    make,
    parse_element,
    shared_subexpressions,
    source,
)
from tools.codegen.print_cpp import cpp_lambda
from tools.codegen.tests.support import evaluate

NAMES = ["x", "y", "alpha"]


def parse(text: str) -> Element:
    return parse_element(text, NAMES)


@pytest.mark.parametrize(
    "text",
    [
        "0.5 * x * (1 + erf(x * 0.7071067811865476))",
        "x - (y - alpha)",
        "x / (y * alpha)",
        "(x < y) & (x == y) | ~(y > 0)",
        "-(x + y) * 2",
        "where(x > 0, x, alpha * expm1(x))",
        "floor_divide(x, y) + remainder(x, y)",
        "(x << 2) + (y >> 1)",
        "cast(x, float32) + inf",
        "-1 * x ** 2",
    ],
)
def test_source_reads_back_to_the_same_tree(text: str) -> None:
    tree = parse(text)
    assert parse(source(tree)) == tree


def test_python_operators_are_primitives() -> None:
    assert source(parse("x // y % alpha ** 2")) == "remainder(floor_divide(x, y), pow(alpha, 2))"


def test_values_and_masks_are_converted() -> None:
    assert source(parse("where(x, y, 0)")) == "where(x != 0, y, 0)"
    assert source(parse("(x > 0) * y")) == "where(x > 0, 1, 0) * y"
    assert parse("(x > 0) & y").kind == "mask"
    assert parse("x & y").kind == "value"


def test_literals_fold_and_keep_their_type() -> None:
    assert parse("2 * M_PI") == Number(6.283185307179586)
    assert parse("1 / 4") == Number(0.25)
    assert parse("-0") == Number(-0.0)
    assert Number(1) != Number(1.0)


@pytest.mark.parametrize(
    ("text", "offset", "message"),
    [
        ("x + z", 4, "unknown name 'z'"),
        ("expp(x)", 0, "did you mean 'exp"),
        ("x if y else 0", 0, "use where"),
        ("x and y", 0, "use & and |"),
        ("atan2(x)", 0, "atan2 takes 2 arguments, got 1"),
        ("x < y < 2", 0, "between two values"),
        ("x + )", 4, "syntax error"),
        ("x.shape", 0, "Attribute is not part"),
        ("cast(x, float33)", 0, "cast takes a value and a dtype"),
    ],
)
def test_faults_are_placed(text: str, offset: int, message: str) -> None:
    with pytest.raises(ExprError) as e:
        parse(text)
    assert message in e.value.message
    assert e.value.offset == offset


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (make("mul", Number(0), Name("x")), "0"),
        (make("mul", Number(1), Name("x")), "x"),
        (make("add", Name("x"), Number(0)), "x"),
        (make("sub", Number(0), Name("x")), "-x"),
        (make("neg", make("neg", Name("x"))), "x"),
        (make("mul", Number(2), make("mul", Number(3), Name("x"))), "6 * x"),
        (make("add", Name("x"), Name("x")), "2 * x"),
        (make("mul", Name("x"), parse("where(y > 0, 1, 0)")), "where(y > 0, x, 0)"),
        (make("pow", Name("x"), Number(1)), "x"),
        (make("where", parse("x > 0"), Name("y"), Name("y")), "y"),
    ],
)
def test_simplification(tree: Element, expected: str) -> None:
    assert source(tree) == expected


def test_shared_parts_come_in_order() -> None:
    tree = parse("tanh(x + y) * tanh(x + y) + (x + y)")
    assert [source(s) for s in shared_subexpressions(tree)] == ["x + y", "tanh(x + y)"]


def test_cpp_lambda() -> None:
    assert cpp_lambda(parse("x + alpha * y"), ["x", "y"], ["alpha"]) == (
        "[=](auto x, auto y) { return x + lit(x, alpha) * y; }"
    )
    text = cpp_lambda(parse("exp(x) / (1 + exp(x))"), ["x"])
    assert text.splitlines() == [
        "[](auto x) {",
        "  const auto t0 = exp(x);",
        "  return t0 / (lit(x, 1) + t0);",
        "}",
    ]
    assert cpp_lambda(parse("(x & y) == (y | 1)"), ["x", "y"]).endswith(
        "{ return (x & y) == (y | lit(x, 1)); }"
    )
    where = parse_element("where(mask, value + 1, self)", ["self", "mask", "value"], ["mask"])
    assert cpp_lambda(where, ["mask", "self", "value"]) == (
        "[](auto mask, auto self, auto value) { return where(mask, value + lit(self, 1), self); }"
    )
    where = parse_element("where(mask, value + 1, self)", ["self", "mask", "value"], ["mask"])
    assert cpp_lambda(where, ["mask", "self", "value"]) == (
        "[](auto mask, auto self, auto value) { return where(mask, value + lit(self, 1), self); }"
    )
    assert "__builtin_inf()" in cpp_lambda(parse("where(x > 0, inf, nan)"), ["x"])


# ---- derivatives -----------------------------------------------------------------------------------------------------

# Points inside each function's domain, away from kinks.
POINTS = {
    "acosh": (1.3, 2.6), "asin": (-0.7, 0.6), "acos": (-0.7, 0.6), "atanh": (-0.7, 0.6), "erfinv": (-0.7, 0.6),
    "log": (0.4, 2.3), "log2": (0.4, 2.3), "log10": (0.4, 2.3), "sqrt": (0.4, 2.3), "rsqrt": (0.4, 2.3),
    "lgamma": (0.6, 2.3), "digamma": (0.6, 2.3), "log1p": (-0.4, 2.3), "pow": (0.4, 2.3),
}  # fmt: skip


def central_difference(x: Element, name: str, at: dict[str, float], step: float = 1e-6) -> float:
    up, down = ({**at, name: at[name] + s} for s in (step, -step))
    return float((evaluate(x, up) - evaluate(x, down)) / (2 * step))


@pytest.mark.parametrize("fn", sorted({*_RULES, *_REAL_RULES} - {"where"}))
def test_derivative_of_every_primitive(fn: str) -> None:
    arity = len(PRIMITIVES[fn].args)
    names = ["x", "y"][:arity]
    tree = Call(fn, tuple(Name(n) for n in names))
    for px in POINTS.get(fn, (-1.37, 0.83)):
        for py in (0.71, 1.9):
            at = {"x": px, "y": py}
            for name in names:
                got = float(evaluate(derive(tree, name), at))
                assert got == pytest.approx(
                    central_difference(tree, name, at), rel=1e-5, abs=1e-7
                ), (fn, name, at)


def test_derivatives_at_kinks() -> None:
    assert evaluate(derive(parse("abs(x)"), "x"), {"x": 0.0}) == 0
    assert evaluate(derive(parse("maximum(x, y)"), "x"), {"x": 2.0, "y": 2.0}) == 0.5
    assert source(make("mul", Name("g"), derive(parse("maximum(x, 0)"), "x"))).startswith(
        "g * where(x == 0"
    )
    assert np.isfinite(evaluate(derive(parse("x * sigmoid(x)"), "x"), {"x": -120.0}))
    assert evaluate(derive(parse("pow(x, y)"), "x"), {"x": 0.0, "y": 0.0}) == 0
    assert evaluate(derive(parse("pow(x, y)"), "y"), {"x": 0.0, "y": 2.0}) == 0


def test_complex_refuses_what_is_not_holomorphic() -> None:
    with pytest.raises(ExprError, match="abs is not holomorphic"):
        derive(parse("abs(x)"), "x", complex_values=True)
    assert source(derive(parse("exp(x)"), "x", complex_values=True)) == "exp(x)"


def _expressions(depth: int) -> st.SearchStrategy[Element]:
    leaf = st.one_of(
        st.sampled_from([Name("x"), Name("y")]),
        st.floats(0.25, 2.0).map(lambda v: Number(round(v, 3))),
    )
    if depth == 0:
        return leaf
    inner = _expressions(depth - 1)
    unary = st.sampled_from(["sin", "tanh", "sigmoid", "exp", "atan", "neg", "erf", "asinh"])
    binary = st.sampled_from(["add", "sub", "mul"])  # no singular points and no ties
    return st.one_of(
        leaf,
        st.builds(lambda f, a: call(f, a), unary, inner),
        st.builds(lambda f, a, b: call(f, a, b), binary, inner, inner),
        st.builds(lambda a, b: call("where", call("gt", a, Number(0.123)), a, b), inner, inner),
    )


@settings(max_examples=300, deadline=None)
@given(tree=_expressions(4))
def test_random_expressions_round_trip(tree: Element) -> None:
    assert evaluate(
        parse_element(source(tree), ["x", "y"]), {"x": 0.3, "y": -1.1}
    ) == pytest.approx(evaluate(tree, {"x": 0.3, "y": -1.1}), nan_ok=True)


@settings(max_examples=300, deadline=None)
@given(tree=_expressions(3), px=st.floats(-1.5, 1.5), py=st.floats(-1.5, 1.5))
def test_random_derivatives_match_finite_differences(tree: Element, px: float, py: float) -> None:
    at = {"x": px, "y": py}
    near = [central_difference(tree, "x", {"x": px + d, "y": py}) for d in (-2e-4, 0.0, 2e-4)]
    values = [float(evaluate(tree, {"x": px + d, "y": py})) for d in (-3e-4, 0.0, 3e-4)]
    got = float(np.real(evaluate(derive(tree, "x"), at)))
    scale = max(abs(near[1]), 1.0)
    smooth = (
        max(near) - min(near) < 1e-2 * scale
        and max(abs(v) for v in values) < 1e3
        and abs(near[1]) < 1e3
    )
    if smooth:  # not at a kink or a jump, and within the differences' own precision
        assert got == pytest.approx(near[1], rel=1e-3, abs=1e-3 * scale)
