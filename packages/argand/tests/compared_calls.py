"""The calls that compare_with_torch.py replays: expressions over its operands."""

from __future__ import annotations

UNARY = """
abs absolute neg negative positive sign sgn square sqrt rsqrt reciprocal exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh
tanh asinh acosh atanh arcsin arccos arctan arcsinh arccosh arctanh floor ceil trunc fix round frac erf erfc erfinv sigmoid lgamma digamma sinc
deg2rad rad2deg logical_not bitwise_not relu logit i0 nan_to_num
""".split()
UNARY_PLAIN = "isnan isinf isfinite isposinf isneginf isreal signbit angle conj_physical".split()
BINARY = """
add sub subtract mul multiply div divide true_divide floor_divide remainder fmod pow eq ne lt le gt ge not_equal less less_equal greater
greater_equal logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift copysign heaviside
atan2 arctan2 hypot gcd lcm xlogy nextafter float_power ldexp
""".split()
BINARY_PLAIN = "maximum minimum fmax fmin logaddexp logaddexp2".split()


def _calls() -> list[str]:
    found = []
    for name in UNARY:
        found += [
            f"torch.{name}(x)",
            f"x.{name}()",
            f"x.{name}_()",
            f"torch.{name}(input=x)",
            f"torch.{name}(x, out=y)",
        ]
    for name in UNARY_PLAIN:
        found += [f"torch.{name}(x)", f"x.{name}()"]
    for name in BINARY:
        found += [f"torch.{name}(x, y)", f"x.{name}(y)", f"x.{name}_(y)", f"torch.{name}(input=x, other=y)", f"torch.{name}(x, 2)", f"torch.{name}(x, 0.5)",
                  f"x.{name}_(2)", f"torch.{name}(2, x)", f"torch.{name}(x, y, out=z)", f"torch.{name}(x, i)", f"torch.{name}(x, True)"]  # fmt: skip
    for name in BINARY_PLAIN:
        found += [
            f"torch.{name}(x, y)",
            f"x.{name}(y)",
            f"torch.{name}(x, y, out=z)",
            f"torch.{name}(x, i)",
            f"torch.{name}(x, 2)",
        ]
    return found


ACTIVATIONS = (
    """
F.hardshrink(x)|F.hardshrink(x, 1.5)|torch.hardshrink(x, lambd=0.2)|x.hardshrink(1.0)|F.softshrink(x)|F.softshrink(x, 1.5)|F.softshrink(x, -1)
F.celu(x)|F.celu(x, 2.0)|F.celu(x, alpha=0.5)|torch.celu(x)|torch.celu_(x)|F.celu(x, 0)|F.selu(x)|torch.selu(x)|torch.selu_(x)|F.elu(x)|F.elu(x, 0.3)
F.prelu(x[0], y[0, :1])|F.prelu(x, y[0])|torch.prelu(x, y[0, 0])|x.prelu(y[0])|F.rrelu(x)|torch.rrelu(x, 0.1, 0.2)|F.relu6(x)|F.hardtanh(x)|F.hardtanh(x, -1.5, 0.5)
F.leaky_relu(x)|F.leaky_relu(x, 0.3)|F.gelu(x)|F.gelu(x, approximate='tanh')|F.silu(x)|F.mish(x)|F.softplus(x)|F.softplus(x, 2, 1)|F.softsign(x)
F.tanhshrink(x)|F.logsigmoid(x)|F.hardsigmoid(x)|F.hardswish(x)|F.threshold(x, 0.5, 2.0)|F.glu(x)|F.glu(x, 0)|F.glu(x, -1)|F.softmin(x, -1)
F.softmin(x, dim=0)|F.sigmoid(x)|F.tanh(x)|F.relu(x)|F.relu(x, inplace=True)|F.relu_(x.clone())|F.celu_(x.clone())|F.elu_(x.clone())|F.selu_(x.clone())
F.leaky_relu_(x.clone(), 0.2)|F.hardtanh_(x.clone())|F.threshold_(x.clone(), 0.1, 0.5)|F.rrelu_(x.clone())
""".strip()
    .replace("\n", "|")
    .split("|")
)

