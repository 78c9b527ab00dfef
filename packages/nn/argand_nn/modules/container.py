"""Modules and parameters in sequences and mappings."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, groupby
from operator import index as to_int
from typing import Any, Self, overload

from argand_c10 import Module, Parameter, Tensor

__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


def _place(index: int, length: int, name: str) -> int:
    index = to_int(index)
    if not -length <= index < length:
        raise IndexError(f"{name}: got index {index}, expected one in [{-length}, {length})")
    return index % length


def check_iterable(module: Module, method: str, values: Any) -> None:
    """Raises TypeError for what cannot be iterated over."""
    if not isinstance(values, Iterable):
        raise TypeError(
            f"{type(module).__name__}.{method} should be called with an iterable, but got {type(values).__name__}"
        )


class _ModuleSequence(Module):
    """Child modules named "0", "1", ... in order."""

    _modules: dict[str, Module]  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __setitem__(self, index: int, module: Module) -> None:
        keys = list(self._modules)
        setattr(self, keys[_place(index, len(keys), type(self).__name__)], module)

    def __delitem__(self, index: int | slice) -> None:
        modules = list(self._modules.values())
        if isinstance(index, slice):
            del modules[index]
        else:
            del modules[_place(index, len(modules), type(self).__name__)]
        self._renumber(modules)

    def _renumber(self, modules: Iterable[Module]) -> None:
        entries = {str(i): module for i, module in enumerate(modules)}
        self._modules.clear()
        self._modules.update(entries)

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, module: Module) -> Self:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Module) -> Self:
        """Put a module before the one at `index`."""
        if not isinstance(module, Module):
            raise TypeError(
                f"{type(self).__name__}.insert: got {type(module).__name__}, expected a Module"
            )
        modules = list(self._modules.values())
        if not -len(modules) <= index <= len(modules):
            raise IndexError(
                f"{type(self).__name__}.insert: got index {index}, expected one from {-len(modules)} to {len(modules)}"
            )
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add modules at the end."""
        check_iterable(self, "extend", modules)
        for module in list(modules):
            self.append(module)
        return self

    def pop(self, key: int = -1) -> Module:
        """Remove a module and return it."""
        modules = list(self._modules.values())
        module = modules.pop(_place(key, len(modules), type(self).__name__))
        self._renumber(modules)
        return module


class Sequential(_ModuleSequence):
    """Calls its modules one after the other.

    Args:
        args: modules, or one ordered mapping of names to modules.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], Mapping):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for i, module in enumerate(args):
                self.add_module(str(i), module)

    @overload
    def __getitem__(self, index: int) -> Module: ...
    @overload
    def __getitem__(self, index: slice) -> Sequential: ...
    def __getitem__(self, index: int | slice) -> Module | Sequential:
        if isinstance(index, slice):
            return type(self)(dict(list(self._modules.items())[index]))
        modules = list(self._modules.values())
        return modules[_place(index, len(modules), "Sequential")]

    def __delitem__(self, index: int | slice) -> None:
        named = any(not key.isdigit() for key in self._modules)
        if not named:
            super().__delitem__(index)
            return
        keys = list(self._modules)
        chosen = (
            keys[index]
            if isinstance(index, slice)
            else [keys[_place(index, len(keys), "Sequential")]]
        )
        for key in chosen:
            del self._modules[key]

    def extend(self, sequential: Iterable[Module]) -> Self:
        """Add modules at the end."""
        return super().extend(sequential)

    def __add__(self, other: Iterable[Module]) -> Sequential:
        return Sequential(*self, *other)

    def __iadd__(self, other: Iterable[Module]) -> Self:
        return self.extend(other)

    def __mul__(self, times: int) -> Sequential:
        return type(self)(*self._repeated(times))

    __rmul__ = __mul__

    def __imul__(self, times: int) -> Self:
        self._renumber(self._repeated(times))
        return self

    def _repeated(self, times: int) -> list[Module]:
        if not isinstance(times, int) or isinstance(times, bool):
            raise TypeError(f"Sequential: got {type(times).__name__} times, expected int")
        if times <= 0:
            raise ValueError(f"Sequential: got {times} times, expected a positive number")
        return list(self) * times

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input


class ModuleList(_ModuleSequence):
    """A list of modules, whose parameters are found; it has no forward of its own."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __repr__(self) -> str:
        """One line a run of modules that print alike, as "(0-2): 3 x Linear(...)"."""
        runs = [(text, len(list(run))) for text, run in groupby(repr(module) for module in self)]
        if not runs:
            return f"{self._get_name()}()"
        lines, first = [], 0
        for text, count in runs:
            place = f"({first})" if count == 1 else f"({first}-{first + count - 1})"
            times = "" if count == 1 else f"{count} x "
            lines.append(f"{place}: {times}{text}".replace("\n", "\n  "))
            first += count
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"

    @overload
    def __getitem__(self, index: int) -> Module: ...
    @overload
    def __getitem__(self, index: slice) -> ModuleList: ...
    def __getitem__(self, index: int | slice) -> Module | ModuleList:
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])
        return self._modules[str(_place(index, len(self), "ModuleList"))]

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList(chain(self, other))

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)


