"""Handlers of opcodes: calls, jumps, iteration, `with`, exceptions, generators, imports."""

from __future__ import annotations

from typing import Any

from argand_dynamo.bytecode import Instruction
from argand_dynamo.bytecode.table import table
from argand_dynamo.exceptions import Raised, break_trace
from argand_dynamo.interpreter import NULL, SymbolicFrame, handler
from argand_dynamo.variables.base import Iterator, Variable, unknown
from argand_dynamo.variables.classes import ClassVariable
from argand_dynamo.variables.constant import Constant
from argand_dynamo.variables.functions import GeneratorVariable
from argand_dynamo.variables.objects import ExceptionVariable, ObjectVariable
from argand_dynamo.variables.sequences import TupleVariable

_NULL_FIRST = table.NULL_FIRST
_FOR_END = len(table.FOR_END)

# Calls ---------------------------------------------------------------------------------------


def _pop_callable(frame: SymbolicFrame, args: list[Variable]) -> Variable:
    upper = frame.stack.pop()
    lower = frame.stack.pop()
    if _NULL_FIRST:
        if lower is NULL:
            return frame.tx.realize(upper)
        args.insert(0, upper)
        return frame.tx.realize(lower)
    if upper is not NULL:
        args.insert(0, upper)
    return frame.tx.realize(lower)


@handler("CALL")
def call(frame: SymbolicFrame, i: Instruction) -> None:
    realize = frame.tx.realize
    args = [realize(a) for a in frame.popn(i.arg or 0)]
    kwargs: dict[str, Variable] = {}
    if i.argval:
        n = len(i.argval)
        kwargs = dict(zip(i.argval, args[-n:], strict=True))
        del args[-n:]
    function = _pop_callable(frame, args)
    frame.stack.append(function.call(frame.tx, args, kwargs))


@handler("CALL_FUNCTION_EX")
def call_function_ex(frame: SymbolicFrame, i: Instruction) -> None:
    tx = frame.tx
    kwargs: dict[str, Variable] = {}
    if (i.arg or 0) & 1:
        for key, value in tx.pairs(frame.pop()):
            kwargs[tx.raw(key)] = tx.realize(value)
    args = [tx.realize(a) for a in tx.unpack(frame.pop())]
    function = _pop_callable(frame, args)
    frame.push(function.call(tx, args, kwargs))


@handler("CALL_INTRINSIC_1")
def call_intrinsic_1(frame: SymbolicFrame, i: Instruction) -> None:
    if i.arg == 3:  # INTRINSIC_STOPITERATION_ERROR: the exception stays as it is
        value = frame.stack[-1]
        if isinstance(value, ExceptionVariable) and value.cls is StopIteration:
            frame.stack[-1] = ExceptionVariable(
                RuntimeError, [Constant("generator raised StopIteration")]
            )
    elif i.arg == 5:
        frame.push(frame.tx.unary("pos", frame.pop()))
    elif i.arg == 6:
        frame.push(TupleVariable(frame.tx.unpack(frame.pop())))
    else:
        raise break_trace("unsupported_bytecode", f"CALL_INTRINSIC_1 {i.arg}")


# Jumps ---------------------------------------------------------------------------------------


def _target(i: Instruction) -> Instruction:
    assert i.target is not None
    return i.target


@handler("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")
def jump(frame: SymbolicFrame, i: Instruction) -> None:
    frame.jump(_target(i))


@handler("POP_JUMP_FORWARD_IF_TRUE", "POP_JUMP_BACKWARD_IF_TRUE", "POP_JUMP_IF_TRUE")
def pop_jump_if_true(frame: SymbolicFrame, i: Instruction) -> None:
    if frame.tx.truth(frame.stack.pop()):
        frame.jump(_target(i))


@handler("POP_JUMP_FORWARD_IF_FALSE", "POP_JUMP_BACKWARD_IF_FALSE", "POP_JUMP_IF_FALSE")
def pop_jump_if_false(frame: SymbolicFrame, i: Instruction) -> None:
    if not frame.tx.truth(frame.stack.pop()):
        frame.jump(_target(i))


