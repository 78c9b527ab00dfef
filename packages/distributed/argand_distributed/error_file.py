"""How a worker tells its launcher why it ends."""

from __future__ import annotations

import os
import sys
import traceback
from types import TracebackType
from typing import Final

ERROR_FILE: Final = "ARGAND_ERROR_FILE"


def report_errors() -> None:
    """In a worker: writes the traceback of an exception that ends the process where its launcher looks for it."""
    path = os.environ.get(ERROR_FILE)
    if not path:
        return
    previous = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        try:
            with open(path + ".new", "w") as f:
                f.write("".join(traceback.format_exception(kind, error, trace)))
            os.replace(path + ".new", path)
        except OSError:  # the launcher is gone
            pass
        previous(kind, error, trace)

    sys.excepthook = hook
