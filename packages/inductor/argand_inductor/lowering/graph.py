"""Lowers a graph: every call becomes a loop, a view, or a call of the operator."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field, replace
from typing import Any

from argand_c10 import Operator
from argand_c10.lowerings import PointwiseLowering, ReductionLowering
from argand_c10.rules import rules_of
from argand_fx.config import config
from argand_fx.schema import schema_of
from argand_inductor import sizes as sz
from argand_inductor.codegen.backend import Backend, backend_class
from argand_inductor.loop_ir import Check, Loop, Value, check
from argand_inductor.lowering import (  # noqa: F401  (register their lowerings)
    creation,
    matrix,
    random,
    rows,
)
from argand_inductor.lowering.arguments import bind
from argand_inductor.lowering.composite import lower_composite
from argand_inductor.lowering.pointwise import lower_pointwise
from argand_inductor.lowering.reduction import lower_reduction
from argand_inductor.lowering.tensors import (
    Buffer,
    TensorRef,
    contiguous,
    device_name,
    dtype_name,
    geometry,
    is_tensor,
    padded_row,
)
from argand_inductor.program import Location, Named, SymbolSpec, TensorSpec
from argand_inductor.sizes import Size


class LoweringError(RuntimeError):
    """A graph that breaks the rules of compiler graphs."""


@dataclass(slots=True)
class ExternCall:
    """A call of a registered operator. Arguments are in the schema's order: TensorRef, Size, Named, constants, tuples of those.

    outputs: per result a buffer's name, None, or a tuple of such. writes: buffers that the call changes. ordered: it draws random
    numbers or is called for what it does besides results, so that its place among such calls counts.
    """

    operator: str
    args: tuple[Any, ...]
    outputs: tuple[Any, ...]
    writes: tuple[str, ...]
    location: Location | None = None
    ordered: bool = False

    def reads(self) -> list[str]:
        return [r.buffer for r in _refs(self.args)]


@dataclass(slots=True)
class Reservation:
    """`count` counters of a device's default generator: the program's integers `seed`, `counter` and `state` (`RandomStep`)."""

    seed: str
    counter: str
    state: str
    count: Size
    device: str = "cpu"
    location: Location | None = None


@dataclass(slots=True)
class LoweredGraph:
    """What a graph computes: `items` in program order over `buffers`; `outputs` are TensorRefs, Sizes or constants; `checks`: an
    operator that reports bad indices once a device."""

    inputs: list[TensorSpec | SymbolSpec]
    buffers: dict[str, Buffer]
    constants: dict[str, Any]
    items: list[Loop | ExternCall | Reservation]
    outputs: list[Any]
    hints: dict[str, int] = field(default_factory=dict)
    checks: list[tuple[str, Check]] = field(default_factory=list)

    def __str__(self) -> str:
        lines = []
        for item in self.items:
            if isinstance(item, Loop):
                lines.append(str(item))
            elif isinstance(item, Reservation):
                lines.append(f"{item.seed}, {item.counter}: reserve {sz.text(item.count)} counters")
            else:
                lines.append(
                    f"{item.outputs}: call {item.operator}({', '.join(str(a) for a in item.args)})"
                )
        return "\n".join([*lines, "return " + ", ".join(str(o) for o in self.outputs)])


def _refs(value: Any) -> list[TensorRef]:
    if isinstance(value, TensorRef):
        return [value]
    if isinstance(value, tuple):
        return [r for v in value for r in _refs(v)]
    return []


class Lowering:
    """The lowering of one graph in the making."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.graph = LoweredGraph([], {}, {}, [], [])
        self.values: dict[Any, Any] = {}
        self.constant_values: dict[str, Value] = {}  # buffers all of whose elements are one number
        self.ranges: dict[str, tuple[Size, Size]] = {}  # buffers of arange: its start and step
        self.padded: dict[Any, TensorRef] = {}  # copies of matrices with zeros behind them
        self.names: set[str] = set()
        self.location: Location | None = None
        self.device = "cpu"

    # ---- names and buffers

    def name(self, wished: str) -> str:
        name, n = wished, 1
        while name in self.names:
            name = f"{wished}_{n}"
            n += 1
        self.names.add(name)
        return name

    def new_buffer(
        self,
        dtype: str,
        sizes: tuple[Size, ...],
        strides: tuple[Size, ...],
        wished: str = "b",
        device: str = "",
    ) -> Buffer:
        name = self.name(f"{wished}{len(self.graph.buffers)}")
        buffer = Buffer(name, dtype, sizes, strides, device or self.device)
        self.graph.buffers[buffer.name] = buffer
        return buffer

    def new_result(self, dtype: str, sizes: tuple[Size, ...], strides: tuple[Size, ...]) -> Buffer:
        """A buffer for a tensor of this geometry, with the gaps behind its rows where it has such."""
        row = padded_row(sizes, strides)
        if row is None:
            return self.new_buffer(dtype, sizes, strides)
        return self.with_gaps(self.new_buffer(dtype, (*sizes[:-1], row), strides), sizes[-1])

    def with_gaps(self, buffer: Buffer, columns: Size) -> Buffer:
        """Note that rows have so many elements, and zeros behind them."""
        noted = replace(buffer, columns=int(str(columns)))
        self.graph.buffers[buffer.name] = noted
        return noted

    def scratch(self, dtype: str, sizes: tuple[Size, ...]) -> Buffer:
        made = contiguous("", dtype, sizes)
        return self.new_buffer(dtype, made.sizes, made.strides, "t")

    def reserve(self, count: Size) -> tuple[str, str, str]:
        """Names of the generator's seed, of the first of `count` counters, taken here in program order, and of its state in replays."""
        names = self.name("seed"), self.name("counter"), self.name("state")
        self.graph.items.append(Reservation(*names, count, self.device, self.location))
        return names

    def check(self, operator: str, dim: int, size: int) -> Check:
        """What bad indices of a dimension are reported with."""
        for device, known in self.graph.checks:
            if device == self.device and known.operator == operator:
                return replace(known, dim=dim, size=size)
        made = Check(operator, dim, size, self.name("record"), self.name("op_name"))
        self.graph.checks.append((self.device, made))
        return made

    def call_operator(
        self, name: str, args: tuple[Any, ...], dtype: str, sizes: tuple[Size, ...]
    ) -> TensorRef:
        """Add a call of an operator with one row-major result of its own; the result."""
        made = contiguous("", dtype, sizes)
        result = self.new_buffer(dtype, made.sizes, made.strides).whole()
        self.graph.items.append(ExternCall(name, args, (result.buffer,), (), self.location))
        return result

    def emit(self, loop: Loop, operator_name: str) -> TensorRef:
        """Add a loop; its result."""
        loop.operators = loop.operators or (operator_name,)
        loop.location = self.location
        loop.device = self.graph.buffers[loop.name].device
        self.graph.items.append(loop)
        whole = self.graph.buffers[loop.name].whole()
        if padded_row(loop.sizes, loop.write.strides) is None:
            return whole
        return TensorRef(whole.buffer, whole.dtype, loop.sizes, loop.write.strides)

    def target(self) -> type[Backend]:
        """The code generator of the device for which loops are made."""
        found = backend_class(self.device)
        assert found is not None, "loops are made for devices with a generator"
        return found

    # ---- nodes

    def placeholder(self, node: Any) -> None:
        fake = node.meta["val"]
        if not is_tensor(fake):
            size = sz.of(fake)
            if isinstance(size, int):
                raise LoweringError(
                    f"inductor: got the constant {fake!r} as placeholder {node.name}, expected a tensor or a symbol"
                )
            symbol = str(sz.text(size))
            self.graph.inputs.append(SymbolSpec(symbol))
            self.graph.hints[symbol] = int(getattr(fake, "hint", 2) or 2)
            self.values[node] = size
            return
        sizes, strides, _ = geometry(fake)
        for symbolic, size in zip((*fake.shape, *fake.stride()), (*sizes, *strides), strict=True):
            if isinstance(size, sz.Poly) and (name := sz.symbol(size)) is not None:
                self.graph.hints.setdefault(name, int(getattr(symbolic, "hint", 2) or 2))
        name = self.name(node.name)
        device = device_name(fake.device)
        columns = int(str(sizes[-1])) if node.meta.get("zero_gaps") else 0
        buffer = Buffer(name, dtype_name(fake.dtype), sizes, strides, device, columns)
        self.graph.buffers[name] = buffer
        texts = tuple(sz.text(s) for s in sizes), tuple(sz.text(s) for s in strides)
        self.graph.inputs.append(TensorSpec(name, buffer.dtype, *texts, device=device))
        self.values[node] = buffer.whole()

    def get_attr(self, node: Any) -> None:
        value = self.module
        for part in node.target.split("."):
            value = getattr(value, part)
        if not is_tensor(value):
            self.values[node] = value
            return
        name = self.name("c_" + node.name)
        buffer = Buffer(
            name,
            dtype_name(value.dtype),
            tuple(value.shape),
            tuple(value.stride()),
            device_name(value.device),
        )
        self.graph.buffers[name] = buffer
        self.graph.constants[name] = value
        self.values[node] = buffer.whole()

    def value_of(self, argument: Any) -> Any:
        """An argument with nodes replaced by what they became."""
        if isinstance(argument, (list, tuple)):
            return tuple(self.value_of(a) for a in argument)
        if type(argument).__name__ == "Node":
            return self.values[argument]
        return argument

    @staticmethod
    def fake_of(argument: Any) -> Any:
        if isinstance(argument, (list, tuple)):
            return tuple(Lowering.fake_of(a) for a in argument)
        if type(argument).__name__ == "Node":
            return argument.meta.get("val")
        return argument

    def call(self, node: Any) -> None:
        if node.target is operator.getitem:
            self.values[node] = self.value_of(node.args[0])[node.args[1]]
            return
        if not isinstance(node.target, Operator):
            raise LoweringError(
                f"inductor: got a call of {node.target!r}, expected an operator; inline functions beforehand"
            )
        self.location = node.meta.get("location")
        op = node.target
        bound = bind(op, tuple(node.args), dict(node.kwargs))
        fakes = {name: self.fake_of(value) for name, value in bound.items()}
        values = {name: self.value_of(value) for name, value in bound.items()}
        result = node.meta["val"]
        lowered = None
        if not schema_of(op).written:
            lowered = self.view_of(result, values, fakes)
            if lowered is None and op.is_view:
                lowered = self.view_by_rule(op, values, fakes)
            if lowered is None:
                lowered = self.loops(op, values, fakes, result)
        if lowered is None:
            lowered = self.extern(op, values, fakes, result)
        self.values[node] = lowered

    def view_of(self, result: Any, values: dict[str, Any], fakes: dict[str, Any]) -> Any:
        """A result that shares an argument's storage (each entry of a list of such), unless the operator changes it."""
        if isinstance(result, (list, tuple)) and result and all(is_tensor(r) for r in result):
            views = [self.view_of(r, values, fakes) for r in result]
            return tuple(views) if all(v is not None for v in views) else None
        if not is_tensor(result):
            return None
        for name, fake in fakes.items():
            ref = values[name]
            if (
                not is_tensor(fake)
                or not isinstance(ref, TensorRef)
                or fake.storage is not result.storage
            ):
                continue
            if fake.dtype is not result.dtype and dtype_name(fake.dtype) != dtype_name(
                result.dtype
            ):
                return None
            sizes, strides, offset = geometry(result)
            return TensorRef(
                ref.buffer, ref.dtype, sizes, strides, offset - geometry(fake)[2] + ref.offset
            )
        return None

    def view_by_rule(self, op: Operator, values: dict[str, Any], fakes: dict[str, Any]) -> Any:
        """A view whose fake has lost its storage: its geometry from the operator's shape function."""
        rules = rules_of(op)
        source = next((n for n, f in fakes.items() if is_tensor(f)), None)
        if rules is None or rules.shape is None or source is None:
            return None
        arguments = schema_of(op).arguments
        positional = [fakes[a.name] for a in arguments if not a.kwonly]
        found = rules.shape(*positional, **{a.name: fakes[a.name] for a in arguments if a.kwonly})
        several = isinstance(found, list)
        if several and not found:  # the sizes of a 0-d result, whose layout the rule does not say
            return None
        ref, start = values[source], geometry(fakes[source])[2]
        views = []
        for g in found if several else [found]:
            if not hasattr(g, "strides"):
                return None
            sizes, strides = tuple(sz.of(s) for s in g.sizes), tuple(sz.of(s) for s in g.strides)
            views.append(
                TensorRef(
                    ref.buffer, ref.dtype, sizes, strides, sz.of(g.offset) - start + ref.offset
                )
            )
        return tuple(views) if several else views[0]

    def loops(
        self, op: Operator, values: dict[str, Any], fakes: dict[str, Any], result: Any
    ) -> Any:
        """The operator as loops, or None."""
        if not self.enter_device(values, fakes, result):
            return None
        composite = lower_composite(self, op, values, fakes, result)
        if composite is not None:
            return composite
        rules = rules_of(op)
        rule = rules.lowering if rules is not None else None
        loop: Loop | None = None
        if isinstance(rule, PointwiseLowering):
            loop = lower_pointwise(self, rule, values, fakes, result)
        elif isinstance(rule, ReductionLowering):
            loop = lower_reduction(self, op.name, rule, values, result)
        return None if loop is None else self.emit(loop, op.name)

    def enter_device(self, values: dict[str, Any], fakes: dict[str, Any], result: Any) -> bool:
        """Go on for the results' device; False where that has no generator, or an operand is elsewhere and is no number."""
        results = result if isinstance(result, (list, tuple)) else (result,)
        devices = {device_name(r.device) for r in results if is_tensor(r)}
        if len(devices) != 1:
            return False
        (self.device,) = devices
        if backend_class(self.device) is None:
            return False
        return all(
            self.device == device_name(fake.device)
            or (device_name(fake.device) == "cpu" and self.is_number(values[name], fake))
            for name, fake in fakes.items()
            if is_tensor(fake)
        )

    def is_number(self, ref: Any, fake: Any) -> bool:
        """Whether a tensor on the host has one element, which a kernel of another device can be given."""
        return isinstance(ref, TensorRef) and not fake.shape and not ref.dtype.startswith("complex")

    # ---- operator calls

    def extern(
        self, op: Operator, values: dict[str, Any], fakes: dict[str, Any], result: Any
    ) -> Any:
        """A call of the operator itself."""
        schema = schema_of(op)
        args = tuple(extern_argument(a.type, values[a.name]) for a in schema.arguments)
        changed = [
            values[a.name] for a in schema.arguments if a.written and values[a.name] is not None
        ]
        writes = tuple(dict.fromkeys(r.buffer for r in _refs(tuple(changed))))
        refs, names = self.results_of_call(result, values, fakes, bool(writes))
        outputs = () if schema.results == 0 else names if schema.results > 1 else (names,)
        self.graph.items.append(
            ExternCall(op.name, args, outputs, writes, self.location, op.is_random or not outputs)
        )
        return refs

    def results_of_call(
        self, fake: Any, values: dict[str, Any], fakes: dict[str, Any], changes: bool
    ) -> tuple[Any, Any]:
        """What a result becomes, and the name of its buffer if it is a new one; of lists of results, tuples of those."""
        if isinstance(fake, (list, tuple)):
            pairs = [self.results_of_call(f, values, fakes, changes) for f in fake]
            return tuple([ref for ref, _ in pairs]), tuple([name for _, name in pairs])
        if not is_tensor(fake):
            return None, None
        ref = self.aliased_result(fake, values, fakes, changes)
        if ref is not None:
            return ref, None
        sizes, strides, _ = geometry(fake)
        device = device_name(fake.device)
        ref = self.new_buffer(dtype_name(fake.dtype), sizes, strides, device=device).whole()
        return ref, ref.buffer

    def aliased_result(
        self, fake: Any, values: dict[str, Any], fakes: dict[str, Any], changes: bool
    ) -> TensorRef | None:
        """A changed argument that the operator returns."""
        if not changes:
            return None
        view = self.view_of(fake, values, fakes)
        return view if isinstance(view, TensorRef) else None

    def output(self, node: Any) -> None:
        outputs = node.args[0]
        if not isinstance(outputs, (list, tuple)):
            outputs = (outputs,)
        for value in self.value_of(outputs):
            if (
                isinstance(value, TensorRef)
                or value is None
                or isinstance(value, (bool, int, float, sz.Poly))
            ):
                self.graph.outputs.append(value)
            else:
                self.graph.outputs.append(sz.of(value))


