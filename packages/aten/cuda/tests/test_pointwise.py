"""Pointwise operators of strided operands on an emulated CUDA device against the CPU."""

from __future__ import annotations

from typing import Any

import emulated
import numpy as np
import pytest

if emulated.missing:
    pytest.skip(emulated.missing, allow_module_level=True)

import argand_aten as aten
import argand_c10 as c10

emulated.start()
RNG = np.random.default_rng(0)


def make(*shape: int, dtype: str = "float32") -> Any:
    return aten.tensor(RNG.integers(-9, 9, shape)).to(getattr(c10, dtype))


def turned(name: str) -> int:
    """The constant TURNED of the one launch since the last call, of a kernel of that name."""
    (launch,) = [n for n in emulated.launches if n.startswith(name)]
    emulated.launches.clear()
    return int(launch.rsplit("=", 1)[1])


@pytest.mark.parametrize("shape", [(70, 70), (33, 100), (130, 64)])
def test_add_of_a_transpose(shape: tuple[int, int]) -> None:
    x, y = make(*shape), make(*shape[::-1])
    emulated.launches.clear()
    for operands, bits in (((x, y.t()), 2), ((y.t(), x), 2), ((x.t(), y), 2)):
        got = aten.add(*(t.to("cuda") for t in operands))
        emulated.check()
        assert np.array_equal(got.to("cpu").numpy(), aten.add(*operands).numpy())
        assert turned("add_strided") in (bits, 3 - bits)


def test_planes_and_dtypes() -> None:
    a, b = make(3, 40, 50, dtype="bfloat16"), make(50, 3, 40, dtype="bfloat16")
    emulated.launches.clear()
    got = a.to("cuda") * b.to("cuda").permute(1, 2, 0)
    emulated.check()
    assert turned("mul_strided") == 2
    want = a.to(c10.float32) * b.to(c10.float32).permute(1, 2, 0)
    assert np.array_equal(got.to(c10.float32).to("cpu").numpy(), want.numpy())


def test_numbers_beside_halves() -> None:
    """Of float16: the stand-in cuts off what bfloat16 does not hold."""
    x = make(40, 45, dtype="float16")
    for number in (0.1, 1e5, 257):
        for view in (x, x.t(), x[:, ::2]):
            there = view.to("cuda")
            for got, want in (
                (there * number, view * number),
                (there / number, view / number),
                (number / (there + 0.5), number / (view + 0.5)),
                (aten.lerp(there, there, number), aten.lerp(view, view, number)),
                (there * c10.tensor(number), view * number),
                (there + number, view + number),
            ):
                emulated.check()
                found = got.to("cpu").to(c10.float32).numpy()
                np.testing.assert_array_equal(found, want.to(c10.float32).numpy())


def test_numbers_conditions_and_results() -> None:
    x, y, condition = make(40, 45), make(45, 40), make(40, 45) > 0
    emulated.launches.clear()
    got = aten.where(condition.to("cuda"), x.to("cuda"), y.to("cuda").t())
    emulated.check()
    assert turned("where_strided") == 4
    assert np.array_equal(got.to("cpu").numpy(), aten.where(condition, x, y.t()).numpy())
    into = x.to("cuda")
    into.add_(y.to("cuda").t(), alpha=2)
    emulated.check()
    assert np.array_equal(into.to("cpu").numpy(), (x + 2 * y.t()).numpy())
    halves = x.to("cuda")[:, ::2] + y.to("cuda")[::2].t()  # no operand runs along the rows
    emulated.check()
    assert np.array_equal(halves.to("cpu").numpy(), (x[:, ::2] + y[::2].t()).numpy())


def test_numbers_that_no_element_can_be_are_refused() -> None:
    x = make(8).to("cuda")
    for refused in (
        lambda: aten.where(x > 0, 1e40, x),
        lambda: aten.clamp_max(x, 1e40),
        lambda: aten.masked_fill(x, x > 0, 1e40),
        lambda: aten.threshold(x, 0, 1e40),
        lambda: aten.lerp(x, x, 1e40),
        lambda: x.fill_(1e40),
        lambda: aten.pow(x.to(c10.int32), 2**40),
        lambda: aten.add(x, x, alpha=1e40),
    ):
        with pytest.raises(RuntimeError, match="without overflow"):
            refused()
    assert (x * 1e40).isinf().sum().item() == (x != 0).sum().item()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_frexp(dtype: str) -> None:
    tiny = {"float32": 1e-45, "float64": 5e-324, "float16": 6e-8}[dtype]
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, tiny, -3 * tiny, 1.0, -0.5, 0.75, 60000.0]
    x = RNG.standard_normal((31, 37)).astype(dtype)
    x[2, : len(edges)] = edges
    t = aten.tensor(x)
    for view in (lambda t: t, lambda t: t.t(), lambda t: t[:, ::2], lambda t: t[0, 0]):
        there = view(t.to("cuda"))
        emulated.launches.clear()
        got = aten.frexp(there)
        emulated.check()
        assert [n.split(";")[0] for n in emulated.launches].count("frexp") == 1
        for a, b, want in zip(got, aten.frexp(view(t)), np.frexp(view(t).numpy()), strict=True):
            assert a.dtype == b.dtype and a.stride() == b.stride()
            np.testing.assert_array_equal(a.to("cpu").numpy(), want)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_derivatives_of_frexp(dtype: str) -> None:
    """2 to minus the exponent, where that has no place in the dtype too."""
    limits = np.finfo(dtype)
    edges = [0.0, 1.0, limits.max, -limits.max, limits.tiny, limits.smallest_subnormal, 3.0]
    t = aten.tensor(np.array(edges, dtype))
    found, expected = (aten.ldexp(aten.ones_like(x), -aten.frexp(x)[1]) for x in (t.to("cuda"), t))
    emulated.check()
    assert found.to("cpu").tolist() == expected.tolist()
    assert expected[:4].tolist() == [1.0, 0.5, *[2.0**-(limits.maxexp)] * 2]


def test_frexp_of_integers() -> None:
    with pytest.raises(RuntimeError, match="only supports floating-point dtypes"):
        aten.frexp(make(3, dtype="int64").to("cuda"))
