"""Plans of frames that break, and how their replacements go on."""

from __future__ import annotations

import sys
import traceback
import types
from typing import Any

import pytest
from plan_frames import (
    arg,
    builtin,
    callee,
    const,
    replaced,
    two,
)

from argand_dynamo import resume
from argand_dynamo.bytecode import analyse
from argand_dynamo.frame_plan import (
    Break,
    Expr,
    FramePlan,
    GraphCall,
    PlanError,
    Return,
    Statement,
)
from argand_dynamo.plan_code import RuntimeObjects, TailCall, assemble_plan

# -- breaks -------------------------------------------------------------------------------------

events: list[Any] = []


def user(value):
    events.append(value)
    return value


def _instruction(function: Any, opname: str, number: int = 0) -> int:
    return [
        i.index for i in analyse(function.__code__).instructions if i.opname.startswith(opname)
    ][number]


def broken(function: Any, outcome: Break, **parts: Any) -> Any:
    graph = parts.pop("graph_function", None)
    plan = FramePlan(function.__name__, (), outcome, **parts)
    functions = [
        resume.make_function(c, function.__globals__)
        for c in resume.resume_codes(plan, function.__code__)
    ]
    return replaced(function, plan, graph, functions)


def test_break_at_a_call():
    def function(a, b):
        c = a + b
        d = user(c)
        return c, d, b

    stack = (*callee(("source", (("global", "user"),))), ("graph", 0))
    outcome = Break(_instruction(function, "CALL"), stack, (("c", ("graph", 0)), ("b", arg(1))))
    made = broken(
        function, outcome, graph=GraphCall((arg(0), arg(1))), graph_function=lambda a, b: (a + b,)
    )
    events.clear()
    assert made(1, 2) == (3, 3, 2) and events == [3]


def test_break_at_a_branch():
    def function(a, b):
        if a:
            c = "yes"
        else:
            c = "no"
        return c, b

    for opname in ("POP_JUMP",):
        outcome = Break(
            _instruction(function, opname), (("graph", 0),), (("b", ("const", "kept")),)
        )
        made = broken(
            function, outcome, graph=GraphCall((arg(0),)), graph_function=lambda a: (a > 3,)
        )
        assert made(5, 1) == ("yes", "kept") and made(1, 1) == ("no", "kept")


def test_conditions_may_be_any_object():
    def function(a):
        b = not a
        return ("yes", b) if a else ("no", b)

    # The trace may have left out the conversion to bool that stands before.
    for number, opname in enumerate(("UNARY_NOT", "POP_JUMP")):
        local = (("a", arg(0)), ("b", const(None)))[: number + 1]
        made = broken(function, Break(_instruction(function, opname), (arg(0),), local))
        for value in ([], [1], 0, 5, None, True, False):
            wanted = function(value)
            assert made(value) == (wanted if number == 0 else (wanted[0], None))


def test_break_at_the_end_of_the_frame():
    def function(a):
        raise KeyError(a)

    outcome = Break(_instruction(function, "RAISE"), (("call", builtin("KeyError"), [arg(0)]),), ())
    with pytest.raises(KeyError) as caught:
        broken(function, outcome)("x")
    line = traceback.extract_tb(caught.tb)[-1].lineno
    assert line == function.__code__.co_firstlineno + 1


def test_variables_swap_places():
    def function(a, b):
        a, b = b, a
        user(0)
        return a, b

    stack = (*callee(("source", (("global", "user"),))), const(0))
    made = broken(
        function, Break(_instruction(function, "CALL"), stack, (("a", arg(1)), ("b", arg(0))))
    )
    assert made(1, 2) == (2, 1)


def test_a_deleted_argument_is_unbound():
    def function(a):
        del a
        user(0)
        return a  # noqa: F821

    stack = (*callee(("source", (("global", "user"),))), const(0))
    made = broken(function, Break(_instruction(function, "CALL"), stack, ()))
    with pytest.raises(UnboundLocalError, match="'a'"):
        made(1)


class Manager:
    def __init__(self, swallow=False):
        self.swallow = swallow

    def __enter__(self):
        events.append("enter")
        return self

    def __exit__(self, kind, error, trace):
        events.append(kind and kind.__name__)
        return self.swallow


def test_break_inside_a_with_block_that_was_entered_virtually():
    def function(manager, f):
        with manager:
            a = f(1)
            events.append("body")
        return a

    stack = (("attr", ("temp", "m"), "__exit__"), *callee(arg(1)), const(1))
    call = next(
        i.index
        for i in analyse(function.__code__).instructions
        if i.opname == "CALL" and i.arg == 1
    )
    effects: tuple[Statement, ...] = (
        ("let", "m", arg(0)),
        ("do", ("call", ("attr", ("temp", "m"), "__enter__"), [])),
    )
    made = broken(function, Break(call, stack, ()), effects=effects)
    events.clear()
    assert made(Manager(), user) == 1 and events == ["enter", 1, "body", None]
    events.clear()
    with pytest.raises(ZeroDivisionError) as caught:
        made(Manager(), lambda a: a / 0)
    assert events == ["enter", "ZeroDivisionError"]
    assert traceback.extract_tb(caught.tb)[1].lineno == function.__code__.co_firstlineno + 2
    events.clear()
    with pytest.raises(UnboundLocalError):
        made(Manager(swallow=True), lambda a: a / 0)
    assert sys.exc_info() == (None, None, None)


