// Segments of a pointwise row: see Stage in loops.h. Compiled once, without tiers.
#include <cstdint>
#include <cstring>

#include "packages/aten/csrc/kernels/cpu/loops.h"

namespace argand::simd {
namespace {

struct Bytes16 {
  uint64_t a, b;
};

template <class T>
void copy_strided(char* dst, int64_t dst_stride, const char* src, int64_t src_stride, int64_t n) {
  for (int64_t i = 0; i < n; i++) std::memcpy(dst + i * dst_stride, src + i * src_stride, sizeof(T));
}

// Every other element, as the parts of complex numbers lie; nothing is read beyond the last one.
template <class T>
void copy_every_other(char* dst, const char* src, int64_t n) {
  typedef T Vector __attribute__((vector_size(16)));
  constexpr int64_t lanes = 16 / sizeof(T);
  int64_t i = 0;
  for (; i + lanes < n; i += lanes) {
    Vector a, b;
    std::memcpy(&a, src + 2 * i * static_cast<int64_t>(sizeof(T)), sizeof a);
    std::memcpy(&b, src + 2 * (i + lanes / 2) * static_cast<int64_t>(sizeof(T)), sizeof b);
    if constexpr (lanes == 4)
      a = __builtin_shuffle(a, b, Vector{0, 2, 4, 6});
    else
      a = __builtin_shuffle(a, b, Vector{0, 2});
    std::memcpy(dst + i * static_cast<int64_t>(sizeof(T)), &a, sizeof a);
  }
  copy_strided<T>(dst + i * static_cast<int64_t>(sizeof(T)), sizeof(T), src + 2 * i * static_cast<int64_t>(sizeof(T)), 2 * sizeof(T), n - i);
}

void copy_elements(char* dst, int64_t dst_stride, const char* src, int64_t src_stride, int64_t n, int size) {
  if (dst_stride == size && src_stride == size) {
    std::memcpy(dst, src, static_cast<size_t>(n) * size);
    return;
  }
  if (dst_stride == size && src_stride == 2 * size) {
    if (size == 4) return copy_every_other<uint32_t>(dst, src, n);
    if (size == 8) return copy_every_other<uint64_t>(dst, src, n);
  }
  switch (size) {
    case 1:
      return copy_strided<uint8_t>(dst, dst_stride, src, src_stride, n);
    case 2:
      return copy_strided<uint16_t>(dst, dst_stride, src, src_stride, n);
    case 4:
      return copy_strided<uint32_t>(dst, dst_stride, src, src_stride, n);
    case 16:
      return copy_strided<Bytes16>(dst, dst_stride, src, src_stride, n);
    default:
      return copy_strided<uint64_t>(dst, dst_stride, src, src_stride, n);
  }
}

}  // namespace

void gather_elements(char* dst, const char* src, long stride, long n, int size) { copy_elements(dst, size, src, stride, n, size); }

bool next_segment(Stage* s) {
  if (s->staged) {
    char* const to = s->rows[0] + (s->done - s->staged) * s->strides[0];
    copy_elements(to, s->strides[0], s->buffers[0], s->sizes[0], s->staged, s->sizes[0]);
    s->staged = 0;
  }
  const int64_t left = s->n - s->done;
  if (left <= 0) return false;
  const int lanes = s->lanes;
  const bool direct = left >= lanes;
  int64_t count = direct ? left & -static_cast<int64_t>(lanes) : left;  // lanes: a power of two
  if (direct) {                                                         // strided operands bound the segment by their buffers
    for (int k = 0; k < s->n_operands; k++) {
      if (s->strides[k] == s->sizes[k] || (s->strides[k] == 0 && k)) continue;
      const int64_t room = (kStageBytes / s->sizes[k]) & -static_cast<int64_t>(lanes);
      if (room < count) count = room;
    }
  }
  s->tail = direct ? 0 : count;
  for (int k = 0; k < s->n_operands; k++) {
    const int size = s->sizes[k];
    const int64_t stride = s->strides[k];
    char* const at = s->rows[k] + s->done * stride;
    s->step[k] = k && stride == 0 ? 0 : static_cast<int64_t>(size) * lanes;
    s->p[k] = direct && stride == size ? at : s->buffers[k];
    if (s->p[k] == at || (k && stride == 0) || (!direct && stride == size)) continue;  // contiguous tails are the caller's
    if (k == 0)
      s->staged = count;
    else
      copy_elements(s->buffers[k], size, at, stride, count, size);
  }
  s->vectors = direct ? count / lanes : 1;
  s->done += count;
  return true;
}

}  // namespace argand::simd
