// Products of bfloat16 matrices by the instructions that a processor has for them.
#pragma once

#include <cstdint>

namespace argand::kernels::cpu {

// What multiplies bfloat16: nothing of the processor's own, AVX512-BF16's dot products, or AMX's tiles as well.
enum class Bf16Unit { none, dots, tiles };

// The best that this processor has, the system lends and the tier in use allows.
Bf16Unit bf16_unit();

// A bfloat16 matrix in memory; strides in elements, one of them 1.
struct Bf16Matrix {
  const uint16_t* data;
  int64_t row_stride, col_stride;
  const uint16_t* at(int64_t row, int64_t col) const { return data + row * row_stride + col * col_stride; }
};

// c[m, n] = alpha * a[m, k] b[k, n] + beta * c on the calling thread, for k > 0 and a unit that bf16_unit() allows: sums in float32 of pairs of
// products (subnormal numbers count as zero), one rounding at the end. beta == 0 ignores c's old contents. `few`: b is read as it lies, where rows of
// a and columns of b lie along k; packing it costs more for up to kFewBf16Rows rows.
constexpr int64_t kFewBf16Rows = 32;
void gemm_bf16(Bf16Unit unit, bool few, int64_t m, int64_t n, int64_t k, float alpha, Bf16Matrix a, Bf16Matrix b, float beta, uint16_t* c,
               int64_t ldc);

}  // namespace argand::kernels::cpu
