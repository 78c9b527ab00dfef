// Complex scalars and the element language on them. Kernels with a complex operand run one element at a time; their real
// parts go through the vector functions of vec.h, so that every element has the same bits wherever it lies.
#pragma once

#include "packages/aten/csrc/kernels/cpu/vec.h"

namespace argand::simd {

inline namespace ARGAND_TIER {

#define ARGAND_CX    \
  template <class T> \
  ARGAND_FN
template <class T, class C>
ARGAND_FN cx<T> lit(cx<T>, C c) {
  return {(T)c, 0};
}
ARGAND_CX cx<T> operator+(cx<T> x, cx<T> y) { return {x.re + y.re, x.im + y.im}; }
ARGAND_CX cx<T> operator-(cx<T> x, cx<T> y) { return {x.re - y.re, x.im - y.im}; }
ARGAND_CX cx<T> operator-(cx<T> x) { return {-x.re, -x.im}; }
ARGAND_CX cx<T> operator*(cx<T> x, cx<T> y) { return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re}; }
ARGAND_CX cx<T> operator*(cx<T> x, T y) { return {x.re * y, x.im * y}; }
ARGAND_CX cx<T> operator*(T x, cx<T> y) { return {x * y.re, x * y.im}; }
ARGAND_CX cx<T> operator+(cx<T> x, T y) { return {x.re + y, x.im}; }
ARGAND_CX cx<T> operator+(T x, cx<T> y) { return {x + y.re, y.im}; }
ARGAND_CX cx<T> operator-(cx<T> x, T y) { return {x.re - y, x.im}; }
ARGAND_CX cx<T> operator-(T x, cx<T> y) { return {x - y.re, -y.im}; }
ARGAND_CX cx<T> operator/(cx<T> x, T y) { return {x.re / y, x.im / y}; }
ARGAND_CX cx<T> operator/(cx<T> x, cx<T> y) {  // R. Smith, CACM 5 (1962): scaled by the larger part of the divisor
  const T re = y.re < 0 ? -y.re : y.re, im = y.im < 0 ? -y.im : y.im;
  if (re >= im) {
    if (re == 0 && im == 0) return {x.re / abs(re), x.im / abs(re)};  // re may be -0
    const T r = y.im / y.re, d = 1 / (y.re + y.im * r);
    return {(x.re + x.im * r) * d, (x.im - x.re * r) * d};
  }
  const T r = y.re / y.im, d = 1 / (y.re * r + y.im);
  return {(x.re * r + x.im) * d, (x.im * r - x.re) * d};
}
ARGAND_CX cx<T> operator/(T x, cx<T> y) { return cx<T>{x, 0} / y; }
ARGAND_CX bool operator==(cx<T> x, cx<T> y) { return x.re == y.re && x.im == y.im; }
ARGAND_CX bool operator!=(cx<T> x, cx<T> y) { return !(x == y); }
ARGAND_CX cx<T> where(bool m, cx<T> a, cx<T> b) { return m ? a : b; }

ARGAND_CX T real(cx<T> x) { return x.re; }
ARGAND_CX T imag(cx<T> x) { return x.im; }
ARGAND_CX cx<T> conj(cx<T> x) { return {x.re, -x.im}; }
ARGAND_CX cx<T> neg(cx<T> x) { return -x; }
ARGAND_CX T abs(cx<T> x) { return hypot(x.re, x.im); }
ARGAND_CX T angle(cx<T> x) { return atan2(x.im, x.re); }
ARGAND_CX cx<T> sign(cx<T> x) {  // sgn: x / |x|
  const T r = abs(x);
  return r == 0 ? cx<T>{0, 0} : cx<T>{x.re / r, x.im / r};
}
ARGAND_CX bool isnan(cx<T> x) { return x.re != x.re || x.im != x.im; }
ARGAND_CX bool isinf(cx<T> x) { return isinf(x.re) || isinf(x.im); }
ARGAND_CX bool isfinite(cx<T> x) { return isfinite(x.re) && isfinite(x.im); }
ARGAND_CX cx<T> complex(T re, T im) { return {re, im}; }
ARGAND_CX cx<T> polar(T r, T angle) { return {r * cos(angle), r * sin(angle)}; }

ARGAND_CX cx<T> reciprocal(cx<T> x) { return cx<T>{1, 0} / x; }
ARGAND_CX cx<T> exp(cx<T> x) {
  const T r = exp(x.re);
  if (x.im == 0) return {r, x.im};
  if (isinf(x.re) && !isfinite(x.im)) return {r, x.re < 0 ? copysign((T)0, x.im) : x.im - x.im};
  return polar(r, x.im);
}
ARGAND_CX cx<T> exp2(cx<T> x) { return exp(x * (T)0.69314718055994530942); }
ARGAND_CX cx<T> expm1(cx<T> x) {
  const T s = sin(x.im / 2), e = expm1(x.re);
  return {e * cos(x.im) - 2 * s * s, exp(x.re) * sin(x.im)};  // e + 1 is inexact far below 0
}
// log |x|, where |x| itself overflows too.
ARGAND_CX T log_abs(cx<T> x) {
  const T r = abs(x);
  return isinf(r) ? log(abs(x * (T)0.5)) + (T)0.69314718055994530942 : log(r);
}
ARGAND_CX cx<T> log(cx<T> x) { return {log_abs(x), angle(x)}; }
ARGAND_CX cx<T> log2(cx<T> x) { return log(x) * (T)1.44269504088896340736; }
ARGAND_CX cx<T> log10(cx<T> x) { return log(x) * (T)0.43429448190325182765; }
ARGAND_CX cx<T> log1p(cx<T> x) {
  const T angle = atan2(x.im, 1 + x.re);
  if (abs(x) < (T)0.5) return {log1p(x.re * (2 + x.re) + x.im * x.im) / 2, angle};
  return {log_abs(cx<T>{1 + x.re, x.im}), angle};
}
ARGAND_CX cx<T> sqrt(cx<T> x) {  // the root with a positive real part; parts are added, never subtracted
  if (x.re == 0 && x.im == 0) return {0, x.im};
  if (isinf(x.im)) return {abs(x.im), x.im};
  constexpr T kFar = sizeof(T) == 4 ? 1e38 : 7e307;  // from here on the sum overflows
  const T scale = abs(x.re) > kFar || abs(x.im) > kFar ? (T)0.25 : (T)1, back = scale < 1 ? (T)2 : (T)1;
  x = x * scale;
  const T r = sqrt((abs(x.re) + abs(x)) / 2);
  const T other = abs(x.im) / (2 * r) * back;
  return x.re >= 0 ? cx<T>{r * back, copysign(other, x.im)} : cx<T>{other, copysign(r * back, x.im)};
}
ARGAND_CX cx<T> rsqrt(cx<T> x) { return reciprocal(sqrt(x)); }
ARGAND_CX cx<T> pow(cx<T> x, cx<T> y) {
  if (y.im == 0) {
    if (y.re == 0) return {1, 0};
    if (y.re == 1) return x;
    if (y.re == 2) return x * x;
    if (y.re == 3) return x * x * x;
    if (y.re == (T)0.5) return sqrt(x);
    if (y.re == (T)-0.5) return rsqrt(x);
    if (y.re == -1) return reciprocal(x);
    if (y.re == -2) return reciprocal(x * x);
  }
  if (x.re == 1 && x.im == 0) return {1, 0};
  if (x.re == 0 && x.im == 0) {
    const T nan = __builtin_nan(""), inf = __builtin_inf();
    if (y.re > 0) return {0, 0};
    if (y.re < 0) return {inf, nan};
    return y.re == 0 && y.im == 0 ? cx<T>{1, 0} : cx<T>{nan, nan};
  }
  return exp(y * log(x));
}
// A part of sinh or cosh: as in C99, annex G, zeros stay zeros beside infinities and NaN.
ARGAND_CX T turned(T size, T trig) {
  if (trig == 0 && !isfinite(size)) return size < 0 ? -trig : trig;
  return size == 0 && trig != trig ? size : size * trig;
}
ARGAND_CX cx<T> sinh(cx<T> x) {
  if (isinf(x.re) && !isfinite(x.im)) return {abs(x.re), x.im - x.im};
  return {turned(sinh(x.re), cos(x.im)), turned(cosh(x.re), sin(x.im))};
}
ARGAND_CX cx<T> cosh(cx<T> x) {
  if (isinf(x.re) && !isfinite(x.im)) return {abs(x.re), x.im - x.im};
  return {turned(cosh(x.re), cos(x.im)), turned(sinh(x.re), sin(x.im))};
}
ARGAND_CX cx<T> tanh(cx<T> x) {
  if (abs(x.re) > 20) {
    const T one = copysign((T)1, x.re);
    if (isfinite(x.im)) return {one, 4 * sin(x.im) * cos(x.im) * exp(-2 * abs(x.re))};
    return isinf(x.re) ? cx<T>{one, copysign((T)0, x.im)} : cx<T>{x.im - x.im, x.im - x.im};
  }
  const T t = tan(x.im), s = sinh(x.re), c = cosh(x.re), b = 1 + t * t, d = 1 + b * s * s;
  return {x.re == 0 ? x.re : b * c * s / d, x.im == 0 ? x.im : t / d};
}
ARGAND_CX cx<T> times_i(cx<T> x) { return {-x.im, x.re}; }
ARGAND_CX cx<T> over_i(cx<T> x) { return {x.im, -x.re}; }
ARGAND_CX cx<T> sin(cx<T> x) { return over_i(sinh(times_i(x))); }
ARGAND_CX cx<T> cos(cx<T> x) { return cosh(times_i(x)); }
ARGAND_CX cx<T> tan(cx<T> x) { return over_i(tanh(times_i(x))); }
// Inverse functions by W. Kahan, "Branch cuts for complex elementary functions" (1987), far out by the logarithm of 2 |x|; of infinite numbers, and
// of NaN beside 0, as in C99, annex G.
ARGAND_CX T asinh_real(T x) { return asinh(x); }
ARGAND_CX bool is_far(cx<T> x) {  // 1 is lost beside x^2
  constexpr T kFar = sizeof(T) == 4 ? 1e9 : 1e18;
  return abs(x.re) > kFar || abs(x.im) > kFar;
}
ARGAND_CX T log_twice(cx<T> x) { return log_abs(x) + (T)0.69314718055994530942; }
ARGAND_CX cx<T> asinh(cx<T> x) {
  if (is_far(x)) return {copysign(log_twice(x), x.re), atan2(x.im, abs(x.re))};
  if (x.im == 0 && x.re != x.re) return x;
  const cx<T> a = sqrt(cx<T>{1 + x.im, -x.re}), b = sqrt(cx<T>{1 - x.im, x.re});
  return {asinh_real(a.re * b.im - a.im * b.re), atan2(x.im, a.re * b.re - a.im * b.im)};
}
ARGAND_CX cx<T> acosh(cx<T> x) {
  if (is_far(x)) return {log_twice(x), atan2(x.im, x.re)};
  if (x.re == 0 && x.im != x.im) return {x.im, (T)1.57079632679489661923};
  const cx<T> a = sqrt(cx<T>{x.re - 1, x.im}), b = sqrt(cx<T>{x.re + 1, x.im});
  return {asinh_real(a.re * b.re + a.im * b.im), 2 * atan2(a.im, b.re)};
}
ARGAND_CX cx<T> acos(cx<T> x) {
  if (is_far(x)) return {atan2(abs(x.im), x.re), -copysign(log_twice(x), x.im)};
  if (x.re == 0 && x.im != x.im) return {(T)1.57079632679489661923, x.im};
  const cx<T> a = sqrt(cx<T>{1 - x.re, -x.im}), b = sqrt(cx<T>{1 + x.re, x.im});
  return {2 * atan2(a.re, b.re), asinh_real(b.re * a.im - b.im * a.re)};
}
ARGAND_CX cx<T> asin(cx<T> x) { return over_i(asinh(times_i(x))); }
ARGAND_CX cx<T> atanh(cx<T> x) {
  constexpr T kNear = sizeof(T) == 4 ? 1e-30 : 1e-290;  // below, squares have lost digits
  if (x.re == 0) return {x.re, atan(x.im)};
  if (is_far(x)) {  // all but 1 / x is lost
    const T h = hypot(x.re, x.im), quarter = copysign((T)1.57079632679489661923, x.im);
    return {isinf(x) ? copysign((T)0, x.re) : x.re / h / h, x.im == x.im ? quarter : x.im};
  }
  // of the real part's size, since 1 + 4 x / d loses digits near -1
  const T a = x.re < 0 ? -x.re : x.re, d = (1 - a) * (1 - a) + x.im * x.im;
  const T re = d < kNear ? (log(2 * sqrt(a)) - log(hypot(1 - a, x.im))) / 2 : log1p(4 * a / d) / 4;
  return {x.re < 0 ? -re : re, atan2(2 * x.im, (1 - x.re) * (1 + x.re) - x.im * x.im) / 2};
}
ARGAND_CX cx<T> atan(cx<T> x) { return over_i(atanh(times_i(x))); }
ARGAND_CX cx<T> sigmoid(cx<T> x) {  // of the smaller exponential, which does not overflow
  const bool negative = x.re < 0;
  const cx<T> e = exp(negative ? x : -x);
  return (negative ? e : cx<T>{1, 0}) / (e + (T)1);
}
#undef ARGAND_CX

// cast<cx<float>>(x) of real and complex values.
template <class C, class T>
ARGAND_FN C cast(cx<T> x) {
  using R = typename C::real_type;
  return {(R)x.re, (R)x.im};
}

}  // namespace ARGAND_TIER
}  // namespace argand::simd
