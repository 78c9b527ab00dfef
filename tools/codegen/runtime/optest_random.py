"""Tests of generated numbers: seeds, and the distribution's moments. Forms of one operator are compared in optest.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from tools.codegen.runtime.optest import as_list, operator, run, sizes, wide
from tools.codegen.runtime.optest_calls import Call, Case, sample_calls, tensors, with_tensors
from tools.codegen.runtime.under_test import array_of, aten, dtype_object, on_device

DRAWS = 2000  # of each sample, for its moments


def _calls(case: Case, dtype: str) -> list[Call]:
    """The samples; what makes tensors of no tensor makes them of this dtype."""
    found = sample_calls(case, dtype)
    if case.parsed.argument("dtype") is None:
        return found
    given = {"dtype": dtype_object(dtype)}
    return [c if sizes(c) else Call(c.args, given | c.kwargs) for c in found]


def _next(case: Case, call: Call) -> Any:
    """The first result of a call that goes on with the numbers after the last one's."""
    ready = tensors(call)
    given = on_device(case.parsed, ready.args, ready.kwargs)
    return as_list(operator(case)(*ready.args, **given))[0]


def check_seeds(case: Case, dtype: str) -> None:
    """A seed gives one sequence of numbers, with which the next call goes on; another seed gives another sequence."""
    differs = goes_on = False
    for call in _calls(case, dtype):
        seeds = (1, 2, 1)
        first, other, again = (
            array_of(as_list(run(case, tensors(call), seed))[0]) for seed in seeds
        )
        following = array_of(_next(case, call))
        np.testing.assert_array_equal(first, again, err_msg=case.name)
        differs |= not np.array_equal(first, other)
        goes_on |= not np.array_equal(first, following)
    assert differs, f"{case.name}: two seeds gave the same numbers"
    assert goes_on, f"{case.name}: two calls gave the same numbers"


def check_moments(case: Case, dtype: str) -> None:
    """Means and variances over many draws are the distribution's, each element's within five standard errors."""
    assert case.moments is not None
    for call in sample_calls(case, dtype):
        arrays = with_tensors(call, wide)
        mean, var = (np.asarray(m) for m in case.moments(*arrays.args, **arrays.kwargs))
        run(case, tensors(call))
        draws = array_of(aten().stack([_next(case, call) for _ in range(DRAWS)]))
        squares = (draws.astype("float64") - mean) ** 2
        assert draws.shape[1:] == np.broadcast_shapes(draws.shape[1:], mean.shape, var.shape)
        for name, found, expected, error in (
            ("mean", draws.mean(0, dtype="float64"), mean, np.sqrt(var)),
            ("variance", squares.mean(0), var, squares.std(0)),
        ):
            bound = 5 * error / np.sqrt(DRAWS) + 1e-6 * np.abs(expected)
            assert (np.abs(found - expected) <= bound).all(), (
                f"{case.name}: {name} {found}, expected {expected} within {bound}"
            )
