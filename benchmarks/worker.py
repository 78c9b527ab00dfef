"""One process that measures on request: `python -m benchmarks.worker NAMESPACE THREADS`.

It reads one JSON object a line from standard input and answers each with one on standard output:
{"prepare": case} -> {"calls": calls a round, "memory": bytes at the peak}; {"round": true} -> {"seconds": time of one call}; {"release": true} -> {}.
NAMESPACE is a module that plays `torch`, or `copy` for a plain memory copy by THREADS threads.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import re
import sys
import time
import timeit
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.cases import CASES
from benchmarks.compile_cases import COMPILED_CASES
from benchmarks.gpu_cases import GPU_CASES
from benchmarks.operator_cases import OPERATOR_CASES
from benchmarks.quant_cases import QUANT_CASES

# A round lasts at least this long, so that the clock and the loop do not show.
ROUND_SECONDS = 0.02


def make_copy(traffic: int, threads: int) -> Callable[[], None]:
    """A copy that moves `traffic` bytes, half of them read: one slice a thread, by the C library's memmove."""
    size = traffic // 2
    source, target = (ctypes.create_string_buffer(size) for _ in range(2))
    ctypes.memset(source, 1, size)
    ctypes.memset(target, 1, size)
    step = size // threads
    pool = ThreadPoolExecutor(threads)
    begin = [ctypes.addressof(b) for b in (target, source)]

    def copy() -> None:
        parts = [
            pool.submit(ctypes.memmove, begin[0] + i * step, begin[1] + i * step, step)
            for i in range(threads)
        ]
        for part in parts:
            part.result()

    # The buffers live as long as the function does.
    copy.buffers = (source, target)  # type: ignore[attr-defined]
    return copy


def _status(name: str) -> int:
    """A size in bytes from the kernel's account of this process."""
    found = re.search(rf"^{name}:\s*(\d+) kB$", Path("/proc/self/status").read_text(), re.M)
    assert found is not None
    return int(found.group(1)) * 1024


def reset_peak() -> int:
    """Bytes in memory now, from which the peak is counted anew."""
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def peak() -> int:
    return _status("VmHWM")


class Worker:
    """Holds the case in preparation, as a timer and its number of calls a round."""

    def __init__(self, namespace: str, threads: int) -> None:
        self.threads = threads
        self.torch = None if namespace == "copy" else importlib.import_module(namespace)
        if self.torch is not None:
            self.torch.set_num_threads(threads)
        self.timer: timeit.Timer | None = None
        self.device = "cpu"
        self.calls = 1

    def prepare(self, name: str) -> dict[str, Any]:
        self.release()
        before = reset_peak()
        case = next(
            case
            for case in (*CASES, *COMPILED_CASES, *GPU_CASES, *OPERATOR_CASES, *QUANT_CASES)
            if case.name == name
        )
        if self.torch is None:
            self.timer = timeit.Timer(
                "copy()", globals={"copy": make_copy(case.traffic, self.threads)}
            )
        else:
            self.timer = timeit.Timer(case.statement, globals=case.set_up(self.torch))
        self.device = case.device
        self.seconds(2)
        self.calls = 1
        while (seconds := self.seconds(self.calls)) < ROUND_SECONDS:
            self.calls = max(
                self.calls + 1, int(self.calls * min(10.0, 1.2 * ROUND_SECONDS / seconds))
            )
        return {"calls": self.calls, "memory": max(peak() - before, 0)}

    def seconds(self, calls: int) -> float:
        """Of so many calls, until their work is done."""
        assert self.timer is not None
        start = time.perf_counter()
        self.timer.timeit(calls)
        if self.device != "cpu":
            assert self.torch is not None
            self.torch.cuda.synchronize()
        return time.perf_counter() - start

    def round(self) -> dict[str, Any]:
        return {"seconds": self.seconds(self.calls) / self.calls}

    def release(self) -> dict[str, Any]:
        self.timer = None
        gc.collect()
        if hasattr(getattr(self.torch, "cpu", None), "empty_cache"):
            self.torch.cpu.empty_cache()  # type: ignore[union-attr]
        ctypes.CDLL(None).malloc_trim(0)
        if self.device != "cpu":
            assert self.torch is not None
            self.torch.cuda.empty_cache()
        return {}

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if "prepare" in request:
            return self.prepare(request["prepare"])
        return self.round() if "round" in request else self.release()


def main(namespace: str, threads: int) -> None:
    # What a library prints must not reach the protocol.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    worker = Worker(namespace, threads)
    print(json.dumps({"version": getattr(worker.torch, "__version__", "")}), file=out, flush=True)
    for line in sys.stdin:
        try:
            reply = worker.answer(json.loads(line))
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), file=out, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
