"""`TorchVersion`: a version that compares with strings and tuples."""

from __future__ import annotations

import re
from typing import Any

from argand.version import __version__ as internal_version

__all__ = ["TorchVersion"]


def _key(version: Any) -> tuple[int, ...]:
    """What versions are ordered by: the numbers of a release, without zeros at the end."""
    if isinstance(version, str):
        found = re.match(r"\s*v?(\d+(?:\.\d+)*)", version)
        if found is None:
            raise ValueError(f"TorchVersion: got {version!r}, expected numbers between points")
        parts = [int(part) for part in found[1].split(".")]
    else:
        parts = [int(part) for part in version]
    while parts and not parts[-1]:
        parts.pop()
    return tuple(parts)


class TorchVersion(str):
    """A version. Beside a string or a tuple of numbers it is ordered by its numbers, not letter by letter: `"0.10" > (0, 9)`."""

    __slots__ = ()

    def __gt__(self, other: Any) -> bool:
        return _key(str(self)) > _key(other)

    def __ge__(self, other: Any) -> bool:
        return _key(str(self)) >= _key(other)

    def __lt__(self, other: Any) -> bool:
        return _key(str(self)) < _key(other)

    def __le__(self, other: Any) -> bool:
        return _key(str(self)) <= _key(other)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, str | tuple | list):
            return NotImplemented
        try:
            return _key(str(self)) == _key(other)
        except ValueError:
            return False

    def __ne__(self, other: object) -> bool:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    __hash__ = str.__hash__


__version__ = TorchVersion(internal_version)
