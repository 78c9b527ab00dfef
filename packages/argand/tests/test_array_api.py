"""The array API namespace against array-api-strict: every name, every signature, and results on random arrays of every dtype."""

import inspect
import itertools

import numpy as np
import pytest

import argand

strict = pytest.importorskip("array_api_strict")
strict.set_array_api_strict_flags(api_version="2025.12")
xp = argand.ones(1).__array_namespace__()

FLAGS = {
    "ArrayAPIStrictFlags",
    "Device",
    "__version__",
    "get_array_api_strict_flags",
    "reset_array_api_strict_flags",
    "set_array_api_strict_flags",
}
FLOATS = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
INTEGERS = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64")
NUMERIC = INTEGERS + FLOATS + COMPLEX
REAL = INTEGERS + FLOATS
EVERY = ("bool", *NUMERIC)


def names(module):
    return [n for n in module.__all__ if n not in FLAGS]


@pytest.mark.parametrize("part", ["", "linalg", "fft"])
def test_every_name_with_its_signature(part):
    ours, theirs = (getattr(m, part) if part else m for m in (xp, strict))
    for name in names(theirs):
        assert hasattr(ours, name), name
        wanted = getattr(theirs, name)
        if inspect.isfunction(wanted):
            a, b = (inspect.signature(f).parameters.values() for f in (getattr(ours, name), wanted))
            assert [(p.name, p.kind) for p in a] == [(p.name, p.kind) for p in b], name
            defaults = [
                (p.name, p.default, q.default)
                for p, q in zip(a, b, strict=True)
                if p.default != q.default and type(q.default).__name__ != "Undef"
            ]
            assert defaults == [], name


def array(dtype, *shape, seed=0, low=-5, high=6):
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(shape) > 0.5
    if dtype in INTEGERS:
        return rng.integers(max(low, 0) if dtype.startswith("u") else low, high, shape).astype(
            dtype
        )
    values = rng.standard_normal(shape) * 2
    return (values + 1j * rng.standard_normal(shape) if dtype in COMPLEX else values).astype(dtype)


def both(call, *arrays):
    """The results of both namespaces as NumPy arrays, flattened out of tuples; an exception is a result too."""
    found = []
    for module, make in ((xp, lambda a: argand.tensor(a)), (strict, strict.asarray)):
        try:
            result = call(module, *map(make, arrays))
        except Exception as error:
            found.append(error)
            continue
        found.append(
            [np.asarray(r) for r in (result if isinstance(result, list | tuple) else [result])]
        )
    return found


def same(call, *arrays, exact=False):
    ours, theirs = both(call, *arrays)
    assert not isinstance(theirs, Exception), theirs
    assert not isinstance(ours, Exception), ours
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype, (a.dtype, b.dtype)
        assert a.shape == b.shape
        if exact or a.dtype.kind in "biu":
            np.testing.assert_array_equal(a, b)
        else:
            tolerance = 1e-4 if a.dtype in (np.float32, np.complex64) else 1e-10
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def without_common_dtype(a, b):
    return "uint64" in (a, b) and {a, b} & {"int8", "int16", "int32", "int64"}


UNARY = {
    EVERY: "logical_not isfinite isinf isnan",
    NUMERIC: "abs negative positive sign square",
    INTEGERS: "bitwise_invert",
    REAL: "ceil floor round trunc",
    FLOATS: "signbit expm1 log1p reciprocal",
    COMPLEX: "conj real imag reciprocal",
    FLOATS
    + COMPLEX: "exp sin cos tan sinh cosh tanh asinh atan sqrt log log2 log10 acos acosh asin atanh",
}
BINARY = {
    EVERY: "equal not_equal logical_and logical_or logical_xor",
    NUMERIC: "add subtract multiply",
    REAL: "less less_equal greater greater_equal maximum minimum",
    INTEGERS + ("bool",): "bitwise_and bitwise_or bitwise_xor",
    FLOATS: "atan2 copysign hypot logaddexp nextafter floor_divide remainder divide",
    COMPLEX: "divide",
}


