"""Batch norms in evaluation, merged into the linear map before them."""

from __future__ import annotations

from argand_nn.utils.fusion import *  # noqa: F403
from argand_nn.utils.fusion import __all__ as __all__
