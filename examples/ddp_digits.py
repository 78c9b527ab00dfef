"""Trains a network on scikit-learn's handwritten digits by several processes; goes on from the last checkpoint after any of them has died.

    argand-run --nproc-per-node=2 --max-restarts=3 examples/ddp_digits.py --checkpoints /tmp/digits

Started without argand-run it is one process, whose losses are the same.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from sklearn.datasets import load_digits

import argand as torch
import argand.distributed as dist
import argand.nn as nn
import argand.nn.functional as F
from argand.nn.parallel import DistributedDataParallel


def digits() -> tuple[torch.Tensor, torch.Tensor]:
    """Scans (1797, 1, 8, 8), scaled to [0, 1], and their digits."""
    data = load_digits()
    images = torch.from_numpy(data.images).to(torch.float32).unsqueeze(1) / 16
    return images, torch.from_numpy(data.target).to(torch.int64)


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * 4 * 4, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )


def batch(step: int, count: int, size: int, rank: int, ranks: int) -> torch.Tensor:
    """Indices of this rank's share of a step's batch: the same scans in total for any number of ranks."""
    generator = torch.Generator()
    generator.manual_seed(step)
    return torch.randperm(count, generator=generator)[:size][rank::ranks]


def train(options: argparse.Namespace) -> None:
    """Takes the steps that are left; rank 0 appends each loss, over all ranks, to options.losses."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    images, labels = digits()
    model = DistributedDataParallel(network())
    forward = torch.compile(model) if options.compile else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    first = 0
    last = dist.latest_checkpoint(options.checkpoints) if options.checkpoints else None
    if last is not None:
        saved = dist.load_checkpoint(None, last)
        model.module.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        first = saved["steps"]
    loss = torch.zeros(())
    for step in range(first, options.steps):
        indices = batch(step, len(labels), options.batch_size, rank, ranks)
        optimizer.zero_grad()
        loss = F.cross_entropy(forward(images[indices]), labels[indices])
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean, dist.ReduceOp.AVG)
        if rank == 0:
            record(options, step, mean.item())
        if options.checkpoints and (step + 1) % options.every == 0:
            state = {
                "model": model.module.state_dict(),
                "optimizer": optimizer.state_dict(),
                "steps": step + 1,
            }
            dist.save_checkpoint(state, options.checkpoints / f"step{step + 1}")


def record(options: argparse.Namespace, step: int, loss: float) -> None:
    if step % 10 == 0 or step + 1 == options.steps:
        print(f"step {step}: loss {loss:.6f}", flush=True)
    if options.losses:
        with open(options.losses, "a") as f:
            f.write(json.dumps([step, loss.hex()]) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch-size", type=int, default=64, help="over all ranks")
    parser.add_argument("--checkpoints", type=Path, default=None, help="folder")
    parser.add_argument("--every", type=int, default=10, help="steps between checkpoints")
    parser.add_argument("--losses", type=Path, default=None, help="file for all losses")
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
    else:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    train(options)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
