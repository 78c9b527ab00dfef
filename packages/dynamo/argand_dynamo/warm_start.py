"""Compiled forms that earlier processes left on disk: from stored plans and artifacts to guards and replacements, without tracing.

Nothing here loads the tracer.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from argand_c10 import logs, metrics
from argand_dynamo._C import GuardTree
from argand_dynamo.backends import load_artifact
from argand_dynamo.frame_plan import FramePlan, PlanError
from argand_dynamo.plan_code import Replacement, RuntimeObjects, assemble_plan
from argand_dynamo.plan_store import load_plans, store_plan
from argand_dynamo.resume import resume_codes

__all__ = ["Restored", "StoredForms", "keep"]


@dataclass(frozen=True, slots=True)
class Restored:
    """A compiled form, as it was made by an earlier process."""

    tree: GuardTree
    plan: FramePlan
    replacement: Replacement


class StoredForms:
    """The stored compiled forms of one code object; read from disk once, when first asked for.

    Args:
        code: of a function or resume function.
        config: all settings on which compiled forms depend, as given to `keep`.
    """

    def __init__(self, code: CodeType, config: str) -> None:
        self._code = code
        self._config = config
        self._waiting: list[tuple[GuardTree, FramePlan]] | None = None

    def find(
        self,
        function: FunctionType,
        values: tuple[Any, ...],
        resume_function: Callable[[CodeType], Callable[..., Any]],
    ) -> Restored | None:
        """The first form whose guards hold for a call, ready to run; None if there is none. Each form is given out once.

        Args:
            values: of the function's parameters, as `CompiledFunction.bind` gives them.
            resume_function: makes the callable of a resume function's code.
        """
        if self._waiting is None:
            self._waiting = list(self._read())
        for entry in self._waiting:
            tree, plan = entry
            if not tree.check(values, function):
                continue
            self._waiting.remove(entry)
            replacement = self._build(plan, resume_function)
            return None if replacement is None else Restored(tree, plan, replacement)
        return None

    def _read(self) -> list[tuple[GuardTree, FramePlan]]:
        found = []
        for plan in load_plans(self._code, self._config):
            try:
                found.append((GuardTree(plan.guards), plan))
            except (TypeError, ValueError) as error:
                logs.channel("cache").info("a plan of %s has other guards: %s", plan.name, error)
        return found

    def _build(
        self, plan: FramePlan, resume_function: Callable[[CodeType], Callable[..., Any]]
    ) -> Replacement | None:
        graph = None
        if plan.graph is not None:
            graph = load_artifact(plan.graph.backend, plan.graph.artifact or {})
            if graph is None:
                logs.channel("cache").info("the graph of %s is gone", plan.name)
                return None
            metrics.count("artifacts_loaded")
        try:
            functions = [resume_function(code) for code in resume_codes(plan, self._code)]
            made = assemble_plan(plan, self._code, RuntimeObjects(graph, functions))
        except (PlanError, IndexError, KeyError) as error:
            # A plan that passed its checks but was not made for this code.
            logs.channel("cache").info("a plan of %s does not fit: %s", plan.name, error)
            return None
        metrics.count("plans_loaded")
        return made


def keep(code: CodeType, plan: FramePlan, graph: Any, config: str) -> bool:
    """Leave a compiled form to later processes.

    Args:
        plan: with all inlined functions; its graph's backend and artifact are filled in here.
        graph: the compiled graph; a `BackendArtifact` if it can be kept. None if the plan has none.

    Returns:
        Whether it could be kept; if not, one `cache` record says why.
    """
    if plan.graph is not None:
        artifact, backend = None, plan.graph.backend
        if hasattr(graph, "serialize"):
            try:
                artifact, backend = graph.serialize(), graph.backend
            except (TypeError, ValueError, OSError) as error:
                logs.channel("cache").info("the graph of %s cannot be kept: %s", plan.name, error)
        call = dataclasses.replace(plan.graph, artifact=artifact, backend=backend)
        plan = dataclasses.replace(plan, graph=call)
    return store_plan(code, plan, config)
