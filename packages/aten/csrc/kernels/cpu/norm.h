// Tiered loops of the normalisation operators. Storage type T, statistics and weights in the compute type E (float; double for float64).
#pragma once

#include <stdint.h>

#include "packages/aten/csrc/kernels/cpu/tiers.h"

namespace argand::kernels::cpu {

template <class E>
struct NormLoops {
  E (*sum)(int64_t n, const void* x);
  E (*squares)(int64_t n, const void* x, E mean);  // sum of (x - mean)^2
  // y = (x - mean) * scale * w + b; w and b are arrays of n or NULL.
  void (*apply)(int64_t n, const void* x, void* y, E mean, E scale, const E* w, const E* b);
  // y = (x - mean) * scale + shift
  void (*apply_scalar)(int64_t n, const void* x, void* y, E mean, E scale, E shift);
  // One row of layer norm's gradient (centered) or of RMS norm's: dx if not NULL, and dw += dy * xhat, db += dy where they are not NULL.
  void (*row_backward)(int64_t n, const void* dy, const void* x, E mean, E rstd, const E* w, bool centered, void* dx, E* dw, E* db);
  // Sums of dy and of dy * (x - mean).
  void (*sums)(int64_t n, const void* dy, const void* x, E mean, E* sum_dy, E* sum_dy_x);
  // dx = dy * a + (x - mean) * b + c
  void (*combine)(int64_t n, const void* dy, const void* x, void* dx, E mean, E a, E b, E c);
};
struct NormKernels {
  NormLoops<float> f32, bf16, f16;
  NormLoops<double> f64;
};
ARGAND_DECLARE_TIERS(NormKernels, norm_kernels)

// The loops for storage type T.
template <class T>
auto norm_loops() {
  const NormKernels& k = pick_norm_kernels();
  if constexpr (sizeof(T) == 8)
    return k.f64;
  else if constexpr (sizeof(T) == 4)
    return k.f32;
  else if constexpr (__is_same(T, bf16))
    return k.bf16;
  else
    return k.f16;
}

}  // namespace argand::kernels::cpu
