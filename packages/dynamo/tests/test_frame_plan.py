"""Plans as data, and what their code does."""

from __future__ import annotations

import collections
import gc
import inspect
import json
import math
import sys
import textwrap
import traceback
import types
import weakref
from typing import Any

import pytest
from plan_frames import (
    Thing,
    arg,
    builtin,
    const,
    evaluated,
    from_plain,
    replaced,
    to_plain,
    two,
)

from argand_dynamo.frame_plan import (
    Break,
    Expr,
    FramePlan,
    GraphCall,
    InlinedCode,
    PlanError,
    Return,
    Statement,
)
from argand_dynamo.plan_code import Replacement, RuntimeObjects, assemble_plan
from argand_dynamo.plan_data import NotPlainError, PlainReader

# -- data ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        None, True, 0, -(10**30), "a\udc80", 0.0, -0.0, math.inf, 1j, b"\x00\xff", ..., (1, (2.5, "x")), [1, [2]], {"a": (1,), 2: None},
        frozenset({(1, 2)}), slice(1, None, -1), range(3, 9, 2), int, collections.OrderedDict, math.sin, math, types.MethodType, type(None), type(...),
        object.__getattribute__, object.__new__, tuple.__new__, str.join, inspect.Parameter.POSITIONAL_ONLY, textwrap.TextWrapper.wrap, inspect._ParameterKind,
    ],
)  # fmt: skip
def test_plain_data_keeps_its_value(value):
    found = from_plain(json.loads(json.dumps(to_plain(value))))
    assert type(found) is type(value) and found == value and repr(found) == repr(value)


def test_nan_keeps_its_bits():
    import struct

    value = struct.unpack("<d", struct.pack("<Q", 0x7FF8_0000_0000_1234))[0]
    assert struct.pack("<d", from_plain(to_plain((value,)))[0]) == struct.pack("<d", value)


@pytest.mark.parametrize("value", [object(), lambda: None, Thing(), Thing().method])
def test_what_lives_only_here_is_refused(value):
    with pytest.raises(NotPlainError):
        to_plain((1, value))


@pytest.mark.parametrize(
    "data",
    [
        {"unknown": 1},
        {"list": [], "dict": []},
        {"global": ["no_such_module", "x"]},
        {"global": ["math", "nothing"]},
    ],
)
def test_bad_data_is_refused(data):
    with pytest.raises(ValueError):
        from_plain([[1, data], []])


@pytest.mark.parametrize(
    "rows",
    [[[0, ["arg", 0]]], [[-2, ["arg", 0]]], [["x", []]], [[1]], [[-1, ["arg", {"path": 0}]]]],
)
def test_bad_tables_of_paths_are_refused(rows):
    with pytest.raises(ValueError):
        PlainReader(rows)


def test_paths_are_written_once_and_keep_the_types_of_their_steps():
    base = (("arg", 0), ("attr", "x"))
    steps: list[Any] = [1, True, 1.0, 0.0, -0.0, "1", (1, 2), (True, 2), None]
    paths = tuple((*base, ("item", step)) for step in steps)
    data = json.loads(json.dumps(to_plain((paths, paths[0], base))))
    assert repr(from_plain(data)) == repr((paths, paths[0], base))
    # The floats and tuples are rows of their own, the beginning is shared.
    assert len(data[1]) == 2 + len(steps)


def test_a_plan_as_json():
    plan = FramePlan(
        "f",
        (((("arg", 0),), "TYPE", int), ((("arg", 0), ("item", -1)), "EQUALS", (1.5, None))),
        Break(3, (("null",), arg(0)), (("y", ("graph", 1)),)),
        GraphCall(
            (arg(0), ("size", arg(0), 1), ("sym", ("*", 2, "s0"))),
            "eager",
            {"key": "k"},
            (("f.py", 3, "f"),),
        ),
        {"s0": ("size", (("arg", 0),), 1)},
        (("let", "t", ("list", (("graph", 0),))), ("store_attr", arg(0), "a", ("temp", "t"))),
        (InlinedCode("m", "f", "00"),),
    )
    plan.validate()
    assert FramePlan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


def _changed(**changes: Any) -> dict[str, Any]:
    data = FramePlan(
        "f", (), Return(const(1)), symbols={"s0": ("value", (("arg", 0),), 0)}
    ).to_json()
    return {**data, **changes}


@pytest.mark.parametrize(
    "data",
    [
        _changed(version=0), _changed(outcome={"return": ["no_such", 1]}), _changed(outcome={"return": ["attr", ["const", 1]]}), _changed(outcome={}),
        _changed(effects=[["let", "t"]]), _changed(outcome={"return": ["temp", "t"]}), _changed(outcome={"return": ["source", [["attr", "x"]]]}),
        _changed(outcome={"return": ["source", [["arg", 0], ["run", "x"]]]}), _changed(symbols={"dict": [["s0", ["area", [["arg", 0]], 0]]]}), [], None,
    ],
)  # fmt: skip
def test_malformed_plans_are_refused(data):
    with pytest.raises((PlanError, ValueError)):
        FramePlan.from_json(data)


