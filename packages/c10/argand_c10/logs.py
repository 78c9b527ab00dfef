"""Log channels, chosen by the environment variable ARGAND_LOGS or `set_logs`: `ARGAND_LOGS=graph_breaks,guards`."""

from __future__ import annotations

import logging
import os
import sys

CHANNELS = {
    "graph_breaks": "where and why tracing stopped",
    "recompiles": "which guard failed before each recompilation",
    "guards": "the guards of each compiled frame",
    "dynamic": "sizes that became symbolic",
    "bytecode": "replacement bytecode and frame plans",
    "graph": "traced graphs",
    "aot_graphs": "forward and backward graphs",
    "joint_graph": "the joint graph before partitioning",
    "loop_ir": "loops before fusion",
    "schedule": "fused loops in their order",
    "fusion": "which loops were fused, and why others were not",
    "output_code": "generated source",
    "cache": "what was found, written and refused in the disk cache",
    "perf_hints": "fallbacks and missed optimizations",
}
_ROOT = "argand"


class _CurrentStderr(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes to whatever sys.stderr is at the time."""

    def emit(self, record: logging.LogRecord) -> None:
        self.setStream(sys.stderr)
        super().emit(record)


def channel(name: str) -> logging.Logger:
    """The logger of a channel; it prints only if the channel is on."""
    if name not in CHANNELS:
        raise ValueError(f"channel: got {name!r}, expected one of {', '.join(CHANNELS)}")
    return logging.getLogger(f"{_ROOT}.{name}")


def set_logs(names: str) -> None:
    """Turn on exactly the channels in the comma-separated `names` ("all" for every one).

    Raises:
        ValueError: if a name is unknown.
    """
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if "all" in wanted:
        wanted = list(CHANNELS)
    for name in wanted:
        channel(name)
    for name in CHANNELS:
        channel(name).setLevel(logging.INFO if name in wanted else logging.WARNING)


def _install() -> None:
    root = logging.getLogger(_ROOT)
    handler = _CurrentStderr()
    handler.setFormatter(logging.Formatter("[%(name)s] %(message)s"))
    root.addHandler(handler)
    root.propagate = False
    try:
        set_logs(os.environ.get("ARGAND_LOGS", ""))
    except ValueError as error:
        set_logs("")
        root.warning("ARGAND_LOGS: %s", error)


_install()
