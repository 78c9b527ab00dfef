"""Operator schemas as objects, and the choice of the overload that fits a call.

`bind` is the counterpart of the C++ argument matcher for values that stand for tensors and numbers at run time: the same
overload is chosen, the same conversions are made and the same errors are raised.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import argand_c10 as c10
from argand_c10 import Operator, Tensor
from argand_fx.symbolic import SymbolicValue

__all__ = ["Argument", "Schema", "bind", "overload", "schema_of"]

_MISSING: Any = object()  # "no default"
_DTYPES: dict[Any, c10.dtype] = {
    builtins.int: c10.int64,
    builtins.bool: c10.bool,
    builtins.float: c10.float64,
    builtins.complex: c10.complex128,
}
_DTYPES.update({
    name: getattr(c10, name)
    for name in (
        "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128 float8_e4m3fn float8_e5m2 "
        "uint16 uint32 uint64 "
        "double float half long int short cfloat cdouble"
    ).split()
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a schema.

    Attributes:
        type: "Tensor", "Operand" (tensor or number), "Scalar", "bool", "int", "float", "str", "dtype", "Device" or "Generator".
        is_list: whether it is a list of such; `item_optional`: whose entries may be None.
        size: the fixed length of the list, for which one value may stand; 0 if there is none.
        optional: None is allowed.
        kwonly: it can be given by keyword alone.
        default: in the form in which `bind` gives it; `has_default` says whether there is one.
        varargs: the last positional list of ints, whose entries may be given one by one.
        written: the operator changes it; `alias`: results may share its memory.
    """

    name: str
    type: str
    is_list: bool
    size: int
    optional: bool
    item_optional: bool
    kwonly: bool
    has_default: bool
    default: Any
    varargs: bool
    written: bool
    alias: bool


@dataclass(frozen=True, slots=True)
class Schema:
    """The schema of one overload.

    Attributes:
        results: number of results; `list_result`: the only one is a list of tensors.
        result_types: of each "Tensor", "Tensor[]", "Scalar", "int", "float" or "bool".
        result_names: names of several results, or None.
        positional: number of arguments that may be given by position.
        is_factory: takes `requires_grad=`, `layout=` and `pin_memory=` besides its arguments.
        written: indices of the arguments that are changed.
    """

    name: str
    arguments: tuple[Argument, ...]
    results: int
    list_result: bool
    result_types: tuple[str, ...]
    result_names: tuple[str, ...] | None
    positional: int
    is_factory: bool
    written: tuple[int, ...]
    index: Mapping[str, int]


# ---- reading -------------------------------------------------------------------------------------------------------

_ARGUMENT = re.compile(
    r"(?P<type>Tensor\|Scalar|Tensor|ScalarType|Scalar|bool|int|float|str|dtype|Device|Generator)"
    r"(?P<alias>\([^)]*\))?(?P<optional>\?)?(?P<list>\[(?P<size>\d*)\](?P<alias2>\([^)]*\))?(?P<list_optional>\?)?)?"
    r"\s+(?P<name>\w+)(?:=(?P<default>.*))?$",
    re.DOTALL,
)
_RESULT = re.compile(
    r"(?P<type>Tensor|Scalar|int|float|bool)(?:\([^)]*\))?(?P<list>\[\])?(?:\s+(?P<name>\w+))?$"
)
_TYPE_NAMES = {"Tensor|Scalar": "Operand", "ScalarType": "dtype"}


def _split(text: str) -> list[str]:
    """The parts between commas outside of brackets and quotes."""
    parts, depth, quote, start = [], 0, "", 0
    for i, c in enumerate(text):
        if quote:
            quote = "" if c == quote else quote
        elif c in "\"'":
            quote = c
        elif c in "([":
            depth += 1
        elif c in ")]":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


