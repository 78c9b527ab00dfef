"""What may go wrong around the compiler and the cache: no wrong result, no hang, one record each."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from specs import buffer, step, tensor

import argand_aten as A
from argand_c10 import metrics, records
from argand_inductor.artifact import build, cache, load
from argand_inductor.artifact.errors import CompilerError
from argand_inductor.artifact.make import make_program
from argand_inductor.program import Buf, ProgramSpec


def spec(body: str = "a0 + 1") -> ProgramSpec:
    return ProgramSpec(
        (tensor("x", 8),), (Buf("o"),), (step(body, "x", "o", sizes=(8,)),), {"o": buffer(8)}
    )


def works(program: object) -> bool:
    x = A.randn(8)
    return A.equal(program(x)[0], x + 1)  # type: ignore[operator]


def entries(root: Path, name: str = "inductor-programs") -> list[Path]:
    folder = root / name / "entries"
    return sorted(folder.iterdir()) if folder.is_dir() else []


def script(path: Path, text: str) -> str:
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return str(path)


def runs() -> int:
    return metrics.counters().get("compiler_runs", 0)


def test_compiled_once(own_cache: Path) -> None:
    before = runs()
    first = make_program(spec())
    assert runs() == before + 3  # program, kernels, link
    second = make_program(spec())
    assert runs() == before + 3
    assert first.path == second.path
    assert works(second)
    assert len(entries(own_cache)) == 1


def test_the_executor_is_compiled_once_for_a_compiler_with_flags(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without flags, the one that was shipped is linked."""
    monkeypatch.setenv("ARGAND_CC", "gcc -DUNUSED")
    for body, compiled in (("a0 + 1", 4), ("1 + a0", 3)):
        before = runs()
        assert works(make_program(spec(body)))
        assert runs() == before + compiled


def test_a_kernel_is_compiled_once_for_all_graphs() -> None:
    make_program(spec())
    before = runs()
    twice = ProgramSpec(
        (tensor("x", 8),),
        (Buf("p"),),
        (step("a0 + 1", "x", "o", sizes=(8,)), step("a0 + 1", "o", "p", sizes=(8,))),
        {"o": buffer(8), "p": buffer(8)},
    )
    program = make_program(twice)
    assert runs() == before + 2  # program, link
    x = A.randn(8)
    assert A.equal(program(x)[0], x + 1 + 1)


def test_units_that_share_a_kernel_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGAND_COMPILE_THREADS", "1")

    def both(a: str, b: str) -> ProgramSpec:
        return ProgramSpec(
            (tensor("x", 8),),
            (Buf("p"),),
            (step(a, "x", "o", sizes=(8,)), step(b, "o", "p", sizes=(8,))),
            {"o": buffer(8), "p": buffer(8)},
        )

    x = A.randn(8)
    for a, b in (("a0 + 1", "a0 + 2"), ("a0 + 3", "a0 + 4"), ("a0 + 2", "a0 + 3")):
        (out,) = make_program(both(a, b))(x)
        assert A.equal(out, x + int(a[-1]) + int(b[-1]))


@pytest.mark.parametrize("variable", ["ARGAND_CC", "CC"])
def test_a_missing_compiler(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "/nowhere/gcc")
    with pytest.raises(CompilerError, match=f"{variable}='/nowhere/gcc' is no program") as caught:
        make_program(spec())
    assert caught.value.code == "IN001"
    assert "install" in caught.value.fix


