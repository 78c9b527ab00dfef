// Conversion of runs of elements between dtypes, and moves of tiles between strided places.
#pragma once

#include <cstdint>
#include <cstring>

#include "packages/c10/csrc/abi/argand.h"

namespace argand::kernels::cpu {

// dst[i] = src[i] in dst's dtype; strides in bytes. float to integer truncates; complex to real keeps the real part; to bool: != 0.
using CastLoop = void (*)(int64_t n, char* const* ptrs, const int64_t* strides);
void convert(int64_t n, int dst_dtype, void* dst, int64_t dst_stride, int src_dtype, const void* src, int64_t src_stride);

// dst[r * dst_row + c * size] = src[r * src_row + c * src_column] for r < rows, c < columns: a tile, read in memory order.
void gather_tile(char* dst, int64_t dst_row, const char* src, int64_t src_row, int64_t src_column, int64_t rows, int64_t columns, int size);

// dst[r * dst_row + c * dst_stride] = src[r * src_row + c * src_stride]: many rows of a few columns.
void move_rows(int64_t rows, char* dst, int64_t dst_row, int64_t dst_stride, const char* src, int64_t src_row, int64_t src_stride, int64_t columns,
               int size);

// dst[r * n + i] = src[r] for i < n: a dense tile of rows of one value each, `src_stride` bytes apart.
void spread_rows(int64_t rows, int64_t n, char* dst, const char* src, int64_t src_stride, int size);

void copy_bytes(void* dst, const void* src, size_t nbytes);  // as memcpy does, but never slowly
// The same of a short row among many, for which a call costs more than the copy; the last bytes may be written twice.
inline void copy_row(char* dst, const char* src, int64_t nbytes) {
  constexpr int64_t kPiece = 32, kLongest = 1024;
  if (nbytes < kPiece || nbytes > kLongest) return copy_bytes(dst, src, static_cast<size_t>(nbytes));
  for (int64_t i = 0; i + kPiece < nbytes; i += kPiece) std::memcpy(dst + i, src + i, kPiece);
  std::memcpy(dst + nbytes - kPiece, src + nbytes - kPiece, kPiece);
}
// Copies to memory that is not read again soon, past the caches. Meanwhile as many bytes are fetched from each of `n_next` places that are
// read next, so that memory reads and writes at once.
void stream_copy(void* dst, const void* src, size_t nbytes, int n_next = 0, const char* const* next = nullptr);
// Whether a result of so many bytes is written past the caches: what stays in them is read again sooner.
bool goes_past_caches(int64_t nbytes);

}  // namespace argand::kernels::cpu
