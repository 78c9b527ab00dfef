"""Compares the collectives of a host's GPUs with the NumPy model of `test_collectives`. Not part of CI, which has no GPU:

argand-run --nproc-per-node=2 packages/distributed/tests/check_nccl.py
"""

from __future__ import annotations

import os

import test_collectives as model

import argand_c10.cuda as cuda
import argand_distributed as dist

SIZES = [0, 1, 3, 17, 1000, 4099, (1 << 20) + 1]


def main() -> None:
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    model.SIZE, model.DEVICE = size, f"cuda:{os.environ['LOCAL_RANK']}"
    cuda.set_device(model.DEVICE)
    dist.init_process_group("nccl")
    for dtype in model.DTYPES:
        if dtype == "int16":  # which NCCL does not reduce
            continue
        sizes = SIZES[:-1] if dtype in ("complex128", "float64", "int8") else SIZES
        model.every_size(rank, size, dtype, sizes)
        if rank == 0:
            print(
                f"{dtype}: {len(sizes)} sizes, {len(model.operations(dtype))} reductions",
                flush=True,
            )
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
