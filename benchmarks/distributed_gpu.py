"""Times GPT-2's data-parallel training on the GPUs of a host beside the peer's: two ranks each, in one run.

    python3 -m benchmarks.distributed_gpu --out=distributed_gpu.json

Runs where Argand's wheels, NVIDIA's libraries and the peer are installed for one interpreter. Each library has its own launcher start the
ranks, which measure the step alone (every rank for itself, without communication), then the step with DistributedDataParallel, eager and
compiled. A time is that of the slowest rank; efficiency is the step alone over the step together. Results are printed as they come.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from typing import Any

from benchmarks import gpt2
from benchmarks.processes import ROOT, own_paths

LIBRARIES = ("argand", "torch")
LAUNCHERS = {"argand": "argand_distributed.launcher", "torch": "torch.distributed.run"}
TARGETS = {
    "seconds": 1.0,
    "efficiency": 1.0,
}  # our step over the peer's; our efficiency over the peer's, at least
MARK = "result "


# ---- in a rank -------------------------------------------------------------------------------------------------------
class Rank:
    """One worker's measurements.

    Args:
        namespace: the library's import name.
        options: the command line.
    """

    def __init__(self, namespace: str, options: argparse.Namespace) -> None:
        self.torch: Any = importlib.import_module(namespace)
        self.dist: Any = importlib.import_module(f"{namespace}.distributed")
        self.wrapper = importlib.import_module(f"{namespace}.nn.parallel").DistributedDataParallel
        self.options = options
        self.on_gpu = options.device == "cuda"
        self.rank = int(os.environ["LOCAL_RANK"])
        if self.on_gpu:
            self.torch.cuda.set_device(self.rank)
        self.dist.init_process_group("nccl" if self.on_gpu else "gloo")

    def wait_for_device(self) -> None:
        if self.on_gpu:
            self.torch.cuda.synchronize()

    def wrap(self, model: Any) -> Any:
        device_ids = [self.rank] if self.on_gpu else None
        return self.wrapper(model, device_ids=device_ids, gradient_as_bucket_view=True)

    def measure(self, compiled: bool, together: bool) -> dict[str, Any]:
        """Seconds of the first step and of a later one, and two losses, of this rank."""
        options = self.options
        step = gpt2.build_training_step(
            self.torch,
            device=options.device,
            batch=options.batch,
            compiled=compiled,
            length=gpt2.LENGTH,
            wrap=self.wrap if together else lambda model: model,
        )
        self.wait_for_device()
        self.dist.barrier()
        start = time.perf_counter()
        losses = [float(step(self.rank).item())]
        first = time.perf_counter() - start
        for k in range(options.warm_up):
            step(self.rank + k)
        self.wait_for_device()
        self.dist.barrier()
        seconds = []
        for k in range(options.steps):
            start = time.perf_counter()
            loss = step(self.rank + k)
            self.wait_for_device()
            seconds.append(time.perf_counter() - start)
        losses.append(float(loss.item()))
        return {
            "first": first,
            "seconds": statistics.median(seconds),
            "fastest": min(seconds),
            "losses": losses,
        }

    def report(self, mode: str, together: bool) -> None:
        """Measure, and print the slowest rank's figures on rank 0."""
        found = self.measure(mode == "compiled", together)
        gc.collect()
        if self.on_gpu:
            self.torch.cuda.empty_cache()
        everyone: list[Any] = [None] * self.dist.get_world_size()
        self.dist.all_gather_object(everyone, found)
        if self.rank == 0:
            slowest = {
                key: max(f[key] for f in everyone) for key in ("first", "seconds", "fastest")
            }
            row = {"mode": mode, "together": together, **slowest, "losses": found["losses"]}
            print(MARK + json.dumps(row), flush=True)


def work(namespace: str, options: argparse.Namespace) -> None:
    rank = Rank(namespace, options)
    for mode in options.modes.split(","):
        for together in (False, True):
            rank.report(mode, together)
    rank.dist.destroy_process_group()


# ---- in the coordinator ----------------------------------------------------------------------------------------------
def command_of(namespace: str, options: argparse.Namespace) -> list[str]:
    passed = [
        f"--{name}={getattr(options, name.replace('-', '_'))}"
        for name in ("device", "batch", "steps", "warm-up", "modes")
    ]
    python = options.peer_python if namespace == "torch" and options.peer_python else sys.executable
    launcher = [python, "-m", LAUNCHERS[namespace], f"--nproc-per-node={options.ranks}"]
    tiny = ["--tiny"] if options.tiny else []
    return [*launcher, "-m", "benchmarks.distributed_gpu", f"--worker={namespace}", *passed, *tiny]


