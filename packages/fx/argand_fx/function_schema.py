"""An operator's schema with PyTorch's names: what programs read from `op._schema`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from argand_c10 import Operator
from argand_fx.schema import Argument as Parsed
from argand_fx.schema import schema_of

__all__ = ["AliasInfo", "Argument", "FunctionSchema", "SchemaType", "function_schema"]

_TYPES = {
    "Scalar": "number", "dtype": "ScalarType", "Device": "Device", "Generator": "Generator",
}  # fmt: skip
_WRITTEN = {"number": "Scalar"}  # in the text of a schema


@dataclass(frozen=True, slots=True)
class SchemaType:
    """A type, whose text is PyTorch's.

    Attributes:
        name: of the type, or of the elements of a list.
        is_list, size: whether it is a list, and its fixed length; 0 if there is none.
        optional, item_optional: whether it, or an element of the list, may be None.
    """

    name: str
    is_list: bool = False
    size: int = 0
    optional: bool = False
    item_optional: bool = False

    def kind(self) -> str:
        """PyTorch's name of the outermost type."""
        outer = "Optional" if self.optional else "List" if self.is_list else self.name.capitalize()
        return f"{outer}Type"

    def isSubtypeOf(self, other: object) -> bool:
        """Whether it is the type itself."""
        return self == other

    def getElementType(self) -> SchemaType:
        """Of a list, or of what may be None."""
        if self.optional:
            return SchemaType(self.name, self.is_list, self.size, False, self.item_optional)
        return SchemaType(self.name, optional=self.item_optional)

    def __str__(self) -> str:
        if self.optional:
            return f"Optional[{self.getElementType()}]"
        return f"List[{self.getElementType()}]" if self.is_list else self.name

    def text(self, alias: str = "") -> str:
        """As it is written in a schema."""
        name = _WRITTEN.get(self.name, self.name)
        if self.is_list:
            inner = f"{name}?" if self.item_optional else name
            length = self.size or ""
            return f"{inner}{alias}[{length}]{'?' if self.optional else ''}"
        return f"{name}{alias}{'?' if self.optional else ''}"


@dataclass(frozen=True, slots=True)
class AliasInfo:
    """With what an argument or a result shares its memory.

    Attributes:
        is_write: whether it is written into.
        before_set: the names of the memory.
    """

    is_write: bool
    before_set: frozenset[str]

    @property
    def after_set(self) -> frozenset[str]:
        """The names of the memory after the call, which are the same."""
        return self.before_set

    def __str__(self) -> str:
        return f"({'|'.join(sorted(self.before_set))}{'!' if self.is_write else ''})"


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument, or a result.

    Attributes:
        name: empty for a result without one.
        default_value: None where there is none.
        N: the length of a list that has one.
        kwarg_only: can be given by keyword alone.
        alias_info: None for what shares no memory.
    """

    name: str
    type: SchemaType
    default_value: Any = None
    N: int | None = None
    kwarg_only: bool = False
    alias_info: AliasInfo | None = None
    _has_default: bool = False

    @property
    def real_type(self) -> SchemaType:
        """The type."""
        return self.type

    @property
    def is_out(self) -> bool:
        """Whether it is a result's memory that the caller gives."""
        return self.kwarg_only and self.alias_info is not None and self.alias_info.is_write

    @property
    def is_write(self) -> bool:
        """Whether it is written into."""
        return self.alias_info is not None and self.alias_info.is_write

    def has_default_value(self) -> bool:
        """Whether a call may leave it out."""
        return self._has_default

    def __str__(self) -> str:
        text = self.type.text(str(self.alias_info or ""))
        text = f"{text} {self.name}" if self.name else text
        if not self._has_default:
            return text
        value = self.default_value
        if self.N and value == [0] * self.N:
            value = 0
        return f"{text}={_literal(value)}"


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    return str(value)


@dataclass(frozen=True, slots=True)
class FunctionSchema:
    """The schema of one overload.

    Attributes:
        name: "namespace::name".
        overload_name: empty for the one without.
    """

    name: str
    overload_name: str
    arguments: tuple[Argument, ...]
    returns: tuple[Argument, ...]

    @property
    def is_mutable(self) -> bool:
        """Whether it writes into an argument."""
        return any(a.is_write for a in self.arguments)

    def __str__(self) -> str:
        name = f"{self.name}.{self.overload_name}" if self.overload_name else self.name
        given = [str(a) for a in self.arguments]
        first = next((i for i, a in enumerate(self.arguments) if a.kwarg_only), None)
        if first is not None:
            given.insert(first, "*")
        results = ", ".join(map(str, self.returns))
        single = len(self.returns) == 1 and not self.returns[0].name
        return f"{name}({', '.join(given)}) -> {results if single else f'({results})'}"


def _argument(a: Parsed, letter: str, operand: str) -> Argument:
    name = operand if a.type == "Operand" else _TYPES.get(a.type, a.type)
    kind = SchemaType(name, a.is_list, a.size, a.optional, a.item_optional)
    alias = AliasInfo(a.written, frozenset(letter)) if a.written or a.alias else None
    return Argument(a.name, kind, a.default, a.size or None, a.kwonly, alias, a.has_default)


def function_schema(op: Operator, namespace: str, overload: str) -> FunctionSchema:
    """The schema of an overload, which has these names elsewhere; of tensors and numbers it takes what the overload's name says, else tensors."""
    read = schema_of(op)
    aliased = [a.name for a in read.arguments if a.written or a.alias]
    letters = {name: "abcdefgh"[i] for i, name in enumerate(aliased)}
    second = "number" if "Scalar" in overload.split("_") else "Tensor"
    arguments = tuple(
        _argument(a, letters.get(a.name, ""), second if i else "Tensor")
        for i, a in enumerate(read.arguments)
    )
    shared = [a.alias_info for a in arguments if a.alias_info is not None]
    names = read.result_names or ("",) * read.results
    returns = []
    for i, (name, kind) in enumerate(zip(names, read.result_types, strict=True)):
        element = kind.removesuffix("[]")
        alias = shared[i] if i < len(shared) and element == "Tensor" else None
        made = SchemaType(_TYPES.get(element, element), is_list=kind != element)
        returns.append(Argument(name, made, alias_info=alias))
    short = read.name.partition("::")[2] or read.name
    return FunctionSchema(
        f"{namespace}::{short.partition('.')[0]}", overload, arguments, tuple(returns)
    )
