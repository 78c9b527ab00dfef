"""Modules on several devices and processes."""

from __future__ import annotations

import sys

from argand.import_paths import publish
from argand_distributed import DistributedDataParallel as DistributedDataParallel
from argand_nn import data_parallel as _data_parallel
from argand_nn.data_parallel import (
    DataParallel,
    data_parallel,
    gather,
    parallel_apply,
    replicate,
    scatter,
)

__all__ = [
    "DataParallel",
    "DistributedDataParallel",
    "data_parallel",
    "gather",
    "parallel_apply",
    "replicate",
    "scatter",
]

publish(
    __name__,
    {
        "data_parallel": _data_parallel,
        "distributed": sys.modules[DistributedDataParallel.__module__],
        "parallel_apply": _data_parallel,
        "replicate": _data_parallel,
        "scatter_gather": _data_parallel,
    },
)
