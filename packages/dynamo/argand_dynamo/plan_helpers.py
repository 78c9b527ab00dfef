"""Functions that replacement bytecode calls."""

from __future__ import annotations

import collections
import sys
from collections.abc import Callable, Iterable
from types import CellType, FunctionType, WrapperDescriptorType
from typing import Any

from argand_dynamo import _C


class TailCall(tuple[Any, ...]):
    """What a resume function's replacement returns when it breaks: (function, arguments) to be called in its stead by the first frame, so that loops that break need no recursion."""

    __slots__ = ()


def note(error: BaseException, lines: tuple[tuple[str, int, str], ...]) -> None:
    """Say in an exception raised by a compiled graph which of the user's lines the graph stands for, unless somebody said it better."""
    if getattr(error, "__notes__", None):
        return
    by_function: dict[tuple[str, str], list[int]] = {}
    for file, line, function in lines:
        by_function.setdefault((file, function), []).append(line)
    places = "; ".join(
        f'"{file}", line{"s" if len(set(found)) > 1 else ""} {", ".join(map(str, dict.fromkeys(found)))}, in {function}'
        for (file, function), found in by_function.items()
    )
    error.add_note(f"raised in a compiled graph made from {places}")


def cell_of(function: FunctionType, name: str) -> CellType:
    """Cell of a function's free variable."""
    return (function.__closure__ or ())[function.__code__.co_freevars.index(name)]


def closure_value(function: FunctionType, name: str) -> Any:
    """Content of a function's free variable."""
    return cell_of(function, name).cell_contents


def key_at(mapping: Iterable[Any], index: int) -> Any:
    """The index-th key of a dict."""
    for place, key in enumerate(mapping):
        if place == index:
            return key
    raise IndexError(f"dict: got index {index} of a key, expected fewer")


def value_at(mapping: dict[Any, Any], index: int) -> Any:
    """The value of the index-th key of a dict."""
    return dict.__getitem__(mapping, key_at(mapping, index))


def list_replace(target: list[Any] | collections.deque[Any], items: list[Any]) -> None:
    """Change the contents, whatever a subclass does."""
    if isinstance(target, collections.deque):
        collections.deque.clear(target)
        collections.deque.extend(target, items)
    else:
        list.__setitem__(target, slice(None), items)


def set_replace(target: set[Any], items: list[Any]) -> None:
    """Change the contents, whatever a subclass does; what stays is not touched, as the order follows from the history."""
    wanted = {item: item for item in items}
    for member in list(set.__iter__(target)):
        kept = wanted.get(member)
        if kept is not member and (type(kept) is not type(member) or type(kept) not in (int, str)):
            set.discard(target, member)
    set.update(target, items)


def dict_replace(target: dict[Any, Any], items: dict[Any, Any]) -> None:
    """Change the contents and their order, whatever a subclass does."""
    kind = collections.OrderedDict if isinstance(target, collections.OrderedDict) else dict
    kind.clear(target)
    for key, value in items.items():
        kind.__setitem__(target, key, value)


def function_of(
    code: Any,
    module_globals: dict[str, Any],
    defaults: Any,
    kwdefaults: Any,
    cells: tuple[CellType, ...],
) -> FunctionType:
    """A new function with globals of its own."""
    made = FunctionType(code, module_globals, None, defaults, cells)
    made.__kwdefaults__ = kwdefaults
    return made


def _slot(owner: Any, name: str) -> Any:
    """The method of the nearest class that is written in C: `object`, but for a few such as threading.local, whose attributes lie elsewhere."""
    found = (vars(c).get(name) for c in type(owner).__mro__)
    return next(f for f in found if isinstance(f, WrapperDescriptorType))


def set_instance(owner: Any, name: str, value: Any) -> None:
    """Sets an attribute without the user's code."""
    _slot(owner, "__setattr__")(owner, name, value)


def delete_instance(owner: Any, name: str) -> None:
    """Deletes an attribute without the user's code."""
    _slot(owner, "__delattr__")(owner, name)


HELPERS: dict[str, Callable[..., Any]] = {
    "note": note,
    "cell_of": cell_of,
    "closure_value": closure_value,
    "key_at": key_at,
    "value_at": value_at,
    "list_replace": list_replace,
    "set_replace": set_replace,
    "dict_replace": dict_replace,
    "dict_item": dict.__getitem__,
    "function_of": function_of,
    "new_cell": CellType,
    "type": type,
    "len": len,
    "setattr": set_instance,
    "delattr": delete_instance,
    "min": min,
    "max": max,
    "TailCall": TailCall,
    "frozenset": frozenset,
}
for _helper in HELPERS.values():
    if isinstance(_helper, FunctionType):
        _C.skip_code(_helper.__code__)
MODULES = sys.modules
