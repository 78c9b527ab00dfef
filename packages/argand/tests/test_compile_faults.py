"""Compiler and caches that fail: right results all the same, no hang, one record; and what a fresh process takes from the caches."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """
import argand as torch
from argand import nn
from parts import inner, FACTOR
from argand_of_a_test import library_function
import parts

SCALE = 2.0

def elementwise(x, y):
    return (inner(x) * SCALE + y).relu() * FACTOR

def broken(x, y):
    z = inner(x) * SCALE
    torch.compiler.graph_break()
    z = z + y
    if z.sum() > 0:
        z = z * parts.FACTOR
    return z

def loop(x, y, n=3):
    out = []
    for i in range(n):
        x = x + y * i * parts.Step.SHORT.value
        out.append(library_function(x).sum())
    return out, {"x": x}

def lazy(x, y):
    # A module that is loaded when it is asked for.
    return x * (2 if isinstance(y, torch.torch_version.TorchVersion) else 3)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.second = nn.Linear(8, 4)

    def forward(self, x, y):
        return self.second(torch.tanh(self.first(x))) + inner(y)

torch.manual_seed(0)
net = Net()
"""

PARTS = """
import enum

class Step(enum.Enum):
    SHORT = 2

FACTOR = 3.0

def inner(x):
    return x + 1
"""

# Of a library that is taken to stay as it is, until it is installed anew.
LIBRARY = """
def library_function(x):
    return _part(x)

def _part(x):
    return x * 7
"""

# Runs functions plain and compiled; what came of it, as one line of JSON.
DRIVER = """
import json, sys
import argand as torch
import program

def flat(value):
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if isinstance(value, dict):
        return {k: flat(v) for k, v in value.items()}
    return [flat(v) for v in value]

