// gather, scatter_, scatter_add_, scatter_reduce, index_select, index_add_: one index per place along one dim.
#include <algorithm>
#include <atomic>
#include <vector>

#include "packages/aten/csrc/core/builtins.h"
#include "packages/aten/csrc/core/pointwise_rules.h"
#include "packages/aten/csrc/kernels/cpu/cast.h"
#include "packages/aten/csrc/kernels/cpu/rows.h"
#include "packages/aten/csrc/kernels/cpu/util.h"
#include "packages/aten/generated/kernels.h"

namespace argand::kernels::cpu {
namespace {

// index, the tensor that is indexed, and the other one, walked together. The indexed tensor's stride along `dim` is kept apart.
struct Walk {
  int64_t n = 0;  // dims, at least 1; the first one is split among threads
  int64_t sizes[ARGAND_MAX_DIMS], index[ARGAND_MAX_DIMS], self[ARGAND_MAX_DIMS], other[ARGAND_MAX_DIMS];
  int64_t dim_stride = 0;
};

Walk make_walk(const Tensor& index, const Tensor& self, int64_t dim, const int64_t* other_strides) {
  Walk w;
  for (int64_t i = 0; i < index.dim(); i++) {
    w.sizes[w.n] = index.size(i);
    w.index[w.n] = index.stride(i);
    w.self[w.n] = i == dim || self.dim() == 0 ? 0 : self.stride(i);
    w.other[w.n++] = other_strides[i];
  }
  if (w.n == 0) w.sizes[0] = 1, w.index[0] = w.self[0] = w.other[0] = 0, w.n = 1;
  w.dim_stride = self.dim() ? self.stride(dim) : 0;
  return w;
}

void swap_dims(Walk& w, int64_t a, int64_t b) {
  std::swap(w.sizes[a], w.sizes[b]), std::swap(w.index[a], w.index[b]), std::swap(w.self[a], w.self[b]), std::swap(w.other[a], w.other[b]);
}

// Brings a dim in front along which different places never touch the same element of self; false if there is none.
bool lead_with_disjoint(Walk& w, int64_t dim) {
  for (int64_t i = 0; i < w.n; i++) {
    if (i == dim || w.sizes[i] < 2 || w.self[i] == 0) continue;
    for (int64_t k = i; k > 0; k--) swap_dims(w, k, k - 1);
    return true;
  }
  return false;
}

// f(offset in self, offset in other) for every place whose first coordinate is in [begin, end).
template <class F>
void walk_range(Walk w, const int64_t* index, int64_t begin, int64_t end, F&& f) {
  const int64_t first_self = begin * w.self[0], first_other = begin * w.other[0], last = w.n - 1, step = w.dim_stride;
  index += begin * w.index[0];
  w.sizes[0] = end - begin;
  if (w.index[0] == 1 || (w.index[0] == 0 && w.self[0] == 1))  // the dimension that lead_with_disjoint brought in front: along the rows
    for (int64_t k = 0; k < last; k++) swap_dims(w, k, k + 1);
  int64_t at[ARGAND_MAX_DIMS] = {}, k;
  do {
    int64_t i = 0, s = first_self, o = first_other;
    for (k = 0; k < last; k++) i += at[k] * w.index[k], s += at[k] * w.self[k], o += at[k] * w.other[k];
    const int64_t* const run = index + i;
    if (w.index[last] == 1 && w.other[last] == 1 && w.self[last] == 0) {  // along dense rows
      for (int64_t j = 0; j < w.sizes[last]; j++) f(s + run[j] * step, o + j);
    } else {
      for (int64_t j = 0; j < w.sizes[last]; j++) f(s + j * w.self[last] + run[j * w.index[last]] * step, o + j * w.other[last]);
    }
    for (k = last - 1; k >= 0 && ++at[k] == w.sizes[k]; k--) at[k] = 0;
  } while (k >= 0);
}

template <class F>
void walk(const Walk& w, const int64_t* index, bool parallel, F&& f) {
  int64_t inner = 1;
  for (int64_t k = 0; k < w.n; k++) {
    if (w.sizes[k] == 0) return;
    if (k) inner *= w.sizes[k];
  }
  if (!parallel) return walk_range(w, index, 0, w.sizes[0], f);
  parallel_for(0, w.sizes[0], row_grain(inner, 8192), [&](int64_t begin, int64_t end) { walk_range(w, index, begin, end, f); });
}

int64_t size_along(const Tensor& t, int64_t dim) { return t.dim() ? t.size(dim) : 1; }

// Checks the index against self (and src): every dim but `dim` must fit. Returns int64 indices, not looked at.
Tensor fitting_index(const char* op, const Tensor& index, const Tensor& self, int64_t dim, const Tensor& src) {
  if (index.numel() > 0) check_index_dtype(op, index);
  const Tensor i64 = index.dtype() == ARGAND_INT64 ? index : to_dtype(index, ARGAND_INT64);
  if (index.numel() == 0) return i64;
  auto rank = [](const Tensor& t) { return t.dim() ? t.dim() : 1; };
  bool fits = rank(index) == rank(self) && (!src || rank(src) == rank(index));
  for (int64_t d = 0; fits && d < rank(index); d++)
    fits = (d == dim || size_along(index, d) <= size_along(self, d)) && (!src || size_along(index, d) <= size_along(src, d));
  if (!fits)
    fail(rank(index) == rank(self) && src && src.dim() > 0 && src.dim() < rank(index) ? ARGAND_INDEX_ERROR : ARGAND_SHAPE_ERROR,
         "%s: got index of shape %s for self of shape %s%s%s, expected the same number of dims and no size greater than theirs apart from dimension "
         "%ld",
         op, to_string(index.sizes()).c_str(), to_string(self.sizes()).c_str(), src ? " and src of shape " : "",
         src ? to_string(src.sizes()).c_str() : "", static_cast<long>(dim));
  return i64;
}

// Checks values of int64 indices: in [0, limit).
void check_values(const char* op, const Tensor& i64, int64_t dim, int64_t limit) {
  const int64_t* p = i64.data<int64_t>();
  if (i64.is_contiguous()) {  // the usual, good case; a bad index is found again below for its message
    std::atomic<bool> bad{false};
    parallel_for(0, i64.numel(), 65536, [&](int64_t begin, int64_t end) {
      if (!pick_row_kernels().in_range(end - begin, p + begin, limit)) bad.store(true, std::memory_order_relaxed);
    });
    if (!bad.load(std::memory_order_relaxed)) return;
  }
  Dims zero;
  for (int64_t d = 0; d < i64.dim(); d++) zero.push_back(0);
  Walk w = make_walk(i64, i64, 0, zero.d);
  for (int64_t d = 0; d < w.n; d++) {
    w.self[d] = 0;
    if (w.index[d] == 0) w.sizes[d] = 1;  // once
  }
  w.dim_stride = 1;  // the offset in self is then the index itself
  walk(w, p, false, [&](int64_t value, int64_t) {
    if (value < 0 || value >= limit)
      fail(ARGAND_RUNTIME_ERROR, "%s: index %ld is out of bounds for dimension %ld with size %ld", op, static_cast<long>(value),
           static_cast<long>(dim), static_cast<long>(limit));
  });
}

// Both: the index fits, and so do its values.
Tensor checked_index(const char* op, const Tensor& index, const Tensor& self, int64_t dim, const Tensor& src) {
  const Tensor i64 = fitting_index(op, index, self, dim, src);
  if (index.numel() > 0) check_values(op, i64, dim, size_along(self, dim));
  return i64;
}

// Gathers along dense rows: indices are checked just before they are used, and the row that they point into is fetched in its order first.
// False, and nothing said, if one is out of range.
template <class T>
bool gather_rows(const Tensor& self, const Tensor& index, T* to) {
  const int64_t last = self.dim() - 1, n = index.size(last), limit = self.size(last);
  const int64_t row_bytes = limit * static_cast<int64_t>(sizeof(T)), *const p = index.data<int64_t>();
  const bool fetch = row_bytes <= 16384 && n * 64 >= row_bytes;
  const Iteration rows = [&] {
    Iteration it;
    it.set_shape({index.sizes().ptr, static_cast<int32_t>(last)});
    it.add(self->data, {index.sizes().ptr, static_cast<int32_t>(last)}, {self->strides, static_cast<int32_t>(last)}, sizeof(T));
    return it;
  }();
  std::atomic<bool> good{true};
  parallel_for(0, rows.numel, row_grain(n, 8192), [&](int64_t begin, int64_t end) {
    for_each_row(rows, begin, end, [&, r = begin](int64_t count, char* const* data) mutable {
      for (int64_t i = 0; i < count; i++, r++) {
        const char* const from = data[0] + i * rows.strides[0][0];
        for (int64_t b = 0; fetch && b < row_bytes; b += 64) __builtin_prefetch(from + b);
        if (!pick_row_kernels().in_range(n, p + r * n, limit)) return good.store(false, std::memory_order_relaxed);
        select_elements(n, reinterpret_cast<const T*>(from), p + r * n, to + r * n);
      }
    });
  });
  return good.load(std::memory_order_relaxed);
}

}  // namespace

Tensor gather(const Tensor& self, int64_t dim, const Tensor& index, bool) {
  const int64_t d = builtins::wrap_dim(dim, self.dim());
  const Tensor i64 = fitting_index("gather", index, self, d, Tensor()), out = empty(index.sizes(), self.dtype());
  if (index.numel() == 0) return out;
  const bool along_rows = d == self.dim() - 1 && self.stride(d) == 1 && i64.is_contiguous() && i64.size(d) >= 64;
  if (!along_rows) check_values("gather", i64, d, size_along(self, d));
  const Walk w = make_walk(i64, self, d, out->strides);
  dispatch_size(self.itemsize(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (along_rows) {
      if (!gather_rows<T>(self, i64, out.data<T>())) check_values("gather", i64, d, self.size(d));
      return;
    }
    const T* from = self.data<T>();
    T* to = out.data<T>();
    walk(w, i64.data<int64_t>(), true, [&](int64_t s, int64_t o) { to[o] = from[s]; });
  });
  return out;
}

void scatter_(const Tensor& self, int64_t dim, const Tensor& index, const Operand& src) {
  const int64_t d = builtins::wrap_dim(dim, self.dim());
  Tensor source;
  if (src.is_tensor()) {
    source = src.tensor();
    if (source.dtype() != self.dtype())
      fail(ARGAND_DTYPE_ERROR, "scatter: Expected self.dtype to be equal to src.dtype, got %s and %s", kDTypeName[self.dtype()],
           kDTypeName[source.dtype()]);
    if (source->storage == self->storage) {
      Tensor copy = empty(source.sizes(), source.dtype());
      strided_copy(source.itemsize(), source.dim(), source->sizes, copy->data, copy->strides, source->data, source->strides);
      source = copy;
    }
  }
  const Tensor i64 = checked_index("scatter", index, self, d, source);
  if (index.numel() == 0) return;
  Tensor value;
  Dims zero;
  for (int64_t k = 0; k < index.dim(); k++) zero.push_back(0);
  if (!source) {
    check_fits("scatter", self.dtype(), src.raw());
    value = empty(IntList{}, self.dtype());
    fill_(value, src);
  }
  Walk w = make_walk(i64, self, d, source ? source->strides : zero.d);
  const bool parallel = lead_with_disjoint(w, d);
  dispatch_size(self.itemsize(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = self.data<T>();
    const T* from = source ? source.data<T>() : value.data<T>();
    walk(w, i64.data<int64_t>(), parallel, [&](int64_t s, int64_t o) { to[s] = from[o]; });
  });
}

void scatter_add_(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  const int64_t d = builtins::wrap_dim(dim, self.dim());
  check_same_dtype("scatter_add", self, src);
  const Tensor i64 = checked_index("scatter_add", index, self, d, src);
  if (index.numel() == 0) return;
  Walk w = make_walk(i64, self, d, src->strides);
  const bool parallel = lead_with_disjoint(w, d);
  const int64_t* p = i64.data<int64_t>();
  if (is_complex(self.dtype())) {
    auto run = [&](auto* to, const auto* from) {
      walk(w, p, parallel, [&](int64_t s, int64_t o) { to[s].re += from[o].re, to[s].im += from[o].im; });
    };
    return self.dtype() == ARGAND_COMPLEX64 ? run(self.data<complex64>(), src.data<complex64>())
                                            : run(self.data<complex128>(), src.data<complex128>());
  }
  dispatch_real("scatter_add", self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = self.data<T>();
    const T* from = src.data<T>();
    const bool as_bool = self.dtype() == ARGAND_BOOL;
    walk(w, p, parallel, [&](int64_t s, int64_t o) {
      to[s] = as_bool ? static_cast<T>(narrow<T>(widen(to[s]) + widen(from[o]) != 0)) : narrow<T>(wrapped_sum(widen(to[s]), widen(from[o])));
    });
  });
}

