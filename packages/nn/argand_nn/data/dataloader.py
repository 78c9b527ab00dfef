"""`DataLoader`: batches of a dataset, made in this process or in workers."""

from __future__ import annotations

import abc
import itertools
import multiprocessing
import os
import signal
import time
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from typing import Any, Generic, cast

from argand_c10 import Generator, Tensor, cuda
from argand_nn.data.collate import default_collate, default_convert, pin_memory
from argand_nn.data.dataset import Dataset, IterableDataset, SampleT
from argand_nn.data.fetch import make_fetcher
from argand_nn.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    draw_seed,
)
from argand_nn.data.transfer import Blocks, unpack
from argand_nn.data.worker import (
    Batch,
    Exhausted,
    Failure,
    StartEpoch,
    Task,
    WorkerError,
    WorkerSetup,
    run_worker,
)
from argand_nn.data.worker import get_worker_info as get_worker_info

__all__ = ["DataLoader"]

# Seconds that workers get to end by themselves.
_SHUTDOWN_GRACE = 5.0

# The open ends, in this process, of all loaders' pipes; forked workers close their copies.
_open_ends: weakref.WeakSet[Connection] = weakref.WeakSet()


class _Endless(Sampler[None]):
    """Indices for iterable datasets, which use none."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class DataLoader(Generic[SampleT]):
    """Iterates over a dataset in batches.

    Args:
        dataset: a `Dataset` (or any sequence), or an `IterableDataset`.
        batch_size: samples a batch; None passes single samples on.
        shuffle: draw in random order, a new one each epoch.
        sampler: the order of the indices; excludes `shuffle`.
        batch_sampler: lists of indices; excludes batch_size, shuffle, sampler and drop_last.
        num_workers: processes that make batches; 0: this process does.
        collate_fn: joins a list of samples; `default_collate` by default.
        pin_memory: batches are in page-locked memory, from where copies to a CUDA device can run in the background;
            nothing where there is no such device.
        drop_last: drop the last batch if it is not full.
        timeout: seconds to wait for a batch of a worker; 0: no limit.
        worker_init_fn: called with the worker's number in each worker, after seeding.
        multiprocessing_context: a start method or context; the platform's by default.
        generator: source of the order and of the workers' seeds.
        prefetch_factor: batches a worker makes ahead; 2 by default.
        persistent_workers: keep the workers from one epoch to the next.

    Order is kept. What a worker raises is raised here, with the worker's traceback in its message, in place of
    that batch: the next call gives the next one. A `timeout` is a `WorkerError`, after which the next call waits
    again; so is a worker that dies, after which the others have been ended. Batches come from workers as from
    here, whatever their classes, but memory of tensors that are views of each other is not shared; a tensor
    with a history is refused.
    """

    _initialized = False

    def __init__(
        self,
        dataset: Dataset[SampleT],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_worker_options(num_workers, timeout, prefetch_factor, persistent_workers)
        self.dataset = dataset
        self.num_workers, self.timeout = num_workers, timeout
        self.prefetch_factor = 2 if prefetch_factor is None and num_workers else prefetch_factor
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self.worker_init_fn, self.generator = worker_init_fn, generator
        self.persistent_workers, self.in_order = persistent_workers, in_order
        self.multiprocessing_context = _context(multiprocessing_context, num_workers)
        self.is_iterable = isinstance(dataset, IterableDataset)
        if self.is_iterable:
            self._check_stream_options(shuffle, sampler, batch_sampler)
        elif sampler is not None and shuffle:
            raise ValueError("DataLoader: got sampler and shuffle, expected one of them")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "DataLoader: got batch_sampler with batch_size, shuffle, sampler or drop_last, "
                    "expected batch_sampler alone"
                )
            batch_size, drop_last = None, False
        elif batch_size is None and drop_last:
            raise ValueError("DataLoader: got drop_last without batches, expected a batch_size")
        if sampler is None:
            if self.is_iterable:
                sampler = _Endless()
            elif shuffle:
                sampler = RandomSampler(cast(Sized, dataset), generator=generator)
            else:
                sampler = SequentialSampler(cast(Sized, dataset))
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size, self.drop_last = batch_size, drop_last
        self.sampler, self.batch_sampler = sampler, batch_sampler
        if collate_fn is None:
            collate_fn = default_convert if batch_sampler is None else default_collate
        self.collate_fn = collate_fn
        self._kept_workers: _Workers | None = None
        self._initialized = True
        self.check_worker_number_rationality()

    def __setattr__(self, name: str, value: Any) -> None:
        if self._initialized and name in _FIXED:
            raise ValueError(
                f"{type(self).__name__}: {name} should not be set after it is initialized; make a new one"
            )
        super().__setattr__(name, value)

    @staticmethod
    def _check_stream_options(shuffle: bool | None, sampler: Any, batch_sampler: Any) -> None:
        if shuffle or sampler is not None or batch_sampler is not None:
            raise ValueError(
                "DataLoader: got shuffle, sampler or batch_sampler with an IterableDataset, expected "
                "none; the dataset's __iter__ decides the order"
            )

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    def __iter__(self) -> Iterator[Any]:
        batches = self._batches()
        if self.pin_memory and cuda.is_available():
            return _Epoch(self, map(pin_memory, batches))
        return batches

    def _batches(self) -> Iterator[Any]:
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        workers = self._kept_workers
        if workers is None or workers.closed:
            workers = _Workers(self)
            if self.persistent_workers:
                self._kept_workers = workers
        return _MultiProcessingDataLoaderIter(self, workers)

    def _indices(self) -> Iterator[Any]:
        return iter(self.sampler if self.batch_sampler is None else self.batch_sampler)

    def __len__(self) -> int:
        """Batches an epoch; for a stream as far as its own `__len__` is right."""
        if not self.is_iterable:
            batches = self.sampler if self.batch_sampler is None else self.batch_sampler
            return len(cast(Sized, batches))
        count = len(cast(Sized, self.dataset))
        if self.batch_size is None:
            return count
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)

    def check_worker_number_rationality(self) -> None:
        """Warn if there are more workers than processors."""
        processors = len(os.sched_getaffinity(0))
        if self.num_workers > processors:
            warnings.warn(
                f"DataLoader: {self.num_workers} workers on {processors} processors", stacklevel=3
            )


class _BaseDataLoaderIter(abc.ABC):
    """The batches of one epoch, which know how many they are."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._loader = loader

    def __iter__(self) -> Iterator[Any]:
        return self

    @abc.abstractmethod
    def __next__(self) -> Any: ...

    def __len__(self) -> int:
        return len(self._loader)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Batches that this process makes."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        # Drawn also without workers, so that the order does not depend on their number.
        draw_seed(loader.generator)
        self._indices = loader._indices()
        self._fetch = make_fetcher(
            loader.dataset,
            loader.is_iterable,
            loader._auto_collation,
            loader.collate_fn,
            loader.drop_last,
        )

    def __next__(self) -> Any:
        indices = next(self._indices)
        try:
            return self._fetch(indices)
        except StopIteration as end:
            if self._loader.is_iterable:
                raise
            raise RuntimeError(
                f"DataLoader: got StopIteration from the dataset or collate_fn for indices {indices}, expected a batch; "
                "a sampler ends an epoch"
            ) from end