def close(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(close(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(close, a, b))
    return abs(a - b) <= 1e-5 * max(1, abs(a))

x, y = torch.arange(8, dtype=torch.float32).reshape(2, 4), torch.ones(2, 4)
outcome = {"equal": True}
with torch.compiler.collect_records() as records:
    for name in NAMES:
        function = getattr(program, name)
        compiled = torch.compile(function, backend=BACKEND)
        for _ in range(2):
            got = compiled(x, y)
            outcome["equal"] &= close(flat(function(x, y)), flat(got))
        if name == "net":
            got.sum().backward()
            grads = [p.grad for p in function.parameters()]
            function.zero_grad()
            function(x, y).sum().backward()
            outcome["equal"] &= all(close(flat(a), flat(p.grad)) for a, p in zip(grads, function.parameters()))
outcome["records"] = [(r.kind, r.code) for r in records if r.kind not in ("graph_break",)]
outcome["texts"] = [r.message for r in records]
outcome["counters"] = torch.compiler.counters()
heavy = ("sympy", "networkx", "argand_dynamo.tracer", "argand_fx.graph", "argand_aten.generated.tables")
outcome["modules"] = [name for name in heavy if name in sys.modules]
print(json.dumps(outcome))
"""


class Workplace:
    """A folder with a program, caches of its own, and processes that run it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cache = folder / "cache"
        self.environment = {
            **os.environ,
            "ARGAND_CACHE_DIR": str(self.cache),
            "PYTHONPATH": os.pathsep.join([str(folder), *sys.path]),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        for name in ("ARGAND_CC", "CC", "ARGAND_COMPILE_DEBUG"):
            self.environment.pop(name, None)
        self.write("program.py", PROGRAM)
        self.write("parts.py", PARTS)
        self.write("argand_of_a_test.py", LIBRARY)

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def edit(self, name: str, old: str, new: str) -> None:
        text = (self.folder / name).read_text()
        assert old in text
        self.write(name, text.replace(old, new))

    def start(
        self, *names: str, backend: str = "inductor", first: str = "", **environment: str
    ) -> subprocess.Popen[str]:
        """A process that runs functions of the program after the statements `first`."""
        text = f"{first}\nNAMES, BACKEND = {names!r}, {backend!r}\n{DRIVER}"
        return subprocess.Popen(
            [sys.executable, "-c", text], env={**self.environment, **environment}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, *names: str, **options: Any) -> dict[str, Any]:
        """As `start`; what came of it."""
        return finish(self.start(*names, **options))

    def entries(self, cache: str) -> list[Path]:
        """Of one of the caches on disk."""
        folder = self.cache / cache / "entries"
        return sorted(folder.iterdir()) if folder.is_dir() else []

    def script(self, text: str) -> str:
        """A compiler."""
        path = self.folder / "cc"
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)
        return str(path)


def finish(process: subprocess.Popen[str]) -> dict[str, Any]:
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    found: dict[str, Any] = json.loads(output.splitlines()[-1])
    assert found["equal"], found["texts"]
    return found


ALL = ("elementwise", "broken", "loop", "lazy", "net")


@pytest.fixture(scope="module")
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    """A workplace whose caches hold everything."""
    place = Workplace(tmp_path_factory.mktemp("compiled"))
    cold = place.run(*ALL)
    assert cold["counters"]["compiler_runs"] > 0
    assert cold["records"] == []
    return place


@pytest.fixture
def place(tmp_path: Path, compiled_once: Workplace) -> Workplace:
    """A workplace with filled caches of its own."""
    made = Workplace(tmp_path)
    shutil.copytree(compiled_once.cache, made.cache)
    return made


@pytest.fixture
def empty(tmp_path: Path, compiled_once: Workplace) -> Workplace:
    """A workplace whose caches hold compiled kernels only."""
    made = Workplace(tmp_path)
    made.cache.mkdir(mode=0o700)
    shutil.copytree(compiled_once.cache / "inductor-kernels", made.cache / "inductor-kernels")
    return made


# -- warm start --------------------------------------------------------------------------------------


def worked(outcome: dict[str, Any]) -> dict[str, int]:
    """What a process has traced, generated and compiled."""
    names = ("traces", "codegen_runs", "compiler_runs", "graphs")
    return {name: outcome["counters"].get(name, 0) for name in names}


NOTHING = {"traces": 0, "codegen_runs": 0, "compiler_runs": 0, "graphs": 0}


def test_a_fresh_process_compiles_nothing(compiled_once: Workplace) -> None:
    outcome = compiled_once.run(*ALL, ARGAND_CC="/nowhere/gcc")
    assert worked(outcome) == NOTHING
    assert outcome["records"] == []
    assert outcome["modules"] == []


@pytest.mark.parametrize(
    ("names", "file", "old", "new"),
    [
        ("elementwise broken", "program.py", "SCALE = 2.0", "SCALE = 5.0"),
        ("elementwise broken", "parts.py", "FACTOR = 3.0", "FACTOR = 4.0"),
        ("elementwise broken net", "parts.py", "return x + 1", "return x - 1"),
        ("elementwise", "program.py", ".relu() * FACTOR", ".relu() + FACTOR"),
        ("broken", "program.py", "z = z + y", "z = z - y"),
        ("loop", "program.py", "n=3", "n=2"),
        ("net", "program.py", "torch.tanh", "torch.sigmoid"),
        ("loop", "parts.py", "SHORT = 2", "SHORT = 3"),
        ("loop", "argand_of_a_test.py", "x * 7", "x * 8"),
    ],
    ids=[
        "global",
        "global of a part",
        "inlined function",
        "function",
        "resumed part",
        "default",
        "forward",
        "enumeration",
        "library",
    ],
)
def test_edits_make_stored_plans_void(
    place: Workplace, names: str, file: str, old: str, new: str
) -> None:
    place.edit(file, old, new)
    outcome = place.run(*names.split(), backend="inductor")
    assert {kind for kind, _ in outcome["records"]} <= {"recompile"}
    assert worked(outcome)["traces"] >= len(names.split())


def test_other_arguments_of_a_fresh_process(place: Workplace) -> None:
    """Stored forms that do not hold for a call are not used."""
    changed = "import argand\nargand.arange = (lambda real: lambda n, dtype: real(n, dtype=argand.float64))(argand.arange)"
    assert worked(place.run("elementwise", first=changed))["traces"] > 0


# -- faults of the compiler --------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["missing", "failing", "hanging", "silent", "garbage"])
def test_a_faulty_compiler(empty: Workplace, fault: str) -> None:
    shutil.rmtree(empty.cache)
    compiler = {
        "missing": lambda: "/nowhere/gcc",
        "failing": lambda: empty.script("echo broken >&2; exit 1"),
        "hanging": lambda: empty.script("sleep 1000"),
        "silent": lambda: empty.script("exit 0"),
        "garbage": lambda: empty.script('while [ "$1" != -o ]; do shift; done; echo garbage > $2'),
    }[fault]()
    start = time.monotonic()
    outcome = empty.run("elementwise", ARGAND_CC=compiler, ARGAND_COMPILE_TIMEOUT="1")
    assert time.monotonic() - start < 20
    assert [kind for kind, _ in outcome["records"]] == ["fallback"], outcome["texts"]
    if fault == "garbage":  # nothing of it is kept
        assert empty.run("elementwise")["records"] == []


# -- faults of the caches ----------------------------------------------------------------------------


def test_an_unwritable_cache(empty: Workplace) -> None:
    (empty.folder / "file").write_text("")
    outcome = empty.run("elementwise", "net", ARGAND_CACHE_DIR=str(empty.folder / "file" / "below"))
    assert [kind for kind, _ in outcome["records"]] == ["cache"], outcome["texts"]


FULL = """
from argand_c10 import disk_cache
def full(path, data):
    open(path, "wb").close()
    raise OSError(28, "No space left on device")
disk_cache._write = full
"""


def test_a_full_disk(empty: Workplace) -> None:
    outcome = empty.run("elementwise", "loop", first=FULL)
    assert [kind for kind, _ in outcome["records"]] == ["cache"], outcome["texts"]
    assert empty.entries("plans") == []


DYING = """
import os, signal
from argand_c10 import disk_cache
write = disk_cache._write
def dying(path, data):
    if os.path.basename(path) == NAME:
        write(path, data[: len(data) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
    write(path, data)
disk_cache._write = dying
"""


@pytest.mark.parametrize("name", ["program.so", "plan.json"])
def test_a_killed_writer(empty: Workplace, name: str) -> None:
    process = empty.start("elementwise", first=DYING.replace("NAME", repr(name)))
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    outcome = empty.run("elementwise")
    assert outcome["records"] == []
    assert len(empty.entries("plans")) == len(empty.entries("inductor-programs")) == 1


def test_two_processes_at_once(empty: Workplace) -> None:
    processes = [empty.start("elementwise") for _ in range(2)]
    assert [finish(process)["records"] for process in processes] == [[], []]
    assert worked(empty.run("elementwise")) == NOTHING


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def replace(path: Path) -> None:
    path.write_bytes(b"foreign" * 30)


def change_a_byte(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


DAMAGES: list[Callable[[Path], None]] = [truncate, replace, change_a_byte, Path.unlink]


@pytest.mark.parametrize(
    ("cache", "file"), [("plans", "plan.json"), ("inductor-programs", "program.so")]
)
def test_damaged_entries(place: Workplace, cache: str, file: str) -> None:
    """Each is noticed, gives one record, and is made again."""
    files = [entry / file for entry in place.entries(cache) if (entry / file).exists()]
    assert len(files) >= len(DAMAGES)
    for number, path in enumerate(files):
        DAMAGES[number % len(DAMAGES)](path)
    outcome = place.run(*ALL)
    assert {kind for kind, _ in outcome["records"]} == {"cache"}, outcome["texts"]
    assert len(outcome["records"]) >= len(DAMAGES)
    said = [text for text in outcome["texts"] if "cache entry" in text]
    assert len(set(said)) == len(said) == len(outcome["records"])
    again = place.run(*ALL)
    assert worked(again) == NOTHING and again["records"] == []


@pytest.mark.parametrize("name", ["plans", "inductor-programs"])
def test_damaged_manifests(place: Workplace, name: str) -> None:
    for entry in place.entries(name):
        (entry / "manifest.json").write_text('{"files": 3')
    outcome = place.run("elementwise")
    assert [kind for kind, _ in outcome["records"]] == ["cache"], outcome["texts"]


def test_a_cache_of_another_user(place: Workplace) -> None:
    """A folder that others may write to is not trusted."""
    for folder in (place.cache, *place.cache.iterdir()):
        folder.chmod(0o777)
    outcome = place.run("elementwise")
    assert {kind for kind, _ in outcome["records"]} <= {"cache"}, outcome["texts"]
    if worked(outcome) == NOTHING:  # the folders were taken back from others
        assert not any(f.stat().st_mode & 0o022 for f in (place.cache, *place.cache.iterdir()))
