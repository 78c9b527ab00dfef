"""Compiled graphs of dequantize -> operator -> quantize: which operators they become, and that results are NumPy's in integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import simulation

import argand_aten as aten
import argand_c10 as c10
import argand_dynamo as dynamo
import argand_inductor.lowering as inductor_lowering
from argand_autograd import no_grad
from argand_inductor import backend as inductor
from argand_quant import operators as ops

U8 = (0, 255, c10.uint8)
S8 = (-128, 127, c10.int8)


def quantized(x: Any, scale: float, zero: int, kind: Any = U8) -> Any:
    return ops.dequantize_per_tensor(
        ops.quantize_per_tensor(x, scale, zero, *kind), scale, zero, *kind
    )


def weight(w: Any, scales: Any) -> Any:
    return ops.dequantize_per_channel(w, scales, None, 0, *S8)


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The graphs that are lowered."""
    seen: list[Any] = []
    lower = inductor_lowering.lower_graph

    def spy(gm: Any) -> Any:
        seen.append(gm.graph)
        return lower(gm)

    monkeypatch.setattr(inductor_lowering, "lower_graph", spy)
    return seen


def targets(graph: Any) -> list[str]:
    return [n.target.name for n in graph.nodes if isinstance(n.target, c10.Operator)]


def compiled(function: Callable[..., Any], *args: Any) -> Any:
    with no_grad():
        return dynamo.compile(function, backend=inductor, fullgraph=True)(*args)


def normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 1, shape).astype(np.float32)


def int8(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)


def tensors(*arrays: Any) -> list[Any]:
    return [aten.from_numpy(a) for a in arrays]


def test_elementwise_chains_are_loops_and_equal_eager(graphs) -> None:
    def chain(a: Any, b: Any) -> Any:
        total = quantized(a, 0.017, 31) + quantized(b, 0.02, -3, S8)
        return ops.quantize_per_tensor(aten.relu(total), 0.03, 4, *U8)

    x = normal(1, 7, 131)
    x[0, :6] = [np.nan, np.inf, -np.inf, 1e30, 0.0085, 0.0255]
    given = tensors(x, normal(2, 7, 131))
    result = compiled(chain, *given)
    assert result.dtype == c10.uint8
    np.testing.assert_array_equal(result.numpy(), chain(*given).numpy())
    lowered = inductor_lowering.lower_graph(_module(graphs[-1]))
    assert not any("call" in line for line in str(lowered).splitlines() if "quantize" in line)


def _module(graph: Any) -> Any:
    from argand_fx import GraphModule

    return GraphModule({}, graph)


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("out", [None, U8, S8], ids=str)
def test_linear(graphs, relu, out) -> None:
    def layer(x: Any, w: Any, s: Any, bias: Any) -> Any:
        y = aten.linear(quantized(x, 0.02, 120), weight(w, s), bias)
        y = aten.relu(y) if relu else y
        return y if out is None else ops.quantize_per_tensor(y, 0.5, 7, *out)

    x, w, bias = normal(1, 5, 6, 37), int8(2, 21, 37), normal(3, 21)
    scales = np.random.default_rng(4).uniform(0.01, 0.02, 21).astype(np.float32)
    result = compiled(layer, *tensors(x, w, scales, bias)).numpy()
    quantize = "quantized_decomposed::quantize_per_tensor"
    assert targets(graphs[-1]) == ["quantized::qlinear_prepack", quantize, "quantized::qlinear"]
    q = simulation.quantize(x, 0.02, 120, 0, 255)
    y = simulation.product(simulation.linear_sums(q, 120, w), np.float32(0.02) * scales, bias)
    dtype = "float32" if out is None else out[2].name
    np.testing.assert_array_equal(result, simulation.finish(y, dtype, 0.5, 7, relu))
    reference = layer(*tensors(x, w, scales, bias)).numpy().astype(np.float64)
    assert np.abs(result - reference).max() <= (1e-3 if out is None else 1)


def test_linear_and_sum_of_quantized_values(graphs) -> None:
    def layer(x: Any, w: Any, s: Any, other: Any) -> Any:
        y = aten.relu(quantized(other, 0.1, 3) + aten.linear(quantized(x, 0.02, 120), weight(w, s)))
        return ops.quantize_per_tensor(y, 0.5, 7, *U8)

    x, w, other = normal(1, 5, 37), int8(2, 21, 37), normal(3, 5, 21)
    scales = np.full(21, 0.01, np.float32)
    result = compiled(layer, *tensors(x, w, scales, other)).numpy()
    assert targets(graphs[-1])[-1] == "quantized::qlinear"
    assert "add" not in targets(graphs[-1])
    q = simulation.quantize(x, 0.02, 120, 0, 255)
    y = simulation.product(simulation.linear_sums(q, 120, w), np.float32(0.02) * scales, None)
    added = simulation.dequantize(simulation.quantize(other, 0.1, 3, 0, 255), 0.1, 3)
    np.testing.assert_array_equal(result, simulation.finish(y + added, "uint8", 0.5, 7, True))