def _default(text: str, kind: str, is_list: bool, size: int) -> Any:
    if text == "None":
        return None
    if text[0] in "\"'":
        return c10.device(text[1:-1]) if kind == "Device" else text[1:-1]
    if kind == "dtype":
        return _DTYPES[text]
    if text.startswith("["):
        return [_default(x, kind, False, 0) for x in _split(text[1:-1])]
    if text in ("True", "False"):
        value: Any = text == "True"
    else:
        value = float(text) if kind == "float" or not re.fullmatch(r"-?\d+", text) else int(text)
    return [value] * max(size, 1) if is_list else value


def _read_argument(text: str, kwonly: bool, last: bool) -> Argument:
    m = _ARGUMENT.match(text)
    if m is None:
        raise ValueError(f"schema: got the argument {text!r}, expected a type and a name")
    kind = _TYPE_NAMES.get(m["type"], m["type"])
    is_list = m["list"] is not None
    size = int(m["size"] or 0) if is_list else 0
    alias = (m["alias"] or "") + (m["alias2"] or "")
    default = m["default"]
    return Argument(
        name=m["name"],
        type=kind,
        is_list=is_list,
        size=size,
        optional=bool(m["list_optional"] if is_list else m["optional"]),
        item_optional=is_list and bool(m["optional"]),
        kwonly=kwonly,
        has_default=default is not None,
        default=None if default is None else _default(default.strip(), kind, is_list, size),
        varargs=last and is_list and kind == "int" and size == 0,
        written="!" in alias,
        alias=bool(alias),
    )


def parse_schema(text: str) -> Schema:
    """Read a schema such as "add(Tensor|Scalar self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor".

    Raises:
        ValueError: if it is not well-formed.
    """
    head, arrow, tail = text.rpartition("->")
    name, paren, rest = head.partition("(")
    if not arrow or not paren or not rest.rstrip().endswith(")"):
        raise ValueError(f"schema: got {text!r}, expected name(arguments) -> results")
    items = _split(rest.rstrip()[:-1])
    star = items.index("*") if "*" in items else len(items)
    arguments = [_read_argument(t, False, i == star - 1) for i, t in enumerate(items[:star])]
    arguments += [_read_argument(t, True, False) for t in items[star + 1 :]]
    tail = tail.strip()
    grouped = tail.startswith("(")
    results = []
    for part in _split(tail[1:-1] if grouped else tail):
        m = _RESULT.match(part)
        if m is None:
            raise ValueError(f"schema: got the results {tail!r}, expected tensors or numbers")
        results.append(m)
    names = tuple(m["name"] or "" for m in results)
    public = name.strip().partition(".")[0]
    kinds = {a.type for a in arguments if not a.is_list}
    return Schema(
        name=name.strip(),
        arguments=tuple(arguments),
        results=len(results),
        list_result=len(results) == 1 and results[0]["list"] is not None,
        result_types=tuple(m["type"] + (m["list"] or "") for m in results),
        result_names=names if len(names) > 1 and any(names) else None,
        positional=star,
        is_factory="dtype" in kinds and "Device" in kinds and public != "to",
        written=tuple(i for i, a in enumerate(arguments) if a.written),
        index={a.name: i for i, a in enumerate(arguments)},
    )


_schemas: dict[Operator, Schema] = {}
_overloads: dict[Operator, tuple[Operator, ...]] = {}


def schema_of(op: Operator) -> Schema:
    """The schema of an overload, read once."""
    found = _schemas.get(op)
    if found is None:
        found = _schemas[op] = parse_schema(op.schemas[0])
    return found


def overloads_of(op: Operator) -> tuple[Operator, ...]:
    """The overloads in the order in which they are tried."""
    found = _overloads.get(op)
    if found is None:
        found = _overloads[op] = tuple(dict.fromkeys(op.variants))
    return found


def overload(name: str) -> Operator:
    """The overload with exactly this name ("add", "max.dim").

    Raises:
        LookupError: if no such operator is registered.
    """
    op = c10.find_operator(name)
    for one in op.variants:
        if one.name == name:
            return one
    return op


# ---- values --------------------------------------------------------------------------------------------------------

_NO: Any = object()  # "does not fit"
_NUMBERS = (int, float, complex)


