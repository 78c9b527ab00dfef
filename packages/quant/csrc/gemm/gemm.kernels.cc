#if defined(ARGAND_TIER_AVX512)
#pragma GCC target("avx512vnni")
#endif

#include "packages/quant/csrc/gemm/gemm.h"

#if defined(ARGAND_TIER_AVX512) || defined(ARGAND_TIER_AVX2)
#include <immintrin.h>
#endif

namespace argand::quant::ARGAND_TIER_NAMESPACE {
namespace {

// ---- tiles -------------------------------------------------------------------------------------------------------------
#if defined(ARGAND_TIER_AVX512)  // bytes times bytes, four at a time, into 32 bits

constexpr int kRows = 6, kPanels = 4;

template <int R, int V>
void tile_of(const Tile& t) {
  __m512i sums[R][V];
  for (int r = 0; r < R; r++)
    for (int v = 0; v < V; v++) sums[r][v] = _mm512_setzero_si512();
  const int8_t* panels = t.panels;
  const int64_t stride = t.panel_stride;
  for (int64_t tap = 0; tap < t.n_taps; tap++) {
    const uint8_t* rows[R];
    for (int r = 0; r < R; r++) rows[r] = t.rows[r] + t.taps[tap];
    for (int64_t k = 0; k < t.depth; k++, panels += kPanelStep) {
      __m512i columns[V];
      for (int v = 0; v < V; v++) columns[v] = _mm512_loadu_si512(panels + v * stride);
      for (int r = 0; r < R; r++) {
        int32_t four;
        __builtin_memcpy(&four, rows[r] + k * kStep, 4);
        const __m512i row = _mm512_set1_epi32(four);
        for (int v = 0; v < V; v++) sums[r][v] = _mm512_dpbusd_epi32(sums[r][v], row, columns[v]);
      }
    }
  }
  for (int r = 0; r < R; r++)
    for (int v = 0; v < V; v++) _mm512_storeu_si512(t.sums + r * kTileColumns + v * kPanel, sums[r][v]);
}

#elif defined(ARGAND_TIER_AVX2)  // bytes widened to 16 bits: exact, where products of bytes in 16 bits would saturate

constexpr int kRows = 3, kPanels = 1;

template <int R, int V>
void tile_of(const Tile& t) {
  static_assert(V == 1);
  __m256i sums[R][4];  // four columns each, two sums a column
  for (int r = 0; r < R; r++)
    for (int v = 0; v < 4; v++) sums[r][v] = _mm256_setzero_si256();
  const int8_t* panel = t.panels;
  for (int64_t tap = 0; tap < t.n_taps; tap++) {
    const uint8_t* rows[R];
    for (int r = 0; r < R; r++) rows[r] = t.rows[r] + t.taps[tap];
    for (int64_t k = 0; k < t.depth; k++, panel += kPanelStep) {
      __m256i row[R];
      for (int r = 0; r < R; r++) {
        int32_t four;
        __builtin_memcpy(&four, rows[r] + k * kStep, 4);
        row[r] = _mm256_cvtepu8_epi16(_mm_set1_epi32(four));
      }
      for (int v = 0; v < 4; v++) {
        const __m256i columns = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(panel + 16 * v)));
        for (int r = 0; r < R; r++) sums[r][v] = _mm256_add_epi32(sums[r][v], _mm256_madd_epi16(row[r], columns));
      }
    }
  }
  for (int r = 0; r < R; r++)
    for (int v = 0; v < 4; v++) {
      int32_t parts[8];
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(parts), sums[r][v]);
      for (int c = 0; c < 4; c++) t.sums[r * kTileColumns + 4 * v + c] = parts[2 * c] + parts[2 * c + 1];
    }
}

#else

constexpr int kRows = 2, kPanels = 1;

template <int R, int V>
void tile_of(const Tile& t) {
  static_assert(V == 1);
  int32_t sums[R][kPanel] = {};
  const int8_t* panel = t.panels;
  for (int64_t tap = 0; tap < t.n_taps; tap++)
    for (int64_t k = 0; k < t.depth; k++, panel += kPanelStep)
      for (int r = 0; r < R; r++) {
        const uint8_t* row = t.rows[r] + t.taps[tap] + k * kStep;
        for (int c = 0; c < kPanel; c++)
          sums[r][c] += row[0] * panel[4 * c] + row[1] * panel[4 * c + 1] + row[2] * panel[4 * c + 2] + row[3] * panel[4 * c + 3];
      }
  for (int r = 0; r < R; r++)
    for (int c = 0; c < kPanel; c++) t.sums[r * kTileColumns + c] = sums[r][c];
}

#endif

template <int R, int V>
inline void choose_panels(const Tile& t) {
  if (t.n_panels == V) return tile_of<R, V>(t);
  if constexpr (V > 1) choose_panels<R, V - 1>(t);
}

