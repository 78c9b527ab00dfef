"""Random state, threads, memory, promotion, errors, versions."""

import os
import pickle
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import argand_c10 as c10
from argand_c10 import _C

# ---- random ------------------------------------------------------------------------------------------


def test_seeds():
    assert c10.manual_seed(7) is c10.default_generator and c10.initial_seed() == 7
    c10.manual_seed(-1)
    assert c10.initial_seed() == 2**64 - 1
    c10.manual_seed(2**64 - 1)
    assert c10.seed() == c10.initial_seed() < 2**53
    for bad in (2**64, -(2**63) - 1):
        with pytest.raises(ValueError, match="expected a seed from"):
            c10.manual_seed(bad)
    with pytest.raises(ValueError):
        c10.manual_seed("a")
    assert c10.manual_seed(1.5).initial_seed() == c10.manual_seed("1").initial_seed() == 1


def test_generator_states():
    g = c10.Generator().manual_seed(5)
    state = g.get_state()
    assert state.dtype is c10.uint8 and state.shape == (16,)
    h = c10.Generator()
    h.set_state(state)
    assert h.initial_seed() == 5 and h.get_state().tolist() == state.tolist()
    assert h.set_state(bytes(state)).get_state().tolist() == state.tolist()
    assert g.clone_state().get_state().tolist() == state.tolist() and g.clone_state() is not g
    assert pickle.loads(pickle.dumps(g)).get_state().tolist() == state.tolist()
    assert g.device == c10.device("cpu") and c10.Generator("cpu").device == c10.device("cpu")
    for bad in (c10.tensor([1.0]), b"short", 3):
        with pytest.raises(TypeError, match="uint8 tensor of 16"):
            g.set_state(bad)
    with pytest.raises(TypeError, match="device"):
        c10.Generator(3.5)


def test_default_state_round_trip():
    c10.manual_seed(3)
    before = c10.get_rng_state()
    with c10.fork_rng():
        c10.manual_seed(4)
    assert c10.get_rng_state().tolist() == before.tolist()
    c10.manual_seed(9)
    c10.set_rng_state(before)
    assert c10.initial_seed() == 3


# ---- threads and memory --------------------------------------------------------------------------------


def test_threads():
    before = c10.get_num_threads()
    try:
        c10.set_num_threads(1)
        assert c10.get_num_threads() == 1
        for bad in (0, -1):
            with pytest.raises(RuntimeError, match="positive number"):
                c10.set_num_threads(bad)
    finally:
        c10.set_num_threads(before)


def test_memory():
    before = c10.cpu.memory_allocated()
    x = _C._empty_strided((1 << 18,), None, c10.float32)
    assert c10.cpu.memory_allocated() >= before + (1 << 20)
    assert c10.cpu.max_memory_allocated() >= c10.cpu.memory_allocated()
    del x
    assert c10.cpu.memory_allocated() <= before + 4096
    assert c10.cpu.memory_reserved() >= c10.cpu.memory_allocated()
    c10.cpu.empty_cache()
    stats = c10.cpu.memory_stats()
    assert stats["cached_bytes"] <= 1 << 20 and stats["allocations"] > 0
    assert c10.cpu.tier() in (0, 1, 2)


def test_out_of_memory():
    with pytest.raises(c10.OutOfMemoryError, match="could not allocate"):
        _C._empty_strided((1 << 50,), None, c10.float32)
    with pytest.raises(RuntimeError, match="overflow"):
        _C._empty_strided((1 << 40, 1 << 40), None, c10.float32)
    assert c10.tensor([1.0]).item() == 1.0


def test_default_dtype_per_thread_and_value():
    assert c10.get_default_dtype() is c10.float32
    c10.set_default_dtype(c10.float64)
    try:
        assert c10.tensor(1.0).dtype is c10.float64 and c10.tensor(1j).dtype is c10.complex128
        assert c10.tensor([1], dtype=float).dtype is c10.float64
    finally:
        c10.set_default_dtype(c10.float32)
    with pytest.raises(TypeError, match="floating-point dtype"):
        c10.set_default_dtype(c10.int32)


def test_fork_after_use():
    x = c10.tensor([1.0, 2.0])
    pid = os.fork()
    if pid == 0:
        ok = x.tolist() == [1.0, 2.0] and (c10.tensor([3.0])).item() == 3.0
        os._exit(0 if ok else 1)
    assert os.waitpid(pid, 0)[1] == 0


