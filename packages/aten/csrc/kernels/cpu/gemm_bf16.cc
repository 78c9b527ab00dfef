// Both matrices are packed as panels of pairs along k, the operands of vdpbf16ps: a panel of b stays in the first-level cache while the panels of a
// that lie in the second-level cache pass by it.
#include "packages/aten/csrc/kernels/cpu/gemm_bf16.h"

#include <algorithm>

#include "packages/aten/csrc/kernels/cpu/cast.h"
#include "packages/aten/csrc/kernels/cpu/transpose16.h"
#include "packages/aten/csrc/kernels/cpu/util.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace argand::kernels::cpu {

#if defined(__x86_64__)
namespace {

#define ARGAND_BF16_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))

constexpr int kRows = 12, kVectors = 2, kLanes = 16, kColumns = kVectors * kLanes;  // of a register block: 24 accumulators
constexpr int64_t kDepth = 192;                                                     // pairs along k of a panel
constexpr int64_t kBlockRows = 8 * kRows, kBlockColumns = 32 * kColumns;            // of a block whose sums stay in the second-level cache

using Pairs = Lanes16;

// Up to 16 elements from `p`, widened, and zeros behind them.
ARGAND_BF16_TARGET inline Pairs load16(const uint16_t* p, int64_t count) {
  const __mmask16 mask = static_cast<__mmask16>(count >= kLanes ? 0xffff : (1u << count) - 1);
  return reinterpret_cast<Pairs>(_mm512_maskz_cvtepu16_epi32(mask, _mm256_maskz_loadu_epi16(mask, p)));
}

// `count` <= 16 lines of `k` elements as [pair][line], `width` 32-bit places a pair; missing lines are zero, and 16 places are always written.
// Elements of a line lie side by side; lines `line_stride` apart.
ARGAND_BF16_TARGET void pack_along(int64_t count, int64_t k, const uint16_t* from, int64_t line_stride, uint32_t* to, int64_t width) {
  for (int64_t p = 0; p < k; p += 2 * kLanes) {
    const int64_t left = std::min<int64_t>(k - p, 2 * kLanes);
    const __mmask32 mask = left == 32 ? ~__mmask32{0} : (__mmask32{1} << left) - 1;
    Pairs x[kLanes];
    for (int64_t i = 0; i < count; i++) __builtin_prefetch(from + i * line_stride + p + 4 * 2 * kLanes);  // too many streams for the processor to see
    for (int64_t i = 0; i < kLanes; i++)
      x[i] = i < count ? reinterpret_cast<Pairs>(_mm512_maskz_loadu_epi16(mask, from + i * line_stride + p)) : Pairs{};
    transpose16(x);
    for (int64_t i = 0; i < (left + 1) / 2; i++) _mm512_storeu_si512(to + (p / 2 + i) * width, reinterpret_cast<__m512i>(x[i]));
  }
}

// The same where lines lie side by side and their elements `stride` apart.
ARGAND_BF16_TARGET void pack_across(int64_t count, int64_t k, const uint16_t* from, int64_t stride, uint32_t* to, int64_t width) {
  for (int64_t p = 0; p < k; p += 2) {
    const Pairs even = load16(from + p * stride, count), odd = p + 1 < k ? load16(from + (p + 1) * stride, count) : Pairs{};
    _mm512_storeu_si512(to + p / 2 * width, reinterpret_cast<__m512i>(even | odd << 16));
  }
}

// Lines of a or of b as panels of kWidth lines: [panel][pair][line]. The packed memory needs room for 16 places more.
template <int kWidth>
void pack(int64_t lines, int64_t k, const uint16_t* from, int64_t line_stride, int64_t stride, uint32_t* to) {
  const int64_t pairs = (k + 1) / 2;
  for (int64_t i = 0; i < lines; i += kWidth, to += pairs * kWidth)
    for (int64_t j = 0; j < kWidth; j += kLanes) {
      const int64_t count = std::clamp<int64_t>(std::min<int64_t>(lines - i, kWidth) - j, 0, kLanes);
      const uint16_t* const first = count > 0 ? from + (i + j) * line_stride : from;
      if (stride == 1 || k == 1)
        pack_along(count, k, first, line_stride, to + j, kWidth);
      else
        pack_across(count, k, first, stride, to + j, kWidth);
    }
}

// sums[kRows][kColumns] (+)= a panel of a times a panel of b.
ARGAND_BF16_TARGET void multiply_panels(int64_t pairs, const uint32_t* a, const uint32_t* b, bool accumulate, float* sums, int64_t ld) {
  __m512 acc[kRows][kVectors];
#pragma GCC unroll 12
  for (int i = 0; i < kRows; i++)
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; j++) acc[i][j] = accumulate ? _mm512_loadu_ps(sums + i * ld + j * kLanes) : _mm512_setzero_ps();
  for (int64_t p = 0; p < pairs; p++, a += kRows, b += kColumns) {
    __m512bh y[kVectors];
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; j++) y[j] = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b + j * kLanes));
#pragma GCC unroll 12
    for (int i = 0; i < kRows; i++) {
      const __m512bh x = reinterpret_cast<__m512bh>(_mm512_set1_epi32(static_cast<int>(a[i])));
#pragma GCC unroll 2
      for (int j = 0; j < kVectors; j++) acc[i][j] = _mm512_dpbf16_ps(acc[i][j], x, y[j]);
    }
  }
