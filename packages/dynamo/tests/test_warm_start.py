"""Compiled forms of an earlier process: used when their guards hold, never traced."""

from __future__ import annotations

from typing import Any

import pytest

from argand_c10 import metrics, records
from argand_dynamo import backends, resume, warm_start
from argand_dynamo.bytecode import analyse
from argand_dynamo.bytecode.table import table
from argand_dynamo.frame_plan import Break, FramePlan, GraphCall, Return

FIRST = (("arg", 0),)


class Artifact:
    """Adds a number."""

    backend = "test-adding"

    def __init__(self, number: int) -> None:
        self.number = number

    def __call__(self, a: int) -> tuple[int]:
        return (a + self.number,)

    def serialize(self) -> dict[str, Any]:
        return {"number": self.number}


def load(data: dict[str, Any]) -> Artifact | None:
    return Artifact(data["number"]) if data["number"] >= 0 else None


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ARGAND_CACHE_DIR", str(tmp_path))
    backends.register_backend("test-adding", lambda module, inputs: None, load=load)
    metrics.reset()


def function(a):
    return a


def plan(kind: type = int) -> FramePlan:
    call = GraphCall((("source", FIRST),))
    return FramePlan("function", ((FIRST, "TYPE", kind),), Return(("graph", 0)), call)


def forms(code: Any = function.__code__) -> warm_start.StoredForms:
    return warm_start.StoredForms(code, "settings")


def no_resume(code: Any) -> Any:
    raise AssertionError("no break here")


def test_forms_are_found_by_their_guards():
    assert warm_start.keep(function.__code__, plan(int), Artifact(1), "settings")
    assert warm_start.keep(function.__code__, plan(float), Artifact(2), "settings")
    stored = forms()
    found = stored.find(function, (2.5,), no_resume)
    assert found is not None and found.replacement.bind(function)(2.5) == 4.5
    assert stored.find(function, ("x",), no_resume) is None
    found = stored.find(function, (2,), no_resume)
    assert found is not None and found.replacement.bind(function)(2) == 3 and found.tree.check((2,))
    counted = metrics.counters()
    assert (counted["plans_loaded"], counted["artifacts_loaded"]) == (2, 2)


def test_each_form_is_given_once():
    assert warm_start.keep(function.__code__, plan(), Artifact(1), "settings")
    stored = forms()
    assert stored.find(function, (1,), no_resume) is not None
    assert stored.find(function, (1,), no_resume) is None


def test_other_settings_find_nothing():
    assert warm_start.keep(function.__code__, plan(), Artifact(1), "other settings")
    assert forms().find(function, (1,), no_resume) is None


def test_graphs_that_are_gone_are_traced_again():
    assert warm_start.keep(function.__code__, plan(), Artifact(-1), "settings")
    assert forms().find(function, (1,), no_resume) is None


def test_graphs_that_cannot_be_kept():
    class Fails(Artifact):
        def serialize(self) -> dict[str, Any]:
            raise ValueError("not this one")

    for graph in (Fails(1), lambda a: (a,)):
        with records.collect() as found:
            assert not warm_start.keep(function.__code__, plan(), graph, "settings")
        assert [r.code for r in found] == ["FP001"]


def test_breaks_get_their_resume_functions():
    def breaking(a):
        b = abs(a)
        return b + 1

    code = breaking.__code__
    call = next(i.index for i in analyse(code).instructions if i.opname == "CALL")
    loaded = ("source", (("builtin", "abs"),))
    slots = (("null",), loaded) if table.NULL_FIRST else (loaded, ("null",))
    broken = FramePlan(
        "breaking", ((FIRST, "TYPE", int),), Break(call, (*slots, ("source", FIRST)), ())
    )
    assert warm_start.keep(code, broken, None, "settings")
    codes = []

    def resume_function(made):
        codes.append(made)
        return resume.make_function(made, globals())

    found = forms(code).find(breaking, (-3,), resume_function)
    assert found is not None and found.replacement.bind(breaking)(-3) == 4
    assert codes == resume.resume_codes(broken, code) and len(codes) == 1


def test_a_plan_of_other_code_does_no_harm():
    assert warm_start.keep(
        function.__code__, FramePlan("f", (), Break(99, (), ())), None, "settings"
    )
    assert forms().find(function, (1,), no_resume) is None
