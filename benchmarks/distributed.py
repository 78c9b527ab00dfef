"""Times collectives and data-parallel training over Gloo against the peer's: two processes each, in one run, taking turns.

    ./bazelw run //benchmarks:distributed -- --rounds 15

Rows: all-reduce of 4 B to 64 MiB, and the small GPT's training step with DistributedDataParallel. A time is that of the slower rank; a
ratio is ours over the peer's, in medians over rounds. The recorder's share of a call is the time of calls that are recorded and do nothing
else, over that of the call, both the shortest of the rounds.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks.processes import PAUSE_SECONDS, ROOT, own_paths

RANKS = 2
SIZES = {
    "4 B": 1,
    "4 KiB": 1 << 10,
    "64 KiB": 1 << 14,
    "1 MiB": 1 << 18,
    "16 MiB": 1 << 22,
    "64 MiB": 1 << 24,
}
TARGETS = {"all_reduce 64 MiB": 1.0, "GPT step": 1.0}
RECORDER, RECORDED_CALLS, RECORDER_TARGET = "a record", 2000, 0.01


# ---- in a worker ------------------------------------------------------------------------------------------------------
def cases(
    torch: Any, dist: Any, wrap: Callable[[Any], Any]
) -> dict[str, tuple[int, Callable[[], Any]]]:
    """Name -> calls a turn, and the call."""
    from benchmarks.gpt import build_training_step

    made: dict[str, tuple[int, Callable[[], Any]]] = {}
    for name, n in SIZES.items():
        x = torch.ones(n)
        made[f"all_reduce {name}"] = (
            max(2, min(200, (1 << 23) // n)),
            functools.partial(dist.all_reduce, x),
        )
    made["GPT step"] = (1, build_training_step(torch, batch=2, length=128, wrap=wrap))
    return made


def recorder(dist: Any) -> Callable[[], Any]:
    """Calls of the default group that are recorded and do nothing else."""
    from argand_distributed.world import resolve

    (backend,) = resolve(None).backends.values()
    return lambda: backend.record_only(RECORDED_CALLS)


def worker(namespace: str, rank: int, port: int) -> None:
    torch: Any = importlib.import_module(namespace)
    dist: Any = importlib.import_module(f"{namespace}.distributed")
    wrap = importlib.import_module(f"{namespace}.nn.parallel").DistributedDataParallel
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=RANKS)
    known = cases(torch, dist, wrap)
    if namespace == "argand":
        known = {RECORDER: (1, recorder(dist))} | known
    print(json.dumps(list(known)), flush=True)
    for line in sys.stdin:
        calls, call = known[json.loads(line)]
        dist.barrier()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        print(json.dumps((time.perf_counter() - start) / calls), flush=True)
    dist.destroy_process_group()


# ---- in the coordinator --------------------------------------------------------------------------------------------------
class Pair:
    """The two ranks of one library."""

    def __init__(self, namespace: str, python: str, paths: list[str]) -> None:
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), *paths]),
            "OMP_NUM_THREADS": "1",
        }
        self.ranks = [
            subprocess.Popen(
                [
                    python,
                    "-m",
                    "benchmarks.distributed",
                    "--worker",
                    namespace,
                    str(rank),
                    str(port),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=environment,
                cwd=ROOT,
            )
            for rank in range(RANKS)
        ]
        self.cases: list[str] = self._replies()[0]

    def _replies(self) -> list[Any]:
        replies = []
        for process in self.ranks:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise RuntimeError(
                    f"a worker ended with status {process.wait()}; see its messages above"
                )
            replies.append(json.loads(line))
        return replies

    def run(self, case: str) -> float:
        for process in self.ranks:
            assert process.stdin is not None
            process.stdin.write(json.dumps(case) + "\n")
            process.stdin.flush()
        slowest: float = max(self._replies())
        return slowest

    def close(self) -> None:
        for process in self.ranks:
            assert process.stdin is not None
            process.stdin.close()
        for process in self.ranks:
            process.wait()


def peer_place() -> tuple[str, list[str]] | None:
    """The peer's interpreter and paths: ARGAND_PEER_PYTHON, else Bazel's environment."""
    python = os.environ.get("ARGAND_PEER_PYTHON", "")
    if python:
        return python, []
    from tools.build.extra_environment import add_to_path

    before = list(sys.path)
    reason = add_to_path("peer")
    site = [path for path in sys.path if path not in before]
    sys.path[:] = before
    if reason is not None:
        print(f"no peer: {reason}")
        return None
    return sys.executable, site


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--filter", default="", help="only cases whose name contains this")
    parser.add_argument("--json", default="", help="also write the medians into this file")
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(options.worker[0], int(options.worker[1]), int(options.worker[2]))
        return
    pairs = {"argand": Pair("argand", sys.executable, own_paths())}
    place = peer_place()
    if place is not None:
        pairs["torch"] = Pair("torch", *place)
    report: dict[str, dict[str, float]] = {}
    recorded: float | None = None
    for case in [c for c in pairs["argand"].cases if c == RECORDER or options.filter in c]:
        times: dict[str, list[float]] = {n: [] for n, pair in pairs.items() if case in pair.cases}
        for number in range(options.rounds + 1):
            for name in times:
                pair = pairs[name]
                seconds = pair.run(case)
                if number:  # the first one warms up
                    times[name].append(seconds)
                time.sleep(PAUSE_SECONDS)
        row = {name: statistics.median(t) for name, t in times.items()}
        if case == RECORDER:
            row["argand"] /= RECORDED_CALLS
            recorded = min(times["argand"]) / RECORDED_CALLS
        if recorded is not None and case.startswith("all_reduce"):
            row["recorder's share"] = recorded / min(times["argand"])
        if "torch" in times:
            row["ratio"] = row["argand"] / row["torch"]
            row["ratio of minima"] = min(times["argand"]) / min(times["torch"])
        report[case] = row
        target = f"  target {TARGETS[case]}" if case in TARGETS else ""
        if "recorder's share" in row:
            target += f"  recorder's target {RECORDER_TARGET}"
        print(
            case.ljust(20),
            "  ".join(
                f"{k} {v * 1e3:9.4f} ms" if k in pairs else f"{k} {v:.4f}" for k, v in row.items()
            ),
            target,
            flush=True,
        )
    for pair in pairs.values():
        pair.close()
    if options.json:
        with open(options.json, "w") as f:
            json.dump(report, f, indent=1)


if __name__ == "__main__":
    main()