def extern_argument(kind: str, value: Any) -> Any:
    """An argument as programs hold it: dtypes and devices by name, symbolic integers as Sizes."""
    if isinstance(value, (TensorRef, sz.Poly, str, bool, int, float, complex)) or value is None:
        return value
    if isinstance(value, tuple):
        return tuple(extern_argument(kind, v) for v in value)
    if kind == "dtype":
        return Named("dtype", dtype_name(value))
    if kind == "Device":
        return Named("device", str(value))
    if kind == "Generator":
        raise LoweringError(
            "inductor: got a generator object as an argument of a graph, expected the default generator"
        )
    return sz.of(value)


def lower_graph(module: Any) -> LoweredGraph:
    """Loops and calls for every node of a functional graph whose placeholders are tensors and symbols.

    Raises:
        LoweringError: for nodes that compiler graphs do not have.
    """
    lowering = Lowering(module)
    for node in module.graph.nodes:
        if node.op == "placeholder":
            lowering.placeholder(node)
        elif node.op == "get_attr":
            lowering.get_attr(node)
        elif node.op == "call_function":
            lowering.call(node)
        elif node.op == "output":
            lowering.output(node)
        else:
            raise LoweringError(
                f"inductor: got the node {node.op} {node.target}, expected a graph of functions"
            )
    if config.check_passes:
        for item in lowering.graph.items:
            if isinstance(item, Loop):
                check(item)
    return lowering.graph
