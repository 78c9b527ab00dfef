"""Matrix products and convolutions through stand-ins of NVIDIA's libraries, which compute what the descriptions say they should."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import argand_aten as aten
from argand_aten_cuda import libraries
from argand_c10 import Tensor, bfloat16, float32, float64, from_numpy, math_settings

_RANDOM = np.random.default_rng(0)
_NUMPY = {float32: np.float32, float64: np.float64}
_MOST_ROWS = 64  # of products in float32 that are not the library's
_TOLERANCE = {float32: 1e-5, float64: 1e-12, bfloat16: 2e-2}


def _values(*shape: int) -> Any:
    return _RANDOM.integers(-8, 9, shape).astype(np.float64) / 4  # exact in bfloat16


def _put(values: Any, dtype: Any = float64) -> Tensor:
    return from_numpy(np.ascontiguousarray(values)).to(dtype).to(device="cuda")


def _close(got: Tensor, want: Any) -> None:
    tolerance = _TOLERANCE[got.dtype]
    assert got.device.type == "cuda"
    values = got.detach().to(device="cpu").to(float64).numpy()
    np.testing.assert_allclose(values, want, rtol=tolerance, atol=tolerance * 4)


@pytest.mark.parametrize("dtype", [float32, float64, bfloat16])
@pytest.mark.parametrize("m,k,n", [(3, 5, 4), (1, 6, 5), (5, 1, 7), (4, 3, 1), (1, 1, 1)])
def test_mm_in_every_layout(dtype: Any, m: int, k: int, n: int) -> None:
    m += _MOST_ROWS if dtype is float32 else 0
    a, b = _values(m, k), _values(k, n)
    lefts = [_put(a, dtype), _put(a.T, dtype).t(), _put(np.repeat(a, 2, 0), dtype)[::2]]
    rights = [_put(b, dtype), _put(b.T, dtype).t(), _put(np.repeat(b, 3, 0), dtype)[::3]]
    for x in lefts:
        for y in rights:
            _close(aten.mm(x, y), a @ b)


def test_views_that_start_inside_of_rows() -> None:
    a, b = _values(6, 8), _values(8, 6)
    x, y = _put(a), _put(b)
    _close(aten.mm(x[1:4, 2:7], y[2:7, 1:3]), a[1:4, 2:7] @ b[2:7, 1:3])
    _close(aten.mm(x[:, :3].t(), y[:6, 2:].t()[:4].t()), a[:, :3].T @ b[:6, 2:6])


@pytest.mark.parametrize("dtype", [float32, float64])
def test_addmm(dtype: Any) -> None:
    m = _MOST_ROWS + 3
    a, b, full = _values(m, 5), _values(5, 4), _values(m, 4)
    x, y = _put(a, dtype), _put(b, dtype)
    _close(aten.addmm(_put(full, dtype), x, y), a @ b + full)
    _close(aten.addmm(_put(full, dtype), x, y, beta=0.5, alpha=-2), -2 * (a @ b) + 0.5 * full)
    _close(aten.addmm(_put(np.repeat(full, 2, 0), dtype)[::2], x, y, beta=3), a @ b + 3 * full)
    _close(aten.addmm(_put(full[0], dtype), x, y, beta=0), a @ b)


def test_addmm_adds_rows_in_the_product() -> None:
    a, b, row = _values(_MOST_ROWS + 3, 5), _values(5, 4), _values(4)
    x, y = _put(a, float32), _put(b, float32)
    _close(aten.addmm(_put(row, float32), x, y), a @ b + row)
    _close(aten.addmm(_put(row[None], float32), x, y, alpha=2), 2 * (a @ b) + row)


@pytest.mark.parametrize("dtype", [float32, bfloat16])
def test_linear(dtype: Any) -> None:
    w, bias = _values(6, 5), _values(6)
    many = _MOST_ROWS
    for shape in ((4 + many, 5), (2 + many, 3, 5), (0, 5), *(((5,),) if dtype is bfloat16 else ())):
        x = _values(*shape)
        _close(aten.linear(_put(x, dtype), _put(w, dtype)), x @ w.T)
        _close(aten.linear(_put(x, dtype), _put(w, dtype), _put(bias, dtype)), x @ w.T + bias)
    x = _values(4 + many, 5)
    _close(aten.linear(_put(x, dtype), _put(w.T, dtype).t(), _put(bias, dtype)), x @ w.T + bias)


def test_bmm() -> None:
    a, b = _values(3, 2, 5), _values(3, 5, 4)
    for x in (_put(a), _put(a.swapaxes(1, 2)).transpose(1, 2), _put(np.repeat(a, 2, 0))[::2]):
        for y in (_put(b), _put(b.swapaxes(1, 2)).transpose(1, 2)):
            _close(aten.bmm(x, y), a @ b)
    _close(aten.matmul(_put(a[:1]).expand(3, 2, 5), _put(b)), a[:1] @ b)
    _close(aten.matmul(_put(a), _put(b[0])), a @ b[0])


def test_more_batches_than_a_call_takes() -> None:
    a, b = _values(65537, 1, 2), _values(65537, 2, 1)
    _close(aten.bmm(_put(a), _put(b)), a @ b)


def test_products_of_masks_and_of_several_dtypes_are_refused() -> None:
    x = _put(np.ones((2, 2))).to(device="cpu").bool().to(device="cuda")
    with pytest.raises(RuntimeError, match="mm: got bool, expected a dtype of numbers"):
        aten.mm(x, x)
    with pytest.raises(RuntimeError, match="one dtype"):
        aten.mm(_put(np.ones((2, 2))), _put(np.ones((2, 2)), float32))


def _convolution(x: Any, w: Any, *rest: Any) -> Any:
    """The CPU's kernels, as oracle: the result, a gradient for it, and the gradients."""
    y = aten.convolution(from_numpy(x), from_numpy(w), None, *rest).numpy()
    g = _values(*y.shape)
    grads = aten.convolution_backward(
        from_numpy(g), from_numpy(x), from_numpy(w), *rest, [True] * 3
    )
    return y, g, [grad.numpy() for grad in grads[:2]]


