"""Emits `<family>.kernels.cc`: the inner loops of expressions, compiled once per instruction tier."""

from __future__ import annotations

from tools.codegen import dtypes
from tools.codegen.emit_cpp_ops import HEADER, safe
from tools.codegen.expr import (
    SIGNLESS_PRIMITIVES,
    Call,
    Cast,
    Element,
    Name,
    Number,
    free_names,
    walk,
)
from tools.codegen.model import Operator, Registry
from tools.codegen.print_cpp import BRANCHES, cpp_lambda, cpp_number

# Storage types of dtypes in tiered code (loops.h).
C_TYPES = {
    "bool": "bool", "uint8": "unsigned char", "int8": "signed char", "int16": "short", "int32": "int", "int64": "long",
    "float16": "f16", "bfloat16": "bf16", "float32": "float", "float64": "double",
    "complex64": "cx<float>", "complex128": "cx<double>", "uint64": "unsigned long",
}  # fmt: skip

HALVES = ("f16", "bf16")

# Primitives that cost an addition.
CHEAP = frozenset(
    "add sub mul neg bit_and bit_or bit_xor bit_not where eq ne lt le gt ge abs minimum maximum fmin fmax floor ceil "
    "trunc round sign signbit isnan isinf isfinite real conj".split()
)
MEMORY_COST = 5  # additions an element, up to which memory is the limit

# Operands of these names are bool tensors that take no part in promotion.
CONDITIONS = frozenset({"condition", "mask"})


def table_name(op: Operator, variant: str | None) -> str:
    return f"{op.identifier}{'_' + variant if variant else ''}_kernels"


def cost(x: Element) -> int:
    """Of one element, in additions."""
    return min(
        200,
        sum(
            1 if n.fn in CHEAP else 4 if n.fn in ("div", "sqrt", "rsqrt") else 20
            for n in walk(x)
            if isinstance(n, Call)
        )
        + 1,
    )


def row_dtypes(op: Operator) -> tuple[str, ...]:
    return op.dtypes or dtypes.DTYPES


def is_signless(op: Operator) -> bool:
    """Whether integers have the same bits, signed or not: then a signed loop serves for both."""
    parts = list(op.expr.values())
    rule = op.reduce if op.reduce is not None else op.scan
    if rule is not None:
        parts += [rule.init, rule.combine]
    if op.reduce is not None:
        assert op.reduce.final is not None
        parts += [op.reduce.map, op.reduce.final]
    named = rule is not None and isinstance(rule.init, Name)  # the lowest or the highest
    return not named and not any(
        isinstance(n, Cast) or (isinstance(n, Call) and n.fn not in SIGNLESS_PRIMITIVES)
        for x in parts
        for n in walk(x)
    )


def kernel_rows(op: Operator) -> dict[str, str]:
    """The dtypes that a table has loops of, with the loops' storage types. uint16 and uint32 without a row are computed as uint64."""
    rows = {d: C_TYPES[d] for d in row_dtypes(op) if d not in dtypes.WIDE_UNSIGNED}
    if "uint64" in row_dtypes(op):
        rows["uint64"] = C_TYPES["int64" if is_signless(op) else "uint64"]
        if is_signless(op) and op.kind == "pointwise":
            rows |= {"uint16": C_TYPES["int16"], "uint32": C_TYPES["int32"]}
    return rows


def pays_to_branch(op: Operator, expr: Element) -> bool:
    """Whether it is a choice by sign between a cheap value and a costly one, which whole vectors often do without."""
    if not (isinstance(expr, Call) and expr.fn == "where"):
        return False
    condition, *values = expr.args
    if not (isinstance(condition, Call) and condition.fn in BRANCHES):
        return False
    cheap = values.pop(BRANCHES[condition.fn])
    return (
        all(dtypes.is_differentiable(d) and not d.startswith("complex") for d in row_dtypes(op))
        and cost(cheap) <= MEMORY_COST
        and cost(values[0]) > 4 * MEMORY_COST
    )


# Of one number: products, without a look at it for each vector.
_SMALL_POWERS = [
    "  const double power = strides[2] == 0 && n > 0 ? real_number<T>(ptrs[2]) : 0;",
    "  if (power == 2) return map_lines<T, T>(n, ptrs, strides, [](auto x) { return x * x; });",
    "  if (power == 3) return map_lines<T, T>(n, ptrs, strides, [](auto x) { return x * x * x; });",
    "  if (power == -1) return map_lines<T, T>(n, ptrs, strides, [](auto x) { return lit(x, 1) / x; });",
]


