"""Indexing, gathering, scattering, sorting and searching on an emulated CUDA device against the CPU."""

from __future__ import annotations

import random
from typing import Any

import emulated
import numpy as np
import pytest

if emulated.missing:
    pytest.skip(emulated.missing, allow_module_level=True)

import argand_aten as aten
import argand_c10 as c10

emulated.start()

MOVED = [
    "bool",
    "uint8",
    "int16",
    "uint32",
    "float32",
    "bfloat16",
    "int64",
    "float64",
    "complex64",
    "complex128",
]
SUMMED = [
    "bool",
    "int8",
    "int32",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
    "int64",
    "complex64",
    "complex128",
]  # the interpreter adds no bfloat16
SORTED = [
    "bool",
    "int8",
    "uint8",
    "int16",
    "int32",
    "int64",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
]


@pytest.fixture(autouse=True)
def _seeds() -> Any:
    random.seed(0)
    np.random.seed(0)
    yield
    emulated.check()


def make(shape: tuple[int, ...], dtype: str = "float32", low: int = -9, high: int = 9) -> Any:
    """Small whole numbers, so that sums are exact in any order."""
    x = aten.tensor(np.random.randint(low, high, shape).astype(np.int64))
    if dtype.startswith("complex"):
        y = aten.tensor(np.random.randint(low, high, shape).astype(np.int64))
        return aten.complex(x.to(c10.float64), y.to(c10.float64)).to(getattr(c10, dtype))
    return (x > 0) if dtype == "bool" else x.to(getattr(c10, dtype))


def indices(shape: tuple[int, ...], limit: int, low: int = 0) -> Any:
    return aten.tensor(np.random.randint(low, limit, shape).astype(np.int64))


def to_device(x: Any) -> Any:
    if isinstance(x, c10.Tensor):
        # Copies keep strides, so that strided inputs stay strided.
        return x.to("cuda")
    if isinstance(x, (list, tuple)):
        return type(x)(to_device(v) for v in x)
    return x


def as_numpy(x: Any) -> Any:
    x = x.to("cpu")
    return x.to(c10.float32).numpy() if x.dtype in (c10.bfloat16, c10.float16) else x.numpy()


def same(function: Any, *args: Any) -> None:
    """The function gives the same on both devices, in its results and in what it changes."""
    device_args = to_device(list(args))
    expected, got = function(*args), function(*device_args)
    emulated.check()
    pairs = (
        [(expected, got)]
        if isinstance(expected, c10.Tensor)
        else list(zip(expected or (), got or (), strict=True))
    )
    pairs += [(a, b) for a, b in zip(args, device_args, strict=True) if isinstance(a, c10.Tensor)]
    for a, b in pairs:
        assert a.shape == b.shape and a.dtype == b.dtype
        assert str(b.device).startswith("cuda")
        np.testing.assert_array_equal(as_numpy(b), as_numpy(a))


def put(x: Any, i: Any, v: Any) -> None:
    x[i] = v


@pytest.mark.parametrize("dtype", MOVED)
def test_moves_every_dtype(dtype: str) -> None:
    x = make((5, 6), dtype)
    i = indices((7,), 5, -5)
    same(lambda x, i: x[i], x, i)
    same(lambda x, i: aten.gather(x, 1, i), x, indices((3, 4), 6))
    same(lambda x, i, v: put(x, i, v), x.clone(), aten.tensor([4, 0, 2]), make((3, 6), dtype))
    same(
        lambda x, i, v: x.scatter_(1, i, v),
        x.clone(),
        aten.tensor([[0, 3], [5, 1]]),
        make((2, 2), dtype),
    )


@pytest.mark.parametrize("dtype", SUMMED)
def test_sums_every_dtype(dtype: str) -> None:
    x = make((5, 6), dtype)
    same(
        lambda x, i, v: x.scatter_add_(0, i, v), x.clone(), indices((7, 6), 5), make((7, 6), dtype)
    )
    same(
        lambda x, i, v: x.index_put_([i], v, True),
        x.clone(),
        indices((9,), 5, -5),
        make((9, 6), dtype),
    )
    same(lambda x, i, v: x.index_add_(1, i, v), x.clone(), indices((9,), 6), make((5, 9), dtype))


