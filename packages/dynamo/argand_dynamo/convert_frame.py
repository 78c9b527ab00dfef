"""From a call for which no compiled form holds to one that does: known forms, stored plans, or a new compilation.

The tracer itself (compile_frame.py) is loaded at the first compilation: a process that finds its plans on disk never needs it.
"""

from __future__ import annotations

import importlib
import inspect
import threading
import types
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from argand_autograd._C import _has_saved_tensor_hooks as has_saved_tensor_hooks
from argand_c10 import Module, current_modes, metrics
from argand_c10.collection import gc_paused
from argand_c10.fork import renew_in_child
from argand_c10.records import Record, emit
from argand_dynamo import _C
from argand_dynamo._C import CacheEntry, CompiledFunction, GuardTree
from argand_dynamo.autocast_calls import called_outside
from argand_dynamo.backends import has_loader, load_artifact
from argand_dynamo.caches import clear_all
from argand_dynamo.configuration import config
from argand_dynamo.exceptions import RecompileLimitError
from argand_dynamo.frame_plan import Break, FramePlan, PlanError
from argand_dynamo.history import FrameHistory
from argand_dynamo.known_packages import prepare_packages
from argand_dynamo.plan_code import Replacement, RuntimeObjects, assemble_plan
from argand_dynamo.plan_store import load_plans, store_plan
from argand_dynamo.resume import make_function, resume_codes
from argand_dynamo.stance import current_stance, forced_backend, refuse_to_compile, when_forced
from argand_dynamo.trust import PLAIN, is_compiler, note_compiler

__all__ = [
    "CodeState",
    "Compilation",
    "Owner",
    "Settings",
    "compiled_function",
    "convert",
    "report_break",
    "reset_code",
    "resume_function",
    "states",
]

_lock = threading.RLock()
renew_in_child(_lock)  # another thread may hold it


@dataclass(frozen=True)
class Settings:
    """How functions are compiled; equal settings share compiled forms."""

    backend: Any = "inductor"
    fullgraph: bool = False
    dynamic: bool | None = None
    options: tuple[tuple[str, Any], ...] = field(default=(), hash=False)
    # Of a module, whose compiled forms are not shared with others.
    owner: Owner | None = None
    # Whether plans may be kept; not those of code that is generated.
    keeps: bool = True

    def text(self) -> str:
        """All that a stored plan depends on."""
        parts = (
            self.backend,
            self.fullgraph,
            self.dynamic,
            self.options,
            config.automatic_dynamic_shapes,
            config.specialize_int,
            self.owner.structure if self.owner is not None else "",
        )
        return repr(parts)

    @property
    def stores(self) -> bool:
        """Whether plans made with these settings may be kept on disk."""
        known = isinstance(self.backend, str) and has_loader(self.backend)
        return known and self.keeps and config.cache_plans


@dataclass(frozen=True, slots=True)
class Compilation:
    """One compiled form of a code object. It keeps nothing of the call that it was made for alive.

    Attributes:
        plan: until it is stored; its guards hold their objects, those of the tree do not.
        replacement: None: the function itself runs.
    """

    tree: GuardTree
    plan: FramePlan | None
    replacement: Replacement | None
    hooked: bool = False


@dataclass(slots=True)
class CodeState:
    """All that is known of a code object under some settings.

    Attributes:
        waits: how many calls were left to Python, as they fill caches.
        called: whether a stance has seen a call that is not compiled.
        stored: plans of other processes that no call of this one has asked for; they count as nothing else does.
    """

    history: FrameHistory = field(default_factory=FrameHistory)
    compilations: list[Compilation] = field(default_factory=list)
    stored: list[tuple[GuardTree, FramePlan]] = field(default_factory=list)
    limited: bool = False
    looked_up: bool = False
    waits: int = 0
    called: bool = False


class Owner:
    """Compiled forms of one module, which go with it.

    Args:
        structure: tells modules apart whose stored plans are kept apart, as all share the code of `Module.__call__`.
    """

    __slots__ = ("__weakref__", "states", "structure")

    def __init__(self, structure: str = "") -> None:
        self.structure = structure
        self.states: dict[tuple[types.CodeType, Settings], CodeState] = {}
        _owners.add(self)


_owners: weakref.WeakSet[Owner] = weakref.WeakSet()
_states: dict[tuple[types.CodeType, Settings], CodeState] = {}
_resumes: weakref.WeakValueDictionary[tuple[int, Settings], CompiledFunction] = (
    weakref.WeakValueDictionary()
)
# Attribute of functions that are met while a broken frame runs: their compiled forms by settings.
_FORMS = "_argand_compiled_forms"
_all: weakref.WeakSet[CompiledFunction] = weakref.WeakSet()
# States are kept for this many code objects beyond those whose compiled functions live.
_MOST_STATES = 512


class _Active(threading.local):
    """Of this thread: the settings under which frames are compiled while the hook is on, and the code of a function
    that is to run as it is once."""

    settings: Settings | None = None
    passing: types.CodeType | None = None


