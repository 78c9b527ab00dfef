"""argand_c10.cuda and CUDA tensors, on the driver's stand-in (no kernels run), and without any driver."""

import copy
import ctypes
import gc
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import argand_c10 as c10
from argand_c10 import _C, cuda

_DRIVER = os.environ.get("ARGAND_CUDA_DRIVER", "")
if not Path(_DRIVER).is_file():
    pytest.skip("ARGAND_CUDA_DRIVER does not name the driver's stand-in", allow_module_level=True)
os.environ["ARGAND_CUDA_DRIVER"] = str(Path(_DRIVER).resolve())
fake = ctypes.CDLL(os.environ["ARGAND_CUDA_DRIVER"])
fake.fakeUsed.restype = ctypes.c_size_t
fake.fakeCapacity.argtypes = [ctypes.c_size_t]
_MIB = 1 << 20


@pytest.fixture(autouse=True)
def _clean():
    gc.collect()
    cuda.set_device(0)
    cuda.empty_cache()
    yield
    fake.fakeLazy(0)
    fake.fakeCapacity(4 << 30)


def _run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


# ---- without a driver ---------------------------------------------------------------------------
_NO_DRIVER = """
import time
import argand_c10 as c10
from argand_c10 import cuda
start = time.perf_counter()
assert not cuda.is_available() and cuda.device_count() == 0
assert time.perf_counter() - start < 0.1
assert not cuda.is_current_stream_capturing() and not cuda.is_bf16_supported()
assert cuda.memory_allocated() == 0 and cuda.memory_stats() == {} and list(cuda.default_generators) == []
cuda.manual_seed(1), cuda.manual_seed_all(1), cuda.empty_cache(), c10.manual_seed(3)
assert not c10.tensor([1]).is_pinned()
for f in (lambda: c10.tensor([1.0], device="cuda"), lambda: cuda.Stream(), lambda: cuda.synchronize(),
          lambda: cuda.get_device_name(), lambda: c10.Generator(device="cuda"), lambda: cuda.init(),
          lambda: c10.tensor([1.0]).pin_memory(), lambda: cuda.mem_get_info()):
    try:
        f()
    except c10.DeviceError as e:
        assert "could not be loaded" in str(e) and "ARGAND_CUDA_DRIVER" in str(e), e
    else:
        raise AssertionError("no error")
"""


def test_no_driver():
    done = _run(_NO_DRIVER, ARGAND_CUDA_DRIVER="/nowhere/libcuda.so.1")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("environment", "text"),
    [
        ({"FAKE_CUDA_DEVICES": "0"}, "found no device"),
        ({"FAKE_CUDA_FAIL": "cuInit:999"}, "could not be initialised"),
    ],
)
def test_no_device(environment, text):
    code = "import argand_c10 as c10; assert not c10.cuda.is_available(); c10.cuda.init()"
    done = _run(code.replace("c10;", "c10, argand_c10.cuda;", 1), **environment)
    assert done.returncode == 1 and text in done.stderr.splitlines()[-1]


def test_a_library_that_is_no_driver():
    done = _run(
        "import argand_c10.cuda as c; assert not c.is_available(); c.init()",
        ARGAND_CUDA_DRIVER="libm.so.6",
    )
    assert "has no function cuInit" in done.stderr


def test_import_loads_no_driver():
    code = "import argand_c10.cuda; assert 'libcuda' not in open('/proc/self/maps').read()"
    assert _run(code).returncode == 0


_NO_CACHING = """
import argand_c10 as c10
from argand_c10 import cuda
for _ in range(2):
    a, b = (c10._C._empty_strided((n,), None, c10.uint8, "cuda") for n in (5, 3 << 20))
    assert cuda.memory_reserved() == cuda.memory_allocated() == 5 + (3 << 20)
    del a
    assert cuda.memory_reserved() == 3 << 20
    del b
    assert cuda.memory_reserved() == 0
assert cuda.memory_stats()["num_device_alloc"] == cuda.memory_stats()["num_device_free"] == 4
"""


def test_memory_without_a_cache():
    done = _run(_NO_CACHING, ARGAND_CUDA_ALLOC_CONF="caching:off")
    assert done.returncode == 0 and not done.stderr, done.stderr


