/* Vector mathematics for CPU kernels and compiled programs: plain C on GCC vector extensions, no system headers.
 *
 * The tier (ARGAND_TIER_BASELINE, _AVX2 or _AVX512; the compile flags must allow it) sets the width of the vectors. Every
 * function is elementwise: an element's result does not depend on its lane, nor on the other lanes, so that tails which
 * go through the same function padded give the same bits. Transcendental functions are mostly libmvec's (at most 4 ulp).
 */
#ifndef ARGAND_KERNELS_CPU_MATH_H_
#define ARGAND_KERNELS_CPU_MATH_H_

#if defined(ARGAND_TIER_AVX512)
#define ARGAND_VECTOR_BYTES 64
#define ARGAND_TIER_SUFFIX(name) name##_avx512
#elif defined(ARGAND_TIER_AVX2)
#define ARGAND_VECTOR_BYTES 32
#define ARGAND_TIER_SUFFIX(name) name##_avx2
#else
#define ARGAND_VECTOR_BYTES 16
#define ARGAND_TIER_SUFFIX(name) name##_baseline
#ifndef ARGAND_TIER_BASELINE
#define ARGAND_TIER_BASELINE 1
#endif
#endif

#define ARGAND_MATH static inline __attribute__((always_inline, unused))
#define ARGAND_VECTOR __attribute__((vector_size(ARGAND_VECTOR_BYTES)))
#define ARGAND_HALF_VECTOR __attribute__((vector_size(ARGAND_VECTOR_BYTES / 2)))

typedef float vf32 ARGAND_VECTOR;
typedef double vf64 ARGAND_VECTOR;
typedef signed char vi8 ARGAND_VECTOR;
typedef short vi16 ARGAND_VECTOR;
typedef int vi32 ARGAND_VECTOR;
typedef long vi64 ARGAND_VECTOR;
typedef unsigned char vu8 ARGAND_VECTOR;
typedef unsigned short vu16 ARGAND_VECTOR;
typedef unsigned int vu32 ARGAND_VECTOR;
typedef unsigned long vu64 ARGAND_VECTOR;
typedef float vf32_half ARGAND_HALF_VECTOR; /* as many lanes as vf64 */
typedef unsigned short vu16_half ARGAND_HALF_VECTOR;
typedef short vi16_half ARGAND_HALF_VECTOR;

#define ARGAND_LANES_F32 (ARGAND_VECTOR_BYTES / 4)
#define ARGAND_LANES_F64 (ARGAND_VECTOR_BYTES / 8)

/* Masks are integer vectors of the compared width: 0 or -1 a lane. */
#ifdef __cplusplus
#define ARGAND_SELECT(type, mask, a, b) ((mask) ? (a) : (b))
#else
#define ARGAND_SELECT(type, mask, a, b) ((type)(((mask) & (__typeof__(mask))(a)) | (~(mask) & (__typeof__(mask))(b))))
#endif

ARGAND_MATH vf32 argand_splat_f32(float x) { return x - (vf32){}; }
ARGAND_MATH vf64 argand_splat_f64(double x) { return x - (vf64){}; }

typedef long long vll ARGAND_VECTOR;     /* what the processor's instructions are declared with */
ARGAND_MATH int argand_all_i64(vi64 m) { /* whether all bits are set */
  const vll ones = (vll){} - 1;
#if defined(ARGAND_TIER_AVX512)
  return (unsigned char)__builtin_ia32_cmpq512_mask((vll)m, ones, 0, -1) == 0xff;
#elif defined(ARGAND_TIER_AVX2)
  return __builtin_ia32_ptestc256((vll)m, ones);
#else
  return __builtin_ia32_ptestc128((vll)m, ones);
#endif
}

/* As many bytes as a vector of the result has lanes, widened: one instruction, which the compiler makes a dozen of. */
#if defined(ARGAND_TIER_AVX512)
#define ARGAND_WIDEN(name, V, W, x) ((V)__builtin_ia32_##name##512_mask(x, (W){}, -1))
#elif defined(ARGAND_TIER_AVX2)
#define ARGAND_WIDEN(name, V, W, x) ((V)__builtin_ia32_##name##256(x))
#else
#define ARGAND_WIDEN(name, V, W, x) ((V)__builtin_ia32_##name##128(x))
#endif
#define ARGAND_DEFINE_LOAD(function, V, W, name)                                        \
  ARGAND_MATH V function(const void* p) {                                               \
    typedef char Bytes __attribute__((vector_size(16)));                                \
    typedef unsigned long Words __attribute__((vector_size(16)));                       \
    enum { n = sizeof(V) / sizeof(((V){})[0]) };                                        \
    unsigned long low = 0; /* by a register: a vector is not read before it is whole */ \
    Bytes x;                                                                            \
    if (n == 16) {                                                                      \
      __builtin_memcpy(&x, p, 16);                                                      \
    } else {                                                                            \
      __builtin_memcpy(&low, p, n < 8 ? n : 8);                                         \
      x = (Bytes)(Words){low, 0};                                                       \
    }                                                                                   \
    return ARGAND_WIDEN(name, V, W, x);                                                 \
  }
