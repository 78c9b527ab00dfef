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

// Places outside of [0, size) moved inside; NaN to 0. If given, `turn` is multiplied by the derivative, which is none at the edges.
template <class E>
ARGAND_LOOPS void clamp_inside(int64_t n, E last, E* x, E* turn) {
  for (int64_t i = 0; turn && i < n; i++) turn[i] = x[i] > 0 && x[i] < last ? turn[i] : E(0);
  for (int64_t i = 0; i < n; i++) {
    const E v = x[i] > 0 ? x[i] : E(0);
    x[i] = v < last ? v : last;
  }
}
template <class E>
ARGAND_LOOPS void reflect(int64_t n, E size, bool align_corners, E* x, E* turn) {
  constexpr E kExact = 1 << 22;  // below, remainders by whole numbers need no rounding
  const E low = align_corners ? E(0) : E(-0.5), span = align_corners ? size - 1 : size;
  if (span == 0) return static_cast<void>(__builtin_memset(x, 0, static_cast<size_t>(n) * sizeof(E)));
  E distance[B], rest[B], turns[B], sign[B];
  for (int64_t i = 0; i < n; i++) {
    sign[i] = x[i] < low ? E(-1) : E(1);
    distance[i] = sign[i] * (x[i] - low);
    const E guess = floored(distance[i] / span), left = distance[i] - guess * span;
    turns[i] = left < 0 ? guess - 1 : left >= span ? guess + 1 : guess;
    rest[i] = distance[i] - turns[i] * span;
  }
  for (int64_t i = 0; i < n; i++)
    if (!(distance[i] < kExact)) rest[i] = rest_of(distance[i], span), turns[i] = floored(distance[i] / span);
  for (int64_t i = 0; i < n; i++) {
    const bool odd = turns[i] - 2 * floored(turns[i] / 2) == 1;
    x[i] = (odd ? span - rest[i] : rest[i]) + low;
    if (odd) sign[i] = -sign[i];
  }
  for (int64_t i = 0; turn && i < n; i++) turn[i] *= sign[i];
}
template <class E>
void move_inside(int64_t n, E size, int padding, bool align_corners, E* x, E* turn) {
  if (padding == 2) reflect(n, size, align_corners, x, turn);
  if (padding) clamp_inside(n, size - 1, x, turn);
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

template <class E>
ARGAND_INLINE E cubic_near_slope(E x) {
  return (E(3.75) * x - E(4.5)) * x;
}
template <class E>
ARGAND_INLINE E cubic_far_slope(E x) {
  return (E(-2.25) * x + E(7.5)) * x - 6;
}

// The taps of one direction: their elements, -1 for none, their weights and, if wanted, the weights' derivatives by the grid's number.
template <class E>
ARGAND_LOOPS void find(int64_t n, E size, const E* at, const E* weight, int32_t* index) {
  for (int64_t i = 0; i < n; i++) {
    const bool inside = at[i] >= 0 && at[i] < size, unknown = weight[i] != weight[i];  // NaN weights show
    index[i] = static_cast<int32_t>(inside ? at[i] : unknown ? E(0) : E(-1));
  }
}
template <class E>
ARGAND_LOOPS void direction(int64_t n, const E* grid, int64_t length, int along, int padding, bool align_corners, int32_t (*index)[B], E (*weight)[B],
                            E (*slope)[B]) {
  const E size = static_cast<E>(length), scale = (size - 1) / 2;
  E x[B], turn[B], at[4][B];
  for (int64_t i = 0; i < n; i++) {
    const E place = grid[2 * i] + 1;
    x[i] = align_corners ? place * scale : (place * size - 1) / 2;
    turn[i] = align_corners ? scale : size / 2;
  }
  if (along < 4) move_inside(n, size, padding, align_corners, x, slope ? turn : nullptr);
  if (along == 1) {
    for (int64_t i = 0; i < n; i++) at[0][i] = rounded(x[i]), weight[0][i] = 1;
    for (int64_t i = 0; slope && i < n; i++) slope[0][i] = 0;
  } else if (along == 2) {
    for (int64_t i = 0; i < n; i++) {
      const E low = floored(x[i]), t = x[i] - low;
      at[0][i] = low, at[1][i] = low + 1;
      weight[0][i] = 1 - t, weight[1][i] = t;
    }
    for (int64_t i = 0; slope && i < n; i++) slope[0][i] = -turn[i], slope[1][i] = turn[i];
  } else {
    for (int64_t i = 0; i < n; i++) {
      const E low = floored(x[i]), t = x[i] - low;
      at[0][i] = low - 1, at[1][i] = low, at[2][i] = low + 1, at[3][i] = low + 2;
      weight[0][i] = cubic_far(t + 1), weight[1][i] = cubic_near(t), weight[2][i] = cubic_near(1 - t), weight[3][i] = cubic_far(2 - t);
      x[i] = t;
    }
    for (int64_t i = 0; slope && i < n; i++) {
      const E t = x[i];
      slope[0][i] = turn[i] * cubic_far_slope(t + 1), slope[1][i] = turn[i] * cubic_near_slope(t);
      slope[2][i] = -turn[i] * cubic_near_slope(1 - t), slope[3][i] = -turn[i] * cubic_far_slope(2 - t);
    }
    for (int k = 0; k < 4; k++) move_inside<E>(n, size, padding, align_corners, at[k], nullptr);
  }
  for (int k = 0; k < along; k++) find(n, size, at[k], weight[k], index[k]);
}

// Taps of a place that lie side by side are read as one: at[row * B + place] is the left one of a row, and the weights of both follow each other. The
// weight -0 marks what is no element; no other weight is -0, and NaN shows wherever the place is.
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
      const E left = wy[ky][i] * part[0][i], right = wy[ky][i] * part[1][i];
      weights[2 * i] = (r | whole[0][i]) < 0 && left == left ? E(-0.0) : left;
      weights[2 * i + 1] = (r | whole[1][i]) < 0 && right == right ? E(-0.0) : right;
    }
}