# -- expressions --------------------------------------------------------------------------------


def test_containers_and_constants():
    expression: Expr = (
        "tuple",
        [
            ("list", [arg(0), const(-0.0)]),
            ("dict", [(const("k"), arg(1)), (arg(0), const(None))]),
            ("set", [const(1), const(1)]),
            ("slice", const(None), arg(0), const(2)),
            ("item", ("tuple", [const("x"), const("y")]), const(1)),
            ("attr", const(3), "real"),
        ],
    )
    assert (
        repr(evaluated(expression, 5, 6))
        == "([5, -0.0], {'k': 6, 5: None}, {1}, slice(None, 5, 2), 'y', 3)"
    )


def test_every_kind_of_source():
    def closed():
        return cell

    def defaults(x=7, *, k=8):
        return x, k

    cell = "in cell"
    thing = Thing(x=[10, {"k": 20}], grad="gradient", f=closed, d=defaults, m=Thing(y=1).method)
    steps: dict[tuple[tuple[Any, ...], ...], Any] = {
        (("attr", "shared"),): 3,
        (("attr", "x"), ("item", 1), ("item", "k")): 20,
        (("attr", "x"), ("item", -2)): 10,
        (("instance_dict", "x"), ("item", 0)): 10,
        (("type",),): Thing,
        (("grad",),): "gradient",
        (("attr", "f"), ("closure", "cell")): "in cell",
        (("attr", "d"), ("default", 0)): 7,
        (("attr", "d"), ("kwdefault", "k")): 8,
        (("attr", "m"), ("func",)): Thing.method,
        (("attr", "m"), ("self",), ("attr", "y")): 1,
        (("attr", "x"), ("len",)): 2,
        (("attr", "x"), ("item", 1), ("key", 0)): "k",
    }
    for path, value in steps.items():
        assert evaluated(arg(0, *path), thing) == value, path
    everything = evaluated(("tuple", [arg(0, *path) for path in steps]), thing)
    assert list(everything) == list(steps.values())
    assert evaluated(builtin("len"), 1) is len
    assert evaluated(("source", (("module", "math"), ("attr", "pi"))), 1) == math.pi
    assert evaluated(("source", (("global", "Thing"),)), 1) is Thing


def test_shared_paths_are_read_once():
    reads = []

    class Counting:
        @property
        def value(self):
            reads.append(1)
            return Thing(a=1, b=2)

    expression: Expr = ("tuple", [arg(0, ("attr", "value"), ("attr", name)) for name in "abaab"])
    assert evaluated(expression, Counting()) == (1, 2, 1, 1, 2)
    assert len(reads) == 1


def test_free_variables_and_cell_arguments():
    free = 1

    def function(a):
        def inner():
            return a, free

        return inner

    expression: Expr = ("tuple", [("source", (("cell", "free"),)), arg(0), ("own_cell", "a")])
    one, two_, cell = replaced(function, FramePlan("f", (), Return(expression)))(5)
    assert (one, two_, cell.cell_contents) == (1, 5, 5)
    # A closure over the frame's own cells, and one over a new cell with other globals.
    (index,) = [
        i for i, c in enumerate(function.__code__.co_consts) if isinstance(c, types.CodeType)
    ]
    code: Expr = ("code", None, (index,))
    own: Expr = ("function", code, None, None, None, [("own_cell", "a"), ("own_cell", "free")])
    new: Expr = (
        "function",
        ("code", (("arg", 0), ("attr", "inner")), (index,)),
        arg(0, ("attr", "names")),
        ("tuple", [const(3)]),
        None,
        [("new_cell", const("n")), ("cell_of", arg(0, ("attr", "inner")), "free")],
    )
    plan = FramePlan(
        "f", (), Return(own), effects=(("store_cell", ("own_cell", "a"), const("changed")),)
    )
    assert replaced(function, plan)(5)() == ("changed", 1)
    names = {"__builtins__": {}}
    made = replaced(function, FramePlan("f", (), Return(new)))(Thing(inner=function, names=names))
    assert made() == ("n", 1) and made.__globals__ is names and made.__defaults__ == (3,)


