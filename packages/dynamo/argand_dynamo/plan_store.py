"""Frame plans on disk: what a fresh process loads instead of tracing.

A plan is kept under the hash of its function's code, of everything that it was made with (Python, the packages, their native libraries) and of the settings
that the caller names. It is used only while every inlined function has the code that it had.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import sys
import time
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any

import argand_c10
from argand_c10 import logs
from argand_c10.code_digest import hash_code
from argand_c10.disk_cache import DiskCache
from argand_c10.records import Record, emit
from argand_c10.source_digest import source_digest
from argand_dynamo import _C
from argand_dynamo.frame_plan import PLAN_VERSION, FramePlan, InlinedCode, PlanError
from argand_dynamo.guards.portable import portable
from argand_dynamo.plan_data import NotPlainError, UnknownNameError, find_global, global_name

__all__ = ["findable_code", "inlined_code", "load_plans", "store_plan"]

# Plans of one function; as many as a process makes before it gives up on the function. A new one takes the oldest one's place.
_MOST = 8
_LOCK_SECONDS = 5.0
# What traces; backends keep what they made under names of their own sources.
_PACKAGES = ("argand_c10", "argand_aten", "argand_autograd", "argand_fx", "argand_dynamo")


@functools.cache
def _environment() -> str:
    """All that the plans of this process depend on beside their functions; a rebuilt native library and an edited tracer make other plans."""
    packages = [source_digest(name) for name in _PACKAGES]
    return repr((sys.version, PLAN_VERSION, argand_c10.ABI_VERSION, packages))


def _key(code: CodeType, config: str) -> str:
    text = f"{hash_code(code)}|{code.co_firstlineno}|{_environment()}|{config}"
    return hashlib.sha256(text.encode()).hexdigest()[:40]


# -- inlined functions --------------------------------------------------------------------------


def inlined_code(function: FunctionType) -> InlinedCode:
    """The entry of a function that was inlined."""
    code = function.__code__
    return InlinedCode(function.__module__ or "", code.co_qualname, hash_code(code))


def _codes_in(value: Any) -> Iterator[CodeType]:
    """The code objects of a function, or of what wraps functions."""
    for _ in range(10):
        if isinstance(value, property):
            for part in (value.fget, value.fset, value.fdel):
                yield from _codes_in(part)
            return
        if isinstance(value, (staticmethod, classmethod, MethodType)):
            value = value.__func__
            continue
        if isinstance(value, functools.partial):
            value = value.func
            continue
        code = getattr(value, "__code__", None)
        if isinstance(code, CodeType):
            yield code
        value = getattr(value, "__wrapped__", None)
        if value is None:
            return


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


def _still_there(entry: InlinedCode) -> bool:
    """Whether loaded modules hold this code.

    Raises:
        UnknownNameError: the module is not loaded, or has nothing of that name.
    """
    outside = entry.qualname.partition(".<locals>")[0]
    if not outside or "<" in outside:
        raise UnknownNameError(f"{entry.module} has no name for {entry.qualname}")
    for code in _codes_in(find_global(entry.module, outside)):
        candidates = _nested(code) if outside != entry.qualname else (code,)
        if any(hash_code(candidate) == entry.code_hash for candidate in candidates):
            return True
    return False


def findable_code(functions: Iterable[FunctionType]) -> tuple[InlinedCode, ...]:
    """The entries of those inlined functions that a later process finds by their names."""
    found = []
    for function in functions:
        entry = inlined_code(function)
        try:
            if _still_there(entry):
                found.append(entry)
        except UnknownNameError:
            continue
    return tuple(found)


# -- the store ----------------------------------------------------------------------------------

_cache = DiskCache("plans")
# Stored guards of kind CODE hold hashes.
_C.set_code_hash(hash_code)


def _not_stored(plan: FramePlan, code: CodeType, why: str) -> bool:
    emit(
        Record(
            "cache",
            "FP001",
            f"the plan of {plan.name} was not kept for later processes: {why}",
            "use functions and classes that are defined in a module, outside of functions, and let them be reached by name",
            code.co_filename,
            code.co_firstlineno,
        )
    )
    return False


def _guarded_functions(guards: Iterable[tuple[Any, str, Any]]) -> Iterator[InlinedCode]:
    """Functions that guards name: by name they would be found again whatever their code has become."""
    for _, kind, value in guards:
        found = value[1] if kind == "CLASS_ATTR" and len(value) == 2 else value
        if isinstance(found, FunctionType) and (name := global_name(found)) is not None:
            yield InlinedCode(*name, hash_code(found.__code__))


def _portable(plan: FramePlan) -> FramePlan:
    guards = tuple(tuple(guard) for guard in portable(plan.guards, hash_code))
    # What a CODE guard checks at every call needs no check here.
    checked = {guard[2] for guard in guards if guard[1] == "CODE"}
    inlined = dict.fromkeys([*plan.inlined, *_guarded_functions(guards)])
    needed = tuple(i for i in inlined if i.code_hash not in checked)
    return FramePlan(
        plan.name, guards, plan.outcome, plan.graph, plan.symbols, plan.effects, needed
    )


def store_plan(code: CodeType, plan: FramePlan, config: str = "") -> bool:
    """Keep a plan for later processes.

    Args:
        code: of the function (or resume function) that the plan is of.
        plan: if it calls a graph, with the graph's artifact.
        config: all settings on which the plan depends.

    Returns:
        Whether it could be kept. If not, one record says why.
    """
    if plan.graph is not None and plan.graph.artifact is None:
        return _not_stored(
            plan,
            code,
            f"its graph, compiled by {plan.graph.backend or 'a callable'}, cannot be stored",
        )
    plan = _portable(plan)
    for entry in plan.inlined:
        try:
            known = _still_there(entry)
        except UnknownNameError as error:
            return _not_stored(plan, code, f"an inlined function cannot be found by name: {error}")
        if not known:
            return _not_stored(
                plan,
                code,
                f"{entry.module}.{entry.qualname} now leads to another function than was inlined",
            )
    try:
        data = json.dumps(plan.to_json(), allow_nan=False, separators=(",", ":")).encode()
    except (NotPlainError, TypeError, ValueError) as error:
        return _not_stored(plan, code, str(error))
    key, files = _key(code, config), {"plan.json": data}
    digest = hashlib.sha256(data).hexdigest()
    with _cache.lock(key, _LOCK_SECONDS) as locked:
        if not locked:
            return False
        oldest, number = math.inf, 0
        for candidate in range(_MOST):
            known_entry = _cache.get(f"{key}.{candidate}")
            if known_entry is None:
                number = candidate
                break
            if known_entry.hashes.get("plan.json") == digest:
                return True
            if (made := known_entry.manifest.get("made", 0.0)) < oldest:
                oldest, number = made, candidate
        _cache.discard(f"{key}.{number}")
        manifest = {"name": plan.name, "made": time.time()}
        return _cache.put(f"{key}.{number}", files, manifest) is not None


def _report_bad(code: CodeType, error: Exception) -> None:
    emit(
        Record(
            "cache",
            "FP002",
            f"the stored plan of {code.co_qualname} was not used: {error}; it was removed",
            "nothing to do: it is made again",
            code.co_filename,
            code.co_firstlineno,
        )
    )


def load_plans(code: CodeType, config: str = "") -> list[FramePlan]:
    """The stored plans of a function's code that hold in this process, verified; none if there are none.

    Only reads: modules that a plan names but that are not loaded make it wait, not load them, unless they are Argand's own. Plans that an edit has overtaken are removed.
    """
    key = _key(code, config)
    found = []
    entries = _cache.folder / "entries"
    for number in range(_MOST):
        if not (entries / f"{key}.{number}").is_dir():
            continue
        entry = _cache.get(f"{key}.{number}")
        if entry is None:
            continue
        try:
            plan = FramePlan.from_json(json.loads(entry.contents["plan.json"]))
            stale = [i for i in plan.inlined if not _still_there(i)]
        except UnknownNameError as error:
            logs.channel("cache").info("a plan of %s waits: %s", code.co_qualname, error)
            continue
        except (PlanError, ValueError) as error:
            _cache.discard(f"{key}.{number}")
            _report_bad(code, error)
            continue
        if stale:
            _cache.discard(f"{key}.{number}")
            logs.channel("cache").info(
                "a plan of %s is out of date: %s changed", code.co_qualname, stale[0].qualname
            )
            continue
        found.append(plan)
    return found
