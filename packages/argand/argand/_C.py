"""What programs call in PyTorch's C++ module although it is private."""

from __future__ import annotations


def _log_api_usage_once(event: str) -> None:
    """Nothing is counted."""
