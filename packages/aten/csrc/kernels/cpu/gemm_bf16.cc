// Both matrices are packed as panels of pairs along k, the operands of vdpbf16ps and tdpbf16ps: a panel of b stays in the first-level cache while the
// panels of a that lie in the second-level cache pass by it.
#include "packages/aten/csrc/kernels/cpu/gemm_bf16.h"

#include <algorithm>

#include "packages/aten/csrc/kernels/cpu/cast.h"
#include "packages/aten/csrc/kernels/cpu/transpose16.h"
#include "packages/aten/csrc/kernels/cpu/util.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace argand::kernels::cpu {

#if defined(__x86_64__)
namespace {

#define ARGAND_BF16_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))
#define ARGAND_AMX_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,amx-tile,amx-bf16")))

constexpr int kLanes = 16;

using Pairs = Lanes16;

// Up to 16 elements from `p`, widened, and zeros behind them.
ARGAND_AVX512 inline Pairs load16(const uint16_t* p, int64_t count) {
  const __mmask16 mask = static_cast<__mmask16>(count >= kLanes ? 0xffff : (1u << count) - 1);
  return reinterpret_cast<Pairs>(_mm512_maskz_cvtepu16_epi32(mask, _mm256_maskz_loadu_epi16(mask, p)));
}

// A panel of kWidth lines holds sixteen pairs of each, then the next sixteen.
enum class Layout {
  pairs,         // lines of a pair side by side
  pair_squares,  // the same for sixteen lines, then for the next sixteen
  line_squares,  // sixteen lines with their pairs side by side, then the next sixteen
};

// Packs `count` <= 16 lines by `left` <= 32 elements; what is missing is zero. Elements of a line lie `stride` apart, lines `line_stride`. Writes
// `vectors` <= 16 vectors of lines or of pairs, of `places` <= 16 places, `width` places apart.
ARGAND_AVX512 void pack_square(bool lines_first, int64_t count, int64_t left, const uint16_t* from, int64_t line_stride, int64_t stride,
                               int64_t vectors, int64_t places, uint32_t* to, int64_t width) {
  Pairs x[kLanes];
  const bool along = stride == 1 || left == 1;
  if (along) {
    const __mmask32 mask = left >= 32 ? ~__mmask32{0} : (__mmask32{1} << left) - 1;
    for (int64_t i = 0; i < count; i++) __builtin_prefetch(from + i * line_stride + 4 * 2 * kLanes);  // too many streams for the processor to see
    for (int64_t i = 0; i < kLanes; i++) x[i] = i < count ? reinterpret_cast<Pairs>(_mm512_maskz_loadu_epi16(mask, from + i * line_stride)) : Pairs{};
  } else {
    for (int64_t i = 0; i < kLanes; i++) {
      x[i] = 2 * i < left ? load16(from + 2 * i * stride, count) : Pairs{};
      if (2 * i + 1 < left) x[i] |= load16(from + (2 * i + 1) * stride, count) << 16;
    }
  }
  if (along != lines_first) transpose16(x);
  const __mmask16 kept = static_cast<__mmask16>((1u << places) - 1);
  for (int64_t i = 0; i < vectors; i++) _mm512_mask_storeu_epi32(to + i * width, kept, reinterpret_cast<__m512i>(x[i]));
}

// Lines of a or b, `pairs` pairs deep, as panels.
template <Layout kLayout, int kWidth>
void pack(int64_t lines, int64_t k, int64_t pairs, const uint16_t* from, int64_t line_stride, int64_t stride, uint32_t* to) {
  constexpr bool kSquares = kLayout != Layout::pairs;
  constexpr int kStep = std::min(kWidth, kLanes);
  const auto square = [&](int64_t i, int64_t p) {
    const int64_t j = i % kWidth, count = std::clamp<int64_t>(lines - i, 0, kStep), left = std::clamp<int64_t>(k - 2 * p, 0, 2 * kLanes);
    const uint16_t* const first = count > 0 && left > 0 ? from + i * line_stride + 2 * p * stride : from;
    pack_square(kLayout == Layout::line_squares, count, left, first, line_stride, stride, std::min<int64_t>(pairs - p, kLanes), kStep,
                to + (i - j) * pairs + p * kWidth + j * (kSquares ? kLanes : 1), kSquares ? kLanes : kWidth);
  };
  const int64_t end = round_up(lines, kWidth);
  if (stride == 1)
    for (int64_t i = 0; i < end; i += kStep)
      for (int64_t p = 0; p < pairs; p += kLanes) square(i, p);
  else  // as the memory lies
    for (int64_t p = 0; p < pairs; p += kLanes)
      for (int64_t i = 0; i < end; i += kStep) square(i, p);
}

// A unit multiplies panels of kRows lines of a by panels of kColumns lines of b, kPairStep pairs at a time: sums[kRows][kColumns] (+)= a b. kDepth:
// pairs of a panel, so that b's stays in the first-level cache.
struct DotUnit {
  static constexpr int kRows = 12, kColumns = 32, kPairStep = 1;
  static constexpr int64_t kDepth = 192, kBlockRows = 8 * kRows;
  static constexpr Layout kLayoutA = Layout::pairs, kLayoutB = Layout::pairs;

