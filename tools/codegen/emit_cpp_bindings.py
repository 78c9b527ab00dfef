"""Emits `<family>.bindings.cc`: the tables from which c10's one argument parser serves every operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tools.codegen.emit_cpp_ops import HEADER
from tools.codegen.model import Argument, Operator, Registry, Schema, Type

ARG_TYPES = {
    "Operand": "OPERAND", "Scalar": "SCALAR", "bool": "BOOL", "int": "INT", "float": "FLOAT", "str": "STRING",
    "dtype": "DTYPE", "device": "DEVICE", "generator": "GENERATOR",
}  # fmt: skip
LIST_TYPES = {"int": "INT_LIST", "float": "FLOAT_LIST", "bool": "BOOL_LIST"}


def arg_type(t: Type) -> str:
    if t.base == "Tensor":
        if t.is_list:
            return "ARGAND_ARG_OPT_TENSOR_LIST" if t.optional_elements else "ARGAND_ARG_TENSOR_LIST"
        return "ARGAND_ARG_TENSOR"
    return "ARGAND_ARG_" + (LIST_TYPES[t.base] if t.is_list else ARG_TYPES[t.base])


def default_value(argument: Argument, arrays: list[str]) -> str:
    """The initialiser of a default's ArgandValue; `arrays` collects definitions that it points to."""
    value: Any = argument.default
    t = argument.type
    if not argument.has_default or value is None:
        return "{}"
    if isinstance(value, tuple) or (t.is_list and isinstance(value, int)):
        items = value if isinstance(value, tuple) else (value,) * (t.list_size or 1)
        tag = {
            "int": "INT_LIST",
            "bool": "BOOL_LIST",
            "float": "FLOAT_LIST",
            "Tensor": "TENSOR_LIST",
        }[t.base]
        pointer = "{.p = nullptr}"
        if items:
            name = f"kList{len(arrays)}"
            kind, field = ("double", "floats") if t.base == "float" else ("int64_t", "ints")
            arrays.append(
                f"constexpr {kind} {name}[] = {{{', '.join(str(int(i)) if kind != 'double' else repr(i) for i in items)}}};"
            )
            pointer = f"{{.{field} = {name}}}"
        return f"{{ARGAND_TAG_{tag}, {len(items)}, {pointer}}}"
    if isinstance(value, str):
        return f'{{ARGAND_TAG_STRING, {len(value)}, {{.s = "{value}"}}}}'
    if isinstance(value, bool):
        return f"{{ARGAND_TAG_BOOL, 0, {{.i = {int(value)}}}}}"
    if isinstance(value, int) and t.base != "float":
        return f"{{ARGAND_TAG_INT, 0, {{.i = {value}}}}}"
    return f"{{ARGAND_TAG_FLOAT, 0, {{.d = {float(value)!r}}}}}"


def ends_tensors(schema: Schema, index: int) -> bool:
    """Whether the argument is the last of several that may be numbers, and nothing else is a tensor."""
    of_tensors = [i for i, a in enumerate(schema.arguments) if a.type.base in ("Tensor", "Operand")]
    return (
        len(of_tensors) > 1
        and of_tensors[-1] == index
        and all(schema.arguments[i].type.is_operand for i in of_tensors)
    )


def argument_row(op: Operator, schema: Schema, index: int, arrays: list[str]) -> str:
    a = schema.arguments[index]
    flags = []
    if not op.numbers and ends_tensors(schema, index):
        flags.append("ARGAND_ARG_NEEDS_TENSOR")
    if a.type.optional:
        flags.append("ARGAND_ARG_OPTIONAL")
    if a.has_default:
        flags.append("ARGAND_ARG_HAS_DEFAULT")
    if a.kwonly:
        flags.append("ARGAND_ARG_KWONLY")
    positional = [x for x in schema.arguments if not x.kwonly]
    rest = positional[index + 1 :] if index < len(positional) else ()
    # The only positional argument, besides a tensor whose method it is.
    alone = (
        not rest
        and not a.kwonly
        and (index == 0 or (index == 1 and positional[0].type.base == "Tensor"))
    )
    if alone and a.type.base == "int" and a.type.is_list and a.type.list_size is None:
        flags.append("ARGAND_ARG_VARARGS")
    size = a.type.list_size or 0
    value = default_value(a, arrays)
    return f'{{"{a.name}", {arg_type(a.type)}, {" | ".join(flags) or 0}, {size}, {value}}}'


