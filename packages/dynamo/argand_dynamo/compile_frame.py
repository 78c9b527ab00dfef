"""Compiles one call's frame: tracing, graph, plan, replacement."""

from __future__ import annotations

import io
import types
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import argand_c10
from argand_autograd import is_grad_enabled, set_grad_enabled
from argand_autograd.graph_ops import keep_grad_mode
from argand_c10 import debug_trace, logs, metrics
from argand_c10.function_mode import no_function_modes
from argand_c10.records import Record, emit
from argand_dynamo import _C
from argand_dynamo._C import GuardTree
from argand_dynamo.autocast_calls import called_outside, outside_of_regions
from argand_dynamo.backends import lookup_backend
from argand_dynamo.causes import CAUSES
from argand_dynamo.configuration import config
from argand_dynamo.control_nodes import compile_in_pieces, has_control
from argand_dynamo.convert_frame import (
    CodeState,
    Compilation,
    Settings,
    report_break,
    resume_function,
)
from argand_dynamo.dynamic import DynamicShapes
from argand_dynamo.exceptions import (
    BreakTrace,
    GraphBreak,
    PlainOnce,
    RecompileLimitError,
    SkipFrame,
    break_trace,
)
from argand_dynamo.finish import Finished, finish, with_backend_guards
from argand_dynamo.frame_plan import Break
from argand_dynamo.guards import describe_guards, describe_source
from argand_dynamo.guards.build import state_guards
from argand_dynamo.interpreter import StopTrace
from argand_dynamo.plan_code import RuntimeObjects, assemble_plan
from argand_dynamo.reconstruct import NotReconstructible
from argand_dynamo.resume import resume_codes, why_not_resumable
from argand_dynamo.tracer import Tracer
from argand_dynamo.trust import is_library_file, note_compiler
from argand_dynamo.variables.functions import GeneratorVariable
from argand_fx.artifact import BackendArtifact

__all__ = ["compile_frame"]


def compile_frame(
    function: types.FunctionType, values: tuple[Any, ...], state: CodeState, settings: Settings
) -> Compilation | None:
    """The compiled form for a call; None: the function itself runs, this time."""
    grad_mode = is_grad_enabled()
    code = function.__code__
    try:
        with (
            debug_trace.compilation(function.__qualname__, code.co_filename, code.co_firstlineno),
            metrics.timed("dynamo"),
            no_function_modes(),
        ):
            return _compile(function, values, state, settings)
    except (GraphBreak, RecompileLimitError):
        raise
    except SkipFrame as skip:
        return _skip(function, skip, settings)
    except PlainOnce as once:
        state.waits += 1
        _report_wait(function, once)
        return None
    except RecursionError as error:
        if settings.fullgraph:
            raise
        return _skip(function, SkipFrame(f"tracing is too deep ({error})"), settings)
    except Exception as error:
        if (
            settings.fullgraph
            or not config.suppress_errors
            or getattr(error, "argand_user_error", False)
        ):
            raise
        logs.channel("perf_hints").info(
            "error while compiling %s", function.__qualname__, exc_info=True
        )
        return _skip(
            function, SkipFrame(f"{type(error).__name__} while compiling: {error}"), settings
        )
    finally:
        if is_grad_enabled() != grad_mode:
            set_grad_enabled(grad_mode)


def _skip(function: types.FunctionType, skip: SkipFrame, settings: Settings) -> Compilation:
    code = function.__code__
    message = f"{function.__qualname__} runs as plain Python: {skip}"
    if settings.fullgraph:
        raise GraphBreak(message, "FB0001", code.co_filename, code.co_firstlineno)
    fix = (
        skip.cause.fix
        if skip.cause is not None
        else "move the construct into a function of its own"
    )
    emit(Record("fallback", "FB0001", message, fix, code.co_filename, code.co_firstlineno))
    return Compilation(GuardTree(list(skip.guards)), None, None, hooked=True)


