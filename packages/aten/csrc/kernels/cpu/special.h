/* Special functions, most of them one lane at a time in double precision: plain C, no system headers. Included by math.h.
 *
 * Sources are given with each function; DLMF is the NIST Digital Library of Mathematical Functions, A&S Abramowitz and Stegun. Series run until
 * a term no longer counts, so that a result depends on its arguments alone.
 */
#ifndef ARGAND_KERNELS_CPU_SPECIAL_H_
#define ARGAND_KERNELS_CPU_SPECIAL_H_

#ifdef __cplusplus
extern "C" {
double lgamma_r(double, int*) noexcept;
}
#else
double lgamma_r(double, int*);
#endif

#define ARGAND_SCALAR static __attribute__((unused, noinline)) double
#define ARGAND_EPS 1.1102230246251565e-16
#define ARGAND_PI 3.14159265358979323846
#define ARGAND_EULER 0.57721566490153286061
#define ARGAND_LN2 0.69314718055994530942
#define ARGAND_NAN __builtin_nan("")
#define ARGAND_INF __builtin_inf()

ARGAND_SCALAR argand_lgamma_one(double x) {
  int sign;
  return lgamma_r(x, &sign);
}

/* Reflection, recurrence to x >= 8, then the asymptotic series (A&S 6.3.5, 6.3.7, 6.3.18). */
ARGAND_SCALAR argand_digamma_one(double x) {
  if (x == 0) return -__builtin_copysign(ARGAND_INF, x);
  double r = 0;
  if (x < 0) {
    if (x == __builtin_trunc(x)) return ARGAND_NAN;
    r = -ARGAND_PI / __builtin_tan(ARGAND_PI * (x - __builtin_rint(x)));
    x = 1 - x;
  }
  for (; x < 8; x += 1) r -= 1 / x;
  if (x == ARGAND_INF) return x;
  const double u = 1 / (x * x);
  const double series = u * (1.0 / 12 - u * (1.0 / 120 - u * (1.0 / 252 - u * (1.0 / 240 - u * (1.0 / 132 - u * (691.0 / 32760 - u / 12))))));
  return r + __builtin_log(x) - 0.5 / x - series;
}

/* The Hurwitz zeta function for s > 1, q > 0: ten terms and Euler-Maclaurin's remainder (DLMF 2.10.1). */
ARGAND_SCALAR argand_zeta_positive(double s, double q) {
  /* Bernoulli numbers B(2j) over (2j)! */
  static const double b[] = {1.0 / 12,
                             -1.0 / 720,
                             1.0 / 30240,
                             -1.0 / 1209600,
                             1.0 / 47900160,
                             -691.0 / 1307674368000,
                             1.0 / 74724249600,
                             -3617.0 / 10670622842880000,
                             43867.0 / 5109094217170944000,
                             -174611.0 / 802857662698291200000.0};
  double sum = 0;
  for (int k = 0; k < 10; k++, q += 1) {
    const double term = __builtin_pow(q, -s);
    sum += term;
    if (term < ARGAND_EPS * sum) return sum;
  }
  const double last = __builtin_pow(q, -s);
  sum += last * (q / (s - 1) + 0.5);
  double factor = s / q * last;
  for (int j = 0; j < 10; j++) {
    const double term = b[j] * factor;
    sum += term;
    if (__builtin_fabs(term) < ARGAND_EPS * sum) break;
    factor *= (s + 2 * j + 1) * (s + 2 * j + 2) / (q * q);
  }
  return sum;
}
/* Below 0 the terms (q + k)^-s of negative bases are those of two functions of positive arguments, s being whole. */
ARGAND_SCALAR argand_zeta_one(double s, double q) {
  if (s == 1) return ARGAND_INF;
  if (!(s > 1) || q != q) return ARGAND_NAN;
  if (q > 0) return q == ARGAND_INF ? 0 : argand_zeta_positive(s, q);
  if (q == __builtin_floor(q)) return ARGAND_INF;
  if (s != __builtin_floor(s)) return ARGAND_NAN;
  const double steps = __builtin_ceil(-q), sign = __builtin_fmod(s, 2) == 0 ? 1 : -1;
  return argand_zeta_positive(s, q + steps) + sign * (argand_zeta_positive(s, -q - steps + 1) - argand_zeta_positive(s, 1 - q));
}
/* exp(x^2) erfc(x): the square's rounding error is put back; far out the asymptotic series (DLMF 7.12.1). */
ARGAND_SCALAR argand_erfcx_one(double x) {
  if (x < 25) {
    if (x < -27) return ARGAND_INF;
    const double square = x * x, rest = __builtin_fma(x, x, -square);
    return __builtin_exp(square) * (1 + rest) * __builtin_erfc(x);
  }
  const double u = 0.5 / (x * x);
  double sum = 1, term = 1;
  for (int k = 1; k < 20 && __builtin_fabs(term) > ARGAND_EPS; k++) {
    term *= -(2 * k - 1) * u;
    sum += term;
  }
  return 0.56418958354775628695 / x * sum;
}

