"""CPython bytecode of 3.11, 3.12 and 3.13 as a list of instructions that can be read, changed and written again."""

from argand_dynamo.bytecode.analysis import (
    Block,
    Flow,
    analyse,
    block_stack,
    live_locals,
    reachable,
    stack_depths,
)
from argand_dynamo.bytecode.assemble import assemble
from argand_dynamo.bytecode.instructions import Handler, Instruction, disassemble, slot_names

__all__ = [
    "Block",
    "Flow",
    "Handler",
    "Instruction",
    "analyse",
    "assemble",
    "block_stack",
    "disassemble",
    "live_locals",
    "reachable",
    "slot_names",
    "stack_depths",
]
