// Mean and sum of squared deviations of a run of elements.
#include "packages/aten/csrc/kernels/cpu/reduce.h"

namespace argand::kernels::cpu::ARGAND_TIER {
using namespace argand::simd;

namespace {

template <bool B>
struct Bool {
  static constexpr bool value = B;
};

template <class V>
double sum_lanes(V v) {
  double s = 0;
  for (unsigned i = 0; i < sizeof(V) / sizeof(v[0]); i++) s += v[i];
  return s;
}

// The same in double, for deviations whose squares are too large for float32.
template <class T>
void wide_moments(long n, const char* p, double* mean, double* m2) {
  constexpr int W = lanes_of<T>();
  alignas(64) char tail[ARGAND_VECTOR_BYTES];
  double total = 0, deviation = 0, squares = 0, center = 0;
  const auto each = [&](auto&& f) {
    for (long i = 0; i < n; i += W) {
      const char* const at = p + i * (long)sizeof(T);
      if (n - i < W) load_tail(tail, at, (n - i) * (long)sizeof(T), 0);
      const auto v = load<T, W, false>(n - i < W ? tail : at);
      for (int lane = 0; lane < W && lane < n - i; lane++) f((double)v[lane]);
    }
  };
  each([&](double x) { total += x; });
  center = total / n;
  each([&](double x) {
    deviation += x - center;
    squares += (x - center) * (x - center);
  });
  *mean = center + deviation / n;
  *m2 = squares - deviation * deviation / n;
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
  last = last * kept + center * (V{} + 1 - kept);  // what fills up the last vector does not deviate
  double deviation = 0, squares = 0;
  const auto sum_deviations = [&](auto scaled) {
    const auto from_center = [&](V x) {
      if constexpr (decltype(scaled)::value) return (x - center) * lit(V{}, 0x1p96);
      return x - center;
    };
    const V rest_of_it = from_center(last);
    V d[4] = {rest_of_it, V{}, V{}, V{}}, q[4] = {rest_of_it * rest_of_it, V{}, V{}, V{}};
    for (long v = 0; v < vectors; v++) {
      const V x = from_center(load<T, W, false>(p + v * W * (long)sizeof(T)));
      d[v % 4] += x;
      q[v % 4] += x * x;
    }
    deviation = sum_lanes((d[0] + d[1]) + (d[2] + d[3]));
    squares = sum_lanes((q[0] + q[1]) + (q[2] + q[3]));
    return squares - deviation * deviation / n;
  };
  double m = sum_deviations(Bool<false>{});
  double unit = 1;
  if (sizeof(center[0]) == 4 && !(squares < 1e37)) return wide_moments<T>(n, p, mean, m2);
  if (sizeof(center[0]) == 4 && squares < 1e-28) {  // too small for float32
    m = sum_deviations(Bool<true>{});
    unit = 0x1p-96;
  }
  *mean = rounded + deviation * unit / n;
  *m2 = m <= 0 ? 0 : m * unit * unit;  // rounding may leave less
}

}  // namespace

using Moments = void (*)(long n, const char* p, double* mean, double* m2);
extern const Moments moments_table[4];
const Moments moments_table[4] = {moments<f16>, moments<bf16>, moments<float>, moments<double>};  // float16 to float64

}  // namespace argand::kernels::cpu::ARGAND_TIER
