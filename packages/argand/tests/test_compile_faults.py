"""What may go wrong around a compilation: no wrong result, no hang, one record each. Every case runs in fresh processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

MODULE = """
import argand as torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(6, 9), torch.nn.Linear(9, 3)

    def forward(self, x):
        return self.down(torch.nn.functional.gelu(self.up(x)) * 2 + 1)
"""

PROGRAM = """
import json
import argand as torch
from model import Net

torch.manual_seed(0)
net, x = Net(), torch.randn(5, 6)

def gradients(call):
    net.zero_grad()
    loss = (call(x) ** 2).sum()
    loss.backward()
    return [loss.detach(), *(p.grad.clone() for p in net.parameters())]

want = gradients(net)
compiled = torch.compile(net)
with torch.compiler.collect_records() as records:
    got = gradients(compiled)
    again = gradients(compiled)
close = all(torch.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in zip(want, got))
steady = all(torch.equal(a, b) for a, b in zip(got, again))
print(json.dumps({
    "right": close and steady,
    "records": [[r.kind, r.code] for r in records],
    "messages": [str(r) for r in records],
    "counters": torch.compiler.counters(),
}))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "model.py").write_text(MODULE)
    (tmp_path / "program.py").write_text(PROGRAM)
    return tmp_path


def start(folder: Path, **variables: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "ARGAND_CACHE_DIR": str(folder / "cache"), **variables}
    environment.pop("ARGAND_COMPILE_DEBUG", None)
    return subprocess.Popen(
        [sys.executable, str(folder / "program.py")],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    assert found["right"], found["messages"]
    return found


def run(folder: Path, **variables: str) -> dict[str, Any]:
    return finish(start(folder, **variables))


def script(path: Path, text: str) -> str:
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return str(path)


def test_cold_and_warm(folder: Path) -> None:
    cold = run(folder)
    assert cold["records"] == []
    assert cold["counters"]["compiler_runs"] > 0
    warm = run(folder)
    assert warm["records"] == []
    for name in ("traces", "codegen_runs", "compiler_runs"):
        assert warm["counters"].get(name, 0) == 0, warm["counters"]


@pytest.mark.parametrize("fault", ["missing", "failing", "hanging"])
def test_without_a_working_compiler(folder: Path, fault: str) -> None:
    compiler = str(folder / "cc")
    if fault != "missing":
        script(folder / "cc", "exit 1" if fault == "failing" else "exec sleep 600")
    begin = time.monotonic()
    found = run(folder, ARGAND_CC=compiler, ARGAND_COMPILE_TIMEOUT="1")
    assert time.monotonic() - begin < 60
    code = {"missing": "IN001", "failing": "IN002", "hanging": "IN003"}[fault]
    # One for the forward graph and one for the backward graph: each runs operator by operator.
    assert found["records"] == [["fallback", code]] * 2
    assert run(folder)["records"] == []  # a compiler was installed since


def test_an_unusable_cache(folder: Path) -> None:
    (folder / "file").write_text("")
    found = run(folder, ARGAND_CACHE_DIR=str(folder / "file" / "below"))
    assert found["records"] == [["cache", "DC002"]]
    assert found["counters"]["compiler_runs"] > 0


def test_a_full_disk(folder: Path) -> None:
    """Writes into the cache fail as on a full disk."""
    source = (folder / "program.py").read_text()
    fault = """
from argand_c10 import disk_cache
def full(path, data):
    open(path, "wb").close()
    raise OSError(28, "No space left on device")
disk_cache._write = full
"""
    (folder / "program.py").write_text(fault + source)
    assert run(folder)["records"] == [["cache", "DC002"]]
    (folder / "program.py").write_text(source)
    assert run(folder)["records"] == []


def test_a_killed_process(folder: Path) -> None:
    slow = script(folder / "cc", 'sleep 0.5; exec gcc "$@"')
    process = start(folder, ARGAND_CC=slow)
    while not (folder / "cache" / "inductor-programs" / "locks").is_dir():
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(0.2)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    found = run(folder, ARGAND_CC=slow)
    assert found["records"] == []


def test_two_processes_at_once(folder: Path) -> None:
    log = folder / "runs"
    slow = script(folder / "cc", f'echo run >> {log}; sleep 0.2; exec gcc "$@"')
    both = [finish(p) for p in [start(folder, ARGAND_CC=slow) for _ in range(2)]]
    assert [found["records"] for found in both] == [[], []]
    alone = folder / "alone"
    alone.mkdir()
    for name in ("model.py", "program.py"):
        (alone / name).write_text((folder / name).read_text())
    twice = len(log.read_text().split())
    run(alone, ARGAND_CC=slow)
    assert twice == len(log.read_text().split()) - twice


@pytest.mark.parametrize("damage", ["truncated", "foreign", "removed"])
def test_damaged_entries(folder: Path, damage: str) -> None:
    run(folder)
    libraries = sorted((folder / "cache" / "inductor-programs").glob("entries/*/program.so"))
    assert len(libraries) == 2  # forward, backward
    for library in libraries:
        if damage == "truncated":
            library.write_bytes(library.read_bytes()[:1000])
        elif damage == "foreign":
            library.write_bytes(Path("/proc/self/exe").read_bytes()[:50000])
        else:
            library.unlink()
    found = run(folder)
    assert found["records"] == [["cache", "DC001"]] * 2
    assert run(folder)["records"] == []


def test_damaged_plans(folder: Path) -> None:
    run(folder)
    plans = [
        path
        for path in (folder / "cache").glob("*/entries/*/*")
        if not path.parts[-4].startswith("inductor") and path.name != "manifest.json"
    ]
    for path in plans:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    found = run(folder)
    assert {tuple(r) for r in found["records"]} <= {("cache", "DC001")}
    assert run(folder)["records"] == []
