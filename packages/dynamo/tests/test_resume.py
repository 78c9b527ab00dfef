"""A frame may break at every instruction: functions are cut at each of them in turn and must do what they did."""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Callable, Iterator
from types import CellType, CodeType, FunctionType
from typing import Any

import pytest

import argand_aten
from argand_dynamo import resume
from argand_dynamo.bytecode import Instruction, analyse, assemble, create, slot_names
from argand_dynamo.bytecode.analysis import effect, falls_through
from argand_dynamo.bytecode.table import table
from argand_dynamo.frame_plan import Break, FramePlan
from argand_dynamo.plan_code import RuntimeObjects, _Assembler, argument_count

# Empty slots of the stack, variables that are surely bound, variables that may be.
Layout = tuple[tuple[bool, ...], frozenset[str], frozenset[str]]


def _states(code: CodeType) -> list[Layout | None]:
    """What is known before each instruction; None where it is unknown which slots are empty."""
    instructions = analyse(code).instructions
    states: list[Layout | None] = [None] * len(instructions)
    arguments = frozenset(slot_names(code)[: argument_count(code)])
    work: list[tuple[int, Layout]] = [(0, ((), arguments, arguments))]
    while work:
        index, (stack, bound, maybe) = work.pop()
        if (known := states[index]) is not None:
            bound, maybe = bound & known[1], maybe | known[2]
            if (bound, maybe) == known[1:]:
                continue
        states[index] = (stack, bound, maybe)
        instruction = instructions[index]
        if (handler := instruction.handler) is not None:
            before = stack[: handler.depth] + (False,) * (handler.lasti + 1)
            work.append((handler.target.index, (before, bound, maybe)))
        name, opname = instruction.argval, instruction.opname
        if opname == "LOAD_FAST_AND_CLEAR" and name in maybe - bound:
            continue
        pushed: tuple[bool, ...] = (name not in bound,)
        if opname == "STORE_FAST" and not stack[-1]:
            bound, maybe = bound | {name}, maybe | {name}
        elif opname in ("STORE_FAST", "DELETE_FAST", "LOAD_FAST_AND_CLEAR"):
            bound, maybe = bound - {name}, maybe - {name}
        for jumped in (False, True):
            if jumped:
                if instruction.target is None:
                    continue
                number = instruction.target.index + len(table.FOR_END) * (opname == "FOR_ITER")
            elif falls_through(instruction):
                number = index + 1
            else:
                continue
            after = resume.stack_after(instruction, stack, jumped)
            if opname == "LOAD_FAST_AND_CLEAR":
                after = stack + pushed
            work.append((number, (after, bound, maybe)))
    return states


