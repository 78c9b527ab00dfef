// Copies within a device, between devices, and between a device and the CPU.
#include "packages/aten/csrc/core/builtins.h"
#include "packages/aten/csrc/core/copy_shape.h"
#include "packages/aten/csrc/core/iteration.h"
#include "packages/aten/cuda/csrc/strided_copy.h"
#include "packages/aten/generated/kernels_cuda.h"
#include "packages/aten/generated/ops/creation.h"
#include "packages/c10/csrc/core/strided.h"

namespace argand::kernels::cuda {
namespace {

bool on_cpu(const Tensor& t) { return ARGAND_DEVICE_TYPE(t.device()) == ARGAND_CPU; }

// A row-major CPU tensor in page-locked memory, which copies that do not block may read.
Tensor pinned(IntList sizes, int dtype) {
  const ArgandDeviceInterface* device = api->device_interface(ARGAND_CUDA);
  const size_t nbytes = static_cast<size_t>(numel_of(sizes)) * kItemSize[dtype];
  void* data = device->host_allocate(nbytes);
  if (!data) check(ARGAND_OUT_OF_MEMORY_ERROR);  // the device has set the error
  auto free = [](void* p, void* context, size_t) { static_cast<const ArgandDeviceInterface*>(context)->host_deallocate(p); };
  ArgandStorage* storage = nullptr;
  check(api->storage_from_blob(ARGAND_DEVICE(ARGAND_CPU, 0), data, nbytes, free, const_cast<ArgandDeviceInterface*>(device), 0, &storage));
  ArgandTensor* out = nullptr;
  const Dims strides = contiguous_strides(sizes);
  const int status = api->tensor_from_storage(storage, static_cast<int32_t>(sizes.n), sizes.ptr, strides.d, 0, dtype, &out);
  if (__atomic_sub_fetch(&storage->refcount, 1, __ATOMIC_ACQ_REL) == 0) api->storage_release(storage);
  check(status);
  return Tensor::steal(out);
}

// The bytes of two tensors of one layout; one of them is on a CUDA device.
void copy_bytes(const Tensor& to, const Tensor& from, bool non_blocking) {
  const ArgandDeviceInterface* device = api->device_interface(ARGAND_CUDA);
  auto* copy = non_blocking ? device->copy_async : device->copy;
  check(copy(to->data, to.device(), from->data, from.device(), static_cast<size_t>(to.numel()) * to.itemsize()));
}

bool same_layout(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !(a.sizes() == b.sizes())) return false;
  return (a.is_contiguous() && b.is_contiguous()) || (a.strides() == b.strides() && is_non_overlapping_and_dense(a.sizes(), a.strides()));
}

// Between devices: what travels is row-major, in the smaller of the two dtypes.
void transfer(const Tensor& self, const Tensor& src, bool non_blocking) {
  if (self.numel() == 0) return;
  if (same_layout(self, src)) return copy_bytes(self, src, non_blocking);
  const int dtype = self.itemsize() < src.itemsize() ? self.dtype() : src.dtype();
  Tensor from = src;
  if (src.dtype() != dtype || !src.is_contiguous()) {
    from = on_cpu(src) && non_blocking ? pinned(src.sizes(), dtype) : empty(src.sizes(), dtype, src.device());
    ops::copy_(from, src);
  }
  const bool lands = self.dtype() == dtype && self.is_contiguous() && self.sizes() == src.sizes();
  const Tensor landing = lands ? self : empty(src.sizes(), dtype, self.device());
  copy_bytes(landing, from, non_blocking && (lands || !on_cpu(self)));
  if (!lands) ops::copy_(self, landing);
}

}  // namespace

void copy_(const Tensor& self, const Tensor& src, bool non_blocking) {
  if (self.get() == src.get()) return;
  check_copy_shape(self, src);
  check_writable("copy_", self);
  if (self.is_meta()) return;
  if (src.is_meta()) fail(ARGAND_DEVICE_ERROR, "copy_: got a source on meta, which has no data; expected one on a device");
  if (self.device() != src.device()) return transfer(self, src, non_blocking);
  const DeviceGuard guard(self);
  if (partial_overlap(self, src) != Overlap::no) return copy_strided(self, clone(src, std::nullopt));
  copy_strided(self, src);
}

Tensor to_copy(const Tensor& self, int dtype, std::optional<ArgandDevice> device, bool non_blocking, std::optional<int64_t> memory_format) {
  const builtins::Strided g = builtins::clone_shape(self.sizes(), self.strides(), memory_format);
  const Tensor out = empty_strided(g.sizes, g.strides, dtype == ARGAND_DTYPE_NONE ? self.dtype() : dtype, device.value_or(self.device()));
  copy_(out, self, non_blocking);
  return out;
}

Tensor clone(const Tensor& self, std::optional<int64_t> memory_format) { return to_copy(self, self.dtype(), std::nullopt, false, memory_format); }

Tensor flip(const Tensor& self, IntList dims) {
  const uint64_t mask = wrap_dims("flip", dims, self.dim());
  const builtins::Strided like = builtins::clone_shape(self.sizes(), self.strides(), std::nullopt);
  const Tensor out = empty_strided(like.sizes, like.strides, self.dtype(), self.device());
  if (out.numel() == 0) return out;
  const DeviceGuard guard(self);
  Place from(self);
  for (int64_t d = 0; d < self.dim(); d++)
    if (mask >> d & 1) {
      from.data += (self.size(d) - 1) * self.stride(d) * self.itemsize();
      from.strides[d] = -from.strides[d];
    }
  copy_place(Place(out), from);
  return out;
}

}  // namespace argand::kernels::cuda
