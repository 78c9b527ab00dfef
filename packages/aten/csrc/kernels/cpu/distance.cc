// Distances of all pairs of rows: the rows of one side lie across vectors, so that lanes hold neighbouring pairs.
#include "packages/aten/csrc/kernels/cpu/distance.h"

#include <algorithm>

#include "packages/aten/csrc/kernels/cpu/util.h"
#include "packages/aten/generated/kernels.h"

namespace argand::kernels::cpu {
namespace {

constexpr int64_t kBlockBytes = 24 << 10;  // of columns that stay in the first cache

// x (batch, n, d), columns (batch, d, step) of which m count; of pairs, those behind the diagonal, row by row.
template <class T>
struct Distances {
  const T *x, *columns;
  T* out;
  int64_t batch, n, m, d, step;
  bool pairs;
  double p;

  T* row_of(int64_t b, int64_t r) const { return out + (pairs ? r * n - r * (r + 1) / 2 - r - 1 : (b * n + r) * m); }

  void fill(int64_t b, int64_t first, int64_t last) const {
    const auto loop = distance_loop(T{});
    const int64_t block = std::max<int64_t>(kDistanceSlack, kBlockBytes / static_cast<int64_t>(sizeof(T)) / std::max<int64_t>(d, 1));
    for (int64_t at = 0; at < m; at += block)
      for (int64_t r = first; r < last; r++) {
        const int64_t begin = pairs ? std::max(at, r + 1) : at, end = std::min(m, at + block);
        if (begin < end) loop(d, end - begin, x + (b * n + r) * d, columns + b * d * step + begin, step, row_of(b, r) + begin, p);
      }
  }
  void run() const {
    if (pairs)  // a row from the front with one from the back: all tasks have as much to do
      return parallel_for(0, n / 2, row_grain(n * d), [&](int64_t begin, int64_t end) {
        fill(0, begin, end);
        fill(0, std::max(n - 1 - end, end), n - 1 - begin);
      });
    parallel_for(0, batch * n, row_grain(m * d), [&](int64_t begin, int64_t end) {
      for (int64_t next; begin < end; begin = next) {
        const int64_t b = begin / n;
        next = std::min(end, (b + 1) * n);
        fill(b, begin - b * n, next - b * n);
      }
    });
  }
};

}  // namespace

Tensor distances(const Tensor& x1, const Tensor& x2, double p) {
  const bool pairs = !x2;
  const Tensor& other = pairs ? x1 : x2;
  const int dtype = x1.dtype() == ARGAND_FLOAT64 ? ARGAND_FLOAT64 : ARGAND_FLOAT32;
  const int64_t last = x1.dim() - 1, n = x1.size(last - 1), m = other.size(last - 1), d = x1.size(last);
  Dims sizes(x1.sizes());
  sizes.n--;
  if (pairs)
    sizes[0] = n * (n - 1) / 2;
  else
    sizes.push_back(m);
  const Tensor out = argand::empty(sizes, dtype);
  if (out.numel() == 0) return to_dtype(out, x1.dtype());
  dispatch_floating("_distances", dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (sizeof(T) >= 4) {
      const Tensor x = contiguous(to_dtype(x1, dtype)), y = pairs ? x : to_dtype(x2, dtype);
      const int64_t batch = product(x.sizes(), 0, last - 1), line = 64 / sizeof(T);
      const int64_t step = ((m + line - 1) / line | 1) * line;  // an odd number of lines: they lie in all sets of the cache
      const Scratch<T> columns(batch * d * step + kDistanceSlack);
      Dims across(y.sizes()), from(y.strides()), to(y.sizes());
      std::swap(across[last - 1], across[last]);
      std::swap(from[last - 1], from[last]);
      int64_t stride = d * step;
      for (int64_t i = last - 2; i >= 0; stride *= across[i--]) to[i] = stride;
      to[last - 1] = step, to[last] = 1;
      strided_copy(static_cast<int>(sizeof(T)), last + 1, across.d, columns.get(), to.d, y.data<T>(), from.d);
      Distances<T>{x.data<T>(), columns, out.data<T>(), batch, n, m, d, step, pairs, p}.run();
    }
  });
  return to_dtype(out, x1.dtype());
}

}  // namespace argand::kernels::cpu
