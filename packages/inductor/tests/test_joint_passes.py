"""Rewrites of joint graphs: both programs of a function, run in Triton's interpreter, against eager's results and gradients on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from lowered import trace
from simulated import Simulation, skip_without_triton

import argand_aot
import argand_aten as at
import argand_c10 as c10
from argand_autograd import grad
from argand_inductor.codegen.triton import Generator
from argand_inductor.graph_compiler import rewrite_joint
from argand_inductor.lowering import lower_graph, matrix
from argand_inductor.options import Options
from argand_inductor.program import ProgramSpec, results_of
from argand_inductor.schedule import compile_to_program

skip_without_triton()

ROWS, WIDTH, CLASSES = 6, 16, 67  # rows of no multiple of 16 bytes


@pytest.fixture(autouse=True)
def limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products count as large, and rows as longer than kernels hold."""
    monkeypatch.setattr(matrix, "WORTH", 1)
    monkeypatch.setattr(Generator, "longest_row", CLASSES - 1)


class Ops:
    """Operators by public name, on real tensors."""

    def __getattr__(self, name: str) -> Any:
        return c10.find_operator(name)


def run(body: Callable[..., Any], inputs: list[c10.Tensor]) -> tuple[Any, list[ProgramSpec]]:
    """(loss, of which gradients can be taken; the programs of forward and backward, the latter once it has run)."""
    specs: list[ProgramSpec] = []

    def compiler(module: Any, fakes: Any) -> Callable[..., Any]:
        spec = compile_to_program(lower_graph(module), options=Options(arch="sm_90"))
        specs.append(spec)
        return lambda *given: tuple(Simulation(spec, given).run())

    module = trace(body, inputs, devices=["cuda:0"] * len(inputs))
    fakes = [n.meta["val"] for n in module.graph.nodes if n.op == "placeholder"]
    made = argand_aot.compile(
        module, fakes, forward_compiler=compiler, backend="simulated", joint_passes=(rewrite_joint,)
    )
    return made(*inputs)[0], specs


def inputs_of(dtype: str, ignored: bool = False) -> list[c10.Tensor]:
    rng = np.random.default_rng(0)
    x = at.from_numpy(rng.standard_normal((2, ROWS // 2, WIDTH)).astype(np.float32))
    w = at.from_numpy(rng.standard_normal((CLASSES, WIDTH)).astype(np.float32))
    target = rng.integers(0, CLASSES, ROWS)
    if ignored:
        target[[1, 4]] = -100
    tensors = [x.to(getattr(c10, dtype)), w.to(getattr(c10, dtype))]
    return [*(t.requires_grad_(True) for t in tensors), at.from_numpy(target)]


def head(reduction: int) -> Callable[..., Any]:
    """A language model's head: the loss of every token."""

    def body(o: Any, x: Any, w: Any, target: Any) -> Any:
        scores = o.view(o.linear(x, w, None), [ROWS, CLASSES])
        logs = o.log_softmax(scores, 1)
        return o.nll_loss_forward(logs, target, None, reduction, -100)[0]

    return body


def gradients(loss: c10.Tensor, inputs: list[c10.Tensor]) -> list[Any]:
    found = grad([loss], inputs[:2], [at.ones_like(loss)])
    return [g.to(c10.float32).numpy() for g in found]


def largest(spec: ProgramSpec) -> list[tuple[Any, ...]]:
    """Sizes of the buffers with an element a row and class, that hold memory of their own."""
    names = {n for s in spec.steps for n in getattr(s, "writes", ())}
    names |= {n for s in spec.steps if hasattr(s, "operator") for n in results_of(s)}
    sizes = [spec.buffers[n].sizes for n in names if n in spec.buffers]
    return [s for s in sizes if s[-1:] and s[-1] >= CLASSES]


@pytest.mark.parametrize("reduction", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_cross_entropy_keeps_scores_and_two_numbers_a_row(dtype: str, reduction: int) -> None:
    inputs = inputs_of(dtype, ignored=True)
    loss, specs = run(head(reduction), inputs)
    wanted = head(reduction)(Ops(), *inputs)
    close = {"rtol": 2e-2, "atol": 2e-2} if dtype == "bfloat16" else {"rtol": 2e-5, "atol": 2e-5}
    np.testing.assert_allclose(
        loss.detach().to(c10.float32).numpy(), wanted.detach().to(c10.float32).numpy(), **close
    )
    for found, expected in zip(gradients(loss, inputs), gradients(wanted, inputs), strict=True):
        np.testing.assert_allclose(found, expected, **close)
    for spec in specs:  # the scores, and their gradient
        assert len(largest(spec)) == 1
    widths = {s[-1] for spec in specs for s in largest(spec)}
    assert widths == {128 if dtype == "bfloat16" else CLASSES}


def test_products_read_and_write_padded_rows_in_place() -> None:
    inputs = inputs_of("bfloat16")
    loss, specs = run(head(1), inputs)
    gradients(loss, inputs)
    for spec in specs:  # the weight's rows, whose number the scores' row is
        assert len([k for k in spec.launched() if "= pad" in k.comment]) == 1


def test_scores_that_the_caller_gets_keep_their_layout() -> None:

    def body(o: Any, x: Any, w: Any, target: Any) -> Any:
        return o.linear(x, w, None)

    inputs = inputs_of("bfloat16")
    made, _ = run(body, inputs)
    assert made.is_contiguous()
    wanted = body(Ops(), *inputs)
    np.testing.assert_array_equal(
        made.detach().to(c10.float32).numpy(), wanted.detach().to(c10.float32).numpy()
    )


def heads(o: Any, x: Any, w: Any, out: Any) -> Any:
    """Attention over two heads of eight features, with what joins them."""
    parts = [o.slice(o.linear(x, w, None), 2, i * WIDTH, (i + 1) * WIDTH) for i in range(3)]
    q, k, v = (o.transpose(o.view(p, [2, 3, 2, 8]), 1, 2) for p in parts)
    y = o.attention(q, k, v, None, True, 0.25)[0]
    joined = o.view(o.clone(o.transpose(y, 1, 2), memory_format=0), [2, 3, WIDTH])
    return o.sum(o.mul(o.linear(joined, out, None), x))


def test_heads_are_joined_without_copies() -> None:
    rng = np.random.default_rng(1)
    shapes = ((2, 3, WIDTH), (3 * WIDTH, WIDTH), (WIDTH, WIDTH))
    inputs = [
        at.from_numpy(rng.standard_normal(s).astype(np.float32)).requires_grad_(True)
        for s in shapes
    ]
    loss, specs = run(heads, inputs)
    wanted = heads(Ops(), *inputs)
    np.testing.assert_allclose(loss.detach().numpy(), wanted.detach().numpy(), rtol=1e-5)
    for found, expected in zip(gradients(loss, inputs), gradients(wanted, inputs), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    assert not [k for spec in specs for k in spec.launched() if "clone" in k.comment]


def test_results_of_attention_keep_their_layout() -> None:
    def body(o: Any, x: Any) -> Any:
        q = o.transpose(x, 1, 2)
        return o.attention(q, q, q, None, False, 0.5)[0]

    x = at.from_numpy(np.random.default_rng(2).standard_normal((1, 3, 2, 4)).astype(np.float32))
    made, _ = run(body, [x.requires_grad_(True)])
    assert made.is_contiguous()
    np.testing.assert_allclose(
        made.detach().numpy(), body(Ops(), x).detach().numpy(), rtol=1e-5, atol=1e-6
    )