def test_tensors_dropped_by_other_threads():
    batches = [[c10.tensor([float(i)]) for i in range(100)] for _ in range(4)]
    threads = [threading.Thread(target=batch.clear) for batch in batches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not any(batches)


# ---- promotion -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "a, b, result",
    [
        ("uint8", "int8", "int16"),
        ("int64", "float16", "float16"),
        ("float16", "bfloat16", "float32"),
        ("bool", "bool", "bool"),
        ("float64", "complex64", "complex128"),
        ("int32", "complex64", "complex64"),
        ("uint8", "uint16", "uint16"),
        ("uint16", "int16", "int32"),
        ("uint32", "int64", "int64"),
        ("bool", "uint64", "uint64"),
        ("uint64", "float32", "float32"),
    ],
)
def test_promote_types(a, b, result):
    assert c10.promote_types(getattr(c10, a), getattr(c10, b)) is getattr(c10, result)
    assert c10.promote_types(getattr(c10, b), getattr(c10, a)) is getattr(c10, result)


def test_dtypes_without_a_common_one():
    for a, b in ((c10.uint64, c10.int8), (c10.float8_e5m2, c10.float32)):
        with pytest.raises(RuntimeError, match="promote_types: got"):
            c10.promote_types(a, b)
    with pytest.raises(RuntimeError, match="uint64 beside a signed integer"):
        c10.result_type(c10.tensor([1], dtype=c10.uint64), c10.tensor([1]))


def test_result_type():
    ints, floats = c10.tensor([1, 2], dtype=c10.int32), c10.tensor([1.0])
    assert c10.result_type(ints, 1) is c10.int32 and c10.result_type(ints, 1.5) is c10.float32
    assert c10.result_type(ints, floats) is c10.float32
    assert c10.result_type(floats, c10.tensor(1.0, dtype=c10.float64)) is c10.float32
    assert c10.result_type(ints, c10.tensor(1.0, dtype=c10.float64)) is c10.float64
    with pytest.raises(TypeError, match="argument 2 must be Tensor or Number, not str"):
        c10.result_type(ints, "a")


def test_can_cast():
    assert c10.can_cast(c10.int32, c10.uint8) and c10.can_cast(c10.int32, c10.float16)
    assert not c10.can_cast(c10.float32, c10.int64) and not c10.can_cast(c10.complex64, c10.float32)
    assert not c10.can_cast(c10.int32, c10.bool) and c10.can_cast(c10.bool, c10.bool)
    with pytest.raises(TypeError):
        c10.can_cast(1, 2)


# ---- errors and versions ------------------------------------------------------------------------------------


def test_error_types():
    for error in (c10.ShapeError, c10.DTypeError, c10.DeviceError, c10.OutOfMemoryError):
        assert issubclass(error, RuntimeError) and error.__module__ == "argand_c10.errors"
    assert issubclass(c10.DTypeError, NotImplementedError) and issubclass(c10.DTypeError, TypeError)
    with pytest.raises(c10.ShapeError, match="negative dimension"):
        _C._empty_strided((-1,))
    with pytest.raises(ValueError, match="65 dimensions"):
        _C._empty_strided((1,) * 65)


def test_abi_versions_agree():
    assert c10.ABI_VERSION == _C.ABI_VERSION
    c10.check_abi("argand-aten", c10.ABI_VERSION)
    with pytest.raises(ImportError) as error:
        c10.check_abi("argand-aten", c10.ABI_VERSION + 1)
    text = str(error.value)
    assert (
        f"argand-aten was built for ABI {c10.ABI_VERSION + 1} of" in text
        and f"provides ABI {c10.ABI_VERSION};" in text
        and "pip install" in text
    )
    assert "\n" not in text


def test_version_module_loads_nothing():
    """Another wheel must be able to ask before any extension is loaded."""
    path = Path(c10.__file__).parent / "_version.py"
    code = (
        f"import runpy, sys; runpy.run_path({str(path)!r}); assert 'argand_c10' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert re.fullmatch(r"\d+\.\d+\.\d+", c10.__version__)


def test_public_names_exist():
    for name in c10.__all__:
        assert hasattr(c10, name), name
    assert c10.is_tensor(c10.tensor(1)) and not c10.is_tensor(1)
    assert c10.is_floating_point(c10.tensor(1.0)) and not c10.is_floating_point(c10.tensor(1))
    assert c10.is_complex(c10.tensor(1j)) and not c10.is_complex(c10.tensor(1.0))
    assert c10.numel(c10.tensor([[1, 2, 3]])) == 3
    with pytest.raises(TypeError, match="numel: got list, expected a Tensor"):
        c10.numel([1])
    assert c10.is_storage(c10.tensor(1).untyped_storage())
