"""Generated Triton kernels: run in Triton's interpreter against eager's results on the CPU, and compiled for an architecture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from lowered import same_bits
from simulated import SEED, Simulation, reported, simulate, skip_without_triton, spec_of

import argand_aten as at
import argand_c10 as c10
from argand_inductor.artifact import triton_pool
from argand_inductor.codegen.triton.values import POINTERS
from argand_inductor.lowering import matrix
from argand_inductor.options import Options

skip_without_triton()


class Eager:
    """Operators by public name, on real tensors."""

    def __getattr__(self, name: str) -> Any:
        return c10.find_operator(name)


def whole(*shape: int, seed: int = 0, dtype: str = "float32") -> c10.Tensor:
    """Small integers, whose sums are exact in any order."""
    rng = np.random.default_rng(seed)
    return at.from_numpy(rng.integers(-4, 5, shape).astype(np.float32)).to(getattr(c10, dtype))


def normal(*shape: int, seed: int = 0) -> c10.Tensor:
    return at.from_numpy(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def classes(n: int, rows: int) -> c10.Tensor:
    return at.from_numpy(np.random.default_rng(3).integers(0, n, rows))


def run(
    body: Callable[..., Any], *inputs: c10.Tensor, **choices: Any
) -> tuple[Simulation, list[Any]]:
    """(the simulated call, eager's results)."""
    made = simulate(body, inputs, **choices)
    expected = body(Eager(), *inputs)
    return made, list(expected) if isinstance(expected, (list, tuple)) else [expected]


EXACT: dict[str, tuple[Callable[..., Any], list[c10.Tensor]]] = {
    "chain": (lambda o, x, y: o.relu(o.mul(o.add(x, y), 2.0)), [normal(33, 45), normal(33, 45)]),
    "two results": (lambda o, x, y: (o.add(x, y), o.mul(x, y)), [normal(70), normal(70)]),
    "broadcast": (lambda o, x, y: o.add(x, y), [normal(3, 33, 45), normal(33, 1)]),
    "transposed": (
        lambda o, x, y: o.add(o.transpose(x, 0, 1), y),
        [normal(33, 45), normal(45, 33)],
    ),
    "transposed in the middle": (
        lambda o, x, y: o.mul(o.transpose(x, 1, 2), y),
        [normal(3, 33, 45), normal(3, 45, 33)],
    ),
    "slices": (
        lambda o, x: o.add(o.slice(x, 1, 1, 40, 3), o.slice(x, 1, 2, 41, 3)),
        [normal(9, 45)],
    ),
    "where of integers": (
        lambda o, x, y: o.where(o.gt(x, y), x, o.mul(y, 3)),
        [whole(300, dtype="int32"), whole(300, seed=1, dtype="int32")],
    ),
    "bool": (lambda o, x: o.logical_not(o.gt(x, 0.0)), [normal(77)]),
    "float64": (lambda o, x: o.add(o.mul(x, 0.1), 1e-9), [normal(77).to(c10.float64)]),
    "one element": (lambda o, x: o.mul(x, 3.0), [normal()]),
    "triangle": (lambda o, x: o.tril(x, 2), [normal(20, 30)]),
    "padded": (lambda o, x: o.slice_backward(x, [20, 30], 1, 4, 14, 1), [normal(20, 10)]),
    "row sum": (lambda o, x: o.sum(x, [1]), [whole(33, 45)]),
    "centred rows": (lambda o, x: o.sub(x, o.sum(x, [1], True)), [whole(33, 45)]),
    "column sum": (lambda o, x: o.sum(x, [0]), [whole(333, 45)]),
    "sum of a product": (lambda o, x, y: o.sum(o.mul(x, y)), [whole(33, 45), whole(33, 45)]),
    "maximum of outer and inner": (lambda o, x: o.amax(o.mul(x, 2.0), [0, 2]), [normal(5, 7, 9)]),
    "any and all": (
        lambda o, x: (o.any(o.gt(x, 0.0)), o.all(o.gt(x, -9.0))),
        [normal(5, 7, 9)],
    ),
    "integer sum": (lambda o, x: o.sum(x, [1]), [whole(9, 100, dtype="int64")]),
    "parts": (lambda o, x: o.sum(x, [1]), [whole(1, 33000)]),
    "parts that do not divide": (lambda o, x: o.sum(x), [whole(33001)]),
    "parts of columns": (lambda o, x: o.sum(o.mul(x, 2.0), [0]), [whole(4099, 8)]),
    "long rows": (lambda o, x: o.sub(x, o.amax(x, [1], True)), [normal(2, 9001)]),
    "row of a transposed tensor": (lambda o, x: o.sum(o.transpose(x, 0, 1), [1]), [whole(40, 33)]),
}


@pytest.mark.parametrize("name", EXACT)
def test_the_bits_are_eagers(name: str) -> None:
    body, inputs = EXACT[name]
    made, expected = run(body, *inputs)
    for found, wanted in zip(made.results, expected, strict=True):
        assert same_bits(found, wanted), (found, wanted)


@pytest.mark.parametrize("name", ["chain", "centred rows", "column sum", "transposed"])
def test_sizes_may_be_symbols(name: str) -> None:
    body, inputs = EXACT[name]
    made, expected = run(body, *inputs, dynamic=[range(len(t.shape)) for t in inputs])
    assert made.symbols
    for found, wanted in zip(made.results, expected, strict=True):
        assert same_bits(found, wanted)


def _norm_gradients(o: Any, g: Any, x: Any, w: Any, b: Any) -> Any:
    _, mean, rstd = o.native_layer_norm(x, [45], w, b, 1e-5)
    mask = [True, True, True]
    return o.native_layer_norm_backward(g, x, [45], mean, rstd, w, b, mask)


def _root_norm(o: Any, g: Any, x: Any, w: Any) -> Any:
    y, root = o.fused_rms_norm(x, [45], w, 1e-5)
    return (y, *o.fused_rms_norm_backward(g, x, [45], root, w, [True, True]))


def _cross_entropy(reduction: int) -> Callable[..., Any]:
    return lambda o, x, t: o.nll_loss_forward(o.log_softmax(x, 1), t, None, reduction, 3)


def _cross_entropy_gradient(reduction: int) -> Callable[..., Any]:
    def body(o: Any, g: Any, y: Any, t: Any, w: Any) -> Any:
        inner = o.nll_loss_backward(g, y, t, None, reduction, 3, w)
        return o.log_softmax_backward(inner, y, 1, c10.float32)

    return body


_WEIGHT = at.from_numpy(np.array(31.0, np.float32))
# name: (body, inputs, launches)
CLOSE: dict[str, tuple[Callable[..., Any], list[c10.Tensor], int]] = {
    "softmax": (lambda o, x: o.softmax(x, -1), [normal(33, 45)], 1),
    "softmax over columns": (lambda o, x: o.softmax(x, 0), [normal(33, 45)], 1),
    "softmax in the middle": (lambda o, x: o.log_softmax(x, 1), [normal(3, 5, 7)], 1),
    "softmax of a product": (lambda o, x: o.softmax(o.mul(x, 2.0), -1), [normal(3, 4100)], 1),
    "gradient of long rows": (
        lambda o, g, y: o.log_softmax_backward(g, y, 1, c10.float32),
        [normal(2, 9000), normal(2, 9000, seed=1)],
        1,
    ),
    "softmax gradient": (
        lambda o, g, y: o.softmax_backward(g, y, 1, c10.float32),
        [normal(3, 5, 7), normal(3, 5, 7, seed=1)],
        1,
    ),
    "layer norm": (
        lambda o, x, w, b: o.native_layer_norm(x, [45], w, b, 1e-5),
        [normal(33, 45), normal(45), normal(45)],
        1,
    ),
    "layer norm gradients": (
        _norm_gradients,
        [normal(33, 45), normal(33, 45, seed=1), normal(45), normal(45)],
        2,
    ),
    "root mean square norm": (_root_norm, [normal(33, 45), normal(33, 45, seed=1), normal(45)], 2),
    "cross entropy": (_cross_entropy(1), [normal(33, 45), classes(45, 33)], 2),
    "cross entropy, each": (_cross_entropy(0), [normal(33, 45), classes(45, 33)], 2),
    "cross entropy, summed": (_cross_entropy(2), [normal(33, 45), classes(45, 33)], 3),
    "cross entropy gradient": (
        _cross_entropy_gradient(1),
        [normal(), normal(33, 45), classes(45, 33), _WEIGHT],
        1,
    ),
    "cross entropy gradient, each": (
        _cross_entropy_gradient(0),
        [normal(33), normal(33, 45), classes(45, 33), _WEIGHT],
        1,
    ),
}


@pytest.mark.parametrize("name", CLOSE)
def test_rows_fuse(name: str) -> None:
    body, inputs, launches = CLOSE[name]
    made, expected = run(body, *inputs)
    assert made.launches <= launches
    for found, wanted in zip(made.results, expected, strict=True):
        assert found.dtype is wanted.dtype and tuple(found.shape) == tuple(wanted.shape)
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("bad", [-1, 45])
def test_what_is_no_class_is_reported(bad: int) -> None:
    target = np.arange(33)
    target[[4, 20]] = [3, bad]  # 3 is ignored
    body, inputs = _cross_entropy(1), [normal(33, 45), at.from_numpy(target)]
    simulate(body, inputs)
    assert reported() == [77, bad, 45 << 6 | 1, 0]
    target[20] = 3
    simulate(body, [inputs[0], at.from_numpy(target)])
    assert reported() == [0, 0, 0, 0]


def test_every_shape_of_a_kernel_has_its_own_order_of_operands() -> None:
    x, y, w, b = normal(33, 45), normal(33, 45), whole(45, dtype="float16"), normal(45)

    def body(o: Any, x: Any, y: Any, w: Any, b: Any) -> Any:
        given = [o.add(t, 1.0) for t in (x, y)]
        return [
            (t, *o.native_layer_norm(t, [45], o._to_copy(w, dtype=c10.float32), b, 1e-5))
            for t in given
        ][1]

    options = Options(mode="max-autotune-no-cudagraphs", arch="sm_90")
    spec = spec_of(body, [x, y, w, b], options=options)
    dtypes = {n: e.dtype for n, e in spec.buffers.items()} | {e.name: e.dtype for e in spec.inputs}  # type: ignore[union-attr]
    orders = set()
    for step in spec.steps:
        for way in (step, *step.others):
            kinds = [kind for _, kind in way.kernel.signature if kind.startswith("*")]
            assert kinds == [POINTERS[dtypes[a]] for a in way.args]
            orders.add(way.args)
    assert len(orders) > len(spec.steps)


def test_rows_beyond_32_bits_are_walked_with_64_bits() -> None:
    x = at.empty([1 << 17, 1 << 15], dtype=c10.float16, device="meta")
    spec = spec_of(lambda o, x: o.sum(x, [0]), [x])
    (step,) = spec.steps
    assert "r = (r0 + tl.arange(0, R))[None, :].to(tl.int64)" in step.kernel.source


def test_numbers_of_the_host_are_parameters() -> None:
    scale = at.from_numpy(np.array(2.5, np.float32))
    made, expected = run(lambda o, x, s: o.mul(x, s), normal(50), scale, devices=["cuda:0", "cpu"])
    assert len(made.spec.steps[0].scalars) == 1
    assert same_bits(made.results[0], expected[0])


def test_devices_do_not_share_kernels() -> None:
    def body(o: Any, x: Any, y: Any) -> Any:
        return o.mul(o.add(x, 1.0), 2.0), o.mul(o.add(y, 1.0), 2.0)

    spec = spec_of(body, [normal(50), normal(50)], devices=["cuda:0", "cpu"])
    assert len(spec.launched()) == 1 and len(spec.kernels()) == 1


def test_dropout_draws_eagers_words() -> None:
    x = normal(40, 41)
    c10.manual_seed(SEED)
    made, expected = run(lambda o, x: o.native_dropout(x, 0.25, True), x)
    assert made.counter == 410
    for found, wanted in zip(made.results, expected, strict=True):
        assert same_bits(found, wanted)


@pytest.mark.parametrize("arch", ["sm_90", "gfx942"])
def test_kernels_compile_without_a_device(arch: str) -> None:
    bodies = [EXACT[n] for n in ("chain", "transposed", "centred rows", "parts of columns")]
    bodies += [CLOSE[n][:2] for n in ("layer norm", "softmax of a product")]
    kernels = {k.name: k for b, inputs in bodies for k in spec_of(b, inputs).launched()}
    images = triton_pool.compile_kernels(kernels.values(), arch)
    assert set(images) == set(kernels)
    for image in images.values():
        assert image.data.startswith(b"\x7fELF") and image.threads % 32 == 0


def test_images_are_kept_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = spec_of(*EXACT["chain"]).launched()
    first = triton_pool.compile_kernels(kernels, "sm_90")
    monkeypatch.setattr(triton_pool, "pool", None)
    assert triton_pool.compile_kernels(kernels, "sm_90") == first


def test_products_of_unaligned_matrices_are_padded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix, "WORTH", 1)
    half = [whole(2, 12, 16, dtype="float16"), whole(21, 16, seed=1, dtype="float16")]
    grad = whole(24, 21, seed=2, dtype="float16")

    def body(o: Any, x: Any, w: Any, g: Any) -> Any:
        flat = o.reshape(x, [24, 16])
        return o.linear(x, w, None), o.mm(g, w), o.mm(o.transpose(g, 0, 1), flat)

    made, expected = run(body, *half, grad)
    pads = [k for k in made.spec.launched() if "= pad" in k.comment]
    assert len(pads) == 3  # the weight's rows, the gradient once for both products, the scores
    for found, wanted in zip(made.results, expected, strict=True):
        assert same_bits(found, wanted)
