"""Reads registry files into a checked model.Registry; all faults are reported together.

Stages: entries (keys, schema, facts) -> element expressions -> backward operators of d(expr) -> bodies, shapes and
gradients, which may call any operator of the registry.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from tools.codegen import checks, dtypes
from tools.codegen.body import Body, LType, of_schema
from tools.codegen.body_reader import read_body
from tools.codegen.errors import Diagnostics
from tools.codegen.expr import Element, ExprError, Name, Number, parse_element, suggest
from tools.codegen.model import (
    AUTOCAST_DEVICES,
    AUTOCAST_POLICIES,
    BACKENDS,
    KINDS,
    LAYOUTS,
    OUT_RULES,
    PROMOTIONS,
    RESIZE_RULES,
    RESULT_RULES,
    VARIANTS,
    Derivative,
    Operator,
    Reduce,
    Registry,
    Sample,
    Scan,
    Schema,
)
from tools.codegen.schema_parser import SchemaError
from tools.codegen.synthesize import Backward, backward_operator
from tools.codegen.yaml_nodes import Node, read_file

KEYS = (
    "op", "kind", "dtypes", "promote", "result", "expr", "reduce", "scan", "shape", "dtype", "body", "kernel", "grad", "tied",
    "autocast", "checked", "numbers", "exact_numbers", "variants", "layout", "out", "resized", "apart", "aliases", "shown", "doc", "reference", "moments", "samples", "domain", "tolerance", "skips",
)  # fmt: skip


@dataclasses.dataclass
class Entry:
    """An operator on its way through the stages, with the YAML that it came from."""

    node: Node
    keys: dict[str, Node]
    op: Operator
    backward: dict[str, Backward] = dataclasses.field(default_factory=dict)


def family_of(path: str) -> str:
    return os.path.splitext(os.path.basename(path))[0]


def takes_out(schema: Schema, kind: str) -> bool:
    """Whether a function also has its `out=` form: results that are new tensors can be written into given ones. Parts of other operators, named
    with an underscore or as their derivatives, have none."""
    if (
        kind == "view"
        or "::" in schema.name
        or schema.name.startswith("_")
        or schema.name.endswith("_backward")
        or not schema.results
    ):
        return False
    new = all(
        r.type.base == "Tensor" and not r.type.is_list and r.type.alias is None
        for r in schema.results
    )
    return new and not any(a.type.mutable or a.name == "out" for a in schema.arguments)


def registry_files(folders: Sequence[str]) -> list[str]:
    """All registry files of the folders (a file may be named itself), in a fixed order."""
    found: list[str] = []
    for folder in folders:
        if os.path.isfile(folder):
            found.append(folder)
        else:
            found += sorted(
                os.path.join(folder, f) for f in os.listdir(folder) if f.endswith(".yaml")
            )
    return found


class Loader:
    def __init__(self, known: Sequence[Operator] = ()) -> None:
        """known: operators of other families, from an index (facts only)."""
        self.diagnostics = Diagnostics()
        self.known = list(known)
        self.entries: list[Entry] = []
        self.families: list[str] = []
        self.callables: dict[str, list[Schema]] = {}

    # ---- stage 1: entries

    def read(self, path: str, shown_as: str | None = None) -> None:
        family = family_of(path)
        if family in self.families:
            raise ValueError(f"registry: two files are named {family}.yaml; a family is one file")
        self.families.append(family)
        defaults: dict[str, Node] = {}
        for node in read_file(path, shown_as or path, self.diagnostics):
            if any(key.text == "defaults" for key, _ in node.pairs()):
                given = node.fields(("defaults",), "a family's defaults", self.diagnostics)
                defaults = given["defaults"].fields(KEYS, "a family's defaults", self.diagnostics)
                continue
            entry = self.entry(node, family, defaults)
            if entry is not None:
                self.entries.append(entry)

    def entry(self, node: Node, family: str, defaults: Mapping[str, Node]) -> Entry | None:
        keys = {**defaults, **node.fields(KEYS, "an operator", self.diagnostics)}
        if "op" not in keys:
            self.diagnostics.add(node.location, "an operator needs `op:` with its schema")
            return None
        try:
            schema = Schema.parse(keys["op"].text)
        except SchemaError as e:
            self.diagnostics.add(keys["op"].locate(e.offset), f"schema: {e.message}", e.length)
            return None
        kind = self.one_of(keys, "kind", KINDS, None)
        if kind is None:
            if "kind" not in keys:
                self.diagnostics.add(
                    keys["op"].location, f"{schema.full_name}: needs `kind:`", len(schema.full_name)
                )
            return None
        variants: tuple[str, ...] = (
            ("function", "method", "inplace", "out")
            if kind == "pointwise"
            else ("function", "method", "out")
            if kind in ("reduction", "scan")
            else ("function", "method")
        )
        if schema.is_inplace:
            variants = ("function", "method")
        variants = self.names(keys.get("variants"), VARIANTS, "variant") or variants
        if takes_out(schema, kind) and "function" in variants and "out" not in variants:
            variants = (*variants, "out")
        op = Operator(
            schema=schema,
            kind=kind,
            family=family,
            dtypes=self.dtypes(keys.get("dtypes")),
            promote=self.one_of(keys, "promote", PROMOTIONS, "default") or "default",
            result_dtype=self.result(keys.get("result"), schema),
            kernel=self.kernel(keys.get("kernel")),
            autocast=self.autocast(keys.get("autocast"), schema),
            checked="checked" in keys and keys["checked"].value() is True,
            numbers="numbers" in keys and keys["numbers"].value() is True,
            exact_numbers="exact_numbers" in keys and keys["exact_numbers"].value() is True,
            variants=variants,
            out=self.one_of(keys, "out", OUT_RULES, None),
            resized=self.one_of(keys, "resized", RESIZE_RULES, "as_result") or "as_result",
            layout=self.one_of(keys, "layout", LAYOUTS, "as_operands") or "as_operands",
            apart=self.names(
                keys.get("apart"), tuple(a.name for a in schema.arguments), "argument"
            ),
            tied=self.names(keys.get("tied"), differentiable(schema), "argument"),
            aliases=tuple(n.text for n in keys["aliases"].items()) if "aliases" in keys else (),
            shown=keys["shown"].text if "shown" in keys else None,
            doc=keys["doc"].text.strip() if "doc" in keys else "",
            reference=keys["reference"].text if "reference" in keys else None,
            moments=self.mapping(keys.get("moments"), "moments"),
            samples=self.samples(keys.get("samples"), schema),
            domain=keys["domain"].value() if "domain" in keys else None,
            tolerance=self.mapping(keys.get("tolerance"), "tolerance"),
            skips=self.mapping(keys.get("skips"), "skips"),
            location=node.location,
        )
        return Entry(node, keys, op)

    def one_of(
        self, keys: Mapping[str, Node], key: str, known: tuple[str, ...], otherwise: str | None
    ) -> str | None:
        node = keys.get(key)
        if node is None:
            return otherwise
        if node.text in known:
            return node.text
        hint = suggest(node.text, known) or "; known are " + ", ".join(known)
        self.diagnostics.add(node.location, f"unknown {key} '{node.text}'{hint}", len(node.text))
        return None

    def names(self, node: Node | None, known: tuple[str, ...], what: str) -> tuple[str, ...]:
        found = []
        for item in node.items() if node is not None else []:
            if item.text not in known:
                hint = suggest(item.text, known) or "; known are " + ", ".join(known)
                self.diagnostics.add(
                    item.location, f"unknown {what} '{item.text}'{hint}", max(len(item.text), 1)
                )
            else:
                found.append(item.text)
        return tuple(found)

    def dtypes(self, node: Node | None) -> tuple[str, ...]:
        known = (*dtypes.DTYPE_SETS, *dtypes.DTYPES)
        return dtypes.expand(list(self.names(node, known, "dtype")))

    def result(self, node: Node | None, schema: Schema) -> str | tuple[str, ...] | None:
        if node is None:
            return None
        tensors = tuple(a.name for a in schema.arguments if a.type.is_tensor)
        found = self.names(node, (*RESULT_RULES, *tensors, *dtypes.DTYPES), "result dtype")
        if node.is_list:
            if len(found) != len(schema.results):
                got, want = len(node.items()), len(schema.results)
                self.diagnostics.add(
                    node.location, f"result: {got} dtypes for {want} results of {schema.full_name}"
                )
            return found
        return found[0] if found else None

    def kernel(self, node: Node | None) -> dict[str, str]:
        if node is None:
            return {}
        if not node.is_mapping:
            self.diagnostics.add(
                node.location,
                "kernel: names a function per backend, {cpu: name}",
                len(node.text) or 1,
            )
            return {}
        return {k: v.text for k, v in node.fields(BACKENDS, "kernel", self.diagnostics).items()}

    def autocast(self, node: Node | None, schema: Schema) -> tuple[str, str] | None:
        """One policy for all devices, or `{cpu: ..., accelerator: ...}`."""
        if node is None:
            return None
        if (
            schema.is_inplace
            or schema.is_out
            or not any(a.type.base in ("Tensor", "Operand") for a in schema.arguments)
        ):
            self.diagnostics.add(
                node.location, "autocast: only functional operators of tensors are cast", 1
            )
        both = {device: node for device in AUTOCAST_DEVICES}
        if node.is_mapping:
            both = node.fields(AUTOCAST_DEVICES, "autocast", self.diagnostics)
        found = {
            d: self.one_of({"autocast": n}, "autocast", AUTOCAST_POLICIES, None)
            for d, n in both.items()
        }
        if node.is_mapping and len(found) < len(AUTOCAST_DEVICES):
            self.diagnostics.add(
                node.location,
                "autocast: needs a policy for each of " + ", ".join(AUTOCAST_DEVICES),
                1,
            )
        return (found.get("cpu") or "none", found.get("accelerator") or "none")

    def mapping(self, node: Node | None, what: str) -> dict[str, Any]:
        if node is None:
            return {}
        if not node.is_mapping:
            self.diagnostics.add(node.location, f"{what}: expected a mapping", len(node.text) or 1)
            return {}
        return {k: v.value() for k, v in node.fields((), what, self.diagnostics).items()}

    def samples(self, node: Node | None, schema: Schema) -> tuple[Sample, ...]:
        found = []
        for item in node.items() if node is not None else []:
            if not item.is_mapping:
                self.diagnostics.add(item.location, "a sample is {args: [...], kwargs: {...}}")
                continue
            parts = item.fields(("args", "kwargs"), "a sample", self.diagnostics)
            args = parts["args"].value() if "args" in parts else ()
            kwargs = parts["kwargs"].value() if "kwargs" in parts else {}
            if not isinstance(args, tuple) or not isinstance(kwargs, dict):
                self.diagnostics.add(item.location, "a sample is {args: [...], kwargs: {...}}")
                continue
            problem = checks.sample_problem(schema, args, kwargs)
            if problem:
                self.diagnostics.add(
                    item.location, f"sample does not fit {schema.full_name}: {problem}"
                )
            found.append(Sample(args, kwargs, item.location))
        return tuple(found)

    # ---- stage 2: element expressions and backward operators

    def element(
        self, node: Node, names: Sequence[str], masks: Sequence[str] = ()
    ) -> Element | None:
        try:
            return parse_element(node.text, names, masks)
        except ExprError as e:
            self.diagnostics.add(node.locate(e.offset, e.line), e.message, e.length)
            return None

    def elements(self, entry: Entry) -> None:
        keys, op = entry.keys, entry.op
        if "expr" in keys:
            entry.op = dataclasses.replace(op, expr=self.expressions(keys["expr"], op))
            for node in keys["expr"].pairs() or [(keys["expr"], keys["expr"])]:
                for problem, offset, length in checks.element_problems(entry.op, node[1].text):
                    self.diagnostics.add(node[1].locate(offset), problem, length)
        if "reduce" in keys:
            parts = keys["reduce"].fields(
                ("init", "map", "combine", "final", "acc", "nonempty"), "reduce", self.diagnostics
            )
            entry.op = dataclasses.replace(entry.op, reduce=self.reduce(keys["reduce"], parts))
        if "scan" in keys:
            parts = keys["scan"].fields(("init", "combine", "acc"), "scan", self.diagnostics)
            init, combine = (
                self.init(parts.get("init")),
                self.part(parts, "combine", ("a", "b"), keys["scan"]),
            )
            if init is not None and combine is not None:
                acc = parts["acc"].text if "acc" in parts else None
                entry.op = dataclasses.replace(entry.op, scan=Scan(init, combine, acc))

    def expressions(self, node: Node, op: Operator) -> dict[str | None, Element]:
        names = [a.name for a in (*op.operands, *op.scalars)]
        if node.is_mapping:
            if op.variant_argument is None:
                self.diagnostics.add(
                    node.location,
                    f"{op.name}: several expressions need a str argument that chooses",
                )
            found: dict[str | None, Element] = {}
            for key, value in node.fields((), "expr", self.diagnostics).items():
                x = self.element(value, names, op.conditions)
                if x is not None:
                    found[key] = x
            return found
        x = self.element(node, names, op.conditions)
        return {} if x is None else {None: x}

    def init(self, node: Node | None) -> Element | None:
        if node is None:
            return Number(0)
        x = self.element(node, ["lowest", "highest"])
        if x is not None and not isinstance(x, (Number, Name)):
            self.diagnostics.add(
                node.location, "init is a number, lowest or highest", len(node.text)
            )
            return None
        return x

    def part(
        self, parts: Mapping[str, Node], key: str, names: tuple[str, ...], parent: Node
    ) -> Element | None:
        if key not in parts:
            self.diagnostics.add(parent.location, f"needs `{key}:` over {', '.join(names)}")
            return None
        return self.element(parts[key], names)

    def reduce(self, node: Node, parts: Mapping[str, Node]) -> Reduce | None:
        init = self.init(parts.get("init"))
        mapped = self.part(parts, "map", ("x",), node)
        combine = self.part(parts, "combine", ("a", "b"), node)
        final = self.element(parts["final"], ("acc", "n")) if "final" in parts else Name("acc")
        if init is None or mapped is None or combine is None or final is None:
            return None
        nonempty = "nonempty" in parts and parts["nonempty"].value() is True
        return Reduce(
            init, mapped, combine, final, parts["acc"].text if "acc" in parts else None, nonempty
        )

    def backward_operators(self, entry: Entry) -> None:
        node = entry.keys.get("grad")
        if node is None or not node.is_mapping:
            return
        derived = [(k, v) for k, v in node.pairs() if v.text.replace(" ", "") == "d(expr)"]
        for key, value in derived:
            op = entry.op
            if not any(a.name == key.text for a in op.operands):
                continue  # reported with the gradients
            if not op.expr:
                if "expr" not in entry.keys:
                    self.diagnostics.add(
                        value.location, "d(expr) needs `expr:`; write the gradient by hand", 7
                    )
                continue
            try:
                entry.backward[key.text] = backward_operator(op, key.text, len(derived) > 1)
            except ExprError as e:
                self.diagnostics.add(value.location, e.message, len(value.text))

    # ---- stage 3: bodies and gradients

    def index_callables(self, ops: Sequence[Operator]) -> None:
        for op in ops:
            for schema in op.forms():
                if schema.is_out and schema is not op.schema:
                    continue
                suffix = "_" if schema is op.inplace_schema else ""
                for name in (schema.name, *(a + suffix for a in op.aliases)):
                    self.callables.setdefault(name, []).append(schema)

    def body(
        self,
        node: Node,
        parameters: Mapping[str, LType],
        needs: tuple[str, ...] = (),
        result: LType | None = None,
    ) -> Body | None:
        try:
            return read_body(
                node.text, parameters, lambda n: self.callables.get(n, []), result, needs
            )
        except ExprError as e:
            self.diagnostics.add(node.locate(e.offset, e.line), e.message, e.length)
            return None

    def bodies(self, entry: Entry) -> None:
        keys, op = entry.keys, entry.op
        parameters = {a.name: of_schema(a.type) for a in op.schema.arguments}
        found: dict[str, Any] = {}
        if "shape" in keys:
            found["shape"] = self.body(keys["shape"], parameters)
        if "dtype" in keys:
            found["dtype_rule"] = self.body(keys["dtype"], parameters)
        if "body" in keys:
            types = tuple(of_schema(r.type) for r in op.schema.results)
            wanted = types[0] if len(types) == 1 else LType("tuple", types)
            found["body"] = self.body(keys["body"], parameters, result=wanted)
        entry.op = dataclasses.replace(op, **found)
        if "grad" in keys:
            entry.op = dataclasses.replace(entry.op, **self.gradients(entry, keys["grad"]))

    def gradients(self, entry: Entry, node: Node) -> dict[str, Any]:
        if not node.is_mapping:
            if node.text not in ("none", "missing"):
                self.diagnostics.add(
                    node.location,
                    "grad: {argument: expression}, none or missing",
                    len(node.text) or 1,
                )
            return {"grad_missing" if node.text == "missing" else "grad_none": True}
        found: list[Derivative] = []
        for key, value in node.pairs():
            names = tuple(n.strip() for n in key.text.split(","))
            for name in names:
                problem = checks.grad_argument_problem(
                    entry.op, name, [n for d in found for n in d.args]
                )
                if problem:
                    self.diagnostics.add(key.location, problem, len(key.text))
            if any(entry.op.schema.argument(n) is None for n in names):
                continue
            found.append(self.gradient(entry, names, value))
        return {"grad": tuple(found)}

    def gradient(self, entry: Entry, names: tuple[str, ...], node: Node) -> Derivative:
        if node.is_scalar and node.text in ("none", "null", "~"):
            return Derivative(names, None)
        if node.text.replace(" ", "") == "d(body)":
            if "body" not in entry.keys:
                self.diagnostics.add(node.location, "d(body) needs `body:`", 7)
            return Derivative(names, None, by_body=True)
        derived = node.text.replace(" ", "") == "d(expr)"
        if derived:
            backward = entry.backward.get(names[0])
            if backward is None:
                return Derivative(names, None)
            return self.synthesized(entry.op, names, backward.call, node)
        schema = entry.op.schema
        wanted, needs = gradient_type(schema, names), differentiable(schema)
        parameters = gradient_parameters(schema)
        if len(schema.results) > 1:
            self.allow_missing(node, parameters, schema, wanted)
        return Derivative(names, self.body(node, parameters, needs, wanted))

    def allow_missing(
        self, node: Node, parameters: dict[str, LType], schema: Schema, wanted: LType | None
    ) -> None:
        """Of several results some may get no gradient: `Tensor?` where the text copes with None; zeros elsewhere."""
        names = gradient_names(schema)
        for missing in (c for n in range(len(names), 0, -1) for c in combinations(names, n)):
            trial = parameters | {name: parameters[name].maybe() for name in missing}
            try:
                read_body(
                    node.text,
                    trial,
                    lambda n: self.callables.get(n, []),
                    wanted,
                    differentiable(schema),
                )
            except ExprError:
                continue
            parameters.update(trial)
            return

    def synthesized(
        self, op: Operator, names: tuple[str, ...], text: str, node: Node
    ) -> Derivative:
        """A gradient made by d(expr): faults in it are the entry's, shown at its `d(expr)`."""
        parameters = gradient_parameters(op.schema)
        wanted = gradient_type(op.schema, names)
        try:
            body = read_body(
                text,
                parameters,
                lambda n: self.callables.get(n, []),
                wanted,
                differentiable(op.schema),
            )
        except ExprError as e:
            self.diagnostics.add(
                node.location, f"{op.name}: gradient for {names[0]}: {e.message}", len(node.text)
            )
            return Derivative(names, None, from_expr=True)
        return Derivative(names, body, from_expr=True)

    # ---- everything

    def finish(self) -> Registry:
        for entry in self.entries:
            self.elements(entry)
            self.backward_operators(entry)
        made = [b.operator for e in self.entries for b in e.backward.values()]
        everything = [*self.known, *(e.op for e in self.entries), *made]
        self.index_callables(sorted(everything, key=lambda op: op.family))
        operators: list[Operator] = []
        for entry in self.entries:
            self.bodies(entry)
            operators.append(entry.op)
            for arg, backward in entry.backward.items():
                node = next(v for k, v in entry.keys["grad"].pairs() if k.text == arg)
                grads = tuple(
                    self.synthesized(backward.operator, (a,), text, node)
                    for a, text in backward.gradients.items()
                )
                operators.append(dataclasses.replace(backward.operator, grad=grads))
        by_entry = {e.op.name: e for e in self.entries}
        for op in operators:
            if op.backward_of is None:
                entry = by_entry[op.name]
                for location, message, length in checks.operator_problems(
                    entry.op, entry.keys, entry.node
                ):
                    self.diagnostics.add(location, message, length)
        for location, message, length in checks.registry_problems(self.entries, self.known):
            self.diagnostics.add(location, message, length)
        self.diagnostics.raise_if_any()
        return ordered([*self.known, *operators], self.families)


