"""What programs ask of `torch.onnx` while they run. Nothing is exported here: `argand.export` keeps programs in a format of its own."""

from __future__ import annotations

__all__ = ["is_in_onnx_export"]


def is_in_onnx_export() -> bool:
    """Whether `torch.onnx.export` runs the program: never."""
    return False
