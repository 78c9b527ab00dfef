// Shape and stride arithmetic, header-only, for every library above the C ABI. Errors are thrown as argand::Error.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "packages/c10/csrc/abi/tensor.h"

namespace argand {

// ---- sizes and strides -----------------------------------------------------------------------------------------------
inline int64_t numel_of(IntList sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}

inline void contiguous_strides(int64_t ndim, const int64_t* sizes, int64_t* out) {  // row-major; a size of 0 counts as 1
  int64_t stride = 1;
  for (int64_t i = ndim - 1; i >= 0; i--) {
    out[i] = stride;
    stride *= sizes[i] > 1 ? sizes[i] : 1;
  }
}
inline Dims contiguous_strides(IntList sizes) {
  Dims d(sizes);
  contiguous_strides(sizes.n, sizes.ptr, d.d);
  return d;
}

inline bool is_contiguous(int64_t ndim, const int64_t* sizes, const int64_t* strides) {
  int64_t expected = 1;
  bool dense = true;
  for (int64_t i = ndim - 1; i >= 0; i--) {
    if (sizes[i] == 0) return true;
    if (sizes[i] == 1) continue;
    dense = dense && strides[i] == expected;
    expected *= sizes[i];
  }
  return dense;
}

// True when the elements fill one gap-free block in some order of dimensions (no overlap).
inline bool is_non_overlapping_and_dense(IntList sizes, IntList strides) {
  int order[ARGAND_MAX_DIMS];
  int n = 0;
  for (int i = 0; i < sizes.n; i++) {
    if (sizes[i] == 0) return true;
    if (sizes[i] == 1) continue;
    int at = n++;
    for (; at > 0 && strides[order[at - 1]] > strides[i]; at--) order[at] = order[at - 1];
    order[at] = i;
  }
  int64_t expected = 1;
  for (int i = 0; i < n; i++) {
    if (strides[order[i]] != expected) return false;
    expected *= sizes[order[i]];
  }
  return true;
}

// Sorts dimensions, of which 0 is the innermost, stably into their order in memory. compare(a, b) > 0: a must come outside of b; < 0: inside;
// 0: nothing is said. Whether any has moved.
template <class Compare>
inline bool sort_dims(int n, int* order, Compare&& compare) {
  bool moved = false;
  for (int i = 0; i < n; i++) order[i] = i;
  for (int i = 1; i < n; i++) {
    int at = i;
    for (int other = i - 1; other >= 0; other--) {
      const int c = compare(order[other], order[at]);
      if (c < 0) break;
      if (c == 0) continue;
      std::swap(order[other], order[at]);
      at = other;
      moved = true;
    }
  }
  return moved;
}
// What two dimensions of a tensor say of their order: a broadcast one nothing.
inline int compare_dims(int64_t stride_a, int64_t size_a, int64_t stride_b, int64_t size_b) {
  if (stride_a == 0 || stride_b == 0) return 0;
  if (stride_a != stride_b) return stride_a < stride_b ? -1 : 1;
  return size_a > size_b;
}

// Strides without gaps, of dimensions that sort_dims has ordered.
inline Dims strides_in_order(IntList sizes, const int* order) {
  Dims found(sizes);
  int64_t stride = 1;
  for (int64_t k = 0; k < sizes.n; k++) {
    const int64_t d = sizes.n - 1 - order[k];
    found[d] = stride;
    stride *= sizes[d] > 1 ? sizes[d] : 1;
  }
  return found;
}

// The strides of a copy that keeps the order of dimensions: a dense tensor's own, else without gaps.
inline Dims dense_strides(IntList sizes, IntList strides) {
  if (is_non_overlapping_and_dense(sizes, strides)) return Dims(strides);
  const int n = static_cast<int>(sizes.n);
  int order[ARGAND_MAX_DIMS];
  sort_dims(n, order, [&](int a, int b) {
    const int i = n - 1 - a, j = n - 1 - b;
    return compare_dims(strides[i], sizes[i], strides[j], sizes[j]);
  });
  return strides_in_order(sizes, order);
}

// ---- dimensions ------------------------------------------------------------------------------------------------------
// Maps a possibly negative dimension to [0, ndim); a 0-d tensor accepts 0 and -1. Raises IndexError in the name of `op`, without that of its
// overload.
inline int64_t wrap_dim(const char* op, int64_t dim, int64_t ndim) {
  const int64_t n = ndim > 0 ? ndim : 1;
  if (dim < -n || dim >= n)
    fail(ARGAND_INDEX_ERROR, "%.*s: Dimension out of range (expected to be in range of [%lld, %lld], but got %lld)",
         static_cast<int>(std::strcspn(op, ".")), op, static_cast<long long>(-n), static_cast<long long>(n - 1), static_cast<long long>(dim));
  return dim < 0 ? dim + n : dim;
}

// The set of the given dimensions as a bit mask; a repeated one is an error. An empty list gives 0.
inline uint64_t wrap_dims(const char* op, IntList dims, int64_t ndim) {
  uint64_t mask = 0;
  for (int64_t dim : dims) {
    const int64_t d = wrap_dim(op, dim, ndim);
    if (mask >> d & 1) fail(ARGAND_RUNTIME_ERROR, "%s: dim %lld appears multiple times in the list of dims", op, static_cast<long long>(d));
    mask |= uint64_t{1} << d;
  }
  return mask;
}

// ---- broadcasting ----------------------------------------------------------------------------------------------------
inline Dims broadcast_shapes(const char* op, IntList a, IntList b) {
  Dims out;
  out.n = static_cast<int32_t>(a.n > b.n ? a.n : b.n);
  for (int64_t i = 0; i < out.n; i++) {
    const int64_t ia = i - (out.n - a.n), ib = i - (out.n - b.n);
    const int64_t sa = ia < 0 ? 1 : a[ia], sb = ib < 0 ? 1 : b[ib];
    if (sa != sb && sa != 1 && sb != 1)
      fail(ARGAND_SHAPE_ERROR,
           "%s: got shapes %s and %s: the size of tensor a (%lld) must match the size of tensor b (%lld) at non-singleton dimension %lld; "
           "expected sizes that are equal or 1",
           op, to_string(a).c_str(), to_string(b).c_str(), static_cast<long long>(sa), static_cast<long long>(sb), static_cast<long long>(i));
    out[i] = sa == 1 ? sb : sa;
  }
  return out;
}

// ---- reshape ---------------------------------------------------------------------------------------------------------
// Replaces one -1 in `shape` so that it holds `numel` elements.
inline Dims infer_size(const char* op, IntList shape, int64_t numel) {
  Dims out(shape);
  int64_t known = 1, unknown = -1;
  bool valid = true;
  for (int64_t i = 0; i < shape.n; i++) {
    if (shape[i] == -1) {
      if (unknown >= 0) fail(ARGAND_SHAPE_ERROR, "%s: got shape %s; expected at most one -1", op, to_string(shape).c_str());
      unknown = i;
    } else if (shape[i] < 0) {
      fail(ARGAND_SHAPE_ERROR, "%s: got shape %s: invalid negative size %lld; expected sizes >= 0 or one -1", op, to_string(shape).c_str(),
           static_cast<long long>(shape[i]));
    } else {
      valid = !__builtin_mul_overflow(known, shape[i], &known) && valid;
    }
  }
  if (unknown >= 0 && valid && known == 0 && numel == 0)
    fail(ARGAND_SHAPE_ERROR, "%s: got shape %s for a tensor of 0 elements: the size of -1 is ambiguous; give it explicitly", op,
         to_string(shape).c_str());
  if (!valid || (unknown < 0 ? known != numel : known == 0 || numel % known != 0))
    fail(ARGAND_SHAPE_ERROR, "%s: shape '%s' is invalid for input of size %lld", op, to_string(shape).c_str(), static_cast<long long>(numel));
  if (unknown >= 0) out[unknown] = numel / known;
  return out;
}

// Strides with which the same memory reads as `shape` (of equal numel), or nothing when that takes a copy.
inline std::optional<Dims> view_strides(IntList sizes, IntList strides, IntList shape) {
  if (numel_of(sizes) == 0) return sizes == shape ? Dims(strides) : contiguous_strides(shape);
  Dims out(shape);
  int64_t to = shape.n - 1;
  int64_t inner = sizes.n ? strides[sizes.n - 1] : 1;  // stride of the innermost element of the present dense run
  int64_t run = 1, taken = 1;
  for (int64_t from = sizes.n - 1; from >= 0; from--) {
    run *= sizes[from];
    const bool run_ends = from == 0 || (sizes[from - 1] != 1 && strides[from - 1] != run * inner);
    if (!run_ends) continue;
    while (to >= 0 && (taken < run || shape[to] == 1)) {
      out[to] = taken * inner;
      taken *= shape[to--];
    }
    if (taken != run) return std::nullopt;
    if (from > 0) {
      inner = strides[from - 1];
      run = taken = 1;
    }
  }
  for (; to >= 0; to--) out[to] = inner * taken;  // leading ones of the shape of a 0-d tensor
  return out;
}

// ---- overlap ---------------------------------------------------------------------------------------------------------
// Overlap is `maybe` where an exact answer would need a search.
enum class Overlap { no, yes, maybe };

// Whether two indices of one tensor meet in memory.
inline Overlap internal_overlap(IntList sizes, IntList strides) {
  int order[ARGAND_MAX_DIMS];
  int n = 0;
  if (numel_of(sizes) == 0) return Overlap::no;
  for (int i = 0; i < sizes.n; i++) {
    if (sizes[i] == 1) continue;
    if (strides[i] == 0) return Overlap::yes;
    int at = n++;
    for (; at > 0 && strides[order[at - 1]] > strides[i]; at--) order[at] = order[at - 1];
    order[at] = i;
  }
  int64_t reach = 0;  // largest offset of the dimensions so far
  for (int i = 0; i < n; i++) {
    if (strides[order[i]] <= reach) {
      // A stride that the innermost dimension reaches exactly does meet it; else it is a question of divisibility.
      if (i == 1 && strides[order[1]] % strides[order[0]] == 0) return Overlap::yes;
      return Overlap::maybe;
    }
    reach += strides[order[i]] * (sizes[order[i]] - 1);
  }
  return Overlap::no;
}

// Refuses to write into a tensor that has several indices in one place.
inline void check_no_internal_overlap(const char* op, const Tensor& out) {
  if (!out.is_contiguous() && internal_overlap(out.sizes(), out.strides()) == Overlap::yes)
    fail(ARGAND_RUNTIME_ERROR,
         "%s: unsupported operation: more than one element of the written-to tensor (shape %s, strides %s) refers to a single memory location; "
         "clone() the tensor before performing the operation",
         op, to_string(out.sizes()).c_str(), to_string(out.strides()).c_str());
}

// [first, last) bytes that a tensor's elements span.
struct ByteRange {
  const char* first;
  const char* last;
};
inline ByteRange byte_range(const Tensor& t) {
  const char* first = t.data<const char>();
  if (t.numel() == 0 || !first) return {first, first};
  int64_t reach = 0;
  for (int64_t i = 0; i < t.dim(); i++) reach += (t.size(i) - 1) * t.stride(i);
  return {first, first + (reach + 1) * t.itemsize()};
}

// Whether two tensors overlap without being the same elements in the same places: such an output and input must not be used together.
inline Overlap partial_overlap(const Tensor& a, const Tensor& b) {
  if (a->storage != b->storage || a.is_meta() || a.numel() == 0 || b.numel() == 0) return Overlap::no;
  const ByteRange ra = byte_range(a), rb = byte_range(b);
  if (ra.last <= rb.first || rb.last <= ra.first) return Overlap::no;
  if (ra.first == rb.first && a.dtype() == b.dtype() && a.sizes() == b.sizes() &&
      (a.strides() == b.strides() || (a.is_contiguous() && b.is_contiguous())))
    return Overlap::no;
  const bool both_dense = is_non_overlapping_and_dense(a.sizes(), a.strides()) && is_non_overlapping_and_dense(b.sizes(), b.strides());
  return both_dense ? Overlap::yes : Overlap::maybe;
}

inline void check_no_partial_overlap(const char* op, const Tensor& out, const Tensor& in) {
  if (out.get() != in.get() && partial_overlap(out, in) == Overlap::yes)
    fail(ARGAND_RUNTIME_ERROR,
         "%s: unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location; "
         "clone() the tensor before performing the operation",
         op);
}

}  // namespace argand
