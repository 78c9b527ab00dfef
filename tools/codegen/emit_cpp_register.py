"""Emits `<family>.register.cc`: schemas, pointwise tables, unboxing wrappers, shape functions, view and composite kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tools.codegen import dtypes
from tools.codegen.body import Body, of_schema
from tools.codegen.emit_cpp_kernels import CONDITIONS, cost, kernel_rows, row_dtypes, table_name
from tools.codegen.emit_cpp_ops import (
    HEADER,
    SEPARATE_BACKENDS,
    ops_callers,
    parameter_type,
    result_type,
    safe,
)
from tools.codegen.expr import Call, Name, walk
from tools.codegen.model import (
    IN_PYTHON,
    RESULT_FUNCTIONS,
    Argument,
    Operator,
    Registry,
    Schema,
    Type,
)
from tools.codegen.print_cpp_body import BodyPrinter, cpp_type

PROMOTIONS = {
    "default": "kPromoteDefault",
    "float": "kPromoteFloat",
    "none": "kPromoteNone",
    "self": "kPromoteSelf",
    "numbers": "kPromoteNumbers",
}
TIERS = ("baseline", "avx2", "avx512")


@dataclass
class Parts:
    """What a family's file is put together from."""

    tables: list[str] = field(default_factory=list)  # extern declarations of loops
    definitions: list[str] = field(default_factory=list)
    operators: list[str] = field(default_factory=list)
    kernels: list[str] = field(default_factory=list)


def reader(t: Type, value: str) -> str:
    """The typed C++ value of an ArgandValue."""
    if t.base == "Tensor":
        return f"as_tensors({value})" if t.is_list else f"as_tensor({value})"
    if t.base == "Operand":
        return f"Operand({value})"
    if t.is_list:
        if t.base == "float":
            return f"as_doubles({value})"
        return f"as_optional<IntList>({value}, as_ints)" if t.optional else f"as_ints({value})"
    if t.base == "dtype":
        return f"as_dtype({value}, ARGAND_DTYPE_NONE)"
    if t.base == "generator":
        return f"as_generator({value})"
    name, read = {
        "Scalar": ("Scalar", "as_scalar"), "int": ("int64_t", "as_int"), "float": ("double", "as_double"),
        "bool": ("bool", "as_bool"), "str": ("std::string_view", "as_view"), "device": ("ArgandDevice", "as_int"),
    }[t.base]  # fmt: skip
    if t.optional:
        return f"as_optional<{name}>({value}, {read})"
    return f"static_cast<{name}>({read}({value}))" if t.base == "device" else f"{read}({value})"


def call_arguments(schema: Schema) -> str:
    return ", ".join(reader(a.type, f"a[{i}]") for i, a in enumerate(schema.arguments))


def parameters(arguments: tuple[Argument, ...], reassigned: frozenset[str]) -> str:
    return ", ".join(
        f"[[maybe_unused]] {parameter_type(a.type)} {safe(a.name)}{'_in' if a.name in reassigned else ''}"
        for a in arguments
    )


def function_of(body: Body, name: str, schema: Schema, result: str) -> str:
    """A C++ function with the body's statements."""
    text = f"{result} {name}({parameters(schema.arguments, body.reassigned)}) {{\n"
    for a in schema.arguments:
        if a.name in body.reassigned:
            t = of_schema(a.type)
            value = (
                f"builtins::list({safe(a.name)}_in)"
                if t.is_list and not t.optional
                else f"{safe(a.name)}_in"
            )
            text += f"  {cpp_type(t)} {safe(a.name)} = {value};\n"
    return text + BodyPrinter().body(body) + "}\n"


def shown_name(op: Operator) -> str:
    """A C++ expression of the name that messages begin with."""
    return f'"{op.shown}"' if op.shown else "op->name"


def kernel_function(name: str, lines: list[str], shown: str = "op->name") -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return (
        f"int {name}([[maybe_unused]] const ArgandOperator* op, uint64_t, [[maybe_unused]] const ArgandValue* a, "
        f"[[maybe_unused]] ArgandValue* r) {{\n  return guarded([&] {{\n    builtins::OpScope scope({shown});\n{body}  }});\n}}\n"
    )


