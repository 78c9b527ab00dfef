"""Element functions for compilers compute the registry's expressions."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest

from tools.codegen.emit_lowerings import emit_lowerings
from tools.codegen.expr import MASK, VALUE, Cast, Element, Name, Number, call
from tools.codegen.tests.support import language, module_from, registry


class Trees:
    """A handler that builds the expression again."""

    def call(self, fn: str, *args: Element) -> Element:
        return call(fn, *args)

    def number(self, value: float) -> Element:
        return Number(value)

    def cast(self, x: Element, dtype: str) -> Element:
        return Cast(x, dtype)


def lowerings(family: str) -> dict[str, Any]:
    kinds: Any = types.ModuleType("argand_c10.lowerings")
    kinds.Lowering = Any
    for name in ("PointwiseLowering", "ReductionLowering", "ScanLowering"):
        setattr(
            kinds, name, lambda _name=name, **fields: types.SimpleNamespace(kind=_name, **fields)
        )
    saved = sys.modules.get("argand_c10.lowerings")
    sys.modules["argand_c10.lowerings"] = kinds
    try:
        text = emit_lowerings(registry(), family)
        module = module_from(text, f"lowerings_{family}", {"_language": language()})
    finally:
        del sys.modules["argand_c10.lowerings"]
        if saved is not None:
            sys.modules["argand_c10.lowerings"] = saved
    return module.LOWERINGS  # type: ignore[no-any-return]


@pytest.mark.parametrize("family", registry().families)
def test_functions_are_the_expressions(family: str) -> None:
    found = lowerings(family)
    for op in registry().family(family):
        if op.kind != "pointwise" or not op.expr:
            continue
        rule = found[op.name]
        assert set(rule.functions) == set(op.expr)
        for variant, x in op.expr.items():
            names = [*rule.operands, *getattr(rule, "scalars", ())]
            leaves = [Name(n, MASK if n in op.conditions else VALUE) for n in names]
            assert rule.functions[variant](Trees(), *leaves) == x, op.name
            assert rule.costs[variant] >= 1


def test_reductions_and_scans() -> None:
    found = lowerings("reduction")
    a, b, x, acc, n = (Name(k) for k in ("a", "b", "x", "acc", "n"))
    mean = found["mean"]
    assert mean.kind == "ReductionLowering" and mean.init == 0
    assert mean.map(Trees(), x) == x and mean.combine(Trees(), a, b) == a + b
    assert mean.final(Trees(), acc, n) == acc / n
    assert mean.accumulators["bfloat16"] == ("float32", "bfloat16")
    assert found["sum"].accumulators["bool"] == ("int64", "int64")
    assert found["amax"].init == "lowest" and found["amax"].nonempty
    assert found["cumsum"].kind == "ScanLowering"
    assert found["cumsum"].accumulators["float32"] == ("float64", "float32")


def test_integer_divisors_are_marked() -> None:
    found = lowerings("arithmetic")
    assert found["remainder"].divides and found["floor_divide"].divides
    assert not getattr(found["add"], "divides", False)
