// Kernels whose results are positions or counts.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "packages/aten/csrc/core/builtins.h"
#include "packages/aten/csrc/kernels/cpu/util.h"
#include "packages/aten/generated/kernels.h"

namespace argand::kernels::cpu {
namespace {

template <class F>
void with_nonzero(const Tensor& t, F f) {  // f(is_nonzero(i))
  if (is_complex(t.dtype())) {
    const char* p = t.data<char>();
    const int64_t size = t.itemsize();
    f([=](int64_t i) {
      double re, im;
      if (size == 8) {
        float pair[2];
        std::memcpy(pair, p + i * size, 8);
        re = pair[0], im = pair[1];
      } else {
        std::memcpy(&re, p + i * size, 8);
        std::memcpy(&im, p + i * size + 8, 8);
      }
      return re != 0 || im != 0;
    });
    return;
  }
  dispatch_real("nonzero", t.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* p = t.data<T>();
    f([=](int64_t i) { return widen(p[i]) != 0; });
  });
}

// NaN is after all numbers.
template <class V>
bool before(V a, V b) {
  return (a < b) | ((b != b) & (a == a));
}

// How many elements, which come first, are `counted`: halves of what is left, without a branch that would be mispredicted.
template <class T, class F>
int64_t count_if_sorted(const T* begin, int64_t n, F counted) {
  if (n == 0) return 0;
  const T* p = begin;
  for (; n > 1; n -= n / 2) p += counted(p[n / 2 - 1]) ? n / 2 : 0;
  return p - begin + counted(*p);
}

// The same for values that are looked for at once, so that none waits for another's loads: counted(j, element) of the j-th.
constexpr int64_t kTogether = 8;
template <class T, class F>
void count_each_sorted(const T* begin, int64_t n, F counted, int64_t* found) {
  std::fill_n(found, kTogether, 0);
  for (; n > 1; n -= n / 2)
    for (int64_t j = 0; j < kTogether; j++) found[j] += n / 2 & -static_cast<int64_t>(counted(j, begin[found[j] + n / 2 - 1]));
  for (int64_t j = 0; n && j < kTogether; j++) found[j] += counted(j, begin[found[j]]);
}

}  // namespace

Tensor nonzero(const Tensor& self) {
  const Tensor input = contiguous(self);
  Tensor out;
  with_nonzero(input, [&](auto is_nonzero) {
    constexpr int64_t kChunk = 16384;
    const int64_t n = input.numel(), ndim = self.dim(), chunks = (n + kChunk - 1) / kChunk;
    std::vector<int64_t> first(static_cast<size_t>(chunks) + 1);  // rows before each chunk
    argand::parallel_for(0, chunks, 4, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; c++) {
        int64_t count = 0;
        for (int64_t i = c * kChunk, last = std::min(n, i + kChunk); i < last; i++) count += is_nonzero(i);
        first[static_cast<size_t>(c) + 1] = count;
      }
    });
    for (int64_t c = 0; c < chunks; c++) first[static_cast<size_t>(c) + 1] += first[static_cast<size_t>(c)];
    const int64_t found = first.back();  // the places of one dimension lie together
    out = argand::empty_strided({found, ndim}, {1, std::max<int64_t>(found, 1)}, ARGAND_INT64);
    argand::parallel_for(0, chunks, 4, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; c++) {
        int64_t* o = out.template data<int64_t>() + first[static_cast<size_t>(c)];
        if (ndim == 1) {  // without a branch: a place that does not count is written over
          for (int64_t i = c * kChunk, *end = out.template data<int64_t>() + first[static_cast<size_t>(c) + 1]; o < end; i++) {
            *o = i;
            o += is_nonzero(i);
          }
          continue;
        }
        const int64_t last = std::min(n, (c + 1) * kChunk), columns = ndim ? self.size(-1) : 1;
        for (int64_t i = c * kChunk; i < last;) {  // what is left of a row
          int64_t lead[ARGAND_MAX_DIMS], rest = i / columns;
          for (int64_t d = ndim - 2; d >= 0; d--) lead[d] = rest % self.size(d), rest /= self.size(d);
          const int64_t row = i / columns * columns, stop = std::min(last, row + columns);
          for (; i < stop; i++) {
            if (!is_nonzero(i)) continue;
            for (int64_t d = 0; d < ndim - 1; d++) o[d * found] = lead[d];
            if (ndim) o[(ndim - 1) * found] = i - row;
            o++;
          }
        }
      }
    });
  });
  return out;
}

Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& self, bool out_int32, bool right) {
  check_same_dtype("searchsorted", sorted_sequence, self);
  const Tensor sequence = contiguous(sorted_sequence), values = contiguous(self);
  const bool shared = sequence.dim() == 1;
  if (!shared && !(sequence.dim() == values.dim() && std::equal(sequence.sizes().begin(), sequence.sizes().end() - 1, values.sizes().begin())))
    builtins::raise(ARGAND_SHAPE_ERROR, builtins::text("boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and "
                                                       "input value tensor must match, but we got boundaries tensor ",
                                                       sequence.sizes(), " and input value tensor ", values.sizes()));
  const Tensor out = argand::empty(self.sizes(), out_int32 ? ARGAND_INT32 : ARGAND_INT64);
  const int64_t n = sequence.dim() ? sequence.size(-1) : 1, row = shared ? std::max<int64_t>(values.numel(), 1) : values.size(-1);
  dispatch_ordered("searchsorted", self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* v = values.data<T>();
    argand::parallel_for(0, values.numel(), 2048, [&](int64_t first, int64_t last) {
      int64_t count;
      for (int64_t i = first; i < last; i += count) {
        const T *begin = sequence.data<T>() + (shared ? 0 : i / row * n), *x = v + i;
        const auto left = [x](int64_t j, T a) { return before(widen(a), widen(x[j])); };
        const auto not_right = [x](int64_t j, T a) { return !before(widen(x[j]), widen(a)); };
        int64_t found[kTogether];
        count = std::min(last - i, row - i % row) >= kTogether ? kTogether : 1;
        if (count > 1)
          right ? count_each_sorted(begin, n, not_right, found) : count_each_sorted(begin, n, left, found);
        else
          found[0] =
              right ? count_if_sorted(begin, n, [&](T a) { return not_right(0, a); }) : count_if_sorted(begin, n, [&](T a) { return left(0, a); });
        for (int64_t j = 0; j < count; j++)
          if (out_int32)
            out.data<int32_t>()[i + j] = static_cast<int32_t>(found[j]);
          else
            out.data<int64_t>()[i + j] = found[j];
      }
    });
  });
  return out;
}

