"""Values that are there later: what asynchronous collectives give, and what programs set themselves."""

from __future__ import annotations

from argand_distributed.futures import Future, collect_all, wait_all

__all__ = ["Future", "collect_all", "wait_all"]
