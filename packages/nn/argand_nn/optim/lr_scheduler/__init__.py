"""Learning-rate schedulers: `step()` after each epoch (or batch) sets the groups' rates.

They change the present rate by a factor or difference where that is possible, so that several of
them can act on one optimizer.
"""

from __future__ import annotations

from argand_nn.optim.lr_scheduler import base, combined, curves, cycles, plateau
from argand_nn.optim.lr_scheduler.base import *  # noqa: F403
from argand_nn.optim.lr_scheduler.combined import *  # noqa: F403
from argand_nn.optim.lr_scheduler.curves import *  # noqa: F403
from argand_nn.optim.lr_scheduler.cycles import *  # noqa: F403
from argand_nn.optim.lr_scheduler.plateau import *  # noqa: F403

__all__ = sorted(
    name for family in (base, combined, curves, cycles, plateau) for name in family.__all__
)
