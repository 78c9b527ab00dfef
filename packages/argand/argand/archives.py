"""PyTorch's files as archives of records, none of which is run."""

from __future__ import annotations

import os
import zipfile
from typing import IO

__all__ = ["PyTorchFileReader"]


class PyTorchFileReader:
    """The records of a file that PyTorch saved: a zip archive whose names begin with one folder.

    Args:
        file: its path, or a file open for reading that can seek.

    Raises:
        RuntimeError: if it is no such archive.
    """

    def __init__(self, file: str | os.PathLike[str] | IO[bytes]) -> None:
        try:
            self._archive = zipfile.ZipFile(file)
        except zipfile.BadZipFile as error:
            raise RuntimeError(
                f"PyTorchFileReader: got {file!r}, expected a zip archive of records ({error})"
            ) from None
        names = self._archive.namelist()
        self._folder = names[0].partition("/")[0] + "/" if names else ""

    def get_all_records(self) -> list[str]:
        """The records' names, without the folder's."""
        return [name.removeprefix(self._folder) for name in self._archive.namelist()]

    def has_record(self, name: str) -> bool:
        """Whether there is a record of that name."""
        return self._folder + name in self._archive.NameToInfo

    def get_record_size(self, name: str) -> int:
        """How many bytes a record has."""
        return self._info(name).file_size

    def get_record(self, name: str) -> bytes:
        """A record's bytes, whose checksum is right.

        Raises:
            RuntimeError: if there is none of that name, or it is damaged.
        """
        try:
            return self._archive.read(self._info(name))
        except zipfile.BadZipFile as error:
            raise RuntimeError(f"PyTorchFileReader: record {name!r} is damaged ({error})") from None

    def _info(self, name: str) -> zipfile.ZipInfo:
        if not self.has_record(name):
            raise RuntimeError(
                f"PyTorchFileReader: got {name!r}, expected one of {self.get_all_records()}"
            )
        return self._archive.getinfo(self._folder + name)