def ordered(operators: Sequence[Operator], families: Sequence[str]) -> Registry:
    names = sorted({op.family for op in operators} | set(families))
    return Registry(
        {op.name: op for f in names for op in operators if op.family == f}, tuple(names)
    )


def differentiable(schema: Schema) -> tuple[str, ...]:
    """Arguments that may have a gradient: tensors, operands and lists of tensors."""
    return tuple(a.name for a in schema.arguments if a.type.base in ("Tensor", "Operand"))


def result_names(schema: Schema) -> tuple[str, ...]:
    """By what names gradients call the results: `result`, or their own names, or result0, result1..."""
    if len(schema.results) == 1:
        return ("result",)
    return tuple(r.name or f"result{i}" for i, r in enumerate(schema.results))


def gradient_names(schema: Schema) -> tuple[str, ...]:
    """The names of the incoming gradients: `grad`, or grad_<result>."""
    return (
        ("grad",) if len(schema.results) == 1 else tuple(f"grad_{n}" for n in result_names(schema))
    )


def gradient_parameters(schema: Schema) -> dict[str, LType]:
    """What a gradient may read. The incoming gradient hides an argument of the same name."""
    found = {a.name: of_schema(a.type) for a in schema.arguments}
    for names in (result_names(schema), gradient_names(schema)):
        for name, result in zip(names, schema.results, strict=True):
            found[name] = of_schema(result.type)
    return found


def gradient_type(schema: Schema, names: tuple[str, ...]) -> LType | None:
    """What the gradient of these arguments must be; for several, a tuple (or an operator's several results)."""
    types = []
    for name in names:
        argument = schema.argument(name)
        listed = argument is not None and argument.type.is_list
        types.append(
            LType("list", (LType("Tensor"),)) if listed else LType("Tensor", optional=True)
        )
    return types[0] if len(types) == 1 else LType("tuple", tuple(types))


def load(folders: Sequence[str], known: Sequence[Operator] = (), relative_to: str = "") -> Registry:
    """Reads all files of the folders.

    Raises:
      RegistryError: with every fault found.
    """
    loader = Loader(known)
    for path in registry_files(folders):
        shown = os.path.relpath(path, relative_to) if relative_to else path
        loader.read(path, shown)
    return loader.finish()
