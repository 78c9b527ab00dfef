// Sorting along a dimension: rows in parallel, stable, NaN last (greatest).
#include <algorithm>
#include <numeric>

#include "packages/aten/csrc/core/builtins.h"
#include "packages/aten/csrc/kernels/cpu/util.h"
#include "packages/aten/generated/kernels.h"

namespace argand::kernels::cpu {
namespace {

template <class T>
inline bool less(T a, T b) {  // NaN is the greatest
  return a < b || (b != b && a == a);
}

// Indices of the first `k` elements of one row in order; `values` has n entries.
template <class C>
void order_row(const C* values, int64_t n, int64_t k, bool descending, int64_t* order) {
  std::iota(order, order + n, int64_t{0});
  auto before = [=](int64_t a, int64_t b) {
    const bool first = descending ? less(values[b], values[a]) : less(values[a], values[b]);
    const bool second = descending ? less(values[a], values[b]) : less(values[b], values[a]);
    return first || (!second && a < b);
  };
  if (k < n)
    std::partial_sort(order, order + k, order + n, before);
  else
    std::sort(order, order + n, before);
}

std::tuple<Tensor, Tensor> order_dim(const char* name, const Tensor& self, int64_t dim, int64_t k, bool descending, IntList sizes) {
  const Tensor input = contiguous(self);
  const Tensor values = argand::empty(sizes, self.dtype()), indices = argand::empty(sizes, ARGAND_INT64);
  if (values.numel() == 0) return {values, indices};
  const DimSplit s(input, dim);
  dispatch_real(name, self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const T* in = input.data<T>();
    T* out = values.data<T>();
    int64_t* at = indices.data<int64_t>();
    argand::parallel_for(0, s.outer * s.inner, row_grain(s.n * 8), [&](int64_t begin, int64_t end) {
      Scratch<C> row(s.n);
      Scratch<int64_t> order(s.n);
      for (int64_t r = begin; r < end; r++) {
        const int64_t o = r / s.inner, i = r % s.inner;
        const T* from = in + o * s.n * s.inner + i;
        for (int64_t j = 0; j < s.n; j++) row[j] = widen(from[j * s.inner]);
        order_row<C>(row, s.n, k, descending, order);
        for (int64_t j = 0; j < k; j++) {
          out[(o * k + j) * s.inner + i] = from[order[j] * s.inner];
          at[(o * k + j) * s.inner + i] = order[j];
        }
      }
    });
  });
  return {values, indices};
}

}  // namespace

std::tuple<Tensor, Tensor> sort(const Tensor& self, int64_t dim, bool descending, bool) {
  const int64_t d = wrap_dim(dim, self.dim());
  return order_dim("sort", self, d, self.dim() ? self.size(d) : 1, descending, self.sizes());
}

std::tuple<Tensor, Tensor> topk(const Tensor& self, int64_t k, int64_t dim, bool largest, bool) {
  const int64_t d = wrap_dim(dim, self.dim());
  const int64_t n = self.dim() ? self.size(d) : 1;
  if (k < 0 || k > n) builtins::raise(ARGAND_RUNTIME_ERROR, builtins::text("selected index k out of range: got k=", k, " for a dimension of size ", n));
  builtins::Ints sizes = self.sizes().vec();
  if (!sizes.empty()) sizes[d] = k;
  return order_dim("topk", self, d, k, largest, sizes);
}

}  // namespace argand::kernels::cpu
