"""Writes one HTML page a compilation, and an index of them. Files only; nothing is fetched from anywhere."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from argand_c10.debug_trace import Compilation
from argand_inductor.report import page


class ReportWriter:
    """Collects compilations of a process in a folder: index.html and one page each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self._lock = threading.Lock()
        self._rows: list[tuple[str, Compilation]] = []

    @property
    def index(self) -> Path:
        """The index page."""
        return self.folder / "index.html"

    def move_to(self, folder: Path) -> None:
        """Write to another folder from now on, beginning a new index."""
        with self._lock:
            self.folder = folder.absolute()
            self._rows = []

    def add(self, compilation: Compilation) -> None:
        """Write the page of one compilation and the index anew."""
        with self._lock:
            name = f"{len(self._rows) + 1:03d}_{_file_name(compilation.name)}.html"
            self._rows.append((name, compilation))
            self.folder.mkdir(parents=True, exist_ok=True)
            _write(self.folder / name, page.render_compilation(compilation))
            _write(self.index, page.render_index(self._rows))


def _file_name(name: str) -> str:
    return "".join(c if c.isalnum() or c in "-_" else "_" for c in name)[:60]


def _write(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