def _is_tensor(x: Any) -> bool:
    return isinstance(x, Tensor) or hasattr(x, "fake_storage")


def _unboxed(x: Any) -> Any:
    """A number from what stands for one: a NumPy scalar, or a 0-d tensor without history."""
    if _is_tensor(x):
        return x.item() if x.ndim == 0 and not x.requires_grad else _NO
    item = getattr(x, "item", None)
    if item is not None and getattr(x, "shape", None) == () and hasattr(x, "dtype"):
        return item()
    return _NO


def _scalar(x: Any) -> Any:
    if isinstance(x, _NUMBERS) or isinstance(x, SymbolicValue):
        return x
    return _unboxed(x)


def _int(x: Any) -> Any:
    if type(x) is int or isinstance(x, SymbolicValue):
        return x
    if isinstance(x, bool):
        return _NO
    if isinstance(x, int):
        return int(x)
    value = _unboxed(x)
    if value is _NO and hasattr(type(x), "__index__") and not _is_tensor(x):
        value = x.__index__()
    return value if isinstance(value, int) and not isinstance(value, bool) else _NO


def _float(x: Any) -> Any:
    if isinstance(x, float):
        return x
    value = x if isinstance(x, (int, SymbolicValue)) else _unboxed(x)
    if isinstance(value, SymbolicValue):
        return value
    return float(value) if isinstance(value, (int, float)) else _NO


def _bool(x: Any) -> Any:
    return x if isinstance(x, bool) else _NO


def _dtype(x: Any) -> Any:
    if isinstance(x, c10.dtype):
        return x
    try:
        return _DTYPES.get(x, _NO)
    except TypeError:
        return _NO


def _device(x: Any) -> Any:
    if not isinstance(x, (str, c10.device)):
        return _NO
    d = c10.device(x) if isinstance(x, str) else x
    if d.type in ("cpu", "meta"):
        return d if d.index is None else c10.device(d.type)
    if d.index is None:  # the current one
        return c10._C._empty_strided([0], None, c10.float32, d).device
    return d


_CONVERT: dict[str, Callable[[Any], Any]] = {
    "Tensor": lambda x: x if _is_tensor(x) else _NO,
    "Operand": lambda x: x if _is_tensor(x) else _scalar(x),
    "Scalar": _scalar,
    "int": _int,
    "float": _float,
    "bool": _bool,
    "str": lambda x: x if isinstance(x, str) else _NO,
    "dtype": _dtype,
    "Device": _device,
    "Generator": lambda x: x if isinstance(x, c10.Generator) else _NO,
}


def _wrong_length(a: Argument, n: int) -> bool:
    if a.size <= 1 or n in (a.size, 1):
        return False
    return n != 0 or a.default != []


def _convert_list(items: Sequence[Any], a: Argument) -> Any:
    convert = _CONVERT[a.type]
    values = []
    for x in items:
        value = None if x is None and a.item_optional else convert(x)
        if value is _NO:
            return _NO
        values.append(value)
    if a.type != "Tensor":
        if _wrong_length(a, len(values)):
            return _NO
        if len(values) == 1 and a.size > 1:
            values *= a.size
    return values


def _convert(x: Any, a: Argument) -> Any:
    """The value for the argument, or _NO."""
    if x is None:
        if a.optional:
            return None
        return [] if a.has_default and a.default == [] else _NO  # a window's stride
    if not a.is_list:
        return _CONVERT[a.type](x)
    if isinstance(x, (tuple, list)):
        return _convert_list(x, a)
    if a.type == "Tensor" or a.size <= 0:
        return _NO
    value = _CONVERT[a.type](x)
    return _NO if value is _NO else [value] * a.size


# ---- matching ------------------------------------------------------------------------------------------------------

_ALIASES = {"input": "self", "axis": "dim", "keepdims": "keepdim"}


class _Mismatch(Exception):
    """Why a signature does not fit."""


class _WrongCount(_Mismatch):
    """The types fit, but a list has too many or too few numbers."""


