// max and min along a dimension with indices, argmax, argmin.
#include <algorithm>
#include <tuple>

#include "packages/aten/csrc/core/dtype_checks.h"
#include "packages/aten/csrc/kernels/cpu/copy.h"
#include "packages/aten/csrc/kernels/cpu/reduce_index.h"
#include "packages/aten/csrc/kernels/cpu/tiers.h"
#include "packages/c10/csrc/core/strided.h"

namespace argand::kernels::cpu {

using Find = void (*)(int64_t n, const char* row, char* value, int64_t* index);
namespace baseline {
extern const Find extreme_table[2][11];
}
namespace avx2 {
extern const Find extreme_table[2][11];
}
namespace avx512 {
extern const Find extreme_table[2][11];
}

namespace {

constexpr int64_t kChunk = 65536;  // elements of a row that one task looks at

Find pick(const char* op, bool smallest, int dtype) {
  check_ordered(op, dtype);
  const int tier = cpu_tier();
  return (tier == 2   ? avx512::extreme_table
          : tier == 1 ? avx2::extreme_table
                      : baseline::extreme_table)[smallest][dtype == ARGAND_UINT64 ? 10 : dtype];
}

bool is_widened(int dtype) { return dtype == ARGAND_UINT16 || dtype == ARGAND_UINT32; }  // to uint64, which has a loop

// A dense copy (or self) with the dimension last, as rows.
Tensor as_rows(const Tensor& self, int64_t d) {
  Dims sizes, strides;
  for (int64_t i = 0; i < self.dim(); i++) {
    if (i == d) continue;
    sizes.push_back(self.size(i));
    strides.push_back(self.stride(i));
  }
  sizes.push_back(self.size(d));
  strides.push_back(self.stride(d));
  const Tensor turned = view_of(self, sizes, strides, self->offset);
  return turned.is_contiguous() ? turned : clone(turned, 0);
}

// values[r], indices[r] of `rows` rows of n. A long row is searched in chunks; chunks are joined in order.
void find_rows(Find find, const Tensor& dense, int64_t rows, int64_t n, char* values, int64_t* indices) {
  const int size = dense.itemsize();
  const char* data = dense.data<char>();
  if (rows >= 4 || n <= 2 * kChunk) {
    auto range = [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; r++) find(n, data + r * n * size, values + r * size, indices + r);
    };
    if (rows * n <= 16384)
      range(0, rows);
    else
      parallel_for(0, rows, std::max<int64_t>(1, 16384 / n), range);
    return;
  }
  const int64_t chunks = (n + kChunk - 1) / kChunk;
  const Tensor best = empty({chunks}, dense.dtype());
  std::vector<int64_t> at(chunks);
  for (int64_t r = 0; r < rows; r++) {
    const char* row = data + r * n * size;
    parallel_for(0, chunks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; c++) find(std::min(kChunk, n - c * kChunk), row + c * kChunk * size, best.data<char>() + c * size, &at[c]);
    });
    int64_t winner = 0;
    find(chunks, best.data<char>(), values + r * size, &winner);
    indices[r] = winner * kChunk + at[winner];
  }
}

std::tuple<Tensor, Tensor> extreme(const char* op, bool smallest, const Tensor& self, int64_t dim, bool keepdim) {
  if (is_widened(self.dtype())) {
    const auto [values, indices] = extreme(op, smallest, to_copy(self, ARGAND_UINT64, std::nullopt, false, std::nullopt), dim, keepdim);
    return {to_copy(values, self.dtype(), std::nullopt, false, std::nullopt), indices};
  }
  const Find find = pick(op, smallest, self.dtype());
  const int64_t d = wrap_dim(op, dim, self.dim());
  Dims sizes;
  for (int64_t i = 0; i < self.dim(); i++) {
    if (i != d) sizes.push_back(self.size(i));
    if (i == d && keepdim) sizes.push_back(1);
  }
  const int64_t n = self.dim() ? self.size(d) : 1;
  if (n == 0)
    fail(ARGAND_INDEX_ERROR, "%s: Expected reduction dim %lld to have non-zero size, but got a tensor of shape %s", op, static_cast<long long>(dim),
         to_string(self.sizes()).c_str());
  Tensor values = empty(sizes, self.dtype(), self.device()), indices = empty(sizes, ARGAND_INT64, self.device());
  if (self.is_meta() || values.numel() == 0) return {values, indices};
  find_rows(find, self.dim() ? as_rows(self, d) : self, values.numel(), n, values.data<char>(), indices.data<int64_t>());
  return {values, indices};
}

Tensor arg_extreme(const char* op, bool smallest, const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  check_not_bool(op, self.dtype());
  if (is_widened(self.dtype())) return arg_extreme(op, smallest, to_copy(self, ARGAND_UINT64, std::nullopt, false, std::nullopt), dim, keepdim);
  if (dim) return std::get<1>(extreme(op, smallest, self, *dim, keepdim));
  const Find find = pick(op, smallest, self.dtype());
  Dims sizes;
  for (int64_t i = 0; keepdim && i < self.dim(); i++) sizes.push_back(1);
  Tensor index = empty(sizes, ARGAND_INT64, self.device());
  if (self.is_meta()) return index;
  if (self.numel() == 0)
    fail(ARGAND_INDEX_ERROR, "%s: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument.",
         op);
  alignas(16) char value[16];
  find_rows(find, self.is_contiguous() ? self : clone(self, 0), 1, self.numel(), value, index.data<int64_t>());
  return index;
}

}  // namespace

std::tuple<Tensor, Tensor> max_dim(const Tensor& self, int64_t dim, bool keepdim) { return extreme("max", false, self, dim, keepdim); }
std::tuple<Tensor, Tensor> min_dim(const Tensor& self, int64_t dim, bool keepdim) { return extreme("min", true, self, dim, keepdim); }
Tensor argmax(const Tensor& self, std::optional<int64_t> dim, bool keepdim) { return arg_extreme("argmax", false, self, dim, keepdim); }
Tensor argmin(const Tensor& self, std::optional<int64_t> dim, bool keepdim) { return arg_extreme("argmin", true, self, dim, keepdim); }

}  // namespace argand::kernels::cpu
