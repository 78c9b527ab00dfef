"""Threads that begin together, and forked children that report."""

from __future__ import annotations

import os
import signal
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

THREADS = 8


def in_threads(work: Callable[[int], Any], count: int = THREADS, timeout: int = 60) -> list[Any]:
    """Runs `work(i)` in `count` threads that begin together; raises the first error, or that one took `timeout` seconds."""
    barrier = threading.Barrier(count)

    def run(i: int) -> Any:
        barrier.wait()
        return work(i)

    with ThreadPoolExecutor(count) as pool:
        futures = [pool.submit(run, i) for i in range(count)]
        return [future.result(timeout=timeout) for future in futures]


def in_child(work: Callable[[], Any], seconds: int = 30) -> None:
    """Runs `work()` in a forked child; its traceback is this test's failure, and so is a child that hangs."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(read)
            signal.alarm(seconds)
            work()
            status = 0
        except BaseException:
            os.write(write, traceback.format_exc().encode())
        finally:
            os._exit(status)
    os.close(write)
    with os.fdopen(read) as pipe:
        message = pipe.read()
    _, status = os.waitpid(child, 0)
    assert not os.WIFSIGNALED(status), f"the child was ended by signal {os.WTERMSIG(status)}"
    assert os.waitstatus_to_exitcode(status) == 0, message
