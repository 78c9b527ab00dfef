// Tiered loops of resampling: every result is a weighted sum of neighbouring elements.
#pragma once

#include <stdint.h>

#include "packages/aten/csrc/kernels/cpu/tiers.h"

namespace argand::kernels::cpu {

template <class E>
struct ResampleLoops {
  // out[i] = sum over t of w[t] * in[t * stride + i], i < n
  void (*rows)(int64_t n, int64_t taps, const E* in, int64_t stride, const E* w, E* out);
  // out[o] = sum over t of w[t * n + o] * in[starts[o] + t], o < n
  void (*places)(int64_t n, int64_t taps, const E* in, const int32_t* starts, const E* w, E* out);
};
struct ResampleKernels {
  ResampleLoops<float> f32;
  ResampleLoops<double> f64;
};
ARGAND_DECLARE_TIERS(ResampleKernels, resample_kernels)

template <class E>
const ResampleLoops<E>& resample_loops() {
  if constexpr (sizeof(E) == 4)
    return pick_resample_kernels().f32;
  else
    return pick_resample_kernels().f64;
}

}  // namespace argand::kernels::cpu
