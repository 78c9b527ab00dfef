// Extreme values of rows with their first positions.
#include "packages/aten/csrc/kernels/cpu/reduce.h"

namespace argand::kernels::cpu::ARGAND_TIER {
using namespace argand::simd;

namespace {

struct Larger {
  template <class V>
  [[gnu::always_inline]] auto operator()(V a, V b) const {
    return maximum(a, b);
  }
};
struct Smaller {
  template <class V>
  [[gnu::always_inline]] auto operator()(V a, V b) const {
    return minimum(a, b);
  }
};
struct Lowest {
  template <class V>
  [[gnu::always_inline]] auto operator()(V x) const {
    return lowest(x);
  }
};
struct Highest {
  template <class V>
  [[gnu::always_inline]] auto operator()(V x) const {
    return highest(x);
  }
};
struct Same {
  template <class V>
  [[gnu::always_inline]] auto operator()(V x) const {
    return x;
  }
  template <class V>
  [[gnu::always_inline]] auto operator()(V x, V) const {
    return x;
  }
};

template <class V>
bool any_lane(V mask) {
  return !argand_all_i64(~(vi64)mask);
}

// value (of T) and index of the extreme of n > 0 contiguous elements; the first NaN wins over numbers.
template <class T, class Start, class Pick>
void find(long n, const char* row, char* value, long* index) {
  using Acc = typename ComputeOf<T>::type;
  using R = Reduction<Acc, T, Start, Same, Pick>;
  alignas(16) char acc[16];
  R::rows(1, 0, n, row, sizeof(T), acc);
  finish_accumulators<Acc, T, Same>(1, value, sizeof(T), acc, n);
  constexpr int W = lanes_of<T>();
  alignas(64) char tail[ARGAND_VECTOR_BYTES];
  splat_element<Acc>(tail, acc);
  const auto best = load<Acc, W, false>(tail);
  for (long i = 0; i < n; i += W) {
    const long left = n - i < W ? n - i : W;
    const char* p = row + i * (long)sizeof(T);
    if (left < W) {
      load_tail(tail, p, left * (long)sizeof(T), kPadding<T>);
      p = tail;
    }
    const auto x = load<T, W, false>(p);
    const auto hit = (x == best) | (x != x);
    if (!any_lane(hit)) continue;
    for (long lane = 0; lane < left; lane++)
      if (hit[lane]) {
        *index = i + lane;
        return;
      }
  }
}

}  // namespace

using Find = void (*)(long n, const char* row, char* value, long* index);
#define ARGAND_ROW(Start, Pick)                                                                                                   \
  {find<unsigned char, Start, Pick>, find<unsigned char, Start, Pick>, find<signed char, Start, Pick>,  find<short, Start, Pick>, \
   find<int, Start, Pick>,           find<long, Start, Pick>,          find<f16, Start, Pick>,          find<bf16, Start, Pick>,  \
   find<float, Start, Pick>,         find<double, Start, Pick>,        find<unsigned long, Start, Pick>}
extern const Find extreme_table[2][11];
const Find extreme_table[2][11] = {ARGAND_ROW(Lowest, Larger), ARGAND_ROW(Highest, Smaller)};  // [min][dtype], bool as its byte; uint64 last

}  // namespace argand::kernels::cpu::ARGAND_TIER
