"""Complex operators on an emulated CUDA device: the CPU's bits where formulas are simple (of complex64), NumPy's values elsewhere."""

from __future__ import annotations

from typing import Any

import emulated
import numpy as np
import pytest

if emulated.missing:
    pytest.skip(emulated.missing, allow_module_level=True)

import triton
import triton.language as tl

import argand_aten as aten
import argand_c10 as c10
from argand_aten_cuda import complex_math, kernel

emulated.start()

DTYPES = [c10.complex64, c10.complex128]


def numbers(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Any:
    """Numbers of all quadrants, zeros among them."""
    rng = np.random.default_rng(seed)
    values = np.asarray(rng.standard_normal(shape) + 1j * rng.standard_normal(shape))
    values.reshape(-1)[::7] = 0
    return aten.from_numpy(values.astype("complex64" if dtype == c10.complex64 else "complex128"))


def same_bits(got: Any, want: Any) -> None:
    emulated.check()
    a, b = got.to("cpu").numpy(), want.numpy()
    assert a.dtype == b.dtype and a.shape == b.shape
    if a.dtype == np.complex128:
        np.testing.assert_allclose(a, b, rtol=1e-14, atol=1e-15)
        return
    np.testing.assert_array_equal(a, b)
    if a.dtype.kind == "c":
        finite = np.isfinite(b)
        assert (np.signbit(a.real) == np.signbit(b.real))[finite].all()
        assert (np.signbit(a.imag) == np.signbit(b.imag))[finite].all()


SIMPLE = {
    "add": lambda x, y: aten.add(x, y, alpha=2),
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "neg": lambda x, y: -x,
    "conj": lambda x, y: aten.conj_physical(x),
    "reciprocal": lambda x, y: aten.reciprocal(y),
    "square": lambda x, y: aten.square(x),
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "logical_or": lambda x, y: aten.logical_or(x, y),
    "where": lambda x, y: aten.where(x == y, x, y),
    "addcmul": lambda x, y: aten.addcmul(x, x, y, value=0.5),
    "number": lambda x, y: x * (2 - 1j) + 3,
    "real number": lambda x, y: (1 - x) * 0.5,
}


@pytest.mark.parametrize("name", SIMPLE)
def test_bits_of_the_cpu(name: str) -> None:
    dtype = c10.complex128 if name in ("div", "neg", "where") else c10.complex64
    x, y = numbers((5, 40), dtype), numbers((40,), dtype, 1)
    call = SIMPLE[name]
    same_bits(call(x.to("cuda"), y.to("cuda")), call(x, y))
    turned = aten.permute(numbers((40, 5), dtype, 2), [1, 0])
    if name in ("add", "eq", "where", "number"):
        same_bits(call(turned.to("cuda"), x.to("cuda")), call(turned, x))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_promotion_and_forms(dtype: Any) -> None:
    x, real = numbers((3, 5), dtype), aten.from_numpy(np.linspace(-1, 1, 5, dtype=np.float32))
    on = x.to("cuda")
    same_bits(real.to("cuda") + on, real + x)
    same_bits(on * numbers((), dtype, 3), x * numbers((), dtype, 3))  # 0-d tensors of the CPU
    out = aten.empty([3, 5], dtype=dtype, device="cuda")
    same_bits(aten.mul(on, on, out=out), x * x)
    changed = aten.clone(on)
    changed.add_(1j)
    same_bits(changed, x + 1j)
    assert (real.to("cuda") * 1j).dtype == c10.complex64


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_reductions(dtype: Any) -> None:
    x = numbers((4, 6), dtype)
    on = x.to("cuda")
    for call in (
        aten.sum,
        aten.nansum,
        aten.mean,
        lambda t: aten.sum(t, [0]),
        lambda t: aten.mean(t, [-1], True),
        lambda t: aten.cumsum(t, 1),
        aten.var,
        lambda t: aten.var(t, [1], keepdim=True),
    ):
        got = call(on).to("cpu").numpy()
        emulated.check()
        np.testing.assert_allclose(got, call(x).numpy(), rtol=1e-5, atol=1e-6)
    for call in (aten.any, aten.all, lambda t: aten.any(t, [0]), lambda t: aten.all(t, [1])):
        same_bits(call(on), call(x))
    zero_dim = numbers((), dtype).to("cuda")
    same_bits(aten.sum(zero_dim), zero_dim.to("cpu"))
    for part in (np.nan, np.inf, complex(1, np.inf)):  # quotients are complex ones
        x[0, 0] = part
        same_bits(aten.mean(x.to("cuda"), [1])[:1], aten.mean(x, [1])[:1])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_real_results(dtype: str) -> None:
    x = numbers((6, 7), dtype)
    out = aten.empty([7], dtype=aten.abs(x).dtype, device="cuda")
    for call in (aten.abs, aten.angle):
        for view in (
            lambda t: t,
            lambda t: aten.transpose(t, 0, 1)[1:],
            lambda t: t[2, 3],
            lambda t: t[:0],
        ):
            got, want = call(view(x.to("cuda"))), call(view(x))
            emulated.check()
            assert (
                got.device.type == "cuda"
                and got.dtype == want.dtype
                and got.stride() == want.stride()
            )
            np.testing.assert_allclose(got.to("cpu").numpy(), want.numpy(), rtol=1e-6)
        call(x[1].to("cuda"), out=out)
        np.testing.assert_allclose(out.to("cpu").numpy(), call(x[1]).numpy(), rtol=1e-6)
    with pytest.raises(
        RuntimeError, match="abs: In-place abs is not supported for complex tensors"
    ):
        aten.abs_(x.to("cuda"))


@triton.jit
def apply(x, out, F: tl.constexpr, N: tl.constexpr):
    o = tl.arange(0, N)
    re, im = F((tl.load(x + 2 * o), tl.load(x + 2 * o + 1)))
    tl.store(out + 2 * o, re)
    tl.store(out + 2 * o + 1, im)


FUNCTIONS: dict[str, Any] = {
    **{n: getattr(np, n) for n in "exp exp2 expm1 log log2 log10 log1p sqrt reciprocal sin cos tan sinh cosh tanh".split()},
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "neg": np.negative, "conj": np.conj, "sign": lambda z: z / np.abs(z), "rsqrt": lambda z: 1 / np.sqrt(z), "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    rng = np.random.default_rng(0)
    z = (rng.uniform(-2, 2, 64) + 1j * rng.uniform(-2, 2, 64)).astype(np.complex128)
    np.testing.assert_allclose(applied(name, z), FUNCTIONS[name](z), rtol=1e-12, atol=1e-13)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", "exp log1p tanh asin acos atan asinh acosh atanh sqrt log".split())
def test_functions_of_infinite_and_large_numbers(name: str) -> None:
    ends = (-np.inf, -0.5, 2.0, np.inf)
    z = np.array([complex(a, b) for a in ends for b in ends], np.complex128)
    if name in ("log1p", "atan", "atanh"):
        z[5] = 1e200 - 1e190j
    got, want = applied(name, z), FUNCTIONS[name](z)
    np.testing.assert_allclose(got.real, want.real, rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(got.imag, want.imag, rtol=1e-12, atol=1e-300)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", "asin acos atan asinh acosh atanh sqrt log".split())
def test_functions_next_to_overflow_and_poles(name: str) -> None:
    far = float(np.finfo(np.float64).max)
    z = np.array([complex(a, b) for a in (far, -far, 1.0, -1.0) for b in (far, -far, 1e-200, 0.5)])
    if name in ("atan", "atanh"):
        z = z[8:]
    if name == "acos":
        z[z.imag == 1e-200] = 2  # there NumPy's real part is 0
    got, want = applied(name, z), FUNCTIONS[name](z)
    np.testing.assert_allclose(got.real, want.real, rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(got.imag, want.imag, rtol=1e-12, atol=1e-300)


def test_zeros_beside_what_has_no_sine() -> None:
    z = np.array(
        [complex(0, np.inf), complex(0, np.nan), complex(np.inf, 0), complex(np.inf, np.nan)]
    )
    np.testing.assert_array_equal(applied("sinh", z).real, [0, 0, np.inf, np.inf])
    np.testing.assert_array_equal(applied("sinh", z).imag, [np.nan, np.nan, 0, np.nan])
    np.testing.assert_array_equal(applied("cosh", z).real, [np.nan, np.nan, np.inf, np.inf])
    np.testing.assert_array_equal(applied("cosh", z).imag, [0, 0, 0, np.nan])
    np.testing.assert_allclose(applied("acos", z[1:2]).real, [np.pi / 2])
    np.testing.assert_array_equal(applied("asin", z[1:2]).real, [0])
    np.testing.assert_allclose(applied("acosh", z[1:2]).imag, [np.pi / 2])


@pytest.mark.parametrize("power", [0.0, 1.0, 2.0, 3.0, 0.5, -0.5, -1.0, -2.0, 2.5])
def test_powers(power: float) -> None:
    z = np.array([complex(0.0, np.inf), 1e30 - 1e30j, 2 - 1j, 1 + 0j], np.complex64)
    x = aten.from_numpy(z)
    got, want = aten.pow(x.to("cuda"), power).to("cpu").numpy(), aten.pow(x, power).numpy()
    emulated.check()
    np.testing.assert_allclose(got.real, want.real, rtol=1e-5)
    np.testing.assert_allclose(got.imag, want.imag, rtol=1e-5)


def applied(name: str, z: np.ndarray) -> np.ndarray:
    got = np.empty_like(z)
    x, out = (
        emulated._Pointer(int(a.ctypes.data), kernel.TRITON_TYPES["complex128"]) for a in (z, got)
    )
    apply[(1,)](x, out, getattr(complex_math, f"argand_{name}"), z.size)
    return got
