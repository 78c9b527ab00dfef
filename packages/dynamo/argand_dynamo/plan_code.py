"""Replacement bytecode of a frame plan. It is made from the plan only.

Objects that the code needs at run time (the compiled graph, resume functions, helpers) are cells of the replacement's closure: constants would be
invisible to the garbage collector.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from types import CellType, CodeType, FunctionType
from typing import Any

from argand_dynamo import _C
from argand_dynamo.bytecode import Handler, Instruction, analyse, assemble, create, reachable
from argand_dynamo.bytecode.instructions import (
    CO_VARARGS,
    CO_VARKEYWORDS,
    NO_POSITIONS,
    Positions,
)
from argand_dynamo.bytecode.table import table
from argand_dynamo.frame_plan import (
    Break,
    Expr,
    FramePlan,
    GraphCall,
    PlanError,
    Source,
    Statement,
    walk,
)
from argand_dynamo.plan_helpers import HELPERS, MODULES, TailCall
from argand_dynamo.resume import (
    Successor,
    breaking_instructions,
    is_resume,
    needed_locals,
    parameters,
    prologue_end,
    successors,
)

__all__ = ["Replacement", "RuntimeObjects", "TailCall", "assemble_plan"]


@dataclass(frozen=True, slots=True)
class RuntimeObjects:
    """What a plan's code calls.

    Attributes:
        graph: takes the graph's inputs, returns a tuple.
        resume: one callable for each code of `resume.resume_codes`, in order.
    """

    graph: Callable[..., Any] | None = None
    resume: Sequence[Callable[..., Any]] = ()


@dataclass(frozen=True, slots=True)
class Replacement:
    """Code that runs instead of a function's, and the cells that it needs beside the function's own."""

    code: CodeType
    cells: tuple[CellType, ...]

    def bind(self, function: FunctionType) -> FunctionType:
        """A function that runs the replacement with the globals, defaults and closure of the original one."""
        closure = (*(function.__closure__ or ()), *self.cells)
        made = FunctionType(
            self.code, function.__globals__, function.__name__, function.__defaults__, closure
        )
        made.__kwdefaults__ = function.__kwdefaults__
        return made


def assemble_plan(plan: FramePlan, code: CodeType, objects: RuntimeObjects) -> Replacement:
    """The replacement of a function's code by a plan.

    Args:
        plan: made for exactly this code.
        code: of the function, which may itself be a resume function.
        objects: the compiled graph and the resume functions.

    Raises:
        PlanError: the plan does not fit the code, or objects are missing.
    """
    try:
        return _Assembler(plan, code, objects).run()
    except (KeyError, IndexError) as error:
        raise PlanError(
            f"assemble_plan: the plan of {plan.name} does not fit the code of {code.co_qualname}: no {error}"
        ) from error


@dataclass(slots=True)
class _Assembler:
    plan: FramePlan
    code: CodeType
    objects: RuntimeObjects
    out: list[Instruction] = field(default_factory=list)
    aside: list[Instruction] = field(default_factory=list)  # reached by jumps and exceptions only
    held: dict[str, Any] = field(default_factory=dict)
    temps: dict[str, None] = field(default_factory=dict)
    shared: set[Source] = field(default_factory=set)
    kept: dict[Source, str] = field(default_factory=dict)
    positions: Positions = NO_POSITIONS

    # -- pieces ------------------------------------------------------------------------------

    def emit(self, *instructions: Instruction) -> None:
        for instruction in instructions:
            if instruction.positions is NO_POSITIONS:
                instruction.positions = self.positions
            self.out.append(instruction)

    def temp(self, name: str) -> str:
        self.temps[name] = None
        return name

    def hold(self, name: str, value: Any) -> Instruction:
        """Load an object that is kept in a cell of the closure."""
        self.held[name] = value
        return create.load_deref(name)

    def begin_call(self, load: Callable[[], None]) -> None:
        """The callable and the empty slot beside it."""
        if table.NULL_FIRST:
            self.emit(create.push_null())
        load()
        if not table.NULL_FIRST:
            self.emit(create.push_null())

    def helper(self, name: str, *arguments: Callable[[], None]) -> None:
        """Call a helper; its result stays on the stack."""
        self.emit(*create.begin_call([self.hold(f".{name}", HELPERS[name])]))
        for argument in arguments:
            argument()
        self.emit(create.call(len(arguments)))

    def constant(self, value: Any) -> Callable[[], None]:
        return lambda: self.emit(create.load_const(value))

    def later(self, expression: Expr) -> Callable[[], None]:
        return lambda: self.expression(expression)

    # -- the whole ---------------------------------------------------------------------------

    def run(self) -> Replacement:
        plan, code = self.plan, self.code
        line = code.co_firstlineno
        self.positions = (line, line, None, None)
        self.shared = _shared_prefixes(_sources(plan.roots(), plan))
        if plan.graph is not None:
            self._call_graph(plan.graph)
        if any(statement[0] != "let" for statement in plan.effects):
            self._read_sources()
        for statement in plan.effects:
            self.statement(statement)
        if isinstance(plan.outcome, Break):
            self._break(plan.outcome)
        else:
            self.expression(plan.outcome.value)
            self.emit(create.return_value())
        made = assemble(
            [*self._prologue(), *self.out, *self.aside],
            code,
            co_varnames=(*code.co_varnames, *(n for n in self.temps if n not in code.co_varnames)),
            co_freevars=(*code.co_freevars, *self.held),
        )
        _C.skip_code(made)  # the frame hook never replaces what is a replacement already
        return Replacement(made, tuple(CellType(value) for value in self.held.values()))

    def _prologue(self) -> list[Instruction]:
        """The frame's own, up to RESUME, copying the additional cells too."""
        instructions = analyse(self.code).instructions
        end = prologue_end(instructions)
        own = [i for i in instructions[:end] if i.opname != "COPY_FREE_VARS"]
        count = len(self.code.co_freevars) + len(self.held)
        if not count:
            return own
        copies = create.copy_free_vars(count)
        copies.positions = own[0].positions
        return [copies, *own]

    def _call_graph(self, graph: GraphCall) -> None:
        if self.objects.graph is None:
            raise PlanError(f"assemble_plan: the plan of {self.plan.name} calls a graph, got none")
        lines = [line for file, line, _ in graph.lines if file == self.code.co_filename]
        line = lines[0] if lines else self.code.co_firstlineno
        before, self.positions = self.positions, (line, line, None, None)
        self.emit(*create.begin_call([self.hold(".graph", self.objects.graph)]))
        for value in graph.inputs:
            self.expression(value)
        call = create.call(len(graph.inputs))
        before_call = create.simple("NOP")
        self.emit(before_call, call, create.store_fast(self.temp(".results")))
        if graph.lines:
            # An exception stays as it is and gets a note with the lines that the graph stands for. CPython 3.13 looks for the handler of a call
            # that a Python function left by an exception one code unit too early: the NOP stands there, here and in `_break`.
            handle = create.begin_call([self.hold(".note", HELPERS["note"])])
            before_call.handler = call.handler = Handler(handle[0], 0, False)
            handle += [
                create.copy(3),
                create.load_const(graph.lines),
                create.call(2),
                create.pop_top(),
            ]
            handle.append(create.simple("RERAISE", 0))
            for instruction in handle:
                instruction.positions = self.positions
            self.aside += handle
        self.positions = before

    # -- sources -----------------------------------------------------------------------------

    def _read_sources(self) -> None:
        """Everything that effects and the outcome read, before the first effect can change it."""
        cells = {*self.code.co_cellvars, *self.code.co_freevars}
        for source in _sources(self.plan.roots_after_graph(), self.plan):
            kind, *rest = source[0]
            fixed = (
                len(source) == 1 and kind == "arg" and self.code.co_varnames[rest[0]] not in cells
            )
            if not fixed and source not in self.kept:
                self.shared.add(source)
                self.source(source)
                self.emit(create.pop_top())

    def source(self, source: Source) -> None:
        """Push what the path leads to; beginnings that several paths share are read once."""
        start = 0
        for length in range(len(source), 0, -1):
            if source[:length] in self.kept:
                start = length
                self.emit(create.load_fast(self.kept[source[:length]]))
                break
        for length in range(start, len(source)):
            if length == 0:
                self._first_step(source[0])
            else:
                self._step(source[length])
            prefix = source[: length + 1]
            if prefix in self.shared:
                name = self.kept[prefix] = self.temp(f".source.{len(self.kept)}")
                self.emit(create.copy(1), create.store_fast(name))

    def _first_step(self, step: tuple[Any, ...]) -> None:
        kind, name = step
        if kind == "arg":
            name = self.code.co_varnames[name]
            in_cell = name in self.code.co_cellvars
            self.emit(create.load_deref(name) if in_cell else create.load_fast(name))
        elif kind == "cell":
            self.emit(create.load_deref(name))
        elif kind == "global":
            self.emit(create.load_global(name))
        else:
            where = vars(builtins) if kind == "builtin" else MODULES
            self.emit(self.hold(f".{kind}", where), create.load_const(name), create.subscript())

    def _step(self, step: tuple[Any, ...]) -> None:
        """[object] -> [part of it]"""
        kind = step[0]
        if kind in _ATTRIBUTE_STEPS:
            self.emit(create.load_attr(_ATTRIBUTE_STEPS[kind]))
        elif kind == "attr":
            self.emit(create.load_attr(step[1]))
        elif kind == "item":
            self.emit(create.load_const(step[1]), create.subscript())
        elif kind in _ENTRY_STEPS:
            self.emit(create.load_attr(_ENTRY_STEPS[kind]))
            self.emit(create.load_const(step[1]), create.subscript())
        elif kind in ("call", "held"):
            arguments, names = step[1]
            name = self.temp(".object")
            self.emit(create.store_fast(name))
            self.begin_call(lambda: self.emit(create.load_fast(name)))
            for argument in arguments:
                self.expression(argument[:2])
            self.emit(create.call(len(arguments), names))
        else:
            # Helpers take the object from the stack: [object] -> [callable and empty slot, object].
            name = self.temp(".object")
            self.emit(create.store_fast(name))
            rest = [self.constant(v) for v in step[1:]]
            helper = {"closure": "closure_value", "key": "key_at", "value": "value_at"}.get(
                kind, kind
            )
            self.helper(helper, lambda: self.emit(create.load_fast(name)), *rest)

    # -- expressions -------------------------------------------------------------------------

    def expression(self, expression: Expr) -> None:
        """Push the value of an expression."""
        _EXPRESSIONS[expression[0]](self, expression)

    def _items(self, items: Sequence[Expr]) -> None:
        for item in items:
            self.expression(item)

    def _graph(self, e: Expr) -> None:
        self.emit(create.load_fast(".results"), create.load_const(e[1]), create.subscript())

    def _object(self, e: Expr) -> None:
        self.emit(self.hold(f".object.{id(e[1])}", e[1]))

    def _container(self, e: Expr) -> None:
        self._items(e[1])
        self.emit(create.build(e[0].upper(), len(e[1])))

    def _dict(self, e: Expr) -> None:
        for key, value in e[1]:
            self.expression(key)
            self.expression(value)
        self.emit(create.build("MAP", len(e[1])))

    def _slice(self, e: Expr) -> None:
        self._items(e[1:])
        self.emit(create.build("SLICE", 3))

    def _attr(self, e: Expr) -> None:
        self.expression(e[1])
        self.emit(create.load_attr(e[2]))

    def _item(self, e: Expr) -> None:
        self._items(e[1:])
        self.emit(create.subscript())

    def _call(self, e: Expr) -> None:
        named = e[3] if len(e) > 3 else ()
        self.begin_call(self.later(e[1]))
        self._items(e[2])
        self._items([value for _, value in named])
        self.emit(create.call(len(e[2]) + len(named), [name for name, _ in named]))

    def _new(self, e: Expr) -> None:
        self._call(("call", ("attr", e[1], "__new__"), [e[1], *e[2]], ()))

    def _size(self, e: Expr) -> None:
        self._call(
            ("call", ("attr", e[1], e[0]), [("const", e[2])] if type(e[2]) is int else [e[2]], ())
        )

    def _code(self, e: Expr) -> None:
        if e[1] is None:
            found: Any = self.code
            for place in e[2]:
                found = found.co_consts[place]
            self.emit(create.load_const(found))
            return
        self.source(e[1])
        self.emit(create.load_attr("__code__"))
        for place in e[2]:
            self.emit(create.load_attr("co_consts"), create.load_const(place), create.subscript())

    def _own_cell(self, e: Expr) -> None:
        if e[1] not in (*self.code.co_cellvars, *self.code.co_freevars):
            raise KeyError(e[1])
        self.emit(create.load_closure(e[1]))

    def _new_cell(self, e: Expr) -> None:
        self.helper("new_cell", *([] if e[1] is None else [self.later(e[1])]))

    def _cell_of(self, e: Expr) -> None:
        self.helper("cell_of", self.later(e[1]), self.constant(e[2]))

    def _function(self, e: Expr) -> None:
        _, code, module_globals, defaults, kwdefaults, cells = e
        none: Expr = ("const", None)
        if module_globals is not None:
            given = (code, module_globals, defaults or none, kwdefaults or none, ("tuple", cells))
            self.helper("function_of", *map(self.later, given))
            return
        parts = 0
        for bit, part in (
            (create.DEFAULTS, defaults),
            (create.KWDEFAULTS, kwdefaults),
            (create.CLOSURE, ("tuple", cells) if cells else None),
        ):
            if part is not None:
                self.expression(part)
                parts |= bit
        self.expression(code)
        self.emit(*create.make_function(parts))

    def _sym(self, e: Expr) -> None:
        self._symbolic(e[1])

    def _symbolic(self, value: Any) -> None:
        """Integer arithmetic over the plan's symbols."""
        if isinstance(value, int):
            self.emit(create.load_const(value))
        elif isinstance(value, str):
            kind, source, dim = self.plan.symbols[value]
            path: Expr = ("source", source)
            self.expression(path if kind == "value" else (kind, path, dim))
        elif value[0] in ("min", "max"):
            self.helper(value[0], *[lambda v=v: self._symbolic(v) for v in value[1:]])
        elif value[0] == "-" and len(value) == 2:
            self._symbolic(value[1])
            self.emit(create.simple("UNARY_NEGATIVE"))
        elif value[0] in _ARITHMETIC:
            self._symbolic(value[1])
            for term in value[2:]:
                self._symbolic(term)
                self.emit(create.binary(value[0]))
        else:
            raise PlanError(
                f"assemble_plan: got {value!r}, expected arithmetic with {sorted(_ARITHMETIC)}, min or max"
            )

    # -- statements --------------------------------------------------------------------------

    def statement(self, statement: Statement) -> None:
        """Run an effect; the stack is as before."""
        kind, *parts = statement
        if kind == "let":
            self.expression(parts[1])
            self.emit(create.store_fast(self.temp(f".let.{parts[0]}")))
        elif kind in ("store_global", "delete_global"):
            self._items(parts[1:])
            self.emit(
                create.store_global(parts[0]) if parts[1:] else create.delete_global(parts[0])
            )
        elif kind in ("store_attr", "delete_attr"):
            self._items([*parts[2:], parts[0]])
            self.emit(create.store_attr(parts[1]) if parts[2:] else create.delete_attr(parts[1]))
        elif kind in ("store_item", "delete_item"):
            self._items([*parts[2:], *parts[:2]])
            self.emit(create.store_subscript() if parts[2:] else create.delete_subscript())
        elif kind in ("store_cell", "delete_cell"):
            self._cell_statement(parts[0], parts[1:])
        else:
            self._call_statement(kind, parts)
            self.emit(create.pop_top())

    def _cell_statement(self, cell: Expr, value: Sequence[Expr]) -> None:
        self._items(value)
        if cell[0] == "own_cell":
            self.emit(create.store_deref(cell[1]) if value else create.delete_deref(cell[1]))
        else:
            self.expression(cell)
            self.emit(
                create.store_attr("cell_contents") if value else create.delete_attr("cell_contents")
            )

    def _call_statement(self, kind: str, parts: Sequence[Any]) -> None:
        if kind == "do":
            self.expression(parts[0])
        elif kind == "store_instance":
            self.helper(
                "setattr", self.later(parts[0]), self.constant(parts[1]), self.later(parts[2])
            )
        elif kind == "delete_instance":
            self.helper("delattr", self.later(parts[0]), self.constant(parts[1]))
        else:
            container = "dict" if kind == "dict_replace" else "list"
            self.helper(kind, self.later(parts[0]), self.later((container, parts[1])))

    # -- breaks ------------------------------------------------------------------------------

    def _break(self, outcome: Break) -> None:
        flow = analyse(self.code)
        instruction = flow.instructions[outcome.instruction]
        self.positions = _user_positions(flow.instructions, instruction, self.code)
        # The stack first: storing variables may overwrite arguments that it reads.
        self._items(outcome.stack)
        self._store_locals(outcome)
        first, broken, last = breaking_instructions(instruction)
        broken.positions = self.positions
        if broken.handler is not None:
            # The rest of an enclosing `try` or `with`, in case the instruction raises: Python's own code.
            inside = reachable(flow.instructions, broken.handler.target)
            self.aside += [i for i in flow.instructions if i in inside]
        ways = successors(self.code, outcome)
        if len(ways) != len(self.objects.resume):
            raise PlanError(
                f"assemble_plan: the break of {self.plan.name} has {len(ways)} ways on, got {len(self.objects.resume)} resume functions"
            )
        before = create.simple("NOP")
        before.handler = broken.handler
        self.emit(before, *first, broken, *last)
        if not ways:
            return
        join = create.return_value() if is_resume(self.code) else create.simple("NOP")
        jumped = (
            [create.simple(name) for name in table.FOR_END] if broken.opname == "FOR_ITER" else []
        )
        jumped = jumped or [create.simple("NOP")]
        for number, way in enumerate(ways):
            if way.jumped:
                broken.target = jumped[0]
                self.emit(*jumped)
            self._resume(number, way, outcome)
            if number + 1 < len(ways):
                self.emit(create.jump_to(join))
        if is_resume(self.code):
            self.emit(join)
        else:
            self._run_tail_calls(join)

    def _store_locals(self, outcome: Break) -> None:
        """Put the variables into their slots; all values are read before the first is stored."""
        given = dict(outcome.locals)
        arguments = {name: i for i, name in enumerate(self.code.co_varnames)}
        names = []
        for name, value in given.items():
            if value != ("source", (("arg", arguments.get(name)),)):
                self.expression(value)
                names.append(name)
        self.emit(*[create.store_fast(name) for name in reversed(names)])
        count = argument_count(self.code)
        needed = needed_locals(self.code, outcome.instruction)
        unbound = [n for n in self.code.co_varnames[:count] if n in needed and n not in given]
        self.emit(*[create.delete_fast(name) for name in unbound])

    def _resume(self, number: int, way: Successor, outcome: Break) -> None:
        """[stack after the breaking instruction] -> [what the rest of the frame returns, or a TailCall]"""
        # A jump is followed by the other way's code, whose stack is its own.
        for place in range(len(way.stack) - 1, -1, -1):
            empty = way.stack[place]
            self.emit(create.store_fast(self.temp(".empty" if empty else f".stack.{place}")))
        function = self.hold(f".resume.{number}", self.objects.resume[number])
        loads = []
        for name in parameters(self.code, way, outcome):
            if name.startswith(".cell."):
                loads.append(create.load_closure(name.removeprefix(".cell.")))
            else:
                loads.append(create.load_fast(name))
        if is_resume(self.code):
            self.emit(*create.begin_call([self.hold(".TailCall", TailCall)]))
            self.emit(
                function,
                *loads,
                create.build("TUPLE", len(loads)),
                create.build("TUPLE", 2),
                create.call(1),
            )
        else:
            self.emit(*create.begin_call([function]), *loads, create.call(len(loads)))

    def _run_tail_calls(self, begin: Instruction) -> None:
        """[result or TailCall] -> returns the result"""
        end = create.return_value()
        self.emit(
            begin, *create.begin_call([self.hold(".type", type)]), create.copy(3), create.call(1)
        )
        self.emit(
            self.hold(".TailCall", TailCall), create.simple("IS_OP", 0), create.jump_if_false(end)
        )
        self.emit(
            create.simple("UNPACK_SEQUENCE", 2),
            *create.call_with_tuple(),
            create.jump_to(begin),
            end,
        )