class ModuleDict(Module):
    """A mapping of names to modules, whose parameters are found."""

    _modules: dict[str, Module]  # type: ignore[assignment]

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Remove a module and return it."""
        return self._modules.pop(key)

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._modules.keys()

    def values(self) -> Iterable[Module]:
        """The modules."""
        return self._modules.values()

    def items(self) -> Iterable[tuple[str, Module]]:
        """Names and modules."""
        return self._modules.items()

    def update(self, modules: Any) -> None:
        """Add or replace modules from a mapping or from pairs."""
        pairs = modules.items() if hasattr(modules, "items") else modules
        check_iterable(self, "update", pairs)
        for key, module in pairs:
            self[key] = module


class ParameterList(Module):
    """A list of parameters; tensors that are put in become parameters."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (getattr(self, str(i)) for i in range(self._size))

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return getattr(self, str(_place(index, self._size, "ParameterList")))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, str(_place(index, self._size, "ParameterList")), _as_parameter(value))

    def append(self, value: Any) -> ParameterList:
        """Add a value at the end."""
        setattr(self, str(self._size), _as_parameter(value))
        self._size += 1
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Add values at the end; a tensor is one of them, not its rows."""
        if isinstance(values, Tensor):
            raise TypeError(
                f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}; append it"
            )
        check_iterable(self, "extend", values)
        for value in list(values):
            self.append(value)
        return self

    def __iadd__(self, values: Iterable[Any]) -> ParameterList:
        return self.extend(values)

    def extra_repr(self) -> str:
        return "\n".join(f"  ({i}): {_describe(value)}" for i, value in enumerate(self))


class ParameterDict(Module):
    """A mapping of names to parameters; tensors that are put in become parameters."""

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        if key not in self._keys and hasattr(self, key):
            raise KeyError(f"ParameterDict: {key!r} is the name of an attribute; use another name")
        self._keys[key] = None
        setattr(self, key, _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __or__(self, other: ParameterDict) -> ParameterDict:
        return self.copy().__ior__(other)

    def __ror__(self, other: ParameterDict) -> ParameterDict:
        return other.copy().__ior__(self)

    def __ior__(self, other: ParameterDict) -> Self:
        self.update(other)
        return self

    def copy(self) -> ParameterDict:
        """Another mapping of the same parameters."""
        return ParameterDict(OrderedDict(self.items()))

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._keys.keys()

    def values(self) -> Iterable[Any]:
        """The parameters."""
        return (self[key] for key in self._keys)

    def items(self) -> Iterable[tuple[str, Any]]:
        """Names and parameters."""
        return ((key, self[key]) for key in self._keys)

    def get(self, key: str, default: Any = None) -> Any:
        """The parameter of this name, or `default`."""
        return self[key] if key in self else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The parameter of this name, which is `default` from now on if there was none."""
        if key not in self:
            self[key] = default
        return self[key]

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A new mapping of these names, each to `default`."""
        return ParameterDict(dict.fromkeys(keys, default))

    def clear(self) -> None:
        """Remove all parameters."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Remove a parameter and return it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Remove the last parameter and return its name and it."""
        if not self._keys:
            raise KeyError("ParameterDict.popitem: it is empty")
        key = next(reversed(self))
        return key, self.pop(key)

    def update(self, parameters: Any) -> None:
        """Add or replace parameters from a mapping or from pairs, in their order, or in that of the keys if it is a plain dict."""
        pairs = parameters
        if isinstance(parameters, OrderedDict | ParameterDict):
            pairs = parameters.items()
        elif isinstance(parameters, Mapping):
            pairs = sorted(parameters.items())
        check_iterable(self, "update", pairs)
        for key, value in pairs:
            self[key] = value

    def extra_repr(self) -> str:
        return "\n".join(
            f"  ({key}): {_describe(value, by_type=True)}" for key, value in self.items()
        )


def _as_parameter(value: Any) -> Any:
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


def _describe(value: Any, by_type: bool = False) -> str:
    if isinstance(value, Tensor):
        kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
        what = value.type() if by_type else value.dtype
        where = "" if value.device.type != "cuda" else f" (GPU {value.device.index})"
        return f"{kind} containing: [{what} of size {'x'.join(map(str, value.shape))}{where}]"
    return f"Object of type: {type(value).__name__}"