_CONVOLUTIONS = [
    ((2, 4, 6, 5), (6, 4, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((2, 4, 6, 7), (4, 2, 3, 2), (2, 1), (0, 1), (1, 2), 2),
    ((1, 3, 5, 5), (3, 1, 3, 3), (1, 1), (1, 1), (1, 1), 3),
    ((2, 3, 9), (4, 3, 3), (2,), (1,), (2,), 1),
    ((2, 4, 4, 5, 3), (4, 2, 3, 2, 2), (2, 1, 1), (1, 0, 1), (1, 2, 1), 2),
]


@pytest.mark.parametrize("dtype", [float32, float64])
@pytest.mark.parametrize("xs,ws,stride,padding,dilation,groups", _CONVOLUTIONS)
def test_convolution(
    dtype: Any, xs: Any, ws: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> None:
    x, w = _values(*xs), _values(*ws)
    rest = (list(stride), list(padding), list(dilation), groups)
    y, g, grads = _convolution(x, w, *rest)
    for _ in range(2):  # the second time from the cache
        _close(aten.convolution(_put(x, dtype), _put(w, dtype), None, *rest), y)
        found = aten.convolution_backward(
            _put(g, dtype), _put(x, dtype), _put(w, dtype), *rest, [True, True, False]
        )
        for got, want in zip(found[:2], grads, strict=True):
            _close(got, want)


def _engine(**changes: bool) -> int:
    """The stand-in's engine that a new problem is computed by."""
    before = math_settings.current()
    math_settings.change(**changes)
    try:
        n = int(_RANDOM.integers(100, 100000))  # a size that was not seen before
        aten.convolution(
            _put(_values(1, 1, 1, n), float32),
            _put(_values(1, 1, 1, 1), float32),
            None,
            [1, 1],
            [0, 0],
            [1, 1],
            1,
        )
    finally:
        math_settings.change(**{name: getattr(before, name) for name in before.__slots__})
    return libraries.version("cudnn") - 90001


def test_engines_keep_to_the_settings() -> None:
    assert _engine() == 1  # engine 0 does not support the problem, the next one is taken
    assert _engine(conv_tf32=False) == 2
    assert _engine(conv_tf32=False, deterministic=True) == 3
    assert _engine(benchmark=True) in (1, 2, 3)


def test_convolutions_of_other_dtypes_are_refused() -> None:
    x = _put(_values(1, 1, 2, 2)).to(device="cpu").long().to(device="cuda")
    with pytest.raises(RuntimeError, match="convolution: got int64 on a CUDA device"):
        aten.convolution(x, x, None, [1, 1], [0, 0], [1, 1], 1)


def test_a_missing_library_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    found = libraries._LIBRARIES["cudnn"]
    monkeypatch.setenv(found.variable, "/nowhere/libcudnn.so.9")
    assert found.candidates([]) == ["/nowhere/libcudnn.so.9"]
    monkeypatch.delenv(found.variable)
    assert found.candidates(["/nowhere"]) == ["libcudnn.so.9"]
