"""Emits `_ops.pyi`: typed signatures of every function, of the Tensor methods, and of operators that are functions of a namespace, with overloads."""

from __future__ import annotations

from typing import Final

from tools.codegen.emit_cpp_bindings import callables
from tools.codegen.model import Argument, Operator, Registry, Schema
from tools.codegen.print_python import literal, safe

_BASES: Final = {
    "Tensor": "Tensor", "Operand": "Tensor | Number", "Scalar": "Number", "int": "int", "float": "float", "bool": "bool",
    "str": "str", "dtype": "dtype | type", "device": "device | str | int", "generator": "Generator",
}  # fmt: skip

# Builtin names that functions of this module hide.
_BUILTINS: Final = frozenset(
    {"int", "float", "bool", "str", "list", "tuple", "complex", "slice", "type"}
)


# What functions that make tensors take besides their schema.
_FACTORY_KEYWORDS: Final = {
    "requires_grad": "requires_grad: builtins.bool | None = False",
    "layout": "layout: layout | None = None",
    "pin_memory": "pin_memory: builtins.bool = False",
}


def argument_type(a: Argument) -> str:
    t = a.type
    if a.name == "memory_format":  # an int in schemas
        return "memory_format | None" if t.optional else "memory_format"
    text = " | ".join(_builtin(part) for part in _BASES[t.base].split(" | "))
    if t.is_list:
        element = f"{text} | None" if t.optional_elements else text
        text = f"Sequence[{element}]" + (f" | {element}" if t.list_size is not None else "")
    # None stands for a list that is empty by default, as a window's stride, and for requires_grad's.
    optional = t.optional or a.default == () or a.name == "requires_grad"
    return f"{text} | None" if optional and not text.endswith("None") else text


def _builtin(text: str) -> str:
    """Built-in types are named through `builtins`, since operators have names such as `float` and `complex`."""
    return f"builtins.{text}" if text in _BUILTINS else text


def has_named_results(schema: Schema) -> bool:
    """Results that come as a named tuple: `values, indices` of max."""
    return len(schema.results) > 1 and all(r.name for r in schema.results)


def result_class(schema: Schema) -> str:
    return f"{schema.identifier}_result"


def single_type(is_list: bool) -> str:
    return "builtins.tuple[Tensor, ...]" if is_list else "Tensor"


def result_type(schema: Schema) -> str:
    found = [single_type(r.type.is_list) for r in schema.results]
    if not found:
        return "None"
    if has_named_results(schema):
        return result_class(schema)
    return found[0] if len(found) == 1 else f"builtins.tuple[{', '.join(found)}]"


def result_classes(registry: Registry) -> list[str]:
    """Named tuples, one per operator with named results."""
    found = []
    for op in registry.operators.values():
        if has_named_results(op.schema):
            fields = "".join(
                f"    {safe(str(r.name))}: {single_type(r.type.is_list)}\n"
                for r in op.schema.results
            )
            found.append(f"class {result_class(op.schema)}(NamedTuple):\n{fields}")
    return found


def default(a: Argument) -> str:
    return f" = {literal(a.default)}" if a.has_default else ""


def factory_keywords(schema: Schema) -> list[str]:
    bases = {a.type.base for a in schema.arguments}
    if not {"dtype", "device"} <= bases or schema.name == "to":
        return []
    known = {a.name for a in schema.arguments}
    return [text for name, text in _FACTORY_KEYWORDS.items() if name not in known]


def signature(name: str, schema: Schema, method: bool, out: bool) -> str:
    """One `def`."""
    arguments = list(schema.arguments)
    parts: list[str] = []
    if method:
        parts.append("self")
        arguments = arguments[1:]
    keyword = False
    for a in arguments:
        if a.kwonly and not keyword:
            parts.append("*")
            keyword = True
        name_here = (
            "input" if a.name == "self" and not method else safe(a.name)
        )  # as PyTorch's functions call it
        parts.append(f"{name_here}: {argument_type(a)}{default(a)}")
    further = factory_keywords(schema)
    if (further or out) and not keyword:
        parts.append("*")
    parts += further
    if out:
        kind = "Tensor"
        if len(schema.results) > 1:
            kind = "Sequence[Tensor]"
        parts.append(f"out: {kind} | None = None")
    return f"def {name}({', '.join(parts)}) -> {result_type(schema)}: ..."


def varargs_signature(name: str, schema: Schema, method: bool) -> str | None:
    """x.view(2, 3), zeros(2, 3): the form with the numbers one by one."""
    arguments = schema.arguments[1:] if method else schema.arguments
    rest = [a for a in arguments if not a.kwonly]
    if (
        len(rest) != 1
        or rest[0].type.base != "int"
        or not rest[0].type.is_list
        or rest[0].type.list_size is not None
    ):
        return None
    keywords = "".join(
        f", {text}"
        for text in (
            *(f"{safe(a.name)}: {argument_type(a)}{default(a)}" for a in arguments if a.kwonly),
            *factory_keywords(schema),
        )
    )
    return f"def {name}({'self, ' if method else ''}*{safe(rest[0].name)}: builtins.int{keywords}) -> {result_type(schema)}: ..."


def definitions(name: str, overloads: list[tuple[Operator, Schema]], method: bool) -> list[str]:
    found: list[str] = []
    for op, schema in overloads:
        if method and (
            not schema.arguments or schema.arguments[0].type.base not in ("Tensor", "Operand")
        ):
            continue
        if method and schema.arguments[0].type.is_list:
            continue
        found.append(
            signature(name, schema, method, out=op.out_schema is not None and schema is op.schema)
        )
        extra = varargs_signature(name, schema, method)
        if extra is not None:
            found.append(extra)
    unique = list(dict.fromkeys(found))
    if len(unique) > 1:
        return [line for d in unique for line in ("@overload", d)]
    return unique


def static_method(definition: str) -> str:
    """A line of `definitions` in a class of functions."""
    return "@staticmethod\n    " + definition if definition.startswith("def ") else definition


def emit_stubs(registry: Registry) -> str:
    """Public functions at module level; `class TensorMethods` for the generated methods; `class Operators` for every operator."""
    public: list[str] = []
    functions: list[str] = []
    methods: list[str] = []
    operators: list[str] = []
    for name, overloads, places in callables(list(registry.operators.values())):
        if not name.isidentifier():
            continue
        called = definitions(safe(name), overloads, method=False)
        operators += map(static_method, called)
        if "function" in places and not name.startswith("_"):
            public.append(safe(name))
            functions += called
        if "method" in places:
            methods += definitions(safe(name), overloads, method=True)
    return (
        '# Generated by tools/codegen from the operator registry.\n# mypy: disable-error-code="overload-overlap,misc"\n'
        "import builtins\nfrom collections.abc import Sequence\nfrom typing import NamedTuple, TypeAlias, overload\n\n"
        "from argand_c10 import Generator, Tensor, device, dtype, layout, memory_format\n\n"
        "Number: TypeAlias = builtins.int | builtins.float | builtins.bool | builtins.complex\n\n"
        + "\n".join(result_classes(registry))
        + f"\n# Functions\n__all__ = {public}\n"
        + "\n".join(functions)
        + "\n\nclass TensorMethods:\n"
        + "\n".join("    " + m for m in methods)
        + "\n\nclass Operators:\n"
        + "\n".join("    " + f for f in operators)
        + "\n"
    )
