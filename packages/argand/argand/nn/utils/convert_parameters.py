"""Parameters as one vector, and back."""

from __future__ import annotations

from argand_nn.utils.convert_parameters import *  # noqa: F403
from argand_nn.utils.convert_parameters import __all__ as __all__
