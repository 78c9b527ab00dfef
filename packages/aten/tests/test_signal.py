"""stft and istft against NumPy's transforms of each piece, and against each other; gradients by their definition."""

import numpy as np
import pytest

import argand_aten as aten
from argand_c10 import float64, int64


def pieces(x, n_fft, hop, window, center, mode="reflect"):
    """The transforms of the windowed pieces, frequencies first."""
    if center:
        x = np.pad(x, n_fft // 2, mode=mode)
    left = (n_fft - len(window)) // 2
    w = np.pad(window, (left, n_fft - len(window) - left))
    starts = range(0, len(x) - n_fft + 1, hop)
    return np.stack([np.fft.fft(x[s : s + n_fft] * w) for s in starts], axis=1)


@pytest.mark.parametrize("n_fft, hop, width", [(8, 2, 8), (8, 3, 6), (9, 4, 5), (4, 1, 4)])
@pytest.mark.parametrize("center", [True, False])
def test_stft_is_the_transform_of_each_piece(n_fft, hop, width, center):
    rng = np.random.default_rng(0)
    x, window = rng.standard_normal(40), rng.random(width) + 0.1
    expected = pieces(x, n_fft, hop, window, center)
    given = {
        "hop_length": hop,
        "win_length": width,
        "window": aten.tensor(window),
        "center": center,
        "return_complex": True,
    }
    whole = aten.stft(aten.tensor(x), n_fft, onesided=False, **given)
    assert np.allclose(whole.numpy(), expected)
    half = aten.tensor(np.stack([x, -x])).stft(n_fft, **given)
    assert half.shape == (2, n_fft // 2 + 1, expected.shape[1])
    assert np.allclose(half[1].numpy(), -expected[: n_fft // 2 + 1])
    scaled = aten.stft(aten.tensor(x), n_fft, normalized=True, **given)
    assert np.allclose(scaled.numpy() * n_fft**0.5, half[0].numpy())


def test_stft_of_complex_signals_and_other_paddings():
    rng = np.random.default_rng(1)
    z = rng.standard_normal(20) + 1j * rng.standard_normal(20)
    found = aten.stft(aten.tensor(z), 8, center=False, window=aten.ones(8, dtype=float64))
    assert np.allclose(found.numpy(), pieces(z, 8, 2, np.ones(8), False))
    x = rng.standard_normal(20)
    found = aten.stft(aten.tensor(x), 8, pad_mode="constant", return_complex=False)
    expected = pieces(x, 8, 2, np.ones(8), True, "constant")[:5]
    assert found.shape == (5, 11, 2)
    assert np.allclose(found.numpy()[..., 0], expected.real) and np.allclose(
        found.numpy()[..., 1], expected.imag
    )


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("onesided", [True, False])
def test_istft_gives_the_signal_back(center, onesided):
    rng = np.random.default_rng(2)
    x = rng.standard_normal((3, 32))
    window = aten.hamming_window(8, dtype=float64)
    given = {"hop_length": 4, "window": window, "center": center, "onesided": onesided}
    spectra = aten.stft(aten.tensor(x), 8, return_complex=True, **given)
    back = aten.istft(spectra, 8, **given)
    assert back.shape == (3, 32)
    assert np.allclose(back.numpy(), x)
    longer = aten.istft(spectra[0], 8, length=37, **given)
    assert (
        longer.shape == (37,)
        and np.allclose(longer.numpy()[:30], x[0, :30])
        and not longer.numpy()[36:].any()
    )
    assert aten.istft(spectra[0], 8, length=10, **given).shape == (10,)


def test_istft_of_two_sided_spectra_reads_one_side():
    z = np.random.default_rng(4).standard_normal((2, 8, 5)) + 0.5j
    whole = aten.tensor(z)
    back = aten.istft(whole, 8, onesided=False)
    assert back.dtype == float64
    assert np.allclose(back.numpy(), aten.istft(whole[:, :5], 8).numpy())


def test_istft_of_complex_signals():
    rng = np.random.default_rng(3)
    z = rng.standard_normal(24) + 1j * rng.standard_normal(24)
    window = aten.hann_window(8, dtype=float64)
    back = aten.istft(
        aten.stft(aten.tensor(z), 8, window=window), 8, window=window, return_complex=True
    )
    assert np.allclose(back.numpy(), z)


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda x: aten.stft(x, 8), "return_complex"),
        (lambda x: aten.stft(x, 40, center=False, return_complex=True), "n_fft"),
        (lambda x: aten.stft(x, 8, 0, return_complex=True), "hop_length"),
        (lambda x: aten.stft(x, 8, win_length=9, return_complex=True), "win_length"),
        (lambda x: aten.stft(x, 8, window=aten.ones(5), return_complex=True), "window"),
        (lambda x: aten.stft(x[None, None], 8, return_complex=True), "3D"),
        (lambda x: aten.stft(aten.complex(x, x), 8, onesided=True), "onesided"),
        (lambda x: aten.istft(x.reshape(4, 5), 8), "complex"),
        (lambda x: aten.istft(aten.complex(x, x).reshape(4, 5), 8), "frequency"),
        (
            lambda x: aten.istft(
                aten.complex(x, x).reshape(5, 4), 8, window=aten.hann_window(8), center=False
            ),
            "window overlap add",
        ),
        (lambda x: aten.hann_window(-1), "non-negative"),
        (lambda x: aten.hann_window(4, dtype=int64), "floating"),
    ],
)
def test_errors_name_what_does_not_fit(call, text):
    with pytest.raises(RuntimeError, match=text):
        call(aten.arange(20.0))
