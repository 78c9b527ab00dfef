"""Modules on several processes."""

from __future__ import annotations

import sys

from argand.import_paths import publish
from argand_distributed import DistributedDataParallel as DistributedDataParallel

__all__ = ["DistributedDataParallel"]

publish(__name__, {"distributed": sys.modules[DistributedDataParallel.__module__]})
