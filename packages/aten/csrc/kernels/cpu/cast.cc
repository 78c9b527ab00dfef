#include "packages/aten/csrc/kernels/cpu/cast.h"

#include <emmintrin.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "packages/aten/csrc/kernels/cpu/transpose16.h"
#include "packages/aten/csrc/kernels/cpu/util.h"
#include "packages/c10/csrc/core/float8.h"

namespace argand::kernels::cpu {

constexpr struct {
  int dst, src;
} kUnsignedCasts[] = {{ARGAND_INT32, ARGAND_UINT16},   {ARGAND_INT64, ARGAND_UINT32},   {ARGAND_FLOAT32, ARGAND_UINT64},
                      {ARGAND_FLOAT64, ARGAND_UINT64}, {ARGAND_UINT64, ARGAND_FLOAT32}, {ARGAND_UINT64, ARGAND_FLOAT64}};

namespace baseline {
extern const CastLoop cast_table[12][12], unsigned_casts[6];
}
namespace avx2 {
extern const CastLoop cast_table[12][12], unsigned_casts[6];
}
namespace avx512 {
extern const CastLoop cast_table[12][12], unsigned_casts[6];
}

namespace {

struct Bytes16 {
  uint64_t a, b;
};
struct Bytes32 {
  Bytes16 a, b;
};

// dst[i] = src[-i] by whole vectors; how many elements those are.
template <class T>
__attribute__((target("avx2"))) int64_t reverse_avx2(int64_t n, char* dst, const char* src) {
  constexpr int64_t kSize = sizeof(T), kLanes = 32 / kSize;
  typedef T V __attribute__((vector_size(32)));
  V back;  // the lanes in the opposite order
  for (int64_t k = 0; k < kLanes; k++) back[k] = static_cast<T>(kLanes - 1 - k);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    V v;
    std::memcpy(&v, src - (i + kLanes - 1) * kSize, 32);
    v = __builtin_shuffle(v, back);
    std::memcpy(dst + i * kSize, &v, 32);
  }
  return i;
}

template <class T>
void move_strided(int64_t n, char* dst, int64_t dst_stride, const char* src, int64_t src_stride) {
  constexpr int64_t kSize = sizeof(T), kLanes = 16 / kSize;
  int64_t i = 0;
  if constexpr (kSize <= 8) {
    typedef T V __attribute__((vector_size(16)));
    if (dst_stride == kSize && src_stride == 0 && n > 0) {
      T value;
      std::memcpy(&value, src, kSize);
      const V all = value - V{};
      for (; i + kLanes <= n; i += kLanes) std::memcpy(dst + i * kSize, &all, 16);
    } else if (dst_stride == kSize && src_stride == -kSize && cpu_tier() > 0) {
      i = reverse_avx2<T>(n, dst, src);
    }
  }
  for (; i < n; i++) std::memcpy(dst + i * dst_stride, src + i * src_stride, sizeof(T));
}

// 64 bytes at once; past the caches where the result begins with a line. Lines of `next` are fetched, see stream_copy.
template <bool streams>
void copy_lines(char* to, const char* from, size_t nbytes, int n_next, const char* const* next) {
  size_t i = 0;
  for (; i + 64 <= nbytes; i += 64) {
    for (int k = 0; k < n_next; k++) __builtin_prefetch(next[k] + i);
    for (int k = 0; k < 4; k++) {
      __m128i* const line = reinterpret_cast<__m128i*>(to + i) + k;
      const __m128i part = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i) + k);
      streams ? _mm_stream_si128(line, part) : _mm_storeu_si128(line, part);
    }
  }
  std::memcpy(to + i, from + i, nbytes - i);
}

