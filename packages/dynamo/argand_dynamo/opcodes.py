"""Handlers of opcodes: stack, variables, attributes, operators, containers."""

from __future__ import annotations

import types
from typing import Any, NoReturn

from argand_dynamo.bytecode import Instruction
from argand_dynamo.bytecode.table import table
from argand_dynamo.exceptions import break_trace
from argand_dynamo.interpreter import NULL, SymbolicFrame, drop, handler
from argand_dynamo.variables.base import MethodVariable, Variable, unknown
from argand_dynamo.variables.constant import Constant
from argand_dynamo.variables.dicts import DictVariable, SetVariable
from argand_dynamo.variables.functions import CellVariable, FunctionVariable
from argand_dynamo.variables.objects import ObjectVariable
from argand_dynamo.variables.sequences import ListVariable, SliceVariable, TupleVariable
from argand_dynamo.variables.tensor import TensorVariable

_NULL_FIRST = table.NULL_FIRST
_BINARY = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow",
    "<<": "lshift", ">>": "rshift", "&": "and", "|": "or", "^": "xor", "@": "matmul",
}  # fmt: skip
_BINARY |= {f"{symbol}=": f"i{name}" for symbol, name in _BINARY.items()}
_COMPARE = {"<": "lt", "<=": "le", "==": "eq", "!=": "ne", ">": "gt", ">=": "ge"}


def push_callable(frame: SymbolicFrame, function: Variable) -> None:
    """A callable and the empty slot beside it."""
    frame.stack.extend((NULL, function) if _NULL_FIRST else (function, NULL))


@handler("NOP", "RESUME", "CACHE", "PRECALL", "EXTENDED_ARG", "MAKE_CELL_DONE")
def nop(frame: SymbolicFrame, i: Instruction) -> None:
    pass


@handler("COPY_FREE_VARS")
def copy_free_vars(frame: SymbolicFrame, i: Instruction) -> None:
    pass  # the frame has its cells from the start


@handler("MAKE_CELL")
def make_cell(frame: SymbolicFrame, i: Instruction) -> None:
    name = i.argval
    own = name if frame is frame.tx.root else None
    frame.cells[name] = CellVariable(frame.locals.pop(name, None), own_name=own)


@handler("POP_TOP", "POP_ITER")
def pop_top(frame: SymbolicFrame, i: Instruction) -> None:
    drop(frame)


@handler("PUSH_NULL")
def push_null(frame: SymbolicFrame, i: Instruction) -> None:
    frame.push(NULL)


@handler("COPY")
def copy(frame: SymbolicFrame, i: Instruction) -> None:
    frame.push(frame.stack[-(i.arg or 1)])


@handler("SWAP")
def swap(frame: SymbolicFrame, i: Instruction) -> None:
    stack, n = frame.stack, i.arg or 1
    stack[-1], stack[-n] = stack[-n], stack[-1]


@handler("LOAD_CONST", "LOAD_SMALL_INT")
def load_const(frame: SymbolicFrame, i: Instruction) -> None:
    value = i.argval
    frame.push(CodeConstant(value) if type(value) is types.CodeType else frame.tx.constant(value))


class CodeConstant(Variable):
    """A code object on its way to MAKE_FUNCTION."""

    __slots__ = ("code",)

    def __init__(self, code: types.CodeType) -> None:
        self.source = None
        self.code = code

    def describe(self) -> str:
        return "a code object"


@handler("LOAD_FAST", "LOAD_FAST_BORROW")
def load_fast(frame: SymbolicFrame, i: Instruction) -> None:
    found = frame.locals.get(i.argval)
    if found is None:
        if i.argval in frame.cells:
            frame.push(frame.cells[i.argval])
            return
        _unbound(frame, i.argval)
    frame.stack.append(found)


def _unbound(frame: SymbolicFrame, name: str) -> NoReturn:
    frame.tx.raise_(
        UnboundLocalError,
        f"cannot access local variable '{name}' where it is not associated with a value",
    )


@handler("LOAD_FAST_CHECK")
def load_fast_check(frame: SymbolicFrame, i: Instruction) -> None:
    load_fast(frame, i)


