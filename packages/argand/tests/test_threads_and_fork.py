"""Many Python threads at once, and processes made by fork after the library was used."""

from __future__ import annotations

import functools
import threading

import concurrency
import pytest

import argand as torch
import argand.nn.functional as F

THREADS = concurrency.THREADS
in_threads = functools.partial(concurrency.in_threads, timeout=120)
in_child = functools.partial(concurrency.in_child, seconds=60)


def training_steps(seed, steps=5):
    """A little of everything: factories, products, a convolution, reductions, gradients, in-place updates."""
    generator = torch.Generator()
    generator.manual_seed(seed)
    x = torch.randn(4, 3, 12, 12, generator=generator)
    weight = torch.randn(5, 3, 3, 3, generator=generator).requires_grad_()
    head = torch.randn(500, 7, generator=generator).requires_grad_()
    target = torch.arange(4) % 7
    losses = []
    for _ in range(steps):
        loss = F.cross_entropy(F.relu(F.conv2d(x, weight)).flatten(1) @ head / 20, target)
        loss.backward()
        with torch.no_grad():
            for parameter in (weight, head):
                parameter -= 0.01 * parameter.grad
                parameter.grad = None
        losses.append(loss.item())
    return losses


def test_threads_compute_what_one_thread_does():
    expected = [training_steps(i) for i in range(THREADS)]
    assert in_threads(training_steps) == expected


def test_threads_share_large_operators():
    """Kernels that use the thread pool, from several threads: each gets its own right result."""
    x = torch.arange(1 << 20, dtype=torch.float32)

    def work(i):
        for _ in range(10):
            y = x + i
            assert y[-1].item() == (1 << 20) - 1 + i
            assert y.sum().item() == pytest.approx(
                float((1 << 20) * ((1 << 20) - 1) / 2 + i * (1 << 20)), rel=1e-5
            )
            a = torch.full((256, 256), float(i + 1))
            assert torch.equal(a @ a, torch.full((256, 256), 256.0 * (i + 1) ** 2))

    in_threads(work)


def test_one_tensor_read_by_all_threads():
    x = torch.randn(300, 300)
    expected = torch.softmax(x @ x.t(), -1)

    def work(_):
        for _ in range(20):
            assert torch.equal(torch.softmax(x @ x.t(), -1), expected)
            assert x[3:7].t().is_contiguous() is False

    in_threads(work)


def test_views_and_references_made_and_dropped_at_once():
    x = torch.zeros(64, 64)

    def work(i):
        for _ in range(2000):
            row = x[i]
            row = row.view(8, 8).t()
            assert row.shape == (8, 8)
        x[i] += 1

    in_threads(work)
    assert x[:THREADS].sum().item() == THREADS * 64
    assert x[THREADS:].sum().item() == 0


def test_backward_in_many_threads_adds_to_one_leaf():
    weight = torch.ones(10, requires_grad=True)

    def work(_):
        for _ in range(50):
            (weight * 2).sum().backward()

    in_threads(work)
    assert weight.grad.tolist() == [THREADS * 50 * 2.0] * 10


def test_gradient_mode_belongs_to_a_thread():
    seen = {}

    def work(i):
        if i % 2:
            with torch.no_grad():
                seen[i] = (torch.ones(2, requires_grad=True) * 2).requires_grad
        else:
            seen[i] = (torch.ones(2, requires_grad=True) * 2).requires_grad

    in_threads(work)
    assert seen == {i: i % 2 == 0 for i in range(THREADS)}
    assert torch.is_grad_enabled()


def test_errors_in_threads_stay_there():
    def work(i):
        for _ in range(200):
            if i % 2:
                with pytest.raises(RuntimeError, match="3"):
                    torch.zeros(2) + torch.zeros(3)
            else:
                assert (torch.ones(2) + torch.ones(2)).tolist() == [2.0, 2.0]

    in_threads(work)


def test_fork_after_use():
    """The parent's pool has threads that the child lacks; its locks and its work must not be waited for."""
    expected = training_steps(3)
    large = torch.ones(1 << 21)
    assert large.sum().item() == 1 << 21

    def work():
        assert training_steps(3) == expected
        assert (large + 1).sum().item() == 1 << 22
        a = torch.ones(512, 512)
        assert (a @ a)[0, 0].item() == 512

    for _ in range(3):
        in_child(work)
    assert training_steps(3) == expected


def test_fork_while_threads_work():
    stop = threading.Event()

    def busy():
        x = torch.ones(1 << 19)
        while not stop.is_set():
            x = x * 1.0

    workers = [threading.Thread(target=busy) for _ in range(2)]
    for worker in workers:
        worker.start()
    try:
        for _ in range(10):
            in_child(lambda: training_steps(1, steps=2))
    finally:
        stop.set()
        for worker in workers:
            worker.join()


def test_child_changes_do_not_reach_the_parent():
    x = torch.zeros(1000)
    in_child(lambda: x.add_(1))
    assert x.sum().item() == 0


def test_random_numbers_after_fork_follow_the_seed():
    torch.manual_seed(5)
    expected = torch.rand(4).tolist()

    def work():
        torch.manual_seed(5)
        assert torch.rand(4).tolist() == expected

    in_child(work)


def test_denormals_are_flushed_in_all_threads_of_a_caller():
    def survivors(n):
        x = torch.full((n,), 0x1000, dtype=torch.int32).view(torch.float32)  # 5.7e-42
        return int(((x * 0.5).view(torch.int32) != 0).sum())

    def flushing(i):
        torch.set_flush_denormal(i == 0)
        return survivors(1 << 21)

    try:
        for on in (True, False, True):
            assert torch.set_flush_denormal(on)
            assert [survivors(n) for n in (3, 1 << 21)] == ([0, 0] if on else [3, 1 << 21])
        torch.set_flush_denormal(False)
        assert in_threads(flushing, 2) == [0, 1 << 21]  # a thread's mode is its own
        assert survivors(1 << 21) == 1 << 21
    finally:
        torch.set_flush_denormal(False)
    with pytest.raises(TypeError, match="expects a bool"):
        torch.set_flush_denormal(1)
