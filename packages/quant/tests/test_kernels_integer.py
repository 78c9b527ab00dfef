"""Products of integers against NumPy's in int64, bit for bit, in every tier that the processor has."""

from __future__ import annotations

import numpy as np
import pytest
import simulation
from tiers import lower_tiers, run_again

import argand_aten as aten
import argand_c10 as c10
from argand_quant import operators as ops

LIMITS = {"uint8": (0, 255), "int8": (-128, 127)}
DTYPES = {"uint8": c10.uint8, "int8": c10.int8, "float32": c10.float32}


def integers(seed: int, dtype: str, *shape: int) -> np.ndarray:
    low, high = LIMITS[dtype]
    return np.random.default_rng(seed).integers(low, high + 1, shape).astype(dtype)


def scales(n: int) -> np.ndarray:
    return np.random.default_rng(n).uniform(0.001, 0.02, n).astype(np.float32)


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).normal(0, 3, shape).astype(np.float32)


def linear(x, zero, w, w_scales, bias, dtype, scale=0.07, out_zero=3, **options) -> np.ndarray:
    packed = ops.qlinear_prepack(aten.from_numpy(w))
    result = ops.qlinear(
        aten.from_numpy(x), 0.05, zero, packed, aten.from_numpy(w_scales), None if bias is None else aten.from_numpy(bias),
        scale, out_zero, DTYPES[dtype], **options,
    )  # fmt: skip
    assert result.dtype == DTYPES[dtype]
    return result.numpy()


def expected_linear(
    x, zero, w, w_scales, bias, dtype, scale=0.07, out_zero=3, relu=False, added=None
) -> np.ndarray:
    y = simulation.product(simulation.linear_sums(x, zero, w), np.float32(0.05) * w_scales, bias)
    return simulation.finish(y if added is None else y + added, dtype, scale, out_zero, relu)


@pytest.mark.parametrize("m", [0, 1, 2, 3, 5, 6, 7, 13])
@pytest.mark.parametrize(
    ("n", "k"),
    [(1, 1), (15, 3), (16, 4), (17, 5), (64, 64), (65, 31), (100, 130), (1, 257), (5, 0)],
)
def test_linear_sizes(m, n, k) -> None:
    x, w, bias = integers(m, "uint8", m, k), integers(n, "int8", n, k), normal(n)
    for dtype in ("uint8", "int8", "float32"):
        given = (x, 128, w, scales(n), bias, dtype)
        np.testing.assert_array_equal(linear(*given), expected_linear(*given))


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("end", [0, 1])
@pytest.mark.parametrize("out", ["uint8", "int8", "float32"])
def test_linear_zero_points_at_the_ends(dtype, end, out) -> None:
    zero = LIMITS[dtype][end]
    x, w = integers(1, dtype, 7, 45), integers(2, "int8", 33, 45)
    given = (x, zero, w, scales(33), None, out, 3.0, LIMITS.get(out, (0, 0))[1 - end])
    np.testing.assert_array_equal(linear(*given), expected_linear(*given))


@pytest.mark.parametrize(("value", "weight"), [(255, 127), (255, -128), (0, 127), (0, -128)])
@pytest.mark.parametrize("k", [512, 65793])
def test_linear_extremes_do_not_saturate(value, weight, k) -> None:
    x, w = np.full((2, k), value, np.uint8), np.full((17, k), weight, np.int8)
    for zero in (0, 255):
        given = (x, zero, w, scales(17), None, "float32")
        np.testing.assert_array_equal(linear(*given), expected_linear(*given))


def test_linear_saturates_results() -> None:
    x, w = integers(1, "uint8", 9, 64), integers(2, "int8", 40, 64)
    for out in ("uint8", "int8"):
        given = (x, 3, w, scales(40), None, out, 1e-3)
        result = linear(*given)
        np.testing.assert_array_equal(result, expected_linear(*given))
        assert set(LIMITS[out]) <= set(result.flatten().tolist())


