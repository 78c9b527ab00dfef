"""Compilation: `compile` itself, and what is said, counted and reported about it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import argand_dynamo
from argand_c10 import debug_trace, metrics, records
from argand_c10.logs import set_logs
from argand_c10.records import Record
from argand_dynamo import (
    allow_in_graph,
    disable,
    explain,
    get_default_backend,
    graph_break,
    is_compiling,
    is_exporting,
    mark_dynamic,
    register_backend,
    set_default_backend,
    set_stance,
)
from argand_dynamo import list_backends as _list_backends

# Named by where they are: neither is imported before a graph is there to compile.
register_backend("aot_eager", "argand_aot:aot_eager", load="argand_aot:load_aot_eager")
register_backend("cudagraphs", "argand_inductor:cudagraphs")
register_backend(
    "inductor",
    "argand_inductor:backend",
    load="argand_inductor:load_backend",
    check="argand_inductor.options:check_options",
)

__all__ = [
    "Record",
    "allow_in_graph",
    "assume_constant_result",
    "collect_records",
    "compile",
    "counters",
    "cudagraph_mark_step_begin",
    "disable",
    "enable_report",
    "explain",
    "get_default_backend",
    "graph_break",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "mark_dynamic",
    "nested_compile_region",
    "phase_times",
    "register_backend",
    "reset",
    "set_default_backend",
    "set_logs",
    "set_stance",
]

compile = argand_dynamo.compile
T = TypeVar("T")


def assume_constant_result(fn: T) -> T:
    """`fn` itself: it is traced as any function, which needs no such promise."""
    return fn


def nested_compile_region(fn: T) -> T:
    """`fn` itself: what is called several times is compiled once where its graphs are alike."""
    return fn


is_dynamo_compiling = is_compiling
counters = metrics.counters
phase_times = metrics.phase_times


def cudagraph_mark_step_begin() -> None:
    """Taken, and changes nothing: results of programs that are CUDA graphs stay as they are when the program runs again."""


def list_backends(exclude_tags: Sequence[str] | None = ("debug", "experimental")) -> list[str]:
    """The names that `compile(..., backend=...)` takes, in alphabetical order; none of them has a tag that could be excluded."""
    return _list_backends()


def reset() -> None:
    """Forget all compiled code and all counts of this process; the disk cache stays."""
    argand_dynamo.reset()
    metrics.reset()


@contextmanager
def collect_records() -> Iterator[list[Record]]:
    """Gather the records of graph breaks, recompilations and fallbacks while the context is open, in order."""
    with records.collect() as found:
        yield found


def enable_report(folder: str | os.PathLike[str] | None = None) -> Path:
    """Write an HTML page for every compilation from now on: graphs, fusion groups, generated code beside the user's lines.

    Meanwhile nothing is taken from the disk cache, so that every stage has something to show.

    Args:
        folder: where the pages go; by default ARGAND_COMPILE_DEBUG_DIR, else `argand_compile_debug` in the working folder.

    Returns:
        Path of the index page.
    """
    from argand_inductor.report import enable_report as enable

    return enable(folder)


if debug_trace.enabled():
    enable_report()