def callables(ops: Sequence[Operator]) -> list[tuple[str, list[tuple[Operator, Schema]], set[str]]]:
    """(public name, overloads, where it is public: subset of {function, method}), in file order, aliases included."""
    found: dict[str, tuple[list[tuple[Operator, Schema]], set[str]]] = {}

    def add(name: str, op: Operator, schema: Schema, places: set[str]) -> None:
        entry = found.setdefault(name, ([], set()))
        entry[0].append((op, schema))
        entry[1].update(places)

    for op in ops:
        places = {v for v in op.variants if v in ("function", "method")}
        for name in (op.public_name, *op.aliases):
            add(name, op, op.schema, places)
        inplace = op.inplace_schema
        if inplace is not None:
            for name in (inplace.name, *(a + "_" for a in op.aliases)):
                add(name, op, inplace, {"method", "function"})
    return [(name, overloads, places) for name, (overloads, places) in found.items()]


def emit_bindings(registry: Registry, family: str) -> str:
    """Tables of one family, and `bindings_<family>` that hands them to a visitor with their places."""
    arrays: list[str] = []
    rows: list[str] = []
    bindings: list[str] = []
    for number, (name, overloads, places) in enumerate(callables(registry.family(family))):
        signatures = []
        for k, (op, schema) in enumerate(overloads):
            args = f"kArgs{number}_{k}"
            table = ", ".join(
                argument_row(op, schema, i, arrays) for i in range(len(schema.arguments))
            )
            if schema.arguments:
                rows.append(f"constexpr ArgandArgDesc {args}[] = {{{table}}};")
            names = "nullptr"
            if len(schema.results) > 1 and all(r.name for r in schema.results):
                names = f"kNames{number}_{k}"
                quoted = ", ".join(f'"{r.name}"' for r in schema.results)
                rows.append(f"constexpr const char* {names}[] = {{{quoted}}};")
            out = op.out_schema
            out_name = (
                f'"{out.full_name}"' if out is not None and schema is op.schema else "nullptr"
            )
            signatures.append(
                f'{{"{schema.full_name}", {out_name}, {len(schema.arguments)}, {len(schema.results)}, '
                f"{args if schema.arguments else 'nullptr'}, {names}}}"
            )
        rows.append(
            f"constexpr ArgandSignature kSignatures{number}[] = {{{', '.join(signatures)}}};"
        )
        doc = overloads[0][0].doc.replace("\\", "\\\\").replace('"', '\\"')
        mask = ("function" in places) | ("method" in places) << 1
        bindings.append(
            f'{{{{"{name}", "{doc}", {len(signatures)}, kSignatures{number}}}, {mask}}}'
        )
    return (
        HEADER
        + '#include "packages/aten/csrc/python/bindings.h"\n\nnamespace argand::bindings {\nnamespace {\n'
        + "\n".join([*arrays, *rows])
        + "\nconstexpr PlacedBinding kBindings[] = {\n  "
        + ",\n  ".join(bindings)
        + "};\n}  // namespace\n"
        + f"\nBindingTable {family}() {{ return {{kBindings, sizeof kBindings / sizeof kBindings[0]}}; }}\n"
        + "\n}  // namespace argand::bindings\n"
    )


def emit_families_header(families: Sequence[str]) -> str:
    """`families.inc`: FAMILY(name) for every registry family, for lists written by hand."""
    return HEADER + "".join(f"FAMILY({f})\n" for f in families)
