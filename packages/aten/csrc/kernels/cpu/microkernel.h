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

// c = alpha * a b + (accumulate ? c : 0) on one block of MR rows. Strides are arguments of their own: a struct of three is copied through memory by
// wider loads than the stores that made it, which wait for all that was stored before.
template <class V, int MR, int NR, bool Tail, class E>
__attribute__((noinline)) void multiply_block(int64_t k, E alpha, const E* a, int64_t a_ms, int64_t a_ks, const E* b, int64_t ldb, int64_t tail,
                                              bool accumulate, E* c, int64_t ldc) {
  constexpr int L = Lanes<V>::n;
  V acc[MR][NR];
#pragma GCC unroll 8
  for (int m = 0; m < MR; m++)
#pragma GCC unroll 4
    for (int j = 0; j < NR; j++) acc[m][j] = V{};
  multiply<V, MR, NR, Tail>(k, StridedScalars<E>{a, a_ms, a_ks}, StridedRows<E>{b, ldb}, tail, acc);
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
void multiply_columns(int64_t m, int64_t k, E alpha, const E* a, int64_t a_ms, int64_t a_ks, const E* b, int64_t ldb, int64_t tail, bool accumulate,
                      E* c, int64_t ldc) {
  int64_t i = 0;
  const auto blocks = [&]<int MR>() __attribute__((always_inline)) {
    for (; i + MR <= m; i += MR) multiply_block<V, MR, NR, Tail>(k, alpha, a + i * a_ms, a_ms, a_ks, b, ldb, tail, accumulate, c + i * ldc, ldc);
  };
  blocks.template operator()<kBlockRows>();
  if constexpr (kBlockRows == 8) blocks.template operator()<4>();
  blocks.template operator()<2>();
  blocks.template operator()<1>();
}

// c[m, n] = alpha * a[m, k] b[k, n] + (accumulate ? c : 0); columns of b and c have stride 1. No packing: meant for k * n in the caches.
template <class E>
void multiply_tile(int64_t m, int64_t n, int64_t k, E alpha, const E* a, int64_t a_ms, int64_t a_ks, const E* b, int64_t ldb, bool accumulate, E* c,
                   int64_t ldc) {
  using V = vec_t<E>;
  constexpr int L = Lanes<V>::n;
  constexpr bool kFreeMask = ARGAND_TIER_LEVEL == 2;  // masked loads cost nothing: fewer instantiations
  for (int64_t j = 0; j < n;) {
    const int64_t left = (n - j + L - 1) / L;
    const int nr = left >= kBlockVectors && left != kBlockVectors + 1 ? kBlockVectors : left >= 2 ? 2 : 1;
    const int64_t width = n - j < nr * L ? n - j : nr * L;
    const int64_t tail = width - (nr - 1) * L;
    if (kFreeMask || tail < L) {
      if (kBlockVectors == 3 && nr == 3)
        multiply_columns<V, kBlockVectors, true>(m, k, alpha, a, a_ms, a_ks, b + j, ldb, tail, accumulate, c + j, ldc);
      else if (nr == 2)
        multiply_columns<V, 2, true>(m, k, alpha, a, a_ms, a_ks, b + j, ldb, tail, accumulate, c + j, ldc);
      else
        multiply_columns<V, 1, true>(m, k, alpha, a, a_ms, a_ks, b + j, ldb, tail, accumulate, c + j, ldc);
    } else {
      if (kBlockVectors == 3 && nr == 3)
        multiply_columns<V, kBlockVectors, kFreeMask>(m, k, alpha, a, a_ms, a_ks, b + j, ldb, tail, accumulate, c + j, ldc);
      else if (nr == 2)
        multiply_columns<V, 2, kFreeMask>(m, k, alpha, a, a_ms, a_ks, b + j, ldb, tail, accumulate, c + j, ldc);
      else
        multiply_columns<V, 1, kFreeMask>(m, k, alpha, a, a_ms, a_ks, b + j, ldb, tail, accumulate, c + j, ldc);
    }
    j += width;
  }
}

}  // namespace argand::kernels::cpu::ARGAND_TIER_NS
