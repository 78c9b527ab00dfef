"""The typed, frozen model of the operator registry: types, schemas, operators.

`Schema.parse` reads PyTorch's schema grammar; `str(schema)` is its canonical text, and `Schema.hash` identifies it across
wheels. An `Operator` is one registry entry after checking; the loader makes it, the emitters read it.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tools.codegen.body import Body
    from tools.codegen.expr import Element

KINDS: Final = (
    "pointwise", "reduction", "scan", "view", "index", "factory", "random", "contraction", "composite", "opaque",
)  # fmt: skip
VARIANTS: Final = ("function", "method", "inplace", "out")
# Rules for results' dtypes besides dtypes: functions of the first tensor's dtype (`<rule>_dtype` in builtins.h and language.py), and itself.
RESULT_FUNCTIONS: Final = ("accumulate", "accumulate_float", "real", "complex", "truth")
RESULT_RULES: Final = ("self", *RESULT_FUNCTIONS)
# Of dtypes that out= may have; computed: any that is computed in; widened: cast, and computed in it if of its category; floating: widened, but results of
# floating-point dtypes stay such; truth: bool or uint8.
OUT_RULES: Final = ("cast", "computed", "widened", "floating", "truth", "exact", "any")
# Of new results of pointwise operators.
LAYOUTS: Final = ("as_operands", "row_major", "row_major_of_number", "row_major_of_complex")
# Of an out= that has another shape.
RESIZE_RULES: Final = ("as_result", "row_major", "row_major_if_filled", "unless_as_many")
# none: one dtype, but for 0-d tensors after the second; self: the first operand's dtype; numbers: no operand is a bool.
PROMOTIONS: Final = ("default", "float", "none", "self", "numbers")
# What autocast does with an operator's floating-point tensors: casts them to the region's dtype, to float32, or to the widest of theirs;
# "none": leaves them, also inside of the body. Without an entry the operators of the body decide.
AUTOCAST_POLICIES: Final = ("lower", "float32", "promote", "none")
AUTOCAST_DEVICES: Final = ("cpu", "accelerator")
IN_PYTHON: Final = "python"  # a kernel that a module of Python registers when it is imported
BACKENDS: Final = ("cpu", "cuda", "hip", "meta", "composite")

# Base types by their text in schemas.
BASE_OF_TEXT: Final = {
    "Tensor": "Tensor",
    "Tensor|Scalar": "Operand",
    "Scalar": "Scalar",
    "int": "int",
    "float": "float",
    "bool": "bool",
    "str": "str",
    "ScalarType": "dtype",
    "Device": "device",
    "Generator": "generator",
}
TEXT_OF_BASE: Final = {base: text for text, base in BASE_OF_TEXT.items()}


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Final = _Required()  # Argument.default where the schema gives none


@dataclass(frozen=True)
class Location:
    """A place in a file; line and column start at 1, 0 means unknown."""

    file: str = "<string>"
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True)
class Type:
    """A schema type. `Tensor(a!)[]?`: base Tensor, alias "a", mutable, is_list, optional.

    `optional` is about the whole (`int[]?` or `Tensor?`); `Tensor?[]` is a list with `optional_elements`.
    """

    base: str
    is_list: bool = False
    list_size: int | None = None
    optional: bool = False
    optional_elements: bool = False
    alias: str | None = None
    mutable: bool = False

    def __str__(self) -> str:
        text = TEXT_OF_BASE.get(self.base, self.base)
        if self.alias is not None:
            text += f"({self.alias}{'!' if self.mutable else ''})"
        if self.is_list:
            text += "?" if self.optional_elements else ""
            text += f"[{self.list_size if self.list_size is not None else ''}]"
        return text + ("?" if self.optional else "")

    @property
    def is_tensor(self) -> bool:
        """One tensor, given or not: Tensor, Tensor?."""
        return self.base == "Tensor" and not self.is_list

    @property
    def is_operand(self) -> bool:
        """Tensor or number."""
        return self.base == "Operand" and not self.is_list

    @property
    def is_number(self) -> bool:
        """A scalar that element expressions can read."""
        return self.base in ("Scalar", "int", "float", "bool") and not self.is_list

    def plain(self) -> Type:
        """Without its alias mark."""
        return dataclasses.replace(self, alias=None, mutable=False)

    def required(self) -> Type:
        return dataclasses.replace(self, optional=False)


@dataclass(frozen=True)
class Argument:
    name: str
    type: Type
    default: Any = REQUIRED  # None, bool, int, float, str or a tuple of such
    kwonly: bool = False

    def __str__(self) -> str:
        text = f"{self.type} {self.name}"
        return text if self.default is REQUIRED else f"{text}={default_text(self.default)}"

    @property
    def has_default(self) -> bool:
        return self.default is not REQUIRED

    @property
    def is_out(self) -> bool:
        return self.kwonly and self.type.mutable


@dataclass(frozen=True)
class Result:
    name: str | None
    type: Type

    def __str__(self) -> str:
        return str(self.type) + (f" {self.name}" if self.name else "")


def default_text(value: Any) -> str:
    """A default as schemas write it."""
    if isinstance(value, tuple):
        return "[" + ", ".join(default_text(v) for v in value) + "]"
    if isinstance(value, str):
        return '"' + value + '"'
    return repr(value)


@dataclass(frozen=True)
class Schema:
    name: str
    overload: str
    arguments: tuple[Argument, ...]
    results: tuple[Result, ...]

    @staticmethod
    def parse(text: str, location: Location | None = None) -> Schema:
        """Reads `name.overload(Tensor self, *, int dim=0) -> (Tensor values, Tensor indices)`.

        Raises:
          SchemaError: with the offset of the offending character.
        """
        from tools.codegen.schema_parser import parse_schema  # the parser builds these classes

        return parse_schema(text, location)

    def __str__(self) -> str:
        parts: list[str] = []
        kwonly = False
        for argument in self.arguments:
            if argument.kwonly and not kwonly:
                parts.append("*")
                kwonly = True
            parts.append(str(argument))
        results = ", ".join(str(r) for r in self.results)
        if len(self.results) != 1 or self.results[0].name:
            results = f"({results})"
        return f"{self.full_name}({', '.join(parts)}) -> {results}"

    @property
    def full_name(self) -> str:
        return f"{self.name}.{self.overload}" if self.overload else self.name

    @property
    def identifier(self) -> str:
        """The full name as an identifier: max_dim, collective_wait for collective::wait."""
        return self.full_name.replace("::", "_").replace(".", "_")

    @property
    def hash(self) -> int:
        """A stable uint64 of the canonical text."""
        return int.from_bytes(hashlib.sha256(str(self).encode()).digest()[:8], "little")

    def argument(self, name: str) -> Argument | None:
        return next((a for a in self.arguments if a.name == name), None)

    def index(self, name: str) -> int:
        """The position of an argument."""
        return next(i for i, a in enumerate(self.arguments) if a.name == name)

    @property
    def is_inplace(self) -> bool:
        """Changes its first argument and returns it (or nothing), as `add_` does."""
        return (
            self.name.endswith("_")
            and not self.name.endswith("__")
            and bool(self.arguments)
            and self.arguments[0].type.mutable
        )

    @property
    def is_out(self) -> bool:
        return any(a.is_out for a in self.arguments)

    @property
    def base_name(self) -> str:
        """The group's name: `add` for add, add_ and add.out."""
        return self.name[:-1] if self.is_inplace else self.name

    def inplace(self) -> Schema:
        """The in-place form: name_, with the first argument marked and returned."""
        first, *rest = self.arguments
        marked = Type("Tensor", alias="a", mutable=True)
        arguments = (dataclasses.replace(first, type=marked), *rest)
        return Schema(self.name + "_", self.overload, arguments, (Result(None, marked),))

    def out_names(self) -> tuple[str, ...]:
        """Names of the out arguments: `out`, or the result names."""
        if len(self.results) == 1:
            return ("out",)
        return tuple(r.name or f"out{i}" for i, r in enumerate(self.results))

    def out_form(self) -> Schema:
        """The `out=` form: the same arguments, then the out tensors, which are returned."""
        alias = "abcdefgh"
        taken = {a.type.alias for a in self.arguments}
        marks = [m for m in alias if m not in taken]
        outs = tuple(
            Argument(name, Type("Tensor", alias=marks[i], mutable=True), kwonly=True)
            for i, name in enumerate(self.out_names())
        )
        results = tuple(Result(r.name, o.type) for r, o in zip(self.results, outs, strict=True))
        overload = f"{self.overload}_out" if self.overload else "out"
        return Schema(self.name, overload, self.arguments + outs, results)