namespace {

enum class Combine { kSum, kProd, kMean, kMax, kMin };

Combine combine_named(std::string_view name) {
  static constexpr std::string_view names[] = {"sum", "prod", "mean", "amax", "amin"};
  for (int i = 0; i < 5; i++)
    if (name == names[i]) return static_cast<Combine>(i);
  fail(ARGAND_RUNTIME_ERROR, "scatter_reduce: reduce argument must be either sum, prod, mean, amax or amin, got %.*s.", static_cast<int>(name.size()),
       name.data());
}

template <class C>
C neutral(Combine how) {
  using Limits = std::numeric_limits<C>;
  constexpr C low = Limits::has_infinity ? static_cast<C>(-Limits::infinity()) : Limits::lowest();
  constexpr C high = Limits::has_infinity ? Limits::infinity() : Limits::max();
  if (how == Combine::kMax) return low;
  return how == Combine::kMin ? high : how == Combine::kProd ? C(1) : C(0);
}

template <class C>
C combined(Combine how, C a, C b) {
  switch (how) {
    case Combine::kProd:
      return wrapped_product(a, b);
    case Combine::kMax:
      return a != a || a > b ? a : b;  // NaN stays
    case Combine::kMin:
      return a != a || a < b ? a : b;
    default:
      return wrapped_sum(a, b);
  }
}

// Calls f(how) with what the compiler knows.
template <class F>
void with_constant(Combine how, F&& f) {
  switch (how) {
    case Combine::kProd:
      return f(std::integral_constant<Combine, Combine::kProd>{});
    case Combine::kMax:
      return f(std::integral_constant<Combine, Combine::kMax>{});
    case Combine::kMin:
      return f(std::integral_constant<Combine, Combine::kMin>{});
    default:
      return f(std::integral_constant<Combine, Combine::kSum>{});
  }
}

// Sums of `count[s]` elements become means; integers are rounded towards negative infinity.
template <class T>
void divide_by_counts(T* to, const int64_t* count, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    if (count[i] < 2) continue;
    if constexpr (std::is_unsigned_v<T>) {
      to[i] = static_cast<T>(to[i] / static_cast<uint64_t>(count[i]));
    } else if constexpr (std::is_integral_v<T>) {
      const int64_t x = to[i], q = x / count[i];
      to[i] = static_cast<T>(q - (x % count[i] != 0 && x < 0));
    } else {
      to[i] = narrow<T>(widen(to[i]) / static_cast<compute_t<T>>(count[i]));
    }
  }
}

