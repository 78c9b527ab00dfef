"""Ahead-of-time autograd: functionalization, derivation, partitioning and the runtime of compiled graphs."""

from argand_aot.compiler import CompiledGraph, EagerGraph, compile, load
from argand_aot.eager_backend import aot_eager, load_aot_eager
from argand_aot.values import UnsupportedGraph

__version__ = "0.1.0"
__all__ = ["CompiledGraph", "EagerGraph", "UnsupportedGraph", "aot_eager", "compile", "load", "load_aot_eager"]
