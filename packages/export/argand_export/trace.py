"""From a module and example arguments to a functional graph with a signature."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, cast

import argand_c10 as c10
from argand_aot.joint import Joint, build_joint
from argand_aot.outputs import OutputSpec as Result
from argand_aot.partition import extract_forward
from argand_aot.values import UnsupportedGraph
from argand_c10 import Module, Size, Tensor
from argand_dynamo.capture import Capture, capture
from argand_dynamo.dynamic import DynamicShapes
from argand_dynamo.frame_plan import Return
from argand_dynamo.guards import describe_source
from argand_dynamo.history import FrameHistory
from argand_export import constraints, tree
from argand_export.dims import DerivedDim, Dim, DimHint, bounds_of, spec_of
from argand_export.program import CallSpec, ExportedProgram, TensorSpec
from argand_export.signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
)
from argand_fx import Graph, GraphModule, Node
from argand_fx.parse import parse_symbolic
from argand_fx.schema import overload, schema_of
from argand_fx.shapes import FakeTensor, GraphBuilder, ShapeEnv
from argand_fx.symbolic import SymbolicValue

__all__ = ["export"]


def export(
    mod: Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    strict: bool = False,
) -> ExportedProgram:
    """Trace a module into one functional graph that runs without its Python code.

    Args:
        mod: the module. Its parameters and buffers become named inputs of the graph.
        args, kwargs: an example call. Each tensor is an input, also one that stands there twice; other values become constants of the
            program. Containers are tuples, lists, dicts, named tuples, and classes that were registered (`register_dataclass`).
        dynamic_shapes: which sizes may vary; a dict by parameter name of `forward`, or a tuple by position, nested as the
            arguments are: for a tensor a dict {dimension: Dim}, or one entry a dimension. What is not named is fixed.
        strict: accepted for PyTorch's sake; tracing is always by bytecode.

    Returns:
        The program, with the constraints on its inputs.

    Raises:
        GraphBreak: the code cannot be one graph; it names the line and the fix.
        ConstraintViolationError: the code treats sizes apart that `dynamic_shapes` says may vary; likewise.
        TypeError, ValueError: arguments or dynamic_shapes that do not fit.
    """
    if not isinstance(mod, Module):
        raise TypeError(f"export: got {type(mod).__name__}, expected a Module")
    if not isinstance(args, tuple):
        raise TypeError(f"export: got args of type {type(args).__name__}, expected a tuple")
    leaves, in_tree = tree.flatten((args, dict(kwargs or {})))
    leaves = _distinct(leaves)
    args, keywords = tree.unflatten(iter(leaves), in_tree)
    paths = _argument_paths(mod, in_tree)
    dims = _dimensions(mod, args, keywords, dynamic_shapes, leaves)
    dims = [_settled(*entry) for entry in zip(leaves, dims, paths, strict=True)]
    dynamic = _ExportShapes(leaves, dims)
    found = capture(cast(FunctionType, _call), (mod, args, keywords), dynamic)
    return _Builder(mod, leaves, in_tree, dims, paths, found).program()


def _distinct(leaves: list[Any]) -> list[Any]:
    """Leaves with a clone for each further time that a tensor stands among them: it is another input."""
    seen: set[int] = set()
    found = []
    for leaf in leaves:
        again = isinstance(leaf, Tensor) and id(leaf) in seen
        found.append(leaf.detach().clone() if again else leaf)
        seen.add(id(leaf))
    return found


def _call(module: Any, args: Any, kwargs: Any) -> Any:
    return module(*args, **kwargs)


def _dimensions(
    mod: Module, args: tuple[Any, ...], kwargs: dict[str, Any], spec: Any, leaves: list[Any]
) -> list[Any]:
    """The dynamic dimensions of each leaf of (args, kwargs)."""
    if spec is None:
        return [None] * len(leaves)
    try:
        bound = inspect.signature(mod.forward).bind(*args, **kwargs).arguments
    except TypeError as error:
        raise TypeError(f"export: {type(mod).__name__}.forward: {error}") from None
    bound_leaves, bound_tree = tree.flatten(dict(bound))
    by_leaf = dict(
        zip(
            map(id, bound_leaves), spec_of(spec, list(bound), bound_leaves, bound_tree), strict=True
        )
    )
    return [by_leaf.get(id(leaf)) for leaf in leaves]


def _settled(leaf: Any, spec: dict[int, Any] | None, path: str) -> dict[int, Any] | None:
    """The dimensions of a leaf, without automatic ones of a size below 2, which is a case of its own."""
    found = {}
    for d, dim in (spec or {}).items():
        if _varies(dim) and leaf.shape[d] < 2:
            if isinstance(dim, DimHint) and dim.kind == "auto":
                continue
            raise ValueError(
                f"export: got the example size {leaf.shape[d]} at {path}.shape[{d}], which shall vary; give an example with 2 or more"
            )
        found[d] = dim
    return found or None


class _ExportEnv(ShapeEnv):
    """Sizes may be 1 unless the user says otherwise; results need not be views for the size 1 alone."""

    guards_copies = False

    def __init__(self) -> None:
        super().__init__()
        # By source: bounds that the user stated.
        self.stated: dict[Any, tuple[int | None, int | None]] = {}

    def create_symbol(
        self, hint: int, source: Any, positive: bool = True, *, low: Any = None, high: Any = None
    ) -> Any:
        if positive and hint > 1 and low is None:
            low, high = self.stated.get(source, (None, None))
            low = 1 if low is None else low
        return super().create_symbol(hint, source, positive, low=low, high=high)


class _ExportShapes(DynamicShapes):
    """The sizes that the user named are symbolic, no others."""

    def __init__(self, leaves: Sequence[Any], dims: Sequence[Any]) -> None:
        super().__init__(FrameHistory(), False)
        self.shape_env = self._env = _ExportEnv()
        self._dims: dict[int, dict[int, Any]] = {}
        for leaf, spec in zip(leaves, dims, strict=True):
            self._dims[id(leaf)] = {d: dim for d, dim in (spec or {}).items() if _varies(dim)}

    def _choose(self, tensor: Tensor, source: Any) -> tuple[int, ...]:
        found = self._dims.get(id(tensor), {})
        for d, dim in found.items():
            self._env.stated[source, "size", d] = bounds_of(dim)
        return tuple(sorted(found))

    def symbol_of(self, value: int, source: Any) -> Any:
        return None


def _varies(dim: Any) -> bool:
    if isinstance(dim, DimHint):
        return dim.kind != "static"
    return isinstance(dim, (Dim, DerivedDim))


class _Builder:
    """Builds the final graph of a captured call."""

    def __init__(
        self,
        mod: Module,
        leaves: list[Any],
        in_tree: Any,
        dims: list[Any],
        paths: list[str],
        found: Capture,
    ) -> None:
        self.mod, self.leaves, self.in_tree = mod, leaves, in_tree
        self.dims, self.paths, self.found = dims, paths, found
        self.env = found.dynamic.shape_env
        self.graph = Graph()
        self.builder = GraphBuilder(self.graph, self.env)
        self.parameters = {id(p): n for n, p in mod.named_parameters(remove_duplicate=True)}
        self.buffers = {id(b): n for n, b in mod.named_buffers(remove_duplicate=True)}
        self.state: dict[str, Tensor] = {
            **dict(mod.named_parameters()),
            **dict(mod.named_buffers()),
        }
        self.passing = {n for n, _ in mod.named_buffers()} - set(mod.state_dict())
        self.constants: dict[str, Tensor] = {}
        self.inputs: list[InputSpec] = []
        self.outputs: list[OutputSpec] = []
        self.results: list[Any] = []
        self.specs: list[TensorSpec | None] = []
        self.unused: dict[str, tuple[int, int]] = {}  # symbols of arguments that nothing reads

    def program(self) -> ExportedProgram:
        found = self.found
        if not isinstance(found.plan.outcome, Return):
            raise AssertionError("a captured frame returns")
        relations = constraints.relations_of(
            self.leaves, self.dims, self._leaf_symbols(), self.paths
        )
        module = found.module if found.module is not None else _empty_graph()
        try:
            joint = build_joint(module, [entry.value for entry in found.inputs], stops=True)
        except UnsupportedGraph as error:
            fix = getattr(error, "fix", "")
            raise RuntimeError(f"export: {error}" + (f"; {fix}" if fix else "")) from None
        forward = extract_forward(joint, None)
        placed = self._placeholders(joint)
        values = self._body(forward, placed)
        leaves, out_tree = self._user_outputs(joint, values, placed)
        self._mutations(joint, values, placed)
        for leaf in leaves:
            self._user_output(leaf)
        self.builder.output(tuple(self.results))
        ranges, symbols = constraints.check(
            self.env, self._leaf_symbols(), relations, self.leaves, self.dims, self.paths
        )
        return ExportedProgram(
            GraphModule(dict(self.builder.constants), self.graph, "Exported"),
            ExportGraphSignature(tuple(self.inputs), tuple(self.outputs)),
            self.state,
            self.constants,
            CallSpec(self.in_tree, out_tree, tuple(self.specs), relations),
            ranges,
            symbols,
            self.arguments,
        )

    def _leaf_symbols(self) -> dict[str, tuple[int, int]]:
        """Symbol -> (number of the leaf, dimension) of the first tensor that has it as a size."""
        number = {id(leaf): i for i, leaf in reversed(list(enumerate(self.leaves)))}
        real = {e.source: e.variable.real for e in self.found.inputs if e.variable is not None}
        found = dict(self.unused)
        for name, (source, kind, d) in self.env.sources.items():
            if name in found:
                continue
            tensor = (
                real[source] if source in real else _follow(source, (self.mod, *self.arguments))
            )
            if kind == "size" and id(tensor) in number:
                found[name] = (number[id(tensor)], d)
        return found

    # ---- inputs

    def _placeholders(self, joint: Joint) -> dict[int, FakeTensor]:
        """Placeholders of the final graph, by number of the traced graph's input."""
        reals: dict[int, tuple[int, FakeTensor]] = {}
        for i, entry in enumerate(self.found.inputs):
            if entry.variable is not None:
                reals[id(entry.variable.real)] = (i, joint.placeholders[i].meta["val"])
        placed: dict[int, FakeTensor] = {}
        for kind, names in (
            (InputKind.PARAMETER, self.parameters),
            (InputKind.BUFFER, self.buffers),
        ):
            prefix = "p" if kind is InputKind.PARAMETER else "b"
            for key, name in names.items():
                i, like = reals.get(key, (-1, None))
                like = like if like is not None else self.builder.from_tensor(self.state[name])
                placed[i] = self._place(kind, f"{prefix}_{name}", name, like)
        placed.pop(-1, None)
        user = {id(leaf) for leaf in self.leaves}
        for i, entry in enumerate(self.found.inputs):
            real = entry.variable.real if entry.variable is not None else None
            if i not in placed and real is not None and id(real) not in user:
                name = self._constant_name(real)
                self.constants[name] = real.detach()
                like = joint.placeholders[i].meta["val"]
                placed[i] = self._place(InputKind.CONSTANT_TENSOR, f"c_{name}", name, like)
        self._user_inputs(reals, placed)
        return placed

    def _constant_name(self, real: Tensor) -> str:
        """The attribute that holds a tensor, else a number."""
        for prefix, part in self.mod.named_modules():
            for key, value in part.__dict__.items():
                if value is real:
                    return f"{prefix}.{key}" if prefix else key
        return f"lifted_tensor_{len(self.constants)}"

    def _place(self, kind: InputKind, name: str, target: str | None, like: Any) -> FakeTensor:
        fake = FakeTensor(like.shape, like.stride(), like.storage_offset(), like.dtype, like.device)
        made: FakeTensor = self.builder.placeholder(name.replace(".", "_"), fake)
        persistent = target not in self.passing if kind is InputKind.BUFFER else None
        self.inputs.append(InputSpec(kind, _node_name(made), target, persistent=persistent))
        return made

    def _user_inputs(
        self, reals: dict[int, tuple[int, FakeTensor]], placed: dict[int, FakeTensor]
    ) -> None:
        names = _placeholder_names(self.mod, self.in_tree)
        for k, leaf in enumerate(self.leaves):
            if not isinstance(leaf, Tensor):
                if not (
                    leaf is None or isinstance(leaf, (bool, int, float, str, c10.dtype, c10.device))
                ):
                    raise TypeError(
                        f"export: got {type(leaf).__name__} at {self.paths[k]}, expected tensors, numbers, strings and containers of them"
                    )
                self.inputs.append(InputSpec(InputKind.USER_INPUT, None, None, leaf))
                self.specs.append(None)
                continue
            i, like = reals[id(leaf)] if id(leaf) in reals else (-1, self._unused(k, leaf))
            made = self._place(InputKind.USER_INPUT, names[k], None, like)
            if i >= 0:
                placed[i] = made
            sizes = tuple(s if type(s) is int else str(s) for s in made.shape)
            self.specs.append(TensorSpec(leaf.dtype, sizes))

    def _unused(self, k: int, leaf: Tensor) -> FakeTensor:
        """What an argument that the graph does not read looks like; its sizes may be results."""
        known = {place: name for name, place in self._leaf_symbols().items()}
        sizes: list[Any] = list(leaf.shape)
        for d, dim in (self.dims[k] or {}).items():
            if not _varies(dim):
                continue
            if (k, d) in known:
                sizes[d] = self._number(known[k, d])
            else:
                low, high = bounds_of(dim)
                sizes[d] = self.env.create_symbol(
                    leaf.shape[d], (None, "size", d), low=1 if low is None else low, high=high
                )
                self.unused[str(sizes[d])] = (k, d)
        strides: list[Any] = [1] * len(sizes)
        for d in reversed(range(len(sizes) - 1)):
            strides[d] = strides[d + 1] * sizes[d + 1]
        return FakeTensor(sizes, strides, 0, leaf.dtype, leaf.device)

    # ---- the graph

    def _body(self, forward: GraphModule, placed: dict[int, FakeTensor]) -> list[Any]:
        """The forward graph's results, computed in the final graph."""
        env: dict[Node, Any] = {}
        numbers = iter(range(len(forward.graph.nodes)))
        for node in forward.graph.nodes:
            if node.op == "placeholder":
                env[node] = placed.get(next(numbers))
                continue
            if node.op == "output":
                return [_lookup(env, x) for x in node.args[0]]
            self.builder.location = node.meta.get("location")
            self.builder.stack = node.meta.get("stack")
            if node.op == "get_attr":
                env[node] = self.builder.constant(_attribute(forward, node.target))
                continue
            args, kwargs = _lookup(env, node.args), _lookup(env, node.kwargs)
            if isinstance(node.target, c10.Operator):
                env[node] = self.builder.call(node.target, args, kwargs)
            else:
                env[node] = node.target(*args, **kwargs)
        raise AssertionError("a graph has an output")

    def _result(
        self, joint: Joint, k: int, values: list[Any], placed: dict[int, FakeTensor]
    ) -> Any:
        """The value of result k of the traced graph, views replayed."""
        self.builder.location = self.builder.stack = None
        made: Result = joint.outputs[k]
        if made.kind in ("constant", "symbolic"):
            return self._number(made.value) if made.kind == "symbolic" else made.value
        mutated = {m.input: m.value for m in joint.mutations}
        if made.kind == "same":
            x = self._result(joint, made.index, values, placed)
        elif made.kind == "input" and made.index not in mutated:
            x = placed[made.index]
        else:
            x = values[mutated[made.index] if made.kind == "input" else made.index]
        for step in made.steps:
            op = overload(step.op)
            positional = schema_of(op).positional - 1
            names = [a.name for a in schema_of(op).arguments[positional + 1 :]]
            rest = [self._argument(a, values) for a in step.args]
            if step.op == "_select_at":  # a file needs offsets that are known: a copy
                x = self.builder.ops.index(x, [None] * (rest[0] % x.ndim) + [rest[1]])
                continue
            keywords = dict(zip(names, rest[positional:], strict=True))
            x = self.builder.call(op, [x, *rest[:positional]], keywords)
        return x

    def _argument(self, x: Any, values: list[Any]) -> Any:
        if isinstance(x, (list, tuple)):
            if len(x) == 2 and x[0] == "symbolic":
                return self._number(x[1])
            if len(x) == 2 and x[0] == "value":
                return values[x[1]]
            if len(x) == 2 and x[0] == "dtype":
                return getattr(c10, x[1])
            return [self._argument(item, values) for item in x]
        return x

    def _number(self, text: str) -> Any:
        symbols = {
            str(self.env.intern((((a.index,), 1),), 0)): a
            for a in self.env.atoms
            if a.op == "symbol"
        }

        def resolve(name: str) -> Any:
            return self.env.intern((((symbols[name].index,), 1),), 0)

        return parse_symbolic(text, resolve)

    # ---- results

    def _user_outputs(
        self, joint: Joint, values: list[Any], placed: dict[int, FakeTensor]
    ) -> tuple[list[Any], Any]:
        by_source = {e.source: placed.get(i) for i, e in enumerate(self.found.inputs)}
        mutated = {m.input: m.value for m in joint.mutations}
        leaf_of = {id(self.state[s.target]): s.arg for s in self.inputs if s.target in self.state}
        leaf_of |= {
            id(leaf): spec.arg for leaf, spec in zip(self.leaves, self._user_specs(), strict=True)
        }

        def value(e: Any) -> Any:
            kind = e[0]
            if kind == "graph":
                return self._result(joint, e[1], values, placed)
            if kind == "const":
                return e[1]
            if kind == "source":
                for i, entry in enumerate(self.found.inputs):
                    if entry.source == e[1] and i in mutated:
                        return values[mutated[i]]
                if by_source.get(e[1]) is not None:
                    return by_source[e[1]]
                real = _follow(e[1], (self.mod, self.arguments[0], self.arguments[1]))
                if isinstance(real, Tensor):
                    return self._untouched(real, leaf_of)
                if real is None or isinstance(real, (bool, int, float, str)):
                    return real
                return _rebuild(real, lambda x: self._untouched(x, leaf_of))
            if kind == "temp":
                return temps[e[1]]
            if kind == "sym":
                return self._number(_text(e[1]))
            if kind in ("tuple", "list"):
                items = [value(x) for x in e[1]]
                return tuple(items) if kind == "tuple" else items
            if kind == "dict":
                return {value(k): value(v) for k, v in e[1]}
            if kind == "call":
                called = self._object(e[1])
                owner = getattr(called, "__self__", called)
                if owner is Size:  # made of numbers only when the program runs
                    return tree.Sizes(*[value(x) for x in e[2]])
                if isinstance(owner, type) and (tree.is_namedtuple(owner) or tree.is_node(owner)):
                    return called(*[value(x) for x in e[2]], **{n: value(x) for n, x in e[3]})
            if kind == "new" and tree.is_node(owner := self._object(e[1])):
                return owner.__new__(owner, *[value(x) for x in e[2]])
            raise TypeError(
                f"export: got a result that holds a {kind} expression, expected tensors and numbers in tuples, lists and dicts"
            )

        temps: dict[str, Any] = {}
        self._fill_new(temps, value)
        return tree.flatten(value(self.found.plan.outcome.value))  # type: ignore[union-attr]

    def _fill_new(self, temps: dict[str, Any], value: Callable[[Any], Any]) -> None:
        """New containers are made first and filled then, as statements of the plan."""
        for effect in self.found.plan.effects:
            kind, target = effect[0], effect[1]
            if kind == "let":
                temps[target] = value(effect[2])
            elif target[0] != "temp":
                continue
            elif kind == "list_replace":
                temps[target[1]][:] = [value(x) for x in effect[2]]
            elif kind == "dict_replace":
                temps[target[1]].clear()
                temps[target[1]].update({value(k): value(v) for k, v in effect[2]})
            elif kind in ("store_attr", "store_instance"):
                object.__setattr__(temps[target[1]], effect[2], value(effect[3]))

    def _object(self, e: Any) -> Any:
        """The object that exists outside of the program that an expression means, or None."""
        if e[0] == "const":
            return e[1]
        if e[0] == "attr":
            return getattr(self._object(e[1]), e[2], None)
        return _follow(e[1], (self.mod, *self.arguments)) if e[0] == "source" else None

    @property
    def arguments(self) -> Any:
        """(args, kwargs) as given."""
        return tree.unflatten(iter(self.leaves), self.in_tree)

    def _user_specs(self) -> list[InputSpec]:
        return [s for s in self.inputs if s.kind is InputKind.USER_INPUT]

    def _untouched(self, real: Any, leaf_of: dict[int, str | None]) -> Any:
        """A tensor that is returned as it came."""
        name = leaf_of.get(id(real))
        if name is None:
            raise TypeError(
                "export: got a result that is a tensor the program does nothing with, expected one that is computed, an argument, a "
                "parameter or a buffer; register it as a buffer"
            )
        return next(n.meta["val"] for n in self.graph.nodes if n.name == name)

    def _user_output(self, leaf: Any) -> None:
        if not isinstance(leaf, (FakeTensor, SymbolicValue)):
            self.outputs.append(OutputSpec(OutputKind.USER_OUTPUT, None, None, leaf))
            return
        name = _node_name(leaf) if isinstance(leaf, FakeTensor) else str(leaf)
        self.outputs.append(OutputSpec(OutputKind.USER_OUTPUT, name))
        self.results.append(leaf)

    def _mutations(self, joint: Joint, values: list[Any], placed: dict[int, FakeTensor]) -> None:
        """Changed inputs, and buffers that were given a new tensor."""
        by_name = {s.arg: s for s in self.inputs}
        for mutation in joint.mutations:
            spec = by_name[_node_name(placed[mutation.input])]
            if spec.kind is InputKind.BUFFER:
                self._mutation(OutputKind.BUFFER_MUTATION, spec.target, values[mutation.value])
            elif spec.kind is InputKind.USER_INPUT:
                self._mutation(OutputKind.USER_INPUT_MUTATION, spec.arg, values[mutation.value])
            else:
                raise RuntimeError(
                    f"export: got an in-place change of the {spec.kind.value} {spec.target!r}, expected buffers or inputs to change; "
                    "register it as a buffer"
                )
        code = _call.__code__
        for effect in self.found.plan.effects:
            if effect[0] == "let" or effect[1][0] == "temp":
                continue
            stores = self._buffer_stores(effect)
            if stores is None:
                target = effect[1]
                where = describe_source(target[1], code) if target[0] == "source" else effect[0]
                raise RuntimeError(
                    f"export: got a change of {where} while the program ran, expected changes of buffers only; "
                    "register what changes as a buffer, or change it outside of forward"
                )
            for name, expression in stores:
                if expression[0] != "graph":
                    raise RuntimeError(
                        f"export: got buffer {name!r} set to something that is not computed, expected a tensor of the program"
                    )
                value = self._result(joint, expression[1], values, placed)
                self._mutation(OutputKind.BUFFER_MUTATION, name, value)

    def _mutation(self, kind: OutputKind, target: str | None, value: Any) -> None:
        self.outputs.append(OutputSpec(kind, value.node.name, target))
        self.results.append(value)

    def _buffer_stores(self, effect: Any) -> list[tuple[str, Any]] | None:
        """(buffer, expression) of each buffer that an effect gives a new tensor; None where it does something else."""
        if effect[1][0] != "source":
            return None
        owner = _follow(effect[1][1], (self.mod, *self.arguments))
        if effect[0] == "dict_replace":
            pairs = [(self._object(k), e) for k, e in effect[2]]
        elif effect[0] in ("store_attr", "store_instance", "store_item"):
            key = effect[2]
            pairs = [(key[1] if isinstance(key, tuple) else key, effect[3])]
        else:
            return None
        for prefix, part in self.mod.named_modules():
            if owner is not part and owner is not part._buffers:
                continue
            if any(key not in part._buffers for key, _ in pairs):
                return None
            changed = [
                (k, e)
                for k, e in pairs
                if e[0] != "source" or self._object(e) is not part._buffers[k]
            ]
            return [(f"{prefix}.{k}" if prefix else str(k), e) for k, e in changed]
        return None


