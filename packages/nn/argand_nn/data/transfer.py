"""Batches between processes: tensors in shared memory, the rest pickled through the pipe.

A worker's `default_collate` writes large tensors into shared memory from the start; other tensors of a batch are copied
into one block of it. The blocks are files without names, so that nothing stays behind, whoever dies; their descriptors
follow the batch on the pipe. A block that neither process looks at any more is filled again: memory that is fresh costs
several times what filling it does.
"""

from __future__ import annotations

import io
import math
import os
import pickle
import socket
from collections.abc import Sequence
from dataclasses import dataclass, replace
from multiprocessing import reduction
from multiprocessing.connection import Connection
from typing import Any

import argand_aten as aten
import argand_c10 as c10
from argand_c10 import OutOfMemoryError, Tensor, UntypedStorage
from argand_c10.shared_memory import refuse_history
from argand_c10.tensor_methods import rebuilt

__all__ = [
    "Blocks",
    "PackedBatch",
    "empty_for_batch",
    "pack",
    "send_descriptors",
    "serve_batches",
    "take_back",
    "unpack",
]

_ALIGNMENT = 64
# Tensors from here on have a block of their own.
_LARGE_BYTES = 64 << 10
# Linux sends at most 253 descriptors at once.
_DESCRIPTORS_AT_ONCE = 128
# Blocks that a worker knows at most, if that is enough for the last few batches: each has a descriptor.
_MOST_BLOCKS = 64

_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_parent=_count_fork)


@dataclass(frozen=True)
class _Slot:
    """Where a tensor lies: the number of the block, the first element, dtype, sizes and strides."""

    block: int
    offset: int
    dtype: c10.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def on(self, storage: UntypedStorage) -> Tensor:
        tensor: Tensor = aten.empty(0, dtype=self.dtype, device="cpu")
        return tensor.set_(storage, self.offset, self.shape, self.strides)


@dataclass(frozen=True)
class PackedBatch:
    """A batch whose tensors of the CPU lie in blocks.

    Attributes:
        pickled: the batch, in which a `_Part` stands for the elements of such a tensor.
        slots: where they lie, by the part's number.
        blocks: the numbers of its blocks.
        fresh: numbers and bytes of those whose descriptors follow.
        dropped: numbers of blocks that the worker has forgotten.
    """

    pickled: bytes
    slots: tuple[_Slot, ...]
    blocks: tuple[int, ...]
    fresh: tuple[tuple[int, int], ...]
    dropped: tuple[int, ...]


@dataclass(frozen=True)
class _Part:
    """In place of a tensor's elements."""

    number: int


class _Pickler(reduction.ForkingPickler):
    """Pickles a batch, and keeps the tensors whose elements are to go otherwise, as plain ones without history."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.parts: list[Tensor] = []

    def reducer_override(self, value: Any) -> Any:
        # Sparse tensors, and classes that say how they are pickled, have no such memory.
        if (
            not isinstance(value, Tensor)
            or value.is_sparse
            or not value.is_cpu
            or type(value).__reduce_ex__ is not Tensor.__reduce_ex__
            or type(value).__reduce__ is not Tensor.__reduce__
        ):
            return NotImplemented
        refuse_history(value)
        self.parts.append(Tensor._make_subclass(Tensor, value))
        part = _Part(len(self.parts) - 1)
        return rebuilt, (part, type(value), value.requires_grad), value.__dict__ or None

    def persistent_id(self, value: Any) -> int | None:
        return value.number if type(value) is _Part else None


class _Unpickler(pickle.Unpickler):
    """Puts the parts of a batch back."""

    def __init__(self, pickled: bytes, parts: Sequence[Tensor]) -> None:
        super().__init__(io.BytesIO(pickled))
        self._parts = parts

    def persistent_load(self, number: int) -> Tensor:
        return self._parts[number]


@dataclass
class _Lent:
    """A worker's block: how often it was sent, and how many of these times it was given back."""

    storage: UntypedStorage
    sent: int = 0
    back: int = 0

    def is_free(self) -> bool:
        return self.sent == self.back and self.storage._use_count() == 1


