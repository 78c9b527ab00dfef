"""Memory shared with NumPy, buffers and DLPack."""

import array
import gc
import io
import os
import subprocess
import sys
import weakref

import c10_operators as ops
import numpy as np
import pytest

import argand_c10 as c10
from argand_c10 import _C

ops.install()

SHARED = "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 float32 float64 complex64 complex128".split()


def test_import_does_not_load_numpy():
    code = "import argand_c10, sys; x = argand_c10.tensor([1.0]); repr(x); assert 'numpy' not in sys.modules"
    subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
    )


# ---- NumPy -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0, 3)])
def test_numpy_both_ways(name, shape):
    a = np.ones(shape, dtype=name)
    x = c10.from_numpy(a)
    assert x.dtype is getattr(c10, name) and x.shape == shape
    b = x.numpy()
    assert b.dtype == a.dtype and b.shape == a.shape
    if a.size:
        a[...] = 0
        assert not np.any(b) and x.data_ptr() == a.ctypes.data
        b[...] = 1
        assert np.all(a == 1)


def test_strides_are_kept():
    a = np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1)[1::2]
    x = c10.from_numpy(a)
    assert x.stride() == tuple(s // 8 for s in a.strides) and x.tolist() == a.tolist()
    assert np.array_equal(x.numpy(), a) and x.numpy().strides == a.strides
    y = c10.from_numpy(np.broadcast_to(np.array([1.0]), (3, 1))[:, 0].copy())
    assert y.tolist() == [1.0] * 3


@pytest.mark.parametrize(
    "make, error, text",
    [
        (lambda: [1], TypeError, r"expected np.ndarray \(got list\)"),
        (lambda: np.array(["a"]), TypeError, "can't convert|numbers"),
        (lambda: np.array([1], dtype="datetime64[s]"), TypeError, "datetime64"),
        (lambda: np.array([object()]), TypeError, "can't convert|numbers"),
        (lambda: np.array([1], dtype=np.longdouble), TypeError, "numpy.float128"),
        (lambda: np.array([1], dtype=">i4"), ValueError, "byte order"),
        (lambda: np.ones(3)[::-1], ValueError, "stride.*negative"),
        (lambda: np.zeros(2, dtype=[("a", "f4"), ("b", "i1")])["a"], ValueError, "multiple"),
    ],
)
def test_from_numpy_refuses(make, error, text):
    with pytest.raises(error, match=text):
        c10.from_numpy(make())


def test_numbers_of_numpy_keep_their_dtype_in_lists():
    for data, dtype in (
        ([np.float32(1), 2.5], "float32"),
        ([2, np.float64(1)], "float64"),
        ((np.float64(1), np.float32(2)), "float64"),
        ([[np.float32(1)], [2]], "float32"),
        ([np.int8(1), np.int16(3)], "int16"),
        ([np.int8(1), 2], "int64"),
        ([np.complex64(1), 2.0], "complex64"),
        ([np.array([1.0, 2.0]), [3, 4]], "float64"),
    ):
        x = c10.tensor(data)
        assert str(x.dtype).endswith(dtype) and x.tolist() == np.asarray(data).tolist()
    with pytest.raises(OverflowError, match="can't convert negative int to unsigned"):
        c10.tensor([-1], dtype=c10.uint64)


def test_numpy_refuses():
    with pytest.raises(TypeError, match=r"bfloat16.*tensor.float\(\).numpy\(\)"):
        c10.tensor([1.0], dtype=c10.bfloat16).numpy()
    with pytest.raises(TypeError, match="bfloat16"):
        np.asarray(c10.tensor([1.0], dtype=c10.bfloat16))
    with pytest.raises(TypeError, match="meta device type tensor"):
        c10.tensor([1.0], device="meta").numpy()
    x = c10.tensor([1.0], requires_grad=True)
    with pytest.raises(RuntimeError, match=r"detach\(\)"):
        x.numpy()
    with pytest.raises(RuntimeError, match=r"detach\(\)"):
        np.asarray(x)
    assert x.numpy(force=True).tolist() == [1.0]


def test_readonly_arrays_stay_readonly():
    a = np.arange(3.0)
    a.flags.writeable = False
    x = c10.from_numpy(a)
    assert not x.numpy().flags.writeable
    with pytest.raises(BufferError, match="read-only"):
        x.__dlpack__()
    with pytest.raises((BufferError, TypeError)):
        io.BytesIO(b"x" * 24).readinto(x)
    assert not np.from_dlpack(x).flags.writeable


def test_array_protocol():
    x = c10.tensor([1.0, 2.0])
    assert np.asarray(x).ctypes.data == x.data_ptr()
    assert np.asarray(x, dtype=np.int32).tolist() == [1, 2]
    assert x.__array__(dtype=np.float64).dtype == np.float64
    assert np.array(x, copy=True).ctypes.data != x.data_ptr()
    assert np.sum(x) == 3.0 and np.stack([x, x]).shape == (2, 2)
    with pytest.raises(TypeError, match="unexpected"):
        x.__array__(foo=1)


def test_memory_outlives_either_side():
    a = np.arange(1000.0)
    dead = weakref.ref(a)
    x = c10.from_numpy(a)
    del a
    gc.collect()
    assert dead() is not None and x.tolist()[-1] == 999.0
    b = x.numpy()
    del x
    gc.collect()
    assert b[-1] == 999.0 and dead() is not None
    del b
    gc.collect()
    assert dead() is None
    y = c10.tensor([1.0, 2.0])
    z = y.numpy()
    y.data = c10.tensor([0.0])
    del y
    assert z.tolist() == [1.0, 2.0]


def test_numpy_functions_give_tensors():
    x = c10.tensor([0.0, 1.0])
    y = np.add(x, x)
    assert type(y) is c10.Tensor and y.tolist() == [0.0, 2.0] and y.dtype is c10.float32
    assert type(np.exp(c10.tensor(0.0))) is c10.Tensor
    z = x * np.array([2.0, 3.0])
    assert type(z) is c10.Tensor and z.dtype is c10.float64 and z.tolist() == [0.0, 3.0]
    with pytest.raises(TypeError, match="'numpy.ndarray' and 'Tensor'"):
        np.array([2.0, 3.0]) @ x
    a = np.array([0.0, 2.0])
    assert (x == a).tolist() == [True, False] and (a == x).tolist() == [True, False]


# ---- buffers -------------------------------------------------------------------------------------------


def test_buffer_protocol():
    x = c10.tensor([[1, 2], [3, 4]], dtype=c10.int32)
    view = memoryview(x)
    assert (
        view.format == "i" and view.shape == (2, 2) and view.strides == (8, 4) and not view.readonly
    )
    assert view.tolist() == [[1, 2], [3, 4]]
    view[0, 0] = 9
    assert x.tolist()[0][0] == 9
    assert bytes(x) == _C._tensor_to_bytes(x)
    transposed = _C._empty_strided((2, 2), (1, 2))
    assert memoryview(transposed).strides == (4, 8)
    with pytest.raises(BufferError, match="contiguous"):
        array.array("B").frombytes(transposed)
    with pytest.raises(BufferError, match="requires grad"):
        memoryview(c10.tensor([1.0], requires_grad=True))


def test_frombuffer():
    data = bytearray(b"\x01\x00\x00\x00\x02\x00\x00\x00")
    x = c10.frombuffer(data, dtype=c10.int32)
    assert x.tolist() == [1, 2]
    data[0] = 5
    assert x.tolist() == [5, 2]
    assert c10.frombuffer(data, dtype=c10.int32, offset=4).tolist() == [2]
    assert c10.frombuffer(data, dtype=c10.uint8, count=1).tolist() == [5]
    for kwargs in ({"offset": 9}, {"offset": 1}, {"count": 3}, {"offset": -1}):
        with pytest.raises(ValueError, match="frombuffer: got a buffer of 8 bytes"):
            c10.frombuffer(data, dtype=c10.int32, **kwargs)
    with pytest.raises(TypeError, match="dtype"):
        c10.frombuffer(data, dtype=3)


def test_asarray_of_buffers():
    data = bytearray(b"abcd")
    x = c10.asarray(data, dtype=c10.uint8, copy=False)
    data[0] = 5
    assert x.tolist() == [5, 98, 99, 100]
    assert c10.asarray(data, dtype=c10.int16).tolist() == [5 + 98 * 256, 99 + 100 * 256]
    copied = c10.asarray(data, dtype=c10.uint8, copy=True)
    data[0] = 6
    assert copied.tolist() == [5, 98, 99, 100]
    assert c10.asarray(array.array("d", [1, 2]), dtype=c10.float64).tolist() == [1, 2]
    x = c10.asarray(np.float32([1, 2]).tobytes())
    assert x.dtype == c10.float32 and x.tolist() == [1, 2]
    with pytest.raises(ValueError, match="frombuffer: got a buffer of 5 bytes"):
        c10.asarray(b"abcde")
    with pytest.raises(ValueError, match="asarray: got copy=False for ndarray"):
        c10.asarray(np.ones(2), dtype=c10.float32, copy=False)


# ---- DLPack --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SHARED)
def test_dlpack_with_numpy(name):
    x = c10.tensor([[1, 0], [1, 1]], dtype=name)
    a = np.from_dlpack(x)
    assert a.dtype == np.dtype(name) and a.ctypes.data == x.data_ptr() and a.tolist() == x.tolist()
    b = np.arange(6, dtype=name).reshape(2, 3).T if name != "bool" else np.ones((3, 2), dtype=bool)
    y = c10.from_dlpack(b)
    assert y.dtype is x.dtype and y.data_ptr() == b.ctypes.data and y.tolist() == b.tolist()


def test_dlpack_to_a_device_and_copied():
    a = np.arange(3.0)
    assert c10.from_dlpack(a, device="cpu").data_ptr() == a.ctypes.data
    assert c10.from_dlpack(a, device="cpu", copy=False).data_ptr() == a.ctypes.data
    copied = c10.from_dlpack(a, copy=True)
    assert copied.data_ptr() != a.ctypes.data and copied.tolist() == [0, 1, 2]
    assert c10.from_dlpack(a, device="meta").is_meta
    with pytest.raises(ValueError, match="from_dlpack: got copy=False for memory on cpu"):
        c10.from_dlpack(a, device="meta", copy=False)
    with pytest.raises(BufferError, match="negative stride"):
        c10.from_dlpack(a[::-1])
    assert c10.from_dlpack(a[:1][::-1]).tolist() == [0]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_version": (1, 0)},
        {"max_version": None},
        {"dl_device": (1, 0)},
        {"copy": True},
        {"dl_device": [1, 0], "max_version": [1, 0]},
    ],
)
def test_dlpack_with_itself(options):
    for x in (
        c10.tensor([[1.0, 2.0]]),
        c10.tensor(3),
        c10.tensor([]),
        c10.tensor([1.5], dtype=c10.bfloat16),
    ):
        y = c10.from_dlpack(x.__dlpack__(**options))
        assert y.tolist() == x.tolist() and y.dtype is x.dtype and y.shape == x.shape
        assert not x.numel() or (y.data_ptr() == x.data_ptr()) == (not options.get("copy"))
    assert x.__dlpack_device__() == (1, 0)


