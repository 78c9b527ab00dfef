"""Copies, fills, factories, random numbers and statistics on an emulated CUDA device against the CPU."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import emulated
import numpy as np
import pytest

if emulated.missing:
    pytest.skip(emulated.missing, allow_module_level=True)

import argand_aten as aten
import argand_c10 as c10
from argand_aten.safetensors_format import read_tensors, write_tensors

emulated.start()

MOVED = [c10.bool, c10.int16, c10.float32, c10.float64, c10.complex64, c10.complex128]


@pytest.fixture(autouse=True)
def kernels_that_failed() -> Iterator[None]:
    yield
    emulated.check()


def sample(shape: tuple[int, ...], dtype: Any) -> Any:
    x = (aten.randn(shape, dtype=c10.float64, generator=c10.Generator().manual_seed(7)) * 20).to(
        c10.float32
    )
    if dtype == c10.bool:
        return x > 0
    return (
        aten.complex(x, -x).to(dtype) if dtype in (c10.complex64, c10.complex128) else x.to(dtype)
    )


def same(found: Any, expected: Any) -> None:
    """Same shape, dtype and elements; NaN equals NaN."""
    assert found.device.type == "cuda"
    found = found.cpu()
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    assert repr(found.tolist()) == repr(expected.tolist())


def launched(f: Any) -> list[str]:
    """The kernels that a call launches."""
    emulated.launches.clear()
    f()
    return [name.split(";")[0] for name in emulated.launches]


@pytest.mark.parametrize("dtype", MOVED, ids=str)
def test_there_and_back(dtype: Any) -> None:
    for shape in ((), (0,), (5,), (3, 4), (2, 0, 3)):
        x = sample(shape, dtype)
        same(x.to("cuda"), x)
        same(x.to("cuda").clone(), x)
    x = sample((6, 8), dtype)
    same(x.t().to("cuda"), x.t())
    same(x[::2, 1::3].to("cuda", non_blocking=True), x[::2, 1::3])
    target = aten.zeros((8, 6), dtype=dtype)
    target.t().copy_(x.to("cuda"))
    assert target.t().tolist() == x.tolist()


@pytest.mark.parametrize("dtype", MOVED, ids=str)
def test_layouts(dtype: Any) -> None:
    x = sample((3, 20, 18), dtype)
    g = x.to("cuda")
    for order in ((0, 2, 1), (2, 1, 0), (1, 0, 2)):
        same(g.permute(order).contiguous(), x.permute(order).contiguous())
    same(g[:, 3:, ::2].contiguous(), x[:, 3:, ::2].contiguous())
    same(g.flip([0, 2]), x.flip([0, 2]))
    same(g[:1].expand(4, 20, 18).contiguous(), x[:1].expand(4, 20, 18).contiguous())
    assert g.permute((2, 0, 1)).clone().stride() == x.permute((2, 0, 1)).clone().stride()
    deep = sample((2, 3, 2, 2, 2, 3, 2, 2), dtype)
    order = (7, 2, 0, 4, 6, 1, 5, 3)
    same(deep.to("cuda").permute(order).contiguous(), deep.permute(order).contiguous())


@pytest.mark.parametrize("source", [*MOVED, c10.uint8, c10.int64, c10.float16], ids=str)
def test_conversions(source: Any) -> None:
    x = (
        sample((5, 6), source if source != c10.uint8 else c10.int16).abs().to(source)
        if source == c10.uint8
        else sample((5, 6), source)
    )
    g = x.to("cuda")
    for dtype in (*MOVED, c10.uint8, c10.int64, c10.float16):
        same(g.to(dtype), x.to(dtype))
        same(g.t().to(dtype), x.t().to(dtype))


def test_copies_of_a_layout_are_the_drivers() -> None:
    x = aten.zeros((64, 64), device="cuda")
    assert launched(lambda: x.clone()) == []
    assert launched(lambda: x.zero_()) == []
    assert launched(lambda: x.fill_(1.5)) == ["copy_flat"]
    assert launched(lambda: x.t().contiguous()) == ["copy_tile"]
    assert launched(lambda: aten.cat([x] * 20)) == ["join"] * 2
    assert launched(lambda: x.to(c10.float16).cpu()) == ["copy_flat"]


def test_overlapping_and_broadcast_sources() -> None:
    x = aten.arange(20).to("cuda")
    x[1:].copy_(x[:-1])
    assert x.tolist() == [0, *range(19)]
    wide = aten.zeros((3, 4), device="cuda")
    wide.copy_(aten.arange(4).to("cuda"))
    assert wide.tolist() == [[0, 1, 2, 3]] * 3
    wide.copy_(aten.ones((1, 4)))
    assert wide.tolist() == [[1, 1, 1, 1]] * 3
    with pytest.raises(RuntimeError, match="copy_: got a source of shape"):
        wide.copy_(aten.zeros((5,), device="cuda"))
    with pytest.raises(RuntimeError, match="single memory location"):
        wide[:1].expand(3, 4).copy_(wide)


@pytest.mark.parametrize("dtype", [*MOVED, c10.uint8, c10.float16], ids=str)
def test_fills(dtype: Any) -> None:
    x, y = aten.empty((9, 7), dtype=dtype, device="cuda"), aten.empty((9, 7), dtype=dtype)
    for value in (0, 1, 2.5):
        same(x.fill_(value), y.fill_(value))
        x[:, ::2].fill_(3), y[:, ::2].fill_(3)
        same(x, y)
        x.t()[2:4].fill_(aten.tensor(1)), y.t()[2:4].fill_(aten.tensor(1))
        same(x, y)
    same(aten.eye(4, 6, dtype=dtype, device="cuda"), aten.eye(4, 6, dtype=dtype))
    same(x.fill_(aten.tensor(2, device="cuda")), y.fill_(2))
    same(aten.full((2,), True, device="cuda"), aten.full((2,), True))


@pytest.mark.parametrize(
    "dtype", [None, c10.float64, c10.float16, c10.int32, c10.uint8, c10.uint16, c10.uint64], ids=str
)
def test_ranges(dtype: Any) -> None:
    same(aten.arange(3, 90, 4, dtype=dtype, device="cuda"), aten.arange(3, 90, 4, dtype=dtype))
    same(
        aten.linspace(0, 7.3, 101, dtype=dtype, device="cuda"),
        aten.linspace(0, 7.3, 101, dtype=dtype),
    )
    same(aten.arange(0, dtype=dtype, device="cuda"), aten.arange(0, dtype=dtype))


def test_joins_and_triangles() -> None:
    parts = [sample((4, n, 3), c10.float32) for n in (1, 5, 16, 2)]
    on_device = [p.to("cuda") for p in parts]
    same(aten.cat(on_device, 1), aten.cat(parts, 1))
    same(
        aten.cat([on_device[0].double(), on_device[1], aten.zeros(0, device="cuda")], 1),
        aten.cat([parts[0].double(), parts[1]], 1),
    )
    same(aten.stack([p[:, :1] for p in on_device], -1), aten.stack([p[:, :1] for p in parts], -1))
    with pytest.raises(RuntimeError, match="Sizes of tensors must match"):
        aten.cat(on_device, 0)
    for dtype in (c10.float32, c10.complex128):
        x = sample((2, 5, 9), dtype)
        for diagonal in (-2, 0, 3):
            same(x.to("cuda").tril(diagonal), x.tril(diagonal))
            same(x.to("cuda").transpose(1, 2).triu(diagonal), x.transpose(1, 2).triu(diagonal))
    for name in ("tril_indices", "triu_indices"):
        for row, col in ((5, 9), (9, 5), (11, 1), (3, 600), (0, 4)):
            for offset in (-30, -2, 0, 1, 4, 700):
                on_host, on_device = (
                    getattr(aten, name)(row, col, offset, device=d) for d in ("cpu", "cuda")
                )
                same(on_device, on_host)


@pytest.mark.parametrize(
    "dtype", [c10.float32, c10.bfloat16, c10.uint8, c10.complex64, c10.complex128]
)
def test_borders(dtype: Any) -> None:
    """Dense tensors of up to 8 bytes an element take one kernel; all else goes by indices."""
    x = sample((2, 3, 4, 5, 6), dtype)
    for mode in ("reflect", "replicate"):
        for t, pad in (
            (x[0, 0, 0], [5, 2]),
            (x[0, 0], [1, 0, 3, 2]),
            (x[0], [-2, 1, 2, -3]),
            (x[0].transpose(1, 2), [1, 2, 2, 1]),
            (x[0, 0, :0], [1, 1]),
            (x, [1, 2, 3, 1, 2, 1]),
        ):
            emulated.launches.clear()
            same(aten.pad(t.to("cuda"), pad, mode), aten.pad(t, pad, mode))
            fused = t.is_contiguous() and t.numel()
            assert any(n.startswith("pad_border") for n in emulated.launches) == bool(
                fused and dtype != c10.complex128
            )


def pair() -> tuple[Any, Any]:
    return c10.Generator(device="cuda").manual_seed(11), c10.Generator().manual_seed(11)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("uniform_", (-1, 2)),
        ("normal_", (1, 2)),
        ("exponential_", (2,)),
        ("bernoulli_", (0.3,)),
        ("random_", (0, 50)),
    ],
)
def test_random_fills(name: str, args: tuple) -> None:
    here, there = pair()
    for dtype in (c10.float32, c10.float16):
        for _ in range(2):  # offsets go on
            x, y = aten.empty((7, 9), dtype=dtype, device="cuda"), aten.empty((7, 9), dtype=dtype)
            same(getattr(x, name)(*args, generator=here), getattr(y, name)(*args, generator=there))
            same(
                getattr(x.t(), name)(*args, generator=here),
                getattr(y.t(), name)(*args, generator=there),
            )
            same(
                getattr(x.reshape(-1)[1:], name)(*args, generator=here),
                getattr(y.reshape(-1)[1:], name)(*args, generator=there),
            )
    with pytest.raises(RuntimeError, match="generator of another device"):
        getattr(x, name)(*args, generator=there)


def test_sampling() -> None:
    here, there = pair()
    weights = sample((3, 10), c10.float32).abs()
    for samples, replacement in ((20, True), (4, False), (1, False)):
        found = aten.multinomial(weights.to("cuda"), samples, replacement, generator=here)
        same(found, aten.multinomial(weights, samples, replacement, generator=there))
    p = weights / 100
    same(aten.bernoulli(p.to("cuda"), generator=here), aten.bernoulli(p, generator=there))
    for bad, message in (([1.0, -1.0], "element < 0"), ([0.0, 0.0], "sum of probabilities")):
        with pytest.raises(RuntimeError, match=message):
            aten.multinomial(aten.tensor(bad, device="cuda"), 1)


@pytest.mark.parametrize("n", [0, 1, 30, 300, 1500, 5000])
def test_permutations(n: int) -> None:
    here, there = pair()
    first = aten.randperm(n, device="cuda", generator=here)
    second = aten.randperm(n, device="cuda", generator=here, dtype=c10.int32)
    emulated.check()
    assert first.device.type == "cuda"
    assert (first.dtype, second.dtype) == (c10.int64, c10.int32)
    for found in (first, second):
        assert sorted(found.tolist()) == list(range(n))
    assert n < 2 or first.tolist() != second.tolist()
    c10.manual_seed(5)
    again = aten.randperm(n, device="cuda")
    c10.manual_seed(5)
    assert again.tolist() == aten.randperm(n, device="cuda").tolist()
    for _ in range(2):
        aten.randperm(n, generator=there)
    assert here.get_state().tolist() == there.get_state().tolist()


@pytest.mark.parametrize("dtype", [c10.float32, c10.float64, c10.float16], ids=str)
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("poisson", [0.0, 0.3, 2.5, 9.9, 10.0, 11.5, 80.0, 3000.0]),
        ("_standard_gamma", [0.0, 1e-3, 0.3, 0.99, 1.0, 2.5, 30.0, math.inf, -1.0, math.nan]),
    ],
)
def test_samplers_that_reject(name: str, values: list[float], dtype: Any) -> None:
    here, there = pair()
    x = aten.tensor(values * 40, dtype=dtype)
    found = getattr(aten.ops, name)(x.to("cuda")[: 7 * len(values)], generator=here).cpu().numpy()
    emulated.check()
    expected = getattr(aten.ops, name)(x[: 7 * len(values)], generator=there).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-12 if dtype == c10.float64 else 1e-6)
    assert here.get_state().tolist() == there.get_state().tolist()
    assert getattr(aten.ops, name)(x[:0].to("cuda")).shape == (0,)


def test_rates_below_zero_are_refused() -> None:
    for bad in (-1.0, math.nan):
        with pytest.raises(RuntimeError, match="expected rates >= 0"):
            aten.poisson(aten.tensor([1.0, bad], device="cuda"))


def test_permutations_of_impossible_lengths_are_refused() -> None:
    with pytest.raises(RuntimeError, match="n must be non-negative"):
        aten.randperm(-1, device="cuda")
    with pytest.raises(RuntimeError, match="make it on the cpu"):
        aten.randperm(2**31, device="cuda")


def test_dropout() -> None:
    x = sample((11, 7), c10.float32)
    for p, train in ((0.4, True), (1.0, True), (0.4, False)):
        c10.manual_seed(3)
        found, mask = aten.native_dropout(x.to("cuda"), p, train)
        c10.manual_seed(3)
        expected, kept = aten.native_dropout(x, p, train)
        same(mask, kept)
        same(found, expected)


def test_variance() -> None:
    x = sample((4, 9, 7), c10.float64) + 100
    g = x.to("cuda")
    for dim in (None, 0, 1, 2, (0, 2), (0, 1), (1, 2)):
        for correction in (0, 1):
            found, expected = (
                aten.var(g, dim, correction=correction).cpu(),
                aten.var(x, dim, correction=correction),
            )
            assert found.shape == expected.shape
            for a, b in zip(found.flatten().tolist(), expected.flatten().tolist(), strict=True):
                assert math.isclose(a, b, rel_tol=1e-13)
    assert math.isnan(aten.var(aten.zeros(0, device="cuda")).item())
    long = sample((1, 40000), c10.float32)  # in pieces
    assert math.isclose(aten.var(long.to("cuda")).item(), aten.var(long).item(), rel_tol=1e-6)


@pytest.mark.parametrize(
    "dtype", [c10.float32, c10.float16, c10.int64, c10.uint8, c10.bool], ids=str
)
def test_extremes(dtype: Any) -> None:
    x = sample((4, 9, 7), c10.float32).abs().to(dtype)
    if dtype in (c10.float32, c10.float16):
        x[1, 3] = math.nan
        x[2] = -math.inf
    g = x.to("cuda")
    for dim in (0, 1, -1):
        for f in (aten.max, aten.min):
            found, expected = f(g, dim), f(x, dim)
            same(found[0], expected[0])
            same(found[1], expected[1])
        if dtype != c10.bool:
            same(g.argmax(dim, True), x.argmax(dim, True))
    if dtype != c10.bool:
        same(g.argmax(), x.argmax())
        same(g.transpose(0, 2).argmin(), x.transpose(0, 2).argmin())
    else:
        for refused in (g.argmax, g.argmin):
            with pytest.raises(NotImplementedError, match="not implemented for dtype bool"):
                refused()
    with pytest.raises(IndexError, match="non-zero size"):
        g[:, :0].max(1)


@pytest.mark.parametrize("n", [10, 17, 100, 128, 700, 1500, 3000, 5000])
def test_statistics_of_rows_of_every_length(n: int) -> None:
    x = sample((3, 2, n + 2), c10.float32)
    for rows, on_device in ((x, x.to("cuda")), (x.transpose(0, 1)[..., :n], x.to("cuda").transpose(0, 1)[..., :n])):  # fmt: skip
        for f in (aten.max, aten.min, aten.argmax):
            for found, expected in zip(f(on_device, -1), f(rows, -1), strict=True):
                same(found, expected)
        low, high = aten.aminmax(on_device, dim=-1)
        same(low, rows.amin(-1))
        same(high, rows.amax(-1))
        found, expected = aten.var(on_device, -1), aten.var(rows, -1)
        np.testing.assert_allclose(found.cpu().numpy(), expected.numpy(), rtol=1e-5)


def test_devices_are_told_apart() -> None:
    x = aten.zeros((2,), device="cuda")
    assert x.to("cuda") is x
    assert x.to("cuda:0") is x
    assert x.cpu().device.type == "cpu"


def test_files_of_tensors(tmp_path: Any) -> None:
    x = sample((3, 4), c10.float32)
    path = str(tmp_path / "x.safetensors")
    write_tensors(path, {"x": x.to("cuda").t()}, {})
    assert read_tensors(path, path)[0]["x"].tolist() == x.t().tolist()


def test_tensors_without_data_are_no_source() -> None:
    x = aten.zeros((2,), device="cuda")
    with pytest.raises(RuntimeError, match="copy_: got a tensor on meta"):
        x.copy_(aten.empty((2,), device="meta"))
