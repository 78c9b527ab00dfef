"""Making instructions: the same words for every version of CPython."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from argand_dynamo.bytecode.instructions import Instruction
from argand_dynamo.bytecode.table import table

# Bits of MAKE_FUNCTION and SET_FUNCTION_ATTRIBUTE.
DEFAULTS, KWDEFAULTS, CLOSURE = 1, 2, 8


def simple(opname: str, arg: int | None = None) -> Instruction:
    """An instruction whose argument is a plain number."""
    return Instruction(opname, arg)


def load_const(value: Any) -> Instruction:
    return Instruction("LOAD_CONST", argval=value)


def load_fast(name: str) -> Instruction:
    return Instruction("LOAD_FAST", argval=name)


def store_fast(name: str) -> Instruction:
    return Instruction("STORE_FAST", argval=name)


def delete_fast(name: str) -> Instruction:
    return Instruction("DELETE_FAST", argval=name)


def load_deref(name: str) -> Instruction:
    """Content of a cell."""
    return Instruction("LOAD_DEREF", argval=name)


def store_deref(name: str) -> Instruction:
    return Instruction("STORE_DEREF", argval=name)


def delete_deref(name: str) -> Instruction:
    return Instruction("DELETE_DEREF", argval=name)


def load_closure(name: str) -> Instruction:
    """The cell itself."""
    return Instruction("LOAD_CLOSURE", argval=name)


def make_cell(name: str) -> Instruction:
    return Instruction("MAKE_CELL", argval=name)


def copy_free_vars(count: int) -> Instruction:
    return Instruction("COPY_FREE_VARS", count)


def load_global(name: str) -> Instruction:
    return Instruction("LOAD_GLOBAL", 0, name)


def store_global(name: str) -> Instruction:
    return Instruction("STORE_GLOBAL", argval=name)


def delete_global(name: str) -> Instruction:
    return Instruction("DELETE_GLOBAL", argval=name)


def load_attr(name: str) -> Instruction:
    return Instruction("LOAD_ATTR", 0, name)


def store_attr(name: str) -> Instruction:
    """[value, object] -> []"""
    return Instruction("STORE_ATTR", argval=name)


def delete_attr(name: str) -> Instruction:
    return Instruction("DELETE_ATTR", argval=name)


def push_null() -> Instruction:
    return Instruction("PUSH_NULL")


def pop_top() -> Instruction:
    return Instruction("POP_TOP")


def copy(place: int) -> Instruction:
    """Push a copy of the item at that place; 1 is the topmost."""
    return Instruction("COPY", place)


def swap(place: int) -> Instruction:
    """Exchange the topmost item and the one at that place."""
    return Instruction("SWAP", place)


def subscript() -> Instruction:
    """[container, key] -> [value]"""
    return Instruction("BINARY_SUBSCR")


def store_subscript() -> Instruction:
    """[value, container, key] -> []"""
    return Instruction("STORE_SUBSCR")


def delete_subscript() -> Instruction:
    """[container, key] -> []"""
    return Instruction("DELETE_SUBSCR")


def binary(operator: str) -> Instruction:
    return Instruction("BINARY_OP", argval=operator)


def build(kind: str, count: int) -> Instruction:
    """BUILD_TUPLE, BUILD_LIST, BUILD_SET, BUILD_MAP, BUILD_SLICE."""
    return Instruction(f"BUILD_{kind}", count)


def return_value() -> Instruction:
    return Instruction("RETURN_VALUE")


def resume() -> Instruction:
    return Instruction("RESUME", 0)


def jump_to(target: Instruction) -> Instruction:
    """In either direction."""
    return Instruction("JUMP_FORWARD", target=target)


def jump_if_false(target: Instruction) -> Instruction:
    """Forward, on a value that is exactly True or False; pops it."""
    opname = "POP_JUMP_FORWARD_IF_FALSE" if table.BACKWARD_CONDITIONS else "POP_JUMP_IF_FALSE"
    return Instruction(opname, target=target)


def begin_call(load: Iterable[Instruction]) -> list[Instruction]:
    """What stands before the arguments of a call: the callable and the empty slot beside it."""
    if table.NULL_FIRST:
        return [push_null(), *load]
    return [*load, push_null()]


def call(count: int, names: Sequence[str] = ()) -> Instruction:
    """[callable and empty slot, arguments] -> [result]; the last `len(names)` arguments are by keyword."""
    return Instruction("CALL", count, tuple(names))


def call_with_tuple() -> list[Instruction]:
    """[arguments, callable] -> [result], the arguments being a tuple."""
    if table.NULL_FIRST:
        return [push_null(), swap(3), Instruction("CALL_FUNCTION_EX", 0)]
    return [swap(2), push_null(), swap(2), Instruction("CALL_FUNCTION_EX", 0)]


def make_function(parts: int) -> list[Instruction]:
    """[defaults, kwdefaults, closure, code] -> [function]; `parts` says which of the first three are there."""
    if not table.FUNCTION_ATTRIBUTES:
        return [Instruction("MAKE_FUNCTION", parts)]
    made = [Instruction("MAKE_FUNCTION")]
    made += [
        Instruction("SET_FUNCTION_ATTRIBUTE", bit)
        for bit in (CLOSURE, KWDEFAULTS, DEFAULTS)
        if parts & bit
    ]
    return made
