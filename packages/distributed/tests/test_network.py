"""Three hosts: network namespaces joined by pairs of virtual cables. Needs root; skipped where that is not permitted."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from launching import environment

HOSTS = 3
NAME = f"argand{os.getpid()}"

PROGRAM = """
import os, socket
import argand_aten as aten
import argand_distributed as dist

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
for n in (1, 1000, 300_000, 2_500_000):
    x = aten.arange(float(n)) % 7 + rank
    dist.all_reduce(x)
    assert aten.equal(x, size * (aten.arange(float(n)) % 7) + sum(range(size))), n
out = aten.empty(size * 1000)
dist.all_gather_into_tensor(out, aten.full((1000,), float(rank)))
assert out.reshape(size, 1000).sum(1).tolist() == [1000.0 * r for r in range(size)]
parts = aten.empty(5)
dist.reduce_scatter_tensor(parts, aten.ones(5 * size))
assert parts.tolist() == [float(size)] * 5
got = aten.empty(size)
dist.all_to_all_single(got, aten.arange(float(size)) + 10 * rank)
assert got.tolist() == [10.0 * r + rank for r in range(size)]
x = aten.full((3,), float(rank))
dist.broadcast(x, 2)
assert x.tolist() == [2.0] * 3
if rank == 0:
    dist.send(x, 1)
elif rank == 1:
    dist.recv(x, 0)
dist.barrier()
open(os.environ["OUT"] + str(rank), "w").write("right")
dist.destroy_process_group()
"""


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True, timeout=10)


@pytest.fixture
def hosts() -> Iterator[list[str]]:
    """Namespaces with addresses 10.77.0.1, ..., all on one bridge in the first one."""
    names = [f"{NAME}-{i}" for i in range(HOSTS)]
    if shutil.which("ip") is None:
        pytest.skip("network namespaces cannot be made here: there is no ip command (iproute2)")
    try:
        for name in names:
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("-n", names[0], "link", "add", "bridge", "type", "bridge")
        ip("-n", names[0], "addr", "add", "10.77.0.1/24", "dev", "bridge")
        ip("-n", names[0], "link", "set", "bridge", "up")
        for i in range(1, HOSTS):
            cable = f"cable{i}"
            ip(
                "-n",
                names[0],
                "link",
                "add",
                cable,
                "type",
                "veth",
                "peer",
                "name",
                "eth",
                "netns",
                names[i],
            )
            ip("-n", names[0], "link", "set", cable, "master", "bridge", "up")
            ip("-n", names[i], "addr", "add", f"10.77.0.{i + 1}/24", "dev", "eth")
            ip("-n", names[i], "link", "set", "eth", "up")
        yield names
    except subprocess.CalledProcessError as error:
        pytest.skip(f"network namespaces cannot be made here: {error.stderr.strip()}")
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def test_three_hosts(hosts: list[str], tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    launchers = [
        subprocess.Popen(
            ["ip", "netns", "exec", host, sys.executable, "-m", "argand_distributed.launcher"]
            + [
                f"--nnodes={HOSTS}",
                f"--node-rank={i}",
                "--rdzv-endpoint=10.77.0.1:29400",
                str(program),
            ],
            env={**environment(), "OUT": str(tmp_path / "out")},
        )
        for i, host in enumerate(hosts)
    ]
    assert [process.wait(60) for process in launchers] == [0] * HOSTS
    assert [(tmp_path / f"out{i}").read_text() for i in range(HOSTS)] == ["right"] * HOSTS
