"""Parses PyTorch's schema grammar into model.Schema.

schema   = [namespace "::"] name ["." overload] "(" arguments ")" "->" results
argument = type name ["=" default] | "*"
type     = base ["(" alias ["!"] ")"] ["?"] ["[" [size] "]"] ["?"]
"""

from __future__ import annotations

import ast
import re
from typing import Any

from tools.codegen.model import BASE_OF_TEXT, REQUIRED, Argument, Location, Result, Schema, Type

_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_SPACE = re.compile(r"\s*")
_DEFAULT_END = re.compile(r"""(\[[^\]]*\]|"[^"]*"|'[^']*'|[^,\s)]+)""")


class SchemaError(ValueError):
    """A schema that cannot be read; `offset` points into its text, `length` spans the offending part."""

    def __init__(
        self, message: str, offset: int, length: int = 1, location: Location | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.length = length
        self.location = location


class _Parser:
    def __init__(self, text: str, location: Location | None) -> None:
        self.text = text
        self.pos = 0
        self.location = location

    def fail(self, message: str, offset: int | None = None, length: int = 1) -> SchemaError:
        return SchemaError(message, self.pos if offset is None else offset, length, self.location)

    def space(self) -> None:
        self.pos = _SPACE.match(self.text, self.pos).end()  # type: ignore[union-attr]

    def at(self, token: str) -> bool:
        self.space()
        return self.text.startswith(token, self.pos)

    def accept(self, token: str) -> bool:
        if self.at(token):
            self.pos += len(token)
            return True
        return False

    def expect(self, token: str, after: str) -> None:
        if not self.accept(token):
            raise self.fail(f"expected '{token}' {after}")

    def name(self, what: str) -> str:
        self.space()
        match = _NAME.match(self.text, self.pos)
        if match is None:
            raise self.fail(f"expected {what}")
        self.pos = match.end()
        return match.group()

    def type(self) -> Type:
        self.space()
        start = self.pos
        base = self.name("a type")
        if base == "Tensor" and self.accept("|"):
            start_second = self.pos
            if self.name("Scalar") != "Scalar":
                raise self.fail("only Tensor|Scalar is an operand", start_second)
            base = "Tensor|Scalar"
        if base not in BASE_OF_TEXT:
            expected = ", ".join(BASE_OF_TEXT)
            raise self.fail(f"unknown type '{base}'; expected one of {expected}", start, len(base))
        alias, mutable = None, False
        if self.text.startswith("(", self.pos):
            self.pos += 1
            alias = self.name("an alias mark such as (a) or (a!)")
            mutable = self.accept("!")
            self.expect(")", "after the alias mark")
        optional = self.text.startswith("?", self.pos)
        self.pos += optional
        is_list, size, elements = False, None, False
        if self.text.startswith("[", self.pos):
            self.pos += 1
            self.space()
            digits = re.compile(r"\d*").match(self.text, self.pos).group()  # type: ignore[union-attr]
            self.pos += len(digits)
            size = int(digits) if digits else None
            self.expect("]", "after the list size")
            is_list, elements = True, optional
            optional = self.text.startswith("?", self.pos)
            self.pos += optional
        return Type(BASE_OF_TEXT[base], is_list, size, optional, elements, alias, mutable)

    def default(self, type_: Type) -> Any:
        self.space()
        start = self.pos
        match = _DEFAULT_END.match(self.text, self.pos)
        if match is None:
            raise self.fail("expected a default value after '='")
        self.pos = match.end()
        text = match.group()
        try:
            value = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            raise self.fail(f"default '{text}' is not a literal", start, len(text)) from None
        if isinstance(value, list):
            value = tuple(value)
        if not _fits(value, type_):
            raise self.fail(f"default {text} does not fit type {type_}", start, len(text))
        if type_.base == "float" and type(value) is int:
            value = float(value)
        return value

    def arguments(self) -> tuple[Argument, ...]:
        found: list[Argument] = []
        kwonly = False
        while not self.accept(")"):
            if found or kwonly:
                self.expect(",", "between arguments")
            if self.at("*"):
                if kwonly:
                    raise self.fail("a second '*'")
                self.pos += 1
                kwonly = True
                continue
            type_ = self.type()
            self.space()
            start = self.pos
            name = self.name("an argument name")
            if any(a.name == name for a in found):
                raise self.fail(f"argument '{name}' is given twice", start, len(name))
            default = self.default(type_) if self.accept("=") else REQUIRED
            if default is REQUIRED and not kwonly and found and found[-1].has_default:
                raise self.fail(
                    f"argument '{name}' has no default but follows one that has", start, len(name)
                )
            found.append(Argument(name, type_, default, kwonly))
        return tuple(found)

    def results(self) -> tuple[Result, ...]:
        if not self.accept("("):
            return (Result(None, self.type()),)
        found: list[Result] = []
        while not self.accept(")"):
            if found:
                self.expect(",", "between results")
            type_ = self.type()
            self.space()
            name = self.name("a result name") if _NAME.match(self.text, self.pos) else None
            found.append(Result(name, type_))
        return tuple(found)

    def schema(self) -> Schema:
        name = self.name("an operator name")
        if self.text.startswith("::", self.pos):
            self.pos += 2
            name += "::" + self.name("an operator name")
        overload = ""
        if self.text.startswith(".", self.pos):
            self.pos += 1
            overload = self.name("an overload name")
        self.expect("(", "after the operator's name")
        arguments = self.arguments()
        self.expect("->", "after the arguments")
        results = self.results()
        self.space()
        if self.pos != len(self.text):
            raise self.fail("text after the end of the schema", self.pos, len(self.text) - self.pos)
        return Schema(name, overload, arguments, results)


def _fits(value: Any, type_: Type) -> bool:
    if value is None:
        return type_.optional
    if type_.is_list:
        if isinstance(value, tuple):
            return all(_fits(v, Type(type_.base)) for v in value)
        return type_.list_size is not None and _fits(value, Type(type_.base))
    accepted: dict[str, tuple[type, ...]] = {
        "int": (int,),
        "float": (int, float),
        "bool": (bool,),
        "str": (str,),
        "Scalar": (bool, int, float, complex),
        "Operand": (bool, int, float, complex),
    }
    if type_.base == "int" and isinstance(value, bool):
        return False
    return isinstance(value, accepted.get(type_.base, ()))


def parse_schema(text: str, location: Location | None = None) -> Schema:
    """See Schema.parse."""
    return _Parser(text, location).schema()