@handler("LOAD_FAST_AND_CLEAR")
def load_fast_and_clear(frame: SymbolicFrame, i: Instruction) -> None:
    # A slot of a name that comprehensions share may hold its cell.
    held = frame.locals.pop(i.argval, None)
    frame.push(frame.cells.pop(i.argval, NULL) if held is None else held)


@handler("STORE_FAST", "STORE_FAST_MAYBE_NULL")
def store_fast(frame: SymbolicFrame, i: Instruction) -> None:
    value = frame.stack.pop()
    if value is NULL:
        frame.locals.pop(i.argval, None)
    elif i.argval in frame.cells or isinstance(value, CellVariable):
        # In a resume function: a cell that came as an argument. After a comprehension: the one that it put aside.
        value = frame.tx.realize(value)
        assert isinstance(value, CellVariable)
        if frame is frame.tx.root:
            value.own_name = i.argval
        frame.locals.pop(i.argval, None)
        frame.cells[i.argval] = value
    else:
        frame.locals[i.argval] = value


@handler("DELETE_FAST")
def delete_fast(frame: SymbolicFrame, i: Instruction) -> None:
    if frame.locals.pop(i.argval, None) is None:
        _unbound(frame, i.argval)


@handler("LOAD_GLOBAL")
def load_global(frame: SymbolicFrame, i: Instruction) -> None:
    found = frame.tx.load_global(frame, i.argval)
    if (i.arg or 0) & 1:
        push_callable(frame, found)
    else:
        frame.push(found)


@handler("LOAD_NAME")
def load_name(frame: SymbolicFrame, i: Instruction) -> None:
    frame.push(frame.tx.load_global(frame, i.argval))


@handler("STORE_GLOBAL")
def store_global(frame: SymbolicFrame, i: Instruction) -> None:
    frame.tx.store_global(frame, i.argval, frame.stack.pop())


@handler("DELETE_GLOBAL")
def delete_global(frame: SymbolicFrame, i: Instruction) -> None:
    unknown("del of a global variable")


@handler("LOAD_CLOSURE")
def load_closure(frame: SymbolicFrame, i: Instruction) -> None:
    frame.push(frame.cells[i.argval])


@handler("LOAD_DEREF")
def load_deref(frame: SymbolicFrame, i: Instruction) -> None:
    found = frame.cells[i.argval].load(frame.tx)
    if found is None:
        if i.argval in frame.code.co_freevars:
            frame.tx.raise_(
                NameError,
                f"cannot access free variable '{i.argval}' where it is not associated with a value "
                "in enclosing scope",
            )
        _unbound(frame, i.argval)
    else:
        frame.push(found)


@handler("STORE_DEREF")
def store_deref(frame: SymbolicFrame, i: Instruction) -> None:
    frame.cells[i.argval].store(frame.tx, frame.stack.pop())


@handler("DELETE_DEREF")
def delete_deref(frame: SymbolicFrame, i: Instruction) -> None:
    if frame.cells[i.argval].load(frame.tx) is None:
        _unbound(frame, i.argval)
    frame.cells[i.argval].store(frame.tx, None)


# Attributes ----------------------------------------------------------------------------------


def _load_method(frame: SymbolicFrame, name: str) -> None:
    owner = frame.pop()
    if isinstance(owner, TensorVariable | ListVariable | DictVariable) or type(owner) is Constant:
        # What a method is does not matter before it is called.
        function: Variable = MethodVariable(owner, name)
    else:
        function = owner.getattr(frame.tx, name)
    push_callable(frame, function)


@handler("LOAD_METHOD")
def load_method(frame: SymbolicFrame, i: Instruction) -> None:
    _load_method(frame, i.argval)


@handler("LOAD_ATTR")
def load_attr(frame: SymbolicFrame, i: Instruction) -> None:
    if table.FLAG_BITS.get("LOAD_ATTR") and (i.arg or 0) & 1:
        _load_method(frame, i.argval)
        return
    frame.stack.append(frame.pop().getattr(frame.tx, i.argval))


