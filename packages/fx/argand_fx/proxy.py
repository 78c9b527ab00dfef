"""`Proxy`: stands for a value while Python code is recorded into a graph."""

from __future__ import annotations

import dis
import inspect
import operator
import sys
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import TYPE_CHECKING, Any, NoReturn

from argand_c10 import Operator, device, dtype, layout, memory_format
from argand_fx.node import Node
from argand_fx.symbolic import SymbolicValue

if TYPE_CHECKING:
    from argand_fx.graph import Graph

__all__ = [
    "Attribute",
    "GraphAppendingTracer",
    "ParameterProxy",
    "Proxy",
    "TraceError",
    "TracerBase",
]

_CONSTANTS = (
    Node, int, float, complex, str, bytes, bool, type(None), type(...), dtype, device, layout, memory_format, SymbolicValue,
)  # fmt: skip
_HERE = __name__.partition(".")[0]

_BINARY = "add sub mul floordiv truediv mod pow matmul lshift rshift and or xor".split()
_COMPARISONS = "eq ne lt gt le ge".split()
_UNARY = "neg pos invert".split()
_REMEDY = (
    "symbolic_trace records one path through the program: make the value a constant with concrete_args, "
    "or put the code into a module or a function that stays a single call (a leaf module, argand_fx.wrap)"
)


class TraceError(ValueError):
    """The traced program needs a value that is not known while tracing."""