def test_functions_have_their_parts():
    def function(a):
        return lambda x, *, k: (x, k)

    (index,) = [
        i for i, c in enumerate(function.__code__.co_consts) if isinstance(c, types.CodeType)
    ]
    for defaults, kwdefaults in ((None, None), ((1,), None), (None, {"k": 2}), ((1,), {"k": 2})):
        made = replaced(
            function,
            FramePlan(
                "f",
                (),
                Return(
                    (
                        "function",
                        ("code", None, (index,)),
                        None,
                        defaults and const(defaults),
                        kwdefaults and ("dict", [(const("k"), const(2))]),
                        [],
                    )
                ),
            ),
        )(0)
        assert made.__defaults__ == defaults and made.__kwdefaults__ == kwdefaults
        assert made(5, k=6) == (5, 6) and made.__globals__ is globals()


def test_calls_and_new_objects():
    assert evaluated(("call", builtin("dict"), [], [("a", arg(0)), ("b", const(2))]), 1) == {
        "a": 1,
        "b": 2,
    }
    assert evaluated(("call", builtin("max"), [arg(0), arg(1)]), 3, 9) == 9
    assert evaluated(
        ("call", builtin("sorted"), [arg(0)], [("reverse", const(True))]), [1, 3, 2]
    ) == [3, 2, 1]
    made = evaluated(("new", ("source", (("global", "Thing"),)), []), 1)
    assert type(made) is Thing and vars(made) == {}
    assert evaluated(("new", builtin("tuple"), [("list", [arg(0)])]), 1) == (1,)


def test_symbols():
    class Sized:
        def size(self, dim):
            return (4, 5)[dim]

        def stride(self, dim):
            return (5, 1)[dim]

    symbols: Any = {
        "s0": ("size", (("arg", 0),), 0),
        "s1": ("stride", (("arg", 0),), 0),
        "s2": ("value", (("arg", 1),), 0),
    }
    cases = {
        "s0": 4, ("+", ("*", 2, "s0"), 3): 11, ("//", "s2", "s0"): 25, ("%", "s2", 7): 3, ("-", "s1"): -5, ("-", "s1", "s0", 1): 0,
        ("max", "s0", ("*", "s1", "s1"), "s2"): 101, ("min", "s0", 2): 2,
    }  # fmt: skip
    for expression, value in cases.items():
        assert evaluated(("sym", expression), Sized(), 101, symbols=symbols) == value
    with pytest.raises(PlanError, match="arithmetic"):
        evaluated(("sym", ("sqrt", "s0")), Sized(), 1, symbols=symbols)


def test_the_graph_gets_its_inputs():
    plan = FramePlan(
        "two",
        (),
        Return(("list", [("graph", 1), ("graph", 0), ("graph", 1)])),
        GraphCall((arg(1), arg(0), const(4))),
    )
    assert replaced(two, plan, lambda *inputs: (inputs, "second"))(1, 2) == [
        "second",
        (2, 1, 4),
        "second",
    ]
    with pytest.raises(PlanError, match="graph"):
        replaced(two, plan)


def test_defaults_and_argument_kinds():
    def function(a, /, b=2, *rest, key=4, **others):
        return None

    plan = FramePlan("f", (), Return(("tuple", [arg(i) for i in range(5)])))
    made = replaced(function, plan)
    assert made(1) == (1, 2, 4, (), {})
    assert made(1, 3, 5, 6, key=7, z=8) == (1, 3, 7, (5, 6), {"z": 8})


# -- effects ------------------------------------------------------------------------------------


def run(effects: tuple[Statement, ...], value: Any, expression: Expr | None = None) -> Any:
    return evaluated(expression or const(None), value, effects=effects)


def test_attributes_and_items():
    thing = Thing(a=1, b=2)
    run((("store_attr", arg(0), "a", const(5)), ("delete_attr", arg(0), "b"), ("store_instance", arg(0), "c", arg(0, ("attr", "b"))), ), thing)  # fmt: skip
    assert vars(thing) == {"a": 5, "c": 2}
    run((("delete_instance", arg(0), "c"),), thing)
    assert vars(thing) == {"a": 5}
    items = {"x": 1, "y": 2}
    run((("store_item", arg(0), const("z"), const(3)), ("delete_item", arg(0), const("x"))), items)
    assert list(items.items()) == [("y", 2), ("z", 3)]


def test_containers_keep_their_identity():
    class Loud(list):
        def __setitem__(self, *args):
            raise AssertionError("user code ran")

    for target in ([1, 2], Loud([1, 2])):
        run((("list_replace", arg(0), [const(3), arg(0, ("item", 0))]),), target)
        assert list(target) == [3, 1]
    for table_ in (
        {"a": 1, "b": 2},
        collections.OrderedDict(a=1, b=2),
        collections.defaultdict(list, a=1, b=2),
    ):
        run(
            (
                (
                    "dict_replace",
                    arg(0),
                    [(const("c"), arg(0, ("item", "a"))), (const("a"), const(9))],
                ),
            ),
            table_,
        )
        assert list(table_.items()) == [("c", 1), ("a", 9)]
    members = {1, 2}
    run((("set_replace", arg(0), [const(2), const(3)]),), members)
    assert members == {2, 3}