/* ---- incomplete gamma functions ---- */
/* log(1 + m) - m */
ARGAND_SCALAR argand_log1p_less(double m) {
  if (__builtin_fabs(m) >= 0.3) return __builtin_log1p(m) - m;
  double power = m, sum = 0;
  for (int k = 2; k < 60 && __builtin_fabs(power) > ARGAND_EPS * ARGAND_EPS; k++) {
    power *= -m;
    sum += power / k;
  }
  return sum;
}
/* x^a exp(-x) / Gamma(a + 1); large a by Stirling's series (DLMF 5.11.3), with x = a (1 + m). */
ARGAND_SCALAR argand_gamma_density(double a, double x) {
  if (a < 10) return __builtin_exp(a * __builtin_log(x) - x - argand_lgamma_one(a + 1));
  const double u = 1 / (a * a);
  const double stirling = (1.0 / 12 - u * (1.0 / 360 - u * (1.0 / 1260 - u * (1.0 / 1680 - u * (1.0 / 1188 - u * 691.0 / 360360))))) / a;
  return __builtin_exp(a * argand_log1p_less((x - a) / a) - stirling) / __builtin_sqrt(2 * ARGAND_PI * a);
}
/* The uniform expansion (DLMF 8.12.3, 8.12.8, 8.12.9) with its first coefficient, of which the next is 1e-9 of 1 where a exceeds 1e6. */
ARGAND_SCALAR argand_gamma_uniform(double a, double x, int upper) {
  const double m = (x - a) / a, half = -argand_log1p_less(m), size = __builtin_sqrt(2 * half), eta = m < 0 ? -size : size;
  const double c = size < 0.01 ? -1.0 / 3 + eta * (1.0 / 12 - eta * 2 / 135) : 1 / m - 1 / eta;
  const double rest = __builtin_exp(-a * half) / __builtin_sqrt(2 * ARGAND_PI * a) * c;
  const double scaled = eta * __builtin_sqrt(a / 2);
  return upper ? 0.5 * __builtin_erfc(scaled) + rest : 0.5 * __builtin_erfc(-scaled) - rest;
}
/* Q of a small a, where 1 - P has no digits left (DLMF 8.4.14's series for the lower function, less its first term). */
ARGAND_SCALAR argand_gamma_upper_small(double a, double x) {
  /* zeta(k) / k, the coefficients of log Gamma(1 + a) (DLMF 5.7.3) */
  static const double c[] = {1.6449340668482264 / 2, 1.2020569031595943 / 3, 1.0823232337111382 / 4, 1.0369277551433699 / 5,
                             1.0173430619844491 / 6, 1.0083492773819228 / 7, 1.0040773561979443 / 8};
  double tail = 0, sum = 0, factor = 1;
  for (int k = 6; k >= 0; k--) tail = c[k] - a * tail;
  for (int n = 1; n < 40; n++) {
    factor *= -x / n;
    sum += factor / (a + n);
  }
  const double power = a * (__builtin_log(x) + ARGAND_EULER - a * tail); /* of x^a / Gamma(1 + a) */
  return -__builtin_expm1(power) - a * __builtin_exp(power) * sum;
}
/* The lower function P (DLMF 8.11.4) or the upper one Q = 1 - P by its continued fraction (DLMF 8.9.2, Lentz's method). */
ARGAND_SCALAR argand_gamma_ratio(double a, double x, int upper) {
  if (!(a >= 0 && x >= 0)) return ARGAND_NAN;
  if (a == 0) return x > 0 ? !upper : ARGAND_NAN;
  if (x == 0) return upper;
  if (a == ARGAND_INF) return x == ARGAND_INF ? ARGAND_NAN : upper;
  if (x == ARGAND_INF) return !upper;
  if (a > 1e6) return argand_gamma_uniform(a, x, upper);
  if (upper && a < 0.01 && x <= 1) return argand_gamma_upper_small(a, x);
  const double density = argand_gamma_density(a, x);
  double found;
  int found_upper;
  if (x <= 1 || x < a) {
    double term = 1, sum = 1;
    for (double n = a + 1; term > ARGAND_EPS * sum; n += 1) {
      term *= x / n;
      sum += term;
    }
    found = density * sum;
    found_upper = 0;
  } else {
    double b = x + 1 - a, d = b == 0 ? 1e300 : 1 / b, c = 1e300, h = d;
    for (double i = 1; i < 1e5; i += 1) {
      const double an = -i * (i - a);
      b += 2;
      d = an * d + b;
      d = 1 / (d == 0 ? 1e-300 : d);
      c = b + an / c;
      c = c == 0 ? 1e-300 : c;
      h *= d * c;
      if (__builtin_fabs(d * c - 1) < 2 * ARGAND_EPS) break;
    }
    found = density * a * h;
    found_upper = 1;
  }
  return found_upper == upper ? found : 1 - found;
}
ARGAND_SCALAR argand_igamma_one(double a, double x) { return argand_gamma_ratio(a, x, 0); }
ARGAND_SCALAR argand_igammac_one(double a, double x) { return argand_gamma_ratio(a, x, 1); }

/* ---- Airy's function ---- */
/* exp(x) K(order): the trapezoidal rule on its integral (DLMF 10.32.9), which converges exponentially for a step below the peak's width. */
ARGAND_SCALAR argand_bessel_ke(double x, double order) {
  if (!(x > 0)) return x == 0 ? ARGAND_INF : ARGAND_NAN;
  if (x == ARGAND_INF) return 0;
  if (order == 1 && x < 1e-17) return 1 / x; /* DLMF 10.30.2; terms of the sum would overflow */
  const double width = 0.7 / __builtin_sqrt(x), h = width < 0.25 ? width : 0.25;
  double sum = 0.5;
  for (int k = 1; k < 4000; k++) {
    const double t = k * h, s = __builtin_sinh(t / 2), term = __builtin_exp(-2 * s * (s * x)) * __builtin_cosh(order * t);
    sum += term;
    if (term < ARGAND_EPS * sum) break;
  }
  return h * sum;
}
/* Ai: by K(1/3) (DLMF 9.6.2) for x > 1, by asymptotic series (DLMF 9.7.9) for x < -9, else by the trapezoidal rule on Airy's integral along the
 * line Im t = 1/2 (DLMF 9.5.4), where the integrand is a decaying entire function. */
