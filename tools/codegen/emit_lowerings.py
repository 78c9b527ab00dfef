"""Emits `lowerings_<family>.py`: what operators compute for one element, from the expressions that eager's kernels are made of.

An element function calls primitives on a handler, shared subexpressions once and in the order of the C++ kernel's.
"""

from __future__ import annotations

from tools.codegen.emit_cpp_kernels import accumulators, cost, row_dtypes
from tools.codegen.emit_cpp_register import divides_integers
from tools.codegen.expr import Call, Cast, Element, Name, Number, shared_subexpressions
from tools.codegen.model import Operator, Registry
from tools.codegen.print_python import literal, safe

_IMPORTS = (
    "import math  # noqa: F401\nfrom typing import Any\n\n"
    "from argand_c10.lowerings import Lowering, PointwiseLowering, ReductionLowering, ScanLowering  # noqa: F401\n\n"
    "from . import _language as lang  # noqa: F401\n\n\n"
)

_PROMOTIONS = (
    "\n\n".join(
        f"def _{promote}_promotion(*operands: Any) -> Any:\n"
        f'    return lang.pointwise_dtype("{promote}", None, *operands)\n'
        for promote in ("default", "float", "none", "self", "numbers")
    )
    + "\n\n"
)


def element_text(x: Element, named: dict[Element, str]) -> str:
    """A Python expression over the handler `v`."""
    if x in named:
        return named[x]
    if isinstance(x, Number):
        return f"v.number({literal(x.value)})"
    if isinstance(x, Name):
        return safe(x.id)
    if isinstance(x, Cast):
        return f'v.cast({element_text(x.arg, named)}, "{x.dtype}")'
    assert isinstance(x, Call)
    return f'v.call("{x.fn}", {", ".join(element_text(a, named) for a in x.args)})'


def element_function(name: str, parameters: list[str], x: Element) -> str:
    """`def name(v, ...)` that returns the value of x."""
    named: dict[Element, str] = {}
    lines: list[str] = []
    for shared in shared_subexpressions(x):
        text = element_text(shared, named)
        named[shared] = f"t{len(named)}"
        lines.append(f"{named[shared]} = {text}")
    lines.append(f"return {element_text(x, named)}")
    header = ", ".join(["v: Any", *(f"{safe(p)}: Any" for p in parameters)])
    return f"def {name}({header}) -> Any:\n" + "".join(f"    {line}\n" for line in lines)


def _strings(values: list[str] | tuple[str, ...]) -> str:
    return literal(tuple(values))


def _set(values: tuple[str, ...]) -> str:
    return f"frozenset({literal(tuple(values))})"


def pointwise_lowering(op: Operator) -> tuple[str, str]:
    """(functions, constructor)."""
    operands = [a.name for a in op.operands]
    scalars = [a.name for a in op.scalars]
    functions: list[str] = []
    table: list[str] = []
    costs: list[str] = []
    for variant, x in op.expr.items():
        name = f"_{op.identifier}{'_' + variant if variant else ''}"
        functions.append(element_function(name, operands + scalars, x))
        table.append(f"{variant!r}: {name}")
        costs.append(f"{variant!r}: {cost(x)}")
    fields = [
        f"arguments={_strings([a.name for a in op.schema.arguments])}",
        f"operands={_strings(operands)}",
        f"functions={{{', '.join(table)}}}",
        f"dtypes={_set(row_dtypes(op))}",
        f"computation=_{op.promote}_promotion",
        f"costs={{{', '.join(costs)}}}",
    ]
    if scalars:
        fields.append(f"scalars={_strings(scalars)}")
    if op.conditions:
        fields.append(f"conditions={_set(op.conditions)}")
    if None not in op.expr and op.variant_argument is not None:
        fields.append(f'variant="{op.variant_argument.name}"')
    if op.result_dtype == "bool":
        fields.append(f'result="{op.result_dtype}"')
    if divides_integers(op):
        fields.append("divides=True")
    if op.exact_numbers:
        fields.append("exact_numbers=True")
    return "\n\n".join(functions), f"PointwiseLowering({', '.join(fields)})"


def accumulation_lowering(op: Operator) -> tuple[str, str]:
    """The same of a reduction or a scan."""
    rule = op.reduce if op.reduce is not None else op.scan
    assert rule is not None
    init = f'"{rule.init.id}"' if isinstance(rule.init, Name) else element_literal(rule.init)
    rows = ", ".join(f'"{d}": {literal(accumulators(op, d))}' for d in row_dtypes(op))
    fields = [f"arguments={_strings([a.name for a in op.schema.arguments])}", f"init={init}"]
    parts: dict[str, tuple[list[str], Element]] = {"combine": (["a", "b"], rule.combine)}
    if op.reduce is not None:
        parts = {"map": (["x"], op.reduce.map), **parts, "final": (["acc", "n"], op.reduce.final)}
    functions = []
    for part, (parameters, x) in parts.items():
        functions.append(element_function(f"_{op.identifier}_{part}", parameters, x))
        fields.append(f"{part}=_{op.identifier}_{part}")
    fields.append(f"accumulators={{{rows}}}")
    if op.reduce is not None and op.reduce.nonempty:
        fields.append("nonempty=True")
    kind = "ReductionLowering" if op.reduce is not None else "ScanLowering"
    return "\n\n".join(functions), f"{kind}({', '.join(fields)})"


def element_literal(x: Element) -> str:
    assert isinstance(x, Number)
    return literal(x.value)


def emit_lowerings(registry: Registry, family: str) -> str:
    """The module of one family."""
    functions: list[str] = []
    rows: list[str] = []
    for op in registry.family(family):
        if op.kind == "pointwise" and op.expr:
            text, row = pointwise_lowering(op)
        elif op.reduce is not None or op.scan is not None:
            text, row = accumulation_lowering(op)
        else:
            continue
        functions.append(text)
        rows.append(f'    "{op.name}": {row},\n')
    head = (
        f'"""What the {family} operators compute for one element. Generated by tools/codegen from the operator registry."""\n\n'
        "from __future__ import annotations\n\n"
    )
    body = "\n\n".join([*functions, ""]) if functions else ""
    table = "# operator -> lowering\nLOWERINGS: dict[str, Lowering] = {\n" + "".join(rows) + "}\n"
    return head + _IMPORTS + _PROMOTIONS + body + table