INDEXED = [
    ((5, 6), lambda i: (i(5, 3),)),
    ((5, 6), lambda i: (slice(None), i(6, 3))),
    ((5, 6, 7), lambda i: (i(5, 4), i(6, 4))),
    ((5, 6, 7), lambda i: (i(5, 4), slice(None), i(7, 4))),
    ((5, 6, 7), lambda i: (slice(None), i(6, 2, 3), i(7, 3))),
    ((5, 6, 7), lambda i: (i(5, 2, 1), i(6, 3), i(7, 2, 3))),
    ((5, 6, 7), lambda i: (2, i(6, 4))),
    ((5, 6, 7), lambda i: (Ellipsis, i(7, 4), None)),
    ((3, 2, 3, 2, 3, 2), lambda i: (slice(None), slice(None), i(3, 2, 2))),
    ((5,), lambda i: (i(5, 4, 2),)),
    ((5, 6), lambda i: ([0, 3, -1],)),
    ((5, 0, 3), lambda i: (i(5, 4),)),
    ((5, 6), lambda i: (i(5, 0),)),
    ((5, 6), lambda i: (i(5), i(6))),
]


@pytest.mark.parametrize("case", range(len(INDEXED)))
def test_index_and_assignment(case: int) -> None:
    shape, build = INDEXED[case]
    where = build(lambda limit, *sizes: indices(sizes, limit, -limit))
    x = make(shape)
    same(lambda x, where: x[where], x, where)
    value = make(tuple(x[where].shape))
    same(
        lambda x, where, v: x.index_put_(
            *([list(where)] if all(isinstance(w, c10.Tensor) for w in where) else [[where[0]]]),
            v,
            True,
        ),
        x.clone(),
        where,
        value,
    ) if all(isinstance(w, c10.Tensor) for w in where) else None
    same(lambda x, where: put(x, where, 3), x.clone(), where)
    transposed = make(tuple(reversed(shape))).permute(*reversed(range(len(shape))))
    same(lambda x, where: x[where], transposed, where)


def test_index_from_the_cpu_and_values_from_numbers() -> None:
    x = make((5, 6))
    d = x.to("cuda")
    i = aten.tensor([3, 0, 0])
    np.testing.assert_array_equal(as_numpy(d[i]), as_numpy(x[i]))
    np.testing.assert_array_equal(as_numpy(d[[1, 2]]), as_numpy(x[[1, 2]]))
    d[i], x[i] = 7, 7
    d[2:, 1], x[2:, 1] = 5, 5
    d[1], x[1] = [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5]
    np.testing.assert_array_equal(as_numpy(d), as_numpy(x))


def test_masks() -> None:
    x, mask, rows, columns = (
        make((5, 6)),
        make((5, 6), "bool"),
        make((5,), "bool"),
        make((6,), "bool"),
    )
    same(lambda x, m: x[m], x, mask)
    same(lambda x, m: x[m], x.t(), mask.t())
    same(lambda x, m: x[m], x, rows)
    same(lambda x, m: x[:, m], x, columns)
    same(lambda x, m, i: x[m, i], x, rows, aten.tensor([2]))
    same(lambda x, m: x[m], x, aten.tensor(True))
    same(lambda x, m: x[m], x, aten.tensor(False))
    same(lambda x, m: put(x, m, 2.5), x.clone(), mask)
    same(lambda x, m: put(x, m, 2.5), x.clone(), rows)
    same(lambda x, m, v: put(x, m, v), x.clone(), rows, make((int(rows.sum()), 6)))
    same(lambda x, m: aten.masked_select(x, m), x, mask)


