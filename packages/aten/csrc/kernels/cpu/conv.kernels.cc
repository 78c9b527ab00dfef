#include "packages/aten/csrc/kernels/cpu/conv.h"
#include "packages/aten/csrc/kernels/cpu/microkernel.h"

namespace argand::kernels::cpu::ARGAND_TIER_NS {
namespace {

// Scalars a(i, m) at p[m][i].
template <class E, int MR>
struct PointerScalars {
  const E* p[MR];
  ARGAND_INLINE E at(int64_t i, int m) const { return p[m][i]; }
};

// Scalars a(i, m) at p[places[i] + m * ms]. They may lie far apart, where no processor foresees them: those of the next MR rows are fetched.
template <class E, int MR>
struct PlacedScalars {
  const E* p;
  const int64_t* places;
  int64_t ms;
  ARGAND_INLINE E at(int64_t i, int m) const {
    if (m == 0) __builtin_prefetch(p + places[i] + (MR + i % MR) * ms, 0, 2);
    return p[places[i] + m * ms];
  }
};

template <class V, int MR, int NR, class A, class E>
void pixels(int64_t k, A w, const E* base, const int64_t* offsets, const E* bias, bool adds, E* c, int64_t ldc) {
  constexpr int L = Lanes<V>::n;
  V acc[MR][NR];
#pragma GCC unroll 8
  for (int m = 0; m < MR; m++)
#pragma GCC unroll 8
    for (int j = 0; j < NR; j++) acc[m][j] = adds ? load(c + m * ldc + j * L) : bias ? splat<V>(bias[m]) : V{};
  multiply<V, MR, NR, false>(k, w, OffsetRows<E>{base, offsets}, L, acc);
#pragma GCC unroll 8
  for (int m = 0; m < MR; m++)
#pragma GCC unroll 8
    for (int j = 0; j < NR; j++) store(c + m * ldc + j * L, acc[m][j]);
}

template <int MR, class A, class E>
void block_of(int64_t k, A w, const E* base, const int64_t* offsets, int64_t n, const E* bias, bool adds, E* c, int64_t ldc) {
  using V = vec_t<E>;
  constexpr int64_t L = Lanes<V>::n;
  constexpr int kWide = MR == 1 ? 8 : kBlockVectors;  // enough accumulators to hide the latency
  int64_t p = 0;
  for (; p + kWide * L <= n; p += kWide * L) {
    if (kWide == 3 && n - p == 4 * L) break;  // 2 + 2 rather than 3 + 1
    pixels<V, MR, kWide>(k, w, base + p, offsets, bias, adds, c + p, ldc);
  }
  for (; p + 2 * L <= n; p += 2 * L) pixels<V, MR, 2>(k, w, base + p, offsets, bias, adds, c + p, ldc);
  for (; p < n; p += L) pixels<V, MR, 1>(k, w, base + p, offsets, bias, adds, c + p, ldc);
}

template <int MR, class E>
void rows_of(int64_t k, const E* w, int64_t row, const int64_t* places, const E* base, const int64_t* offsets, int64_t n, const E* bias, bool adds,
             E* c, int64_t ldc) {
  if (places)
    block_of<MR>(k, PlacedScalars<E, MR>{w, places, row}, base, offsets, n, bias, adds, c, ldc);
  else
    block_of<MR>(k, PackedScalars<E, MR>{w}, base, offsets, n, bias, adds, c, ldc);
}

template <class E>
void block(int rows, int64_t k, const E* w, int64_t row, const int64_t* places, const E* base, const int64_t* offsets, int64_t n, const E* bias,
           bool adds, E* c, int64_t ldc) {
  switch (rows) {
    case kBlockRows:
      return rows_of<kBlockRows>(k, w, row, places, base, offsets, n, bias, adds, c, ldc);
#if ARGAND_TIER_LEVEL == 2
    case 4:
      return rows_of<4>(k, w, row, places, base, offsets, n, bias, adds, c, ldc);
#endif
    case 2:
      return rows_of<2>(k, w, row, places, base, offsets, n, bias, adds, c, ldc);
    default:
      return rows_of<1>(k, w, row, places, base, offsets, n, bias, adds, c, ldc);
  }
}

template <class V, int MR, int NR, class E>
void weights(const E* base, const int64_t* offsets, int64_t height, int64_t length, int64_t width, const E* g, int64_t ldg, E* acc_out, int64_t lda) {
  constexpr int L = Lanes<V>::n;
  V acc[MR][NR];
#pragma GCC unroll 8
  for (int m = 0; m < MR; m++)
#pragma GCC unroll 4
    for (int j = 0; j < NR; j++) acc[m][j] = load(acc_out + m * lda + j * L);
  PointerScalars<E, MR> a;
#pragma GCC unroll 8
  for (int m = 0; m < MR; m++) a.p[m] = base + offsets[m];
  for (int64_t y = 0; y < height; y++) {
    multiply<V, MR, NR, false>(length, a, StridedRows<E>{g + y * length * ldg, ldg}, L, acc);
#pragma GCC unroll 8
    for (int m = 0; m < MR; m++) a.p[m] += width;
  }
#pragma GCC unroll 8
  for (int m = 0; m < MR; m++)
#pragma GCC unroll 4
    for (int j = 0; j < NR; j++) store(acc_out + m * lda + j * L, acc[m][j]);
}

template <class E, int MR>
void weights_of(const E* base, const int64_t* offsets, int64_t height, int64_t length, int64_t width, const E* g, int64_t ldg, int64_t n, E* acc,
                int64_t lda) {
  using V = vec_t<E>;
  constexpr int64_t L = Lanes<V>::n;
  int64_t j = 0;
  for (; j + kBlockVectors * L <= n && !(kBlockVectors == 3 && n - j == 4 * L); j += kBlockVectors * L)
    weights<V, MR, kBlockVectors>(base, offsets, height, length, width, g + j, ldg, acc + j, lda);
  for (; j + 2 * L <= n; j += 2 * L) weights<V, MR, 2>(base, offsets, height, length, width, g + j, ldg, acc + j, lda);
  for (; j < n; j += L) weights<V, MR, 1>(base, offsets, height, length, width, g + j, ldg, acc + j, lda);
}

template <class E>
void weight_block(int rows, const E* base, const int64_t* offsets, int64_t height, int64_t length, int64_t width, const E* g, int64_t ldg, int64_t n,
                  E* acc, int64_t lda) {
  switch (rows) {
    case kBlockRows:
      return weights_of<E, kBlockRows>(base, offsets, height, length, width, g, ldg, n, acc, lda);
#if ARGAND_TIER_LEVEL == 2
    case 4:
      return weights_of<E, 4>(base, offsets, height, length, width, g, ldg, n, acc, lda);
#endif
    case 2:
      return weights_of<E, 2>(base, offsets, height, length, width, g, ldg, n, acc, lda);
    default:
      return weights_of<E, 1>(base, offsets, height, length, width, g, ldg, n, acc, lda);
  }
}

#if ARGAND_TIER_LEVEL == 2  // partial loads and stores cost nothing
template <class E, int step>
vec_t<E> load_every(const E* p, int64_t n) {  // n elements, `step` apart
  using V = vec_t<E>;
  constexpr int64_t L = Lanes<V>::n;
  if constexpr (step == 1) {
    return load_n(p, n);
  } else {
    decltype(V{} == V{}) even;
    for (int i = 0; i < static_cast<int>(L); i++) even[i] = 2 * i;
    const int64_t last = 2 * n - 1;
    return __builtin_shuffle(load_n(p, last < 0 ? 0 : last < L ? last : L), load_n(p + L, last > L ? last - L : 0), even);
  }
}

template <class E, int sw>
void plane_of(E* to, int64_t height, int64_t width, const E* in, int64_t images, int64_t image, int64_t h, int64_t w, int64_t sh, int64_t top,
              int64_t left) {
  using V = vec_t<E>;
  constexpr int64_t L = Lanes<V>::n;
  const int64_t first = left < 0 ? (-left + sw - 1) / sw : 0, inside = w > left ? (w - 1 - left) / sw + 1 : 0;
  const int64_t begin = first < width ? first : width, end = inside < width ? inside : width;
  if (width <= L) {  // masks serve all rows
    const int64_t have = end > begin ? end - begin : 0;
    for (int64_t m = 0; m < images; m++, in += image)
      for (int64_t y = 0, iy = top; y < height; y++, iy += sh, to += width) {
        store_n(to, V{}, width);
        if (have && iy >= 0 && iy < h) store_n(to + begin, load_every<E, sw>(in + iy * w + begin * sw + left, have), have);
      }
    return;
  }
  for (int64_t m = 0; m < images; m++, in += image)
    for (int64_t y = 0, iy = top; y < height; y++, iy += sh, to += width) {
      const int64_t real = iy >= 0 && iy < h ? end : 0, zeros = real ? begin : 0;
      for (int64_t x = 0; x < zeros; x += L) store_n(to + x, V{}, zeros - x < L ? zeros - x : L);
      for (int64_t x = zeros; x < width; x += L) {
        const int64_t n = width - x < L ? width - x : L, have = real - x < 0 ? 0 : real - x < L ? real - x : L;
        store_n(to + x, have ? load_every<E, sw>(in + iy * w + x * sw + left, have) : V{}, n);
      }
    }
}

template <class E>
void plane(E* to, int64_t height, int64_t width, const E* in, int64_t images, int64_t image, int64_t h, int64_t w, int64_t sh, int64_t sw,
           int64_t top, int64_t left) {
  (sw == 1 ? plane_of<E, 1> : plane_of<E, 2>)(to, height, width, in, images, image, h, w, sh, top, left);
}

ARGAND_INLINE void store_even(float* p, vf v, int64_t n) { _mm512_mask_storeu_ps(p, mask16(n) & 0x5555, v); }
ARGAND_INLINE void store_even(double* p, vd v, int64_t n) { _mm512_mask_storeu_pd(p, static_cast<__mmask8>(mask16(n) & 0x55), v); }

template <class E>
void spread(E* to, const E* from, int64_t n) {
  using V = vec_t<E>;
  constexpr int64_t L = Lanes<V>::n;
  decltype(V{} == V{}) low, high;
  for (int i = 0; i < static_cast<int>(L); i++) low[i] = i / 2, high[i] = static_cast<int>(L) / 2 + i / 2;
  for (int64_t x = 0; x < n; x += L) {
    const int64_t count = n - x < L ? n - x : L, behind = 2 * count - L;
    const V v = load_n(from + x, count);
    store_even(to + 2 * x, __builtin_shuffle(v, low), behind > 0 ? L : 2 * count);
    store_even(to + 2 * x + L, __builtin_shuffle(v, high), behind > 0 ? behind : 0);
  }
}
#else
template <class E>
inline constexpr decltype(ConvLoops<E>::plane) plane = nullptr;
template <class E>
inline constexpr decltype(ConvLoops<E>::spread) spread = nullptr;
#endif

template <class E>
inline constexpr ConvLoops<E> loops = {kBlockRows, Lanes<vec_t<E>>::n, block<E>, plane<E>, spread<E>, weight_block<E>};

}  // namespace

const ConvKernels conv_kernels = {loops<float>, loops<double>};

}  // namespace argand::kernels::cpu::ARGAND_TIER_NS