# ---- devices, streams, events ---------------------------------------------------------------------
def test_devices():
    assert cuda.is_available() and cuda.device_count() == 2 and cuda.current_device() == 0
    with cuda.device("cuda:1"):
        assert cuda.current_device() == 1
        assert c10.tensor([1.0], device="cuda").device == c10.device("cuda:1")
        with cuda.device(None):
            assert cuda.current_device() == 1
    with cuda.device_of(c10.tensor([1.0], device=1)):
        assert cuda.current_device() == 1
    assert cuda.current_device() == 0
    assert cuda.get_device_name(1) == "Fake GPU 1" and cuda.get_device_capability("cuda") == (9, 0)
    properties = cuda.get_device_properties()
    assert properties.total_memory == 4 << 30 and properties.warp_size == 32
    assert properties.multi_processor_count == 4 and cuda.get_arch_list() == ["sm_90"]
    assert cuda.can_device_access_peer(0, 1)
    for bad in (2, "cuda:7"):
        with pytest.raises(c10.DeviceError, match="got device index"):
            cuda.set_device(bad)
    with pytest.raises(ValueError, match="expected a CUDA device"):
        cuda.synchronize("cpu")
    with pytest.raises(c10.DeviceError, match="there are 2 devices"):
        c10.tensor([1], device="cuda:2")


def test_streams():
    default = cuda.default_stream()
    assert cuda.current_stream() == default and default.cuda_stream == 0 and default.query()
    (a, b) = (cuda.Stream(), cuda.Stream(priority=-1))
    assert a != b and a.device == c10.device("cuda:0") and len({a, b, default}) == 3
    with cuda.stream(a):
        assert cuda.current_stream() == a
        with cuda.stream(None):
            assert cuda.current_stream() == a
        with b:
            assert cuda.current_stream() == b
    assert cuda.current_stream() == default
    other = cuda.Stream("cuda:1")
    with cuda.stream(other):
        assert cuda.current_device() == 1 and cuda.current_stream(0) == default
    assert cuda.current_device() == 0 and cuda.current_stream(1) == cuda.default_stream(1)
    seen = []
    with cuda.stream(a):
        thread = threading.Thread(target=lambda: seen.append(cuda.current_stream()))
        thread.start()
        thread.join()
    assert seen == [default]
    assert cuda.ExternalStream(a.cuda_stream) == a == cuda.get_stream_from_external(a.cuda_stream)
    assert cuda.Stream.priority_range() == (0, -5)


def test_events():
    fake.fakeLazy(1)
    (s, t) = (cuda.Stream(), cuda.Stream())
    (start, end) = (cuda.Event(enable_timing=True), cuda.Event(enable_timing=True))
    assert start.query() and start.device is None
    host = c10.tensor([1.0]).pin_memory()
    device = c10.tensor([0.0], device="cuda")
    with cuda.stream(s):
        start.record()
        _copy_async(device, host)
        end.record()
    assert start.query() and not end.query() and not s.query()
    t.wait_stream(s)
    t.synchronize()
    assert end.query() and start.elapsed_time(end) == 1.0
    with pytest.raises(ValueError, match="without timing"):
        start.elapsed_time(cuda.Event())
    with pytest.raises(RuntimeError, match="expected the same device"):
        start.record(cuda.Stream(1))
    with pytest.raises(ValueError, match="at most one"):
        cuda.Event(enable_timing=True, interprocess=True)


