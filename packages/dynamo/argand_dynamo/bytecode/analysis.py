"""Facts about a list of instructions: depth of the stack, live variables, open blocks, what can be reached."""

from __future__ import annotations

import opcode
from _opcode import stack_effect
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Literal

from argand_dynamo.bytecode.instructions import Handler, Instruction, disassemble
from argand_dynamo.bytecode.table import table
from argand_dynamo.caches import clears

_END = frozenset(
    ("RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE", "JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")
)  # fmt: skip
_READS = frozenset(
    ("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_AND_CLEAR", "DELETE_FAST", "LOAD_CLOSURE", "LOAD_DEREF", "STORE_DEREF", "DELETE_DEREF", "LOAD_CLASSDEREF",
     "LOAD_FROM_DICT_OR_DEREF")
)  # fmt: skip
_WRITES = frozenset(("STORE_FAST", "DELETE_FAST", "LOAD_FAST_AND_CLEAR"))


def effect(instruction: Instruction, jump: bool) -> int:
    """By how much the stack grows, if the instruction jumps or if it does not."""
    name = instruction.opname
    if name == "CALL":
        return -1 - (instruction.arg or 0)
    if name == "LOAD_CLOSURE":
        return 1
    op = opcode.opmap[name]
    arg = (instruction.arg or 0) if op >= opcode.HAVE_ARGUMENT else None
    return int(stack_effect(op, arg, jump=jump))


def falls_through(instruction: Instruction) -> bool:
    """Whether the next instruction can run after it."""
    return instruction.opname not in _END


def stack_depths(instructions: list[Instruction], start: int = 0) -> tuple[list[int], int]:
    """The depth before each instruction (-1: not reached), and the greatest depth."""
    order = {id(instruction): index for index, instruction in enumerate(instructions)}
    depths = [-1] * len(instructions)
    greatest = max(start, 1)
    work = [(0, start)]
    while work:
        index, depth = work.pop()
        while index < len(instructions) and depths[index] < 0:
            depths[index] = depth
            instruction = instructions[index]
            handler = instruction.handler
            if handler is not None and depths[order[id(handler.target)]] < 0:
                work.append((order[id(handler.target)], handler.depth + handler.lasti + 1))
            if instruction.target is not None:
                jumped = depth + effect(instruction, True)
                greatest = max(greatest, jumped)
                work.append((order[id(instruction.target)], jumped))
            # CALL_KW has its names on the stack.
            named = (
                instruction.opname == "CALL" and not table.HAS_KW_NAMES and bool(instruction.argval)
            )
            greatest = max(greatest, depth + named)
            if instruction.opname in _END:
                break
            depth += effect(instruction, False)
            greatest = max(greatest, depth)
            index += 1
    return depths, greatest


def reachable(instructions: list[Instruction], start: Instruction) -> set[Instruction]:
    """What can run from an instruction on, handlers included."""
    order = {id(instruction): index for index, instruction in enumerate(instructions)}
    found: set[Instruction] = set()
    work = [start]
    while work:
        index = order[id(work.pop())]
        while index < len(instructions) and instructions[index] not in found:
            instruction = instructions[index]
            found.add(instruction)
            if instruction.handler is not None:
                work.append(instruction.handler.target)
            if instruction.target is not None:
                work.append(instruction.target)
            if instruction.opname in _END:
                break
            index += 1
    return found


