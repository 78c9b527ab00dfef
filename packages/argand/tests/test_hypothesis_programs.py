"""Random programs of operators do on tensors what they do on NumPy arrays. ARGAND_TEST_PROGRAMS sets their number, ARGAND_TEST_SEED the first seed."""

from __future__ import annotations

import os
from collections import Counter

import program_indexing  # noqa: F401  registers its operations
import program_operators  # noqa: F401
import program_values as values
import pytest
from hypothesis import HealthCheck, event, given, seed, settings
from hypothesis import strategies as st
from program_machine import OPERATIONS, Choices, Machine

# NumPy warns of what a program may well do: a variance of one element, infinity times zero.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

PROGRAMS = int(os.environ.get("ARGAND_TEST_PROGRAMS", "500"))
SEED = int(os.environ.get("ARGAND_TEST_SEED", "0"))

dtypes = st.lists(st.sampled_from(sorted(values.CARRIERS)), min_size=1, max_size=2)
steps = st.tuples(st.sampled_from(sorted(OPERATIONS)), st.binary(min_size=16, max_size=16))


@seed(SEED)
@settings(
    max_examples=PROGRAMS, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)
@given(dtypes, st.binary(min_size=12, max_size=12), st.lists(steps, min_size=6, max_size=20))
def test_programs_agree_with_numpy(dtypes, start, program):
    event(f"seed {SEED}, {PROGRAMS} programs")
    machine = Machine(dtypes)
    machine.start(Choices(start))
    machine.run(program)


def test_every_operation_takes_part():
    """A fixed series of programs through all operations: the machine itself works."""
    done = Counter()
    for k, dtype in enumerate(sorted(values.CARRIERS)):
        machine = Machine([dtype])
        machine.start(Choices(bytes([3, 2, 3, 3, k])))
        for step in range(3):
            for i, name in enumerate(sorted(OPERATIONS)):
                data = bytes((i * 7 + step * 13 + k * 5 + j * (step + 3)) % 251 for j in range(16))
                machine.run([(name, data)])
        done.update(entry.split(" ")[0] for entry in machine.log)
    some = "permute view unfold expand where copy_ fill_ add sort cat sum cumsum index matmul to"
    assert set(some.split()) <= set(done), done
    assert len(done) > 100, done
