"""The peer's environment lies behind the build's own: the peer can be imported, and NumPy is ours."""

import sys

import numpy as np
import torch


def test_peer_and_own_packages_in_one_process() -> None:
    x = np.arange(6.0).reshape(2, 3)
    assert torch.from_numpy(x).sum().item() == 15.0
    assert np.__file__.startswith(sys.prefix)
    assert not torch.__file__.startswith(sys.prefix)