ARGAND_DEFINE_LOAD(argand_load_i8_i32, vi32, vi32, pmovsxbd)
ARGAND_DEFINE_LOAD(argand_load_u8_i32, vi32, vi32, pmovzxbd)
ARGAND_DEFINE_LOAD(argand_load_i8_i64, vi64, vll, pmovsxbq)
ARGAND_DEFINE_LOAD(argand_load_u8_i64, vi64, vll, pmovzxbq)
#undef ARGAND_DEFINE_LOAD
#undef ARGAND_WIDEN

/* ---- libmvec and libm --------------------------------------------------------------------------------------- */
#if defined(ARGAND_TIER_AVX512)
#define ARGAND_MVEC_F32(name, args) _ZGVeN16##args##_##name##f
#define ARGAND_MVEC_F64(name, args) _ZGVeN8##args##_##name
#elif defined(ARGAND_TIER_AVX2)
#define ARGAND_MVEC_F32(name, args) _ZGVdN8##args##_##name##f
#define ARGAND_MVEC_F64(name, args) _ZGVdN4##args##_##name
#else
#define ARGAND_MVEC_F32(name, args) _ZGVbN4##args##_##name##f
#define ARGAND_MVEC_F64(name, args) _ZGVbN2##args##_##name
#endif

#ifdef __cplusplus
extern "C" {
#endif
#define ARGAND_UNARY_MVEC(X) \
  X(exp2)                    \
  X(log1p)                   \
  X(sin)                     \
  X(cos)                     \
  X(tan)                     \
  X(asin)                    \
  X(acos)                    \
  X(atan)                    \
  X(sinh)                    \
  X(cosh)                    \
  X(tanh)                    \
  X(asinh)                   \
  X(acosh)                   \
  X(atanh)                   \
  X(erfc)
#define ARGAND_DECLARE(name)           \
  vf32 ARGAND_MVEC_F32(name, v)(vf32); \
  vf64 ARGAND_MVEC_F64(name, v)(vf64);
ARGAND_UNARY_MVEC(ARGAND_DECLARE)
ARGAND_DECLARE(exp)
ARGAND_DECLARE(expm1)
ARGAND_DECLARE(log)
ARGAND_DECLARE(log2)
ARGAND_DECLARE(log10)
ARGAND_DECLARE(erf)
#undef ARGAND_DECLARE
#define ARGAND_DECLARE(name)                  \
  vf32 ARGAND_MVEC_F32(name, vv)(vf32, vf32); \
  vf64 ARGAND_MVEC_F64(name, vv)(vf64, vf64);
ARGAND_DECLARE(pow)
ARGAND_DECLARE(atan2)
ARGAND_DECLARE(hypot)
#undef ARGAND_DECLARE
#ifdef __cplusplus
}
#endif

#define ARGAND_DEFINE(name)                                                            \
  ARGAND_MATH vf32 argand_##name##_f32(vf32 x) { return ARGAND_MVEC_F32(name, v)(x); } \
  ARGAND_MATH vf64 argand_##name##_f64(vf64 x) { return ARGAND_MVEC_F64(name, v)(x); }
ARGAND_UNARY_MVEC(ARGAND_DEFINE)
#undef ARGAND_DEFINE
#define ARGAND_DEFINE(name)                                                                        \
  ARGAND_MATH vf32 argand_##name##_f32(vf32 x, vf32 y) { return ARGAND_MVEC_F32(name, vv)(x, y); } \
  ARGAND_MATH vf64 argand_##name##_f64(vf64 x, vf64 y) { return ARGAND_MVEC_F64(name, vv)(x, y); }
ARGAND_DEFINE(atan2)
ARGAND_DEFINE(hypot)
#undef ARGAND_DEFINE

ARGAND_MATH vf64 argand_exp_f64(vf64 x) { return ARGAND_MVEC_F64(exp, v)(x); }
ARGAND_MATH vf64 argand_expm1_f64(vf64 x) { return ARGAND_MVEC_F64(expm1, v)(x); }
ARGAND_MATH vf64 argand_erf_f64(vf64 x) { return ARGAND_MVEC_F64(erf, v)(x); }