def give_results(schema: Schema, call: str) -> list[str]:
    n = len(schema.results)
    if n == 1:
        flag = schema.argument("requires_grad")
        mark = (
            []
            if flag is None
            else [f"if (as_bool(a[{schema.index('requires_grad')}])) mark_requires_grad(r[0]);"]
        )
        return [f"give(r[0], {call});", *mark]
    return [
        f"auto results = {call};",
        *(f"give(r[{i}], std::move(std::get<{i}>(results)));" for i in range(n)),
    ]


def flags(op: Operator, schema: Schema) -> str:
    found = []
    if schema is op.schema and any(r.type.alias and not r.type.mutable for r in schema.results):
        if not op.is_composite:
            found.append("ARGAND_OP_VIEW")
    if schema.arguments and schema.arguments[0].type.mutable:
        found.append("ARGAND_OP_INPLACE")
    if op.is_random:
        found.append("ARGAND_OP_RANDOM")
    by_copy = schema is not op.schema and op.kind != "pointwise"
    if op.is_composite or by_copy:
        found.append("ARGAND_OP_COMPOSITE")
    return " | ".join(found) or "0"


def operator_row(op: Operator, schema: Schema) -> str:
    text = str(schema).replace("\\", "\\\\").replace('"', '\\"')
    return (
        f'{{"{schema.full_name}", "{text}", UINT64_C({schema.hash:#x}), {len(schema.arguments)}, '
        f"{len(schema.results)}, {flags(op, schema)}}}"
    )


# ---- pointwise -------------------------------------------------------------------------------------------------------


def layout(op: Operator) -> str:
    return "k" + "".join(word.capitalize() for word in op.layout.split("_"))


def bool_operands(op: Operator) -> int:
    """Operands that are conditions everywhere they are read: bit mask."""
    mask = 0
    for i, a in enumerate(op.operands):
        if a.name in CONDITIONS:
            mask |= 1 << i
    return mask


def divides_integers(op: Operator) -> bool:
    """Whether the last operand is an integer divisor, in which zeros are an error."""
    integers = any(d in dtypes.INTEGRAL for d in row_dtypes(op))
    last = op.operands[-1].name if op.operands else ""
    return integers and any(
        isinstance(n, Call) and n.fn in ("floor_divide", "remainder", "fmod", "trunc_divide")
        and getattr(n.args[1], "id", None) == last
        for x in op.expr.values() for n in walk(x)
    )  # fmt: skip


def raises_integers(op: Operator) -> bool:
    """Whether the last operand is an exponent of integers."""
    last = op.operands[-1].name if op.operands else ""
    return any(d in dtypes.INTEGRAL for d in row_dtypes(op)) and any(
        isinstance(x, Call) and x.fn == "pow" and getattr(x.args[1], "id", None) == last
        for x in op.expr.values()
    )


def chooses_numbers(op: Operator) -> bool:
    """Whether a number among the operands may become an element as it is."""
    numbers = {a.name for a in op.operands if a.type.is_operand}
    return not op.numbers and any(
        isinstance(x, Call) and x.fn in ("where", "maximum", "minimum")
        and any(getattr(a, "id", None) in numbers for a in x.args)
        for x in op.expr.values()
    )  # fmt: skip


def chosen_scalars(op: Operator) -> list[str]:
    """The operator's numbers that may become elements as they are."""
    numbers = [a.name for a in op.scalars]
    calls = [
        n for x in op.expr.values() for n in walk(x)
        if isinstance(n, Call) and n.fn in ("where", "maximum", "minimum")
    ]  # fmt: skip
    return [n for n in numbers if any(getattr(a, "id", None) == n for c in calls for a in c.args)]


def checked_scalars(op: Operator) -> list[str]:
    """The operator's numbers that have to fit the dtype that it computes in."""
    return [] if has_alpha(op) else [a.name for a in op.scalars if a.type.base == "Scalar"]


def scalar_bits(op: Operator, names: list[str]) -> int:
    return sum(1 << i for i, a in enumerate(op.scalars) if a.name in names)


def number_rule(op: Operator) -> str:
    """What the operator asks of numbers among its operands."""
    return (
        "kDivisor"
        if divides_integers(op)
        else "kExponent"
        if raises_integers(op)
        else ("kChosenWide" if op.conditions and op.promote == "default" else "kChosen")
        if chooses_numbers(op)
        else "kComputed"
        if op.exact_numbers and not op.numbers
        else "kAnyIntegers"
    )


def has_alpha(op: Operator) -> bool:
    """Whether the operator's number is an `alpha`, which must not widen integers."""
    integers = any(d in dtypes.INTEGRAL for d in row_dtypes(op))
    return integers and [a.name for a in op.scalars] == ["alpha"]


