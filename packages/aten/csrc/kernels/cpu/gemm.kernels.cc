#include "packages/aten/csrc/kernels/cpu/gemm.h"
#include "packages/aten/csrc/kernels/cpu/microkernel.h"

namespace argand::kernels::cpu::ARGAND_TIER_NS {
namespace {

constexpr int kDotRows = ARGAND_TIER_LEVEL == 2 ? 4 : 2;  // by 4: 16 or 8 accumulators

// The sum of each vector's lanes.
template <class V, class E>
ARGAND_INLINE void sum_each(const V (&v)[4], E* out) {
#pragma GCC unroll 4
  for (int j = 0; j < 4; j++) out[j] = sum_lanes(v[j]);
}
#if ARGAND_TIER_LEVEL == 2
ARGAND_INLINE void sum_each(const vf (&v)[4], float* out) {  // by transposing: a quarter of the additions
  const vf x = _mm512_unpacklo_ps(v[0], v[1]) + _mm512_unpackhi_ps(v[0], v[1]), y = _mm512_unpacklo_ps(v[2], v[3]) + _mm512_unpackhi_ps(v[2], v[3]);
  const vd low = _mm512_unpacklo_pd(_mm512_castps_pd(x), _mm512_castps_pd(y)), high = _mm512_unpackhi_pd(_mm512_castps_pd(x), _mm512_castps_pd(y));
  const vf z = _mm512_castpd_ps(low) + _mm512_castpd_ps(high);
  const __m256 half = _mm512_castps512_ps256(z) + _mm512_extractf32x8_ps(z, 1);
  _mm_storeu_ps(out, _mm256_castps256_ps128(half) + _mm256_extractf128_ps(half, 1));
}
#endif
template <class V, class E>
ARGAND_INLINE void sum_each(const V (&v)[1], E* out) {
  out[0] = sum_lanes(v[0]);
}

// MR rows of a times NR rows of b: their vectors are read once each.
template <class E, int MR, int NR>
void dot_block(int64_t k, const E* a, int64_t lda, const E* b, int64_t ldb, const E* bias, bool accumulate, E* c, int64_t ldc) {
  using V = vec_t<E>;
  constexpr int L = Lanes<V>::n;
  V acc[MR][NR];
#pragma GCC unroll 4
  for (int i = 0; i < MR; i++)
#pragma GCC unroll 4
    for (int j = 0; j < NR; j++) acc[i][j] = V{};
  const auto step = [&](int64_t p, auto read) {
    V y[NR];
#pragma GCC unroll 4
    for (int j = 0; j < NR; j++) y[j] = read(b + j * ldb + p);
#pragma GCC unroll 4
    for (int i = 0; i < MR; i++) {
      const V x = read(a + i * lda + p);
#pragma GCC unroll 4
      for (int j = 0; j < NR; j++) acc[i][j] = fma(x, y[j], acc[i][j]);
    }
  };
  int64_t p = 0;
  for (; p + L <= k; p += L) step(p, [](const E* q) __attribute__((always_inline)) { return load(q); });
  if (p < k) step(p, [&](const E* q) __attribute__((always_inline)) { return load_n(q, k - p); });
#pragma GCC unroll 4
  for (int i = 0; i < MR; i++) {
    E sums[NR];
    sum_each(acc[i], sums);
    for (int j = 0; j < NR; j++) c[i * ldc + j] = sums[j] + (accumulate ? c[i * ldc + j] : bias ? bias[j] : E(0));
  }
}

// One dot product, with enough accumulators to hide the latency.
template <class E>
E dot(int64_t k, const E* a, const E* b) {
  using V = vec_t<E>;
  constexpr int L = Lanes<V>::n;
  V acc[4] = {V{}, V{}, V{}, V{}};
  int64_t p = 0;
  for (; p + 4 * L <= k; p += 4 * L)
#pragma GCC unroll 4
    for (int u = 0; u < 4; u++) acc[u] = fma(load(a + p + u * L), load(b + p + u * L), acc[u]);
  for (; p + L <= k; p += L) acc[0] = fma(load(a + p), load(b + p), acc[0]);
  if (p < k) acc[1] = fma(load_n(a + p, k - p), load_n(b + p, k - p), acc[1]);
  return sum_lanes((acc[0] + acc[1]) + (acc[2] + acc[3]));
}

// Rows of a by MR rows of b, or the other way round: the few rows that stay in the first-level cache are gone through in the inner loop.
template <class E>
struct Dots {
  int64_t m, n, k;
  const E* a;
  int64_t lda;
  const E* b;
  int64_t ldb;
  const E* bias;
  bool accumulate;
  E* c;
  int64_t ldc;

