"""Emits `<family>.register_cuda.cc`: the CUDA kernels of a family, hand-written and generated, as rows of one table."""

from __future__ import annotations

from tools.codegen.dtypes import COMPLEX, enum, mask
from tools.codegen.emit_cpp_kernels import row_dtypes
from tools.codegen.emit_cpp_ops import HEADER, ops_callers, safe
from tools.codegen.emit_cpp_register import (
    PROMOTIONS,
    Parts,
    bool_operands,
    call_arguments,
    checked_scalars,
    chosen_scalars,
    function_of,
    has_alpha,
    kernel_function,
    layout,
    number_rule,
    reader,
    scalar_bits,
    scaled_operand,
    unboxed,
)
from tools.codegen.emit_triton import (
    complex_dtypes,
    device_accumulators,
    is_generated,
    kernel_name,
    triton_dtypes,
)
from tools.codegen.expr import source
from tools.codegen.model import Operator, Registry
from tools.codegen.print_cpp_body import cpp_type


def _is_known_before(shape: str) -> bool:
    """Whether a shape follows from the arguments' shapes alone, so that it can be checked before the kernel runs."""
    return "depends on data" not in shape and "index_shape(" not in shape


def hand_written(op: Operator, parts: Parts) -> None:
    """The wrapper of the kernel that the registry names; the shape function runs first, so that a kernel gets checked shapes."""
    schema = op.schema
    before: tuple[str, ...] = (
        "const DeviceGuard device_guard(device_of_call(op, a, ARGAND_CUDA));",
    )
    if (
        op.shape is not None
        and _is_known_before(op.shape.text)
        and not any(a.type.mutable for a in schema.arguments)
    ):
        parts.definitions.append(
            function_of(op.shape, f"{op.identifier}_shape", schema, cpp_type(op.shape.result))
        )
        before += (f"{op.identifier}_shape({call_arguments(schema)});",)
    name, definition = unboxed(op, "cuda", before)
    parts.definitions.append(definition)
    parts.kernels.append(f'{{"{schema.full_name}", ARGAND_KEY_CUDA, {name}, nullptr}}')


def pointwise(op: Operator, parts: Parts) -> None:
    """The binding of a generated expression's kernels, and a row a form."""
    name, schema = op.identifier, op.schema
    result = {"bool": "ARGAND_BOOL", "real": "cuda::kRealPart"}.get(str(op.result_dtype), "-1")
    rows = [
        f'{{"{op.public_name}", "{kernel_name(op, v)}", {mask(cuda_dtypes(op))}, {PROMOTIONS[op.promote]}, {result}, {bool_operands(op)}, {str(op.exact_out).lower()}, {layout(op)}, {number_rule(op)}}}'
        for v in op.expr
    ]
    assert len(rows) <= 4, f"{op.name}: PointwiseBinding has places for 4 variants"
    variant_arg, names = -1, "nullptr"
    if op.variant_argument is not None and None not in op.expr:
        variant_arg, names = schema.index(op.variant_argument.name), f"{name}_variants"
        texts = ", ".join(f'"{v}"' for v in op.expr)
        parts.definitions.append(f"const char* const {names}[] = {{{texts}}};")
    operands = ", ".join(str(schema.index(a.name)) for a in op.operands)
    scalars = ", ".join(str(schema.index(a.name)) for a in op.scalars)
    parts.definitions.append(f"const cuda::PointwiseOp {name}_op[] = {{{', '.join(rows)}}};")
    parts.definitions.append(
        f"const cuda::PointwiseBinding {name}_binding = {{{name}_op, {names}, {len(op.expr)}, {variant_arg}, {len(op.operands)}, "
        f"{len(op.scalars)}, {{{operands}}}, {{{scalars}}}, {len(schema.arguments)}, {str(has_alpha(op)).lower()}, {scaled_operand(op)}, "
        f"{scalar_bits(op, checked_scalars(op))}, {scalar_bits(op, chosen_scalars(op))}}};"
    )
    forms = [(schema, "functional"), (op.inplace_schema, "inplace"), (op.out_schema, "out")]
    for form, kernel in forms:
        if form is not None:
            parts.kernels.append(
                f'{{"{form.full_name}", ARGAND_KEY_CUDA, cuda::pointwise_{kernel}, &{name}_binding}}'
            )