@pytest.mark.parametrize(
    "name, dtypes",
    [(n, d) for d, text in UNARY.items() for n in text.split() if n != "logical_not" or d == EVERY],
)
def test_functions_of_one_array(name, dtypes):
    for dtype in ["bool"] if name == "logical_not" else [d for d in dtypes if d != "bool"]:
        if name == "negative" and dtype.startswith("u"):
            continue
        x = array(dtype, 3, 4)
        with np.errstate(all="ignore"):
            same(lambda m, a: getattr(m, name)(a), x)
            same(lambda m, a: getattr(m, name)(a), np.array(x[0, 0]))
            same(lambda m, a: getattr(m, name)(a), x[:0])


@pytest.mark.parametrize(
    "name, dtypes", [(n, d) for d, text in BINARY.items() for n in text.split()]
)
def test_functions_of_two_arrays(name, dtypes):
    if name.startswith("logical"):
        dtypes = ("bool",)
    for a, b in itertools.product(dtypes, dtypes):
        kinds = {("bool" if d == "bool" else "i" if d in INTEGERS else "f") for d in (a, b)}
        if len(kinds) > 1 or without_common_dtype(a, b):
            continue  # promotion between kinds is not the standard's
        x, y = array(a, 3, 4), array(b, 4, seed=1)
        with np.errstate(all="ignore"):
            same(lambda m, p, q: getattr(m, name)(p, q), x, y)
            same(lambda m, p, q: getattr(m, name)(p, q), x, np.array(y[0]))
            same(lambda m, p, q: getattr(m, name)(p, q), np.array(x[0, 0]), y)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_division_shifts_and_powers(dtype):
    x, y = array(dtype, 20), array(dtype, 20, seed=1, low=1, high=5)
    for name in ("floor_divide", "remainder", "pow"):
        same(lambda m, p, q, name=name: getattr(m, name)(p, q), x, y)
    for name in ("bitwise_left_shift", "bitwise_right_shift"):
        same(lambda m, p, q, name=name: getattr(m, name)(p, q), np.abs(x), y)


@pytest.mark.parametrize("dtype", FLOATS)
def test_remainder_of_zeros_and_infinities(dtype):
    ends = [0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, np.nan]
    x, y = (np.array(part, dtype) for part in zip(*itertools.product(ends, ends), strict=True))
    with np.errstate(all="ignore"):
        same(lambda m, a, b: m.remainder(a, b), x, y)
        same(lambda m, a, b: m.signbit(m.remainder(a, b)) & ~m.isnan(m.remainder(a, b)), x, y)
        same(lambda m, a: m.signbit(m.remainder(a, -1.5)), x[~np.isnan(x) & ~np.isinf(x)])


def test_the_sign_of_nan_is_nan():
    same(lambda m, a: m.sign(a), np.array([np.nan, -2.0, 0.0, np.inf]))


def test_numbers_beside_arrays_and_clip():
    for dtype in REAL:
        x = array(dtype, 3, 4)
        same(lambda m, a: m.add(a, 3), x)
        same(lambda m, a: m.multiply(2, a), x)
        same(lambda m, a: m.clip(a, 0, 3), x)
        same(lambda m, a: m.clip(a, max=2), x)
        same(lambda m, a: m.clip(a), x)
    same(lambda m, a, b: m.clip(a, b, 2.0), array("float64", 3, 4), array("float64", 4))


