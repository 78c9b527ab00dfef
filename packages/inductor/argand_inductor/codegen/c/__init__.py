"""C kernels on GCC's vector extensions."""

from .kernel import generate_kernel

__all__ = ["generate_kernel"]
