"""Operators without a CUDA kernel: LAPACK, CTC and samplers run on the CPU and say so once."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import emulated
import numpy as np
import pytest

if emulated.missing:
    pytest.skip(emulated.missing, allow_module_level=True)

import argand_aten as aten
import argand_c10 as c10
from argand_c10 import records

emulated.start()
RNG = np.random.default_rng(5)


def numbers(*shape: int) -> Any:
    return c10.tensor(RNG.standard_normal(shape).astype(np.float32))


SPD = numbers(4, 4)
SPD = SPD @ SPD.mT + 4 * aten.eye(4)
CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "solve": (lambda a, b: aten.ops.linalg_solve(a, b), (SPD, numbers(4, 2))),
    "cholesky": (lambda a: aten.ops.linalg_cholesky(a), (SPD,)),
    "eigvalsh": (lambda a: aten.ops.linalg_eigvalsh(a), (SPD,)),
    "qr": (lambda a: aten.ops.linalg_qr(a)[1], (numbers(4, 3),)),
    "det": (lambda a: aten.ops.linalg_det(a), (SPD,)),
    "matrix_exp": (lambda a: aten.ops.linalg_matrix_exp(a), (numbers(3, 3),)),
}


@pytest.mark.filterwarnings("ignore:.*has no kernel for 'cuda'")
@pytest.mark.parametrize("name", CALLS)
def test_values(name: str) -> None:
    call, args = CALLS[name]
    result = call(*(a.to("cuda") for a in args))
    emulated.check()
    assert result.device.type == "cuda"
    np.testing.assert_allclose(result.to("cpu").numpy(), call(*args).numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore:.*has no kernel for 'cuda'")
def test_dtypes_that_a_kernel_does_not_take() -> None:
    x = aten.complex(numbers(3, 5), numbers(3, 5))
    on = x.to("cuda")
    for call in (aten.prod, lambda t: aten.prod(t, 1)):
        got = call(on)
        assert got.device.type == "cuda"
        np.testing.assert_allclose(got.to("cpu").numpy(), call(x).numpy(), rtol=1e-5)
    out = aten.empty([3], dtype=x.dtype, device="cuda")
    assert aten.prod(on, 1, out=out) is out
    np.testing.assert_allclose(out.to("cpu").numpy(), np.prod(x.numpy(), 1), rtol=1e-5)
    with pytest.raises(NotImplementedError, match="max"):
        aten.max(on)


def test_the_users_line_is_named_once() -> None:
    x = numbers(3, 3).to("cuda")
    with warnings.catch_warnings(record=True) as said, records.collect() as found:
        warnings.simplefilter("always")
        for _ in range(2):
            aten.geqrf(x)
    assert [w.filename for w in said] == [__file__]
    assert "geqrf has no kernel for 'cuda': it runs on the CPU" in str(said[0].message)
    assert [(r.kind, r.code, r.file) for r in found] == [("fallback", "CPU001", __file__)]


def test_errors_are_the_cpus() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(RuntimeError, match="singular"):
            aten.ops.linalg_inv(aten.zeros([2, 2], device="cuda"))
