"""What is particular to CPython 3.13."""

from __future__ import annotations

# Inline cache entries (code units) after an instruction.
CACHES = {
    "LOAD_GLOBAL": 4, "BINARY_OP": 1, "UNPACK_SEQUENCE": 1, "COMPARE_OP": 1, "CONTAINS_OP": 1, "BINARY_SUBSCR": 1, "FOR_ITER": 1,
    "LOAD_SUPER_ATTR": 1, "LOAD_ATTR": 9, "STORE_ATTR": 4, "CALL": 3, "STORE_SUBSCR": 1, "SEND": 1, "JUMP_BACKWARD": 1, "TO_BOOL": 3,
    "POP_JUMP_IF_TRUE": 1, "POP_JUMP_IF_FALSE": 1, "POP_JUMP_IF_NONE": 1, "POP_JUMP_IF_NOT_NONE": 1,
}  # fmt: skip
# Low bits of `arg` that are flags, below the index of the name.
FLAG_BITS = {"LOAD_GLOBAL": 1, "LOAD_ATTR": 1, "LOAD_SUPER_ATTR": 2}
COMPARE_SHIFT = 5
COMPARE_OPERATORS = ("<", "<=", "==", "!=", ">", ">=")
# Instructions that are two: the first local is in the high four bits of `arg`.
PAIRS = {
    "LOAD_FAST_LOAD_FAST": ("LOAD_FAST", "LOAD_FAST"),
    "STORE_FAST_LOAD_FAST": ("STORE_FAST", "LOAD_FAST"),
    "STORE_FAST_STORE_FAST": ("STORE_FAST", "STORE_FAST"),
}
# `CALL` with names is written as LOAD_CONST names, CALL_KW.
HAS_PRECALL = False
HAS_KW_NAMES = False
# The callable of a call lies below the empty slot.
NULL_FIRST = False
# Cells are loaded by LOAD_FAST.
HAS_LOAD_CLOSURE = False
# Depth of the stack at the first instruction of a generator.
GENERATOR_START = 0
# Parts of a new function are set afterwards, one SET_FUNCTION_ATTRIBUTE each.
FUNCTION_ATTRIBUTES = True
# Conditional jumps go forward only.
BACKWARD_CONDITIONS = False
# What the end of a `for` loop skips: FOR_ITER pops the iterator and jumps behind these, which stand at its target.
FOR_END = ("END_FOR", "POP_TOP")
# Instructions that take nothing but True and False; TO_BOOL stands before them.
ONLY_BOOL: frozenset[str] = frozenset(("POP_JUMP_IF_FALSE", "POP_JUMP_IF_TRUE", "UNARY_NOT"))
