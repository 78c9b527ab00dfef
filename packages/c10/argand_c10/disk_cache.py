"""A cache on disk that several processes may share: owner-only, atomic, verified when read.

Layout: `<root>/<name>/entries/<key>/` holds an entry's files and its manifest; `.../locks/` the locks; `.../tmp/` what is
being written. An entry appears by one rename of its folder, so a writer that dies leaves nothing half-done.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import json
import os
import stat
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from argand_c10 import debug_trace
from argand_c10.fork import renew_in_child
from argand_c10.records import Record, emit

_MANIFEST = "manifest.json"
_DEFAULT_LIMIT = 4 << 30
# Seconds after which something left in tmp/ belongs to a writer that died.
_STALE = 3600.0
_PUTS_BETWEEN_EVICTIONS = 64
_reporting = threading.Lock()
renew_in_child(_reporting)  # another thread may hold it
_reported: set[Path] = set()


def cache_root() -> Path:
    """The folder of all caches: ARGAND_CACHE_DIR, or ~/.cache/argand (XDG_CACHE_HOME is respected)."""
    get = os.environ.get
    return _root(get("ARGAND_CACHE_DIR"), get("XDG_CACHE_HOME"), get("HOME"))


@functools.lru_cache(maxsize=16)
def _root(given: str | None, base: str | None, home: str | None) -> Path:
    """`home` is not used: where `~` is depends on it."""
    if given:
        return Path(given)
    return (Path(base) if base else Path("~/.cache").expanduser()) / "argand"


def size_limit() -> int:
    """The most bytes that each cache may hold: ARGAND_CACHE_LIMIT, 4 GiB by default."""
    try:
        return int(os.environ.get("ARGAND_CACHE_LIMIT", _DEFAULT_LIMIT))
    except ValueError:
        return _DEFAULT_LIMIT


@dataclass(frozen=True, slots=True)
class Entry:
    """A verified entry.

    Attributes:
        folder: where its files lie; they are never changed, but may be removed at any time.
        manifest: what `put` was given.
        hashes: sha256 of each file, by name.
        contents: of each file, as it was verified.
    """

    folder: Path
    manifest: dict[str, Any]
    hashes: dict[str, str]
    contents: dict[str, bytes]

    def path(self, name: str) -> Path:
        return self.folder / name


class DiskCache:
    """Entries by key. Whatever goes wrong with the disk makes one record and leaves the caller uncached; nothing is raised.

    Args:
        name: the folder below the root.
        root: default `cache_root()`, asked at each use.
    """

    def __init__(self, name: str, root: Path | None = None) -> None:
        self._name = name
        self._root = root
        self._lock = threading.Lock()
        self._puts = 0
        self._ready: Path | None = None

    @property
    def folder(self) -> Path:
        return (self._root or cache_root()) / self._name

    # ---- reading and writing
    def get(self, key: str) -> Entry | None:
        """The entry, all of its files verified; None if there is none. A bad one is removed, with a record.

        While a debug trace is on nothing is found: a report is to show every stage.
        """
        if debug_trace.enabled():
            return None
        folder = self.folder / "entries" / _safe(key)
        try:
            entry = self._open(folder, key)
        except FileNotFoundError:
            return None
        except _BadEntryError as error:
            emit(
                Record(
                    "cache",
                    "DC001",
                    f"the cache entry {folder} was not used: {error}; it was removed",
                    "nothing to do: it is made again",
                )
            )
            self._remove(folder)
            return None
        except OSError as error:
            self._report("read", error)
            return None
        with contextlib.suppress(OSError):
            os.utime(folder)  # the eviction's clock
        return entry

    def put(
        self, key: str, files: Mapping[str, bytes], manifest: Mapping[str, Any]
    ) -> Entry | None:
        """Store an entry; None if that was not possible. An entry that another process stored meanwhile stays.

        Args:
            key: any text of letters, digits, - and _.
            files: content by plain file name.
            manifest: what JSON can hold.
        """
        target = self.folder / "entries" / _safe(key)
        work: str | None = None
        try:
            self._prepare()
            work = _new_folder(self.folder / "tmp")
            hashes = {}
            for name, data in files.items():
                _write(os.path.join(work, _safe(name)), data)
                hashes[name] = hashlib.sha256(data).hexdigest()
            text = json.dumps({"key": key, "files": hashes, "manifest": dict(manifest)})
            _write(os.path.join(work, _MANIFEST), text.encode())
            self._publish(work, target)
            work = None
        except OSError as error:
            self._report("write", error)
            return None
        finally:
            if work is not None:
                _remove_tree(work)
        self._count_put()
        return Entry(target, json.loads(text)["manifest"], hashes, dict(files))

    def discard(self, key: str) -> None:
        """Remove an entry, if there is one."""
        self._remove(self.folder / "entries" / _safe(key))

    def clear(self) -> None:
        """Remove all entries."""
        _remove_tree(self.folder / "entries")
        self._ready = None

    @contextlib.contextmanager
    def lock(self, key: str, timeout: float) -> Iterator[bool]:
        """Keep others, in this process or another, from the same key; yields False if that took longer than `timeout` seconds.

        A lock ends with its process. Without a usable disk there are no locks: yields True.
        """
        try:
            self._prepare()
            fd = os.open(
                self.folder / "locks" / (_safe(key) + ".lock"),
                os.O_RDWR | os.O_CREAT | os.O_CLOEXEC,
                0o600,
            )
        except OSError as error:
            self._report("lock", error)
            yield True
            return
        try:
            yield _flock(fd, timeout)
        finally:
            os.close(fd)

    # ---- eviction
    def evict(self, limit: int | None = None) -> int:
        """Remove the entries longest unused until at most `limit` bytes are left (default: `size_limit()`); the number removed."""
        limit = size_limit() if limit is None else limit
        found: list[tuple[float, int, Path]] = []
        with contextlib.suppress(OSError), os.scandir(self.folder / "entries") as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    size = sum(f.stat().st_size for f in os.scandir(entry.path))
                    found.append((entry.stat().st_mtime, size, Path(entry.path)))
        self._sweep_stale()
        total = sum(size for _, size, _ in found)
        removed = 0
        for _, size, path in sorted(found):
            if total <= limit:
                break
            self._remove(path)
            total -= size
            removed += 1
        return removed

    def _sweep_stale(self) -> None:
        horizon = time.time() - _STALE
        for room in ("tmp", "locks"):
            with contextlib.suppress(OSError), os.scandir(self.folder / room) as entries:
                for entry in entries:
                    with contextlib.suppress(OSError):
                        if entry.stat().st_mtime >= horizon:
                            continue
                        if room == "tmp":
                            _remove_tree(entry.path)
                        else:
                            os.unlink(entry.path)

    def _count_put(self) -> None:
        with self._lock:
            self._puts += 1
            due = self._puts % _PUTS_BETWEEN_EVICTIONS == 1
        if due:
            self.evict()

    # ---- the disk
    def _prepare(self) -> None:
        """Makes the folders; refuses those that another user owns or may write to."""
        folder = self.folder
        if self._ready == folder and folder.is_dir():
            return
        for path in (folder.parent, folder, folder / "entries", folder / "locks", folder / "tmp"):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if path != folder.parent:
                _check_owner(path)
        self._ready = folder

    def _open(self, folder: Path, key: str) -> Entry:
        for path in (self.folder, folder):
            try:
                _check_owner(path)
            except PermissionError as error:
                raise _BadEntryError(str(error)) from None
        try:
            document = json.loads((folder / _MANIFEST).read_bytes())
            hashes, manifest = dict(document["files"]), dict(document["manifest"])
            if document["key"] != key:
                raise _BadEntryError("its manifest is another entry's")
        except (ValueError, KeyError, TypeError, FileNotFoundError):
            raise _BadEntryError("its manifest is missing or damaged") from None
        contents = {}
        for name, digest in hashes.items():
            try:
                contents[name] = (folder / name).read_bytes()
            except FileNotFoundError:
                raise _BadEntryError(f"its file {name} is missing") from None
            if hashlib.sha256(contents[name]).hexdigest() != digest:
                raise _BadEntryError(f"its file {name} differs from the manifest")
        return Entry(folder, manifest, hashes, contents)

    def _publish(self, work: str, target: Path) -> None:
        """Renames a finished folder into place. A valid entry that is there already wins."""
        for _ in range(3):
            try:
                os.rename(work, target)
                return
            except OSError:
                if not target.is_dir():
                    raise
            with contextlib.suppress(_BadEntryError, OSError):
                self._open(target, target.name)
                _remove_tree(work)
                return
            self._remove(target)
        raise OSError(f"{target} cannot be replaced")

    def _remove(self, folder: Path) -> None:
        """Takes the entry out of sight by a rename, then deletes it, so that nobody sees half of it."""
        try:
            grave = _new_folder(self.folder / "tmp")
            os.rename(folder, os.path.join(grave, "entry"))
            _remove_tree(grave)
        except OSError:
            _remove_tree(folder)

    def _report(self, action: str, error: OSError) -> None:
        """One record for each root that fails, whichever caches lie in it."""
        with _reporting:
            if self.folder.parent in _reported:
                return
            _reported.add(self.folder.parent)
        emit(
            Record(
                "cache",
                "DC002",
                f"the cache in {self.folder.parent} is not used: cannot {action}: {error}",
                "make room, or set ARGAND_CACHE_DIR to a folder of your own that you can write to",
            )
        )


class _BadEntryError(Exception):
    pass


def _safe(name: str) -> str:
    if not name or name.startswith(".") or not all(c.isalnum() or c in "-_." for c in name):
        raise ValueError(f"disk cache: got the name {name!r}, expected letters, digits, - _ .")
    return name


def _check_owner(path: Path) -> None:
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode):
        raise PermissionError(f"{path} is no folder")
    if found.st_uid != os.geteuid():
        raise PermissionError(f"{path} belongs to user {found.st_uid}, not to you")
    if found.st_mode & 0o022:
        raise PermissionError(f"{path} may be written by others")


def _new_folder(parent: Path) -> str:
    """A folder of a new name. (tempfile and shutil cost a warm start more to import than all else here.)"""
    path = os.path.join(parent, f"{os.getpid()}-{os.urandom(8).hex()}")
    os.mkdir(path, 0o700)
    return path


def _remove_tree(path: str | os.PathLike[str]) -> None:
    """Delete a folder; what cannot be deleted stays."""
    import shutil

    shutil.rmtree(path, ignore_errors=True)


def _write(path: str, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
    finally:
        os.close(fd)


def _flock(fd: int, timeout: float) -> bool:
    deadline = time.monotonic() + timeout
    pause = 0.002
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError:
            if time.monotonic() >= deadline:
                return False
        time.sleep(pause)
        pause = min(2 * pause, 0.1)
