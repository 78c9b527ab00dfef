"""Tensors without elements, of which traces are made: PyTorch's private module, which programs use nevertheless."""

from argand._subclasses.fake_tensor import FakeTensor as FakeTensor
from argand._subclasses.fake_tensor import FakeTensorMode as FakeTensorMode

__all__ = ["FakeTensor", "FakeTensorMode"]