def test_strided_and_broadcast_inputs() -> None:
    x = make((6, 5, 4)).permute(2, 0, 1)
    same(lambda x, i: aten.gather(x, 1, i), x, indices((4, 3, 1), 6).expand(4, 3, 5))
    same(lambda x, i: aten.gather(x, 2, i), x, indices((1, 1, 7), 5).expand(4, 6, 7))
    same(lambda x, i: aten.index_select(x, 0, i), x, indices((9,), 4))
    same(
        lambda x, i, v: x.scatter_add_(1, i, v),
        make((4, 6, 5)),
        indices((4, 3, 1), 6).expand(4, 3, 5),
        make((1, 3, 5)).expand(4, 3, 5),
    )
    same(
        lambda x, i: x.scatter_(1, i, 2.0), make((4, 6, 5)).permute(0, 2, 1), indices((4, 3, 2), 5)
    )
    same(lambda x, i: aten.gather(x, 0, i), make(()), aten.tensor(0))
    same(lambda x, i: aten.index_select(x, 0, i), make(()), aten.tensor([0]))
    same(
        lambda x, i, v: x.index_add_(0, i, v, alpha=3), make((4, 6)), indices((5,), 4), make((5, 6))
    )
    same(lambda x, i: aten.gather(x, 0, i), make((5, 6)), indices((0, 6), 5))


def test_embedding() -> None:
    same(lambda w, i: aten.embedding(w, i), make((11, 8)), indices((3, 4), 11))
    same(lambda w, i: aten.embedding(w, i), make((8, 11), "bfloat16").t(), indices((4, 3), 11).t())
    same(lambda w, i: aten.embedding(w, i), make((11, 600)), indices((2,), 11))
    same(lambda w, i: aten.embedding(w, i), make((11, 1)), indices((20,), 11).to(c10.int32))


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("index", lambda x, bad: x[bad]),
        ("index", lambda x, bad: x[bad, bad]),
        ("index_put", lambda x, bad: put(x, bad, 1.0)),
        ("gather", lambda x, bad: aten.gather(x, 0, bad[:, None])),
        ("scatter", lambda x, bad: x.scatter_(0, bad[:, None], 1.0)),
        ("scatter_add", lambda x, bad: x.scatter_add_(0, bad[:, None], x[:2, :1].clone())),
        ("scatter_reduce", lambda x, bad: x.scatter_reduce(0, bad[:, None], x[:2, :1], "amax")),
        ("index_select", lambda x, bad: aten.index_select(x, 0, bad)),
        ("index_add", lambda x, bad: x.index_add_(0, bad, x[:2].clone())),
        ("embedding", lambda x, bad: aten.embedding(x, bad)),
    ],
)
def test_bad_index_is_reported_and_harmless(name: str, call: Any) -> None:
    x = make((5, 6)).to("cuda")
    with pytest.raises((IndexError, RuntimeError)) as on_host:
        call(make((5, 6)), aten.tensor([1, 5]))
    call(x, aten.tensor([1, 5]).to("cuda"))
    with pytest.raises(
        on_host.type, match=f"{name}: index 5 is out of bounds for dimension 0 with size 5"
    ):
        x.to("cpu")
    assert x.to("cpu").shape == (5, 6)  # reported once; the device goes on


def test_places_from_the_end() -> None:
    """`index_copy` refuses them, which `take_along_dim` counts from there."""
    x = make((5, 6))
    same(lambda x, i: aten.index_copy(x, 0, i, x[:2]), x, aten.tensor([4, 0]))
    same(lambda x, i: aten.take_along_dim(x, i, 1), x, aten.tensor([[0, -1, -6, 5]]))
    moved = x.to("cuda")
    aten.index_copy(moved, 0, aten.tensor([1, -1]).to("cuda"), moved[:2])
    with pytest.raises(IndexError, match="out of bounds for dimension 0 with size 5"):
        moved.to("cpu")


@pytest.mark.parametrize(
    "call",
    [
        lambda x, i, v: x[:1].expand(3, 4).index_add_(0, i, v),
        lambda x, i, v: x[:1].expand(3, 4).scatter_add_(0, i[:, None], v),
        lambda x, i, v: x.index_add_(0, i, x[1:3]),
        lambda x, i, v: put(x, i, x[1:3]),
    ],
)
def test_targets_that_overlap_are_refused(call: Any) -> None:
    x, i, v = (t.to("cuda") for t in (make((5, 4)), indices((2,), 3), make((2, 4))))
    with pytest.raises(RuntimeError, match="single memory location"):
        call(x, i, v)


