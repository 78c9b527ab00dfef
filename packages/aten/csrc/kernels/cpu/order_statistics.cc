// One element of each row along a dimension: the k-th smallest, the median, the most frequent, the last extreme so far. Which of
// equal elements is chosen is PyTorch's choice.
#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "packages/aten/csrc/core/builtins.h"
#include "packages/aten/csrc/kernels/cpu/ordered.h"
#include "packages/aten/generated/kernels.h"

namespace argand::kernels::cpu {
namespace {

template <class T>
bool is_nan(T x) {
  const auto wide = widen(x);
  return wide != wide;
}
// Ascending, NaN last.
template <class T>
bool less(T a, T b) {
  return (!is_nan(a) && is_nan(b)) || widen(a) < widen(b);
}

// Hoare's selection with the median of three as the pivot (Numerical Recipes, 8.5): afterwards row[k] is in its place.
template <class T>
void select(std::pair<T, int64_t>* row, int64_t n, int64_t k) {
  const auto order = [&](int64_t a, int64_t b) {
    if (less(row[b].first, row[a].first)) std::swap(row[a], row[b]);
  };
  int64_t low = 0, high = n - 1;
  while (high > low + 1) {
    std::swap(row[low + (high - low) / 2], row[low + 1]);
    order(low + 1, high);
    order(low, high);
    order(low + 1, low);
    const T pivot = row[low].first;
    int64_t i = low + 1, j = high;
    for (;;) {
      while (less(row[++i].first, pivot)) {
      }
      while (less(pivot, row[--j].first)) {
      }
      if (j < i) break;
      std::swap(row[i], row[j]);
    }
    std::swap(row[low], row[j]);
    if (j <= k) low = i;
    if (j >= k) high = j - 1;
  }
  if (high == low + 1) order(low, high);
}

// The elements with their places.
template <class T>
std::vector<std::pair<T, int64_t>> placed(const T* x, int64_t step, int64_t n) {
  std::vector<std::pair<T, int64_t>> row(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; i++) row[static_cast<size_t>(i)] = {x[i * step], i};
  return row;
}

template <class T>
int64_t kth(const T* x, int64_t step, int64_t n, int64_t k) {
  auto row = placed(x, step, n);
  select(row.data(), n, k);
  return row[static_cast<size_t>(k)].second;
}

// The k-th smallest key, and how many of its equals are smaller in rank; changes the order. Keys change places without branches, which no
// processor foresees.
template <class U>
std::pair<U, int64_t> kth_key(U* keys, int64_t n, int64_t k) {
  const auto bring_forward = [&](auto belongs) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
      const U key = keys[i];
      keys[i] = keys[count], keys[count] = key;
      count += belongs(key);
    }
    return count;
  };
  for (int round = 0; n > 32 && round < 64; round++) {
    const U a = keys[0], b = keys[n / 2], c = keys[n - 1], pivot = std::max(std::min(a, b), std::min(std::max(a, b), c));
    int64_t before = bring_forward([=](U key) { return key < pivot; });
    if (k < before) {
      n = before;
      continue;
    }
    if (before == 0 && k < (before = bring_forward([=](U key) { return key == pivot; }))) return {pivot, k};
    keys += before, n -= before, k -= before;
  }
  std::nth_element(keys, keys + k, keys + n);
  return {keys[k], k - std::count_if(keys, keys + k, [&](U key) { return key < keys[k]; })};
}

template <class T>
int64_t median(const T* x, int64_t step, int64_t n, bool ignore_nan) {
  Scratch<decltype(ordered(T{}))> keys(n);
  int64_t count = n;
  for (int64_t i = 0; i < n; i++) {
    keys[i] = ordered(x[i * step]);
    if constexpr (!std::is_integral_v<T>) count -= is_nan(x[i * step]);
  }
  int64_t at = 0;
  if (count < n && !ignore_nan) {
    while (!is_nan(x[at * step])) at++;
    return at;
  }
  auto [key, rank] = kth_key(&keys[0], n, std::max<int64_t>(count - 1, 0) / 2);
  for (;; at++)  // equal elements in their order
    if (ordered(x[at * step]) == key && rank-- == 0) return at;
}