def test_everything_is_read_before_it_changes():
    thing = Thing(a="old", inner=Thing(b="old b"))
    effects: tuple[Statement, ...] = (
        ("store_attr", arg(0), "a", const("new")),
        ("store_attr", arg(0, ("attr", "inner")), "b", arg(0, ("attr", "a"))),
        ("store_attr", arg(0), "inner", const(None)),
    )
    inner = thing.inner
    found = run(
        effects, thing, ("tuple", [arg(0, ("attr", "a")), arg(0, ("attr", "inner"), ("attr", "b"))])
    )
    assert found == ("old", "old b") and (thing.a, thing.inner, inner.b) == ("new", None, "old")


def test_lets_share_and_may_be_cyclic():
    effects: tuple[Statement, ...] = (
        ("let", "l", ("list", [const(1)])),
        ("let", "d", ("dict", [(const("l"), ("temp", "l"))])),
        ("list_replace", ("temp", "l"), [("temp", "d"), arg(0)]),
        ("do", ("call", ("attr", ("temp", "l"), "append"), [const(3)])),
    )
    found, table_ = run(effects, 2, ("tuple", [("temp", "l"), ("temp", "d")]))
    assert found[0] is table_ and table_["l"] is found and found[1:] == [2, 3]


def test_globals_and_foreign_cells():
    def make():
        cell = 1
        return lambda: cell

    module: dict[str, Any] = {"changed": 1, "gone": 2, "__builtins__": {}}
    function = types.FunctionType(two.__code__, module)
    closure = make()
    effects: tuple[Statement, ...] = (
        ("store_global", "changed", const(5)),
        ("delete_global", "gone"),
        ("store_cell", ("cell_of", arg(0), "cell"), ("source", (("global", "changed"),))),
    )
    replaced(function, FramePlan("f", (), Return(const(0)), effects=effects))(closure, None)
    assert module == {"changed": 5, "__builtins__": {}} and closure() == 1
    cell = types.CellType(3)
    run((("delete_cell", arg(0)),), cell)
    with pytest.raises(ValueError):
        _ = cell.cell_contents


# -- errors, lifetime ---------------------------------------------------------------------------


def test_errors_of_the_graph_name_the_users_lines():
    def function(a):
        b = a * 2
        return b

    first = function.__code__.co_firstlineno
    lines = (
        (__file__, first + 1, "function"),
        (__file__, first + 2, "function"),
        ("other.py", 9, "g"),
    )
    plan = FramePlan("f", (), Return(("graph", 0)), GraphCall((arg(0),), lines=lines))
    with pytest.raises(ZeroDivisionError) as caught:
        replaced(function, plan, lambda a: (1 / a,))(0)
    assert caught.value.__notes__ == [
        f'raised in a compiled graph made from "{__file__}", lines {first + 1}, {first + 2}, in function; "other.py", line 9, in g'
    ]
    places = [(f.filename, f.lineno) for f in traceback.extract_tb(caught.tb)]
    assert (__file__, first + 1) in places
    assert sys.exc_info() == (None, None, None)


def test_a_note_of_the_graphs_own_is_enough():
    def graph(a):
        error = ValueError("x")
        error.add_note("at this line")
        raise error

    plan = FramePlan(
        "f", (), Return(("graph", 0)), GraphCall((arg(0),), lines=((__file__, 1, "f"),))
    )
    with pytest.raises(ValueError) as caught:
        replaced(two, plan, graph)(0)
    assert caught.value.__notes__ == ["at this line"]


def test_objects_are_seen_by_the_garbage_collector():
    class Graph:
        def __call__(self, a):
            return (a,)

    graph: Any = Graph()
    plan = FramePlan("f", (), Return(("graph", 0)), GraphCall((arg(0),)))
    made = assemble_plan(plan, two.__code__, RuntimeObjects(graph)).bind(two)
    graph.replacement = made
    assert made(3) == 3
    gone = weakref.ref(graph)
    del graph, made
    gc.collect()
    assert gone() is None


def test_objects_of_this_process():
    thing = Thing()
    plan = FramePlan("f", (), Return(("object", thing)))
    assert replaced(two, plan)(1) is thing
    with pytest.raises(NotPlainError, match="only in this process"):
        plan.to_json()


def test_a_replacement_is_one_code_object_for_many_functions():
    def make(free):
        def function(a):
            return a, free

        return function

    one, other = make(1), make(2)
    plan = FramePlan("f", (), Return(("tuple", [arg(0), ("source", (("cell", "free"),))])))
    made = assemble_plan(plan, one.__code__, RuntimeObjects())
    assert isinstance(made, Replacement)
    assert made.bind(one)(5) == (5, 1) and made.bind(other)(5) == (5, 2)
