"""What is particular to CPython 3.12."""

from __future__ import annotations

# Inline cache entries (code units) after an instruction.
CACHES = {
    "BINARY_SUBSCR": 1, "STORE_SUBSCR": 1, "UNPACK_SEQUENCE": 1, "FOR_ITER": 1, "STORE_ATTR": 4, "LOAD_ATTR": 9, "COMPARE_OP": 1,
    "LOAD_GLOBAL": 4, "BINARY_OP": 1, "SEND": 1, "LOAD_SUPER_ATTR": 1, "CALL": 3,
}  # fmt: skip
# Low bits of `arg` that are flags, below the index of the name.
FLAG_BITS = {"LOAD_GLOBAL": 1, "LOAD_ATTR": 1, "LOAD_SUPER_ATTR": 2}
COMPARE_SHIFT = 4
COMPARE_OPERATORS = ("<", "<=", "==", "!=", ">", ">=")
# Instructions that are two, as in "STORE_FAST_LOAD_FAST": none.
PAIRS: dict[str, tuple[str, str]] = {}
# `CALL` is written as KW_NAMES (if there are names), CALL.
HAS_PRECALL = False
HAS_KW_NAMES = True
# The callable of a call lies above the empty slot.
NULL_FIRST = True
# Cells are loaded by an instruction of their own.
HAS_LOAD_CLOSURE = True
# Depth of the stack at the first instruction of a generator.
GENERATOR_START = 1
# Parts of a new function are below its code, chosen by bits of MAKE_FUNCTION.
FUNCTION_ATTRIBUTES = False
# Conditional jumps go forward only.
BACKWARD_CONDITIONS = False
# What the end of a `for` loop skips: FOR_ITER pops the iterator and jumps behind these, which stand at its target.
FOR_END = ("END_FOR",)
# Instructions that take nothing but True and False; TO_BOOL stands before them.
ONLY_BOOL: frozenset[str] = frozenset()