# ---- operators ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Derivative:
    """The gradients of `args` (argument names).

    body: returns one gradient per entry of `args`; None: `args` get no gradient (`none` in the registry).
    needs(arg) and the rest of the language are available; every argument and result may be named.
    from_expr: it was written `d(expr)`, and `body` calls the synthesized backward operator.
    by_body: it was written `d(body)`: where this gradient is wanted, the operator's `body` is computed in place of its
    kernel, and derived operator by operator; `body` here is None.
    """

    args: tuple[str, ...]
    body: Body | None
    from_expr: bool = False
    by_body: bool = False

    @property
    def is_none(self) -> bool:
        return self.body is None and not self.by_body


@dataclass(frozen=True)
class Reduce:
    """A reduction's element expressions.

    init: the start value: a Number, or Name("lowest") or Name("highest") of the computation's dtype. map: over `x`, the
    element. combine: over `a`, `b` (associative). final: over `acc` (the combined value) and `n` (the number of elements).
    acc: the accumulator's dtype, or None for the default (the result's dtype; float32 for float16 and bfloat16).
    """

    init: Element
    map: Element
    combine: Element
    final: Element
    acc: str | None = None
    nonempty: bool = False  # reducing no elements is an error


@dataclass(frozen=True)
class Scan:
    """A running combination along `dim`: init, and combine over `a` (so far) and `b` (the next element)."""

    init: Element
    combine: Element
    acc: str | None = None