// Sums, products and means of complex numbers, which have no order.
template <class T>
void reduce_complex(Combine how, bool include_self, const Walk& w, const int64_t* p, bool parallel, const Tensor& out, const Tensor& src,
                    const Tensor& counts) {
  using R = decltype(T::re);
  T* to = out.data<T>();
  const T* from = src.data<T>();
  const T start{how == Combine::kProd ? R(1) : R(0), R(0)};
  if (!include_self) walk(w, p, parallel, [&](int64_t s, int64_t) { to[s] = start; });
  walk(w, p, parallel, [&](int64_t s, int64_t o) {
    const T a = to[s], b = from[o];
    to[s] = how == Combine::kProd ? T{a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re} : T{a.re + b.re, a.im + b.im};
  });
  for (int64_t i = 0; counts && i < out.numel(); i++) {
    const R n = static_cast<R>(std::max<int64_t>(counts.data<int64_t>()[i], 1));
    to[i] = {to[i].re / n, to[i].im / n};
  }
}

}  // namespace

Tensor scatter_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce, bool include_self) {
  const Combine how = combine_named(reduce);
  const int64_t d = builtins::wrap_dim(dim, self.dim());
  if (self.dtype() != src.dtype())
    fail(ARGAND_DTYPE_ERROR, "scatter: Expected self.dtype to be equal to src.dtype, got %s and %s", kDTypeName[self.dtype()],
         kDTypeName[src.dtype()]);
  const Tensor i64 = checked_index("scatter_reduce", index, self, d, src), out = clone(self, 0);
  if (index.numel() == 0) return out;
  Walk w = make_walk(i64, out, d, src->strides);
  const bool parallel = lead_with_disjoint(w, d);
  const int64_t* p = i64.data<int64_t>();
  Tensor counts;
  if (how == Combine::kMean) {
    counts = zeros(out.sizes(), ARGAND_INT64);
    int64_t* count = counts.data<int64_t>();
    if (include_self) std::fill_n(count, counts.numel(), 1);
    walk(w, p, parallel, [&](int64_t s, int64_t) { count[s]++; });
  }
  if (is_complex(self.dtype()) && how != Combine::kMax && how != Combine::kMin) {
    const auto run = self.dtype() == ARGAND_COMPLEX64 ? reduce_complex<complex64> : reduce_complex<complex128>;
    run(how, include_self, w, p, parallel, out, src, counts);
    return out;
  }
  dispatch_ordered("scatter_reduce", self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    T* to = out.data<T>();
    const T* from = src.data<T>();
    const bool as_bool = self.dtype() == ARGAND_BOOL;
    if (!include_self) {
      const T start = narrow<T>(as_bool && how == Combine::kMin ? C(1) : neutral<C>(how));
      walk(w, p, parallel, [&](int64_t s, int64_t) { to[s] = start; });
    }
    with_constant(how, [&](auto constant) {
      walk(w, p, parallel, [&](int64_t s, int64_t o) {
        const C x = combined<C>(constant, widen(to[s]), widen(from[o]));
        to[s] = narrow<T>(as_bool ? static_cast<C>(x != 0) : x);
      });
    });
    if (how == Combine::kMean) divide_by_counts(to, counts.data<int64_t>(), out.numel());
  });
  return out;
}

