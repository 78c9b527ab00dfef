#include "packages/aten/csrc/kernels/cpu/util.h"

#include <new>

#include "packages/aten/csrc/kernels/cpu/cast.h"

namespace argand::kernels::cpu {

int cpu_tier() {
  static const int tier = api->cpu_tier();
  return tier;
}

float to_float(f16 x) {
  _Float16 h;
  std::memcpy(&h, &x, 2);
  return static_cast<float>(h);
}
f16 to_f16(float f) {
  const _Float16 h = static_cast<_Float16>(f);
  f16 x;
  std::memcpy(&x, &h, 2);
  return x;
}

void check_defined(const char* op, const char* argument, const Tensor& t) {
  if (!t) fail(ARGAND_TYPE_ERROR, "%s: got None for %s, expected a Tensor", op, argument);
}

void check_same_dtype(const char* op, const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype())
    fail(ARGAND_DTYPE_ERROR, "%s: got tensors of dtypes %s and %s, expected the same dtype; convert one with .to()", op, kDTypeName[a.dtype()],
         kDTypeName[b.dtype()]);
}

void check_index_dtype(const char* op, const Tensor& index) {
  if (index.dtype() != ARGAND_INT64 && index.dtype() != ARGAND_INT32)
    fail(ARGAND_DTYPE_ERROR, "%s: got an index of dtype %s, expected int64 or int32; convert with .long()", op, kDTypeName[index.dtype()]);
}

namespace {

constexpr int64_t kCopyGrain = 32768;  // elements

struct CopyPlan {
  int64_t n = 0;
  int64_t sizes[ARGAND_MAX_DIMS], dst[ARGAND_MAX_DIMS], src[ARGAND_MAX_DIMS];
};

// Drops dims of size 1 and merges dims that are one run in both tensors.
CopyPlan coalesce(int64_t ndim, const int64_t* sizes, const int64_t* dst, const int64_t* src) {
  CopyPlan p;
  for (int64_t i = 0; i < ndim; i++) {
    if (sizes[i] == 1) continue;
    if (p.n && p.dst[p.n - 1] == sizes[i] * dst[i] && p.src[p.n - 1] == sizes[i] * src[i]) {
      p.sizes[p.n - 1] *= sizes[i];
      p.dst[p.n - 1] = dst[i];
      p.src[p.n - 1] = src[i];
    } else {
      p.sizes[p.n] = sizes[i];
      p.dst[p.n] = dst[i];
      p.src[p.n++] = src[i];
    }
  }
  while (p.n < 2) {  // at least two dims, the missing ones outermost
    for (int64_t i = p.n; i > 0; i--) p.sizes[i] = p.sizes[i - 1], p.dst[i] = p.dst[i - 1], p.src[i] = p.src[i - 1];
    p.sizes[0] = 1, p.dst[0] = p.src[0] = 0;
    p.n++;
  }
  return p;
}

// One [rows, cols] block; tiles keep the lines of a transposed source in the first-level cache.
template <class T>
void copy_plane(T* dst, const T* src, int64_t rows, int64_t cols, int64_t d0, int64_t d1, int64_t s0, int64_t s1) {
  if (d1 == 1 && s1 == 1) {
    for (int64_t i = 0; i < rows; i++) std::memcpy(dst + i * d0, src + i * s0, sizeof(T) * static_cast<size_t>(cols));
    return;
  }
  constexpr int64_t kTile = 64 / static_cast<int64_t>(sizeof(T)) < 8 ? 8 : 64 / static_cast<int64_t>(sizeof(T));
  if (s0 == 1 && s1 != 0 && rows > 1) {
    for (int64_t i = 0; i < rows; i += kTile)
      for (int64_t j = 0; j < cols; j += kTile) {
        const int64_t ie = i + kTile < rows ? i + kTile : rows, je = j + kTile < cols ? j + kTile : cols;
        for (int64_t a = i; a < ie; a++)
          for (int64_t b = j; b < je; b++) dst[a * d0 + b * d1] = src[a + b * s1];
      }
    return;
  }
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < cols; j++) dst[i * d0 + j * d1] = src[i * s0 + j * s1];
}