/* Logarithms: libmvec takes zeros, negative numbers and infinities lane by lane in scalar code, so they are kept from it. */
#define ARGAND_DEFINE_LOG(name, V, S, MVEC)                                                        \
  ARGAND_MATH V name(V x) {                                                                        \
    const V inf = (S)__builtin_inf() - (V){}, nan = (S)__builtin_nan("") - (V){}, one = (V){} + 1; \
    const V r = MVEC(ARGAND_SELECT(V, (x > 0) & (x < inf), x, one));                               \
    const V end = ARGAND_SELECT(V, x == 0, -inf, ARGAND_SELECT(V, x == inf, inf, nan));            \
    return ARGAND_SELECT(V, (x > 0) & (x < inf), r, end);                                          \
  }
ARGAND_DEFINE_LOG(argand_log_f32, vf32, float, ARGAND_MVEC_F32(log, v))
ARGAND_DEFINE_LOG(argand_log2_f32, vf32, float, ARGAND_MVEC_F32(log2, v))
ARGAND_DEFINE_LOG(argand_log10_f32, vf32, float, ARGAND_MVEC_F32(log10, v))
ARGAND_DEFINE_LOG(argand_log_f64, vf64, double, ARGAND_MVEC_F64(log, v))
ARGAND_DEFINE_LOG(argand_log2_f64, vf64, double, ARGAND_MVEC_F64(log2, v))
ARGAND_DEFINE_LOG(argand_log10_f64, vf64, double, ARGAND_MVEC_F64(log10, v))
#undef ARGAND_DEFINE_LOG

/* ---- rounding and square roots: the processor's own instructions --------------------------------------------- */
#if defined(ARGAND_TIER_AVX512)
#define ARGAND_ROUND_F32(x, mode) ((vf32)__builtin_ia32_rndscaleps_mask(x, mode, x, -1, 4))
#define ARGAND_ROUND_F64(x, mode) ((vf64)__builtin_ia32_rndscalepd_mask(x, mode, x, -1, 4))
#define ARGAND_SQRT_F32(x) ((vf32)__builtin_ia32_sqrtps512_mask(x, x, -1, 4))
#define ARGAND_FMA_F32(x, y, z) ((vf32)__builtin_ia32_vfmaddps512_mask(x, y, z, -1, 4))
#define ARGAND_FMA_F64(x, y, z) ((vf64)__builtin_ia32_vfmaddpd512_mask(x, y, z, -1, 4))
/* y where either is NaN */
#define ARGAND_MIN_F32(x, y) ((vf32)__builtin_ia32_minps512_mask(x, y, x, -1, 4))
#define ARGAND_MAX_F32(x, y) ((vf32)__builtin_ia32_maxps512_mask(x, y, x, -1, 4))
#define ARGAND_SQRT_F64(x) ((vf64)__builtin_ia32_sqrtpd512_mask(x, x, -1, 4))
#elif defined(ARGAND_TIER_AVX2)
#define ARGAND_ROUND_F32(x, mode) ((vf32)__builtin_ia32_roundps256(x, mode))
#define ARGAND_ROUND_F64(x, mode) ((vf64)__builtin_ia32_roundpd256(x, mode))
#define ARGAND_SQRT_F32(x) ((vf32)__builtin_ia32_sqrtps256(x))
#define ARGAND_FMA_F32(x, y, z) ((vf32)__builtin_ia32_vfmaddps256(x, y, z))
#define ARGAND_FMA_F64(x, y, z) ((vf64)__builtin_ia32_vfmaddpd256(x, y, z))
#define ARGAND_MIN_F32(x, y) ((vf32)__builtin_ia32_minps256(x, y))
#define ARGAND_MAX_F32(x, y) ((vf32)__builtin_ia32_maxps256(x, y))
#define ARGAND_SQRT_F64(x) ((vf64)__builtin_ia32_sqrtpd256(x))
#else
#define ARGAND_ROUND_F32(x, mode) ((vf32)__builtin_ia32_roundps(x, mode))
#define ARGAND_ROUND_F64(x, mode) ((vf64)__builtin_ia32_roundpd(x, mode))
#define ARGAND_SQRT_F32(x) ((vf32)__builtin_ia32_sqrtps(x))
#define ARGAND_FMA_F32(x, y, z) ((x) * (y) + (z)) /* two roundings: for polynomials only */
#define ARGAND_MIN_F32(x, y) ((vf32)__builtin_ia32_minps(x, y))
#define ARGAND_MAX_F32(x, y) ((vf32)__builtin_ia32_maxps(x, y))
#define ARGAND_SQRT_F64(x) ((vf64)__builtin_ia32_sqrtpd(x))
#endif

/* ---- exp and expm1 in float32: for x = n ln 2 + r they are 2^n (p + 1) and 2^n p + (2^n - 1) with p = r + r^2 q(r), a minimax fit (2^-28) of our
 * own. exp is within 1 ulp and expm1 within 1.6, with fused operations and without. Inline, where a library's functions take twice as long. */
