"""Plans on disk: found again in a fresh process, and only when they still hold."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import textwrap
import types
from pathlib import Path
from typing import Any

import pytest

import argand_c10
from argand_c10 import records
from argand_c10.code_digest import hash_code
from argand_dynamo import plan_data, plan_store
from argand_dynamo.frame_plan import FramePlan, GraphCall, InlinedCode, Return
from argand_dynamo.guards import Guard
from argand_dynamo.plan_store import inlined_code, load_plans, store_plan

FIRST = (("arg", 0),)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ARGAND_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "plans" / "entries"


def function(a, b=1):
    return [x + a for x in (b, 2.0)]


def helper(a):
    return a


class Class:
    def method(self):
        return 1

    table = {"a": [1, object()]}

    @property
    def prop(self):
        return 2

    @staticmethod
    def static():
        return 3

    @classmethod
    def of_class(cls):
        return 4


def plan(value: Any = 1, *inlined: InlinedCode, guards: Any = None, **parts: Any) -> FramePlan:
    if guards is None:
        guards = ((FIRST, "TYPE", int),)
    return FramePlan("function", guards, Return(("const", value)), inlined=inlined, **parts)


def test_store_and_load():
    assert load_plans(function.__code__) == []
    assert store_plan(function.__code__, plan(1)) and store_plan(function.__code__, plan(2))
    assert load_plans(function.__code__) == [plan(1), plan(2)]
    named = plan((argand_c10.int8, argand_c10.channels_last, argand_c10.strided))
    assert store_plan(helper.__code__, named) and load_plans(helper.__code__) == [named]


def test_equal_plans_are_kept_once():
    for _ in range(3):
        assert store_plan(function.__code__, plan(1))
    assert load_plans(function.__code__) == [plan(1)]


def test_a_function_has_few_plans():
    for i in range(12):
        assert store_plan(function.__code__, plan(i))
    kept = load_plans(function.__code__)
    assert sorted(p.outcome.value[1] for p in kept) == list(range(4, 12)), "not the newest"


def test_settings_and_code_are_part_of_the_key():
    assert store_plan(function.__code__, plan(1), "fast")
    assert load_plans(function.__code__, "strict") == []
    assert load_plans(function.__code__, "fast") == [plan(1)]
    assert load_plans(helper.__code__, "fast") == []


def _code(text: str, first_line: int = 1) -> types.CodeType:
    names: dict[str, Any] = {}
    exec(compile("\n" * (first_line - 1) + text, "f.py", "exec"), names)
    return names["f"].__code__


def test_hashes_tell_programs_apart():
    texts = [
        "def f(a): return a + 1", "def f(a): return a + 1.0", "def f(a): return a + 0.0", "def f(a): return a + -0.0", "def f(b): return b + 1",
        "def f(a, *, b): return a + 1", "def f(a, b): return a + 1", "def f(*a): return a + 1", "def f(a): return a - 1", "def f(a): return (a, 1)",
        "def f(a): return g(a)", "def f(a): return h(a)", "def f(a): return lambda: 1", "def f(a): return lambda: 2", "def f(a): return a in {1, 2}",
        "def f(a): return a in {1, 2.0}", "def f(a): return a, ('x', 'yz')", "def f(a): return a, ('xy', 'z')", "def f(a): return a, b'x'",
        "def f(a):\n  try:\n    g()\n  finally:\n    h()",
    ]  # fmt: skip
    hashes = [hash_code(_code(text)) for text in texts]
    assert len(set(hashes)) == len(texts)
    assert [hash_code(_code(text, 7)) for text in texts] == hashes


def test_inlined_functions_are_found_by_name():
    found = [
        helper,
        Class.method,
        Class.prop.fget,
        Class.static,
        Class.__dict__["of_class"].__func__,
    ]
    entries = [inlined_code(f) for f in found]
    assert [e.qualname for e in entries] == [
        "helper",
        "Class.method",
        "Class.prop",
        "Class.static",
        "Class.of_class",
    ]
    assert store_plan(function.__code__, plan(1, *entries))
    assert load_plans(function.__code__) == [plan(1, *entries)]


def test_inner_functions_are_found_in_the_outer_one():
    entry = inlined_code(_maker())
    assert entry.qualname == "_maker.<locals>.inner"
    assert store_plan(function.__code__, plan(1, entry)) and len(load_plans(function.__code__)) == 1


def _maker():
    def inner():
        return 1

    return inner


def test_wrapped_functions_are_found_behind_the_wrapper():
    import contextlib

    entry = inlined_code(contextlib.nullcontext.__init__)
    assert store_plan(function.__code__, plan(1, entry, inlined_code(contextlib.suppress.__exit__)))
    assert load_plans(function.__code__)


def test_a_changed_function_removes_its_plans(monkeypatch, cache):
    entry = inlined_code(helper)
    assert store_plan(function.__code__, plan(1, entry)) and store_plan(function.__code__, plan(2))
    monkeypatch.setattr(sys.modules[__name__], "helper", lambda a: a)
    with records.collect() as found:
        assert load_plans(function.__code__) == [plan(2)]
    assert found == [] and len(list(cache.iterdir())) == 1


def test_a_changed_function_is_not_stored(monkeypatch):
    entry = inlined_code(helper)
    monkeypatch.setattr(sys.modules[__name__], "helper", Class.static)
    with records.collect() as found:
        assert not store_plan(function.__code__, plan(1, entry))
    assert [(r.kind, r.code) for r in found] == [("cache", "FP001")] and "helper" in found[
        0
    ].message


def test_plans_wait_for_modules_that_are_not_loaded(monkeypatch, cache):
    name = "colorsys"
    module = importlib.import_module(name)
    assert store_plan(function.__code__, plan(1, inlined_code(module.rgb_to_hsv)))
    monkeypatch.delitem(sys.modules, name)
    assert load_plans(function.__code__) == [] and name not in sys.modules
    monkeypatch.setitem(sys.modules, name, module)
    assert len(load_plans(function.__code__)) == 1


def _local_class() -> type:
    class Local:
        pass

    return Local


@pytest.mark.parametrize(
    "refused",
    [
        plan(1, guards=((FIRST, "ID", object()),)),
        plan(1, guards=((FIRST, "TYPE", _local_class()),)),
        FramePlan("function", (), Return(("object", object()))),
        plan(1, graph=GraphCall((("source", FIRST),), "a callable")),
        plan(1, InlinedCode("no_such_module", "f", "00")),
        plan(1, InlinedCode(__name__, "<lambda>", "00")),
    ],
)  # fmt: skip
def test_what_another_process_cannot_know_is_not_stored(refused):
    with records.collect() as found:
        assert not store_plan(function.__code__, refused)
    assert [(r.kind, r.code, r.file) for r in found] == [("cache", "FP001", __file__)]
    assert load_plans(function.__code__) == []


def test_graphs_are_stored_with_their_artifact():
    stored = plan(
        1, graph=GraphCall((("source", FIRST),), "inductor", {"key": "abc", "sizes": [1, None]})
    )
    assert store_plan(function.__code__, stored) and load_plans(function.__code__) == [stored]


def test_guards_of_code_become_hashes_and_need_no_name():
    inner = _maker()
    hidden = InlinedCode("nowhere", "x.<locals>.f", hash_code(inner.__code__))
    guards = (Guard((("cell", "f"),), "CODE", inner.__code__), Guard(FIRST, "TYPE", int))
    assert store_plan(function.__code__, plan(1, hidden, guards=guards))
    (loaded,) = load_plans(function.__code__)
    assert (
        loaded.guards[0] == ((("cell", "f"),), "CODE", hash_code(inner.__code__))
        and loaded.inlined == ()
    )


def test_containers_of_classes_need_no_name():
    path = (("module", __name__), ("attr", "Class"))
    guards = (Guard(path, "CLASS_ATTR", ("table", Class.table)),)
    assert store_plan(function.__code__, plan(1, guards=guards))
    (loaded,) = load_plans(function.__code__)
    assert tuple(loaded.guards[0]) == ((*path, ("attr", "table")), "TYPE", dict)


def test_functions_in_guards_are_checked_by_their_code(monkeypatch):
    guards = (
        (FIRST, "TYPE", int),
        ((("global", "helper"),), "ID", helper),
        ((("arg", 0), ("type",)), "CLASS_ATTR", ("method", Class.method)),
    )
    assert store_plan(function.__code__, plan(1, guards=guards))
    (loaded,) = load_plans(function.__code__)
    assert [i.qualname for i in loaded.inlined] == ["helper", "Class.method"]
    monkeypatch.setattr(Class.method, "__code__", (lambda self: 2).__code__)
    assert load_plans(function.__code__) == []


def _rewrite(folder: Path, data: bytes) -> None:
    import hashlib

    (folder / "plan.json").write_bytes(data)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"]["plan.json"] = hashlib.sha256(data).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize("data", [b"", b"{}", b'{"version": 99}', b"[1, 2", b"\xff\xfe"])
def test_malformed_plans_are_removed_with_a_record(data, cache):
    assert store_plan(function.__code__, plan(1))
    (folder,) = cache.iterdir()
    _rewrite(folder, data)
    with records.collect() as found:
        assert load_plans(function.__code__) == []
    assert [(r.kind, r.code) for r in found] == [("cache", "FP002")] and not list(cache.iterdir())
    assert store_plan(function.__code__, plan(1)) and load_plans(function.__code__) == [plan(1)]


def test_damaged_entries_are_refused(cache):
    assert store_plan(function.__code__, plan(1))
    (folder,) = cache.iterdir()
    (folder / "plan.json").write_bytes(b"{}")
    with records.collect() as found:
        assert load_plans(function.__code__) == []
    assert [r.kind for r in found] == ["cache"]


def test_entries_that_others_may_write_are_refused(cache):
    assert store_plan(function.__code__, plan(1))
    os.chmod(cache.parent, 0o777)
    with records.collect() as found:
        assert load_plans(function.__code__) == []
    assert [r.kind for r in found] == ["cache"]


def test_a_fresh_process_finds_the_plan_without_heavy_modules(tmp_path):
    program = textwrap.dedent(
        """
        import sys
        from argand_dynamo.plan_store import load_plans, store_plan, inlined_code
        from argand_dynamo.frame_plan import FramePlan, Return
        def inner(a):
            return a
        def f(a):
            return inner(a)
        plan = FramePlan("f", (((("arg", 0),), "TYPE", int),), Return(("source", (("arg", 0),))), inlined=(inlined_code(inner),))
        if sys.argv[1] == "store":
            assert store_plan(f.__code__, plan)
        else:
            assert load_plans(f.__code__) == [plan]
            from argand_dynamo.plan_code import RuntimeObjects, assemble_plan
            assert assemble_plan(plan, f.__code__, RuntimeObjects()).bind(f)(3) == 3
        heavy = ("sympy", "networkx", "argand_aten.generated.tables", "argand_dynamo.tracer", "argand_dynamo.interpreter")
        assert not [name for name in heavy if name in sys.modules]
        """
    )
    (tmp_path / "program.py").write_text(program)
    for action in ("store", "load"):
        subprocess.run([sys.executable, str(tmp_path / "program.py"), action], check=True)


def test_the_environment_is_part_of_the_key(monkeypatch):
    assert store_plan(function.__code__, plan(1))
    monkeypatch.setattr(plan_store, "_environment", lambda: "another")
    assert load_plans(function.__code__) == []


def test_an_edited_tracer_makes_other_plans(monkeypatch):
    assert store_plan(function.__code__, plan(1))
    monkeypatch.setattr(plan_store, "source_digest", lambda package: f"edited {package}")
    plan_store._environment.cache_clear()
    try:
        assert load_plans(function.__code__) == []
    finally:
        plan_store._environment.cache_clear()


def test_names_that_argand_finds_when_asked(monkeypatch):
    def ask(name):
        if name != "found":
            raise AttributeError(name)
        return helper

    lazy, foreign = types.ModuleType("argand_lazy"), types.ModuleType("foreign_lazy")
    for module in (lazy, foreign):
        module.__getattr__ = ask  # type: ignore[method-assign]
        monkeypatch.setitem(sys.modules, module.__name__, module)
    assert plan_data.find_global("argand_lazy", "found") is helper
    with pytest.raises(plan_data.UnknownNameError):
        plan_data.find_global("foreign_lazy", "found")


def test_modules_that_argand_loads_when_asked(monkeypatch, tmp_path):
    """A package of Argand that is loaded may load its own; what is of another one, or not loaded at all, waits."""
    for package in ("argand_parts", "argand_away", "foreign_parts"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
        (tmp_path / package / "part.py").write_text("def found(): ...")
    monkeypatch.syspath_prepend(tmp_path)
    for package in ("argand_parts", "foreign_parts"):
        importlib.import_module(package)
    assert callable(plan_data.find_global("argand_parts.part", "found"))
    for module in ("argand_away.part", "foreign_parts.part", "argand_parts.none"):
        with pytest.raises(plan_data.UnknownNameError):
            plan_data.find_global(module, "found")
