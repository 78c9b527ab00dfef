// Tiered inner loops of pooling.
#pragma once

#include <stdint.h>

#include "packages/aten/csrc/kernels/cpu/tiers.h"

namespace argand::kernels::cpu {

// The means of `count` neighbouring channels over rows * columns places that lie so many elements apart.
template <class T>
using PoolMean = void (*)(const T* in, int64_t rows, int64_t row_step, int64_t columns, int64_t column_step, int64_t count, int64_t divisor, T* out);

struct PoolKernels {
  // One window element for n neighbouring outputs: in[x * stride] has the index at + x * stride in its plane. It replaces best[x] where it
  // is greater, NaN, or the first (where[x] < 0).
  void (*max_step)(const float* in, int64_t stride, int64_t n, int32_t at, float* best, int32_t* where);
  // The same of the first one, whatever best and where hold.
  void (*max_first)(const float* in, int64_t stride, int64_t n, int32_t at, float* best, int32_t* where);
  // wide[i] = where[i]
  void (*widen)(int64_t n, const int32_t* where, int64_t* wide);
  PoolMean<float> mean_f32;
  PoolMean<double> mean_f64;
  PoolMean<bf16> mean_bf16;
  PoolMean<f16> mean_f16;
  auto mean(float) const { return mean_f32; }
  auto mean(double) const { return mean_f64; }
  auto mean(bf16) const { return mean_bf16; }
  auto mean(f16) const { return mean_f16; }
};
ARGAND_DECLARE_TIERS(PoolKernels, pool_kernels)

}  // namespace argand::kernels::cpu
