"""Frame plans: all that is known of a compiled frame, as plain data.

A plan says what a call of the frame does instead of running its bytecode: check guards, load the graph's inputs, call the graph, build what
the frame would have built, apply its side effects in order, then return or break. `assemble_plan` (plan_code.py) makes bytecode of it; nothing else does.

Expressions (nested tuples; `...` stands for expressions, `source` for a path of steps as in guards):

    ("graph", i)                    i-th result of the graph                ("source", source)          what the path leads to when the frame starts
    ("const", value)                plain constant                          ("object", object)          process-local object: the plan cannot be stored
    ("temp", name)                  value of an earlier ("let", name, ..)   ("sym", expr)               integer over the plan's symbols, as in SHAPE guards
    ("null",)                       an empty stack slot                     ("size"|"stride", e, dim)   e.size(dim), e.stride(dim)
    ("tuple"|"list"|"set", [..])    new container                           ("dict", [(key, value)..])  new dict, in order
    ("slice", a, b, c)              slice object                            ("attr", e, name)           getattr(e, name)
    ("item", e, key)                e[key]                                  ("call", f, [..], [(name, e)..])
    ("new", cls, [..])              cls.__new__(cls, ...)                   ("code", source|None, path) code constant: path of indices into co_consts,
    ("own_cell", name)              cell of this frame's variable                                       from this frame's code or from that of a function
    ("new_cell", e|None)            new cell with that content              ("cell_of", f, name)        cell of function f's free variable
    ("function", code, globals|None, defaults|None, kwdefaults|None, [cells..])   new function; None: this frame's globals

Statements (effects, run in order after the graph; every source in the plan is read before the first of them):

    ("let", name, e)                ("do", e)
    ("store_attr", obj, name, e)    ("delete_attr", obj, name)              as the statements do
    ("store_instance", obj, name, e) ("delete_instance", obj, name)         plan_helpers.set_instance, delete_instance: no user code
    ("store_item", obj, key, e)     ("delete_item", obj, key)
    ("store_global", name, e)       ("delete_global", name)                 of this frame's module
    ("store_cell", cell, e)         ("delete_cell", cell)
    ("list_replace", l, [..])       ("set_replace", s, [..])                contents change, identity stays
    ("dict_replace", d, [(k, v)..])

A with block that was entered virtually is entered by an effect, ("do", ("call", ("attr", m, "__enter__"), [], [])), and its stack slot is ("attr", m, "__exit__"):
the block is open while the breaking instruction runs, and the resume function leaves it, being given the exit function with the rest of the stack.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from argand_c10.records import Record
from argand_dynamo.plan_data import NotPlainError, PlainReader, PlainWriter

PLAN_VERSION = 5

Source = tuple[tuple[Any, ...], ...]
Expr = tuple[Any, ...]
Statement = tuple[Any, ...]
GuardData = tuple[Any, str, Any]  # source, kind, value

# Shape of each expression and statement: e expression, E expressions, P pairs of them, N (name, expression) pairs, o optional expression, v any value,
# s string, i integer, S source, C optional source.
_EXPRESSIONS = {
    "graph": "i", "source": "S", "const": "v", "object": "v", "temp": "s", "sym": "v", "null": "", "size": "ei", "stride": "ei",
    "tuple": "E", "list": "E", "set": "E", "dict": "P", "slice": "eee", "attr": "es", "item": "ee", "call": "eEN", "new": "eE",
    "code": "Cv", "own_cell": "s", "new_cell": "o", "cell_of": "es", "function": "eoooE",
}  # fmt: skip
_STATEMENTS = {
    "let": "se", "do": "e", "store_attr": "ese", "delete_attr": "es", "store_instance": "ese", "delete_instance": "es", "store_item": "eee",
    "delete_item": "ee", "store_global": "se", "delete_global": "s", "store_cell": "ee", "delete_cell": "e", "list_replace": "eE",
    "set_replace": "eE", "dict_replace": "eP",
}  # fmt: skip
_FIRST_STEPS = {"arg": 1, "cell": 1, "global": 1, "builtin": 1, "module": 1}
_STEPS = {
    "attr": 1, "item": 1, "dict_item": 1, "instance_dict": 1, "type": 0, "grad": 0, "closure": 1, "default": 1, "kwdefault": 1, "func": 0, "self": 0,
    "key": 1, "value": 1, "len": 0, "call": 1, "held": 1,
}  # fmt: skip


class PlanError(ValueError):
    """A plan that does not follow the rules of this module."""


@dataclass(frozen=True, slots=True)
class GraphCall:
    """The call of the compiled graph: `graph(*inputs) -> tuple`.

    Attributes:
        inputs: one expression an input, over sources, symbols and constants.
        backend: name of the backend that compiled it.
        artifact: what the backend's loader needs (plain data), or None if the graph cannot be stored.
        lines: the user's lines that the graph stands for, as (file, line, function), in order.
    """

    inputs: tuple[Expr, ...]
    backend: str = ""
    artifact: dict[str, Any] | None = None
    lines: tuple[tuple[str, int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Return:
    """The frame ends and returns this."""

    value: Expr


@dataclass(frozen=True, slots=True)
class Break:
    """The frame goes on in Python at one instruction, then in resume functions.

    Attributes:
        instruction: index, in `disassemble(code)`, of the instruction that Python runs.
        stack: the operand stack before it, bottom first, its operands included; ("null",) for empty slots.
        locals: variables that are bound there, other than cells, as (name, value); at least the live ones (`resume.needed_locals`). Contents of
            cells are effects on ("own_cell", name).
        record: why, for those who ask; a process that loads the plan emits it too.
    """

    instruction: int
    stack: tuple[Expr, ...]
    locals: tuple[tuple[str, Expr], ...]
    record: Record | None = None


@dataclass(frozen=True, slots=True)
class InlinedCode:
    """A function whose code was inlined; the plan holds only while the code has this hash.

    Attributes:
        module: name of the module in which it was found.
        qualname: path of attributes from there ("" if it cannot be found by name: such a plan is not stored).
        code_hash: `argand_c10.code_digest.hash_code` of it.
    """

    module: str
    qualname: str
    code_hash: str


@dataclass(frozen=True, slots=True)
class FramePlan:
    """See the module. Symbols are bound as ("size" | "stride", source, dimension) or ("value", source, 0)."""

    name: str
    guards: tuple[GuardData, ...]
    outcome: Return | Break
    graph: GraphCall | None = None
    symbols: dict[str, tuple[str, Source, int]] = field(default_factory=dict)
    effects: tuple[Statement, ...] = ()
    inlined: tuple[InlinedCode, ...] = ()

    def validate(self) -> None:
        """Raises:
        PlanError: naming the first expression, statement or source that is malformed."""
        for expression in self.expressions():
            _check(expression, _EXPRESSIONS, "expression")
        for statement in self.effects:
            _check(statement, _STATEMENTS, "statement")
        for name, binding in self.symbols.items():
            if len(binding) != 3 or binding[0] not in ("size", "stride", "value"):
                raise PlanError(
                    f"FramePlan: got binding {binding!r} of symbol {name}, expected (kind, source, dim)"
                )
            check_source(binding[1])
        self._check_names()

    def _check_names(self) -> None:
        known: set[str] = set()
        for statement in self.effects:
            for part in _parts(statement, _STATEMENTS):
                _check_temps(part, known)
            if statement[0] == "let":
                known.add(statement[1])
        for expression in self.roots_of_outcome():
            _check_temps(expression, known)

    def roots_of_outcome(self) -> tuple[Expr, ...]:
        """The expressions of the return value, or of the stack and the locals."""
        if isinstance(self.outcome, Return):
            return (self.outcome.value,)
        return (*self.outcome.stack, *(e for _, e in self.outcome.locals))

    def roots(self) -> Iterator[Expr]:
        """Every outermost expression, in the order of evaluation."""
        if self.graph is not None:
            yield from self.graph.inputs
        yield from self.roots_after_graph()

    def roots_after_graph(self) -> Iterator[Expr]:
        """Those of the effects and the outcome."""
        for statement in self.effects:
            yield from _parts(statement, _STATEMENTS)
        yield from self.roots_of_outcome()

    def expressions(self) -> Iterator[Expr]:
        """Every expression, outer ones first."""
        for root in self.roots():
            yield from walk(root)

    def to_json(self) -> dict[str, Any]:
        """Plain data for `json.dumps`.

        Raises:
            NotPlainError: a constant, guard or object exists only in this process.
        """
        for expression in self.expressions():
            if expression[0] == "object":
                raise NotPlainError(f"{expression[1]!r} exists only in this process")
        outcome, writer = self.outcome, PlainWriter()
        plain = writer.plain
        graph = None
        if self.graph is not None:
            graph = {
                "inputs": plain(self.graph.inputs),
                "backend": self.graph.backend,
                "artifact": self.graph.artifact,
                "lines": plain(self.graph.lines),
            }
        if isinstance(outcome, Return):
            ends = {"return": plain(outcome.value)}
        else:
            ends = {
                "instruction": outcome.instruction,
                "stack": plain(outcome.stack),
                "locals": plain(outcome.locals),
                "record": None if outcome.record is None else asdict(outcome.record),
            }
        return {
            "version": PLAN_VERSION,
            "name": self.name,
            "guards": plain(self.guards),
            "symbols": plain(self.symbols),
            "graph": graph,
            "effects": plain(self.effects),
            "outcome": ends,
            "inlined": [[i.module, i.qualname, i.code_hash] for i in self.inlined],
            "paths": writer.rows,
        }

    @classmethod
    def from_json(cls, data: Any) -> FramePlan:
        """The plan of `to_json`'s data, checked; nothing named in it is imported or run.

        Raises:
            PlanError: the data is of another version or malformed.
        """
        try:
            if data["version"] != PLAN_VERSION:
                raise PlanError(
                    f"FramePlan: got version {data['version']!r}, expected {PLAN_VERSION}"
                )
            graph, outcome = data["graph"], data["outcome"]
            from_plain = PlainReader(data["paths"]).value
            plan = cls(
                name=str(data["name"]),
                guards=from_plain(data["guards"]),
                symbols=from_plain(data["symbols"]),
                graph=None
                if graph is None
                else GraphCall(
                    from_plain(graph["inputs"]),
                    str(graph["backend"]),
                    graph["artifact"],
                    from_plain(graph["lines"]),
                ),
                effects=from_plain(data["effects"]),
                outcome=Return(from_plain(outcome["return"]))
                if "return" in outcome
                else Break(
                    int(outcome["instruction"]),
                    from_plain(outcome["stack"]),
                    from_plain(outcome["locals"]),
                    None if outcome["record"] is None else Record(**outcome["record"]),
                ),
                inlined=tuple(InlinedCode(*map(str, entry)) for entry in data["inlined"]),
            )
            plan.validate()
        except (KeyError, TypeError, IndexError, AttributeError) as error:
            raise PlanError(
                f"FramePlan: malformed data ({type(error).__name__}: {error})"
            ) from None
        return plan


def _parts(item: Expr, table: dict[str, str]) -> list[Expr]:
    found: list[Expr] = []
    for kind, part in zip(table.get(item[0], ""), item[1:], strict=False):
        if kind == "e" or (kind == "o" and part is not None):
            found.append(part)
        elif kind == "E":
            found.extend(part)
        elif kind == "P":
            for key, value in part:
                found += (key, value)
        elif kind == "N":
            found.extend(value for _, value in part)
    return found


def children(expression: Expr) -> list[Expr]:
    """The expressions directly inside an expression, in the order of evaluation."""
    return _parts(expression, _EXPRESSIONS)


def walk(expression: Expr) -> Iterator[Expr]:
    """The expression and all inside it, outer ones first."""
    yield expression
    for child in children(expression):
        yield from walk(child)


def check_source(source: Any) -> None:
    """Raises:
    PlanError: if this is no path from a frame's variable."""
    if not isinstance(source, tuple) or not source:
        raise PlanError(f"source: got {source!r}, expected a tuple of steps")
    for number, step in enumerate(source):
        table = _STEPS if number else _FIRST_STEPS
        if not isinstance(step, tuple) or not step or table.get(step[0]) != len(step) - 1:
            raise PlanError(
                f"source: got step {step!r} in {source!r}, expected one of {sorted(table)}"
            )


def _check(item: Any, table: dict[str, str], what: str) -> None:
    if not isinstance(item, tuple) or not item or item[0] not in table:
        raise PlanError(
            f"FramePlan: got {what} {item!r}, expected a tuple that begins with one of {sorted(table)}"
        )
    shape = table[item[0]]
    if item[0] == "call" and len(item) == 3:
        item = (*item, ())
    if len(item) != len(shape) + 1:
        raise PlanError(
            f"FramePlan: got {what} {item!r}, expected {len(shape)} parts after {item[0]!r}"
        )
    for kind, part in zip(shape, item[1:], strict=True):
        good = True
        if kind == "s":
            good = isinstance(part, str)
        elif kind == "i":
            good = type(part) is int
        elif kind == "S" or (kind == "C" and part is not None):
            check_source(part)
        elif kind in "EPN":
            good = isinstance(part, (tuple, list))
        elif kind == "e":
            good = isinstance(part, tuple)
        if not good:
            raise PlanError(f"FramePlan: got part {part!r} in {what} {item!r}")


def _check_temps(expression: Expr, known: set[str]) -> None:
    for inner in walk(expression):
        if inner[0] == "temp" and inner[1] not in known:
            raise PlanError(f"FramePlan: got temp {inner[1]!r} before its let")
