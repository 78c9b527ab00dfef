"""Locks and `fork`."""

from __future__ import annotations

import os
from typing import Any


def renew_in_child(lock: Any) -> None:
    """Make a lock of `threading` free in every forked child, where a thread that held it does not exist any more."""
    os.register_at_fork(after_in_child=lock._at_fork_reinit)