def test_no_compiler_on_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.delenv("ARGAND_CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CompilerError, match="no C compiler was found"):
        make_program(spec())


def test_a_failing_compiler(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own_cache: Path
) -> None:
    monkeypatch.setenv("ARGAND_CC", script(tmp_path / "cc", "echo the disk melted >&2; exit 3"))
    with pytest.raises(CompilerError, match="failed with status 3: the disk melted") as caught:
        make_program(spec())
    assert caught.value.code == "IN002"
    assert entries(own_cache) == []
    monkeypatch.delenv("ARGAND_CC")
    assert works(make_program(spec()))


def test_a_hanging_compiler_is_stopped_with_its_children(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    hang = script(tmp_path / "cc", f"sleep 60 & echo $! >> {pids}; echo $$ >> {pids}; wait")
    monkeypatch.setenv("ARGAND_CC", hang)
    monkeypatch.setenv("ARGAND_COMPILE_TIMEOUT", "0.5")
    start = time.monotonic()
    with pytest.raises(CompilerError, match="took longer than 0.5 s") as caught:
        make_program(spec())
    assert caught.value.code == "IN003"
    assert time.monotonic() - start < 20
    for pid in map(int, pids.read_text().split()):
        for _ in range(100):
            stat = Path(f"/proc/{pid}/stat")
            if not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z":
                break
            time.sleep(0.05)
        else:
            pytest.fail(f"process {pid} is still running")


def test_a_compiler_that_hung_is_not_waited_for_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    log = tmp_path / "runs"
    monkeypatch.setenv("ARGAND_CC", script(tmp_path / "cc", f"echo run >> {log}; exec sleep 60"))
    monkeypatch.setenv("ARGAND_COMPILE_TIMEOUT", "0.5")
    for body in ("a0 + 1", "a0 + 2", "a0 + 3"):
        with pytest.raises(CompilerError) as caught:
            make_program(spec(body))
        assert caught.value.code == "IN003"
    assert len(log.read_text().split()) <= build.processes()
    monkeypatch.setenv("ARGAND_COMPILE_TIMEOUT", "60")
    script(tmp_path / "cc", 'exec gcc "$@"')  # another file is another compiler
    assert works(make_program(spec()))


def test_a_compiler_that_writes_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ARGAND_CC", script(tmp_path / "cc", "exit 0"))
    with pytest.raises(CompilerError, match="wrote no object file"):
        make_program(spec())


def test_no_place_for_compiling(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(build.tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(CompilerError, match="no folder for compiling") as caught:
        make_program(spec())
    assert "TMPDIR" in caught.value.fix


def test_an_unusable_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ARGAND_CACHE_DIR", str(tmp_path / "file" / "below"))
    with records.collect() as found:
        first = make_program(spec())
        second = make_program(spec("a0 + 1.0f"))
    assert works(first)
    assert works(second)
    assert [r.code for r in found] == ["DC002"]
    assert first.serialize()["library"] is None
    assert load.load(first.serialize()) is None


def test_a_full_disk(tmp_path: Path) -> None:
    """Files in the cache's folder cannot grow: programs run uncached, with one record."""
    done = run_python(
        """
from argand_c10 import disk_cache
def full(path, data):
    open(path, "wb").close()
    raise OSError(28, "No space left on device")
disk_cache._write = full
with records.collect() as found:
    assert works(make_program(spec()))
    assert works(make_program(spec("a0 + 1.0f")))
assert [r.code for r in found] == ["DC002"], found
""",
        tmp_path,
    )
    assert done.wait() == 0
    assert entries(tmp_path) == []
    assert list((tmp_path / "inductor-programs" / "tmp").iterdir()) == []


def run_python(text: str, root: Path, **kwargs: object) -> subprocess.Popen[bytes]:
    """A fresh process with this file's helpers."""
    code = f"import sys; sys.path.insert(0, {os.fspath(Path(__file__).parent)!r})\n"
    code += "from test_faults import *\n" + text
    environment = {**os.environ, "ARGAND_CACHE_DIR": str(root)}
    return subprocess.Popen([sys.executable, "-c", code], env=environment, **kwargs)  # type: ignore[call-overload, no-any-return]


def test_a_killed_writer(own_cache: Path) -> None:
    done = run_python(
        """
from argand_c10 import disk_cache
write = disk_cache._write
def dying(path, data):
    if path.endswith("program.so"):
        write(path, data[:100])
        os.kill(os.getpid(), signal.SIGKILL)
    write(path, data)
disk_cache._write = dying
make_program(spec())
""",
        own_cache,
    )
    assert done.wait() == -signal.SIGKILL
    assert entries(own_cache) == []
    with records.collect() as found:
        assert works(make_program(spec()))
    assert found == []


def test_two_processes_compile_the_same_graph_once(own_cache: Path, tmp_path: Path) -> None:
    log = tmp_path / "runs"
    slow = script(tmp_path / "cc", f'echo run >> {log}; sleep 0.3; exec gcc "$@"')
    text = f"""
os.environ["ARGAND_CC"] = {slow!r}
with records.collect() as found:
    assert works(make_program(spec()))
assert found == [], found
"""
    processes = [run_python(text, own_cache) for _ in range(2)]
    assert [process.wait() for process in processes] == [0, 0]
    assert log.read_text().split() == ["run"] * 3
    assert len(entries(own_cache)) == 1


def test_a_lock_that_is_never_given_back(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_program(spec())
    (entry,) = entries(own_cache)
    cache.programs.discard(entry.name)
    monkeypatch.setenv("ARGAND_COMPILE_TIMEOUT", "1")
    with cache.programs.lock(entry.name, 1.0) as held, records.collect() as found:
        assert held
        assert works(make_program(spec()))
    assert [r.code for r in found] == ["IN006"]


@pytest.mark.parametrize("damage", ["truncate", "foreign", "remove"])
def test_damaged_programs_are_compiled_again(own_cache: Path, damage: str) -> None:
    data = make_program(spec()).serialize()
    (entry,) = entries(own_cache)
    library = entry / "program.so"
    content = library.read_bytes()
    if damage == "remove":
        library.unlink()
    else:
        library.write_bytes(content[: len(content) // 2] if damage == "truncate" else b"x" * 99)
    with records.collect() as found:
        assert load.load(data) is None
        assert works(make_program(spec()))
    assert [r.code for r in found] == ["DC001"]
    with records.collect() as found:
        again = load.load(data)
    assert works(again)
    assert found == []


def test_damaged_kernels_are_compiled_again(own_cache: Path) -> None:
    make_program(spec())
    cache.programs.clear()
    folder = own_cache / "inductor-kernels" / "entries"
    objects = list(folder.glob("*/*.o"))
    assert objects
    for file in objects:
        file.write_bytes(b"no object")
    with records.collect() as found:
        assert works(make_program(spec()))
    assert [r.code for r in found] == ["DC001"] * len(objects)


def test_an_entry_of_another_machine_is_not_loaded(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = make_program(spec()).serialize()
    tier = A.argand_c10.cpu.tier()
    monkeypatch.setattr(A.argand_c10.cpu, "tier", lambda: tier + 1)
    with records.collect() as found:
        assert load.load(data) is None
    assert [(r.code, "its tier is" in r.message) for r in found] == [("IN007", True)]


def test_a_library_that_is_no_library(own_cache: Path) -> None:
    data = make_program(spec()).serialize()
    cache.programs.clear()
    (tier, abi) = (A.argand_c10.cpu.tier(), A.argand_c10.ABI_VERSION)
    manifest = {"format": 1, "tier": tier, "abi": abi}
    cache.programs.put(data["library"], {"program.so": b"\x7fELF nonsense"}, manifest)
    with records.collect() as found:
        assert load.load(data) is None
        assert works(make_program(spec()))
    assert [r.code for r in found] == ["IN007"]


def test_an_operator_with_another_schema_is_refused(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from argand_inductor import _C
    from argand_inductor.program import ExternStep

    program = ProgramSpec(
        (tensor("x", 8),), (Buf("o"),), (ExternStep("relu", (Buf("x"),), ("o",)),), {"o": buffer(8)}
    )
    real = _C.schema_hash
    from argand_inductor.artifact import make

    class Other:
        Program = _C.Program
        schema_hash = staticmethod(lambda name: real(name) ^ 1)

    monkeypatch.setattr(make, "_C", Other)
    with pytest.raises(RuntimeError, match="'relu' has another schema than when"):
        make_program(program)


def test_constants_come_back(own_cache: Path) -> None:
    from argand_inductor.program import ExternStep

    k = A.randn(4, 2).t()
    program = ProgramSpec(
        (tensor("x", 2, 4),),
        (Buf("o"),),
        (ExternStep("mul", (Buf("x"), Buf("k")), ("o",)),),
        {"o": buffer(2, 4)},
        {"k": k},
    )
    data = make_program(program).serialize()
    loaded = load.load(data)
    assert loaded is not None
    x = A.randn(2, 4)
    assert A.equal(loaded(x)[0], x * k)
    load._constants.clear()
    assert load.load(data) is None


def test_a_warm_start_compiles_nothing_and_imports_little(own_cache: Path) -> None:
    data = make_program(spec()).serialize()
    text = f"""
import sys
import argand_inductor
assert not [name for name in sys.modules if name.startswith("argand_inductor.")], sys.modules
program = argand_inductor.load({data!r})
import argand_aten as A
from argand_c10 import metrics
x = A.randn(8)
assert A.equal(program(x)[0], x + 1)
assert metrics.counters() == {{"artifacts_loaded": 1}}, metrics.counters()
ours = {{name for name in sys.modules if name.startswith("argand_inductor")}}
assert ours == {{"argand_inductor", "argand_inductor._C", "argand_inductor.artifact",
                "argand_inductor.artifact.device_compiler", "argand_inductor.artifact.load"}}, ours
for name in ("sympy", "networkx", "argand_fx", "argand_aten.generated.tables"):
    assert name not in sys.modules, name
"""
    environment = {**os.environ, "ARGAND_CC": "/nowhere/gcc"}
    subprocess.run([sys.executable, "-c", text], env=environment, check=True)
