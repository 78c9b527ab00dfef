"""What happens once in a process, measured in one: `python -m benchmarks.compile_once NAMESPACE THREADS MEASUREMENT`.

Prints one JSON object. Imports and the making of models are not part of a time unless the measurement says so.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from benchmarks.gpt import build_training_step
from benchmarks.resnet import build_resnet50


def gpt_first_step(torch: ModuleType) -> dict[str, Any]:
    """The first training step, compilation included."""
    step = build_training_step(torch, compiled=True)
    start = time.perf_counter()
    step()
    first = time.perf_counter() - start
    later = min(timed(step) for _ in range(3))
    return {"seconds": first, "later": later, **counts(torch)}


def timed(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def trace_resnet(torch: ModuleType) -> dict[str, Any]:
    """From the call of the compiled network to the backend, which gets the whole graph."""
    model = build_resnet50(torch).eval()
    reached: list[float] = []

    def backend(module: Any, inputs: Any) -> Any:
        reached.append(time.perf_counter())
        return module.forward

    x = torch.zeros(1, 3, 64, 64)
    # The tracer itself is warm: what is measured is tracing, not the loading of its modules.
    with torch.no_grad():
        torch.compile(torch.nn.Linear(64, 2), backend=backend)(x)
        reached.clear()
        start = time.perf_counter()
        torch.compile(model, backend=backend)(x)
    if len(reached) != 1:
        raise RuntimeError(f"trace_resnet: got {len(reached)} graphs, expected one")
    return {"seconds": reached[0] - start}


def blocks(torch: ModuleType, count: int) -> dict[str, Any]:
    """Compiles `count` equal transformer-like blocks in one function, the first that this process compiles."""
    nn: Any = torch.nn

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.up, self.down = nn.LayerNorm(64), nn.Linear(64, 256), nn.Linear(256, 64)

        def forward(self, x: Any) -> Any:
            return x + self.down(nn.functional.gelu(self.up(self.norm(x))))

    model, x = nn.Sequential(*(Block() for _ in range(count))), torch.randn(4, 64)
    compiled = torch.compile(model)
    with torch.no_grad():
        first = timed(lambda: compiled(x))
    return {"seconds": first, **counts(torch)}


def sequence_lengths(torch: ModuleType) -> dict[str, Any]:
    """Thirty lengths through one compiled model."""
    nn: Any = torch.nn
    model = nn.Sequential(
        nn.Embedding(50, 32), nn.LayerNorm(32), nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 50)
    )
    compiled = torch.compile(model)
    with torch.no_grad():
        for length in range(5, 35):
            compiled(torch.randint(0, 50, (2, length)))
    return counts(torch)


def break_free_start(torch: ModuleType) -> dict[str, Any]:
    """The first call of a compiled function, after the import of its library."""
    torch.zeros(1)
    start = time.perf_counter()
    f = torch.compile(lambda x, y: torch.softmax(torch.relu(x @ y) + x, -1))
    f(torch.ones(8, 8), torch.ones(8, 8))
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "sympy": "sympy" in sys.modules, **counts(torch)}


def counts(torch: ModuleType) -> dict[str, Any]:
    """Our counters; nothing for another library."""
    return {"counts": torch.compiler.counters()} if torch.__name__ == "argand" else {}


MEASUREMENTS: dict[str, Callable[[ModuleType], dict[str, Any]]] = {
    "gpt_first_step": gpt_first_step,
    "trace_resnet": trace_resnet,
    "one_block": lambda torch: blocks(torch, 1),
    "blocks_48": lambda torch: blocks(torch, 48),
    "sequence_lengths": sequence_lengths,
    "break_free_start": break_free_start,
}


def main(namespace: str, threads: int, measurement: str) -> None:
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    torch = importlib.import_module(namespace)
    torch.set_num_threads(threads)
    print(json.dumps(MEASUREMENTS[measurement](torch)), file=out, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
