"""Resume functions: the rest of a frame after an instruction that Python ran itself.

The code of a resume function is the frame's own from the instruction after the break on (and whatever can be reached from there), behind a prologue that puts
variables and stack back. Its arguments, all positional:

* the variables that are bound and may still be read, under their names;
* ".cell.x": the cell object of variable x, put into x's slot before RESUME;
* ".stack.i": the i-th item of the operand stack, bottom first; empty slots are not passed.

Resume functions are always made from the code of the original function, so that a loop that breaks in every turn needs one of them.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from types import CellType, CodeType, FunctionType
from typing import Any

from argand_dynamo.bytecode import Flow, Instruction, analyse, assemble, create, reachable
from argand_dynamo.bytecode.analysis import effect, falls_through
from argand_dynamo.bytecode.instructions import (
    CO_NEWLOCALS,
    CO_OPTIMIZED,
    CO_VARARGS,
    CO_VARKEYWORDS,
    GENERATOR_FLAGS,
)
from argand_dynamo.bytecode.table import table
from argand_dynamo.frame_plan import Break, FramePlan, PlanError

_MARK = "argand.resume"
# Globals that read the frame's variables without naming them; the second ones only without arguments.
_FRAME_READERS = frozenset(("locals", "eval", "exec"))
_FRAME_READERS_BARE = frozenset(("vars", "dir"))


@dataclass(frozen=True, slots=True)
class Successor:
    """Where the frame goes on after the breaking instruction.

    Attributes:
        jumped: whether the instruction jumped there.
        index: of the next instruction, in the code of the plan.
        stack: one entry an item of the stack, whether it is an empty slot.
    """

    jumped: bool
    index: int
    stack: tuple[bool, ...]


def breaking_instructions(
    instruction: Instruction,
) -> tuple[list[Instruction], Instruction, list[Instruction]]:
    """What runs instead of an instruction, and before and behind it. Loads for a call always push an empty slot beside the value; conditions may be any object."""
    made = instruction.copy()
    if made.opname == "RERAISE":
        # The exception was raised while tracing: it has no traceback yet, and RERAISE would add nothing to it.
        made.opname, made.arg = "RAISE_VARARGS", 1
    before: list[Instruction] = []
    after: list[Instruction] = []
    if made.opname in table.ONLY_BOOL:
        before = [create.simple("TO_BOOL")]
    elif _pushes_method(instruction):
        after = [create.push_null(), create.swap(2)] if table.NULL_FIRST else [create.push_null()]
        if made.opname == "LOAD_SUPER_ATTR":
            made.arg = (made.arg or 0) & ~1
        else:
            made.opname = made.opname.replace("METHOD", "ATTR")
            made.arg = 0
    for extra in (*before, *after):
        extra.positions, extra.handler = made.positions, made.handler
    return before, made, after


def _pushes_method(instruction: Instruction) -> bool:
    if instruction.opname in ("LOAD_ATTR", "LOAD_GLOBAL", "LOAD_SUPER_ATTR"):
        flags = table.FLAG_BITS.get(instruction.opname, 0)
        return bool(flags and (instruction.arg or 0) & 1)
    return instruction.opname == "LOAD_METHOD"


def stack_after(
    instruction: Instruction, before: tuple[bool, ...], jumped: bool
) -> tuple[bool, ...]:
    """Which slots of the stack are empty after the instruction. Only calls take empty slots away."""
    if instruction.opname == "PUSH_NULL":
        return (*before, True)
    if instruction.opname == "COPY":
        return (*before, before[-(instruction.arg or 0)])
    if instruction.opname == "SWAP":
        changed, place = list(before), -(instruction.arg or 0)
        changed[-1], changed[place] = changed[place], changed[-1]
        return tuple(changed)
    if instruction.opname == "CALL":
        return (*before[: len(before) - (instruction.arg or 0) - 2], False)
    if instruction.opname == "CALL_FUNCTION_EX":
        return (*before[: len(before) - 3 - ((instruction.arg or 0) & 1)], False)
    if instruction.opname == "FOR_ITER" and jumped:
        return before[:-1]
    if _pushes_method(instruction):
        popped = {"LOAD_GLOBAL": 0, "LOAD_SUPER_ATTR": 3}.get(instruction.opname, 1)
        pushed = (True, False) if table.NULL_FIRST else (False, True)
        return (*before[: len(before) - popped], *pushed)
    depth = len(before) + effect(instruction, jumped)
    return (*before[:depth], *([False] * (depth - len(before))))


def successors(code: CodeType, outcome: Break) -> list[Successor]:
    """Where the frame can go on, without exceptions: nowhere, at the next instruction, or there and at the target of a jump.

    Raises:
        PlanError: the break is not one of this code.
    """
    flow, index = analyse(code), outcome.instruction
    if not 0 <= index < len(flow.instructions) or flow.depth(index) != len(outcome.stack):
        raise PlanError(
            f"FramePlan: got a break at instruction {index} with {len(outcome.stack)} items on the stack, which {code.co_qualname} does not have"
        )
    instruction = flow.instructions[index]
    empty = tuple(item[0] == "null" for item in outcome.stack)
    found = []
    if falls_through(instruction):
        after = stack_after(instruction, empty, False)
        if instruction.opname == "LOAD_FAST_AND_CLEAR":
            after = (*empty, all(name != instruction.argval for name, _ in outcome.locals))
        found.append(Successor(False, instruction.index + 1, after))
    if instruction.target is not None:
        skipped = len(table.FOR_END) if instruction.opname == "FOR_ITER" else 0
        target = instruction.target.index + skipped
        found.append(Successor(True, target, stack_after(instruction, empty, True)))
    return found


def prologue_end(instructions: list[Instruction]) -> int:
    """Index behind the first RESUME: cells are made before it."""
    for index, instruction in enumerate(instructions):
        if instruction.opname == "RESUME":
            return index + 1
    return 0


def _cells(code: CodeType) -> set[str]:
    return {*code.co_cellvars, *code.co_freevars}


def _uses_super(code: CodeType) -> bool:
    return "__class__" in code.co_freevars and "super" in code.co_names


def _reads_its_frame(code: CodeType) -> bool:
    if not (_FRAME_READERS | _FRAME_READERS_BARE).intersection(code.co_names):
        return False
    instructions = analyse(code).instructions
    for load, following in zip(instructions, instructions[1:], strict=False):
        if load.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            bare = following.opname == "CALL" and not following.arg
            if load.argval in _FRAME_READERS or (bare and load.argval in _FRAME_READERS_BARE):
                return True
    return False


def needed_locals(code: CodeType, instruction: int) -> set[str]:
    """Variables, other than cells, that a break at this instruction must supply if they are bound."""
    flow = analyse(code)
    needed = flow.live(instruction) - _cells(code)
    if _uses_super(code):
        needed.add(code.co_varnames[0])
    return needed


def why_not_resumable(code: CodeType, instruction: int) -> str | None:
    """Why a frame cannot break at this instruction, in words for the user; None if it can."""
    flow = analyse(code)
    if code.co_flags & GENERATOR_FLAGS:
        return "it is a generator or coroutine"
    if code.co_flags & (CO_OPTIMIZED | CO_NEWLOCALS) != CO_OPTIMIZED | CO_NEWLOCALS:
        return "it is the body of a class or module"
    if flow.handling(instruction) > 0:
        return "it is handling an exception (in `except`, or in `finally` after one)"
    begin = prologue_end(flow.instructions)
    if any(i.opname == "MAKE_CELL" for i in flow.instructions[begin:]):
        return "a comprehension's variable is captured by an inner function"
    if _reads_its_frame(code):
        return "it looks at its own variables, as locals() and eval() do"
    if _uses_super(code) and code.co_varnames[0] in code.co_cellvars:
        return (
            "it uses super() without arguments while an inner function captures its first argument"
        )
    return None


def origin(code: CodeType) -> tuple[CodeType, int] | None:
    """Of a resume function's code: the original code and the index of the instruction where it goes on; None for other code."""
    if code.co_consts and isinstance(mark := code.co_consts[-1], tuple) and mark[:1] == (_MARK,):
        return mark[1], mark[2]
    return None


