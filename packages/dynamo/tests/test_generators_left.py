"""Generators that a traced function leaves before their end: Python closes them, which runs their cleanup."""

from __future__ import annotations

import contextlib

import pytest

import argand_dynamo
from argand_aten import ones
from argand_autograd import is_grad_enabled, no_grad

log: list[str] = []


def with_finally():
    try:
        yield 1
        yield 2
    finally:
        log.append("finally")


def with_context():
    with contextlib.suppress(ValueError), contextlib.ExitStack() as stack:
        stack.callback(log.append, "exit")
        yield 1
        yield 2


def outer():
    yield from with_finally()


def plain():
    yield 1
    yield 2


def first_of(generator):
    def f(x):
        for i in generator():
            x = x + i
            break
        log.append("after")
        return x * 2

    return f


def test_cleanup_runs_as_in_python():
    for generator in (with_finally, with_context, outer, plain, until_index_error, catching_all):
        f = first_of(generator)
        log.clear()
        want = f(ones(2)).tolist()
        expected = list(log)
        compiled = argand_dynamo.compile(f, backend="eager")
        for _ in range(3):
            log.clear()
            assert compiled(ones(2)).tolist() == want, generator.__name__
            assert log == expected, generator.__name__


def until_index_error():
    values = [1, 2]
    try:
        try:
            for i in range(3):
                yield values[i]
        except (IndexError, KeyError):
            return
    except ValueError:
        log.append("ValueError")


def catching_all():
    try:
        yield 1
        yield 2
    except BaseException:
        log.append("closed")
        raise


def test_generators_without_cleanup_are_in_the_graph():
    for generator in (plain, until_index_error):
        compiled = argand_dynamo.compile(first_of(generator), backend="eager", fullgraph=True)
        assert compiled(ones(2)).tolist() == [4, 4]


def all_of(x):
    for i in with_finally():
        x = x + i
    return x


def test_finished_generators_need_no_break():
    log.clear()
    compiled = argand_dynamo.compile(all_of, backend="eager", fullgraph=True)
    assert compiled(ones(2)).tolist() == [4, 4] and log == ["finally"]


def without_gradients(found):
    try:
        with no_grad():
            yield 1
            yield 2
            yield 3
    finally:
        found.append(is_grad_enabled())


def broken_off(found):
    for i in without_gradients(found):
        if i == 2:
            break


def returned_from(found):
    def inner():
        for i in without_gradients(found):
            if i == 2:
                return i
        return 0

    found.append(inner())


def held_longer(found):
    items = without_gradients(found)
    for i in items:
        if i == 2:
            break
    found.append(is_grad_enabled())
    for i in items:
        found.append(i)


def delegated(found):
    def outer():
        yield from without_gradients(found)

    for i in outer():
        if i == 2:
            break


def raised_in(found):
    try:
        for i in without_gradients(found):
            if i == 2:
                raise ValueError
    except ValueError:
        found.append("caught")


def closed(found):
    items = without_gradients(found)
    next(items)
    items.close()
    items.close()
    found.append(list(items))


def nested(found):
    for i in without_gradients(found):
        for j in without_gradients(found):
            if i == j:
                break
        found.append(is_grad_enabled())


def refuses_to_close(found):
    def stubborn():
        try:
            yield 1
        except GeneratorExit:
            yield 2

    items = stubborn()
    next(items)
    try:
        items.close()
    except RuntimeError as error:
        found.append(str(error))


def in_zip(found):
    for i, _ in zip(without_gradients(found), range(9), strict=False):
        if i == 2:
            break


def in_any(found):
    found.append(any(i == 2 for i in without_gradients(found)))


def around_a_break(found):
    for i in without_gradients(found):
        print(end="")
        if i == 2:
            break


TRACED = (broken_off, returned_from, held_longer, delegated, raised_in, closed, nested, refuses_to_close)  # fmt: skip


@pytest.mark.parametrize("leave", [*TRACED, in_zip, in_any, around_a_break], ids=lambda f: f.__name__)  # fmt: skip
def test_gradient_mode_is_restored_where_the_generator_is_left(leave):
    def f(x):
        found = []
        leave(found)
        found.append(is_grad_enabled())
        return found, (x * 2).requires_grad

    x = ones(2, requires_grad=True)
    want = f(x)
    assert argand_dynamo.compile(f, backend="eager", fullgraph=leave in TRACED)(x) == want
    assert argand_dynamo.compile(leave, backend="eager")(found := []) is None
    assert is_grad_enabled() and [*found, True] == want[0]