class _Epoch(_BaseDataLoaderIter):
    """Batches that another iterator gives."""

    def __init__(self, loader: DataLoader[Any], batches: Iterator[Any]) -> None:
        super().__init__(loader)
        self._batches = batches

    def __next__(self) -> Any:
        return next(self._batches)


def _check_worker_options(
    num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool
) -> None:
    if num_workers < 0:
        raise ValueError(f"DataLoader: got num_workers {num_workers}, expected at least 0")
    if timeout < 0:
        raise ValueError(f"DataLoader: got timeout {timeout}, expected at least 0 seconds")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError("DataLoader: got prefetch_factor without workers; set num_workers above 0")
    if prefetch_factor is not None and prefetch_factor < 1:
        raise ValueError(f"DataLoader: got prefetch_factor {prefetch_factor}, expected at least 1")
    if persistent_workers and num_workers == 0:
        raise ValueError(
            "DataLoader: got persistent_workers without workers; set num_workers above 0"
        )


def _context(given: Any, num_workers: int) -> Any:
    """The context that processes are started by; None is the platform's."""
    if given is None:
        return None
    if num_workers == 0:
        raise ValueError(
            "DataLoader: got multiprocessing_context without workers; set num_workers above 0"
        )
    if isinstance(given, str):
        return multiprocessing.get_context(given)
    if not isinstance(given, BaseContext):
        raise TypeError(
            f"DataLoader: got multiprocessing_context of type {type(given).__name__}, expected the name "
            "of a start method or a context"
        )
    return given


