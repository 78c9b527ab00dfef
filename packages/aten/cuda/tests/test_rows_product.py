"""Products of few rows on an emulated CUDA device, where cuBLASLt is a stand-in."""

from __future__ import annotations

from typing import Any

import emulated
import numpy as np
import pytest

if emulated.missing:
    pytest.skip(emulated.missing, allow_module_level=True)

import argand_aten as aten
import argand_c10 as c10

emulated.start()
RNG = np.random.default_rng(0)


def values(*shape: int) -> Any:
    return aten.tensor(RNG.standard_normal(shape)).to(c10.float32)


def same(function: Any, *tensors: Any) -> set[str]:
    emulated.launches.clear()
    expected, got = function(*tensors), function(*(t.to("cuda") for t in tensors))
    emulated.check()
    np.testing.assert_allclose(got.to("cpu").numpy(), expected.numpy(), rtol=1e-5, atol=1e-5)
    return {name.split(";")[0] for name in emulated.launches}


@pytest.mark.parametrize("m", [1, 3, 16, 33])
def test_rows(m: int) -> None:
    for k, n in ((32, 16), (48, 1040), (5, 7), (1, 1)):
        x, w = values(m, k), values(n, k)
        assert same(lambda x, w: aten.linear(x, w), x, w) == {"rows_product"}
        assert same(lambda x, w: aten.linear(x, w, w[:, 0].contiguous()), x, w) >= {"rows_product"}
        assert same(lambda x, w: aten.mm(x, w), x, values(k, n)) == {"rows_product"}
    x, w = values(m, 20), values(9, 20)
    assert same(lambda x, w: aten.mm(x[:, 3:16], w.t()[3:16]), x, w) == {"rows_product"}


def test_others_are_the_library_s() -> None:
    calls = [
        lambda x: aten.mm(x, x.t()),
        lambda x: aten.mm(x[:4].t(), x[:4]),
        lambda x: aten.bmm(x[:4].view(2, 2, 3), x[:4].view(2, 3, 2)),
        lambda x: aten.addmm(x[:2, :2], x[:2], x[:3, :2], beta=2),
        lambda x: aten.mm(x[:2].double(), x[:3].double()),
    ]
    for call in calls:
        assert "rows_product" not in same(call, values(65, 3))