// rows x columns of elements that are contiguous along the rows in src and along the columns in dst: squares of 16 bytes.
template <class T>
void transpose_tile(char* dst, int64_t dst_row, const char* src, int64_t src_column, int64_t rows, int64_t columns) {
  constexpr int64_t kSide = 16 / sizeof(T);
  for (int64_t c = 0; c < columns; c += kSide)
    for (int64_t r = 0; r < rows; r += kSide) {
      const char* from = src + c * src_column + r * static_cast<int64_t>(sizeof(T));
      char* to = dst + r * dst_row + c * static_cast<int64_t>(sizeof(T));
      __m128i v[kSide], w[kSide];
      for (int i = 0; i < kSide; i++) v[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i * src_column));
      // each step puts v[i] and v[i + kSide / 2] side by side, element by element
      for (int64_t step = kSide; step > 1; step /= 2) {
        for (int i = 0; i < kSide / 2; i++) {
          const __m128i a = v[i], b = v[i + kSide / 2];
          w[2 * i] = sizeof(T) == 2 ? _mm_unpacklo_epi16(a, b) : sizeof(T) == 4 ? _mm_unpacklo_epi32(a, b) : _mm_unpacklo_epi64(a, b);
          w[2 * i + 1] = sizeof(T) == 2 ? _mm_unpackhi_epi16(a, b) : sizeof(T) == 4 ? _mm_unpackhi_epi32(a, b) : _mm_unpackhi_epi64(a, b);
        }
        for (int i = 0; i < kSide; i++) v[i] = w[i];
      }
      for (int i = 0; i < kSide; i++) _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i * dst_row), v[i]);
    }
}

// The same in squares of whole cache lines, each read once and written once however the rows fall into the sets of the cache.
template <class T>
void transpose_lines(char* dst, int64_t dst_row, const char* src, int64_t src_column, int64_t rows, int64_t columns) {
  constexpr int64_t kSide = 64 / sizeof(T);
  alignas(64) char in[kSide][64], out[kSide][64];
  for (int64_t r = 0; r < rows; r += kSide)
    for (int64_t c = 0; c < columns; c += kSide) {
      for (int64_t i = 0; i < kSide; i++) std::memcpy(in[i], src + (c + i) * src_column + r * static_cast<int64_t>(sizeof(T)), 64);
      transpose_tile<T>(out[0], 64, in[0], 64, kSide, kSide);
      for (int64_t i = 0; i < kSide; i++) std::memcpy(dst + (r + i) * dst_row + c * static_cast<int64_t>(sizeof(T)), out[i], 64);
    }
}

// The same for 16- and 32-bit elements by AVX-512.
template <class T>
ARGAND_AVX512 void transpose_lines_avx512(char* dst, int64_t dst_row, const char* src, int64_t src_column, int64_t rows, int64_t columns) {
  constexpr int64_t kSide = 64 / sizeof(T);
  using Half = uint16_t __attribute__((vector_size(32)));
  alignas(64) char out[kSide][64];
  for (int64_t r = 0; r < rows; r += kSide)
    for (int64_t c = 0; c < columns; c += kSide) {
      for (int64_t part = 0; part < kSide; part += 16) {
        Lanes16 x[16];
        for (int i = 0; i < 16; i++) std::memcpy(&x[i], src + (c + part + i) * src_column + r * static_cast<int64_t>(sizeof(T)), 64);
        transpose16(x);
        for (int i = 0; i < 16; i++) {
          if constexpr (sizeof(T) == 4) {
            std::memcpy(out[i], &x[i], 64);
          } else {  // a lane holds two rows
            const Half even = __builtin_convertvector(x[i], Half), odd = __builtin_convertvector(x[i] >> 16, Half);
            std::memcpy(out[2 * i] + 2 * part, &even, 32);
            std::memcpy(out[2 * i + 1] + 2 * part, &odd, 32);
          }
        }
      }
      for (int64_t i = 0; i < kSide; i++) std::memcpy(dst + (r + i) * dst_row + c * static_cast<int64_t>(sizeof(T)), out[i], 64);
    }
}

