"""argand_c10.cuda on a real device; skipped where there is none. Operators are not needed."""

import copy
import gc
import os
import pickle
import threading

import numpy as np
import pytest

import argand_c10 as c10
from argand_c10 import _C, cuda

pytestmark = pytest.mark.skipif(
    bool(os.environ.get("ARGAND_CUDA_DRIVER")) or not cuda.is_available(),
    reason=f"no CUDA device: {_C._cuda_problem()}",
)
_MIB = 1 << 20


@pytest.fixture(autouse=True)
def _clean():
    gc.collect()
    cuda.synchronize()
    cuda.empty_cache()
    yield


def _bytes(n: int) -> c10.Tensor:
    return _C._empty_strided((n,), None, c10.uint8, "cuda")


def test_properties():
    properties = cuda.get_device_properties()
    assert properties.name == cuda.get_device_name() and properties.major >= 7
    assert properties.warp_size == 32 and properties.multi_processor_count > 0
    (free, total) = cuda.mem_get_info()
    assert 0 < free <= total <= properties.total_memory
    assert cuda.device_count() >= 1 and cuda.current_device() == 0


@pytest.mark.parametrize("n", [1, 1000, 3 * _MIB])
def test_round_trip(n):
    values = np.random.default_rng(n).integers(0, 255, n).astype(np.uint8)
    x = c10.tensor(values, device="cuda")
    assert np.array_equal(x.numpy(force=True), values)
    assert np.array_equal(copy.deepcopy(x).numpy(force=True), values)
    assert np.array_equal(c10.from_dlpack(x).numpy(force=True), values)
    if n < _MIB:
        assert pickle.loads(pickle.dumps(x)).tolist() == values.tolist() == x.tolist()


def test_pinned():
    values = np.arange(_MIB, dtype=np.int32)
    pinned = c10.tensor(values).pin_memory()
    assert pinned.is_pinned() and not c10.tensor([1]).is_pinned()
    assert np.array_equal(c10.tensor(pinned, device="cuda").numpy(force=True), values)


def test_events_and_streams():
    (start, end) = (cuda.Event(enable_timing=True), cuda.Event(enable_timing=True))
    s = cuda.Stream()
    with cuda.stream(s):
        start.record()
        x = c10.tensor(np.zeros(64 * _MIB, np.uint8), device="cuda")
        end.record()
    cuda.default_stream().wait_stream(s)
    end.synchronize()
    assert s.query() and end.query() and 0 < start.elapsed_time(end) < 10_000
    x.record_stream(cuda.default_stream())


def test_reuse_and_statistics():
    x = _bytes(5 * _MIB)
    address = x.data_ptr()
    del x
    x = _bytes(5 * _MIB)
    assert x.data_ptr() == address
    cuda.reset_peak_memory_stats()
    before = cuda.memory_allocated()
    y = _bytes(100 * _MIB)
    assert cuda.memory_allocated() == before + 100 * _MIB == cuda.max_memory_allocated()
    del x, y
    cuda.empty_cache()
    assert sum(s["total_size"] for s in cuda.memory_snapshot()) == cuda.memory_reserved()


def test_out_of_memory_is_recoverable():
    (free, total) = cuda.mem_get_info()
    with pytest.raises(c10.OutOfMemoryError, match="Tried to allocate"):
        _bytes(total)
    x = _bytes(int(free * 0.6))
    with pytest.raises(c10.OutOfMemoryError):
        _bytes(int(free * 0.6))
    del x
    _bytes(int(free * 0.8))  # what is cached goes back to the driver first
    assert c10.tensor([1.0], device="cuda").tolist() == [1.0]


def test_capture_of_nothing_and_of_errors():
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        x = _bytes(1000)
    g.replay()
    cuda.synchronize()
    pool = next(
        s["segment_pool_id"] for s in cuda.memory_snapshot() if s["address"] == x.data_ptr()
    )
    assert pool[1] == g.pool()[1]
    with (
        pytest.raises(c10.DeviceError, match="while a graph is captured"),
        cuda.graph(cuda.CUDAGraph()),
    ):
        c10.tensor([1.0], device="cuda")
    assert not cuda.is_current_stream_capturing()
    assert c10.tensor([2.0], device="cuda").item() == 2.0


@pytest.mark.skipif(cuda.device_count() < 2, reason="one CUDA device only")
def test_two_devices():
    values = np.arange(4 * _MIB, dtype=np.int32)
    s = cuda.Stream(0)
    with cuda.stream(s):
        x = c10.tensor(values, device="cuda:0")
        y = c10.tensor(x, device="cuda:1")
    assert y.device.index == 1 and np.array_equal(y.numpy(force=True), values)
    with cuda.device(1):
        assert _bytes(10).device.index == 1 and cuda.current_stream() == cuda.default_stream(1)
    assert np.array_equal(c10.tensor(y, device="cuda:0").numpy(force=True), values)


def test_threads():
    failures = []

    def work(k: int) -> None:
        try:
            with cuda.stream(cuda.Stream()):
                for i in range(50):
                    x = c10.tensor(np.full(1000 * (k + 1), i, np.int32), device="cuda")
                    assert int(x.numpy(force=True).sum()) == i * 1000 * (k + 1)
                    x.record_stream(cuda.default_stream())
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_fork():
    c10.tensor([1.0], device="cuda")
    child = os.fork()
    if child == 0:
        try:
            c10.tensor([1.0], device="cuda")
        except c10.DeviceError as e:
            os._exit(0 if "spawn" in str(e) else 2)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert c10.tensor([1.0], device="cuda").item() == 1.0
