"""Streams and events of CUDA devices."""

from __future__ import annotations

from argand_c10.cuda._streams import *  # noqa: F403
from argand_c10.cuda._streams import __all__ as __all__