def scaled_operand(op: Operator) -> int:
    """The place of the operand that the operator's number multiplies, if elements may be complex; -1 where none is."""
    names = [a.name for a in op.operands]
    if not any(d in dtypes.COMPLEX for d in row_dtypes(op)) or len(op.scalars) != 1:
        return -1
    for x in op.expr.values():
        for call in walk(x):
            if (
                isinstance(call, Call)
                and call.fn == "mul"
                and getattr(call.args[0], "id", None) == op.scalars[0].name
            ):
                factor = next(
                    (n.id for n in walk(call.args[1]) if isinstance(n, Name) and n.id in names),
                    None,
                )
                return -1 if factor is None else names.index(factor)
    return -1


def pointwise(op: Operator, parts: Parts) -> None:
    name = op.identifier
    result = "-1"
    if op.result_dtype == "bool":
        result = "ARGAND_BOOL"
    promote = PROMOTIONS[op.promote]
    rule = number_rule(op)
    rows = []
    for variant, expr in op.expr.items():
        table = table_name(op, variant)
        for tier in TIERS:
            parts.tables.append(
                f"namespace {tier} {{ namespace generated {{ extern const PointwiseKernel {table}[]; }} }}"
            )
        tables = ", ".join(f"simd::{tier}::generated::{table}" for tier in TIERS)
        rows.append(
            f'{{"{op.public_name}", {len(op.operands)}, {{{tables}}}, {len(kernel_rows(op))}, {promote}, {result}, {cost(expr)}, '
            f"{bool_operands(op)}, {rule}, {str(op.exact_out).lower()}, {layout(op)}, {str(op.exact_numbers).lower()}}}"
        )
    schema = op.schema
    variant_arg = -1
    names = "nullptr"
    if op.variant_argument is not None and None not in op.expr:
        variant_arg = schema.index(op.variant_argument.name)
        names = f"{name}_variants"
        parts.definitions.append(
            f"const char* const {names}[] = {{{', '.join(chr(34) + str(v) + chr(34) for v in op.expr)}}};"
        )
    operand_args = ", ".join(str(schema.index(a.name)) for a in op.operands)
    scalar_args = ", ".join(str(schema.index(a.name)) for a in op.scalars)
    parts.definitions.append(f"const PointwiseOp {name}_op[] = {{{', '.join(rows)}}};")
    parts.definitions.append(
        f"const PointwiseBinding {name}_binding = {{{name}_op, {names}, {len(op.expr)}, {variant_arg}, {len(op.operands)}, "
        f"{len(op.scalars)}, {{{operand_args}}}, {{{scalar_args}}}, {len(schema.arguments)}, {str(has_alpha(op)).lower()}, {scaled_operand(op)}, "
        f"{scalar_bits(op, checked_scalars(op))}, {scalar_bits(op, chosen_scalars(op))}}};"
    )
    forms = [
        (schema, "pointwise_functional"),
        (op.inplace_schema, "pointwise_inplace"),
        (op.out_schema, "pointwise_out"),
    ]
    for form, kernel in forms:
        if form is not None:
            for key in ("CPU", "META"):
                parts.kernels.append(
                    f'{{"{form.full_name}", ARGAND_KEY_{key}, {kernel}, &{name}_binding}}'
                )


# ---- shapes ----------------------------------------------------------------------------------------------------------


def result_dtypes(op: Operator) -> list[str]:
    """C++ of each result's dtype, in terms of the unboxed parameters."""
    tensors = [a for a in op.schema.arguments if a.type.is_tensor or a.type.is_operand]
    first = f"{safe(tensors[0].name)}.dtype()" if tensors else "builtins::default_dtype()"
    if op.dtype_rule is not None:
        return [
            f"{op.identifier}_dtype({', '.join(safe(a.name) for a in op.schema.arguments)})"
        ] * len(op.schema.results)
    given = op.schema.argument("dtype")
    found = []
    for rule in op.result_rules:
        text = first
        if rule in RESULT_FUNCTIONS:
            text = f"builtins::{rule}_dtype({first})"
        elif (source := op.dtype_source(rule)) is not None:
            text = f"{safe(source.name)}.dtype()"
            if source.type.optional:
                text = f"({safe(source.name)} ? {text} : {first})"
        elif rule is not None and rule != "self":
            text = dtypes.enum(rule)
        if given is not None and given.type.base == "dtype" and op.kind in ("reduction", "scan"):
            text = f"(dtype != ARGAND_DTYPE_NONE ? dtype : {text})"
        found.append(text)
    return found


