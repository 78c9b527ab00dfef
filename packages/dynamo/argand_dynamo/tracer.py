"""`Tracer`: the state of tracing one frame. What Python does is in its mixins; here are the graph, its inputs, guards and calls."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

import argand_c10
from argand_autograd import is_grad_enabled
from argand_autograd.graph_ops import set_grad_mode
from argand_c10 import Module, Tensor
from argand_c10.errors import DataDependentError, UnsupportedError
from argand_dynamo import (  # noqa: F401  (they register handlers)
    control_flow,
    custom_function,
    library,
    opcodes,
    opcodes_control,
    signatures,
    stand_ins,
    transforms,
)
from argand_dynamo._C import CompiledFunction
from argand_dynamo.autocast import Autocast
from argand_dynamo.builtins import call_builtin, function_handler
from argand_dynamo.configuration import config
from argand_dynamo.construction import construct
from argand_dynamo.control_graphs import OwnGraph
from argand_dynamo.exceptions import BreakTrace, Raised, break_trace
from argand_dynamo.interpreter import RootFrame, SymbolicFrame
from argand_dynamo.lookups import Lookups
from argand_dynamo.operations import Operations
from argand_dynamo.result_types import learn_result_type
from argand_dynamo.trust import PLAIN, is_library_file
from argand_dynamo.variables.base import LazyVariable, Source, Variable, unknown
from argand_dynamo.variables.caches import Sealed
from argand_dynamo.variables.classes import BuiltinVariable, ClassVariable
from argand_dynamo.variables.constant import Constant
from argand_dynamo.variables.dict_objects import DictObjectVariable, has_entries
from argand_dynamo.variables.functions import (
    CellVariable,
    FunctionVariable,
    GeneratorVariable,
    bind_arguments,
)
from argand_dynamo.variables.modules import ModuleVariable
from argand_dynamo.variables.numpy_objects import NumpyVariable
from argand_dynamo.variables.objects import ExceptionVariable, ObjectVariable
from argand_dynamo.variables.sequences import ListVariable
from argand_dynamo.variables.tensor import TensorVariable
from argand_dynamo.wrap import Wrapping
from argand_fx import Graph, Node, has_side_effect
from argand_fx.shapes import FakeStorage, FakeTensor, GraphBuilder

__all__ = ["GraphInput", "Tracer"]

has_side_effect(set_grad_mode)


class GraphInput:
    """An input of the graph: a tensor or an integer of the frame, by its path."""

    __slots__ = ("node", "source", "value", "variable")

    def __init__(self, source: Source, value: Any, node: Any, variable: Any) -> None:
        self.source = source
        self.value = value
        self.node = node
        self.variable = variable


class Tracer(Operations, Lookups, Wrapping):
    """State of one run over a frame.

    Args:
        function: the function whose frame it is.
        dynamic: decides which sizes and integers are symbolic (see dynamic.py).
        stop_at: the step of the outermost frame before which the run stops, or None.
    """

    def __init__(
        self, function: types.FunctionType, dynamic: Any, stop_at: int | None = None
    ) -> None:
        self.tx = self
        self.function = function
        self.root_globals = function.__globals__
        self.dynamic = dynamic
        self.stop_at = stop_at
        self.exporting = False
        # How many transforms of `argand_autograd.func` are being traced.
        self.transforms = 0
        # The run only finds out what a function in a cache does (see variables/caches.py).
        self.probing = False
        # Whether a call of the frame may be left to Python, so that the next one finds caches filled.
        self.may_wait = False
        # Whether a frame that is not one graph is an error.
        self.whole = False
        self.cached_calls: dict[tuple[Source, Any], Variable] = {}
        # Those of caches that forget, in the order of their last calls.
        self.cache_order: dict[tuple[Source, Any], None] = {}
        # While a function in a cache is traced: the variables from outside of functions that it has read, with their paths.
        self.looked_up: list[tuple[Variable, Source]] | None = None
        self.graph = Graph()
        self.builder = GraphBuilder(self.graph, dynamic.shape_env)
        # The graph's own builder; `builder` is another one while a custom function is traced.
        self.main_builder = self.builder
        self.builder.grad_enabled = is_grad_enabled()
        self.entry_grad_mode = self.builder.grad_enabled
        self.autocast = self.builder.autocast = Autocast()
        self.inputs: list[GraphInput] = []
        # (source, kind, value), each once, in the order in which they were needed.
        self.guards: dict[tuple[Any, ...], tuple[Source, str, Any]] = {}
        self.class_guards: list[tuple[type, tuple[Any, ...]]] = []
        self.class_reads: dict[tuple[type, str], tuple[Any]] = {}
        self.class_sources: dict[type, Source] = {}
        self.distinct_pairs: list[tuple[Source, Source]] = []
        self.known: dict[int, Variable] = {}
        self.constants: dict[Any, Variable] = {}
        self.functions: dict[int, FunctionVariable] = {}
        self.cells: dict[int, CellVariable] = {}
        self.lasting_values: dict[int, Variable] = {}
        self.global_values: dict[tuple[int, str], Variable] = {}
        self.global_stores: dict[tuple[int, str], tuple[Any, Variable]] = {}
        self.tensors: dict[FakeTensor, TensorVariable] = {}
        self.changed: dict[int, Variable] = {}
        self.proxied: list[Any] = []  # mappings that a mappingproxy from outside shows
        self.changes = 0
        self.births: dict[int, int] = {}
        self.inlined: dict[types.CodeType, FunctionVariable] = {}
        self.keep: list[Any] = []
        self.frames: list[SymbolicFrame] = []
        self.live_lists: list[ListVariable] = []
        # While a branch of `cond` is traced: what the trace had made before, by id.
        self.unchangeable: dict[int, Variable] | None = None
        # What stands for an object that a cache keeps, by id: it must neither be changed nor leave the trace.
        self.sealed: dict[int, Sealed] = {}
        # Arrays beside tensors that copy them, which in eager execution share their memory, and the version of those then.
        self.lent: list[tuple[NumpyVariable, FakeStorage, int]] = []
        # Arrays from outside that were read, and the objects themselves.
        self.arrays: list[tuple[NumpyVariable, Any]] = []
        self.jumps = 0
        self.root: RootFrame = self._root_frame()

    def _root_frame(self) -> RootFrame:
        function, code = self.function, self.function.__code__
        closure = function.__closure__ or ()
        cells = tuple(
            self._root_cell(cell, name)
            for name, cell in zip(code.co_freevars, closure, strict=True)
        )
        variable = FunctionVariable(
            code, function.__globals__, (), function.__name__, function.__qualname__, None, None, cells,
            function,
        )  # fmt: skip
        self.functions[id(function)] = variable
        self.root_function = variable
        return RootFrame(self, variable, {}, self.stop_at)

    def _root_cell(self, cell: Any, name: str) -> CellVariable:
        made = self.new_cell(cell, (("cell", name),))
        made.own_name = name
        return made

    def trace(self, arguments: list[Any]) -> Variable:
        """Run the frame with these values in its argument slots; returns what it returns.

        Raises:
            BreakTrace: tracing cannot go on; `root.step` is one past the step at fault.
            StopTrace: the run has come to `stop_at`.
        """
        frame = self.root
        for i, (name, value) in enumerate(zip(frame.code.co_varnames, arguments, strict=False)):
            frame.locals[name] = LazyVariable(value, (("arg", i),))
        self.frames.append(frame)
        env = self.dynamic.shape_env
        nowhere, env.locate = env.locate, self.user_location
        try:
            return self.realize(frame.run())
        finally:
            env.locate = nowhere  # the symbols of a graph outlive its trace
            self.frames.clear()

    # Guards ----------------------------------------------------------------------------------

    def guard(self, source: Source, kind: str, value: Any) -> None:
        """The plan holds only while this does."""
        key = (
            source,
            kind,
            value if kind in ("NO_ATTR", "TYPE", "ALIAS", "HAS_INSTANCE_ATTR") else None,
        )
        if key not in self.guards:
            self.guards[key] = (source, kind, value)

    def guard_callee(self, seen: dict[Any, Any]) -> None:
        """A break is that of what was called: with other functions or objects in its place, the frame is traced anew.

        Args:
            seen: the guards of the run that broke.
        """
        for key, guard in seen.items():
            if guard[1] in ("TYPE", "CODE", "ID"):
                self.guards.setdefault(key, guard)

    def distinct(self, a: Variable, b: Variable) -> None:
        """Two objects of the frame are not the same."""
        if a.source is not None and b.source is not None:
            self.distinct_pairs.append((a.source, b.source))

    def symbol_of(self, value: int, source: Source) -> Any:
        """A symbol for an integer of the frame, None to take it as it is."""
        symbol = self.dynamic.symbol_of(value, source)
        if symbol is None:
            return None
        self._placeholder(source, symbol, None)
        return symbol

    # Tensors ---------------------------------------------------------------------------------

    def tensor_input(self, value: Tensor, source: Source) -> Variable:
        """The variable of a tensor of the frame; it becomes an input of the graph."""
        fake = self.main_builder.from_tensor(
            value, source=source, dynamic_dims=self.dynamic.dims_of(value, source)
        )
        made = TensorVariable(fake, source, type(value), value)
        self._placeholder(source, fake, made)
        if isinstance(self.builder, OwnGraph):
            fake.builder = self.builder
        self.tensors[fake] = made
        return made

    def _placeholder(self, source: Source, value: Any, variable: Any) -> None:
        location, self.main_builder.location = self.main_builder.location, None
        stack, self.main_builder.stack = self.main_builder.stack, None
        name = _input_name(source)
        after = self.inputs[-1].node if self.inputs else None
        first = None if after is not None else next(iter(self.graph.nodes), None)
        if after is not None:
            with self.graph.inserting_after(after):
                self.main_builder.placeholder(name, value)
            node = after.next
        elif first is not None:
            with self.graph.inserting_before(first):
                self.main_builder.placeholder(name, value)
            node = next(iter(self.graph.nodes))
        else:
            self.main_builder.placeholder(name, value)
            node = next(iter(self.graph.nodes))
        self.main_builder.location, self.main_builder.stack = location, stack
        self.inputs.append(GraphInput(source, value, node, variable))

    def tensor_result(self, fake: FakeTensor) -> Variable:
        """The variable of a result of an operator; the same tensor gives the same variable."""
        known = self.tensors.get(fake)
        if known is None:
            known = self.tensors[fake] = TensorVariable(fake)
        return known

    def tensor_constant(self, value: Tensor) -> Variable:
        """A tensor without a path from the frame: part of the graph."""
        unknown("a tensor that has no path from the frame's variables")

    def tensor_grad(self, tensor: TensorVariable) -> Variable:
        """tensor.grad of an input."""
        assert tensor.source is not None
        grad = tensor.real.grad
        if grad is None and tensor.fake.requires_grad and not tensor.real.is_leaf:
            raise break_trace("tensor_attribute", "Tensor.grad of a tensor that is no leaf")
        return self.wrap(grad, (*tensor.source, ("grad",)))

    def user_location(self) -> tuple[str, int, str] | None:
        """The line of the user's code that is being traced."""
        stack = tuple([frame.location for frame in self.frames])
        return _innermost_user_line(stack) if stack else None

    def operation(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call something that appends nodes; what operators refuse is a break."""
        builder = self.builder
        stack = builder.stack = tuple([frame.location for frame in self.frames])
        builder.location = _innermost_user_line(stack)
        try:
            return function(*args, **kwargs)
        except (BreakTrace, Raised):
            raise
        except DataDependentError as error:
            raise break_trace("data_dependent_shape", str(error), error) from None
        except UnsupportedError as error:
            raise break_trace("unknown_operation", str(error), error) from None
        except Exception as error:
            raise break_trace("operator_error", f"{type(error).__name__}: {error}", error) from None

    def operate(self, op: Any, *args: Any, **kwargs: Any) -> Any:
        """Call an operator, given itself or by name, on trace-time values."""
        if isinstance(op, str):
            op = argand_c10.find_operator(op)
        result = self.operation(self.builder.call, op, args, kwargs)
        if isinstance(result, tuple) and type(result) is not tuple:
            learn_result_type(type(result), op)
        return result

    def is_undisturbed(self) -> bool:
        """Whether Python code that runs now finds everything as the program has left it, and leaves its random numbers to it."""
        return (
            not self.changes
            and self.builder is self.main_builder
            and self.builder.grad_enabled == self.entry_grad_mode
            and self.autocast.state == self.autocast.entry
            and not any(_disturbs(node) for node in self.graph.nodes)
        )

    def set_grad_mode(self, enabled: bool) -> None:
        """From here on operators are recorded for gradients, or not."""
        if enabled != self.builder.grad_enabled:
            self.operation(self.builder.create, set_grad_mode, (enabled,), {}, None)
            self.builder.grad_enabled = enabled

    # Changes ---------------------------------------------------------------------------------

    def mutated(self, variable: Variable) -> None:
        """The trace has changed the object; if it existed before, the change is made again at the end."""
        if id(variable) in self.sealed:
            unknown(f"a change of {variable.describe()}, which a cache keeps")
        before = variable.source is not None or self.entered_before(variable)
        if self.unchangeable is not None and (before or id(variable) in self.unchangeable):
            raise break_trace("branches", f"a branch changes {variable.describe()}")
        if before:
            if any(self.is_state(variable, mapping) for mapping in self.proxied):
                unknown(f"a change of {variable.describe()}, which a mappingproxy shows")
            self.changed[id(variable)] = variable
            self.changes += 1

    def entered_before(self, variable: Variable) -> bool:
        """Whether an object without a path exists outside of the trace all the same."""
        real = getattr(variable, "value", None)
        return (
            variable.source is None and id(real) in self.known and self.known[id(real)] is variable
        )

    def lists_of(self, items: list[Variable]) -> list[Variable]:
        """The lists that hold exactly this storage."""
        found = [v for v in self.known.values() if isinstance(v, ListVariable) and v.items is items]
        return [*found, *(v for v in self.live_lists if v.items is items)]

    def new_object(self, cls: type) -> Variable:
        """An object that the traced program makes."""
        if has_entries(cls):
            return DictObjectVariable(cls)
        return (ModuleVariable if issubclass(cls, Module) else ObjectVariable)(cls)

    def born(self, variable: Variable) -> None:
        """Remember the step that made an object which may not be possible to make again."""
        self.births[id(variable)] = self.root.step - 1
        self.keep.append(variable)

    # Calls -----------------------------------------------------------------------------------

    def count_jump(self) -> None:
        """A backward jump; too many of them are a break."""
        self.jumps += 1
        if self.jumps > config.max_loop_steps:
            raise break_trace("too_long", f"{self.jumps} steps of loops")

    def enter_function(
        self, function: FunctionVariable, args: list[Variable], kwargs: dict[str, Variable]
    ) -> SymbolicFrame:
        """The frame of a call."""
        if PLAIN in function.globals:
            raise break_trace("disabled", function.qualname)
        local = bind_arguments(self, function, args, kwargs)
        if function.value is not None and function.code not in self.inlined:
            self.inlined[function.code] = function
        return SymbolicFrame(self, function, local)

    def run_inlined(self, frame: SymbolicFrame) -> Variable:
        """Run the frame of a call to its end."""
        frames = self.frames
        if len(frames) > config.max_call_depth:
            raise break_trace("too_deep", f"{len(frames)} calls")
        frames.append(frame)
        try:
            return self.realize(frame.run())
        finally:
            frames.pop()

    def resume_generator(
        self, frame: SymbolicFrame, value: Variable, started: bool
    ) -> tuple[Variable, bool]:
        """Run a generator's frame to its next yield or its return."""
        if started:
            frame.push(value)
        self.frames.append(frame)
        try:
            found = self.realize(frame.run())
        finally:
            self.frames.pop()
        return found, frame.yielded

    def close_generator(self, generator: GeneratorVariable) -> None:
        """generator.close(): GeneratorExit is raised where it stands, which it must not survive."""
        frame, waits = generator.frame, generator.started and not generator.finished
        inner = generator.delegate()
        generator.finished = True
        if not waits:
            return
        if inner is not None:
            self.close_generator(inner)
        leaving = ExceptionVariable(GeneratorExit, [])
        self.frames.append(frame)
        try:
            frame.unwind(frame.current, Raised(leaving))
            frame.run()
        except Raised as raised:
            if raised.variable is not leaving:
                raise
            return
        finally:
            self.frames.pop()
        if frame.yielded:
            self.raise_(RuntimeError, "generator ignored GeneratorExit")

    def throw_into(self, generator: GeneratorVariable, args: list[Variable]) -> Variable:
        """generator.throw(*args): an exception is raised where it stands; what it yields next."""
        thrown = args[0]
        if isinstance(thrown, ClassVariable):
            thrown = thrown.call(self, args[1:2], {})
        if not isinstance(thrown, ExceptionVariable) or len(args) > 2:
            raise break_trace("generator", "generator.throw() of more than an exception")
        frame, waits = generator.frame, generator.started and not generator.finished
        if generator.delegates():
            raise break_trace("generator", "generator.throw() inside of yield from")
        generator.finished = True
        if not waits:
            raise Raised(thrown)
        self.frames.append(frame)
        try:
            frame.unwind(frame.current, Raised(thrown))
            found = self.realize(frame.run())
        finally:
            self.frames.pop()
        if not frame.yielded:
            generator.value = found
            self.raise_variable(StopIteration, [found])
        generator.finished = False
        return found

    def drop_generator(self, generator: GeneratorVariable) -> None:
        """A frame's stack lets go of a generator, as a loop does that is left: Python closes it there if nothing else holds it."""
        if not generator.awaits_cleanup():
            return
        probe = object()
        kept = sum(x is generator for x in self.keep)
        if sys.getrefcount(generator) != sys.getrefcount(probe) + kept:
            return
        try:
            self.close_generator(generator)
        except Raised as raised:
            raise break_trace("generator", "a generator that raises when it is closed") from raised

    def call_builtin(
        self, function: BuiltinVariable, args: list[Variable], kwargs: dict[str, Variable]
    ) -> Variable:
        """A call of something that is not written in Python."""
        return call_builtin(self, function, args, kwargs)

    def construct(
        self, cls: ClassVariable, args: list[Variable], kwargs: dict[str, Variable]
    ) -> Variable:
        """cls(*args, **kwargs)"""
        return construct(self, cls, args, kwargs)

    def function_handler(self, function: Any) -> Any:
        """What stands in for a Python function that is not to be inlined, or None."""
        return function_handler(function)

    def compiled_function(self, value: Any) -> types.FunctionType | None:
        """The function inside of a compiled one, None for other objects."""
        if not isinstance(value, CompiledFunction):
            return None
        wrapped: Any = value.__wrapped__
        found: types.FunctionType = wrapped
        return found

    def special_method(
        self, owner: Variable, name: str, args: list[Variable], kwargs: dict[str, Variable]
    ) -> Variable | None:
        """object.__name__(...) of a built-in type, None if the name is no special method."""
        if kwargs or not name.startswith("__"):
            return None
        if name == "__getitem__":
            return owner.getitem(self, args[0])
        if name == "__setitem__":
            owner.setitem(self, args[0], args[1])
            return Constant(None)
        if name == "__delitem__":
            owner.delitem(self, args[0])
            return Constant(None)
        if name == "__len__":
            return owner.length(self)
        if name == "__iter__":
            return owner.iterate(self)
        if name == "__contains__":
            return owner.contains(self, args[0])
        if name in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"):
            return owner.compare(self, name[2:-2], args[0]) or Constant(NotImplemented)
        if name in ("__add__", "__mul__", "__or__", "__and__", "__sub__", "__xor__", "__iadd__"):
            return owner.binary(self, name[2:-2], args[0]) or Constant(NotImplemented)
        return None

    def getitem(self, owner: Variable, key: Variable) -> Variable:
        """owner[key]"""
        return self.realize(owner).getitem(self, self.realize(key))


def _input_name(source: Source) -> str:
    """A readable name for a placeholder."""
    parts = []
    for step in source:
        if step[0] == "arg":
            parts.append(f"arg{step[1]}")
        elif len(step) > 1 and step[0] not in ("func", "self", "call", "held"):
            parts.append(str(step[1]))
        else:
            parts.append(step[0])
    text = "_".join(part for part in parts if part not in ("_parameters", "_buffers", "_modules"))
    name = "".join(c if c.isalnum() or c == "_" else "_" for c in text)
    return f"input_{name}" if not name or name[0].isdigit() else name


def _disturbs(node: Node) -> bool:
    """Whether eager execution would have written a tensor, or drawn random numbers, there."""
    return node.op == "call_function" and node.is_impure() and node.target is not set_grad_mode


def _innermost_user_line(stack: tuple[tuple[str, int, str], ...]) -> tuple[str, int, str]:
    return next((line for line in reversed(stack) if not is_library_file(line[0])), stack[-1])
