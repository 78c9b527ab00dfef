"""dtype, device, Size, layout and memory_format objects, finfo and iinfo."""

import copy
import pickle

import numpy as np
import pytest

import argand_c10 as c10

DTYPES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128 float8_e4m3fn float8_e5m2 uint16 uint32 uint64".split()


@pytest.mark.parametrize("name", DTYPES)
def test_dtype_object(name):
    dtype = getattr(c10, name)
    assert repr(dtype) == f"argand.{name}"
    assert dtype.name == name
    unknown = {"bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1}  # to NumPy
    expected = unknown.get(name) or np.dtype(name).itemsize
    assert dtype.itemsize == expected
    assert dtype.is_floating_point == ("float" in name)
    assert dtype.is_complex == name.startswith("complex")
    assert dtype.is_signed == (name != "bool" and not name.startswith("u"))
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert copy.deepcopy(dtype) is dtype and copy.copy(dtype) is dtype
    assert {dtype: 1}[dtype] == 1


@pytest.mark.parametrize(
    "alias, name",
    [
        ("double", "float64"),
        ("float", "float32"),
        ("half", "float16"),
        ("long", "int64"),
        ("int", "int32"),
    ]
    + [("short", "int16"), ("cfloat", "complex64"), ("cdouble", "complex128")],
)
def test_dtype_aliases(alias, name):
    assert getattr(c10, alias) is getattr(c10, name)


def test_dtype_parts():
    assert c10.complex64.to_real() is c10.float32
    assert c10.float64.to_complex() is c10.complex128
    with pytest.raises(TypeError):
        c10.dtype()


def test_device_equality_and_text():
    assert c10.device("cpu") == c10.device("cpu")
    assert c10.device("cpu") != c10.device("cpu:0")
    assert c10.device("cpu", 0) == c10.device("cpu:0")
    assert hash(c10.device("cuda:1")) == hash(c10.device("cuda", 1))
    assert repr(c10.device("cpu")) == "device(type='cpu')"
    assert repr(c10.device("cuda", 1)) == "device(type='cuda', index=1)"
    assert str(c10.device("cuda", 1)) == "cuda:1"
    assert c10.device("meta").type == "meta" and c10.device("meta").index is None
    assert c10.device("cuda:3").index == 3
    assert c10.device(c10.device("cpu")) == c10.device("cpu")
    assert c10.device("cpu") != "cpu"
    assert pickle.loads(pickle.dumps(c10.device("cuda:1"))) == c10.device("cuda:1")


@pytest.mark.parametrize("text", ["foo", "cpu:", "cpu:x", "cpu:-1", "cpu:999", "", "cpux"])
def test_bad_device_text(text):
    with pytest.raises(RuntimeError, match="device"):
        c10.device(text)


def test_device_of_wrong_type():
    with pytest.raises(TypeError, match="must be str or device, not float"):
        c10.device(3.5)
    with pytest.raises(RuntimeError, match="index"):
        c10.device("cuda:1", 2)


def test_size_is_a_tuple():
    size = c10.Size([2, 3])
    assert size == (2, 3) and isinstance(size, tuple)
    assert repr(size) == "argand.Size([2, 3])"
    assert size.numel() == 6 and c10.Size([]).numel() == 1
    assert type(size[1:]) is c10.Size and size[1:] == (3,)
    assert type(size + (4,)) is c10.Size and size + (4,) == (2, 3, 4)
    assert type((1,) + size) is c10.Size and (1,) + size == (1, 2, 3)
    assert type(size * 2) is c10.Size
    assert size[0] == 2 and type(size[0]) is int
    assert (
        pickle.loads(pickle.dumps(size)) == size
        and type(pickle.loads(pickle.dumps(size))) is c10.Size
    )
    assert c10.Size([np.int64(3)]) == (3,)
    with pytest.raises(TypeError, match="float at position 0"):
        c10.Size([2.5])


def test_layout_and_memory_format():
    assert repr(c10.strided) == "argand.strided" and isinstance(c10.strided, c10.layout)
    assert repr(c10.channels_last) == "argand.channels_last"
    assert isinstance(c10.contiguous_format, c10.memory_format)
    assert pickle.loads(pickle.dumps(c10.channels_last)) is c10.channels_last
    assert copy.deepcopy(c10.strided) is c10.strided


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_finfo(name):
    mine, theirs = c10.finfo(getattr(c10, name)), np.finfo(name)
    assert mine.resolution == pytest.approx(float(theirs.resolution), rel=1e-3)
    for field in ("bits", "eps", "max", "min", "tiny", "smallest_normal"):
        assert getattr(mine, field) == pytest.approx(float(getattr(theirs, field)), rel=1e-7), field


def test_finfo_others():
    assert c10.finfo(float) == c10.finfo(complex) == c10.finfo(c10.float64)
    assert c10.finfo().dtype == "float32"
    assert c10.finfo(c10.complex128).dtype == "float64"
    assert c10.finfo(c10.bfloat16).eps == 0.0078125
    assert c10.finfo(c10.bfloat16).max == pytest.approx(3.3895313892515355e38)
    assert repr(c10.finfo(c10.float32)) == (
        "finfo(resolution=1e-06, min=-3.40282e+38, max=3.40282e+38, eps=1.19209e-07, "
        "smallest_normal=1.17549e-38, tiny=1.17549e-38, dtype=float32)"
    )
    with pytest.raises(TypeError, match="iinfo"):
        c10.finfo(c10.int32)


@pytest.mark.parametrize(
    "name", ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"]
)
def test_iinfo(name):
    mine, theirs = c10.iinfo(getattr(c10, name)), np.iinfo(name)
    assert (mine.bits, mine.min, mine.max) == (theirs.bits, theirs.min, theirs.max)
    assert repr(mine) == f"iinfo(min={theirs.min:g}, max={theirs.max:g}, dtype={name})"
    with pytest.raises(TypeError, match="finfo"):
        c10.iinfo(c10.float32)
