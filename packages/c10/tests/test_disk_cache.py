"""The disk cache: atomic, verified, shared between processes, harmless when the disk fails."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from argand_c10 import disk_cache, records
from argand_c10.disk_cache import DiskCache


@pytest.fixture
def cache(tmp_path: Path) -> DiskCache:
    return DiskCache("things", tmp_path / "root")


def entry_folder(cache: DiskCache, key: str) -> Path:
    return cache.folder / "entries" / key


def test_put_and_get(cache: DiskCache) -> None:
    assert cache.get("a") is None
    put = cache.put("a", {"x.so": b"library", "y.c": b""}, {"n": [1, 2]})
    assert put is not None
    found = cache.get("a")
    assert found is not None
    assert found.manifest == {"n": [1, 2]} == put.manifest
    assert found.contents["x.so"] == b"library"
    assert found.contents["y.c"] == b""
    assert found.path("x.so").read_bytes() == b"library"


def test_only_the_owner_has_access(cache: DiskCache) -> None:
    cache.put("a", {"x": b"1"}, {})
    assert cache.folder.stat().st_mode & 0o777 == 0o700
    assert entry_folder(cache, "a").stat().st_mode & 0o777 == 0o700
    assert (entry_folder(cache, "a") / "x").stat().st_mode & 0o777 == 0o600


def test_a_second_put_keeps_the_first(cache: DiskCache) -> None:
    cache.put("a", {"x": b"1"}, {})
    assert cache.put("a", {"x": b"1"}, {}) is not None
    found = cache.get("a")
    assert found is not None
    assert found.contents["x"] == b"1"
    assert list((cache.folder / "tmp").iterdir()) == []


@pytest.mark.parametrize("damage", ["truncate", "change", "remove", "manifest", "key"])
def test_a_damaged_entry_is_removed_with_one_record(cache: DiskCache, damage: str) -> None:
    cache.put("a", {"x": b"0123456789"}, {})
    folder = entry_folder(cache, "a")
    if damage == "truncate":
        (folder / "x").write_bytes(b"01234")
    elif damage == "change":
        (folder / "x").write_bytes(b"0123456780")
    elif damage == "remove":
        (folder / "x").unlink()
    elif damage == "manifest":
        (folder / "manifest.json").write_text('{"key": "a", "files"')
    else:
        folder.rename(entry_folder(cache, "b"))
    key = "b" if damage == "key" else "a"
    with records.collect() as found:
        assert cache.get(key) is None
    assert [r.code for r in found] == ["DC001"]
    assert not entry_folder(cache, key).exists()
    assert cache.put(key, {"x": b"new"}, {}) is not None
    again = cache.get(key)
    assert again is not None
    assert again.contents["x"] == b"new"


def test_a_damaged_entry_is_replaced_by_put(cache: DiskCache) -> None:
    cache.put("a", {"x": b"0123456789"}, {})
    (entry_folder(cache, "a") / "x").write_bytes(b"")
    assert cache.put("a", {"x": b"0123456789"}, {}) is not None
    with records.collect() as found:
        assert cache.get("a") is not None
    assert found == []


def test_folders_that_others_may_write_are_refused(cache: DiskCache) -> None:
    cache.put("a", {"x": b"1"}, {})
    entry_folder(cache, "a").chmod(0o777)
    with records.collect() as found:
        assert cache.get("a") is None
    assert [r.code for r in found] == ["DC001"]
    assert "written by others" in found[0].message


def test_a_foreign_owner_is_refused(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.put("a", {"x": b"1"}, {})
    me = os.geteuid()
    monkeypatch.setattr(disk_cache.os, "geteuid", lambda: me + 1)
    with records.collect() as found:
        assert cache.get("a") is None
        assert DiskCache("things", cache.folder.parent).put("b", {"x": b"1"}, {}) is None
    assert [r.code for r in found] == ["DC001", "DC002"]


def test_an_unusable_root_makes_one_record(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    cache = DiskCache("things", tmp_path / "file")
    with records.collect() as found:
        assert DiskCache("others", tmp_path / "file").put("a", {}, {}) is None
        for key in "abc":
            assert cache.put(key, {"x": b"1"}, {}) is None
            assert cache.get(key) is None
            with cache.lock(key, 1.0) as held:
                assert held
    assert [r.code for r in found] == ["DC002"]
    assert "ARGAND_CACHE_DIR" in found[0].fix


def test_a_full_disk_leaves_nothing(cache: DiskCache) -> None:
    """A file-size limit stands in for the full disk: write() fails half-way in the same way."""
    program = f"""
