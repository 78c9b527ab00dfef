"""The device "opencl": importing this package registers it, its kernels and its fallback.

Nothing of Argand names this package. Element-wise operators, reductions and scans are printed from what the operator
registry says of them (`argand_c10.rules`), so operators that are added there later run here without a change.
"""

from __future__ import annotations

import argand_aten  # noqa: F401  (brings the operators)
import argand_c10
from argand_opencl import contraction, elementwise, movement, reduction
from argand_opencl.device import DEVICE_KEY, DEVICE_NAME, memory_in_use, start, synchronize

__all__ = ["DEVICE_NAME", "covered_operators", "memory_in_use", "synchronize"]

start()
_covered = [
    *elementwise.register(),
    *reduction.register(),
    *movement.register(),
    *contraction.register(),
]
argand_c10.register_fallback(DEVICE_KEY, argand_c10.run_on_cpu)


def covered_operators() -> tuple[str, ...]:
    """Names of the operators with a kernel of this device; the others run on the CPU, on copies."""
    return tuple(sorted(_covered))