def _report_wait(function: types.FunctionType, once: PlainOnce) -> None:
    file, line, _ = once.location or (function.__code__.co_filename, 0, "")
    message = f"{function.__qualname__} runs as plain Python this time: {once}"
    emit(Record("fallback", "FB0002", message, "call the cached function once before", file, line))


def _compile(
    function: types.FunctionType, values: tuple[Any, ...], state: CodeState, settings: Settings
) -> Compilation:
    code = function.__code__
    if code.co_flags & 0x2A0:
        raise SkipFrame("it is a generator or coroutine")
    if argand_c10.get_default_device().type != "cpu":
        cause = CAUSES["default_device"]
        raise SkipFrame(cause.summary, cause, state_guards())
    finished, stopped, tx = _trace(function, values, state, settings)
    metrics.count("traces")
    plan = finished.plan
    graph = None if finished.module is None else _compile_graph(finished, settings)
    plan = with_backend_guards(tx, plan)
    _log(plan, code)
    if finished.module is None and not isinstance(plan.outcome, Break) and not plan.effects:
        # Nothing to run but the function itself.
        return Compilation(GuardTree(plan.guards), plan, None)
    if isinstance(plan.outcome, Break) and stopped is not None:
        plan = replace(plan, outcome=replace(plan.outcome, record=_break_record(stopped, function)))
        report_break(plan)
    resume = [
        resume_function(made, function.__globals__, settings) for made in resume_codes(plan, code)
    ]
    if plan.graph is not None and isinstance(settings.backend, str):
        artifact = (
            graph.serialize() if settings.stores and isinstance(graph, BackendArtifact) else None
        )
        plan = replace(plan, graph=replace(plan.graph, backend=settings.backend, artifact=artifact))
    replacement = assemble_plan(plan, code, RuntimeObjects(called_outside(graph, plan), resume))
    bytecode = logs.channel("bytecode")
    if bytecode.isEnabledFor(20):
        bytecode.info("%s\n%s\n%s", plan.name, plan, _bytecode_text(replacement.code))
    if debug_trace.enabled():
        debug_trace.add("guards", describe_guards(plan.guards, code).splitlines())
        debug_trace.add("bytecode", _bytecode_text(replacement.code))
    return Compilation(GuardTree(plan.guards), plan, replacement, isinstance(plan.outcome, Break))


def _log(plan: Any, code: types.CodeType) -> None:
    guards = logs.channel("guards")
    if guards.isEnabledFor(20):
        guards.info("%s\n%s", plan.name, describe_guards(plan.guards, code))
    dynamic = logs.channel("dynamic")
    for name, (kind, source, dim) in plan.symbols.items():
        what = "the value" if kind == "value" else f"the {kind} of dimension {dim}"
        dynamic.info("%s: %s is %s of %s", plan.name, name, what, describe_source(source, code))


def _bytecode_text(code: types.CodeType) -> str:
    import dis  # for reports only

    text = io.StringIO()
    dis.dis(code, file=text)
    return text.getvalue()


def _trace(
    function: types.FunctionType, values: tuple[Any, ...], state: CodeState, settings: Settings
) -> tuple[Finished, BreakTrace | None, Tracer]:
    """Run the frame, again with an earlier end each time that it cannot be traced or rebuilt as far as it went."""
    stop_at: int | None = None
    stopped: BreakTrace | None = None
    seen: dict[Any, Any] = {}
    while True:
        tx = Tracer(function, DynamicShapes(state.history, settings.dynamic), stop_at)
        tx.may_wait = state.waits < config.recompile_limit
        tx.whole = settings.fullgraph
        value = None
        try:
            value = tx.trace(list(values))
        except StopTrace:
            pass
        except BreakTrace as stop:
            if settings.fullgraph:
                raise fullgraph_error(stop, function) from stop.original
            step = tx.root.step - 1
            if stop_at is not None and step >= stop_at:
                raise SkipFrame(f"tracing is not repeatable: {stop}", stop.cause) from None
            stopped, stop_at, seen = stop, step, tx.guards
            _check_resumable(tx, stop)
            continue
        if value is None:
            tx.guard_callee(seen)
        try:
            return finish(tx, value), stopped, tx
        except NotReconstructible as missing:
            birth = tx.births.get(id(missing.variable))
            end = tx.root.step if stop_at is None else stop_at
            stopped = not_reconstructible(missing, tx)
            if settings.fullgraph:
                raise fullgraph_error(stopped, function) from None
            if birth is None or birth >= end or _would_close_late(missing.variable, tx, value):
                raise SkipFrame(str(stopped), stopped.cause) from None
            stop_at, seen = birth, {}


