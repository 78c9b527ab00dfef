"""C initialisers of the arguments of an operator call."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Protocol

from argand_inductor.artifact.texts import DTYPES, c_string
from argand_inductor.program import Arg, Buf, Expr, ExternStep, Named, Sym
from argand_inductor.schemas import SchemaArgument, schema_of

_DEVICES = {"cpu": "ARGAND_DEVICE(ARGAND_CPU, 0)", "meta": "ARGAND_DEVICE(ARGAND_META, 0)"}
NONE = "{.tag = ARGAND_TAG_NONE}"


class Scope(Protocol):
    """What the writer of a program offers to the writer of a call."""

    def integer(self, expr: Expr) -> str:
        """The C text of an integer expression."""

    def tensor(self, name: str) -> str:
        """The C text of a tensor pointer."""


def double(value: float) -> str:
    """A C literal with exactly this value."""
    if math.isnan(value):
        return '__builtin_nan("")'
    if math.isinf(value):
        return "-__builtin_inf()" if value < 0 else "__builtin_inf()"
    return value.hex()


class CallWriter:
    """Writes the arguments of one call: declarations of lists, then the array of values."""

    def __init__(self, scope: Scope, step: ExternStep) -> None:
        self.scope = scope
        self.step = step
        self.declarations: list[str] = []

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
                return f"{{.tag = ARGAND_TAG_TENSOR, .t = {self.scope.tensor(name)}}}"
            case Named(kind="dtype", name=name) if argument.type == "ScalarType":
                return f"{{.tag = ARGAND_TAG_DTYPE, .i = {DTYPES.index(name)}}}"
            case Named(kind="device", name=name) if argument.type == "Device":
                return f"{{.tag = ARGAND_TAG_DEVICE, .i = {_DEVICES[name.partition(':')[0]]}}}"
            case str() if argument.type == "str":
                n = len(arg.encode())
                return f"{{.tag = ARGAND_TAG_STRING, .len = {n}, .s = {c_string(arg)}}}"
            case bool() | int() | float() | complex() | Sym():
                return self._number(argument, arg)
        raise self._refuse(argument, arg)

    def _number(self, argument: SchemaArgument, arg: Arg) -> str:
        kind = argument.type
        if kind in ("float", "Scalar", "Tensor|Scalar") and isinstance(arg, float):
            return f"{{.tag = ARGAND_TAG_FLOAT, .d = {double(arg)}}}"
        if kind in ("Scalar", "Tensor|Scalar") and isinstance(arg, complex):
            return f"{{.tag = ARGAND_TAG_COMPLEX, .c = {{{double(arg.real)}, {double(arg.imag)}}}}}"
        if isinstance(arg, float | complex):
            raise self._refuse(argument, arg)
        text = self.scope.integer(arg.expr if isinstance(arg, Sym) else int(arg))
        if kind == "float":
            return f"{{.tag = ARGAND_TAG_FLOAT, .d = (double){text}}}"
        if kind == "bool" or (isinstance(arg, bool) and kind != "int"):
            return f"{{.tag = ARGAND_TAG_BOOL, .i = {text}}}"
        if kind in ("int", "Scalar", "Tensor|Scalar"):
            return f"{{.tag = ARGAND_TAG_INT, .i = {text}}}"
        raise self._refuse(argument, arg)

    def _array(self, c_type: str, entries: Iterable[str]) -> str:
        name = f"list{len(self.declarations)}"
        self.declarations.append(f"{c_type} {name}[] = {{{', '.join(entries) or '0'}}};")
        return name

    def _list(self, argument: SchemaArgument, arg: Arg) -> str:
        if not isinstance(arg, tuple):
            if not argument.copies:
                raise self._refuse(argument, arg)
            arg = (arg,) * argument.copies
        kind = argument.type[:-2]
        if kind.startswith("Tensor"):
            if not all(entry is None or isinstance(entry, Buf) for entry in arg):
                raise self._refuse(argument, arg)
            texts = ["NULL" if e is None else self.scope.tensor(e.name) for e in arg]
            name = self._array("ArgandTensor*", texts)
            return f"{{.tag = ARGAND_TAG_TENSOR_LIST, .len = {len(arg)}, .tensors = {name}}}"
        if not all(isinstance(entry, int | float | Sym) for entry in arg):
            raise self._refuse(argument, arg)
        integer: Callable[[Arg], str] = lambda e: self.scope.integer(  # noqa: E731
            e.expr if isinstance(e, Sym) else int(e)
        )
        if kind == "float":
            texts = [double(e) if isinstance(e, float) else f"(double){integer(e)}" for e in arg]
            name = self._array("const double", texts)
            return f"{{.tag = ARGAND_TAG_FLOAT_LIST, .len = {len(arg)}, .floats = {name}}}"
        name = self._array("const int64_t", [integer(e) for e in arg])
        tag = {"int": "INT_LIST", "bool": "BOOL_LIST"}[kind]
        return f"{{.tag = ARGAND_TAG_{tag}, .len = {len(arg)}, .ints = {name}}}"