@pytest.mark.parametrize(
    "name", ["sum", "prod", "max", "min", "mean", "std", "var", "any", "all", "count_nonzero"]
)
def test_reductions(name):
    for dtype in {
        "mean": FLOATS + COMPLEX,
        "std": FLOATS,
        "var": FLOATS,
        "max": REAL,
        "min": REAL,
        "sum": NUMERIC,
        "prod": NUMERIC,
    }.get(name, EVERY):
        for axis, keepdims in itertools.product([None, 0, -1, (0, 2), ()], [False, True]):
            if axis == () and name in ("std", "var", "mean"):
                continue  # NumPy's own answers
            same(
                lambda m, a, axis=axis, k=keepdims: getattr(m, name)(a, axis=axis, keepdims=k),
                array(dtype, 2, 3, 4),
            )
        same(lambda m, a: getattr(m, name)(a), np.array(array(dtype, 1)[0]))
    if name in ("std", "var"):
        same(lambda m, a: getattr(m, name)(a, correction=1), array("float64", 2, 5))
    if name in ("sum", "prod"):
        same(lambda m, a: getattr(m, name)(a, dtype=m.float64), array("int32", 2, 5))
    if name in ("max", "min"):
        ours, theirs = both(lambda m, a: getattr(m, name)(a), np.empty(0))
        assert isinstance(ours, Exception) and isinstance(theirs, Exception)


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
def test_running_results(name):
    for dtype in NUMERIC:
        same(lambda m, a: getattr(m, name)(a), array(dtype, 5))
        same(lambda m, a: getattr(m, name)(a, axis=1, include_initial=True), array(dtype, 2, 3))
    ours, _ = both(lambda m, a: getattr(m, name)(a), array("float32", 2, 2))
    assert isinstance(ours, ValueError)


CREATION = [
    lambda m: m.arange(5), lambda m: m.arange(1, 9, 3), lambda m: m.arange(5.0, 1.0, -1.5, dtype=m.float64), lambda m: m.arange(3, 1),
    lambda m: m.arange(0, 4, dtype=m.int8), lambda m: m.eye(3), lambda m: m.eye(2, 4, k=1, dtype=m.int16), lambda m: m.eye(3, k=-2),
    lambda m: m.eye(2, 3, k=9), lambda m: m.full((2, 3), 7, dtype=m.int64), lambda m: m.full((2,), True), lambda m: m.full(3, 1j, dtype=m.complex64),
    lambda m: m.linspace(0.0, 1.0, 5, dtype=m.float64), lambda m: m.linspace(0.0, 1.0, 5, dtype=m.float32, endpoint=False),
    lambda m: m.linspace(0j, 1 + 2j, 3, dtype=m.complex128), lambda m: m.ones((2, 0)), lambda m: m.zeros(4, dtype=m.bool), lambda m: m.ones(()),
    lambda m: m.asarray([[1, 2], [3, 4]]), lambda m: m.asarray([True, False]), lambda m: m.asarray(2.5, dtype=m.float32),
    lambda m: m.zeros_like(m.ones((2, 2), dtype=m.int8)), lambda m: m.full_like(m.ones(3), 4.0), lambda m: m.ones_like(m.zeros(2), dtype=m.int64),
    lambda m: m.meshgrid(m.arange(2), m.arange(3)), lambda m: m.meshgrid(m.arange(2), m.arange(3), indexing="ij"),
    lambda m: m.tril(m.ones((3, 4)), k=1), lambda m: m.triu(m.ones((2, 3, 3)), k=-1),
]  # fmt: skip


@pytest.mark.parametrize("call", CREATION)
def test_creation(call):
    ours, theirs = both(call)
    for a, b in zip(ours, theirs, strict=True):
        # The standard leaves the default floating-point dtype open: ours is float32.
        wanted = (
            {np.dtype("float64"): np.dtype("float32")}.get(b.dtype, b.dtype)
            if a.dtype == np.float32
            else b.dtype
        )
        assert a.dtype == wanted and a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-6)