#define ARGAND_C(c) argand_splat_f32(c)
ARGAND_MATH vf32 argand_exp_reduced_f32(vf32 x, vf32* n) { /* p */
  *n = ARGAND_ROUND_F32(x * ARGAND_C(1.44269504f), 8);
  vf32 r = ARGAND_FMA_F32(*n, ARGAND_C(-0.693145751953125f), x); /* exact without fused operations, too */
  r = ARGAND_FMA_F32(*n, ARGAND_C(-1.42860682e-6f), r);
  vf32 q = ARGAND_FMA_F32(ARGAND_C(0.001381454058f), r, ARGAND_C(0.008368745446f));
  q = ARGAND_FMA_F32(q, r, ARGAND_C(0.041668388993f));
  q = ARGAND_FMA_F32(q, r, ARGAND_C(0.16666521132f));
  q = ARGAND_FMA_F32(q, r, ARGAND_C(0.49999994040f));
  return ARGAND_FMA_F32(q, r * r, r);
}
ARGAND_MATH vf32 argand_exp_f32(vf32 x) {
  const vf32 a = ARGAND_MAX_F32(ARGAND_C(-104.5f), ARGAND_MIN_F32(ARGAND_C(89.0f), x)); /* NaN stays NaN; the ends are 0 and infinity */
  vf32 n;
  const vf32 p = argand_exp_reduced_f32(a, &n) + 1;
#if defined(ARGAND_TIER_AVX512)
  return (vf32)__builtin_ia32_scalefps512_mask(p, n, p, -1, 4);
#else
  const vi32 whole = __builtin_convertvector(n, vi32), half = whole >> 1; /* in two steps, so that subnormal results are rounded once */
  return p * (vf32)((vu32)(half + 127) << 23) * (vf32)((vu32)(whole - half + 127) << 23);
#endif
}
ARGAND_MATH vf32 argand_expm1_f32(vf32 x) {
  const vf32 a = ARGAND_MAX_F32(ARGAND_C(-18.0f), ARGAND_MIN_F32(ARGAND_C(89.0f), x)); /* the ends are -1 and infinity */
  vf32 n;
  const vf32 p = argand_exp_reduced_f32(a, &n);
  const vf32 s = (vf32)((vu32)(__builtin_convertvector(n, vi32) + 126) << 23); /* half of 2^n, which may be infinite */
  const vf32 half = ARGAND_FMA_F32(p, s, s - 0.5f), r = ARGAND_SELECT(vf32, n == 0, p, half + half);
  return (vf32)(((vi32)r & 0x7fffffff) | ((vi32)x & (-0x7fffffff - 1))); /* -0 stays -0 */
}
#undef ARGAND_C

/* Everything that reads alike in both precisions. V: vector, M: its mask, S: scalar, s: suffix. */
#define ARGAND_DEFINE_BOTH(V, M, S, s, SIGN, ROUND, SQRT)                                                                                    \
  ARGAND_MATH V argand_abs_##s(V x) { return (V)((M)x & ~SIGN); }                                                                            \
  ARGAND_MATH V argand_neg_##s(V x) { return -x; }                                                                                           \
  ARGAND_MATH V argand_sqrt_##s(V x) { return SQRT(x); }                                                                                     \
  ARGAND_MATH V argand_rsqrt_##s(V x) { return (S)1 / SQRT(x); }                                                                             \
  ARGAND_MATH V argand_reciprocal_##s(V x) { return (S)1 / x; }                                                                              \
  ARGAND_MATH V argand_round_##s(V x) { return ROUND(x, 8); } /* half to even */                                                             \
  ARGAND_MATH V argand_floor_##s(V x) { return ROUND(x, 9); }                                                                                \
  ARGAND_MATH V argand_ceil_##s(V x) { return ROUND(x, 10); }                                                                                \
  ARGAND_MATH V argand_trunc_##s(V x) { return ROUND(x, 11); }                                                                               \
  ARGAND_MATH V argand_frac_##s(V x) { return x - ROUND(x, 11); }                                                                            \
  ARGAND_MATH M argand_signbit_##s(V x) { return (M)x < 0; }                                                                                 \
  ARGAND_MATH M argand_isnan_##s(V x) { return x != x; }                                                                                     \
  ARGAND_MATH M argand_isinf_##s(V x) { return argand_abs_##s(x) == (S)__builtin_inf(); }                                                    \
  ARGAND_MATH M argand_isfinite_##s(V x) { return argand_abs_##s(x) < (S)__builtin_inf(); }                                                  \
  ARGAND_MATH V argand_where_##s(M m, V a, V b) { return ARGAND_SELECT(V, m, a, b); }                                                        \
  ARGAND_MATH V argand_sign_##s(V x) { /* 0 for NaN */                                                                                       \
    const V one = argand_splat_##s(1);                                                                                                       \
    return (V)((M)one & (x > 0)) - (V)((M)one & (x < 0));                                                                                    \
  }                                                                                                                                          \
  ARGAND_MATH V argand_copysign_##s(V x, V y) { return (V)(((M)x & ~SIGN) | ((M)y & SIGN)); }                                                \
  ARGAND_MATH V argand_minimum_##s(V x, V y) { return ARGAND_SELECT(V, (y < x) | (y != y), y, x); }                                          \
  ARGAND_MATH V argand_maximum_##s(V x, V y) { return ARGAND_SELECT(V, (y > x) | (y != y), y, x); }                                          \
  ARGAND_MATH V argand_fmin_##s(V x, V y) { return ARGAND_SELECT(V, (y < x) | (x != x), y, x); }                                             \
  ARGAND_MATH V argand_fmax_##s(V x, V y) { return ARGAND_SELECT(V, (y > x) | (x != x), y, x); }                                             \
  ARGAND_MATH V argand_angle_##s(V x) { return ARGAND_SELECT(V, x != x, x, (V)((M)argand_splat_##s((S)3.14159265358979323846) & (x < 0))); } \
  ARGAND_MATH V argand_sigmoid_##s(V x) { return (S)1 / ((S)1 + argand_exp_##s(-x)); }