_active = _Active()


def states() -> dict[tuple[types.CodeType, Settings], CodeState]:
    """What was compiled, by code object and settings."""
    return _states | {key: state for owner in list(_owners) for key, state in owner.states.items()}


def reset_code() -> None:
    """Forget everything that was compiled."""
    with _lock:
        _states.clear()
        for owner in list(_owners):
            owner.states.clear()
        for compiled in list(_all):
            compiled.clear()
            compiled.disabled = False
        clear_all()


def compiled_function(function: types.FunctionType, settings: Settings) -> CompiledFunction:
    """A callable that compiles the function when it is called."""
    made = CompiledFunction(function, convert)
    made.settings = settings  # type: ignore[attr-defined]
    _all.add(made)
    return made


def convert(compiled: CompiledFunction, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What is to run for a call that no entry of a compiled function holds for; None: the function itself."""
    settings: Settings = compiled.settings  # type: ignore[attr-defined]
    if (backend := forced_backend()) is not None:
        settings = replace(settings, backend=backend, options=())
    function: Any = compiled.__wrapped__
    values = compiled.bind(args, kwargs)
    if (
        values is None or current_modes()
    ):  # dispatch modes see every call; guards keep them from what is compiled
        return None
    with _lock, gc_paused():
        prepare_packages()
        state = _state_of(function.__code__, settings)
        state.compilations = [known for known in state.compilations if known.tree.alive]
        for known in state.compilations:
            if known.tree.check(values, function):
                return _add(compiled, function, known, settings)
        if not state.looked_up and settings.stores:
            state.looked_up = True
            _load_stored(function, state, settings)
        found = _take_stored(function, values, state, settings)
        if found is not None:
            return _add(compiled, function, found, settings)
        if state.limited:
            compiled.disabled = True  # until `reset`, without asking again
            return None
        if current_stance() != "default":
            first, state.called = not state.called, True
            if refuse_to_compile(function, first, _why_not(function, state, values)):
                return None
        if len(state.compilations) >= config.recompile_limit:
            return _refuse(function, settings, state, values)
        if state.compilations:
            _record_recompile(function, state, values)
        tracer = importlib.import_module("argand_dynamo.compile_frame")
        made: Compilation | None = tracer.compile_frame(function, values, state, settings)
        if made is None:
            return None
        if settings.stores and made.plan is not None and made.replacement is not None:
            store_plan(function.__code__, made.plan, settings.text())
        made = replace(made, plan=None)
        state.compilations.insert(0, made)
        return _add(compiled, function, made, settings)


def _forget_entries() -> None:
    """Have every function ask for what it is to run, as its backend is another; what is compiled stays."""
    with _lock:
        for compiled in list(_all):
            compiled.clear()


when_forced.append(_forget_entries)


def _state_of(code: types.CodeType, settings: Settings) -> CodeState:
    key = (code, settings)
    states = _states if settings.owner is None else settings.owner.states
    state = states.pop(key, None) or CodeState()
    states[key] = state  # the most recently used last
    if len(states) > _MOST_STATES:
        del states[next(iter(states))]
    return state


def _add(
    compiled: CompiledFunction, function: types.FunctionType, made: Compilation, settings: Settings
) -> Callable[..., Any]:
    """Put a compiled form into a function's cache; what runs."""
    run: Callable[..., Any] = function
    if made.replacement is not None:
        run = made.replacement.bind(function)
    if made.hooked:
        run = _with_hook(run, function, settings)
    compiled.add_entry(CacheEntry(made.tree, run, made))
    return run


def _with_hook(run: Any, function: types.FunctionType, settings: Settings) -> Callable[..., Any]:
    """`run`, with the frames that it calls compiled too."""
    own_code = run.__code__
    if run is not function:
        _C.skip_code(own_code)

    def run_hooked(*args: Any, **kwargs: Any) -> Any:
        run.__defaults__, run.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
        before, _active.settings = _active.settings, settings
        _active.passing = own_code
        was_on = _C.set_hook(True)
        try:
            return run(*args, **kwargs)
        finally:
            _C.set_hook(was_on)
            _active.settings = before

    return run_hooked


# `Module._call_impl` is traced where hooks are.
_MODULE_CALLS = {Module.__call__.__code__, Module._call_impl.__code__}


def _refuse(
    function: types.FunctionType, settings: Settings, state: CodeState, values: tuple[Any, ...]
) -> None:
    why = state.compilations[0].tree.explain(values, function)
    name, code = _as_written(function, values)
    message = (
        f"{name} was compiled {len(state.compilations)} times; calls of other kinds run as plain "
        f"Python. The last guard that failed: {why[1] if why else 'none'}"
    )
    fix = "mark changing sizes with mark_dynamic, keep changing Python values out of the function, or raise config.recompile_limit"
    if settings.fullgraph:
        raise RecompileLimitError(f"{message}; {fix}")
    state.limited = True
    emit(Record("recompile", "RC0002", message, fix, code.co_filename, code.co_firstlineno))


def _why_not(function: types.FunctionType, state: CodeState, values: tuple[Any, ...]) -> str:
    if not state.compilations:
        return "which is not compiled"
    why = state.compilations[0].tree.explain(values, function)
    return f"for which this guard failed: {why[1] if why else 'none'}"


def _record_recompile(
    function: types.FunctionType, state: CodeState, values: tuple[Any, ...]
) -> None:
    metrics.count("recompiles")
    why = state.compilations[0].tree.explain(values, function)
    name, code = _as_written(function, values)
    message = f"{name} is compiled again: {why[1] if why else 'an earlier form is gone'}"
    emit(Record("recompile", "RC0001", message, "", code.co_filename, code.co_firstlineno))


def _as_written(
    function: types.FunctionType, values: tuple[Any, ...]
) -> tuple[str, types.CodeType]:
    """The function by the name and code that its user knows: a module's call is its `forward`."""
    if function.__code__ in _MODULE_CALLS and values and isinstance(values[0], Module):
        forward = inspect.unwrap(type(values[0]).forward)
        if isinstance(forward, types.FunctionType):
            return forward.__qualname__, forward.__code__
    return function.__qualname__, function.__code__


def report_break(plan: FramePlan) -> None:
    """Count and report the graph break of a plan that comes into use, if it ends in one."""
    if isinstance(plan.outcome, Break) and plan.outcome.record is not None:
        metrics.count("graph_breaks")
        emit(plan.outcome.record)


def resume_function(
    code: types.CodeType, globals_: dict[str, Any], settings: Settings
) -> CompiledFunction:
    """The compiled function of a resume code; one for each code."""
    key = (id(code), settings)
    found = _resumes.get(key)
    if found is None or found.__wrapped__.__code__ is not code:
        found = _resumes[key] = compiled_function(make_function(code, globals_), settings)
    return found


# Stored plans ---------------------------------------------------------------------------------


def _load_stored(function: types.FunctionType, state: CodeState, settings: Settings) -> None:
    """Read the stored plans of a function."""
    with metrics.timed("load_plans"):
        for plan in load_plans(function.__code__, settings.text()):
            with suppress(TypeError, ValueError):
                state.stored.append((GuardTree(plan.guards), plan))


def _take_stored(
    function: types.FunctionType, values: tuple[Any, ...], state: CodeState, settings: Settings
) -> Compilation | None:
    """Take over the first stored plan that holds for a call, if one does."""
    for tree, plan in list(state.stored):
        if not tree.check(values, function):
            continue
        state.stored.remove((tree, plan))
        made = _revive(function, tree, plan, settings)
        if made is not None:
            metrics.count("plans_loaded")
            report_break(plan)
            state.compilations.append(made)
            return made
    return None


def _revive(
    function: types.FunctionType, tree: GuardTree, plan: FramePlan, settings: Settings
) -> Compilation | None:
    graph = None
    if plan.graph is not None:
        graph = load_artifact(plan.graph.backend, plan.graph.artifact or {})
        if graph is None:
            return None
        note_compiler(graph)
    code = function.__code__
    try:
        resume = [
            resume_function(c, function.__globals__, settings) for c in resume_codes(plan, code)
        ]
        replacement = assemble_plan(plan, code, RuntimeObjects(called_outside(graph, plan), resume))
    except (PlanError, TypeError, ValueError):
        return None
    return Compilation(tree, None, replacement, hooked=isinstance(plan.outcome, Break))


# Frames that are met while a broken frame runs ------------------------------------------------


def _is_plain(code: types.CodeType, globals_: dict[str, Any]) -> bool:
    """Whether a frame runs as it is: generated code, the compiler's own, and what asks for it."""
    name = globals_.get("__name__")
    if not isinstance(name, str):
        return code.co_filename.startswith("<")
    return PLAIN in globals_ or is_compiler(name)


def _frame_callback(
    function: types.FunctionType, globals_: dict[str, Any], closure: Any, args: tuple[Any, ...]
) -> Any:
    settings = _active.settings
    code = function.__code__
    if settings is None:
        return None
    if code is _active.passing:
        _active.passing = None
        return None
    if has_saved_tensor_hooks():  # they see what eager keeps, as it is when a checkpoint runs again
        return None
    if (
        _is_plain(code, globals_)
        or code.co_flags & 0x2A0
        or getattr(function, "_argand_disabled", False)
        or code.co_name == "<module>"
    ):
        _C.skip_code(code)
        return None
    forms = function.__dict__.setdefault(_FORMS, {})
    found = forms.get(settings)
    # functools.wraps copies attributes to other functions.
    if found is None or found.__wrapped__ is not function:
        found = compiled_function(function, settings)
        function.__dict__[_FORMS] = {**forms, settings: found}
    return found


_C.set_frame_callback(_frame_callback)
