"""Plans written by hand and what their code does, for tests."""

from __future__ import annotations

import json
from typing import Any

from argand_dynamo.bytecode.table import table
from argand_dynamo.frame_plan import (
    Expr,
    FramePlan,
    Return,
    Statement,
)
from argand_dynamo.plan_code import RuntimeObjects, assemble_plan
from argand_dynamo.plan_data import PlainReader, PlainWriter


def arg(index: int, *steps: tuple[Any, ...]) -> Expr:
    return ("source", (("arg", index), *steps))


def builtin(name: str) -> Expr:
    return ("source", (("builtin", name),))


def const(value: Any) -> Expr:
    return ("const", value)


def callee(expression: Expr) -> list[Expr]:
    """A callable on the stack, with its empty slot."""
    return [("null",), expression] if table.NULL_FIRST else [expression, ("null",)]


def replaced(function: Any, plan: FramePlan, graph: Any = None, functions: Any = ()) -> Any:
    plan.validate()
    again = FramePlan.from_json(json.loads(json.dumps(plan.to_json()))) if _plain(plan) else plan
    assert again == plan or not _plain(plan)
    return assemble_plan(plan, function.__code__, RuntimeObjects(graph, functions)).bind(function)


def _plain(plan: FramePlan) -> bool:
    return all(e[0] != "object" for e in plan.expressions())


def evaluated(
    expression: Expr, *arguments: Any, effects: tuple[Statement, ...] = (), **parts: Any
) -> Any:
    """The value of an expression in a frame with these arguments."""
    return replaced(two, FramePlan("two", (), Return(expression), effects=effects, **parts))(
        *arguments
    )


def two(a, b=None):
    return a


class Thing:
    shared = 3

    def __init__(self, **values):
        self.__dict__.update(values)

    def method(self):
        return self


def to_plain(value: Any) -> Any:
    writer = PlainWriter()
    return [writer.plain(value), writer.rows]


def from_plain(data: Any) -> Any:
    return PlainReader(data[1]).value(data[0])
