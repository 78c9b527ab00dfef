"""Windows against NumPy's, short-time Fourier transforms against their inverses, in eager mode and compiled."""

import numpy as np
import pytest

import argand as torch
from argand.signal import windows


@pytest.mark.parametrize("n", [0, 1, 2, 7, 8])
def test_symmetric_windows_are_numpys(n):
    for name, expected in {
        "bartlett": np.bartlett(n),
        "blackman": np.blackman(n),
        "hamming": np.hamming(n),
        "hann": np.hanning(n),
    }.items():
        found = getattr(windows, name)(n, dtype=torch.float64)
        np.testing.assert_allclose(found.numpy(), expected, atol=1e-12)
        # One period: without the last place of the next longer one.
        if n > 1:
            period = getattr(windows, name)(n, sym=False, dtype=torch.float64)
            longer = getattr(windows, name)(n + 1, dtype=torch.float64)
            np.testing.assert_allclose(period.numpy(), longer.numpy()[:-1], atol=1e-12)
            if name != "hamming" or n > 1:
                old = getattr(torch, f"{name}_window")(n, dtype=torch.float64)
                np.testing.assert_allclose(old.numpy(), period.numpy(), atol=1e-12)
    found = windows.kaiser(n, beta=3.5, dtype=torch.float64)
    np.testing.assert_allclose(found.numpy(), np.kaiser(n, 3.5), rtol=1e-7)


def test_other_windows():
    k = np.arange(9)
    np.testing.assert_allclose(
        windows.gaussian(9, std=2.0).numpy(), np.exp(-0.5 * ((k - 4) / 2) ** 2), rtol=1e-5
    )
    np.testing.assert_allclose(
        windows.exponential(9, tau=3.0).numpy(), np.exp(-abs(k - 4) / 3), rtol=1e-5
    )
    np.testing.assert_allclose(
        windows.exponential(9, center=2, sym=False).numpy(), np.exp(-abs(k - 2.0)), rtol=1e-5
    )
    np.testing.assert_allclose(windows.cosine(9).numpy(), np.sin(np.pi * (k + 0.5) / 9), rtol=1e-5)
    sums = windows.general_cosine(9, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411])
    assert torch.equal(windows.nuttall(9), sums) and abs(float(sums[4]) - 1) < 1e-6
    assert windows.hann(5, requires_grad=True).requires_grad
    for wrong in (
        lambda: windows.hann(-1),
        lambda: windows.hann(4, dtype=torch.int64),
        lambda: windows.gaussian(4, std=0),
        lambda: windows.exponential(4, center=1.0),
        lambda: windows.general_cosine(4, a=[]),
    ):
        with pytest.raises(ValueError, match="expected"):
            wrong()


@pytest.mark.parametrize("hop, length, center", [(None, None, True), (3, 10, True), (4, 12, False)])
def test_istft_inverts_stft(hop, length, center):
    torch.manual_seed(0)
    x = torch.randn(2, 64, dtype=torch.float64)
    window = torch.hann_window(length or 16, dtype=torch.float64) + 0.1
    options = dict(hop_length=hop, win_length=length, window=window, center=center)
    if not center:  # every element has weight
        options.update(win_length=None, window=torch.ones(16, dtype=torch.float64))
    found = torch.stft(x, 16, **options, return_complex=True)
    assert found.shape[:2] == (2, 9) and found.is_complex()
    back = torch.istft(found, 16, **options, length=64)
    n = 64 if center else 16 + (hop or 4) * (found.shape[2] - 1)
    assert torch.allclose(back[:, :n], x[:, :n]) and back.shape == x.shape
    pairs = torch.stft(x, 16, **options, return_complex=False)
    assert torch.equal(torch.view_as_complex(pairs), found)
    both = torch.stft(x, 16, **options, onesided=False, return_complex=True)
    assert torch.allclose(both[:, :9], found)
    assert torch.allclose(torch.istft(both, 16, **options, onesided=False, length=64), back)
    compiled = torch.compile(lambda x: torch.stft(x, 16, **options, return_complex=True))
    assert torch.allclose(compiled(x), found)


def test_stft_gradients_and_errors():
    x = torch.randn(20, dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(lambda x: torch.stft(x, 8, return_complex=False), (x,))
    torch.autograd.gradcheck(
        lambda x: torch.istft(torch.view_as_complex(x), 8),
        (torch.randn(5, 4, 2, dtype=torch.float64, requires_grad=True),),
    )
    with pytest.raises(RuntimeError, match="return_complex"):
        torch.stft(x, 8)
    with pytest.raises(RuntimeError, match="window"):
        torch.stft(x, 8, window=torch.ones(7), return_complex=True)
    with pytest.raises(RuntimeError, match="complex"):
        torch.istft(x.reshape(5, 4), 8)