@handler("LOAD_SUPER_ATTR")
def load_super_attr(frame: SymbolicFrame, i: Instruction) -> None:
    start, owner = frame.popn(2)
    factory = frame.pop()
    arg = i.arg or 0
    # Without the flag 2 this was super() without arguments; both are on the stack in any case.
    made = factory.call(frame.tx, [frame.tx.realize(start), frame.tx.realize(owner)], {})
    found = made.getattr(frame.tx, i.argval)
    if arg & 1:
        push_callable(frame, found)
    else:
        frame.push(found)


@handler("STORE_ATTR")
def store_attr(frame: SymbolicFrame, i: Instruction) -> None:
    owner = frame.pop()
    owner.setattr(frame.tx, i.argval, frame.stack.pop())


@handler("DELETE_ATTR")
def delete_attr(frame: SymbolicFrame, i: Instruction) -> None:
    frame.pop().delattr(frame.tx, i.argval)


# Operators -----------------------------------------------------------------------------------


@handler("BINARY_OP")
def binary_op(frame: SymbolicFrame, i: Instruction) -> None:
    b = frame.stack.pop()
    a = frame.stack.pop()
    if i.argval == "[]":
        frame.push(frame.tx.getitem(a, b))
        return
    frame.push(frame.tx.binary(_BINARY[i.argval], a, b))


@handler("BINARY_SUBSCR")
def binary_subscr(frame: SymbolicFrame, i: Instruction) -> None:
    key = frame.pop()
    frame.push(frame.tx.getitem(frame.pop(), key))


@handler("STORE_SUBSCR")
def store_subscr(frame: SymbolicFrame, i: Instruction) -> None:
    key = frame.pop()
    owner = frame.pop()
    owner.setitem(frame.tx, key, frame.pop())


@handler("DELETE_SUBSCR")
def delete_subscr(frame: SymbolicFrame, i: Instruction) -> None:
    key = frame.pop()
    frame.pop().delitem(frame.tx, key)


@handler("BINARY_SLICE")
def binary_slice(frame: SymbolicFrame, i: Instruction) -> None:
    bounds = frame.popn(2)
    key = SliceVariable([*map(frame.tx.realize, bounds), Constant(None)])
    frame.push(frame.tx.getitem(frame.pop(), key))


@handler("STORE_SLICE")
def store_slice(frame: SymbolicFrame, i: Instruction) -> None:
    bounds = frame.popn(2)
    owner = frame.pop()
    key = SliceVariable([*map(frame.tx.realize, bounds), Constant(None)])
    owner.setitem(frame.tx, key, frame.pop())


@handler("COMPARE_OP")
def compare_op(frame: SymbolicFrame, i: Instruction) -> None:
    b = frame.stack.pop()
    a = frame.stack.pop()
    found = frame.tx.compare(_COMPARE[i.argval], a, b)
    if getattr(table, "COMPARE_TO_BOOL", 0) & (i.arg or 0):
        found = Constant(frame.tx.truth(found))
    frame.push(found)


@handler("IS_OP")
def is_op(frame: SymbolicFrame, i: Instruction) -> None:
    b = frame.pop()
    a = frame.pop()
    frame.push(Constant(frame.tx.identical(a, b) is not bool(i.arg)))


@handler("CONTAINS_OP")
def contains_op(frame: SymbolicFrame, i: Instruction) -> None:
    container = frame.pop()
    item = frame.pop()
    found = frame.tx.truth(container.contains(frame.tx, item))
    frame.push(Constant(found is not bool(i.arg)))


@handler("UNARY_NOT")
def unary_not(frame: SymbolicFrame, i: Instruction) -> None:
    frame.push(Constant(not frame.tx.truth(frame.pop())))


@handler("TO_BOOL")
def to_bool(frame: SymbolicFrame, i: Instruction) -> None:
    frame.push(Constant(frame.tx.truth(frame.pop())))


@handler("UNARY_NEGATIVE")
def unary_negative(frame: SymbolicFrame, i: Instruction) -> None:
    frame.push(frame.tx.unary("neg", frame.pop()))


