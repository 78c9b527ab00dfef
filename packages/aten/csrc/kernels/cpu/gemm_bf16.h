// Products of bfloat16 matrices by the processor's own bfloat16 dot products.
#pragma once

#include <cstdint>

namespace argand::kernels::cpu {

// Whether this processor has AVX512-BF16 and the tier that is in use allows it.
bool has_bf16_dots();

// A bfloat16 matrix in memory; strides in elements, one of them 1.
struct Bf16Matrix {
  const uint16_t* data;
  int64_t row_stride, col_stride;
  const uint16_t* at(int64_t row, int64_t col) const { return data + row * row_stride + col * col_stride; }
};

// c[m, n] = alpha * a[m, k] b[k, n] + beta * c on the calling thread, for k > 0: sums in float32 of pairs of products (subnormal numbers count as
// zero), one rounding at the end. beta == 0 ignores c's old contents.
void gemm_bf16(int64_t m, int64_t n, int64_t k, float alpha, Bf16Matrix a, Bf16Matrix b, float beta, uint16_t* c, int64_t ldc);

}  // namespace argand::kernels::cpu
