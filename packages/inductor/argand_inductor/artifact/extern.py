"""C initialisers of the arguments of an operator call (see `arguments` in program.h)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from argand_inductor.artifact.expressions import to_c
from argand_inductor.artifact.texts import DTYPES, c_string, device_number
from argand_inductor.program import Arg, Buf, Expr, ExternStep, Named, Sym
from argand_inductor.schemas import SchemaArgument, schema_of

NONE = "{ARGAND_TAG_NONE, 0, {0}}"


class Scope(Protocol):
    """What the writer of a program offers to the writer of a call."""

    def integers(self, exprs: Sequence[Expr]) -> int:
        """Where these lie, one after the other, among the program's integers."""

    def tensor(self, name: str) -> int:
        """The number of a tensor, which is made if it is not yet."""

    def tensor_list(self, names: Sequence[str | None]) -> int:
        """Where the numbers of these lie among the program's lists."""

    def doubles(self, texts: Sequence[str]) -> str:
        """The name of a C array of these."""


def double(number: float) -> str:
    """A C literal with exactly this value."""
    if math.isnan(number):
        return '__builtin_nan("")'
    if math.isinf(number):
        return "-__builtin_inf()" if number < 0 else "__builtin_inf()"
    return number.hex()


def value(tag: str, content: str, length: int = 0) -> str:
    """A C initialiser of an ArgandValue."""
    return f"{{ARGAND_TAG_{tag}, {length}, {{{content}}}}}"


class CallWriter:
    """Writes the arguments of one call."""

    def __init__(self, scope: Scope, step: ExternStep) -> None:
        self.scope = scope
        self.step = step

    def values(self) -> list[str]:
        """One initialiser for each schema argument.

        Raises:
            ValueError: if an argument is missing or does not fit the schema.
        """
        arguments = schema_of(self.step.operator).arguments
        if len(arguments) != len(self.step.args):
            raise ValueError(
                f"{self.step.operator}: got {len(self.step.args)} arguments, "
                f"expected all {len(arguments)} of its schema"
            )
        return [
            self._value(argument, arg)
            for argument, arg in zip(arguments, self.step.args, strict=True)
        ]

    def _refuse(self, argument: SchemaArgument, arg: Arg) -> ValueError:
        return ValueError(
            f"{self.step.operator}: argument '{argument.name}': got {arg!r}, expected {argument.type}"
        )

    def _value(self, argument: SchemaArgument, arg: Arg) -> str:
        if arg is None:
            return NONE
        if argument.type.endswith("[]"):
            return self._list(argument, arg)
        match arg:
            case Buf(name=name) if argument.type.startswith("Tensor"):
                return value("TENSOR", f".i = {self.scope.tensor(name)}")
            case Named(kind="dtype", name=name) if argument.type == "ScalarType":
                return value("DTYPE", f".i = {DTYPES.index(name)}")
            case Named(kind="device", name=name) if argument.type == "Device":
                return value("DEVICE", f".i = {device_number(name)}")
            case str() if argument.type == "str":
                n = len(arg.encode())
                return value("STRING", f".s = {c_string(arg)}", n)
            case bool() | int() | float() | complex() | Sym():
                return self._number(argument, arg)
        raise self._refuse(argument, arg)

    def _number(self, argument: SchemaArgument, arg: Arg) -> str:
        kind = argument.type
        if kind in ("float", "Scalar", "Tensor|Scalar") and isinstance(arg, float):
            return value("FLOAT", f".d = {double(arg)}")
        if kind in ("Scalar", "Tensor|Scalar") and isinstance(arg, complex):
            return value("COMPLEX", f".c = {{{double(arg.real)}, {double(arg.imag)}}}")
        if isinstance(arg, float | complex):
            raise self._refuse(argument, arg)
        if kind == "bool" or (isinstance(arg, bool) and kind in ("Scalar", "Tensor|Scalar")):
            tag = "BOOL"
        elif kind in ("int", "Scalar", "Tensor|Scalar"):
            tag = "INT"
        elif kind == "float":
            tag = "FLOAT"
        else:
            raise self._refuse(argument, arg)
        return self.number(tag, arg.expr if isinstance(arg, Sym) else int(arg))

    def number(self, tag: str, expr: Expr) -> str:
        """An integer expression as BOOL, INT or FLOAT."""
        if isinstance(expr, str):
            return value(f"COMPUTED | ARGAND_TAG_{tag}", f".i = {self.scope.integers([expr])}")
        if tag == "INT" and expr >= 2**63:  # which only uint64 holds
            return value(tag, f".i = (int64_t){expr}ull", 1)
        return value(tag, f".d = {double(float(expr))}" if tag == "FLOAT" else f".i = {to_c(expr)}")

    def _list(self, argument: SchemaArgument, arg: Arg) -> str:
        if not isinstance(arg, tuple):
            if not argument.copies:
                raise self._refuse(argument, arg)
            arg = (arg,)
        if len(arg) == 1 and argument.copies:
            arg = arg * argument.copies
        kind = argument.type[:-2]
        if kind.startswith("Tensor"):
            if not all(entry is None or isinstance(entry, Buf) for entry in arg):
                raise self._refuse(argument, arg)
            at = self.scope.tensor_list([None if e is None else e.name for e in arg])
            return value("TENSOR_LIST", f".i = {at}", len(arg))
        if kind == "float":
            if not all(isinstance(entry, int | float) for entry in arg):
                raise self._refuse(argument, arg)
            name = self.scope.doubles([double(float(e)) for e in arg])
            return value("FLOAT_LIST", f".floats = {name}", len(arg))
        if not all(isinstance(entry, int | Sym) for entry in arg):
            raise self._refuse(argument, arg)
        at = self.scope.integers([e.expr if isinstance(e, Sym) else int(e) for e in arg])
        tag = {"int": "INT_LIST", "bool": "BOOL_LIST"}[kind]
        return value(tag, f".i = {at}", len(arg))
