"""Reading and writing bytecode loses nothing, and what is found out of it is right."""

from __future__ import annotations

import collections
import importlib
import inspect
import opcode
import types
from collections.abc import Iterator
from typing import Any

import pytest

from argand_dynamo.bytecode import (
    Instruction,
    analyse,
    assemble,
    block_stack,
    create,
    disassemble,
    live_locals,
    reachable,
    stack_depths,
)
from argand_dynamo.bytecode.table import table

MODULES = (
    "argparse", "ast", "asyncio.base_events", "asyncio.tasks", "collections", "contextlib", "dataclasses", "difflib", "enum", "functools", "inspect",
    "json.decoder", "pickle", "subprocess", "textwrap", "typing",
)  # fmt: skip


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _module_codes(name: str) -> list[types.CodeType]:
    source = inspect.getsource(importlib.import_module(name))
    return list(_codes(compile(source, name, "exec")))


def _described(instructions: list[Instruction]) -> list[Any]:
    found = []
    for i in instructions:
        handler = i.handler and (i.handler.target.index, i.handler.depth, i.handler.lasti)
        target = i.target and i.target.index
        found.append((i.opname, repr(i.argval), target, i.positions, handler))
    return found


@pytest.mark.parametrize("module", MODULES)
def test_round_trip(module):
    for code in _module_codes(module):
        instructions = disassemble(code)
        again = assemble(instructions, code)
        if not table.PAIRS:
            assert again.co_code == code.co_code, code.co_qualname
            assert again.co_exceptiontable == code.co_exceptiontable, code.co_qualname
        assert _described(disassemble(again)) == _described(instructions), code.co_qualname
        assert again.co_stacksize >= code.co_stacksize, code.co_qualname
        assert again.co_stacksize <= max(code.co_stacksize, 1), code.co_qualname
        assert (again.co_consts, again.co_names) == (code.co_consts, code.co_names)


def _rewritten(module: types.ModuleType) -> dict[str, Any]:
    """The module's names after running its source with every code object taken apart and put together."""

    def rewrite(code: types.CodeType) -> types.CodeType:
        constants = tuple(
            rewrite(c) if isinstance(c, types.CodeType) else c for c in code.co_consts
        )
        return assemble(disassemble(code), code).replace(co_consts=constants)

    source = inspect.getsource(module)
    names: dict[str, Any] = {"__name__": "rewritten", "__package__": module.__package__}
    exec(rewrite(compile(source, "rewritten", "exec")), names)
    return names


def test_rewritten_modules_work():
    import difflib
    import json.decoder
    import json.encoder
    import textwrap

    text = {"a": [1, 2.5, None, True, "x\ty\u20ac"], "b": {"c": [[], {}]}}
    encoder = _rewritten(json.encoder)["JSONEncoder"]
    written = "".join(encoder(indent=2, sort_keys=True).iterencode(text))
    assert written == json.dumps(text, indent=2, sort_keys=True)
    assert _rewritten(json.decoder)["JSONDecoder"]().decode(written) == text
    words = textwrap.__doc__ or ""
    assert _rewritten(textwrap)["wrap"](words * 9, 30) == textwrap.wrap(words * 9, 30)
    a, b = written.splitlines(), json.dumps(text, indent=1).splitlines()
    assert list(_rewritten(difflib)["unified_diff"](a, b)) == list(difflib.unified_diff(a, b))
    counter = _rewritten(collections)["Counter"]
    assert counter("abracadabra").most_common(2) == [("a", 5), ("b", 2)]


def test_generators_and_coroutines_work_rewritten():
    def generator(n):
        try:
            for i in range(n):
                got = yield i
                if got:
                    yield from (got, i)
        finally:
            yield "end"

    async def coroutine():
        async with Closing() as c:
            return [x async for x in c.numbers()]

    class Closing:
        async def __aenter__(self):
            return self

        async def __aexit__(self, *exc):
            return False

        async def numbers(self):
            yield 1
            yield 2

    def rewrite(function):
        code = assemble(disassemble(function.__code__), function.__code__)
        return types.FunctionType(
            code, function.__globals__, function.__name__, None, function.__closure__
        )

    assert list(rewrite(generator)(3)) == list(generator(3))
    running, wanted = rewrite(generator)(3), generator(3)
    assert [next(running), running.send("x"), *running] == [next(wanted), wanted.send("x"), *wanted]
    with pytest.raises(StopIteration) as stopped:
        rewrite(coroutine)().send(None)
    assert stopped.value.value == [1, 2]


def test_long_functions_have_extended_arguments():
    lines = [f"    if a == {i}:\n        b = 'text {i}'\n        c{i} = b" for i in range(400)]
    names: dict[str, Any] = {}
    exec(
        "def long(a):\n    for _ in range(2):\n        pass\n"
        + "\n".join(lines)
        + "\n    return b, a",
        names,
    )
    code = names["long"].__code__
    again = assemble(disassemble(code), code)
    assert opcode.EXTENDED_ARG in again.co_code[::2]
    for value in (0, 255, 256, 399):
        assert types.FunctionType(again, {"range": range})(value) == (f"text {value}", value)


def test_jumps_change_direction():
    def twice(a):
        return a * 2

    code = twice.__code__
    instructions = disassemble(code)
    body = instructions[1:]
    start, jump = create.jump_to(body[0]), create.jump_to(body[0])
    start.target = jump
    made = assemble([instructions[0], start, *body, jump], code)
    names = [opcode.opname[op] for op in made.co_code[::2]]
    assert "JUMP_BACKWARD" in names and "JUMP_FORWARD" in names
    assert types.FunctionType(made, {})(4) == 8


