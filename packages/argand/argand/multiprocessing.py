"""Python's `multiprocessing`, and `spawn`. The CPU's tensors that are sent to a process become memory that both share."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import sys
import traceback
from collections.abc import Callable
from multiprocessing import *  # noqa: F403
from typing import Any

from argand.import_paths import publish
from argand_c10 import shared_memory

__all__ = [
    *multiprocessing.__all__,
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]


class ProcessException(Exception):
    """A process did not end well.

    Attributes:
        error_index: which process.
        error_pid: its number in the system.
    """

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.error_index, self.error_pid = error_index, pid


class ProcessRaisedException(ProcessException):
    """A process raised an exception, whose traceback is the message."""


class ProcessExitedException(ProcessException):
    """A process ended by a signal or with an exit code."""

    def __init__(self, msg: str, error_index: int, error_pid: int, exit_code: int) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code


def _run(fn: Callable[..., Any], index: int, args: tuple[Any, ...], faults: Any) -> None:
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass
    except Exception:
        faults.put(traceback.format_exc())
        raise SystemExit(1) from None


class ProcessContext:
    """Processes that `spawn` started with `join=False`."""

    def __init__(self, processes: list[Any], faults: list[Any]) -> None:
        self.processes, self._faults = processes, faults

    def pids(self) -> list[int]:
        """The processes' numbers in the system."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None) -> bool:
        """Wait until all are done (True) or `timeout` seconds have passed; when one fails, the others are ended.

        Raises:
            ProcessRaisedException: when a process raised.
            ProcessExitedException: when one ended otherwise.
        """
        running = {
            process.sentinel: index
            for index, process in enumerate(self.processes)
            if process.exitcode is None
        }
        done = multiprocessing.connection.wait(list(running), timeout) if running else []
        for sentinel in done:
            self.processes[running[sentinel]].join()
        failed = next(
            (i for i, process in enumerate(self.processes) if process.exitcode not in (None, 0)),
            None,
        )
        if failed is None:
            return all(process.exitcode is not None for process in self.processes)
        for process in self.processes:
            if process.is_alive():
                process.terminate()
            process.join()
        process, code = self.processes[failed], self.processes[failed].exitcode
        if not self._faults[failed].empty():
            text = f"process {failed} raised:\n\n{self._faults[failed].get()}"
            raise ProcessRaisedException(text, failed, process.pid)
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        raise ProcessExitedException(f"process {failed} ended {how}", failed, process.pid, code)


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run fn(i, *args) in processes i = 0 to nprocs - 1, started by `start_method`.

    Args:
        fn: a function of a module, so that a new process finds it.
        args: what it gets besides the process's index.
        nprocs: how many processes.
        join: wait for all of them.
        daemon: end them with this process.
        start_method: "spawn", "fork" or "forkserver".

    Returns:
        None after they are done; with `join=False` a `ProcessContext`.

    Raises:
        ProcessException: when one fails; the others are ended.
    """
    context: Any = multiprocessing.get_context(start_method)
    processes, faults = [], []
    for index in range(nprocs):
        faults.append(context.SimpleQueue())
        processes.append(
            context.Process(target=_run, args=(fn, index, args, faults[index]), daemon=daemon)
        )
        processes[index].start()
    found = ProcessContext(processes, faults)
    if not join:
        return found
    while not found.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """`start_processes` with fresh interpreters."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)


_STRATEGIES = frozenset({"file_descriptor", "file_system"})
_strategy = "file_descriptor"


def get_all_sharing_strategies() -> set[str]:
    """What `set_sharing_strategy` takes."""
    return set(_STRATEGIES)


def get_sharing_strategy() -> str:
    """What `set_sharing_strategy` was told last."""
    return _strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Kept for `get_sharing_strategy`: file descriptors are sent, whichever it is, so that nothing is left of memory that nobody uses.

    Raises:
        ValueError: there is no such strategy.
    """
    global _strategy
    if new_strategy not in _STRATEGIES:
        raise ValueError(
            f"set_sharing_strategy: got {new_strategy!r}, expected one of {sorted(_STRATEGIES)}"
        )
    _strategy = new_strategy


shared_memory.register()
publish(__name__, {"spawn": sys.modules[__name__]})
