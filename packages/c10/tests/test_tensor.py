"""The Tensor type: construction, attributes, numbers, memory, copies."""

import copy
import pickle

import c10_operators as ops
import numpy as np
import pytest

import argand_c10 as c10
from argand_c10 import _C

ops.install()


def strided(shape, strides, dtype=None):
    return _C._empty_strided(shape, strides, dtype)


# ---- construction --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data, dtype, shape",
    [
        (3, "int64", ()),
        (2.5, "float32", ()),
        (True, "bool", ()),
        (1j, "complex64", ()),
        ([1, 2.0], "float32", (2,)),
        ([True, 2], "int64", (2,)),
        ([[1, 2], [3, 4]], "int64", (2, 2)),
        ([], "float32", (0,)),
        ([[], []], "float32", (2, 0)),
        ((1, (2)), "int64", (2,)),
        (range(4), "int64", (4,)),
        (np.float32(1), "float32", ()),
        ([np.float64(1)], "float64", (1,)),
        (np.arange(3, dtype=np.int16), "int16", (3,)),
        ([np.ones(2), np.zeros(2)], "float64", (2, 2)),
        (np.ones((2, 3))[::-1, ::2], "float64", (2, 2)),
    ],
)
def test_tensor_infers(data, dtype, shape):
    x = c10.tensor(data)
    assert x.dtype is getattr(c10, dtype) and x.shape == shape
    assert x.tolist() == np.asarray(data).tolist()


def test_tensor_of_tensors():
    assert c10.tensor([c10.tensor(1), c10.tensor(2.5)]).tolist() == [1.0, 2.5]
    x = c10.tensor([1.0, 2.0])
    y = c10.tensor(x)
    assert y.tolist() == [1.0, 2.0] and y.data_ptr() != x.data_ptr()
    assert c10.tensor(x, dtype=c10.int32).tolist() == [1, 2]
    one = c10.tensor([[3.0]])
    assert c10.tensor([one, 2]).tolist() == [3.0, 2.0]
    for data in ([x, x], [[x], [x]]):
        with pytest.raises(ValueError, match="only one element tensors can be converted"):
            c10.tensor(data)


@pytest.mark.parametrize(
    "name",
    ["bool", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64"],
)
def test_tensor_with_dtype(name):
    x = c10.tensor([0, 1, 2], dtype=getattr(c10, name))
    assert x.dtype is getattr(c10, name)
    assert x.tolist() == ([False, True, True] if name == "bool" else [0, 1, 2])
    assert c10.tensor(np.array([0.0, 1.0, 2.0]), dtype=name).tolist() == x.tolist()


@pytest.mark.parametrize(
    "python_type, dtype",
    [(float, "float64"), (int, "int64"), (bool, "bool"), (complex, "complex128")],
)
def test_builtin_types_as_dtypes(python_type, dtype):
    assert c10.tensor([1], dtype=python_type).dtype is getattr(c10, dtype)


@pytest.mark.parametrize(
    "data, kwargs, error, text",
    [
        ([[1, 2], [3]], {}, ValueError, r"expected sequence of length 2 at dim 1 \(got 1\)"),
        ([[1], 2], {}, TypeError, "expected a sequence of length 1"),
        ([1, [2]], {}, TypeError, "at dim 1"),
        ("a", {}, TypeError, "invalid data type 'str'"),
        (["a"], {}, ValueError, "invalid data type 'str'"),
        (None, {}, RuntimeError, "NoneType"),
        ({1: 2}, {}, RuntimeError, "dict"),
        (300, {"dtype": "uint8"}, RuntimeError, "uint8 without overflow"),
        (2**70, {}, ValueError, "Overflow.*int64"),
        (float("nan"), {"dtype": "int32"}, RuntimeError, "int32 without overflow"),
        (1j, {"dtype": "float32"}, TypeError, "complex"),
        ([1], {"dtype": "float31"}, TypeError, "dtype"),
        ([1], {"device": 3.5}, TypeError, "device"),
        (np.array(["a"]), {}, TypeError, "array"),
    ],
)
def test_tensor_refuses(data, kwargs, error, text):
    with pytest.raises(error, match=text):
        c10.tensor(data, **kwargs)


def test_sequence_that_contains_itself():
    data = []
    data.append(data)
    with pytest.raises(ValueError, match="contains? itself"):
        c10.tensor(data)
    later: list = [0]
    later.append(later)
    with pytest.raises(TypeError, match="one that holds itself"):
        c10.tensor(later)


def test_rounding_to_half_precision():
    values = np.random.default_rng(0).standard_normal(2000) * 10.0 ** np.random.default_rng(
        1
    ).uniform(-9, 6, 2000)
    halves = c10.tensor(values.tolist(), dtype=c10.float16)
    with np.errstate(over="ignore"):
        expected = values.astype(np.float32).astype(np.float16)
    assert np.array_equal(halves.numpy(), expected)
    brain = np.array(c10.tensor(values.tolist(), dtype=c10.bfloat16).tolist(), dtype=np.float32)
    bits = values.astype(np.float32).view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 << 16).astype(np.uint32).view(np.float32)
    assert np.array_equal(brain, rounded)
    special = c10.tensor(
        [float("nan"), float("inf"), -0.0, 65520.0, 6e-8], dtype=c10.float16
    ).tolist()
    assert special[0] != special[0] and special[1] == float("inf") and str(special[2]) == "-0.0"
    assert special[3] == float("inf") and special[4] == 2.0**-24


