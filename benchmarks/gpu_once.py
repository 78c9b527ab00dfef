"""GPT-2's training on a GPU in a fresh process: `python -m benchmarks.gpu_once NAMESPACE {eager,compiled}`.

Prints one JSON object: seconds of the first step (compilation included) and of a later one, peak memory, losses of 50 steps.
"""

from __future__ import annotations

import importlib
import json
import os
import statistics
import sys
import time
from types import ModuleType
from typing import Any

from benchmarks.gpt2 import build_training_step

BATCH = 16
STEPS = 50
TIMED = 20


def train(torch: ModuleType, compiled: bool) -> dict[str, Any]:
    step = build_training_step(torch, device="cuda", batch=BATCH, compiled=compiled)
    cuda: Any = torch.cuda
    cuda.synchronize()
    start = time.perf_counter()
    losses = [step(0)]
    cuda.synchronize()
    first = time.perf_counter() - start
    losses += [step(k) for k in range(1, STEPS - TIMED)]
    cuda.synchronize()
    cuda.reset_peak_memory_stats()
    seconds = []
    for k in range(STEPS - TIMED, STEPS):
        start = time.perf_counter()
        losses.append(step(k))
        cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    return {
        "first": first,
        "seconds": statistics.median(seconds),
        "fastest": min(seconds),
        "peak_bytes": cuda.max_memory_allocated(),
        "losses": [float(loss.item()) for loss in losses],
    }


def main(namespace: str, mode: str) -> None:
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    torch = importlib.import_module(namespace)
    print(json.dumps(train(torch, mode == "compiled")), file=out, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