ARGAND_SCALAR argand_airy_ai_one(double x) {
  if (x != x) return x;
  if (x > 1) {
    if (x > 110) return 0;
    const double z = 2.0 / 3 * x * __builtin_sqrt(x);
    return __builtin_sqrt(x / 3) / ARGAND_PI * argand_bessel_ke(z, 1.0 / 3) * __builtin_exp(-z);
  }
  if (x < -9) {
    if (x == -ARGAND_INF) return 0;
    const double z = 2.0 / 3 * -x * __builtin_sqrt(-x);
    double p = 1, q = 0, term = 1;
    for (int k = 1; k < 40; k++) {
      const double next = term * (6 * k - 5) * (6 * k - 3) * (6 * k - 1) / (216.0 * k * (2 * k - 1)) / z;
      if (!(next < term) || next < ARGAND_EPS) break;
      term = next;
      if (k % 2)
        q += k % 4 == 1 ? term : -term;
      else
        p += k % 4 == 0 ? term : -term;
    }
    const double s = __builtin_sin(z), c = __builtin_cos(z);
    return (p * (c + s) + q * (s - c)) / (__builtin_sqrt(2 * ARGAND_PI) * __builtin_sqrt(__builtin_sqrt(-x)));
  }
  const double c = 0.5, h = 0.0625; /* i ((s + ic)^3 / 3 + x (s + ic)) = c^3/3 - c s^2 - x c + i (s^3/3 - c^2 s + x s) */
  double sum = 0.5;
  for (int k = 1; k * h < 9; k++) {
    const double s = k * h;
    sum += __builtin_exp(-c * s * s) * __builtin_cos(s * (s * s / 3 - c * c + x));
  }
  return h / ARGAND_PI * __builtin_exp(c * c * c / 3 - x * c) * sum;
}

/* ---- orthogonal polynomials (DLMF 18.9.1, table 18.9.1); Chebyshev's of higher degree inside (-1, 1) by their definitions (DLMF 18.5.1 to 18.5.4)
 * ---- */
enum {
  ARGAND_CHEBYSHEV_T,
  ARGAND_CHEBYSHEV_U,
  ARGAND_CHEBYSHEV_V,
  ARGAND_CHEBYSHEV_W,
  ARGAND_HERMITE_H,
  ARGAND_HERMITE_HE,
  ARGAND_LAGUERRE,
  ARGAND_LEGENDRE
};
ARGAND_SCALAR argand_polynomial_one(double x, double degree, double kind) {
  const int which = (int)kind;
  if (!(degree >= 0 && degree < 0x1p63)) return 0; /* as degrees that are no 64-bit integers */
  const double n = __builtin_trunc(degree);
  if (which <= ARGAND_CHEBYSHEV_W && n > 6 && __builtin_fabs(x) < 1) {
    const double t = __builtin_acos(x);
    if (which == ARGAND_CHEBYSHEV_T) return __builtin_cos(n * t);
    if (which == ARGAND_CHEBYSHEV_U) return __builtin_sin((n + 1) * t) / __builtin_sin(t);
    return which == ARGAND_CHEBYSHEV_V ? __builtin_cos((n + 0.5) * t) / __builtin_cos(t / 2) : __builtin_sin((n + 0.5) * t) / __builtin_sin(t / 2);
  }
  if (n == 0) return 1;
  if (n > 0x1p24) return __builtin_nan(""); /* the recurrences below lose every digit by then */
  double before = 1, p = x;
  if (which == ARGAND_CHEBYSHEV_U || which == ARGAND_HERMITE_H) p = 2 * x;
  if (which == ARGAND_CHEBYSHEV_V) p = 2 * x - 1;
  if (which == ARGAND_CHEBYSHEV_W) p = 2 * x + 1;
  if (which == ARGAND_LAGUERRE) p = 1 - x;
  for (double k = 1; k < n && p == p; k += 1) {
    double next;
    if (which <= ARGAND_CHEBYSHEV_W)
      next = 2 * x * p - before;
    else if (which == ARGAND_HERMITE_H)
      next = 2 * (x * p - k * before);
    else if (which == ARGAND_HERMITE_HE)
      next = x * p - k * before;
    else if (which == ARGAND_LAGUERRE)
      next = ((2 * k + 1 - x) * p - k * before) / (k + 1);
    else
      next = ((2 * k + 1) * x * p - k * before) / (k + 1);
    before = p;
    p = next;
  }
  return p;
}

/* ---- on vectors ---- */
#define ARGAND_LANES(name, parameters, arguments)                                           \
  ARGAND_MATH vf32 argand_##name##_f32 parameters(vf32) {                                   \
    vf32 r;                                                                                 \
    for (int i = 0; i < ARGAND_LANES_F32; i++) r[i] = (float)argand_##name##_one arguments; \
    return r;                                                                               \
  }                                                                                         \
  ARGAND_MATH vf64 argand_##name##_f64 parameters(vf64) {                                   \
    vf64 r;                                                                                 \
    for (int i = 0; i < ARGAND_LANES_F64; i++) r[i] = argand_##name##_one arguments;        \
    return r;                                                                               \
  }
#define ARGAND_ONE(V) (V x)
#define ARGAND_TWO(V) (V x, V y)
#define ARGAND_THREE(V) (V x, V y, V z)
#define ARGAND_SPECIAL_UNARY(X) \
  X(erfcx)                      \
  X(airy_ai)