ARGAND_DEFINE_BOTH(vf32, vi32, float, f32, (-0x7fffffff - 1), ARGAND_ROUND_F32, ARGAND_SQRT_F32)
ARGAND_DEFINE_BOTH(vf64, vi64, double, f64, (-0x7fffffffffffffffL - 1), ARGAND_ROUND_F64, ARGAND_SQRT_F64)
#undef ARGAND_DEFINE_BOTH

/* ---- erf in float32: x p(x^2) / q(x^2) up to the last number before which it never exceeds 1 and where it is 1. A minimax fit (2e-8) of our own
 * whose coefficients were chosen after rounding; with the rounding of its evaluation the error is at most 2.8e-7 of the value (4.6 ulp, in [3, 3.9]).
 */
#define ARGAND_C(c) argand_splat_f32(c)
#if defined(ARGAND_TIER_AVX512) || defined(ARGAND_TIER_AVX2)
#define ARGAND_ERF_END ARGAND_C(3.66573024f)
#else
#define ARGAND_ERF_END ARGAND_C(3.63694096f) /* without fused operations it is reached earlier */
#endif
ARGAND_MATH vf32 argand_erf_f32(vf32 x) {
  const vf32 a = ARGAND_MAX_F32(-ARGAND_ERF_END, ARGAND_MIN_F32(ARGAND_ERF_END, x)), t = a * a; /* NaN stays NaN */
  vf32 p = ARGAND_FMA_F32(ARGAND_C(3.97716e-06f), t, ARGAND_C(5.526705e-04f));
  p = ARGAND_FMA_F32(p, t, ARGAND_C(0.0073052584f));
  p = ARGAND_FMA_F32(p, t, ARGAND_C(0.10233426f));
  p = ARGAND_FMA_F32(p, t, ARGAND_C(0.36939368f));
  p = ARGAND_FMA_F32(p, t, ARGAND_C(2.1891065f));
  vf32 q = ARGAND_FMA_F32(ARGAND_C(7.3897805e-05f), t, ARGAND_C(0.0022553012f));
  q = ARGAND_FMA_F32(q, t, ARGAND_C(0.029040558f));
  q = ARGAND_FMA_F32(q, t, ARGAND_C(0.22137523f));
  q = ARGAND_FMA_F32(q, t, ARGAND_C(0.9740472f));
  q = ARGAND_FMA_F32(q, t, ARGAND_C(1.9400451f));
  return a * p / q;
}
#undef ARGAND_ERF_END
#undef ARGAND_C

/* ---- pow: squares and cubes are exact products, and reciprocals quotients, wherever they occur ------------------------ */
/* Negative bases are powers of their absolute value with a sign, since libmvec takes them lane by lane in scalar code. */
#define ARGAND_DEFINE_POW(V, M, S, s, POW)                                                                          \
  ARGAND_MATH V argand_pow_##s(V x, V y) {                                                                          \
    const M two = y == 2, three = y == 3, inverse = y == -1, direct = two | three | inverse;                        \
    const V square = x * x, cube = square * x;                                                                      \
    const V simple = ARGAND_SELECT(V, inverse, (S)1 / x, ARGAND_SELECT(V, two, square, cube));                      \
    if (argand_all_i64((vi64)direct)) return simple;                                                                \
    const M negative = x < 0;                                                                                       \
    V r = POW(ARGAND_SELECT(V, negative, -x, x), y);                                                                \
    const M whole = argand_trunc_##s(y) == y, even = argand_trunc_##s(y * (S)0.5) == y * (S)0.5;                    \
    r = ARGAND_SELECT(V, negative & whole & ~even, -r, r);                                                          \
    r = ARGAND_SELECT(V, negative & ~whole & (x > -(S)__builtin_inf()), argand_splat_##s((S)__builtin_nan("")), r); \
    return ARGAND_SELECT(V, direct, simple, r);                                                                     \
  }
