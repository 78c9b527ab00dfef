"""Every public name of PyTorch's is here, or docs/differences.md says that it is not.

docs/pytorch_names/<namespace>.txt: names as PyTorch 2.13's interpreter lists them (`__all__`, else `dir`), sorted, one a line.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from namespaces import namespace

DOCS = Path(__file__).resolve().parents[1]
NAMESPACES = sorted(p.name.removesuffix(".txt") for p in (DOCS / "pytorch_names").glob("*.txt"))


def listed() -> dict[str, list[str]]:
    """Names by namespace from the page's lines `* torch.x: a, b`."""
    found: dict[str, list[str]] = {}
    for path, names in re.findall(
        r"^\* `([\w.]+)`: (.+)$", (DOCS / "differences.md").read_text(), re.M
    ):
        found.setdefault(path, []).extend(re.findall(r"`(\w+)`", names))
    return found


LISTED = listed()


def found(path: str) -> Any:
    """The namespace `torch.x` of argand; an object without attributes where there is none."""
    try:
        return namespace(path)
    except ImportError:
        return object()


@pytest.mark.parametrize("path", NAMESPACES)
def test_names_are_here_or_listed(path: str) -> None:
    here, absent = found(path), LISTED.get(path, [])
    names = (DOCS / "pytorch_names" / f"{path}.txt").read_text().split()
    assert names == sorted(set(names)) and absent == sorted(set(absent), key=absent.index)
    missing = {name for name in names if not hasattr(here, name)}
    assert missing - set(absent) == set(), "neither here nor in docs/differences.md"
    assert set(absent) - missing == set(), (
        "in docs/differences.md, though here or no name of PyTorch's"
    )


def test_every_listed_namespace_has_names() -> None:
    assert set(LISTED) <= set(NAMESPACES)