#define ARGAND_SPECIAL_BINARY(X) \
  X(zeta)                        \
  X(igamma)                      \
  X(igammac)
#define ARGAND_DEFINE(name) ARGAND_LANES(name, ARGAND_ONE, (x[i]))
ARGAND_SPECIAL_UNARY(ARGAND_DEFINE)
#undef ARGAND_DEFINE
#define ARGAND_DEFINE(name) ARGAND_LANES(name, ARGAND_TWO, (x[i], y[i]))
ARGAND_SPECIAL_BINARY(ARGAND_DEFINE)
#undef ARGAND_DEFINE
ARGAND_LANES(polynomial, ARGAND_THREE, (x[i], y[i], z[i]))
#undef ARGAND_LANES

/* frexp by the bits of a number. Numbers below `least`, the smallest normal one, are multiplied by `scale`, which is 2 to the `up`, first. */
#define ARGAND_FREXP(F, I, suffix, infinity, least, half, shift, scale, up)                                       \
  ARGAND_MATH F argand_frexp_mantissa_##suffix(F x) { /* in [0.5, 1); zeros, infinities and NaN are themselves */ \
    const I size = (I)x & (infinity | (least - 1));                                                               \
    const I bits = (I)ARGAND_SELECT(F, size < least, x * scale, x);                                               \
    return ARGAND_SELECT(F, (size == 0) | (size >= infinity), x, (F)((bits & ~infinity) | half));                 \
  }                                                                                                               \
  ARGAND_MATH F argand_frexp_exponent_##suffix(F x) {                                                             \
    const I size = (I)x & (infinity | (least - 1));                                                               \
    const I bits = (I)ARGAND_SELECT(F, size < least, x * scale, x) & infinity;                                    \
    const I exponent = ((bits - half) >> shift) - ((size < least) & up);                                          \
    return __builtin_convertvector(exponent & (size != 0) & (size < infinity), F);                                \
  }
ARGAND_FREXP(vf32, vi32, f32, 0x7f800000, 0x00800000, 0x3f000000, 23, 0x1p24f, 24)
ARGAND_FREXP(vf64, vi64, f64, 0x7ff0000000000000L, 0x0010000000000000L, 0x3fe0000000000000L, 52, 0x1p54, 54)
#undef ARGAND_FREXP

/* ---- float32 in vectors of float64: what is lost near the roots does not show in a float32 ---- */
/* Stirling's series (A&S 6.1.41) from 8 on, to which the recurrence leads, and reflection (A&S 6.1.17). */
ARGAND_MATH vf64 argand_lgamma_wide(vf64 x) {
  const vi64 below = x < 0;
  const vf64 y = ARGAND_SELECT(vf64, below, 1 - x, x), inf = argand_splat_f64(ARGAND_INF);
  vf64 product = y;
  for (int k = 1; k < 8; k++) product *= y + k;
  const vf64 z = ARGAND_SELECT(vf64, y < 8, y + 8, y), w = 1 / z, u = w * w;
  const vf64 series =
      w * (1.0 / 12 - u * (1.0 / 360 - u * (1.0 / 1260 - u * (1.0 / 1680 - u * (1.0 / 1188 - u * (691.0 / 360360 - u * (1.0 / 156)))))));
  vf64 r = (z - 0.5) * argand_log_f64(z) - z + 0.91893853320467274178 + series;
  r -= argand_log_f64(ARGAND_SELECT(vf64, y < 8, product, argand_splat_f64(1)));
  if (!argand_all_i64(~below)) {
    const vf64 sine = argand_abs_f64(argand_sin_f64(ARGAND_PI * (x - argand_round_f64(x))));
    r = ARGAND_SELECT(vf64, below, argand_log_f64(ARGAND_PI / sine) - r, r);
  }
  return ARGAND_SELECT(vf64, z == inf, inf, ARGAND_SELECT(vf64, (x == 1) | (x == 2), (vf64){}, r)); /* the exact zeros */
}
/* As argand_digamma_one; the recurrence's terms are added as one fraction. */
ARGAND_MATH vf64 argand_digamma_wide(vf64 x) {
  const vi64 below = x < 0;
  const vf64 y = ARGAND_SELECT(vf64, below, 1 - x, x);
  vf64 numerator = argand_splat_f64(1), denominator = y;
  for (int k = 1; k < 8; k++) numerator = numerator * (y + k) + denominator, denominator *= y + k;
  const vf64 z = ARGAND_SELECT(vf64, y < 8, y + 8, y), w = 1 / z, u = w * w;
  const vf64 series =
      u *
      (1.0 / 12 - u * (1.0 / 120 - u * (1.0 / 252 - u * (1.0 / 240 - u * (1.0 / 132 - u * (691.0 / 32760 - u * (1.0 / 12 - u * (3617.0 / 8160))))))));
  vf64 r = argand_log_f64(z) - 0.5 * w - series;
  r = ARGAND_SELECT(vf64, y < 8, r - numerator / denominator, r);
  if (argand_all_i64(~below)) return r;
  const vf64 whole = argand_round_f64(x);
  const vf64 reflected = r - ARGAND_PI / argand_tan_f64(ARGAND_PI * (x - whole));
  return ARGAND_SELECT(vf64, below, ARGAND_SELECT(vf64, x == whole, argand_splat_f64(ARGAND_NAN), reflected), r);
}
ARGAND_MATH vf64 argand_polynomial_ratio(vf64 r, const double* p, const double* q) { /* both of degree 7 */
  vf64 a = argand_splat_f64(p[7]), b = argand_splat_f64(q[7]);
  for (int i = 6; i >= 0; i--) a = a * r + p[i], b = b * r + q[i];
  return a / b;
}
/* The quantile of the normal distribution at 0.5 + q; `tail` is the smaller of that and its complement. M. Wichura, algorithm AS 241 (PPND16),
 * Applied Statistics 37 (1988). */
