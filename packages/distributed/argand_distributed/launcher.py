"""`argand-run`: starts the processes of a run, restarts them together when one dies, and says which one failed first.

    argand-run --nproc-per-node=4 train.py --epochs 3
    argand-run --nnodes=2 --node-rank=1 --rdzv-endpoint=host0:29500 --nproc-per-node=8 --max-restarts=3 train.py

Every process finds RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, GROUP_RANK, MASTER_ADDR and MASTER_PORT in its environment, which
`init_process_group()` reads. The first node's launcher serves the store: it outlives the workers.
"""

from __future__ import annotations

import argparse
import datetime
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from argand_c10._C import _cuda_device_count
from argand_distributed import _C
from argand_distributed.error_file import ERROR_FILE

_POLL: Final = 0.05
_GRACE: Final = 10.0  # seconds between asking workers to end and killing them
_REACH: Final = datetime.timedelta(minutes=10)  # for all nodes to come
_PASSED_ON: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    nproc_per_node: int
    nnodes: int
    node_rank: int
    endpoint: str
    max_restarts: int
    run_id: str
    log_dir: str | None
    command: tuple[str, ...]


@dataclass
class Failure:
    """A worker that ended badly."""

    rank: int
    pid: int
    code: int  # negative: the signal
    message: str

    def cause(self) -> str:
        if self.code >= 0:
            return f"exit code {self.code}"
        return f"signal {-self.code} ({signal.Signals(-self.code).name})"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="argand-run", description=__doc__.split("\n")[0])
    add = parser.add_argument
    add(
        "--nproc-per-node",
        "--nproc_per_node",
        default="1",
        help="workers of this node: a number, cpu or gpu",
    )
    add("--nnodes", type=int, default=1, help="how many nodes take part, each with a launcher")
    add("--node-rank", "--node_rank", type=int, default=0, help="which of them this is")
    add("--rdzv-endpoint", "--rdzv_endpoint", default="", help="host:port of node 0's launcher")
    add(
        "--rdzv-backend",
        "--rdzv_backend",
        choices=["static", "c10d"],
        default="static",
        help="accepted; there is one: node 0's store",
    )
    add("--rdzv-id", "--rdzv_id", default="", help="a name of the run, in the workers' environment")
    add("--master-addr", "--master_addr", default="", help="as the host of --rdzv-endpoint")
    add("--master-port", "--master_port", type=int, default=0, help="as its port")
    add(
        "--standalone",
        action="store_true",
        help="one node, any free port (the default for one node)",
    )
    add(
        "--max-restarts",
        "--max_restarts",
        type=int,
        default=0,
        help="how often all workers are started again after one has failed",
    )
    add(
        "--log-dir",
        "--log_dir",
        default=None,
        help="a folder for the workers' output, a file each; else it goes to the terminal",
    )
    add("-m", "--module", action="store_true", help="the program is a module, as python -m")
    add(
        "--no-python",
        "--no_python",
        action="store_true",
        help="the program is run as it is, not by Python",
    )
    add("program", help="a script, a module, or a program")
    add("arguments", nargs=argparse.REMAINDER)
    return parser


def _workers(text: str) -> int:
    if text == "cpu":
        return len(os.sched_getaffinity(0))
    if text == "gpu":
        return int(_cuda_device_count())
    if not text.isdigit() or int(text) < 1:
        raise SystemExit(
            f"argand-run: got --nproc-per-node={text}, expected a positive number, cpu or gpu"
        )
    return int(text)


def parse(arguments: Sequence[str] | None = None) -> Options:
    given = _parser().parse_args(arguments)
    endpoint = given.rdzv_endpoint
    if not endpoint and (given.master_addr or given.master_port):
        endpoint = f"{given.master_addr or '127.0.0.1'}:{given.master_port or 29500}"
    if not endpoint and given.nnodes > 1:
        raise SystemExit(
            "argand-run: several nodes need --rdzv-endpoint=host:port, node 0's address"
        )
    if not 0 <= given.node_rank < given.nnodes:
        raise SystemExit(
            f"argand-run: got --node-rank={given.node_rank}, expected 0 to {given.nnodes - 1}"
        )
    program = [given.program, *given.arguments]
    if not given.no_python:
        program = [sys.executable, "-u", *(["-m"] if given.module else []), *program]
    return Options(
        nproc_per_node=_workers(given.nproc_per_node),
        nnodes=given.nnodes,
        node_rank=given.node_rank,
        endpoint=endpoint or "127.0.0.1:0",
        max_restarts=given.max_restarts,
        run_id=given.rdzv_id or uuid.uuid4().hex[:12],
        log_dir=given.log_dir,
        command=tuple(program),
    )


