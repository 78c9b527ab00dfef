// Vectors of the tier's width for hand-written tiered kernels (<name>.kernels.cc only): vf of float, vd of double, with the operators of
// GCC's vector types. 16-bit floats are widened on load and rounded on store, so a kernel template over the storage type works in float.
#pragma once

// GCC 12's intrinsics start from self-initialised variables, and template arguments drop the vector types' may_alias.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wignored-attributes"
#include <immintrin.h>

#include "packages/aten/csrc/kernels/cpu/math.h"
#include "packages/aten/csrc/kernels/cpu/tiers.h"

namespace argand::kernels::cpu::ARGAND_TIER_NS {

#define ARGAND_INLINE inline __attribute__((always_inline))

#if ARGAND_TIER_LEVEL == 2
using vf = __m512;
using vd = __m512d;
#elif ARGAND_TIER_LEVEL == 1
using vf = __m256;
using vd = __m256d;
#else
using vf = __m128;
using vd = __m128d;
#endif

template <class T>
struct VecOf {  // float, bf16, f16
  using type = vf;
  using elem = float;
};
template <>
struct VecOf<double> {
  using type = vd;
  using elem = double;
};
template <class T>
using vec_t = typename VecOf<T>::type;
template <class T>
using elem_t = typename VecOf<T>::elem;

template <class V>
struct Lanes;
template <>
struct Lanes<vf> {
  static constexpr int n = sizeof(vf) / 4;
  using elem = float;
};
template <>
struct Lanes<vd> {
  static constexpr int n = sizeof(vd) / 8;
  using elem = double;
};

template <class V>
ARGAND_INLINE V splat(typename Lanes<V>::elem x) {
  return x - V{};  // broadcasts; -0 stays -0
}

// ---- per tier: full and partial loads and stores (the partial ones touch n lanes and read zeros elsewhere) ---------------
#if ARGAND_TIER_LEVEL == 2
ARGAND_INLINE vf load(const float* p) { return _mm512_loadu_ps(p); }
ARGAND_INLINE vd load(const double* p) { return _mm512_loadu_pd(p); }
ARGAND_INLINE void store(float* p, vf v) { _mm512_storeu_ps(p, v); }
ARGAND_INLINE void store(double* p, vd v) { _mm512_storeu_pd(p, v); }
ARGAND_INLINE __mmask16 mask16(int64_t n) { return static_cast<__mmask16>((1u << n) - 1); }
ARGAND_INLINE vf load_n(const float* p, int64_t n) { return _mm512_maskz_loadu_ps(mask16(n), p); }
ARGAND_INLINE vd load_n(const double* p, int64_t n) { return _mm512_maskz_loadu_pd(static_cast<__mmask8>(mask16(n)), p); }
ARGAND_INLINE void store_n(float* p, vf v, int64_t n) { _mm512_mask_storeu_ps(p, mask16(n), v); }
ARGAND_INLINE void store_n(double* p, vd v, int64_t n) { _mm512_mask_storeu_pd(p, static_cast<__mmask8>(mask16(n)), v); }
ARGAND_INLINE vf fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
ARGAND_INLINE vd fma(vd a, vd b, vd c) { return _mm512_fmadd_pd(a, b, c); }
ARGAND_INLINE vf max(vf a, vf b) { return _mm512_max_ps(a, b); }  // b where either is NaN
ARGAND_INLINE vd max(vd a, vd b) { return _mm512_max_pd(a, b); }
ARGAND_INLINE vf min(vf a, vf b) { return _mm512_min_ps(a, b); }
ARGAND_INLINE vd min(vd a, vd b) { return _mm512_min_pd(a, b); }
ARGAND_INLINE vf nearest(vf a) { return _mm512_roundscale_ps(a, 8); }
ARGAND_INLINE vd nearest(vd a) { return _mm512_roundscale_pd(a, 8); }
ARGAND_INLINE vf ldexp(vf a, vf n) { return _mm512_scalef_ps(a, n); }
ARGAND_INLINE vd ldexp(vd a, vd n) { return _mm512_scalef_pd(a, n); }
ARGAND_INLINE vf first_lanes(vf v, int64_t n, float other) { return _mm512_mask_mov_ps(splat<vf>(other), mask16(n), v); }
ARGAND_INLINE vd first_lanes(vd v, int64_t n, double other) { return _mm512_mask_mov_pd(splat<vd>(other), static_cast<__mmask8>(mask16(n)), v); }

ARGAND_INLINE vf from_bits(__m256i h, bf16) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16)); }
ARGAND_INLINE vf from_bits(__m256i h, f16) { return _mm512_cvtph_ps(h); }
ARGAND_INLINE __m256i to_bits(vf v, f16) { return _mm512_cvtps_ph(v, 8); }
ARGAND_INLINE __m256i to_bits(vf v, bf16) {
  const __m512i u = _mm512_castps_si512(v);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  // The table's answer to both kinds of NaN is v itself, quiet; all else keeps what it is.
  const __m512i bits = _mm512_castps_si512(_mm512_fixupimm_ps(_mm512_castsi512_ps(rounded), v, _mm512_set1_epi32(0x22), 0));
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(bits, 16));
}
template <class H>
ARGAND_INLINE vf load_half(const H* p) {
  return from_bits(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)), H{});
}
template <class H>
ARGAND_INLINE vf load_half_n(const H* p, int64_t n) {
  return from_bits(_mm256_maskz_loadu_epi16(mask16(n), p), H{});
}
template <class H>
ARGAND_INLINE void store_half(H* p, vf v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), to_bits(v, H{}));
}
template <class H>
ARGAND_INLINE void store_half_n(H* p, vf v, int64_t n) {
  _mm256_mask_storeu_epi16(p, mask16(n), to_bits(v, H{}));
}
#else
template <class T, class V>
ARGAND_INLINE V load_lanes(const T* p, int64_t n) {
  T lanes[Lanes<V>::n] = {};
  for (int64_t i = 0; i < n; i++) lanes[i] = p[i];
  V v;
  __builtin_memcpy(&v, lanes, sizeof v);
  return v;
}
template <class T, class V>
ARGAND_INLINE void store_lanes(T* p, V v, int64_t n) {
  T lanes[Lanes<V>::n];
  __builtin_memcpy(lanes, &v, sizeof v);
  for (int64_t i = 0; i < n; i++) p[i] = lanes[i];
}
#if ARGAND_TIER_LEVEL == 1
ARGAND_INLINE __m256i mask32(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
ARGAND_INLINE __m256i mask64(int64_t n) { return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3)); }
ARGAND_INLINE vf load(const float* p) { return _mm256_loadu_ps(p); }
ARGAND_INLINE vd load(const double* p) { return _mm256_loadu_pd(p); }
ARGAND_INLINE void store(float* p, vf v) { _mm256_storeu_ps(p, v); }
ARGAND_INLINE void store(double* p, vd v) { _mm256_storeu_pd(p, v); }
ARGAND_INLINE vf load_n(const float* p, int64_t n) { return _mm256_maskload_ps(p, mask32(n)); }
ARGAND_INLINE vd load_n(const double* p, int64_t n) { return _mm256_maskload_pd(p, mask64(n)); }
ARGAND_INLINE void store_n(float* p, vf v, int64_t n) { _mm256_maskstore_ps(p, mask32(n), v); }
ARGAND_INLINE void store_n(double* p, vd v, int64_t n) { _mm256_maskstore_pd(p, mask64(n), v); }
ARGAND_INLINE vf fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
ARGAND_INLINE vd fma(vd a, vd b, vd c) { return _mm256_fmadd_pd(a, b, c); }
ARGAND_INLINE vf max(vf a, vf b) { return _mm256_max_ps(a, b); }
ARGAND_INLINE vd max(vd a, vd b) { return _mm256_max_pd(a, b); }
ARGAND_INLINE vf min(vf a, vf b) { return _mm256_min_ps(a, b); }
ARGAND_INLINE vd min(vd a, vd b) { return _mm256_min_pd(a, b); }
ARGAND_INLINE vf nearest(vf a) { return _mm256_round_ps(a, 8); }
ARGAND_INLINE vd nearest(vd a) { return _mm256_round_pd(a, 8); }
ARGAND_INLINE vf exp2_integer(vf n) {  // 2^n, n integral in the exponent's range
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23));
}
ARGAND_INLINE vd exp2_integer(vd n) {
  return _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_cvtepi32_epi64(_mm_add_epi32(_mm256_cvtpd_epi32(n), _mm_set1_epi32(1023))), 52));
}
ARGAND_INLINE vf first_lanes(vf v, int64_t n, float other) { return _mm256_blendv_ps(splat<vf>(other), v, _mm256_castsi256_ps(mask32(n))); }
ARGAND_INLINE vd first_lanes(vd v, int64_t n, double other) { return _mm256_blendv_pd(splat<vd>(other), v, _mm256_castsi256_pd(mask64(n))); }
ARGAND_INLINE vf from_bits(__m128i h, bf16) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16)); }
ARGAND_INLINE vf from_bits(__m128i h, f16) { return _mm256_cvtph_ps(h); }
ARGAND_INLINE __m128i to_bits(vf v, f16) { return _mm256_cvtps_ph(v, 8); }
ARGAND_INLINE __m128i to_bits(vf v, bf16) {
  const __m256i u = _mm256_castps_si256(v);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i quiet = _mm256_or_si256(u, _mm256_set1_epi32(0x400000));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
  const __m256i r = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(r), _mm256_extracti128_si256(r, 1));
}
template <class H>
ARGAND_INLINE vf load_half(const H* p) {
  return from_bits(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)), H{});
}
template <class H>
ARGAND_INLINE void store_half(H* p, vf v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), to_bits(v, H{}));
}
#else
ARGAND_INLINE vf load(const float* p) { return _mm_loadu_ps(p); }
ARGAND_INLINE vd load(const double* p) { return _mm_loadu_pd(p); }
ARGAND_INLINE void store(float* p, vf v) { _mm_storeu_ps(p, v); }
ARGAND_INLINE void store(double* p, vd v) { _mm_storeu_pd(p, v); }
ARGAND_INLINE vf load_n(const float* p, int64_t n) { return load_lanes<float, vf>(p, n); }
ARGAND_INLINE vd load_n(const double* p, int64_t n) { return load_lanes<double, vd>(p, n); }
ARGAND_INLINE void store_n(float* p, vf v, int64_t n) { store_lanes(p, v, n); }
ARGAND_INLINE void store_n(double* p, vd v, int64_t n) { store_lanes(p, v, n); }
ARGAND_INLINE vf fma(vf a, vf b, vf c) { return a * b + c; }
ARGAND_INLINE vd fma(vd a, vd b, vd c) { return a * b + c; }
ARGAND_INLINE vf max(vf a, vf b) { return _mm_max_ps(a, b); }
ARGAND_INLINE vd max(vd a, vd b) { return _mm_max_pd(a, b); }
ARGAND_INLINE vf min(vf a, vf b) { return _mm_min_ps(a, b); }
ARGAND_INLINE vd min(vd a, vd b) { return _mm_min_pd(a, b); }
ARGAND_INLINE vf nearest(vf a) { return _mm_round_ps(a, 8); }
ARGAND_INLINE vd nearest(vd a) { return _mm_round_pd(a, 8); }
ARGAND_INLINE vf exp2_integer(vf n) { return _mm_castsi128_ps(_mm_slli_epi32(_mm_add_epi32(_mm_cvtps_epi32(n), _mm_set1_epi32(127)), 23)); }
ARGAND_INLINE vd exp2_integer(vd n) {
  return _mm_castsi128_pd(_mm_slli_epi64(_mm_cvtepi32_epi64(_mm_add_epi32(_mm_cvtpd_epi32(n), _mm_set1_epi32(1023))), 52));
}
ARGAND_INLINE vf first_lanes(vf v, int64_t n, float other) {
  const __m128i mask = _mm_cmpgt_epi32(_mm_set1_epi32(static_cast<int>(n)), _mm_setr_epi32(0, 1, 2, 3));
  return _mm_blendv_ps(splat<vf>(other), v, _mm_castsi128_ps(mask));
}
ARGAND_INLINE vd first_lanes(vd v, int64_t n, double other) { return n <= 0 ? splat<vd>(other) : n == 1 ? vd{v[0], other} : v; }
ARGAND_INLINE float half_to_float(bf16 h) {
  const uint32_t u = static_cast<uint32_t>(h.bits) << 16;
  float f;
  __builtin_memcpy(&f, &u, 4);
  return f;
}
ARGAND_INLINE float half_to_float(f16 h) {
  _Float16 x;
  __builtin_memcpy(&x, &h, 2);
  return static_cast<float>(x);
}
ARGAND_INLINE bf16 float_to_half(float f, bf16) {
  uint32_t u;
  __builtin_memcpy(&u, &f, 4);
  if ((u & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16_t>((u >> 16) | 0x40)};
  return {static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1)) >> 16)};
}
ARGAND_INLINE f16 float_to_half(float f, f16) {
  const _Float16 x = static_cast<_Float16>(f);
  f16 h;
  __builtin_memcpy(&h, &x, 2);
  return h;
}
template <class H>
ARGAND_INLINE vf load_half(const H* p) {
  return vf{half_to_float(p[0]), half_to_float(p[1]), half_to_float(p[2]), half_to_float(p[3])};
}
template <class H>
ARGAND_INLINE void store_half(H* p, vf v) {
  for (int i = 0; i < 4; i++) p[i] = float_to_half(v[i], H{});
}
#endif
ARGAND_INLINE vf ldexp(vf a, vf n) {  // in two steps, so that subnormal results are reached
  const vf half = nearest(n * splat<vf>(0.5f));
  return a * exp2_integer(half) * exp2_integer(n - half);
}
ARGAND_INLINE vd ldexp(vd a, vd n) {
  const vd half = nearest(n * splat<vd>(0.5));
  return a * exp2_integer(half) * exp2_integer(n - half);
}
template <class H>
ARGAND_INLINE vf load_half_n(const H* p, int64_t n) {
  H lanes[Lanes<vf>::n] = {};
  for (int64_t i = 0; i < n; i++) lanes[i] = p[i];
  return load_half(lanes);
}
template <class H>
ARGAND_INLINE void store_half_n(H* p, vf v, int64_t n) {
  H lanes[Lanes<vf>::n];
  store_half(lanes, v);
  for (int64_t i = 0; i < n; i++) p[i] = lanes[i];
}
#endif

