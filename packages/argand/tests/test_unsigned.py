"""uint16, uint32 and uint64 over their whole range, against NumPy; compiled programs against eager ones."""

import copy
import io
import itertools
import pickle

import numpy as np
import pytest

import argand as torch

NAMES = ("uint16", "uint32", "uint64")
SIGNED = ("int8", "int16", "int32", "int64")
FLOATS = ("float16", "float32", "float64")


def top(name):
    return int(np.iinfo(name).max)


def values(name, *shape, seed=0):
    """Random numbers of every size, and the ends of the range and of its lower half."""
    rng = np.random.default_rng(seed)
    n = int(np.prod(shape))
    bits = 8 * np.dtype(name).itemsize
    found = rng.integers(0, top(name), n, dtype=name, endpoint=True) >> rng.integers(
        0, bits, n
    ).astype(name)
    ends = [0, 1, 2, top(name), top(name) - 1, top(name) // 2, top(name) // 2 + 1]
    at = rng.permutation(n)[: len(ends)]
    found[at] = np.array(ends, name)[: len(at)]
    return found.reshape(shape)


def same(actual, expected, dtype=None):
    for a, b in zip(
        *(x if isinstance(x, (list, tuple)) else [x] for x in (actual, expected)), strict=True
    ):
        b = np.asarray(b)
        assert a.dtype.name == (dtype or b.dtype.name), (a.dtype, b.dtype)
        np.testing.assert_array_equal(a.numpy(), b)


def layouts(a):
    """The same numbers dense, transposed, and with steps behind an offset."""
    t = torch.tensor(a)
    wide = torch.zeros((*a.shape, 3), dtype=t.dtype)
    wide[..., 1] = t
    yield t
    yield torch.tensor(np.ascontiguousarray(a.T)).permute(*reversed(range(a.ndim)))
    yield wide[..., 1]


# ---- elements --------------------------------------------------------------------------------------------------------

BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "maximum": np.maximum, "minimum": np.minimum, "fmax": np.fmax, "fmin": np.fmin, "gcd": np.gcd, "lcm": np.lcm, "eq": np.equal, "ne": np.not_equal,
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "floor_divide": np.floor_divide, "remainder": np.remainder,
    "fmod": np.fmod, "pow": np.power, "bitwise_left_shift": np.left_shift, "bitwise_right_shift": np.right_shift, "logical_and": np.logical_and,
    "logical_or": np.logical_or, "logical_xor": np.logical_xor,
}  # fmt: skip
UNARY = {
    "abs": np.abs, "sign": np.sign, "neg": np.negative, "square": np.square, "bitwise_not": np.invert, "logical_not": np.logical_not,
    "isfinite": np.isfinite, "isnan": np.isnan, "isinf": np.isinf, "signbit": lambda a: np.zeros(a.shape, bool), "positive": np.positive,
    "relu": lambda a: a, "floor": lambda a: a, "ceil": lambda a: a, "trunc": lambda a: a, "round": lambda a: a,
}  # fmt: skip


@pytest.mark.parametrize("op", BINARY)
@pytest.mark.parametrize("name", NAMES)
def test_two_operands(name, op):
    a, b = values(name, 37, 11), values(name, 37, 11, seed=1)
    if op in ("floor_divide", "remainder", "fmod"):
        b[b == 0] = 3
    if op == "pow":
        b = b % 9
    if "shift" in op:
        b = b % (8 * a.itemsize + 4)
    with np.errstate(over="ignore"):
        expected = BINARY[op](a, b)
        row = BINARY[op](a, b[:1])
    for x, y in itertools.product(layouts(a), layouts(b)):
        same(getattr(torch, op)(x, y), expected)
    same(getattr(torch, op)(torch.tensor(a), torch.tensor(b[:1])), row)
    same(getattr(torch, op)(torch.tensor(a[0, :1]), torch.tensor(b[0, :1])), expected[0, :1])
    if expected.dtype == a.dtype:
        x = torch.tensor(a)
        if hasattr(x, op + "_"):
            assert getattr(x, op + "_")(torch.tensor(b)) is x
            same(x, expected)
        out = torch.empty(0, dtype=x.dtype)
        if op != "positive":
            same(getattr(torch, op)(torch.tensor(a), torch.tensor(b), out=out), expected)