# As the operators take them: PyTorch's numbers, None for preserve_format.
_MEMORY_FORMATS = {
    c10.contiguous_format: 0,
    c10.preserve_format: None,
    c10.channels_last: 2,
    c10.channels_last_3d: 3,
}


def _take_extra(s: Schema, name: str, key: str, value: Any, out: bool) -> None:
    """A keyword outside of the schema; `out=` is taken by the caller."""
    if s.is_factory and (
        (key == "requires_grad")
        or (key == "layout" and value in (None, c10.strided))
        or (key == "pin_memory" and value in (None, False))
    ):
        if key == "requires_grad" and value:
            raise ValueError(
                f"{name}(): got requires_grad=True, expected False where a graph is built: "
                "make leaf tensors outside of it"
            )
        return
    raise _Mismatch(f"{name}() got an unexpected keyword argument '{key}'")


def _keyword_values(s: Schema, name: str, nargs: int, kwargs: Mapping[str, Any]) -> dict[int, Any]:
    given: dict[int, Any] = {}
    for key, value in kwargs.items():
        i = s.index.get(key)
        if i is None and key in _ALIASES:
            i = s.index.get(_ALIASES[key])
        if i is None:
            if not (key == "out" and _out_overload(s) is not None):
                _take_extra(s, name, key, value, False)
            continue
        if i in given or i < min(nargs, s.positional):
            shown = "input" if s.arguments[i].name == "self" else s.arguments[i].name
            raise _Mismatch(f"{name}() got multiple values for argument '{shown}'")
        if isinstance(value, c10.memory_format):
            value = _MEMORY_FORMATS[value]
        given[i] = value
    return given


def _starts_varargs(x: Any) -> bool:
    if isinstance(x, (int, SymbolicValue)):
        return not isinstance(x, bool)
    return x is not None and not isinstance(x, (tuple, list)) and hasattr(type(x), "__index__")


