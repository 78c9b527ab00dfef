// The registered operators that histories and the engine themselves call, found by name at first use.
#pragma once

#include "packages/c10/csrc/abi/tensor.h"

namespace argand::autograd::tensor_ops {

Tensor add(const Tensor& a, const Tensor& b);
void add_(const Tensor& self, const Tensor& other);
Tensor clone(const Tensor& self);
Tensor contiguous(const Tensor& self);
void copy_(const Tensor& self, const Tensor& source);
void fill_(const Tensor& self, int64_t number);
Tensor zeros(IntList sizes, int dtype, ArgandDevice device);
Tensor ones(IntList sizes, int dtype, ArgandDevice device);
Tensor sum_to_size(const Tensor& self, IntList sizes);
Tensor to_dtype(const Tensor& self, int dtype);
Tensor real(const Tensor& self);
Tensor view_as_real(const Tensor& self);
Tensor view_as_complex(const Tensor& self);
Tensor as_strided(const Tensor& self, IntList sizes, IntList strides, int64_t offset);
Tensor new_empty_strided(const Tensor& like, IntList sizes, IntList strides);
// Gradient of as_strided(base, view_sizes, view_strides, view_offset) for a base of the given geometry.
Tensor as_strided_backward(const Tensor& grad, IntList sizes, IntList strides, int64_t offset, IntList view_sizes, IntList view_strides,
                           int64_t view_offset);

}  // namespace argand::autograd::tensor_ops