  template <int MR, int NR>
  void block(int64_t i, int64_t j) const {
    E* const to = c + i * ldc + j;
    if constexpr (MR == 1 && NR == 1)
      *to = dot(k, a + i * lda, b + j * ldb) + (accumulate ? *to : bias ? bias[j] : E(0));
    else
      dot_block<E, MR, NR>(k, a + i * lda, lda, b + j * ldb, ldb, bias ? bias + j : nullptr, accumulate, to, ldc);
  }
  template <int NR>
  void columns(int64_t j) const {  // all rows of a
    int64_t i = 0;
    for (; i + kDotRows <= m; i += kDotRows) block<kDotRows, NR>(i, j);
    for (; i < m; i++) block<1, NR>(i, j);
  }
  template <int MR>
  void rows(int64_t i) const {  // all rows of b
    int64_t j = 0;
    for (; j + 4 <= n; j += 4) block<MR, 4>(i, j);
    for (; j < n; j++) block<MR, 1>(i, j);
  }
  void run() const {
    if (m <= n) {
      int64_t j = 0;
      for (; j + 4 <= n; j += 4) columns<4>(j);
      for (; j < n; j++) columns<1>(j);
    } else {
      int64_t i = 0;
      for (; i + kDotRows <= m; i += kDotRows) rows<kDotRows>(i);
      for (; i < m; i++) rows<1>(i);
    }
  }
};

template <class E>
void dots(int64_t m, int64_t n, int64_t k, const E* a, int64_t lda, const E* b, int64_t ldb, const E* bias, bool accumulate, E* c, int64_t ldc) {
  constexpr int64_t kDepth = 4096 / sizeof(E);  // of rows that stay in the first-level cache
  for (int64_t p = 0; p < k; p += kDepth)
    Dots<E>{m, n, k - p < kDepth ? k - p : kDepth, a + p, lda, b + p, ldb, bias, accumulate || p > 0, c, ldc}.run();
}

// The products of like parts, and of unlike ones, side by side; those of every second lane are subtracted at last: of the former, or of the latter
// where a's elements are conjugated.
template <class R, bool kConj>
void complex_dots(int64_t m, int64_t n, int64_t k, const R* a, int64_t lda, const R* b, int64_t ldb, R* c, int64_t ldc) {
  using V = vec_t<R>;
  constexpr int L = Lanes<V>::n;
  __typeof__(V{} == V{}) swapped;
  V signs;
  for (int i = 0; i < L; i++) swapped[i] = i ^ 1, signs[i] = i % 2 ? -1 : 1;
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      const R *x = a + 2 * i * lda, *y = b + 2 * j * ldb;
      V like[2] = {V{}, V{}}, unlike[2] = {V{}, V{}};
      const auto add = [&](int u, V p, V q) __attribute__((always_inline)) {
        like[u] = fma(p, q, like[u]);
        unlike[u] = fma(p, (V)__builtin_shuffle(q, swapped), unlike[u]);
      };
      int64_t p = 0;
      for (; p + 2 * L <= 2 * k; p += 2 * L) {
        add(0, load(x + p), load(y + p));
        add(1, load(x + p + L), load(y + p + L));
      }
      if (p + L <= 2 * k) add(0, load(x + p), load(y + p)), p += L;
      if (p < 2 * k) add(1, load_n(x + p, 2 * k - p), load_n(y + p, 2 * k - p));
      R* const to = c + 2 * (i * ldc + j);
      const V re = like[0] + like[1], im = unlike[0] + unlike[1];
      to[0] = sum_lanes(kConj ? re : re * signs);
      to[1] = sum_lanes(kConj ? im * signs : im);
    }
}

// Four rows of b at a time, and no more columns than stay in the first-level cache.
template <class U>
__attribute__((optimize("O3"))) void integer_row(int64_t n, int64_t k, const U* a, const U* b, int64_t ldb, U* __restrict c) {
  constexpr int64_t kColumns = 512;
  for (int64_t first = 0; first < n; first += kColumns) {
    const int64_t columns = n - first < kColumns ? n - first : kColumns;
    U* const to = c + first;
    int64_t p = 0;
    for (; p + 4 <= k; p += 4) {
      const U *b0 = b + p * ldb + first, *b1 = b0 + ldb, *b2 = b1 + ldb, *b3 = b2 + ldb;
      for (int64_t j = 0; j < columns; j++) to[j] = (U)(to[j] + a[p] * b0[j] + a[p + 1] * b1[j] + a[p + 2] * b2[j] + a[p + 3] * b3[j]);
    }
    for (; p < k; p++)
      for (int64_t j = 0; j < columns; j++) to[j] = (U)(to[j] + a[p] * b[p * ldb + first + j]);
  }
}

}  // namespace

const GemmKernels gemm_kernels = {{multiply_tile<float>, dots<float>},
                                  {multiply_tile<double>, dots<double>},
                                  complex_dots<float, false>,
                                  complex_dots<float, true>,
                                  complex_dots<double, false>,
                                  complex_dots<double, true>,
                                  integer_row<uint8_t>,
                                  integer_row<uint16_t>,
                                  integer_row<uint32_t>,
                                  integer_row<uint64_t>};

}  // namespace argand::kernels::cpu::ARGAND_TIER_NS