def _match(s: Schema, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """Values in schema order.

    Raises:
        _Mismatch: if the signature does not fit.
    """
    nargs = len(args)
    given = _keyword_values(s, name, nargs, kwargs) if kwargs else {}
    taken = min(nargs, s.positional)
    varargs = False
    values: list[Any] = []
    for i, a in enumerate(s.arguments):
        if i < taken:
            x = args[i]
            if a.varargs and _starts_varargs(x):
                varargs, x = True, tuple(args[i:])
        elif i in given:
            x = given[i]
        elif a.has_default:
            values.append(list(a.default) if a.is_list and a.default is not None else a.default)
            continue
        else:
            raise _missing(s, name, nargs, given)
        value = _convert(x, a)
        if value is _NO:
            raise _mismatch(name, a, i + 1 if i < taken else 0, x)
        values.append(value)
    if taken < nargs and not varargs:
        raise _Mismatch(
            f"{name}() takes {s.positional} positional argument{'' if s.positional == 1 else 's'} but "
            f"{nargs} {'was' if nargs == 1 else 'were'} given"
        )
    return values


def _missing(s: Schema, name: str, nargs: int, given: Mapping[int, Any]) -> _Mismatch:
    names = [
        '"input"' if a.name == "self" else f'"{a.name}"'
        for i, a in enumerate(s.arguments)
        if not (i < min(nargs, s.positional) or i in given or a.has_default)
    ]
    plural = "" if len(names) == 1 else "s"
    return _Mismatch(
        f"{name}() missing {len(names)} required positional argument{plural}: {', '.join(names)}"
    )


_TYPE_TEXTS = {
    "Tensor": "Tensor", "Operand": "Tensor or Number", "Scalar": "Number", "bool": "bool", "int": "int", "float": "float",
    "str": "str", "dtype": "dtype", "Device": "device", "Generator": "Generator",
}  # fmt: skip


def _expected(a: Argument) -> str:
    if not a.is_list:
        return _TYPE_TEXTS[a.type]
    if a.type == "int" and a.size > 0:
        return f"int or tuple of {a.size} ints" if a.size > 1 else "int or tuple of ints"
    return f"tuple of {_TYPE_TEXTS[a.type]}s" + (" or Nones" if a.item_optional else "")


def _type_name(x: Any) -> str:
    return "Tensor" if _is_tensor(x) else type(x).__name__


def _mismatch(name: str, a: Argument, position: int, got: Any) -> _Mismatch:
    shown = "input" if a.name == "self" else a.name
    text = f"{name}(): argument '{shown}'" + (f" (position {position})" if position else "")
    text += f" must be {_expected(a)}"
    if not a.is_list or not isinstance(got, (tuple, list)):
        return _Mismatch(f"{text}, not {_type_name(got)}")
    for i, x in enumerate(got):
        if not (x is None and a.item_optional) and _CONVERT[a.type](x) is _NO:
            return _Mismatch(f"{text}, but found element of type {_type_name(x)} at pos {i}")
    kind = _WrongCount if a.size > 1 else _Mismatch
    return kind(f"{text}, not {len(got)} {'ints' if a.type == 'int' else 'values'}")


def _signature_text(s: Schema) -> str:
    parts, in_keywords = [], False
    for a in s.arguments:
        star = "*, " if a.kwonly and not in_keywords else ""
        in_keywords = in_keywords or a.kwonly
        default = f' = "{a.default}"' if isinstance(a.default, str) else f" = {a.default}"
        shown = "input" if a.name == "self" else a.name
        parts.append(f"{star}{_expected(a)} {shown}{default if a.has_default else ''}")
    return f"({', '.join(parts)})"


def _no_match(op: Operator, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Exception:
    name = op.__name__
    options = []
    error: type[Exception] = TypeError
    for one in overloads_of(op):
        s = schema_of(one)
        try:
            _match(s, name, args, kwargs)
        except _Mismatch as e:
            options.append((s, str(e)))
            if isinstance(e, _WrongCount):
                error = RuntimeError
    if len(options) == 1:
        return error(options[0][1])
    shown = [_type_name(x) for x in args]
    shown += [f"{k}={_type_name(v)}" for k, v in kwargs.items()]
    text = f"{name}() received an invalid combination of arguments - got ({', '.join(shown)}), but expected one of:"
    return error(text + "".join(f"\n * {_signature_text(s)}\n      {why}" for s, why in options))


_out_names: dict[str, str | None] = {}


def _out_overload(s: Schema) -> str | None:
    """The name of the form with `out=`, if there is one."""
    if s.name not in _out_names:
        base, dot, rest = s.name.partition(".")
        name = f"{base}.{rest}_out" if dot else f"{base}.out"
        _out_names[s.name] = name if name in c10.operator_names() else None
    return _out_names[s.name]


def bind(
    op: Operator, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None
) -> tuple[Operator, list[Any]]:
    """The overload that a call means, and its arguments in schema order with defaults filled in.

    Lists are new lists of full length, dtypes and devices are objects. A call with `out=` gives the overload of that
    form, whose last arguments are the targets.

    Args:
        op: a callable operator, also a method of Tensor (`args[0]` is then the object).
        args, kwargs: as in a Python call; tensors may be fake, numbers symbolic.

    Raises:
        TypeError: if no overload fits, with the text of the operator's own error.
        RuntimeError: if that is because a list has too many or too few numbers.
    """
    kwargs = kwargs or {}
    name = op.__name__
    for one in overloads_of(op):
        s = schema_of(one)
        try:
            values = _match(s, name, args, kwargs)
        except _Mismatch:
            continue
        out = kwargs.get("out")
        if out is not None and "out" not in s.index:
            target = _out_overload(s)
            assert target is not None
            outs = list(out) if isinstance(out, (tuple, list)) else [out]
            if len(outs) != s.results or not all(map(_is_tensor, outs)):
                wanted = "Tensor" if s.results == 1 else f"tuple of {s.results} Tensors"
                raise TypeError(f"{name}(): argument 'out' must be {wanted}, not {_type_name(out)}")
            return overload(target), values + outs
        return one, values
    raise _no_match(op, args, kwargs)