def is_resume(code: CodeType) -> bool:
    """Whether this is the code of a resume function."""
    return origin(code) is not None


def _in_original(code: CodeType, index: int) -> tuple[CodeType, int]:
    """The original code, and the index there, of an instruction of a code that may be a resume function's."""
    found = origin(code)
    if found is None:
        return code, index
    root, start = found
    flow = analyse(root)
    body = _body(flow, start)
    prologue = len(analyse(code).instructions) - len(body)
    return root, body[index - prologue].index


def _body(flow: Flow, start: int) -> list[Instruction]:
    reached = reachable(flow.instructions, flow.instructions[start])
    return [i for i in flow.instructions if i in reached]


def parameters(code: CodeType, successor: Successor, outcome: Break) -> tuple[str, ...]:
    """Names of the resume function's arguments, in order."""
    cells, keep = _cells(code), _uses_super(code)
    live = analyse(code).live(successor.index)
    if keep:
        live |= {code.co_varnames[0], "__class__"}
    bound = {name for name, _ in outcome.locals}
    broken = analyse(code).instructions[outcome.instruction]
    if broken.opname == "STORE_FAST" and outcome.stack[-1][0] != "null":
        bound.add(broken.argval)
    elif broken.opname in ("STORE_FAST", "DELETE_FAST", "LOAD_FAST_AND_CLEAR"):
        bound.discard(broken.argval)
    # In the order of the original code's slots, so that resume functions of one place are alike.
    order = origin(code)
    original = order[0] if order else code
    names = [n for n in original.co_varnames if n in live and n in bound and n not in cells]
    held = [f".cell.{n}" for n in (*original.co_cellvars, *original.co_freevars) if n in live]
    stack = [f".stack.{i}" for i, empty in enumerate(successor.stack) if not empty]
    return (*names, *held, *stack)


