#include "packages/aten/csrc/kernels/cpu/grid_sample.h"

#include "packages/aten/csrc/kernels/cpu/simd.h"

namespace argand::kernels::cpu::ARGAND_TIER_NS {
namespace {

constexpr int B = kGridBlock;
#define ARGAND_LOOPS __attribute__((optimize("O3", "no-trapping-math", "no-math-errno")))

ARGAND_INLINE float rounded(float x) { return __builtin_rintf(x); }
ARGAND_INLINE double rounded(double x) { return __builtin_rint(x); }
ARGAND_INLINE float floored(float x) { return __builtin_floorf(x); }
ARGAND_INLINE double floored(double x) { return __builtin_floor(x); }
ARGAND_INLINE float rest_of(float x, float y) { return __builtin_fmodf(x, y); }
ARGAND_INLINE double rest_of(double x, double y) { return __builtin_fmod(x, y); }

// Places outside of [0, size) moved inside; NaN to 0.
template <class E>
ARGAND_LOOPS void clamp_inside(int64_t n, E last, E* x) {
  for (int64_t i = 0; i < n; i++) {
    const E v = x[i] > 0 ? x[i] : E(0);
    x[i] = v < last ? v : last;
  }
}
template <class E>
void reflect(int64_t n, E size, bool align_corners, E* x) {
  const E low = align_corners ? E(0) : E(-0.5), span = align_corners ? size - 1 : size;
  for (int64_t i = 0; i < n; i++) {
    const E distance = x[i] < low ? low - x[i] : x[i] - low, rest = rest_of(distance, span), turns = floored(distance / span);
    const bool odd = turns - 2 * floored(turns / 2) == 1;
    x[i] = span == 0 ? E(0) : (odd ? span - rest : rest) + low;
  }
}
template <class E>
void move_inside(int64_t n, E size, int padding, bool align_corners, E* x) {
  if (padding == 2) reflect(n, size, align_corners, x);
  if (padding) clamp_inside(n, size - 1, x);
}

// The cubic convolution kernel with a = -3/4 at a distance up to 1, and from 1 to 2.
template <class E>
ARGAND_INLINE E cubic_near(E x) {
  return (E(1.25) * x - E(2.25)) * x * x + 1;
}
template <class E>
ARGAND_INLINE E cubic_far(E x) {
  return ((E(-0.75) * x + E(3.75)) * x - 6) * x + 3;
}

// The taps of one direction: their elements, -1 for none, and their weights.
template <class E>
ARGAND_LOOPS void find(int64_t n, E size, E* at, const E* weight, int32_t* index) {
  for (int64_t i = 0; i < n; i++) {
    const bool inside = at[i] >= 0 && at[i] < size, unknown = weight[i] != weight[i];  // NaN weights show
    index[i] = static_cast<int32_t>(inside ? at[i] : unknown ? E(0) : E(-1));
  }
}
template <class E>
ARGAND_LOOPS void direction(int64_t n, const E* grid, int64_t length, int along, int padding, bool align_corners, int32_t (*index)[B],
                            E (*weight)[B]) {
  const E size = static_cast<E>(length), scale = (size - 1) / 2;
  E x[B], at[4][B];
  for (int64_t i = 0; i < n; i++) {
    const E place = grid[2 * i] + 1;
    x[i] = align_corners ? place * scale : (place * size - 1) / 2;
  }
  if (along < 4) move_inside(n, size, padding, align_corners, x);
  if (along == 1) {
    for (int64_t i = 0; i < n; i++) at[0][i] = rounded(x[i]), weight[0][i] = 1;
  } else if (along == 2) {
    for (int64_t i = 0; i < n; i++) {
      const E low = floored(x[i]), t = x[i] - low;
      at[0][i] = low, at[1][i] = low + 1;
      weight[0][i] = 1 - t, weight[1][i] = t;
    }
  } else {
    for (int64_t i = 0; i < n; i++) {
      const E low = floored(x[i]), t = x[i] - low;
      at[0][i] = low - 1, at[1][i] = low, at[2][i] = low + 1, at[3][i] = low + 2;
      weight[0][i] = cubic_far(t + 1), weight[1][i] = cubic_near(t), weight[2][i] = cubic_near(1 - t), weight[3][i] = cubic_far(2 - t);
    }
    for (int k = 0; k < 4; k++) move_inside(n, size, padding, align_corners, at[k]);
  }
  for (int k = 0; k < along; k++) find(n, size, at[k], weight[k], index[k]);
}

// Taps of a place that lie side by side are read as one: at[row * B + place] is the left one of a row, and the weights of both follow each other. The
// weight -0 marks what is no element; no other weight is -0.
template <class E>
ARGAND_LOOPS void pairs(int64_t n, int32_t width, const int32_t (*column)[B], const E (*wx)[B], const int32_t (*row)[B], const E (*wy)[B],
                        int32_t* at, E* weights) {
  int32_t start[B], whole[2][B];
  E part[2][B];
  for (int64_t i = 0; i < n; i++) {
    const int32_t c0 = column[0][i], c1 = column[1][i];
    start[i] = c1 < 0 ? (c0 < 1 ? 0 : c0 - 1) : c0 < 0 ? 0 : c0;
    part[0][i] = c0 < 0 ? wx[1][i] : wx[0][i], part[1][i] = c1 < 0 ? wx[0][i] : wx[1][i];
    whole[0][i] = c1 < 0 ? -1 : 0, whole[1][i] = c0 < 0 ? -1 : 0;  // -1: there is none
  }
  for (int ky = 0; ky < 2; ky++, at += B, weights += 2 * B)
    for (int64_t i = 0; i < n; i++) {
      const int32_t r = row[ky][i];
      at[i] = r < 0 ? 0 : r * width + start[i];
      weights[2 * i] = (r | whole[0][i]) < 0 ? E(-0.0) : wy[ky][i] * part[0][i];
      weights[2 * i + 1] = (r | whole[1][i]) < 0 ? E(-0.0) : wy[ky][i] * part[1][i];
    }
}

template <class E>
ARGAND_LOOPS void taps(int64_t n, const E* grid, int64_t h, int64_t w, int along, int padding, bool align_corners, int32_t* at, E* weights) {
  int32_t column[4][B], row[4][B];
  E wx[4][B], wy[4][B];
  direction(n, grid, w, along, padding, align_corners, column, wx);
  direction(n, grid + 1, h, along, padding, align_corners, row, wy);
  const auto width = static_cast<int32_t>(w);
  if (along == 2 && w > 1) return pairs(n, width, column, wx, row, wy, at, weights);
  for (int ky = 0; ky < along; ky++)
    for (int kx = 0; kx < along; kx++, at += B, weights += B)
      for (int64_t i = 0; i < n; i++) {
        const bool none = (row[ky][i] | column[kx][i]) < 0;
        at[i] = none ? 0 : row[ky][i] * width + column[kx][i];
        weights[i] = none ? E(-0.0) : wy[ky][i] * wx[kx][i] + E(0);  // -0 + 0 is 0
      }
}

// Elements at p[at[i]], or at p[at[i]] and the place after it: loads one by one, which take less time than gathering instructions.
template <class E>
ARGAND_INLINE vec_t<E> gather(const E* p, const int32_t* at) {
  vec_t<E> v{};
#pragma GCC unroll 16
  for (int i = 0; i < Lanes<vec_t<E>>::n; i++) v[i] = p[at[i]];
  return v;
}
template <class E>
ARGAND_INLINE vec_t<E> gather_pairs(const E* p, const int32_t* at) {
#if ARGAND_TIER_LEVEL == 2
  if constexpr (sizeof(E) == 4) {
    typedef double Pairs __attribute__((vector_size(64)));
    const auto pair = [&](int i) {
      double two;
      __builtin_memcpy(&two, p + at[i], 8);
      return two;
    };
    return reinterpret_cast<vec_t<E>>(Pairs{pair(0), pair(1), pair(2), pair(3), pair(4), pair(5), pair(6), pair(7)});
  }
#endif
  vec_t<E> v{};
#pragma GCC unroll 16
  for (int i = 0; i < Lanes<vec_t<E>>::n; i++) v[i] = p[at[i / 2] + i % 2];
  return v;
}

// sum + weight * value, of values that are elements.
template <class V>
ARGAND_INLINE V add_product(V weight, V value, V sum) {
  using Bits = decltype(weight == weight);
  const auto none = reinterpret_cast<Bits>(weight) == reinterpret_cast<Bits>(-V{});
  return fma(weight, none ? V{} : value, sum);
}

template <class E>
void sums(int64_t n, int along, const int32_t* at, const E* weights, const E* plane, E* out) {
  using V = vec_t<E>;
  constexpr int64_t L = Lanes<V>::n;
  for (int64_t i = 0; i < n; i += L) {
    V sum{};
    for (int t = 0; t < along * along; t++) sum = add_product<V>(load(weights + t * B + i), gather(plane, at + t * B + i), sum);
    store_n(out + i, sum, n - i < L ? n - i : L);
  }
}

template <class E>
void pair_sums(int64_t n, const int32_t* at, const E* weights, const E* plane, E* out) {
  using V = vec_t<E>;
  constexpr int L = Lanes<V>::n;
  decltype(V{} == V{}) left, right;
  for (int i = 0; i < L; i++) left[i] = 2 * i, right[i] = 2 * i + 1;
  for (int64_t i = 0; i < n; i += L) {
    V sum[2] = {};
    for (int half = 0; half < 2; half++)
      for (int row = 0; row < 2; row++) {
        const int64_t place = row * B + i + half * L / 2;
        sum[half] = add_product<V>(load(weights + 2 * place), gather_pairs(plane, at + place), sum[half]);
      }
    store_n(out + i, __builtin_shuffle(sum[0], sum[1], left) + __builtin_shuffle(sum[0], sum[1], right), n - i < L ? n - i : L);
  }
}

}  // namespace

const GridKernels grid_kernels = {{taps<float>, sums<float>, pair_sums<float>}, {taps<double>, sums<double>, pair_sums<double>}};

}  // namespace argand::kernels::cpu::ARGAND_TIER_NS