@contextlib.contextmanager
def launched(namespace: str, options: argparse.Namespace) -> Iterator[subprocess.Popen[str]]:
    """The launcher with its ranks; all of them are ended at the end."""
    with tempfile.TemporaryDirectory() as cache:
        own = namespace == "argand" or not options.peer_python
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), *(own_paths() if own else [])]),
            "NCCL_NVLS_ENABLE": "0",
            "OMP_NUM_THREADS": "4",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": "29611" if namespace == "torch" else "29612",
            "ARGAND_CACHE_DIR": cache,
            "TORCHINDUCTOR_CACHE_DIR": cache,
            "TRITON_CACHE_DIR": os.path.join(cache, "triton"),
        }
        process = subprocess.Popen(
            command_of(namespace, options),
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def run(namespace: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """The rows that the library's ranks print before the time is over."""
    rows = []
    with launched(namespace, options) as process:
        assert process.stdout is not None
        signal.signal(signal.SIGALRM, lambda *_: os.killpg(process.pid, signal.SIGKILL))
        signal.alarm(options.limit)
        for line in process.stdout:
            if line.startswith(MARK):
                rows.append(json.loads(line.removeprefix(MARK)))
                show(namespace, rows)
            else:
                print(f"[{namespace}] {line}", end="", flush=True)
        signal.alarm(0)
    return rows


def show(namespace: str, rows: list[dict[str, Any]]) -> None:
    row = rows[-1]
    text = (
        f"{namespace:<7} {row['mode']:<9} {'together' if row['together'] else 'alone':<9}"
        f" step {row['seconds'] * 1e3:9.3f} ms  fastest {row['fastest'] * 1e3:9.3f} ms  first {row['first']:7.2f} s"
        f"  losses {row['losses'][0]:.3f} {row['losses'][1]:.3f}"
    )
    if row["together"]:
        text += f"  efficiency {efficiency(rows, row['mode']):.3f}"
    print(text, flush=True)


def efficiency(rows: list[dict[str, Any]], mode: str) -> float:
    """The step alone over the step together; 0 where one is missing."""
    of = {row["together"]: row["seconds"] for row in rows if row["mode"] == mode}
    return float(of[False] / of[True]) if len(of) == 2 else 0.0


def compare(found: dict[str, list[dict[str, Any]]], modes: list[str]) -> list[dict[str, Any]]:
    """Ratios to the peer of what both have measured, and whether they reach the targets."""
    made = []
    for mode in modes:
        ours, peer = (efficiency(found[name], mode) for name in LIBRARIES)
        steps = [
            next((r["seconds"] for r in found[n] if r["mode"] == mode and r["together"]), None)
            for n in LIBRARIES
        ]
        if steps[0] and steps[1] and ours and peer:
            ratio = steps[0] / steps[1]
            made.append(
                {"case": f"{mode}: step", "ratio": ratio, "holds": ratio <= TARGETS["seconds"]}
            )
            ratio = ours / peer
            holds = ratio >= TARGETS["efficiency"]
            made.append({"case": f"{mode}: efficiency", "ratio": ratio, "holds": holds})
    for row in made:
        print(
            f"{row['case']:<24} {row['ratio']:.3f} of the peer's{'' if row['holds'] else '   MISSED'}"
        )
    return made


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--ranks", type=int, default=2)
    add("--batch", type=int, default=16, help="sequences a rank")
    add("--steps", type=int, default=30, help="that are timed")
    add("--warm-up", type=int, default=10)
    add("--modes", default="compiled,eager")
    add("--limit", type=int, default=75, help="seconds for each library")
    add("--device", choices=["cuda", "cpu"], default="cuda")
    add(
        "--tiny",
        action="store_true",
        help="a network of a few thousand weights: does all of it run?",
    )
    add("--peer-python", default="", help="the peer's interpreter, if it is not this one")
    add("--out", default="", help="also write the figures into this file")
    add("--worker", default="", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    options = parse()
    if options.tiny:
        gpt2.VOCABULARY, gpt2.WIDTH, gpt2.LAYERS, gpt2.HEADS, gpt2.LENGTH = 97, 32, 2, 2, 16
    if options.worker:
        work(options.worker, options)
        return
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in LIBRARIES}
    for name in LIBRARIES:
        try:
            found[name] = run(name, options)
        except Exception:
            traceback.print_exc()
    comparison = compare(found, options.modes.split(","))
    if options.out:
        with open(options.out, "w") as f:
            json.dump({"rows": found, "comparison": comparison}, f, indent=1)


if __name__ == "__main__":
    main()