_made: weakref.WeakValueDictionary[tuple[Any, ...], CodeType] = weakref.WeakValueDictionary()


def resume_codes(plan: FramePlan, code: CodeType) -> list[CodeType]:
    """The code objects of a plan's resume functions, one for each of `successors`; none if the plan returns.

    Equal breaks of one function give the same object.
    """
    outcome = plan.outcome
    if not isinstance(outcome, Break):
        return []
    found = []
    for successor in successors(code, outcome):
        root, index = _in_original(code, successor.index)
        names = parameters(code, successor, outcome)
        key = (id(root), index, names, successor.stack)  # the made code keeps its root alive
        made = _made.get(key)
        if made is None:
            made = _made[key] = _resume_code(root, index, names, successor.stack)
        found.append(made)
    return found


def _resume_code(
    root: CodeType, index: int, names: tuple[str, ...], stack: tuple[bool, ...]
) -> CodeType:
    flow = analyse(root)
    cells = _cells(root)
    target = flow.instructions[index]
    prologue: list[Instruction] = []
    if root.co_freevars:
        # Every cell slot is filled, whether it is passed or not: CPython looks into them to make `locals()`.
        prologue.append(create.copy_free_vars(len(root.co_freevars)))
    prologue += [create.make_cell(name) for name in root.co_cellvars]
    for name in names:
        if name.startswith(".cell."):
            prologue += [create.load_fast(name), create.store_fast(name.removeprefix(".cell."))]
    prologue.append(create.resume())
    for place, empty in enumerate(stack):
        prologue.append(create.push_null() if empty else create.load_fast(f".stack.{place}"))
    prologue.append(create.jump_to(target))
    line = target.line or root.co_firstlineno
    for instruction in prologue:
        instruction.positions = (line, line, None, None)
    others = tuple(n for n in root.co_varnames if n not in names and n not in cells)
    title = f"resume_in_{root.co_name}_at_{line}"
    made = assemble(
        [*prologue, *_body(flow, index)],
        root,
        co_varnames=(*names, *others),
        co_argcount=len(names),
        co_posonlyargcount=0,
        co_kwonlyargcount=0,
        co_flags=root.co_flags & ~(CO_VARARGS | CO_VARKEYWORDS),
        co_name=title,
        co_qualname=title,
    )
    return made.replace(co_consts=(*made.co_consts, (_MARK, root, index)))


def make_function(code: CodeType, module_globals: dict[str, Any]) -> FunctionType:
    """The function of a resume code. Its free variables arrive as arguments; the closure only has the size that CPython asks for."""
    closure = tuple(CellType() for _ in code.co_freevars)
    return FunctionType(code, module_globals, code.co_name, None, closure)
