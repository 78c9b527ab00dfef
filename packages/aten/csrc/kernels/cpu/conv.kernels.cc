#include "packages/aten/csrc/kernels/cpu/conv.h"
#include "packages/aten/csrc/kernels/cpu/microkernel.h"

namespace argand::kernels::cpu::ARGAND_TIER_NS {
namespace {

template <class V, int MR, int NR, class E>
void pixels(int64_t k, const E* w, const E* base, const int64_t* offsets, const E* bias, bool adds, E* c, int64_t ldc) {
  constexpr int L = Lanes<V>::n;
  V acc[MR][NR];
#pragma GCC unroll 8
  for (int m = 0; m < MR; m++)
#pragma GCC unroll 8
    for (int j = 0; j < NR; j++) acc[m][j] = adds ? load(c + m * ldc + j * L) : bias ? splat<V>(bias[m]) : V{};
  multiply<V, MR, NR, false>(k, PackedScalars<E, MR>{w}, OffsetRows<E>{base, offsets}, L, acc);
#pragma GCC unroll 8
  for (int m = 0; m < MR; m++)
#pragma GCC unroll 8
    for (int j = 0; j < NR; j++) store(c + m * ldc + j * L, acc[m][j]);
}

template <class E, int MR>
void block_of(int64_t k, const E* w, const E* base, const int64_t* offsets, int64_t n, const E* bias, bool adds, E* c, int64_t ldc) {
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

template <class E>
void block(int rows, int64_t k, const E* w, const E* base, const int64_t* offsets, int64_t n, const E* bias, bool adds, E* c, int64_t ldc) {
  switch (rows) {
    case kBlockRows:
      return block_of<E, kBlockRows>(k, w, base, offsets, n, bias, adds, c, ldc);
#if ARGAND_TIER_LEVEL == 2
    case 4:
      return block_of<E, 4>(k, w, base, offsets, n, bias, adds, c, ldc);
#endif
    case 2:
      return block_of<E, 2>(k, w, base, offsets, n, bias, adds, c, ldc);
    default:
      return block_of<E, 1>(k, w, base, offsets, n, bias, adds, c, ldc);
  }
}

// Scalars a(i, m) at p[m][i].
template <class E, int MR>
struct PointerScalars {
  const E* p[MR];
  ARGAND_INLINE E at(int64_t i, int m) const { return p[m][i]; }
};

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

template <class E>
inline constexpr ConvLoops<E> loops = {kBlockRows, Lanes<vec_t<E>>::n, block<E>, weight_block<E>};

}  // namespace

const ConvKernels conv_kernels = {loops<float>, loops<double>};

}  // namespace argand::kernels::cpu::ARGAND_TIER_NS
