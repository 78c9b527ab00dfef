#include "packages/aten/csrc/kernels/cpu/pool.h"

namespace argand::kernels::cpu::ARGAND_TIER_NS {
namespace {

// kStride 0: any. Comparisons and choices only, so that the compiler's own vectors give the scalar loop's bits.
template <int64_t kStride>
__attribute__((optimize("O3"))) void step(const float* __restrict in, int64_t stride, int64_t n, int32_t at, float* __restrict best,
                                          int32_t* __restrict where) {
  const int64_t s = kStride ? kStride : stride;
  for (int64_t x = 0; x < n; x++) {
    const float v = in[x * s], b = best[x];
    const int32_t w = where[x];
    const bool take = (w < 0) | (v > b) | (v != v);
    best[x] = take ? v : b;
    where[x] = take ? at + static_cast<int32_t>(x * s) : w;
  }
}

void max_step(const float* in, int64_t stride, int64_t n, int32_t at, float* best, int32_t* where) {
  if (stride == 1) return step<1>(in, stride, n, at, best, where);
  if (stride == 2) return step<2>(in, stride, n, at, best, where);
  step<0>(in, stride, n, at, best, where);
}

}  // namespace

const PoolKernels pool_kernels = {max_step};

}  // namespace argand::kernels::cpu::ARGAND_TIER_NS