ARGAND_DEFINE_POW(vf32, vi32, float, f32, ARGAND_MVEC_F32(pow, vv))
ARGAND_DEFINE_POW(vf64, vi64, double, f64, ARGAND_MVEC_F64(pow, vv))
#undef ARGAND_DEFINE_POW

/* ---- fmod, remainder, floor division ---------------------------------------------------------------------------- */
/* fmod is exact, so a quotient that fits is found in double precision; other lanes take libm's. */
ARGAND_MATH vf64 argand_fmod_f64(vf64 x, vf64 y) {
  vf64 r = x;
  vi64 exact = {};
#ifdef ARGAND_FMA_F64
  const vf64 ax = argand_abs_f64(x), ay = argand_abs_f64(y), q = argand_trunc_f64(ax / ay); /* right, or one too large */
  const vf64 rest = ARGAND_FMA_F64(-q, ay, ax);
  r = argand_copysign_f64(ARGAND_SELECT(vf64, rest < 0, rest + ay, rest), x);
  exact = (q < 0x1p53) & (ay > 0) & (ay < __builtin_inf());
  if (argand_all_i64(exact)) return r;
#endif
  for (int i = 0; i < ARGAND_LANES_F64; i++)
    if (!exact[i]) r[i] = __builtin_fmod(x[i], y[i]);
  return r;
}
ARGAND_MATH vf64 argand_fmod_f32_wide(vf64 x, vf64 y, vi64* exact) { /* x, y hold float32 values */
  const vf64 ax = argand_abs_f64(x), ay = argand_abs_f64(y);
  const vf64 q = argand_trunc_f64(ax / ay);
  vf64 r = ax - q * ay; /* exact: q has at most 29 bits, ay 24 */
  r = ARGAND_SELECT(vf64, r < 0, r + ay, r);
  *exact = (q < 536870912.0) & (ay > 0) & (ay < __builtin_inf());
  return argand_copysign_f64(r, x);
}
ARGAND_MATH vf32 argand_fmod_f32(vf32 x, vf32 y) {
  vf32_half xh[2], yh[2], rh[2];
  vi64 exact[2];
  __builtin_memcpy(xh, &x, sizeof x);
  __builtin_memcpy(yh, &y, sizeof y);
  for (int i = 0; i < 2; i++)
    rh[i] = __builtin_convertvector(argand_fmod_f32_wide(__builtin_convertvector(xh[i], vf64), __builtin_convertvector(yh[i], vf64), &exact[i]),
                                    vf32_half);
  vf32 r;
  __builtin_memcpy(&r, rh, sizeof r);
  if (argand_all_i64(exact[0] & exact[1])) return r;
  for (int i = 0; i < ARGAND_LANES_F32; i++)
    if (!exact[i / ARGAND_LANES_F64][i % ARGAND_LANES_F64]) r[i] = __builtin_fmodf(x[i], y[i]);
  return r;
}
/* remainder has the divisor's sign; floor_divide is the matching quotient (Python's % and //). */
#define ARGAND_DEFINE_FLOORED(V, M, S, s)                                                 \
  ARGAND_MATH V argand_remainder_##s(V x, V y) {                                          \
    const V r = argand_fmod_##s(x, y);                                                    \
    return ARGAND_SELECT(V, (r != 0) & ((r < 0) ^ (y < 0)), r + y, r);                    \
  }                                                                                       \
  ARGAND_MATH V argand_floor_divide_##s(V x, V y) {                                       \
    const V r = argand_fmod_##s(x, y), quotient = x / y;                                  \
    V q = (x - r) / y;                                                                    \
    q = ARGAND_SELECT(V, (r != 0) & ((r < 0) ^ (y < 0)), q - (S)1, q);                    \
    const V whole = argand_floor_##s(q);                                                  \
    const V rounded = ARGAND_SELECT(V, q - whole > (S)0.5, whole + (S)1, whole);          \
    const V result = ARGAND_SELECT(V, q == 0, argand_copysign_##s(q, quotient), rounded); \
    return ARGAND_SELECT(V, y == 0, quotient, result);                                    \
  }
