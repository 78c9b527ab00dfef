"""Archives of compiled kernels: one file an architecture, read when a kernel is first needed.

    "ARGK0002" | u64 length of the index | index | chunks

The index is JSON: `chunks` lists [offset, length] (from the end of the index), `kernels` has name -> [chunk, offset in it, length, entry,
threads, shared bytes]. A chunk is LZMA2 of neighbouring code objects, which are alike, up to 256 KiB of them: about 2 ms to unpack. Equal code
objects are stored once.
"""

from __future__ import annotations

import json
import lzma
import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_MAGIC = b"ARGK0002"
_CHUNK = 1 << 18
_KEPT = 8  # unpacked chunks


def _filters(preset: int) -> list[dict[str, Any]]:
    return [{"id": lzma.FILTER_LZMA2, "preset": preset, "dict_size": 1 << 22}]


@dataclass(frozen=True)
class Compiled:
    """A specialization's code object.

    Attributes:
        name: of the specialization.
        image: the code object (ELF).
        entry: the kernel's name inside it.
        threads: of a block.
        shared: dynamic shared memory of a block in bytes.
    """

    name: str
    image: bytes
    entry: str
    threads: int
    shared: int


class Archive:
    """An archive file, opened for reading; the index and the chunks used last are held in memory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with open(path, "rb") as f:
            magic, length = struct.unpack("<8sQ", f.read(16))
            if magic != _MAGIC:
                raise ValueError(
                    f"{path}: got {magic!r}, expected an archive of kernels ({_MAGIC!r}); reinstall the package"
                )
            index = json.loads(f.read(length))
        self._start = 16 + length
        self._chunks: list[list[int]] = index["chunks"]
        self._kernels: dict[str, list[int | str]] = index["kernels"]
        self._unpacked: dict[int, bytes] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._kernels

    def __len__(self) -> int:
        return len(self._kernels)

    def names(self) -> list[str]:
        return list(self._kernels)

    def get(self, name: str) -> Compiled | None:
        """The specialization of that name, or None."""
        row = self._kernels.get(name)
        if row is None:
            return None
        chunk, offset, length = int(row[0]), int(row[1]), int(row[2])
        image = self._unpack(chunk)[offset : offset + length]
        return Compiled(name, image, str(row[3]), int(row[4]), int(row[5]))

    def _unpack(self, number: int) -> bytes:
        data = self._unpacked.pop(number, None)
        if data is None:
            offset, length = self._chunks[number]
            with open(self._path, "rb") as f:
                f.seek(self._start + offset)
                data = lzma.decompress(f.read(length), lzma.FORMAT_RAW, filters=_filters(6))
            if len(self._unpacked) == _KEPT:
                self._unpacked.pop(next(iter(self._unpacked)), None)
        self._unpacked[number] = data
        return data


def write(path: Path, kernels: Iterable[Compiled], preset: int = 6) -> None:
    """Writes an archive in one piece, sorted by name: equal kernels give equal files. `preset`: LZMA's, 0 (quick) to 9."""
    ordered = sorted(kernels, key=lambda k: k.name)
    places: dict[bytes, tuple[int, int]] = {}  # image -> chunk, offset
    chunks: list[bytearray] = []
    for kernel in ordered:
        if kernel.image in places:
            continue
        if not chunks or len(chunks[-1]) + len(kernel.image) > _CHUNK:
            chunks.append(bytearray())
        places[kernel.image] = (len(chunks) - 1, len(chunks[-1]))
        chunks[-1] += kernel.image
    packed = [lzma.compress(chunk, lzma.FORMAT_RAW, filters=_filters(preset)) for chunk in chunks]
    rows = {k.name: [*places[k.image], len(k.image), k.entry, k.threads, k.shared] for k in ordered}
    starts = [sum(map(len, packed[:i])) for i in range(len(packed))]
    table = [[start, len(data)] for start, data in zip(starts, packed, strict=True)]
    index = json.dumps({"chunks": table, "kernels": rows}, separators=(",", ":")).encode()
    temporary = path.with_name(path.name + ".new")
    temporary.write_bytes(struct.pack("<8sQ", _MAGIC, len(index)) + index + b"".join(packed))
    os.replace(temporary, path)