def _is_none(frame: SymbolicFrame) -> bool:
    value = frame.pop()
    return isinstance(value, Constant) and value.value is None


@handler("POP_JUMP_FORWARD_IF_NONE", "POP_JUMP_BACKWARD_IF_NONE", "POP_JUMP_IF_NONE")
def pop_jump_if_none(frame: SymbolicFrame, i: Instruction) -> None:
    if _is_none(frame):
        frame.jump(_target(i))


@handler("POP_JUMP_FORWARD_IF_NOT_NONE", "POP_JUMP_BACKWARD_IF_NOT_NONE", "POP_JUMP_IF_NOT_NONE")
def pop_jump_if_not_none(frame: SymbolicFrame, i: Instruction) -> None:
    if not _is_none(frame):
        frame.jump(_target(i))


@handler("JUMP_IF_TRUE_OR_POP")
def jump_if_true_or_pop(frame: SymbolicFrame, i: Instruction) -> None:
    if frame.tx.truth(frame.stack[-1]):
        frame.jump(_target(i))
    else:
        frame.stack.pop()


@handler("JUMP_IF_FALSE_OR_POP")
def jump_if_false_or_pop(frame: SymbolicFrame, i: Instruction) -> None:
    if frame.tx.truth(frame.stack[-1]):
        frame.stack.pop()
    else:
        frame.jump(_target(i))


@handler("RETURN_VALUE")
def return_value(frame: SymbolicFrame, i: Instruction) -> Variable:
    frame.yielded = False
    return frame.stack.pop()


@handler("RETURN_CONST")
def return_const(frame: SymbolicFrame, i: Instruction) -> Variable:
    frame.yielded = False
    return frame.tx.constant(i.argval)


# Iteration -----------------------------------------------------------------------------------


@handler("GET_ITER")
def get_iter(frame: SymbolicFrame, i: Instruction) -> None:
    frame.push(frame.pop().iterate(frame.tx))


@handler("FOR_ITER")
def for_iter(frame: SymbolicFrame, i: Instruction) -> None:
    iterator = frame.tx.realize(frame.stack[-1])
    if not isinstance(iterator, Iterator):
        iterator = iterator.iterate(frame.tx)
    item = iterator.next_item(frame.tx)
    if item is None:
        frame.stack.pop()
        frame.pc = _target(i).index + _FOR_END
    else:
        frame.push(item)


@handler("END_FOR")
def end_for(frame: SymbolicFrame, i: Instruction) -> None:
    frame.stack.pop()


@handler("END_SEND")
def end_send(frame: SymbolicFrame, i: Instruction) -> None:
    del frame.stack[-2]


@handler("RETURN_GENERATOR")
def return_generator(frame: SymbolicFrame, i: Instruction) -> None:
    if frame is frame.tx.root:
        raise break_trace("generator", "a generator function as the compiled function")
    frame.push(Constant(None))  # what the first resumption sends


@handler("YIELD_VALUE")
def yield_value(frame: SymbolicFrame, i: Instruction) -> Variable:
    frame.yielded = True
    return frame.stack.pop()


@handler("GET_YIELD_FROM_ITER")
def get_yield_from_iter(frame: SymbolicFrame, i: Instruction) -> None:
    frame.push(frame.pop().iterate(frame.tx))


@handler("SEND")
def send(frame: SymbolicFrame, i: Instruction) -> None:
    value = frame.pop()
    iterator = frame.tx.realize(frame.stack[-1])
    if isinstance(iterator, GeneratorVariable):
        found = iterator.send(frame.tx, value)
        result = iterator.value
    elif isinstance(iterator, Iterator):
        found, result = iterator.next_item(frame.tx), Constant(None)
    else:
        unknown(f"yield from {iterator.describe()}")
    if found is not None:
        frame.push(found)
        return
    if not table.FOR_END:  # 3.11: the iterator goes; later versions have END_SEND for that
        frame.stack.pop()
    frame.push(result)
    frame.jump(_target(i))


# With ----------------------------------------------------------------------------------------


