"""Memory that processes share: tensors, storages and modules."""

from __future__ import annotations

import gc
import os
import resource
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

import argand as torch
import argand.multiprocessing as mp
from argand import nn

METHODS = ["fork", "spawn", "forkserver"]


def descriptors():
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("numel", [3, 1 << 20])
def test_views_and_handles_follow(numel):
    x = torch.arange(numel, dtype=torch.float32)
    views = [x[1:], x.view(-1, 1), x.detach(), x[:2].view(torch.int32)]
    storage = x.untyped_storage()
    address = x.data_ptr()
    assert not x.is_shared() and not storage.is_shared()
    assert x.share_memory_() is x and x.is_shared() and views[0].is_shared()
    assert storage.is_shared() and storage.data_ptr() == x.data_ptr()
    assert x.tolist()[:3] == [0, 1, 2] and views[0].data_ptr() == x.data_ptr() + 4
    if numel > 3:  # whole pages stay where they are
        assert x.data_ptr() == address
    x.fill_(5)
    assert all(view.flatten()[0].item() in (5, 0x40A00000) for view in views)
    address = x.data_ptr()
    assert x.share_memory_().data_ptr() == address
    with pytest.raises(RuntimeError, match="that processes share"):
        storage.resize_(4 * numel + 4096)


def test_memory_comes_back():
    gc.collect()
    before = descriptors()
    for numel in (0, 3, 1 << 20):
        for _ in range(3):
            x = torch.ones(numel).share_memory_()
            y = torch.zeros(numel)  # the allocator's block next to it is nobody's
            assert x.sum() == numel and not y.is_shared()
            assert descriptors() == before + 1
            del x
    assert descriptors() == before
    x = torch.ones(1 << 20)
    assert not x.is_shared() and x.sum() == 1 << 20


def test_a_block_that_was_shared_is_private_again():
    x = torch.ones(1 << 20).share_memory_()
    address = x.data_ptr()
    del x
    y = torch.zeros(1 << 20)
    assert y.data_ptr() == address  # reused
    child = os.fork()
    if child == 0:
        y.fill_(7)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert y.sum() == 0


def test_history_and_gradients():
    w = nn.Parameter(torch.ones(4))
    (w * w).sum().backward()
    y = (w * w).sum()  # saves w
    w.share_memory_()
    assert w.requires_grad and w.is_leaf and not w.grad.is_shared()
    y.backward()
    assert w.grad.tolist() == [4.0] * 4
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    model(torch.ones(2, 3)).sum().backward()
    state = model.state_dict()
    parameters = list(model.parameters())
    assert model.share_memory() is model
    assert all(a is b for a, b in zip(model.parameters(), parameters, strict=True))
    assert all(t.is_shared() for t in [*model.parameters(), *model.buffers(), *state.values()])
    assert model[0].weight.grad.is_shared()


def test_what_cannot_be_shared():
    with pytest.raises(RuntimeError, match=r"share_memory_: got memory of device 'meta'"):
        torch.empty(3, device="meta").share_memory_()
    x = torch.ones(3)
    array = x.numpy()
    with pytest.raises(RuntimeError, match="1 others keep"):
        x.share_memory_()
    del array
    x.share_memory_()
    part = (y := torch.ones(4)).untyped_storage()[4:8]
    with pytest.raises(RuntimeError, match="others keep"):
        y.share_memory_()
    assert len(part) == 4
    large = torch.ones(1 << 20)
    array = large.numpy()
    large.share_memory_()
    array[0] = 3
    assert large[0] == 3
    with pytest.raises(torch.OutOfMemoryError, match="shared memory"):
        torch.UntypedStorage._new_shared(1 << 60)
    with pytest.raises(ValueError, match="-1 bytes"):
        torch.UntypedStorage._new_shared(-1)


def _numpy(folder):
    array = np.ones(4, np.float32)
    return torch.from_numpy(array), array


def _view(folder):
    array = np.ones(8, np.float32)
    return torch.from_numpy(array[2:6]), array


def _buffer(folder):
    data = bytearray(16)
    return torch.frombuffer(memoryview(data), dtype=torch.float32), data


def _library(folder):
    array = np.ones(4, np.float32)
    return torch.from_dlpack(array), array


def _file(folder):
    return torch.from_file(str(folder / "file"), shared=True, size=4), None