ARGAND_MATH vf64 argand_normal_quantile(vf64 q, vf64 tail) {
  static const double a[] = {3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
                             4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3};
  static const double b[] = {1.0,
                             4.2313330701600911252e1,
                             6.8718700749205790830e2,
                             5.3941960214247511077e3,
                             2.1213794301586595867e4,
                             3.9307895800092710610e4,
                             2.8729085735721942674e4,
                             5.2264952788528545610e3};
  static const double c[] = {1.42343711074968357734e0, 4.63033784615654529590e0,  5.76949722146069140550e0,  3.64784832476320460504e0,
                             1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4};
  static const double d[] = {1.0,
                             2.05319162663775882187e0,
                             1.67638483018380384940e0,
                             6.89767334985100004550e-1,
                             1.48103976427480074590e-1,
                             1.51986665636164571966e-2,
                             5.47593808499534494600e-4,
                             1.05075007164441684324e-9};
  static const double e[] = {6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,  2.96560571828504891230e-1,
                             2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7};
  static const double f[] = {1.0,
                             5.99832206555887937690e-1,
                             1.36929880922735805310e-1,
                             1.48753612908506148525e-2,
                             7.86869131145613259100e-4,
                             1.84631831751005468180e-5,
                             1.42151175831644588870e-7,
                             2.04426310338993978564e-15};
  const vi64 central = argand_abs_f64(q) <= 0.425;
  vf64 x = {};
  if (!argand_all_i64(~central)) x = q * argand_polynomial_ratio(0.180625 - q * q, a, b);
  if (!argand_all_i64(central)) {
    const vf64 r = argand_sqrt_f64(-argand_log_f64(tail));
    const vi64 near = r <= 5;
    vf64 y = argand_polynomial_ratio(r - 1.6, c, d);
    if (!argand_all_i64(near)) y = ARGAND_SELECT(vf64, near, y, argand_polynomial_ratio(r - 5, e, f));
    y = ARGAND_SELECT(vf64, tail == 0, argand_splat_f64(ARGAND_INF), y);
    x = ARGAND_SELECT(vf64, central, x, argand_copysign_f64(y, q));
  }
  return x;
}
ARGAND_MATH vf64 argand_ndtri_wide(vf64 p) { return argand_normal_quantile(p - 0.5, ARGAND_SELECT(vf64, p < 0.5, p, 1 - p)); }
ARGAND_MATH vf64 argand_erfinv_f64(vf64 x) { return argand_normal_quantile(x * 0.5, (1 - argand_abs_f64(x)) * 0.5) * 0.70710678118654752440; }

/* ---- Bessel functions: in vectors, by Chebyshev series of our own, which leave out what is below 2^-57 of their largest coefficient ---- */
/* J0, J1 / x, and Y0, Y1 / x less their logarithms (DLMF 10.8.1), by x^2 / 32 - 1 up to 8. */
static const double argand_bessel_near[4][17] = {
    {0.15772797147489012, -0.008723442352852221, 0.2651786132033368, -0.37009499387264977, 0.15806710233209725, -0.034893769411408884,
     0.004819180069467605, -0.00046062616620627504, 3.246032882100508e-05, -1.7619469077621507e-06, 7.608163592418782e-08, -2.679253530557673e-09,
     7.848696314479465e-11, -1.9438346867370164e-12, 4.125320595634374e-14, -7.588508125447546e-16, 1.2218515873961411e-17},
    {0.08104484632565812, -0.1489751450676521, 0.1609992623572097, -0.08268049176681791, 0.022213639654966037, -0.003646940600769276,
     0.0004050337728354822, -3.255554866857259e-05, 1.9858774049915165e-06, -9.521984756750436e-08, 3.687133759097148e-09, -1.178026622695885e-10,
     3.160154580348003e-12, -7.221755239651773e-14, 1.4232144003513942e-15, -2.4441972916190464e-17, 3.6912682997929334e-19},
    {-0.03314611320328494, -0.2744743055297453, 0.17903431407718265, 0.26156734625504663, -0.17730201278114358, 0.04719668959576339,
     -0.007287962479552079, 0.0007531135932577742, -5.632079141056987e-05, 3.206532537654801e-06, -1.44072332740187e-07, 5.248794787330516e-09,
     -1.5837552541812015e-10, 4.02633081830612e-12, -8.747341203310769e-14, 1.6434898714919468e-15, -2.6977881152566837e-17},
    {0.0025380132357417816, -0.01608717304766875, -0.09591204536083074, 0.08445197259652346, -0.028328123944594365, 0.005289897544167113,
     -0.0006414551451326356, 5.505982873338744e-05, -3.53808001868935e-06, 1.7707804556154404e-07, -7.11055004989928e-09, 2.344337905911516e-10,
     -6.4651518414115946e-12, 1.51429151205002e-13, -3.0511859694473254e-15, 5.34668038572867e-17, -8.224911372021585e-19}};
