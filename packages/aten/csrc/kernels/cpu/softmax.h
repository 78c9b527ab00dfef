// Tiered loops of softmax and log_softmax. A tensor is [outer, n, inner], normalised over n.
#pragma once

#include <stdint.h>

#include "packages/aten/csrc/kernels/cpu/tiers.h"

namespace argand::kernels::cpu {

struct SoftmaxLoops {
  // inner == 1: `rows` rows of n. `scratch` holds n compute elements (used by 16-bit floats).
  void (*rows)(int64_t rows, int64_t n, const void* x, void* y, void* scratch, bool log);
  // One outer slice [n, inner], columns [begin, end).
  void (*columns)(int64_t n, int64_t inner, int64_t begin, int64_t end, const void* x, void* y, bool log);
  // Gradients from grad g and result y.
  void (*rows_backward)(int64_t rows, int64_t n, const void* g, const void* y, void* dx, bool log);
  void (*columns_backward)(int64_t n, int64_t inner, int64_t begin, int64_t end, const void* g, const void* y, void* dx, bool log);
};
struct SoftmaxKernels {
  SoftmaxLoops f32, f64, bf16, f16;
};
ARGAND_DECLARE_TIERS(SoftmaxKernels, softmax_kernels)

}  // namespace argand::kernels::cpu
