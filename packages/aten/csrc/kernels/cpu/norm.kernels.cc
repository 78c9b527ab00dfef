#include "packages/aten/csrc/kernels/cpu/norm.h"
#include "packages/aten/csrc/kernels/cpu/simd.h"

namespace argand::kernels::cpu::ARGAND_TIER_NS {
namespace {

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

// Adds f(i, lanes) over [0, n); four accumulators. Unused lanes of the last call are cleared.
template <class V, class F>
ARGAND_INLINE typename Lanes<V>::elem accumulate(int64_t n, F&& f) {
  constexpr int L = Lanes<V>::n;
  V acc[4] = {V{}, V{}, V{}, V{}};
  int64_t i = 0;
  for (; i + 4 * L <= n; i += 4 * L)
#pragma GCC unroll 4
    for (int u = 0; u < 4; u++) acc[u] += f(i + u * L, L);
  for (; i + L <= n; i += L) acc[0] += f(i, L);
  if (i < n) acc[1] += first_lanes(f(i, n - i), n - i, 0);
  return sum_lanes((acc[0] + acc[1]) + (acc[2] + acc[3]));
}
template <class V, class F>
ARGAND_INLINE void for_vectors(int64_t n, F&& f) {
  constexpr int L = Lanes<V>::n;
  int64_t i = 0;
  for (; i + L <= n; i += L) f(i, static_cast<int64_t>(L));
  if (i < n) f(i, n - i);
}

// Long runs are summed in blocks, whose sums are added in double.
constexpr int64_t kSumBlock = 8192;

template <class T>
elem_t<T> sum(int64_t n, const void* data) {
  const T* x = static_cast<const T*>(data);
  double total = 0;
  for (int64_t at = 0; at < n; at += kSumBlock)
    total += accumulate<vec_t<T>>(n - at < kSumBlock ? n - at : kSumBlock, [&](int64_t i, int64_t lanes) { return get(x + at + i, lanes); });
  return static_cast<elem_t<T>>(total);
}

template <class T>
elem_t<T> squares(int64_t n, const void* data, elem_t<T> mean) {
  const T* x = static_cast<const T*>(data);
  const vec_t<T> m = splat<vec_t<T>>(mean);
  double total = 0;
  for (int64_t at = 0; at < n; at += kSumBlock)
    total += accumulate<vec_t<T>>(n - at < kSumBlock ? n - at : kSumBlock, [&](int64_t i, int64_t lanes) {
      const vec_t<T> d = get(x + at + i, lanes) - m;
      return d * d;
    });
  return static_cast<elem_t<T>>(total);
}

template <class T>
void apply(int64_t n, const void* input, void* output, elem_t<T> mean, elem_t<T> scale, const elem_t<T>* w, const elem_t<T>* b) {
  using V = vec_t<T>;
  const T* x = static_cast<const T*>(input);
  T* y = static_cast<T*>(output);
  const V m = splat<V>(mean), s = splat<V>(scale);
  for_vectors<V>(n, [&](int64_t i, int64_t lanes) {
    V v = (get(x + i, lanes) - m) * s;
    if (w) v = v * get(w + i, lanes);
    if (b) v = v + get(b + i, lanes);
    put(y + i, v, lanes);
  });
}

template <class T>
void apply_scalar(int64_t n, const void* input, void* output, elem_t<T> mean, elem_t<T> scale, elem_t<T> shift) {
  using V = vec_t<T>;
  const T* x = static_cast<const T*>(input);
  T* y = static_cast<T*>(output);
  const V m = splat<V>(mean), s = splat<V>(scale), t = splat<V>(shift);
  for_vectors<V>(n, [&](int64_t i, int64_t lanes) { put(y + i, fma(get(x + i, lanes) - m, s, t), lanes); });
}

template <class T>
void row_backward(int64_t n, const void* grad, const void* input, elem_t<T> mean, elem_t<T> rstd, const elem_t<T>* w, bool centered, void* input_grad,
                  elem_t<T>* dw, elem_t<T>* db) {
  using V = vec_t<T>;
  using E = elem_t<T>;
  const T* dy = static_cast<const T*>(grad);
  const T* x = static_cast<const T*>(input);
  T* dx = static_cast<T*>(input_grad);
  const V m = splat<V>(mean), r = splat<V>(rstd);
  if (dx) {
    V s1 = V{}, s2 = V{};
    for_vectors<V>(n, [&](int64_t i, int64_t lanes) {  // unused lanes of dy are zero
      const V g = w ? get(dy + i, lanes) * get(w + i, lanes) : get(dy + i, lanes);
      s1 += g;
      s2 = fma(g, (get(x + i, lanes) - m) * r, s2);
    });
    const E count = static_cast<E>(n);
    const V a = splat<V>(centered ? sum_lanes(s1) / count : 0), b = splat<V>(sum_lanes(s2) / count);
    for_vectors<V>(n, [&](int64_t i, int64_t lanes) {
      const V d = get(dy + i, lanes), g = w ? d * get(w + i, lanes) : d, h = (get(x + i, lanes) - m) * r;
      put(dx + i, (g - a - h * b) * r, lanes);
      if (dw) put(dw + i, fma(d, h, get(dw + i, lanes)), lanes);
      if (db) put(db + i, get(db + i, lanes) + d, lanes);
    });
    return;
  }
  for_vectors<V>(n, [&](int64_t i, int64_t lanes) {
    const V d = get(dy + i, lanes);
    if (dw) put(dw + i, fma(d, (get(x + i, lanes) - m) * r, get(dw + i, lanes)), lanes);
    if (db) put(db + i, get(db + i, lanes) + d, lanes);
  });
}

template <class T>
void sums(int64_t n, const void* grad, const void* input, elem_t<T> mean, elem_t<T>* sum_dy, elem_t<T>* sum_dy_x) {
  using V = vec_t<T>;
  const T* dy = static_cast<const T*>(grad);
  const T* x = static_cast<const T*>(input);
  const V m = splat<V>(mean);
  double a = 0, b = 0;
  for (int64_t at = 0; at < n; at += kSumBlock) {
    const int64_t size = n - at < kSumBlock ? n - at : kSumBlock;
    a += accumulate<V>(size, [&](int64_t i, int64_t lanes) { return get(dy + at + i, lanes); });
    b += accumulate<V>(size, [&](int64_t i, int64_t lanes) { return get(dy + at + i, lanes) * (get(x + at + i, lanes) - m); });
  }
  *sum_dy = static_cast<elem_t<T>>(a);
  *sum_dy_x = static_cast<elem_t<T>>(b);
}

template <class T>
void combine(int64_t n, const void* grad, const void* input, void* input_grad, elem_t<T> mean, elem_t<T> a, elem_t<T> b, elem_t<T> c) {
  using V = vec_t<T>;
  const T* dy = static_cast<const T*>(grad);
  const T* x = static_cast<const T*>(input);
  T* dx = static_cast<T*>(input_grad);
  const V m = splat<V>(mean), va = splat<V>(a), vb = splat<V>(b), vc = splat<V>(c);
  for_vectors<V>(n, [&](int64_t i, int64_t lanes) { put(dx + i, fma(get(dy + i, lanes), va, fma(get(x + i, lanes) - m, vb, vc)), lanes); });
}

template <class T>
inline constexpr NormLoops<elem_t<T>> loops = {sum<T>, squares<T>, apply<T>, apply_scalar<T>, row_backward<T>, sums<T>, combine<T>};

}  // namespace

const NormKernels norm_kernels = {loops<float>, loops<bf16>, loops<f16>, loops<double>};

}  // namespace argand::kernels::cpu::ARGAND_TIER_NS