def test_conditional_jump_backward():
    code = (lambda a: a).__code__
    resume, load, back = disassemble(code)
    jump = create.jump_if_false(load)
    listed = [resume, load, create.load_const(True), jump, back]
    if table.BACKWARD_CONDITIONS:
        assert types.FunctionType(assemble(listed, code), {})(3) == 3
    else:
        with pytest.raises(ValueError, match="backward"):
            assemble(listed, code)


def _index(instructions: list[Instruction], opname: str, value: Any = None) -> int:
    return next(i.index for i in instructions if i.opname == opname and value in (None, i.argval))


def test_live_variables():
    def function(a, b, c):
        d = a + b
        if d:
            b = 1
        else:
            c = 2
        try:
            e = d.x
        except AttributeError:
            return c
        return b, e

    instructions = disassemble(function.__code__)
    assert live_locals(instructions, 0) == {"a", "b", "c"}
    assert live_locals(instructions, _index(instructions, "STORE_FAST", "d")) == {"b", "c"}
    assert live_locals(instructions, _index(instructions, "LOAD_ATTR", "x")) == {"b", "c"}
    assert live_locals(instructions, _index(instructions, "STORE_FAST", "e")) == {"b", "c"}
    assert live_locals(instructions, _index(instructions, "RETURN_VALUE")) == set()
    assert analyse(function.__code__).live(0) == {"a", "b", "c"}


def test_variables_of_a_loop_stay_alive():
    def function(n):
        last = None
        for i in range(n):
            if last:
                print(last)
            last = i

    instructions = disassemble(function.__code__)
    assert "last" in live_locals(instructions, _index(instructions, "FOR_ITER"))


def test_blocks_and_depths():
    def function(a):
        with a as b:
            try:
                b.inner()
            finally:
                with b:
                    b.deep()
        b.after()

    instructions = disassemble(function.__code__)

    def blocks(name: str) -> list[str]:
        load = next(i.index for i in instructions if i.argval == name)
        return [block.kind for block in block_stack(instructions, load)]

    assert blocks("inner") == ["with", "try"]
    assert blocks("deep") == ["with", "with"]
    assert blocks("after") == []
    flow = analyse(function.__code__)
    deep = next(i.index for i in instructions if i.argval == "deep")
    assert flow.depth(deep) == 3 and flow.handling(deep) == 0
    handlers = [i.index for i in instructions if i.opname == "PUSH_EXC_INFO"]
    assert all(flow.handling(index + 1) >= 1 for index in handlers)
    assert stack_depths(instructions)[1] <= function.__code__.co_stacksize


def test_reachable_follows_jumps_and_handlers():
    def function(a):
        if a:
            return 1
        try:
            return a.b
        except AttributeError:
            return 2

    instructions = disassemble(function.__code__)
    first = (
        instructions[_index(instructions, "RETURN_VALUE")]
        if "RETURN_CONST" not in opcode.opmap
        else instructions[_index(instructions, "RETURN_CONST")]
    )
    assert reachable(instructions, first) == {first}
    inside = reachable(instructions, instructions[_index(instructions, "LOAD_ATTR", "b")])
    assert any(i.opname == "CHECK_EXC_MATCH" for i in inside) and first not in inside


def test_calls_look_alike_in_every_version():
    def function(f, a):
        return f(a, *[1], **{"x": a}), f(a, k=1, l=2), f(a if a else 1, b=a or 2)

    calls = [i for i in disassemble(function.__code__) if i.opname == "CALL"]
    assert [(i.arg, i.argval) for i in calls] == [(3, ("k", "l")), (2, ("b",))]
    code = assemble(disassemble(function.__code__), function.__code__)
    made = types.FunctionType(code, {})
    record = lambda *args, **kwargs: (args, kwargs)  # noqa: E731
    assert made(record, 0) == function(record, 0) and made(record, 5) == function(record, 5)


def test_constants_keep_their_types():
    code = (lambda: None).__code__
    for value in (0.0, -0.0, 0, False, 1, True, (0.0,), (-0.0,)):
        body = [
            disassemble(code)[0],
            create.load_const(0),
            create.pop_top(),
            create.load_const(value),
            create.return_value(),
        ]
        found = types.FunctionType(assemble(body, code), {})()
        assert repr(found) == repr(value)


def test_exceptions_being_handled():
    def function(a):
        for i in a:
            try:
                i.tried()
            except KeyError:
                i.excepted()
                try:
                    i.inner()
                except ValueError:
                    i.twice()
                    continue
                finally:
                    i.cleanup()
            except TypeError as error:
                i.named(error)
            with i:
                i.managed()
        i.after()

    flow = analyse(function.__code__)
    counts: dict[str, set[int]] = {}
    for instruction in flow.instructions:
        if instruction.opname in ("LOAD_METHOD", "LOAD_ATTR"):
            counts.setdefault(instruction.argval, set()).add(flow.handling(instruction.index))
    assert counts.pop("cleanup") >= {1, 2}
    assert counts == {
        "tried": {0}, "excepted": {1}, "inner": {1}, "twice": {2}, "named": {1}, "managed": {0}, "after": {0},
    }  # fmt: skip