/* P and x Q of Hankel's expansion (DLMF 10.18.4) of orders 0 and 1, by 128 / x^2 - 1 from 8 on. */
static const double argand_bessel_p[2][14] = {
    {0.9994603493475187, -0.0005365220468132117, 3.0751847875194745e-06, -5.1705945376060975e-08, 1.6306464635151382e-09, -7.86409137723707e-11,
     5.168262387349193e-12, -4.3045788699253914e-13, 4.3265957431549404e-14, -5.069034095935236e-15, 6.748072215733873e-16, -1.0011513723467786e-16,
     1.6305919233744186e-17, -2.880866169482871e-18},
    {1.0009030408600137, 0.0008989898330859408, -3.987284300488908e-06, 6.177633960644299e-08, -1.8718907491063067e-09, 8.816898659582339e-11,
     -5.704863640395645e-12, 4.699195515230542e-13, -4.6842237839904895e-14, 5.452674896044717e-15, -7.221180842274018e-16, 1.0667689114335412e-16,
     -1.7312313216116335e-17, 3.0492991197665872e-18}};
static const double argand_bessel_q[2][16] = {
    {-0.12444683684269607, 0.0005470815954089319, -5.9315987288485175e-06, 1.4377965798375193e-07, -5.817532749493056e-09, 3.376097523734991e-10,
     -2.565397936797308e-11, 2.404916100281365e-12, -2.6690625482579414e-13, 3.4041800321963686e-14, -4.87994410531204e-15, 7.729703176242605e-16,
     -1.3348852171502517e-16, 2.4865952389390515e-17, -4.952892629886516e-18, 1.0473158973776097e-18},
    {0.3742222965562826, -0.0007702178839325664, 7.3108922063643636e-06, -1.676782510726674e-07, 6.583354662120443e-09, -3.749090950541556e-10,
     2.8121750359748866e-11, -2.61145253946232e-12, 2.8774212663332235e-13, -3.649001916061838e-14, 5.206626366226707e-15, -8.215318025458595e-16,
     1.4141084390211833e-16, -2.626761589838529e-17, 5.2192649196714085e-18, -1.101261718787959e-18}};
/* sqrt(x) exp(-x) I of orders 0 and 1 by 16 / x - 1 from 8 on; sqrt(x) exp(x) K by 2 / x - 1 from 1 on. */
static const double argand_bessel_i[2][27] = {
    {0.4022452055070544,      0.0033691164782556943,   6.889758346916825e-05,  2.8913705208347567e-06, 2.0489185894690638e-07,
     2.266668990498178e-08,   3.3962320257083865e-09,  4.94060238822497e-10,   1.1889147107846439e-11, -3.1499165279632416e-11,
     -1.3215811840447713e-11, -1.7941785315068062e-12, 7.180124451383666e-13,  3.8527783827421426e-13, 1.54008621752141e-14,
     -4.150569347287222e-14,  -9.554846698828307e-15,  3.8116806693526224e-15, 1.7725601330565263e-15, -3.425485619677219e-16,
     -2.8276239805165836e-16, 3.461222867697461e-17,   4.46562142029676e-17,   -4.830504485944182e-18, -7.233180487874754e-18,
     9.921475412173699e-19,   1.193650890845982e-18},
    {0.38928811750914005,     -0.009761097491361469,  -0.00011058893876262371, -3.882564808877691e-06,  -2.512236237870209e-07,
     -2.6314688468895196e-08, -3.835380385964237e-09, -5.589743462196584e-10,  -1.8974958123505413e-11, 3.2526035830154884e-11,
     1.4125807436613782e-11,  2.0356285441470896e-12, -7.198551776245908e-13,  -4.0835511110921974e-13, -2.1015418427726643e-14,
     4.272440016711951e-14,   1.0420276984128802e-14, -3.8144030724370075e-15, -1.8803547755107825e-15, 3.3082023109209285e-16,
     2.96262899764595e-16,    -3.209525921993424e-17, -4.6503053684893586e-17, 4.414348323071708e-18,   7.517296310842105e-18,
     -9.314178867326884e-19,  -1.242193275194891e-18}};
static const double argand_bessel_k[2][34] = {
    {1.1944330762167386,     -0.053855323307629495,  0.004362000068251702,   -0.0005521270349863234,  8.959565555755952e-05,  -1.7138726856421186e-05,
     3.695146089045472e-06,  -8.737284518980525e-07, 2.225046272255236e-07,  -6.025216756376064e-08,  1.7186668629418083e-08, -5.1272057810909205e-09,
     1.5907351467912106e-09, -5.10958325791419e-10,  1.6929517419961088e-10, -5.7683063818637606e-11, 2.0159542597761383e-11, -7.210940065346495e-12,
     2.6349075982806445e-12, -9.819576891759296e-13, 3.72695818784577e-13,   -1.4388149744180521e-13, 5.6436532735816866e-14, -2.2469288334596896e-14,
     9.072046991627365e-15,  -3.711589997838162e-15, 1.537582290719742e-15,  -6.445464362724762e-16,  2.7324144482527955e-16, -1.1707837700385628e-16,
     5.067869397943657e-17,  -2.215087912714289e-17, 9.77208135793031e-18,   -4.349519763540327e-18},
    {1.4532756675938414,      0.19051350202061165,     -0.008406706460495654,   0.0008815363164514389,   -0.000129995769583983,
     2.3441638979785087e-05,  -4.853489413610226e-06,  1.1139969511197356e-06,  -2.772707643805077e-07,  7.37247184977708e-08,
     -2.0717892129028323e-08, 6.103966549420336e-09,   -1.873778917957349e-09,  5.963886884453419e-10,   -1.96028004074301e-10,
     6.632273899864202e-11,   -2.3034250700407756e-11, 8.193082518369976e-12,   -2.9786645069974164e-12, 1.1049772078983365e-12,
     -4.1763277431648047e-13, 1.6061141914625803e-13,  -6.277632672531289e-14,  2.4911830875182032e-14,  -1.002779686252293e-14,
     4.091059996919741e-15,   -1.690331071434488e-15,  7.068360792264328e-16,   -2.9895680121763374e-16, 1.2781913900252084e-16,
     -5.521491188037584e-17,  2.4087033253210474e-17,  -1.0606842599776099e-17, 4.712904181351423e-18}};

