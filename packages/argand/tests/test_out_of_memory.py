"""Where memory ends there is a typed error, nothing is lost or kept, and the process goes on."""

from __future__ import annotations

import gc
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import concurrency
import failing_memory
import pytest

import argand as torch
import argand.nn.functional as F
import argand_c10
from argand_dynamo._C import CompiledFunction

MIB = 1 << 20
ERRORS = (torch.OutOfMemoryError, MemoryError)

one = torch.ones(1)
IMPOSSIBLE: dict[str, Callable[[], Any]] = {
    "empty": lambda: torch.empty(1 << 50),
    "zeros": lambda: torch.zeros(1 << 50),
    "rand": lambda: torch.rand(1 << 50),
    "arange": lambda: torch.arange(1 << 50),
    "pointwise": lambda: one.expand(1 << 50) + 1,
    "clone": lambda: one.expand(1 << 50).clone(),
    "cat": lambda: torch.cat([one.expand(1 << 50)] * 2),
    "repeat": lambda: one.repeat(1 << 50),
    "pad": lambda: F.pad(one, (0, 1 << 50)),
    "sort": lambda: one.expand(1 << 50).sort(),
    "matmul": lambda: one.expand(1 << 25, 1) @ one.expand(1, 1 << 25),
    "bincount": lambda: torch.bincount(torch.tensor([1 << 50])),
    "one_hot": lambda: F.one_hot(torch.tensor([1 << 50])),
    "conv": lambda: F.conv1d(one.expand(1, 1, 1 << 46), one.expand(1 << 10, 1, 1)),
    "tolist": lambda: one.expand(1 << 45).tolist(),
    "layer": lambda: torch.nn.Linear(1 << 30, 1 << 20),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_what_cannot_be_allocated(name: str) -> None:
    before = argand_c10.cpu.memory_allocated()
    with pytest.raises(ERRORS) as caught:
        IMPOSSIBLE[name]()
    if name != "tolist":
        assert "could not allocate" in str(caught.value)
    del caught
    gc.collect()
    assert argand_c10.cpu.memory_allocated() <= before + 64
    assert (torch.ones(10) + 1).sum().item() == 20


def test_a_failed_write_changes_nothing() -> None:
    x = torch.ones(4)
    for call in (
        lambda: x.resize_(1 << 50),
        lambda: torch.add(one.expand(1 << 50), 1, out=x),
        lambda: x.set_(torch.empty(1 << 50)),
    ):
        with pytest.raises(ERRORS):
            call()
        assert x.tolist() == [1.0] * 4


def test_backward_that_cannot_allocate() -> None:
    x = torch.ones(1, requires_grad=True)
    y = (x.expand(1 << 50)[:4] * 2).sum()  # its gradient is as large as what was cut from
    with pytest.raises(torch.OutOfMemoryError, match="could not allocate"):
        y.backward()
    assert x.grad is None
    (x * 3).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [3.0]


# ---- limits of the process ----------------------------------------------------------------------------------------------
class Limit:
    """So many more bytes of address space than the process has now."""

    def __init__(self, more: float) -> None:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        self.limit = pages * resource.getpagesize() + int(more)

    def __enter__(self) -> None:
        resource.setrlimit(resource.RLIMIT_AS, (self.limit, resource.RLIM_INFINITY))

    def __exit__(self, *error: object) -> None:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


N = 600  # a square of float32 is 1.4 MB: mapped for itself, so that a limit is met exactly


def eager_cases() -> dict[str, Callable[[], Any]]:
    x = torch.linspace(-3, 3, N * N)
    square, image = x.reshape(N, N), x.reshape(1, 4, 300, 300)
    weight, order = torch.full((8, 4, 3, 3), 0.1), torch.arange(N * N - 1, -1, -1)
    heads = x.reshape(1, 6, N, 100)
    return {
        "chain": lambda: ((x * 2 + x).exp() - x).tanh(),
        "casts": lambda: x.to(torch.bfloat16).exp().double(),
        "softmax": lambda: torch.softmax(square, -1),
        "matmul": lambda: square @ square.t(),
        "bfloat16": lambda: square.bfloat16() @ square.bfloat16().t(),
        "einsum": lambda: torch.einsum("ij,kj,kl->il", square, square, square),
        "sort": lambda: x.sort()[0],
        "unique": lambda: torch.unique(x),
        "index": lambda: x[order],
        "index_put": lambda: torch.zeros_like(x).index_put_((order,), x, accumulate=True),
        "masked": lambda: x[x > 0],
        "cumsum": lambda: square.cumsum(0),
        "cat": lambda: torch.cat([x, x]),
        "conv2d": lambda: F.conv2d(image, weight),
        "batch_norm": lambda: F.batch_norm(image, None, None, training=True),
        "interpolate": lambda: F.interpolate(image, scale_factor=1.5, mode="bilinear"),
        "attention": lambda: F.scaled_dot_product_attention(heads, heads, heads),
        "inverse": lambda: torch.linalg.inv(torch.eye(N) * 2 + square * 0),
        "eigh": lambda: torch.linalg.eigvalsh(square[:200, :200] + square[:200, :200].t()),
        "scatter_add": lambda: torch.zeros_like(x).scatter_add(0, order, x),
    }


def gradient_of(f: Callable[[Any], Any], *shape: int) -> Callable[[], Any]:
    def run() -> Any:
        x = torch.linspace(-1, 1, N * N)[: torch.Size(shape).numel()].reshape(shape)
        x.requires_grad_()
        f(x).sum().backward()
        return x.grad

    return run


def gradient_cases() -> dict[str, Callable[[], Any]]:
    weight, layer = torch.full((8, 4, 3, 3), 0.1), torch.nn.Linear(N, N)

    def step() -> Any:
        p = torch.zeros(N * N, requires_grad=True)
        p.grad = torch.ones(N * N)
        torch.optim.Adam([p]).step()
        return p.detach()

    return {
        "chain": gradient_of(lambda a: (a.exp() * a).tanh() / 2, N * N),
        "softmax": gradient_of(lambda a: torch.softmax(a, -1) ** 2, N, N),
        "matmul": gradient_of(lambda a: a @ a, N, N),
        "conv2d": gradient_of(lambda a: F.relu(F.conv2d(a, weight)), 1, 4, 300, 300),
        "layer": gradient_of(layer, N, N),
        "sort": gradient_of(lambda a: a.sort()[0] * a, N * N),
        "adam": step,
    }


def compiled_cases() -> dict[str, Callable[[], Any]]:
    x = torch.linspace(-3, 3, N * N).reshape(N, N)
    fused = torch.compile(lambda a: (torch.softmax(a.sin() * 2 + 1, -1) @ a).cumsum(0))
    mixed = torch.compile(lambda a: (a.exp().sum(-1) * a.mean(0)).sort()[0])
    return {
        "forward": lambda: fused(x),
        "reductions": lambda: mixed(x),
        "backward": gradient_of(fused, N, N),
    }


def run_under_limits(cases: dict[str, Callable[[], Any]]) -> None:
    """Every case with more and more memory: an error until there is enough, then the right result."""
    failed = 0
    gc.collect()
    gc.freeze()  # so that collections are quick
    for name, case in cases.items():
        want = case().clone()
        for more in (0.3, 1, 2, 3, 4.5, 6, 8, 11, 16, 32):
            argand_c10.cpu.empty_cache()
            before = argand_c10.cpu.memory_allocated()
            got = None
            with Limit(more * MIB):
                try:
                    got = case()
                except ERRORS:
                    failed += 1
            if got is not None:
                assert torch.allclose(got, want, equal_nan=True), f"{name} with {more} MiB"
            del got
            gc.collect()
            kept = argand_c10.cpu.memory_allocated() - before
            assert kept <= 1024, f"{name} with {more} MiB keeps {kept} bytes"
        assert torch.equal(case(), want), f"{name} after errors"
    assert failed > len(cases), "the limits were never met"


limits = pytest.mark.skipif(
    "libasan" in os.environ.get("LD_PRELOAD", ""), reason="AddressSanitizer needs the address space"
)


@limits
@pytest.mark.parametrize(
    "cases", [eager_cases, gradient_cases, compiled_cases], ids=["eager", "gradients", "compiled"]
)
def test_limited_memory(cases: Callable[[], dict[str, Callable[[], Any]]]) -> None:
    made = cases()
    for case in made.values():
        case()  # compiles where that is to be done
    concurrency.in_child(lambda: run_under_limits(made), 120)


def run_out_of_records() -> None:
    """Many small tensors: neither their records nor the lists of freed blocks find memory."""
    x = torch.ones(1)
    for call in (lambda: x.expand(1 << 22).split(1), lambda: x.expand(1 << 22).unbind()):
        with Limit(16 * MIB), pytest.raises(ERRORS):
            call()
    assert (torch.ones(10) + 1).sum().item() == 20


@limits
def test_no_memory_for_records() -> None:
    concurrency.in_child(run_out_of_records, 60)


def first_use(name: str) -> None:
    x = torch.ones(300, 300)

    def train() -> None:
        net = torch.nn.Sequential(torch.nn.Linear(300, 300), torch.nn.Linear(300, 10))
        net(x).sum().backward()

    case = {"matmul": lambda: x @ x, "eigh": lambda: torch.linalg.eigh(x), "train": train}[name]
    failed = 0
    for more in (1, 4, 16, 32, 48, 64, 96, 128, 160, 200, 256):
        with Limit(more * MIB):
            try:
                case()
            except ERRORS:
                failed += 1
    assert failed, "the limits were never met"
    case()


@limits
@pytest.mark.parametrize("name", ["matmul", "eigh", "train"])
def test_the_first_use_of_a_library_under_a_limit(name: str) -> None:
    """OpenBLAS ends the process where it finds no memory: it must not come to that. In a process that has not used it."""
    code = f"import test_out_of_memory; test_out_of_memory.first_use({name!r})"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr


# ---- every allocation ---------------------------------------------------------------------------------------------------
def small_cases() -> dict[str, Callable[[], Any]]:
    x = torch.linspace(-3, 3, 64 * 64).reshape(64, 64)
    square = x @ x.t() + torch.eye(64) * 64

    def gradient() -> Any:
        a = x.clone().requires_grad_()
        y = (a.cumsum(0).tanh().amax(1) * 2).sin()
        y.grad_fn.metadata["seen"] = True
        y.sum().backward()
        return a.grad

    def autocast() -> Any:
        with torch.amp.autocast("cpu", enabled=False):
            return x * 2

    compiled = torch.compile(lambda a: torch.softmax(a.sin() * 2, -1).cumsum(0))
    return {
        "names": lambda: torch.max(x, dim=1, keepdim=False).values,
        "autocast": autocast,
        "dlpack": lambda: torch.from_dlpack(x),
        "index": lambda: x[x > 0],
        "qr": lambda: torch.linalg.qr(x)[0],
        "qr_complex": lambda: torch.linalg.qr(x.to(torch.complex128))[0],
        "inv_ex": lambda: torch.linalg.inv_ex(square)[0],
        "ldl_factor_ex": lambda: torch.linalg.ldl_factor_ex(square)[0],
        "householder": lambda: torch.linalg.householder_product(*torch.geqrf(x)),
        "ormqr": lambda: torch.ormqr(*torch.geqrf(x), x),
        "svd": lambda: torch.linalg.svdvals(x),
        "lstsq": lambda: torch.linalg.lstsq(square, x).solution,
        "conv": lambda: F.conv2d(x[None, None], x[None, None, :3, :3]),
        "gradient": gradient,
        "compiled": lambda: compiled(x),
        "function": lambda: [CompiledFunction(gradient), x][1],
    }


def fail_everywhere() -> None:
    """Each case, with its first allocation failing and all after it, then from the second on, and so on."""
    torch.set_num_threads(1)
    # glibc ends a process that lacks memory for a library's thread-local data, which an error uses.
    with pytest.raises(ERRORS):
        torch.empty(1 << 50)
    for name, case in small_cases().items():
        want = case()
        failed, n, left = 0, 0, 0
        while left <= 0:
            argand_c10.cpu.empty_cache()
            print(name, n, flush=True)
            got = None
            failing_memory.fail_after(n)
            try:
                got = case()
            except ERRORS:
                pass
            finally:
                left = failing_memory.fail_after(-1)
            if got is None:
                failed += 1
            else:
                assert torch.allclose(got, want, equal_nan=True), "a wrong result"
            n += 1
        assert failed and torch.equal(case(), want)


@limits
def test_every_allocation_fails(tmp_path: Path) -> None:
    code = "import test_out_of_memory; test_out_of_memory.fail_everywhere()"
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "LD_PRELOAD": str(failing_memory.build(tmp_path)),
        "ARGAND_CPU_CACHE_LIMIT": "0",
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout[-200:] + done.stderr
