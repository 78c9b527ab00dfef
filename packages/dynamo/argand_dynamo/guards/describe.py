"""Guards and their failures in the words of the user's program."""

from __future__ import annotations

import math
import operator
import weakref
from collections.abc import Callable, Iterable
from types import CodeType
from typing import Any

from argand_c10 import Tensor
from argand_dynamo.guards.build import CONTIGUOUS, Guard, Source, TensorFacts, tensor_facts

_STEPS: dict[str, Callable[[str, Any], str]] = {
    "attr": lambda base, name: f"{base}.{name}",
    "instance_dict": lambda base, name: f"{base}.{name}",
    "item": lambda base, key: f"{base}[{key!r}]",
    "dict_item": lambda base, key: f"{base}[{key!r}]",
    "type": lambda base, _: f"type({base})",
    "grad": lambda base, _: f"{base}.grad",
    "closure": lambda base, name: f"{name} (closed over by {base})",
    "default": lambda base, i: f"{base}.__defaults__[{i}]",
    "kwdefault": lambda base, name: f"{base}.__kwdefaults__[{name!r}]",
    "func": lambda base, _: f"{base}.__func__",
    "self": lambda base, _: f"{base}.__self__",
    "key": lambda base, i: f"list({base})[{i}]",
    "value": lambda base, i: f"list({base}.values())[{i}]",
    "len": lambda base, _: f"len({base})",
    "call": lambda base, given: f"{base}({_arguments(*given)})",
    "held": lambda base, given: f"{base}({_arguments(*given)})",
}


def _arguments(values: tuple[Any, ...], names: tuple[str, ...]) -> str:
    texts = [given[2] if given[0] == "const" else _expression(given[1], None) for given in values]
    marks = [""] * (len(texts) - len(names)) + [f"{name}=" for name in names]
    return ", ".join(map("".join, zip(marks, texts, strict=True)))


def _first(step: tuple[Any, ...], code: CodeType | None) -> tuple[str, str]:
    kind, payload = step
    if kind == "arg":
        names = code.co_varnames if code is not None else ()
        return "argument", names[payload] if payload < len(names) else f"#{payload}"
    noun = {"cell": "closed-over variable", "module": "module", "builtin": "built-in"}.get(
        kind, "global"
    )
    return noun, str(payload)


def _expression(source: Source, code: CodeType | None) -> str:
    text = _first(source[0], code)[1]
    for step in source[1:]:
        text = _STEPS[step[0]](text, step[1] if len(step) > 1 else None)
    return text


def describe_source(source: Source, code: CodeType | None = None) -> str:
    """The source as the user would write it: "argument 'x'", "global 'config.width'".

    Args:
        source: the path.
        code: the function's code, for the names of its parameters.
    """
    if not source:
        return "the call"
    return f"{_first(source[0], code)[0]} '{_expression(source, code)}'"


def _type_name(expected: Any) -> str:
    if isinstance(expected, str):
        return expected.rpartition(":")[2]
    return str(expected.__qualname__)


