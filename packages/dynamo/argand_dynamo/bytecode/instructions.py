"""Instructions, and reading them from a code object.

What is read is normalised, so that all versions look alike:

* CACHE and EXTENDED_ARG are dropped, as is PRECALL; the names of keyword arguments (KW_NAMES, or the constant before CALL_KW) are `argval` of CALL, () without any;
* pairs (STORE_FAST_LOAD_FAST...) are split;
* jumps and exception handlers refer to instructions.

In 3.13 LOAD_FAST of a variable whose slot holds a cell pushes that cell (LOAD_CLOSURE does before). In 3.12 and later a comprehension's variable may be
a cell only within the comprehension (MAKE_CELL behind RESUME).
"""

from __future__ import annotations

import opcode
from bisect import bisect_left
from collections.abc import Iterator
from types import CodeType
from typing import Any

from argand_dynamo.bytecode.table import table

Positions = tuple[int | None, int | None, int | None, int | None]
NO_POSITIONS: Positions = (None, None, None, None)
BINARY_OPERATORS: tuple[str, ...] = tuple(
    entry[1]
    for entry in opcode._nb_ops  # type: ignore[attr-defined]
)


# Bits of co_flags (`inspect` takes long to load).
CO_OPTIMIZED, CO_NEWLOCALS, CO_VARARGS, CO_VARKEYWORDS = 1, 2, 4, 8
GENERATOR_FLAGS = 0x20 | 0x80 | 0x200  # generators, coroutines, asynchronous generators


class Handler:
    """Where an exception goes: the stack is cut to `depth`, the index of the instruction is pushed if `lasti`, then the exception."""

    __slots__ = ("depth", "lasti", "target")

    def __init__(self, target: Instruction, depth: int, lasti: bool) -> None:
        self.target = target
        self.depth = depth
        self.lasti = lasti


class Instruction:
    """One instruction; compared by identity.

    Attributes:
        opname: as in the `opcode` module of the running version.
        arg: the argument as read. Of it only flag bits (LOAD_GLOBAL, LOAD_ATTR, LOAD_SUPER_ATTR) and arguments of opcodes without `argval` or `target` are written again.
        argval: name (locals, cells, globals, attributes), constant, operator string (COMPARE_OP, BINARY_OP), tuple of keyword names (CALL).
        target: of a jump.
        positions: line, end line, column, end column (columns in UTF-8 bytes).
        handler: where its exceptions go, None: out of the frame.
        index: its place in the list that `disassemble` made.
    """

    __slots__ = ("arg", "argval", "handler", "index", "opname", "positions", "target")

    def __init__(
        self,
        opname: str,
        arg: int | None = None,
        argval: Any = None,
        target: Instruction | None = None,
        positions: Positions = NO_POSITIONS,
        handler: Handler | None = None,
        index: int = -1,
    ) -> None:
        self.opname = opname
        self.arg = arg
        self.argval = argval
        self.target = target
        self.positions = positions
        self.handler = handler
        self.index = index

    @property
    def line(self) -> int | None:
        """The user's line."""
        return self.positions[0]

    def copy(self) -> Instruction:
        """The same instruction, with the same target and handler."""
        return Instruction(
            self.opname, self.arg, self.argval, self.target, self.positions, self.handler
        )

    def __repr__(self) -> str:
        text = f"{self.index:4d} {self.opname}"
        if self.target is not None:
            text += f" -> {self.target.index}"
        elif self.argval is not None:
            text += f" {self.argval!r}"
        if self.arg is not None and self.target is None:
            text += f" ({self.arg})"
        return text


_PLAIN, _NAME, _CONST, _LOCAL, _FORWARD, _BACKWARD, _COMPARE, _BINARY, _PAIR = range(9)


def _kinds() -> tuple[list[int], list[int]]:
    kinds, caches = [_PLAIN] * 256, [0] * 256
    groups = (
        (_NAME, opcode.hasname),
        (_CONST, opcode.hasconst),
        (_LOCAL, (*opcode.haslocal, *opcode.hasfree)),
        (_FORWARD, opcode.hasjrel),
    )
    for kind, codes in groups:
        for code in codes:
            if code < 256:
                kinds[code] = kind
    for name, code in opcode.opmap.items():
        if code >= 256:
            continue
        caches[code] = table.CACHES.get(name, 0)
        if kinds[code] == _FORWARD and "BACKWARD" in name:
            kinds[code] = _BACKWARD
        elif name in table.PAIRS:
            kinds[code] = _PAIR
        elif name == "COMPARE_OP":
            kinds[code] = _COMPARE
        elif name == "BINARY_OP":
            kinds[code] = _BINARY
    return kinds, caches


