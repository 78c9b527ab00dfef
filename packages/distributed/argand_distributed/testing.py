"""For tests: runs a function as the ranks of a group, in forked processes, and gives what each returned."""

from __future__ import annotations

import datetime
import multiprocessing
import os
import tempfile
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import argand_c10 as c10
from argand_distributed.world import (
    destroy_process_group,
    init_process_group,
    is_initialized,
)

_FORK = multiprocessing.get_context("fork")


class RankFailed(AssertionError):
    """Some rank raised; the message has all tracebacks."""


def _rank(
    rank: int,
    size: int,
    path: str,
    seconds: float,
    connection: Connection,
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
) -> None:
    c10.set_num_threads(1)
    try:
        if path:
            timeout = datetime.timedelta(seconds=seconds)
            init_process_group("gloo", f"file://{path}", timeout, size, rank)
        value = function(rank, size, *arguments)
        if path and is_initialized():
            destroy_process_group()
        connection.send((True, value))
    except BaseException:
        connection.send((False, traceback.format_exc()))
    connection.close()
    os._exit(0)


def run(
    size: int,
    function: Callable[..., Any],
    *arguments: Any,
    seconds: float = 20.0,
    initialize: bool = True,
    limit: float = 60.0,
    may_die: tuple[int, ...] = (),
) -> list[Any]:
    """[function(rank, size, *arguments) for each rank], each in a process of its own with the default group initialized.

    Args:
        size: how many ranks.
        function: what they run; its result is pickled.
        seconds: timeout of collectives.
        initialize: make the default group (Gloo, by a file).
        limit: seconds after which ranks are killed and the test fails.
        may_die: ranks that may end without a result (None then).
    """
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "store") if initialize else ""
        pipes = [_FORK.Pipe(duplex=False) for _ in range(size)]
        processes = [
            _FORK.Process(
                target=_rank,
                args=(rank, size, path, seconds, pipes[rank][1], function, arguments),
            )
            for rank in range(size)
        ]
        for process in processes:
            process.start()
        for _, sender in pipes:
            sender.close()
        deadline = time.monotonic() + limit
        results: list[Any] = [None] * size
        problems = []
        for rank in sorted(range(size), key=lambda r: r in may_die):
            receiver = pipes[rank][0]
            try:
                if not receiver.poll(
                    0 if rank in may_die else max(0.0, deadline - time.monotonic())
                ):
                    raise TimeoutError(f"no result after {limit} s")
                good, results[rank] = receiver.recv()
            except (EOFError, TimeoutError) as error:
                good, results[rank] = rank in may_die, None if rank in may_die else repr(error)
            if not good:
                problems.append(f"rank {rank}: {results[rank]}")
        for process in processes:
            process.join(0 if problems or may_die else 10)
            process.kill()
            process.join()
    if problems:
        raise RankFailed("\n".join(problems))
    return results
