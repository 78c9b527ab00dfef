"""Packages that some targets alone need, from an environment of their own: put behind the build's on the path."""

from __future__ import annotations

import sys
from pathlib import Path


def add_to_path(name: str) -> str | None:
    """Makes the packages of the environment `name` ("peer", "opencl", "triton") importable; returns None, or why there are none.

    Needs `@<name>_env//:environment` among the target's data.
    """
    repository = f"{name}_env"
    root = Path(__file__).absolute().parents[2]
    places = (root / "external" / repository, root.parent / repository)
    folder = next(p for p in places if p.exists())
    site = (folder / "site.txt").read_text().strip()
    if not site:
        return (folder / "reason.txt").read_text().strip()
    sys.path.append(site)
    return None
