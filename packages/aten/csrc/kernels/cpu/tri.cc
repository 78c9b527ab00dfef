// Kernels that move elements by position: triangles and their indices, reversal.
#include <algorithm>
#include <numeric>

#include "packages/aten/csrc/core/builtins.h"
#include "packages/aten/csrc/kernels/cpu/util.h"
#include "packages/aten/generated/kernels.h"

namespace argand::kernels::cpu {
namespace {

// Keeps elements with column - row <= diagonal (lower) or >= diagonal (upper), zeros the others.
Tensor triangle(const char* name, const Tensor& self, int64_t diagonal, bool lower) {
  if (self.dim() < 2)
    builtins::raise(ARGAND_RUNTIME_ERROR, builtins::text(name, ": input tensor must have at least 2 dimensions, got ", self.sizes()));
  const Tensor input = contiguous(self);
  const Tensor out = argand::empty(self.sizes(), self.dtype());
  const int64_t rows = self.size(-2), columns = self.size(-1), size = self.itemsize();
  const char* in = input.data<char>();
  char* o = out.data<char>();
  if (out.numel() == 0) return out;
  diagonal = std::clamp(diagonal, -rows - 1, columns);
  argand::parallel_for(0, out.numel() / columns, row_grain(columns), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; r++) {
      const int64_t split =
          std::clamp<int64_t>(r % rows + diagonal + (lower ? 1 : 0), 0, columns);  // columns before and after are treated differently
      char* to = o + r * columns * size;
      const char* from = in + r * columns * size;
      const int64_t head = split * size, tail = (columns - split) * size;
      if (lower) {
        std::memcpy(to, from, head);
        std::memset(to + head, 0, tail);
      } else {
        std::memset(to, 0, head);
        std::memcpy(to + head, from + head, tail);
      }
    }
  });
  return out;
}

}  // namespace

Tensor tril(const Tensor& self, int64_t diagonal) { return triangle("tril", self, diagonal, true); }
Tensor triu(const Tensor& self, int64_t diagonal) { return triangle("triu", self, diagonal, false); }

Tensor triangle_indices(int64_t row, int64_t col, int64_t offset, bool lower, std::optional<ArgandDevice>) {
  offset = std::clamp(offset, -row - 1, col);
  const auto split = [&](int64_t i) { return std::clamp<int64_t>(i + offset + (lower ? 1 : 0), 0, col); };
  int64_t n = 0;
  for (int64_t i = 0; i < row; i++) n += lower ? split(i) : col - split(i);
  const Tensor out = argand::empty({2, n}, ARGAND_INT64);
  int64_t *rows = out.data<int64_t>(), *columns = rows + n;
  for (int64_t i = 0; i < row; i++) {
    const int64_t first = lower ? 0 : split(i), count = (lower ? split(i) : col) - first;
    rows = std::fill_n(rows, count, i);
    std::iota(columns, columns + count, first);
    columns += count;
  }
  return out;
}

Tensor flip(const Tensor& self, IntList dims) {
  const uint64_t mask = wrap_dims("flip", dims, self.dim());
  const builtins::Strided like = builtins::clone_shape(self.sizes(), self.strides(), std::nullopt);
  const Tensor out = empty_strided(like.sizes, like.strides, self.dtype(), self.device());
  if (out.numel() == 0) return out;
  Dims strides(self.strides());
  const char* from = self.data<char>();
  for (int64_t d = 0; d < self.dim(); d++)
    if (mask >> d & 1) {
      from += (self.size(d) - 1) * self.stride(d) * self.itemsize();
      strides[d] = -strides[d];
    }
  strided_copy(self.itemsize(), self.dim(), self->sizes, out.data<char>(), out->strides, from, strides.d);
  return out;
}

}  // namespace argand::kernels::cpu
