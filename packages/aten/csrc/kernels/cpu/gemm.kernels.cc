#include "packages/aten/csrc/kernels/cpu/gemm.h"
#include "packages/aten/csrc/kernels/cpu/microkernel.h"

namespace argand::kernels::cpu::ARGAND_TIER_NS {
namespace {

template <class E, int MR, int NR>
void dot_block(int64_t k, const E* a, int64_t lda, const E* b, int64_t ldb, const E* bias, E* c, int64_t ldc) {
  using V = vec_t<E>;
  constexpr int L = Lanes<V>::n;
  V acc[MR][NR];
#pragma GCC unroll 4
  for (int i = 0; i < MR; i++)
#pragma GCC unroll 4
    for (int j = 0; j < NR; j++) acc[i][j] = V{};
  int64_t p = 0;
  for (; p < k; p += L) {
    const bool full = p + L <= k;
    V x[MR], y[NR];
#pragma GCC unroll 4
    for (int i = 0; i < MR; i++) x[i] = full ? load(a + i * lda + p) : load_n(a + i * lda + p, k - p);
#pragma GCC unroll 4
    for (int j = 0; j < NR; j++) y[j] = full ? load(b + j * ldb + p) : load_n(b + j * ldb + p, k - p);
#pragma GCC unroll 4
    for (int i = 0; i < MR; i++)
#pragma GCC unroll 4
      for (int j = 0; j < NR; j++) acc[i][j] = fma(x[i], y[j], acc[i][j]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < MR; i++)
#pragma GCC unroll 4
    for (int j = 0; j < NR; j++) c[i * ldc + j] = sum_lanes(acc[i][j]) + (bias ? bias[j] : E(0));
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

template <class E, int MR>
void dot_rows(int64_t n, int64_t k, const E* a, int64_t lda, const E* b, int64_t ldb, const E* bias, E* c, int64_t ldc) {
  int64_t j = 0;
  for (; j + 4 <= n; j += 4) dot_block<E, MR, 4>(k, a, lda, b + j * ldb, ldb, bias ? bias + j : nullptr, c + j, ldc);
  for (; j < n; j++) {
    if (MR == 1)
      c[j] = dot(k, a, b + j * ldb) + (bias ? bias[j] : E(0));
    else
      dot_block<E, MR, 1>(k, a, lda, b + j * ldb, ldb, bias ? bias + j : nullptr, c + j, ldc);
  }
}

template <class E>
void dots(int64_t m, int64_t n, int64_t k, const E* a, int64_t lda, const E* b, int64_t ldb, const E* bias, E* c, int64_t ldc) {
  int64_t i = 0;
  for (; i + 4 <= m; i += 4) dot_rows<E, 4>(n, k, a + i * lda, lda, b, ldb, bias, c + i * ldc, ldc);
  for (; i < m; i++) dot_rows<E, 1>(n, k, a + i * lda, lda, b, ldb, bias, c + i * ldc, ldc);
}

}  // namespace

const GemmKernels gemm_kernels = {{multiply_tile<float>, dots<float>}, {multiply_tile<double>, dots<double>}};

}  // namespace argand::kernels::cpu::ARGAND_TIER_NS