#pragma GCC unroll 12
  for (int i = 0; i < kRows; i++)
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; j++) _mm512_storeu_ps(sums + i * ld + j * kLanes, acc[i][j]);
}

// c = alpha * sums + beta * c, rounded.
void write_back(int64_t m, int64_t n, float alpha, float* sums, int64_t ld, float beta, uint16_t* c, int64_t ldc) {
  for (int64_t i = 0; i < m; i++, sums += ld, c += ldc) {
    if (alpha != 1)
      for (int64_t j = 0; j < n; j++) sums[j] *= alpha;
    if (beta != 0)
      for (int64_t j = 0; j < n; j++) sums[j] += beta * to_float(bf16{c[j]});
    convert(n, ARGAND_BFLOAT16, c, 2, ARGAND_FLOAT32, sums, 4);
  }
}

constexpr int64_t kFewRows = 32;  // of a, for which b is read as it lies: packing it costs more
constexpr int kTile = 4;          // rows and columns of a register block of dot products

ARGAND_BF16_TARGET inline float sum_lanes(__m512 x) {
  x += __builtin_shuffle(x, Pairs{8, 9, 10, 11, 12, 13, 14, 15});
  x += __builtin_shuffle(x, Pairs{4, 5, 6, 7});
  x += __builtin_shuffle(x, Pairs{2, 3});
  return x[0] + x[1];
}

template <int kTileRows, int kTileColumns>
ARGAND_BF16_TARGET void dot_tile(int64_t k, const uint16_t* a, int64_t lda, const uint16_t* b, int64_t ldb, float* sums, int64_t ld) {
  __m512 acc[kTileRows][kTileColumns];
#pragma GCC unroll 4
  for (int i = 0; i < kTileRows; i++)
#pragma GCC unroll 4
    for (int j = 0; j < kTileColumns; j++) acc[i][j] = _mm512_setzero_ps();
  for (int64_t p = 0; p < k; p += 2 * kLanes) {
    const __mmask32 mask = k - p >= 2 * kLanes ? ~__mmask32{0} : (__mmask32{1} << (k - p)) - 1;
    __m512bh x[kTileRows], y[kTileColumns];
#pragma GCC unroll 4
    for (int i = 0; i < kTileRows; i++) x[i] = reinterpret_cast<__m512bh>(_mm512_maskz_loadu_epi16(mask, a + i * lda + p));
#pragma GCC unroll 4
    for (int j = 0; j < kTileColumns; j++) y[j] = reinterpret_cast<__m512bh>(_mm512_maskz_loadu_epi16(mask, b + j * ldb + p));
#pragma GCC unroll 4
    for (int i = 0; i < kTileRows; i++)
#pragma GCC unroll 4
      for (int j = 0; j < kTileColumns; j++) acc[i][j] = _mm512_dpbf16_ps(acc[i][j], x[i], y[j]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < kTileRows; i++)
#pragma GCC unroll 4
    for (int j = 0; j < kTileColumns; j++) sums[i * ld + j] = sum_lanes(acc[i][j]);
}

// Rows of a and columns of b both lie along k.
void multiply_lines(int64_t m, int64_t n, int64_t k, float alpha, const uint16_t* a, int64_t lda, const uint16_t* b, int64_t ldb, float beta,
                    uint16_t* c, int64_t ldc) {
  Scratch<float> sums(m * n);
  for (int64_t j = 0; j < n; j += kTile)
    for (int64_t i = 0; i < m; i += kTile) {
      const bool whole_rows = i + kTile <= m, whole_columns = j + kTile <= n;
      if (whole_rows && whole_columns) {
        dot_tile<kTile, kTile>(k, a + i * lda, lda, b + j * ldb, ldb, sums + i * n + j, n);
      } else if (whole_columns) {
        for (int64_t r = i; r < m; r++) dot_tile<1, kTile>(k, a + r * lda, lda, b + j * ldb, ldb, sums + r * n + j, n);
      } else {
        for (int64_t r = i; r < std::min(i + kTile, m); r++)
          for (int64_t q = j; q < n; q++) dot_tile<1, 1>(k, a + r * lda, lda, b + q * ldb, ldb, sums + r * n + q, n);
      }
    }
  write_back(m, n, alpha, sums.get(), n, beta, c, ldc);
}

}  // namespace

