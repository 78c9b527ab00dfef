"""Writes the type stubs that the front-end's wheel carries: of `argand`, and of what it takes from the layers below.

The operators' signatures are those that tools/codegen printed from the registry; those of Python functions are read from the functions. Tensor's methods come
from several layers: the whole type is in a partial stub package for argand_c10 (PEP 561), so that a Tensor is one type wherever it is named.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import argand
import argand_aten
import argand_c10

# Methods that C++ layers above c10 add without signatures.
_NATIVE_METHODS = """
    def backward(self, gradient: Tensor | None = None, retain_graph: builtins.bool | None = None, create_graph: builtins.bool = False, inputs: Any = None) -> None: ...
    def detach_(self) -> Tensor: ...
    def requires_grad_(self, requires_grad: builtins.bool = True) -> Tensor: ...
    def retain_grad(self) -> None: ...
    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> Any: ...
    def __array_namespace__(self, *, api_version: str | None = None) -> Any: ...
    def to_device(self, device: Any, /, *, stream: Any = None) -> Tensor: ...
"""
_BINARY = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift"
_COMPARED = "lt le gt ge"
_HEADER = "# Generated from the operators' registry and from the packages' functions.\n"


def operator_dunders() -> str:
    """Python's operators on tensors."""
    other = "Tensor | Number"
    lines = []
    for name in _BINARY.split():
        lines.append(f"    def __{name}__(self, other: {other}) -> Tensor: ...")
        lines.append(f"    def __i{name}__(self, other: {other}) -> Tensor: ...")
        lines.append(f"    def __r{name}__(self, other: {other}) -> Tensor: ...")
    lines += [
        f"    def __{name}__(self, other: {other}) -> Tensor: ..." for name in _COMPARED.split()
    ]
    lines += [
        f"    def __{name}__(self, other: {other}) -> Tensor: ...  # type: ignore[override]"
        for name in ("eq", "ne")
    ]
    lines += [
        f"    def __{name}__(self) -> Tensor: ..." for name in ("neg", "pos", "abs", "invert")
    ]
    lines.append("    def __hash__(self) -> builtins.int: ...")
    return "\n".join(lines)


def annotation(text: Any) -> str:
    """An annotation in a module where the names of built-in types may mean dtypes."""
    if text is inspect.Parameter.empty:
        return "Any"
    name = text if isinstance(text, str) else getattr(text, "__name__", "Any")
    name = re.sub(r"\b(argand_c10|_C)\.", "", name)
    return re.sub(
        r"(?<![\w.])(int|float|bool|str|list|tuple|dict|complex|slice|type|object|bytes|set)\b",
        r"builtins.\1",
        name,
    )


_KNOWN = frozenset(
    "Any Tensor Callable Sequence None Number Generator dtype device Size builtins int float bool str list tuple dict complex object".split()
)


def plain_annotation(text: Any) -> str:
    """The annotation, or Any where it names what the stub does not know."""
    found = annotation(text)
    return (
        found
        if set(re.findall(r"[A-Za-z_]\w*", re.sub(r"['\"].*?['\"]", "", found))) <= _KNOWN
        else "Any"
    )


def signature(name: str, function: FunctionType) -> str:
    """`def name(...)` of a Python function that is a method, whatever it calls its first parameter."""
    parts, star = ["self"], False
    for p in list(inspect.signature(function).parameters.values())[1:]:
        if p.kind is p.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        star |= p.kind is p.VAR_POSITIONAL
        mark = "*" if p.kind is p.VAR_POSITIONAL else "**" if p.kind is p.VAR_KEYWORD else ""
        default = " = ..." if p.default is not p.empty else ""
        parts.append(f"{mark}{p.name}: {plain_annotation(p.annotation)}{default}")
    return f"def {name}({', '.join(parts)}) -> {plain_annotation(inspect.signature(function).return_annotation)}: ..."


def further_methods(known: str) -> str:
    """Methods and properties of Tensor that Python modules of the layers add."""
    lines = []
    for name, value in sorted(vars(argand_c10.Tensor).items()):
        if (
            re.search(rf"\bdef {re.escape(name)}\(", known)
            or not name.isidentifier()
            or (name.startswith("__") and name.endswith("__"))
        ):
            continue
        if isinstance(value, FunctionType):
            lines.append("    " + signature(name, value))
        elif isinstance(value, property):
            kind = (
                plain_annotation(inspect.signature(value.fget).return_annotation)
                if isinstance(value.fget, FunctionType)
                else "Any"
            )
            lines.append(f"    @property\n    def {name}(self) -> {kind}: ...")
        elif callable(value):
            lines.append(f"    def {name}(self, *args: Any, **kwargs: Any) -> Any: ...")
        elif not name.startswith("_"):
            lines.append(f"    {name}: Any")
    return "\n".join(lines)