SCALARS = """
x + 2|2 - x|x * 2.5|3 / x|x // 2|7 % x|x ** 2|2 ** x|x ** 0.5|x & y|x \\| y|x ^ y|~x|x << i|x >> i|x & 3|3 & x|2 \\| x|x ^ True|1 << n|x == 1|x != 0.5|1 < x
-x|+x|abs(x)|x % 3|x % -2.5|x // -2.5|divmod(x, 2)|round(x)|x.__and__(y)|x.__rsub__(2)|x.__rpow__(2)|x.__rfloordiv__(5)|x.__lshift__(2)|x.__ior__(y)
x.__iand__(y)|x.__ixor__(y)|x.__ilshift__(1)|x.__irshift__(1)|x.__ifloordiv__(2)|x.__imod__(3)|x.__ipow__(2)|x.__rmatmul__(y)|x.__invert__()
"""
COMPOSED = """
torch.add(x, y, alpha=2)|torch.sub(x, y, alpha=0.5)|torch.sub(x, 2, alpha=3)|torch.rsub(x, y, alpha=2)|torch.div(x, y, rounding_mode='floor')
torch.div(x, y, rounding_mode='trunc')|torch.div(x, 2, rounding_mode='trunc')|x.div_(3, rounding_mode='floor')|torch.div(x, y, rounding_mode=None)
torch.round(x, decimals=1)|torch.round(x, decimals=-1)|x.round(decimals=2)|x.round_(decimals=1)|torch.clamp(x, -1, 1)|torch.clamp(x, min=0.5)|torch.clamp(x, max=y)
torch.clamp(x, y, z)|torch.clip(x, -1, None)|x.clip_(0, 2)|torch.clamp_min(x, 1)|torch.clamp_max(x, y)|x.clamp_max_(1.5)|torch.clamp(x, 2, 1)|torch.clamp(x)
torch.lerp(x, y, 0.3)|torch.lerp(x, y, z)|torch.lerp(x, y, torch.tensor(0.25, dtype=torch.float64))|x.lerp_(y, torch.tensor(3))|x.lerp_(y, 0.75)|torch.addcmul(x, y, z)|torch.addcmul(x, y, z, value=0.5)|x.addcmul_(y, z, value=2)
torch.addcdiv(x, y, p)|torch.addcdiv(x, y, p, value=2)|torch.nan_to_num(x, nan=1.0)|torch.nan_to_num(x, 0.0, 2.0, -3.0)|torch.logit(u, eps=0.1)|u.logit_()
torch.frexp(x)|x.frexp()|torch.polar(p, x)|torch.complex(x, y)|torch.real(x)|torch.imag(x)|x.real|x.imag|torch.conj(x)|x.conj()|torch.mvlgamma(p + 2, 3)
p.mvlgamma(1)|torch.mvlgamma(x, 2)|torch.polygamma(0, p)|torch.polygamma(1, x)|torch.polygamma(2, p)|torch.polygamma(3, x)|p.polygamma(1)|torch.igamma(p, u)
torch.igammac(p, u)|torch.igamma(p * 10, p * 10)|torch.igammac(p * 10, p * 10)|torch.igamma(x, y)|torch.igammac(x, y)|torch.where(b, x, y)|torch.where(b, x, 2)
torch.where(x > 0, 1.5, x)|x.where(b, y)|torch.isclose(x, y)|torch.isclose(x, x + 1e-7)|torch.isclose(x, y, equal_nan=True)|torch.allclose(x, y)|torch.equal(x, y)
torch.isclose(x, y, rtol=0.5, atol=1)|torch.is_nonzero(x)|torch.is_floating_point(x)|torch.is_complex(x)|torch.is_signed(x)|x.is_signed()|torch.exp(2.0)
x.copysign_(-1)|torch.logical_and(x, y, out=b)|torch.xlogy(2, x)|torch.xlogy(x, 0.5)|torch.float_power(2, x)|torch.float_power(x, 2)|x.float_power(y)
"""  # fmt: skip
SPECIAL_UNARY = """
airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 digamma entr erf erfc erfcx erfinv exp2 expit expm1 gammaln i0 i0e i1 i1e log1p log_ndtr logit
modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 ndtr ndtri psi scaled_modified_bessel_k0 scaled_modified_bessel_k1
sinc spherical_bessel_j0 round
""".split()
SPECIAL_BINARY = "gammainc gammaincc xlogy xlog1py zeta".split()
POLYNOMIALS = """
chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he
laguerre_polynomial_l legendre_polynomial_p shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v
shifted_chebyshev_polynomial_w
""".split()