def test_weight_with_one_scale(graphs) -> None:
    def layer(x: Any, w: Any) -> Any:
        return aten.linear(quantized(x, 0.02, 120), ops.dequantize_per_tensor(w, 0.01, 0, *S8))

    x, w = normal(1, 5, 37), int8(2, 21, 37)
    result = compiled(layer, *tensors(x, w)).numpy()
    assert "quantized::qlinear" in targets(graphs[-1])
    q = simulation.quantize(x, 0.02, 120, 0, 255)
    factor = np.float32(0.02) * np.full(21, 0.01, np.float32)
    y = simulation.product(simulation.linear_sums(q, 120, w), factor, None)
    np.testing.assert_array_equal(result, y)


@pytest.mark.parametrize("relu", [False, True])
def test_dynamic_linear(graphs, relu) -> None:
    def layer(x: Any, w: Any, s: Any, bias: Any) -> Any:
        scale, zero = ops.choose_qparams_tensor(x, 0, 255, 1e-5, c10.uint8)
        q = ops.quantize_per_tensor_tensor(x, scale, zero, *U8)
        d = ops.dequantize_per_tensor_tensor(q, scale, zero, *U8)
        y = aten.linear(d, weight(w, s), bias)
        return aten.relu(y) if relu else y

    x, w, bias = normal(1, 5, 37), int8(2, 21, 37), normal(3, 21)
    scales = np.full(21, 0.01, np.float32)
    result = compiled(layer, *tensors(x, w, scales, bias)).numpy()
    assert targets(graphs[-1]) == ["quantized::qlinear_prepack", "quantized::qlinear_dynamic"]
    scale, zero = simulation.choose_affine(x, 0, 255, 1e-5)
    q = simulation.quantize(x, scale, zero, 0, 255)
    y = simulation.product(simulation.linear_sums(q, zero, w), scale * scales, bias)
    np.testing.assert_array_equal(result, simulation.finish(y, "float32", relu=relu))


def test_convolutions_in_a_row_keep_their_layout(graphs) -> None:
    def net(x: Any, w1: Any, s1: Any, b1: Any, w2: Any, s2: Any) -> Any:
        y = aten.relu(aten.conv2d(quantized(x, 0.02, 120), weight(w1, s1), b1, 1, 1))
        y = quantized(y, 0.3, 0)
        z = aten.relu(aten.conv2d(y, weight(w2, s2), None, 1, 1) + y)
        return ops.quantize_per_tensor(z, 0.9, 2, *U8)

    x, w1, w2 = normal(1, 2, 3, 9, 8), int8(2, 16, 3, 3, 3), int8(3, 16, 16, 3, 3)
    b1, s1, s2 = normal(4, 16), np.full(16, 0.01, np.float32), np.full(16, 0.02, np.float32)
    result = compiled(net, *tensors(x, w1, s1, b1, w2, s2))
    assert targets(graphs[-1]).count("quantized::qconv2d") == 2
    assert not {"relu", "add", "convolution"} & set(targets(graphs[-1]))
    lasts = [
        n.kwargs.get("channels_last", False)
        for n in graphs[-1].nodes
        if "qconv2d" in n.name and "prepack" not in n.name
    ]
    assert lasts == [True, False]
    assert result.is_contiguous()
    ones, shape = ((1, 1), (1, 1), (1, 1), 1), (1, 16, 1, 1)
    q = simulation.quantize(x, 0.02, 120, 0, 255)
    y = simulation.product(
        simulation.conv_sums(q, 120, w1, *ones),
        (np.float32(0.02) * s1).reshape(shape),
        b1.reshape(shape),
    )
    q = simulation.finish(y, "uint8", 0.3, 0, True)
    z = simulation.product(
        simulation.conv_sums(q, 0, w2, *ones), (np.float32(0.3) * s2).reshape(shape), None
    )
    z = z + simulation.dequantize(q, 0.3, 0)
    np.testing.assert_array_equal(result.numpy(), simulation.finish(z, "uint8", 0.9, 2, True))


def test_pooling_moves_before_dequantize(graphs) -> None:
    def pool(x: Any) -> Any:
        pooled = aten.max_pool2d(quantized(x, 0.02, 120), 3, 2, 1)
        return ops.quantize_per_tensor(pooled, 0.02, 120, *U8)

    x = normal(1, 2, 5, 9, 8)
    result = compiled(pool, *tensors(x))
    assert targets(graphs[-1])[1:] == ["quantized::qmax_pool2d"]
    np.testing.assert_array_equal(result.numpy(), pool(*tensors(x)).numpy())