def test_legacy_constructor():
    assert c10.Tensor().shape == (0,)
    assert c10.Tensor(2, 3).shape == (2, 3) and c10.Tensor(2, 3).dtype is c10.float32
    assert c10.Tensor([1, 2]).tolist() == [1.0, 2.0]
    assert c10.Tensor(c10.Size([4])).shape == (4,)


def test_as_tensor_shares():
    a = np.zeros(3)
    assert c10.as_tensor(a).data_ptr() == a.ctypes.data
    x = c10.tensor([1.0])
    assert c10.as_tensor(x) is x and c10.as_tensor(x, dtype=c10.float32) is x
    assert c10.as_tensor(x, dtype=float).dtype is c10.float64
    assert c10.as_tensor(x, dtype=c10.int32).tolist() == [1]
    assert c10.as_tensor(a[::-1]).tolist() == [0, 0, 0]
    assert c10.asarray(a, copy=True).data_ptr() != a.ctypes.data
    with pytest.raises(ValueError, match="copy=False"):
        c10.asarray([1.0], copy=False)


# ---- attributes ----------------------------------------------------------------------------------


def test_geometry():
    x = strided((2, 3), (1, 2), c10.float64)
    assert x.shape == (2, 3) == x.size() and type(x.shape) is c10.Size
    assert x.stride() == (1, 2) and x.stride(0) == 1 and x.stride(-1) == 2 and x.stride(dim=1) == 2
    assert x.size(0) == 2 and x.size(-1) == 3 and x.size(dim=1) == 3
    assert x.ndim == x.dim() == x.ndimension() == 2
    assert x.numel() == x.nelement() == 6
    assert x.itemsize == x.element_size() == 8 and x.nbytes == 48
    assert not x.is_contiguous() and x.storage_offset() == 0
    assert x.dtype is c10.float64 and x.device == c10.device("cpu") and x.layout is c10.strided
    assert x.is_cpu and not x.is_meta and not x.is_cuda and x.get_device() == -1
    assert x.is_floating_point() and x.is_signed() and not x.is_complex()
    assert x.is_leaf and x.grad is None and x.grad_fn is None and not x.requires_grad
    assert x.is_same_size(strided((2, 3), (3, 1))) and not x.is_same_size(strided((3, 2), (2, 1)))
    assert len(x) == 2


@pytest.mark.parametrize(
    "call", [lambda x: x.size(2), lambda x: x.stride(-3), lambda x: x.size(dim=5)]
)
def test_dimension_errors(call):
    with pytest.raises(
        IndexError,
        match=r"^(size|stride): Dimension out of range \(expected to be in range of \[-2, 1\], but got",
    ):
        call(strided((2, 3), (3, 1)))
    with pytest.raises(IndexError, match="tensor has no dimensions"):
        call(c10.tensor(1))


