// Runs of equal neighbours, and the order of rows that makes equal rows neighbours.
#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "packages/aten/csrc/kernels/cpu/ordered.h"
#include "packages/aten/generated/kernels.h"

namespace argand::kernels::cpu {
namespace {

// f(differ): differ(i, j), whether elements of a dense tensor do. NaN differs from itself.
template <class F>
void with_difference(const char* op, const Tensor& t, F&& f) {
  if (is_complex(t.dtype())) {
    const auto pairs = [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* x = t.data<T>();
      f([=](int64_t i, int64_t j) { return (x[2 * i] != x[2 * j]) | (x[2 * i + 1] != x[2 * j + 1]); });
    };
    if (t.itemsize() == 8)
      pairs(Tag<float>{});
    else
      pairs(Tag<double>{});
    return;
  }
  dispatch_real(op, t.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x = t.data<T>();
    f([=](int64_t i, int64_t j) { return widen(x[i]) != widen(x[j]); });
  });
}

using Range = std::pair<int64_t, int64_t>;  // of places

// Refines the order by one column after the other, each only where rows are equal so far.
template <class T>
void order_rows(const T* x, int64_t rows, int64_t columns, int64_t* order) {
  using Key = decltype(ordered(T{}));
  std::vector<std::pair<Key, int64_t>> entries(static_cast<size_t>(rows));
  std::vector<Range> equal{{0, rows}}, next;
  for (int64_t c = 0; c < columns && !equal.empty(); c++) {
    next.clear();
    for (const auto& [begin, end] : equal) {
      bool same = true;
      for (int64_t i = begin; i < end; i++) {
        entries[i] = {ordered(x[order[i] * columns + c]), order[i]};
        same &= entries[i].first == entries[begin].first;
      }
      if (same) {
        next.emplace_back(begin, end);
        continue;
      }
      std::sort(entries.begin() + begin, entries.begin() + end);
      int64_t first = begin;
      for (int64_t i = begin; i < end; i++) {
        order[i] = entries[i].second;
        if (i + 1 < end && entries[i + 1].first == entries[first].first) continue;
        if (i > first) next.emplace_back(first, i + 1);
        first = i + 1;
      }
    }
    std::swap(equal, next);
  }
}

}  // namespace

Tensor run_starts(const Tensor& self) {
  if (self.dim() == 0) fail(ARGAND_SHAPE_ERROR, "_run_starts: got a tensor without dimensions, expected at least one");
  const Tensor x = contiguous(self), out = argand::empty({x.size(0)}, ARGAND_BOOL);
  const int64_t n = x.size(0), row = n ? x.numel() / n : 0;
  bool* to = out.data<bool>();
  if (n) to[0] = true;
  with_difference("_run_starts", x, [&](auto differ) {
    if (row == 1) {
      for (int64_t i = 1; i < n; i++) to[i] = differ(i, i - 1);
      return;
    }
    for (int64_t i = 1; i < n; i++) {
      int64_t j = 0;
      while (j < row && !differ(i * row + j, (i - 1) * row + j)) j++;
      to[i] = j < row;
    }
  });
  return out;
}

Tensor run_places(const Tensor& starts, const Tensor& order) {
  if (starts.dtype() != ARGAND_BOOL || order.dtype() != ARGAND_INT64 || starts.dim() != 1 || !(starts.sizes() == order.sizes()))
    fail(ARGAND_RUNTIME_ERROR,
         "_run_places: got starts of shape %s and dtype %s, order of shape %s and dtype %s, expected vectors of one size, bool and int64",
         to_string(starts.sizes()).c_str(), kDTypeName[starts.dtype()], to_string(order.sizes()).c_str(), kDTypeName[order.dtype()]);
  const Tensor s = contiguous(starts), o = contiguous(order), out = argand::empty(o.sizes(), ARGAND_INT64);
  const bool* start = s.data<bool>();
  const int64_t* at = o.data<int64_t>();
  int64_t *to = out.data<int64_t>(), run = -1;
  const int64_t n = o.numel();
  for (int64_t i = 0; i < n; i++) {
    if (at[i] < 0 || at[i] >= n)
      fail(ARGAND_INDEX_ERROR, "_run_places: got place %lld, expected 0 to %lld", static_cast<long long>(at[i]), static_cast<long long>(n - 1));
    to[at[i]] = run += start[i];
  }
  return out;
}

Tensor distinct_neighbours(const Tensor& self) {
  if (self.dim() != 1) fail(ARGAND_SHAPE_ERROR, "_distinct_neighbours: got shape %s, expected one dimension", to_string(self.sizes()).c_str());
  const Tensor x = contiguous(self);
  const int64_t n = x.numel();
  Tensor out = argand::empty({0}, x.dtype());
  with_difference("_distinct_neighbours", x, [&](auto differ) {
    int64_t count = n > 0;
    for (int64_t i = 1; i < n; i++) count += differ(i, i - 1);
    out = argand::empty({count}, x.dtype());
    dispatch_size(x.itemsize(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* from = x.data<T>();
      T* to = out.data<T>();
      if (n) to[0] = from[0];
      // Without a branch: what does not begin a run is written over.
      for (int64_t i = 1, runs = 1; runs < count; i++) {
        to[runs] = from[i];
        runs += differ(i, i - 1);
      }
    });
  });
  return out;
}

Tensor lexicographic_order(const Tensor& self) {
  if (self.dim() != 2) fail(ARGAND_SHAPE_ERROR, "_lexicographic_order: got shape %s, expected a matrix", to_string(self.sizes()).c_str());
  const Tensor x = contiguous(self), out = argand::empty({x.size(0)}, ARGAND_INT64);
  int64_t* order = out.data<int64_t>();
  std::iota(order, order + x.size(0), 0);
  dispatch_ordered("unique", x.dtype(), [&](auto tag) { order_rows(x.data<typename decltype(tag)::type>(), x.size(0), x.size(1), order); });
  return out;
}

}  // namespace argand::kernels::cpu
