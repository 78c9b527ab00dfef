"""Memory of CUDA devices."""

from __future__ import annotations

from argand_c10.cuda._memory import *  # noqa: F403
from argand_c10.cuda._memory import __all__ as __all__
