"""Emits `<family>.register_cuda.cc`: the CUDA kernels of a family, hand-written and generated, as rows of one table."""

from __future__ import annotations

from tools.codegen.emit_cpp_ops import HEADER, safe
from tools.codegen.emit_cpp_register import Parts, call_arguments, function_of, unboxed
from tools.codegen.model import Operator, Registry
from tools.codegen.print_cpp_body import cpp_type


def hand_written(op: Operator, parts: Parts) -> None:
    """The wrapper of the kernel that the registry names; the shape function runs first, so that a kernel gets checked shapes."""
    schema = op.schema
    before: tuple[str, ...] = ("const DeviceGuard device_guard(device_of_call(op, a, ARGAND_CUDA));",)
    if op.shape is not None and not any(a.type.mutable for a in schema.arguments):
        parts.definitions.append(function_of(op.shape, f"{op.identifier}_shape", schema, cpp_type(op.shape.result)))
        before += (f"{op.identifier}_shape({call_arguments(schema)});",)
    name, definition = unboxed(op, "cuda", before)
    parts.definitions.append(definition)
    parts.kernels.append(f'{{"{schema.full_name}", ARGAND_KEY_CUDA, {name}, nullptr}}')


def emit_register_cuda(registry: Registry, family: str) -> str:
    parts = Parts()
    for op in registry.family(family):
        if "cuda" in op.kernel:
            hand_written(op, parts)
    rows = ",\n    ".join(parts.kernels)
    table = f"const KernelRow kKernels[] = {{\n    {rows}}};\n" if rows else ""
    result = "{kKernels, sizeof kKernels / sizeof kKernels[0]}" if rows else "{nullptr, 0}"
    return (
        HEADER
        + '#include "packages/aten/csrc/core/kernel_rows.h"\n#include "packages/aten/generated/kernels_cuda.h"\n'
        + '#include "packages/aten/generated/ops.h"\n\n'
        + '#pragma GCC diagnostic ignored "-Wunused-but-set-variable"\n\n'
        + "namespace argand::registration {\nnamespace {\n\nusing builtins::Ints;\n\n"
        + "\n".join(parts.definitions)
        + table
        + "\n}  // namespace\n\n"
        + f"KernelRows {safe(family)}_cuda() {{ return {result}; }}\n"
        + "\n}  // namespace argand::registration\n"
    )