def test_linear_post_ops_and_layouts() -> None:
    x, w, bias = integers(1, "int8", 3, 5, 20), integers(2, "int8", 24, 20), normal(24)
    given = (x, -7, w, scales(24), bias, "uint8")
    np.testing.assert_array_equal(
        linear(*given, post_op="relu"), expected_linear(*given, relu=True)
    )
    other = integers(3, "uint8", 3, 5, 24)
    added = (other.astype(np.float32) - np.float32(9)) * np.float32(0.3)
    summed = linear(
        *given, other=aten.from_numpy(other), other_scale=0.3, other_zero_point=9, post_op="relu"
    )
    np.testing.assert_array_equal(summed, expected_linear(*given, relu=True, added=added))
    real = normal(3, 5, 24)
    summed = linear(*given, other=aten.from_numpy(real))
    np.testing.assert_array_equal(summed, expected_linear(*given, added=real))
    rows = aten.from_numpy(np.ascontiguousarray(x.transpose(2, 1, 0))).permute(2, 1, 0)
    packed = ops.qlinear_prepack(aten.from_numpy(np.ascontiguousarray(w.T)).t())
    result = ops.qlinear(
        rows,
        0.05,
        -7,
        packed,
        aten.from_numpy(scales(24)),
        aten.from_numpy(bias),
        0.07,
        3,
        c10.uint8,
    )
    np.testing.assert_array_equal(result.numpy(), expected_linear(*given))


def test_linear_to_bfloat16() -> None:
    x, w = integers(1, "uint8", 9, 64), integers(2, "int8", 40, 64)
    packed = ops.qlinear_prepack(aten.from_numpy(w))
    result = ops.qlinear(
        aten.from_numpy(x), 0.05, 3, packed, aten.from_numpy(scales(40)), None, 1.0, 0, c10.bfloat16
    )
    exact = aten.from_numpy(expected_linear(x, 3, w, scales(40), None, "float32"))
    assert (result == exact.to(c10.bfloat16)).all()


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_dynamic_linear(dtype) -> None:
    x, w, bias = normal(4, 6, 50), integers(2, "int8", 40, 50), normal(40)
    low, high = LIMITS[dtype]
    packed, factors = ops.qlinear_prepack(aten.from_numpy(w)), aten.from_numpy(scales(40))
    result = ops.qlinear_dynamic(
        aten.from_numpy(x),
        low,
        high,
        1e-5,
        DTYPES[dtype],
        packed,
        factors,
        aten.from_numpy(bias),
        c10.float32,
    )
    scale, zero = simulation.choose_affine(x, low, high, 1e-5)
    q = simulation.quantize(x, scale, zero, low, high)
    y = simulation.product(simulation.linear_sums(q, zero, w), scale * scales(40), bias)
    np.testing.assert_array_equal(result.numpy(), y)
    chosen = ops.choose_qparams_tensor(aten.from_numpy(x), low, high, 1e-5, DTYPES[dtype])
    given = aten.from_numpy(q.astype(dtype))
    same = ops.qlinear_tensor(
        given, *chosen, packed, factors, aten.from_numpy(bias), c10.float32, post_op="relu"
    )
    np.testing.assert_array_equal(same.numpy(), np.maximum(y, 0))


CONVOLUTIONS = [
    # batch, channels, height, width, columns, kernel, stride, padding, dilation, groups
    (1, 3, 9, 11, 16, (3, 3), (1, 1), (1, 1), (1, 1), 1),
    (2, 16, 8, 8, 20, (3, 3), (2, 2), (1, 1), (1, 1), 1),
    (2, 16, 7, 5, 40, (1, 1), (1, 1), (0, 0), (1, 1), 1),
    (1, 5, 12, 10, 7, (3, 2), (2, 1), (2, 0), (1, 2), 1),
    (1, 6, 10, 9, 4, (3, 3), (1, 1), (2, 2), (2, 1), 2),
    (2, 12, 6, 7, 66, (2, 2), (1, 2), (0, 1), (1, 1), 3),
    (1, 33, 9, 8, 33, (3, 3), (1, 1), (1, 1), (1, 1), 33),
    (2, 16, 8, 9, 16, (5, 3), (2, 2), (0, 0), (1, 1), 16),
    (1, 90, 9, 29, 90, (3, 3), (1, 2), (1, 1), (1, 1), 90),
    (1, 4, 6, 6, 8, (3, 3), (1, 1), (1, 1), (1, 1), 4),
    (1, 19, 18, 21, 37, (3, 3), (1, 1), (1, 1), (1, 1), 1),
    (2, 32, 4, 17, 18, (1, 1), (1, 1), (1, 0), (1, 1), 2),
    (0, 3, 6, 6, 8, (3, 3), (1, 1), (1, 1), (1, 1), 1),
]  # fmt: skip


