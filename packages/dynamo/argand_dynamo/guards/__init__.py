"""Guards: facts about a call that a compiled program relies on, as plain data `(source, kind, value)`.

A source is the path from the call to a value: a tuple of steps. The first is `("arg", i)` (i-th parameter in the order of
co_varnames), `("cell", name)`, `("global", name)`, `("builtin", name)` (not hidden by a global) or `("module", name)`; then
`("attr", name)`, `("item", key)`, `("dict_item", key)` (whatever a subclass does), `("instance_dict", name)`, `("type",)`, `("grad",)`, `("closure", name)`, `("default", i)`,
`("kwdefault", name)`, `("func",)`, `("self",)`, `("key", i)`, `("value", i)` (of a dict), `("len",)`,
`("call", (arguments, names))` (of a function that `functools.lru_cache` made, a method of an array, or `issubclass`: what it gives for ("const", value, text) and ("source", path), the last of them
by name), `("held", ...)` (the same, of what the cache has already). A guard fails if its source leads nowhere.

==================  ================================================================================================
kind                value, and when it holds
==================  ================================================================================================
TYPE                a type or "module:qualname": the exact type
ID                  an object: this very object (held weakly where possible; an object that is gone fails the guard)
EQUALS              a constant (`_C.is_constant`): same exact type and value, floats bit for bit
LEN                 an int: len(value)
DICT_KEYS           a tuple: the keys of a dict, or members of a set, in order (constants by value, others by identity)
MEMBERS             a tuple of constants: the members of a set, in any order
NO_ATTR             a name: the instance's own dict lacks it
HAS_INSTANCE_ATTR   a name: the instance's own dict has it
NO_ITEM             a constant key that the container lacks
CODE                a code object, or its hash (`set_code_hash`): the code of a function or method
CLASS_ATTR          (name, value) or (name,) for none: what the class, to which the source leads, has in its MRO
EXISTS              None: the source leads somewhere
TENSOR              `TensorFacts`
ALIAS               a source: the same object as this one's
DISTINCT            sources: pairwise different objects (the guard's own source is empty: `()`)
STORAGE             (sources, pattern[, offsets]): tensors share storage exactly where their numbers in the pattern are equal
SHAPE               (expressions, {symbol: (source, "size" | "stride" | "offset" | "value", dim)}): every expression is true
GRAD_MODE           bool        INFERENCE_MODE   bool        DEFAULT_DTYPE   a floating dtype
CUDA_DEVICE         the index of the current CUDA device
MODES               None: no dispatch mode is active in the thread; or its (include_keys, exclude_keys, autocast)
==================  ================================================================================================
"""

from __future__ import annotations

from argand_dynamo.guards.build import (
    Guard,
    Source,
    TensorFacts,
    alias_guards,
    device_guards,
    shape_guard,
    state_guards,
    storage_guards,
    tensor_facts,
    tensor_guard,
)
from argand_dynamo.guards.describe import (
    describe_failure,
    describe_guard,
    describe_guards,
    describe_source,
)
from argand_dynamo.guards.portable import portable

__all__ = [
    "Guard",
    "Source",
    "TensorFacts",
    "alias_guards",
    "device_guards",
    "describe_failure",
    "describe_guard",
    "describe_guards",
    "describe_source",
    "portable",
    "shape_guard",
    "state_guards",
    "storage_guards",
    "tensor_facts",
    "tensor_guard",
]