class Flow:
    """What is known of a code object, found when first asked for."""

    def __init__(self, instructions: list[Instruction]) -> None:
        self.instructions = instructions
        self._live: list[int] | None = None
        self._names: list[str] = []
        self._depths: list[int] | None = None
        self._handling: list[int] | None = None

    def live(self, index: int) -> set[str]:
        """Names of locals and cells whose value may be read from this instruction on."""
        if self._live is None:
            self._live = self._solve_live()
        mask = self._live[index]
        return {name for bit, name in enumerate(self._names) if mask >> bit & 1}

    def depth(self, index: int) -> int:
        """Depth of the stack before an instruction; -1 if it is never reached."""
        if self._depths is None:
            self._depths = stack_depths(self.instructions)[0]
        return self._depths[index]

    def handling(self, index: int) -> int:
        """How many exceptions are being handled (`except` and `finally` bodies around) before an instruction."""
        if self._handling is None:
            self._handling = self._solve_handling()
        return self._handling[index]

    def _solve_live(self) -> list[int]:
        bits: dict[str, int] = {}
        reads, keeps, targets, handlers = [], [], [], []
        for instruction in self.instructions:
            name = instruction.opname
            bit = 0
            if name in _READS or name in _WRITES:
                bit = 1 << bits.setdefault(instruction.argval, len(bits))
            reads.append(bit if name in _READS else 0)
            keeps.append(~bit if name in _WRITES else -1)
            targets.append(-1 if instruction.target is None else instruction.target.index)
            handlers.append(-1 if instruction.handler is None else instruction.handler.target.index)
        self._names = list(bits)
        falls = [falls_through(i) for i in self.instructions]
        live = [0] * (len(falls) + 1)
        changed = True
        while changed:
            changed = False
            for index in range(len(falls) - 1, -1, -1):
                after = live[index + 1] if falls[index] else 0
                if targets[index] >= 0:
                    after |= live[targets[index]]
                before = reads[index] | after & keeps[index]
                if handlers[index] >= 0:
                    before |= live[handlers[index]]
                if before != live[index]:
                    live[index], changed = before, True
        return live

    def _solve_handling(self) -> list[int]:
        # Where in the stack the exceptions being handled lie; every way to an instruction agrees.
        places: list[tuple[int, ...] | None] = [None] * len(self.instructions)
        work: list[tuple[int, tuple[int, ...]]] = [(0, ())]
        while work:
            index, held = work.pop()
            while index < len(places) and places[index] is None:
                places[index] = held
                instruction = self.instructions[index]
                if (handler := instruction.handler) is not None:
                    work.append(
                        (handler.target.index, tuple([p for p in held if p < handler.depth]))
                    )
                if instruction.opname == "PUSH_EXC_INFO":
                    held = (*held, self.depth(index) - 1)
                elif instruction.opname in ("POP_EXCEPT", "END_ASYNC_FOR"):
                    held = held[:-1]
                if instruction.target is not None:
                    work.append((instruction.target.index, held))
                if instruction.opname in _END:
                    break
                index += 1
        return [len(held or ()) for held in places]


@lru_cache(maxsize=256)
def _flow(code_id: int, code: CodeType) -> Flow:
    return Flow(disassemble(code))


clears.append(_flow.cache_clear)


def analyse(code: CodeType) -> Flow:
    """The instructions of a code object and what is known of them; the last few hundred are kept. Not to be changed by the caller."""
    return _flow(id(code), code)


def live_locals(instructions: list[Instruction], index: int) -> set[str]:
    """Names of locals and cells whose value may be read from `instructions[index]` on. For many questions about one code object use `analyse`."""
    return Flow(instructions).live(index)


@dataclass(frozen=True, slots=True)
class Block:
    """An open `with` or `try`.

    Attributes:
        kind: "with", or "try" for all others.
        handler: where its exceptions go; `handler.depth` items of the stack were there before it (for `with` the topmost of them is the exit function).
    """

    kind: Literal["with", "try"]
    handler: Handler


def block_stack(instructions: list[Instruction], index: int) -> list[Block]:
    """The blocks open at an instruction, outermost first."""
    found: list[Block] = []
    handler = instructions[index].handler
    seen: set[int] = set()
    while handler is not None and id(handler) not in seen:
        seen.add(id(handler))
        first = handler.target
        if first.opname == "PUSH_EXC_INFO":
            with_block = instructions[first.index + 1].opname == "WITH_EXCEPT_START"
            found.append(Block("with" if with_block else "try", handler))
        # A handler's body is guarded by its cleanup, and the cleanup by the block outside.
        handler = first.handler
    found.reverse()
    return found