class _Workers:
    """The worker processes and one pipe each."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        context = loader.multiprocessing_context or multiprocessing.get_context()
        self.processes: list[Any] = []
        self.connections: list[Connection] = []
        self.blocks = [Blocks() for _ in range(loader.num_workers)]
        # Answers that each worker still owes, and the number of the epoch that they belong to.
        self.pending = [0] * loader.num_workers
        self.epoch = 0
        self._finalizer = weakref.finalize(
            self, _shut_down, os.getpid(), self.processes, self.connections
        )
        forked = context.get_start_method() == "fork"
        for worker_id in range(loader.num_workers):
            ours, theirs = context.Pipe()
            setup = WorkerSetup(
                worker_id,
                loader.num_workers,
                loader.dataset,
                loader.is_iterable,
                loader._auto_collation,
                loader.collate_fn,
                loader.drop_last,
                loader.worker_init_fn,
            )
            _open_ends.add(ours)
            inherited = list(_open_ends) if forked else []
            process = context.Process(
                target=run_worker, args=(setup, theirs, inherited), daemon=True
            )
            with warnings.catch_warnings():
                # The thread pool starts anew in forked processes, so that threads are no danger.
                warnings.filterwarnings("ignore", ".*fork.*", DeprecationWarning)
                process.start()
            theirs.close()
            self.processes.append(process)
            self.connections.append(ours)

    @property
    def closed(self) -> bool:
        return not self._finalizer.alive

    def close(self) -> None:
        """End the processes."""
        self._finalizer()

    def start_epoch(self, seed: int, timeout: float) -> int:
        """Drop what is left of the last epoch, begin a new one and return its number."""
        for worker in range(len(self.pending)):
            while self.pending[worker]:
                self.wait(worker, timeout)
                self.receive(worker)
            self.send(worker, StartEpoch(seed))
        self.epoch += 1
        return self.epoch

    def send(self, worker: int, message: Any) -> None:
        """Send to a worker; if it is gone, the next `receive` says so."""
        try:
            self.connections[worker].send(message)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def wait(self, worker: int, timeout: float) -> None:
        """Wait until a worker has answered, or ended.

        Raises:
            WorkerError: after `timeout` seconds (0: no limit).
        """
        process = self.processes[worker]
        if not wait([self.connections[worker], process.sentinel], timeout or None):
            raise WorkerError(
                f"DataLoader: worker {worker} (pid {process.pid}) gave no batch within {timeout} s; "
                "raise timeout=, or look for a deadlock in the dataset"
            )

    def receive(self, worker: int) -> tuple[Any, list[Tensor]]:
        """The next message of a worker, which has come, and the parts of the batch that is in it.

        Raises:
            WorkerError: the process is dead.
        """
        connection, process = self.connections[worker], self.processes[worker]
        try:
            # A process that has ended may have left an answer in the pipe.
            if connection.poll():
                answer = connection.recv()
                parts: list[Tensor] = []
                if isinstance(answer, Batch):
                    parts = self.blocks[worker].receive(answer.content, connection)
                self.pending[worker] -= 1
                return answer, parts
        except (EOFError, OSError):
            pass  # It died while it was sending.
        process.join(_SHUTDOWN_GRACE)
        raise WorkerError(
            f"DataLoader: worker {worker} (pid {process.pid}) {_describe_exit(process.exitcode)}"
        )


def _describe_exit(code: int | None) -> str:
    if code is not None and code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        hint = "; it may have run out of memory" if name == "SIGKILL" else ""
        return f"was killed by {name}{hint}"
    return f"ended unexpectedly with exit code {code}"


def _shut_down(owner: int, processes: list[Any], connections: list[Connection]) -> None:
    if os.getpid() != owner:
        return  # A forked copy: the processes are not its own.
    for connection in connections:
        try:
            connection.send(None)
        except (OSError, ValueError):
            pass
        # Closing also frees a worker that blocks on sending a large batch.
        connection.close()
    deadline = time.monotonic() + _SHUTDOWN_GRACE
    for process in processes:
        process.join(max(0.0, deadline - time.monotonic()))
        if process.is_alive():
            process.terminate()
            process.join(_SHUTDOWN_GRACE)
            if process.is_alive():
                process.kill()
                process.join()


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """One epoch over workers: tasks go round-robin, answers are taken in the order of the tasks."""

    def __init__(self, loader: DataLoader[Any], workers: _Workers) -> None:
        super().__init__(loader)
        self._workers = workers
        self._indices = loader._indices()
        self._numbers = itertools.count()
        # (task number, worker) of tasks that wait for their answer, in order.
        self._waiting: deque[tuple[int, int]] = deque()
        self._active = list(range(loader.num_workers))
        self._turn = 0
        self._drained = False
        self._epoch = workers.start_epoch(draw_seed(loader.generator), loader.timeout)
        assert loader.prefetch_factor is not None
        for _ in range(loader.prefetch_factor * loader.num_workers):
            self._send_task()

    def _shutdown_workers(self) -> None:
        self._workers.close()

    def _send_task(self) -> None:
        if self._drained or not self._active:
            return
        try:
            indices = next(self._indices)
        except StopIteration:
            self._drained = True
            return
        worker = self._active[self._turn % len(self._active)]
        self._turn = (self._turn + 1) % len(self._active)
        number = next(self._numbers)
        self._workers.send(worker, Task(number, indices, self._workers.blocks[worker].returned()))
        self._waiting.append((number, worker))
        self._workers.pending[worker] += 1

    def __next__(self) -> Any:
        if self._epoch != self._workers.epoch:
            raise RuntimeError(
                "DataLoader: got a request from an iterator whose persistent workers serve a newer "
                "one, expected one iterator at a time; use persistent_workers=False"
            )
        while self._waiting:
            number, worker = self._waiting[0]
            self._workers.wait(worker, self._loader.timeout)
            self._waiting.popleft()
            try:
                answer, parts = self._workers.receive(worker)
            except BaseException:
                self._workers.close()
                self._waiting.clear()
                raise
            assert answer.number == number
            if isinstance(answer, Batch | Failure):
                self._send_task()
                if isinstance(answer, Failure):
                    raise answer.to_exception(worker)
                return unpack(answer.content, parts)
            assert isinstance(answer, Exhausted)
            if worker in self._active:
                place = self._active.index(worker)
                self._active.remove(worker)
                if self._active:
                    self._turn = (self._turn - (place < self._turn)) % len(self._active)
            self._send_task()
        if not self._loader.persistent_workers:
            self._workers.close()
        raise StopIteration