SHAPES = [
    lambda m, x: m.concat([x, x], axis=1), lambda m, x: m.concat([x, m.ones(2, dtype=x.dtype)] if x.ndim == 1 else [x, x], axis=None),
    lambda m, x: m.expand_dims(x, axis=1), lambda m, x: m.expand_dims(x, axis=-1), lambda m, x: m.expand_dims(x, axis=(0, -1, 2)),
    lambda m, x: m.permute_dims(x, (-1, 0, -2)), lambda m, x: m.isin(m.astype(x, m.int64), 2), lambda m, x: m.searchsorted(m.sort(x[0, 0, :]), 1), lambda m, x: m.flip(x), lambda m, x: m.flip(x, axis=(0, -1)),
    lambda m, x: m.moveaxis(x, 0, -1), lambda m, x: m.moveaxis(x, (0, 1), (2, 0)), lambda m, x: m.permute_dims(x, (2, 0, 1)), lambda m, x: m.repeat(x, 2),
    lambda m, x: m.repeat(x, 3, axis=1), lambda m, x: m.reshape(x, (4, -1)), lambda m, x: m.reshape(x, (24,), copy=True), lambda m, x: m.roll(x, 2),
    lambda m, x: m.roll(x, (1, -1), axis=(0, 2)), lambda m, x: m.roll(x, 1, axis=1), lambda m, x: m.squeeze(m.expand_dims(x, axis=2), axis=2),
    lambda m, x: m.stack([x, x], axis=1), lambda m, x: m.tile(x, (2, 1, 3, 1)), lambda m, x: m.tile(x, (2,)), lambda m, x: m.unstack(x, axis=1),
    lambda m, x: m.broadcast_to(x, (5, 2, 3, 4)), lambda m, x: m.broadcast_arrays(x, m.ones((3, 1), dtype=m.int8)),
    lambda m, x: m.take(x, m.asarray([2, 0]), axis=1), lambda m, x: m.take(x, m.asarray([-1, 0]), axis=2),
    lambda m, x: m.take_along_axis(x, m.asarray([[[1, 0]]]), axis=2), lambda m, x: m.diff(x, axis=0), lambda m, x: m.diff(x, n=2),
    lambda m, x: m.diff(x, axis=1, prepend=x[:, :1, :], append=x[:, :1, :]), lambda m, x: m.where(x > 0, x, -x), lambda m, x: m.nonzero(x),
    lambda m, x: m.argmax(x), lambda m, x: m.argmin(x, axis=1, keepdims=True), lambda m, x: m.argmax(x, keepdims=True), lambda m, x: m.sort(x, axis=0),
    lambda m, x: m.sort(x, descending=True), lambda m, x: m.argsort(x, axis=1), lambda m, x: m.unique_values(x), lambda m, x: m.unique_counts(x),
    lambda m, x: m.unique_inverse(x), lambda m, x: m.unique_all(x), lambda m, x: m.searchsorted(m.sort(m.reshape(x, (-1,))), m.reshape(x, (-1,)), side="right"),
    lambda m, x: m.astype(x, m.int32), lambda m, x: m.astype(x, m.complex128), lambda m, x: m.linalg.trace(x, offset=1), lambda m, x: m.linalg.diagonal(x),
    lambda m, x: m.matrix_transpose(x), lambda m, x: m.matmul(x, m.matrix_transpose(x)), lambda m, x: m.tensordot(x, x, axes=((0, 1), (0, 1))),
    lambda m, x: m.vecdot(x, x, axis=-2), lambda m, x: m.linalg.outer(x[0, 0, :], x[0, 1, :]), lambda m, x: m.linalg.cross(x, m.flip(x), axis=-2),
]  # fmt: skip


@pytest.mark.parametrize("call", SHAPES)
@pytest.mark.parametrize("dtype", ["int64", "float32"])
def test_shapes_indices_and_products(call, dtype):
    same(call, array(dtype, 2, 3, 4))


def test_membership():
    x, y = array("int64", 3, 4), array("int64", 3, seed=1)
    for invert in (False, True):
        found = xp.isin(argand.tensor(x), argand.tensor(y), invert=invert)
        np.testing.assert_array_equal(found, np.isin(x, y, invert=invert))


def test_rounding_of_complex_numbers():
    assert xp.round(argand.tensor([2.5 - 1.5j, 0.4 + 0.6j])).tolist() == [2 - 2j, 1j]
    for f in (xp.ceil, xp.floor, xp.trunc):
        with pytest.raises(NotImplementedError):
            f(argand.tensor([2.5j]))


