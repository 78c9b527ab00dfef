"""The peer's packages, for comparisons: put behind our own on the path, where their environment could be made."""

from __future__ import annotations

import sys
from pathlib import Path


def add_peer_to_path() -> str | None:
    """Makes the peer importable; returns None, or why there is no peer. Needs `@peer_env//:peer` among the data."""
    root = Path(__file__).absolute().parents[2]
    folder = next(p for p in (root / "external/peer_env", root.parent / "peer_env") if p.exists())
    site = (folder / "site.txt").read_text().strip()
    if not site:
        return (folder / "reason.txt").read_text().strip()
    sys.path.append(site)
    return None