_KINDS, _CACHES = _kinds()
_OPNAMES = list(opcode.opname[:256])
_EXTENDED_ARG = opcode.EXTENDED_ARG
_HAVE_ARGUMENT = opcode.HAVE_ARGUMENT
_FOLDED = tuple(opcode.opmap[n] for n in ("KW_NAMES", "PRECALL") if n in opcode.opmap)
_CALL = opcode.opmap["CALL"]
_CALL_KW = opcode.opmap.get("CALL_KW", -1)


def slot_names(code: CodeType) -> list[str]:
    """Names of the frame's slots in order: locals, cells that are no arguments, free variables."""
    count = len({*code.co_varnames, *code.co_cellvars}) + len(code.co_freevars)
    name_of = code._varname_from_oparg  # type: ignore[attr-defined]
    return [name_of(index) for index in range(count)]


def _value(kind: int, name: str, arg: int, code: CodeType, slots: list[str]) -> Any:
    if kind == _NAME:
        return code.co_names[arg >> table.FLAG_BITS.get(name, 0)]
    if kind == _CONST:
        return code.co_consts[arg]
    if kind == _LOCAL:
        return slots[arg]
    if kind == _COMPARE:
        return table.COMPARE_OPERATORS[arg >> table.COMPARE_SHIFT]
    if kind == _BINARY:
        return BINARY_OPERATORS[arg]
    return None


def _exception_entries(data: bytes) -> list[tuple[int, int, int, int, bool]]:
    """(start, end, target, depth, lasti) of a code's exception table, in code units."""
    found, numbers, value, position = [], [], 0, 0
    while position < len(data):
        byte = data[position]
        position += 1
        value = (value << 6) | (byte & 63)
        if byte & 64:
            continue
        numbers.append(value)
        value = 0
        if len(numbers) == 4:
            start, size, target, packed = numbers
            found.append((start, start + size, target, packed >> 1, bool(packed & 1)))
            numbers = []
    return found


def _decode(raw: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Of every instruction: the code unit that it begins at with its prefixes, the unit of its opcode, the opcode, the argument."""
    begin = unit = high = 0
    units = len(raw) // 2
    while unit < units:
        op, arg = raw[2 * unit], raw[2 * unit + 1] | high
        if op == _EXTENDED_ARG:
            high = arg << 8
            unit += 1
            continue
        yield begin, unit, op, arg
        begin = unit = unit + 1 + _CACHES[op]
        high = 0


def disassemble(code: CodeType) -> list[Instruction]:
    """The instructions of a code object, normalised (see the module)."""
    slots = slot_names(code)
    positions = list(code.co_positions())
    found: list[Instruction] = []
    at: dict[int, int] = {}  # code unit -> index of the instruction that begins there
    jumps: list[tuple[Instruction, int]] = []
    names: tuple[str, ...] = ()
    folded = -1  # where what is folded into the next instruction began
    for start, unit, op, arg in _decode(code.co_code):
        begin = start if folded < 0 else folded
        if op in _FOLDED:
            if _OPNAMES[op] == "KW_NAMES":
                names = code.co_consts[arg]
            folded = begin
            continue  # the call begins where its first part does
        folded = -1
        at[begin] = len(found)
        kind, name, place = _KINDS[op], _OPNAMES[op], positions[unit]
        if kind == _PAIR:
            for part, slot in zip(table.PAIRS[name], (arg >> 4, arg & 15), strict=True):
                found.append(Instruction(part, slot, slots[slot], None, place, None, len(found)))
            continue
        given = arg if op >= _HAVE_ARGUMENT else None
        instruction = Instruction(name, given, None, None, place, None, len(found))
        if kind == _FORWARD:
            jumps.append((instruction, unit + 1 + _CACHES[op] + arg))
        elif kind == _BACKWARD:
            jumps.append((instruction, unit + 1 + _CACHES[op] - arg))
        elif kind != _PLAIN:
            instruction.argval = _value(kind, name, arg, code, slots)
        elif op == _CALL:
            instruction.argval = names
            names = ()
        elif op == _CALL_KW:
            # The names are the constant pushed just before.
            load = found.pop()
            instruction.opname, instruction.argval = "CALL", load.argval
            instruction.index = load.index
            del at[begin]
        found.append(instruction)
    for instruction, target in jumps:
        instruction.target = found[at[target]]
    _attach_handlers(found, at, _exception_entries(code.co_exceptiontable))
    return found


def _attach_handlers(
    found: list[Instruction], at: dict[int, int], entries: list[tuple[int, int, int, int, bool]]
) -> None:
    if not entries:
        return
    begins = sorted(at)
    for start, end, target, depth, lasti in entries:
        handler = Handler(found[at[target]], depth, lasti)
        first, last = bisect_left(begins, start), bisect_left(begins, end)
        if first == last:
            continue
        stop = at[begins[last]] if last < len(begins) else len(found)
        for instruction in found[at[begins[first]] : stop]:
            instruction.handler = handler
