"""Kernels that are quicker where their arguments allow: the same values as without."""

from __future__ import annotations

import numpy as np
import pytest

import argand_aten as torch
import argand_c10 as c10
from argand_aten import ops
from argand_c10 import from_numpy

RNG = np.random.default_rng(0)


def same(result, expected):
    np.testing.assert_array_equal(result.numpy(), expected)


@pytest.mark.parametrize("name", ["elu", "celu", "selu"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_vectors_of_positive_numbers_need_no_exponential(name, dtype):
    """Whole vectors, with one other element, and tails."""
    for n in (1, 15, 64, 67):
        x = np.linspace(0.1, 3, n).astype(dtype)
        f = getattr(ops, name)
        whole = f(from_numpy(x)).numpy()
        scale = np.asarray(1.0507009873554805 if name == "selu" else 1, dtype)
        np.testing.assert_array_equal(whole, x * scale)
        for other in (-0.5, -0.0, np.nan):
            x[n // 2] = other
            mixed = f(from_numpy(x)).numpy()
            single = f(from_numpy(x[n // 2 : n // 2 + 1])).numpy()
            np.testing.assert_array_equal(mixed[n // 2], single[0])
            kept = np.arange(n) != n // 2
            np.testing.assert_array_equal(mixed[kept], whole[kept])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64", "uint8"])
def test_squares_cubes_and_reciprocals(dtype):
    x = RNG.integers(-9, 9, 1003).astype(dtype) / np.asarray(4 if "float" in dtype else 1, dtype)
    x = x.astype(dtype)
    for power in (2, 3):
        powers = torch.full((1003,), power, dtype=from_numpy(x).dtype)
        same(from_numpy(x) ** power, (from_numpy(x) ** powers).numpy())
        wide = x.astype("float32") if dtype == "float16" else x
        same(from_numpy(x) ** power, (wide**2 if power == 2 else wide * wide * wide).astype(dtype))
    if "float" in dtype:
        inverse = torch.full((1003,), -1, dtype=from_numpy(x).dtype)
        with np.errstate(divide="ignore"):
            same(from_numpy(x) ** -1, (1 / x.astype(wide.dtype)).astype(dtype))
        same(from_numpy(x) ** inverse, (from_numpy(x) ** -1).numpy())
    z = from_numpy(x.astype("float64") + 2j)
    np.testing.assert_allclose((z**2).numpy(), (z * z).numpy(), rtol=1e-12)


@pytest.mark.parametrize("shape", [(7, 5), (300, 200), (3, 200, 70)])
def test_scatter_along_the_first_dimension(shape):
    """Threads walk along rows of the index; each element's sum has the order of the index."""
    index = RNG.integers(0, shape[0], shape)
    x = RNG.standard_normal(shape).astype(np.float32)
    expected = np.zeros(shape, np.float32)
    places = np.indices(shape)
    np.add.at(expected, (index, *places[1:]), x)
    same(torch.zeros(*shape).scatter_add_(0, from_numpy(index), from_numpy(x)), expected)
    last = np.zeros(shape, np.float32)
    for row in range(shape[0]):
        np.put_along_axis(last, index[row : row + 1], x[row : row + 1], 0)
    same(torch.zeros(*shape).scatter_(0, from_numpy(index), from_numpy(x)), last)


def test_runs_of_neighbours_are_selected_at_once():
    x = RNG.standard_normal((40, 3, 500)).astype(np.float32)
    for index in (
        np.arange(500),
        np.abs(np.arange(-3, 500)),
        np.clip(np.arange(-30, 600), 0, 499),
        RNG.integers(0, 500, 77),
    ):
        same(ops.index_select(from_numpy(x), 2, from_numpy(index)), x[:, :, index])


def test_rows_are_written_at_once():
    x, rows = RNG.standard_normal((20, 33)).astype(np.float32), np.array([3, 0, 3, -1])
    values = RNG.standard_normal((4, 33)).astype(np.float32)
    for put in (values, values[:1], values[:1, :1], np.asfortranarray(values)):
        expected = x.copy()
        expected[rows] = put
        same(ops.index_put_(from_numpy(x.copy()), [from_numpy(rows)], from_numpy(put)), expected)
        turned = from_numpy(np.ascontiguousarray(x.T)).t()
        same(ops.index_put_(turned, [from_numpy(rows)], from_numpy(put)), expected)


@pytest.mark.parametrize("n", [0, 1, 500, 50_003])
@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "float64", "complex64"])
def test_elements_are_written_in_the_order_of_their_indices(n, dtype):
    """By several threads, where there are many: the last value stays, and sums are added up from the first."""
    rng = np.random.default_rng(n)
    x, values = (rng.integers(-9, 9, m).astype(dtype) / 2 for m in (1000, n))
    x, values = x.astype(dtype), values.astype(dtype)
    index = rng.integers(-1000, 1000, n)
    for places in (index, index % 1000, index.astype(np.int32)):
        for put in (values, values[:1] if n else values):
            last, total = x.copy(), x.copy()
            last[places] = put
            np.logical_or.at(total, places, put) if dtype == "bool" else np.add.at(
                total, places, put
            )
            for accumulate, expected in ((False, last), (True, total)):
                found = from_numpy(np.stack([x, x], 1).copy())[:, 1]  # of a stride, too
                for to in (from_numpy(x.copy()), found):
                    ops.index_put_(to, [from_numpy(places)], from_numpy(put), accumulate)
                    same(to, expected)
    rows, columns = rng.integers(0, 40, n), rng.integers(0, 25, n)
    plane = x.reshape(40, 25)
    expected = plane.copy()
    expected[rows, columns] = values
    given = [from_numpy(rows), from_numpy(columns)]
    same(ops.index_put_(from_numpy(plane.copy()), given, from_numpy(values)), expected)
    same(ops.index(from_numpy(x), [from_numpy(index % 1000)]), x[index % 1000])
    with pytest.raises(IndexError, match="index 1000 is out of bounds"):
        ops.index_put_(from_numpy(x), [torch.tensor([3, 1000])], from_numpy(x[:2]))


@pytest.mark.parametrize(("name", "accumulate"), [("cummax", np.maximum), ("cummin", np.minimum)])
def test_running_extremes(name, accumulate):
    x = RNG.integers(0, 9, (30, 4, 300)).astype(np.float32)
    for dim in range(3):
        values, indices = getattr(ops, name)(from_numpy(x), dim)
        best = accumulate.accumulate(x, dim)
        same(values, best)
        latest = np.where(x == best, np.indices(x.shape)[dim], 0)
        same(indices, np.maximum.accumulate(latest, dim))


@pytest.mark.parametrize("offset", [-7, -3, -1, 0, 2, 9])
def test_indices_of_triangles(offset):
    for row, col in ((0, 3), (3, 0), (4, 6), (6, 4), (5, 5)):
        same(ops.tril_indices(row, col, offset), np.stack(np.tril_indices(row, offset, col)))
        same(ops.triu_indices(row, col, offset), np.stack(np.triu_indices(row, offset, col)))
        for name in ("tril_indices", "triu_indices"):
            shape = getattr(ops, name)(row, col, offset, device="meta").shape
            assert shape == getattr(ops, name)(row, col, offset).shape
    with pytest.raises(RuntimeError, match="row must be non-negative"):
        ops.tril_indices(-1, 2)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_bags_are_sums_in_the_order_of_their_rows(dtype):
    table = torch.randn(9, 5).to(getattr(c10, dtype))
    bags = [[1, 8, 1], [], [4, 0, 0, 3, 2]]
    indices, offsets = torch.tensor([i for bag in bags for i in bag]), torch.tensor([0, 3, 3])
    for mode in (0, 1):
        out = ops.embedding_bag(table, indices, offsets, False, mode)[0]
        assert out.dtype == table.dtype
        for bag, row in zip(bags, out.unbind(0), strict=True):
            total = torch.zeros(5, dtype=c10.float64 if dtype == "float64" else c10.float32)
            for i in bag:
                total = total + table[i]
            expected = total / max(len(bag), 1) if mode else total
            same(row.to(c10.float64), expected.to(table.dtype).to(c10.float64).numpy())
    with pytest.raises(RuntimeError):
        ops.embedding_bag(table, torch.tensor([0, 9]), torch.tensor([0]))


@pytest.mark.parametrize("n", [0, 1, 31, 32, 65, 255 * 64 + 3, 70001])
def test_truth_values_are_counted(n):
    rng = np.random.default_rng(n)
    x = rng.random((3, n)) > 0.3
    ours = from_numpy(x)
    for dim in ([0, 1], [0], [1]):
        same(ops.sum(ours, dim), x.sum(tuple(dim)))
    same(ops.sum(ours.unbind(0)[1]), x[1].sum())
    same(ops.sum(ours[1:, ::2], [1]), x[1:, ::2].sum(1))


def test_rows_that_are_gathered_are_checked():
    """Rows long enough to be checked one by one, dense or apart, and one bad index."""
    x = RNG.standard_normal((4, 3, 70)).astype(np.float32)
    index = RNG.integers(0, 70, (2, 3, 100))
    expected = np.take_along_axis(x[:2], index, 2)
    same(from_numpy(x).gather(2, from_numpy(index)), expected)
    apart = from_numpy(np.ascontiguousarray(x.transpose(1, 0, 2))).transpose(0, 1)
    same(apart.gather(2, from_numpy(index)), expected)
    for bad in (-1, 70):
        index[1, 2, 99] = bad
        with pytest.raises(RuntimeError, match=f"index {bad} is out of bounds for dimension 2"):
            from_numpy(x).gather(2, from_numpy(index))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "uint8", "int64"])
@pytest.mark.parametrize("n", [1, 2, 33, 1000])
def test_medians_of_equal_elements(dtype, n):
    """The place is that of the elements in a stable order; in rising, falling and mixed ones."""
    mixed = RNG.integers(0, 1 + n // 7, n).astype(dtype)
    for x in (mixed, np.sort(mixed), np.sort(mixed)[::-1].copy()):
        at = np.argsort(x, kind="stable")[(n - 1) // 2]
        values, indices = torch.median(from_numpy(x), 0)
        assert indices.item() == at
        assert values.item() == torch.median(from_numpy(x)).item() == x[at]
        if x.dtype.kind == "f":
            with_nan = np.concatenate([[np.nan], x, [np.nan]]).astype(dtype)
            assert torch.nanmedian(from_numpy(with_nan), 0)[1].item() == at + 1
            assert torch.median(from_numpy(with_nan), 0)[1].item() == 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_mantissas_and_exponents_of_numbers_of_all_sizes(dtype):
    info = np.finfo(dtype)
    ends = [0, info.smallest_subnormal, info.tiny, info.tiny * 0.75, info.eps, 0.5, 1, 3, info.max]
    x = np.array([*ends, np.inf, np.nan], dtype)
    x = np.concatenate([x, -x, np.ldexp(RNG.random(99), RNG.integers(-120, 120, 99)).astype(dtype)])
    mantissa, exponent = torch.frexp(from_numpy(x))
    same(mantissa, np.frexp(x)[0])
    same(exponent, np.where(np.isfinite(x), np.frexp(x)[1], 0))


@pytest.mark.parametrize("shape", [(1000, 70), (3, 700, 5), (5, 0)])
def test_rows_reduced_side_by_side(shape):
    """More rows than are finished at once; where a row lies among them changes no bit."""
    x = from_numpy(RNG.standard_normal(shape).astype(np.float32))
    turned = x.flip(-2)
    for rows, other, dim in ((x, turned, -1), (x.transpose(0, -2), turned.transpose(0, -2), 0)):
        for name in ("sum", "prod", "mean"):
            found, expected = (getattr(t, name)(-1).numpy() for t in (other, rows))
            np.testing.assert_array_equal(found, np.flip(expected, dim))


@pytest.mark.parametrize("dtype", [c10.bool, c10.uint8, c10.int16, c10.float16, c10.bfloat16])
def test_rows_scanned_in_another_dtype_are_converted_in_blocks(dtype):
    """A row longer than a block, and with gaps; columns are scanned side by side and give the same."""
    x = from_numpy(RNG.integers(0, 3, (9, 301)).astype(np.float32)).to(dtype)
    for rows in (x, x[:, ::2]):
        for name in ("cumsum", "cumprod"):
            expected = getattr(rows.t().contiguous(), name)(0).t()
            same(getattr(rows, name)(1).to(c10.float64), expected.to(c10.float64).numpy())


@pytest.mark.parametrize("shape, dim", [((40, 1200), 0), ((3, 40, 700), 1), ((50, 40), 1)])
@pytest.mark.parametrize(
    "dtype", [c10.bool, c10.uint8, c10.int64, c10.float16, c10.bfloat16, c10.float64]
)
def test_rows_are_added_in_the_order_of_their_indices(shape, dim, dtype):
    x = from_numpy(RNG.integers(0, 99, shape).astype(np.float32) / 8).to(dtype)
    source = from_numpy(RNG.integers(0, 99, shape).astype(np.float32) / 8).to(dtype)
    index = RNG.integers(0, shape[dim] // 2, shape[dim])
    expected = x.clone()
    for k, place in enumerate(index):
        row = expected.select(dim, int(place))
        row.copy_(torch.add(row, source.select(dim, k), alpha=1))
    found = x.index_add(dim, from_numpy(index), source)
    same(found.to(c10.float64), expected.to(c10.float64).numpy())


def test_short_rows_are_copied_in_pieces():
    for width in [*range(1, 70), 100, 127, 128, 129, 255, 256, 257, 300]:
        x = RNG.integers(0, 99, (19, width)).astype(np.float32)
        t = from_numpy(x)
        same(torch.cat([t, t[:, 1:]], 1), np.concatenate([x, x[:, 1:]], 1))
        same(torch.constant_pad_nd(t, [1, 2], 5.0), np.pad(x, ((0, 0), (1, 2)), constant_values=5))
        same(t[:, :-1].contiguous(), x[:, :-1])
        rows = RNG.integers(0, 19, 40)
        same(t.index_select(0, from_numpy(rows)), x[rows])


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
def test_ranges_of_integers_wrap(dtype):
    for start, step in ((0, 1), (5, 3), (-7, -2), (2, 0x1_0000_0001)):
        if dtype != "int64" and step > 1 << 30:
            continue
        n = 1003
        values = (start + step * np.arange(n, dtype=np.int64)).astype(dtype)
        same(torch.arange(start, start + step * n, step, dtype=getattr(c10, dtype)), values)


@pytest.mark.parametrize("output", [1, (1, 1)])
@pytest.mark.parametrize("dtype", [c10.bfloat16, c10.float32, c10.float64])
def test_pooling_to_one_is_the_mean(dtype, output):
    x = from_numpy(RNG.standard_normal((3, 5, 9, 7)).astype(np.float32)).to(dtype)
    for t in (x, x.contiguous(memory_format=c10.channels_last), x[0]):
        found = torch.adaptive_avg_pool2d(t, output)
        same(found.to(c10.float64), t.mean((-2, -1), True).to(c10.float64).numpy())


WINDOWS = [((2, 2), (2, 2), (0, 0), (1, 1)), ((3, 2), (1, 2), (1, 1), (1, 1)), ((2, 3), (2, 1), (1, 1), (3, 2))]  # fmt: skip


@pytest.mark.parametrize("kernel, stride, padding, dilation", WINDOWS)
@pytest.mark.parametrize("channels", [1, 5, 70, 300])
def test_pooling_beside_channels_that_lie_last(channels, kernel, stride, padding, dilation):
    x = RNG.integers(-3, 3, (2, channels, 9, 8)).astype(np.float32)
    x[RNG.random(x.shape) < 0.02] = np.nan
    t = from_numpy(x)
    last = t.contiguous(memory_format=c10.channels_last)
    args = kernel, stride, padding, dilation
    for found, expected in zip(
        torch.max_pool2d_with_indices(last, *args), torch.max_pool2d_with_indices(t, *args), strict=True
    ):  # fmt: skip
        same(found, expected.numpy())
    for dtype in (c10.float32, c10.float64, c10.bfloat16):
        for inside in (False, True):
            expected = torch.avg_pool2d(t.to(dtype), kernel, stride, padding, False, inside)
            found = torch.avg_pool2d(last.to(dtype), kernel, stride, padding, False, inside)
            assert found.shape == expected.shape and (channels == 1 or found.stride(1) == 1)
            same(found.to(c10.float64), expected.to(c10.float64).numpy())


@pytest.mark.parametrize("channels", [1, 5, 70, 300])
def test_pooling_to_sizes_beside_channels_that_lie_last(channels):
    x = RNG.integers(-3, 3, (2, channels, 9, 8)).astype(np.float32)
    x[RNG.random(x.shape) < 0.02] = np.nan
    t = from_numpy(x)
    for output in ([4, 3], [9, 8], [20, 17], [1, 5]):
        for dtype in (c10.float32, c10.float64, c10.bfloat16, c10.float16):
            plain = t.to(dtype)
            last = plain.contiguous(memory_format=c10.channels_last)
            for name in ("adaptive_avg_pool2d", "adaptive_max_pool2d"):
                found, expected = (getattr(torch, name)(a, output) for a in (last, plain))
                if name == "adaptive_avg_pool2d":
                    found, expected = (found,), (expected,)
                for f, e in zip(found, expected, strict=True):
                    same(f.to(c10.float64), e.to(c10.float64).numpy())


@pytest.mark.parametrize("columns", [8, 33, 600])
@pytest.mark.parametrize(
    "dtype", [c10.bool, c10.uint8, c10.int64, c10.float16, c10.float32, c10.complex64]
)
def test_columns_with_gaps_are_reduced_with_what_lies_between(columns, dtype):
    """Whatever that is; of columns to the end of the memory, in many groups of rows, and of short rows with gaps."""
    for rows, gap in ((3, 2), (50, 3), (9000 if columns < 600 else 700, 4), (50, 5)):
        numbers = RNG.integers(-4, 4, (rows, (columns - 1) * gap + 1)).astype(np.float32)
        numbers[:, np.arange(numbers.shape[1]) % gap != 0] = np.nan
        apart = from_numpy(numbers).to(dtype)[:, ::gap]
        dense = from_numpy(np.ascontiguousarray(numbers[:, ::gap])).to(dtype)
        complex_numbers = dtype == c10.complex64
        for name in ("sum", "prod") if complex_numbers else ("sum", "prod", "amax", "amin"):
            found, expected = (getattr(t, name)(0) for t in (apart, dense))
            assert found.equal(expected), (name, rows, gap)
    pairs = from_numpy(RNG.standard_normal((columns, 2)).astype(np.float32))
    same(pairs.sum(1), pairs[:, 0].numpy() + pairs[:, 1].numpy())


@pytest.mark.parametrize("dtype", ["int8", "int16", "float32", "float64", "complex128"])
def test_volumes_are_padded_by_reflection(dtype):
    x = RNG.integers(0, 99, (2, 3, 4, 5, 6)).astype(dtype)
    t = from_numpy(x)
    for left, right, top, bottom, front, back in ((1, 2, 3, 0, 2, 3), (5, 5, 4, 4, 3, 3)):
        expected = np.pad(
            x, [(0, 0), (0, 0), (front, back), (top, bottom), (left, right)], mode="reflect"
        )
        pad = [left, right, top, bottom, front, back]
        same(torch.pad(t, pad, "reflect"), expected)
        same(torch.pad(t.transpose(0, 1), pad, "reflect"), expected.swapaxes(0, 1))
        same(torch.pad(t[1], pad, "reflect"), expected[1])
        last = torch.pad(t.contiguous(memory_format=c10.channels_last_3d), pad, "reflect")
        assert last.stride(1) == 1
        same(last, expected)


@pytest.mark.parametrize("dtype", ["int8", "int16", "float32", "float64", "complex128"])
def test_borders_are_circular(dtype):
    """Of planes and volumes, up to a whole dimension."""
    x = RNG.integers(0, 99, (2, 3, 4, 5, 6)).astype(dtype)
    t = from_numpy(x)
    for left, right, top, bottom, front, back in ((1, 2, 3, 0, 2, 3), (6, 6, 5, 5, 4, 4)):
        planes = [(top, bottom), (left, right)]
        expected = np.pad(x, [(0, 0), (0, 0), (front, back), *planes], mode="wrap")
        pad = [left, right, top, bottom, front, back]
        same(torch.pad(t, pad, "circular"), expected)
        same(torch.pad(t.transpose(0, 1), pad, "circular"), expected.swapaxes(0, 1))
        same(torch.pad(t.contiguous(memory_format=c10.channels_last_3d), pad, "circular"), expected)
        expected = np.pad(x[1], [(0, 0), (0, 0), *planes], mode="wrap")
        same(torch.pad(t[1], pad[:4], "circular"), expected)


P_NORMS = [0.0, 0.5, 1.0, 2.0, 2.5, np.inf]


@pytest.mark.parametrize("p", P_NORMS)
@pytest.mark.parametrize("dtype", [c10.float16, c10.bfloat16, c10.float32, c10.float64])
def test_distances(p, dtype):
    for n, m, d in (
        (1, 1, 1),
        (3, 70, 5),
        (7, 17, 130),
        (40, 33, 3),
        (2, 300, 64),
        (4, 5, 0),
        (0, 3, 2),
    ):
        rows = from_numpy(RNG.integers(-9, 9, (2, n, 2 * d)) / 8).to(dtype)[..., ::2]
        columns = from_numpy(RNG.integers(-9, 9, (2, d, m)) / 8).to(dtype).transpose(-2, -1)
        a, b = (t.to(c10.float64).numpy() for t in (rows, columns))

        def norms(differences):
            sizes = np.abs(differences)
            if p == 0:
                return (sizes != 0).sum(-1)
            return sizes.max(-1, initial=0) if p == np.inf else (sizes**p).sum(-1) ** (1 / p)

        wide = dtype in (c10.float32, c10.float64)
        close = {"rtol": 1e-5, "atol": 1e-6} if wide else {"rtol": 1e-2}
        found = ops._distances(rows, columns, p)
        assert found.dtype == dtype
        np.testing.assert_allclose(
            found.to(c10.float64).numpy(), norms(a[:, :, None] - b[:, None]), **close
        )
        pairs = ops._distances(columns[0], None, p).to(c10.float64).numpy()
        upper = np.triu_indices(m, 1)
        np.testing.assert_allclose(pairs, norms(b[0][upper[0]] - b[0][upper[1]]), **close)
        # Each is computed as it is by itself.
        if n and m:
            alone = ops._distances(rows[1:, -1:], columns[1:, -1:], p)
            assert alone[0, 0, 0].equal(found[1, -1, -1])


@pytest.mark.parametrize("p", P_NORMS)
def test_distances_of_numbers_that_are_not_finite(p):
    x = from_numpy(np.array([[1, 2], [np.nan, 2], [np.inf, 2], [-np.inf, 2], [1, 2]], np.float32))
    expected = np.full(10, np.nan)
    expected[[1, 2, 3, 7, 8, 9]] = [np.inf, np.inf, 0, np.inf, np.inf, np.inf]
    if p == 0:
        expected[np.isinf(expected)] = 1
    expected[[0, 4, 5, 6]] = np.nan
    same(ops._distances(x, None, p), expected.astype(np.float32))


def test_threads_change_no_bit_of_distances():
    x, y = (from_numpy(RNG.standard_normal((n, 40)).astype(np.float32)) for n in (301, 1500))
    threads, found = c10.get_num_threads(), []
    for count in (1, 2, 3, 5):
        c10.set_num_threads(count)
        found.append((ops._distances(x, y, 1.0), ops._distances(x, None, 1.0)))
    c10.set_num_threads(threads)
    for pair in found[1:]:
        assert pair[0].equal(found[0][0]) and pair[1].equal(found[0][1])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_dot_products_with_conjugates(dtype):
    for n in (0, 1, 7, 33, 70_001):
        numbers = RNG.standard_normal((2, 4 * n)).view(np.complex128).astype(dtype)
        for x, y in (numbers[:, :n], numbers[:, ::2]):
            x, y = from_numpy(x), from_numpy(y)
            expected = torch.dot(torch.conj_physical(x.contiguous()), y.contiguous())
            assert torch.vdot(x, y).equal(expected)


@pytest.mark.parametrize("name", ["_grid_sample_2d_backward", "_grid_sample_backward"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_places_of_nearest_elements_have_no_gradients(name, padding):
    """Whatever the elements are."""
    x = np.full((1, 2, 3, 4), np.nan, "float32")
    x[0, 1] = np.inf
    grid = from_numpy(RNG.uniform(-1.2, 1.2, (1, 5, 2, 2)).astype("float32"))
    grad = torch.ones((1, 2, 5, 2))
    f = getattr(ops, name)
    _, by_place = f(grad, from_numpy(x), grid, "nearest", padding, False, [True, True])
    same(by_place, np.zeros((1, 5, 2, 2)))


def test_gradients_of_places_are_sums_of_all_channels():
    """Of many channels by parts, whatever the number of threads."""
    x = from_numpy(RNG.standard_normal((2, 21, 5, 6)).astype("float32"))
    grid = from_numpy(RNG.uniform(-1.2, 1.2, (2, 90, 3, 2)).astype("float32"))
    grad = from_numpy(RNG.standard_normal((2, 21, 90, 3)).astype("float32"))
    arguments = (grad, x, grid, "bilinear", "border", True, [True, True])
    expected = ops._grid_sample_backward(*arguments)
    threads, found = c10.get_num_threads(), []
    for count in (1, 3):
        c10.set_num_threads(count)
        found.append(ops._grid_sample_2d_backward(*arguments))
    c10.set_num_threads(threads)
    for one, other, sum_ in zip(*found, expected, strict=True):
        assert one.equal(other)
        np.testing.assert_allclose(one.numpy(), sum_.numpy(), rtol=0, atol=2e-5)