@dataclass(frozen=True)
class Sample:
    """One extra call of the generated tests: arguments as Python expressions' text, see samples.py."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    location: Location = Location()


@dataclass(frozen=True)
class Operator:
    """One operator group: the schema of its functional form (or of the only form) and everything known about it."""

    schema: Schema
    kind: str
    family: str
    dtypes: tuple[str, ...] = ()  # of the computation; empty: any
    promote: str = "default"
    # None: the computation's (or the first tensor's). A dtype; "accumulate": int64 for integers and bool, else the computation's (as sums do);
    # "accumulate_float": float32 for half types; "truth": bool, of uint8 uint8; "real", "complex": the parts' dtype, that of such parts; a tensor
    # argument: its dtype, or without it the first tensor's; "self", where no argument has that name: the first tensor's. Several results: one each.
    result_dtype: str | tuple[str, ...] | None = None
    expr: Mapping[str | None, Element] = field(
        default_factory=dict
    )  # by value of the only str argument, or {None: ...}
    reduce: Reduce | None = None
    scan: Scan | None = None
    shape: Body | None = None
    dtype_rule: Body | None = None
    body: Body | None = None
    kernel: Mapping[str, str] = field(default_factory=dict)  # backend -> function name
    checked: bool = False  # the CPU kernel relies on the checks of `shape`, which runs before it
    numbers: bool = False  # may be called with numbers in place of all its tensors
    exact_numbers: bool = False  # numbers beside 16-bit floats are not rounded to their dtype
    autocast: tuple[str, str] | None = None  # the policies of AUTOCAST_DEVICES
    grad: tuple[Derivative, ...] = ()
    grad_none: bool = False  # `grad: none`: never differentiable
    grad_missing: bool = False  # `grad: missing`: nobody wrote it; asking for it raises
    tied: tuple[
        str, ...
    ] = ()  # arguments whose gradients have derivatives of zero for all arguments
    variants: tuple[str, ...] = ("function", "method")
    out: str | None = None  # OUT_RULES: what dtype out= has; None: as the kind says
    layout: str = "as_operands"  # LAYOUTS
    resized: str = "as_result"  # RESIZE_RULES: how an out= that was resized lies
    apart: tuple[str, ...] = ()  # arguments that share no memory at all with what is written
    aliases: tuple[str, ...] = ()
    shown: str | None = None  # of a composite: the name that its messages begin with
    doc: str = ""
    reference: str | None = None
    moments: Mapping[str, str] = field(
        default_factory=dict
    )  # of random numbers: mean and var, in NumPy
    samples: tuple[Sample, ...] = ()
    domain: tuple[float, float] | None = (
        None  # of the tests' random floats; None: where the primitives are smooth
    )
    tolerance: Mapping[str, float] = field(default_factory=dict)
    skips: Mapping[str, str] = field(default_factory=dict)
    location: Location = Location()
    backward_of: str | None = None  # set on synthesized backward operators

    @property
    def name(self) -> str:
        """Unique, with overload: "max.dim"."""
        return self.schema.full_name

    @property
    def base_name(self) -> str:
        return self.schema.base_name

    @property
    def public_name(self) -> str:
        """What users call: the name without its overload."""
        return self.schema.name

    @property
    def identifier(self) -> str:
        """A C++ and Python identifier: max_dim."""
        return self.schema.identifier

    @property
    def result_rules(self) -> tuple[str | None, ...]:
        """The rule of each result's dtype."""
        rule = self.result_dtype
        return rule if isinstance(rule, tuple) else (rule,) * len(self.schema.results)

    def dtype_source(self, rule: str | None) -> Argument | None:
        """The tensor argument that a rule names, whose dtype the result has."""
        named = self.schema.argument(rule) if rule is not None else None
        return named if named is not None and named.type.is_tensor else None

    @property
    def out_rule(self) -> str:
        """Which dtype out= has: one of OUT_RULES, but for "computed"."""
        if self.out == "computed":
            return "cast"
        return self.out or ("cast" if self.kind in ("pointwise", "reduction", "scan") else "exact")

    @property
    def exact_out(self) -> bool:
        return self.out_rule == "exact"

    @property
    def is_inplace(self) -> bool:
        return self.schema.is_inplace

    @property
    def is_view(self) -> bool:
        return self.kind == "view"

    @property
    def is_random(self) -> bool:
        return self.kind == "random" or any(
            a.type.base == "generator" for a in self.schema.arguments
        )

    @property
    def is_composite(self) -> bool:
        """Has a body and no derivative of its own."""
        return self.kind == "composite" and not self.grad

    @property
    def derived_by_body(self) -> bool:
        """`d(body)`: under autograd the body replaces the kernel."""
        return any(d.by_body for d in self.grad)

    @property
    def inplace_schema(self) -> Schema | None:
        """The schema of the generated in-place form, if there is one."""
        return self.schema.inplace() if "inplace" in self.variants else None

    @property
    def out_schema(self) -> Schema | None:
        return self.schema.out_form() if "out" in self.variants else None

    def forms(self) -> tuple[Schema, ...]:
        """All schemas of the group: functional, in-place, out."""
        return tuple(
            s for s in (self.schema, self.inplace_schema, self.out_schema) if s is not None
        )

    @property
    def tensor_arguments(self) -> tuple[Argument, ...]:
        """Arguments that are (or may be) one tensor: Tensor, Tensor?, Tensor|Scalar."""
        return tuple(a for a in self.schema.arguments if a.type.is_tensor or a.type.is_operand)

    @property
    def operands(self) -> tuple[Argument, ...]:
        """The tensors and numbers that a pointwise expression reads element by element."""
        return self.tensor_arguments

    @property
    def conditions(self) -> tuple[str, ...]:
        """Operands that are bool tensors whatever the computation's dtype: masks in expressions."""
        return tuple(a.name for a in self.operands if a.name in ("condition", "mask"))

    @property
    def scalars(self) -> tuple[Argument, ...]:
        """Number arguments besides the operands: `alpha` of add."""
        return tuple(a for a in self.schema.arguments if a.type.is_number)

    @property
    def variant_argument(self) -> Argument | None:
        """The str argument that chooses between expressions."""
        return next(
            (a for a in self.schema.arguments if a.type.base == "str" and not a.type.is_list), None
        )

    @property
    def is_differentiable(self) -> bool:
        return any(not d.is_none for d in self.grad)


@dataclass(frozen=True)
class Registry:
    """All operators. `operators` is ordered by family, then as the files have them, synthesized ones after their maker.

    Operators that come from an index (another family's) have only their facts: schema, kind, variants, aliases.
    """

    operators: Mapping[str, Operator]
    families: tuple[str, ...]

    def overloads(self, public_name: str) -> tuple[Operator, ...]:
        """Operators that one public callable tries, in file order (aliases included)."""
        return tuple(
            op
            for op in self.operators.values()
            if op.public_name == public_name or public_name in op.aliases
        )

    def family(self, name: str) -> tuple[Operator, ...]:
        return tuple(op for op in self.operators.values() if op.family == name)

    def callables(self) -> tuple[tuple[str, Schema], ...]:
        """(public name, schema) of every form that can be called by name: functional and in-place forms."""
        return tuple(
            (s.name, s)
            for op in self.operators.values()
            for s in op.forms()
            if not s.is_out or s is op.schema
        )