namespace {

Tensor checked_vector(const char* op, const Tensor& index, int64_t limit, ArgandErrorKind kind) {
  check_index_dtype(op, index);
  if (index.dim() > 1) fail(ARGAND_INDEX_ERROR, "%s: Index is supposed to be a vector, but got %s", op, to_string(index.sizes()).c_str());
  const Tensor t = to_dtype(index, ARGAND_INT64);
  for (int64_t i = 0; i < t.numel(); i++)
    if (t.data<int64_t>()[i] < 0 || t.data<int64_t>()[i] >= limit)
      fail(kind, "%s: index out of range: got index %ld, expected 0 <= index < %ld", op, static_cast<long>(t.data<int64_t>()[i]),
           static_cast<long>(limit));
  return t;
}

// Rows of neighbouring indices are copied at once.
template <class T>
void select_rows(int64_t n, int64_t inner, const T* from, const int64_t* index, T* to) {
  for (int64_t j = 0, run; j < n; j += run) {
    for (run = 1; j + run < n && index[j + run] == index[j] + run;) run++;
    copy_row(reinterpret_cast<char*>(to + j * inner), reinterpret_cast<const char*>(from + index[j] * inner),
             run * inner * static_cast<int64_t>(sizeof(T)));
  }
}

// Where indices begin that do not follow the one before, and n; nothing where these are many.
std::vector<int64_t> runs_of(int64_t n, const int64_t* index) {
  std::vector<int64_t> begins;
  for (int64_t j = 0; j < n; j++)
    if (j == 0 || index[j] != index[j - 1] + 1) {
      begins.push_back(j);
      if (static_cast<int64_t>(begins.size()) * 8 > n) return {};
    }
  begins.push_back(n);
  return begins;
}

}  // namespace

