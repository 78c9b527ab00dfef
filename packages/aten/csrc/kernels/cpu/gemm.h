// Matrix products on raw memory, and the tiered tile kernels they are made of.
#pragma once

#include <stdint.h>

#include "packages/aten/csrc/kernels/cpu/tiers.h"

namespace argand::kernels::cpu {

template <class E>
struct TileKernels {
  // c[m, n] = alpha * a[m, k] b[k, n] + (accumulate ? c : 0); b and c have column stride 1, a any strides.
  void (*multiply)(int64_t m, int64_t n, int64_t k, E alpha, const E* a, int64_t a_ms, int64_t a_ks, const E* b, int64_t ldb, bool accumulate, E* c,
                   int64_t ldc);
  // Products with rows of b along k > 0 (weights of a linear layer), without packing, for few rows of a or b:
  // c[i * ldc + j] = dot(a + i * lda, b + j * ldb) + (accumulate ? c[i * ldc + j] : bias ? bias[j] : 0).
  void (*dots)(int64_t m, int64_t n, int64_t k, const E* a, int64_t lda, const E* b, int64_t ldb, const E* bias, bool accumulate, E* c, int64_t ldc);
};
// The same dot products of complex elements, given as their parts; sizes and strides count elements. Of `_conj`, a's elements are conjugated.
template <class R>
using ComplexDots = void (*)(int64_t m, int64_t n, int64_t k, const R* a, int64_t lda, const R* b, int64_t ldb, R* c, int64_t ldc);
// c[n] += a[k] b[k, n], wrapping; the rows of b lie `ldb` apart.
template <class U>
using IntegerRow = void (*)(int64_t n, int64_t k, const U* a, const U* b, int64_t ldb, U* c);
struct GemmKernels {
  TileKernels<float> f32;
  TileKernels<double> f64;
  ComplexDots<float> c64, c64_conj;
  ComplexDots<double> c128, c128_conj;
  IntegerRow<uint8_t> u8;
  IntegerRow<uint16_t> u16;
  IntegerRow<uint32_t> u32;
  IntegerRow<uint64_t> u64;
};
ARGAND_DECLARE_TIERS(GemmKernels, gemm_kernels)

template <class E>
inline const TileKernels<E>& tile_kernels() {
  if constexpr (sizeof(E) == 4)
    return pick_gemm_kernels().f32;
  else
    return pick_gemm_kernels().f64;
}

// A matrix in memory; strides in elements.
struct Matrix {
  const void* data;
  int64_t row_stride, col_stride;
};

// c[m, n] = alpha * a b + beta * c for any dtype (`alpha` and `beta` are real; integer dtypes wrap); c has column stride 1. beta == 0 ignores c's old
// contents. `serial` keeps to the calling thread.
void gemm(int dtype, int64_t m, int64_t n, int64_t k, double alpha, Matrix a, Matrix b, double beta, void* c, int64_t ldc, bool serial = false);

}  // namespace argand::kernels::cpu