def shape_function(op: Operator, body: Body) -> str:
    return function_of(body, f"{op.identifier}_shape", op.schema, cpp_type(body.result))


def meta_kernel(op: Operator, parts: Parts) -> None:
    """Results of the right shape and dtype without data."""
    name = op.identifier
    schema = op.schema
    assert all(not r.type.is_list for r in schema.results)
    n = len(schema.results)
    sizes = [f"{safe(schema.arguments[0].name)}.sizes()"] * n
    lines = []
    if sum(a.type.base in ("Tensor", "Operand") for a in schema.arguments) > 1:
        lines.append("check_one_device(op, a);")
    for i, a in enumerate(schema.arguments):
        lines.append(f"[[maybe_unused]] const auto {safe(a.name)} = {reader(a.type, f'a[{i}]')};")
    for a in schema.arguments:
        if a.type.base == "device" and schema.arguments[0].type.base == "Tensor":
            lines.append(
                f"if ({safe(a.name)} && ARGAND_DEVICE_TYPE(*{safe(a.name)}) != ARGAND_META) fail(ARGAND_NOT_IMPLEMENTED_ERROR, "
                '"%s: Cannot copy out of meta tensor; no data! Expected the device meta; make it anew with '
                'empty_like(..., device=...), a module with to_empty()", op->name);'
            )
    names = ", ".join(safe(a.name) for a in schema.arguments)
    if op.shape is not None:
        if not op.checked:
            parts.definitions.append(shape_function(op, op.shape))
        lines.append(f"const auto shape = {name}_shape({names});")
        sizes = (
            [f"std::get<{i}>(shape)" for i in range(n)]
            if op.shape.result.base == "tuple"
            else ["shape"]
        )
    if op.dtype_rule is not None:
        parts.definitions.append(function_of(op.dtype_rule, f"{name}_dtype", schema, "int"))
    for i, dtype in enumerate(result_dtypes(op)):
        lines.append(f"give(r[{i}], meta_result({sizes[i]}, {dtype}));")
    parts.definitions.append(kernel_function(f"{name}_meta", lines))
    parts.kernels.append(f'{{"{schema.full_name}", ARGAND_KEY_META, {name}_meta, nullptr}}')


def apart_bits(op: Operator) -> int:
    return sum(1 << op.schema.index(a) for a in op.apart)


def check_apart(op: Operator) -> list[str]:
    """The check of an operator that changes its first argument, before it writes."""
    return [f"check_apart(op, a, {apart_bits(op):#x});"] if op.apart else []


def unboxed(op: Operator, backend: str, before: tuple[str, ...] = ()) -> tuple[str, str]:
    """(name, definition) of the wrapper that calls the kernel which the registry names for `backend`; `before`: statements ahead of it."""
    schema = op.schema
    name = f"{op.identifier}_{backend}"
    call = f"kernels::{backend}::{op.kernel[backend]}({call_arguments(schema)})"
    mutable = [i for i, a in enumerate(schema.arguments) if a.type.mutable]
    if mutable:
        lines = [f"check_writable(op->name, a[{i}]);" for i in mutable]
        lines += [*check_apart(op), call + ";"]
        if schema.results:
            lines += [f"bump_versions(a[{i}]);" for i in mutable[1:]]
            lines.append(f"give_changed(r[0], a[{mutable[0]}]);")
        else:
            lines += [f"bump_versions(a[{i}]);" for i in mutable]
    else:
        lines = give_results(schema, call)
    return name, kernel_function(name, [*before, *lines])


def named_kernels(op: Operator, parts: Parts) -> None:
    """Unboxing wrappers of the kernels that the registry names."""
    schema = op.schema
    for backend in op.kernel:
        if backend in SEPARATE_BACKENDS or op.kernel[backend] == IN_PYTHON:
            continue
        before: tuple[str, ...] = ()
        if op.checked and backend == "cpu" and op.shape is not None:
            parts.definitions.append(shape_function(op, op.shape))
            before = (f"{op.identifier}_shape({call_arguments(schema)});",)
        name, definition = unboxed(op, backend, before)
        parts.definitions.append(definition)
        parts.kernels.append(
            f'{{"{schema.full_name}", ARGAND_KEY_{backend.upper()}, {name}, nullptr}}'
        )


