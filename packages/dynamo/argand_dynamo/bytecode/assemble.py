"""Writing instructions as a code object: argument indices, jumps, caches, exception table, line table, size of the stack."""

from __future__ import annotations

import opcode
from types import CodeType
from typing import Any

from argand_dynamo.bytecode.analysis import stack_depths
from argand_dynamo.bytecode.instructions import (
    BINARY_OPERATORS,
    GENERATOR_FLAGS,
    Handler,
    Instruction,
    Positions,
    slot_names,
)
from argand_dynamo.bytecode.table import table

_OPS = opcode.opmap
_HAS_NAME = frozenset(opcode.opname[c] for c in opcode.hasname if c < 256)
_HAS_CONST = frozenset(opcode.opname[c] for c in opcode.hasconst if c < 256)
_HAS_SLOT = frozenset(opcode.opname[c] for c in (*opcode.haslocal, *opcode.hasfree) if c < 256) | {
    "LOAD_CLOSURE"
}
_BINARY = {operator: index for index, operator in enumerate(BINARY_OPERATORS)}


class _Unit:
    """A machine instruction to be written: opcode, argument or target, cache entries behind it."""

    __slots__ = ("arg", "caches", "extended", "op", "source", "target", "where")

    def __init__(
        self, name: str, arg: int, source: Instruction, target: Instruction | None = None
    ) -> None:
        self.op = _OPS[name]
        self.arg = arg
        self.target = target
        self.caches = table.CACHES.get(name, 0)
        self.source = source
        self.extended = 0
        self.where = 0


class _Tables:
    """The constants and names of the code object being written; those of the template keep their places."""

    def __init__(self, template: CodeType, slots: list[str]) -> None:
        self.consts: list[Any] = list(template.co_consts)
        self.names: dict[str, int] = {name: i for i, name in enumerate(template.co_names)}
        self.slots: dict[str, int] = {name: i for i, name in enumerate(slots)}
        self._const_of: dict[int, int] = {id(c): i for i, c in reversed([*enumerate(self.consts)])}

    def const(self, value: Any) -> int:
        place = self._const_of.get(id(value))
        if place is None:
            place = self._const_of[id(value)] = len(self.consts)
            self.consts.append(value)
        return place

    def name(self, name: str) -> int:
        return self.names.setdefault(name, len(self.names))

    def slot(self, name: str) -> int:
        return self.slots[name]


def _units(instruction: Instruction, tables: _Tables) -> list[_Unit]:
    name, arg, value = instruction.opname, instruction.arg or 0, instruction.argval
    if instruction.target is not None:
        return [_Unit(name, 0, instruction, instruction.target)]
    if name in _HAS_SLOT:
        written = "LOAD_FAST" if name == "LOAD_CLOSURE" and not table.HAS_LOAD_CLOSURE else name
        return [_Unit(written, tables.slot(value), instruction)]
    if name in _HAS_CONST:
        return [_Unit(name, tables.const(value), instruction)]
    if name in _HAS_NAME:
        bits = table.FLAG_BITS.get(name, 0)
        return [_Unit(name, tables.name(value) << bits | arg & ((1 << bits) - 1), instruction)]
    if name == "CALL":
        return _call_units(instruction, tables)
    if name == "BINARY_OP":
        arg = _BINARY[value]
    elif name == "COMPARE_OP" and table.COMPARE_SHIFT == 0:
        arg = table.COMPARE_OPERATORS.index(value)
    return [_Unit(name, arg, instruction)]


def _call_units(instruction: Instruction, tables: _Tables) -> list[_Unit]:
    count, names = instruction.arg or 0, instruction.argval
    if names and not table.HAS_KW_NAMES:
        return [
            _Unit("LOAD_CONST", tables.const(names), instruction),
            _Unit("CALL_KW", count, instruction),
        ]
    units = [_Unit("KW_NAMES", tables.const(names), instruction)] if names else []
    if table.HAS_PRECALL:
        units.append(_Unit("PRECALL", count, instruction))
    return [*units, _Unit("CALL", count, instruction)]


def _flip(unit: _Unit, backward: bool) -> None:
    """Give a jump the opcode of its direction."""
    name = opcode.opname[unit.op]
    if name == "JUMP_FORWARD" and backward:
        wanted = "JUMP_BACKWARD"
    elif name == "JUMP_BACKWARD" and not backward:
        wanted = "JUMP_FORWARD"
    elif table.BACKWARD_CONDITIONS and name.startswith("POP_JUMP"):
        wanted = (
            name.replace("FORWARD", "BACKWARD") if backward else name.replace("BACKWARD", "FORWARD")
        )
    else:
        wanted = name
    unit.op, unit.caches = _OPS[wanted], table.CACHES.get(wanted, 0)
    if backward and "BACKWARD" not in wanted:
        raise ValueError(f"assemble: {name} cannot jump backward in this version of Python")


def _place(units: list[_Unit], first: dict[int, _Unit], order: dict[int, int]) -> int:
    """Fix places, directions and arguments of jumps; returns the length in code units."""
    for unit in units:
        if unit.target is not None:
            _flip(unit, order[id(unit.target)] <= order[id(unit.source)])
    changed = True
    size = 0
    while changed:
        changed, size = False, 0
        for unit in units:
            unit.where = size
            size += unit.extended + 1 + unit.caches
        for unit in units:
            if unit.target is not None:
                end = unit.where + unit.extended + 1 + unit.caches
                unit.arg = abs(first[id(unit.target)].where - end)
            needed = (unit.arg.bit_length() + 7) // 8 - 1 if unit.arg > 255 else 0
            if needed > unit.extended:
                unit.extended, changed = needed, True
    return size