ARGAND_MATH vf64 argand_chebyshev(vf64 t, const double* c, int n) { /* Clenshaw's recurrence */
  const vf64 two = t + t;
  vf64 sum = argand_splat_f64(c[n - 1]), before = {};
  for (int i = n - 2; i > 0; i--) {
    const vf64 next = two * sum + (c[i] - before);
    before = sum;
    sum = next;
  }
  return t * sum + (c[0] - before);
}
#define ARGAND_CHEBYSHEV(t, c) argand_chebyshev(t, c, sizeof(c) / sizeof((c)[0]))
/* J, or Y where `second`. Far out the phase is taken apart, so that only x itself is reduced. */
ARGAND_MATH vf64 argand_bessel_wide(vf64 x, int order, int second) {
  const vf64 z = argand_abs_f64(x), inf = argand_splat_f64(ARGAND_INF);
  const vi64 near = z <= 8;
  vf64 r = {};
  if (!argand_all_i64(near)) {
    const vf64 w = 1 / z, t = 128 * (w * w) - 1, p = ARGAND_CHEBYSHEV(t, argand_bessel_p[order]), q = w * ARGAND_CHEBYSHEV(t, argand_bessel_q[order]);
    const vf64 s = argand_sin_f64(z), c = argand_cos_f64(z);
    const vf64 cosine = order ? s - c : s + c, sine = order ? -s - c : s - c; /* of the phase, times sqrt(2) */
    r = (second ? p * sine + q * cosine : p * cosine - q * sine) / (__builtin_sqrt(ARGAND_PI) * argand_sqrt_f64(z));
    r = ARGAND_SELECT(vf64, z == inf, (vf64){}, r);
  }
  if (!argand_all_i64(~near)) {
    const vf64 t = z * z * (1.0 / 32) - 1;
    vf64 s = ARGAND_CHEBYSHEV(t, argand_bessel_near[order]);
    if (order) {
      s *= z;
    } else { /* near 0 the power series (DLMF 10.2.2), which keeps all digits */
      const vf64 q = z * z * 0.25, power = 1 - q * (1 - q * (1.0 / 4 - q * (1.0 / 36 - q * (1.0 / 576 - q * (1.0 / 14400)))));
      s = ARGAND_SELECT(vf64, z < 0.125, power, s);
    }
    if (second) {
      const vf64 rest = ARGAND_CHEBYSHEV(t, argand_bessel_near[2 + order]);
      s *= 2 / ARGAND_PI * argand_log_f64(z);
      s += order ? z * rest - 2 / ARGAND_PI / z : rest;
      s = ARGAND_SELECT(vf64, z == 0, -inf, s);
    }
    r = ARGAND_SELECT(vf64, near, s, r);
  }
  if (second) return ARGAND_SELECT(vf64, x < 0, argand_splat_f64(ARGAND_NAN), r);
  return ARGAND_SELECT(vf64, (x < 0) & -order, -r, r);
}
/* I, times exp(-|x|) where `scaled`: the power series (DLMF 10.25.2) up to 8. */
ARGAND_MATH vf64 argand_bessel_i_wide(vf64 x, int order, int scaled) {
  const vf64 z = argand_abs_f64(x), inf = argand_splat_f64(ARGAND_INF);
  const vi64 near = z <= 8;
  vf64 r = {};
  if (!argand_all_i64(near)) {
    r = ARGAND_CHEBYSHEV(16 / z - 1, argand_bessel_i[order]) / argand_sqrt_f64(z);
    if (!scaled) { /* in two halves: the exponential overflows before the product does */
      const vf64 half = argand_exp_f64(z / 2);
      r = ARGAND_SELECT(vf64, z == inf, inf, half * r * half);
    }
  }
  if (!argand_all_i64(~near)) {
    const vf64 q = z * z * 0.25;
    vf64 s = argand_splat_f64(1);
    _Pragma("GCC unroll 24") for (int k = 24; k > 0; k--) s = 1 + s * (q * (1.0 / (k * (k + order))));
    if (order) s *= z / 2;
    r = ARGAND_SELECT(vf64, near, scaled ? s * argand_exp_f64(-z) : s, r);
  }
  return ARGAND_SELECT(vf64, (x < 0) & -order, -r, r);
}
/* K, times exp(x) where `scaled`: the power series (DLMF 10.31.1, 10.31.2) up to 1. */
ARGAND_MATH vf64 argand_bessel_k_wide(vf64 x, int order, int scaled) {
  const vi64 near = x <= 1;
  vf64 r = {};
  if (!argand_all_i64(near)) {
    r = ARGAND_CHEBYSHEV(2 / x - 1, argand_bessel_k[order]) / argand_sqrt_f64(x);
    if (!scaled) r *= argand_exp_f64(-x);
  }
  if (!argand_all_i64(~near)) {
    const vf64 q = x * x * 0.25, log = argand_log_f64(x) + (ARGAND_EULER - ARGAND_LN2);
    vf64 term = argand_splat_f64(1), sum = term, rest = argand_splat_f64(order);
    double harmonic = order; /* H(k), and H(k + 1) more of order 1 */
    _Pragma("GCC unroll 10") for (int k = 1; k <= 10; k++) {
      harmonic += order ? 1.0 / k + 1.0 / (k + 1) : 1.0 / k;
      term *= q * (1.0 / (k * (k + order)));
      sum += term;
      rest += term * harmonic;
    }
    vf64 s = order ? 1 / x + x * 0.5 * (log * sum - 0.5 * rest) : rest - log * sum;
    s = ARGAND_SELECT(vf64, x > 0, s, ARGAND_SELECT(vf64, x == 0, argand_splat_f64(ARGAND_INF), argand_splat_f64(ARGAND_NAN)));
    r = ARGAND_SELECT(vf64, near, scaled ? s * argand_exp_f64(x) : s, r);
  }
  return r;
}
#define ARGAND_DEFINE(name, function, order, variant) \
  ARGAND_MATH vf64 argand_##name##_wide(vf64 x) { return argand_##function##_wide(x, order, variant); }