def _short(value: Any) -> str:
    """A value in at most 80 characters; a tensor by its shape, nothing that can be slow or can fail."""
    if isinstance(value, weakref.ref):
        value = value()
        if value is None:
            return "an object that is gone"
    if isinstance(value, Tensor):
        return f"{type(value).__name__} of shape {tuple(value.shape)}"
    try:
        text = repr(value)
    except Exception:
        text = object.__repr__(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _dims(extents: Iterable[int | None]) -> str:
    return "[" + ", ".join("any" if n is None else str(n) for n in extents) + "]"


def _facts_text(facts: TensorFacts) -> str:
    extra = ", requires grad" if facts.requires_grad else ""
    strides = "" if facts.flags & CONTIGUOUS else f", strides {_dims(facts.strides)}"
    return (
        f"a {_type_name(facts.type)} of {facts.dtype} and sizes {_dims(facts.sizes)} on "
        f"{facts.device}{strides}{extra}"
    )


def _operand(expression: Any, names: dict[str, str], nested: bool) -> str:
    if isinstance(expression, str):
        return names.get(expression, expression)
    if not isinstance(expression, tuple):
        return str(expression)
    symbol, *operands = expression
    texts = [_operand(operand, names, True) for operand in operands]
    if symbol in ("min", "max", "abs", "ceildiv"):
        return f"{symbol}({', '.join(texts)})"
    if len(texts) == 1:
        return f"{'not ' if symbol == 'not' else '-'}{texts[0]}"
    text = f" {symbol} ".join(texts)
    return f"({text})" if nested else text


def _symbol_names(bindings: dict[str, Any], code: CodeType | None) -> dict[str, str]:
    names = {}
    for symbol, binding in bindings.items():
        kind, source = (
            (binding[0], binding[1]) if isinstance(binding[0], str) else (binding[1], binding[0])
        )
        text = _expression(source, code)
        if kind in ("size", "stride"):
            text = f"{text}.{kind}({binding[2]})"
        elif kind == "offset":
            text = f"{text}.storage_offset()"
        names[symbol] = text
    return names


def _shape_text(value: Any, code: CodeType | None) -> str:
    expressions, bindings = value
    if expressions and isinstance(expressions[0], str):
        expressions = (expressions,)
    names = _symbol_names(bindings, code)
    return ", ".join(_operand(expression, names, False) for expression in expressions)


_RELATIONS: dict[str, Callable[[Any, CodeType | None], str]] = {
    "DISTINCT": lambda v, code: "different tensors: " + ", ".join(_expression(s, code) for s in v),
    "STORAGE": lambda v, code: (
        "shared memory as "
        + ", ".join(f"{_expression(s, code)}: {n}" for s, n in zip(v[0], v[1], strict=True))
    ),
    "SHAPE": _shape_text,
    "GRAD_MODE": lambda v, _: f"gradients are {'on' if v else 'off'}",
    "INFERENCE_MODE": lambda v, _: f"inference mode is {'on' if v else 'off'}",
    "CUDA_DEVICE": lambda v, _: f"the current CUDA device is {v}",
    "DEFAULT_DTYPE": lambda v, _: f"the default dtype is {v}",
    "MODES": lambda v, _: (
        "the dispatch keys and autocast's dtypes are the same"
        if v is not None and any(v[:2])
        else "no dispatch mode is active"
    ),
}

_FACTS: dict[str, Callable[[Any], str]] = {
    "TYPE": lambda v: f"is a {_type_name(v)}",
    "ID": lambda v: f"is the same object, {_short(v)}",
    "EQUALS": lambda v: f"equals {_short(v)}",
    "LEN": lambda v: f"has length {v}",
    "DICT_KEYS": lambda v: f"has the keys {_short(v)}",
    "MEMBERS": lambda v: f"has the members {_short(v)}",
    "NO_ATTR": lambda v: f"has no attribute '{v}' of its own",
    "HAS_INSTANCE_ATTR": lambda v: f"has an attribute '{v}' of its own",
    "NO_ITEM": lambda v: f"does not contain {_short(v)}",
    "CODE": lambda v: "has the same code",
    "CLASS_ATTR": lambda v: f"has {'the same' if len(v) == 2 else 'no'} attribute '{v[0]}'",
    "EXISTS": lambda v: "exists",
    "TENSOR": lambda v: "is " + _facts_text(v),
}


def describe_guard(guard: Guard | tuple[Any, ...], code: CodeType | None = None) -> str:
    """One line that says what the guard demands."""
    source, kind, value = guard
    if kind in _RELATIONS:
        return _RELATIONS[kind](value, code)
    if kind == "ALIAS":
        return (
            f"{describe_source(source, code)} is the same tensor as {describe_source(value, code)}"
        )
    return f"{describe_source(source, code)} {_FACTS[kind](value)}"


def describe_guards(guards: Iterable[Any], code: CodeType | None = None) -> str:
    """All guards, one a line, as the `guards` log channel and the report print them."""
    return "\n".join(describe_guard(guard, code) for guard in guards)


# ---- failures --------------------------------------------------------------------------------------------------------------


def _tensor_difference(expected: TensorFacts, value: Any) -> str:
    if not isinstance(value, Tensor):
        return f"is {_short(value)}, expected {_facts_text(expected)}"
    got = tensor_facts(value)
    if _type_name(got.type) != _type_name(expected.type):
        return f"is a {_type_name(got.type)}, expected a {_type_name(expected.type)}"
    for name in ("dtype", "device", "ndim"):
        a, b = getattr(got, name), getattr(expected, name)
        if a != b:
            noun = "number of dimensions" if name == "ndim" else name
            return f": {noun} is {a}, expected {b}"
    for noun, have, want in (
        ("size", got.sizes, expected.sizes),
        ("stride", got.strides, expected.strides),
    ):
        for d, (a, b) in enumerate(zip(have, want, strict=True)):
            if b is not None and a != b:
                return f": {noun} of dimension {d} is {a}, expected {b}"
    if got.requires_grad != expected.requires_grad:
        return f": requires_grad is {got.requires_grad}, expected {expected.requires_grad}"
    if (got.flags ^ expected.flags) & CONTIGUOUS:
        return f": is {'' if got.flags & CONTIGUOUS else 'not '}contiguous, expected the contrary"
    return ": is an inference tensor, expected the contrary" if got.flags != expected.flags else ""


def _difference(kind: str, expected: Any, value: Any) -> str:
    if kind == "TENSOR":
        return _tensor_difference(TensorFacts(*expected), value)
    if kind == "TYPE":
        return f"is a {type(value).__qualname__}, expected a {_type_name(expected)}"
    if kind == "LEN":
        return (
            f"has length {len(value) if hasattr(value, '__len__') else 'none'}, expected {expected}"
        )
    if kind == "DICT_KEYS":
        held = isinstance(value, dict | set | frozenset)
        keys = tuple(value) if held else type(value).__qualname__
        return f"has the keys {_short(keys)}, expected {_short(expected)}"
    if kind == "MEMBERS":
        return f"has the members {_short(value)}, expected {_short(set(expected))}"
    if kind == "EQUALS":
        return f"is {_short(value)}, expected {_short(expected)}"
    if kind == "ID":
        return f"is {_short(value)}, expected the object that it was, {_short(expected)}"
    if kind == "CODE":
        return "has other code than before"
    if kind == "CLASS_ATTR":
        return f"'{value.__qualname__}': attribute '{expected[0]}' has changed"
    return f"is {_short(value)}, but no longer {_FACTS[kind](expected)}"


_OPERATORS: dict[str, Callable[..., Any]] = {
    "+": lambda *v: sum(v),
    "-": lambda a, b=None: -a if b is None else a - b,
    "*": lambda *v: math.prod(v),
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "and": lambda *v: all(v),
    "or": lambda *v: any(v),
    "not": operator.not_,
    "min": lambda *v: min(v),
    "max": lambda *v: max(v),
    "abs": abs,
    "neg": operator.neg,
    "ceildiv": lambda a, b: -(-a // b),
}


def _evaluate(expression: Any, values: dict[str, int]) -> Any:
    if isinstance(expression, str):
        return values[expression]
    if not isinstance(expression, tuple):
        return expression
    return _OPERATORS[expression[0]](*[_evaluate(e, values) for e in expression[1:]])


def _follow(source: Source, args: tuple[Any, ...]) -> Any:
    """The value of a source below a parameter; LookupError for other sources."""
    if source[0][0] != "arg":
        raise LookupError(source[0][0])
    value = args[source[0][1]]
    for step in source[1:]:
        if step[0] in ("attr", "instance_dict"):
            value = getattr(value, step[1])
        elif step[0] == "item":
            value = value[step[1]]
        elif step[0] == "dict_item":
            value = dict.__getitem__(value, step[1])
        else:
            raise LookupError(step[0])
    return value


def _measure(binding: tuple[Any, ...], args: tuple[Any, ...]) -> int:
    first, second = binding[:2]
    kind, source = (first, second) if isinstance(first, str) else (second, first)
    value = _follow(source, args)
    if kind == "size":
        return int(value.shape[binding[2]])
    if kind == "stride":
        return int(value.stride()[binding[2]])
    return int(value.storage_offset()) if kind == "offset" else int(value)


def _shape_failure(value: Any, args: tuple[Any, ...], code: CodeType | None) -> str:
    """The first expression that is false, with the sizes in it; all of them where sizes cannot be told."""
    expressions, bindings = value
    if expressions and isinstance(expressions[0], str):
        expressions = (expressions,)
    names = _symbol_names(bindings, code)
    try:
        values = {symbol: _measure(binding, args) for symbol, binding in bindings.items()}
        failed = [e for e in expressions if not _evaluate(e, values)]
    except (LookupError, AttributeError, TypeError, ArithmeticError):
        failed = []
    if not failed:
        return f"sizes: expected {_shape_text(value, code)}"
    text = repr(failed[0])
    used = [symbol for symbol in bindings if repr(symbol) in text]
    have = ", ".join(f"{names[symbol]} is {values[symbol]}" for symbol in used)
    return f"sizes: {have}, expected {_operand(failed[0], names, False)}"


def describe_failure(
    guard: Guard | tuple[Any, ...],
    found: bool,
    value: Any,
    args: tuple[Any, ...] = (),
    code: CodeType | None = None,
) -> str:
    """Why a guard does not hold.

    Args:
        guard: the first guard that failed.
        found: did its source lead to a value.
        value: that value.
        args: the call's parameters in the order of co_varnames.
        code: the function's code.

    Returns:
        One line, such as "argument 'x': size of dimension 0 is 7, expected 5".
    """
    source, kind, expected = guard
    if kind == "SHAPE":
        return _shape_failure(expected, args, code)
    if kind in _RELATIONS or kind == "ALIAS":
        return f"no longer true: {describe_guard(guard, code)}"
    place = describe_source(source, code)
    if not found:
        return f"{place} is missing"
    text = _difference(kind, expected, value)
    return f"{place}{text}" if text.startswith(":") else f"{place} {text}"
