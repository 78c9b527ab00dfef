#include "packages/aten/csrc/kernels/cpu/softmax.h"
#include "packages/aten/csrc/kernels/cpu/simd.h"

namespace argand::kernels::cpu::ARGAND_TIER_NS {
namespace {

inline float log_of(float x) { return __builtin_logf(x); }
inline double log_of(double x) { return __builtin_log(x); }

template <class T>
struct IsHalf {
  static constexpr bool value = sizeof(T) == 2;
};

// Calls f(i, lanes) over [0, n) in steps of a vector; lanes < L only in the last call.
template <int L, class F>
ARGAND_INLINE void for_vectors(int64_t n, F&& f) {
  int64_t i = 0;
  for (; i + L <= n; i += L) f(i, L);
  if (i < n) f(i, n - i);
}
template <class T>
ARGAND_INLINE vec_t<T> get(const T* p, int64_t lanes) {
  return lanes == Lanes<vec_t<T>>::n ? load(p) : load_n(p, lanes);
}
template <class T, class V>
ARGAND_INLINE void put(T* p, V v, int64_t lanes) {
  if (lanes == Lanes<V>::n)
    store(p, v);
  else
    store_n(p, v, lanes);
}

// The row's maximum, NaNs skipped (they come back through exp).
template <class T>
elem_t<T> row_max(int64_t n, const T* x) {
  using V = vec_t<T>;
  using E = elem_t<T>;
  constexpr int L = Lanes<V>::n;
  const E lowest = -__builtin_inf();
  V m[4] = {splat<V>(lowest), splat<V>(lowest), splat<V>(lowest), splat<V>(lowest)};
  int64_t i = 0;
  for (; i + 4 * L <= n; i += 4 * L)
#pragma GCC unroll 4
    for (int u = 0; u < 4; u++) m[u] = max(load(x + i + u * L), m[u]);
  for (; i + L <= n; i += L) m[0] = max(load(x + i), m[0]);
  if (i < n) m[0] = max(first_lanes(load_n(x + i, n - i), n - i, lowest), m[0]);
  return max_lanes(max(max(m[0], m[1]), max(m[2], m[3])));
}

// Sum of exp(x - m), stored to e if it is given.
template <class T>
elem_t<T> row_exp_sum(int64_t n, const T* x, elem_t<T> m, elem_t<T>* e) {
  using V = vec_t<T>;
  constexpr int L = Lanes<V>::n;
  const V shift = splat<V>(m);
  V sum[2] = {V{}, V{}};
  int64_t i = 0;
  for (; i + 2 * L <= n; i += 2 * L)
#pragma GCC unroll 2
    for (int u = 0; u < 2; u++) {
      const V v = exp(load(x + i + u * L) - shift);
      if (e) store(e + i + u * L, v);
      sum[u] += v;
    }
  for (; i < n; i += L) {
    const int64_t lanes = n - i < L ? n - i : L;
    const V v = exp(get(x + i, lanes) - shift);
    if (e) put(e + i, v, lanes);
    sum[0] += first_lanes(v, lanes, 0);
  }
  return sum_lanes(sum[0] + sum[1]);
}

template <class T>
void rows(int64_t rows, int64_t n, const void* input, void* output, void* scratch, bool log) {
  using V = vec_t<T>;
  using E = elem_t<T>;
  const T* x = static_cast<const T*>(input);
  T* y = static_cast<T*>(output);
  for (int64_t r = 0; r < rows; r++, x += n, y += n) {
    const E m = row_max(n, x);
    if (log) {
      const V shift = splat<V>(m), total = splat<V>(log_of(row_exp_sum(n, x, m, static_cast<E*>(nullptr))));
      for_vectors<Lanes<V>::n>(n, [&](int64_t i, int64_t lanes) { put(y + i, get(x + i, lanes) - shift - total, lanes); });
    } else {
      E* e = IsHalf<T>::value ? static_cast<E*>(scratch) : reinterpret_cast<E*>(y);
      const V scale = splat<V>(1 / row_exp_sum(n, x, m, e));
      for_vectors<Lanes<V>::n>(n, [&](int64_t i, int64_t lanes) { put(y + i, get(e + i, lanes) * scale, lanes); });
    }
  }
}

// U vectors of columns at once; `lanes` of them in each (less than a vector's only if U is 1).
template <class T, int U>
void column_block(int64_t n, int64_t inner, int64_t lanes, const T* x, T* y, bool log) {
  using V = vec_t<T>;
  using E = elem_t<T>;
  constexpr int L = Lanes<V>::n;
  V m[U], sum[U];
#pragma GCC unroll 4
  for (int u = 0; u < U; u++) m[u] = splat<V>(static_cast<E>(-__builtin_inf())), sum[u] = V{};
  for (int64_t k = 0; k < n * inner; k += inner)
#pragma GCC unroll 4
    for (int u = 0; u < U; u++) m[u] = max(get(x + k + u * L, lanes), m[u]);
  for (int64_t k = 0; k < n * inner; k += inner)
#pragma GCC unroll 4
    for (int u = 0; u < U; u++) {
      const V e = exp(get(x + k + u * L, lanes) - m[u]);
      sum[u] += e;
      if (!log && !IsHalf<T>::value) put(y + k + u * L, e, lanes);
    }
  for (int u = 0; u < U; u++)
    for (int i = 0; i < L; i++) sum[u][i] = log ? log_of(sum[u][i]) : 1 / sum[u][i];
  for (int64_t k = 0; k < n * inner; k += inner)
#pragma GCC unroll 4
    for (int u = 0; u < U; u++) {
      const T* at = x + k + u * L;
      T* to = y + k + u * L;
      if (log)
        put(to, get(at, lanes) - m[u] - sum[u], lanes);
      else
        put(to, sum[u] * (IsHalf<T>::value ? exp(get(at, lanes) - m[u]) : get(to, lanes)), lanes);
    }
}

template <class T>
void columns(int64_t n, int64_t inner, int64_t begin, int64_t end, const void* input, void* output, bool log) {
  constexpr int64_t L = Lanes<vec_t<T>>::n;
  const T* x = static_cast<const T*>(input);
  T* y = static_cast<T*>(output);
  int64_t j = begin;
  for (; j + 4 * L <= end; j += 4 * L) column_block<T, 4>(n, inner, L, x + j, y + j, log);
  for (; j < end; j += L) column_block<T, 1>(n, inner, end - j < L ? end - j : L, x + j, y + j, log);
}

template <class T>
void rows_backward(int64_t rows, int64_t n, const void* grad, const void* result, void* input_grad, bool log) {
  using V = vec_t<T>;
  constexpr int L = Lanes<V>::n;
  const T* g = static_cast<const T*>(grad);
  const T* y = static_cast<const T*>(result);
  T* dx = static_cast<T*>(input_grad);
  for (int64_t r = 0; r < rows; r++, g += n, y += n, dx += n) {
    V sum[2] = {V{}, V{}};
    int64_t i = 0;
    for (; i + 2 * L <= n; i += 2 * L)
#pragma GCC unroll 2
      for (int u = 0; u < 2; u++) sum[u] = log ? sum[u] + load(g + i + u * L) : fma(load(g + i + u * L), load(y + i + u * L), sum[u]);
    for (; i < n; i += L) {
      const int64_t lanes = n - i < L ? n - i : L;
      const V v = get(g + i, lanes);  // zeros in the unused lanes
      sum[0] += log ? v : v * get(y + i, lanes);
    }
    const V s = splat<V>(sum_lanes(sum[0] + sum[1]));
    for_vectors<L>(n, [&](int64_t k, int64_t lanes) {
      const V a = get(g + k, lanes), b = get(y + k, lanes);
      put(dx + k, log ? a - exp(b) * s : b * (a - s), lanes);
    });
  }
}

template <class T, int U>
void column_block_backward(int64_t n, int64_t inner, int64_t lanes, const T* g, const T* y, T* dx, bool log) {
  using V = vec_t<T>;
  constexpr int L = Lanes<V>::n;
  V s[U];
#pragma GCC unroll 4
  for (int u = 0; u < U; u++) s[u] = V{};
  for (int64_t k = 0; k < n * inner; k += inner)
#pragma GCC unroll 4
    for (int u = 0; u < U; u++) s[u] = log ? s[u] + get(g + k + u * L, lanes) : fma(get(g + k + u * L, lanes), get(y + k + u * L, lanes), s[u]);
  for (int64_t k = 0; k < n * inner; k += inner)
#pragma GCC unroll 4
    for (int u = 0; u < U; u++) {
      const V a = get(g + k + u * L, lanes), b = get(y + k + u * L, lanes);
      put(dx + k + u * L, log ? a - exp(b) * s[u] : b * (a - s[u]), lanes);
    }
}

template <class T>
void columns_backward(int64_t n, int64_t inner, int64_t begin, int64_t end, const void* grad, const void* result, void* input_grad, bool log) {
  constexpr int64_t L = Lanes<vec_t<T>>::n;
  const T* g = static_cast<const T*>(grad);
  const T* y = static_cast<const T*>(result);
  T* dx = static_cast<T*>(input_grad);
  int64_t j = begin;
  for (; j + 4 * L <= end; j += 4 * L) column_block_backward<T, 4>(n, inner, L, g + j, y + j, dx + j, log);
  for (; j < end; j += L) column_block_backward<T, 1>(n, inner, end - j < L ? end - j : L, g + j, y + j, dx + j, log);
}

template <class T>
inline constexpr SoftmaxLoops loops = {rows<T>, columns<T>, rows_backward<T>, columns_backward<T>};

}  // namespace

const SoftmaxKernels softmax_kernels = {loops<float>, loops<double>, loops<bf16>, loops<f16>};

}  // namespace argand::kernels::cpu::ARGAND_TIER_NS
