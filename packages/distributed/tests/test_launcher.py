"""argand-run: environments, exit codes, signals, errors, restarts."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from pathlib import Path

from launching import command, environment, run


def script(folder: Path, text: str) -> Path:
    path = folder / "program.py"
    path.write_text(text)
    return path


def test_environment_arguments_and_logs(tmp_path: Path) -> None:
    program = script(
        tmp_path,
        "import os, sys\n"
        "print(*[os.environ[k] for k in ('RANK', 'LOCAL_RANK', 'WORLD_SIZE', 'LOCAL_WORLD_SIZE', 'GROUP_RANK')], sys.argv[1:])\n",
    )
    done = run("--nproc-per-node=3", f"--log-dir={tmp_path}", program, "--x", "1")
    assert done.returncode == 0, done.stderr
    for rank in range(3):
        text = (tmp_path / "attempt0" / f"rank{rank}.log").read_text()
        assert text == f"{rank} {rank} 3 3 0 ['--x', '1']\n"


def test_the_first_failing_rank_is_shown_with_its_traceback(tmp_path: Path) -> None:
    program = script(
        tmp_path,
        "import os\nimport argand_distributed as dist\nimport argand_aten as aten\n"
        "dist.init_process_group('gloo')\n"
        "if dist.get_rank() == 1:\n    raise ValueError('the cause')\n"
        "dist.all_reduce(aten.ones(3))\n",
    )
    done = run("--nproc-per-node=2", program)
    assert done.returncode == 1
    report = done.stderr[done.stderr.index("argand-run: rank 1 (pid ") :]
    assert "failed with exit code 1" in report
    assert "ValueError: the cause" in report
    assert 'program.py", line 6' in report
    assert "no restarts left" in report


def test_exit_codes_and_signals_of_workers(tmp_path: Path) -> None:
    assert run("--no-python", "sh", "-c", "exit 7").returncode == 7
    done = run("--no-python", "sh", "-c", "kill -9 $$")
    assert done.returncode == 128 + 9
    assert "signal 9 (SIGKILL)" in done.stderr
    for bad in (
        ["--nproc-per-node=0", "x"],
        ["--nnodes=2", "x"],
        ["--nnodes=2", "--node-rank=2", "x"],
    ):
        assert run(*bad).returncode != 0


def test_signals_are_passed_on(tmp_path: Path) -> None:
    program = script(
        tmp_path,
        "import os, signal, sys, time\n"  # each line is one write: two processes share the pipe
        "signal.signal(signal.SIGTERM, lambda *_: (os.write(1, b'ended\\n'), sys.exit(0)))\n"
        "os.write(1, b'ready\\n')\ntime.sleep(60)\n",
    )
    process = subprocess.Popen(
        command("--nproc-per-node=2", program), env=environment(), stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(2)] == ["ready\n"] * 2
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=30)
    assert out == "ended\n" * 2
    assert process.returncode == 128 + signal.SIGTERM
    assert time.monotonic() - began < 8


def test_two_nodes(tmp_path: Path) -> None:
    program = script(
        tmp_path,
        "import os\nimport argand_distributed as dist\nimport argand_aten as aten\n"
        "dist.init_process_group('gloo')\nx = aten.full((1,), float(dist.get_rank()))\ndist.all_reduce(x)\n"
        f"open(r'{tmp_path}/out' + os.environ['RANK'], 'w').write(os.environ['GROUP_RANK'] + ' ' + str(x.item()))\n"
        "dist.destroy_process_group()\n",
    )
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        endpoint = f"127.0.0.1:{s.getsockname()[1]}"
    nodes = [
        subprocess.Popen(
            command("--nnodes=2", f"--node-rank={n}", f"--rdzv-endpoint={endpoint}", program),
            env=environment(),
        )
        for n in (1, 0)
    ]
    assert [node.wait(60) for node in nodes] == [0, 0]
    assert (tmp_path / "out0").read_text() == "0 1.0"
    assert (tmp_path / "out1").read_text() == "1 1.0"
