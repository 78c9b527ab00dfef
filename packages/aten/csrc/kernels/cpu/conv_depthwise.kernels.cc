#include <utility>

#include "packages/aten/csrc/kernels/cpu/conv_depthwise.h"
#include "packages/aten/csrc/kernels/cpu/simd.h"

namespace argand::kernels::cpu::ARGAND_TIER_NS {
namespace {

// The places of x[i] (`low`) and x[i + S] after an exchange of blocks of S lanes between the two.
template <class M, int S, int... J>
ARGAND_INLINE M exchanged(bool low, std::integer_sequence<int, J...>) {
  constexpr int L = sizeof...(J);
  return low ? M{((J & S) ? L + J - S : J)...} : M{((J & S) ? L + J : J + S)...};
}
template <int S, class V>
ARGAND_INLINE void exchange(V* x) {
  constexpr int L = Lanes<V>::n;
  using M = decltype(V{} < V{});
  const M low = exchanged<M, S>(true, std::make_integer_sequence<int, L>()), high = exchanged<M, S>(false, std::make_integer_sequence<int, L>());
#pragma GCC unroll 16
  for (int i = 0; i < L; i++) {
    if (i & S) continue;
    const V u = x[i], v = x[i + S];
    x[i] = __builtin_shuffle(u, v, low);
    x[i + S] = __builtin_shuffle(u, v, high);
  }
  if constexpr (S > 1) exchange<S / 2>(x);
}

template <class T>
void load_tile(const T* from, int64_t channel, int64_t pixel, int64_t channels, int64_t n, elem_t<T>* to) {
  using V = vec_t<T>;
  constexpr int L = Lanes<V>::n;
  if (channel == 1) {
    for (int64_t p = 0; p < n; p++) store(to + p * L, channels == L ? load(from + p * pixel) : load_n(from + p * pixel, channels));
    return;
  }
  for (int64_t p = 0; p < n; p += L) {
    const int64_t count = n - p < L ? n - p : L;
    V x[L];
#pragma GCC unroll 16
    for (int l = 0; l < L; l++) x[l] = l >= channels ? V{} : count == L ? load(from + l * channel + p) : load_n(from + l * channel + p, count);
    exchange<L / 2>(x);
    if (count == L) {
#pragma GCC unroll 16
      for (int i = 0; i < L; i++) store(to + (p + i) * L, x[i]);
    } else {
#pragma GCC unroll 16
      for (int i = 0; i < L; i++)
        if (i < count) store(to + (p + i) * L, x[i]);
    }
  }
}

template <class T>
void store_tile(const elem_t<T>* from, int64_t channel, int64_t pixel, int64_t channels, int64_t n, T* to) {
  using V = vec_t<T>;
  constexpr int L = Lanes<V>::n;
  if (channel == 1) {
    for (int64_t p = 0; p < n; p++) {
      if (channels == L)
        store(to + p * pixel, load(from + p * L));
      else
        store_n(to + p * pixel, load(from + p * L), channels);
    }
    return;
  }
  for (int64_t p = 0; p < n; p += L) {
    const int64_t count = n - p < L ? n - p : L;
    V x[L];
#pragma GCC unroll 16
    for (int i = 0; i < L; i++) x[i] = i < count ? load(from + (p + i) * L) : V{};
    exchange<L / 2>(x);
#pragma GCC unroll 16
    for (int l = 0; l < L; l++) {
      if (l >= channels) continue;
      if (count == L)
        store(to + l * channel + p, x[l]);
      else
        store_n(to + l * channel + p, x[l], count);
    }
  }
}

template <class V, int NR, class E>
ARGAND_INLINE void pixels(int64_t kh, int64_t kw, const E* w, const E* base, int64_t row, int64_t column, int64_t step, V bias, E* c) {
  constexpr int L = Lanes<V>::n;
  V acc[NR];
#pragma GCC unroll 8
  for (int r = 0; r < NR; r++) acc[r] = bias;
  for (int64_t i = 0; i < kh; i++, base += row) {
    const E* from = base;
    for (int64_t j = 0; j < kw; j++, w += L, from += column) {
      const V x = load(w);
#pragma GCC unroll 8
      for (int r = 0; r < NR; r++) acc[r] = fma(x, load(from + r * step), acc[r]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < NR; r++) store(c + r * L, acc[r]);
}

template <class E>
void row_of(int64_t kh, int64_t kw, const E* w, const E* base, int64_t row, int64_t column, int64_t step, int64_t n, const E* bias, E* c) {
  using V = vec_t<E>;
  constexpr int L = Lanes<V>::n;
  row *= L, column *= L, step *= L;
  const V b = load(bias);
  for (int64_t x = 0; x < n;) {
    const int64_t left = n - x, take = left >= 16 ? 8 : left > 8 ? (left + 1) / 2 : left;  // few accumulators would wait for each other
    const auto run = [&]<int NR>(std::integral_constant<int, NR>) { pixels<V, NR>(kh, kw, w, base + x * step, row, column, step, b, c + x * L); };
    switch (take) {
      case 8:
        run(std::integral_constant<int, 8>());
        break;
      case 7:
        run(std::integral_constant<int, 7>());
        break;
      case 6:
        run(std::integral_constant<int, 6>());
        break;
      case 5:
        run(std::integral_constant<int, 5>());
        break;
      case 4:
        run(std::integral_constant<int, 4>());
        break;
      case 3:
        run(std::integral_constant<int, 3>());
        break;
      case 2:
        run(std::integral_constant<int, 2>());
        break;
      default:
        run(std::integral_constant<int, 1>());
    }
    x += take;
  }
}

template <class T>
inline constexpr DepthwiseLoops<T, elem_t<T>> loops = {Lanes<vec_t<T>>::n, load_tile<T>, store_tile<T>, row_of<elem_t<T>>};

}  // namespace

const DepthwiseKernels depthwise_kernels = {loops<float>, loops<double>, loops<bf16>, loops<f16>};

}  // namespace argand::kernels::cpu::ARGAND_TIER_NS