def _special() -> list[str]:
    found = []
    for name in SPECIAL_UNARY:
        found += [f"torch.special.{name}({operand})" for operand in ("x", "p", "u", "p * 6")] + [
            f"torch.special.{name}(x, out=y)"
        ]
    for name in SPECIAL_BINARY:
        found += [
            f"torch.special.{name}({a})"
            for a in ("x, y", "p, u", "p, u * 4", "p * 8, p * 8", "p + 1, p", "2, x", "x, 2.5")
        ]
    for name in POLYNOMIALS:
        found += [
            f"torch.special.{name}({a})" for a in ("x, n", "u, n", "x, 3", "0.5, n", "x, n * 3")
        ]
    return [
        *found, "torch.special.multigammaln(p + 2, 3)", "torch.special.polygamma(1, p)", "torch.special.log_softmax(x, 0)", "torch.special.logsumexp(x, 0)",
        "torch.special.softmax(x, -1)", "torch.special.logit(u, eps=0.1)",
    ]  # fmt: skip


def _split(text: str) -> list[str]:
    """Calls of a table; `\\|` stands for the operator."""
    return [
        c.strip().replace("\0", "|")
        for c in text.replace("\\|", "\0").replace("\n", "|").split("|")
        if c.strip()
    ]


DIMENSIONS = ("", "0", "-1", "dim=0", "1, True", "dim=1, keepdim=True", "5")
LISTS = ("dim=(0, 1)", "dim=[]", "dim=None", "(0, -1), True", "dim=(0, 0)")


def _reductions() -> list[str]:
    found = []
    for (
        name
    ) in "sum mean nansum nanmean any all amax amin std var norm logsumexp count_nonzero".split():
        found += [
            f"torch.{name}({', '.join(['x', a] if a else ['x'])})" for a in DIMENSIONS + LISTS
        ]
        found += [
            f"x.{name}()",
            f"x.{name}(0)",
            f"torch.{name}(x, 0, out=y)",
            f"torch.{name}(input=x)",
        ]
    for name in "sum mean nansum nanmean prod cumsum cumprod".split():
        found += [
            f"torch.{name}(x, {a}dtype=torch.{d})"
            for a in ("", "0, ")
            for d in ("float64", "int64", "float32", "complex64")
        ]
    for name in "prod max min median nanmedian argmax argmin mode aminmax".split():
        found += [
            f"torch.{name}({', '.join(['x', a] if a else ['x'])})"
            for a in DIMENSIONS
            if name != "aminmax" or not a or "dim" in a
        ]
        found += [f"x.{name}()"]
    for name in "cummax cummin cumsum cumprod logcumsumexp".split():
        found += [
            f"torch.{name}(x, 0)",
            f"x.{name}(-1)",
            f"torch.{name}(x, dim=1)",
            f"torch.{name}(x, 7)",
            f"torch.{name}(x)",
        ]
    for name in "std var std_mean var_mean".split():
        found += [f"torch.{name}(x{a})" for a in (", unbiased=False", ", 0, False", ", dim=1, correction=0", ", correction=2", ", 0, True, True",
                                                  ", dim=0, unbiased=False, keepdim=True", ", dim=(0, 1), correction=0.5, keepdim=True", ", [0, 1]")]  # fmt: skip
    return found