def test_unique_of_nan_and_complex_numbers():
    x = np.array([np.nan, 1.0, np.nan, 0.0, 1.0])
    values, counts = xp.unique_counts(argand.tensor(x))
    assert values[:2].tolist() == [0, 1] and counts.tolist() == [1, 2, 1, 1]
    same(lambda m, a: m.unique_values(a), np.array([1 + 1j, 1 - 1j, 0j, 1 + 1j]))


LINALG = [
    lambda m, a: m.linalg.cholesky(m.matmul(a, m.matrix_transpose(a)) + 4 * m.eye(4, dtype=a.dtype)), lambda m, a: m.linalg.det(a), lambda m, a: m.linalg.inv(a),
    lambda m, a: m.linalg.cholesky(m.matmul(a, m.matrix_transpose(a)) + 4 * m.eye(4, dtype=a.dtype), upper=True),
    lambda m, a: m.sort(m.abs(m.linalg.eigvals(a))), lambda m, a: m.sort(m.abs(m.linalg.eig(a)[0])), lambda m, a: m.linalg.eig(a).eigenvectors[0, 0, 0] * 0,
    lambda m, a: m.linalg.eigvalsh(a + m.matrix_transpose(a)), lambda m, a: m.linalg.eigh(a + m.matrix_transpose(a))[0], lambda m, a: m.linalg.matrix_norm(a),
    lambda m, a: m.linalg.matrix_norm(a, ord="nuc", keepdims=True), lambda m, a: m.linalg.matrix_norm(a, ord=2), lambda m, a: m.linalg.matrix_norm(a, ord=-1),
    lambda m, a: m.linalg.matrix_power(a, 3), lambda m, a: m.linalg.matrix_power(a, -1), lambda m, a: m.linalg.matrix_power(a, 0),
    lambda m, a: m.linalg.matrix_rank(a), lambda m, a: m.linalg.pinv(a[:, :, :2]), lambda m, a: m.abs(m.linalg.qr(a)[1]), lambda m, a: m.linalg.slogdet(a),
    lambda m, a: m.linalg.solve(a, a[:, :, :2]), lambda m, a: m.linalg.solve(a, a[0, 0, :]), lambda m, a: m.linalg.svd(a)[1], lambda m, a: m.linalg.svdvals(a),
    lambda m, a: m.linalg.vector_norm(a), lambda m, a: m.linalg.vector_norm(a, axis=(0, 2), ord=1, keepdims=True), lambda m, a: m.linalg.vector_norm(a, axis=1, ord=float("inf")),
]  # fmt: skip


@pytest.mark.parametrize("call", LINALG)
def test_linear_algebra(call):
    same(call, array("float64", 3, 4, 4))


def test_vectors_of_unequal_sizes_and_norms_over_no_axes():
    for first, second in (((1,), (3,)), ((2, 3), (2, 1))):
        with pytest.raises(ValueError, match="along axis -1"):
            xp.vecdot(argand.ones(first), argand.ones(second))
    for order in (2, 0, np.inf):
        same(lambda m, a, o=order: m.linalg.vector_norm(a, axis=(), ord=o), array("float64", 2, 3))


@pytest.mark.parametrize(
    "shapes, axis",
    [([(2, 3, 3), (3,)], -1), ([(4, 1, 3), (2, 3)], -1), ([(3, 5), (2, 3, 5)], -2), ([(3,), (1, 3)], -1)],
)  # fmt: skip
def test_cross_products_broadcast(shapes, axis):
    same(lambda m, a, b: m.linalg.cross(a, b, axis=axis), *(array("float64", *s) for s in shapes))


