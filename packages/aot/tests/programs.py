"""Programs traced by the graph builder, and their comparison with eager execution."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import argand_aten as aten
import argand_autograd as autograd
import argand_c10 as c10
from argand_aot import CompiledGraph, aot_eager
from argand_c10 import Tensor
from argand_fx import Graph, GraphModule
from argand_fx.shapes import GraphBuilder

Program = Callable[..., Any]


class Ops:
    """The operators for both ways of running: `ops.name(...)`, and modes."""

    def __init__(self, ops: Any, builder: GraphBuilder | None) -> None:
        self._ops = ops
        self._builder = builder
        self._outer: list[bool] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ops, name)

    def no_grad(self) -> Any:
        return self if self._builder is not None else autograd.no_grad()

    def __enter__(self) -> None:
        assert self._builder is not None
        self._outer.append(self._builder.grad_enabled)
        self._builder.grad_enabled = False

    def __exit__(self, *exc: object) -> None:
        assert self._builder is not None
        self._builder.grad_enabled = self._outer.pop()


def as_tuple(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def trace(program: Program, inputs: Sequence[Any]) -> tuple[GraphModule, list[Any]]:
    """The graph of a program, and its fake inputs."""
    builder = GraphBuilder(Graph())
    fakes = []
    for i, x in enumerate(inputs):
        fakes.append(
            builder.placeholder(f"x{i}", builder.from_tensor(x)) if isinstance(x, Tensor) else x
        )
    out = program(Ops(builder.ops, builder), *fakes)
    builder.output(as_tuple(out))
    builder.graph.lint()
    return GraphModule(builder.constants, builder.graph), [f for f in fakes if hasattr(f, "shape")]


def compiled(program: Program, inputs: Sequence[Any]) -> CompiledGraph:
    """The program compiled by "aot_eager"."""
    found = aot_eager(*trace(program, inputs))
    assert isinstance(found, CompiledGraph), "the program fell back to eager"
    return found


def bits(x: Any) -> bytes:
    """The elements of a tensor in row-major order, NaNs made equal."""
    x = x.detach().contiguous()
    if x.dtype.is_complex:
        x = aten.view_as_real(x)
    if x.dtype.is_floating_point:
        x = aten.where(x == x, x, float("nan"))
        wide = x.to(c10.float64).flatten().tolist()
        return b"".join(struct.pack("<d", v) if v == v else b"nan-----" for v in wide)
    return repr(x.flatten().tolist()).encode()


def same(a: Any, b: Any) -> bool:
    """Are two results equal bit for bit, with shape, dtype and whether they require grad?"""
    if not isinstance(a, Tensor):
        return type(a) is type(b) and a == b
    facts = lambda t: (tuple(t.shape), t.dtype, t.requires_grad)  # noqa: E731
    return facts(a) == facts(b) and bits(a) == bits(b)


def same_but_zeros(a: Any, b: Any) -> bool:
    """Equal bit for bit but for signs of zeros."""
    return same(a, b) or (isinstance(a, Tensor) and same(a + 0.0, b + 0.0))


def copies(inputs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Leaves like `inputs`, and what the program gets: for inputs that are not leaves a copy with a history."""
    leaves, given = [], []
    for x in inputs:
        if not isinstance(x, Tensor):
            leaves.append(x)
            given.append(x)
            continue
        leaf = x.detach().clone()
        leaf.requires_grad = x.requires_grad
        leaves.append(leaf)
        given.append(leaf if x.is_leaf else leaf * 1.0)
    return leaves, given


def run(function: Callable[..., Any], inputs: Sequence[Any], seed: int = 7) -> dict[str, Any]:
    """Results, gradients, changed inputs and aliases of a call."""
    leaves, given = copies(inputs)
    wanted = [x for x in leaves if isinstance(x, Tensor) and x.requires_grad]
    c10.manual_seed(seed)
    results = as_tuple(function(*given))
    tensors = [r for r in results if isinstance(r, Tensor)]
    roots = [r for r in tensors if r.requires_grad]
    weights = [
        aten.ops.cos(aten.arange(r.numel()).to(c10.float32)).reshape(r.shape).to(r.dtype)
        for r in roots
    ]
    grads: Sequence[Any] = ()
    if roots and wanted:
        grads = autograd.grad(roots, wanted, weights, allow_unused=True)
    everything = [*results, *given]
    aliases = [
        (i, k)
        for i, a in enumerate(everything)
        for k, b in enumerate(everything[:i])
        if isinstance(a, Tensor)
        and isinstance(b, Tensor)
        and a.numel()
        and a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
    ]
    identities = [
        (i, k)
        for i, a in enumerate(everything)
        for k, b in enumerate(everything[:i])
        if isinstance(a, Tensor) and a is b
    ]
    return {
        "results": results,
        "grads": tuple(grads),
        "inputs": given,
        "aliases": aliases,
        "identities": identities,
        "strides": [r.stride() for r in results if isinstance(r, Tensor)],
    }


def check(
    program: Program, inputs: Sequence[Any], *, aliases: bool = True, strides: bool = True
) -> CompiledGraph:
    """Compare the compiled program with eager, bit for bit; returns the compiled graph."""
    eager = run(lambda *x: program(Ops(aten.ops, None), *x), inputs)
    _, given = copies(inputs)
    graph = compiled(program, given)
    got = run(graph, inputs)
    compare(eager, got, aliases=aliases, strides=strides)
    return graph


def close(a: Any, b: Any) -> bool:
    """Equal but for the order in which gradients were added."""
    if not isinstance(a, Tensor) or not isinstance(b, Tensor):
        return a is b
    return bool(((a - b).abs() <= 1e-5 * (1 + a.abs())).all()) or same(a, b)


def compare(
    eager: dict[str, Any], got: dict[str, Any], *, aliases: bool = True, strides: bool = True
) -> None:
    """Raise AssertionError where two runs differ.

    Gradients of slices are added in place: where they are zero their signs depend on what is added. Gradients that flow in by a result and by its views, or past the graph, are added in another order: the views of
    results are made outside of the compiled graph.
    """
    shared = bool(eager["aliases"])
    for what in ("results", "grads", "inputs"):
        assert len(eager[what]) == len(got[what])
        for i, (a, b) in enumerate(zip(eager[what], got[what], strict=True)):
            equal = same if what != "grads" else close if shared else same_but_zeros
            assert equal(a, b), f"{what}[{i}]:\neager {a}\ncompiled {b}"
    if aliases:
        assert eager["identities"] == got["identities"]
        assert eager["aliases"] == got["aliases"]
    if strides:
        assert eager["strides"] == got["strides"]