ARGAND_DEFINE(bessel_j0, bessel, 0, 0)
ARGAND_DEFINE(bessel_j1, bessel, 1, 0)
ARGAND_DEFINE(bessel_y0, bessel, 0, 1)
ARGAND_DEFINE(bessel_y1, bessel, 1, 1)
ARGAND_DEFINE(i0, bessel_i, 0, 0)
ARGAND_DEFINE(i0e, bessel_i, 0, 1)
ARGAND_DEFINE(i1, bessel_i, 1, 0)
ARGAND_DEFINE(i1e, bessel_i, 1, 1)
ARGAND_DEFINE(bessel_k0, bessel_k, 0, 0)
ARGAND_DEFINE(bessel_k0e, bessel_k, 0, 1)
ARGAND_DEFINE(bessel_k1, bessel_k, 1, 0)
ARGAND_DEFINE(bessel_k1e, bessel_k, 1, 1)
#undef ARGAND_DEFINE
#undef ARGAND_CHEBYSHEV

/* As argand_digamma_wide, from DLMF 5.15.9. */
ARGAND_MATH vf64 argand_trigamma_wide(vf64 x) {
  const vi64 below = x < 0;
  const vf64 y = ARGAND_SELECT(vf64, below, 1 - x, x);
  vf64 numerator = argand_splat_f64(1), denominator = y * y;
  for (int k = 1; k < 8; k++) {
    const vf64 square = (y + k) * (y + k);
    numerator = numerator * square + denominator;
    denominator *= square;
  }
  const vf64 z = ARGAND_SELECT(vf64, y < 8, y + 8, y), w = 1 / z, u = w * w;
  static const double b[] = {854513.0 / 138, -174611.0 / 330, 43867.0 / 798, -3617.0 / 510, 7.0 / 6, -691.0 / 2730,
                             5.0 / 66,       -1.0 / 30,       1.0 / 42,      -1.0 / 30,     1.0 / 6};
  vf64 series = {};
  for (int i = 0; i < 11; i++) series = series * u + b[i]; /* Bernoulli numbers */
  vf64 r = w + 0.5 * u + w * u * series;
  r = ARGAND_SELECT(vf64, y < 8, r + numerator / denominator, r);
  if (argand_all_i64(~below)) return r;
  const vf64 whole = argand_round_f64(x), s = ARGAND_PI / argand_sin_f64(ARGAND_PI * (x - whole));
  const vf64 pole = ARGAND_SELECT(vf64, x == -argand_splat_f64(ARGAND_INF), argand_splat_f64(ARGAND_NAN), argand_splat_f64(ARGAND_INF));
  return ARGAND_SELECT(vf64, below, ARGAND_SELECT(vf64, x == whole, pole, s * s - r), r);
}

#define ARGAND_WIDE(name)                                                                                                             \
  ARGAND_MATH vf32 argand_##name##_f32(vf32 x) {                                                                                      \
    vf32_half h[2];                                                                                                                   \
    __builtin_memcpy(h, &x, sizeof x);                                                                                                \
    for (int i = 0; i < 2; i++) h[i] = __builtin_convertvector(argand_##name##_wide(__builtin_convertvector(h[i], vf64)), vf32_half); \
    __builtin_memcpy(&x, h, sizeof x);                                                                                                \
    return x;                                                                                                                         \
  }
#define ARGAND_WIDE_ALONE(name) /* too coarse for float64 */                     \
  ARGAND_WIDE(name)                                                              \
  ARGAND_MATH vf64 argand_##name##_f64(vf64 x) {                                 \
    vf64 r;                                                                      \
    for (int i = 0; i < ARGAND_LANES_F64; i++) r[i] = argand_##name##_one(x[i]); \
    return r;                                                                    \
  }
ARGAND_WIDE_ALONE(lgamma)
ARGAND_WIDE_ALONE(digamma)
#undef ARGAND_WIDE_ALONE
#define ARGAND_BOTH(name) \
  ARGAND_WIDE(name)       \
  ARGAND_MATH vf64 argand_##name##_f64(vf64 x) { return argand_##name##_wide(x); }
#define ARGAND_SPECIAL_WIDE(X) \
  X(trigamma)                  \
  X(ndtri)                     \
  X(i0)                        \
  X(i0e)                       \
  X(i1)                        \
  X(i1e)                       \
  X(bessel_j0)                 \
  X(bessel_j1)                 \
  X(bessel_y0)                 \
  X(bessel_y1)                 \
  X(bessel_k0)                 \
  X(bessel_k0e)                \
  X(bessel_k1)                 \
  X(bessel_k1e)
ARGAND_SPECIAL_WIDE(ARGAND_BOTH)
#undef ARGAND_BOTH
#undef ARGAND_WIDE
#undef ARGAND_EULER
#undef ARGAND_LN2

#endif /* ARGAND_KERNELS_CPU_SPECIAL_H_ */