@pytest.mark.parametrize("op", UNARY)
@pytest.mark.parametrize("name", NAMES)
def test_one_operand(name, op):
    a = values(name, 37, 11)
    for x in layouts(a):
        same(getattr(torch, op)(x), UNARY[op](a))


@pytest.mark.parametrize("name", NAMES)
def test_numbers_beside_tensors(name):
    a, largest = values(name, 101), top(name)
    x, numpy_of = torch.tensor(a), np.dtype(name).type
    for number in (0, 1, 7, largest // 2, largest // 2 + 1, largest - 1, largest):
        n = numpy_of(number)
        with np.errstate(over="ignore"):
            for f in (
                lambda u, v: u + v, lambda u, v: u - v, lambda u, v: u * v, lambda u, v: v - u, lambda u, v: v + u, lambda u, v: u < v,
                lambda u, v: u <= v, lambda u, v: u > v, lambda u, v: u >= v, lambda u, v: u == v, lambda u, v: u != v, lambda u, v: v < u,
                lambda u, v: v ^ u, lambda u, v: u & v, lambda u, v: v | u,
            ):  # fmt: skip
                same(f(x, number), f(a, n))
            if number:
                same(x // number, a // n)
                same(x % number, a % n)
                same(
                    number // torch.maximum(x, torch.tensor(1, dtype=x.dtype)),
                    n // np.maximum(a, numpy_of(1)),
                )
        same(torch.clamp(x, min=number), np.maximum(a, n))
        same(torch.clamp(x, max=number), np.minimum(a, n))
        same(
            torch.clamp(x, 5, number),
            np.clip(a, numpy_of(5), n) if number >= 5 else np.full_like(a, n),
        )
        same(torch.where(x > 9, x, number), np.where(a > 9, a, n))
        same(x.masked_fill(x > 9, number), np.where(a > 9, n, a))
        same(torch.threshold(x, 9, number), np.where(a > 9, a, n))
    assert (x + 1.5).dtype is torch.float32 and (x + True).dtype is x.dtype
    same(torch.add(x, x, alpha=3), a * numpy_of(4))
    same(torch.addcmul(x, x, x, value=2), a + numpy_of(2) * a * a)


def test_numbers_that_only_uint64_holds():
    x, big = torch.tensor([0, 2**63, 2**64 - 1], dtype=torch.uint64), 2**64 - 1
    assert x.tolist() == [0, 2**63, big] and x[2].item() == big and int(x[1]) == 2**63
    assert repr(x) == (
        "tensor([                   0,  9223372036854775808, 18446744073709551615],\n"
        "       dtype=argand.uint64)"
    )
    assert (x < big).tolist() == [True, True, False] and (big - x).tolist() == [big, 2**63 - 1, 0]
    assert torch.full((2,), big, dtype=torch.uint64).tolist() == [big, big]
    assert torch.full_like(x, 2**63).tolist() == [2**63] * 3
    assert torch.zeros(2, dtype=torch.uint64).fill_(big).tolist() == [big, big]
    assert torch.zeros(2, dtype=torch.uint64).fill_(float(2**63)).tolist() == [2**63] * 2
    x[0] = 2**63 + 1
    x[1:] = np.uint64(2**63 + 2)
    assert x.tolist() == [2**63 + 1, 2**63 + 2, 2**63 + 2]
    assert torch.arange(2**63, 2**63 + 3, dtype=torch.uint64).tolist() == [
        2**63 + i for i in range(3)
    ]
    assert torch.scalar_tensor(big, dtype=torch.uint64).item() == big
    assert torch.where(x > 0, 2**63, x).tolist() == [2**63] * 3
    for call, error in (
        (lambda: torch.full((2,), 2**63), RuntimeError),
        (lambda: torch.full((2,), 2**63, dtype=torch.uint32), RuntimeError),
        (lambda: torch.ones(2, dtype=torch.int64).fill_(2**63), RuntimeError),
        (lambda: torch.arange(0, 2**63, 2**62), RuntimeError),
        (lambda: x + 2**64, OverflowError),
        (lambda: x.sum(2**63), ValueError),
        (lambda: x.reshape(2**63), TypeError),
        (lambda: torch.tensor(2**63), ValueError),
        (lambda: x[2**63], ValueError),
    ):
        with pytest.raises(error, match="[Oo]verflow|64 bits|index-sized"):
            call()


def test_numbers_that_only_uint64_holds_beside_other_dtypes():
    """They wrap into signed integers, are rounded to floating-point numbers, and beside bools are of uint64."""
    ints, floats = torch.tensor([1, -1]), torch.tensor([1.0, -1.0])
    assert (ints + 2**63).tolist() == [-(2**63) + 1, 2**63 - 1]
    assert (2**63 - ints.int()).tolist() == [-1, 1] and (ints == 2**64 - 1).tolist() == [
        False,
        True,
    ]
    assert (floats * 2**63).tolist() == [2.0**63, -(2.0**63)] and (2**63 / floats)[0] == 2.0**63
    assert (floats == 2**64 - 1).tolist() == [False, False]
    assert torch.where(floats > 0, 2**63, floats).tolist() == [2.0**63, -1]
    assert torch.add(floats, floats, alpha=2**63).tolist() == [2.0**63, -(2.0**63)]
    assert ((ints > 0) + 2**63).dtype is torch.where(ints > 0, 2**63, 1).dtype is torch.uint64
    assert torch.result_type(ints, 2**63) is torch.int64

    def f(ints, floats):
        return ints + 2**63, 2**63 - ints, floats * 2**63, (ints > 0) + 2**63

    for a, b in zip(torch.compile(f, fullgraph=True)(ints, floats), f(ints, floats), strict=True):
        assert a.dtype is b.dtype and torch.equal(a, b)


@pytest.mark.parametrize("name", NAMES)
def test_numbers_out_of_range_are_refused(name):
    dtype = getattr(torch, name)
    beyond = OverflowError if name == "uint64" else RuntimeError
    for number, error in ((top(name) + 1, beyond), (-top(name) - 1, beyond), (1e30, RuntimeError)):
        with pytest.raises(error, match=f"{name} without overflow|{name} cannot hold"):
            torch.tensor([number], dtype=dtype)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        torch.ones(2, dtype=dtype) // 0
    with pytest.raises(RuntimeError, match="exponent"):
        torch.ones(2, dtype=dtype) ** -1
    x = torch.empty(4000, dtype=dtype)
    with pytest.raises(RuntimeError, match="out of bounds"):
        x.random_(-1, 5)
    if name != "uint64":
        assert torch.tensor([-1], dtype=dtype).tolist() == [top(name)]
        with pytest.raises(RuntimeError, match="out of bounds"):
            x.random_(0, top(name) + 2)
        x.random_(top(name) - 2, top(name) + 1)
        assert set(x.tolist()) == {top(name) - 2, top(name) - 1, top(name)}
    x.random_()
    assert int(x.max()) > min(top(name), 2**63) * 0.9 and x.min() < top(name) // 10
    assert torch.randint(3, 9, (1000,), dtype=dtype).unique().tolist() == [3, 4, 5, 6, 7, 8]


# ---- conversions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_conversions(name):
    dtype, a = getattr(torch, name), values(name, 1500)
    with np.errstate(all="ignore"):
        for other in (*NAMES, *SIGNED, "uint8", "bool", *FLOATS, "complex64", "complex128"):
            target = getattr(torch, other)
            if other == "float16":  # through float32
                same(torch.tensor(a).to(target), a.astype("float32").astype("float16"))
            else:
                same(torch.tensor(a).to(target), a.astype(other))
            if other not in (*FLOATS, "complex64", "complex128"):
                whole = (
                    values(other, 1500) if other in NAMES else np.arange(-750, 750).astype(other)
                )
                same(torch.tensor(whole).to(dtype), whole.astype(name))
                same(torch.tensor(whole)[::3].to(dtype), whole[::3].astype(name))
        same(
            torch.tensor(a).to(torch.bfloat16).to(torch.float32),
            torch.tensor(a.astype("float32")).to(torch.bfloat16).float().numpy(),
        )
        for real in FLOATS:
            b = np.random.default_rng(1).random(1500) * min(float(top(name)), 6e4)
            b = np.concatenate([b, [0.0, -0.0, 0.9, 1.5, 255.7]]).astype(real)
            whole = [int(v) for v in b.tolist()]
            same(torch.tensor(b).to(dtype), np.array(whole, dtype=name))
            if real != "float16":
                large = np.array([0.5, 0.501, 0.75, 0.99]) * float(top(name))
                large = np.floor(large).astype(real)
                same(
                    torch.tensor(large).to(dtype), np.array([int(v) for v in large.tolist()], name)
                )
                same(
                    torch.tensor(large * (1 + 2j)).to(dtype),
                    np.array([int(v) for v in large.tolist()], name),
                )
            assert torch.tensor([-1.0, -2.7], dtype=getattr(torch, real)).to(dtype).tolist() == [
                top(name),
                top(name) - 1,
            ]
    half = torch.tensor([1.0, 2.5, 300.0]).to(torch.float8_e5m2)
    assert half.to(dtype).to(torch.float32).tolist() == [1.0, 2.0, 320.0]


@pytest.mark.parametrize("name", NAMES)
def test_floating_point_functions(name):
    a, b = values(name, 300), values(name, 300, seed=1)
    b[b == 0] = 1
    x, y, f = torch.tensor(a), torch.tensor(b), np.float32
    same(x / y, a.astype(f) / b.astype(f))
    same(torch.sqrt(x), np.sqrt(a.astype(f)))
    assert x.mean(dtype=torch.float64).item() == pytest.approx(np.mean(a.astype(float)))
    same(x * torch.tensor(0.5), a.astype(f) * f(0.5))
    same(torch.true_divide(x, 3), a.astype(f) / f(3))
    np.testing.assert_allclose(torch.log(y).numpy(), np.log(b.astype(f)), rtol=1e-6)


def test_promotion():
    for a, b in itertools.product(
        NAMES, (*NAMES, *SIGNED, "uint8", "bool", "float32", "float64", "complex64")
    ):
        x, y = torch.ones(2, dtype=getattr(torch, a)), torch.ones(2, dtype=getattr(torch, b))
        if a == "uint64" and b in SIGNED:
            for call in (
                lambda x=x, y=y: x + y,
                lambda x=x, y=y: torch.cat([x, y]),
                lambda x=x, y=y: torch.promote_types(x.dtype, y.dtype),
            ):
                with pytest.raises(RuntimeError, match="convert one"):
                    call()
            continue
        wanted = b if b.startswith(("float", "complex")) else str(np.promote_types(a, b))
        assert torch.promote_types(x.dtype, y.dtype).name == wanted
        assert (x + y).dtype.name == (y * x).dtype.name == torch.cat([y, x]).dtype.name == wanted
        assert torch.result_type(x, y[0]).name == (a if np.dtype(b).kind in "biu" else b)
    assert not torch.uint16.is_signed and not torch.uint64.is_floating_point
    assert torch.can_cast(torch.uint16, torch.int8) and not torch.can_cast(
        torch.float32, torch.uint64
    )
    assert torch.tensor([1], dtype=torch.uint32).type() == "argand.UInt32Tensor"
    assert torch.tensor([1]).type("argand.UInt32Tensor").dtype is torch.uint32


# ---- reductions, order, places -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_reductions(name):
    a = values(name, 9, 70, 6)
    with np.errstate(over="ignore"):
        for x, dim in itertools.product(layouts(a), (None, 0, 1, 2)):
            dims = {} if dim is None else {"dim": dim}
            for op in ("sum", "prod"):
                expected = getattr(np, op)(a, axis=dim, dtype="uint64").view("int64")
                same(getattr(torch, op)(x, **dims), expected)
                same(getattr(torch, op)(x, **dims, dtype=x.dtype), expected.astype(name))
            same(torch.amax(x, **dims), np.max(a, axis=dim))
            same(torch.amin(x, **dims), np.min(a, axis=dim))
            same(torch.any(x, **dims), np.any(a, axis=dim))
            same(torch.all(x, **dims), np.all(a, axis=dim))
            same(torch.argmax(x, **dims), np.argmax(a, axis=dim))
            same(torch.argmin(x, **dims), np.argmin(a, axis=dim))
            same(torch.count_nonzero(x, **dims), np.count_nonzero(a, axis=dim))
            if dim is None:
                same((x.max(), x.min()), (a.max(), a.min()))
                continue
            same(x.max(dim), (np.max(a, dim), np.argmax(a, dim)))
            same(x.min(dim), (np.min(a, dim), np.argmin(a, dim)))
            same(x.cumsum(dim), np.cumsum(a, dim, dtype="uint64").view("int64"))
            same(x.cumprod(dim), np.cumprod(a, dim, dtype="uint64").view("int64"))
            same(x.cumsum(dim, dtype=x.dtype), np.cumsum(a, dim, dtype=name))
            same(x.cummax(dim).values, np.maximum.accumulate(a, dim))
            same(x.cummin(dim).values, np.minimum.accumulate(a, dim))
            same(x.logical_not().sum(dim), np.sum(a == 0, dim))
            same(torch.diff(x, dim=dim), np.diff(a, axis=dim))
    same(torch.aminmax(torch.tensor(a)), (a.min(), a.max()))


@pytest.mark.parametrize("name", NAMES)
def test_order(name):
    a = values(name, 700, 3)
    for x in layouts(a):
        for dim in (0, 1):
            same(torch.sort(x, dim).values, np.sort(a, dim))
            same(torch.sort(x, dim, descending=True).values, np.flip(np.sort(a, dim), dim))
            same(torch.argsort(x, dim, stable=True), np.argsort(a, dim, kind="stable"))
        same(torch.topk(x, 9, 0).values, np.flip(np.sort(a, 0), 0)[:9])
        same(torch.topk(x, 9, 0, largest=False).values, np.sort(a, 0)[:9])
        same(torch.kthvalue(x, 5, 0).values, np.sort(a, 0)[4])
        same(torch.median(x, 0).values, np.sort(a, 0)[349])
        same(torch.median(x), np.sort(a, None)[1049])
        same(torch.unique(x), np.unique(a))
        same(torch.unique(x, return_counts=True), np.unique(a, return_counts=True))
    row, wanted = np.sort(a[:, 0]), values(name, 100, seed=3)
    for right in (False, True):
        found = np.searchsorted(row, wanted, side="right" if right else "left")
        same(torch.searchsorted(torch.tensor(row), torch.tensor(wanted), right=right), found)
        same(torch.bucketize(torch.tensor(wanted), torch.tensor(row), right=right), found)
    same(torch.isin(torch.tensor(a), torch.tensor(a[:20, 0])), np.isin(a, a[:20, 0]))
    x = torch.tensor(np.array([3, 1, 3, top(name), top(name), top(name)], name))
    assert x.mode().values.item() == top(name)
    same(torch.bincount(x[:3]), np.bincount([3, 1, 3]))


@pytest.mark.parametrize("name", NAMES)
def test_places_and_moves(name):
    a, b = values(name, 12, 8), values(name, 12, 8, seed=1)
    x, y, rng = torch.tensor(a), torch.tensor(b), np.random.default_rng(0)
    index = rng.integers(0, 12, (12, 8))
    i = torch.tensor(index)
    same(x.gather(0, i), np.take_along_axis(a, index, 0))
    same(x[i[:, 0]], a[index[:, 0]])
    same(x[x > 9], a[a > 9])
    same(x.index_select(1, torch.tensor([3, 0])), a[:, [3, 0]])
    same(x.take(torch.tensor([5, 70])), a.reshape(-1)[[5, 70]])
    columns = np.broadcast_to(np.arange(8), (12, 8))
    for reduce, ufunc in (
        ("sum", np.add),
        ("amax", np.maximum),
        ("amin", np.minimum),
        ("prod", np.multiply),
    ):
        expected = a.copy()
        with np.errstate(over="ignore"):
            ufunc.at(expected, (index, columns), b)
        same(x.scatter_reduce(0, i, y, reduce), expected)
        if reduce == "sum":
            same(x.scatter_add(0, i, y), expected)
    means = torch.zeros(2, dtype=x.dtype).scatter_reduce(
        0,
        torch.tensor([0, 0, 1]),
        torch.tensor(np.array([top(name) // 2, 4, top(name)], name)),
        "mean",
        include_self=False,
    )
    assert means.tolist() == [(top(name) // 2 + 4) // 2, top(name)]
    rows = a.copy()
    np.add.at(rows, index[:, 0], b)
    same(x.index_add(0, i[:, 0], y), rows)
    z = x.clone()
    z.index_put_((i[:, 0],), y, accumulate=True)
    same(z, rows)
    same(torch.cat([x, y], 1), np.concatenate([a, b], 1))
    same(torch.stack([x, y]), np.stack([a, b]))
    same(x.flip(0), np.flip(a, 0))
    same(x.roll(3, 1), np.roll(a, 3, 1))
    same(x.tril(), np.tril(a))
    same(torch.where(x > y, x, y), np.maximum(a, b))
    same(torch.nonzero(x), np.argwhere(a))
    same(x.repeat(2, 3), np.tile(a, (2, 3)))
    same(
        torch.nn.functional.pad(x, (1, 2), value=5), np.pad(a, ((0, 0), (1, 2)), constant_values=5)
    )
    same(x.view(getattr(torch, name[1:])), a.view(name[1:]))
    same(torch.zeros_like(x), np.zeros_like(a))
    same(torch.ones(3, dtype=x.dtype), np.ones(3, name))
    same(torch.eye(3, dtype=x.dtype), np.eye(3, dtype=name))
    same(torch.arange(5, 60, 7, dtype=x.dtype), np.arange(5, 60, 7, name))
    with np.errstate(over="ignore"):
        same(x @ y.T, a @ b.T)
        same(torch.einsum("ij,kj->ik", x, y), a @ b.T)
        same(torch.outer(x[0], y[0]), np.outer(a[0], b[0]))
    same(torch.nn.functional.max_pool1d(x[None], 2)[0], a.reshape(12, 4, 2).max(-1))
    assert torch.equal(x, x.clone()) and not torch.equal(x, y) and x.element_size() == a.itemsize
    assert torch.allclose(x, x)


# ---- other libraries and files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_interoperation(name, tmp_path):
    a = values(name, 5, 4)
    x = torch.from_numpy(a)
    assert x.data_ptr() == a.ctypes.data and x.numpy().dtype == a.dtype
    same([x, torch.tensor(a), torch.asarray(a), torch.from_dlpack(a)], [a] * 4)
    same(torch.from_numpy(np.from_dlpack(x)), a)
    assert memoryview(x).format == {2: "H", 4: "I", 8: "Q"}[a.itemsize]
    same(torch.frombuffer(a.tobytes(), dtype=x.dtype), a.reshape(-1))
    same([pickle.loads(pickle.dumps(x)), copy.deepcopy(x)], [a, a])
    same(torch.tensor(a.tolist(), dtype=x.dtype), a)
    file = io.BytesIO()
    torch.save({"x": x}, file)
    file.seek(0)
    same(torch.load(file)["x"], a)
    torch.save({"x": x, "y": x.T}, tmp_path / "x.safetensors")
    from safetensors.numpy import load_file

    read = load_file(tmp_path / "x.safetensors")
    same(x, read["x"])
    same(torch.load(tmp_path / "x.safetensors")["y"], a.T)
    info = torch.iinfo(x.dtype)
    assert (info.min, info.max, info.bits) == (0, top(name), 8 * a.itemsize)
    assert str(torch.tensor([1, 2], dtype=x.dtype)) == f"tensor([1, 2], dtype=argand.{name})"


# ---- compiled --------------------------------------------------------------------------------------------------------

COMPILED = {
    "arithmetic": lambda x, y: (x * y - 3) ^ (x + y) & ~y,
    "order": lambda x, y: (torch.where(x < y, x, y), x >= y, torch.maximum(x, y) - torch.minimum(x, y)),
    "division": lambda x, y: ((x + 1) // 7, x % 9, (x | 3) // 5),
    "shifts": lambda x, y: ((x >> (y % 20)) + (x << 3), x >> 1),
    "powers": lambda x, y: (x**3, torch.abs(x), torch.sign(x - y), torch.lcm(x, y | 1), torch.gcd(x, y)),
    "numbers": lambda x, y: (x > -1, x.clamp(3, 1000), x == 70000, 5 - x, torch.relu(x), torch.threshold(x, 9, -1)),
    "floats": lambda x, y: (x / 3, torch.sqrt(x), x.to(torch.float64) * 0.5, x + 0.5, x.to(torch.bfloat16), x.to(torch.float16)),
    "from floats": lambda x, y: ((x.to(torch.float64) * 0.75).to(x.dtype), (x.float() * 0.5).to(x.dtype) + 1, (x.float() * 0 - 2.5).to(x.dtype)),
    "widths": lambda x, y: tuple(x.to(getattr(torch, n)) + 1 for n in (*NAMES, *SIGNED, "uint8")),
    "sums": lambda x, y: (x.sum(), x.sum(0), (x + y).prod(1), x.cumsum(0), x.sum(1, dtype=x.dtype)),
    "extremes": lambda x, y: (x.amax(), (x ^ y).amin(0), x.amax(1), x.max(0), x.argmin(1)),
    "truth": lambda x, y: ((x > y).any(), x.all(0), x.logical_not(), x.to(torch.bool)),
    "moves": lambda x, y: (torch.cat([x, y]), x.T.contiguous() + 1, x.flip(0) - y, x.tril(), torch.zeros_like(x) + x, torch.full_like(x, 9) * y),
    "calls": lambda x, y: (x.sort(0).values + 1, x @ y.T, x.gather(0, (y % 3).to(torch.int64))),
}  # fmt: skip


@pytest.mark.parametrize("program", COMPILED)
@pytest.mark.parametrize("name", NAMES)
def test_compiled_is_eager(name, program):
    f = COMPILED[program]
    compiled = torch.compile(f, fullgraph=True)
    x, y = (torch.tensor(values(name, 5, 67, seed=i)) for i in range(2))
    for other in (y, torch.tensor(y.numpy().T.copy()).T):
        found, expected = compiled(x, other), f(x, other)
        for a, b in zip(flat(found), flat(expected), strict=True):
            assert a.dtype is b.dtype and torch.equal(a, b)


def flat(x):
    return [t for part in x for t in flat(part)] if isinstance(x, tuple) else [x]


def test_compiled_large_numbers():
    x = torch.tensor(values("uint64", 40))

    def f(x):
        return (
            x < 2**63 + 5,
            x + (2**64 - 1),
            torch.full_like(x, 2**64 - 2),
            x.clamp(min=2**63),
            x.scatter(0, torch.tensor([1]), 2**63),
        )

    for a, b in zip(torch.compile(f, fullgraph=True)(x), f(x), strict=True):
        assert a.dtype is b.dtype and torch.equal(a, b)


def test_exported(tmp_path):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("offset", torch.tensor(values("uint32", 6)))

        def forward(self, x):
            return x % 1000 + self.offset, (x > 5).sum(), x.amax(0)

    model, x = Model(), torch.tensor(values("uint32", 4, 6))
    program = torch.export.export(model, (x,))
    torch.export.save(program, tmp_path / "program.zip")
    loaded = torch.export.load(tmp_path / "program.zip")
    for a, b in zip(loaded.module()(x), model(x), strict=True):
        assert a.dtype is b.dtype and torch.equal(a, b)


# ---- the array API ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_array_api_sums_are_unsigned(name):
    a = values(name, 30, 4)
    x, xp = torch.tensor(a), torch.ones(1).__array_namespace__()
    same(xp.sum(x), np.sum(a, dtype="uint64"))
    same(xp.sum(x, axis=1, dtype=xp.int64), np.sum(a, 1, dtype="uint64").view("int64"))
    with np.errstate(over="ignore"):
        same(xp.prod(x, axis=(0, 1)), np.prod(a, dtype="uint64"))
        same(xp.cumulative_sum(x, axis=0), np.cumsum(a, 0, dtype="uint64"))
    assert xp.isdtype(x.dtype, "unsigned integer") and name in xp.__array_namespace_info__().dtypes(
        kind="integral"
    )
