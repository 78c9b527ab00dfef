"""float8 is stored, converted, shown and saved; every value and the rounding to it against their definition in NumPy."""

import io

import numpy as np
import pytest

import argand as torch

DTYPES = {torch.float8_e4m3fn: (4, 3, 7), torch.float8_e5m2: (5, 2, 15)}


def values_of(dtype):
    """All 256 values by their bits; e4m3fn has NaN at all ones only, e5m2 as IEEE's formats."""
    exponent_bits, mantissa_bits, bias = DTYPES[dtype]
    values = []
    for bits in range(256):
        exponent, mantissa = (
            bits >> mantissa_bits & (1 << exponent_bits) - 1,
            bits & (1 << mantissa_bits) - 1,
        )
        top = exponent == (1 << exponent_bits) - 1
        if dtype == torch.float8_e4m3fn and bits & 0x7F == 0x7F:
            value = np.nan
        elif dtype == torch.float8_e5m2 and top:
            value = np.nan if mantissa else np.inf
        else:
            fraction = mantissa / (1 << mantissa_bits) + (exponent > 0)
            value = fraction * 2.0 ** (max(exponent, 1) - bias)
        values.append(-value if bits & 0x80 else value)
    return np.array(values)


def nearest(dtype, x):
    """Rounded half to even; beyond the largest number's half step infinite, or the largest where there is no infinity."""
    table = values_of(dtype)[:128]
    finite = table[np.isfinite(table)]
    largest = finite[-1]
    step = largest - finite[-2]
    magnitude = np.abs(x.astype(np.float64))
    place = np.clip(np.searchsorted(finite, magnitude), 1, len(finite) - 1)
    low, high = finite[place - 1], finite[place]
    middle = (low + high) / 2
    up = (magnitude > middle) | ((magnitude == middle) & ((place - 1) % 2 == 1))
    found = np.where(up, high, low)
    beyond = magnitude >= largest + step / 2
    found = np.where(beyond, np.inf if dtype == torch.float8_e5m2 else largest, found)
    return np.copysign(found, x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_value_is_read_and_written(dtype):
    bits = torch.arange(256).to(torch.uint8)
    x = bits.view(dtype)
    expected = values_of(dtype)
    for wide in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        found = x.to(wide).double().numpy()
        np.testing.assert_array_equal(found, expected)
        numbers = ~np.isnan(expected)
        back = x.to(wide).to(dtype).view(torch.uint8).numpy()
        assert (
            np.array_equal(back[numbers], np.arange(256)[numbers])
            and np.isnan(x.to(wide).to(dtype).float().numpy()[~numbers]).all()
        )
    assert [v for v in x.tolist() if v == v] == [v for v in expected.tolist() if v == v]
    assert x[3].item() == expected[3] and x.element_size() == 1 and dtype.is_floating_point


@pytest.mark.parametrize("dtype", DTYPES)
def test_rounding_is_to_nearest_even(dtype):
    table = values_of(dtype)[:128]
    finite = table[np.isfinite(table)]
    middles = (finite[1:] + finite[:-1]) / 2
    rng = np.random.default_rng(0)
    x = np.concatenate([finite, middles, np.nextafter(middles.astype(np.float32), np.float32(0)), np.nextafter(middles.astype(np.float32), np.float32(1e9)),
                        rng.standard_normal(5000) * 10.0 ** rng.integers(-8, 6, 5000), [finite[-1] * 1.0624, finite[-1] * 1.07, 1e30, np.inf, 1e-30]])  # fmt: skip
    x = np.concatenate([x, -x]).astype(np.float32)
    expected = nearest(dtype, x)
    found = torch.tensor(x).to(dtype)
    np.testing.assert_array_equal(found.double().numpy(), expected)
    strided = torch.tensor(np.stack([x, x], axis=1))[:, 0].to(dtype)
    assert torch.equal(strided.view(torch.uint8), found.view(torch.uint8))
    made = torch.tensor(x[:300].tolist(), dtype=dtype)
    assert torch.equal(made.view(torch.uint8), found[:300].view(torch.uint8))
    assert (
        torch.full((2,), float(x[7]), dtype=dtype).view(torch.uint8).tolist()
        == [found.view(torch.uint8)[7].item()] * 2
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_storage_shapes_and_printing(dtype):
    x = torch.tensor([[1.0, 0.5, -2.0], [0.0, 448.0, 3.3]], dtype=dtype)
    assert x.t().contiguous().float().tolist() == x.float().t().tolist()
    assert (
        torch.cat([x, x]).shape == (4, 3)
        and x[:, 1:].float().tolist() == x.float()[:, 1:].tolist()
        and x.clone().dtype == dtype
    )
    assert (
        torch.zeros(3, dtype=dtype).float().tolist() == [0, 0, 0]
        and torch.ones_like(x).float().sum().item() == 6
        and torch.empty(2, dtype=dtype).shape == (2,)
    )
    assert repr(torch.tensor([1.0, 0.5], dtype=dtype)) == f"tensor([1.0000, 0.5000], dtype={dtype})"
    assert (
        torch.tensor([1, 2, 300]).to(dtype).to(torch.int64).tolist()
        == torch.tensor([1.0, 2.0, 300.0]).to(dtype).long().tolist()
    )
    info = torch.finfo(dtype)
    table = values_of(dtype)[:128]
    finite = table[np.isfinite(table)]
    assert (info.bits, info.max, info.min, info.eps) == (
        8,
        finite[-1],
        -finite[-1],
        finite[np.searchsorted(finite, 1.0) + 1] - 1,
    )
    assert info.smallest_normal == finite[1 << DTYPES[dtype][1]]


@pytest.mark.parametrize("dtype", DTYPES)
def test_files_and_other_libraries(dtype, tmp_path):
    x = torch.randn(3, 4).to(dtype)
    torch.save({"x": x}, tmp_path / "x.safetensors")
    loaded = torch.load(tmp_path / "x.safetensors")["x"]
    assert loaded.dtype == dtype and torch.equal(loaded.view(torch.uint8), x.view(torch.uint8))
    shared = torch.from_dlpack(x)
    assert shared.dtype == dtype and shared.data_ptr() == x.data_ptr()
    with pytest.raises(TypeError, match="float8"):
        x.numpy()
    import pickle

    again = pickle.load(io.BytesIO(pickle.dumps(x)))
    assert again.dtype == dtype and torch.equal(again.view(torch.uint8), x.view(torch.uint8))


@pytest.mark.parametrize("dtype", DTYPES)
def test_float8_numbers_are_compared_chosen_and_multiplied(dtype):
    x = torch.tensor([[1.0, -2.0, np.nan], [0.5, 3.0, 0.0]])
    y = x.to(dtype)
    assert (y == y).tolist() == (x == x).tolist() and (y != 3.0).tolist() == (x != 3.0).tolist()
    assert torch.isnan(y).tolist() == torch.isnan(x).tolist()
    assert torch.equal(y.abs()[1], x.abs()[1].to(dtype)) and y.abs().dtype == dtype
    chosen = torch.where(x > 0, y, y[1])
    assert chosen.dtype == dtype and chosen.double().tolist() == [[1, 3, 0], [0.5, 3, 0]]
    a, b = y[:, :2], y[:, :2].t()
    expected = x[:, :2] @ x[:, :2].t()
    assert (a @ b).dtype == dtype and (a @ b).double().tolist() == expected.to(
        dtype
    ).double().tolist()
    assert (
        torch.nn.functional.linear(a, a).double().tolist() == expected.to(dtype).double().tolist()
    )
    scaled = torch._scaled_mm(
        a, b, torch.tensor(2.0), torch.tensor(0.5), bias=torch.ones(2), out_dtype=torch.float32
    )
    assert torch.equal(scaled, expected + 1)


def test_nothing_is_computed_in_float8():
    x = torch.ones(2).to(torch.float8_e5m2)
    for call in (lambda: x + x, lambda: x.sum(), lambda: torch.exp(x)):
        with pytest.raises(NotImplementedError, match="float8_e5m2"):
            call()
    with pytest.raises(RuntimeError, match="float8"):
        x + torch.ones(2)
    assert torch.result_type(x, 1.0) == torch.float8_e5m2


def test_gradients_pass_casts_and_compiled_programs_agree():
    w = torch.randn(4, requires_grad=True)

    def f(w):
        return (w.to(torch.float8_e4m3fn).to(torch.float32) * 2).sum()

    f(w).backward()
    assert w.grad.tolist() == torch.full((4,), 2.0).to(torch.float8_e4m3fn).float().tolist()
    x = torch.randn(5, 3)
    plain = lambda x: ((x * 3).to(torch.float8_e5m2), (x + 1).to(torch.float8_e4m3fn).float() * 2)  # noqa: E731
    for a, b in zip(torch.compile(plain)(x), plain(x), strict=True):
        assert a.dtype == b.dtype and a.float().tolist() == b.float().tolist()
