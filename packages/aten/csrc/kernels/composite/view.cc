// Views that change the dtype or whose place a tensor holds, and the gradient of as_strided, for all backends.
#include "packages/aten/generated/ops/view.h"
#include "packages/aten/csrc/core/builtins.h"
#include "packages/aten/generated/kernels.h"
#include "packages/aten/generated/ops/arithmetic.h"
#include "packages/aten/generated/ops/creation.h"
#include "packages/aten/generated/ops/indexing.h"
#include "packages/c10/csrc/core/strided.h"

namespace argand::kernels::composite {
namespace {

Tensor typed_view(const Tensor& self, IntList sizes, IntList strides, int64_t offset, int dtype) {
  ArgandTensor* out = nullptr;
  check(api->tensor_view(self.get(), static_cast<int32_t>(sizes.n), sizes.ptr, strides.ptr, offset, dtype, &out));
  return Tensor::steal(out);
}

// The same bytes as elements of another dtype. No view where histories are concerned: gradients do not pass through bytes.
Tensor reinterpreted(const Tensor& self, IntList sizes, IntList strides, int64_t offset, int dtype) {
  ArgandTensor* out = nullptr;
  check(api->tensor_alias(self.get(), &out));
  const Tensor result = Tensor::steal(out);
  check(api->tensor_set_storage(out, self->storage, dtype));
  check(api->tensor_set_geometry(out, static_cast<int32_t>(sizes.n), sizes.ptr, strides.ptr, offset));
  return result;
}

// Strides and offset in units of `ratio` elements; all must divide.
builtins::Ints divide(const char* what, IntList strides, int64_t ratio) {
  builtins::Ints r;
  for (int64_t i = 0; i < strides.size(); i++) {
    if (strides[i] % ratio) builtins::raise(ARGAND_RUNTIME_ERROR, builtins::text(what, " must be divisible by ", ratio, ", got strides ", strides));
    r.push_back(strides[i] / ratio);
  }
  return r;
}

}  // namespace

Tensor view_as_real(const Tensor& self) {
  if (!is_complex(self.dtype())) builtins::raise(ARGAND_RUNTIME_ERROR, builtins::text("expected a complex tensor, got ", self.dtype()));
  builtins::Ints sizes = self.sizes().vec(), strides;
  for (int64_t s : self.strides()) strides.push_back(2 * s);
  sizes.push_back(2);
  strides.push_back(1);
  return typed_view(self, sizes, strides, 2 * self->offset, builtins::real_dtype(self.dtype()));
}

Tensor view_as_complex(const Tensor& self) {
  if (self.dtype() != ARGAND_FLOAT32 && self.dtype() != ARGAND_FLOAT64)
    builtins::raise(ARGAND_DTYPE_ERROR, builtins::text("expected float32 or float64, got ", self.dtype()));
  if (self.dim() == 0 || self.size(-1) != 2 || self.stride(-1) != 1)
    builtins::raise(ARGAND_SHAPE_ERROR, builtins::text("Tensor must have a last dimension of size 2 with stride 1, got ", self.sizes(),
                                                       " with strides ", self.strides()));
  if (self->offset % 2) builtins::raise(ARGAND_RUNTIME_ERROR, "Tensor must have a storage_offset divisible by 2");
  const IntList lead(self->strides, self.dim() - 1);
  return typed_view(self, {self->sizes, self.dim() - 1}, divide("Tensor's strides but the last", lead, 2), self->offset / 2,
                    builtins::complex_dtype(self.dtype()));
}

Tensor select_at(const Tensor& self, int64_t dim, const Tensor& index) { return ops::select(self, dim, builtins::item_int(index)); }

Tensor view_dtype(const Tensor& self, int dtype) {
  const builtins::Ints sizes = builtins::view_dtype_shape(self.sizes(), self.dtype(), dtype);
  const int from = item_size(self.dtype()), to = item_size(dtype);
  if (from == to) return reinterpreted(self, sizes, self.strides(), self->offset, dtype);
  if (self.stride(-1) != 1)
    builtins::raise(ARGAND_RUNTIME_ERROR, builtins::text("self.stride(-1) must be 1 to view ", self.dtype(), " as ", dtype,
                                                         " (different element sizes), but got ", self.stride(-1)));
  builtins::Ints strides;
  if (from > to) {
    for (int64_t s : self.strides()) strides.push_back(s * (from / to));
    strides.back() = 1;
    return reinterpreted(self, sizes, strides, self->offset * (from / to), dtype);
  }
  const int64_t ratio = to / from;
  if (self->offset % ratio) builtins::raise(ARGAND_RUNTIME_ERROR, builtins::text("self.storage_offset() must be divisible by ", ratio));
  strides = divide("strides but the last", {self->strides, self.dim() - 1}, ratio);
  strides.push_back(1);
  return reinterpreted(self, sizes, strides, self->offset / ratio, dtype);
}

void as_strided_(const Tensor& self, IntList size, IntList stride, std::optional<int64_t> storage_offset) {
  if (size.size() != stride.size())
    builtins::raise(ARGAND_SHAPE_ERROR, builtins::text("mismatch in length of strides and shape: ", stride, " for ", size));
  for (int64_t i = 0; i < size.size(); i++) {
    if (size[i] < 0) builtins::raise(ARGAND_SHAPE_ERROR, builtins::text("sizes must be non-negative, but got ", size));
    if (stride[i] < 0) builtins::raise(ARGAND_SHAPE_ERROR, builtins::text("strides must be non-negative, but got ", stride));
  }
  check(api->tensor_set_geometry(self.get(), static_cast<int32_t>(size.size()), size.ptr, stride.ptr, storage_offset.value_or(self->offset)));
}

Tensor scatter_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce, bool include_self) {
  return ops::scatter_reduce_sorted(self, dim, index, src, reduce, include_self);
}

