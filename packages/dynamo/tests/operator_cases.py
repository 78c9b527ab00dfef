"""The registry's sample calls, as tests of everything that imitates operators need them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import tools.codegen
from tools.codegen import loader
from tools.codegen.emit_tests import facts, tested
from tools.codegen.runtime import optest_calls, under_test

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(tools.codegen.__file__))))


@lru_cache(None)
def cases() -> list[optest_calls.Case]:
    """One case per operator that has samples; in-place ones change them, and have tests of their own."""
    registry = loader.load([os.path.join(_ROOT, "packages", "aten", "registry")])
    return [
        optest_calls.Case(**facts(op))
        for family in registry.families
        for op in tested(registry, family)
        if "all" not in op.skips and not op.is_inplace
    ]


def calls(case: optest_calls.Case, dtype: str, seed: int = 0) -> Iterator[optest_calls.Call]:
    """The calls of a case with real tensors. Odd seeds make operands of two and more dimensions non-contiguous."""
    for call in optest_calls.sample_calls(case, dtype):
        yield optest_calls.with_tensors(
            call, lambda v: _laid_out(under_test.make(v.array, v.dtype), seed)
        )


def _laid_out(t: Any, seed: int) -> Any:
    if seed == 0 or t.ndim < 2:
        return t
    if seed == 1:  # columns first
        order = list(range(t.ndim))
        swapped = t.permute([*order[:-2], t.ndim - 1, t.ndim - 2]).contiguous()
        return swapped.permute([*order[:-2], t.ndim - 1, t.ndim - 2])
    order = list(range(1, t.ndim)) + [0]  # first dimension innermost
    back = [t.ndim - 1, *range(t.ndim - 1)]
    return t.permute(order).contiguous().permute(back)