_ARITHMETIC = ("+", "-", "*", "//", "%")
_ATTRIBUTE_STEPS = {"grad": "grad", "func": "__func__", "self": "__self__"}
_ENTRY_STEPS = {
    "instance_dict": "__dict__",
    "default": "__defaults__",
    "kwdefault": "__kwdefaults__",
}
_EXPRESSIONS: dict[str, Callable[[_Assembler, Expr], None]] = {
    "graph": _Assembler._graph,
    "source": lambda a, e: a.source(e[1]),
    "const": lambda a, e: a.emit(create.load_const(e[1])),
    "object": _Assembler._object,
    "temp": lambda a, e: a.emit(create.load_fast(f".let.{e[1]}")),
    "null": lambda a, e: a.emit(create.push_null()),
    "sym": _Assembler._sym,
    "size": _Assembler._size,
    "stride": _Assembler._size,
    "tuple": _Assembler._container,
    "list": _Assembler._container,
    "set": _Assembler._container,
    "dict": _Assembler._dict,
    "slice": _Assembler._slice,
    "attr": _Assembler._attr,
    "item": _Assembler._item,
    "call": _Assembler._call,
    "new": _Assembler._new,
    "code": _Assembler._code,
    "own_cell": _Assembler._own_cell,
    "new_cell": _Assembler._new_cell,
    "cell_of": _Assembler._cell_of,
    "function": _Assembler._function,
}