@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
@pytest.mark.parametrize(
    ("dtype", "zero"), [("uint8", 0), ("uint8", 255), ("int8", -128), ("int8", 5)]
)
@pytest.mark.parametrize("last", [False, True])
def test_convolutions(case, dtype, zero, last) -> None:
    batch, channels, height, width, columns, kernel, *window, groups = case
    x = integers(1, dtype, batch, channels, height, width)
    w = integers(2, "int8", columns, channels // groups, *kernel)
    bias, factors = normal(columns), scales(columns)
    given = aten.from_numpy(x)
    if last:
        given = aten.from_numpy(np.ascontiguousarray(x.transpose(0, 2, 3, 1))).permute(0, 3, 1, 2)
    packed = ops.qconv2d_prepack(aten.from_numpy(w), groups)
    common = (packed, aten.from_numpy(factors), aten.from_numpy(bias), kernel, *window, groups)
    sums = simulation.conv_sums(x, zero, w, *window, groups)
    shape = (1, columns, 1, 1)
    y = simulation.product(sums, (np.float32(0.05) * factors).reshape(shape), bias.reshape(shape))
    result = ops.qconv2d(
        given, 0.05, zero, *common, 0.4, 100, c10.uint8, post_op="relu", channels_last=last
    )
    assert result.is_contiguous() or last
    np.testing.assert_array_equal(result.numpy(), simulation.finish(y, "uint8", 0.4, 100, True))
    other = integers(3, "int8", *sums.shape)
    added = (other.astype(np.float32) + np.float32(4)) * np.float32(0.2)
    result = ops.qconv2d(
        given, 0.05, zero, *common, 1.0, 0, c10.float32, other=aten.from_numpy(other), other_scale=0.2,
        other_zero_point=-4, channels_last=last,
    )  # fmt: skip
    np.testing.assert_array_equal(result.numpy(), y + added)


@pytest.mark.parametrize(
    "window",
    [
        ((2, 2), (), (0, 0), (1, 1), False),
        ((3, 3), (2, 2), (1, 1), (1, 1), False),
        ((3, 2), (2, 1), (1, 0), (1, 2), True),
        ((2, 2), (3, 3), (1, 1), (3, 3), True),
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("size", [(2, 5, 9, 8), (1, 33, 17, 20), (0, 3, 8, 8)], ids=str)
def test_max_pooling(window, dtype, size) -> None:
    x = integers(1, dtype, *size)
    expected = aten.max_pool2d(aten.from_numpy(x), *window).numpy()
    last = aten.from_numpy(np.ascontiguousarray(x.transpose(0, 2, 3, 1))).permute(0, 3, 1, 2)
    for given in (aten.from_numpy(x), last):
        for flag in (False, True):
            result = ops.qmax_pool2d(given, *window, channels_last=flag)
            assert result.is_contiguous() or flag
            np.testing.assert_array_equal(result.numpy(), expected)


@pytest.mark.parametrize(
    "shapes",
    [
        ((5, 7), (7, 9)),
        ((2, 3, 6, 32), (2, 3, 32, 6)),
        ((1, 4, 64), (1, 64, 80)),
        ((2, 0, 3), (2, 3, 4)),
        ((2, 3, 0), (2, 0, 4)),
    ],
    ids=str,
)
@pytest.mark.parametrize("left", ["uint8", "int8"])
@pytest.mark.parametrize("right", ["uint8", "int8"])
def test_products_of_activations(shapes, left, right) -> None:
    a, b = integers(1, left, *shapes[0]), integers(2, right, *shapes[1])
    for zeros in ((LIMITS[left][0], LIMITS[right][1]), (LIMITS[left][1], LIMITS[right][0]), (3, 4)):
        sums = (a.astype(np.int64) - zeros[0]) @ (b.astype(np.int64) - zeros[1])
        y = simulation.product(sums, np.float32(0.05) * np.float32(0.02), None)
        mat2 = aten.from_numpy(np.ascontiguousarray(b.swapaxes(-1, -2))).transpose(-1, -2)
        for given in (aten.from_numpy(b), mat2):
            result = ops.qmatmul(
                aten.from_numpy(a), 0.05, zeros[0], given, 0.02, zeros[1], 0.3, 7, c10.int8
            )
            np.testing.assert_array_equal(result.numpy(), simulation.finish(y, "int8", 0.3, 7))


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_embedding(dtype) -> None:
    table, zeros = integers(1, dtype, 10, 37), integers(2, "int8", 10).astype(np.int64)
    indices = np.array([[1, 9, 0], [3, 3, 2]])
    given = (aten.from_numpy(table), aten.from_numpy(scales(10)), aten.from_numpy(zeros))
    result = ops.qembedding(*given, aten.from_numpy(indices))
    np.testing.assert_array_equal(
        result.numpy(), simulation.dequantize(table, scales(10), zeros)[indices]
    )
    with pytest.raises(IndexError, match=r"got index 10, expected one in 0\.\.9"):
        ops.qembedding(*given, aten.tensor([10]))


def test_packed_weights_are_kept_until_the_weight_changes() -> None:
    w = aten.from_numpy(integers(1, "int8", 20, 30)).clone()
    packed = ops.qlinear_prepack(w)
    assert ops.qlinear_prepack(w).data_ptr() == packed.data_ptr()
    assert ops.qlinear_prepack(w[:10]).shape == (1, 9, 16, 4)
    w.neg_()
    again = ops.qlinear_prepack(w)
    assert again.data_ptr() != packed.data_ptr()
    assert again.flatten()[0].item() == -packed.flatten()[0].item()


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (
            {"input": aten.ones(2, 20)},
            c10.DTypeError,
            "got an input of float32, expected uint8 or int8",
        ),
        (
            {"input": aten.ones(2, 25, dtype=c10.uint8)},
            c10.ShapeError,
            "which do not fit; pack the weight",
        ),
        (
            {"input_zero_point": 256},
            ValueError,
            "got zero point 256, expected one in the range of uint8",
        ),
        ({"input_scale": -1.0}, ValueError, "expected a positive finite number"),
        ({"output_scale": 0.0}, ValueError, "got scale 0, expected a positive"),
        ({"output_dtype": c10.int32}, c10.DTypeError, "expected uint8, int8, float32 or bfloat16"),
        ({"post_op": "tanh"}, ValueError, "got post_op 'tanh', expected 'none' or 'relu'"),
        ({"bias": aten.ones(3)}, c10.ShapeError, "a bias of 3, expected 8 of each"),
        ({"other": aten.ones(8)}, c10.ShapeError, r"got the other summand of shape \[8\]"),
    ],
)
def test_bad_arguments(change, error, words) -> None:
    good = {
        "input": aten.ones(2, 20, dtype=c10.uint8), "input_scale": 0.1, "input_zero_point": 0,
        "weight": ops.qlinear_prepack(aten.ones(8, 20, dtype=c10.int8)), "weight_scales": aten.ones(8), "bias": None,
        "output_scale": 1.0, "output_zero_point": 0, "output_dtype": c10.uint8,
    }  # fmt: skip
    assert ops.qlinear(**good).shape == (2, 8)
    with pytest.raises(error, match=words):
        ops.qlinear(**{**good, **change})
    with pytest.raises(c10.DTypeError, match="got a weight of uint8, expected int8"):
        ops.qlinear_prepack(aten.ones(8, 20, dtype=c10.uint8))


@lower_tiers
def test_in_a_lower_tier(tier) -> None:
    run_again(__file__, tier)
