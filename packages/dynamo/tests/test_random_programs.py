"""Random programs do compiled what they do plain. ARGAND_TEST_PROGRAMS sets how many are tried, ARGAND_TEST_SEED where they begin."""

from __future__ import annotations

import os

import pytest
from random_programs import function, outcome, source

import argand_dynamo as dynamo
from argand_dynamo import config

NUMBER = int(os.environ.get("ARGAND_TEST_PROGRAMS", "40"))
FIRST = int(os.environ.get("ARGAND_TEST_SEED", "0"))
GROUP = 10


@pytest.mark.parametrize("first", range(FIRST, FIRST + NUMBER, GROUP))
def test_compiled_programs_equal_plain_ones(first):
    # Within a group the functions that all programs call keep what was compiled for them.
    dynamo.reset()
    with config.patch(suppress_errors=False):
        for seed in range(first, first + GROUP):
            text = source(seed)
            plain = function(text)
            wanted = outcome(plain)
            compiled = dynamo.compile(plain, backend="eager")
            for call in range(2):
                assert outcome(compiled) == wanted, f"seed {seed}, call {call}:\n{text}"
    dynamo.reset()
