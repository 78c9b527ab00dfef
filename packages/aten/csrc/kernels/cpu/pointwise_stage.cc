// Segments of a pointwise row: see Stage in loops.h. Compiled once, without tiers.
#include <cstdint>
#include <cstring>

#include "packages/aten/csrc/kernels/cpu/loops.h"

namespace argand::simd {
namespace {

template <class T>
void copy_strided(char* dst, int64_t dst_stride, const char* src, int64_t src_stride, int64_t n) {
  for (int64_t i = 0; i < n; i++) std::memcpy(dst + i * dst_stride, src + i * src_stride, sizeof(T));
}

void copy_elements(char* dst, int64_t dst_stride, const char* src, int64_t src_stride, int64_t n, int size) {
  if (dst_stride == size && src_stride == size) {
    std::memcpy(dst, src, static_cast<size_t>(n) * size);
    return;
  }
  switch (size) {
    case 1: return copy_strided<uint8_t>(dst, dst_stride, src, src_stride, n);
    case 2: return copy_strided<uint16_t>(dst, dst_stride, src, src_stride, n);
    case 4: return copy_strided<uint32_t>(dst, dst_stride, src, src_stride, n);
    default: return copy_strided<uint64_t>(dst, dst_stride, src, src_stride, n);
  }
}

// Values that no function is slow at or traps on: 0.5, or 1 for integers and bool.
void fill_padding(char* buffer, int64_t from, int64_t to, int size, unsigned char fill) {
  const uint64_t value = fill == 2 ? 0x3800 : fill == 3 ? 0x3f00 : fill == 4 ? 0x3f000000 : fill == 8 ? 0x3fe0000000000000 : 1;
  for (int64_t i = from; i < to; i++) std::memcpy(buffer + i * size, &value, size);
}

}  // namespace

bool next_segment(Stage* s) {
  if (s->staged) {
    copy_elements(s->rows[0] + (s->done - s->staged) * s->strides[0], s->strides[0], s->buffers[0], s->sizes[0], s->staged, s->sizes[0]);
    s->staged = 0;
  }
  const int64_t left = s->n - s->done;
  if (left <= 0) return false;
  const int lanes = s->lanes;
  const bool direct = left >= lanes;
  int64_t count = direct ? left - left % lanes : left;
  if (direct) {  // strided operands bound the segment by their buffers
    for (int k = 0; k < s->n_operands; k++) {
      if (s->strides[k] == s->sizes[k] || (s->strides[k] == 0 && k)) continue;
      int64_t room = kStageBytes / s->sizes[k];
      room -= room % lanes;
      if (room < count) count = room;
    }
  }
  for (int k = 0; k < s->n_operands; k++) {
    const int size = s->sizes[k];
    const int64_t stride = s->strides[k];
    char* const at = s->rows[k] + s->done * stride;
    s->step[k] = static_cast<int64_t>(size) * lanes;
    if (k && stride == 0) {
      if (s->done == 0 || !direct) copy_elements(s->buffers[k], size, at, 0, lanes, size);
      s->p[k] = s->buffers[k];
      s->step[k] = 0;
    } else if (direct && stride == size) {
      s->p[k] = at;
    } else {
      s->p[k] = s->buffers[k];
      if (k) {
        copy_elements(s->buffers[k], size, at, stride, count, size);
        if (!direct) fill_padding(s->buffers[k], count, lanes, size, s->fills[k]);
      } else {
        s->staged = count;
      }
    }
  }
  s->vectors = direct ? count / lanes : 1;
  s->done += count;
  return true;
}

}  // namespace argand::simd
