#include "packages/aten/csrc/kernels/cpu/pool.h"

namespace argand::kernels::cpu::ARGAND_TIER_NS {
namespace {

#define ARGAND_VECTORIZED __attribute__((optimize("O3")))

// kStride 0: any. Comparisons and choices only, so that the compiler's own vectors give the scalar loop's bits.
template <bool kFirst, int64_t kStride>
ARGAND_VECTORIZED void step(const float* __restrict in, int64_t stride, int64_t n, int32_t at, float* __restrict best, int32_t* __restrict where) {
  const int64_t s = kStride ? kStride : stride;
  for (int64_t x = 0; x < n; x++) {
    const int32_t here = at + static_cast<int32_t>(x * s);
    const float v = in[x * s];
    if constexpr (kFirst) {
      best[x] = v;
      where[x] = here;
    } else {
      const float b = best[x];
      const int32_t w = where[x];
      const bool take = (w < 0) | (v > b) | (v != v);
      best[x] = take ? v : b;
      where[x] = take ? here : w;
    }
  }
}

template <bool kFirst>
void take_element(const float* in, int64_t stride, int64_t n, int32_t at, float* best, int32_t* where) {
  if (stride == 1) return step<kFirst, 1>(in, stride, n, at, best, where);
  if (stride == 2) return step<kFirst, 2>(in, stride, n, at, best, where);
  step<kFirst, 0>(in, stride, n, at, best, where);
}

ARGAND_VECTORIZED void widen(int64_t n, const int32_t* __restrict where, int64_t* __restrict wide) {
  for (int64_t x = 0; x < n; x++) wide[x] = where[x];
}

}  // namespace

const PoolKernels pool_kernels = {take_element<false>, take_element<true>, widen};

}  // namespace argand::kernels::cpu::ARGAND_TIER_NS
