"""C kernels on GCC's vector extensions."""

from argand_inductor.codegen.c.step import Generator

__all__ = ["Generator"]
