"""What programs ask about CUDA before they choose a device: this build has the CPU only."""

from __future__ import annotations

__all__ = ["device_count", "is_available", "manual_seed", "manual_seed_all"]


def is_available() -> bool:
    """Whether a CUDA device can be used."""
    return False


def device_count() -> int:
    """How many CUDA devices can be used."""
    return 0


def manual_seed(seed: int) -> None:
    """Seed the current CUDA device's generator; without devices there is none."""
    int(seed)


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all CUDA devices; without devices there are none."""
    int(seed)