def _memmap(folder):
    array = np.memmap(folder / "file", np.float32, "w+", shape=(4,))
    return torch.from_numpy(array), None


def _slice(folder):
    x = torch.ones(8)
    return torch.empty(0).set_(x.untyped_storage()[8:24], 0, (4,), (1,)), x


@pytest.mark.parametrize("make", [_numpy, _view, _buffer, _library, _file, _memmap, _slice])
def test_memory_that_others_look_at_is_refused_and_sent_as_a_copy(make, tmp_path):
    x, other = make(tmp_path)
    x.fill_(2)
    with pytest.raises(RuntimeError, match=r"is also memory of .*clone\(\)"):
        x.share_memory_()
    queue = mp.Queue()
    with pytest.warns(UserWarning, match="16 bytes are sent as a copy"):
        queue.put((x, x[1:]))
        copy, part = queue.get(timeout=60)
    assert not x.is_shared() and copy.is_shared() and copy.tolist() == [2] * 4
    part.fill_(5)
    assert copy.tolist() == [2, 5, 5, 5] and x.tolist() == [2] * 4
    del other
    x.clone().share_memory_()


def test_memory_that_nobody_else_reaches_moves():
    array = np.arange(8, dtype=np.float32)
    sole = [
        torch.from_numpy(np.ones(4, np.float32)),
        torch.from_numpy(np.ones((4, 4), np.float32)[1:3].T),
        torch.frombuffer(bytearray(16), dtype=torch.float32),
        torch.from_numpy(np.frombuffer(b"abcd", np.uint8)),
        torch.from_numpy(array),
    ]
    del array
    for x in sole:
        values = x.clone()
        assert x.share_memory_().is_shared() and torch.equal(x, values)


@pytest.mark.parametrize("make", [_numpy, _slice])
def test_letting_go_of_the_other_is_enough(make, tmp_path):
    x, other = make(tmp_path)
    del other
    assert x.share_memory_().is_shared()


def test_a_tensor_whose_array_lives_reaches_a_queue():
    x = torch.ones(3)
    array = x.numpy()
    queue = mp.Queue()
    with pytest.warns(UserWarning, match="12 bytes are sent as a copy"):
        queue.put(x)
        got = queue.get(timeout=60)
    assert got.tolist() == [1, 1, 1] and not x.is_shared()
    array[0] = 4
    assert x[0] == 4 and got[0] == 1


def test_what_pickling_raises_in_the_thread_of_a_queue_reaches_the_receiver():
    queue = mp.Queue()
    queue.put([1, torch.ones(2, requires_grad=True) * 2])
    queue.put(torch.ones(2))
    with pytest.raises(RuntimeError, match=r"not a leaf.*detach\(\)"):
        queue.get(timeout=60)
    assert queue.get(timeout=60).tolist() == [1, 1]


def test_executors_go_on_after_what_cannot_be_sent():
    with ProcessPoolExecutor(1, mp.get_context("spawn")) as pool:
        with pytest.raises(RuntimeError, match="not a leaf"):
            pool.submit(square, torch.ones(2, requires_grad=True) * 2).result(60)
        assert pool.submit(square, torch.tensor(3)).result(60) == 9


def test_messages_that_nobody_takes_keep_one_descriptor_a_storage():
    queue = mp.SimpleQueue()
    queue.put(torch.ones(3))  # starts the thread that hands descriptors out
    queue.get()
    before = descriptors()
    x = torch.ones(3)
    for _ in range(10):
        queue.put(x)
    assert descriptors() == before + 1
    del x  # a message keeps the memory
    assert descriptors() == before + 1
    for _ in range(10):
        assert queue.get().tolist() == [1, 1, 1]
    for _ in range(100):  # the thread lets go after it has sent
        if descriptors() == before:
            break
        time.sleep(0.05)
    assert descriptors() == before


def test_out_of_descriptors():
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    kept = []
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors() + 8, limits[1]))
        with pytest.raises(RuntimeError, match="ulimit -n"):
            for _ in range(20):
                kept.append(torch.ones(3).share_memory_())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert len(kept) >= 1 and all(x.tolist() == [1, 1, 1] for x in kept)