ARGAND_INLINE vf load(const bf16* p) { return load_half(p); }
ARGAND_INLINE vf load(const f16* p) { return load_half(p); }
ARGAND_INLINE vf load_n(const bf16* p, int64_t n) { return load_half_n(p, n); }
ARGAND_INLINE vf load_n(const f16* p, int64_t n) { return load_half_n(p, n); }
ARGAND_INLINE void store(bf16* p, vf v) { store_half(p, v); }
ARGAND_INLINE void store(f16* p, vf v) { store_half(p, v); }
ARGAND_INLINE void store_n(bf16* p, vf v, int64_t n) { store_half_n(p, v, n); }
ARGAND_INLINE void store_n(f16* p, vf v, int64_t n) { store_half_n(p, v, n); }

// ---- across lanes; the order of additions is fixed (halves, then quarters, ...) -------------------------------------------
template <class V>
ARGAND_INLINE typename Lanes<V>::elem sum_lanes(V v) {
  constexpr int n = Lanes<V>::n;
  typename Lanes<V>::elem x[n];
  __builtin_memcpy(x, &v, sizeof v);
#pragma GCC unroll 4
  for (int w = n / 2; w; w /= 2)
#pragma GCC unroll 8
    for (int i = 0; i < w; i++) x[i] += x[i + w];
  return x[0];
}
template <class V>
ARGAND_INLINE typename Lanes<V>::elem max_lanes(V v) {
  typename Lanes<V>::elem m = v[0];
  for (int i = 1; i < Lanes<V>::n; i++) m = v[i] > m ? v[i] : m;
  return m;
}
#if ARGAND_TIER_LEVEL == 2
template <>
ARGAND_INLINE float sum_lanes(vf v) {
  return _mm512_reduce_add_ps(v);
}
template <>
ARGAND_INLINE double sum_lanes(vd v) {
  return _mm512_reduce_add_pd(v);
}
template <>
ARGAND_INLINE float max_lanes(vf v) {
  return _mm512_reduce_max_ps(v);
}
template <>
ARGAND_INLINE double max_lanes(vd v) {
  return _mm512_reduce_max_pd(v);
}
#endif

// ---- exp: Cody-Waite reduction, of doubles Taylor series on [-ln2/2, ln2/2]; within 1 ulp; NaN propagates, overflow gives inf --------
ARGAND_INLINE vf exp(vf x) { return argand_exp_f32(x); }
ARGAND_INLINE vd exp(vd x) {
  x = min(splat<vd>(710.0), max(splat<vd>(-746.0), x));
  const vd n = nearest(x * splat<vd>(1.44269504088896340736));
  vd r = fma(n, splat<vd>(-6.93147180369123816490e-01), x);
  r = fma(n, splat<vd>(-1.90821492927058770002e-10), r);
  double c = 1.0 / 87178291200.0;  // 1 / 14!
  vd p = splat<vd>(c);
#pragma GCC unroll 12
  for (int k = 14; k > 2; k--) {
    c *= k;
    p = fma(p, r, splat<vd>(c));
  }
  p = fma(p, r * r, r) + splat<vd>(1.0);
  return ldexp(p, n);
}

}  // namespace argand::kernels::cpu::ARGAND_TIER_NS
