// Complex numbers and the element language on them: a vector of real parts beside one of imaginary parts, both of vec.h's, so that every
// element has the same bits wherever it lies. Values of few lanes are computed where any lane wants them.
#pragma once

#include "packages/aten/csrc/kernels/cpu/vec.h"

namespace argand::simd {

inline namespace ARGAND_TIER {

#define ARGAND_CX    \
  template <class V> \
  ARGAND_FN
template <class V>
using ElementOf = typename Elements<V>::type;
template <class V>
using MaskFor = typename Elements<V>::mask;
template <class M>
ARGAND_FN bool any(M m) {
  return !argand_all_i64((vi64)~m);
}

template <class V, class C>
ARGAND_FN cx<V> lit(cx<V>, C c) {
  return {lit(V{}, c), V{}};
}
ARGAND_CX cx<V> operator+(cx<V> x, cx<V> y) { return {x.re + y.re, x.im + y.im}; }
ARGAND_CX cx<V> operator-(cx<V> x, cx<V> y) { return {x.re - y.re, x.im - y.im}; }
ARGAND_CX cx<V> operator-(cx<V> x) { return {-x.re, -x.im}; }
ARGAND_CX cx<V> operator*(cx<V> x, cx<V> y) { return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re}; }
ARGAND_CX cx<V> operator*(cx<V> x, V y) { return {x.re * y, x.im * y}; }
ARGAND_CX cx<V> operator*(V x, cx<V> y) { return {x * y.re, x * y.im}; }
ARGAND_CX cx<V> operator+(cx<V> x, V y) { return {x.re + y, x.im}; }
ARGAND_CX cx<V> operator+(V x, cx<V> y) { return {x + y.re, y.im}; }
ARGAND_CX cx<V> operator-(cx<V> x, V y) { return {x.re - y, x.im}; }
ARGAND_CX cx<V> operator-(V x, cx<V> y) { return {x - y.re, -y.im}; }
ARGAND_CX cx<V> operator/(cx<V> x, V y) { return {x.re / y, x.im / y}; }
ARGAND_CX MaskFor<V> operator==(cx<V> x, cx<V> y) { return (x.re == y.re) & (x.im == y.im); }
ARGAND_CX MaskFor<V> operator!=(cx<V> x, cx<V> y) { return ~(x == y); }
ARGAND_CX cx<V> where(MaskFor<V> m, cx<V> a, cx<V> b) { return {m ? a.re : b.re, m ? a.im : b.im}; }
ARGAND_CX cx<V> operator/(cx<V> x, cx<V> y) {  // R. Smith, CACM 5 (1962): scaled by the larger part of the divisor
  const MaskFor<V> wide = abs(y.re) >= abs(y.im);
  const V large = wide ? y.re : y.im, small = wide ? y.im : y.re, p = wide ? x.re : x.im, q = wide ? x.im : x.re;
  const V r = small / large, d = 1 / (large + small * r);
  const V re = (p + q * r) * d, im = (wide ? q - p * r : p * r - q) * d;
  return where((y.re == 0) & (y.im == 0), x * lit(x.re, __builtin_inf()), cx<V>{re, im});
}
ARGAND_CX cx<V> operator/(V x, cx<V> y) { return cx<V>{x, V{}} / y; }

ARGAND_CX V real(cx<V> x) { return x.re; }
ARGAND_CX V imag(cx<V> x) { return x.im; }
ARGAND_CX cx<V> conj(cx<V> x) { return {x.re, -x.im}; }
ARGAND_CX cx<V> neg(cx<V> x) { return -x; }
ARGAND_CX V abs(cx<V> x) { return hypot(x.re, x.im); }
ARGAND_CX V angle(cx<V> x) { return atan2(x.im, x.re); }
ARGAND_CX cx<V> sign(cx<V> x) {  // sgn: x / |x|
  const V r = abs(x);
  return where(r == 0, cx<V>{}, x / r);
}
ARGAND_CX MaskFor<V> isnan(cx<V> x) { return (x.re != x.re) | (x.im != x.im); }
ARGAND_CX MaskFor<V> isinf(cx<V> x) { return isinf(x.re) | isinf(x.im); }
ARGAND_CX MaskFor<V> isfinite(cx<V> x) { return isfinite(x.re) & isfinite(x.im); }
ARGAND_CX cx<V> complex(V re, V im) { return {re, im}; }
ARGAND_CX cx<V> polar(V r, V angle) { return {r * cos(angle), r * sin(angle)}; }

ARGAND_CX cx<V> reciprocal(cx<V> x) { return lit(x, 1) / x; }
ARGAND_CX cx<V> exp(cx<V> x) {
  const V r = exp(x.re);
  cx<V> e = polar(r, x.im);
  if (any(isinf(r) | isinf(x.re))) {
    const V root = exp(x.re / 2);  // parts need not be infinite where the size is
    e = where(isinf(r) & isfinite(x.re), polar(root, x.im) * root, e);
    e = where(isinf(x.re) & ~isfinite(x.im), cx<V>{r, x.re < 0 ? copysign(V{}, x.im) : x.im - x.im}, e);
  }
  return where(x.im == 0, cx<V>{r, x.im}, e);
}
ARGAND_CX cx<V> exp2(cx<V> x) { return exp(x * lit(x.re, 0.69314718055994530942)); }
ARGAND_CX cx<V> expm1(cx<V> x) {
  const V s = sin(x.im / 2), e = expm1(x.re);
  return {e * cos(x.im) - 2 * s * s, exp(x.re) * sin(x.im)};  // e + 1 is inexact far below 0
}
// log |x|, where |x| itself overflows too.
ARGAND_CX V log_abs(cx<V> x) {
  const V r = abs(x), l = log(r);
  const MaskFor<V> far = isinf(r);
  return any(far) ? where(far, log(abs(x * lit(r, 0.5))) + lit(r, 0.69314718055994530942), l) : l;
}
ARGAND_CX cx<V> log(cx<V> x) { return {log_abs(x), angle(x)}; }
ARGAND_CX cx<V> log2(cx<V> x) { return log(x) * lit(x.re, 1.44269504088896340736); }
ARGAND_CX cx<V> log10(cx<V> x) { return log(x) * lit(x.re, 0.43429448190325182765); }
ARGAND_CX cx<V> log1p(cx<V> x) {
  const MaskFor<V> near = abs(x) < lit(x.re, 0.5);
  V l = {};
  if (any(near)) l = log1p(x.re * (2 + x.re) + x.im * x.im) / 2;
  if (any(~near)) l = where(near, l, log_abs(x + lit(x.re, 1)));
  return {l, atan2(x.im, 1 + x.re)};
}
ARGAND_CX cx<V> sqrt(cx<V> given) {  // the root with a positive real part; parts are added, never subtracted
  using T = ElementOf<V>;
  constexpr T kFar = sizeof(T) == 4 ? 1e38 : 7e307;  // from here on the sum overflows
  const MaskFor<V> far = (abs(given.re) > kFar) | (abs(given.im) > kFar);
  const V scale = where(far, lit(V{}, 0.25), lit(V{}, 1)), back = where(far, lit(V{}, 2), lit(V{}, 1));
  const cx<V> x = given * scale;
  const V r = sqrt((abs(x.re) + abs(x)) / 2), other = abs(x.im) / (2 * r) * back;
  cx<V> root = where(x.re >= 0, cx<V>{r * back, copysign(other, x.im)}, cx<V>{other, copysign(r * back, x.im)});
  root = where(isinf(x.im), cx<V>{abs(x.im), x.im}, root);
  return where((x.re == 0) & (x.im == 0), cx<V>{V{}, x.im}, root);
}
ARGAND_CX cx<V> rsqrt(cx<V> x) { return reciprocal(sqrt(x)); }
ARGAND_CX cx<V> pow(cx<V> x, cx<V> y) {
  cx<V> result = lit(x, 1);
  MaskFor<V> left = MaskFor<V>{} - 1;  // lanes without a result
  const auto take = [&](MaskFor<V> mask, auto value) __attribute__((always_inline)) {
    mask &= left;
    if (!any(mask)) return;
    result = where(mask, value(), result);
    left &= ~mask;
  };
  const auto power = [&](double p, auto value) __attribute__((always_inline)) { take((y.im == 0) & (y.re == lit(y.re, p)), value); };
  power(0, [&] { return lit(x, 1); });
  power(1, [&] { return x; });
  power(2, [&] { return x * x; });
  power(3, [&] { return x * x * x; });
  power(0.5, [&] { return sqrt(x); });
  power(-0.5, [&] { return rsqrt(x); });
  power(-1, [&] { return reciprocal(x); });
  power(-2, [&] { return reciprocal(x * x); });
  take((x.re == 1) & (x.im == 0), [&] { return lit(x, 1); });
  take((x.re == 0) & (x.im == 0), [&] {
    const V nan = lit(V{}, __builtin_nan("")), inf = lit(V{}, __builtin_inf());
    return where(y.re > 0, cx<V>{}, cx<V>{where(y.re < 0, inf, nan), nan});
  });
  take(left, [&] { return exp(y * log(x)); });
  return result;
}
// A part of sinh or cosh: as in C99, annex G, zeros stay zeros beside infinities and NaN.
ARGAND_CX V turned(V size, V trig) {
  const V product = where((size == 0) & (trig != trig), size, size * trig);
  return where((trig == 0) & ~isfinite(size), where(size < 0, -trig, trig), product);
}
// sinh (odd) or cosh; where e^|x| / 2 is too large, its root is multiplied twice.
template <bool odd, class V>
ARGAND_FN cx<V> hyperbolic(cx<V> x) {
  const V s = sinh(x.re), c = cosh(x.re), a = cos(x.im), b = sin(x.im);
  cx<V> result = odd ? cx<V>{turned(s, a), turned(c, b)} : cx<V>{turned(c, a), turned(s, b)};
  const MaskFor<V> large = isinf(c) & isfinite(x.re) & (x.im != 0);
  if (any(large)) {
    const V root = exp(abs(x.re) / 2), half = root / 2, turn = copysign(half, x.re);
    result = where(large, cx<V>{(odd ? turn : half) * a, (odd ? half : turn) * b} * root, result);
  }
  return where(isinf(x.re) & ~isfinite(x.im), cx<V>{abs(x.re), x.im - x.im}, result);
}
ARGAND_CX cx<V> sinh(cx<V> x) { return hyperbolic<true>(x); }
ARGAND_CX cx<V> cosh(cx<V> x) { return hyperbolic<false>(x); }
ARGAND_CX cx<V> tanh(cx<V> x) {
  const V t = tan(x.im), s = sinh(x.re), c = cosh(x.re), b = 1 + t * t, d = 1 + b * s * s;
  const cx<V> near = {where(x.re == 0, x.re, b * c * s / d), where(x.im == 0, x.im, t / d)};
  using T = ElementOf<V>;
  constexpr T kFar = sizeof(T) == 4 ? 10 : 20;  // the real part is 1
  const MaskFor<V> far = abs(x.re) > kFar;
  if (!any(far)) return near;
  const V one = copysign(lit(V{}, 1), x.re), nan = x.im - x.im;
  const cx<V> endless = where(isinf(x.re), cx<V>{one, copysign(V{}, x.im)}, cx<V>{nan, nan});
  const cx<V> finite = {one, 4 * sin(x.im) * cos(x.im) * exp(-2 * abs(x.re))};
  return where(far, where(isfinite(x.im), finite, endless), near);
}
ARGAND_CX cx<V> times_i(cx<V> x) { return {-x.im, x.re}; }
ARGAND_CX cx<V> over_i(cx<V> x) { return {x.im, -x.re}; }
ARGAND_CX cx<V> sin(cx<V> x) { return over_i(sinh(times_i(x))); }
ARGAND_CX cx<V> cos(cx<V> x) { return cosh(times_i(x)); }
ARGAND_CX cx<V> tan(cx<V> x) { return over_i(tanh(times_i(x))); }
// Inverse functions by W. Kahan, "Branch cuts for complex elementary functions" (1987), far out by the logarithm of 2 |x|; of infinite numbers, and
// of NaN beside 0, as in C99, annex G.
inline constexpr double kHalfPi = 1.57079632679489661923;
ARGAND_CX MaskFor<V> is_far(cx<V> x) {  // 1 is lost beside x^2
  using T = ElementOf<V>;
  constexpr T kFar = sizeof(T) == 4 ? 1e9 : 1e18;
  return (abs(x.re) > kFar) | (abs(x.im) > kFar);
}
ARGAND_CX V log_twice(cx<V> x) { return log_abs(x) + lit(V{}, 0.69314718055994530942); }
ARGAND_CX cx<V> asinh(cx<V> x) {
  const cx<V> a = sqrt(cx<V>{1 + x.im, -x.re}), b = sqrt(cx<V>{1 - x.im, x.re});
  cx<V> result = {asinh(a.re * b.im - a.im * b.re), atan2(x.im, a.re * b.re - a.im * b.im)};
  result = where((x.im == 0) & (x.re != x.re), x, result);
  const MaskFor<V> far = is_far(x);
  return any(far) ? where(far, cx<V>{copysign(log_twice(x), x.re), atan2(x.im, abs(x.re))}, result) : result;
}
ARGAND_CX cx<V> acosh(cx<V> x) {
  const cx<V> a = sqrt(x - lit(V{}, 1)), b = sqrt(x + lit(V{}, 1));
  cx<V> result = {asinh(a.re * b.re + a.im * b.im), 2 * atan2(a.im, b.re)};
  result = where((x.re == 0) & (x.im != x.im), cx<V>{x.im, lit(V{}, kHalfPi)}, result);
  const MaskFor<V> far = is_far(x);
  return any(far) ? where(far, cx<V>{log_twice(x), atan2(x.im, x.re)}, result) : result;
}
ARGAND_CX cx<V> acos(cx<V> x) {
  const cx<V> a = sqrt(cx<V>{1 - x.re, -x.im}), b = sqrt(x + lit(V{}, 1));
  cx<V> result = {2 * atan2(a.re, b.re), asinh(b.re * a.im - b.im * a.re)};
  result = where((x.re == 0) & (x.im != x.im), cx<V>{lit(V{}, kHalfPi), x.im}, result);
  const MaskFor<V> far = is_far(x);
  return any(far) ? where(far, cx<V>{atan2(abs(x.im), x.re), -copysign(log_twice(x), x.im)}, result) : result;
}
ARGAND_CX cx<V> asin(cx<V> x) { return over_i(asinh(times_i(x))); }
ARGAND_CX cx<V> atanh(cx<V> x) {
  using T = ElementOf<V>;
  constexpr T kNear = sizeof(T) == 4 ? 1e-30 : 1e-290;  // below, squares have lost digits
  // of the real part's size, since 1 + 4 x / d loses digits near -1
  const V a = abs(x.re), d = (1 - a) * (1 - a) + x.im * x.im;
  const MaskFor<V> near = d < kNear, far = is_far(x), imaginary = x.re == 0;
  V re = log1p(4 * a / d) / 4;
  if (any(near)) re = where(near, (log(2 * sqrt(a)) - log(hypot(1 - a, x.im))) / 2, re);
  cx<V> result = {where(x.re < 0, -re, re), atan2(2 * x.im, (1 - x.re) * (1 + x.re) - x.im * x.im) / 2};
  if (any(far)) {  // all but 1 / x is lost
    const V h = hypot(x.re, x.im), quarter = copysign(lit(V{}, kHalfPi), x.im);
    result = where(far, cx<V>{where(isinf(x), copysign(V{}, x.re), x.re / h / h), where(x.im == x.im, quarter, x.im)}, result);
  }
  return any(imaginary) ? where(imaginary, cx<V>{x.re, atan(x.im)}, result) : result;
}
ARGAND_CX cx<V> atan(cx<V> x) { return over_i(atanh(times_i(x))); }
ARGAND_CX cx<V> sigmoid(cx<V> x) {  // of the smaller exponential, which does not overflow
  const MaskFor<V> negative = x.re < 0;
  const cx<V> e = exp(where(negative, x, -x));
  return where(negative, e, lit(x, 1)) / (e + lit(x.re, 1));
}
#undef ARGAND_CX

// cast<cx<float>>(x) of complex values.
template <class C, class V>
ARGAND_FN auto cast(cx<V> x) {
  const auto re = cast<typename C::real_type>(x.re);
  return cx<__typeof__(re + 0)>{re, cast<typename C::real_type>(x.im)};
}

}  // namespace ARGAND_TIER
}  // namespace argand::simd