def test_method_argument_errors():
    x = c10.tensor([1.0])
    with pytest.raises(TypeError, match="at most 1 argument"):
        x.size(0, 1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'axis'"):
        x.size(axis=0)


def test_channels_last_layout():
    x = strided((2, 3, 4, 5), (60, 1, 15, 3))
    assert x.is_contiguous(memory_format=c10.channels_last) and not x.is_contiguous()
    assert not strided((2, 3, 4, 5), (60, 20, 5, 1)).is_contiguous(memory_format=c10.channels_last)


def test_meta_tensors_have_no_data():
    x = _C._empty_strided((2, 3), None, c10.float32, "meta")
    assert x.is_meta and x.device.type == "meta" and x.data_ptr() == 0 and x.nbytes == 24
    for call in (lambda: x.tolist(), lambda: _C._empty_strided((), None, None, "meta").item()):
        with pytest.raises(RuntimeError, match="meta"):
            call()
    assert c10.tensor([1, 2], device="meta").is_meta


def test_attributes_and_subclasses():
    class Sub(c10.Tensor):
        pass

    x = c10.tensor([1.0, 2.0])
    x.note = "kept"
    assert x.__dict__ == {"note": "kept"}
    y = c10.Tensor._make_subclass(Sub, x)
    assert type(y) is Sub and y.data_ptr() == x.data_ptr() and not hasattr(y, "note")
    z = x.as_subclass(Sub)
    assert type(z) is Sub and z.tolist() == [1.0, 2.0]
    assert type(Sub([1.0])) is Sub
    with pytest.raises(TypeError, match="subclass of Tensor"):
        x.as_subclass(int)


def test_requires_grad_without_histories():
    x = c10.tensor([1.0], requires_grad=True)
    assert x.requires_grad
    x.requires_grad = False
    assert not x.requires_grad
    with pytest.raises(RuntimeError, match="floating point and complex"):
        c10.tensor([1]).requires_grad = True


# ---- numbers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0, -7, 2.5, True, 1 + 2j])
def test_item(value):
    for shape in ((), (1,), (1, 1)):
        x = c10.tensor(np.full(shape, value))
        assert x.item() == value and type(x.item()) is type(value)
        assert bool(x) == bool(value)


def test_conversions():
    assert int(c10.tensor(2.7)) == 2 and float(c10.tensor(3)) == 3.0
    assert complex(c10.tensor(2.0)) == 2 + 0j and [10, 20][c10.tensor(1)] == 20
    assert float(c10.tensor(2 + 0j)) == 2.0
    assert f"{c10.tensor(2.0):.3f}" == "2.000"
    assert round(float(c10.tensor(1.5))) == 2


@pytest.mark.parametrize(
    "call, error, text",
    [
        (
            lambda x: x.item(),
            RuntimeError,
            "a Tensor with 2 elements cannot be converted to Scalar",
        ),
        (bool, RuntimeError, "Boolean value of Tensor with more than one value is ambiguous"),
        (int, ValueError, "only one element tensors"),
        (float, ValueError, "only one element tensors"),
        (complex, ValueError, "only one element tensors"),
        (lambda x: [1][x], TypeError, "only integer tensors of a single element"),
        (lambda x: bool(c10.tensor([])), RuntimeError, "no values"),
        (lambda x: [1][c10.tensor(0.0)], TypeError, "only integer tensors"),
        (lambda x: float(c10.tensor(1j)), RuntimeError, "imaginary"),
        (lambda x: len(c10.tensor(1)), TypeError, r"len\(\) of a 0-d tensor"),
        (lambda x: iter(c10.tensor(1)), TypeError, "iteration over a 0-d tensor"),
    ],
)
def test_number_errors(call, error, text):
    with pytest.raises(error, match=text):
        call(c10.tensor([1.0, 2.0]))


def test_symbols():
    x, y = c10.tensor([1.0, 2.0]), c10.tensor([3.0, 5.0])
    assert (x + y).tolist() == [4.0, 7.0]
    assert (x + 1).tolist() == [2.0, 3.0] and (1 + x).tolist() == [2.0, 3.0]
    assert (x - y).tolist() == [-2.0, -3.0] and (10 - x).tolist() == [9.0, 8.0]
    assert (np.float32(10) - x).tolist() == [9.0, 8.0]
    assert (-x).tolist() == [-1.0, -2.0]
    assert (x == y).tolist() == [False, False] and (x < y).tolist() == [True, True]
    assert (y > x).tolist() == [True, True]  # reflected
    z = x
    z += y
    assert z is x and x.tolist() == [4.0, 7.0]
    assert x.plus(y).tolist() == [7.0, 12.0]


def test_symbols_of_strangers():
    x = c10.tensor([1.0])
    assert (x == None) is False and (x == "a") is False and (x != None) is True  # noqa: E711
    for call in (lambda: x + "a", lambda: "a" + x, lambda: x - [1], lambda: x * 2):
        with pytest.raises(TypeError):
            call()

    class Other:
        def __radd__(self, other):
            return "other"

    assert x + Other() == "other"
    assert x in [x] and hash(x) == id(x) and len({x, x}) == 1


def test_indexing_and_iteration():
    x = c10.tensor([[1, 2], [3, 4]])
    assert x[0].tolist() == [1, 2] and x[1, 0].item() == 3
    x[0] = 7
    assert x.tolist() == [[7, 7], [3, 4]]
    assert [row.tolist() for row in x] == [[7, 7], [3, 4]]
    assert [*map(int, x[1])] == [3, 4]
    first, second = x
    assert second.tolist() == [3, 4]
    with pytest.raises(TypeError, match="delet"):
        del x[0]


# ---- memory ------------------------------------------------------------------------------------------


def test_data_shares_memory():
    x = c10.tensor([1.0, 2.0])
    x.data.numpy()[0] = 9.0
    assert x.tolist() == [9.0, 2.0]
    before = x.data_ptr()
    x.data = c10.tensor([[5.0]])
    assert x.tolist() == [[5.0]] and x.data_ptr() != before
    with pytest.raises(TypeError, match="expected a Tensor"):
        x.data = 3
    with pytest.raises(c10.DeviceError):
        x.data = c10.tensor([1.0], device="meta")


def test_storage():
    x = c10.tensor([1.0, 2.0, 3.0])
    storage = x.untyped_storage()
    assert storage.nbytes() == len(storage) == storage.size() == 12
    assert storage.data_ptr() == x.data_ptr() and storage.device == c10.device("cpu")
    assert storage == x.data.untyped_storage() and storage != c10.tensor([1.0]).untyped_storage()
    assert len({storage, x.untyped_storage()}) == 1


def test_set():
    x, y = c10.tensor([1.0, 2.0, 3.0, 4.0]), c10.tensor([0.0])
    y.set_(x)
    assert y.tolist() == x.tolist() and y.data_ptr() == x.data_ptr()
    y.set_(x.untyped_storage(), 1, (2,), (2,))
    assert y.tolist() == [2.0, 4.0]
    y.set_(x.untyped_storage())
    assert y.tolist() == x.tolist()
    with pytest.raises(RuntimeError, match="set_: got size"):
        y.set_(x.untyped_storage(), 2, (2,), (2,))
    with pytest.raises(RuntimeError, match="set_: got size"):
        y.set_(c10.tensor([5.0]).untyped_storage(), 0, (0, 2**62, 4), (1, 1, 1))
    gone = c10.tensor([5.0])
    gone.untyped_storage().resize_(0)
    with pytest.raises(RuntimeError, match="storage"):
        c10.tensor([1.0]).data = gone
    assert y.tolist() == x.tolist()  # unchanged by the failures
    y.set_()
    assert y.shape == (0,)
    with pytest.raises(TypeError, match="UntypedStorage"):
        y.set_(3)


@pytest.mark.parametrize("name", ["bool", "int64", "float16", "bfloat16", "float32", "complex64"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3)])
def test_pickle(name, shape):
    x = c10.tensor(np.arange(int(np.prod(shape))).reshape(shape).tolist(), dtype=getattr(c10, name))
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        y = pickle.loads(pickle.dumps(x, protocol))
        assert y.dtype is x.dtype and y.shape == x.shape and y.tolist() == x.tolist()


