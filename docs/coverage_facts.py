"""Writes what only the layers above the registry know of operators, as JSON: `coverage_facts FILE`.

lowered: operators with a lowering of their own in the compiler.
decomposed: operators that the compiler replaces by others.
opencl: operator -> dtypes that the example backend computes on its device.
"""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path

import argand_inductor.lowering  # noqa: F401  (its modules register their lowerings)
from argand_aot.decompose import decompositions
from argand_c10.lowerings import PointwiseLowering
from argand_inductor.lowering import composite


def add_opencl() -> None:
    """An OpenCL without devices: the backend's tables are all that is read."""
    stand_in = types.ModuleType("pyopencl")
    vars(stand_in).update(get_platforms=list, Error=OSError)
    sys.modules["pyopencl"] = stand_in


def main() -> None:
    add_opencl()
    import argand_opencl
    from argand_opencl import elementwise, printer
    from argand_opencl.arguments import lowerings

    printable = {
        name: elementwise.Pointwise(name, rule).printable
        for name, rule in lowerings(PointwiseLowering)
    }
    facts = {
        "lowered": sorted({*composite._LOWERINGS, *composite._ROWS}),
        "decomposed": sorted(decompositions()),
        "opencl": {
            name: sorted(printable.get(name, printer.TYPES))
            for name in argand_opencl.covered_operators()
        },
    }
    Path(sys.argv[1]).write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
