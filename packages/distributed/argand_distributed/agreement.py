"""What ranks compare and share about compiled programs: which collectives they will call, and what was found by measuring."""

from __future__ import annotations

import itertools
import json
import os.path
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

from argand_c10 import Operator
from argand_distributed import _C

_PREFIX = "collective_"
_LONGEST_CHOICE = (
    60.0  # seconds that a process may take for one choice before the others choose themselves
)


# ---- plans ---------------------------------------------------------------------------------------------------------------
# A plan is a JSON list with a pair for each collective of a graph in one group, in order: what all ranks must have alike, and how it
# is shown. Sizes are not compared here, since they may be symbolic on some ranks only; every call compares them.


def write_plans(graph: Any) -> None:
    """Give the first collective of each group in a graph the plan of all of the group's."""
    calls: dict[str, list[Any]] = {}
    for node in graph.nodes:
        if node.op == "call_function" and isinstance(node.target, Operator):
            values = _arguments(node)
            if node.target.name.startswith(_PREFIX) and "plan" in values:
                calls.setdefault(values["group"], []).append(node)
    for nodes in calls.values():
        plan = json.dumps([_described(node) for node in nodes])
        place = list(_arguments(nodes[0])).index("plan")
        first = nodes[0]
        if place < len(first.args):
            first.args = (*first.args[:place], plan, *first.args[place + 1 :])
        else:
            first.kwargs = {**first.kwargs, "plan": plan}


def _arguments(node: Any) -> dict[str, Any]:
    """A call's arguments by name, those with defaults included."""
    names = parameters(node.target.schema)
    values: dict[str, Any] = dict.fromkeys(names)
    values.update(zip(names, node.args, strict=False))
    values.update(node.kwargs)
    return values


def parameters(schema: str) -> list[str]:
    """The names of the parameters in a schema."""
    given = schema[schema.index("(") + 1 : schema.rindex(") ->")].split(", ")
    return [p.partition("=")[0].split()[-1] for p in given]


def _described(node: Any) -> list[str]:
    values = _arguments(node)
    x = values["input"].meta["val"]
    name = node.target.name.removeprefix(_PREFIX)
    dtype = str(x.dtype).split(".")[-1]
    extra = "".join(f", {values[key]}" for key in ("reduce_op", "src") if key in values)
    file, line = (node.meta.get("location") or (None, 0))[:2]
    place = f" at {os.path.basename(file)}:{line}" if file else ""
    sizes = ", ".join(map(str, x.shape))
    return [f"{name}({dtype}, {len(x.shape)}{extra})", f"{name}({dtype}[{sizes}]{extra}){place}"]


def compare_plans(group: Any, backend: Any, plan: str) -> None:
    """Before the first run of a program here: is it what the other ranks run that have reached the same collective?

    The first rank to come leaves its plan in the store, so a rank asks one question for each new program and never waits.

    Raises:
        DistBackendError: they differ; the group is of no more use.
    """
    if plan in group.plans:
        return
    group.plans.add(plan)
    own = json.dumps([group.ranks[group.rank()], plan])
    key = f"plan/{backend.backend}/{backend.last_seq() + 1}"
    rank, other = json.loads(group.store.compare_set(key, "", own))
    place = _difference(json.loads(plan), json.loads(other))
    if place is None:
        return
    n, mine, theirs = place
    me = group.ranks[group.rank()]
    message = (
        f"compiled program: ranks {rank} and {me} of process group {group.group_name!r} would run different collectives, from call {n + 1} "
        f"of the program on; every rank must compile a program that makes the same calls in the same order\n  rank {me}: {mine}\n  rank {rank}: {theirs}"
    )
    backend.give_up(message)
    raise _C.DistBackendError(message)


def _difference(mine: list[list[str]], theirs: list[list[str]]) -> tuple[int, str, str] | None:
    nothing = ["", "nothing more"]
    for n, (a, b) in enumerate(itertools.zip_longest(mine, theirs, fillvalue=nothing)):
        if a[0] != b[0]:
            return n, a[1], b[1]
    return None


# ---- choices -------------------------------------------------------------------------------------------------------------
class Choices:
    """Choices that the rank which comes first makes for all: a `Sharer` of `argand_c10.agreement`.

    Args:
        store: of all ranks.
        rank: this process's.
    """

    def __init__(self, store: Any, rank: int) -> None:
        self._store = store
        self._rank = str(rank).encode()

    def __call__(self, key: str, compute: Callable[[], Any]) -> Any:
        key = f"choice/{key}"
        try:
            first = self._store.compare_set(f"{key}/by", b"", self._rank)
            if first != self._rank:
                return self._other(key, compute)
        except _C.DistError:  # the store is gone: so is what training together needs
            return compute()
        found: list[Any] = []
        try:
            found.append(compute())
        finally:  # none: others choose themselves
            self._tell(key, found)
        return found[0]

    def _other(self, key: str, compute: Callable[[], Any]) -> Any:
        try:
            self._store.wait([key], timedelta(seconds=_LONGEST_CHOICE))
        except _C.DistStoreError:
            return compute()
        found = json.loads(self._store.get(key))
        return found[0] if found else compute()

    def _tell(self, key: str, found: Iterable[Any]) -> None:
        try:
            self._store.set(key, json.dumps(list(found)))
        except _C.DistError:
            return