def _cut(function: FunctionType, index: int, states: list[Layout | None]) -> FunctionType | None:
    """The function, leaving its frame for a resume function behind the instruction; None if it cannot break there."""
    code = function.__code__
    state = states[index]
    if state is None or resume.why_not_resumable(code, index) is not None:
        return None
    stack, bound, maybe = state
    cells = {*code.co_cellvars, *code.co_freevars}
    if (resume.needed_locals(code, index) & maybe) - bound - cells:
        # Whether a variable is bound depends on the way to this place.
        return None
    outcome = Break(
        index,
        tuple(("null",) if empty else ("const", None) for empty in stack),
        tuple((name, ("const", None)) for name in sorted(bound - cells)),
    )
    plan = FramePlan(function.__name__, (), outcome)
    functions = [
        resume.make_function(c, function.__globals__) for c in resume.resume_codes(plan, code)
    ]
    maker = _Assembler(plan, code, RuntimeObjects(None, functions))
    original = analyse(code).instructions
    maker.positions = original[index].positions
    written = {i: resume.breaking_instructions(i) for i in original}
    copies = {i: made for i, (_, made, _) in written.items()}
    for copy in copies.values():
        copy.target = copies[copy.target] if copy.target is not None else None
    broken = copies[original[index]]
    join = create.return_value() if resume.is_resume(code) else create.simple("NOP")
    ways = resume.successors(code, outcome)
    jumped = [create.simple(name) for name in table.FOR_END] if broken.opname == "FOR_ITER" else []
    jumped = jumped or [create.simple("NOP")]
    for number, way in enumerate(ways):
        if way.jumped:
            broken.target = jumped[0]
            maker.emit(*jumped)
        maker._resume(number, way, outcome)
        maker.emit(create.jump_to(join))
    if ways and resume.is_resume(code):
        maker.emit(join)
    elif ways:
        maker._run_tail_calls(join)
    listed: list[Instruction] = []
    for instruction in original:
        if instruction.opname == "COPY_FREE_VARS":
            continue
        before, made, after = written[instruction]
        # Only the instruction at which the function is cut needs what stands before.
        listed += [*(before if made is broken else ()), made, *after]
        if instruction is original[index] and ways:
            listed += maker.out
    for instruction in listed:
        if instruction.handler is not None:
            handler = instruction.handler
            instruction.handler = type(handler)(
                copies.get(handler.target, handler.target), handler.depth, handler.lasti
            )
    # One handler object a range.
    merged: dict[tuple[int, int, bool], Any] = {}
    for instruction in listed:
        if (h := instruction.handler) is not None:
            instruction.handler = merged.setdefault((id(h.target), h.depth, h.lasti), h)
    extra = len(maker.held) + len(code.co_freevars)
    prologue = [create.copy_free_vars(extra)] if extra else []
    made = assemble(
        [*prologue, *listed],
        code,
        co_varnames=(*code.co_varnames, *maker.temps),
        co_freevars=(*code.co_freevars, *maker.held),
    )
    closure = (*(function.__closure__ or ()), *(CellType(v) for v in maker.held.values()))
    cut = FunctionType(
        made, function.__globals__, function.__name__, function.__defaults__, closure
    )
    cut.__kwdefaults__ = function.__kwdefaults__
    return cut


def _cuts(function: Callable[..., Any]) -> Iterator[tuple[int, FunctionType]]:
    assert isinstance(function, FunctionType)
    states = _states(function.__code__)
    for index in range(resume.prologue_end(analyse(function.__code__).instructions), len(states)):
        made = _cut(function, index, states)
        if made is not None:
            yield index, made


def _check(function: Callable[..., Any], *cases: tuple[Any, ...], least: float = 0.9) -> None:
    """Every cut gives the function's results; at least this part of the instructions can be cut."""
    expected = [_run(function, case) for case in cases]
    number = 0
    for index, cut in _cuts(function):
        number += 1
        for case, wanted in zip(cases, expected, strict=True):
            assert _run(cut, case) == wanted, analyse(function.__code__).instructions[index]
    assert number >= least * len(analyse(function.__code__).instructions) - 3


