"""Ways to train on several processes."""

from __future__ import annotations

from argand_distributed import Join as Join
from argand_distributed import Joinable as Joinable
from argand_distributed import JoinHook as JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]