Tensor index_select(const Tensor& self, int64_t dim, const Tensor& index) {
  const int64_t d = builtins::wrap_dim(dim, self.dim());
  if (self.dim() == 0 && index.dim() <= 1 && index.numel() != 1)
    fail(ARGAND_SHAPE_ERROR, "index_select: got %ld indices for a 0-d tensor, expected one", static_cast<long>(index.numel()));
  const Tensor x = contiguous(self);
  const DimSplit s(x, d);
  const Tensor i64 = checked_vector("index_select", index, s.n, d == 1 || (s.n == 0 && x.dim() > 1) ? ARGAND_RUNTIME_ERROR : ARGAND_INDEX_ERROR);
  const int64_t count = i64.numel(), *p = i64.data<int64_t>();
  Dims sizes(x.sizes());
  if (x.dim()) sizes[d] = count;
  Tensor out = empty(sizes, x.dtype());
  if (out.numel() == 0) return out;
  const std::vector<int64_t> runs = s.inner == 1 && s.outer > 1 ? runs_of(count, p) : std::vector<int64_t>();
  dispatch_size(x.itemsize(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = x.data<T>();
    T* to = out.data<T>();
    parallel_for(0, s.outer * count, row_grain(s.inner), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin, n; i < end; i += n) {  // n places of one slice
        const int64_t k = i % count;
        n = std::min(count - k, end - i);
        const T* const slice = from + i / count * s.n * s.inner;
        if (s.inner == 1 && n == count && !runs.empty())
          for (size_t r = 0; r + 1 < runs.size(); r++) {
            const int64_t first = runs[r], length = runs[r + 1] - first;
            if (length == 1)
              to[i + first] = slice[p[first]];
            else
              copy_row(reinterpret_cast<char*>(to + i + first), reinterpret_cast<const char*>(slice + p[first]),
                       length * static_cast<int64_t>(sizeof(T)));
          }
        else if (s.inner == 1)
          select_elements(n, slice, p + k, to + i);
        else
          select_rows(n, s.inner, slice, p + k, to + i * s.inner);
      }
    });
  });
  return out;
}