def _would_close_late(variable: Any, tx: Tracer, value: Any) -> bool:
    """Whether a frame that ends, or a loop in it, leaves a generator that may have cleanup to do: functions that go on after a break would hold it longer."""
    if not isinstance(variable, GeneratorVariable):
        return False
    looped = any(item is variable for item in tx.root.stack)
    return variable.awaits_cleanup() if value is not None else looped and variable.may_clean_up()


def not_reconstructible(missing: NotReconstructible, tx: Tracer) -> BreakTrace:
    stop = break_trace("not_reconstructible", missing.variable.describe())
    stop.stack.append(tx.root.location)
    return stop


def _check_resumable(tx: Tracer, stop: BreakTrace) -> None:
    why = why_not_resumable(tx.root.code, tx.root.current.index)
    if why is not None:
        raise SkipFrame(f"{stop}, and the frame cannot be resumed there: {why}", stop.cause)


def _user_location(stop: BreakTrace, function: types.FunctionType) -> tuple[str, int]:
    for file, line, _ in stop.stack:
        if not is_library_file(file):
            return file, line
    code = function.__code__
    return (
        (stop.stack[0][0], stop.stack[0][1])
        if stop.stack
        else (code.co_filename, code.co_firstlineno)
    )


def _break_record(stop: BreakTrace, function: types.FunctionType) -> Record:
    file, line = _user_location(stop, function)
    return Record("graph_break", stop.cause.code, str(stop), stop.cause.fix, file, line)


def fullgraph_error(stop: BreakTrace, function: types.FunctionType) -> BaseException:
    if stop.cause.code == "GB0009" and stop.original is not None:
        return _with_note(stop.original, stop, function)
    file, line = _user_location(stop, function)
    return GraphBreak(
        f"{function.__qualname__}: fullgraph=True, but {stop}\n  at {file}:{line}\n  fix: {stop.cause.fix}",
        stop.cause.code, file, line,
    )  # fmt: skip


def _with_note(
    error: BaseException, stop: BreakTrace, function: types.FunctionType
) -> BaseException:
    file, line = _user_location(stop, function)
    error.add_note(f"while tracing {function.__qualname__}, at {file}:{line}")
    return error


def _compile_graph(finished: Finished, settings: Settings) -> Callable[..., Any]:
    module = finished.module
    assert module is not None
    metrics.count("graphs")
    graph_log = logs.channel("graph")
    if graph_log.isEnabledFor(20):
        graph_log.info("%s\n%s", finished.plan.name, module.graph)
    if debug_trace.enabled():
        debug_trace.add("graph", module)
    backend = lookup_backend(settings.backend)
    named = isinstance(settings.backend, str) and settings.backend != "eager"
    if named and has_control(module):
        compiled = compile_in_pieces(module, settings)
    else:
        with metrics.timed("backend"):
            compiled = outside_of_regions(backend)(
                module, list(finished.inputs), **dict(settings.options)
            )
    note_compiler(backend)
    note_compiler(compiled)
    if not callable(compiled):
        raise TypeError(
            f"compile: the backend {settings.backend!r} returned {type(compiled).__name__}, expected a callable"
        )
    if finished.grad_modes is not None:
        begin, left = finished.grad_modes
        # A backend of the user may run the graph itself, switches and all.
        if begin != left or not isinstance(compiled, BackendArtifact):
            compiled = keep_grad_mode(compiled, left)
            assert isinstance(compiled, types.FunctionType)
            _C.skip_code(compiled.__code__)
    function: Callable[..., Any] = compiled
    return function
