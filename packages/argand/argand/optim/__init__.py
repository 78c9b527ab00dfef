"""Optimizers and learning-rate schedulers."""

from __future__ import annotations

from argand_nn.optim import *  # noqa: F403
from argand_nn.optim import __all__ as __all__

# isort: split
# This package's own submodules take the place of the layer's.
from argand.optim import lr_scheduler as lr_scheduler
from argand.optim import optimizer as optimizer
from argand.optim import swa_utils as swa_utils