// Along the shorter source stride: columns of a few rows at a time, so that each cache line is read once, and four of a page.
template <class T>
void gather_tile_of(char* dst, int64_t dst_row, const char* src, int64_t src_row, int64_t src_column, int64_t rows, int64_t columns) {
  constexpr int64_t kRows = sizeof(T) == 16 ? 16 : 64 / sizeof(T);
  for (int64_t r0 = 0; r0 < rows; r0 += kRows) {
    const int64_t count = std::min(kRows, rows - r0);
    for (int64_t c = 0; c < columns; c++) {
      const char* from = src + r0 * src_row + c * src_column;
      char* to = dst + r0 * dst_row + c * static_cast<int64_t>(sizeof(T));
      if (count == kRows && src_row == static_cast<int64_t>(sizeof(T))) {
        T line[kRows];
        std::memcpy(line, from, sizeof line);
        for (int64_t r = 0; r < kRows; r++) std::memcpy(to + r * dst_row, &line[r], sizeof(T));
      } else {
        for (int64_t r = 0; r < count; r++) std::memcpy(to + r * dst_row, from + r * src_row, sizeof(T));
      }
    }
  }
}

// Decoded numbers, and through float32 by blocks: conversions of float8 are bound by neither.
template <class F8>
const float* decoded() {
  static const auto table = [] {
    std::array<float, 256> values;
    for (int i = 0; i < 256; i++) values[i] = F8::decode(static_cast<uint8_t>(i));
    return values;
  }();
  return table.data();
}

void convert_float8(int64_t n, int dst_dtype, char* dst, int64_t dst_stride, int src_dtype, const char* src, int64_t src_stride) {
  float block[256];
  for (int64_t i = 0; i < n; i += 256) {
    const int64_t count = std::min<int64_t>(256, n - i);
    if (is_float8(src_dtype)) {
      const float* table = src_dtype == ARGAND_FLOAT8_E4M3FN ? decoded<Float8E4M3>() : decoded<Float8E5M2>();
      for (int64_t k = 0; k < count; k++) block[k] = table[static_cast<uint8_t>(src[(i + k) * src_stride])];
    } else {
      convert(count, ARGAND_FLOAT32, block, 4, src_dtype, src + i * src_stride, src_stride);
    }
    char* const to = dst + i * dst_stride;
    if (!is_float8(dst_dtype)) {
      convert(count, dst_dtype, to, dst_stride, ARGAND_FLOAT32, block, 4);
      continue;
    }
    for (int64_t k = 0; k < count; k++)
      to[k * dst_stride] = static_cast<char>(dst_dtype == ARGAND_FLOAT8_E4M3FN ? Float8E4M3::encode(block[k]) : Float8E5M2::encode(block[k]));
  }
}

// Wide unsigned numbers have the bits of signed ones of their width, but where they become wider or are floating-point numbers on the other side:
// then there is a loop, or a dtype that conversions go through.
void convert_unsigned(int64_t n, int dst_dtype, char* dst, int64_t dst_stride, int src_dtype, const char* src, int64_t src_stride) {
  const bool from = is_wide_unsigned(src_dtype), whole = is_integral(dst_dtype, true) && is_integral(src_dtype, true);
  if (whole && (!from || kItemSize[dst_dtype] <= kItemSize[src_dtype]))
    return convert(n, same_width_signed(dst_dtype), dst, dst_stride, same_width_signed(src_dtype), src, src_stride);
  const int tier = cpu_tier();
  const auto& loops = tier == 2 ? avx512::unsigned_casts : tier == 1 ? avx2::unsigned_casts : baseline::unsigned_casts;
  for (int i = 0; i < 6; i++) {
    if (kUnsignedCasts[i].dst != dst_dtype || kUnsignedCasts[i].src != src_dtype) continue;
    char* const ptrs[] = {dst, const_cast<char*>(src)};
    const int64_t strides[] = {dst_stride, src_stride};
    return loops[i](n, ptrs, strides);
  }
  const int own = from ? src_dtype : dst_dtype, other = from ? dst_dtype : src_dtype;
  const int middle = own != ARGAND_UINT64 ? same_width_signed(own) + 1 : other == ARGAND_COMPLEX128 ? ARGAND_FLOAT64 : ARGAND_FLOAT32;
  alignas(8) char block[512 * 8];
  const int size = kItemSize[middle];
  for (int64_t i = 0; i < n; i += 512) {
    const int64_t count = std::min<int64_t>(512, n - i);
    convert(count, middle, block, size, src_dtype, src + i * src_stride, src_stride);
    convert(count, dst_dtype, dst + i * dst_stride, dst_stride, middle, block, size);
  }
}

}  // namespace