def _code_bytes(units: list[_Unit]) -> bytes:
    out = bytearray()
    for unit in units:
        for shift in range(unit.extended, 0, -1):
            out += bytes((opcode.EXTENDED_ARG, unit.arg >> (8 * shift) & 255))
        out += bytes((unit.op, unit.arg & 255))
        out += bytes(2 * unit.caches)
    return bytes(out)


def _big_endian(out: bytearray, value: int, mark: int = 0) -> None:
    chunks = [value & 63]
    while value := value >> 6:
        chunks.append(value & 63)
    chunks.reverse()
    for chunk in chunks[:-1]:
        out.append(chunk | 64 | mark)
        mark = 0
    out.append(chunks[-1] | mark)


def _exception_table(units: list[_Unit], first: dict[int, _Unit], size: int) -> bytes:
    out = bytearray()
    start, current = 0, None

    def close(end: int) -> None:
        if isinstance(current, Handler):
            _big_endian(out, start, 128)
            _big_endian(out, end - start)
            _big_endian(out, first[id(current.target)].where)
            _big_endian(out, current.depth << 1 | current.lasti)

    for unit in units:
        if unit.source.handler is not current:
            close(unit.where)
            start, current = unit.where, unit.source.handler
    close(size)
    return bytes(out)


def _varint(out: bytearray, value: int) -> None:
    while value >= 64:
        out.append(value & 63 | 64)
        value >>= 6
    out.append(value)


def _location(out: bytearray, length: int, positions: Positions, last_line: int) -> int:
    """Append one entry of the line table (`Objects/locations.md` of CPython); returns the line of the next entry's difference."""
    line, end_line, column, end_column = positions
    if line is None:
        out.append(0x80 | 15 << 3 | length - 1)
        return last_line
    delta = line - last_line
    zigzag = -delta << 1 | 1 if delta < 0 else delta << 1
    if end_line is None or column is None or end_column is None:
        out.append(0x80 | 13 << 3 | length - 1)
        _varint(out, zigzag)
    elif end_line == line and delta == 0 and column < 80 and 0 <= end_column - column < 16:
        out += bytes(
            (0x80 | (column >> 3) << 3 | length - 1, (column & 7) << 4 | end_column - column)
        )
    elif end_line == line and 0 <= delta < 3 and column < 128 and end_column < 128:
        out += bytes((0x80 | (10 + delta) << 3 | length - 1, column, end_column))
    else:
        out.append(0x80 | 14 << 3 | length - 1)
        _varint(out, zigzag)
        for part in (end_line - line, column + 1, end_column + 1):
            _varint(out, part)
    return line


def _line_table(units: list[_Unit], first_line: int) -> bytes:
    out, line = bytearray(), first_line
    run, positions = 0, None
    for unit in units:
        if unit.source.positions is not positions:
            line = _locations(out, run, positions, line)
            run, positions = 0, unit.source.positions
        run += unit.extended + 1 + unit.caches
    _locations(out, run, positions, line)
    return bytes(out)


def _locations(out: bytearray, run: int, positions: Positions | None, line: int) -> int:
    while run > 0 and positions is not None:
        line = _location(out, min(run, 8), positions, line)
        run -= 8
    return line


def assemble(instructions: list[Instruction], template: CodeType, **changes: Any) -> CodeType:
    """A code object with these instructions.

    Args:
        instructions: every target of a jump or handler is among them; a jump's direction is set here.
        template: whose other parts are kept; its constants and names keep their places, new ones come behind.
        changes: as of `CodeType.replace`; co_varnames, co_cellvars and co_freevars decide the slots.

    Raises:
        ValueError: an instruction cannot be written in this version (a conditional jump backward in 3.12 and later).
    """
    if {"co_varnames", "co_cellvars", "co_freevars"} & changes.keys():
        local = list(changes.get("co_varnames", template.co_varnames))
        slots = [
            *local,
            *(c for c in changes.get("co_cellvars", template.co_cellvars) if c not in local),
            *changes.get("co_freevars", template.co_freevars),
        ]
        changes["co_nlocals"] = len(local)
    else:
        slots = slot_names(template)
    tables = _Tables(template, slots)
    order = {id(instruction): index for index, instruction in enumerate(instructions)}
    units: list[_Unit] = []
    first: dict[int, _Unit] = {}
    for instruction in instructions:
        made = _units(instruction, tables)
        first[id(instruction)] = made[0]
        units += made
    size = _place(units, first, order)
    flags = changes.get("co_flags", template.co_flags)
    start = table.GENERATOR_START if flags & GENERATOR_FLAGS else 0
    first_line = changes.get("co_firstlineno", template.co_firstlineno)
    return template.replace(
        co_code=_code_bytes(units),
        co_consts=tuple(tables.consts),
        co_names=tuple(tables.names),
        co_stacksize=stack_depths(instructions, start)[1],
        co_linetable=_line_table(units, first_line),
        co_exceptiontable=_exception_table(units, first, size),
        **changes,
    )
