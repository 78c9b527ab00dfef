"""Worker processes of `DataLoader`."""

from __future__ import annotations

import multiprocessing
import pickle
import random
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import argand_c10 as c10
from argand_nn.data.fetch import make_fetcher
from argand_nn.data.transfer import PackedBatch, pack, send_descriptors, serve_batches, take_back

__all__ = ["WorkerError", "WorkerInfo", "get_worker_info"]

# Seconds between two looks at whether the loader's process is still there.
_PARENT_CHECK_INTERVAL = 2.0


class WorkerError(RuntimeError):
    """A worker process died, timed out, or raised what cannot be raised again."""


@dataclass(frozen=True)
class WorkerInfo:
    """What a worker process knows of itself.

    Attributes:
        id: number of the worker, from 0.
        num_workers: how many there are.
        seed: of this worker's random generators.
        dataset: its copy of the dataset.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any


_worker_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """What this worker process knows of itself; None in the main process."""
    return _worker_info


@dataclass(frozen=True)
class WorkerSetup:
    """All that a worker needs besides its connection."""

    worker_id: int
    num_workers: int
    dataset: Any
    is_iterable: bool
    auto_collation: bool
    collate_fn: Callable[[Any], Any]
    drop_last: bool
    init_fn: Callable[[int], Any] | None


@dataclass(frozen=True)
class StartEpoch:
    """Tells a worker to begin an epoch with this base seed."""

    seed: int


@dataclass(frozen=True)
class Task:
    """Asks for the batch of these indices (an iterable dataset ignores them), and gives memory back (`Blocks.returned`)."""

    number: int
    indices: Any
    returned: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Batch:
    """A worker's answer to a task; its memory follows (`transfer.send_descriptors`)."""

    number: int
    content: PackedBatch


@dataclass(frozen=True)
class Exhausted:
    """A worker's iterable dataset has ended; the task of this number has no batch."""

    number: int


@dataclass(frozen=True)
class Failure:
    """A worker's answer to a task that raised."""

    number: int
    error_type: type[BaseException] | None
    type_name: str
    text: str

    @staticmethod
    def of(number: int, error: BaseException) -> Failure:
        """The failure that stands for `error`, with its traceback as text."""
        error_type: type[BaseException] | None = type(error)
        try:
            pickle.dumps(error_type)
        except Exception:
            error_type = None
        text = "".join(traceback.format_exception(error))
        return Failure(number, error_type, type(error).__name__, text)

    def to_exception(self, worker_id: int) -> BaseException:
        """An exception of the same type, whose message holds the worker's traceback."""
        message = (
            f"DataLoader worker {worker_id} raised {self.type_name}; its traceback:\n\n{self.text}"
        )
        # A StopIteration would end the loop that asks for batches.
        kind = self.error_type
        if kind is None or not issubclass(kind, Exception) or issubclass(kind, StopIteration):
            return WorkerError(message)
        if issubclass(kind, KeyError):
            # KeyError shows the repr of its argument, in which line ends would be escaped.
            return kind(_PlainRepr(message))
        try:
            return kind(message)
        except Exception:
            return WorkerError(message)


class _PlainRepr(str):
    def __repr__(self) -> str:
        return str(self)


def run_worker(setup: WorkerSetup, connection: Connection, inherited: list[Connection]) -> None:
    """Answer tasks until told to stop (None) or until the loader's process is gone.

    `inherited` are the loader's ends of pipes, which a forked worker must not keep open.
    """
    for other in inherited:
        other.close()
    c10.set_num_threads(1)
    serve_batches()
    try:
        _serve(setup, connection)
    except (BrokenPipeError, ConnectionResetError, EOFError, KeyboardInterrupt):
        pass  # The loader is gone or shutting down: nobody is left to tell.
    finally:
        connection.close()


def _receive(connection: Connection) -> Any:
    """The next message, or None once the loader's process has ended."""
    parent = multiprocessing.parent_process()
    while not connection.poll(_PARENT_CHECK_INTERVAL):
        if parent is not None and not parent.is_alive():
            return None
    return connection.recv()


def _serve(setup: WorkerSetup, connection: Connection) -> None:
    fetcher: Any = None
    startup_error: BaseException | None = None
    initialised = False
    while (message := _receive(connection)) is not None:
        if isinstance(message, StartEpoch):
            try:
                _seed(setup, message.seed)
                if not initialised and setup.init_fn is not None:
                    setup.init_fn(setup.worker_id)
                initialised = True
                fetcher = make_fetcher(
                    setup.dataset,
                    setup.is_iterable,
                    setup.auto_collation,
                    setup.collate_fn,
                    setup.drop_last,
                )
                startup_error = None
            except Exception as error:
                startup_error = error
            continue
        answer: Batch | Exhausted | Failure
        files: list[c10.UntypedStorage] = []
        take_back(message.returned)
        try:
            if startup_error is not None:
                raise startup_error
            packed, files = pack(fetcher(message.indices))
            answer = Batch(message.number, packed)
        except StopIteration as end:
            if setup.is_iterable:
                answer = Exhausted(message.number)
            else:
                answer = Failure.of(message.number, end)
        except Exception as error:
            answer = Failure.of(message.number, error)
        connection.send(answer)
        send_descriptors(connection, files)
        del files  # the memory is the loader's from now on


def _seed(setup: WorkerSetup, base_seed: int) -> None:
    global _worker_info
    seed = base_seed + setup.worker_id
    random.seed(seed)
    c10.manual_seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % (1 << 32))
    _worker_info = WorkerInfo(setup.worker_id, setup.num_workers, seed, setup.dataset)
