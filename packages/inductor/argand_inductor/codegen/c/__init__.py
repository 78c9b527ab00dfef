"""C kernels on GCC's vector extensions."""

from argand_inductor.codegen.c.step import generate_kernel

__all__ = ["generate_kernel"]