template <class T>
void copy_range(const CopyPlan& p, T* dst, const T* src, int64_t begin, int64_t end) {  // [begin, end) of the outer index; last two dims are a plane
  const int64_t outer = p.n - 2;
  int64_t index[ARGAND_MAX_DIMS], d = 0, s = 0, rest = begin;
  for (int64_t i = outer - 1; i >= 0; i--) {
    index[i] = rest % p.sizes[i];
    rest /= p.sizes[i];
    d += index[i] * p.dst[i];
    s += index[i] * p.src[i];
  }
  const int64_t rows = p.sizes[p.n - 2], cols = p.sizes[p.n - 1];
  for (int64_t k = begin; k < end; k++) {
    copy_plane(dst + d, src + s, rows, cols, p.dst[p.n - 2], p.dst[p.n - 1], p.src[p.n - 2], p.src[p.n - 1]);
    for (int64_t i = outer - 1; i >= 0; i--) {
      d += p.dst[i];
      s += p.src[i];
      if (++index[i] < p.sizes[i]) break;
      d -= p.dst[i] * index[i];
      s -= p.src[i] * index[i];
      index[i] = 0;
    }
  }
}

}  // namespace

void strided_copy(int itemsize, int64_t ndim, const int64_t* sizes, void* dst, const int64_t* dst_strides, const void* src,
                  const int64_t* src_strides) {
  for (int64_t i = 0; i < ndim; i++)
    if (sizes[i] == 0) return;
  CopyPlan p = coalesce(ndim, sizes, dst_strides, src_strides);
  // A dim with source stride 1 next to the last makes a tiled transpose out of scattered reads.
  if (p.src[p.n - 1] != 1 && p.src[p.n - 2] != 1)
    for (int64_t i = 0; i < p.n - 2; i++)
      if (p.src[i] == 1) {
        const int64_t last = p.n - 2;
        std::swap(p.sizes[i], p.sizes[last]), std::swap(p.dst[i], p.dst[last]), std::swap(p.src[i], p.src[last]);
        break;
      }
  dispatch_size(itemsize, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* d = static_cast<T*>(dst);
    const T* s = static_cast<const T*>(src);
    int64_t outer = 1;
    for (int64_t i = 0; i < p.n - 2; i++) outer *= p.sizes[i];
    const int64_t rows = p.sizes[p.n - 2], cols = p.sizes[p.n - 1];
    if (outer == 1) {
      parallel_for(0, rows, row_grain(cols, kCopyGrain), [&](int64_t b, int64_t e) {
        copy_plane(d + b * p.dst[p.n - 2], s + b * p.src[p.n - 2], e - b, cols, p.dst[p.n - 2], p.dst[p.n - 1], p.src[p.n - 2], p.src[p.n - 1]);
      });
    } else {
      parallel_for(0, outer, row_grain(rows * cols, kCopyGrain), [&](int64_t b, int64_t e) { copy_range(p, d, s, b, e); });
    }
  });
}

Tensor contiguous(const Tensor& t) {
  if (t.is_contiguous()) return t;
  Tensor out = empty(t.sizes(), t.dtype());
  strided_copy(t.itemsize(), t.dim(), t->sizes, out->data, out->strides, t->data, t->strides);
  return out;
}

Tensor to_dtype(const Tensor& self, int dtype) {
  const Tensor t = contiguous(self);
  if (t.dtype() == dtype) return t;
  Tensor out = empty(t.sizes(), dtype);
  parallel_for(0, t.numel(), kCopyGrain, [&](int64_t begin, int64_t end) {
    convert(end - begin, dtype, out.data<char>() + begin * out.itemsize(), out.itemsize(), t.dtype(), t.data<char>() + begin * t.itemsize(),
            t.itemsize());
  });
  return out;
}

Dims broadcast_strides(const char* op, const Tensor& t, IntList sizes) {
  const int64_t lead = sizes.n - t.dim();
  bool fits = lead >= 0;
  Dims strides;
  for (int64_t i = 0; i < sizes.n && fits; i++) {
    const int64_t own = i < lead ? 1 : t.size(i - lead);
    fits = own == sizes[i] || own == 1;
    strides.push_back(i < lead || own == 1 ? 0 : t.stride(i - lead));
  }
  if (!fits)
    fail(ARGAND_SHAPE_ERROR, "%s: got shape %s, expected one that can be expanded to %s", op, to_string(t.sizes()).c_str(), to_string(sizes).c_str());
  return strides;
}

void store_into(const Tensor& dst, const Tensor& dense) {
  if (dst->data == dense->data) return;
  strided_copy(dst.itemsize(), dst.dim(), dst->sizes, dst->data, dst->strides, dense->data, dense->strides);
}

Tensor zeros(IntList sizes, int dtype) {
  Tensor out = empty(sizes, dtype);
  if (out.numel()) std::memset(out->data, 0, static_cast<size_t>(out.numel()) * static_cast<size_t>(out.itemsize()));
  return out;
}

}  // namespace argand::kernels::cpu
