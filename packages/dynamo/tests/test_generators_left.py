"""Generators that a traced function leaves before their end: Python closes them, which runs their cleanup."""

from __future__ import annotations

import contextlib
import gc

import argand_dynamo
from argand_aten import ones

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
    for generator in (with_finally, with_context, outer, plain):
        f = first_of(generator)
        log.clear()
        want = f(ones(2)).tolist()
        expected = list(log)
        compiled = argand_dynamo.compile(f, backend="eager")
        for _ in range(3):
            log.clear()
            assert compiled(ones(2)).tolist() == want, generator.__name__
            # What a resume function is given lives until it returns, what a trace has seen until the next collection.
            gc.collect()
            assert sorted(log) == sorted(expected), generator.__name__


def test_generators_without_cleanup_are_in_the_graph():
    compiled = argand_dynamo.compile(first_of(plain), backend="eager", fullgraph=True)
    assert compiled(ones(2)).tolist() == [4, 4]


def all_of(x):
    for i in with_finally():
        x = x + i
    return x


def test_finished_generators_need_no_break():
    log.clear()
    compiled = argand_dynamo.compile(all_of, backend="eager", fullgraph=True)
    assert compiled(ones(2)).tolist() == [4, 4] and log == ["finally"]