def test_break_inside_try():
    def function(f, b):
        try:
            a = f(b)
        except ZeroDivisionError as error:
            return type(error), b
        finally:
            events.append("finally")
        return a, b

    stack = (*callee(arg(0)), arg(1))
    made = broken(function, Break(_instruction(function, "CALL"), stack, (("b", const("new")),)))
    events.clear()
    assert made(user, 1) == (1, "new") and events == [1, "finally"]
    assert made(lambda b: 1 / 0, 1) == (ZeroDivisionError, "new") and events[-1] == "finally"
    with pytest.raises(TypeError):
        made(lambda b: "" + 1, 1)
    assert events == [1, "finally", "finally", "finally"]


def test_cells_are_kept_across_a_break():
    def function(a):
        def add():
            nonlocal a
            a += 1
            return a

        user(a)
        add()
        return a, add

    (index,) = [
        i for i, c in enumerate(function.__code__.co_consts) if isinstance(c, types.CodeType)
    ]
    inner: Expr = ("function", ("code", None, (index,)), None, None, None, [("own_cell", "a")])
    stack = (*callee(("source", (("global", "user"),))), arg(0))
    call = [i.index for i in analyse(function.__code__).instructions if i.opname == "CALL"][0]
    made = broken(
        function, Break(call, stack, (("add", ("temp", "f")),)), effects=(("let", "f", inner),)
    )
    value, add = made(5)
    assert value == 6 and add() == 7


def test_loops_that_break_do_not_recurse():
    def function(n, f):
        total = 0
        for i in range(n):
            total += f(i)
        return total

    code = function.__code__
    call = [i for i in analyse(code).instructions if i.opname == "CALL"][-1]
    iterator: Expr = ("temp", "iterator")
    depth = len([1 for i in range(analyse(code).depth(call.index))])
    first: tuple[Statement, ...] = (
        ("let", "iterator", ("call", builtin("iter"), [("call", builtin("range"), [arg(0)])])),
        ("let", "i", ("call", builtin("next"), [iterator])),
    )
    stack = (iterator, const(0), *callee(arg(1)), ("temp", "i"))
    assert len(stack) == depth
    outcome = Break(call.index, stack, (("f", arg(1)),))
    plan = FramePlan("function", (), outcome, effects=first)
    (again,) = resume.resume_codes(plan, code)
    names = list(again.co_varnames[: again.co_argcount])
    assert names == ["f", ".stack.0", ".stack.1", ".stack.2"]
    # The resume function's own plan: one more turn, then the same break; the loop's end is an exception here.
    inner = analyse(again)
    at = [
        i.index for i in inner.instructions if i.opname == "CALL" and i.positions == call.positions
    ]
    total: Expr = ("call", ("attr", arg(2), "__add__"), [arg(3)])
    turn: tuple[Statement, ...] = (
        ("let", "total", total),
        ("let", "i", ("call", builtin("next"), [arg(1)])),
    )
    inner_plan = FramePlan(
        "again",
        (),
        Break(at[0], (arg(1), ("temp", "total"), *callee(arg(0)), ("temp", "i")), (("f", arg(0)),)),
        effects=turn,
    )
    assert (
        resume.resume_codes(inner_plan, again) == [again]
        and resume.resume_codes(inner_plan, again)[0] is again
    )
    resumed = resume.make_function(again, globals())

    def dispatch(*arguments):
        # As guards do: the replacement while there is a next turn, else plain Python.
        it = arguments[1]
        return turn_function(*arguments) if it.__length_hint__() else resumed(*arguments)

    turn_function = assemble_plan(inner_plan, again, RuntimeObjects(None, [dispatch])).bind(resumed)
    made = replaced(function, plan, None, [dispatch])
    number = 5 * sys.getrecursionlimit()
    assert made(number, lambda i: i) == sum(range(number))
    assert type(turn_function(lambda i: i, iter(range(3)), 0, 1)) is TailCall


def test_too_few_resume_functions_are_refused():
    def function(a):
        return user(a)

    outcome = Break(_instruction(function, "CALL"), (*callee(arg(0)), arg(0)), ())
    with pytest.raises(PlanError, match="ways on"):
        replaced(function, FramePlan("f", (), outcome))


@pytest.mark.parametrize(
    "outcome",
    [
        Break(99, (), ()), Break(-1, (), ()), Break(1, (const(1),), ()), Return(arg(7)), Return(("own_cell", "a")),
        Return(("source", (("cell", "c"),))), Return(("code", None, (9,))), Return(("sym", "s0")), Break(2, (const(1),), (("z", const(1)),)),
    ],
)  # fmt: skip
def test_plans_of_other_code_are_refused(outcome):
    with pytest.raises(PlanError):
        plan = FramePlan("f", (), outcome)
        functions = [two] * len(resume.resume_codes(plan, two.__code__))
        assemble_plan(plan, two.__code__, RuntimeObjects(None, functions))


def test_an_exception_that_was_raised_while_tracing_gets_a_traceback():
    def function(manager):
        with manager:
            return 1 // 0

    reraise = [i for i in analyse(function.__code__).instructions if i.opname == "RERAISE"][-1]
    depth = analyse(function.__code__).depth(reraise.index)
    error: Expr = ("call", builtin("ZeroDivisionError"), [const("traced")])
    stack = (*[const(0)] * (depth - 1), error)
    with pytest.raises(ZeroDivisionError, match="traced") as caught:
        broken(function, Break(reraise.index, stack, ()))(None)
    frames = traceback.extract_tb(caught.tb)
    assert frames[-1].name == "function" and frames[-1].lineno is not None
