"""Checks of one operator and of the registry as a whole; each gives places and messages, the loader collects them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from tools.codegen import dtypes
from tools.codegen.body import INTS, LType
from tools.codegen.expr import INTEGER_PRIMITIVES, Call, Number, suggest, walk
from tools.codegen.model import IN_PYTHON, Location, Operator, Schema
from tools.codegen.samples import looks_like_tensor, parse_tensor

if TYPE_CHECKING:
    from tools.codegen.loader import Entry
    from tools.codegen.yaml_nodes import Node

Problem = tuple[Location, str, int]

# What a kind must have, and what it may have besides the keys that every entry may have.
REQUIRED: Final[dict[str, tuple[str, ...]]] = {
    "pointwise": ("expr", "dtypes"),
    "reduction": ("reduce", "dtypes"),
    "scan": ("scan", "dtypes"),
    "view": ("shape",),
    "composite": ("body",),
    "index": ("kernel",),
    "factory": ("kernel",),
    "random": ("kernel",),
    "contraction": ("kernel",),
    "opaque": ("kernel",),
}
_OWNED: Final = {
    "expr": ("pointwise",),
    "layout": ("pointwise",),
    "exact_numbers": ("pointwise",),
    "reduce": ("reduction",),
    "scan": ("scan",),
}
TESTS: Final = (
    "all", "reference", "broadcast", "empty", "zero_dim", "noncontiguous", "special", "out", "inplace", "promotion",
    "meta", "errors", "shapes", "composite", "seeds", "moments", "gradcheck", "gradgradcheck",
)  # fmt: skip


def operator_problems(op: Operator, keys: Mapping[str, Node], node: Node) -> Iterator[Problem]:
    name_length = len(op.schema.full_name)
    here = keys["op"].location
    for key in REQUIRED[op.kind]:
        if key not in keys:
            yield here, f"{op.name}: kind {op.kind} needs `{key}:`", name_length
    for key, kinds in _OWNED.items():
        if key in keys and op.kind not in kinds:
            yield (
                keys[key].location,
                f"{op.name}: `{key}:` is for kind {kinds[0]}, this is {op.kind}",
                1,
            )
    if "body" in keys and op.kind != "composite" and not op.derived_by_body:
        place = keys["body"].location
        yield (
            place,
            f"{op.name}: `body:` beside a kernel is for a gradient d(body); otherwise use kind composite",
            4,
        )
    by_body = op.kind == "composite" and not op.is_composite and set(op.kernel) <= {"cpu", "cuda"}
    if "kernel" in keys and op.kind in ("pointwise", "composite", "view") and not by_body:
        yield (
            keys["kernel"].location,
            f"{op.name}: kind {op.kind} has no kernel of its own; it is generated",
            1,
        )
    if not op.doc:
        yield here, f"{op.name}: needs `doc:`, one sentence", name_length
    yield from _alias_problems(op, here)
    yield from _grad_problems(op, keys, here)
    yield from _form_problems(op, keys)
    if "moments" in keys and set(op.moments) != {"mean", "var"}:
        yield keys["moments"].location, f"{op.name}: moments are {{mean: ..., var: ...}}", 7
    for test in op.skips:
        if test not in TESTS:
            hint = suggest(test, TESTS) or "; known are " + ", ".join(TESTS)
            yield keys["skips"].location, f"{op.name}: unknown test '{test}' in skips{hint}", 1
    if op.shape is not None and not _is_shape(op.shape.result):
        got = op.shape.result
        yield (
            keys["shape"].location,
            f"{op.name}: shape returns {got}, expected int lists or strided(...)",
            1,
        )


def _alias_problems(op: Operator, here: Location) -> Iterator[Problem]:
    schema, length = op.schema, len(op.schema.full_name)
    aliases = {a.type.alias for a in schema.arguments if a.type.alias}
    mutable = [a for a in schema.arguments if a.type.mutable]
    returned = {r.type.alias for r in schema.results if r.type.alias}
    for alias in returned - aliases:
        yield here, f"{op.name}: a result is marked ({alias}), but no argument is", length
    if op.kind == "view":
        first = schema.arguments[0].type if schema.arguments else None
        if first is None or first.alias is None or first.mutable:
            yield (
                here,
                f"{op.name}: a view's first argument carries an alias mark, Tensor(a) self",
                length,
            )
        elif any(r.type.alias != first.alias for r in schema.results):
            yield (
                here,
                f"{op.name}: a view's results carry the mark of its first argument, Tensor({first.alias})",
                length,
            )
    if op.kind in ("pointwise", "reduction", "scan", "contraction", "factory") and (
        aliases or returned
    ):
        yield (
            here,
            f"{op.name}: kind {op.kind} makes new tensors, but its schema has alias marks",
            length,
        )
    ends = schema.name.endswith("_") and not schema.name.endswith("__")
    if ends and not schema.is_inplace:
        yield (
            here,
            f"{op.name}: an in-place operator changes its first argument; mark it Tensor(a!)",
            length,
        )
    if mutable and not ends and not schema.is_out:
        yield (
            here,
            f"{op.name}: '{mutable[0].name}' is marked as changed, but the name does not end with '_'",
            length,
        )
    if schema.is_inplace and schema.results:
        first = schema.arguments[0].type
        if not first.is_list and (
            len(schema.results) != 1 or schema.results[0].type.alias != first.alias
        ):
            yield (
                here,
                f"{op.name}: an in-place operator returns its first argument, Tensor({first.alias}!)",
                length,
            )


def _grad_problems(op: Operator, keys: Mapping[str, Node], here: Location) -> Iterator[Problem]:
    for name in op.tied:
        if not any(name in d.args and d.body is not None for d in op.grad):
            yield keys["tied"].location, f"{op.name}: tied '{name}' has no gradient here", 1
    if op.kind == "composite" or "grad" in keys:
        return
    floating = not op.dtypes or any(dtypes.is_differentiable(d) for d in op.dtypes)
    tensors = [a for a in op.schema.arguments if a.type.base in ("Tensor", "Operand")]
    if floating and tensors:
        yield (
            here,
            (
                f"{op.name}: computes on floating-point tensors but says nothing about its derivative; "
                "give `grad: {...}`, `grad: none` or `grad: missing`"
            ),
            len(op.schema.full_name),
        )


def _form_problems(op: Operator, keys: Mapping[str, Node]) -> Iterator[Problem]:
    schema = op.schema
    if "inplace" in op.variants:
        first = schema.arguments[0].type if schema.arguments else None
        if (
            first is None
            or first.base not in ("Tensor", "Operand")
            or first.is_list
            or len(schema.results) != 1
        ):
            where = keys.get("variants", keys["op"]).location
            yield where, f"{op.name}: an in-place form needs one tensor first and one result", 1
    if "out" in op.variants and any(r.type.is_list for r in schema.results):
        yield (
            keys.get("variants", keys["op"]).location,
            f"{op.name}: an out form cannot return a list",
            1,
        )
    if schema.is_inplace and ("inplace" in op.variants or "out" in op.variants):
        yield (
            keys.get("variants", keys["op"]).location,
            f"{op.name}: is in-place already; it has no such forms",
            1,
        )
    if op.kind == "pointwise" and not op.operands:
        yield keys["op"].location, f"{op.name}: a pointwise operator needs a tensor argument", 1
    if (
        op.kind == "pointwise"
        and None not in op.expr
        and op.variant_argument is not None
        and op.expr
    ):
        default = op.variant_argument.default
        if isinstance(default, str) and default not in op.expr:
            yield (
                keys["expr"].location,
                f"{op.name}: no expression for the default {op.variant_argument.name}='{default}'",
                1,
            )


def _is_shape(type_: LType) -> bool:
    if type_.base == "tuple":
        return all(_is_shape(i) for i in type_.items)
    if type_.base == "list" and type_.items and type_.item.base in ("list", "strided"):
        return _is_shape(type_.item)
    return (
        type_.base == "strided"
        or type_.required() == INTS
        or (type_.base == "list" and not type_.items)
        or (type_.base == "list" and type_.item.base == "int" and not type_.optional)
    )


def element_problems(op: Operator, text: str) -> Iterator[tuple[str, int, int]]:
    """Where an operator computes in integers, everything in its expression must stay integral."""
    if not any(d in dtypes.INTEGRAL or d in dtypes.BOOLEAN for d in op.dtypes):
        return
    for x in op.expr.values():
        for node in walk(x):
            if isinstance(node, Call) and node.fn not in INTEGER_PRIMITIVES:
                offset = max(text.find("/" if node.fn == "div" else node.fn), 0)
                yield (
                    f"{op.name}: {node.fn} gives no integer, but dtypes has integers; use `dtypes: floating` with "
                    "`promote: float`",
                    offset,
                    1 if node.fn == "div" else len(node.fn),
                )
                return
            if isinstance(node, Number) and isinstance(node.value, float):
                offset = max(text.find(repr(node.value)), 0)
                yield (
                    f"{op.name}: {node.value!r} is no integer, but dtypes has integers",
                    offset,
                    len(repr(node.value)),
                )
                return


def grad_argument_problem(op: Operator, name: str, seen: Sequence[str]) -> str | None:
    argument = op.schema.argument(name)
    if argument is None:
        known = [a.name for a in op.schema.arguments]
        return f"{op.name}: gradient for unknown argument '{name}'{suggest(name, known)}"
    if argument.type.base not in ("Tensor", "Operand"):
        return f"{op.name}: '{name}' is {argument.type}, only tensors have gradients"
    return f"{op.name}: the gradient of '{name}' is given twice" if name in seen else None


def sample_problem(schema: Schema, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
    positional = [a for a in schema.arguments if not a.kwonly]
    if len(args) > len(positional):
        return f"{len(args)} positional arguments, takes {len(positional)}"
    given = {a.name for a in positional[: len(args)]}
    for name in kwargs:
        if schema.argument(name) is None:
            return f"no argument '{name}'{suggest(name, [a.name for a in schema.arguments])}"
        if name in given:
            return f"argument '{name}' is given twice"
    for a in schema.arguments:
        if not a.has_default and a.name not in given and a.name not in kwargs:
            return f"argument '{a.name}' is missing"
    for value in _texts([*args, *kwargs.values()]):
        if looks_like_tensor(value) and parse_tensor(value) is None:
            return f"'{value}' is not a tensor like T(2,3) or I(2,3;0,5)"
    return None


def _texts(values: Sequence[Any]) -> Iterator[str]:
    for v in values:
        if isinstance(v, str):
            yield v
        elif isinstance(v, (tuple, list)):
            yield from _texts(v)


def registry_problems(entries: Sequence[Entry], known: Sequence[Operator]) -> Iterator[Problem]:
    """Names and kernels that two operators claim."""
    forms: dict[str, str] = {s.full_name: op.name for op in known for s in op.forms()}
    kernels: dict[tuple[str, str, str], str] = {}
    for entry in entries:
        op, here = entry.op, entry.keys["op"].location
        synthesized = [b.operator for b in entry.backward.values()]
        for schema in [s for o in (op, *synthesized) for s in o.forms()]:
            owner = forms.get(schema.full_name)
            if owner is not None:
                yield (
                    here,
                    f"operator '{schema.full_name}' is already defined by '{owner}'; give this an overload name",
                    len(op.name),
                )
            forms[schema.full_name] = op.name
        for backend, function in op.kernel.items():
            if function == IN_PYTHON:
                continue
            signature = (
                backend,
                function,
                ",".join(str(a.type.plain()) for a in op.schema.arguments),
            )
            if signature in kernels:
                yield (
                    entry.keys["kernel"].location,
                    f"{op.name}: kernel {backend}: {function} already belongs to '{kernels[signature]}'",
                    1,
                )
            kernels[signature] = op.name