// to += alpha * x of floats, which 16-bit ones are in float32 meanwhile.
template <class T>
static void add_scaled(int64_t n, int dtype, T* to, const T* x, compute_t<T> alpha) {
  constexpr int64_t kBlock = 512;
  const RowKernels& kernels = pick_row_kernels();
  if constexpr (std::is_same_v<T, compute_t<T>>) return add_row(kernels, n, to, x, alpha);
  compute_t<T> block[kBlock];
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t count = std::min(kBlock, n - i);
    convert(count, ARGAND_FLOAT32, block, sizeof *block, dtype, to + i, sizeof *to);
    add_row(kernels, count, block, x + i, alpha);
    convert(count, dtype, to + i, sizeof *to, ARGAND_FLOAT32, block, sizeof *block);
  }
}

// That there is a slice of source for each of `count` indices.
static void check_source(const Tensor& self, const Tensor& source, int64_t d, int64_t count) {
  if (source.dim() == 0 && count != 1)
    fail(ARGAND_INDEX_ERROR, "index_add: got %ld indices for a source without dimensions, expected one", static_cast<long>(count));
  bool fits = self.dim() == source.dim();
  for (int64_t k = 0; fits && k < self.dim(); k++) fits = source.size(k) == (k == d ? count : self.size(k));
  if (!fits)
    fail(ARGAND_SHAPE_ERROR,
         "index_add: got source of shape %s and %ld indices for self of shape %s, expected self's shape with dimension %ld as long as index",
         to_string(source.sizes()).c_str(), static_cast<long>(count), to_string(self.sizes()).c_str(), static_cast<long>(d));
}

