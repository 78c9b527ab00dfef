"""Training goes on from the last checkpoint after a worker was killed, and ends at the same loss."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from launching import environment, run
from sklearn.datasets import load_digits

HERE = Path(__file__).parent
# ARGAND_TEST_KILLS=20 is the run by hand.
KILLS = int(os.environ.get("ARGAND_TEST_KILLS", "3"))


def losses(folder: Path) -> dict[int, float]:
    """The last loss of each step."""
    return dict(json.loads(line) for line in (folder / "losses").read_text().splitlines())


def train(folder: Path, size: int, kill_at: int = -1, victim: int = 0) -> dict[int, float]:
    folder.mkdir()
    done = run(
        f"--nproc-per-node={size}",
        "--max-restarts=1",
        HERE / "train_digits.py",
        folder,
        kill_at,
        victim,
    )
    assert done.returncode == 0, done.stderr
    assert ("signal 9 (SIGKILL)" in done.stderr) == (kill_at >= 0)
    return losses(folder)


def test_a_killed_worker_costs_nothing_but_time(tmp_path: Path) -> None:
    digits = load_digits()
    np.savez(tmp_path / "digits.npz", data=digits.data, target=digits.target)
    expected = train(tmp_path / "whole", 2)
    alone = tmp_path / "alone"
    alone.mkdir()
    subprocess.run(
        [sys.executable, HERE / "train_digits.py", alone, "-1", "0"], env=environment(), check=True
    )
    for step, loss in losses(alone).items():
        assert loss == pytest.approx(expected[step], rel=1e-6)
    rng = random.Random(KILLS)
    for trial in range(KILLS):
        got = train(tmp_path / f"killed{trial}", 2, rng.randrange(1, 20), trial % 2)
        assert got == expected
