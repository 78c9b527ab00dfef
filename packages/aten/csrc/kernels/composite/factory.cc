// Uninitialised tensors, for all backends.
#include "packages/aten/csrc/core/builtins.h"
#include "packages/aten/generated/kernels.h"

namespace argand::kernels::composite {
namespace {

int dtype_or_default(int dtype) { return dtype == ARGAND_DTYPE_NONE ? builtins::default_dtype() : dtype; }

}  // namespace

Tensor empty(IntList size, int dtype, std::optional<ArgandDevice> device, bool, std::optional<int64_t> memory_format) {
  const ArgandDevice on = device.value_or(ARGAND_DEVICE(ARGAND_CPU, 0));
  if (memory_format.value_or(0) == 0) return argand::empty(size, dtype_or_default(dtype), on);
  return argand::empty_strided(size, builtins::format_strides(size, *memory_format), dtype_or_default(dtype), on);
}

Tensor empty_strided(IntList size, IntList stride, int dtype, std::optional<ArgandDevice> device) {
  if (size.size() != stride.size())
    builtins::raise(ARGAND_SHAPE_ERROR, "mismatch in length of strides and shape: got " + to_string(stride) + " for " + to_string(size));
  return argand::empty_strided(size, stride, dtype_or_default(dtype), device.value_or(ARGAND_DEVICE(ARGAND_CPU, 0)));
}

Tensor empty_like(const Tensor& self, int dtype, std::optional<ArgandDevice> device, bool, std::optional<int64_t> memory_format) {
  const builtins::Strided g = builtins::clone_shape(self.sizes(), self.strides(), memory_format);
  return argand::empty_strided(g.sizes, g.strides, dtype == ARGAND_DTYPE_NONE ? self.dtype() : dtype, device.value_or(self.device()));
}

Tensor new_empty(const Tensor& self, IntList size, int dtype, std::optional<ArgandDevice> device, bool) {
  return argand::empty(size, dtype == ARGAND_DTYPE_NONE ? self.dtype() : dtype, device.value_or(self.device()));
}

}  // namespace argand::kernels::composite