def hand_written(op: Operator, parts: Parts) -> None:
    """The kernels that the registry names, and the meta kernel."""
    schema = op.schema
    named_kernels(op, parts)
    if "cpu" in op.kernel and not any(a.type.mutable for a in schema.arguments):
        meta_kernel(op, parts)
    elif "cpu" in op.kernel and schema.results:
        name = f"{op.identifier}_meta"
        first = next(i for i, a in enumerate(schema.arguments) if a.type.mutable)
        lines = [f"check_target_on_meta(op, a[{first}]);", f"give_changed(r[0], a[{first}]);"]
        parts.definitions.append(kernel_function(name, lines))
        parts.kernels.append(f'{{"{schema.full_name}", ARGAND_KEY_META, {name}, nullptr}}')


def view(op: Operator, parts: Parts) -> None:
    assert op.shape is not None
    schema, name = op.schema, op.identifier
    parts.definitions.append(function_of(op.shape, f"{name}_shape", schema, "builtins::Strided"))
    lines = [f"give(r[0], make_view(op, as_tensor(a[0]), {name}_shape({call_arguments(schema)})));"]
    parts.definitions.append(kernel_function(f"{name}_view", lines))
    parts.kernels.append(f'{{"{schema.full_name}", ARGAND_KEY_COMPOSITE, {name}_view, nullptr}}')


def run_body(op: Operator, checks: Sequence[str] = (), after: Sequence[str] = ()) -> list[str]:
    """Gives the results of the body; errors of its operators are in the name that the user knows."""
    call = f"{op.identifier}_body({call_arguments(op.schema)})"
    lines = [*checks, *give_results(op.schema, call), *after]
    return [f"in_name_of({shown_name(op)}, [&] {{", *(f"  {line}" for line in lines), "});"]


def composite(op: Operator, parts: Parts) -> None:
    assert op.body is not None
    schema, name = op.schema, op.identifier
    parts.definitions.append(function_of(op.body, f"{name}_body", schema, result_type(schema)))
    mutable = any(a.type.mutable for a in schema.arguments)
    checks = check_apart(op) if mutable else []
    after = [] if mutable else ["own_results(op, a, r);"]
    parts.definitions.append(
        kernel_function(f"{name}_composite", run_body(op, checks, after), shown_name(op))
    )
    parts.kernels.append(
        f'{{"{schema.full_name}", ARGAND_KEY_COMPOSITE, {name}_composite, nullptr}}'
    )


def body_under_autograd(op: Operator, parts: Parts) -> None:
    """`d(body)`: where gradients are recorded, the body runs in place of the kernel, and its operators are recorded."""
    assert op.body is not None
    schema, name = op.schema, op.identifier
    if op.kind != "composite":
        parts.definitions.append(function_of(op.body, f"{name}_body", schema, result_type(schema)))
    # The body stands for the kernel, behind the checks that this relies on.
    checks = [f"{name}_shape({call_arguments(schema)});"] if op.checked and op.shape else []
    parts.definitions.append(
        kernel_function(f"{name}_recorded", run_body(op, checks), shown_name(op))
    )
    parts.kernels.append(f'{{"{schema.full_name}", ARGAND_KEY_AUTOGRAD, {name}_recorded, nullptr}}')


def derived_forms(op: Operator, parts: Parts) -> None:
    """In-place and out= forms through the functional one."""
    found = [
        (f, k)
        for f, k in ((op.inplace_schema, "inplace_by_copy"), (op.out_schema, "out_by_copy"))
        if f is not None
    ]
    if not found:
        return
    schema = op.schema
    # Factories make what `out` is where no dtype is given.
    follows = (
        schema.argument("requires_grad") is not None
        or op.kind == "scan"
        or op.out in ("computed", "widened", "floating")
    )
    dtype = schema.index("dtype") if schema.argument("dtype") is not None and follows else -1
    resized = "".join(["k", *(word.capitalize() for word in op.resized.split("_"))])
    data = f"{op.identifier}_form"
    parts.definitions.append(
        f'constexpr CopiedForm {data} = {{"{schema.full_name}", OutDtype::k{op.out_rule.capitalize()}, {dtype}, ResizedOut::{resized}, {apart_bits(op):#x}}};'
    )
    parts.kernels += [
        f'{{"{form.full_name}", ARGAND_KEY_COMPOSITE, {kernel}, &{data}}}' for form, kernel in found
    ]