def first(x: Any, k: int, dim: int, largest: bool = True) -> Any:
    """topk, and on the CPU, where it chooses otherwise among equal elements, the beginning of a stable sort."""
    if x.device.type == "cuda":
        return aten.topk(x, k, dim, largest)
    return tuple(t.narrow(dim, 0, k) for t in aten.sort(x, dim, largest, stable=True))


@pytest.mark.parametrize("dtype", SORTED)
@pytest.mark.parametrize("descending", [False, True])
def test_sort_every_dtype(dtype: str, descending: bool) -> None:
    x = make((3, 50), dtype)
    if dtype in ("int64", "uint64", "float64"):
        x = x * 2**33 + make((3, 50), dtype)
    if x.dtype.is_floating_point:
        x[0, 3], x[0, 7], x[1, 2], x[1, 9], x[2, 0] = (
            float("nan"),
            float("nan"),
            -0.0,
            0.0,
            float("-inf"),
        )
    same(lambda x: aten.sort(x, 1, descending), x)
    if dtype != "bool":
        same(lambda x: first(x, 7, 1, descending), x)


def test_sort_shapes() -> None:
    for shape, dim in [
        ((2, 5, 3), 1),
        ((4, 300), 0),
        ((4, 300), -1),
        ((), 0),
        ((3, 0), 1),
        ((1,), 0),
        ((2, 4100), 1),
    ]:
        same(lambda x, dim=dim: aten.sort(x, dim, stable=True), make(shape))
    same(lambda x: aten.sort(x, 0), make((40, 3), "int32").t().contiguous().t())
    same(lambda x: aten.argsort(x, -1, True), make((4, 33)))


@pytest.mark.parametrize("name", ["kthvalue", "median", "nanmedian", "mode"])
def test_order_statistics(name: str) -> None:
    x = aten.tensor([[3.0, 1, 2, 5, 9, 4, 8, 7, 6], [1, 4, 1, 3, 4, 2, 4, 5, 0]])
    x[0, 4] = x[0, 7] = float("nan")
    arguments = (7,) if name == "kthvalue" else ()
    for dim, keepdim in ((0, False), (1, True)):
        k = arguments if dim else arguments and (2,)
        same(
            lambda x, k=k, a=(dim, keepdim): getattr(aten, name)(x, *k, *a),
            x[:1] if name == "kthvalue" and dim else x,
        )


def test_topk_shapes() -> None:
    for shape, k, dim in [
        ((3, 9), 9, 1),
        ((3, 9), 0, 1),
        ((2, 4100), 20, 1),
        ((300, 2), 129, 0),
        ((3, 60), 5, 0 - 1),
    ]:
        same(lambda x, k=k, dim=dim: first(x, k, dim, False), make(shape, "int32", -1000, 1000))


@pytest.mark.parametrize("dtype", MOVED)
def test_nonzero(dtype: str) -> None:
    x = make((3, 4, 5), dtype, 0, 3)
    same(aten.nonzero, x)
    same(aten.nonzero, x.permute(2, 0, 1))


def test_nonzero_shapes() -> None:
    same(aten.nonzero, aten.tensor(np.array([-0.0, 0.0, np.nan, np.inf])))
    for shape in [(), (0, 3), (5000,), (2, 1, 3, 2, 2), (2, 2, 2, 2, 2, 2, 2, 2, 2)]:
        x = make(shape, "int32", 0, 3)
        same(aten.nonzero, x)
        assert aten.nonzero(x.to("cuda")).stride() == aten.nonzero(x).stride()


@pytest.mark.parametrize("dtype", ["float32", "int64", "bfloat16", "uint8"])
def test_searchsorted(dtype: str) -> None:
    rows = aten.sort(make((3, 40), dtype, 0, 30), 1)[0]
    for right in (False, True):
        same(
            lambda s, v, right=right: aten.searchsorted(s, v, right=right),
            rows,
            make((3, 7), dtype, 0, 32),
        )
        same(
            lambda s, v, right=right: aten.searchsorted(s, v, right=right, out_int32=True),
            rows[0],
            make((2, 7), dtype, 0, 32),
        )