def _copy_async(device: c10.Tensor, host: c10.Tensor) -> None:
    """Put a copy onto the current stream without waiting; operators that do so come from other packages."""
    runtime = fake.cuMemcpyHtoDAsync_v2
    runtime.argtypes = [ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    stream = cuda.current_stream().cuda_stream
    assert runtime(device.data_ptr(), host.data_ptr(), host.nbytes, stream) == 0


# ---- memory ------------------------------------------------------------------------------------------
def test_memory_functions():
    cuda.reset_peak_memory_stats()
    before = cuda.memory_allocated()
    x = c10.tensor(np.zeros(1000, np.float32), device="cuda")
    assert cuda.memory_allocated() - before == 4096 and cuda.memory_reserved() >= 2 * _MIB
    del x
    assert cuda.memory_allocated() == before and cuda.max_memory_allocated() == before + 4096
    stats = cuda.memory_stats()
    assert stats["allocated_bytes.all.peak"] == before + 4096 and stats["num_ooms"] == 0
    assert cuda.memory_stats_as_nested_dict()["allocated_bytes"]["all"]["peak"] == before + 4096
    assert stats["requested_bytes.small_pool.current"] >= 0 and len(stats) == 9 * 3 * 4 + 5
    cuda.empty_cache()
    assert fake.fakeUsed(0) == cuda.memory_reserved()
    free, total = cuda.mem_get_info()
    assert total == 4 << 30 and free == total - fake.fakeUsed(0)
    text = cuda.memory_summary()
    assert "Allocated memory" in text and "from large pool" in text
    assert "from large pool" not in cuda.memory_summary(abbreviated=True)
    assert len({len(line) for line in text.splitlines()}) == 1


def test_snapshot():
    x = c10.tensor(np.zeros(3 * _MIB, np.uint8), device="cuda")
    segment = next(s for s in cuda.memory_snapshot() if s["address"] == x.data_ptr())
    assert segment["total_size"] == 20 * _MIB and segment["segment_type"] == "large"
    assert segment["allocated_size"] == 3 * _MIB == segment["blocks"][0]["size"]
    assert [b["state"] for b in segment["blocks"]] == ["active_allocated", "inactive"]


def test_out_of_memory_is_recoverable():
    fake.fakeCapacity(fake.fakeUsed(0) + 30 * _MIB)
    with pytest.raises(c10.OutOfMemoryError) as error:
        _C._empty_strided((40 * _MIB,), None, c10.uint8, "cuda")
    assert "Tried to allocate 40.00 MiB" in str(error.value) and "empty_cache" in str(error.value)
    assert cuda.OutOfMemoryError is c10.OutOfMemoryError
    x = _C._empty_strided((30 * _MIB,), None, c10.uint8, "cuda")
    del x
    _C._empty_strided((28 * _MIB,), None, c10.uint8, "cuda")
    assert cuda.memory_stats()["num_ooms"] >= 1


def test_memory_fraction():
    with pytest.raises(ValueError, match="from 0 to 1"):
        cuda.set_per_process_memory_fraction(1.5)
    cuda.set_per_process_memory_fraction(0.001)
    with pytest.raises(c10.OutOfMemoryError, match="limit of this process"):
        _C._empty_strided((40 * _MIB,), None, c10.uint8, "cuda")
    assert cuda.get_per_process_memory_fraction() == pytest.approx(0.001)
    cuda.set_per_process_memory_fraction(1.0)
    _C._empty_strided((40 * _MIB,), None, c10.uint8, "cuda")


def test_mem_pool():
    pool = cuda.MemPool()
    with cuda.use_mem_pool(pool):
        x = c10.tensor([1.0], device="cuda")
    y = c10.tensor([1.0], device="cuda")
    ids = {s["address"]: s["segment_pool_id"] for s in cuda.memory_snapshot()}
    assert ids[x.data_ptr()] == (0, pool.id[1]) and ids.get(y.data_ptr(), (0, 0)) == (0, 0)


def test_record_stream():
    fake.fakeLazy(1)
    s = cuda.Stream()
    x = c10.tensor([1.0], device="cuda")
    address = x.data_ptr()
    pinned = c10.tensor([2.0]).pin_memory()
    with cuda.stream(s):
        _copy_async(x, pinned)
    x.record_stream(s)
    del x
    y = c10.tensor([1.0], device="cuda")
    assert y.data_ptr() != address
    s.synchronize()
    assert c10.tensor([1.0], device="cuda").data_ptr() == address
    with pytest.raises(c10.DeviceError, match="got a tensor on cpu"):
        pinned.record_stream(s)


def test_pinned_memory():
    x = c10.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert not x.is_pinned()
    p = x.pin_memory()
    assert (
        p.is_pinned()
        and p.pin_memory() is p
        and p.tolist() == x.tolist()
        and p.device.type == "cpu"
    )
    assert c10.tensor([1.0], pin_memory=True).is_pinned()
    assert np.array_equal(p.numpy(), x.numpy())
    address = p.data_ptr()
    del p
    gc.collect()
    assert c10.tensor([5.0]).pin_memory().data_ptr() == address
    with pytest.raises(RuntimeError, match="cannot pin 'cuda'"):
        c10.tensor([1.0], device="cuda").pin_memory()


# ---- tensors --------------------------------------------------------------------------------------------
def test_tensors():
    x = c10.tensor([[1.0, 2.0], [3.0, 4.0]], device="cuda")
    assert x.is_cuda and not x.is_cpu and x.get_device() == 0 and x.device == c10.device("cuda", 0)
    assert x.tolist() == [[1.0, 2.0], [3.0, 4.0]] and c10.tensor([7], device=0).item() == 7
    assert "device='cuda:0'" in repr(x) and "3." in repr(x)
    with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy"):
        x.numpy()
    with pytest.raises(TypeError, match=r"Use Tensor.cpu\(\)"):
        np.asarray(x)
    assert x.numpy(force=True)[1, 0] == 3
    assert c10.tensor(x).device == x.device and c10.tensor(x, device="cpu").tolist() == x.tolist()
    assert c10.tensor(x, device="cuda:1").tolist() == x.tolist()
    meta = x.data_ptr()
    assert c10.as_tensor(x, device="cuda").data_ptr() == meta
    assert c10.as_tensor(x, device="cuda:1").device.index == 1


def test_a_large_tensor_prints_its_edges_only():
    values = np.arange(900 * 1000, dtype=np.float32).reshape(900, 1000)
    x = c10.tensor(values, device="cuda")
    copies = fake.fakeCalls(b"cuMemcpyDtoHAsync_v2")
    assert repr(x).replace(", device='cuda:0'", "") == repr(c10.tensor(values))
    assert 1 <= fake.fakeCalls(b"cuMemcpyDtoHAsync_v2") - copies <= 24
    transposed = _C._as_strided(x, (1000, 900), (1, 1000), 0)
    assert _C._edge_list(transposed, 2) == _C._edge_list(c10.tensor(values.T.copy()), 2)


def test_pickle_and_copy():
    x = c10.tensor([1.0, 2.0], device="cuda:1")
    for y in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert y.device == x.device and y.tolist() == x.tolist() and y.data_ptr() != x.data_ptr()
    assert copy.copy(x).data_ptr() == x.data_ptr()


def test_array_interface():
    x = c10.tensor([[1.0, 2.0]], device="cuda")
    expected = {
        "typestr": "<f4",
        "shape": (1, 2),
        "strides": None,
        "data": (x.data_ptr(), False),
        "version": 2,
    }
    assert x.__cuda_array_interface__ == expected
    assert not hasattr(c10.tensor([1.0]), "__cuda_array_interface__")
    view = _C._as_strided(x, (2,), (1,), 0)
    assert view.__cuda_array_interface__["shape"] == (2,)


def test_modules_move_with_their_parameters():
    """Parameters stay the same objects: an optimizer made before still has them, and modules still share them."""
    first, second = c10.Module(), c10.Module()
    first.weight = second.weight = weight = c10.Parameter(c10.tensor([1.0, 2.0]))
    both = c10.Module()
    both.first, both.second = first, second
    both._apply(lambda t: c10.tensor(t, device="cuda:1"))
    assert first.weight is weight and second.weight is weight
    assert weight.device == c10.device("cuda:1") and weight.is_leaf and weight.tolist() == [1, 2]
    both._apply(lambda t: c10.tensor(t, device="cpu"))
    assert first.weight is weight and weight.device.type == "cpu" and weight.tolist() == [1, 2]
    x = c10.tensor([1.0], device="cuda")
    x.data = c10.tensor([5.0, 6.0])
    assert x.device.type == "cpu" and x.tolist() == [5, 6]
    with pytest.raises(RuntimeError, match="the meta device"):
        x.data = c10.tensor([1.0], device="meta")


def test_dlpack():
    x = c10.tensor([1.0, 2.0, 3.0], device="cuda:1")
    assert x.__dlpack_device__() == (2, 1)
    y = c10.from_dlpack(x)
    assert y.device == x.device and y.data_ptr() == x.data_ptr() and y.tolist() == [1, 2, 3]
    assert c10.from_dlpack(x.__dlpack__(dl_device=(1, 0))).device.type == "cpu"
    with pytest.raises(BufferError, match="where the tensor is"):
        x.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(BufferError, match="stream 0"):
        x.__dlpack__(stream=0)


def test_dlpack_orders_streams():
    fake.fakeLazy(1)
    (s, t) = (cuda.Stream(), cuda.Stream())
    x = c10.tensor([0.0], device="cuda")
    with cuda.stream(s):
        _copy_async(x, c10.tensor([5.0]).pin_memory())
        x.__dlpack__(stream=-1)
        assert fake.fakePending(ctypes.c_void_p(t.cuda_stream)) == 0
        capsule = x.__dlpack__(stream=t.cuda_stream)
    assert fake.fakePending(ctypes.c_void_p(t.cuda_stream)) == 1
    with cuda.stream(t):
        assert c10.from_dlpack(capsule).item() == 5.0


# ---- random numbers ------------------------------------------------------------------------------------------
def test_generators():
    g = c10.Generator(device="cuda")
    assert g.device == c10.device("cuda:0")
    c10.manual_seed(123)
    assert len(cuda.default_generators) == 2 and cuda.default_generators[1].initial_seed() == 123
    c10.manual_seed(5)
    assert cuda.initial_seed() == 5
    state = cuda.get_rng_state()
    cuda.manual_seed(9)
    cuda.set_rng_state(state)
    assert cuda.initial_seed() == 5
    with c10.fork_rng():
        cuda.manual_seed_all(77)
        c10.manual_seed(78)
    assert cuda.initial_seed() == 5 and c10.initial_seed() == 5
    states = cuda.get_rng_state_all()
    cuda.seed_all()
    cuda.set_rng_state_all(states)
    assert [s.initial_seed() for s in cuda.default_generators] == [5, 5]


def test_states_of_all_generators():
    c10.tensor([1.0], device="cuda:1")
    states = c10.random.get_rng_states()
    assert [str(g.device) for g, _ in states][0] == "cpu" and "cuda:1" in [
        str(g.device) for g, _ in states
    ]
    before = [g.initial_seed() for g, _ in states]
    c10.manual_seed(before[0] + 1)
    c10.random.set_rng_states(states)
    assert [g.initial_seed() for g, _ in states] == before


def test_device_seed_before_first_use():
    code = "import argand_c10 as c, argand_c10.cuda; c.manual_seed(42); assert c.cuda.initial_seed() == 42"
    assert _run(code).returncode == 0


# ---- graphs ---------------------------------------------------------------------------------------------------
def test_graph():
    x = c10.tensor([0.0], device="cuda")
    pinned = c10.tensor([3.0]).pin_memory()
    g = cuda.CUDAGraph()
    assert not cuda.is_current_stream_capturing()
    with cuda.graph(g):
        assert cuda.is_current_stream_capturing()
        inside = _C._empty_strided((100,), None, c10.float32, "cuda")
        _copy_async(x, pinned)
    assert x.item() == 0.0
    g.replay()
    assert x.item() == 3.0
    pool = next(
        s["segment_pool_id"] for s in cuda.memory_snapshot() if s["address"] == inside.data_ptr()
    )
    assert pool[1] == g.pool()[1]
    with pytest.raises(RuntimeError, match="captured before"):
        g.capture_begin()
    h = cuda.CUDAGraph()
    with cuda.graph(h, pool=g.pool()):
        _copy_async(x, pinned)
    assert h.pool() == g.pool()
    del inside
    g.reset()
    h.reset()
    with pytest.raises(RuntimeError, match="without work"):
        g.replay()
    cuda.empty_cache()
    assert all(
        s["segment_pool_id"][1] == 0 for s in cuda.memory_snapshot() if s["active_size"] == 0
    )
    handle = cuda.graph_pool_handle()
    with cuda.graph(g, pool=handle):
        _copy_async(x, pinned)
    assert g.pool() == handle


def test_failed_capture():
    g = cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="on the default stream"):
        g.capture_begin()
    with (
        pytest.raises(ValueError, match="capture_error_mode"),
        cuda.graph(g, capture_error_mode="some"),
    ):
        pass
    assert cuda.current_stream() == cuda.default_stream()
    with pytest.raises(c10.DeviceError, match="while a graph is captured"), cuda.graph(g):
        c10.tensor([1.0], device="cuda")
    assert cuda.current_stream() == cuda.default_stream() and not cuda.is_current_stream_capturing()
    with pytest.raises(ZeroDivisionError), cuda.graph(g):
        raise ZeroDivisionError
    g.reset()
    with cuda.graph(g):
        pass
    g.replay()