template <int R>
inline void choose_rows(const Tile& t) {
  if (t.n_rows == R) return choose_panels<R, kPanels>(t);
  if constexpr (R > 1) choose_rows<R - 1>(t);
}

void tile(const Tile& t) { choose_rows<kRows>(t); }

// ---- results -----------------------------------------------------------------------------------------------------------
struct BFloat16 {
  uint16_t bits;
};

// What is stored of y, in 32 bits: the last step to fewer is a loop of its own, so that those before it have whole vectors.
template <class T>
inline int32_t wide(float y, const Finish& f) {
  float v = __builtin_rintf(y * f.inverse) + f.zero_point;
  v = v > f.low ? v : f.low;  // NaN becomes the lower end
  v = v < f.high ? v : f.high;
  return static_cast<int32_t>(v);
}
template <>
inline int32_t wide<float>(float y, const Finish&) {
  int32_t bits;
  __builtin_memcpy(&bits, &y, 4);
  return bits;
}
template <>
inline int32_t wide<BFloat16>(float y, const Finish&) {
  uint32_t bits;
  __builtin_memcpy(&bits, &y, 4);
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  return static_cast<int32_t>(y == y ? rounded : (bits >> 16) | 0x40);
}

template <class T>
struct Bits {
  using Type = T;
};
template <>
struct Bits<float> {
  using Type = int32_t;
};
template <>
struct Bits<BFloat16> {
  using Type = uint16_t;
};

// N results of a row, from column c on; `at` is the first one's place among all.
template <class Other, class Out, int N>
inline void finish_columns(const int32_t* __restrict row, int32_t term, int c, int64_t at, const Finish& f, Out* __restrict out) {
  int32_t results[N];
  for (int i = 0; i < N; i++) {
    const uint32_t sum = static_cast<uint32_t>(row[c + i]) - static_cast<uint32_t>(f.column_term[c + i]) - static_cast<uint32_t>(term);
    float y = static_cast<float>(static_cast<int32_t>(sum)) * f.factor[c + i] + f.bias[c + i];
    if constexpr (!__is_same(Other, void)) {
      const float o = static_cast<float>(static_cast<const Other*>(f.other)[at + i]);
      y = y + (o - f.other_zero_point) * f.other_scale;
    }
    y = f.floor > y ? f.floor : y;  // NaN stays
    results[i] = wide<Out>(y, f);
  }
  typename Bits<Out>::Type last[N];
  for (int i = 0; i < N; i++) last[i] = static_cast<typename Bits<Out>::Type>(results[i]);
  __builtin_memcpy(out + at, last, sizeof last);
}

template <class Other, class Out>
void finish(const int32_t* sums, int rows, int columns, const Finish& given) {
  const Finish f = given;  // so that stores cannot change it
  Out* out = static_cast<Out*>(f.out);
  for (int r = 0; r < rows; r++) {
    const int32_t* row = sums + r * kTileColumns;
    const int32_t term = f.row_term ? f.row_term[r] : 0;
    int c = 0;
    for (; c + kPanel <= columns; c += kPanel) finish_columns<Other, Out, kPanel>(row, term, c, r * f.out_stride + c, f, out);
    for (; c < columns; c++) finish_columns<Other, Out, 1>(row, term, c, r * f.out_stride + c, f, out);
  }
}

// ---- columns with bytes of their own ------------------------------------------------------------------------------------
// Bytes are widened to 32 bits, whose upper halves are 0: products of pairs of 16 bits are then those of the lower halves.
#if defined(ARGAND_TIER_AVX512)

struct Sums16 {
  __m512i v;
  void clear() { v = _mm512_setzero_si512(); }
  void add(const uint8_t* bytes, const int32_t* weights) {
    const __m512i wide = _mm512_maskz_cvtepu8_epi32(0xffff, _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes)));
    v = _mm512_dpwssd_epi32(v, wide, _mm512_loadu_si512(weights));
  }
  void store(int32_t* to) const { _mm512_storeu_si512(to, v); }
};

#elif defined(ARGAND_TIER_AVX2)

struct Sums16 {
  __m256i v[2];
  void clear() { v[0] = v[1] = _mm256_setzero_si256(); }
  void add(const uint8_t* bytes, const int32_t* weights) {
    for (int i = 0; i < 2; i++) {
      const __m256i wide = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes + 8 * i)));
      const __m256i w = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(weights + 8 * i));
      v[i] = _mm256_add_epi32(v[i], _mm256_madd_epi16(wide, w));
    }
  }
  void store(int32_t* to) const {
    for (int i = 0; i < 2; i++) _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 8 * i), v[i]);
  }
};

#else

struct Sums16 {
  int32_t v[kPanel];
  void clear() { __builtin_memset(v, 0, sizeof v); }
  void add(const uint8_t* bytes, const int32_t* weights) {
    for (int c = 0; c < kPanel; c++) v[c] += bytes[c] * weights[c];
  }
  void store(int32_t* to) const { __builtin_memcpy(to, v, sizeof v); }
};