ARGAND_DEFINE_FLOORED(vf32, vi32, float, f32)
ARGAND_DEFINE_FLOORED(vf64, vi64, double, f64)
#undef ARGAND_DEFINE_FLOORED

/* Quotients of integers, rounded towards zero, where the divisor is not zero. In floating-point numbers of more bits than both have, a quotient that
 * is not whole stays on its side of the next whole number, further from it than it is rounded. */
#define ARGAND_DEFINE_QUOTIENT(V, s, T, Wide, LOAD)                                                                                    \
  ARGAND_MATH V argand_quotient_##s(V x, V y) {                                                                                        \
    enum { size = sizeof(Wide) / sizeof(((Wide){})[0]) * sizeof(T), parts = sizeof(V) / size };                                        \
    typedef T Part __attribute__((vector_size(size)));                                                                                 \
    Part a[parts], b[parts];                                                                                                           \
    __builtin_memcpy(a, &x, sizeof x);                                                                                                 \
    __builtin_memcpy(b, &y, sizeof y);                                                                                                 \
    _Pragma("GCC unroll 4") for (int i = 0; i < parts; i++) a[i] = __builtin_convertvector(LOAD(a[i], Wide) / LOAD(b[i], Wide), Part); \
    __builtin_memcpy(&x, a, sizeof x);                                                                                                 \
    return x;                                                                                                                          \
  }
#define ARGAND_WIDEN_I8(x, Wide) __builtin_convertvector(argand_load_i8_i32(&x), Wide)
#define ARGAND_WIDEN_U8(x, Wide) __builtin_convertvector(argand_load_u8_i32(&x), Wide)
ARGAND_DEFINE_QUOTIENT(vi8, i8, signed char, vf32, ARGAND_WIDEN_I8)
ARGAND_DEFINE_QUOTIENT(vu8, u8, unsigned char, vf32, ARGAND_WIDEN_U8)
ARGAND_DEFINE_QUOTIENT(vi16, i16, short, vf32, __builtin_convertvector)
ARGAND_DEFINE_QUOTIENT(vu16, u16, unsigned short, vf32, __builtin_convertvector)
ARGAND_DEFINE_QUOTIENT(vi32, i32, int, vf64, __builtin_convertvector)
ARGAND_DEFINE_QUOTIENT(vu32, u32, unsigned int, vf64, __builtin_convertvector)
#undef ARGAND_WIDEN_U8
#undef ARGAND_WIDEN_I8
#undef ARGAND_DEFINE_QUOTIENT
ARGAND_MATH vi64 argand_quotient_i64(vi64 x, vi64 y) {
#if defined(ARGAND_TIER_AVX512) /* others convert lane by lane */
  const vi64 bits = (x ^ (x >> 63)) | (y ^ (y >> 63));
  if (argand_all_i64((vi64)(bits < 1l << 52)))
    return __builtin_convertvector(__builtin_convertvector(x, vf64) / __builtin_convertvector(y, vf64), vi64);
#endif
  return x / y;
}
ARGAND_MATH vu64 argand_quotient_u64(vu64 x, vu64 y) { return x / y; }

/* Integers: a zero divisor gives 0 (callers refuse it beforehand), the most negative value by -1 wraps. */
#define ARGAND_DEFINE_INTEGER(V, U, s)                                                                                  \
  ARGAND_MATH V argand_trunc_divide_##s(V x, V y) {                                                                     \
    const V none = (V)(y == 0), minus = (V)(y == (V){} - 1) & (V)((V){} - 1 < 0);                                       \
    const V q = argand_quotient_##s(x, (y & ~(none | minus)) | ((none | minus) & 1));                                   \
    return (((V)((U){} - (U)x) & minus) | (q & ~minus)) & ~none;                                                        \
  }                                                                                                                     \
  ARGAND_MATH V argand_fmod_##s(V x, V y) { return (V)((U)x - (U)argand_trunc_divide_##s(x, y) * (U)y) & (V)(y != 0); } \
  ARGAND_MATH V argand_remainder_##s(V x, V y) {                                                                        \
    const V r = argand_fmod_##s(x, y);                                                                                  \
    return r + (y & (V)((r != 0) & ((r ^ y) < 0)));                                                                     \
  }                                                                                                                     \
  ARGAND_MATH V argand_floor_divide_##s(V x, V y) {                                                                     \
    const V q = argand_trunc_divide_##s(x, y), r = (V)((U)x - (U)q * (U)y);                                             \
    return q + (V)((y != 0) & (r != 0) & ((r ^ y) < 0));                                                                \
  }                                                                                                                     \
  ARGAND_MATH V argand_pow_##s(V x, V y) { /* wraps; a negative exponent is a division */                               \
    V r = x;                                                                                                            \
    for (unsigned i = 0; i < sizeof(V) / sizeof(x[0]); i++) {                                                           \
      unsigned long base = (unsigned long)x[i], result = 1;                                                             \
      if (y[i] < 0)                                                                                                     \
        result = x[i] == 1 ? 1 : (long)x[i] == -1 ? (y[i] % 2 ? -1ul : 1) : 0;                                          \
      else                                                                                                              \
        for (unsigned long e = (unsigned long)y[i]; e; e >>= 1, base *= base)                                           \
          if (e & 1) result *= base;                                                                                    \
      r[i] = (__typeof__(r[0] + 0))result;                                                                              \
    }                                                                                                                   \
    return r;                                                                                                           \
  }                                                                                                                     \
  ARGAND_MATH V argand_gcd_##s(V x, V y) { /* Euclid's; of the absolute values */                                       \
    V r = x;                                                                                                            \
    for (unsigned i = 0; i < sizeof(V) / sizeof(x[0]); i++) {                                                           \
      unsigned long a = x[i] < 0 ? -(unsigned long)x[i] : (unsigned long)x[i];                                          \
      unsigned long b = y[i] < 0 ? -(unsigned long)y[i] : (unsigned long)y[i];                                          \
      while (b) {                                                                                                       \
        const unsigned long rest = a % b;                                                                               \
        a = b;                                                                                                          \
        b = rest;                                                                                                       \
      }                                                                                                                 \
      r[i] = (__typeof__(r[0] + 0))a;                                                                                   \
    }                                                                                                                   \
    return r;                                                                                                           \
  }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtype-limits"
