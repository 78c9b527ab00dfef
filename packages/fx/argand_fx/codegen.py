"""Python source of a graph."""

from __future__ import annotations

import builtins
import keyword
import linecache
import math
import operator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from argand_c10 import Operator, device, dtype
from argand_fx.bindings import symbol_bindings
from argand_fx.describe import describe
from argand_fx.namespace import Namespace, base_name, legal_name
from argand_fx.node import Node
from argand_fx.symbolic import SymbolicValue

if TYPE_CHECKING:
    from argand_fx.graph import Graph

__all__ = ["PythonCode", "generate"]

_BINARY = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "floordiv": "//",
    "truediv": "/",
    "mod": "%",
    "pow": "**",
    "matmul": "@",
    "lshift": "<<",
    "rshift": ">>",
    "and_": "&",
    "or_": "|",
    "xor": "^",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "gt": ">",
    "le": "<=",
    "ge": ">=",
    "is_": "is",
    "is_not": "is not",
}
_UNARY = {"neg": "-", "pos": "+", "invert": "~", "not_": "not "}
_TEMPLATES: dict[Any, tuple[int, str]] = {
    **{getattr(operator, name): (2, f"{{}} {sign} {{}}") for name, sign in _BINARY.items()},
    **{getattr(operator, name): (1, f"{sign}{{}}") for name, sign in _UNARY.items()},
    operator.getitem: (2, "{}[{}]"),
}


class Operators:
    """The operators that a generated function calls, as attributes."""


@dataclass
class PythonCode:
    """A graph as Python.

    Attributes:
        src: source of one function `forward`.
        globals: what its free names mean.
        lines: for each line of `src` the node that it runs, or None.
    """

    src: str
    globals: dict[str, Any]
    lines: list[Node | None] = field(default_factory=list)


def generate(graph: Graph, root: str = "self", *, annotate: bool = False) -> PythonCode:
    """The source of `forward(root, *inputs)`.

    Values are dropped after their last use. Comments name the user's lines. With `annotate`, results are annotated with
    their dtypes and shapes.
    """
    return _Generator(graph, root, annotate).run()


