// Tiered inner loops of pooling.
#pragma once

#include <stdint.h>

#include "packages/aten/csrc/kernels/cpu/tiers.h"

namespace argand::kernels::cpu {

struct PoolKernels {
  // One window element for n neighbouring outputs: in[x * stride] has the index at + x * stride in its plane. It replaces best[x] where it
  // is greater, NaN, or the first (where[x] < 0).
  void (*max_step)(const float* in, int64_t stride, int64_t n, int32_t at, float* best, int32_t* where);
  // The same of the first one, whatever best and where hold.
  void (*max_first)(const float* in, int64_t stride, int64_t n, int32_t at, float* best, int32_t* where);
  // wide[i] = where[i]
  void (*widen)(int64_t n, const int32_t* where, int64_t* wide);
};
ARGAND_DECLARE_TIERS(PoolKernels, pool_kernels)

}  // namespace argand::kernels::cpu