def accumulation(op: Operator, parts: Parts) -> None:
    """Reductions and scans: a table for the driver, and kernels that call it."""
    name, schema = op.identifier, op.schema
    kind = "reduce" if op.reduce is not None else "scan"
    table = table_name(op, None)
    for tier in TIERS:
        parts.tables.append(
            f"namespace {tier} {{ namespace generated {{ extern const {kind.capitalize()}Kernel {table}[]; }} }}"
        )
    tables = ", ".join(f"simd::{tier}::generated::{table}" for tier in TIERS)
    nonempty = f", {str(op.reduce.nonempty).lower()}" if op.reduce is not None else ""
    parts.definitions.append(
        f'const {kind.capitalize()}Op {name}_op = {{"{op.public_name}", {{{tables}}}, {len(kernel_rows(op))}{nonempty}}};'
    )
    values = {a.name: reader(a.type, f"a[{i}]") for i, a in enumerate(schema.arguments)}
    dim = schema.argument("dim")
    if kind == "reduce":
        dims = values.get("dim", "std::nullopt")
        if dim is not None and not dim.type.is_list:
            dims = f"IntList{{{dims}}}"
        call = f"reduce({name}_op, as_tensor(a[0]), {dims}, {values.get('keepdim', 'false')}, {values.get('dtype', 'ARGAND_DTYPE_NONE')}"
    else:
        call = f"scan({name}_op, as_tensor(a[0]), {values['dim']}, {values.get('dtype', 'ARGAND_DTYPE_NONE')}"
    parts.definitions.append(kernel_function(f"{name}_cpu", [f"give(r[0], {call}));"]))
    for key in ("CPU", "META"):
        parts.kernels.append(f'{{"{schema.full_name}", ARGAND_KEY_{key}, {name}_cpu, nullptr}}')


def autocast_row(op: Operator, parts: Parts) -> None:
    """The kernel that casts arguments; its data are the policies."""
    assert op.autocast is not None
    cpu, accelerator = (f"AutocastPolicy::k{policy.capitalize()}" for policy in op.autocast)
    parts.definitions.append(
        f"constexpr AutocastRule {op.identifier}_autocast = {{{cpu}, {accelerator}}};\n"
    )
    parts.kernels.append(
        f'{{"{op.schema.full_name}", ARGAND_KEY_AUTOCAST, autocast_kernel, &{op.identifier}_autocast}}'
    )


def emit_register(registry: Registry, family: str, headers: str) -> str:
    """`headers`: the folder of the registry's own kernels.h."""
    parts = Parts()
    for op in registry.family(family):
        parts.operators += [operator_row(op, s) for s in op.forms()]
        if op.autocast is not None:
            autocast_row(op, parts)
        if op.kind == "pointwise":
            pointwise(op, parts)
            continue
        if op.kernel and op.kind != "composite":
            hand_written(op, parts)
        elif op.kind == "view":
            view(op, parts)
        elif op.reduce is not None or op.scan is not None:
            accumulation(op, parts)
        else:
            composite(op, parts)
            named_kernels(op, parts)
        if op.derived_by_body:
            body_under_autograd(op, parts)
        derived_forms(op, parts)
    definitions = "\n".join(parts.definitions)
    return (
        HEADER
        + '#include "packages/aten/csrc/autocast.h"\n#include "packages/aten/csrc/registration.h"\n'
        + f'#include "{headers}/kernels.h"\n'
        + "\n"
        + ops_callers(registry, definitions)
        + '#pragma GCC diagnostic ignored "-Wunused-but-set-variable"\n\n'
        + "namespace argand::simd {\n"
        + "\n".join(parts.tables)
        + "\n}  // namespace argand::simd\n\nnamespace argand::registration {\nnamespace {\n\n"
        + "using builtins::Ints;\n\n"
        + definitions
        + "\nconst OperatorRow kOperators[] = {\n    "
        + ",\n    ".join(parts.operators)
        + "};\n\nconst KernelRow kKernels[] = {\n    "
        + ",\n    ".join(parts.kernels)
        + "};\n\n}  // namespace\n\n"
        + f"Family {family}_family() {{ return {{kOperators, sizeof kOperators / sizeof kOperators[0], kKernels, sizeof kKernels / sizeof kKernels[0]}}; }}\n"
        + "\n}  // namespace argand::registration\n"
    )