# ---- nothing is kept --------------------------------------------------------------------------------------------
def test_no_leaks():
    def step() -> None:
        s = cuda.Stream()
        with cuda.stream(s):
            x = c10.tensor([1.0, 2.0], device="cuda")
            x.record_stream(cuda.default_stream())
            x.tolist()
            c10.from_dlpack(x)
            c10.tensor([3.0]).pin_memory()
            s.record_event().synchronize()

    for _ in range(100):
        step()
    counts = (cuda.memory_reserved(), cuda.memory_allocated(), fake.fakeCalls(b"cuMemHostAlloc"))
    for _ in range(100):
        step()
    assert counts == (
        cuda.memory_reserved(),
        cuda.memory_allocated(),
        fake.fakeCalls(b"cuMemHostAlloc"),
    )


def test_threads():
    failures = []

    def work(seed: int) -> None:
        try:
            with cuda.stream(cuda.Stream(seed % 2)):
                for i in range(100):
                    x = c10.tensor([float(i)] * (1 + i * seed), device="cuda")
                    assert x.device.index == seed % 2 and x.tolist()[-1] == i
                    x.record_stream(cuda.default_stream())
        except BaseException as e:
            failures.append(e)

    before = cuda.memory_allocated(0), cuda.memory_allocated(1)
    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert (cuda.memory_allocated(0), cuda.memory_allocated(1)) == before