#endif

template <int R>
void depthwise_of(const uint8_t* row, int64_t stride, int n_rows, const int64_t* taps, int64_t n_taps, const int32_t* weights, int32_t* sums) {
  if constexpr (R > 1) {
    if (n_rows < R) return depthwise_of<R - 1>(row, stride, n_rows, taps, n_taps, weights, sums);
  }
  Sums16 total[R];
  for (int r = 0; r < R; r++) total[r].clear();
  for (int64_t t = 0; t < n_taps; t++)
    for (int r = 0; r < R; r++) total[r].add(row + taps[t] + r * stride, weights + t * kPanel);
  for (int r = 0; r < R; r++) total[r].store(sums + r * kTileColumns);
}

void depthwise(const uint8_t* row, int64_t stride, int n_rows, const int64_t* taps, int64_t n_taps, const int32_t* weights, int32_t* sums) {
  constexpr int kAtOnce = kPanels > 1 ? 8 : 4;  // as many as the registers hold
  for (int r = 0; r < n_rows; r += kAtOnce) {
    const int n = n_rows - r < kAtOnce ? n_rows - r : kAtOnce;
    depthwise_of<kAtOnce>(row + r * stride, stride, n, taps, n_taps, weights, sums + r * kTileColumns);
  }
}

int32_t copy_row(int64_t n, const uint8_t* __restrict from, uint8_t* __restrict to, int flip) {
  const uint8_t mask = flip ? 0x80 : 0;
  uint32_t sum = 0;
  for (int64_t i = 0; i < n; i++) {
    const uint8_t byte = from[i] ^ mask;
    to[i] = byte;
    sum += byte;
  }
  return static_cast<int32_t>(sum);
}

template <class T>
void largest(int64_t n, const uint8_t* const* rows, int64_t n_rows, uint8_t* to) {
  T* __restrict out = reinterpret_cast<T*>(to);
  if (n_rows == 0) __builtin_memset(out, static_cast<T>(-1) < 0 ? 0x80 : 0, n);
  if (n_rows > 0) __builtin_memcpy(out, rows[0], n);
  for (int64_t r = 1; r < n_rows; r++) {
    const T* row = reinterpret_cast<const T*>(rows[r]);
    for (int64_t i = 0; i < n; i++) out[i] = row[i] > out[i] ? row[i] : out[i];
  }
}

using Bytes = uint8_t __attribute__((vector_size(16)));

// Sixteen rows of sixteen bytes: four perfect shuffles of the rows are a transposition.
inline void transpose_block(const uint8_t* from, int64_t from_stride, uint8_t* to, int64_t to_stride, uint8_t mask) {
  constexpr Bytes kLow = {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23}, kHigh = kLow + 8;
  Bytes a[16], b[16];
  for (int i = 0; i < 16; i++) {
    __builtin_memcpy(&a[i], from + i * from_stride, 16);
    a[i] ^= mask;
  }
  for (int half = 0; half < 2; half++) {
    for (int i = 0; i < 8; i++) b[2 * i] = __builtin_shuffle(a[i], a[i + 8], kLow), b[2 * i + 1] = __builtin_shuffle(a[i], a[i + 8], kHigh);
    for (int i = 0; i < 8; i++) a[2 * i] = __builtin_shuffle(b[i], b[i + 8], kLow), a[2 * i + 1] = __builtin_shuffle(b[i], b[i + 8], kHigh);
  }
  for (int i = 0; i < 16; i++) __builtin_memcpy(to + i * to_stride, &a[i], 16);
}

void transpose(int64_t rows, int64_t columns, const uint8_t* from, int64_t from_stride, uint8_t* to, int64_t to_stride, uint8_t mask) {
  if (rows < 16 || columns < 16) {
    for (int64_t r = 0; r < rows; r++)
      for (int64_t c = 0; c < columns; c++) to[c * to_stride + r] = from[r * from_stride + c] ^ mask;
    return;
  }
  for (int64_t r = 0; r < rows; r += 16) {
    const int64_t row = r + 16 <= rows ? r : rows - 16;  // the last blocks overlap those before
    for (int64_t c = 0; c < columns; c += 16) {
      const int64_t column = c + 16 <= columns ? c : columns - 16;
      transpose_block(from + row * from_stride + column, from_stride, to + column * to_stride + row, to_stride, mask);
    }
  }
}

}  // namespace

#define ROW(Other) {finish<Other, uint8_t>, finish<Other, int8_t>, finish<Other, float>, finish<Other, BFloat16>}
const GemmKernels gemm_kernels = {
    kRows, kPanels, tile, {ROW(void), ROW(uint8_t), ROW(int8_t), ROW(float)}, depthwise, copy_row, {largest<uint8_t>, largest<int8_t>}, transpose};
#undef ROW

}  // namespace argand::quant::ARGAND_TIER_NAMESPACE
