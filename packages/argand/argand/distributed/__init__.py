"""Several processes that train together: groups, collectives, data parallelism, checkpoints."""

from __future__ import annotations

import sys

from argand.import_paths import publish, submodules
from argand_distributed import *  # noqa: F403
from argand_distributed import __all__ as __all__
from argand_distributed.collectives import _coalescing_manager as _coalescing_manager

publish(__name__, {"distributed_c10d": sys.modules[__name__]})

__getattr__ = submodules(__name__, "device_mesh", "nn")
