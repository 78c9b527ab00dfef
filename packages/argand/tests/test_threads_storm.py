"""Threads that all do everything at once compute what one thread does: kernels, gradients, a shared module, writes, DLPack, errors, compiled functions."""

from __future__ import annotations

import functools
import gc
import os
import time
from collections.abc import Callable
from typing import Any

import concurrency
import pytest

import argand as torch
import argand.nn.functional as F
from argand_dynamo import config

SECONDS = float(os.environ.get("ARGAND_TEST_SECONDS", "2"))
in_threads = functools.partial(concurrency.in_threads, timeout=240)

shared = torch.nn.Sequential(
    torch.nn.Linear(12, 24), torch.nn.LayerNorm(24), torch.nn.GELU(), torch.nn.Linear(24, 5)
)
large = torch.arange(1 << 18, dtype=torch.float32) % 97
table = torch.arange(400, dtype=torch.float32).reshape(100, 4)


def numbers(seed: int, *shape: int) -> Any:
    generator = torch.Generator()
    generator.manual_seed(seed)
    return torch.randn(*shape, generator=generator)


def graph_of_its_own(i: int) -> Any:
    x, w = numbers(i, 6, 8).requires_grad_(), numbers(i + 1, 8, 8).requires_grad_()
    y = torch.tanh(x @ w).softmax(-1)
    ((y * y).sum() + (x[1:] * 2).mean()).backward()
    return torch.cat([x.grad, w.grad])


def second_order(i: int) -> Any:
    x = numbers(i, 5).requires_grad_()
    (g,) = torch.autograd.grad((x.sin() * x.exp()).sum(), x, create_graph=True)
    return torch.autograd.grad(g.square().sum(), x)[0]


def shared_module(i: int) -> Any:
    loss = F.cross_entropy(shared(numbers(i, 7, 12)), torch.arange(7) % 5)
    return torch.cat([g.reshape(-1) for g in torch.autograd.grad(loss, list(shared.parameters()))])


def writes_to_its_own(i: int) -> Any:
    x = torch.zeros(50, 4)
    rows = x[::2]
    rows.add_(i).mul_(3)
    x[torch.arange(0, 50, 5)] -= table[i]
    x.t()[1].masked_fill_(x[:, 0] > 2, -1)
    return x.index_add_(0, torch.tensor([1, 1, 2]), torch.ones(3, 4))


def exchanges(i: int) -> Any:
    x = numbers(i, 9, 3)
    y = torch.from_dlpack(x.t())
    y += 1
    z = torch.from_dlpack(y.__dlpack__())
    return torch.from_numpy(z.numpy().copy()) + x.t()


def uses_the_pool(i: int) -> Any:
    y = (large * (i + 1)).sqrt()
    return torch.stack([y.sum(), y.amax(), y.cumsum(0)[-1], y.sort()[0][1000]])


def products(i: int) -> Any:
    a = numbers(i, 40, 40)
    return torch.linalg.solve(a @ a.t() + torch.eye(40) * 40, a[:, :2])


def convolution(i: int) -> Any:
    x = numbers(i, 2, 3, 10, 10).requires_grad_()
    F.max_pool2d(F.conv2d(x, torch.ones(4, 3, 3, 3) / 27, padding=1), 2).square().sum().backward()
    return x.grad


def errors(i: int) -> Any:
    x = torch.ones(3, requires_grad=True)
    for call, kind in (
        (lambda: torch.ones(2) + torch.ones(3), RuntimeError),
        (lambda: table[100 + i], IndexError),
        (lambda: torch.empty(1 << 50), torch.OutOfMemoryError),
        (lambda: (x * 2).backward(), RuntimeError),
        (lambda: torch.linalg.cholesky(-torch.eye(3)), torch.linalg.LinAlgError),
        (lambda: Refuses.apply(x).sum().backward(), ZeroDivisionError),
    ):
        with pytest.raises(kind):
            call()
    return x.detach() * i


class Refuses(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        raise ZeroDivisionError


def checkpoints(i: int) -> Any:
    x = numbers(i, 6, 6).requires_grad_()
    torch.utils.checkpoint.checkpoint(
        lambda t: (t @ t).relu(), x, use_reentrant=False
    ).sum().backward()
    return x.grad


def collects(i: int) -> Any:
    """Cycles through tensors, which the collector takes apart wherever it happens to run."""
    holder: list[Any] = [numbers(i, 3).requires_grad_()]
    holder[0].register_hook(lambda g, holder=holder: g * len(holder))
    holder.append(holder)
    (holder[0] * 2).sum().backward()
    if i == 0:
        gc.collect(0)
    return holder[0].grad


TASKS: list[Callable[[int], Any]] = [
    graph_of_its_own,
    second_order,
    shared_module,
    writes_to_its_own,
    exchanges,
    uses_the_pool,
    products,
    convolution,
    errors,
    checkpoints,
    collects,
]


def test_everything_at_once() -> None:
    """Each thread goes round all tasks, beginning with another one; the same input gives the same bits as alone."""
    expected = [[task(i) for task in TASKS] for i in range(concurrency.THREADS)]
    end = time.monotonic() + SECONDS

    def work(i: int) -> int:
        done = 0
        while time.monotonic() < end or done < 2 * len(TASKS):
            k = (i + done) % len(TASKS)
            got = TASKS[k](i)
            assert torch.equal(got, expected[i][k]), TASKS[k].__name__
            done += 1
        return done

    assert min(in_threads(work)) >= 2 * len(TASKS)
    assert all(parameter.grad is None for parameter in shared.parameters())


def test_the_first_call_of_a_compiled_function_from_all_threads() -> None:
    """All threads meet in the compiler, with two shapes and with gradients, while others run kernels and change modes."""
    torch.compiler.reset()

    def program(x: Any) -> Any:
        y = torch.tanh(shared(x)) + x.sum(-1, keepdim=True)
        torch.compiler.graph_break()
        return y * 2 if y.shape[0] > 3 else y - 1

    def gradients(function: Callable[[Any], Any], i: int) -> Any:
        x = numbers(i, 3 + i % 2, 12).requires_grad_()
        with torch.set_grad_enabled(i % 4 != 3):
            y = function(x)
        return torch.autograd.grad(y.sum(), x)[0] if i % 4 != 3 else y

    expected = [gradients(program, i) for i in range(concurrency.THREADS)]
    with config.patch(cache_plans=False):
        for _ in range(2):
            compiled = torch.compile(program)
            started = [0] * concurrency.THREADS

            def work(i: int, compiled: Any = compiled, started: list[int] = started) -> None:
                for _ in range(5):
                    got = gradients(compiled, i)
                    assert torch.allclose(got, expected[i], atol=1e-6), i
                    started[i] += 1
                    assert torch.equal(uses_the_pool(i), uses_the_pool(i))

            in_threads(work)
            assert started == [5] * concurrency.THREADS
            torch.compiler.reset()