void resize_(const Tensor& self, IntList size, std::optional<int64_t> memory_format) {
  if (self.requires_grad()) builtins::raise(ARGAND_RUNTIME_ERROR, "cannot resize variables that require grad");
  for (int64_t s : size)
    if (s < 0) builtins::raise(ARGAND_SHAPE_ERROR, builtins::text("sizes must be non-negative, but got ", size));
  const builtins::Ints strides = memory_format ? builtins::format_strides(size, *memory_format) : builtins::Ints();
  check(api->tensor_resize(self.get(), static_cast<int32_t>(size.size()), size.ptr));
  if (memory_format) check(api->tensor_set_geometry(self.get(), static_cast<int32_t>(size.size()), size.ptr, strides.data(), self->offset));
}

// The gradient flows to each place once per view element that reads it, and is shared by the input elements that lie there.
Tensor as_strided_backward(const Tensor& grad, IntList size, IntList stride, int64_t offset, IntList view_size, IntList view_stride,
                           std::optional<int64_t> view_offset) {
  const int64_t at = view_offset.value_or(offset);
  int64_t low = std::min(offset, at), high = low;
  auto extend = [&](IntList sizes, IntList strides, int64_t start) {
    int64_t last = start;
    for (int64_t i = 0; i < sizes.size(); i++) {
      if (sizes[i] == 0) return;
      last += (sizes[i] - 1) * strides[i];
    }
    high = std::max(high, last + 1);
  };
  extend(size, stride, offset);
  extend(view_size, view_stride, at);
  const ArgandDevice device = grad.device();
  Tensor buffer = ops::zeros({high - low}, grad.dtype(), device);
  const Tensor flat = ops::arange_start_step(int64_t{0}, high - low, int64_t{1}, ARGAND_INT64, device);
  if (grad.numel() > 0) {
    const Tensor places = ops::reshape(ops::as_strided(flat, view_size, view_stride, at - low), {int64_t{-1}});
    ops::index_put_(buffer, {places}, ops::reshape(grad, {int64_t{-1}}), true);
  }
  if (!is_non_overlapping_and_dense(size, stride) && numel_of(size) > 0) {
    const int dtype = builtins::real_dtype(grad.dtype());
    Tensor count = ops::zeros({high - low}, dtype, device);
    const Tensor places = ops::reshape(ops::as_strided(flat, size, stride, offset - low), {int64_t{-1}});
    ops::index_put_(count, {places}, ops::ones({places.numel()}, dtype, device), true);
    buffer = ops::div(buffer, ops::clamp_min(count, 1));
  }
  return ops::clone(ops::as_strided(buffer, size, stride, offset - low), 0);
}

}  // namespace argand::kernels::composite
