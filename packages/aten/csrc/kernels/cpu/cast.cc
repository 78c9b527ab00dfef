#include "packages/aten/csrc/kernels/cpu/cast.h"

#include <emmintrin.h>
#include <xmmintrin.h>

#include <algorithm>
#include <cstring>

#include "packages/aten/csrc/kernels/cpu/util.h"

namespace argand::kernels::cpu {

namespace baseline {
extern const CastLoop cast_table[12][12];
}
namespace avx2 {
extern const CastLoop cast_table[12][12];
}
namespace avx512 {
extern const CastLoop cast_table[12][12];
}

namespace {

struct Bytes16 {
  uint64_t a, b;
};

template <class T>
void move_strided(int64_t n, char* dst, int64_t dst_stride, const char* src, int64_t src_stride) {
  for (int64_t i = 0; i < n; i++) std::memcpy(dst + i * dst_stride, src + i * src_stride, sizeof(T));
}

// count rows x columns of elements that are contiguous along the rows in src and along the columns in dst: squares of 16 bytes.
template <class T>
void transpose_tile(char* dst, int64_t dst_row, const char* src, int64_t src_column, int64_t rows, int64_t columns) {
  constexpr int64_t kSide = 16 / sizeof(T);
  for (int64_t c = 0; c < columns; c += kSide)
    for (int64_t r = 0; r < rows; r += kSide) {
      const char* from = src + c * src_column + r * static_cast<int64_t>(sizeof(T));
      char* to = dst + r * dst_row + c * static_cast<int64_t>(sizeof(T));
      if constexpr (kSide == 4) {
        __m128 v[4];
        for (int i = 0; i < 4; i++) v[i] = _mm_loadu_ps(reinterpret_cast<const float*>(from + i * src_column));
        _MM_TRANSPOSE4_PS(v[0], v[1], v[2], v[3]);
        for (int i = 0; i < 4; i++) _mm_storeu_ps(reinterpret_cast<float*>(to + i * dst_row), v[i]);
      } else {
        const __m128d a = _mm_loadu_pd(reinterpret_cast<const double*>(from)), b = _mm_loadu_pd(reinterpret_cast<const double*>(from + src_column));
        _mm_storeu_pd(reinterpret_cast<double*>(to), _mm_unpacklo_pd(a, b));
        _mm_storeu_pd(reinterpret_cast<double*>(to + dst_row), _mm_unpackhi_pd(a, b));
      }
    }
}

// Along the shorter source stride: columns of a few rows at a time, so that each cache line is read once.
template <class T>
void gather_tile_of(char* dst, int64_t dst_row, const char* src, int64_t src_row, int64_t src_column, int64_t rows, int64_t columns) {
  constexpr int64_t kRows = 64 / sizeof(T) ? 64 / sizeof(T) : 1;
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

}  // namespace

void convert(int64_t n, int dst_dtype, void* dst, int64_t dst_stride, int src_dtype, const void* src, int64_t src_stride) {
  char* const to = static_cast<char*>(dst);
  const char* const from = static_cast<const char*>(src);
  if (dst_dtype != src_dtype) {
    char* const ptrs[] = {to, const_cast<char*>(from)};
    const int64_t strides[] = {dst_stride, src_stride};
    const int tier = cpu_tier();
    const auto& table = tier == 2 ? avx512::cast_table : tier == 1 ? avx2::cast_table : baseline::cast_table;
    return table[dst_dtype][src_dtype](n, ptrs, strides);
  }
  const int size = kItemSize[dst_dtype];
  if (dst_stride == size && src_stride == size) {
    std::memcpy(to, from, static_cast<size_t>(n) * size);
    return;
  }
  dispatch_size(size, [&](auto tag) { move_strided<typename decltype(tag)::type>(n, to, dst_stride, from, src_stride); });
}

void gather_tile(char* dst, int64_t dst_row, const char* src, int64_t src_row, int64_t src_column, int64_t rows, int64_t columns, int size) {
  if (src_column == size) {
    for (int64_t r = 0; r < rows; r++) std::memcpy(dst + r * dst_row, src + r * src_row, static_cast<size_t>(columns) * size);
    return;
  }
  const int64_t side = 16 / size, whole_rows = rows - rows % side, whole_columns = columns - columns % side;
  if (src_row == size && (size == 4 || size == 8) && whole_rows && whole_columns) {
    if (size == 4)
      transpose_tile<float>(dst, dst_row, src, src_column, whole_rows, whole_columns);
    else
      transpose_tile<double>(dst, dst_row, src, src_column, whole_rows, whole_columns);
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

void stream_copy(void* dst, const void* src, size_t nbytes) {
  char* to = static_cast<char*>(dst);
  const char* from = static_cast<const char*>(src);
  const size_t head = std::min(nbytes, (64 - reinterpret_cast<uintptr_t>(to)) & 63);
  std::memcpy(to, from, head);
  size_t i = head;
  for (; i + 64 <= nbytes; i += 64)
    for (int k = 0; k < 4; k++)
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + i) + k, _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i) + k));
  std::memcpy(to + i, from + i, nbytes - i);
}

}  // namespace argand::kernels::cpu