void index_add_(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha) {
  const int64_t d = builtins::wrap_dim(dim, self.dim());
  check_same_dtype("index_add", self, source);
  check_scalar("index_add", self.dtype(), false, value(alpha));
  const Tensor work = contiguous(self), from = contiguous(source);
  const DimSplit s(work, d);
  const Tensor i64 = checked_vector("index_add", index, s.n, self.dim() > 1 ? ARGAND_RUNTIME_ERROR : ARGAND_INDEX_ERROR);
  const int64_t count = i64.numel(), *p = i64.data<int64_t>();
  check_source(self, source, d, count);
  // add(place in self, place in source, n) for n neighbours of each index; slices of the outer dims, and columns, are disjoint.
  const auto rows = [&](auto&& add) {
    if (s.outer == 1)
      return parallel_for(0, s.inner, row_grain(count), [&](int64_t begin, int64_t end) {
        for (int64_t i = 0; i < count; i++) add(p[i] * s.inner + begin, i * s.inner + begin, end - begin);
      });
    parallel_for(0, s.outer, row_grain(count * s.inner), [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; o++)
        for (int64_t i = 0; i < count; i++) add((o * s.n + p[i]) * s.inner, (o * count + i) * s.inner, s.inner);
    });
  };
  if (is_complex(self.dtype())) {
    auto run = [&](auto* to, const auto* x) {
      using R = decltype(to->re);
      const R re = static_cast<R>(alpha.re), im = static_cast<R>(alpha.im);
      rows([&](int64_t t, int64_t at, int64_t n) {
        for (int64_t j = 0; j < n; j++) to[t + j].re += re * x[at + j].re - im * x[at + j].im, to[t + j].im += re * x[at + j].im + im * x[at + j].re;
      });
    };
    if (self.dtype() == ARGAND_COMPLEX64)
      run(work.data<complex64>(), from.data<complex64>());
    else
      run(work.data<complex128>(), from.data<complex128>());
  } else {
    dispatch_real("index_add", self.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      using C = compute_t<T>;
      T* const to = work.data<T>();
      const T* const x = from.data<T>();
      const bool as_bool = self.dtype() == ARGAND_BOOL;
      const int64_t whole = as_bool ? alpha.to_int() != 0 : alpha.to_int();
      const C a = std::is_integral_v<T> ? static_cast<C>(whole) : static_cast<C>(alpha.to_double());
      const auto one = [&](T& place, T term) {
        const C sum = wrapped_sum<C>(widen(place), wrapped_product<C>(a, widen(term)));
        place = std::is_same_v<T, uint8_t> && as_bool ? static_cast<T>(narrow<T>(sum != 0)) : narrow<T>(sum);
      };
      if (s.inner == 1)
        return parallel_for(0, s.outer, row_grain(count), [&](int64_t begin, int64_t end) {
          for (int64_t o = begin; o < end; o++)
            for (int64_t i = 0; i < count; i++) one(to[o * s.n + p[i]], x[o * count + i]);
        });
      rows([&](int64_t t, int64_t at, int64_t n) {
        if constexpr (std::is_integral_v<T>)
          for (int64_t j = 0; j < n; j++) one(to[t + j], x[at + j]);
        else
          add_scaled(n, self.dtype(), to + t, x + at, a);
      });
    });
  }
  store_into(self, work);
}

}  // namespace argand::kernels::cpu