void convert(int64_t n, int dst_dtype, void* dst, int64_t dst_stride, int src_dtype, const void* src, int64_t src_stride) {
  char* const to = static_cast<char*>(dst);
  const char* const from = static_cast<const char*>(src);
  if (dst_dtype != src_dtype && (is_float8(dst_dtype) || is_float8(src_dtype)))
    return convert_float8(n, dst_dtype, to, dst_stride, src_dtype, from, src_stride);
  if (dst_dtype != src_dtype && (is_wide_unsigned(dst_dtype) || is_wide_unsigned(src_dtype)))
    return convert_unsigned(n, dst_dtype, to, dst_stride, src_dtype, from, src_stride);
  if (dst_dtype != src_dtype) {
    char* const ptrs[] = {to, const_cast<char*>(from)};
    const int64_t strides[] = {dst_stride, src_stride};
    const int tier = cpu_tier();
    const auto& table = tier == 2 ? avx512::cast_table : tier == 1 ? avx2::cast_table : baseline::cast_table;
    return table[dst_dtype][src_dtype](n, ptrs, strides);
  }
  const int size = kItemSize[dst_dtype];
  if (dst_stride == size && src_stride == size) {
    copy_bytes(to, from, static_cast<size_t>(n) * size);
    return;
  }
  dispatch_size(size, [&](auto tag) { move_strided<typename decltype(tag)::type>(n, to, dst_stride, from, src_stride); });
}

void gather_tile(char* dst, int64_t dst_row, const char* src, int64_t src_row, int64_t src_column, int64_t rows, int64_t columns, int size) {
  if (src_column == size) {
    for (int64_t r = 0; r < rows; r++) copy_bytes(dst + r * dst_row, src + r * src_row, static_cast<size_t>(columns) * size);
    return;
  }
  const bool lines = rows * size >= 64 && columns * size >= 64;
  const int64_t side = (lines ? 64 : 16) / size, whole_rows = rows - rows % side, whole_columns = columns - columns % side;
  if (src_row == size && (size == 2 || size == 4 || size == 8) && whole_rows && whole_columns) {
    auto transpose = [&](auto tag) {
      using T = decltype(tag);
      auto* run = lines ? transpose_lines<T> : transpose_tile<T>;
      if constexpr (sizeof(T) < 8)
        if (lines && cpu_tier() == 2) run = transpose_lines_avx512<T>;
      run(dst, dst_row, src, src_column, whole_rows, whole_columns);
    };
    size == 2 ? transpose(uint16_t{}) : size == 4 ? transpose(uint32_t{}) : transpose(uint64_t{});
    if (rows > whole_rows)
      gather_tile(dst + whole_rows * dst_row, dst_row, src + whole_rows * src_row, src_row, src_column, rows - whole_rows, columns, size);
    if (columns > whole_columns)
      gather_tile(dst + whole_columns * size, dst_row, src + whole_columns * src_column, src_row, src_column, whole_rows, columns - whole_columns,
                  size);
    return;
  }
  dispatch_size(size, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (src_row < src_column)
      gather_tile_of<T>(dst, dst_row, src, src_row, src_column, rows, columns);
    else
      for (int64_t r = 0; r < rows; r++) move_strided<T>(columns, dst + r * dst_row, sizeof(T), src + r * src_row, src_column);
  });
}