def _node_name(x: FakeTensor) -> str:
    assert x.node is not None
    return str(x.node.name)


def _empty_graph() -> GraphModule:
    graph = Graph()
    graph.output(())
    return GraphModule({}, graph)


def _lookup(env: Mapping[Node, Any], x: Any) -> Any:
    if isinstance(x, Node):
        return env[x]
    if isinstance(x, dict):
        return {k: _lookup(env, v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x)(_lookup(env, v) for v in x)
    return x


def _attribute(owner: Any, path: str) -> Any:
    for name in path.split("."):
        owner = getattr(owner, name)
    return owner


def _follow(source: Any, arguments: Sequence[Any]) -> Any:
    """The object that a path of dynamo's leads to, from the frame's arguments; None where it leads elsewhere."""
    found: Any = None
    for step in source:
        kind = step[0]
        if kind == "arg":
            found = arguments[step[1]]
        elif kind == "module":
            found = sys.modules.get(step[1])
        elif kind == "attr":
            found = getattr(found, step[1], None)
        elif kind == "item":
            found = found[step[1]]
        elif kind == "type":
            found = type(found)
        elif kind == "instance_dict":
            found = found.__dict__.get(step[1])
        else:
            return None
    return found


def _rebuild(x: Any, leaf: Any) -> Any:
    leaves, description = tree.flatten(x)
    return tree.unflatten(
        iter([leaf(v) if isinstance(v, Tensor) else v for v in leaves]), description
    )


def _text(expression: Any) -> str:
    """The text of nested tuples over symbols."""
    if isinstance(expression, tuple):
        inner = [_text(x) for x in expression[1:]]
        return "(" + f" {expression[0]} ".join(inner) + ")"
    return str(expression)


def _arguments_by_name(mod: Module, in_tree: Any) -> list[tuple[str, Any]]:
    """How the body of `forward` writes each argument, and its description."""
    args_tree, kwargs_tree = in_tree[1]
    parameters = list(inspect.signature(mod.forward).parameters.values())
    rest = next((p.name for p in parameters if p.kind is inspect.Parameter.VAR_POSITIONAL), "args")
    named = [
        p.name
        for p in parameters
        if p.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    ]
    found = [
        (named[i] if i < len(named) else f"{rest}[{i - len(named)}]", inner)
        for i, inner in enumerate(args_tree[1])
    ]
    return found + [(str(key), inner) for key, inner in kwargs_tree[1]]


def _argument_paths(mod: Module, in_tree: Any) -> list[str]:
    """How the body of `forward` writes each leaf of (args, kwargs): "batch['x'][0]"."""
    return [
        p for start, inner in _arguments_by_name(mod, in_tree) for p in tree.paths(inner, start)
    ]


def _placeholder_names(mod: Module, in_tree: Any) -> list[str]:
    """The same as identifiers: "batch_x_0"."""
    return [
        re.sub(r"\W+", "_", path.replace("'", "")).strip("_")
        for path in _argument_paths(mod, in_tree)
    ]
