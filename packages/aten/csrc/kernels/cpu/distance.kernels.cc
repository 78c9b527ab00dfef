#include "packages/aten/csrc/kernels/cpu/distance.h"
#include "packages/aten/csrc/kernels/cpu/vec.h"

namespace argand::kernels::cpu::ARGAND_TIER_NS {
namespace {

using namespace argand::simd;

constexpr int64_t kSumBlock = 64;  // terms that are added straight; their sums are added up

template <class V, class T>
ARGAND_FN V at(const T* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

// kVectors of neighbouring columns; the results of the first `count` are kept.
template <int kVectors, class T, class Take, class Join, class Final>
ARGAND_FN void strip(int64_t d, int64_t count, const T* x, const T* columns, int64_t step, T* out, Take take, Join join, Final final) {
  using V = typename VectorOf<T>::type;
  constexpr int64_t L = sizeof(V) / sizeof(T);
  V total[kVectors] = {};
  for (int64_t begin = 0; begin < d; begin += kSumBlock) {
    V part[kVectors] = {};
    for (int64_t k = begin, end = d - begin < kSumBlock ? d : begin + kSumBlock; k < end; k++)
#pragma GCC unroll 4
      for (int u = 0; u < kVectors; u++) part[u] = join(part[u], take(abs(x[k] - at<V>(columns + k * step + u * L))));
#pragma GCC unroll 4
    for (int u = 0; u < kVectors; u++) total[u] = join(total[u], part[u]);
  }
#pragma GCC unroll 4
  for (int u = 0; u < kVectors; u++) total[u] = final(total[u]);
  __builtin_memcpy(out, total, static_cast<size_t>(count) * sizeof(T));
}

template <class T, class Take, class Join, class Final>
ARGAND_FN void row(int64_t d, int64_t m, const T* x, const T* columns, int64_t step, T* out, Take take, Join join, Final final) {
  constexpr int64_t L = sizeof(typename VectorOf<T>::type) / sizeof(T);
  int64_t j = 0;
  for (; j + 4 * L <= m; j += 4 * L) strip<4>(d, 4 * L, x, columns + j, step, out + j, take, join, final);
  for (; j < m; j += L) strip<1>(d, m - j < L ? m - j : L, x, columns + j, step, out + j, take, join, final);
}

template <class T>
void distances(int64_t d, int64_t m, const T* x, const T* columns, int64_t step, T* out, double p) {
  using V = typename VectorOf<T>::type;
  const auto self = [](V v) { return v; };
  const auto sum = [](V a, V b) { return a + b; };
  if (p == 0) return row(d, m, x, columns, step, out, [](V v) { return where(v > 0, lit(v, 1), v); }, sum, self);
  if (p == 1) return row(d, m, x, columns, step, out, self, sum, self);
  if (p == 2) return row(d, m, x, columns, step, out, [](V v) { return v * v; }, sum, [](V v) { return sqrt(v); });
  if (p == __builtin_inf()) {
    const auto larger = [](V a, V b) {  // bits of numbers without signs are in their order, NaN last
      const auto i = bits_as<typename Elements<V>::mask>(a), j = bits_as<typename Elements<V>::mask>(b);
      return bits_as<V>(i > j ? i : j);
    };
    return row(d, m, x, columns, step, out, self, larger, self);
  }
  const V order = lit(V{}, p), root = lit(V{}, 1 / p);
  row(d, m, x, columns, step, out, [=](V v) { return pow(v, order); }, sum, [=](V v) { return pow(v, root); });
}

}  // namespace

const DistanceKernels distance_kernels = {distances<float>, distances<double>};

}  // namespace argand::kernels::cpu::ARGAND_TIER_NS
