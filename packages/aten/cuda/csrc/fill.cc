// Fills.
#include "packages/aten/csrc/core/iteration.h"
#include "packages/aten/csrc/core/number.h"
#include "packages/aten/cuda/csrc/strided_copy.h"
#include "packages/aten/generated/kernels_cuda.h"
#include "packages/aten/generated/ops/creation.h"
#include "packages/c10/csrc/core/strided.h"

namespace argand::kernels::cuda {
namespace {

bool same_bytes(const char* bytes, int n) {
  for (int i = 1; i < n; i++)
    if (bytes[i] != bytes[0]) return false;
  return true;
}

}  // namespace

void fill_(const Tensor& self, const Operand& value) {
  alignas(16) char bytes[16] = {};
  if (value.is_tensor()) {
    const Tensor t = value.tensor();
    if (t.dim() > 0)
      fail(ARGAND_SHAPE_ERROR, "fill_: got a value tensor with %lld dimensions, expected a number or a 0-dimensional tensor",
           static_cast<long long>(t.dim()));
    if (ARGAND_DEVICE_TYPE(t.device()) != ARGAND_CPU) return copy_(self, t, false);
    const Tensor converted = t.dtype() == self.dtype() ? t : ops::_to_copy(t, self.dtype());
    std::memcpy(bytes, converted->data, static_cast<size_t>(self.itemsize()));
  } else {
    if (value.raw().tag == ARGAND_TAG_COMPLEX && value.raw().c.im != 0 && !is_complex(self.dtype()) && self.dtype() != ARGAND_BOOL)
      fail(ARGAND_RUNTIME_ERROR, "fill_: got a complex number, which a tensor of dtype %s cannot hold; expected a real one",
           kDTypeName[self.dtype()]);
    check_fits("fill_", self.dtype(), value.raw());
    write_number(bytes, self.dtype(), value.raw());
  }
  if (self.is_meta() || self.numel() == 0) return;
  const DeviceGuard guard(self);
  if (same_bytes(bytes, self.itemsize()) && is_non_overlapping_and_dense(self.sizes(), self.strides())) {
    const size_t nbytes = static_cast<size_t>(self.numel()) * self.itemsize();
    return check(device_interface(self.device())->fill_bytes(self->data, ARGAND_DEVICE_INDEX(self.device()), bytes[0], nbytes));
  }
  fill_place(Place(self), bytes);
}

void zero_(const Tensor& self) { fill_(self, Operand(0)); }

}  // namespace argand::kernels::cuda
