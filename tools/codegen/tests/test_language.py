"""The built-ins of the language in Python, against NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.codegen.builtins_table import BUILTINS
from tools.codegen.tests.support import language

lang = language()
_shapes = st.lists(st.integers(1, 4), max_size=4)


def test_every_builtin_exists() -> None:
    assert [name for name in BUILTINS if not callable(getattr(lang, name, None))] == []


@given(_shapes, _shapes)
def test_broadcast_shapes(a: list[int], b: list[int]) -> None:
    try:
        expected = list(np.broadcast_shapes(tuple(a), tuple(b)))
    except ValueError:
        with pytest.raises(lang.ShapeError, match="must match the size of tensor b"):
            lang.broadcast_shapes(a, b)
    else:
        assert lang.broadcast_shapes(a, b) == expected


@pytest.mark.parametrize("order", itertools.permutations(range(3)))
def test_copies_keep_the_order_of_dimensions(order: tuple[int, ...]) -> None:
    for x in (np.zeros((2, 3, 5), np.int8), np.zeros((4, 9, 10), np.int8)[::2, ::3, ::2]):
        turned = x.transpose(order)
        found = lang.clone_shape(list(turned.shape), list(turned.strides), None)
        assert found.strides == list(turned.copy(order="K").strides)


@pytest.mark.parametrize("shape", [(2, 3, 4), (4, 1, 3), (1, 1), (6,), ()])
def test_view_strides_agree_with_numpy(shape: tuple[int, ...]) -> None:
    base = np.arange(int(np.prod(shape)) * 4, dtype=np.int8).reshape(*shape, 4)[..., 0]
    views = [np.arange(int(np.prod(shape)), dtype=np.int8).reshape(shape), base]
    for view, order in itertools.product(views, itertools.permutations(range(len(shape)))):
        x = view.transpose(order)
        for new in {(x.size,), (2, -1), (-1, 2), (1, x.size), (3, 2), (2, 2, -1)}:
            try:
                sizes = lang.infer_size(list(new), x.size)
            except RuntimeError:
                with pytest.raises(ValueError, match=r"reshape|cannot"):
                    x.reshape(new)
                continue
            copy = x.view()
            try:
                copy.shape = tuple(sizes)
                expected = [s for s, n in zip(copy.strides, sizes, strict=True) if n > 1]
            except AttributeError:
                expected = None
            try:
                found = lang.view_strides(list(x.shape), list(x.strides), sizes)
                got = [s for s, n in zip(found, sizes, strict=True) if n > 1]
            except RuntimeError:
                got = None
            assert got == expected, (x.shape, x.strides, sizes)


@pytest.mark.parametrize(
    ("sizes", "numel", "expected"),
    [([-1, 2], 6, [3, 2]), ([6], 6, [6]), ([0, 3], 0, [0, 3]), ([], 1, [])],
)
def test_infer_size(sizes: list[int], numel: int, expected: list[int]) -> None:
    assert lang.infer_size(sizes, numel) == expected


@pytest.mark.parametrize(
    ("sizes", "numel", "message"),
    [
        ([-1, -1], 4, "only one"),
        ([3, -1], 4, "invalid for input of size 4"),
        ([-1, 0], 0, "ambiguous"),
        ([5], 4, "invalid"),
    ],
)
def test_infer_size_refuses(sizes: list[int], numel: int, message: str) -> None:
    with pytest.raises(lang.ShapeError, match=message):
        lang.infer_size(sizes, numel)


def test_wrap_dim() -> None:
    assert [lang.wrap_dim(d, 3) for d in (-3, -1, 0, 2)] == [0, 2, 0, 2]
    assert lang.wrap_dim(-1, 0) == 0
    with pytest.raises(IndexError, match=r"expected to be in range of \[-2, 1\], but got 5"):
        lang.wrap_dim(5, 2)


@given(st.lists(st.integers(0, 3), max_size=4), st.data())
def test_reduced_shape(shape: list[int], data: st.DataObject) -> None:
    dims = data.draw(st.lists(st.sampled_from(range(len(shape))), unique=True)) if shape else []
    keepdim = data.draw(st.booleans())
    axes = tuple(dims) or tuple(range(len(shape)))
    expected = np.zeros(shape).sum(axis=axes, keepdims=keepdim).shape
    assert lang.reduced_shape(shape, dims, keepdim) == list(expected)


@pytest.mark.parametrize(
    "arguments",
    [(0, 10, 3), (5, 0, -2), (1.0, 2.0, 0.25), (0, 5, 1), (0.0, 1.0, 0.3), (3, 3, 1), (0, 7, 7)],
)
def test_arange_length(arguments: tuple[float, float, float]) -> None:
    assert lang.arange_length(*arguments) == len(np.arange(*arguments))


def test_dtypes() -> None:
    assert lang.pointwise_dtype("float", None, Stub(lang.int64)) is lang.float32
    assert lang.pointwise_dtype("default", None, Stub(lang.int32), 2.5) is lang.float32
    assert lang.pointwise_dtype("default", lang.bool_, Stub(lang.int32)) is lang.bool_
    with pytest.raises(
        NotImplementedError, match="f: not implemented for dtype int32; expected one of float32"
    ):
        lang.pointwise_dtype("default", None, Stub(lang.int32), name="f", dtypes=("float32",))
    with pytest.raises(RuntimeError, match="without overflow"):
        lang.pointwise_dtype("self", None, Stub(lang.int32), 2.5j, name="f")
    assert lang.pointwise_dtype("self", None, Stub(lang.int32), 2.5) is lang.int32
    with pytest.raises(lang.DTypeError, match="expected condition to be a boolean tensor"):
        lang.check_condition("f", Stub(lang.int32))
    assert (
        lang.result_type([Stub(lang.int32, ()), Stub(lang.int64, ()), Stub(lang.int32), 3])
        is lang.int32
    )
    assert lang.result_type([Stub(lang.int32), Stub(lang.float64, ())]) is lang.float64
    assert lang.accumulate_dtype(lang.uint8) is lang.int64
    assert lang.complex_dtype(lang.float64) is lang.complex128


class Stub:
    def __init__(self, dtype: object, shape: tuple[int, ...] = (2,)) -> None:
        self.dtype = dtype
        self.shape = list(shape)
        self.ndim = len(shape)
