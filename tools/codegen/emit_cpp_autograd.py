"""Emits `<family>.autograd.cc`: one backward function per operator, and the records by which the tape finds it."""

from __future__ import annotations

from tools.codegen import body as b
from tools.codegen.body import Body
from tools.codegen.emit_cpp_ops import HEADER, ops_callers, safe
from tools.codegen.emit_cpp_register import reader
from tools.codegen.loader import gradient_names, result_names
from tools.codegen.model import Argument, Derivative, Operator, Registry
from tools.codegen.print_cpp_body import BodyPrinter, cpp_type


def data_uses(op: Operator, body: Body) -> frozenset[str]:
    """Names whose data the body reads; the rest is only asked for its geometry. Views keep their operand's strides too."""
    geometry = b.GEOMETRY | ({"strides", "offset"} if op.is_view else set())
    names = {name for name, _ in body.parameters}
    found: set[str] = set()

    def visit(x: b.Expr) -> None:
        if isinstance(x, b.Attr) and isinstance(x.obj, b.Var) and x.name in geometry:
            return
        if b.is_device_of(x):
            return
        if isinstance(x, b.IsNone) and isinstance(x.obj, b.Var):
            return  # asked of the context
        if isinstance(x, b.Var) and x.id in names:
            found.add(x.id)
        for child in x.children():
            visit(child)

    for statement in b.statements_of(body.statements):
        for root in b.roots(statement):
            visit(root)
    return frozenset(found)


def mentioned(body: Body) -> frozenset[str]:
    return frozenset(x.id for x in body.expressions() if isinstance(x, b.Var))


def chosen(op: Operator, body: Body) -> dict[str, str]:
    """Tensors that are only ever a branch of a conditional, with the text that unpacks them there: a write to one is no mistake where the
    other branch is taken."""
    branches = [
        branch
        for x in body.expressions()
        if isinstance(x, b.IfExp)
        for branch in (x.then, x.otherwise)
    ]
    uses = [x.id for x in body.expressions() if isinstance(x, b.Var)]
    as_branch = [x.id for x in branches if isinstance(x, b.Var)]
    return {
        a.name: f"c.tensor({i})"
        for i, a in enumerate(op.schema.arguments)
        if a.type.base == "Tensor" and not a.type.is_list
        if a.name in as_branch and as_branch.count(a.name) == uses.count(a.name)
    }


def fetch(op: Operator, argument: Argument, data: frozenset[str]) -> list[str]:
    """Declares an argument in a backward function."""
    i, name, t = op.schema.index(argument.name), safe(argument.name), argument.type
    if t.base == "Tensor" and not t.is_list:
        if argument.name in data:
            return [f"[[maybe_unused]] const Tensor {name} = c.tensor({i});"]
        return [f"[[maybe_unused]] const Geometry {name}{{c, {i}}};"]
    if t.base == "Operand":
        return [
            f"[[maybe_unused]] const Tensor {name}_held = c.is_tensor({i}) ? c.tensor({i}) : Tensor();",
            f"[[maybe_unused]] const Operand {name} = c.is_tensor({i}) ? Operand({name}_held) : Operand(c.value({i}));",
        ]
    if t.base == "Tensor" and argument.name in data:
        return [f"[[maybe_unused]] const TensorList {name} = c.tensors({i});"]
    if t.base == "Tensor":
        return [
            f"std::vector<builtins::Ints> {name}_shapes;",
            f"for (int i = 0; i < c.list_len({i}); i++) {name}_shapes.push_back(c.list_sizes({i}, i).vec());",
        ]
    return [f"[[maybe_unused]] const auto {name} = {reader(t, f'c.value({i})')};"]


def gradient_function(op: Operator, derivative: Derivative, name: str) -> str:
    """Computes the gradients of `derivative.args` from the context."""
    body = derivative.body
    assert body is not None
    in_branches = chosen(op, body)
    data, names = data_uses(op, body), mentioned(body) - in_branches.keys()
    lines = [line for a in op.schema.arguments if a.name in names for line in fetch(op, a, data)]
    for k, result in enumerate(result_names(op.schema)):
        if result in names:
            if result in data:
                lines.append(f"[[maybe_unused]] const Tensor {safe(result)} = c.result({k});")
            else:
                lines.append(f"[[maybe_unused]] const ResultGeometry {safe(result)}{{c, {k}}};")
    grads = gradient_names(op.schema)
    for k, grad in enumerate(grads):
        if grad in names:
            optional = dict(body.parameters)[grad].optional
            value = f"c.grad({k})" if len(grads) == 1 or optional else f"grad_or_zeros(c, {k})"
            lines.append(f"[[maybe_unused]] const Tensor {grad} = {value};")
    for a in op.schema.arguments:
        if a.name in body.reassigned:
            lines.append(f"auto {safe(a.name)}_local = {safe(a.name)};")
    renamed = in_branches | {a: f"{safe(a)}_local" for a in body.reassigned}
    lists = {a.name for a in op.schema.arguments if a.type.base == "Tensor" and a.type.is_list}
    printer = BodyPrinter(renamed, lambda a: f"c.needs({op.schema.index(a)})", lists - data)
    declared = "".join(f"  {line}\n" for line in lines)
    return f"{cpp_type(body.result)} {name}([[maybe_unused]] BackwardContext& c) {{\n{declared}{printer.body(body)}}}\n"


