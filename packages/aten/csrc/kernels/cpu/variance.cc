#include "packages/aten/csrc/kernels/cpu/variance.h"

#include <algorithm>
#include <cmath>

#include "packages/aten/csrc/core/iteration.h"
#include "packages/aten/csrc/kernels/cpu/copy.h"
#include "packages/aten/csrc/kernels/cpu/tiers.h"
#include "packages/aten/generated/ops/arithmetic.h"
#include "packages/aten/generated/ops/creation.h"
#include "packages/c10/csrc/core/strided.h"

namespace argand::kernels::cpu {

using Moments = void (*)(int64_t n, const char* p, double* mean, double* m2);
namespace baseline {
extern const Moments moments_table[4];
}
namespace avx2 {
extern const Moments moments_table[4];
}
namespace avx512 {
extern const Moments moments_table[4];
}

namespace {

constexpr int64_t kChunk = 8192;  // elements of a run: both passes find it in the first cache

struct Part {
  double n, mean, m2;
};
// T. Chan, G. Golub, R. LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances" (1979).
Part join(const Part& a, const Part& b) {
  const double n = a.n + b.n, delta = b.mean - a.mean;
  return {n, a.mean + delta * b.n / n, a.m2 + b.m2 + delta * delta * a.n * b.n / n};
}

Part of_row(Moments moments, const char* row, int64_t n, int size) {
  Part levels[40];
  uint64_t count = 0;
  for (int64_t i = 0; i < n; i += kChunk) {
    Part p{static_cast<double>(std::min(kChunk, n - i)), 0, 0};
    moments(std::min(kChunk, n - i), row + i * size, &p.mean, &p.m2);
    int level = 0;
    for (uint64_t c = count++; c & 1; c >>= 1) p = join(levels[level++], p);
    levels[level] = p;
  }
  Part total{0, 0, 0};
  for (int level = 0; count >> level; level++)
    if (count >> level & 1) total = total.n == 0 ? levels[level] : join(levels[level], total);
  return total;
}

// The reduced dimensions last, dense; kept ones in their order.
Tensor as_rows(const Tensor& self, uint64_t mask) {
  Dims sizes, strides;
  for (int pass = 0; pass < 2; pass++)
    for (int64_t d = 0; d < self.dim(); d++)
      if (static_cast<int>(mask >> d & 1) == pass) {
        sizes.push_back(self.size(d));
        strides.push_back(self.stride(d));
      }
  const Tensor turned = view_of(self, sizes, strides, self->offset);
  return turned.is_contiguous() ? turned : clone(turned, 0);
}

}  // namespace

namespace {

// The variance, or its root, and the mean: both are rounded to the dtype once.
std::tuple<Tensor, Tensor> moments_of(const Tensor& self, std::optional<IntList> dim, std::optional<Scalar> correction, bool keepdim, bool root) {
  if (!is_floating(self.dtype()) || is_float8(self.dtype()))
    fail(ARGAND_NOT_IMPLEMENTED_ERROR, "var: got dtype %s, expected a floating dtype; convert with .to(torch.float32)", kDTypeName[self.dtype()]);
  uint64_t mask = dim ? wrap_dims("var", *dim, self.dim()) : 0;
  if (mask == 0) mask = ~uint64_t{0};
  Dims sizes;
  int64_t n = 1;
  for (int64_t d = 0; d < self.dim(); d++) {
    const bool reduced = mask >> d & 1;
    if (reduced) n *= self.size(d);
    if (!reduced || keepdim) sizes.push_back(reduced ? 1 : self.size(d));
  }
  Tensor variance = empty(sizes, self.dtype(), self.device()), mean = empty(sizes, self.dtype(), self.device());
  if (self.is_meta() || variance.numel() == 0) return {variance, mean};
  const double divisor = static_cast<double>(n) - (correction ? correction->to_double() : 1.0);
  const int tier = cpu_tier();
  const Moments moments = (tier == 2   ? avx512::moments_table
                           : tier == 1 ? avx2::moments_table
                                       : baseline::moments_table)[self.dtype() - ARGAND_FLOAT16];
  const Tensor dense = as_rows(self, mask);
  const int64_t rows = variance.numel();
  const int size = self.itemsize();
  Tensor wide = empty({2, rows}, ARGAND_FLOAT64);
  double* out = wide.data<double>();
  auto store = [&](int64_t r, const Part& p) {
    const double variance = n == 0 ? NAN : divisor > 0 ? p.m2 / divisor : p.m2 == 0 ? NAN : p.m2 / 0.0;
    out[r] = root ? std::sqrt(variance) : variance;
    out[rows + r] = n == 0 ? NAN : p.mean;
  };
  if (rows >= 4 || n <= 8 * kChunk) {
    parallel_for(0, rows, std::max<int64_t>(1, 2 * kChunk / std::max<int64_t>(n, 1)), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; r++) store(r, of_row(moments, dense.data<char>() + r * n * size, n, size));
    });
  } else {  // few long rows: pieces of a power of two of chunks, joined in the same tree as of_row
    const int64_t piece = 8 * kChunk, pieces = (n + piece - 1) / piece;
    std::vector<Part> parts(pieces);
    for (int64_t r = 0; r < rows; r++) {
      const char* row = dense.data<char>() + r * n * size;
      parallel_for(0, pieces, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) parts[i] = of_row(moments, row + i * piece * size, std::min(piece, n - i * piece), size);
      });
      for (int64_t step = 1; step < pieces; step *= 2)
        for (int64_t i = 0; i + step < pieces; i += 2 * step) parts[i] = join(parts[i], parts[i + step]);
      store(r, parts[0]);
    }
  }
  copy_(variance, view_of(wide, variance.sizes(), contiguous_strides(variance.sizes()), 0), false);
  copy_(mean, view_of(wide, variance.sizes(), contiguous_strides(variance.sizes()), rows), false);
  return {variance, mean};
}

}  // namespace

std::tuple<Tensor, Tensor> var_mean(const Tensor& self, std::optional<IntList> dim, std::optional<Scalar> correction, bool keepdim) {
  return moments_of(self, dim, correction, keepdim, false);
}

Tensor var(const Tensor& self, std::optional<IntList> dim, std::optional<Scalar> correction, bool keepdim) {
  if (is_complex(self.dtype()))  // the sum of the parts'
    return ops::add(var(ops::real(self), dim, correction, keepdim), var(ops::imag(self), dim, correction, keepdim));
  return std::get<0>(moments_of(self, dim, correction, keepdim, false));
}

Tensor standard_deviation(const Tensor& self, std::optional<IntList> dim, std::optional<Scalar> correction, bool keepdim) {
  if (is_complex(self.dtype())) return ops::sqrt(var(self, dim, correction, keepdim));
  return std::get<0>(moments_of(self, dim, correction, keepdim, true));
}

}  // namespace argand::kernels::cpu