def parts_of_ops() -> tuple[str, str, dict[str, list[str]]]:
    """Of the operators' stub: everything before the functions, the methods, and every operator's functions by name."""
    text = (Path(next(iter(argand_aten.__path__))) / "generated" / "_ops.pyi").read_text()
    head, _, rest = text.partition("\n# Functions\n")
    rest = rest.partition("\n\nclass TensorMethods:\n")[2]
    methods, _, spaces = rest.partition("\n\nclass Operators:\n")
    found: dict[str, list[str]] = {}
    pending: list[str] = []
    for line in spaces.splitlines():
        line = line.strip()
        if line == "@overload":
            pending.append(line)
        elif line.startswith("def "):
            found.setdefault(line[4 : line.index("(")], []).extend([*pending, line])
            pending = []
    return head, methods, found


def c10_stub(head: str, methods: str) -> str:
    """argand_c10._C with the whole Tensor."""
    text = (Path(next(iter(argand_c10.__path__))) / "_C.pyi").read_text()
    start = text.index("class Tensor:")
    body = text[start : text.index("\ndef tensor(", start)]
    known = (
        body
        + methods
        + _NATIVE_METHODS
        + "".join(f"def {n}(" for n in ("data", "requires_grad", "grad"))
    )
    whole = re.sub(r"    def __getattr__.*\n", "", body).replace(
        "class Tensor:", "class Tensor(_Methods):"
    )
    classes = head[head.index("Number: TypeAlias") :]
    more = f"{classes}\nclass _Methods:\n{operator_dunders()}\n{_NATIVE_METHODS}{methods}\n{further_methods(known)}\n"
    imports = "import builtins\nfrom typing import NamedTuple\n"
    return (
        _HEADER
        + '# mypy: disable-error-code="overload-overlap,misc"\n'
        + imports
        + text[:start]
        + whole
        + text[start + len(body) :]
        + "\n"
        + more
    )


def front_end_stub() -> str:
    """argand: where each of its names comes from."""
    lines = [_HEADER + "# mypy: ignore-errors", "from typing import Any"]
    for name in ("__version__", *dir(argand)):
        value = getattr(argand, name)
        origin = argand._OWN.get(name)
        if isinstance(value, ModuleType):
            if name in argand._SUBMODULES:
                lines.append(f"from argand import {name} as {name}")
            continue
        if origin is None:
            layers = [
                layer
                for layer in argand._LAYERS
                if getattr(importlib.import_module(layer), name, None) is value
            ]
            origin = layers[0] if layers else None
        lines.append(f"{name}: Any" if origin is None else f"from {origin} import {name} as {name}")
    return "\n".join(lines) + "\n"


def namespace_stub(head: str, prefix: str, functions: dict[str, list[str]]) -> str:
    """A namespace of operators: linalg, fft."""
    module = importlib.import_module(f"argand.{prefix}")
    lines = [_HEADER + "# mypy: ignore-errors", "from typing import Any", head]
    for name in sorted(module.__all__):
        found = functions.get(f"{prefix}_{name}")
        if found is not None:
            lines += [line.replace(f"def {prefix}_{name}(", f"def {name}(") for line in found]
        elif hasattr(argand, name):
            lines.append(f"from argand import {name} as {name}")
        else:
            lines.append(
                f"from argand_c10.errors import {name} as {name}"
                if name == "LinAlgError"
                else f"{name}: Any"
            )
    return "\n".join(lines) + "\n"


def module_stub(module_name: str) -> str:
    """A module that hands on the names of others, each named where it is defined: type checkers do not follow a computed `__all__`."""
    module = importlib.import_module(module_name)
    lines = [_HEADER + "# mypy: ignore-errors", "from typing import Any"]
    public = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
    bases = {  # that subclasses of users name
        name
        for name, value in vars(module).items()
        if isinstance(value, type)
        and name.startswith("_")
        and value.__module__.startswith("argand")
    }
    for name in sorted({*public, *bases}):
        value = getattr(module, name)
        if isinstance(value, ModuleType):
            folder, _, last = value.__name__.rpartition(".")
            lines.append(
                f"from {folder} import {last} as {name}" if folder else f"import {last} as {name}"
            )
            continue
        home: str | None = getattr(value, "__module__", None)
        if not isinstance(home, str) or getattr(sys.modules.get(home), name, None) is not value:
            homes = [
                layer
                for layer in (*argand._LAYERS, "argand")
                if getattr(importlib.import_module(layer), name, None) is value
            ]
            home = homes[0] if homes else None
        lines.append(f"{name}: Any" if home is None else f"from {home} import {name} as {name}")
    return "\n".join(lines) + "\n"


def main(folder: str, paths: list[str]) -> None:
    """Write the stubs of the given paths in a folder."""
    head, methods, spaces = parts_of_ops()
    special: dict[str, Callable[[], str]] = {
        "argand_c10-stubs/py.typed": lambda: "partial\n",
        "argand_c10-stubs/_C.pyi": lambda: c10_stub(head, methods),
        "argand/__init__.pyi": front_end_stub,
        "argand/linalg.pyi": lambda: namespace_stub(head, "linalg", spaces),
        "argand/fft.pyi": lambda: namespace_stub(head, "fft", spaces),
    }
    for path in map(Path, paths):
        name = path.relative_to(folder).as_posix()
        module = name.removesuffix("/__init__.pyi").removesuffix(".pyi").replace("/", ".")
        path.write_text(special[name]() if name in special else module_stub(module))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