  ARGAND_BF16_TARGET void multiply(int64_t pairs, const uint32_t* a, const uint32_t* b, bool accumulate, float* sums, int64_t ld) const {
    constexpr int kVectors = kColumns / kLanes;
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
};

// AMX: tile registers of sixteen rows of 64 bytes, 0 to 3 for sums, 4 and 5 for a, 6 and 7 for b.
struct TileUnit {
  static constexpr int kRows = 32, kColumns = 32, kPairStep = 16, kSquare = kLanes * kLanes;
  static constexpr int64_t kDepth = 192, kBlockRows = 8 * kRows;
  static constexpr Layout kLayoutA = Layout::line_squares, kLayoutB = Layout::pair_squares;

  ARGAND_AMX_TARGET TileUnit() {
    struct alignas(64) {
      uint8_t palette = 1, start_row = 0, reserved[14] = {};
      uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    } const config;
    _tile_loadconfig(&config);
  }
  ARGAND_AMX_TARGET ~TileUnit() { _tile_release(); }
  TileUnit(const TileUnit&) = delete;
  TileUnit& operator=(const TileUnit&) = delete;

  ARGAND_AMX_TARGET void multiply(int64_t pairs, const uint32_t* a, const uint32_t* b, bool accumulate, float* sums, int64_t ld) const {
    asm volatile("" ::: "memory");  // the compiler does not see what the tiles read and write
    if (accumulate) {
      _tile_loadd(0, sums, ld * 4);
      _tile_loadd(1, sums + kLanes, ld * 4);
      _tile_loadd(2, sums + kLanes * ld, ld * 4);
      _tile_loadd(3, sums + kLanes * ld + kLanes, ld * 4);
    } else {
      _tile_zero(0);
      _tile_zero(1);
      _tile_zero(2);
      _tile_zero(3);
    }
    for (int64_t p = 0; p < pairs; p += kPairStep, a += kSquare * 2, b += kSquare * 2) {
      _tile_loadd(6, b, kLanes * 4);
      _tile_loadd(4, a, kLanes * 4);
      _tile_dpbf16ps(0, 4, 6);
      _tile_loadd(7, b + kSquare, kLanes * 4);
      _tile_dpbf16ps(1, 4, 7);
      _tile_loadd(5, a + kSquare, kLanes * 4);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, sums, ld * 4);
    _tile_stored(1, sums + kLanes, ld * 4);
    _tile_stored(2, sums + kLanes * ld, ld * 4);
    _tile_stored(3, sums + kLanes * ld + kLanes, ld * 4);
    asm volatile("" ::: "memory");
  }
};

// c = alpha * sums + beta * c, rounded.
ARGAND_AVX512 void write_back(int64_t m, int64_t n, float alpha, float* sums, int64_t ld, float beta, uint16_t* c, int64_t ldc) {
  for (int64_t i = 0; i < m; i++, sums += ld, c += ldc) {
    if (alpha != 1)
      for (int64_t j = 0; j < n; j++) sums[j] *= alpha;
    if (beta != 0)
      for (int64_t j = 0; j < n; j += kLanes) {
        const __mmask16 mask = static_cast<__mmask16>(n - j >= kLanes ? 0xffff : (1u << (n - j)) - 1);
        const __m512 old = reinterpret_cast<__m512>(load16(c + j, n - j) << 16);
        _mm512_mask_storeu_ps(sums + j, mask, _mm512_maskz_loadu_ps(mask, sums + j) + beta * old);
      }
    convert(n, ARGAND_BFLOAT16, c, 2, ARGAND_FLOAT32, sums, 4);
  }
}

constexpr int kTile = 4;  // rows and columns of a register block of dot products

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

template <class Unit>
void multiply_blocks(int64_t m, int64_t n, int64_t k, float alpha, Bf16Matrix a, Bf16Matrix b, float beta, uint16_t* c, int64_t ldc) {
  constexpr int kRows = Unit::kRows, kColumns = Unit::kColumns;
  constexpr int64_t kDepth = Unit::kDepth, kBlockRows = Unit::kBlockRows, kBlockColumns = 32 * kColumns;  // whose sums stay in the second-level cache
  const Unit unit;
  const int64_t pairs = round_up((k + 1) / 2, Unit::kPairStep), block_columns = std::min(round_up(n, kColumns), kBlockColumns),
                block_rows = std::min(round_up(m, kRows), kBlockRows);
  Scratch<uint32_t> packed_b(pairs * block_columns), packed_a(pairs * block_rows);
  const int64_t ld = block_columns + kLanes;  // rows of sums must not all fall into the same sets of the cache
  Scratch<float> sums(block_rows * ld);
  for (int64_t j = 0; j < n; j += kBlockColumns) {
    const int64_t columns = std::min(n - j, kBlockColumns), panels_b = (columns + kColumns - 1) / kColumns;
    // one slab for each kDepth pairs of k, in both
    for (int64_t p = 0; p < pairs; p += kDepth)
      pack<Unit::kLayoutB, kColumns>(columns, k - 2 * p, std::min(pairs - p, kDepth), b.at(2 * p, j), b.col_stride, b.row_stride,
                                     packed_b + p * panels_b * kColumns);
    for (int64_t i = 0; i < m; i += kBlockRows) {
      const int64_t rows = std::min(m - i, kBlockRows), panels_a = (rows + kRows - 1) / kRows;
      for (int64_t p = 0; p < pairs; p += kDepth)
        pack<Unit::kLayoutA, kRows>(rows, k - 2 * p, std::min(pairs - p, kDepth), a.at(i, 2 * p), a.row_stride, a.col_stride,
                                    packed_a + p * panels_a * kRows);
      for (int64_t p = 0; p < pairs; p += kDepth) {
        const int64_t depth = std::min(pairs - p, kDepth);
        for (int64_t v = 0; v < panels_b; v++)
          for (int64_t u = 0; u < panels_a; u++)
            unit.multiply(depth, packed_a + (p * panels_a + u * depth) * kRows, packed_b + (p * panels_b + v * depth) * kColumns, p > 0,
                          sums + u * kRows * ld + v * kColumns, ld);
      }
      write_back(rows, columns, alpha, sums.get(), ld, beta, c + i * ldc + j, ldc);
    }
  }
}

// Linux lends a process the tile registers when it asks.
bool may_use_tiles() {
#if defined(__linux__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return __builtin_cpu_supports("amx-bf16") && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

}  // namespace

Bf16Unit bf16_unit() {
  static const Bf16Unit unit = cpu_tier() < 2 || !__builtin_cpu_supports("avx512bf16") ? Bf16Unit::none
                               : may_use_tiles()                                       ? Bf16Unit::tiles
                                                                                       : Bf16Unit::dots;
  return unit;
}

void gemm_bf16(Bf16Unit unit, bool few, int64_t m, int64_t n, int64_t k, float alpha, Bf16Matrix a, Bf16Matrix b, float beta, uint16_t* c,
               int64_t ldc) {
  if (few && a.col_stride == 1 && b.row_stride == 1)
    multiply_lines(m, n, k, alpha, a.data, a.row_stride, b.data, b.col_stride, beta, c, ldc);
  else if (unit == Bf16Unit::tiles)
    multiply_blocks<TileUnit>(m, n, k, alpha, a, b, beta, c, ldc);
  else
    multiply_blocks<DotUnit>(m, n, k, alpha, a, b, beta, c, ldc);
}

#else

Bf16Unit bf16_unit() { return Bf16Unit::none; }
void gemm_bf16(Bf16Unit, bool, int64_t, int64_t, int64_t, float, Bf16Matrix, Bf16Matrix, float, uint16_t*, int64_t) {}

#endif

}  // namespace argand::kernels::cpu