def test_pooling_between_convolutions_keeps_the_layout(graphs) -> None:
    def net(x: Any, w1: Any, w2: Any, s: Any) -> Any:
        y = quantized(aten.relu(aten.conv2d(quantized(x, 0.02, 120), weight(w1, s))), 0.3, 0)
        y = quantized(aten.max_pool2d(y, 2), 0.3, 0)
        return aten.conv2d(y, weight(w2, s))

    x, w1, w2 = normal(1, 2, 3, 10, 10), int8(2, 16, 3, 3, 3), int8(3, 16, 16, 3, 3)
    given = tensors(x, w1, w2, np.full(16, 0.01, np.float32))
    result, expected = compiled(net, *given), net(*given)
    called = [n for n in graphs[-1].nodes if "prepack" not in n.name and "q" in n.name[:2]]
    names = [n.target.name.partition("::")[2] for n in called]
    assert names == ["quantize_per_tensor", "qconv2d", "qmax_pool2d", "qconv2d"]
    assert [n.kwargs.get("channels_last", False) for n in called[1:]] == [True, True, False]
    assert (result - expected).abs().max() <= 1e-4 * expected.abs().max()


def test_products_of_activations(graphs) -> None:
    def scores(a: Any, b: Any) -> Any:
        y = aten.matmul(quantized(a, 0.02, 120), quantized(b, 0.03, 5, S8).transpose(-1, -2))
        return ops.quantize_per_tensor(y, 0.5, 7, *S8)

    def product(a: Any, b: Any) -> Any:
        y = aten.bmm(quantized(a, 0.02, 120), quantized(b, 0.03, 5, S8))
        return ops.quantize_per_tensor(y, 0.5, 7, *S8)

    a, b = normal(1, 3, 6, 32), normal(2, 3, 32, 5)
    result = compiled(product, *tensors(a, b)).numpy()
    assert "quantized::qmatmul" in targets(graphs[-1])
    qa, qb = simulation.quantize(a, 0.02, 120, 0, 255), simulation.quantize(b, 0.03, 5, -128, 127)
    y = simulation.product((qa - 120) @ (qb - 5), np.float32(0.02) * np.float32(0.03), None)
    np.testing.assert_array_equal(result, simulation.finish(y, "int8", 0.5, 7))
    transposed = tensors(a, np.ascontiguousarray(b.swapaxes(1, 2)))
    np.testing.assert_array_equal(compiled(scores, *transposed).numpy(), result)


def test_embedding(graphs) -> None:
    def look_up(w: Any, s: Any, z: Any, i: Any) -> Any:
        return aten.embedding(ops.dequantize_per_channel(w, s, z, 0, *S8), i)

    given = tensors(int8(1, 11, 20), np.full(11, 0.3), np.arange(11), np.array([[1, 10], [0, 3]]))
    result = compiled(look_up, *given)
    assert targets(graphs[-1]) == ["quantized::qembedding"]
    np.testing.assert_array_equal(result.numpy(), look_up(*given).numpy())


def test_what_has_no_integers_stays(graphs) -> None:
    """Weights with zero points, ranges that are not the dtype's, values that are read elsewhere."""

    def layers(x: Any, w: Any, s: Any, z: Any) -> Any:
        d = quantized(x, 0.02, 120)
        shifted = aten.linear(d, ops.dequantize_per_channel(w, s, z, 0, *S8))
        y = aten.linear(d, weight(w, s))
        narrow = ops.quantize_per_tensor(y, 0.5, 7, 0, 127, c10.uint8)
        return shifted, y, narrow

    x, w = normal(1, 5, 37), int8(2, 21, 37)
    given = tensors(x, w, np.full(21, 0.01, np.float32), np.arange(21))
    results = compiled(layers, *given)
    called = targets(graphs[-1])
    assert called.count("linear") == called.count("quantized::qlinear") == 1
    for result, expected in zip(results, layers(*given), strict=True):
        assert np.abs(result.numpy().astype(np.float64) - expected.numpy()).max() <= 1


def test_weights_are_packed_once() -> None:
    def layer(x: Any, w: Any, s: Any) -> Any:
        return aten.linear(quantized(x, 0.02, 120), weight(w, s))

    x, w, s = tensors(normal(1, 5, 37), int8(2, 21, 37), np.full(21, 0.01, np.float32))
    w = w.clone()
    call = dynamo.compile(layer, backend=inductor, fullgraph=True)
    with no_grad():
        first = call(x, w, s)
        address = ops.qlinear_prepack(w).data_ptr()
        assert (call(x, w, s) == first).all()
        assert ops.qlinear_prepack(w).data_ptr() == address
        w.zero_()
        assert (call(x, w, s) == 0).all()


def test_sizes_may_vary(graphs) -> None:
    def layer(x: Any, w: Any, s: Any) -> Any:
        y = aten.relu(aten.linear(quantized(x, 0.02, 120), weight(w, s)))
        return ops.quantize_per_tensor(y, 0.5, 7, *U8)

    w, s = tensors(int8(2, 21, 37), np.full(21, 0.01, np.float32))
    call = dynamo.compile(layer, backend=inductor, fullgraph=True, dynamic=True)
    for n in (4, 9, 17):
        (x,) = tensors(normal(n, n, 37))
        with no_grad():
            difference = call(x, w, s).numpy().astype(int) - layer(x, w, s).numpy()
        assert np.abs(difference).max() <= 1
    assert len(graphs) == 1
