// Advanced indexing: index and index_put_ with integer and bool tensors, one per dimension or None.
#include <atomic>
#include <optional>

#include "packages/aten/csrc/core/builtins.h"
#include "packages/aten/csrc/kernels/cpu/cast.h"
#include "packages/aten/csrc/kernels/cpu/rows.h"
#include "packages/aten/csrc/kernels/cpu/util.h"
#include "packages/aten/generated/kernels.h"

namespace argand::kernels::cpu {
namespace {

// self[indices] as three groups of dims [pre, indexed, post]: an offset into self is pre + table[indexed] + post, in elements.
struct IndexPlan {
  Dims pre, pre_strides;  // plain dims before the indexed ones (none if the indexed dims are not adjacent)
  Dims shape;             // the indices' broadcast shape
  Tensor table;           // may be the index tensor itself
  Dims post, post_strides;

  Dims result() const {
    Dims r = pre;
    for (int64_t i = 0; i < shape.n; i++) r.push_back(shape[i]);
    for (int64_t i = 0; i < post.n; i++) r.push_back(post[i]);
    return r;
  }
};

// Replaces bool masks by the index tensors of their nonzero places; a 0-d mask indexes a new dimension of size 1 of `self`.
void expand_masks(Tensor& self, TensorList& indices) {
  TensorList out;
  for (size_t k = 0; k < indices.size(); k++) {
    const Tensor& mask = indices[k];
    if (!mask || mask.dtype() != ARGAND_BOOL) {
      if (mask && mask.dtype() != ARGAND_INT64 && mask.dtype() != ARGAND_INT32)
        fail(ARGAND_INDEX_ERROR, "index: got an index of dtype %s, expected int64, int32 or bool; convert with .long()", kDTypeName[mask.dtype()]);
      out.push_back(mask);
      continue;
    }
    const int64_t at = static_cast<int64_t>(out.size());
    if (mask.dim() == 0) {
      Dims sizes, strides;
      for (int64_t i = 0; i <= self.dim(); i++) {
        if (i == at) sizes.push_back(1), strides.push_back(0);
        if (i < self.dim()) sizes.push_back(self.size(i)), strides.push_back(self.stride(i));
      }
      self = view_of(self, sizes, strides, self->offset);
      out.push_back(zeros({*mask.data<uint8_t>() ? 1 : 0}, ARGAND_INT64));
      continue;
    }
    for (int64_t i = 0; i < mask.dim(); i++)
      if (at + i >= self.dim() || mask.size(i) != self.size(at + i))
        fail(ARGAND_INDEX_ERROR, "index: The shape of the mask %s at index %ld does not match the shape of the indexed tensor %s at index %ld",
             to_string(mask.sizes()).c_str(), static_cast<long>(i), to_string(self.sizes()).c_str(), static_cast<long>(at + i));
    const Tensor places = nonzero(mask);
    const int64_t n = places.size(0);
    for (int64_t i = 0; i < mask.dim(); i++) out.push_back(view_of(places, {n}, {places.stride(0)}, places->offset + i * places.stride(1)));
  }
  indices = std::move(out);
}

// Whether all of n indices are in [0, size).
bool are_inside(const int64_t* index, int64_t n, int64_t size) {
  std::atomic<bool> inside{true};
  parallel_for(0, n, 65536, [&](int64_t begin, int64_t end) {
    if (!pick_row_kernels().in_range(end - begin, index + begin, size)) inside.store(false, std::memory_order_relaxed);
  });
  return inside.load(std::memory_order_relaxed);
}

// Adds index * stride of one index tensor (sole: there is no other) to every place of the table, which the first one makes.
void add_offsets(IndexPlan& plan, const Tensor& index, bool sole, int64_t dim, int64_t size, int64_t stride) {
  const Tensor i64 = to_dtype(index, ARGAND_INT64);
  const Dims strides = broadcast_strides("index", i64, plan.shape);
  const int64_t *p = i64.data<int64_t>(), n = product(plan.shape);
  const bool first = !plan.table;
  if (sole && stride == 1 && i64.numel() == n && are_inside(p, n, size)) {
    plan.table = i64;
    return;
  }
  if (first) plan.table = argand::empty({n}, ARGAND_INT64);
  int64_t* const table = plan.table.data<int64_t>();
  if (i64.numel() == n) {  // the usual, good case; a bad index is found again below for its message
    std::atomic<bool> bad{false};
    parallel_for(0, n, 32768, [&](int64_t begin, int64_t end) {
      bool outside = false;
      for (int64_t k = begin; k < end; k++) {
        outside |= p[k] < -size || p[k] >= size;
        table[k] = (p[k] < 0 ? p[k] + size : p[k]) * stride + (first ? 0 : table[k]);
      }
      if (outside) bad.store(true, std::memory_order_relaxed);
    });
    if (!bad.load(std::memory_order_relaxed)) return;
  }
  int64_t at[ARGAND_MAX_DIMS] = {}, offset = 0;
  for (int64_t k = 0; k < n; k++) {
    int64_t i = p[offset];
    if (i < -size || i >= size)
      fail(ARGAND_INDEX_ERROR, "index %ld is out of bounds for dimension %ld with size %ld", static_cast<long>(i), static_cast<long>(dim),
           static_cast<long>(size));
    table[k] = (i < 0 ? i + size : i) * stride + (first ? 0 : table[k]);
    for (int64_t d = plan.shape.n - 1; d >= 0; d--) {
      offset += strides[d];
      if (++at[d] < plan.shape[d]) break;
      offset -= strides[d] * at[d];
      at[d] = 0;
    }
  }
}

// Replaces masks among the indices.
IndexPlan make_plan(Tensor& self, TensorList& indices) {
  expand_masks(self, indices);
  if (static_cast<int64_t>(indices.size()) > self.dim())
    fail(ARGAND_INDEX_ERROR, "index: too many indices for tensor of dimension %ld (got %ld)", static_cast<long>(self.dim()),
         static_cast<long>(indices.size()));
  IndexPlan plan;
  int64_t first = -1, last = -1, used = 0;
  for (size_t k = 0; k < indices.size(); k++) {
    if (!indices[k]) continue;
    if (first < 0) first = static_cast<int64_t>(k);
    last = static_cast<int64_t>(k);
    used++;
    const Tensor& t = indices[k];
    Dims merged;
    const int64_t n = t.dim() > plan.shape.n ? t.dim() : plan.shape.n;
    for (int64_t i = 0; i < n; i++) {
      const int64_t a = i < n - t.dim() ? 1 : t.size(i - (n - t.dim())), b = i < n - plan.shape.n ? 1 : plan.shape[i - (n - plan.shape.n)];
      if (a != b && a != 1 && b != 1) {
        std::string shapes;
        for (const Tensor& x : indices)
          if (x) shapes += (shapes.empty() ? "" : ", ") + to_string(x.sizes());
        fail(ARGAND_INDEX_ERROR, "shape mismatch: indexing tensors could not be broadcast together with shapes %s", shapes.c_str());
      }
      merged.push_back(a == 1 ? b : a);
    }
    plan.shape = merged;
  }
  const bool adjacent = used > 0 && last - first + 1 == used;  // else the indexed dims come first
  for (int64_t i = 0; i < self.dim(); i++) {
    if (i < static_cast<int64_t>(indices.size()) && indices[i]) continue;
    const bool before = adjacent && i < first;
    (before ? plan.pre : plan.post).push_back(self.size(i));
    (before ? plan.pre_strides : plan.post_strides).push_back(self.stride(i));
  }
  for (int64_t i = 0; i < static_cast<int64_t>(indices.size()); i++)
    if (indices[i]) add_offsets(plan, indices[i], used == 1, i, self.size(i), self.stride(i));
  if (!plan.table) plan.table = zeros({1}, ARGAND_INT64);  // no dimension is indexed
  return plan;
}

// Offset of the k-th place of a row-major walk over `sizes`.
int64_t offset_of(int64_t k, const Dims& sizes, const int64_t* strides) {
  int64_t offset = 0;
  for (int64_t d = sizes.n - 1; d >= 0; d--) {
    offset += k % sizes[d] * strides[d];
    k /= sizes[d];
  }
  return offset;
}

// f(offset in self, offset in other) for the places of `post`, which start at the given offsets.
template <class F>
void for_post(const IndexPlan& plan, const int64_t* other, int64_t s, int64_t o, F&& f) {
  const int64_t n = plan.post.n;
  if (n == 0) return f(s, o);
  int64_t at[ARGAND_MAX_DIMS] = {};
  while (true) {
    for (int64_t j = 0; j < plan.post[n - 1]; j++) f(s + j * plan.post_strides[n - 1], o + j * other[n - 1]);
    int64_t d = n - 2;
    for (; d >= 0; d--) {
      s += plan.post_strides[d];
      o += other[d];
      if (++at[d] < plan.post[d]) break;
      s -= plan.post_strides[d] * at[d];
      o -= other[d] * at[d];
      at[d] = 0;
    }
    if (d < 0) return;
  }
}

// Whether strides are those of a dense row-major block.
bool is_dense(const Dims& sizes, const int64_t* strides) {
  int64_t expected = 1;
  for (int64_t d = sizes.n - 1; d >= 0; d--) {
    if (sizes[d] != 1 && strides[d] != expected) return false;
    expected *= sizes[d];
  }
  return true;
}

// The distance in `other` between places that follow each other, where it is always the same.
std::optional<int64_t> even_step(const IndexPlan& plan, const int64_t* other) {
  Dims places = plan.pre;
  for (int64_t i = 0; i < plan.shape.n; i++) places.push_back(plan.shape[i]);
  int64_t step = -1, expected = 0;
  for (int64_t d = places.n - 1; d >= 0; d--) {
    if (places[d] == 1) continue;
    if (step < 0) step = expected = other[d];
    if (other[d] != expected) return std::nullopt;
    expected *= places[d];
  }
  return step < 0 ? 0 : step;
}

// Runs f(place in [pre x indexed], offset in self, offset in other) over all places, whose other strides follow the result's dims.
template <class F>
void for_places(const IndexPlan& plan, const int64_t* other, bool parallel, F&& f) {
  const int64_t indexed = plan.table.numel(), places = product(plan.pre) * indexed, block = product(plan.post);
  const int64_t* const table = plan.table.data<int64_t>();
  if (places == 0 || block == 0) return;
  const std::optional<int64_t> step = even_step(plan, other);
  auto run = [&](int64_t begin, int64_t end) {
    int64_t p = begin / indexed, t = begin % indexed, base = offset_of(p, plan.pre, plan.pre_strides.d);
    for (int64_t k = begin; k < end; k++) {
      f(base + table[t], step ? k * *step : offset_of(p, plan.pre, other) + offset_of(t, plan.shape, other + plan.pre.n));
      if (++t == indexed) t = 0, base = offset_of(++p, plan.pre, plan.pre_strides.d);
    }
  };
  if (parallel)
    parallel_for(0, places, row_grain(block, 8192), run);
  else
    run(0, places);
}

// Where each place is one element, so that the table says all: an end of the offsets into self, which begin at 0.
std::optional<int64_t> scattered_extent(const IndexPlan& plan, const Tensor& self) {
  if (product(plan.pre) != 1 || product(plan.post) != 1) return std::nullopt;
  int64_t extent = 1;
  for (int64_t d = 0; d < self.dim(); d++) {
    if (self.stride(d) < 0) return std::nullopt;
    extent += (self.size(d) - 1) * self.stride(d);
  }
  return extent;
}

// Runs f(element of self, place) over all places of a table with such an extent, those of one element in the table's order. A thread goes through
// the whole table and takes what falls into its part of self.
template <class T, class F>
void for_scattered(const Tensor& offsets, int64_t extent, T* to, F&& f) {
  constexpr int64_t kFewPlaces = 16384, kBlock = 1024, kMostParts = 8, kAhead = 16;
  const int64_t n = offsets.numel(), *const table = offsets.data<int64_t>();
  if (n <= kFewPlaces) {
    for (int64_t k = 0; k < n; k++) f(to[table[k]], k);
    return;
  }
  parallel_for(0, extent, (extent + kMostParts - 1) / kMostParts, [&](int64_t begin, int64_t end) {
    int64_t taken[kBlock + kAhead] = {};
    for (int64_t first = 0; first < n; first += kBlock) {
      const int64_t last = std::min(first + kBlock, n);
      int64_t count = 0;
      for (int64_t k = first; k < last; k++) {
        taken[count] = k;
        count += table[k] >= begin && table[k] < end;
      }
      for (int64_t i = 0; i < count; i++) {
        __builtin_prefetch(to + table[taken[i + kAhead]], 1);
        f(to[table[taken[i]]], taken[i]);
      }
    }
  });
}

template <class T>
void accumulate(T& to, const T& x, bool as_bool) {
  if constexpr (std::is_same_v<T, complex64> || std::is_same_v<T, complex128>)
    to.re += x.re, to.im += x.im;
  else if (as_bool)
    to = static_cast<T>(narrow<T>((widen(to) != 0) | (widen(x) != 0)));
  else
    to = narrow<T>(wrapped_sum(widen(to), widen(x)));
}

}  // namespace

// Puts dimensions into the order in which they lie in a result of the strides `out`, which come along.
static void sort_by(int64_t* out, Dims& sizes, Dims& strides) {
  for (int64_t i = 1; i < sizes.n; i++)
    for (int64_t k = i; k > 0 && out[k - 1] < out[k]; k--) {
      std::swap(out[k - 1], out[k]);
      std::swap(sizes[k - 1], sizes[k]);
      std::swap(strides[k - 1], strides[k]);
    }
}

// The result's strides where they are not row-major.
static std::optional<Dims> result_strides(const Tensor& self, const TensorList& indices) {
  bool row_major = self.is_contiguous();
  for (const Tensor& t : indices) row_major = row_major && (!t || t.is_contiguous());
  if (row_major) return std::nullopt;
  return Dims(IntList(builtins::index_shape(self, indices).strides));
}

Tensor index(const Tensor& self, const TensorList& given) {
  Tensor x = self;
  TensorList indices = given;
  IndexPlan plan = make_plan(x, indices);
  const std::optional<Dims> strides = result_strides(x, indices);
  Tensor out = strides ? empty_strided(plan.result(), *strides, x.dtype()) : empty(plan.result(), x.dtype());
  Dims to_strides(out.strides());
  int64_t* post_strides = to_strides.d + plan.pre.n + plan.shape.n;
  if (strides) {
    sort_by(to_strides.d, plan.pre, plan.pre_strides);
    sort_by(post_strides, plan.post, plan.post_strides);
  }
  const bool dense = is_dense(plan.post, plan.post_strides.d) && is_dense(plan.post, post_strides);
  const int64_t block = product(plan.post);
  dispatch_size(x.itemsize(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = x.data<T>();
    T* to = out.data<T>();
    if (block == 1 && product(plan.pre) == 1 && !strides) {  // the table is all there is to it
      const int64_t* const at = plan.table.data<int64_t>();
      return parallel_for(0, plan.table.numel(), 8192,
                          [&](int64_t begin, int64_t end) { select_elements(end - begin, from, at + begin, to + begin); });
    }
    for_places(plan, to_strides.d, true, [&](int64_t s, int64_t o) {
      if (block == 1)
        to[o] = from[s];
      else if (dense)
        std::memcpy(to + o, from + s, sizeof(T) * static_cast<size_t>(block));
      else
        for_post(plan, post_strides, s, o, [&](int64_t a, int64_t b) { to[b] = from[a]; });
    });
  });
  return out;
}

// One mask and no other index.
static bool is_sole_mask(const TensorList& indices) {
  int masks = 0;
  for (const Tensor& index : indices)
    if (index && (index.dtype() != ARGAND_BOOL || masks++)) return false;
  return masks == 1;
}

void index_put_(const Tensor& self, const TensorList& given, const Tensor& values, bool accumulate_values) {
  Tensor x = self;
  TensorList indices = given;
  const IndexPlan plan = make_plan(x, indices);
  Tensor from = values;
  if (values.numel() == 1 && !accumulate_values && is_sole_mask(given)) from = to_dtype(values, self.dtype());  // fills where the mask holds
  check_same_dtype("index_put", self, from);
  if (from->storage == self->storage) {  // values may be read after they were overwritten
    Tensor copy = empty(from.sizes(), from.dtype());
    strided_copy(from.itemsize(), from.dim(), from->sizes, copy->data, copy->strides, from->data, from->strides);
    from = copy;
  }
  Dims sizes(from.sizes()), strides(from.strides());
  const Dims result = plan.result();
  while (sizes.n > result.n && sizes[0] == 1) {  // leading dims of size 1 do not count
    for (int64_t i = 1; i < sizes.n; i++) sizes[i - 1] = sizes[i], strides[i - 1] = strides[i];
    sizes.n--, strides.n--;
  }
  bool fits = sizes.n <= result.n;
  Dims spread;  // values' strides over the result's dims
  for (int64_t i = 0; fits && i < result.n; i++) {
    const int64_t k = i - (result.n - sizes.n);
    fits = k < 0 || sizes[k] == 1 || sizes[k] == result[i];
    spread.push_back(k < 0 || sizes[k] == 1 ? 0 : strides[k]);
  }
  if (!fits)
    fail(ARGAND_SHAPE_ERROR, "shape mismatch: value tensor of shape %s cannot be broadcast to indexing result of shape %s",
         to_string(values.sizes()).c_str(), to_string(result).c_str());
  const int64_t* post_strides = spread.d + plan.pre.n + plan.shape.n;
  const std::optional<int64_t> extent = scattered_extent(plan, x), step = extent ? even_step(plan, spread.d) : std::nullopt;
  if (!accumulate_values) {
    dispatch_size(x.itemsize(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      T* to = x.data<T>();
      const T* p = from.data<T>();
      const bool dense = is_dense(plan.post, plan.post_strides.d), copies = dense && is_dense(plan.post, post_strides),
                 fills = dense && from.numel() == 1;
      const int64_t block = product(plan.post);
      if (step) return for_scattered(plan.table, *extent, to, [p, by = *step](T& element, int64_t k) { element = p[k * by]; });
      for_places(plan, spread.d, false, [&](int64_t s, int64_t o) {
        if (block == 1)
          to[s] = p[o];
        else if (copies)
          std::memcpy(to + s, p + o, sizeof(T) * static_cast<size_t>(block));
        else if (fills)
          convert(block, x.dtype(), to + s, sizeof(T), x.dtype(), p, 0);
        else
          for_post(plan, post_strides, s, o, [&](int64_t a, int64_t b) { to[a] = p[b]; });
      });
    });
    return;
  }
  auto add = [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = x.data<T>();
    const T* p = from.data<T>();
    const bool as_bool = x.dtype() == ARGAND_BOOL;
    if (step)
      return for_scattered(plan.table, *extent, to, [p, as_bool, by = *step](T& element, int64_t k) { accumulate(element, p[k * by], as_bool); });
    for_places(plan, spread.d, false,
               [&](int64_t s, int64_t o) { for_post(plan, post_strides, s, o, [&](int64_t a, int64_t b) { accumulate(to[a], p[b], as_bool); }); });
  };
  if (x.dtype() == ARGAND_COMPLEX64)
    add(Tag<complex64>{});
  else if (x.dtype() == ARGAND_COMPLEX128)
    add(Tag<complex128>{});
  else
    dispatch_real("index_put", x.dtype(), add);
}

}  // namespace argand::kernels::cpu
