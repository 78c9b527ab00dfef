#include "packages/aten/csrc/kernels/cpu/attention.h"
#include "packages/aten/csrc/kernels/cpu/simd.h"

namespace argand::kernels::cpu::ARGAND_TIER_NS {
namespace {

// Calls f(i, lanes) over [0, n) in steps of a vector of E; lanes < L only in the last call.
template <class E, class F>
ARGAND_INLINE void for_vectors(int64_t n, F&& f) {
  constexpr int L = Lanes<vec_t<E>>::n;
  int64_t i = 0;
  for (; i + L <= n; i += L) f(i, int64_t{L});
  if (i < n) f(i, n - i);
}
template <class E>
ARGAND_INLINE vec_t<E> get(const E* p, int64_t lanes) {
  return lanes == Lanes<vec_t<E>>::n ? load(p) : load_n(p, lanes);
}
template <class E, class V>
ARGAND_INLINE void put(E* p, V v, int64_t lanes) {
  if (lanes == Lanes<V>::n)
    store(p, v);
  else
    store_n(p, v, lanes);
}

template <class E>
E exponentials(int64_t n, int64_t width, E* s, const E* mask, E* sum_of_row) {
  using V = vec_t<E>;
  const E lowest = -__builtin_inf();
  V top = splat<V>(lowest);
  for_vectors<E>(n, [&](int64_t i, int64_t lanes) {
    V v = get(s + i, lanes);
    if (mask) put(s + i, v += get(mask + i, lanes), lanes);
    top = max(first_lanes(v, lanes, lowest), top);
  });
  const E m = max_lanes(top);
  if (m == lowest) {  // all is masked, or NaN, which no maximum is
    E nan = 0;
    for (int64_t i = 0; i < n; i++)
      if (s[i] != s[i]) nan = s[i];
    for (int64_t i = 0; i < width; i++) s[i] = i < n ? nan : 0;
    *sum_of_row = 1;
    return nan != nan ? nan : lowest;
  }
  V sum = V{};
  const V shift = splat<V>(m);
  for_vectors<E>(n, [&](int64_t i, int64_t lanes) {
    const V e = exp(get(s + i, lanes) - shift);
    put(s + i, e, lanes);
    sum += first_lanes(e, lanes, 0);
  });
  const E total = sum_lanes(sum);
  *sum_of_row = total;
  for (int64_t i = n; i < width; i++) s[i] = 0;
  if constexpr (sizeof(E) == 4)
    return m + __builtin_logf(total);
  else
    return m + __builtin_log(total);
}

template <class E>
void divide(int64_t n, E* row, E by) {
  using V = vec_t<E>;
  const V inverse = splat<V>(1 / by);
  for_vectors<E>(n, [&](int64_t i, int64_t lanes) { put(row + i, get(row + i, lanes) * inverse, lanes); });
}

template <class E>
void backward(int64_t n, int64_t width, E* s, const E* mask, E lse, E* dp, E delta, E scale) {
  using V = vec_t<E>;
  if (lse == -(E)__builtin_inf()) n = 0;
  const V shift = splat<V>(lse), center = splat<V>(delta), factor = splat<V>(scale);
  for_vectors<E>(n, [&](int64_t i, int64_t lanes) {
    V v = get(s + i, lanes);
    if (mask) v += get(mask + i, lanes);
    const V p = exp(v - shift);
    put(s + i, p, lanes);
    put(dp + i, p * (get(dp + i, lanes) - center) * factor, lanes);
  });
  for (int64_t i = n; i < width; i++) s[i] = dp[i] = 0;
}

template <class E>
E dot(int64_t n, const E* a, const E* b) {
  using V = vec_t<E>;
  V sum = V{};
  for_vectors<E>(n, [&](int64_t i, int64_t lanes) { sum += first_lanes(get(a + i, lanes) * get(b + i, lanes), lanes, 0); });
  return sum_lanes(sum);
}

}  // namespace

extern const AttentionKernels attention_kernels;
const AttentionKernels attention_kernels = {{exponentials<float>, divide<float>, backward<float>, dot<float>},
                                            {exponentials<double>, divide<double>, backward<double>, dot<double>}};

}  // namespace argand::kernels::cpu::ARGAND_TIER_NS
