"""Storages with a dtype, as PyTorch 2.13's."""

import copy
import pickle
import subprocess
import sys

import pytest

import argand_aten as aten
import argand_c10 as c10
from argand_aten import FloatStorage, LongStorage, ShortStorage, TypedStorage
from argand_aten._typed_storage import cuda_storages

pytestmark = pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")


def test_a_tensors_memory():
    x = aten.tensor([[1.0, 2.0], [3.0, 4.0]])
    s = x.t().storage()
    assert isinstance(s, TypedStorage) and isinstance(s, FloatStorage)
    assert not isinstance(s, LongStorage) and c10.is_storage(s) and not c10.is_storage(x)
    assert s.tolist() == list(s) == [1, 2, 3, 4] and (len(s), s.size(), s.nbytes()) == (4, 4, 16)
    assert s.data_ptr() == x.data_ptr() and s.untyped() == x.untyped_storage()
    assert s.dtype == c10.float32 and s.element_size() == 4 and s.device == c10.device("cpu")
    assert s.get_device() is None and not s.is_cuda and not s.is_sparse and not s.is_pinned()
    assert x.storage_type() is FloatStorage and s.pickle_storage_type() == "FloatStorage"
    assert s.type() == "argand.FloatStorage"
    assert str(s).endswith(
        "3.0\n 4.0\n[argand.storage.TypedStorage(dtype=argand.float32, device=cpu) of size 4]"
    )
    s[1], s[-1] = 7, 8
    assert x.tolist() == [[1, 7], [3, 8]] and s[1] == 7 and s[-1] == 8
    s[:2] = 0
    assert s.fill_(5) is s and x.tolist() == [[5, 5], [5, 5]]
    with pytest.raises(IndexError, match="index 4, expected one of 4"):
        s[4]
    with pytest.raises(RuntimeError, match="slice"):
        s[0:2]
    with pytest.raises(RuntimeError, match="type str"):
        s["a"]
    with pytest.raises(RuntimeError, match="storage as value"):
        s[0] = s


def test_making():
    assert FloatStorage([1, 2]).tolist() == [1.0, 2.0] and LongStorage(3).size() == 3
    assert TypedStorage().size() == 0 and TypedStorage(2).dtype == c10.get_default_dtype()
    assert TypedStorage([1, 2], dtype=c10.int16).dtype == c10.int16
    x = aten.arange(4, dtype=c10.int32)
    assert FloatStorage(wrap_storage=x.untyped_storage()).data_ptr() == x.data_ptr()
    for call in (
        lambda: LongStorage(3, 4),
        lambda: LongStorage(dtype=c10.int8),
        lambda: TypedStorage(wrap_storage=x.untyped_storage()),
        lambda: TypedStorage(3, wrap_storage=x.untyped_storage(), dtype=c10.int8),
        lambda: cuda_storages["IntStorage"](wrap_storage=x.untyped_storage()),
        lambda: FloatStorage.from_buffer(b"", dtype=c10.int8),
        lambda: TypedStorage.from_file("x", True, 3),
    ):
        with pytest.raises(RuntimeError):
            call()
    for value in ("ab", 1.5, x):
        with pytest.raises(TypeError, match="expected a size or a sequence"):
            LongStorage(value)
    with pytest.raises(TypeError, match="wrap_storage"):
        FloatStorage(wrap_storage=[1])


def test_buffers_and_files(tmp_path):
    one = b"\0\0\x80\x3f"
    assert FloatStorage.from_buffer(one * 2, "native").tolist() == [1, 1]
    assert FloatStorage.from_buffer(one[::-1] * 2, byte_order="big").tolist() == [1, 1]
    assert ShortStorage.from_buffer(b"\1\0\2\0\3\0", "little", 1, 2).tolist() == [2]
    assert TypedStorage.from_buffer(bytearray(b"ab"), dtype=c10.uint8).tolist() == [97, 98]
    for wrong in ((b"abc", "native"), (b"ab", "odd"), (b"ab", "big", 2), (b"ab", "big", -1, 3)):
        with pytest.raises(ValueError, match="from_buffer"):
            ShortStorage.from_buffer(*wrong)
    path = tmp_path / "x"
    ShortStorage.from_file(str(path), True, 3)[1] = 5
    assert path.read_bytes() == b"\0\0\5\0\0\0"


def test_copies():
    s = FloatStorage([1.5, 0.0, -2.0])
    assert s.clone().tolist() == s.tolist() and s.clone().data_ptr() != s.data_ptr()
    assert s.long().tolist() == [1, 0, -2] and s.bool().tolist() == [True, False, True]
    assert s.float().data_ptr() != s.data_ptr() and s.complex_float()[0] == 1.5
    assert s.cpu() is s and s.type("torch.LongStorage").dtype == c10.int64
    assert s.type(FloatStorage) is s
    x = aten.ones(3)
    both = copy.deepcopy([x, x.storage()])
    assert both[0].data_ptr() == both[1].data_ptr() != x.data_ptr()
    assert pickle.loads(pickle.dumps(s)).tolist() == s.tolist()
    assert s.copy_(FloatStorage([3, 4, 5])).tolist() == [3, 4, 5]
    with pytest.raises(RuntimeError, match="12 bytes"):
        s.copy_(FloatStorage([1]))
    s.resize_(2)
    assert s.tolist() == [3, 4] and s.resizable()
    y = c10.Tensor().set_(s)
    assert y.tolist() == [3, 4] and y.data_ptr() == s.data_ptr()
    with pytest.raises(RuntimeError, match="storage of int64 for a tensor of float32"):
        c10.Tensor().set_(LongStorage([1]))


def test_sharing():
    s = FloatStorage([1, 2])
    assert not s.is_shared() and s.share_memory_() is s and s.is_shared() and not s.resizable()
    shared = s._new_shared(3)
    assert shared.is_shared() and shared.tolist() == [0, 0, 0] and isinstance(shared, FloatStorage)


def test_the_warning_comes_once_where_it_is_used():
    code = (
        "import warnings, argand_aten as aten\n"
        "with warnings.catch_warnings(record=True) as found:\n"
        "    warnings.simplefilter('always')\n"
        "    aten.ones(2).storage()[0]\n"
        "    aten.FloatStorage(2).size()\n"
        "assert len(found) == 1 and found[0].category is UserWarning, found\n"
        "assert found[0].filename == '<string>' and 'untyped_storage' in str(found[0].message)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert result.returncode == 0, result.stderr
