"""Running passes in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from argand_c10 import logs, metrics
from argand_fx import spec
from argand_fx.config import config

if TYPE_CHECKING:
    from argand_fx.graph_module import GraphModule

__all__ = ["run"]

Pass = Callable[["GraphModule"], object]


def run(
    passes: Iterable[Pass], gm: GraphModule, *, check: bool | None = None, compiler: bool = False
) -> bool:
    """Apply each pass to the module's graph, in order.

    Args:
        passes: functions `pass(gm) -> changed`; a pass is known in logs and errors by its function's name.
        gm: changed in place; its code is generated anew when next needed.
        check: check the graph before and after each pass (`argand_fx.spec`). By default as
            `argand_fx.config.check_passes` says.
        compiler: check the narrower rules of compiler graphs.

    Returns:
        Whether any pass changed the graph.

    Raises:
        SpecError: if a pass leaves a graph that breaks the rules; its name is in the message.
    """
    if check is None:
        check = config.check_passes
    log = logs.channel("graph")
    changed_any = False
    if check:
        spec.check(gm.graph, compiler=compiler)
    for apply in passes:
        name = getattr(apply, "__name__", repr(apply))
        with metrics.timed(name):
            changed = bool(apply(gm))
        changed_any |= changed
        if check:
            try:
                spec.check(gm.graph, compiler=compiler)
            except spec.SpecError as error:
                raise spec.SpecError(f"after the pass {name}: {error}") from None
        log.info("%s: %s", name, "changed" if changed else "no change")
    if changed_any:
        gm._forget_code()
    return changed_any