ARGAND_DEFINE_INTEGER(vi8, vu8, i8)
ARGAND_DEFINE_INTEGER(vi16, vu16, i16)
ARGAND_DEFINE_INTEGER(vi32, vu32, i32)
ARGAND_DEFINE_INTEGER(vi64, vu64, i64)
ARGAND_DEFINE_INTEGER(vu8, vu8, u8)
ARGAND_DEFINE_INTEGER(vu16, vu16, u16)
ARGAND_DEFINE_INTEGER(vu32, vu32, u32)
ARGAND_DEFINE_INTEGER(vu64, vu64, u64)
#pragma GCC diagnostic pop
#undef ARGAND_DEFINE_INTEGER

/* ---- special functions ------------------------------------------------------------------------------------------- */
#include "packages/aten/csrc/kernels/cpu/special.h"

#define ARGAND_DEFINE_NEXTAFTER(V, M, S, s)                                                                        \
  ARGAND_MATH V argand_nextafter_##s(V x, V y) {                                                                   \
    const M step = (((x < y) ^ (x > 0)) & -2) + 1; /* of the bits: numbers' sizes are in their order */            \
    const V least = argand_copysign_##s((V)((M){} + 1), y), r = ARGAND_SELECT(V, x == 0, least, (V)((M)x + step)); \
    return ARGAND_SELECT(V, x == y, y, ARGAND_SELECT(V, (x != x) | (y != y), x + y, r));                           \
  }
ARGAND_DEFINE_NEXTAFTER(vf32, vi32, float, f32)
ARGAND_DEFINE_NEXTAFTER(vf64, vi64, double, f64)
#undef ARGAND_DEFINE_NEXTAFTER

/* M. Giles, "Approximating the erfinv function" (2010), single precision. */
ARGAND_MATH vf32 argand_erfinv_f32(vf32 x) {
  const vf32 w = -argand_log_f32((1 - x) * (1 + x)), a = w - 2.5f, b = argand_sqrt_f32(w) - 3, ax = argand_abs_f32(x);
  static const float c[] = {2.81022636e-08f, 3.43273939e-07f, -3.5233877e-06f, -4.39150654e-06f, 0.00021858087f,
                            -0.00125372503f, -0.00417768164f, 0.246640727f,    1.50140941f};
  static const float d[] = {-0.000200214257f, 0.000100950558f, 0.00134934322f, -0.00367342844f, 0.00573950773f,
                            -0.0076224613f,   0.00943887047f,  1.00167406f,    2.83297682f};
  vf32 p = argand_splat_f32(c[0]), q = argand_splat_f32(d[0]);
  for (int i = 1; i < 9; i++) p = p * a + c[i], q = q * b + d[i];
  const vf32 r = ARGAND_SELECT(vf32, w < 5, p, q) * x;
  const vf32 end = ARGAND_SELECT(vf32, ax == 1, argand_copysign_f32(argand_splat_f32(__builtin_inff()), x), argand_splat_f32(__builtin_nanf("")));
  return ARGAND_SELECT(vf32, ax >= 1, end, r);
}

#endif /* ARGAND_KERNELS_CPU_MATH_H_ */
