"""`out=` of operators made of others; what numbers, dtypes and shapes give and where they are refused."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import argand_aten as aten
import argand_c10 as c10
from argand_aten import _indexing, ops

X = [[1.0, -2.0, 3.0], [4.0, 0.0, -6.0]]


def x() -> c10.Tensor:
    return c10.tensor(X)


CALLS: dict[str, Callable[..., Any]] = {
    "max": lambda **k: aten.max(x(), **k),
    "max.other": lambda **k: aten.max(x(), -x(), **k),
    "std.dim_unbiased": lambda **k: aten.std(x(), 1, True, **k),
    "logaddexp": lambda **k: aten.logaddexp(x(), x(), **k),
    "scatter_add": lambda **k: aten.scatter_add(x(), 1, c10.tensor([[0], [2]]), x(), **k),
    "slice_scatter": lambda **k: aten.slice_scatter(x(), x(), 0, 0, 2, 1, **k),
    "index_add": lambda **k: aten.index_add(x(), 0, c10.tensor([1, 1]), x(), **k),
    "nonzero": lambda **k: aten.nonzero(x(), **k),
    "histogram": lambda **k: aten.histogram(x(), 3, **k),
    "roll": lambda **k: aten.roll(x(), 1, **k),
}


@pytest.mark.parametrize("name", CALLS)
def test_out_of_composites(name: str) -> None:
    call = CALLS[name]
    want = call()
    results = want if isinstance(want, tuple) else (want,)
    outs = tuple(aten.empty([0], dtype=r.dtype) for r in results)
    got = call(out=outs if isinstance(want, tuple) else outs[0])
    for result, out, returned in zip(
        results, outs, got if isinstance(got, tuple) else (got,), strict=True
    ):
        assert returned is out
        np.testing.assert_array_equal(out.numpy(), result.numpy())


def test_out_of_lists() -> None:
    outs = [aten.empty([0]), aten.empty([0])]
    assert aten.unbind_copy(x(), 0, out=outs) is None
    assert [o.tolist() for o in outs] == X
    assert aten.split_with_sizes_copy(x(), [2, 1], 1, out=outs) is None
    assert [tuple(o.shape) for o in outs] == [(2, 2), (2, 1)]
    assert aten.split_copy(x(), 1, out=outs) is None
    assert [o.tolist() for o in outs] == [X[:1], X[1:]]
    with pytest.raises(RuntimeError, match="size 2, got size 1"):
        aten.unbind_copy(x(), 0, out=outs[:1])


def test_out_that_overlaps_is_refused() -> None:
    for call in (
        lambda out: aten.index_select(x(), 0, c10.tensor([0, 1]), out=out),
        lambda out: aten.add(x(), 1, out=out),
    ):
        with pytest.raises(RuntimeError, match="unsupported operation"):
            call(aten.expand(c10.tensor([1.0]), [2, 3]))
    both = aten.arange(6.0)
    with pytest.raises(RuntimeError, match="unsupported operation"):
        aten.roll(both[:-1], 1, out=both[1:])


@pytest.mark.parametrize("name", ["sum", "nansum", "mean", "nanmean", "prod"])
def test_sums_in_the_dtype_of_out(name: str) -> None:
    numbers = [1 + 2.0**-20, 2.0**-20 - 1] if name == "prod" else [1.0, 2.0**-30]
    expected = {"sum": 1 + 2.0**-30, "mean": 0.5 + 2.0**-31, "prod": 2.0**-40 - 1}
    out = aten.empty([], dtype=c10.float64)
    getattr(aten, name)(c10.tensor(numbers), 0, out=out)
    assert out.item() == expected[name.removeprefix("nan")]


def test_dtypes_of_out() -> None:
    wide, ints = aten.empty([2, 3], dtype=c10.float64), aten.empty([2, 3], dtype=c10.int64)
    # Sums and elementwise arithmetic are stored in a wider dtype; products, copies and sorted elements in their own.
    assert aten.exp(x(), out=wide) is wide
    assert aten.cumsum(x(), 1, out=wide)[0, 2].item() == 2
    assert aten.stack([x()], out=aten.empty([0], dtype=c10.float64)).tolist() == [X]
    wider = aten.empty([0], dtype=c10.float64)
    assert ops._chunk_cat([x()], 0, 2, out=wider).tolist() == X
    for call in (
        lambda: aten.mm(x(), x().T, out=aten.empty([2, 2], dtype=c10.float64)),
        lambda: aten.sort(x(), out=(wide, ints)),
        lambda: aten.gather(x(), 1, c10.tensor([[0], [0]]), out=wide),
        lambda: aten.topk(x(), 2, out=(aten.empty([2, 2]), aten.empty([2, 2], dtype=c10.int32))),
        lambda: aten.aminmax(x(), out=(c10.tensor(0.0).to(c10.float64), c10.tensor(0.0))),
        lambda: aten.neg(x(), out=wide),
        lambda: aten.where(x() > 0, x(), x(), out=wide),
        lambda: aten.zeros([2, 3], dtype=c10.float32, out=wide),
    ):
        with pytest.raises(RuntimeError, match="[Dd]type|expected"):
            call()
    with pytest.raises(RuntimeError, match="can't be cast"):
        aten.exp(x(), out=ints)
    # A factory without a dtype makes what it is given.
    assert aten.ones([2, 3], out=ints).tolist() == [[1, 1, 1], [1, 1, 1]]
    assert aten.full([2], 7.5, out=aten.empty([2], dtype=c10.float64)).tolist() == [7.5, 7.5]
    assert (
        aten.any(c10.tensor([2, 0]).to(c10.uint8), out=aten.empty([], dtype=c10.bool)).item()
        is True
    )


def test_out_keeps_its_strides_unless_it_is_resized() -> None:
    turned = aten.empty([3, 2]).T
    assert aten.add(x(), x(), out=turned).stride() == (1, 2)
    assert aten.cumsum(x(), 0, out=turned).stride() == (1, 2)
    assert turned.tolist() == [X[0], [5.0, -2.0, -3.0]]
    columns = x().T.contiguous().T
    for dtype in (c10.float32, c10.float64, c10.complex64):
        out = aten.empty([0], dtype=dtype)
        assert aten.add(columns, 1, out=out).stride() == (1, 2)
        assert out.tolist() == aten.add(columns, 1).tolist()
    meta = aten.empty([0], device="meta")
    assert aten.mul(columns.to("meta"), columns.to("meta"), out=meta).stride() == (1, 2)
    assert aten.logical_not(columns[:, ::2], out=aten.empty([0])).stride() == (1, 2)
    assert aten.flip(columns, [0]).stride() == (1, 2)
    assert aten.flip(columns, [0], out=aten.empty([0])).stride() == (1, 2)
    spectrum = aten.empty([0], dtype=c10.complex64)
    assert ops.fft_fft(x(), None, 0).stride() == (1, 2)
    assert ops.fft_fft(x(), None, 0, out=spectrum).stride() == (3, 1)
    matrix, scales = aten.ones([3, 2]), aten.ones([2])
    for n, strides in ((0, (1, 3)), (5, (2, 1))):
        made = ops.linalg_householder_product(matrix, scales, out=aten.empty([n]))
        assert made.stride() == strides


def test_an_out_with_elements_is_not_resized_silently() -> None:
    calls: list[Callable[..., Any]] = [
        lambda out: aten.exp(x(), out=out),
        lambda out: aten.sum(x(), [0, 1], True, out=out),
        lambda out: aten.cumsum(x(), 0, out=out),
        lambda out: aten.cat([x(), x()], out=out),
        lambda out: aten.sort(x(), out=(out, aten.empty([0], dtype=c10.int64))),
    ]
    for call in calls:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            call(aten.empty([0, 7]))
        out = aten.empty([7])
        with pytest.warns(UserWarning, match=r"resized since it had shape \[7\]"):
            call(out)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            call(out)
            aten.zeros([2, 3], out=aten.empty([7]))


def test_bernoulli_into_any_dtype() -> None:
    for dtype in (c10.bool, c10.uint8, c10.int64, c10.float16):
        out = aten.empty([2, 3], dtype=dtype)
        assert aten.bernoulli(aten.ones([2, 3]), out=out) is out
        assert out.dtype == dtype and out.tolist() == [[1, 1, 1], [1, 1, 1]]


def test_versions_of_new_tensors() -> None:
    a, where = aten.zeros([3]), c10.tensor([0])
    for made in (
        aten.ones([2]),
        aten.eye(2),
        aten.randn([2]),
        aten.full_like(a, 2),
        a.index_fill(0, where, 1),
        aten.constant_pad_nd(a, [1, 1]),
        aten.diag_embed(a),
    ):
        assert made._version == 0
        assert made.add_(1)._version == 1
    assert a.squeeze().zero_()._version == a._version == 1
    assert a.reshape([3])._version == a.contiguous()._version == a.to(c10.float32)._version == 1


def test_out_that_is_an_input_read_elsewhere_is_refused() -> None:
    a, index = aten.ones([3, 3]), aten.zeros([3, 3], dtype=c10.int64)
    for call in (
        lambda: aten.gather(a, 0, index, out=a),
        lambda: aten.gather(index, 0, index, out=index),
        lambda: aten.index_select(a, 0, index[0], out=a),
        lambda: aten.take(index, index, out=index),
        lambda: aten.scatter(a, 0, index, a, out=a),
        lambda: aten.cross(a, aten.ones([3, 3]), out=a),
        lambda: aten.cat([a, a], out=a),
        lambda: aten.masked_select(a, a > 0, out=a),
    ):
        with pytest.raises(RuntimeError, match="single memory location"):
            call()
    with pytest.raises(RuntimeError, match="^kthvalue: unsupported operation"):
        aten.kthvalue(a, 2, out=(a, aten.empty([0], dtype=c10.int64)))
    assert aten.mul(a, 2, out=a) is a  # each element is read where it is written
    both = aten.arange(6.0)
    for call in (
        lambda: aten.exp(both[:-1], out=both[1:]),
        lambda: both[1:].add_(both[:-1]),
        lambda: both.mul_(both[2]),
    ):
        with pytest.raises(RuntimeError, match="single memory location"):
            call()
    assert both.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "call",
    [
        lambda: aten.maximum(x(), 2),
        lambda: aten.logical_or(x(), 1),
        lambda: aten.eq(2, x()),
        lambda: aten.le(2, 3),
        lambda: aten.fmod(2, x()),
        lambda: aten.rsub(2, x()),
        lambda: aten.pow(2, 3),
        lambda: aten.remainder(2, 3),
        lambda: aten.bitwise_and(2, 3),
        lambda: aten.xlogy(2, 3),
    ],
)
def test_numbers_where_tensors_are_expected(call: Callable[[], Any]) -> None:
    with pytest.raises(TypeError):
        call()


def test_numbers_in_place_of_all_tensors() -> None:
    assert aten.add(2, 3).item() == 5
    assert aten.floor_divide(7, 2).item() == 3
    assert (2 < x()).tolist() == [[False, False, True], [True, False, False]]
    assert aten.pow(2, c10.tensor([3])).tolist() == [8]


def test_complex_numbers_without_imaginary_part_fill_reals() -> None:
    assert x().fill_(2.5 + 0j).tolist() == [[2.5] * 3] * 2
    whole = aten.full([2], 2.5 + 0j, dtype=c10.int64)
    assert whole.dtype == c10.int64 and whole.tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="complex number"):
        x().fill_(1 + 1j)


def test_complex_numbers_without_imaginary_part_are_real_numbers() -> None:
    m = aten.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert aten.addmm(m, m, m, alpha=2 + 0j).tolist() == [[15, 22], [33, 48]]
    assert aten.addcmul(m, m, m, value=2 + 0j).tolist() == [[3, 10], [21, 36]]
    assert aten.masked_fill(m, m > 2, 5 + 0j).tolist() == [[1, 2], [5, 5]]
    assert aten.threshold(m, 2 + 0j, 0 + 0j).tolist() == [[0, 0], [3, 4]]
    with pytest.raises(RuntimeError, match="complex number for alpha"):
        aten.add(m, m, alpha=2 + 0j)
    with pytest.raises(RuntimeError, match="complex number"):
        aten.addmm(m, m, m, alpha=2 + 1j)


def test_powers_of_two() -> None:
    """The power has the dtype of its exponent, or that of the factor if the exponent is an integer."""
    half = aten.tensor([1.5, 3.0], dtype=c10.bfloat16)
    assert aten.ldexp(half, aten.tensor([2, 3])).dtype == c10.bfloat16
    tiny = aten.tensor([1e-300], dtype=c10.float64)
    np.testing.assert_allclose(aten.ldexp(tiny, aten.tensor([1000])).numpy(), 10.715, 1e-4)
    rounded = aten.ldexp(aten.ones(1), aten.tensor([0.3], dtype=c10.bfloat16))
    assert rounded.dtype == c10.float32 and rounded.tolist() == [1.234375]


def test_padding_by_nothing_copies() -> None:
    wide = x().t()
    for pads, shape in (([0, 0], (3, 2)), ([-1, 0], (3, 1))):
        copy = aten.constant_pad_nd(wide, pads)
        assert copy.shape == shape and copy.data_ptr() != wide.data_ptr()
    assert aten.constant_pad_nd(wide, [0, 0]).stride() == wide.stride()


def test_masked_fill_converts_its_value() -> None:
    every = c10.tensor([True, True])
    assert aten.masked_fill(c10.tensor([True, False]), every, 10).tolist() == [True, True]
    assert aten.masked_fill(c10.tensor([1, 2]), every, 1.5).tolist() == [1, 1]
    assert aten.masked_fill(c10.tensor([1, 2]), every, c10.tensor(1.5)).tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="without overflow"):
        aten.masked_fill(x(), x() > 0, 1j)


def test_dtypes_of_results() -> None:
    bools = aten.ones([2, 3], dtype=c10.bool)
    assert bools.sum_to_size(1, 3).tolist() == [[2, 2, 2]]
    assert aten.square(bools).dtype is c10.int64
    ones = aten.ones([1, 2, 2], dtype=c10.int64)
    assert aten.baddbmm(ones, ones * 3, ones * 2, beta=1.7, alpha=1.6).tolist() == [
        [[13, 13], [13, 13]]
    ]
    true = c10.tensor([True])
    assert aten.addr(c10.tensor([[True, False]]), true, c10.tensor([False, True])).tolist() == [
        [True, True]
    ]
    with pytest.raises(RuntimeError, match="In-place abs"):
        c10.tensor([1j]).abs_()


@pytest.mark.parametrize("dtype", [c10.float16, c10.bfloat16])
def test_nextafter_of_half_types(dtype: Any) -> None:
    a = c10.tensor([0.0, -0.0, 1.0, 1.0, -1.0, float("inf"), 2.0, 1.0]).to(dtype)
    b = c10.tensor([1.0, -1.0, 2.0, 0.0, 0.0, 0.0, 2.0, float("nan")]).to(dtype)
    got = aten.nextafter(a, b)
    step = 2.0**-10 if dtype is c10.float16 else 2.0**-7
    small = got[0].item()
    assert 0 < small < 1e-7
    assert got[1].item() == -small
    assert got[2:5].tolist() == [1 + step, 1 - step / 2, -1 + step / 2]
    assert np.isfinite(got[5].item())
    assert got[6].item() == 2.0
    assert np.isnan(got[7].item())


def test_complex_factors_of_products() -> None:
    a = c10.tensor([[1 + 2j, -1j], [0.5, 3 - 1j]])
    b = a @ a
    for beta, alpha in ((1 + 2j, 2 + 3j), (2j, 1.0), (0.5, 1 - 1j)):
        want = beta * a.numpy() + alpha * b.numpy()
        np.testing.assert_allclose(
            aten.addmm(a, a, a, beta=beta, alpha=alpha).numpy(), want, rtol=1e-5
        )
        batches = aten.baddbmm(a[None], a[None], a[None], beta=beta, alpha=alpha)
        np.testing.assert_allclose(batches.numpy()[0], want, rtol=1e-5)
        outer = beta * a.numpy() + alpha * np.outer(a[0].numpy(), a[1].numpy())
        np.testing.assert_allclose(
            aten.addr(a, a[0], a[1], beta=beta, alpha=alpha).numpy(), outer, rtol=1e-5
        )


def test_complex_numbers_scale_operands() -> None:
    a, b = c10.tensor([1 + 2j, -1j]), c10.tensor([2.0, -3.0])
    x, y = a.numpy(), b.numpy()
    np.testing.assert_allclose(aten.add(a, b, alpha=2 - 1j).numpy(), x + (2 - 1j) * y, rtol=1e-6)
    np.testing.assert_allclose(aten.rsub(b, a, alpha=1j).numpy(), x - 1j * y, rtol=1e-6)
    np.testing.assert_allclose(aten.add(b, 2j, alpha=1j).numpy(), y - 2, rtol=1e-6)
    np.testing.assert_allclose(aten.addcmul(a, b, a, value=1j).numpy(), x + 1j * y * x, rtol=1e-6)
    np.testing.assert_allclose(aten.addcdiv(a, b, a, value=1j).numpy(), x + 1j * y / x, rtol=1e-6)
    np.testing.assert_allclose(a.clone().sub_(b, alpha=3j).numpy(), x - 3j * y, rtol=1e-6)
    for call in (
        lambda: aten.add(b, b, alpha=1j),
        lambda: aten.addcmul(b, b, b, value=1j),
        lambda: aten.leaky_relu(b, 1j),
        lambda: aten.addmm(x_real(), x_real(), x_real(), beta=1j),
        lambda: aten.baddbmm(x_real()[None], x_real()[None], x_real()[None], alpha=1j),
        lambda: aten.addr(x_real(), b, b, alpha=1j),
    ):
        with pytest.raises(RuntimeError, match="complex"):
            call()


def x_real() -> Any:
    return aten.ones([2, 2])


def test_zeros_to_complex_powers() -> None:
    zeros = aten.zeros([4], dtype=c10.complex64)
    got = aten.pow(zeros, c10.tensor([2 - 1j, 0.5 + 0j, 0j, -1 + 1j])).numpy()
    assert got[:3].tolist() == [0, 0, 1] and np.isposinf(got[3].real)


def test_atanh_of_complex_numbers_near_one() -> None:
    near = np.array([-1 + 1e-4 + 2e-4j, -1.0001 - 1e-3j, 1 - 1e-4 + 2e-4j, -1 + 0.012j])
    got = aten.atanh(c10.tensor(near.tolist(), dtype=c10.complex64)).numpy()
    np.testing.assert_allclose(got, np.arctanh(near.astype(np.complex64)), rtol=1e-5)
    ends = aten.atanh(c10.tensor([-1 + 0j, 1 + 0j])).numpy()
    assert ends.real.tolist() == [-np.inf, np.inf]


def test_subtraction_takes_no_bools() -> None:
    numbers, mask = aten.ones([2]), c10.tensor([True, False])
    for call in (
        lambda: numbers - mask,
        lambda: mask - numbers,
        lambda: 1 - mask,
        lambda: mask - 1,
        lambda: numbers - True,
        lambda: True - numbers,
        lambda: aten.rsub(numbers, mask),
        lambda: aten.empty([2], device="meta") - aten.empty([2], device="meta", dtype=c10.bool),
    ):
        with pytest.raises(RuntimeError, match="got a bool"):
            call()


@pytest.mark.parametrize("dtype", [c10.float8_e4m3fn, c10.float8_e5m2])
def test_truth_of_float8(dtype: Any) -> None:
    t = c10.tensor([[1.0, 0.0], [0.0, 0.0]]).to(dtype)
    assert aten.any(t).item() is True and aten.all(t).item() is False
    assert aten.any(t, 1).tolist() == [True, False] and aten.all(t, 0).tolist() == [False, False]


@pytest.mark.parametrize("dtype", [c10.uint8, c10.int8, c10.int16, c10.int32])
def test_convolutions_of_narrow_integers_wrap_around(dtype: Any) -> None:
    image = c10.tensor(np.arange(50).reshape(1, 2, 25)).to(dtype)
    kernel = c10.tensor(np.arange(6).reshape(1, 2, 3)).to(dtype)
    got = aten.conv1d(image, kernel)
    assert got.dtype == dtype
    wide = aten.conv1d(image.to(c10.int64), kernel.to(c10.int64))
    assert got.tolist() == wide.to(dtype).tolist()


def test_what_is_refused() -> None:
    with pytest.raises(RuntimeError, match="negative"):
        aten.cov(aten.ones([2]), fweights=c10.tensor([1, -1]))
    with pytest.raises(RuntimeError, match="Expected dim"):
        aten.narrow_copy(aten.ones([2]), 1, 0, 0)
    with pytest.raises(RuntimeError, match="as_tuple"):
        aten.nonzero(x(), as_tuple=True, out=(aten.empty([0], dtype=c10.int64),))
    with pytest.raises(RuntimeError, match="can't be cast"):
        c10.tensor([1, 2]).polygamma_(1)
    empty = aten.ones([5, 0, 5])
    with pytest.raises(IndexError):
        aten.amax(empty, 1)
    with pytest.raises(RuntimeError, match="0-dim"):
        aten.narrow(c10.tensor(1.0), 0, 0, 1)
    with pytest.raises(RuntimeError, match="index_add"):
        aten.index_add(aten.ones([3, 2]), 0, c10.tensor([0, 2]), c10.tensor([2.0, 4.0]))
    for k in (0, 1):
        assert [t.item() for t in aten.topk(c10.tensor(2.5), k)] == [2.5, 0]
    point, thrice = c10.tensor(1.0), c10.tensor([0, 0, 0])
    for add in (aten.index_add, lambda *args: aten.index_reduce(*args, "prod")):
        assert add(point, 0, c10.tensor([0]), point).shape == ()
        with pytest.raises(IndexError, match="got 3 indices for a source without dimensions"):
            add(point, 0, thrice, point)
        for shape in ([], [3]):
            with pytest.raises(RuntimeError, match="source"):
                add(aten.ones(shape), 0, thrice[:1], aten.ones([] if shape else [1]))
        with pytest.raises(RuntimeError, match="source"):
            add(aten.ones([2, 3]), 0, thrice[:2], aten.ones([2, 1]))
    for batches in ((x(), x()), (aten.ones([1, 2, 3]), x())):
        with pytest.raises(IndexError, match="must be 3D"):
            aten.addbmm(x(), *batches)
    with pytest.raises(RuntimeError, match="Mismatch of parameter numbers"):
        aten.prelu(aten.ones([3]), aten.ones([3]))
    with pytest.raises(RuntimeError, match="integral dtype"):
        aten.cov(aten.ones([5]), fweights=aten.ones([5]))
    with pytest.raises(RuntimeError, match="multiple times"):
        aten.gradient(x(), dim=[1, 1])
    for index in (np.ones((2, 3, 1), bool), (np.ones((2, 3), bool), 0)):
        for getitem in (lambda i: x()[i], lambda i: _indexing.getitem(ops, x(), i)):
            with pytest.raises(IndexError, match="too many indices for tensor of dimension 2"):
                getitem(index)
    step, whole = aten.zeros([]), [aten.ones([2], dtype=c10.int64)]
    numbers = {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.0, "eps": 1e-8}
    with pytest.raises(RuntimeError, match="floating dtype"):
        ops.fused_adam_(
            whole, whole, whole, whole, [], [step], amsgrad=False, maximize=False, **numbers
        )
    assert step.item() == 0


def test_defaults_and_fields() -> None:
    assert [g.tolist() for g in aten.gradient(x(), spacing=None)] == [
        g.tolist() for g in aten.gradient(x())
    ]
    assert aten.diff(x(), 0, 0, x()).tolist() == X
    assert aten.histogramdd(x(), [1, 1, 1]).bin_edges[0].tolist() == [1.0, 4.0]
    half = c10.tensor([17.97]).to(c10.bfloat16)
    assert aten.div(half, c10.tensor([1.0]).to(c10.bfloat16), rounding_mode="trunc").item() == 18.0


def test_out_of_an_overload() -> None:
    x, out = c10.tensor([1.0, 2.0]), c10.tensor([0.0])
    for name, arguments in (("add.out", (x, x)), ("laguerre_polynomial_l.out", (x, 2))):
        assert c10.find_operator(name)(*arguments, out=out) is out
        assert out.shape == (2,)


def test_a_refused_out_changes_nothing() -> None:
    values, indices = aten.zeros([3]), aten.zeros([3])
    with pytest.raises(RuntimeError, match="out tensor to have dtype int64"):
        aten.sort(c10.tensor([3.0, 1.0, 2.0]), out=(values, indices))
    assert values.tolist() == [0, 0, 0]
    base = aten.ones([6])
    for out in (aten.expand(aten.ones([1]), [3]), base[0:2]):
        shape = out.shape
        with pytest.raises(RuntimeError, match="memory location"):
            aten.add(base[1:5], 1, out=out)
        assert out.shape == shape


def test_an_out_of_as_many_elements_keeps_its_shape() -> None:
    out = aten.empty([3, 2]).T
    assert aten.arange(6, out=out) is out
    assert out.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert aten.linspace(1, 0, 6, out=out).tolist()[1][2] == 0
    assert tuple(aten.logspace(0, 1, 4, out=out).shape) == (4,)


def test_numbers_that_become_elements_fit_the_dtype() -> None:
    small, half = c10.tensor([0, 1, 2], dtype=c10.uint8), aten.ones([2], dtype=c10.float16)
    for refused in (
        lambda: small.fill_(300),
        lambda: small.fill_(-256),
        lambda: small.fill_(-0.5),
        lambda: small.fill_(float("nan")),
        lambda: aten.full([2], 1e39),
        lambda: aten.clamp(small, 300),
        lambda: aten.where(small > 0, small, 300),
        lambda: aten.masked_fill(small, small > 0, 300),
        lambda: aten.pow(small, 256),
        lambda: aten.add(small, small, alpha=300),
        lambda: half.fill_(65505.0),
        lambda: aten.masked_fill(half, half > 0, 1e6),
        lambda: aten.threshold(small, 300, 1),
        lambda: aten.threshold(half, 0, 1e5),
        lambda: aten.hardtanh(half, -1, 1e5),
        lambda: aten.lerp(half, half, 1e40),
        lambda: aten.leaky_relu(half, 1e40),
        lambda: aten.addcmul(x(), x(), x(), value=1e40),
        lambda: aten.addmm(x(), aten.ones([2, 2]), x(), beta=1e40),
        lambda: aten.baddbmm(x(), x()[None], aten.ones([1, 3, 3]), alpha=1e40),
        lambda: aten.addr(x(), x()[:, 0], x()[0], alpha=1e40),
        lambda: aten.index_add(x(), 0, c10.tensor([0]), x()[:1], alpha=1e40),
        lambda: aten.linspace(0, 1e40, 3),
    ):
        with pytest.raises(RuntimeError, match="without overflow"):
            refused()
    assert aten.full([1], -255, dtype=c10.uint8).tolist() == [1]
    assert aten.full([2], float("-inf"), dtype=c10.float16).tolist() == [-np.inf] * 2
    assert aten.where(half > 2, half, 1e6).tolist() == [np.inf] * 2
    assert (small + 300).tolist() == [44, 45, 46]
    assert aten.leaky_relu(-half, 1e5).tolist() == aten.threshold(-half, 1e5, -np.inf).tolist()
    assert aten.full([1], 300, dtype=c10.bool).tolist() == [True]


@pytest.mark.parametrize("name", ["remainder", "fmod", "floor_divide"])
def test_divisors_that_become_zeros_are_refused(name: str) -> None:
    call = getattr(aten, name)
    for dtype, wraps in ((c10.uint8, 256), (c10.int8, -512), (c10.int32, 1 << 40)):
        x = aten.tensor([5, 7], dtype=dtype)
        for divisor in (wraps, aten.tensor(wraps)):
            with pytest.raises(RuntimeError, match="ZeroDivisionError"):
                call(x, divisor)
        assert call(x, 5).dtype == dtype


def test_scans_in_place_keep_their_dtype() -> None:
    for name in ("cumsum_", "cumprod_"):
        scan = getattr(c10.tensor([1, 2, 3]), name)
        assert scan(0, dtype=c10.int64).tolist()[0] == 1
        with pytest.raises(RuntimeError, match="Bad in-place call"):
            scan(0, dtype=c10.float32)
        with pytest.raises(NotImplementedError, match="bool"):
            getattr(c10.tensor([True, False]), name)(0)
    assert aten.sum(x(), out=aten.empty([], dtype=c10.int64)).item() == 0