class _Generator:
    def __init__(self, graph: Graph, root: str, annotate: bool) -> None:
        self.graph = graph
        self.root = root
        self.annotate = annotate
        self.names = Namespace(graph._names)
        self.operators = Operators()
        self.globals: dict[str, Any] = {}
        self.target_text: dict[Any, str] = {}
        self.operators_name = self.names.create_name("ops")
        self.globals[self.operators_name] = self.operators
        self.formatters: dict[type, Any] = {
            Node: operator.attrgetter("name"),
            int: repr,
            bool: repr,
            str: repr,
            type(None): repr,
            type(...): lambda value: "...",
            float: self._float,
            complex: self._complex,
        }

    def run(self) -> PythonCode:
        placeholders, body = [], []
        last_use: dict[Node, Node] = {}
        dropped: dict[Node, list[str]] = {}
        nodes = list(self.graph.nodes)
        for node in reversed(nodes):
            for used in node._inputs:
                if used not in last_use:
                    last_use[used] = node
                    dropped.setdefault(node, []).append(used.name)
        lines: list[str] = []
        owners: list[Node | None] = []
        place = None
        for node in nodes:
            if node.op == "placeholder":
                placeholders.append(node)
                continue
            location = node.meta.get("location")
            if location != place:
                place = location
                if location is not None:
                    lines += ["", f"    # {_describe_location(location)}"]
                    owners += [None, None]
            text = self.statement(node)
            if node.op != "output":
                unused = [] if node.users else [node.name]
                gone = dropped.get(node, ())
                names = [*gone, *unused]
                if names:
                    text += f";  {' = '.join(names)} = None"
            lines.append("    " + text)
            owners.append(node)
        head = [self.signature(placeholders), *self.prologue(placeholders)]
        body = lines or ["    pass"]
        src = "\n".join(head + body) + "\n"
        return PythonCode(src, self.globals, [*(None for _ in head), *owners])

    def signature(self, placeholders: list[Node]) -> str:
        parameters = [self.root]
        seen_default = False
        for node in placeholders:
            text = node.name
            if isinstance(node.target, str) and node.target.startswith("*"):
                text = "*" * (2 if node.target.startswith("**") else 1) + text
            elif node.args:
                seen_default = True
                text += f"={self.value(node.args[0])}"
            elif seen_default and not any(p.startswith("*") for p in parameters):
                parameters.append("*")
            parameters.append(text)
        return f"def forward({', '.join(parameters)}):"

    def prologue(self, placeholders: list[Node]) -> list[str]:
        lines = []
        for symbol, (node, (kind, index)) in symbol_bindings(placeholders).items():
            if kind == "value":
                lines.append(f"    {symbol} = {node.name}")
            elif kind == "size":
                lines.append(f"    {symbol} = {node.name}.shape[{index}]")
            else:
                lines.append(f"    {symbol} = {node.name}.stride({index})")
        return lines

    def statement(self, node: Node) -> str:
        op = node.op
        if op == "call_function":
            text = self.call(node)
        elif op == "output":
            return f"return {self.value(node._args[0])}"
        elif op == "call_method":
            head = self.operand(node._args[0])
            text = f"{head}.{node.target}({self.arguments(node._args[1:], node._kwargs)})"
        elif op == "call_module":
            text = f"{self.path(node.target)}({self.arguments(node._args, node._kwargs)})"
        else:
            text = self.path(node.target)
        if self.annotate and "val" in node.meta:
            return f'{node.name}: "{describe(node.meta["val"])}" = {text}'
        return f"{node.name} = {text}"

    def call(self, node: Node) -> str:
        target, args = node.target, node._args
        if not node._kwargs:
            template = _TEMPLATES.get(target)
            if template is not None and template[0] == len(args):
                if target is operator.getitem:
                    return f"{self.operand(args[0])}[{self.value(args[1])}]"
                return template[1].format(*map(self.term, args))
            if target is getattr and len(args) == 2 and str(args[1]).isidentifier():
                return f"{self.operand(args[0])}.{args[1]}"
        text = self.target_text.get(target)
        if text is None:
            text = self.target_text[target] = self.bind_target(target)
        return f"{text}({self.arguments(args, node._kwargs)})"

    def bind_target(self, target: Any) -> str:
        """A name for the called function, entered into the globals."""
        if isinstance(target, Operator):
            attribute = base_name(target)
            plain_name = attribute.removesuffix("_1")  # an attribute may be named like a builtin
            if hasattr(builtins, plain_name) and not keyword.iskeyword(plain_name):
                attribute = plain_name
            while hasattr(self.operators, attribute):
                attribute += "_"
            setattr(self.operators, attribute, target)
            return f"{self.operators_name}.{attribute}"
        module = getattr(target, "__module__", None) or ""
        plain: str = getattr(target, "__name__", None) or type(target).__name__
        if module == "builtins" and getattr(builtins, plain, None) is target:
            return plain  # nothing in a graph is named like a builtin
        return self.bind(target, plain if module in ("_operator", "") else f"{module}_{plain}")

    def bind(self, value: Any, wished: str) -> str:
        name = self.names.create_name(legal_name(wished))
        self.globals[name] = value
        return name

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        parts = [self.value(item) for item in args]
        for key, item in kwargs.items():
            parts.append(f"{key}={self.value(item)}")
        return ", ".join(parts)

    def operand(self, value: Any) -> str:
        text = self.value(value)
        return text if type(value) is Node else f"({text})"

    def term(self, value: Any) -> str:
        plain = type(value) in (int, float, str) and not (type(value) is not str and value < 0)
        return self.value(value) if plain else self.operand(value)

    def path(self, target: str) -> str:
        text = self.root
        for name in target.split("."):
            text = f"{text}.{name}" if name.isidentifier() else f'getattr({text}, "{name}")'
        return text

    def value(self, value: Any) -> str:
        formatter = self.formatters.get(type(value))
        if formatter is not None:
            return str(formatter(value))
        return self.other(value)

    def other(self, value: Any) -> str:
        if isinstance(value, SymbolicValue):
            return str(value)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            name = self.bind_once(type(value), type(value).__name__)
            return f"{name}({', '.join(map(self.value, value))})"
        if isinstance(value, tuple):
            items = [self.value(item) for item in value]
            return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
        if isinstance(value, list):
            return f"[{', '.join(map(self.value, value))}]"
        if isinstance(value, dict):
            items = [f"{self.value(k)}: {self.value(v)}" for k, v in value.items()]
            return f"{{{', '.join(items)}}}"
        if isinstance(value, slice):
            return f"slice({self.value(value.start)}, {self.value(value.stop)}, {self.value(value.step)})"
        if isinstance(value, dtype):
            return self.bind_once(value, value.name)
        if isinstance(value, device):
            return f"{self.bind_once(device, 'device')}({str(value)!r})"
        return self.bind_once(value, getattr(value, "__name__", None) or type(value).__name__)

    def bind_once(self, value: Any, wished: str) -> str:
        for name, known in self.globals.items():
            if known is value:
                return name
        return self.bind(value, wished)

    def _float(self, value: float) -> str:
        return repr(value) if math.isfinite(value) else f"float('{value!r}')"

    def _complex(self, value: complex) -> str:
        if math.isfinite(value.real) and math.isfinite(value.imag):
            return repr(value)
        return f"complex({self._float(value.real)}, {self._float(value.imag)})"


def _describe_location(location: tuple[str, int, str]) -> str:
    file, line, function = location
    code = linecache.getline(file, line).strip()
    return f"{file}:{line} in {function}" + (f": {code}" if code else "")
