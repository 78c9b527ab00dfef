"""An integer that became symbolic stands for integers only."""

from __future__ import annotations

import pytest
from tracing import torch

import argand_dynamo as dynamo


@pytest.mark.parametrize("other", ["text", 2.5, True, None, [1], "tensor"])
def test_a_symbolic_integer_that_nothing_reads_still_has_its_type(other):
    def function(x, n):
        return x + 1, "tensor" if isinstance(n, torch.Tensor) else type(n).__name__

    x = torch.ones(2)
    if other == "tensor":
        other = torch.ones(3)
    compiled = dynamo.compile(function, backend="eager")
    for n in (2, 3, 4, other, 5):
        assert compiled(x, n)[1] == function(x, n)[1]
