// Mantissas and exponents (argand_aten_cuda/kernels/frexp.py).
#include "packages/aten/cuda/csrc/fused.h"
#include "packages/aten/cuda/csrc/places.h"
#include "packages/aten/generated/kernels_cuda.h"
#include "packages/aten/generated/ops/view.h"
#include "packages/c10/csrc/core/strided.h"

namespace argand::kernels::cuda {

std::tuple<Tensor, Tensor> frexp(const Tensor& self) {
  static Slot slots[kFloats];
  const char* op = "frexp";
  constexpr int64_t kBlock = 1024;
  const places::Below below;
  if (!is_floating(self.dtype())) fail(ARGAND_SHAPE_ERROR, "torch.frexp() only supports floating-point dtypes");
  const Dims strides = dense_strides(self.sizes(), self.strides());
  const auto made = [&](int dtype) { return empty_strided(self.sizes(), strides, dtype, self.device()); };
  Tensor x = self;
  if (!(x.strides() == IntList(strides)) || reinterpret_cast<uintptr_t>(x->data) % 16) ops::copy_(x = made(self.dtype()), self);
  const Tensor mantissa = made(self.dtype()), exponent = made(ARGAND_INT32);
  if (x.numel())
    launch(slots[float_index(op, x.dtype())].get("frexp;T=%s;BLOCK=1024", kDTypeName[x.dtype()]), grid(op, cdiv(x.numel(), kBlock)),
           address(mantissa), address(exponent), address(x), x.numel());
  return {mantissa, exponent};
}

}  // namespace argand::kernels::cuda
