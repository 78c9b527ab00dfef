#include "packages/aten/csrc/kernels/cpu/pool.h"
#include "packages/aten/csrc/kernels/cpu/simd.h"

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

// Vectors of channels, kVectors whole ones or the first `lanes` of one.
template <int kVectors, class T>
ARGAND_INLINE void mean_vectors(const T* in, int64_t rows, int64_t row_step, int64_t columns, int64_t column_step, int64_t lanes, elem_t<T> divisor,
                                bool exact, T* out) {
  using V = vec_t<T>;
  constexpr int L = Lanes<V>::n;
  V sum[kVectors] = {};
  for (int64_t r = 0; r < rows; r++, in += row_step)
    for (int64_t c = 0; c < columns; c++)
#pragma GCC unroll 4
      for (int u = 0; u < kVectors; u++) {
        const T* const p = in + c * column_step + u * L;
        sum[u] += lanes == L ? load(p) : load_n(p, lanes);
      }
#pragma GCC unroll 4
  for (int u = 0; u < kVectors; u++) {
    const V mean = exact ? sum[u] * splat<V>(1 / divisor) : sum[u] / splat<V>(divisor);
    lanes == L ? store(out + u * L, mean) : store_n(out + u * L, mean, lanes);
  }
}

template <class T>
void mean(const T* in, int64_t rows, int64_t row_step, int64_t columns, int64_t column_step, int64_t count, int64_t divisor, T* out) {
  constexpr int L = Lanes<vec_t<T>>::n;
  const elem_t<T> n = static_cast<elem_t<T>>(divisor);
  const bool exact = (divisor & (divisor - 1)) == 0;  // a power of 2, whose reciprocal gives the same bits in less time
  int64_t k = 0;
  for (; k + 4 * L <= count; k += 4 * L) mean_vectors<4>(in + k, rows, row_step, columns, column_step, L, n, exact, out + k);
  for (; k < count; k += L) mean_vectors<1>(in + k, rows, row_step, columns, column_step, count - k < L ? count - k : L, n, exact, out + k);
}

}  // namespace

const PoolKernels pool_kernels = {take_element<false>, take_element<true>, widen, mean<float>, mean<double>, mean<bf16>, mean<f16>};

}  // namespace argand::kernels::cpu::ARGAND_TIER_NS
