"""Archives of compiled kernels: one file an architecture, read when a kernel is first needed.

    "ARGK0001" | u64 length of the index | index | blobs

The index is JSON: `dictionary` [offset, length] of the compression dictionary and `kernels`, name -> [blob, entry, threads, shared bytes];
`blobs` lists [offset, length] (from the end of the index). A blob is a zlib stream with the dictionary preset (code objects of neighbouring
kernels are alike); equal code objects are one blob.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_MAGIC = b"ARGK0001"
_WINDOW = 32768


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
    """An archive file, opened for reading; only the index is held in memory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with open(path, "rb") as f:
            magic, length = struct.unpack("<8sQ", f.read(16))
            if magic != _MAGIC:
                raise ValueError(f"{path}: got {magic!r}, expected an archive of kernels ({_MAGIC!r}); reinstall the package")
            index = json.loads(f.read(length))
            self._start = 16 + length
            self._blobs: list[list[int]] = index["blobs"]
            self._kernels: dict[str, list[int | str]] = index["kernels"]
            offset, length = index["dictionary"]
            f.seek(self._start + offset)
            self._dictionary = f.read(length)

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
        offset, length = self._blobs[int(row[0])]
        with open(self._path, "rb") as f:
            f.seek(self._start + offset)
            data = f.read(length)
        decompress = zlib.decompressobj(zdict=self._dictionary)
        image = decompress.decompress(data) + decompress.flush()
        return Compiled(name, image, str(row[1]), int(row[2]), int(row[3]))


def write(path: Path, kernels: Iterable[Compiled]) -> None:
    """Writes an archive in one piece, sorted by name: equal kernels give equal files."""
    ordered = sorted(kernels, key=lambda k: k.name)
    images: dict[bytes, int] = {}
    for kernel in ordered:
        images.setdefault(kernel.image, len(images))
    dictionary = _dictionary(list(images))
    blobs: list[list[int]] = []
    body = bytearray(dictionary)
    for image in images:
        compress = zlib.compressobj(9, zdict=dictionary)
        data = compress.compress(image) + compress.flush()
        blobs.append([len(body), len(data)])
        body += data
    rows = {k.name: [images[k.image], k.entry, k.threads, k.shared] for k in ordered}
    index = json.dumps(
        {"dictionary": [0, len(dictionary)], "blobs": blobs, "kernels": rows}, separators=(",", ":")
    ).encode()
    temporary = path.with_name(path.name + ".new")
    temporary.write_bytes(struct.pack("<8sQ", _MAGIC, len(index)) + index + body)
    os.replace(temporary, path)


def _dictionary(images: list[bytes]) -> bytes:
    """What code objects have in common, from a spread of small ones; what is most alike comes last, where references are shortest."""
    small = sorted(images, key=len)[: max(1, len(images) // 2)]
    picked = small[:: max(1, len(small) // 6)][:6]
    return b"".join(image[: _WINDOW // max(1, len(picked))] for image in picked)[-_WINDOW:]
