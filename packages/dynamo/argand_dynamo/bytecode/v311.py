"""What is particular to CPython 3.11."""

from __future__ import annotations

# Inline cache entries (code units) after an instruction.
CACHES = {
    "BINARY_SUBSCR": 4, "STORE_SUBSCR": 1, "UNPACK_SEQUENCE": 1, "STORE_ATTR": 4, "LOAD_ATTR": 4, "COMPARE_OP": 2, "LOAD_GLOBAL": 5,
    "BINARY_OP": 1, "LOAD_METHOD": 10, "PRECALL": 1, "CALL": 4,
}  # fmt: skip
# Low bits of `arg` that are flags, below the index of the name.
FLAG_BITS = {"LOAD_GLOBAL": 1}
COMPARE_SHIFT = 0
COMPARE_OPERATORS = ("<", "<=", "==", "!=", ">", ">=")
# Instructions that are two, as in "STORE_FAST_LOAD_FAST": none.
PAIRS: dict[str, tuple[str, str]] = {}
# `CALL` is written as KW_NAMES (if there are names), PRECALL, CALL.
HAS_PRECALL = True
HAS_KW_NAMES = True
# The callable of a call lies above the empty slot.
NULL_FIRST = True
# Cells are loaded by an instruction of their own.
HAS_LOAD_CLOSURE = True
# Depth of the stack at the first instruction of a generator.
GENERATOR_START = 1
# Parts of a new function are below its code, chosen by bits of MAKE_FUNCTION.
FUNCTION_ATTRIBUTES = False
# Conditional jumps exist in both directions.
BACKWARD_CONDITIONS = True
# What the end of a `for` loop skips: FOR_ITER jumps to its target and has popped the iterator.
FOR_END: tuple[str, ...] = ()
# Instructions that take nothing but True and False; TO_BOOL stands before them.
ONLY_BOOL: frozenset[str] = frozenset()