bool has_bf16_dots() {
  static const bool has = cpu_tier() == 2 && __builtin_cpu_supports("avx512bf16");
  return has;
}

void gemm_bf16(int64_t m, int64_t n, int64_t k, float alpha, Bf16Matrix a, Bf16Matrix b, float beta, uint16_t* c, int64_t ldc) {
  if (m <= kFewRows && a.col_stride == 1 && b.row_stride == 1)
    return multiply_lines(m, n, k, alpha, a.data, a.row_stride, b.data, b.col_stride, beta, c, ldc);
  const int64_t pairs = (k + 1) / 2, block_columns = std::min(round_up(n, kColumns), kBlockColumns),
                block_rows = std::min(round_up(m, kRows), kBlockRows);
  Scratch<uint32_t> packed_b(pairs * block_columns), packed_a(pairs * block_rows + kLanes);
  const int64_t ld = block_columns + kLanes;  // rows of sums must not all fall into the same sets of the cache
  Scratch<float> sums(block_rows * ld);
  for (int64_t j = 0; j < n; j += kBlockColumns) {
    const int64_t columns = std::min(n - j, kBlockColumns), panels_b = (columns + kColumns - 1) / kColumns;
    // one slab for each kDepth pairs of k, in both
    for (int64_t p = 0; p < pairs; p += kDepth)
      pack<kColumns>(columns, std::min(k - 2 * p, 2 * kDepth), b.at(2 * p, j), b.col_stride, b.row_stride, packed_b + p * panels_b * kColumns);
    for (int64_t i = 0; i < m; i += kBlockRows) {
      const int64_t rows = std::min(m - i, kBlockRows), panels_a = (rows + kRows - 1) / kRows;
      for (int64_t p = 0; p < pairs; p += kDepth)
        pack<kRows>(rows, std::min(k - 2 * p, 2 * kDepth), a.at(i, 2 * p), a.row_stride, a.col_stride, packed_a + p * panels_a * kRows);
      for (int64_t p = 0; p < pairs; p += kDepth) {
        const int64_t depth = std::min(pairs - p, kDepth);
        for (int64_t v = 0; v < panels_b; v++)
          for (int64_t u = 0; u < panels_a; u++)
            multiply_panels(depth, packed_a + (p * panels_a + u * depth) * kRows, packed_b + (p * panels_b + v * depth) * kColumns, p > 0,
                            sums + u * kRows * ld + v * kColumns, ld);
      }
      write_back(rows, columns, alpha, sums.get(), ld, beta, c + i * ldc + j, ldc);
    }
  }
}

#else

bool has_bf16_dots() { return false; }
void gemm_bf16(int64_t, int64_t, int64_t, float, Bf16Matrix, Bf16Matrix, float, uint16_t*, int64_t) {}

#endif

}  // namespace argand::kernels::cpu