@pytest.mark.parametrize(
    "name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fftn", "ifftn", "rfftn", "irfftn"]
)
def test_transforms(name):
    x = array("float64" if name in ("rfft", "ihfft", "rfftn") else "complex128", 3, 6)
    for norm in ("backward", "ortho", "forward"):
        same(lambda m, a, norm=norm: getattr(m.fft, name)(a, norm=norm), x)
    size = {"s": (2, 4), "axes": (0, 1)} if name.endswith("n") else {"n": 4, "axis": 0}
    same(lambda m, a: getattr(m.fft, name)(a, **size), x)
    same(
        lambda m, a: (
            m.fft.fftshift(a),
            m.fft.ifftshift(a, axes=(1,)),
            m.fft.fftfreq(5, d=0.5, dtype=m.float64),
            m.fft.rfftfreq(6, dtype=m.float64),
        ),
        x,
    )


def test_dtypes_and_information():
    for a, b in itertools.product(EVERY, EVERY):
        ours = xp.can_cast(getattr(xp, a), getattr(xp, b))
        if without_common_dtype(a, b):
            with pytest.raises(RuntimeError, match="promote_types"):
                xp.result_type(getattr(xp, a), getattr(xp, b))
        elif {a, b} <= set(FLOATS + COMPLEX) or {a, b} <= set(INTEGERS):
            assert ours == strict.can_cast(getattr(strict, a), getattr(strict, b)), (a, b)
            found = xp.result_type(getattr(xp, a), getattr(xp, b))
            assert found.name == str(
                strict.result_type(getattr(strict, a), getattr(strict, b))
            ).rpartition(".")[2].strip("'>)")
    kinds = ("bool", "signed integer", "integral", "real floating", "complex floating", "numeric")
    for dtype, kind in itertools.product(EVERY, kinds):
        assert xp.isdtype(getattr(xp, dtype), kind) == strict.isdtype(getattr(strict, dtype), kind)
    assert xp.isdtype(xp.int8, (xp.int8, "bool")) and not xp.isdtype(xp.int16, (xp.int8, "bool"))
    for dtype in FLOATS + COMPLEX:
        ours, theirs = xp.finfo(getattr(xp, dtype)), strict.finfo(getattr(strict, dtype))
        assert all(
            getattr(ours, n) == getattr(theirs, n)
            for n in ("bits", "eps", "max", "min", "smallest_normal")
        )
    for dtype in INTEGERS:
        ours, theirs = xp.iinfo(getattr(xp, dtype)), strict.iinfo(getattr(strict, dtype))
        assert all(getattr(ours, n) == getattr(theirs, n) for n in ("bits", "max", "min"))
    info = xp.__array_namespace_info__()
    assert (
        info.capabilities()["boolean indexing"]
        and info.default_dtypes()["real floating"] == argand.float32
    )
    assert set(info.dtypes(kind="real floating")) == set(FLOATS) and set(info.dtypes()) == set(
        EVERY
    )
    assert info.default_device() in info.devices()


def test_arrays_and_errors():
    x = argand.arange(6).reshape(2, 3)
    assert x.__array_namespace__(api_version="2023.12") is xp
    with pytest.raises(ValueError, match="api_version"):
        x.__array_namespace__(api_version="2020.01")
    assert x.to_device("cpu") is x and x.to_device("meta", stream=None).device.type == "meta"
    assert xp.from_dlpack(np.arange(3)).tolist() == [0, 1, 2]
    assert (
        xp.asarray(x, copy=False).data_ptr() == x.data_ptr() != xp.asarray(x, copy=True).data_ptr()
    )
    assert (
        xp.astype(x, xp.int64, copy=False) is x
        and xp.astype(x, xp.int64).data_ptr() != x.data_ptr()
    )
    with pytest.raises(ValueError, match="copy"):
        xp.reshape(x.T, (6,), copy=False)
    for call in (
        lambda: xp.squeeze(x, 0),
        lambda: xp.nonzero(argand.ones(())),
        lambda: xp.take(x, x),
        lambda: xp.isdtype(xp.int8, "odd"),
    ):
        with pytest.raises(ValueError):
            call()
    with pytest.raises(ValueError, match="different"):
        xp.expand_dims(x, axis=(0, -4))
    for call in (lambda: xp.expand_dims(x, axis=4), lambda: xp.sum(x, axis=2)):
        with pytest.raises(IndexError):
            call()
