"""Triton kernels, compiled ahead of their first call and launched without Python."""

from argand_inductor.codegen.triton.step import Generator

__all__ = ["Generator"]