class _Pool:
    """A worker's blocks by number, oldest first."""

    def __init__(self) -> None:
        self.blocks: dict[int, _Lent] = {}
        self.next_number = 0
        self.largest = 0  # bytes of a batch

    def take(self, nbytes: int) -> tuple[int, UntypedStorage]:
        """A block for so many bytes that nobody looks at."""
        fitting = [
            (block.storage.nbytes(), number)
            for number, block in self.blocks.items()
            if nbytes <= block.storage.nbytes() <= 2 * nbytes and block.is_free()
        ]
        if fitting:
            number = min(fitting)[1]
            return number, self.blocks[number].storage
        try:
            storage = UntypedStorage._new_shared(nbytes)
        except OutOfMemoryError as error:
            raise OutOfMemoryError(
                f"DataLoader: there is no room for a batch: {error}; use smaller batches or fewer workers"
            ) from error
        self.next_number += 1
        self.blocks[self.next_number] = _Lent(storage)
        return self.next_number, storage

    def number_of(self, storage: UntypedStorage) -> int | None:
        return next((n for n, block in self.blocks.items() if block.storage is storage), None)

    def take_back(self, returned: Sequence[tuple[int, int]]) -> None:
        """What `Blocks.returned` says."""
        for number, times in returned:
            if times < 0:
                self.blocks.pop(number, None)
            elif number in self.blocks:
                self.blocks[number].back = times

    def trim(self, in_use: Sequence[int]) -> tuple[int, ...]:
        """Forget blocks that have long been of no use, and those beyond the number that may be known."""
        self.largest = max(self.largest, sum(self.blocks[n].storage.nbytes() for n in in_use))
        free = {
            n: b.storage.nbytes() for n, b in self.blocks.items() if n not in in_use and b.is_free()
        }
        dropped = []
        excess = sum(free.values()) - 2 * self.largest
        for number, nbytes in free.items():
            if excess > 0:
                dropped.append(number)
                excess -= nbytes
        others = [n for n in self.blocks if n not in in_use and n not in dropped]
        too_many = len(self.blocks) - len(dropped) - max(_MOST_BLOCKS, 4 * len(in_use))
        dropped += others[: max(too_many, 0)]
        for number in dropped:
            del self.blocks[number]
        return tuple(dropped)


_pool: _Pool | None = None


def serve_batches() -> None:
    """This process is a worker from now on."""
    global _pool
    _pool = _Pool()


def empty_for_batch(shape: Sequence[int], dtype: c10.dtype) -> Tensor | None:
    """In a worker, a large new tensor in shared memory, which `pack` need not copy; else None."""
    nbytes = math.prod(shape) * dtype.itemsize
    if _pool is None or nbytes < _LARGE_BYTES:
        return None
    number, storage = _pool.take(nbytes)
    return _Slot(number, 0, dtype, tuple(shape), _row_major(shape)).on(storage)