template <class T>
int64_t mode(const T* x, int64_t step, int64_t n) {
  auto row = placed(x, step, n);
  std::sort(row.begin(), row.end(), [](const auto& a, const auto& b) { return less(a.first, b.first); });
  int64_t found = 0, most = 0;
  for (size_t i = 0, run = 0; i < row.size(); i++) {
    run++;
    if (i + 1 < row.size() && widen(row[i].first) == widen(row[i + 1].first)) continue;
    if (static_cast<int64_t>(run) > most) most = static_cast<int64_t>(run), found = row[i].second;
    run = 0;
  }
  return found;
}

}  // namespace

std::tuple<Tensor, Tensor> _order_statistic(const Tensor& self, int64_t dim, std::string_view kind, int64_t k) {
  const Tensor input = contiguous(self);
  builtins::Ints sizes = self.sizes().vec();
  sizes[static_cast<size_t>(dim)] = 1;
  const Tensor values = argand::empty(sizes, self.dtype()), indices = argand::empty(sizes, ARGAND_INT64);
  if (values.numel() == 0) return {values, indices};
  const DimSplit s(input, dim);
  dispatch_ordered("_order_statistic", self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    argand::parallel_for(0, s.outer * s.inner, row_grain(s.n * 8), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; r++) {
        const T* const x = input.data<T>() + r / s.inner * s.n * s.inner + r % s.inner;
        const int64_t at = kind == "kth"    ? kth(x, s.inner, s.n, k)
                           : kind == "mode" ? mode(x, s.inner, s.n)
                                            : median(x, s.inner, s.n, kind == "nanmedian");
        values.data<T>()[r] = x[at * s.inner];
        indices.data<int64_t>()[r] = at;
      }
    });
  });
  return {values, indices};
}

Tensor latest_extreme(const Tensor& self, int64_t dim, bool smallest) {
  const Tensor x = contiguous(self), out = empty(self.sizes(), ARGAND_INT64);
  const DimSplit s(x, builtins::wrap_dim(dim, self.dim()));
  constexpr int64_t kBlock = 256;  // neighbours that are looked at together
  const int64_t blocks = (s.inner + kBlock - 1) / kBlock;
  dispatch_ordered("_latest_extreme", x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto scan_block = [&](int64_t first, int64_t width, auto is_later) {
      const T* row = x.data<T>() + first;
      int64_t* to = out.data<int64_t>() + first;
      if (s.inner == 1) {
        auto best = widen(row[0]);
        for (int64_t i = 0, at = 0; i < s.n; i++) {
          const auto x = widen(row[i]);
          if (__builtin_expect(is_nan(row[i]) || is_later(x, best), 0)) at = i, best = x;  // seldom: a branch, and no chain of comparisons
          to[i] = at;
        }
        return;
      }
      T best[kBlock];
      std::copy_n(row, width, best);
      std::fill_n(to, width, 0);
      for (int64_t i = 1; i < s.n; i++) {
        row += s.inner, to += s.inner;
        for (int64_t j = 0; j < width; j++) {
          const bool later = is_nan(row[j]) || is_later(widen(row[j]), widen(best[j]));
          best[j] = later ? row[j] : best[j];
          to[j] = later ? i : to[j - s.inner];
        }
      }
    };
    if (s.n > 0)
      parallel_for(0, s.outer * blocks, row_grain(s.n * std::min(s.inner, kBlock)), [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; b++) {
          const int64_t column = b % blocks * kBlock, first = b / blocks * s.n * s.inner + column, width = std::min(kBlock, s.inner - column);
          smallest ? scan_block(first, width, std::less_equal()) : scan_block(first, width, std::greater_equal());
        }
      });
  });
  return out;
}

}  // namespace argand::kernels::cpu
