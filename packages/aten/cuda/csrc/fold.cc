// Columns added where their windows lie (argand_aten_cuda/kernels/fold.py).
#include "packages/aten/cuda/csrc/fused.h"
#include "packages/aten/cuda/csrc/places.h"
#include "packages/aten/generated/kernels_cuda.h"
#include "packages/aten/generated/ops/view.h"

namespace argand::kernels::cuda {

Tensor sum_columns(const Tensor& self, IntList output_size, IntList kernel_size, IntList dilation, IntList padding, IntList stride) {
  static Slot slots[kFloats][2];
  const char* op = "fold";
  constexpr int64_t kBlock = 256;
  const places::Below below;
  const int64_t area = kernel_size[0] * kernel_size[1];
  const Tensor out = empty_on(self, {self.size(0), self.size(1) / area, output_size[0], output_size[1]}, self.dtype());
  if (is_complex(self.dtype())) {
    for (const auto part : {ops::real, ops::imag})
      ops::copy_(part(out), sum_columns(part(self), output_size, kernel_size, dilation, padding, stride));
    return out;
  }
  const int index = float_index(op, self.dtype());
  if (out.numel() == 0) return out;
  const Tensor x = places::dense(self);
  int32_t windows[2];
  for (int i = 0; i < 2; i++) windows[i] = size32(op, (output_size[i] + 2 * padding[i] - dilation[i] * (kernel_size[i] - 1) - 1) / stride[i] + 1);
  const auto size = [&](int64_t n) { return size32(op, n); };
  size(area * windows[0] * windows[1]), size(output_size[0] + 2 * padding[0]), size(output_size[1] + 2 * padding[1]);
  const bool wide = out.numel() > std::numeric_limits<int32_t>::max() - kBlock;
  const Kernel* k = slots[index][wide].get("sum_columns;T=%s;I=%s;BLOCK=256", kDTypeName[x.dtype()], wide ? "int64" : "int32");
  const auto run = [&](auto total) {
    launch(k, grid(op, cdiv(out.numel(), kBlock)), address(out), address(x), total, size(output_size[0]), size(output_size[1]), windows[0],
           windows[1], size(kernel_size[0]), size(kernel_size[1]), size(dilation[0]), size(dilation[1]), size(padding[0]), size(padding[1]),
           size(stride[0]), size(stride[1]));
  };
  wide ? run(out.numel()) : run(static_cast<int32_t>(out.numel()));
  return out;
}

}  // namespace argand::kernels::cuda