// Longer copies than 2 KiB are one instruction in glibc, which takes a Zen 3 twenty times as long where the result begins up to 31 bytes behind
// the source modulo a page. From about a megabyte on it writes past the caches, though what is copied here is read again soon: pieces are not.
void copy_bytes(void* dst, const void* src, size_t nbytes) {
  constexpr size_t kPiece = 128 << 10;
  char* const to = static_cast<char*>(dst);
  const char* const from = static_cast<const char*>(src);
  const uintptr_t behind = (reinterpret_cast<uintptr_t>(dst) - reinterpret_cast<uintptr_t>(src)) % 4096;
  if (nbytes > 2048 && behind > 0 && behind < 32) return copy_lines<false>(to, from, nbytes, 0, nullptr);
  for (size_t i = 0; i < nbytes; i += kPiece) std::memcpy(to + i, from + i, std::min(kPiece, nbytes - i));
}

void move_rows(int64_t rows, char* dst, int64_t dst_row, int64_t dst_stride, const char* src, int64_t src_row, int64_t src_stride, int64_t columns,
               int size) {
  const int64_t bytes = columns * size;
  if (dst_stride != size || src_stride != size) {
    dispatch_size(size, [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int64_t r = 0; r < rows; r += 256)  // whose cache lines stay
        for (int64_t c = 0; c < columns; c++)
          move_strided<T>(std::min<int64_t>(256, rows - r), dst + r * dst_row + c * dst_stride, dst_row, src + r * src_row + c * src_stride, src_row);
    });
    return;
  }
  // The first and the last bytes of a row, which may be some of them twice.
  auto by_pairs = [&](auto piece) {
    constexpr int64_t kPiece = sizeof piece;
    for (int64_t r = 0; r < rows; r++, dst += dst_row, src += src_row) {
      decltype(piece) last;
      std::memcpy(&piece, src, kPiece);
      std::memcpy(&last, src + bytes - kPiece, kPiece);
      std::memcpy(dst, &piece, kPiece);
      std::memcpy(dst + bytes - kPiece, &last, kPiece);
    }
  };
  if (bytes > 64)
    for (int64_t r = 0; r < rows; r++) copy_row(dst + r * dst_row, src + r * src_row, bytes);
  else if (bytes > 32)
    by_pairs(Bytes32{});
  else if (bytes > 16)
    by_pairs(Bytes16{});
  else if (bytes >= 8)
    by_pairs(uint64_t{});
  else if (bytes >= 4)
    by_pairs(uint32_t{});
  else if (bytes >= 2)
    by_pairs(uint16_t{});
  else
    by_pairs(uint8_t{});
}

void spread_rows(int64_t rows, int64_t n, char* dst, const char* src, int64_t src_stride, int size) {
  dispatch_size(size, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr int64_t kLanes = 16 / sizeof(T);
    for (int64_t r = 0; r < rows; r++, dst += n * static_cast<int64_t>(sizeof(T)), src += src_stride) {
      T value, all[kLanes];
      std::memcpy(&value, src, sizeof(T));
      if (n < kLanes) {
        for (int64_t i = 0; i < n; i++) std::memcpy(dst + i * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
        continue;
      }
      std::fill_n(all, kLanes, value);
      const int64_t last = (n - kLanes) * static_cast<int64_t>(sizeof(T));  // some elements of the last piece are written twice
      for (int64_t b = 0; b < last; b += 16) std::memcpy(dst + b, all, 16);
      std::memcpy(dst + last, all, 16);
    }
  });
}

bool goes_past_caches(int64_t nbytes) {
  static const int64_t least = std::max<int64_t>(16 << 20, sysconf(_SC_LEVEL3_CACHE_SIZE) / 8);
  return nbytes >= least;
}

void stream_copy(void* dst, const void* src, size_t nbytes, int n_next, const char* const* next) {
  char* to = static_cast<char*>(dst);
  const char* from = static_cast<const char*>(src);
  const size_t head = std::min(nbytes, (64 - reinterpret_cast<uintptr_t>(to)) & 63);
  std::memcpy(to, from, head);
  copy_lines<true>(to + head, from + head, nbytes - head, n_next, next);
}

}  // namespace argand::kernels::cpu
