"""Gradients that a program takes of a part of itself (`graph_ops.take_gradients`), inside of its graph."""

from __future__ import annotations

from collections.abc import Sequence

from argand_aot.derive import derive_towards
from argand_aot.functionalize import Functionalizer
from argand_aot.values import UnsupportedGraph, Value, fresh_value, geometry_of
from argand_fx.shapes import FakeTensor

__all__ = ["take_gradients"]


def take_gradients(
    f: Functionalizer,
    like: Sequence[FakeTensor],
    outputs: Sequence[Value],
    gradients: Sequence[Value | None],
    inputs: Sequence[Value],
    create_graph: bool,
) -> tuple[Value, ...]:
    """The function of that name on values.

    Args:
        like: fake tensors that are laid out as the results.
    """
    tape = f.tape
    roots = [None if tape is None else tape.edge_of(y) for y in outputs]
    ends = [None if tape is None else tape.edge_of(x) for x in inputs]
    known, wanted = [e for e in roots if e is not None], [e for e in ends if e is not None]
    if len(known) < len(roots) or len(wanted) < len(ends):
        raise UnsupportedGraph("got gradients of, or by, a tensor without a history")
    before = f.recording, f.deriving
    f.recording, f.deriving = create_graph, True
    try:
        tangents = [
            _filled(f, y, 1) if g is None else g for y, g in zip(outputs, gradients, strict=True)
        ]
        found = derive_towards(f, known, tangents, wanted)
        made = [_filled(f, x, 0) if g is None else g for x, g in zip(inputs, found, strict=True)]
        results = []
        for g, fake in zip(made, like, strict=True):
            result = fresh_value(f.read(g), geometry_of(fake))
            edge = tape.edge_of(g) if tape is not None and create_graph else None
            if edge is not None:
                result.grad_fn, result.output_nr = edge.node, edge.number
            results.append(result)
    finally:
        f.recording, f.deriving = before
    return tuple(results)


def _filled(f: Functionalizer, like: Value, number: int) -> Value:
    make = f.ops.ones if number else f.ops.zeros
    made: Value = make(list(like.shape), dtype=like.dtype, device=like.device)
    return made