def deliver(op: Operator, derivative: Derivative, function: str) -> list[str]:
    """Statements of the backward function that set what `derivative` gives."""
    indices = [op.schema.index(a) for a in derivative.args]
    condition = " || ".join(f"c.needs({i})" for i in indices)
    if len(indices) == 1:
        if op.schema.arguments[indices[0]].type.is_list:
            return [f"  if ({condition}) set_list(c, {indices[0]}, {function}(c));"]
        return [f"  if ({condition}) c.set({indices[0]}, {function}(c));"]
    lines = [f"  if ({condition}) {{", f"    auto grads = {function}(c);"]
    lines += [
        f"    if (c.needs({i})) c.set({i}, std::move(std::get<{k}>(grads)));"
        for k, i in enumerate(indices)
    ]
    return [*lines, "  }"]


def mask(bits: list[int]) -> str:
    return f"UINT64_C({sum(1 << i for i in set(bits)):#x})"


def scatters(op: Operator, given: list[Derivative]) -> bool:
    """Whether the gradient is put back where a view came from: the view `f(self, a, b)` has `f_backward(grad, self.shape, a, b)`."""
    own = ", ".join(a.name for a in op.schema.arguments[1:])
    return op.is_view and [d.body.text for d in given if d.body] == [
        f"{op.schema.name}_backward(grad, self.shape, {own})"
    ]


def asks_for_strides(given: list[Derivative]) -> bool:
    """Whether a gradient reads the strides of an argument, which are kept where it does."""
    return any(
        isinstance(x, b.Attr) and x.name == "strides"
        for d in given
        if d.body
        for x in d.body.expressions()
    )


# Families whose callers derivative_support.h includes.
_DECLARED = frozenset({"creation"})


class FamilyEmitter:
    def __init__(self) -> None:
        self.definitions: list[str] = []
        self.rows: list[str] = []

    def operator(self, op: Operator) -> None:
        schema = op.schema
        given = [d for d in op.grad if d.body is not None]
        if not given:
            if op.derived_by_body:
                return  # its AUTOGRAD kernel is the body, registered with the operator
            if op.grad_none or op.grad:
                self.rows.append(f'{{"{op.name}", nullptr, 0, 0, 0, 0, nullptr, nullptr, nullptr}}')
            return
        name = op.identifier
        n = len(schema.arguments)
        args_for: list[list[int]] = [[] for _ in range(n)]
        results_for: list[list[int]] = [[] for _ in range(n)]
        lines = []
        used_grads: set[int] = set()
        results, grads = result_names(schema), gradient_names(schema)
        for d in given:
            assert d.body is not None
            function = f"{name}_grad_{'_'.join(d.args)}"
            self.definitions.append(gradient_function(op, d, function))
            lines += deliver(op, d, function)
            data, names = data_uses(op, d.body), mentioned(d.body)
            used_grads |= {k for k, g in enumerate(grads) if g in names}
            for arg in d.args:
                i = schema.index(arg)
                # Non-tensor arguments are always kept; a bit for them does no harm.
                args_for[i] = [schema.index(x) for x in data if schema.argument(x) is not None]
                results_for[i] = [results.index(x) for x in data if x in results]
        self.definitions.append(
            f"void {name}_backward(BackwardContext& c) {{\n" + "\n".join(lines) + "\n}\n"
        )
        self.definitions.append(
            f"constexpr uint64_t {name}_args[] = {{{', '.join(mask(x) for x in args_for)}}};"
        )
        self.definitions.append(
            f"constexpr uint64_t {name}_results[] = {{{', '.join(mask(x) for x in results_for)}}};"
        )
        differentiable = [schema.index(a) for d in given for a in d.args]
        read = {n for d in given if d.body is not None for n in mentioned(d.body)}
        self.rows.append(
            f'{{"{op.name}", {name}_backward, {mask(differentiable)}, '
            f"{mask(sorted(used_grads) or list(range(len(schema.results))))}, {mask([i for x in args_for for i in x])}, "
            f'{mask([i for x in results_for for i in x])}, {name}_args, {name}_results, "{" ".join(n if n in read else "-" for n in (*(a.name for a in schema.arguments), *results))}"'
            f", {str(scatters(op, given)).lower()}, {mask([schema.index(a) for a in op.tied])}, {str(asks_for_strides(given)).lower()}}}"
        )


def emit_autograd(registry: Registry, family: str) -> str:
    emitter = FamilyEmitter()
    for op in registry.family(family):
        emitter.operator(op)
    rows = ",\n    ".join(emitter.rows)
    table = f"const Derivative kDerivatives[] = {{\n    {rows}}};\n" if emitter.rows else ""
    register = (
        "register_derivatives(kDerivatives, sizeof kDerivatives / sizeof kDerivatives[0]);"
        if emitter.rows
        else ""
    )
    definitions = "\n".join(emitter.definitions)
    return (
        HEADER
        + '#include "packages/autograd/csrc/derivative_support.h"\n\n'
        + ops_callers(registry, definitions, _DECLARED)
        + '#pragma GCC diagnostic ignored "-Wunused-but-set-variable"\n\n'
        + "namespace argand::autograd {\nnamespace {\n\nusing builtins::Ints;\n\n"
        + definitions
        + f"\n{table}\n}}  // namespace\n\nvoid register_{family}_derivatives() {{ {register} }}\n\n}}  // namespace argand::autograd\n"
    )
