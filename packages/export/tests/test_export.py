"""Exported programs against their modules."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import pytest

import argand_aten as aten
import argand_autograd  # noqa: F401  (gradients)
import argand_c10 as c10
from argand_c10 import Module
from argand_dynamo import GraphBreak
from argand_export import ConstraintViolationError, Dim, dims, export


def make(**fields: Any) -> Module:
    """A module of a forward function."""
    return type("Made", (Module,), fields)()


def test_changed_arguments_are_written() -> None:
    def forward(self: Any, x: Any, y: Any) -> Any:
        x[1:].mul_(2)
        return x + y, x

    program = export(make(forward=forward), (aten.ones(3), aten.ones(3)))
    x = aten.ones(3)
    total, same = program(x, aten.ones(3))
    assert x.tolist() == [1.0, 2.0, 2.0]
    assert total.tolist() == [2.0, 3.0, 3.0] and same.tolist() == x.tolist()


def test_buffers_that_get_a_new_tensor() -> None:
    class Counter(Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", aten.zeros(()))

        def forward(self, x: Any) -> Any:
            self.count = self.count + 1
            return x * self.count

    counter = Counter()
    program = export(counter, (aten.ones(2),))
    assert counter.count.item() == 0.0, "tracing changes nothing"
    assert program(aten.ones(2)).tolist() == [1.0, 1.0]
    assert program(aten.ones(2)).tolist() == [2.0, 2.0]


def test_views_of_inputs_and_results() -> None:
    def forward(self: Any, x: Any) -> Any:
        y = x * 2
        return x.t(), y[0], y.view(-1), [x.shape[1], None]

    program = export(make(forward=forward), (aten.randn(3, 4),))
    x = aten.randn(3, 4)
    a, b, c, rest = program(x)
    assert aten.equal(a, x.t()) and aten.equal(b, x[0] * 2) and aten.equal(c, (x * 2).view(-1))
    assert rest == [4, None]


Pair = namedtuple("Pair", ["first", "second"])


def test_containers() -> None:
    def forward(self: Any, batch: Any, extra: Any) -> Any:
        return Pair(batch["a"] + extra[0], {"sum": batch["b"][0] + extra[1]})

    example = ({"a": aten.ones(2), "b": [aten.ones(3)]}, (aten.ones(2), 4.0))
    n = Dim("n")
    program = export(
        make(forward=forward), example,
        dynamic_shapes={"batch": {"a": {0: n}, "b": [None]}, "extra": ({0: n}, None)},
    )  # fmt: skip
    found = program({"a": aten.ones(5), "b": [aten.ones(3)]}, (aten.ones(5), 4.0))
    assert isinstance(found, Pair) and found.first.tolist() == [2.0] * 5
    assert found.second["sum"].tolist() == [5.0] * 3
    with pytest.raises(ValueError, match=r"got 3.0 for args\[1\]\[1\], expected 4.0"):
        program({"a": aten.ones(5), "b": [aten.ones(3)]}, (aten.ones(5), 3.0))
    with pytest.raises(TypeError, match="call it as it was exported"):
        program({"a": aten.ones(5)}, (aten.ones(5), 4.0))
    with pytest.raises(ValueError, match=r"n is 4, but it is 5 by dimension 0 of args\[0\]\['a'\]"):
        program({"a": aten.ones(5), "b": [aten.ones(3)]}, (aten.ones(4), 4.0))


def test_example_inputs() -> None:
    x = aten.ones(2)
    program = export(make(forward=lambda self, x, *, by: x * by), (x,), {"by": 2.0})
    for ep in (program, program.run_decompositions()):
        args, kwargs = ep.example_inputs
        assert len(args) == 1 and args[0] is x and kwargs == {"by": 2.0}


def halves(self: Any, x: Any) -> Any:
    if x.shape[0] % 2 == 0:
        return x.view(x.shape[0] // 2, -1)
    return x


def test_a_violated_constraint_names_line_and_fix() -> None:
    with pytest.raises(ConstraintViolationError) as raised:
        export(make(forward=halves), (aten.ones(6, 4),), dynamic_shapes=({0: Dim("n")},))
    text = str(raised.value)
    assert "(n % 2) == 0" in text and "2*Dim('_n')" in text
    assert f"{__file__}:{halves.__code__.co_firstlineno + 1}" in text


def test_derived_dims() -> None:
    half = Dim("half", max=50)
    program = export(make(forward=halves), (aten.ones(6, 4),), dynamic_shapes=({0: 2 * half},))
    assert program(aten.ones(10, 4)).shape == (5, 8)
    assert str(program.range_constraints["half"]) == "[1, 50]"
    with pytest.raises(
        ValueError, match=r"got size 7 in dimension 0 of args\[0\], expected 2\*half"
    ):
        program(aten.ones(7, 4))
    with pytest.raises(ValueError, match="half in \\[1, 50\\]"):
        program(aten.ones(102, 4))


def test_two_sizes_that_must_agree() -> None:
    def forward(self: Any, x: Any, y: Any) -> Any:
        return x + y

    example = (aten.ones(6), aten.ones(6))
    with pytest.raises(ConstraintViolationError, match=r"use Dim\('a'\) in place of Dim\('b'\)"):
        export(make(forward=forward), example, dynamic_shapes=({0: Dim("a")}, {0: Dim("b")}))
    n = Dim("n")
    program = export(make(forward=forward), example, dynamic_shapes=({0: n}, {0: n}))
    assert program(aten.ones(3), aten.ones(3)).tolist() == [2.0] * 3

    def pair(self: Any, x: Any, y: Any) -> Any:
        return x[1:] + y

    program = export(
        make(forward=pair), (aten.ones(6), aten.ones(5)), dynamic_shapes=({0: n + 1}, {0: n})
    )
    assert program(aten.ones(9), aten.ones(8)).shape == (8,)


def test_automatic_dims_give_in() -> None:
    program = export(
        make(forward=halves), (aten.ones(6, 4),), dynamic_shapes=({0: Dim.AUTO, 1: Dim.AUTO},)
    )
    assert program(aten.ones(8, 9)).shape == (4, 18)
    with pytest.raises(ValueError, match=r"got size 7 in dimension 0 .* expected 2\*"):
        program(aten.ones(7, 4))

    def fixed(self: Any, x: Any) -> Any:
        return x.view(24) if x.shape[0] != 9 else x

    program = export(make(forward=fixed), (aten.ones(6, 4),), dynamic_shapes=({0: Dim.AUTO},))
    with pytest.raises(ValueError, match="got size 8"):
        program(aten.ones(8, 4))
    program = export(
        make(forward=lambda self, x: x * 2), (aten.ones(1, 4),), dynamic_shapes=({0: Dim.AUTO},)
    )
    with pytest.raises(ValueError, match="got size 2"):
        program(aten.ones(2, 4))


def added(self: Any, x: Any, y: Any) -> Any:
    return x[1:] + y


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (Dim.AUTO, Dim.AUTO),
        (Dim.DYNAMIC, Dim.DYNAMIC),
        (Dim.AUTO, Dim("s0", max=50)),
        (Dim("n", min=3, max=51), Dim.DYNAMIC),
    ],
    ids=str,
)
def test_unnamed_dims_follow_from_others(x: Any, y: Any) -> None:
    program = export(
        make(forward=added), (aten.ones(7), aten.ones(6)), dynamic_shapes=({0: x}, {0: y})
    )
    assert len(program.range_constraints) == 1
    for n in (2, 6, 31):
        assert program(aten.ones(n + 1), aten.ones(n)).tolist() == [2.0] * n
    with pytest.raises(ValueError, match="expected equal sizes"):
        program(aten.ones(7), aten.ones(7))


def test_unnamed_dims_with_bounds() -> None:
    def forward(self: Any, x: Any) -> Any:
        return x * 2 if x.shape[0] <= 16 else x

    for dim, expected in (
        (Dim.DYNAMIC, "[1, 16]"),
        (Dim.AUTO(min=3), "[3, 16]"),
        (Dim.DYNAMIC(min=2, max=9), "[2, 9]"),
    ):
        program = export(make(forward=forward), (aten.ones(6),), dynamic_shapes=({0: dim},))
        assert [str(r) for r in program.range_constraints.values()] == [expected]
    with pytest.raises(ConstraintViolationError, match=r"Dim.DYNAMIC\(max=40\) at x.shape\[0\]"):
        export(make(forward=forward), (aten.ones(6),), dynamic_shapes=({0: Dim.DYNAMIC(max=40)},))
    with pytest.raises(ValueError, match="min=3, max=2"):
        Dim.AUTO(min=3, max=2)
    with pytest.raises(ConstraintViolationError, match="in place of Dim.DYNAMIC at x.shape"):
        export(
            make(forward=lambda self, x: x.view(6)),
            (aten.ones(6),),
            dynamic_shapes=({0: Dim.DYNAMIC},),
        )


def test_sizes_may_be_zero_where_that_is_said() -> None:
    program = export(
        make(forward=lambda self, x: x * 2), (aten.ones(6),), dynamic_shapes=({0: Dim("n", min=0)},)
    )
    assert program(aten.ones(0)).shape == (0,)


def test_divisions_by_sizes_that_may_be_zero() -> None:
    with pytest.raises(ConstraintViolationError, match=r"use Dim\('n', min=1, max=40\)"):
        export(
            make(forward=lambda self, x: x.view(x.shape[0], -1)),
            (aten.ones(6, 4),),
            dynamic_shapes=({0: Dim("n", min=0, max=40)},),
        )


def test_halves_by_chunk() -> None:
    def forward(self: Any, x: Any) -> Any:
        a, b = x.chunk(2)
        return a * b

    for dim in (2 * Dim("half"), Dim.DYNAMIC):
        program = export(make(forward=forward), (aten.ones(6),), dynamic_shapes=({0: dim},))
        assert program(aten.ones(10)).tolist() == [1.0] * 5


def two_lines(self: Any, x: Any, y: Any) -> Any:
    first = x[:4] * 2
    second = y.view(6)
    return first.sum() + second.sum() + x.chunk(2)[1].sum()


@pytest.mark.parametrize(
    ("forward", "shapes", "fixes"),
    [
        (lambda self, x: x * 2 if x.shape[0] <= 10 else x, [(6,)], ["use Dim('d0', max=10) in place of Dim('d0')"]),
        (lambda self, x: x[4:] * 2, [(6,)], ["use Dim('d0', min=4) in place of Dim('d0')"]),
        (lambda self, x: aten.max_pool1d(x.view(1, 1, -1), 4), [(9,)], ["use Dim('d0', min=4) in place of Dim('d0')"]),
        (lambda self, x: x.view(-1, 3).sum(0), [(6,)], ["use 3*Dim('_d0') in place of Dim('d0')"]),
        (lambda self, x: x[1:].view(-1, 2), [(7,)], ["use 2*Dim('_d0') + 1 in place of Dim('d0')"]),
        (lambda self, x, y: x[2:] + y, [(6,), (4,)], ["use d1 + 2 in place of Dim('d0')"]),
        (lambda self, x, y: x.view(-1, 2).sum(1) + y, [(6,), (3,)], ["use 2*Dim('_d0') in place of Dim('d0')"]),
        (lambda self, x: x.view(6), [(6,)], ["use 6 or Dim.STATIC in place of Dim('d0')"]),
        (two_lines, [(6,), (6,)], ["use Dim('d0', min=4) in place of Dim('d0')", "use 6 or Dim.STATIC in place of Dim('d1')"]),
    ],
)  # fmt: skip
def test_fixes_of_violated_constraints(forward: Any, shapes: Any, fixes: list[str]) -> None:
    """Every violated dimension has its line and a fix that can be written as it stands."""
    example = tuple(aten.ones(*s) for s in shapes)
    names = tuple({0: Dim(f"d{i}")} for i in range(len(shapes)))
    with pytest.raises(ConstraintViolationError) as raised:
        export(make(forward=forward), example, dynamic_shapes=names)
    text = str(raised.value)
    assert [fix for fix in fixes if fix not in text] == []
    assert text.count("fix: ") == len(fixes)
    lines = [int(part.split(",")[0]) for part in text.split(f"{__file__}:")[1:]]
    first = forward.__code__.co_firstlineno
    assert lines == ([first + 1, first + 2] if forward is two_lines else [first] * len(fixes))


def test_names_in_the_signature() -> None:
    """As PyTorch's."""

    class Net(Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("kept", aten.ones(2))
            self.register_buffer("passing", aten.ones(2), persistent=False)
            self.shift = aten.full((2,), 2.0)

        def forward(self, pair: Any, named: Any, *rest: Any, **options: Any) -> Any:
            total = pair["a"] + pair["b"][0] + named.first + named.second + rest[0] + options["z"]
            return total * self.passing + self.shift, self.kept

    one = aten.ones(2)
    made = Net()
    program = export(made, ({"a": one, "b": [one]}, Pair(one, one), one), {"z": one})
    signature = program.graph_signature
    assert [s.arg for s in signature.input_specs] == [
        "b_kept", "b_passing", "c_shift", "pair_a", "pair_b_0", "named_first", "named_second", "rest_0", "z",
    ]  # fmt: skip
    assert signature.non_persistent_buffers == ("passing",)
    assert signature.user_outputs[1] == "b_kept"
    assert list(program.module().state_dict()) == list(made.state_dict()) == ["kept"]
    total, kept = program({"a": one, "b": [one]}, Pair(one, one), one, z=one)
    assert total.tolist() == [8.0, 8.0] and kept.tolist() == [1.0, 1.0]


def test_bounds() -> None:
    def forward(self: Any, x: Any) -> Any:
        return x * 2 if x.shape[0] <= 16 else x

    with pytest.raises(ConstraintViolationError, match="n <= 16"):
        export(make(forward=forward), (aten.ones(6),), dynamic_shapes=({0: Dim("n")},))
    program = export(
        make(forward=forward), (aten.ones(6),), dynamic_shapes=({0: Dim("n", max=16)},)
    )
    assert program(aten.ones(16)).tolist() == [2.0] * 16
    with pytest.raises(ValueError, match="outside of"):
        export(make(forward=forward), (aten.ones(6),), dynamic_shapes=({0: Dim("n", max=4)},))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"z": {0: Dim("n")}}, "expected names among the arguments"),
        (({0: Dim("n")}, None), "expected one for each"),
        ({"x": {7: Dim("n")}}, "got dimension 7"),
        ({"x": {0: 5}}, "got the fixed size 5"),
        ({"x": [Dim("n")]}, "got 1 dimensions"),
        ({"x": {0: "n"}}, "expected a Dim"),
        (3, "expected a dict, tuple or list"),
    ],
)  # fmt: skip
def test_wrong_dynamic_shapes(spec: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        export(make(forward=halves), (aten.ones(6, 4),), dynamic_shapes=spec)


def test_dims() -> None:
    a, b = dims("a", "b", min=2)
    assert (a.name, a.min, b.name) == ("a", 2, "b")
    assert repr(3 * a + 1) == "3*a + 1" and repr(2 * (a - 1)) == "2*a - 2"
    with pytest.raises(ValueError, match="expected an identifier"):
        Dim("1x")
    with pytest.raises(ValueError, match="min=3, max=2"):
        Dim("x", min=3, max=2)


def test_breaks_are_errors_with_the_line() -> None:
    def forward(self: Any, x: Any) -> Any:
        if x.sum() > 0:
            return x
        return -x

    with pytest.raises(GraphBreak, match=f"{__file__}:{forward.__code__.co_firstlineno + 1}"):
        export(make(forward=forward), (aten.ones(3),))


def test_the_line_of_an_exception() -> None:
    def forward(self: Any, x: Any) -> Any:
        raise ValueError("no")

    with pytest.raises(GraphBreak, match=f"{__file__}:{forward.__code__.co_firstlineno + 1}"):
        export(make(forward=forward), (aten.ones(3),))


def test_other_side_effects_are_errors() -> None:
    def forward(self: Any, x: Any) -> Any:
        self.last = x
        return x + 1

    with pytest.raises(RuntimeError, match="expected changes of buffers only"):
        export(make(forward=forward), (aten.ones(3),))


def test_wrong_calls() -> None:
    program = export(make(forward=halves), (aten.ones(6, 4),))
    with pytest.raises(ValueError, match="expected argand.float32 of 2"):
        program(aten.ones(6, 4, 1))
    with pytest.raises(ValueError, match="got argand.float64"):
        program(aten.ones(6, 4, dtype=c10.float64))
    with pytest.raises(ValueError, match="expected 6; export with dynamic_shapes"):
        program(aten.ones(8, 4))
    with pytest.raises(TypeError, match="got int for args"):
        program(3)