@handler("UNARY_POSITIVE")
def unary_positive(frame: SymbolicFrame, i: Instruction) -> None:
    frame.push(frame.tx.unary("pos", frame.pop()))


@handler("UNARY_INVERT")
def unary_invert(frame: SymbolicFrame, i: Instruction) -> None:
    frame.push(frame.tx.unary("invert", frame.pop()))


# Containers ----------------------------------------------------------------------------------


@handler("BUILD_TUPLE")
def build_tuple(frame: SymbolicFrame, i: Instruction) -> None:
    frame.push(TupleVariable(frame.popn(i.arg or 0)))


@handler("BUILD_LIST")
def build_list(frame: SymbolicFrame, i: Instruction) -> None:
    frame.push(ListVariable(frame.popn(i.arg or 0)))


@handler("BUILD_SET")
def build_set(frame: SymbolicFrame, i: Instruction) -> None:
    frame.push(frame.tx.make_set([frame.tx.realize(x) for x in frame.popn(i.arg or 0)]))


@handler("BUILD_MAP")
def build_map(frame: SymbolicFrame, i: Instruction) -> None:
    items = frame.popn(2 * (i.arg or 0))
    frame.push(
        frame.tx.make_dict(
            [(frame.tx.realize(k), v) for k, v in zip(items[::2], items[1::2], strict=True)]
        )
    )


@handler("BUILD_CONST_KEY_MAP")
def build_const_key_map(frame: SymbolicFrame, i: Instruction) -> None:
    keys = frame.tx.raw(frame.pop())
    values = frame.popn(len(keys))
    frame.push(frame.tx.make_dict(list(zip(map(frame.tx.constant, keys), values, strict=True))))


@handler("BUILD_SLICE")
def build_slice(frame: SymbolicFrame, i: Instruction) -> None:
    parts = [frame.tx.realize(x) for x in frame.popn(i.arg or 2)]
    if len(parts) == 2:
        parts.append(Constant(None))
    frame.push(SliceVariable(parts))


@handler("BUILD_STRING")
def build_string(frame: SymbolicFrame, i: Instruction) -> None:
    frame.push(Constant("".join([frame.tx.raw(x) for x in frame.popn(i.arg or 0)])))


_CONVERSIONS: dict[int, Any] = {1: str, 2: repr, 3: ascii}


def _format(frame: SymbolicFrame, conversion: int, spec: str) -> None:
    value = frame.tx.format_value(frame.pop())
    if conversion:
        value = _CONVERSIONS[conversion](value)
    frame.push(frame.tx.call_python(format, [value, spec], {}))


@handler("FORMAT_VALUE")
def format_value(frame: SymbolicFrame, i: Instruction) -> None:
    arg = i.arg or 0
    spec = frame.tx.raw(frame.pop()) if arg & 4 else ""
    _format(frame, arg & 3, spec)


@handler("FORMAT_SIMPLE")
def format_simple(frame: SymbolicFrame, i: Instruction) -> None:
    _format(frame, 0, "")


@handler("FORMAT_WITH_SPEC")
def format_with_spec(frame: SymbolicFrame, i: Instruction) -> None:
    spec = frame.tx.raw(frame.pop())
    _format(frame, 0, spec)


@handler("CONVERT_VALUE")
def convert_value(frame: SymbolicFrame, i: Instruction) -> None:
    frame.push(Constant(_CONVERSIONS[i.arg or 1](frame.tx.format_value(frame.pop()))))


def _target(frame: SymbolicFrame, i: Instruction, kind: type) -> Any:
    """The container below the operand, which in a resume function may be one that came from outside."""
    found = frame.tx.realize(frame.stack[-(i.arg or 1)])
    if not isinstance(found, kind):
        unknown(f"adding to {found.describe()}")
    return found


@handler("LIST_APPEND")
def list_append(frame: SymbolicFrame, i: Instruction) -> None:
    item = frame.stack.pop()
    target = _target(frame, i, ListVariable)
    target.items.append(item)
    frame.tx.mutated(target)


@handler("LIST_EXTEND")
def list_extend(frame: SymbolicFrame, i: Instruction) -> None:
    items = frame.tx.unpack(frame.pop())
    target = _target(frame, i, ListVariable)
    target.items.extend(items)
    frame.tx.mutated(target)