@handler("BEFORE_WITH")
def before_with(frame: SymbolicFrame, i: Instruction) -> None:
    tx = frame.tx
    manager = frame.pop()
    if not isinstance(manager, ObjectVariable):
        unknown(f"with {manager.describe()}")
    leave = manager.special(tx, "__exit__")
    enter = manager.special(tx, "__enter__")
    if leave is None or enter is None:
        missing = "enter" if enter is None else "exit"
        tx.raise_(
            TypeError,
            f"'{manager.cls.__name__}' object does not support the context manager protocol"
            + (f" (missed __{missing}__ method)" if missing == "exit" else ""),
        )
    frame.push(leave)
    frame.push(enter.call(tx, [], {}))


@handler("WITH_EXCEPT_START")
def with_except_start(frame: SymbolicFrame, i: Instruction) -> None:
    # Stack: exit function, index of the raising instruction, earlier exception, exception.
    tx = frame.tx
    error = frame.stack[-1]
    leave = tx.realize(frame.stack[-4])
    assert isinstance(error, ExceptionVariable)
    frame.push(leave.call(tx, [tx.from_raw(error.cls), error, Constant(None)], {}))


# Exceptions ----------------------------------------------------------------------------------


@handler("PUSH_EXC_INFO")
def push_exc_info(frame: SymbolicFrame, i: Instruction) -> None:
    error = frame.stack.pop()
    frame.push(frame.exceptions[-1] if frame.exceptions else Constant(None))
    frame.push(error)
    frame.exceptions.append(error)


@handler("POP_EXCEPT")
def pop_except(frame: SymbolicFrame, i: Instruction) -> None:
    frame.stack.pop()
    if frame.exceptions:
        frame.exceptions.pop()


@handler("CHECK_EXC_MATCH")
def check_exc_match(frame: SymbolicFrame, i: Instruction) -> None:
    wanted = frame.tx.raw(frame.pop())
    error = frame.stack[-1]
    assert isinstance(error, ExceptionVariable)
    for kind in wanted if isinstance(wanted, tuple) else (wanted,):
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            frame.tx.raise_(
                TypeError, "catching classes that do not inherit from BaseException is not allowed"
            )
    frame.push(Constant(issubclass(error.cls, wanted)))


@handler("RERAISE", "CLEANUP_THROW")
def reraise(frame: SymbolicFrame, i: Instruction) -> None:
    # CLEANUP_THROW: at `yield from` of a generator that is closed, so that it is no StopIteration.
    error = frame.stack.pop()
    if isinstance(error, ExceptionVariable):
        raise Raised(error)
    unknown("an exception of unknown origin")


@handler("RAISE_VARARGS")
def raise_varargs(frame: SymbolicFrame, i: Instruction) -> None:
    count = i.arg or 0
    if count == 0:
        if not frame.exceptions:
            frame.tx.raise_(RuntimeError, "No active exception to reraise")
        raise Raised(frame.exceptions[-1])
    cause = frame.pop() if count == 2 else None
    error = frame.pop()
    if isinstance(error, ClassVariable):
        error = error.call(frame.tx, [], {})
    if not isinstance(error, ExceptionVariable):
        raise break_trace("raises", error.describe())
    if cause is not None:
        error.overlay["__cause__"] = cause
    raise Raised(error)


@handler("LOAD_ASSERTION_ERROR")
def load_assertion_error(frame: SymbolicFrame, i: Instruction) -> None:
    frame.push(frame.tx.from_raw(AssertionError))


@handler("LOAD_COMMON_CONSTANT")
def load_common_constant(frame: SymbolicFrame, i: Instruction) -> None:
    found: Any = (AssertionError, NotImplementedError, tuple, all, any)[i.arg or 0]
    frame.push(frame.tx.from_raw(found))


# Imports -------------------------------------------------------------------------------------


@handler("IMPORT_NAME")
def import_name(frame: SymbolicFrame, i: Instruction) -> None:
    names = frame.tx.raw(frame.pop())
    level = frame.tx.raw(frame.pop())
    frame.push(frame.tx.import_module(frame, i.argval, names, level))


@handler("IMPORT_FROM")
def import_from(frame: SymbolicFrame, i: Instruction) -> None:
    module = frame.tx.realize(frame.stack[-1])
    frame.push(module.getattr(frame.tx, i.argval))
