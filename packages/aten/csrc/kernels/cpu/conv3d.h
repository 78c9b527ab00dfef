// Convolution over three spatial dimensions, by two-dimensional ones.
#pragma once

#include <tuple>

#include "packages/c10/csrc/abi/tensor.h"

namespace argand::kernels::cpu {

// Of (batch, channel, depth, height, width); as `convolution` and `convolution_backward`.
Tensor convolution3d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride, IntList padding, IntList dilation,
                     int64_t groups);
std::tuple<Tensor, Tensor, Tensor> convolution3d_backward(const Tensor& grad_output, const Tensor& input, const Tensor& weight, IntList stride,
                                                          IntList padding, IntList dilation, int64_t groups, IntList output_mask);

}  // namespace argand::kernels::cpu