class Proxy:
    """Records what is done with it as nodes.

    Operators, Python's arithmetic, attributes, methods and indexing give further proxies. What needs the value itself,
    such as `if proxy:`, raises `TraceError`.
    """

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.node = node
        # Without a tracer what is done with it is added to the graph of its node.
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, name: str) -> Attribute:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)  # protocols that a recorded value does not take part in
        return Attribute(self, name)

    def __getitem__(self, key: Any) -> Any:
        return self.tracer.create_proxy("call_function", operator.getitem, (self, key), {})

    def __setitem__(self, key: Any, value: Any) -> None:
        self.tracer.create_proxy("call_function", operator.setitem, (self, key, value), {})

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Proxy]:
        count = _unpacked_count(sys._getframe(1))
        if count is None:
            return self.tracer.iter(self)
        return iter([self[i] for i in range(count)])

    def __abs__(self) -> Any:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def __len__(self) -> NoReturn:
        raise TraceError(f"len: got {self.node.name}, a traced value of unknown length. {_REMEDY}")

    def __index__(self) -> NoReturn:
        raise TraceError(
            f"int: got {self.node.name}, a traced value that is not known yet. {_REMEDY}"
        )

    __int__ = __index__

    def __float__(self) -> NoReturn:
        raise TraceError(
            f"float: got {self.node.name}, a traced value that is not known yet. {_REMEDY}"
        )

    def __contains__(self, item: object) -> NoReturn:
        raise TraceError(f"in: got {self.node.name}, a traced value. {_REMEDY}")

    def keys(self) -> Any:
        """What `**proxy` asks for; a leaf."""
        return self.tracer.keys(self)

    def __eq__(self, other: object) -> Any:
        return self.tracer.create_proxy("call_function", operator.eq, (self, other), {})

    def __ne__(self, other: object) -> Any:
        return self.tracer.create_proxy("call_function", operator.ne, (self, other), {})

    __hash__ = object.__hash__

    @classmethod
    def __argand_function__(
        cls,
        op: Operator,
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Called for each operator with a proxy among its arguments."""
        kwargs = kwargs or {}
        tracer = _find_tracer((*args, *kwargs.values()))
        if tracer is None:
            return NotImplemented
        if isinstance(op, Operator | FunctionType):
            return tracer.create_proxy("call_function", op, args, kwargs)
        name = getattr(op, "__name__", "")
        if name in ("__getitem__", "__setitem__"):
            return tracer.create_proxy("call_function", getattr(operator, name), args, kwargs)
        return tracer.create_proxy("call_method", name, args, kwargs)


class Attribute(Proxy):
    """`proxy.name`: becomes a method call if it is called, else a `getattr` when its value is needed."""

    def __init__(self, root: Proxy, name: str) -> None:
        self.root = root
        self.attribute = name
        self.tracer = root.tracer
        self._node: Node | None = None

    def __repr__(self) -> str:
        return f"Attribute({self.root!r}.{self.attribute})"

    @property
    def node(self) -> Node:  # type: ignore[override]
        if self._node is None:
            proxy = self.tracer.create_proxy(
                "call_function", getattr, (self.root, self.attribute), {}
            )
            self._node = proxy.node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", self.attribute, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """A parameter or buffer: its shape, dtype and the like are known while tracing."""

    def __init__(self, node: Node, tracer: TracerBase, name: str, value: Any) -> None:
        super().__init__(node, tracer)
        self.name = name
        self.parameter = value

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        return self.parameter.shape

    @property
    def dtype(self) -> Any:
        return self.parameter.dtype

    @property
    def device(self) -> Any:
        return self.parameter.device

    @property
    def ndim(self) -> int:
        return int(self.parameter.ndim)

    def size(self, *args: Any) -> Any:
        return self.parameter.size(*args)

    def dim(self) -> int:
        return int(self.parameter.dim())

    def numel(self) -> int:
        return int(self.parameter.numel())


def _find_tracer(values: tuple[Any, ...]) -> TracerBase | None:
    for value in values:
        if isinstance(value, Proxy):
            return value.tracer
        if isinstance(value, list | tuple):
            found = _find_tracer(tuple(value))
            if found is not None:
                return found
    return None


def _unpacked_count(frame: Any) -> int | None:
    """How many values the caller unpacks an iterator into (`a, b = proxy`), None for any other use."""
    code = frame.f_code
    for instruction in dis.get_instructions(code):
        if instruction.offset == frame.f_lasti:
            if instruction.opname == "UNPACK_SEQUENCE":
                return int(instruction.arg or 0)
            if instruction.opname == "UNPACK_EX":
                raise TraceError(
                    "unpacking: got a starred target for a traced value of unknown length; "
                    "index it instead (x[0], x[1:])"
                )
            return None
    return None


def _define(name: str, function: Callable[..., Any], swap: bool = False) -> None:
    def method(self: Proxy, *other: Any) -> Any:
        args = (*other, self) if swap else (self, *other)
        return self.tracer.create_proxy("call_function", function, args, {})

    method.__name__ = name
    method.__qualname__ = f"Proxy.{name}"
    setattr(Proxy, name, method)


for _name in _BINARY:
    _function = getattr(operator, _name + "_" if _name in ("and", "or") else _name)
    _define(f"__{_name}__", _function)
    _define(f"__r{_name}__", _function, swap=True)
for _name in (*_COMPARISONS[2:], *_UNARY):
    _define(f"__{_name}__", getattr(operator, _name))


def is_traced(value: Any) -> bool:
    """Whether a proxy is `value` or stands inside of it."""
    if isinstance(value, Proxy):
        return True
    if isinstance(value, list | tuple):
        return any(map(is_traced, value))
    if isinstance(value, dict):
        return any(map(is_traced, value.values()))
    if isinstance(value, slice):
        return is_traced((value.start, value.stop, value.step))
    return False


def explain_bool(proxy: Proxy) -> str:
    """The message for a branch on a traced value, with the user's line."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("argand_fx"):
        frame = frame.f_back
    place = f" at {frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else ""
    return f"bool: got {proxy.node.name}, a traced value, in control flow{place}. {_REMEDY}"


class TracerBase:
    """Makes nodes for what proxies record."""

    graph: Graph
    record_stack_traces: bool = True

    def create_node(
        self,
        kind: str,
        target: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a node; override to look at each or to change it."""
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def create_proxy(
        self,
        kind: str,
        target: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Any:
        """Add a node with the nodes of the proxies among its arguments, and give its proxy."""
        node = self.create_node(
            kind,
            target,
            tuple([self.create_arg(item) for item in args]),
            {key: self.create_arg(item) for key, item in kwargs.items()},
            name,
            type_expr,
        )
        if self.record_stack_traces and kind.startswith("call"):
            stack = _user_stack()
            if stack:
                node.meta["location"] = stack[-1]
                node.meta["stack"] = stack
        return self.proxy(node) if proxy_factory_fn is None else proxy_factory_fn(node)

    def proxy(self, node: Node) -> Proxy:
        """The proxy of a node."""
        return Proxy(node, self)

    def create_arg(self, a: Any) -> Any:
        """What stands in a node for the value `a`."""
        if isinstance(a, Proxy):
            return a.node
        if isinstance(a, _CONSTANTS):
            return a
        if isinstance(a, tuple):
            items = [self.create_arg(item) for item in a]
            return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
        if isinstance(a, list):
            return [self.create_arg(item) for item in a]
        if isinstance(a, dict):
            for key in a:
                if is_traced(key):
                    raise TraceError(f"dict: got the traced value {key!r} as a key")
            return {key: self.create_arg(item) for key, item in a.items()}
        if isinstance(a, slice):
            return slice(*(self.create_arg(item) for item in (a.start, a.stop, a.step)))
        if isinstance(a, range):
            return range(a.start, a.stop, a.step)
        if callable(a) or type(a).__module__.startswith("argand"):
            return a
        raise TraceError(
            f"create_arg: got {type(a).__name__}, which cannot be an argument of a node; expected tensors, numbers, "
            "strings, dtypes, devices, functions, and lists, tuples, dicts and slices of these"
        )

    def to_bool(self, obj: Proxy) -> bool:
        """Called for `if proxy:`; raises unless overridden."""
        raise TraceError(explain_bool(obj))

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """Called for loops over a proxy; raises unless overridden."""
        raise TraceError(
            f"for: got {obj.node.name}, a traced value of unknown length; loop over a range of constant length "
            "and index it"
        )

    def keys(self, obj: Proxy) -> Any:
        """Called for `**proxy`."""
        return self.create_proxy("call_method", "keys", (obj,), {})


class GraphAppendingTracer(TracerBase):
    """Adds what proxies record to a graph that is there already."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph


def _user_stack() -> tuple[tuple[str, int, str], ...]:
    """The frames up to the traced function, outermost first: those of the user's code, or all where there are none."""
    frames: list[tuple[str, int, str]] = []
    users: list[tuple[str, int, str]] = []
    frame: Any = sys._getframe(2)
    while frame is not None:
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        code = frame.f_code
        if package == _HERE and code.co_name == "trace":
            break
        place = (code.co_filename, frame.f_lineno, code.co_name)
        if not package.startswith("argand"):
            users.append(place)
        elif package != _HERE:
            frames.append(place)
        frame = frame.f_back
    return tuple(reversed(users or frames))
