// Register-blocked matrix products for operands that already sit in the caches (tiered kernels only).
//   acc[m][j] += sum over k of a(k, m) * b(k)[j * lanes ...]
#pragma once

#include "packages/aten/csrc/kernels/cpu/simd.h"

namespace argand::kernels::cpu::ARGAND_TIER_NS {

// Rows of a full register block, and vectors of a full one: 24, 12 or 8 accumulators.
inline constexpr int kBlockRows = ARGAND_TIER_LEVEL == 2 ? 8 : 4;
inline constexpr int kBlockVectors = ARGAND_TIER_LEVEL == 0 ? 2 : 3;

// Scalars a(k, m) at p[m * ms + k * ks].
template <class E>
struct StridedScalars {
  const E* p;
  int64_t ms, ks;
  ARGAND_INLINE E at(int64_t k, int m) const { return p[m * ms + k * ks]; }
};
// Scalars packed as [k][MR].
template <class E, int MR>
struct PackedScalars {
  const E* p;
  ARGAND_INLINE E at(int64_t k, int m) const { return p[k * MR + m]; }
};
// Row k of vectors at p + k * ks.
template <class E>
struct StridedRows {
  const E* p;
  int64_t ks;
  ARGAND_INLINE const E* at(int64_t k) const { return p + k * ks; }
};
// Row k of vectors at p + offsets[k].
template <class E>
struct OffsetRows {
  const E* p;
  const int64_t* offsets;
  ARGAND_INLINE const E* at(int64_t k) const { return p + offsets[k]; }
};

// The last vector of a row has `tail` lanes (all of them if Tail is false).
template <class V, int MR, int NR, bool Tail, class A, class B>
ARGAND_INLINE void multiply(int64_t k, A a, B b, int64_t tail, V (&acc)[MR][NR]) {
  constexpr int L = Lanes<V>::n;
  for (int64_t i = 0; i < k; i++) {
    const auto* row = b.at(i);
    V x[NR];
#pragma GCC unroll 8
    for (int j = 0; j < NR; j++) x[j] = Tail && j == NR - 1 ? load_n(row + j * L, tail) : load(row + j * L);
#pragma GCC unroll 8
    for (int m = 0; m < MR; m++) {
      const V s = splat<V>(a.at(i, m));
#pragma GCC unroll 8
      for (int j = 0; j < NR; j++) acc[m][j] = fma(s, x[j], acc[m][j]);
    }
  }
}

// c = alpha * a b + (accumulate ? c : 0) on one block of MR rows.
template <class V, int MR, int NR, bool Tail, class E>
__attribute__((noinline)) void multiply_block(int64_t k, E alpha, StridedScalars<E> a, StridedRows<E> b, int64_t tail, bool accumulate, E* c,
                                              int64_t ldc) {
  constexpr int L = Lanes<V>::n;
  V acc[MR][NR];
#pragma GCC unroll 8
  for (int m = 0; m < MR; m++)
#pragma GCC unroll 4
    for (int j = 0; j < NR; j++) acc[m][j] = V{};
  multiply<V, MR, NR, Tail>(k, a, b, tail, acc);
  const V scale = splat<V>(alpha);
#pragma GCC unroll 8
  for (int m = 0; m < MR; m++)
#pragma GCC unroll 4
    for (int j = 0; j < NR; j++) {
      E* out = c + m * ldc + j * L;
      if (Tail && j == NR - 1) {
        store_n(out, accumulate ? fma(scale, acc[m][j], load_n(out, tail)) : scale * acc[m][j], tail);
      } else {
        store(out, accumulate ? fma(scale, acc[m][j], load(out)) : scale * acc[m][j]);
      }
    }
}

template <class V, int NR, bool Tail, class E>
void multiply_columns(int64_t m, int64_t k, E alpha, StridedScalars<E> a, StridedRows<E> b, int64_t tail, bool accumulate, E* c, int64_t ldc) {
  int64_t i = 0;
  for (; i + kBlockRows <= m; i += kBlockRows)
    multiply_block<V, kBlockRows, NR, Tail>(k, alpha, {a.p + i * a.ms, a.ms, a.ks}, b, tail, accumulate, c + i * ldc, ldc);
  if constexpr (kBlockRows == 8)
    for (; i + 4 <= m; i += 4) multiply_block<V, 4, NR, Tail>(k, alpha, {a.p + i * a.ms, a.ms, a.ks}, b, tail, accumulate, c + i * ldc, ldc);
  for (; i + 2 <= m; i += 2) multiply_block<V, 2, NR, Tail>(k, alpha, {a.p + i * a.ms, a.ms, a.ks}, b, tail, accumulate, c + i * ldc, ldc);
  for (; i < m; i++) multiply_block<V, 1, NR, Tail>(k, alpha, {a.p + i * a.ms, a.ms, a.ks}, b, tail, accumulate, c + i * ldc, ldc);
}

// c[m, n] = alpha * a[m, k] b[k, n] + (accumulate ? c : 0); columns of b and c have stride 1. No packing: meant for k * n in the caches.
template <class E>
void multiply_tile(int64_t m, int64_t n, int64_t k, E alpha, const E* a, int64_t a_ms, int64_t a_ks, const E* b, int64_t ldb, bool accumulate, E* c,
                   int64_t ldc) {
  using V = vec_t<E>;
  constexpr int L = Lanes<V>::n;
  constexpr bool kFreeMask = ARGAND_TIER_LEVEL == 2;  // masked loads cost nothing: fewer instantiations
  const StridedScalars<E> s{a, a_ms, a_ks};
  for (int64_t j = 0; j < n;) {
    const int64_t left = (n - j + L - 1) / L;
    const int nr = left >= kBlockVectors && left != kBlockVectors + 1 ? kBlockVectors : left >= 2 ? 2 : 1;
    const int64_t width = n - j < nr * L ? n - j : nr * L;
    const int64_t tail = width - (nr - 1) * L;
    const StridedRows<E> rows{b + j, ldb};
    if (kFreeMask || tail < L) {
      if (kBlockVectors == 3 && nr == 3)
        multiply_columns<V, kBlockVectors, true>(m, k, alpha, s, rows, tail, accumulate, c + j, ldc);
      else if (nr == 2)
        multiply_columns<V, 2, true>(m, k, alpha, s, rows, tail, accumulate, c + j, ldc);
      else
        multiply_columns<V, 1, true>(m, k, alpha, s, rows, tail, accumulate, c + j, ldc);
    } else {
      if (kBlockVectors == 3 && nr == 3)
        multiply_columns<V, kBlockVectors, kFreeMask>(m, k, alpha, s, rows, tail, accumulate, c + j, ldc);
      else if (nr == 2)
        multiply_columns<V, 2, kFreeMask>(m, k, alpha, s, rows, tail, accumulate, c + j, ldc);
      else
        multiply_columns<V, 1, kFreeMask>(m, k, alpha, s, rows, tail, accumulate, c + j, ldc);
    }
    j += width;
  }
}

}  // namespace argand::kernels::cpu::ARGAND_TIER_NS
