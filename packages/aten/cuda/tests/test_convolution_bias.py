"""The bias of convolutions on an emulated CUDA device; the convolution itself is a stand-in's (test_libraries.py)."""

from __future__ import annotations

import os
from typing import Any

import emulated
import numpy as np
import pytest

if emulated.missing:
    pytest.skip(emulated.missing, allow_module_level=True)
if not os.environ.get("ARGAND_CUDNN_LIBRARY"):
    pytest.skip(
        "ARGAND_CUDNN_LIBRARY does not name the stand-in for cuDNN", allow_module_level=True
    )

import argand_aten as aten
from argand_c10 import float32, float64, from_numpy

emulated.start()


@pytest.mark.parametrize("dtype", [float32, float64])
@pytest.mark.parametrize("xs,ws", [((2, 3, 6, 5), (4, 3, 3, 3)), ((3, 2, 700), (5, 2, 1))])
def test_bias(dtype: Any, xs: Any, ws: Any) -> None:
    random = np.random.default_rng(0)
    values = [from_numpy(random.standard_normal(s)).to(dtype) for s in (xs, ws, ws[:1])]
    ones = [1] * (len(xs) - 2)
    rest = (ones, [0] * len(ones), ones, 1)
    want = aten.convolution(*values, *rest)
    got = aten.convolution(*[v.to(device="cuda") for v in values], *rest)
    emulated.check()
    np.testing.assert_allclose(got.to(device="cpu").numpy(), want.numpy(), rtol=1e-5, atol=1e-5)
    with pytest.raises(RuntimeError, match="expected bias to be 1-dimensional"):
        x, w, b = (v.to(device="cuda") for v in values)
        aten.convolution(x, w, b[:2], *rest)