import resource, signal, sys
from pathlib import Path
from argand_c10 import records
from argand_c10.disk_cache import DiskCache
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
cache = DiskCache("things", Path({os.fspath(cache.folder.parent)!r}))
with records.collect() as found:
    assert cache.put("a", {{"x": b"1" * 5000}}, {{}}) is None
    assert cache.put("b", {{"x": b"1" * 5000}}, {{}}) is None
assert [r.code for r in found] == ["DC002"], found
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    assert list((cache.folder / "tmp").iterdir()) == []
    assert cache.get("a") is None


def test_a_killed_writer_leaves_nothing_torn(cache: DiskCache) -> None:
    program = f"""
import os, signal
from pathlib import Path
from argand_c10 import disk_cache
write = disk_cache._write
def dying(path, data):
    write(path, data[:len(data) // 2])
    os.kill(os.getpid(), signal.SIGKILL)
disk_cache._write = dying
disk_cache.DiskCache("things", Path({os.fspath(cache.folder.parent)!r})).put("a", {{"x": b"1" * 99}}, {{}})
"""
    done = subprocess.run([sys.executable, "-c", program], check=False)
    assert done.returncode == -signal.SIGKILL
    with records.collect() as found:
        assert cache.get("a") is None
        assert cache.put("a", {"x": b"2"}, {}) is not None
    assert found == []
    left = list((cache.folder / "tmp").iterdir())
    assert len(left) == 1
    os.utime(left[0], (0, 0))
    cache.evict()
    assert list((cache.folder / "tmp").iterdir()) == []


def test_a_lock_keeps_others_out_until_its_time_is_over(cache: DiskCache) -> None:
    entered = threading.Event()
    leave = threading.Event()

    def hold() -> None:
        with cache.lock("a", 1.0) as held:
            assert held
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    assert entered.wait(10)
    start = time.monotonic()
    with cache.lock("a", 0.2) as held:
        assert not held
    assert time.monotonic() - start < 5
    with cache.lock("b", 0.2) as held:
        assert held
    leave.set()
    with cache.lock("a", 10.0) as held:
        assert held
    thread.join()


def test_a_lock_dies_with_its_process(cache: DiskCache) -> None:
    program = f"""
import time
from pathlib import Path
from argand_c10.disk_cache import DiskCache
with DiskCache("things", Path({os.fspath(cache.folder.parent)!r})).lock("a", 1.0) as held:
    print(held, flush=True)
    time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"True\n"
        with cache.lock("a", 0.05) as held:
            assert not held
        process.kill()
    with cache.lock("a", 10.0) as held:
        assert held


def test_eviction_removes_what_was_unused_longest(cache: DiskCache) -> None:
    for i, key in enumerate("abcd"):
        cache.put(key, {"x": b"1" * 1000}, {})
        os.utime(entry_folder(cache, key), (1000 + i, 1000 + i))
    assert cache.get("a") is not None  # used now
    size = sum(f.stat().st_size for f in entry_folder(cache, "a").iterdir())
    assert cache.evict(2 * size) == 2
    assert [key for key in "abcd" if cache.get(key)] == ["a", "d"]


def test_the_limit_holds_over_many_puts(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGAND_CACHE_LIMIT", "20000")
    for i in range(200):
        cache.put(f"k{i}", {"x": b"1" * 1000}, {})
    assert len(list((cache.folder / "entries").iterdir())) < 100


@pytest.mark.parametrize("name", ["", "../a", "a/b", ".hidden", "a\0"])
def test_names_cannot_leave_the_folder(cache: DiskCache, name: str) -> None:
    with pytest.raises(ValueError, match="disk cache: got the name"):
        cache.put(name, {}, {})


def test_many_processes_write_the_same_entry(cache: DiskCache) -> None:
    program = f"""
from pathlib import Path
from argand_c10 import records
from argand_c10.disk_cache import DiskCache
cache = DiskCache("things", Path({os.fspath(cache.folder.parent)!r}))
with records.collect() as found:
    for i in range(50):
        cache.put(f"k{{i % 5}}", {{"x": b"%d" % (i % 5) * 1000}}, {{}})
        entry = cache.get(f"k{{i % 5}}")
        assert entry is not None and entry.contents["x"] == b"%d" % (i % 5) * 1000
assert found == [], found
"""
    processes = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
    assert list((cache.folder / "tmp").iterdir()) == []