def add_to_all(received, done):
    tensors = received.get()
    facts = []
    for t in tensors:
        facts.append((type(t).__name__, t.is_shared(), t.requires_grad, tuple(t.stride())))
        t.detach().add_(1)
    same = tensors[0].untyped_storage() is tensors[1].untyped_storage()
    back = torch.full((3,), 9.0)
    done.put((facts, same, back, tensors[2].grad))
    done.get()


@pytest.mark.parametrize("method", METHODS)
def test_a_queue_sends_views_of_the_same_memory(method):
    context = mp.get_context(method)
    there, done = context.Queue(), context.Queue()
    x = torch.zeros(4, 6)
    w = nn.Parameter(torch.zeros(2))
    w.grad = torch.ones(2)
    view = x.t()[1:3]
    large = torch.zeros(1 << 19, dtype=torch.float64)
    process = context.Process(target=add_to_all, args=(there, done))
    process.start()
    there.put((x, view, w, large))
    facts, same, back, grad = done.get(timeout=60)
    assert facts == [
        ("Tensor", True, False, (6, 1)),
        ("Tensor", True, False, (1, 6)),
        ("Parameter", True, True, (1,)),
        ("Tensor", True, False, (1,)),
    ]
    assert same and back.tolist() == [9, 9, 9] and back.is_shared() and grad is None
    assert x.is_shared() and w.tolist() == [1, 1] and large.sum() == 1 << 19
    assert x.sum() == 24 + 8 and view.sum() == 16
    done.put(None)
    process.join(60)
    assert process.exitcode == 0


def send_through(connection, storage, x):
    x += 1
    connection.send(x)
    storage_again = connection.recv()
    connection.send(
        storage_again.tolist() if hasattr(storage_again, "tolist") else storage_again[0]
    )
    connection.recv()


@pytest.mark.parametrize("method", METHODS)
def test_arguments_and_pipes(method):
    context = mp.get_context(method)
    ours, theirs = context.Pipe()
    x = torch.zeros(3, dtype=torch.uint8).share_memory_()
    process = context.Process(target=send_through, args=(theirs, x.untyped_storage(), x))
    process.start()
    got = ours.recv()
    assert x.tolist() == [1, 1, 1] and got.tolist() == [1, 1, 1]
    got += 1
    assert x.tolist() == [2, 2, 2]
    ours.send(x.untyped_storage())
    assert ours.recv() == 2
    ours.send(None)
    process.join(60)
    assert process.exitcode == 0


def test_histories_are_refused():
    queue = mp.SimpleQueue()
    with pytest.raises(RuntimeError, match=r"not a leaf.*detach\(\)"):
        queue.put(torch.ones(2, requires_grad=True) * 2)
    queue.put(torch.ones(2, requires_grad=True))
    assert queue.get().requires_grad


def square(x):
    return x * x


def test_pools():
    with mp.get_context("spawn").Pool(2) as pool:
        assert [t.item() for t in pool.map(square, [torch.tensor(i) for i in range(4)])] == [
            0,
            1,
            4,
            9,
        ]


def train(index, model, steps):
    torch.manual_seed(index)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(steps):
        x = torch.randn(16, 3)
        loss = (model(x) - x.sum(dim=1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@pytest.mark.parametrize("method", METHODS)
def test_hogwild(method):
    torch.manual_seed(0)
    model = nn.Linear(3, 1).share_memory()
    mp.start_processes(train, (model, 200), nprocs=2, start_method=method)
    torch.testing.assert_close(model.weight, torch.ones(1, 3), atol=0.05, rtol=0)


def test_nothing_is_left_of_a_process_that_is_killed():
    before = set(os.listdir("/dev/shm"))
    code = (
        "import os, signal, argand as torch\n"
        "kept = [torch.ones(n).share_memory_() for n in (3, 1 << 20)]\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    assert subprocess.run([sys.executable, "-c", code], env=environment).returncode == -9
    assert not {name for name in set(os.listdir("/dev/shm")) - before if "argand" in name}


def put_and_end(queue):
    queue.put(torch.ones(3))


def test_a_sender_that_has_ended_is_named():
    context = mp.get_context("fork")
    queue = context.SimpleQueue()
    process = context.Process(target=put_and_end, args=(queue,))
    process.start()
    process.join(60)
    with pytest.raises(RuntimeError, match="has ended"):
        queue.get()
