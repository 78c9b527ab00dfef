// Images with the channels last, as kernels take and make them, and with the channels first.
#pragma once

#include "packages/c10/csrc/abi/tensor.h"

namespace argand::quant {

// [batch, channels, height, width] in any layout to a contiguous [batch, height, width, channels]: the same memory where it is laid out so.
Tensor channels_last(const Tensor& t);
// A contiguous [batch, height, width, channels] to a contiguous tensor of `sizes`, [batch, channels, height, width].
Tensor channels_first(const Tensor& t, IntList sizes);
// Memory of a result of `sizes` (channels first) that a kernel writes channels last; `is_last`: it is the result, else channels_first makes that.
Tensor empty_image(IntList sizes, int dtype, bool is_last);

}  // namespace argand::quant