def _run(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    log: list[Any] = []
    _log.append(log)
    try:
        return function(*arguments), log
    except Exception as error:
        return type(error), str(error), log
    finally:
        _log.pop()


_log: list[list[Any]] = []


def note(value: Any) -> Any:
    _log[-1].append(value)
    return value


@contextlib.contextmanager
def manager(name: str, swallow: bool = False) -> Iterator[str]:
    note(f"enter {name}")
    try:
        yield name
    except ValueError as error:
        note(f"caught {error}")
        if not swallow:
            raise
    finally:
        note(f"leave {name}")


def straight(a, b=2, *rest, key=3, **others):
    c = a + b * key
    text = f"{c!r:>5}{a}"
    return c, text, [*rest, a], {"k": b, **others}, a if b else c, rest[0:1]


def loops(n):
    total, seen = 0, []
    for i in range(n):
        if i == 3:
            continue
        for j in (i, i + 1):
            total += note(j)
        if total > 40:
            break
    else:
        seen.append("end")
    while total > 5:
        total -= 7
    squares = [i * i for i in range(n) if i % 2]
    table_of = {str(k): v for k, v in zip(seen, squares, strict=False)}
    return total, seen, squares, table_of, sum(i for i in squares)


def branches(a, b):
    x = a and b or "none"
    if a is None:
        y = 1
    elif not b and a != 3:
        y = 2
    else:
        y = 3 if a < 4 else note(4)
    if y > 4:
        raise AssertionError("too big")
    return x, y, a is not None and 0 < b < 9


def blocks(a):
    with manager("outer") as one, manager("inner", swallow=a == 2):
        note((one, a))
        if a:
            raise ValueError(a)
        note("body")
    try:
        b = 10 // a
        with manager("third"):
            if a == 2:
                return "early"
            note(b)
    except ZeroDivisionError as error:
        note(str(error))
        b = -1
    finally:
        note("finally")
    return b


def outer(base):
    def closures(a, b):
        nonlocal base
        count = 0

        def add(n):
            nonlocal count
            count += n + b
            return count + base

        base += 1
        for i in range(a):
            note(add(i))
        a = count
        return add(a), [add, len][1]([b]), lambda: (a, base, count)

    return closures


class Base:
    def __init__(self, value):
        self.value = value

    def method(self, a):
        return note((self.value, a))


class Derived(Base):
    def __init__(self, value):
        super().__init__(value + 1)

    def method(self, a):
        first = super().method(a=a)
        self.value += 1
        return first, super().method(a), self.value


def unbound(a):
    if a:
        b = 1
    else:
        note("no b")
    del a
    try:
        return b
    except UnboundLocalError:
        return "unbound"


def names(a, b):
    c = a + b
    return sorted(locals().items()), c


def unpacking(a):
    (b, *c), d = a, {**{"x": 1}}
    first, second = b
    d["y"] = c
    del d["x"]
    global _global
    _global = note(first)
    match d:
        case {"y": [1, *more]}:
            return more, second, _global
        case _:
            return "other", second


def test_straight_code():
    _check(straight, (1,), (1, 0, 5, 6), ("a", 1))


def test_loops():
    _check(loops, (0,), (1,), (7,), (12,), least=0.7)


def test_branches():
    _check(branches, (None, 1), (0, 0), (3, 0), (2, 5), (9, 10))


def test_with_and_try():
    _check(blocks, (0,), (1,), (2,), ("x",), least=0.25)


def test_variables_that_may_be_unbound():
    _check(unbound, (0,), (1,), least=0.2)


def test_functions_that_look_at_their_variables_are_refused():
    def evaluates(a):
        return eval("a")

    def bare(a):
        return vars(), dir()

    for function in (names, evaluates, bare):
        assert "own variables" in (resume.why_not_resumable(function.__code__, 1) or "")

    def harmless(a):
        a.eval()
        return dir(a), vars(a), note(a)

    assert resume.why_not_resumable(harmless.__code__, 1) is None


def test_unpacking_and_globals():
    _check(unpacking, ([(1, 2), 1, 5],), ([(1, 2)],), ([3],))


def test_methods_with_super():
    for name in ("__init__", "method"):
        for _, cut in _cuts(getattr(Derived, name)):
            changed = type("Changed", (Derived,), {name: cut})
            _log.append([])
            assert changed(4).method(2) == ((5, 2), (6, 2), 6)
            _log.pop()


def test_closures_keep_their_cells():
    function = outer(100)
    states = _states(function.__code__)
    number = 0
    for index in range(len(states)):
        fresh, cut_from = outer(100), outer(100)
        cut = _cut(cut_from, index, states)
        if cut is None or index < resume.prologue_end(analyse(cut.__code__).instructions):
            continue
        number += 1
        for _ in range(2):
            found, wanted = _run(cut, (3, 4)), _run(fresh, (3, 4))
            assert len(found) == len(wanted), (
                analyse(function.__code__).instructions[index],
                found,
            )
            (one, two, three), (wanted_one, wanted_two, wanted_three) = found[0], wanted[0]
            assert (one, two, three()) == (wanted_one, wanted_two, wanted_three())
    assert number > 30


def test_loop_of_breaks_has_one_resume_function_and_no_recursion():
    def turns(n):
        total = 0
        for i in range(n):
            total += note_nothing(i)
        return total

    note_nothing = abs
    code = turns.__code__
    states = _states(code)
    index = [i.index for i in analyse(code).instructions if i.opname == "CALL"][-1]
    first = _codes(turns, index, states)
    again = resume.make_function(first[0], turns.__globals__)
    # The same instruction in the resume function leads to the same resume function.
    inner = analyse(first[0])
    place = [
        i.index
        for i in inner.instructions
        if i.opname == "CALL" and i.positions == analyse(code).instructions[index].positions
    ]
    second = _codes(again, place[0], _states(first[0]))
    assert second[0] is first[0]


def _codes(function: FunctionType, index: int, states: list[Layout | None]) -> list[CodeType]:
    state = states[index]
    assert state is not None
    code = function.__code__
    cells = {*code.co_cellvars, *code.co_freevars}
    outcome = Break(
        index,
        tuple(("null",) if e else ("const", None) for e in state[0]),
        tuple((n, ("const", None)) for n in sorted(state[1] - cells)),
    )
    return resume.resume_codes(FramePlan("f", (), outcome), code)


def test_tracebacks_show_the_users_lines():
    def failing(a):
        b = a + 1
        c = b
        return c / 0

    line = failing.__code__.co_firstlineno
    for _, cut in _cuts(failing):
        with pytest.raises(ZeroDivisionError) as caught:
            cut(1)
        frames = [f for f in traceback.extract_tb(caught.tb) if f.filename == __file__]
        assert frames[-1].lineno == line + 3
        assert all(line <= f.lineno <= line + 3 for f in frames[1:] if f.lineno is not None)


def test_names_say_where_they_resume():
    (code,) = _codes(
        branches,
        resume.prologue_end(analyse(branches.__code__).instructions),
        _states(branches.__code__),
    )
    assert code.co_name.startswith("resume_in_branches_at_")
    assert resume.is_resume(code) and not resume.is_resume(branches.__code__)
    assert sys.getrefcount(code) < 10


def test_generators_and_handlers_are_refused():
    def generator(a):
        yield a

    def handling(a):
        try:
            return 1 // a
        except ZeroDivisionError:
            return note(a)

    assert "generator" in (resume.why_not_resumable(generator.__code__, 5) or "")
    call = [i.index for i in analyse(handling.__code__).instructions if i.opname == "CALL"][-1]
    assert "exception" in (resume.why_not_resumable(handling.__code__, call) or "")


def test_effects_of_instructions_agree_with_the_stack():
    for function in (straight, loops, branches, blocks, unpacking):
        flow = analyse(function.__code__)
        for instruction, state in zip(flow.instructions, _states(function.__code__), strict=True):
            if state is not None:
                assert len(state[0]) == flow.depth(instruction.index)
                assert effect(instruction, False) > -10


def test_exceptions_that_the_tracer_meets_show_the_raising_line():
    from argand_dynamo.convert_frame import Settings, compiled_function

    def function(x, n):
        with manager("outer"):
            y = x + 1
            return y / (n // 0)

    compiled = compiled_function(function, Settings(backend=lambda module, inputs: module))
    for called in (function, compiled, compiled):
        _log.append([])
        with pytest.raises(ZeroDivisionError) as caught:
            called(argand_aten.ones(2), 1)
        assert _log.pop() == ["enter outer", "leave outer"]
        own = [f for f in traceback.extract_tb(caught.tb) if f.name == "function"]
        assert own[-1].lineno == function.__code__.co_firstlineno + 3
