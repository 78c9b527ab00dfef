// Copies: into existing tensors, with conversion and broadcasting, and new ones.
#pragma once

#include "packages/aten/csrc/core/operand.h"

namespace argand::kernels::cpu {

// self[...] = src, broadcast to self's shape and converted to its dtype. Overlapping tensors are copied as if src were read first.
void copy_(const Tensor& self, const Tensor& src, bool non_blocking);
// A copy with the same dimension order if self is dense, else row-major; memory_format 0 asks for row-major.
Tensor clone(const Tensor& self, std::optional<int64_t> memory_format);
// A copy of another dtype or on another device.
Tensor to_copy(const Tensor& self, int dtype, std::optional<ArgandDevice> device, bool non_blocking, std::optional<int64_t> memory_format);
Tensor cat(const TensorList& tensors, int64_t dim);

void fill_(const Tensor& self, const Operand& value);
void zero_(const Tensor& self);

}  // namespace argand::kernels::cpu
