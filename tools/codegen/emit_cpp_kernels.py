"""Emits `<family>.kernels.cc`: the inner loops of expressions, compiled once per instruction tier."""

from __future__ import annotations

from tools.codegen import dtypes
from tools.codegen.emit_cpp_ops import HEADER, safe
from tools.codegen.expr import Element, free_names
from tools.codegen.model import Operator, Registry
from tools.codegen.print_cpp import cpp_lambda

# Storage types of dtypes in tiered code (loops.h).
C_TYPES = {
    "bool": "bool", "uint8": "unsigned char", "int8": "signed char", "int16": "short", "int32": "int", "int64": "long",
    "float16": "f16", "bfloat16": "bf16", "float32": "float", "float64": "double",
    "complex64": "cx<float>", "complex128": "cx<double>",
}  # fmt: skip


def table_name(op: Operator, variant: str | None) -> str:
    return f"{op.identifier}{'_' + variant if variant else ''}_kernels"


def row_dtypes(op: Operator) -> tuple[str, ...]:
    return op.dtypes or dtypes.DTYPES


def pointwise_loop(op: Operator, variant: str | None, expr: Element) -> str:
    """One template over the storage type, and its table of instantiations."""
    operands = [safe(a.name) for a in op.operands]
    scalars = [a.name for a in op.scalars]
    name = f"{op.identifier}{'_' + variant if variant else ''}"
    out = "bool" if op.result_dtype == "bool" else "T"
    used = free_names(expr)
    lines = [
        "template <class T>",
        f"void {name}_loop(long n, char* const* ptrs, const long* strides, [[maybe_unused]] const double* scalars, "
        "[[maybe_unused]] const long* ints) {",
    ]
    lines += [
        f"  const auto {safe(s)} = number<T>(scalars[{i}], ints[{i}]);" for i, s in enumerate(scalars) if s in used
    ]
    function = cpp_lambda(expr, operands, scalars, indent="  ")
    lines.append(f"  map<{', '.join([out] + ['T'] * len(operands))}>(n, ptrs, strides, {function});")
    lines.append("}")
    rows = []
    for d in row_dtypes(op):
        result = "bool" if op.result_dtype == "bool" else d
        rows.append(f"{{{dtypes.enum(d)}, {dtypes.enum(result)}, {name}_loop<{C_TYPES[d]}>}}")
    lines.append(f"extern const PointwiseKernel {table_name(op, variant)}[];")
    lines.append(f"const PointwiseKernel {table_name(op, variant)}[] = {{\n    " + ",\n    ".join(rows) + "};")
    return "\n".join(lines)


def emit_kernels(registry: Registry, family: str) -> str:
    """All loops of a family."""
    parts = []
    for op in registry.family(family):
        if op.kind == "pointwise":
            parts += [pointwise_loop(op, variant, expr) for variant, expr in op.expr.items()]
    return (
        HEADER
        + '#include "packages/aten/csrc/kernels/cpu/pointwise.h"\n#include "packages/c10/csrc/abi/argand.h"\n\n'
        + "namespace argand::simd {\ninline namespace ARGAND_TIER {\nnamespace generated {\nnamespace {\n"
        + "template <class T, class... I>\ninline constexpr bool one_of = (is_same<T, I> || ...);\n"
        + "template <class T>\ninline auto number([[maybe_unused]] double f, [[maybe_unused]] long i) {\n"
        + "  if constexpr (one_of<T, bool, unsigned char, signed char, short, int, long>) return i; else return f;\n}\n"
        + "}  // namespace\n\n"
        + "\n\n".join(parts)
        + "\n\n}  // namespace generated\n}  // namespace ARGAND_TIER\n}  // namespace argand::simd\n"
    )