def complex_accumulation(op: Operator) -> str | None:
    """How a reduction or scan computes complex tensors by real ones: "parts" (both alike: sums, means), "nonzero" (any, all), or not."""
    if not any(d in COMPLEX for d in row_dtypes(op)):
        return None
    if op.reduce is None:
        assert op.scan is not None
        return "parts" if source(op.scan.combine) == "a + b" else None
    assert op.reduce.final is not None
    first, combine, final = map(source, (op.reduce.map, op.reduce.combine, op.reduce.final))
    if first == "x != 0":
        return "nonzero"
    return "parts" if (first, combine) == ("x", "a + b") and final in ("acc", "acc / n") else None


def cuda_dtypes(op: Operator) -> tuple[str, ...]:
    """The dtypes that an operator's generated CUDA kernels take."""
    wide = complex_dtypes(op) if op.kind == "pointwise" else ()
    if op.kind != "pointwise" and complex_accumulation(op):
        wide = tuple(d for d in row_dtypes(op) if d in COMPLEX)
    return (*triton_dtypes(op), *wide)


def accumulation(op: Operator, parts: Parts) -> None:
    """Reductions and scans: a table for the driver, and the kernel that calls it."""
    name, schema = op.identifier, op.schema
    kind = "reduce" if op.reduce is not None else "scan"
    rows = device_accumulators(op)
    dtypes = ", ".join(f"{{{enum(d)}, {enum(acc)}, {enum(out)}}}" for d, (acc, out) in rows.items())
    nonempty = f", {str(op.reduce.nonempty).lower()}" if op.reduce is not None else ""
    parts.definitions.append(f"const cuda::AccumulationDtypes {name}_dtypes[] = {{{dtypes}}};")
    parts.definitions.append(
        f'const cuda::{kind.capitalize()}Op {name}_op = {{"{op.public_name}", "{name}", {name}_dtypes, {len(rows)}{nonempty}}};'
    )
    values = {a.name: reader(a.type, f"a[{i}]") for i, a in enumerate(schema.arguments)}
    dim = schema.argument("dim")
    dtype = values.get("dtype", "ARGAND_DTYPE_NONE")
    arguments = values["dim"] if kind == "scan" else values.get("dim", "std::nullopt")
    if kind == "reduce" and dim is not None and not dim.type.is_list:
        arguments = f"IntList{{{arguments}}}"
    if kind == "reduce":
        arguments += f", {values.get('keepdim', 'false')}"
    by = complex_accumulation(op)
    self = "cuda::nonzero_elements(as_tensor(a[0]))" if by == "nonzero" else "as_tensor(a[0])"
    call = f"cuda::{kind}({name}_op, {self}, {arguments}, {dtype})"
    if by == "parts":
        call = f"cuda::computes_complex(as_tensor(a[0]), {dtype}) ? cuda::{kind}_parts({name}_op, as_tensor(a[0]), {arguments}, {dtype}) : {call}"
    lines = [
        "const DeviceGuard device_guard(device_of_call(op, a, ARGAND_CUDA));",
        f"give(r[0], {call});",
    ]
    parts.definitions.append(kernel_function(f"{name}_cuda", lines))
    parts.kernels.append(f'{{"{schema.full_name}", ARGAND_KEY_CUDA, {name}_cuda, nullptr}}')


def emit_register_cuda(registry: Registry, family: str) -> str:
    parts = Parts()
    for op in registry.family(family):
        if "cuda" in op.kernel:
            hand_written(op, parts)
        elif is_generated(op):
            (pointwise if op.kind == "pointwise" else accumulation)(op, parts)
    definitions = "\n".join(parts.definitions)
    rows = ",\n    ".join(parts.kernels)
    table = f"const KernelRow kKernels[] = {{\n    {rows}}};\n" if rows else ""
    result = "{kKernels, sizeof kKernels / sizeof kKernels[0]}" if rows else "{nullptr, 0}"
    return (
        HEADER
        + '#include "packages/aten/csrc/core/kernel_rows.h"\n#include "packages/aten/cuda/csrc/pointwise.h"\n'
        + '#include "packages/aten/cuda/csrc/reduction.h"\n#include "packages/aten/generated/kernels_cuda.h"\n'
        + (
            '#include "packages/aten/cuda/csrc/complex_reduction.h"\n'
            if "_parts(" in definitions
            else ""
        )
        + ops_callers(registry, definitions, frozenset({"creation"}))
        + "\n"
        + '#pragma GCC diagnostic ignored "-Wunused-but-set-variable"\n\n'
        + "namespace argand::registration {\nnamespace {\n\nusing builtins::Ints;\n\n"
        + definitions
        + table
        + "\n}  // namespace\n\n"
        + f"KernelRows {safe(family)}_cuda() {{ return {result}; }}\n"
        + "\n}  // namespace argand::registration\n"
    )