// In float32 for 16-bit floats. A thread counts the elements of a chunk in memory of its own.
Tensor count_in_bins(const Tensor& self, const Tensor& low, const Tensor& high, int64_t bins) {
  const Tensor input = contiguous(self), out = zeros({bins}, ARGAND_INT64);
  dispatch_floating("histc", self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const T* x = input.data<T>();
    const C first = widen(*low.data<T>()), last = widen(*high.data<T>()), parts = static_cast<C>(bins);
    // Products come before the quotient, which rounds once, and after it where the largest has no place in the dtype.
    const C half = std::isfinite(last - first) ? C(1) : C(0.5), from = first * half, width = last * half - from;
    const bool fits = std::isfinite(width * parts);
    const C before = fits ? parts : C(1), after = fits ? C(1) : parts;
    argand::parallel_for(0, input.numel(), std::max<int64_t>(bins, 1 << 16), [&](int64_t begin, int64_t end) {
      std::vector<int64_t> counts(static_cast<size_t>(bins));
      for (int64_t i = begin; i < end; i++) {
        const C v = widen(x[i]);
        if (v >= first && v <= last)
          counts[static_cast<size_t>(std::min(static_cast<int64_t>((v * half - from) * before / width * after), bins - 1))]++;
      }
      for (int64_t b = 0; b < bins; b++)
        if (counts[static_cast<size_t>(b)])
          std::atomic_ref(out.data<int64_t>()[b]).fetch_add(counts[static_cast<size_t>(b)], std::memory_order_relaxed);
    });
  });
  return out;
}

Tensor bincount(const Tensor& self, const Tensor& weights, int64_t minlength) {
  const bool integral = is_integral(self.dtype(), false);
  if (self.dim() != 1 || !integral)
    builtins::raise(integral ? ARGAND_RUNTIME_ERROR : ARGAND_NOT_IMPLEMENTED_ERROR,
                    builtins::text("bincount only supports 1-d non-negative integral inputs, got ", self.dtype(), " of shape ", self.sizes()));
  if (minlength < 0) builtins::raise(ARGAND_RUNTIME_ERROR, "minlength should be >= 0");
  if (weights && !(weights.sizes() == self.sizes())) builtins::raise(ARGAND_SHAPE_ERROR, "weights should be 1-d and have the same length as input");
  const Tensor input = to_dtype(contiguous(self), ARGAND_INT64);
  const int64_t* v = input.data<int64_t>();
  int64_t n = minlength;
  for (int64_t i = 0; i < input.numel(); i++) {
    if (v[i] < 0) builtins::raise(ARGAND_RUNTIME_ERROR, "bincount only supports 1-d non-negative integral inputs.");
    n = std::max(n, builtins::plus(v[i], 1));
  }
  const bool single = weights && weights.dtype() == ARGAND_FLOAT32, counts = !weights || !input.numel();
  const Tensor out = zeros({n}, counts ? ARGAND_INT64 : ARGAND_FLOAT64);
  if (counts) {
    for (int64_t i = 0; i < input.numel(); i++) out.data<int64_t>()[v[i]]++;
    return out;
  }
  const Tensor w = to_dtype(contiguous(weights), ARGAND_FLOAT64);
  for (int64_t i = 0; i < input.numel(); i++) out.data<double>()[v[i]] += w.data<double>()[i];
  return single ? to_dtype(out, ARGAND_FLOAT32) : out;
}

}  // namespace argand::kernels::cpu
