"""Compiled programs from calls of operators, for tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from argand_c10 import Tensor, bfloat16, device, float32
from argand_fx import Graph, GraphModule
from argand_fx.shapes import GraphBuilder, ShapeEnv, from_tensor
from argand_inductor.artifact.make import make_program
from argand_inductor.fuse import Limits
from argand_inductor.loop_ir import Loop, check
from argand_inductor.lowering import lower_graph
from argand_inductor.program import ProgramSpec
from argand_inductor.schedule import compile_to_program

_INTEGER_OF = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}


def trace(
    body: Callable[..., Any],
    inputs: Sequence[Tensor],
    dynamic: Sequence[Sequence[int]] = (),
    devices: Sequence[str] = (),
) -> GraphModule:
    """The graph of `body(ops, *fakes)`; `dynamic`: dimensions with symbolic sizes, an entry an input. Equal sizes share a symbol.
    `devices`: where the fakes are, an entry an input, by default where the inputs are."""
    env = ShapeEnv()
    builder = GraphBuilder(Graph(), env)
    fakes = []
    symbols: dict[int, Any] = {}
    for i, tensor in enumerate(inputs):
        dims = dynamic[i] if dynamic else ()
        fake = from_tensor(tensor, env, source=("arg", i), dynamic_dims=dims)
        if dims:
            sizes = [
                symbols.setdefault(int(tensor.shape[d]), s) if d in dims else s
                for d, s in enumerate(fake.shape)
            ]
            strides: list[Any] = []
            step: Any = 1
            for s in reversed(sizes):
                strides.insert(0, step)
                step = step * s
            fake = type(fake)(sizes, strides, 0, tensor.dtype, tensor.device, False, fake.storage)
        if devices:
            fake = type(fake)(
                fake.shape,
                fake.stride(),
                0,
                tensor.dtype,
                device(devices[i]),
                tensor.requires_grad,
            )
        fakes.append(builder.placeholder(f"x{i}", fake))
    outputs = body(builder.ops, *fakes)
    builder.output(tuple(outputs) if isinstance(outputs, (list, tuple)) else (outputs,))
    return GraphModule({}, builder.graph)


def program_of(
    body: Callable[..., Any],
    inputs: Sequence[Tensor],
    dynamic: Sequence[Sequence[int]] = (),
    limits: Limits | None = None,
) -> tuple[Any, ProgramSpec]:
    """(compiled program, its spec)."""
    graph = lower_graph(trace(body, inputs, dynamic))
    for item in graph.items:
        if isinstance(item, Loop):
            check(item)
    spec = compile_to_program(graph, limits)
    return make_program(spec), spec


def bits(t: Tensor) -> np.ndarray[Any, Any]:
    """The elements as integers; every NaN is the same."""
    flat = t.contiguous().reshape([-1])
    if t.dtype is bfloat16:
        wide = flat.to(float32).numpy()
        return np.where(np.isnan(wide), -1, wide.view(np.int32))
    array = flat.numpy()
    if array.dtype.kind != "f":
        return array
    return np.where(np.isnan(array), -1, array.view(_INTEGER_OF[array.itemsize]))


def same_bits(a: Tensor, b: Tensor) -> bool:
    return (
        a.dtype is b.dtype and tuple(a.shape) == tuple(b.shape) and np.array_equal(bits(a), bits(b))
    )