@handler("SET_ADD")
def set_add(frame: SymbolicFrame, i: Instruction) -> None:
    item = frame.pop()
    target = _target(frame, i, SetVariable)
    target.insert(frame.tx, item)


@handler("SET_UPDATE")
def set_update(frame: SymbolicFrame, i: Instruction) -> None:
    items = frame.tx.realize(frame.pop())
    _target(frame, i, SetVariable).call_method(frame.tx, "update", [items], {})


@handler("MAP_ADD")
def map_add(frame: SymbolicFrame, i: Instruction) -> None:
    value = frame.stack.pop()
    key = frame.pop()
    target = _target(frame, i, DictVariable)
    target.setitem(frame.tx, key, value)


@handler("DICT_UPDATE")
def dict_update(frame: SymbolicFrame, i: Instruction) -> None:
    other = frame.pop()
    target = _target(frame, i, DictVariable)
    target.merge(frame.tx, other)


@handler("DICT_MERGE")
def dict_merge(frame: SymbolicFrame, i: Instruction) -> None:
    other = frame.pop()
    target = _target(frame, i, DictVariable)
    for key, value in frame.tx.pairs(other):
        name = frame.tx.hashed(key)
        if not isinstance(name, str):
            frame.tx.raise_(TypeError, "keywords must be strings")
        if name in target.entries:
            frame.tx.raise_(TypeError, f"got multiple values for keyword argument '{name}'")
        target.entries[name] = (key, value)
    frame.tx.mutated(target)


@handler("LIST_TO_TUPLE")
def list_to_tuple(frame: SymbolicFrame, i: Instruction) -> None:
    frame.push(TupleVariable(list(frame.tx.unpack(frame.pop()))))


@handler("UNPACK_SEQUENCE")
def unpack_sequence(frame: SymbolicFrame, i: Instruction) -> None:
    items, n = _unpacked(frame), i.arg or 0
    if len(items) > n:
        frame.tx.raise_(ValueError, f"too many values to unpack (expected {n})")
    if len(items) < n:
        frame.tx.raise_(ValueError, f"not enough values to unpack (expected {n}, got {len(items)})")
    frame.stack.extend(reversed(items))


def _unpacked(frame: SymbolicFrame) -> list[Variable]:
    value = frame.pop()
    if isinstance(value, ObjectVariable) or type(value) is Constant:
        return frame.tx.unpack(value)
    return frame.tx.unpack(value)


@handler("UNPACK_EX")
def unpack_ex(frame: SymbolicFrame, i: Instruction) -> None:
    before, after = (i.arg or 0) & 0xFF, (i.arg or 0) >> 8
    items = _unpacked(frame)
    if len(items) < before + after:
        frame.tx.raise_(
            ValueError,
            f"not enough values to unpack (expected at least {before + after}, got {len(items)})",
        )
    end = len(items) - after
    for item in reversed(items[end:]):
        frame.push(item)
    frame.push(ListVariable(items[before:end]))
    for item in reversed(items[:before]):
        frame.push(item)


@handler("GET_LEN")
def get_len(frame: SymbolicFrame, i: Instruction) -> None:
    frame.push(frame.tx.realize(frame.stack[-1]).length(frame.tx))


# Flags of types, by which patterns know sequences and mappings.
_SEQUENCE, _MAPPING = 1 << 5, 1 << 6


@handler("MATCH_SEQUENCE")
def match_sequence(frame: SymbolicFrame, i: Instruction) -> None:
    value = frame.tx.realize(frame.stack[-1])
    frame.push(Constant(bool(value.python_type().__flags__ & _SEQUENCE)))


@handler("MATCH_MAPPING")
def match_mapping(frame: SymbolicFrame, i: Instruction) -> None:
    value = frame.tx.realize(frame.stack[-1])
    frame.push(Constant(bool(value.python_type().__flags__ & _MAPPING)))


