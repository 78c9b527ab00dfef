"""`TorchVersion`: a version that compares with strings and tuples."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from argand.version import __version__ as internal_version

__all__ = ["TorchVersion"]

_PARTS = re.compile(
    r"""\s*v?(?:(?P<epoch>\d+)!)?(?P<release>\d+(?:\.\d+)*)
    (?:[-_.]?(?P<stage>alpha|a|beta|b|preview|pre|c|rc)[-_.]?(?P<candidate>\d*))?
    (?P<after>-(?P<number>\d+)|[-_.]?(?:post|rev|r)[-_.]?(?P<post>\d*))?
    (?P<before>[-_.]?dev[-_.]?(?P<dev>\d*))?
    (?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?\s*""",
    re.VERBOSE | re.IGNORECASE,
)
_STAGES = {"alpha": "a", "beta": "b", "preview": "rc", "pre": "rc", "c": "rc"}


def _key(version: str) -> tuple[Any, ...] | None:
    """What versions are ordered by (Python's specification of version identifiers); None for a text that is no version."""
    found = _PARTS.fullmatch(version)
    if found is None:
        return None
    release = [int(part) for part in found["release"].split(".")]
    while release and not release[-1]:
        release.pop()
    if found["stage"]:
        stage = found["stage"].lower()
        candidate: tuple[Any, ...] = (1, _STAGES.get(stage, stage), int(found["candidate"] or 0))
    else:  # a development release alone is before all candidates
        candidate = (0 if found["before"] and not found["after"] else 2,)
    post = int(found["number"] or found["post"] or 0) if found["after"] else -1
    dev = (0, int(found["dev"] or 0)) if found["before"] else (1, 0)
    local = [
        (1, int(part), "") if part.isdigit() else (0, 0, part)
        for part in re.split(r"[-_.]", (found["local"] or "").lower())
        if part
    ]
    return int(found["epoch"] or 0), release, candidate, post, dev, local


class TorchVersion(str):
    """A version. Beside a string or a tuple of numbers it is ordered as a version, not letter by letter: `"0.10" > (0, 9)`.

    Where one of the two is no version, letters decide.
    """

    __slots__ = ()

    def _compared(self, other: Any, holds: Callable[[Any, Any], bool]) -> Any:
        text = ".".join(map(str, other)) if isinstance(other, tuple | list) else other
        if not isinstance(text, str):
            return NotImplemented
        mine, theirs = _key(str(self)), _key(str(text))
        if mine is None or theirs is None:
            return holds(str(self), str(other)) if isinstance(other, str) else NotImplemented
        return holds(mine, theirs)

    def __gt__(self, other: Any) -> Any:
        return self._compared(other, lambda a, b: a > b)

    def __ge__(self, other: Any) -> Any:
        return self._compared(other, lambda a, b: a >= b)

    def __lt__(self, other: Any) -> Any:
        return self._compared(other, lambda a, b: a < b)

    def __le__(self, other: Any) -> Any:
        return self._compared(other, lambda a, b: a <= b)

    def __eq__(self, other: object) -> Any:
        return self._compared(other, lambda a, b: a == b)

    def __ne__(self, other: object) -> Any:
        return self._compared(other, lambda a, b: a != b)

    __hash__ = str.__hash__


__version__ = TorchVersion(internal_version)