STATISTICS = """
torch.aminmax(x)|torch.aminmax(x, dim=0, keepdim=True)|x.aminmax(dim=-1)|torch.quantile(x, 0.3)|torch.quantile(x, 0.5, dim=0)|torch.quantile(x, u.reshape(-1)[:3], 0, True)
torch.quantile(x, 0.4, interpolation='nearest')|torch.quantile(x, 0.4, 0, interpolation='lower')|torch.quantile(x, 0.4, interpolation='higher')
torch.quantile(x, 0.4, interpolation='midpoint')|torch.quantile(x, 1.5)|torch.nanquantile(x, 0.3)|torch.nanquantile(x, 0.5, dim=0, keepdim=True)|x.quantile(0.9, -1)
torch.diff(x)|torch.diff(x, n=2)|torch.diff(x, dim=0)|torch.diff(x, prepend=y)|torch.diff(x, 1, -1, y, z)|torch.diff(x, n=0)|torch.diff(x, n=9)|torch.trapezoid(x)
torch.trapezoid(x, dx=0.5)|torch.trapezoid(x, y)|torch.trapezoid(x, dim=0)|torch.trapz(x)|torch.trapz(x, dx=2.0)|torch.cumulative_trapezoid(x)
torch.cumulative_trapezoid(x, y)|torch.cumulative_trapezoid(x, dx=2, dim=0)|torch.dist(x, y)|torch.dist(x, y, 1)|torch.dist(x, y, 3.5)|torch.dist(x, y, inf)
torch.dist(x, y, 0)|x.dist(y)|torch.cov(x)|torch.cov(x, correction=0)|torch.corrcoef(x)|x.cov()|torch.cov(x, fweights=n.reshape(-1)[:4])
torch.cov(x, aweights=p.reshape(-1)[:4])|torch.histc(x, 5)|torch.histc(x, bins=4, min=-1, max=2)|torch.histogram(x, 4)|torch.histogram(x, 3, range=(-1.0, 2.0))
torch.histogram(x, bins=3, density=True)|torch.histogram(x, torch.tensor([-1.0, 0.0, 2.0], dtype=x.dtype))|torch.histogram(x, 4, weight=p)
torch.bucketize(x, torch.tensor([-1, 0, 2]))|torch.bucketize(x, torch.tensor([-1, 0, 2]), right=True)|torch.bucketize(x, torch.tensor([-1.0, 0.5]), out_int32=True)
torch.bucketize(1.5, torch.tensor([-1.0, 0.5]))|torch.bincount(n.reshape(-1))|torch.bincount(n.reshape(-1), minlength=9)|torch.bincount(n.reshape(-1), p.reshape(-1))
torch.unique(n)|torch.unique(n, return_inverse=True)|torch.unique(n, return_inverse=True, return_counts=True)|torch.unique(x, sorted=True)|torch.unique(n, dim=0)
torch.unique(n, dim=1, return_counts=True, return_inverse=True)|n.unique()|torch.unique_consecutive(n)|torch.unique_consecutive(n, return_inverse=True)
torch.unique_consecutive(n, return_counts=True)|torch.unique_consecutive(n, dim=0, return_inverse=True, return_counts=True)|n.unique_consecutive()
torch.renorm(x, 2, 0, 1.0)|torch.renorm(x, p=1, dim=-1, maxnorm=0.5)|x.renorm_(2, 0, 1)|torch.renorm(x, inf, 0, 1.0)|torch.gradient(x)|torch.gradient(x, spacing=0.5)
torch.gradient(x, dim=0)|torch.gradient(x, spacing=[2.0, 0.5])|torch.gradient(x, edge_order=2)|torch.gradient(x, dim=[0, 1])
torch.gradient(x, spacing=(torch.tensor([0.0, 1.0, 3.0]),), dim=0)|torch.norm(x, 'fro')|torch.norm(x, p=inf)|torch.norm(x, 2, 0, dtype=torch.float64)|torch.norm(x, 0)
x.norm(p=3, dim=1)|torch.norm(x, dim=0)|torch.norm(x, -inf)|x.norm('nuc')|torch.max(x, y)|torch.min(x, y)|torch.max(x, 0, out=(x, n))|torch.all(x, dim=(0, 1))
torch.any(x, dim=[0], keepdim=True)|torch.count_nonzero(x, dim=(0, 1))|torch.argmax(x, keepdim=True)|torch.sum(x, 'a')|torch.logsumexp(x, dim=(0, 1), keepdim=True)
x.sum((0, 1))|x.sum(0, 1)|x.sum(dtype=torch.float64)|x.mean((0, 1))|x.prod(0, True)|x.cumsum_(0)|x.cumprod_(0)|x.cumsum(0, dtype=torch.float64)|x.nansum(0)
torch.trace(x)|torch.median(x, 0).values|torch.cummax(x, 0)[0]|torch.std(x, 0, out=y)|x.sum(axis=0)|x.max(axis=0, keepdims=True)|x.argmax(axis=0)|np.asarray(x.sum().item()).shape
"""  # fmt: skip

CALLS = [
    *_calls(), *ACTIVATIONS, *_split(SCALARS), *_split(COMPOSED), *_special(), *_reductions(), *_split(STATISTICS),
]  # fmt: skip
