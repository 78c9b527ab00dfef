"""What the parts of `Tracer` share."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

from argand_dynamo.variables.base import Source, Variable

if TYPE_CHECKING:
    from argand_dynamo.interpreter import RootFrame, SymbolicFrame
    from argand_dynamo.tracer import Tracer
    from argand_dynamo.variables.functions import CellVariable, FunctionVariable
    from argand_fx.shapes import GraphBuilder

__all__ = ["TracerState"]


class TracerState:
    """Attributes of a tracer; each part of it may use the methods of the others.

    Attributes:
        tx: the tracer itself.
        root: the outermost frame; `root_globals` are its globals.
        frames: the frames that are running, outermost first.
        builder: where operators go; another one than the graph's while a custom function is traced.
        class_reads, class_guards: class attributes that were looked up, and those that are guarded.
        class_sources: a path to each class that has one.
        known: variables of real objects, by id; `keep` keeps the objects alive.
        constants: variables of constants by path.
        functions, cells, lasting_values: variables of functions, cells and other objects that are not guarded, by id.
        global_values, global_stores: globals by (id of the module's dict, name).
        changes: how often the trace has changed objects that existed before, or globals.
    """

    tx: Tracer
    root: RootFrame
    root_globals: dict[str, Any]
    frames: list[SymbolicFrame]
    builder: GraphBuilder
    class_guards: list[tuple[type, tuple[Any, ...]]]
    class_reads: dict[tuple[type, str], tuple[Any]]
    class_sources: dict[type, Source]
    known: dict[int, Variable]
    keep: list[Any]
    constants: dict[Any, Variable]
    functions: dict[int, FunctionVariable]
    cells: dict[int, CellVariable]
    lasting_values: dict[int, Variable]
    global_values: dict[tuple[int, str], Variable]
    global_stores: dict[tuple[int, str], tuple[Any, Variable]]
    changes: int
    inlined: dict[types.CodeType, FunctionVariable]

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
