"""Logs of the compiler, under the name that programs know them by."""

from __future__ import annotations

from typing import Any

from argand_c10 import logs

__all__ = ["set_logs"]

# PyTorch's names of channels.
_NAMES = {
    "graph": "graph",
    "graph_code": "graph",
    "recompiles_verbose": "recompiles",
    "inductor": "output_code",
}


def set_logs(*, all: Any = None, modules: Any = None, **channels: Any) -> None:
    """Turn on the channels that are named with True or a level; there are others in PyTorch, which are passed over.

    Args:
        all: every channel.
        modules: accepted.
        channels: `graph_breaks=True`, `recompiles=True`, `output_code=True`...; see `argand.compiler.set_logs`.
    """
    wanted = {_NAMES.get(name, name) for name, on in channels.items() if on}
    logs.set_logs("all" if all else ",".join(sorted(wanted.intersection(logs.CHANNELS))))
