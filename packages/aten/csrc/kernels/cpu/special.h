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
/* DLMF 5.15.1, reflected by 5.15.6. */
ARGAND_SCALAR argand_trigamma_one(double x) {
  if (x > 0) return argand_zeta_one(2, x);
  if (x == __builtin_floor(x)) return x == -ARGAND_INF ? ARGAND_NAN : ARGAND_INF;
  const double s = ARGAND_PI / __builtin_sin(ARGAND_PI * (x - __builtin_rint(x)));
  return s * s - argand_zeta_one(2, 1 - x);
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

ARGAND_MATH double argand_polynomial_ratio(double r, const double* p, const double* q) { /* both of degree 7 */
  double a = p[7], b = q[7];
  for (int i = 6; i >= 0; i--) a = a * r + p[i], b = b * r + q[i];
  return a / b;
}
/* M. Wichura, algorithm AS 241 (PPND16), Applied Statistics 37 (1988). */
ARGAND_SCALAR argand_ndtri_one(double p) {
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
  if (!(p >= 0 && p <= 1)) return ARGAND_NAN;
  if (p == 0 || p == 1) return p == 0 ? -ARGAND_INF : ARGAND_INF;
  const double q = p - 0.5;
  if (__builtin_fabs(q) <= 0.425) return q * argand_polynomial_ratio(0.180625 - q * q, a, b);
  const double r = __builtin_sqrt(-__builtin_log(q < 0 ? p : 1 - p));
  const double x = r <= 5 ? argand_polynomial_ratio(r - 1.6, c, d) : argand_polynomial_ratio(r - 5, e, f);
  return q < 0 ? -x : x;
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

/* ---- Bessel functions ---- */
/* exp(-|x|) I0 or I1: the power series (DLMF 10.25.2), far out the asymptotic one (DLMF 10.40.1). */
ARGAND_SCALAR argand_bessel_ie(double x, int order) {
  const double z = __builtin_fabs(x);
  double sum = 1, term = 1;
  if (z <= 30) {
    for (int k = 1; term > ARGAND_EPS * sum; k++) {
      term *= z * z / (4.0 * k * (k + order));
      sum += term;
    }
    sum *= __builtin_exp(-z) * (order ? z / 2 : 1);
  } else {
    for (int k = 1; k < 40 && __builtin_fabs(term) > ARGAND_EPS; k++) {
      term *= -(4.0 * order - (2 * k - 1) * (2 * k - 1)) / (8 * k * z);
      sum += term;
    }
    sum /= __builtin_sqrt(2 * ARGAND_PI) * __builtin_sqrt(z); /* 2 pi z may overflow */
  }
  return order && x < 0 ? -sum : sum;
}
ARGAND_SCALAR argand_i0e_one(double x) { return argand_bessel_ie(x, 0); }
ARGAND_SCALAR argand_i1e_one(double x) { return argand_bessel_ie(x, 1); }
ARGAND_SCALAR argand_i0_one(double x) { /* in two halves: the exponential overflows before the product does */
  const double half = __builtin_exp(__builtin_fabs(x) / 2);
  return half == ARGAND_INF ? half : half * argand_i0e_one(x) * half;
}
ARGAND_SCALAR argand_i1_one(double x) {
  const double half = __builtin_exp(__builtin_fabs(x) / 2);
  return half == ARGAND_INF ? __builtin_copysign(half, x) : half * argand_i1e_one(x) * half;
}

enum { ARGAND_J0, ARGAND_J1, ARGAND_Y0, ARGAND_Y1 };
/* x in (1e-8, 25]: Miller's backward recurrence (DLMF 3.6), scaled by 1 = J0 + 2 J2 + 2 J4 + ...; Y0 by Neumann's series (A&S 9.1.89), Y1 by its
 * derivative. */
ARGAND_SCALAR argand_bessel_near(double x, int which) {
  double above = 0, value = 1e-280, norm = 0, even = 0, odd = 0, first = 0;
  const int start = 2 * (int)(20 + 0.75 * x);
  for (int n = start; n > 0; n--) { /* value is J(n), above is J(n + 1), up to a factor */
    const double below = 2 * n / x * value - above;
    const int k = n / 2;
    if (n % 2 == 0) {
      norm += 2 * value;
      even += (k % 2 ? -value : value) / k;
      odd += (k % 2 ? -1.0 : 1.0) / k * (below - above);
    }
    if (n == 1) first = value;
    above = value;
    value = below;
    if (__builtin_fabs(value) > 1e200) above *= 1e-200, value *= 1e-200, norm *= 1e-200, even *= 1e-200, odd *= 1e-200;
  }
  norm += value;
  const double j0 = value / norm, j1 = first / norm, log = __builtin_log(x / 2) + ARGAND_EULER;
  if (which == ARGAND_J0) return j0;
  if (which == ARGAND_J1) return j1;
  if (which == ARGAND_Y0) return 2 / ARGAND_PI * (log * j0 - 2 * even / norm);
  return 2 / ARGAND_PI * (log * j1 - j0 / x + odd / norm);
}
/* x > 25: Hankel's expansion (DLMF 10.17.3, 10.17.4); the phase is taken apart, so that only x itself is reduced. */
ARGAND_SCALAR argand_bessel_far(double x, int which) {
  const int order = which == ARGAND_J1 || which == ARGAND_Y1;
  double p = 1, q = 0, term = 1;
  for (int k = 1; k < 40 && __builtin_fabs(term) > ARGAND_EPS; k++) {
    term *= (4.0 * order - (2 * k - 1) * (2 * k - 1)) / (8 * k * x);
    if (k % 2)
      q += k % 4 == 1 ? term : -term;
    else
      p += k % 4 == 0 ? term : -term;
  }
  const double s = __builtin_sin(x), c = __builtin_cos(x);
  const double cosine = order ? s - c : s + c, sine = order ? -s - c : s - c; /* of the phase, times sqrt(2) */
  const double value = which == ARGAND_J0 || which == ARGAND_J1 ? p * cosine - q * sine : p * sine + q * cosine;
  return value / (__builtin_sqrt(ARGAND_PI) * __builtin_sqrt(x));
}
ARGAND_SCALAR argand_bessel(double x, int which) {
  const int j = which == ARGAND_J0 || which == ARGAND_J1;
  if (x != x) return x;
  if (!j && x <= 0) return x < 0 ? ARGAND_NAN : -ARGAND_INF;
  const double z = __builtin_fabs(x);
  double r;
  if (z == ARGAND_INF)
    r = 0;
  else if (z > 25)
    r = argand_bessel_far(z, which);
  else if (z > 1e-8)
    r = argand_bessel_near(z, which);
  else if (j)
    r = which == ARGAND_J0 ? 1 : z / 2;
  else
    r = which == ARGAND_Y0 ? 2 / ARGAND_PI * (__builtin_log(z) - ARGAND_LN2 + ARGAND_EULER) : -2 / (ARGAND_PI * z);
  return which == ARGAND_J1 && x < 0 ? -r : r;
}
ARGAND_SCALAR argand_bessel_j0_one(double x) { return argand_bessel(x, ARGAND_J0); }
ARGAND_SCALAR argand_bessel_j1_one(double x) { return argand_bessel(x, ARGAND_J1); }
ARGAND_SCALAR argand_bessel_y0_one(double x) { return argand_bessel(x, ARGAND_Y0); }
ARGAND_SCALAR argand_bessel_y1_one(double x) { return argand_bessel(x, ARGAND_Y1); }

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
ARGAND_SCALAR argand_bessel_k0e_one(double x) { return argand_bessel_ke(x, 0); }
ARGAND_SCALAR argand_bessel_k1e_one(double x) { return argand_bessel_ke(x, 1); }
ARGAND_SCALAR argand_bessel_k0_one(double x) { return argand_bessel_ke(x, 0) * __builtin_exp(-x); }
ARGAND_SCALAR argand_bessel_k1_one(double x) { return argand_bessel_ke(x, 1) * __builtin_exp(-x); }

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

#undef ARGAND_EULER
#undef ARGAND_LN2

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
  X(trigamma)                   \
  X(erfcx)                      \
  X(ndtri)                      \
  X(i0)                         \
  X(i0e)                        \
  X(i1)                         \
  X(i1e)                        \
  X(bessel_j0)                  \
  X(bessel_j1)                  \
  X(bessel_y0)                  \
  X(bessel_y1)                  \
  X(bessel_k0)                  \
  X(bessel_k0e)                 \
  X(bessel_k1)                  \
  X(bessel_k1e)                 \
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
#define ARGAND_WIDE(name)                                                                                                             \
  ARGAND_MATH vf32 argand_##name##_f32(vf32 x) {                                                                                      \
    vf32_half h[2];                                                                                                                   \
    __builtin_memcpy(h, &x, sizeof x);                                                                                                \
    for (int i = 0; i < 2; i++) h[i] = __builtin_convertvector(argand_##name##_wide(__builtin_convertvector(h[i], vf64)), vf32_half); \
    __builtin_memcpy(&x, h, sizeof x);                                                                                                \
    return x;                                                                                                                         \
  }                                                                                                                                   \
  ARGAND_MATH vf64 argand_##name##_f64(vf64 x) {                                                                                      \
    vf64 r;                                                                                                                           \
    for (int i = 0; i < ARGAND_LANES_F64; i++) r[i] = argand_##name##_one(x[i]);                                                      \
    return r;                                                                                                                         \
  }
ARGAND_WIDE(lgamma)
ARGAND_WIDE(digamma)
#undef ARGAND_WIDE

#endif /* ARGAND_KERNELS_CPU_SPECIAL_H_ */