class _Attempt:
    """The workers of this node, once started."""

    def __init__(
        self, options: Options, number: int, address: tuple[str, int], folder: Path
    ) -> None:
        self.options = options
        self.folder = folder
        self.number = number
        self.processes: list[subprocess.Popen[bytes]] = []
        size = options.nproc_per_node
        for local in range(size):
            rank = options.node_rank * size + local
            environment = {
                **os.environ,
                "RANK": str(rank),
                "LOCAL_RANK": str(local),
                "WORLD_SIZE": str(size * options.nnodes),
                "LOCAL_WORLD_SIZE": str(size),
                "GROUP_RANK": str(options.node_rank),
                "MASTER_ADDR": address[0],
                "MASTER_PORT": str(address[1]),
                "ARGAND_RUN_ID": options.run_id,
                "ARGAND_RUN_SERVES_STORE": "1",
                "ARGAND_RESTART_COUNT": str(number),
                "ARGAND_MAX_RESTARTS": str(options.max_restarts),
                ERROR_FILE: str(self._error_file(rank)),
            }
            # Workers share the cores; a program that knows better sets it itself.
            environment.setdefault(
                "OMP_NUM_THREADS", str(max(1, len(os.sched_getaffinity(0)) // size))
            )
            environment.setdefault("ARGAND_NUM_THREADS", environment["OMP_NUM_THREADS"])
            log = None
            if options.log_dir:
                place = Path(options.log_dir) / f"attempt{number}"
                place.mkdir(parents=True, exist_ok=True)
                log = open(place / f"rank{rank}.log", "wb")
            self.processes.append(
                subprocess.Popen(
                    options.command,
                    env=environment,
                    stdout=log,
                    stderr=subprocess.STDOUT if log else None,
                )
            )
            if log:
                log.close()

    def _error_file(self, rank: int) -> Path:
        return self.folder / f"attempt{self.number}-rank{rank}.txt"

    def failures(self) -> list[Failure]:
        """Workers that ended badly so far, the one that wrote its traceback first in front."""
        found = []
        for local, process in enumerate(self.processes):
            if process.poll():
                rank = self.options.node_rank * self.options.nproc_per_node + local
                path = self._error_file(rank)
                when = path.stat().st_mtime_ns if path.exists() else 0
                message = path.read_text(errors="replace") if path.exists() else ""
                found.append((when, Failure(rank, process.pid, process.returncode, message)))
        # A worker killed by a signal leaves no traceback, and is the cause of the others' errors.
        return [failure for _, failure in sorted(found, key=lambda item: (item[0], item[1].rank))]

    def running(self) -> bool:
        return any(process.poll() is None for process in self.processes)

    def send(self, number: int) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(number)

    def end(self, number: int = signal.SIGTERM) -> None:
        """Asks what still runs to end, by one signal, then makes it."""
        self.send(number)
        self.send(signal.SIGCONT)  # stopped ones too
        deadline = time.monotonic() + _GRACE
        while self.running() and time.monotonic() < deadline:
            time.sleep(_POLL)
        self.send(signal.SIGKILL)
        for process in self.processes:
            process.wait()


class Launcher:
    """One node's part of a run."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.received = 0  # the signal that ends the run
        host, _, port = options.endpoint.rpartition(":")
        if not host or not port.isdigit():
            raise SystemExit(
                f"argand-run: got --rdzv-endpoint={options.endpoint}, expected host:port"
            )
        self.store = _C.TCPStore(host, int(port), None, options.node_rank == 0, _REACH, False)
        self.address = (host, self.store.port)
        self.attempt: _Attempt | None = None

    def _on_signal(self, number: int, frame: object) -> None:
        if number in (signal.SIGUSR1, signal.SIGUSR2):
            if self.attempt:
                self.attempt.send(number)
            return
        self.received = number

    def run(self) -> int:
        """The exit code of the run: 0, the first failing worker's, or 128 plus the signal that ended it."""
        previous = {number: signal.signal(number, self._on_signal) for number in _PASSED_ON}
        try:
            with tempfile.TemporaryDirectory(prefix="argand-run-") as folder:
                return self._attempts(Path(folder))
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    def _attempts(self, folder: Path) -> int:
        for number in range(self.options.max_restarts + 1):
            self._meet(f"start{number}")
            self.attempt = _Attempt(self.options, number, self.address, folder)
            failures = self._watch(number)
            if self.received:
                self.attempt.end(self.received)
                return 128 + self.received
            self.attempt.end()
            if failures is None:
                self._meet("finished")
                return 0
            left = self.options.max_restarts - number
            self._tell(failures, left)
            if not left:
                code = failures[0].code if failures else 1
                return code if code > 0 else 128 - code
        raise AssertionError("unreachable")

    def _watch(self, number: int) -> list[Failure] | None:
        """Waits until all workers are done (None), or one of any node has failed."""
        assert self.attempt
        failed = f"failed{number}"
        looks = 0
        while not self.received:
            running = self.attempt.running()
            if self.attempt.failures():
                # Others that fail of the same cause write their errors meanwhile: the first one is then known.
                time.sleep(4 * _POLL)
                self.store.set(failed, str(self.options.node_rank))
                return self.attempt.failures()
            looks += 1
            if self.options.nnodes > 1 and looks % 10 == 0 and self.store.check([failed]):
                return []
            if not running:
                return None
            time.sleep(_POLL)
        return []

    def _meet(self, name: str) -> None:
        """Waits for the launchers of all nodes."""
        if self.options.nnodes == 1:
            return
        last = self.store.add(name, 1) == self.options.nnodes
        try:
            if last:
                self.store.set(name + "/all", "1")
            self.store.wait([name + "/all"], _REACH)
        except _C.DistNetworkError:  # node 0 saw that all had finished, and is gone
            if name != "finished":
                raise

    def _tell(self, failures: list[Failure], left: int) -> None:
        lines = []
        if failures:
            first = failures[0]
            lines.append(
                f"argand-run: rank {first.rank} (pid {first.pid} on {socket.gethostname()}) failed with {first.cause()}"
            )
            lines += [f"  | {line}" for line in first.message.rstrip().splitlines()]
            others = ", ".join(f"rank {f.rank}: {f.cause()}" for f in failures[1:])
            if others:
                lines.append(f"  after it: {others}")
        else:
            node = self.store.get(f"failed{self.options.max_restarts - left}").decode()
            lines.append(f"argand-run: a worker of node {node} failed; its launcher says which")
        lines.append(
            f"  starting all workers again ({left} restarts left)" if left else "  no restarts left"
        )
        print("\n".join(lines), file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    return Launcher(parse(arguments)).run()


if __name__ == "__main__":
    sys.exit(main())
