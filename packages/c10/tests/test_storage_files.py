"""Memory that is a file's, and parts of memory."""

import numpy as np
import pytest

import argand_c10 as c10


def test_private_mappings_leave_the_file(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(np.arange(6, dtype=np.float32).tobytes())
    x = c10.from_file(str(path), shared=False, size=4, dtype=c10.float32)
    assert x.tolist() == [0, 1, 2, 3]
    x.numpy()[0] = 9
    assert np.frombuffer(path.read_bytes(), np.float32).tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(RuntimeError, match="24 bytes"):
        c10.from_file(str(path), size=7, dtype=c10.float32)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        c10.from_file(str(tmp_path / "nowhere"), size=1)
    with pytest.raises(RuntimeError, match="the CPU"):
        c10.from_file(str(path), size=1, device="meta")
    assert c10.from_file(path).shape == (0,)
    with pytest.raises(ValueError, match="-1 bytes"):
        c10.UntypedStorage.from_file(path, False, -1)


def test_shared_mappings_are_the_file(tmp_path):
    path = tmp_path / "x"
    x = c10.from_file(path, True, 3, dtype=c10.int64)
    x.numpy()[...] = [1, -2, 3]
    assert np.frombuffer(path.read_bytes(), np.int64).tolist() == [1, -2, 3]
    again = c10.from_file(path, True, 2, dtype=c10.int64)  # a longer file keeps its length
    assert again.tolist() == [1, -2]
    assert path.stat().st_size == 24


def test_parts_share_memory():
    x = c10.tensor([1, 2, 3, 4], dtype=c10.int16)
    storage = x.untyped_storage()
    part = storage[2:6]
    assert (len(part), part.data_ptr()) == (4, x.data_ptr() + 2)
    assert (storage[2], storage[-2], list(part), bytes(part)) == (2, 4, [2, 0, 3, 0], b"\2\0\3\0")
    assert storage.untyped() == storage
    del storage
    y = c10.asarray(part, dtype=c10.int16)
    x.numpy()[1] = 7
    del x, part  # the part holds the whole
    assert y.tolist() == [7, 3]
    assert c10.asarray(y.untyped_storage()[4:], dtype=c10.int16).shape == (0,)
    with pytest.raises(IndexError, match="index 4"):
        y.untyped_storage()[4]
    with pytest.raises(ValueError, match="step"):
        y.untyped_storage()[::2]
    with pytest.raises(TypeError):
        y.untyped_storage()["x"]
    with pytest.raises(RuntimeError, match="foreign memory"):
        y.untyped_storage().resize_(1000)


def test_addresses_tell_tensors_apart():
    x = c10.tensor([1.0])
    assert x._cdata == x._cdata != c10.tensor([1.0])._cdata
