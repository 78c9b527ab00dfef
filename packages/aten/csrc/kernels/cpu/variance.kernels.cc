// Mean and sum of squared deviations of a run of elements.
#include "packages/aten/csrc/kernels/cpu/reduce.h"

namespace argand::kernels::cpu::ARGAND_TIER {
using namespace argand::simd;

namespace {

template <class V>
double sum_lanes(V v) {
  double s = 0;
  for (unsigned i = 0; i < sizeof(V) / sizeof(v[0]); i++) s += v[i];
  return s;
}

// Two passes over at most a few thousand contiguous elements; the second one's mean deviation corrects the first one's rounding.
template <class T>
void moments(long n, const char* p, double* mean, double* m2) {
  constexpr int W = lanes_of<T>();
  using V = decltype(load<T, W, false>(p));
  const long vectors = n / W, rest = n % W;
  alignas(64) char tail[ARGAND_VECTOR_BYTES];
  V last{}, kept{};
  if (rest) {
    load_tail(tail, p + vectors * W * (long)sizeof(T), rest * (long)sizeof(T), 0);
    last = load<T, W, false>(tail);
    const auto mask = lane_numbers<W>() < lit(typename MaskOf<W>::type{}, rest);
    kept = mask ? V{} + 1 : V{};
  }
  V s[4] = {last, V{}, V{}, V{}};
  for (long v = 0; v < vectors; v++) s[v % 4] += load<T, W, false>(p + v * W * (long)sizeof(T));
  const double estimate = sum_lanes((s[0] + s[1]) + (s[2] + s[3])) / n;
  const V center = lit(V{}, estimate);
  const auto rounded = (double)center[0];
  last = (last - center) * kept;
  V d[4] = {last, V{}, V{}, V{}}, q[4] = {last * last, V{}, V{}, V{}};
  for (long v = 0; v < vectors; v++) {
    const V x = load<T, W, false>(p + v * W * (long)sizeof(T)) - center;
    d[v % 4] += x;
    q[v % 4] += x * x;
  }
  const double deviation = sum_lanes((d[0] + d[1]) + (d[2] + d[3])), squares = sum_lanes((q[0] + q[1]) + (q[2] + q[3]));
  *mean = rounded + deviation / n;
  const double m = squares - deviation * deviation / n;
  *m2 = m <= 0 ? 0 : m;  // rounding may leave less
}

}  // namespace

using Moments = void (*)(long n, const char* p, double* mean, double* m2);
extern const Moments moments_table[4];
const Moments moments_table[4] = {moments<f16>, moments<bf16>, moments<float>, moments<double>};  // float16 to float64

}  // namespace argand::kernels::cpu::ARGAND_TIER
