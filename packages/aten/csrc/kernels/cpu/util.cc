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

}  // namespace

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
