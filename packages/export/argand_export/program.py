"""`ExportedProgram`: a functional graph with everything that a call of it needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import argand_c10 as c10
from argand_aot.decompose import decompose, decompositions
from argand_c10 import Module, Parameter, Tensor
from argand_export import tree
from argand_export.calls import TENSOR, argument_names, match_arguments
from argand_export.constraints import Relations
from argand_export.dims import Relation
from argand_export.roots import Range
from argand_export.signature import ExportGraphSignature, InputKind, OutputKind, OutputSpec
from argand_fx import Graph, GraphModule

__all__ = ["CallSpec", "ExportedProgram", "TensorSpec"]


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """What a tensor argument must be: its dtype, and a number or the text of a symbolic size a dimension."""

    dtype: c10.dtype
    sizes: tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class CallSpec:
    """How the program is called.

    Attributes:
        in_tree, out_tree: the nesting of (args, kwargs) and of the results (see `tree`).
        tensors: a TensorSpec for each leaf of the arguments; None for a constant.
        relations: the dimension that each varying size follows from.
    """

    in_tree: Any
    out_tree: Any
    tensors: tuple[TensorSpec | None, ...]
    relations: Relations


class ExportedProgram:
    """A traced program: a functional graph, its signature, its tensors, and the constraints on its inputs.

    Calling it runs the graph. `module()` gives a Module with parameters and buffers under their names.

    Attributes:
        graph_module: inputs and results as `graph_signature` says; it changes nothing in place.
        graph_signature: what they are.
        state_dict: parameters and buffers, the module's own.
        constants: other tensors that the program holds.
        call_spec: containers and sizes of the arguments and results.
        range_constraints: the values that each varying dimension may have.
        symbols: what each symbol of the graph is in terms of these.
        example_inputs: the (args, kwargs) that it was traced with; None where it was read from a file.
    """

    def __init__(
        self,
        graph_module: GraphModule,
        graph_signature: ExportGraphSignature,
        state_dict: dict[str, Tensor],
        constants: dict[str, Tensor],
        call_spec: CallSpec,
        range_constraints: dict[str, Range],
        symbols: dict[str, Relation],
        example_inputs: tuple[tuple[Any, ...], dict[str, Any]] | None = None,
    ) -> None:
        self.graph_module = graph_module
        self.graph_signature = graph_signature
        self.state_dict = state_dict
        self.constants = constants
        self.call_spec = call_spec
        self.range_constraints = range_constraints
        self.symbols = symbols
        self.example_inputs = example_inputs

    @property
    def graph(self) -> Graph:
        """The graph."""
        return self.graph_module.graph

    def parameters(self) -> Iterator[Tensor]:
        """The parameters in the graph's order."""
        return (p for _, p in self.named_parameters())

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """Names and parameters in the graph's order."""
        return ((name, self.state_dict[name]) for name in self.graph_signature.parameters)

    def buffers(self) -> Iterator[Tensor]:
        """The buffers in the graph's order."""
        return (b for _, b in self.named_buffers())

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """Names and buffers in the graph's order."""
        return ((name, self.state_dict[name]) for name in self.graph_signature.buffers)

    def module(self) -> Module:
        """A Module that runs the program; it shares this program's parameters and buffers."""
        return ProgramModule(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program. Changed buffers are written to `state_dict`, changed inputs to the arguments."""
        return self.run(self.state_dict, args, kwargs)

    def run(
        self, state: Mapping[str, Tensor], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """Run the program with these parameters and buffers."""
        leaves = self.check_inputs(args, kwargs)
        by_name = {**state, **{f"constant:{n}": c for n, c in self.constants.items()}}
        inputs = self.graph_inputs(by_name, leaves)
        results = iter(self.graph_module(*inputs))
        places = {
            s.arg: x
            for s, x in zip(
                [s for s in self.graph_signature.input_specs if s.arg is not None],
                inputs,
                strict=True,
            )
        }
        outputs = []
        for spec in self.graph_signature.output_specs:
            value = spec.value if spec.arg is None else next(results)
            if spec.kind is OutputKind.USER_OUTPUT:
                outputs.append(value)
            else:
                target = (
                    state[str(spec.target)]
                    if spec.kind is OutputKind.BUFFER_MUTATION
                    else places[spec.target]
                )
                target.detach().copy_(value)
        return tree.unflatten(iter(outputs), self.call_spec.out_tree)

    def graph_inputs(self, state: Mapping[str, Tensor], leaves: Sequence[Any]) -> list[Any]:
        """The graph's inputs. `state` holds constants as "constant:<name>"."""
        given = iter(leaves)
        inputs = []
        for spec in self.graph_signature.input_specs:
            if spec.kind is InputKind.USER_INPUT:
                leaf = next(given)
                if spec.arg is not None:
                    inputs.append(leaf)
            elif spec.kind is InputKind.CONSTANT_TENSOR:
                inputs.append(state[f"constant:{spec.target}"])
            else:
                inputs.append(state[str(spec.target)])
        return inputs

    def check_inputs(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        """The leaves of a call's arguments.

        Raises:
            TypeError, ValueError: they are not what the program was exported for; the message says where and what.
        """
        call = self.call_spec
        specs = [s for s in self.graph_signature.input_specs if s.kind is InputKind.USER_INPUT]
        constants = [TENSOR if t else s.value for t, s in zip(call.tensors, specs, strict=True)]
        leaves = match_arguments(call.in_tree, constants, args, kwargs)
        names = argument_names(call.in_tree)
        values: dict[str, tuple[int, str]] = {}
        for i, (leaf, tensor) in enumerate(zip(leaves, call.tensors, strict=True)):
            if tensor is not None:
                self._check_tensor(i, names[i], leaf, tensor, values)
        return leaves

    def _check_tensor(
        self, i: int, name: str, leaf: Any, spec: TensorSpec, values: dict[str, tuple[int, str]]
    ) -> None:
        if not isinstance(leaf, Tensor):
            raise TypeError(
                f"exported program: got {type(leaf).__name__} for {name}, expected a Tensor"
            )
        if leaf.dtype != spec.dtype or leaf.ndim != len(spec.sizes):
            raise ValueError(
                f"exported program: got {leaf.dtype} of {leaf.ndim} dimensions for {name}, expected {spec.dtype} of {len(spec.sizes)}"
            )
        for d, (size, wanted) in enumerate(zip(leaf.shape, spec.sizes, strict=True)):
            relation = self.call_spec.relations.get((i, d))
            if relation is None:
                if size != wanted:
                    raise ValueError(
                        f"exported program: got size {size} in dimension {d} of {name}, expected {wanted}; "
                        "export with dynamic_shapes to let it vary"
                    )
                continue
            value = relation.solve(size)
            allowed = self.range_constraints[relation.name]
            if value is None or value not in allowed:
                raise ValueError(
                    f"exported program: got size {size} in dimension {d} of {name}, expected {relation} with {relation.name} in {allowed}"
                )
            known, first = values.setdefault(relation.name, (value, f"dimension {d} of {name}"))
            if known != value:
                raise ValueError(
                    f"exported program: got size {size} in dimension {d} of {name}, where {relation.name} is {value}, but it is "
                    f"{known} by {first}; expected equal sizes"
                )

    def run_decompositions(self, decomp_table: Mapping[str, Any] | None = None) -> ExportedProgram:
        """The program with operators replaced by more basic ones.

        Args:
            decomp_table: decompositions by overload name; by default all that are registered (`argand_aot.decompose`).
        """
        rewritten = decompose(
            self.graph_module, decompositions() if decomp_table is None else decomp_table
        )
        if rewritten is self.graph_module:
            return self
        (last,) = [n for n in rewritten.graph.nodes if n.op == "output"]
        results = iter(last.args[0])
        outputs = tuple(
            s if s.arg is None else OutputSpec(s.kind, _name_of(next(results)), s.target)
            for s in self.graph_signature.output_specs
        )
        signature = ExportGraphSignature(self.graph_signature.input_specs, outputs)
        return ExportedProgram(
            rewritten, signature, self.state_dict, self.constants, self.call_spec,
            self.range_constraints, self.symbols, self.example_inputs,
        )  # fmt: skip

    def __str__(self) -> str:
        ranges = "".join(f"\n  {n}: {r}" for n, r in self.range_constraints.items())
        inputs = "".join(
            f"\n  {s.arg or repr(s.value)}: {s.kind.value}{f' {s.target}' if s.target else ''}"
            for s in self.graph_signature.input_specs
        )
        outputs = "".join(
            f"\n  {s.arg or repr(s.value)}: {s.kind.value}{f' {s.target}' if s.target else ''}"
            for s in self.graph_signature.output_specs
        )
        return f"ExportedProgram:\n{self.graph.to_text()}Inputs:{inputs}\nResults:{outputs}\nRange constraints:{ranges or ' none'}\n"


def _name_of(result: Any) -> str:
    """Of a node; of a size its text."""
    return str(getattr(result, "name", result))


class ProgramModule(Module):
    """Runs an exported program with the parameters and buffers that hang on it under their names."""

    def __init__(self, program: ExportedProgram) -> None:
        super().__init__()
        self.__dict__["_program"] = program
        program.graph_module.recompile()  # what compiles this module meets finished code
        parameters = set(program.graph_signature.parameters)
        passing = program.graph_signature.non_persistent_buffers
        for name, value in program.state_dict.items():
            owner: Module = self
            *path, last = name.split(".")
            for part in path:
                if part not in owner._modules:
                    owner.add_module(part, Module())
                inner = owner._modules[part]
                assert inner is not None
                owner = inner
            if name in parameters:
                owner.register_parameter(
                    last, value if isinstance(value, Parameter) else Parameter(value)
                )
            else:
                owner.register_buffer(last, value, persistent=name not in passing)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        state = {**dict(self.named_parameters()), **dict(self.named_buffers())}
        program: ExportedProgram = self.__dict__["_program"]
        return program.run(state, args, kwargs)

    def train(self, mode: bool = True) -> NoReturn:
        """Not possible: what differs between training and evaluation was decided when the program was exported."""
        raise RuntimeError(
            "exported program: train() and eval() cannot change a program; export the module in the mode that you want"
        )