def pointwise_loop(op: Operator, variant: str | None, expr: Element, shared: dict[str, str]) -> str:
    """One template over the storage type, and its table of instantiations; `shared`: the names of templates so far, by text."""
    operands = [safe(a.name) for a in op.operands]
    scalars = [a.name for a in op.scalars]
    name = f"{op.identifier}{'_' + variant if variant else ''}"
    out = {"bool": "bool", "real": "typename RealOf<T>::type"}.get(str(op.result_dtype), "T")
    used = free_names(expr)
    lines = [
        "(long n, char* const* ptrs, const long* strides, [[maybe_unused]] const double* scalars, "
        "[[maybe_unused]] const long* ints) {",
    ]
    lines += [
        f"  const auto {safe(s)} = number<T>(scalars[{i}], ints[{i}]);"
        for i, s in enumerate(scalars)
        if s in used
    ]
    branches = pays_to_branch(op, expr)
    function = cpp_lambda(expr, operands, scalars, indent="  ", branches=branches)
    loaded = ["bool" if a.name in op.conditions else "T" for a in op.operands]
    if op.exact_numbers:  # the last operand may be a number
        loaded[-1] = "Last"
    if isinstance(expr, Call) and expr.fn == "pow":
        lines += _SMALL_POWERS
    run = "map_lines" if cost(expr) <= MEMORY_COST or branches else "map"
    lines.append(f"  {run}<{', '.join([out, *loaded])}>(n, ptrs, strides, {function});")
    text = "\n".join([*lines, "}"])
    loop = shared.setdefault(text, f"{name}_loop")
    lines = []
    if loop == f"{name}_loop":
        types = "class T, class Last = T" if op.exact_numbers else "class T"
        lines.append(f"template <{types}>\nvoid {loop}{text}")
    rows = []
    for d, storage in kernel_rows(op).items():
        result = (
            "bool"
            if op.result_dtype == "bool"
            else dtypes.real_dtype(d)
            if op.result_dtype == "real"
            else d
        )
        beside = f", {loop}<{storage}, float>" if op.exact_numbers and storage in HALVES else ""
        rows.append(f"{{{dtypes.enum(d)}, {dtypes.enum(result)}, {loop}<{storage}>{beside}}}")
    lines.append(f"extern const PointwiseKernel {table_name(op, variant)}[];")
    lines.append(
        f"const PointwiseKernel {table_name(op, variant)}[] = {{\n    "
        + ",\n    ".join(rows)
        + "};"
    )
    return "\n".join(lines)


def accumulators(op: Operator, dtype: str) -> tuple[str, str]:
    """(accumulator dtype, result dtype) of a reduction or scan of `dtype`."""
    if op.result_dtype == "bool":
        return "bool", "bool"
    if op.result_dtype == "truth":
        return "bool", "uint8" if dtype == "uint8" else "bool"
    out = dtype
    if op.result_dtype == "accumulate" and not dtypes.is_differentiable(dtype):
        out = "int64"
    acc = "float32" if out in ("float16", "bfloat16") else out
    given = op.reduce.acc if op.reduce is not None else op.scan.acc if op.scan is not None else None
    if op.scan is not None and acc == "float32" and dtype == "float32":
        acc = "float64"
    return given or acc, out


def init_lambda(init: Element) -> str:
    if isinstance(init, Name):
        return f"[](auto like) {{ return {init.id}(like); }}"
    assert isinstance(init, Number)
    return f"[](auto like) {{ return lit(like, {cpp_number(init.value)}); }}"


def accumulation_loops(op: Operator, shared: dict[str, str]) -> str:
    """The table of a reduction or scan: functors once, instantiations per dtype; `shared`: the names of functors so far, by text."""
    name = op.identifier
    kind = "Reduce" if op.reduce is not None else "Scan"
    if op.reduce is not None:
        assert op.reduce.final is not None
        functors = {
            "init": init_lambda(op.reduce.init),
            "map": "Unchanged{}" if isinstance(op.reduce.map, Name) else cpp_lambda(op.reduce.map, ["x"]),
            "combine": cpp_lambda(op.reduce.combine, ["a", "b"]), "final": cpp_lambda(op.reduce.final, ["acc", "n"]),
        }  # fmt: skip
    else:
        assert op.scan is not None
        functors = {
            "init": init_lambda(op.scan.init),
            "combine": cpp_lambda(op.scan.combine, ["a", "b"]),
        }
    lines = [
        f"constexpr auto {name}_{k} = {v};"
        for k, v in functors.items()
        if shared.setdefault(v, f"{name}_{k}") == f"{name}_{k}"
    ]
    arguments = ", ".join(shared[v] for v in functors.values())
    rows = []
    for d, storage in kernel_rows(op).items():
        acc, out = accumulators(op, d)
        types = ", ".join((C_TYPES[acc], storage, C_TYPES[out]))
        enums = ", ".join(dtypes.enum(t) for t in (d, acc, out))
        rows.append(f"{kind.lower()}_kernel<{types}>({enums}, {arguments})")
    table = table_name(op, None)
    lines.append(f"extern const {kind}Kernel {table}[];")
    lines.append(f"const {kind}Kernel {table}[] = {{\n    " + ",\n    ".join(rows) + "};")
    return "\n".join(lines)


def emit_kernels(registry: Registry, family: str) -> str:
    """All loops of a family. What reads alike is one function or one functor: its loops are compiled once."""
    parts: list[str] = []
    shared: dict[str, str] = {}
    header = "pointwise.h"
    for op in registry.family(family):
        if op.kind == "pointwise":
            parts += [
                pointwise_loop(op, variant, expr, shared) for variant, expr in op.expr.items()
            ]
        elif op.reduce is not None or op.scan is not None:
            parts.append(accumulation_loops(op, shared))
            header = "scan.h"  # includes reduce.h
    if not parts:
        return HEADER
    return (
        HEADER
        + f'#include "packages/aten/csrc/kernels/cpu/{header}"\n#include "packages/c10/csrc/abi/argand.h"\n\n'
        + "namespace argand::simd {\ninline namespace ARGAND_TIER {\nnamespace generated {\nnamespace {\n"
        + "template <class T, class... I>\ninline constexpr bool one_of = (is_same<T, I> || ...);\n"
        + "template <class T>\ninline auto number([[maybe_unused]] double f, [[maybe_unused]] long i) {\n"
        + "  if constexpr (one_of<T, bool, unsigned char, signed char, short, int, long, unsigned long>) return i; else return f;\n}\n"
        + "}  // namespace\n\n"
        + "\n\n".join(parts)
        + "\n\n}  // namespace generated\n}  // namespace ARGAND_TIER\n}  // namespace argand::simd\n"
    )
