"""Compiles Python files for the rule of the same name: `compile_bytecode.py MANIFEST`, a line a file: source, name in tracebacks, output."""

from __future__ import annotations

import sys
from pathlib import Path
from py_compile import PycInvalidationMode
from py_compile import compile as compile_file


def main(manifest: str) -> None:
    for line in Path(manifest).read_text().splitlines():
        source, name, output = line.split("\t")
        # By content, not by time: links and copies have other times, and an edited source must count before it is built again.
        compile_file(
            source, output, name, doraise=True, invalidation_mode=PycInvalidationMode.CHECKED_HASH
        )


if __name__ == "__main__":
    main(sys.argv[1])