def test_dlpack_capsules_are_used_once():
    capsule = c10.tensor([1.0]).__dlpack__()
    c10.from_dlpack(capsule)
    with pytest.raises(ValueError, match="consumed"):
        c10.from_dlpack(capsule)
    del capsule
    c10.tensor([1.0]).__dlpack__()  # never consumed: freed with the capsule


def test_dlpack_refuses():
    x = c10.tensor([1.0], requires_grad=True)
    with pytest.raises(BufferError, match="require gradient"):
        x.__dlpack__()
    with pytest.raises(BufferError, match="CPU"):
        c10.tensor([1.0], device="meta").__dlpack__()
    with pytest.raises(BufferError, match="device type 2"):
        c10.tensor([1.0]).__dlpack__(dl_device=(2, 0))
    for options in ({"dl_device": 1}, {"max_version": [1]}, {"max_version": (1, "a")}):
        with pytest.raises(TypeError, match="must be a tuple"):
            c10.tensor([1.0]).__dlpack__(**options)
    with pytest.raises(TypeError, match="__dlpack__"):
        c10.from_dlpack([1])
    with pytest.raises(BufferError, match="negative"):
        c10.from_dlpack(np.ones(3)[::-1])


def test_dlpack_keeps_memory():
    x = c10.tensor(list(range(1000)))
    a = np.from_dlpack(x)
    del x
    gc.collect()
    assert a[-1] == 999
    b = np.arange(1000)
    dead = weakref.ref(b)
    y = c10.from_dlpack(b)
    del b
    gc.collect()
    assert y.tolist()[-1] == 999 and dead() is not None
    del y
    gc.collect()
    assert dead() is None
