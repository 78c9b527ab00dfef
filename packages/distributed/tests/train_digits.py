"""A run that test_kills starts: trains on handwritten digits, with checkpoints, and may kill itself."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import numpy as np

import argand_c10 as c10
import argand_distributed as dist
import argand_nn as nn
from argand_nn import functional as F
from argand_nn.optim import AdamW

STEPS = 20
BATCH = 48


def main(folder: Path, kill_at: int, victim: int) -> None:
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
    else:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    rank, size = dist.get_rank(), dist.get_world_size()
    digits = np.load(folder.parent / "digits.npz")
    images = c10.from_numpy(digits["data"]).to(c10.float32) / 16
    labels = c10.from_numpy(digits["target"]).to(c10.int64)
    c10.manual_seed(rank)
    model = dist.DistributedDataParallel(
        nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    )
    optimizer = AdamW(model.parameters(), lr=1e-2)
    first = 0
    last = dist.latest_checkpoint(folder)
    if last is not None:
        saved = dist.load_checkpoint(None, last)
        model.module.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        first = saved["steps"]
    for step in range(first, STEPS):
        rows = slice(step * BATCH + rank, (step + 1) * BATCH, size)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images[rows]), labels[rows])
        if step == kill_at and rank == victim and os.environ.get("ARGAND_RESTART_COUNT") == "0":
            os.kill(os.getpid(), signal.SIGKILL)
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean, dist.ReduceOp.AVG)
        if rank == 0:
            with open(folder / "losses", "a") as f:
                f.write(json.dumps([step, mean.item()]) + "\n")
        if step % 4 == 3:
            state = {
                "model": model.module.state_dict(),
                "optimizer": optimizer.state_dict(),
                "steps": step + 1,
            }
            dist.save_checkpoint(state, folder / f"step{step + 1}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