class PickledSubclass(c10.Tensor):
    pass


def test_pickle_keeps_class_and_state():
    x = c10.Tensor._make_subclass(PickledSubclass, c10.tensor([1.0]), True)
    x.note = [1]
    y = pickle.loads(pickle.dumps(x))
    assert type(y) is PickledSubclass and y.requires_grad and y.note == [1] and y.tolist() == [1.0]
    assert pickle.loads(pickle.dumps(c10.tensor([1.0], device="meta"))).is_meta
    transposed = strided((2, 3), (1, 2))
    transposed.numpy()[...] = [[1, 2, 3], [4, 5, 6]]
    unpickled = pickle.loads(pickle.dumps(transposed))
    assert unpickled.tolist() == [[1, 2, 3], [4, 5, 6]] and unpickled.stride() == (1, 2)
    spread = strided((2, 3), (4, 1))  # with gaps: stored without them
    spread.numpy()[...] = [[1, 2, 3], [4, 5, 6]]
    unpickled = pickle.loads(pickle.dumps(spread))
    assert unpickled.tolist() == [[1, 2, 3], [4, 5, 6]] and unpickled.stride() == (3, 1)
    meta = c10._C._empty_strided((2, 3), (1, 2), c10.float32, "meta")
    assert pickle.loads(pickle.dumps(meta)).stride() == (1, 2)


def test_deepcopy():
    x = c10.tensor([1.0, 2.0, 3.0])
    x.note = [1]
    view = c10.Tensor()
    view.set_(x.untyped_storage(), 1, (2,), (1,))
    a, b, c = copy.deepcopy([x, view, x])
    assert (
        a.tolist() == x.tolist()
        and a.data_ptr() != x.data_ptr()
        and a.note == [1]
        and a.note is not x.note
    )
    assert c is a and b.untyped_storage() == a.untyped_storage() and b.tolist() == [2.0, 3.0]
    transposed = strided((2, 3), (1, 2))
    assert copy.deepcopy(transposed).stride() == (1, 2)
    y = copy.deepcopy(c10.tensor([1.0], requires_grad=True))
    assert y.requires_grad
    assert type(copy.deepcopy(c10.Tensor._make_subclass(PickledSubclass, x))) is PickledSubclass


def test_copy_shares_memory():
    x = c10.tensor([1.0], requires_grad=True).as_subclass(PickledSubclass)
    x.note = [1]
    y = copy.copy(x)
    assert type(y) is PickledSubclass and y is not x and y.data_ptr() == x.data_ptr()
    assert y.note is x.note
