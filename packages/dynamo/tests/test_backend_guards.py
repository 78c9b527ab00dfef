"""What a backend decides about symbolic sizes while it compiles is guarded like what the trace decided."""

from __future__ import annotations

from typing import Any

import pytest

import argand_aten as aten
import argand_dynamo as dynamo


def test_decisions_of_the_backend_are_guarded() -> None:
    made: list[tuple[int, Any]] = []

    def backend(module: Any, inputs: Any) -> Any:
        sizes = [n for x in inputs for n in getattr(x, "shape", ())]
        small = bool(sizes[0] < 10)
        made.append((small, sizes[0]))
        return lambda *args: tuple(x if small else x + 1 for x in module(*args))

    compiled = dynamo.compile(lambda x: x * 2, backend=backend, dynamic=True)
    for n in (4, 7, 9, 3):
        assert compiled(aten.ones(n)).sum().item() == 2 * n
    assert len(made) == 1
    for n in (10, 12, 40):
        assert compiled(aten.ones(n)).sum().item() == 3 * n
    assert compiled(aten.ones(5)).sum().item() == 10
    assert [small for small, _ in made] == [True, False]
    with pytest.raises(RuntimeError, match="freeze"):
        bool(made[0][1] % 3 == 0)