def _row_major(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(math.prod(max(size, 1) for size in shape[i + 1 :]) for i in range(len(shape)))


def pack(batch: Any) -> tuple[PackedBatch, list[UntypedStorage]]:
    """In a worker, a batch for the pipe, and the shared memory whose descriptors are to follow it.

    Raises:
        OutOfMemoryError: there is no room in shared memory.
        RuntimeError: a tensor has a history.
        Exception: what pickling raises.
    """
    pool = _pool
    assert pool is not None
    file = io.BytesIO()
    pickler = _Pickler(file)
    pickler.dump(batch)
    used: dict[int, UntypedStorage] = {}
    slots: list[_Slot] = []
    copies: list[int] = []
    room = 0
    for tensor in pickler.parts:
        storage = tensor.untyped_storage()
        shape, strides = tuple(tensor.shape), tuple(tensor.stride())
        number = pool.number_of(storage)
        if number is not None:
            used[number] = storage
            slots.append(_Slot(number, tensor.storage_offset(), tensor.dtype, shape, strides))
            continue
        copies.append(len(slots))
        offset = room // tensor.dtype.itemsize
        slots.append(_Slot(0, offset, tensor.dtype, shape, _row_major(shape)))
        room += -(-tensor.nbytes // _ALIGNMENT) * _ALIGNMENT
    if copies:
        rest, used_rest = pool.take(room)
        used[rest] = used_rest
        for i in copies:
            slots[i] = replace(slots[i], block=rest)
            slots[i].on(used_rest).copy_(pickler.parts[i])
    fresh = []
    for number in used:
        block = pool.blocks[number]
        block.sent += 1
        if block.sent == 1:
            fresh.append(number)
    dropped = pool.trim(list(used))
    sizes = tuple((number, used[number].nbytes()) for number in fresh)
    packed = PackedBatch(file.getvalue(), tuple(slots), tuple(used), sizes, dropped)
    return packed, [used[number] for number in fresh]


def unpack(packed: PackedBatch, parts: Sequence[Tensor]) -> Any:
    """In the loader's process, a batch from what `Blocks.receive` gave.

    Raises:
        Exception: what unpickling raises.
    """
    return _Unpickler(packed.pickled, parts).load()


def take_back(returned: Sequence[tuple[int, int]]) -> None:
    """In a worker: blocks that the loader gives back (`Blocks.returned`)."""
    assert _pool is not None
    _pool.take_back(returned)


def send_descriptors(connection: Connection, files: Sequence[UntypedStorage]) -> None:
    """Send shared memory after the batch that lies in it."""
    with socket.fromfd(connection.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as pipe:
        for i in range(0, len(files), _DESCRIPTORS_AT_ONCE):
            part: Any = [file._shared_descriptor() for file in files[i : i + _DESCRIPTORS_AT_ONCE]]
            reduction.sendfds(pipe, part)


def _receive_descriptors(connection: Connection, count: int) -> list[int]:
    found: list[int] = []
    with socket.fromfd(connection.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as pipe:
        while len(found) < count:
            wanted = min(count - len(found), _DESCRIPTORS_AT_ONCE)
            try:
                found += reduction.recvfds(pipe, wanted)
            except BaseException as error:
                for descriptor in found:
                    os.close(descriptor)
                if isinstance(error, RuntimeError):
                    raise RuntimeError(
                        f"DataLoader: no file descriptors are left for the {count} tensors of a batch; raise the limit (ulimit -n)"
                    ) from error
                raise
    return found


@dataclass
class _Borrowed:
    """A worker's block in the loader's process: how many batches came in it, how many were given back, forks when the last one came."""

    storage: UntypedStorage
    received: int = 0
    back: int = 0
    forks: int = 0


class Blocks:
    """The loader's side of a worker's blocks."""

    def __init__(self) -> None:
        self._blocks: dict[int, _Borrowed] = {}

    def receive(self, packed: PackedBatch, connection: Connection) -> list[Tensor]:
        """The parts of a batch that a worker packed. Their memory lives as long as the tensors.

        Raises:
            RuntimeError: this process has no file descriptors left.
            EOFError: the worker is gone.
        """
        descriptors = _receive_descriptors(connection, len(packed.fresh)) if packed.fresh else []
        for descriptor, (number, nbytes) in zip(descriptors, packed.fresh, strict=True):
            self._blocks[number] = _Borrowed(UntypedStorage._open_shared(descriptor, nbytes, False))
        for number in packed.dropped:
            self._blocks.pop(number, None)
        parts = {}
        for number in packed.blocks:
            block = self._blocks[number]
            block.received += 1
            block.forks = _forks
            parts[number] = block.storage[:]  # counts as one who looks at the block
        return [slot.on(parts[slot.block]) for slot in packed.slots]

    def returned(self) -> tuple[tuple[int, int], ...]:
        """Blocks that nobody looks at any more: numbers and how many batches came in them.

        A process that was forked meanwhile may look at a block for ever: the number of its batches is -1.
        """
        found = []
        for number, block in list(self._blocks.items()):
            if block.back == block.received or block.storage._use_count() > 1:
                continue
            if block.forks != _forks:
                del self._blocks[number]
                found.append((number, -1))
            else:
                block.back = block.received
                found.append((number, block.received))
        return tuple(found)