// One tap of each place.
template <class E>
ARGAND_LOOPS void join(int64_t n, int32_t width, const int32_t* row, const int32_t* column, const E* wy, const E* wx, int32_t* at, E* weights) {
  for (int64_t i = 0; i < n; i++) {
    const bool none = (row[i] | column[i]) < 0;
    at[i] = none ? 0 : row[i] * width + column[i];
    const E weight = wy[i] * wx[i] + E(0);  // -0 + 0 is 0
    weights[i] = none && weight == weight ? E(-0.0) : weight;
  }
}

template <class E>
ARGAND_LOOPS void taps(int64_t n, const E* grid, int64_t h, int64_t w, int along, int padding, bool align_corners, int32_t* at, E* weights) {
  int32_t column[4][B], row[4][B];
  E wx[4][B], wy[4][B];
  direction<E>(n, grid, w, along, padding, align_corners, column, wx, nullptr);
  direction<E>(n, grid + 1, h, along, padding, align_corners, row, wy, nullptr);
  const auto width = static_cast<int32_t>(w);
  if (along == 2 && w > 1) return pairs(n, width, column, wx, row, wy, at, weights);
  for (int ky = 0; ky < along; ky++)
    for (int kx = 0; kx < along; kx++, at += B, weights += B) join(n, width, row[ky], column[kx], wy[ky], wx[kx], at, weights);
}

template <class E>
ARGAND_LOOPS void slopes(int64_t n, const E* grid, int64_t h, int64_t w, int along, int padding, bool align_corners, int32_t* at, E* weights, E* by_x,
                         E* by_y) {
  int32_t column[4][B], row[4][B];
  E wx[4][B], wy[4][B], sx[4][B], sy[4][B];
  direction(n, grid, w, along, padding, align_corners, column, wx, sx);
  direction(n, grid + 1, h, along, padding, align_corners, row, wy, sy);
  const auto width = static_cast<int32_t>(w);
  for (int ky = 0; ky < along; ky++)
    for (int kx = 0; kx < along; kx++, at += B, weights += B, by_x += B, by_y += B) {
      join(n, width, row[ky], column[kx], wy[ky], wx[kx], at, weights);
      join(n, width, row[ky], column[kx], wy[ky], sx[kx], at, by_x);
      join(n, width, row[ky], column[kx], sy[ky], wx[kx], at, by_y);
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

template <class E>
void place_gradients(int64_t n, int along, const int32_t* at, const E* by_x, const E* by_y, const E* plane, const E* grad, E* gx, E* gy) {
  using V = vec_t<E>;
  constexpr int64_t L = Lanes<V>::n;
  for (int64_t i = 0; i < n; i += L) {
    V sx{}, sy{};
    for (int t = 0; t < along * along; t++) {
      const V value = gather(plane, at + t * B + i);
      sx = add_product<V>(load(by_x + t * B + i), value, sx), sy = add_product<V>(load(by_y + t * B + i), value, sy);
    }
    const V g = load_n(grad + i, n - i < L ? n - i : L);
    store(gx + i, fma(g, sx, load(gx + i))), store(gy + i, fma(g, sy, load(gy + i)));
  }
}

ARGAND_INLINE int32_t lane_bits(float x) { return __builtin_bit_cast(int32_t, x); }
ARGAND_INLINE int64_t lane_bits(double x) { return __builtin_bit_cast(int64_t, x); }

// Places that are NaN show in what is read; written to, they are no elements.
template <class E>
void scatter(int64_t n, int along, const int32_t* at, const E* weights, const E* grad, E* plane) {
  for (int t = 0; t < along * along; t++)
    for (int64_t i = 0; i < n; i++)
      if (const E w = weights[t * B + i]; lane_bits(w) != lane_bits(E(-0.0)) && w == w) plane[at[t * B + i]] += w * grad[i];
}

}  // namespace

template <class E>
constexpr GridLoops<E> loops = {taps<E>, sums<E>, pair_sums<E>, slopes<E>, place_gradients<E>, scatter<E>};

const GridKernels grid_kernels = {loops<float>, loops<double>};

}  // namespace argand::kernels::cpu::ARGAND_TIER_NS
