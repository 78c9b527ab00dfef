"""Emits the operator page."""

from __future__ import annotations

from tools.codegen import dtypes
from tools.codegen.expr import source
from tools.codegen.model import Operator, Registry


def dtype_text(op: Operator) -> str:
    """The dtypes of an operator in words: a set's name where one fits."""
    if not op.dtypes:
        return "any"
    for name, members in dtypes.DTYPE_SETS.items():
        if set(members) == set(op.dtypes):
            return name.replace("_", ", ")
    return ", ".join(op.dtypes)


def entry(op: Operator) -> str:
    forms = [str(s) for s in op.forms()]
    lines = [f"### {op.name}", "", op.doc, "", "```", *forms, "```", ""]
    facts = [f"kind: {op.kind}", f"dtypes: {dtype_text(op)}"]
    if op.aliases:
        facts.append("also: " + ", ".join(op.aliases))
    if op.kind != "composite" or op.grad:
        gradient = [a for d in op.grad if not d.is_none for a in d.args]
        facts.append("gradient: " + (", ".join(gradient) if gradient else "none"))
    lines += [" · ".join(facts), ""]
    for variant, x in op.expr.items():
        lines.append(
            f"`{source(x)}`"
            + (
                f' for `{op.variant_argument.name}="{variant}"`'
                if variant and op.variant_argument
                else ""
            )
        )
        lines.append("")
    return "\n".join(lines)


def emit_docs(registry: Registry) -> str:
    public = [op for op in registry.operators.values() if op.backward_of is None]
    text = (
        "# Operators\n\nGenerated from the operator registry (`packages/aten/registry`); one section a family. "
        "Backward operators that codegen derives are left out.\n\n"
    )
    for family in registry.families:
        ops = [op for op in public if op.family == family]
        if ops:
            text += f"## {family}\n\n" + "\n".join(entry(op) for op in ops) + "\n"
    return text