def _user_positions(instructions: list[Instruction], of: Instruction, code: CodeType) -> Positions:
    """Positions of an instruction, or of the last one before it that the user wrote."""
    for instruction in reversed(instructions[: of.index + 1]):
        if instruction.line is not None:
            return instruction.positions
    return (code.co_firstlineno, code.co_firstlineno, None, None)


def argument_count(code: CodeType) -> int:
    """Number of parameters, *args and **kwargs included."""
    return (
        code.co_argcount
        + code.co_kwonlyargcount
        + bool(code.co_flags & CO_VARARGS)
        + bool(code.co_flags & CO_VARKEYWORDS)
    )


def _symbols(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, tuple):
        return [name for term in value[1:] for name in _symbols(term)]
    return []


def _sources(roots: Iterable[Expr], plan: FramePlan) -> list[Source]:
    """The paths that the expressions read, one entry a use."""
    found: list[Source] = []
    for root in roots:
        for expression in walk(root):
            if expression[0] == "source" or (expression[0] == "code" and expression[1] is not None):
                found.append(expression[1])
            elif expression[0] == "sym":
                found += [plan.symbols[name][1] for name in _symbols(expression[1])]
    return found


def _shared_prefixes(sources: list[Source]) -> set[Source]:
    """The places, behind the first step, that are ends or forks of several paths."""
    uses: dict[Source, int] = {}
    for source in sources:
        for length in range(len(source), 0, -1):
            prefix = source[:length]
            uses[prefix] = uses.get(prefix, 0) + 1
            if uses[prefix] > 1:
                break
    return {prefix for prefix, count in uses.items() if count > 1 and len(prefix) > 1}