@handler("MATCH_KEYS")
def match_keys(frame: SymbolicFrame, i: Instruction) -> None:
    keys = frame.tx.unpack(frame.stack[-1])
    subject = frame.tx.realize(frame.stack[-2])
    if not isinstance(subject, DictVariable):
        unknown("a mapping pattern on an object")
    found = [subject.find(frame.tx, key) for key in keys]
    if any(value is None for value in found):
        frame.push(Constant(None))
    else:
        frame.push(TupleVariable([value for value in found if value is not None]))


_SELF_MATCHING = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)


@handler("MATCH_CLASS")
def match_class(frame: SymbolicFrame, i: Instruction) -> None:
    tx = frame.tx
    names = tx.raw(frame.pop())
    cls = tx.raw(frame.pop())
    subject = frame.pop()
    if not isinstance(cls, type):
        tx.raise_(TypeError, "called match pattern must be a class")
    count = i.arg or 0
    if not issubclass(subject.python_type(), cls):
        frame.push(Constant(None))
        return
    found: list[Variable] = []
    positional: tuple[str, ...] = ()
    if count:
        if "__match_args__" in dir(cls):
            positional = getattr(cls, "__match_args__")[:count]  # noqa: B009
        elif count == 1 and issubclass(cls, _SELF_MATCHING):
            found.append(subject)
        if len(found) + len(positional) < count:
            unknown("a class pattern with too many positional patterns")
    for name in (*positional, *names):
        value = tx.unless_raised(AttributeError, lambda name=name: subject.getattr(tx, name))  # type: ignore[misc]
        if value is None:
            frame.push(Constant(None))
            return
        found.append(value)
    frame.push(TupleVariable(found))


@handler("LOAD_BUILD_CLASS")
def load_build_class(frame: SymbolicFrame, i: Instruction) -> None:
    raise break_trace("unsupported_bytecode", "a class statement")


# Functions -----------------------------------------------------------------------------------


@handler("MAKE_FUNCTION")
def make_function(frame: SymbolicFrame, i: Instruction) -> None:
    code = frame.stack.pop()
    if not isinstance(code, CodeConstant):
        unknown("a function of a code object that is no constant")
    flags = 0 if table.FUNCTION_ATTRIBUTES else (i.arg or 0)
    closure: tuple[CellVariable, ...] = ()
    if flags & 8:
        closure = tuple(frame.tx.unpack(frame.stack.pop()))  # type: ignore[arg-type]
    if flags & 4:
        frame.stack.pop()  # annotations
    kwdefaults = frame.pop() if flags & 2 else None
    defaults = frame.pop() if flags & 1 else None
    function = FunctionVariable(
        code.code, frame.globals, frame.function.globals_source, code.code.co_name,
        code.code.co_qualname, None, None, closure,
    )  # fmt: skip
    _set_defaults(frame, function, defaults, kwdefaults)
    function.made_by = frame.function
    frame.tx.born(function)
    frame.push(function)


def _set_defaults(
    frame: SymbolicFrame,
    function: FunctionVariable,
    defaults: Variable | None,
    kwdefaults: Variable | None,
) -> None:
    if defaults is not None:
        function.defaults = frame.tx.unpack(defaults)
    if kwdefaults is not None:
        function.kwdefaults = {frame.tx.raw(k): v for k, v in frame.tx.pairs(kwdefaults)}


@handler("SET_FUNCTION_ATTRIBUTE")
def set_function_attribute(frame: SymbolicFrame, i: Instruction) -> None:
    function = frame.stack.pop()
    value = frame.stack.pop()
    assert isinstance(function, FunctionVariable)
    if i.arg == 1:
        _set_defaults(frame, function, frame.tx.realize(value), None)
    elif i.arg == 2:
        _set_defaults(frame, function, None, frame.tx.realize(value))
    elif i.arg == 8:
        function.closure = tuple(frame.tx.unpack(value))  # type: ignore[arg-type]
    frame.push(function)


def code_path(owner: types.CodeType, wanted: types.CodeType) -> tuple[int, ...] | None:
    """Indices into co_consts that lead from a code object to one inside of it."""
    for index, constant in enumerate(owner.co_consts):
        if constant is wanted:
            return (index,)
    return None
