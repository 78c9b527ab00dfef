"""`SymbolicFrame`: runs a function's bytecode on variables. One handler an opcode, all versions in one table (opcodes.py, opcodes_control.py)."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from argand_dynamo.bytecode import Instruction, disassemble
from argand_dynamo.caches import clears
from argand_dynamo.exceptions import BreakTrace, Raised, break_trace
from argand_dynamo.variables.base import Variable
from argand_dynamo.variables.constant import Constant
from argand_dynamo.variables.functions import CellVariable, FunctionVariable, GeneratorVariable

if TYPE_CHECKING:
    from argand_dynamo.tracer import Tracer

__all__ = ["HANDLERS", "NULL", "StopTrace", "SymbolicFrame", "drop", "handler"]

Handler = Callable[["SymbolicFrame", Instruction], Variable | None]
HANDLERS: dict[str, Handler] = {}


class _Null(Variable):
    """An empty stack slot."""

    __slots__ = ()

    def describe(self) -> str:
        return "NULL"


NULL = _Null()


class StopTrace(Exception):
    """The outermost frame has come to the instruction before which tracing is to stop."""


def handler(*names: str) -> Callable[[Handler], Handler]:
    """Register the handler of opcodes. It returns a variable exactly if the frame returns or yields it."""

    def register(function: Handler) -> Handler:
        for name in names:
            HANDLERS[name] = function
        return function

    return register


class Program:
    """A code object made ready: instructions with their handlers."""

    __slots__ = ("cell_names", "code", "instructions", "steps")

    def __init__(self, code: types.CodeType) -> None:
        self.code = code
        self.instructions = disassemble(code)
        self.cell_names = frozenset(code.co_cellvars)
        self.steps = [(HANDLERS.get(i.opname, _unsupported), i) for i in self.instructions]


@functools.lru_cache(maxsize=1024)
def _program(code_id: int, code: types.CodeType) -> Program:
    # Equal code objects of different functions may differ in their lines, hence the id.
    return Program(code)


clears.append(_program.cache_clear)


def program_of(code: types.CodeType) -> Program:
    """The program of a code object; the last thousand are kept."""
    return _program(id(code), code)


def _unsupported(frame: SymbolicFrame, instruction: Instruction) -> Variable | None:
    raise break_trace("unsupported_bytecode", instruction.opname)


def drop(frame: SymbolicFrame) -> None:
    """The last item goes from the operand stack; a generator that it alone holds is closed."""
    if isinstance(frame.stack[-1], GeneratorVariable):
        # not by a name, which would hold it too
        frame.tx.drop_generator(cast(GeneratorVariable, frame.stack.pop()))
    else:
        frame.stack.pop()


class SymbolicFrame:
    """One frame of the traced program.

    Attributes:
        stack: the operand stack.
        locals: variables by name, other than cells.
        cells: the cells by name, own and free ones.
        current: the instruction that is being run.
        exceptions: exceptions being handled, innermost last.
        yielded: whether the value that `run` returned last was yielded.
    """

    __slots__ = (
        "cells",
        "code",
        "current",
        "exceptions",
        "function",
        "globals",
        "keyword_names",
        "locals",
        "pc",
        "program",
        "stack",
        "tx",
        "yielded",
    )

    def __init__(self, tx: Tracer, function: FunctionVariable, local: dict[str, Variable]) -> None:
        self.tx = tx
        self.function = function
        self.code = function.code
        self.globals = function.globals
        self.locals = local
        self.stack: list[Variable] = []
        self.cells: dict[str, CellVariable] = dict(
            zip(function.code.co_freevars, function.closure, strict=True)
        )
        self.program = program_of(function.code)
        self.pc = 0
        self.current: Instruction = self.program.instructions[0]
        self.exceptions: list[Variable] = []
        self.yielded = False

    @property
    def location(self) -> tuple[str, int, str]:
        """File, line and function of the current instruction."""
        line = self.current.line
        return (
            self.code.co_filename,
            self.code.co_firstlineno if line is None else line,
            self.code.co_qualname,
        )

    def push(self, variable: Variable) -> None:
        """Onto the operand stack."""
        self.stack.append(variable)

    def pop(self) -> Variable:
        """From the operand stack, looked at."""
        return self.tx.realize(self.stack.pop())

    def popn(self, n: int) -> list[Variable]:
        """The last n, in their order, as they are."""
        if n == 0:
            return []
        found = self.stack[-n:]
        del self.stack[-n:]
        return found

    def jump(self, instruction: Instruction) -> None:
        """Go on there."""
        if instruction.index < self.pc:
            self.tx.count_jump()
        self.pc = instruction.index

    def run(self) -> Variable:
        """To the next return or yield; what the program raises out of the frame comes out as `Raised`."""
        steps = self.program.steps
        while True:
            function, instruction = steps[self.pc]
            self.pc += 1
            self.current = instruction
            try:
                result = function(self, instruction)
            except Raised as raised:
                self.unwind(instruction, raised)
                continue
            except BreakTrace as stop:
                stop.stack.append(self.location)
                raise
            if result is not None:
                return result

    def unwind(self, instruction: Instruction, raised: Raised) -> None:
        """Go to the handler of an exception, or leave the frame."""
        target = instruction.handler
        if target is None:
            raised.stack.append(self.location)
            raise raised
        while len(self.stack) > target.depth:
            drop(self)
        if target.lasti:
            self.push(Constant(instruction.index))
        self.push(raised.variable)
        self.pc = target.target.index


class RootFrame(SymbolicFrame):
    """The frame that is compiled. Counts its steps, so that a second run can stop before any of them."""

    __slots__ = ("raised", "step", "stop_at")

    def __init__(
        self,
        tx: Tracer,
        function: FunctionVariable,
        local: dict[str, Variable],
        stop_at: int | None,
    ) -> None:
        super().__init__(tx, function, local)
        self.step = 0
        self.stop_at = stop_at
        # Where each exception came up first; the variables are kept so that their ids stay theirs.
        self.raised: dict[int, tuple[Variable, int, Instruction]] = {}

    def run(self) -> Variable:
        steps = self.program.steps
        while True:
            function, instruction = steps[self.pc]
            if self.step == self.stop_at:
                self.current = instruction
                raise StopTrace
            self.step += 1
            self.pc += 1
            self.current = instruction
            try:
                result = function(self, instruction)
            except Raised as raised:
                _, step, place = self.raised.setdefault(
                    id(raised.variable), (raised.variable, self.step, instruction)
                )
                if instruction.handler is None:
                    # Python runs what raised, so that the traceback has its line, not that of a cleanup.
                    self.step, self.current = step, place
                    stop = break_trace("raises", raised.variable.describe())
                    stop.stack += [*raised.stack, self.location]
                    raise stop from None
                self.unwind(instruction, raised)
                continue
            except BreakTrace as stop:
                stop.stack.append(self.location)
                raise
            if result is not None:
                return result
