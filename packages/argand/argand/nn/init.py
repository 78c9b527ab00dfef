"""Initialisers of parameters."""

from __future__ import annotations

from argand_nn.init import *  # noqa: F403
from argand_nn.init import __all__ as __all__
from argand_nn.init import _calculate_correct_fan as _calculate_correct_fan
from argand_nn.init import _calculate_fan_in_and_fan_out as _calculate_fan_in_and_fan_out
