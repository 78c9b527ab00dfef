"""Random programs of views, in-place operations and broadcasting do on tensors what they do on NumPy arrays."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from program_machine import OPERATIONS, Choices, Machine

PROGRAMS = int(os.environ.get("ARGAND_TEST_PROGRAMS", "2000"))

dtypes = st.sampled_from(["float32", "float64", "int64", "int16"])
steps = st.tuples(st.sampled_from(sorted(OPERATIONS)), st.binary(min_size=10, max_size=10))


@settings(
    max_examples=PROGRAMS, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
@given(dtypes, st.binary(min_size=4, max_size=4), st.lists(steps, min_size=6, max_size=20))
def test_programs_agree_with_numpy(dtype, start, program):
    machine = Machine(dtype)
    machine.start(Choices(start))
    machine.run(program)


def test_every_operation_takes_part():
    """A fixed program through all operations: the machine itself works."""
    machine = Machine("float64")
    machine.start(Choices(bytes([3, 2, 3, 3])))
    machine.run(
        [(name, bytes(range(seed, seed + 10))) for seed in range(4) for name in sorted(OPERATIONS)]
    )
    done = {entry.split(" ")[0] for entry in machine.log}
    assert {
        "permute",
        "select",
        "view",
        "unfold",
        "expand",
        "where",
        "copy_",
        "fill_",
        "add",
    } <= done
