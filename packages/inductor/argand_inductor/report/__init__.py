"""The HTML report of compilations: `ARGAND_COMPILE_DEBUG=1`, or `enable_report(folder)`."""

from __future__ import annotations

import os
from pathlib import Path

from argand_c10 import debug_trace
from argand_inductor.report.writer import ReportWriter

__all__ = ["ReportWriter", "enable_report", "report_folder"]

_writer: ReportWriter | None = None


def enable_report(folder: str | os.PathLike[str] | None = None) -> Path:
    """Write a page for every compilation from now on.

    Args:
        folder: where the pages go; the default is ARGAND_COMPILE_DEBUG_DIR, else `argand_compile_debug` in the
            working folder, each with a subfolder a process.

    Returns:
        The index page's path; the page exists after the first compilation.
    """
    global _writer
    if folder is None:
        root = os.environ.get("ARGAND_COMPILE_DEBUG_DIR", "argand_compile_debug")
        folder = Path(root) / f"run_{os.getpid()}"
    if _writer is None:
        _writer = ReportWriter(Path(folder))
        debug_trace.subscribe(_writer.add)
    else:
        _writer.move_to(Path(folder))
    debug_trace.enable()
    return _writer.index


def report_folder() -> Path | None:
    """The folder that pages are written to; None while reports are off."""
    return _writer.folder if _writer is not None and debug_trace.enabled() else None