@pytest.mark.parametrize("dtype", SORTED)
@pytest.mark.parametrize("reduce", ["amax", "amin"])
def test_scattered_extremes(dtype: str, reduce: str) -> None:
    x, src = make((5, 6), dtype), make((7, 4), dtype)
    i = indices((7, 4), 5)
    if x.dtype.is_floating_point:
        x[0, 0], x[1, 1], x[2, 2], src[3, 2] = -0.0, float("nan"), -float("nan"), float("-inf")
        src[0, 0] = float("nan")
        src[1, 1] = -float("nan")
    for include_self in (True, False):
        same(
            lambda x, i, s, f=include_self: x.scatter_reduce(0, i, s, reduce, include_self=f),
            x,
            i,
            src,
        )
        same(
            lambda x, i, s, f=include_self: x.t().scatter_reduce(
                1, i.t(), s.t(), reduce, include_self=f
            ),
            x,
            i,
            src,
        )
    x = aten.zeros((6,), dtype=getattr(c10, dtype))
    same(lambda x, i, s: x.scatter_reduce_(0, i, s, reduce), x, indices((3,), 6), make((3,), dtype))
    same(
        lambda x, i, s: x.scatter_reduce(0, i, s, reduce),
        make((), dtype),
        aten.tensor(0),
        make((), dtype),
    )


def test_histc() -> None:
    x = make((3000,)) / 7
    x[5] = float("nan")
    for bins in (1, 100, 256, 300):
        same(lambda x, n=bins: aten.histc(x, n, -1, 1), x)
        same(lambda x, n=bins: aten.histc(x.to(c10.float64), n), x[10:])
    same(lambda x: aten.histc(x.to(c10.float16), 5), x[10:])
    same(lambda x: aten.histc(x, 4, 0, 1), x[:0])
    same(lambda x: aten.histc(x, 4), aten.tensor([3.4e38, -3.4e38, 1e38]))
    same(lambda x: aten.histc(x, 14, 0, 3), aten.arange(15.0) * 3 / 14)


def test_bincount() -> None:
    same(lambda x: aten.bincount(x, minlength=30), indices((3000,), 20))
    same(aten.bincount, indices((50,), 1000))
    same(lambda x, w: aten.bincount(x, w), indices((50,), 9), make((50,)))
    same(aten.bincount, indices((0,), 1))
    with pytest.raises(RuntimeError, match="non-negative"):
        aten.bincount(aten.tensor([1, -1]).to("cuda"))
    for call in (
        lambda x: aten.bincount(x.to(c10.float32)),
        lambda x: aten.bincount(x.reshape(2, 1)),
        lambda x: aten.bincount(x, minlength=-1),
    ):
        raises_as_on_the_cpu(call, indices((2,), 3))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool"])
def test_bincount_of_nothing_counts(dtype: str) -> None:
    weights = aten.zeros((0,), dtype=getattr(c10, dtype))
    same(lambda x, w: aten.bincount(x, w), indices((0,), 1), weights)
    same(lambda x, w: aten.bincount(x, w, 3), indices((0,), 1), weights)


def raises_as_on_the_cpu(call: Any, *args: Any) -> None:
    with pytest.raises(Exception) as on_host:
        call(*args)
    with pytest.raises(on_host.type):
        call(*(a.to("cuda") for a in args))


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int64", "bool"])
def test_index_add_takes_whole_factors_of_integers(dtype: str) -> None:
    for alpha in (0.5, 2.5) if dtype != "bool" else (True, False, 1):
        same(
            lambda x, i, s, a=alpha: x.index_add_(0, i, s, alpha=a),
            make((5, 3), dtype, 0),
            indices((4,), 5),
            make((4, 3), dtype, 0),
        )


def test_index_add_refuses_matrices_of_indices() -> None:
    raises_as_on_the_cpu(
        lambda x, i, s: x.index_add_(0, i, s), make((5, 3)), indices((1, 1), 5), make((1, 3))
    )
