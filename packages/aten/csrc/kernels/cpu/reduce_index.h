// Extreme values along a dimension and where they are: the first of equal ones; a NaN wins.
#pragma once

#include <tuple>

#include "packages/c10/csrc/abi/tensor.h"

namespace argand::kernels::cpu {

std::tuple<Tensor, Tensor> max_dim(const Tensor& self, int64_t dim, bool keepdim);
std::tuple<Tensor, Tensor> min_dim(const Tensor& self, int64_t dim, bool keepdim);
Tensor argmax(const Tensor& self, std::optional<int64_t> dim, bool keepdim);  // no dim: in the flattened tensor
Tensor argmin(const Tensor& self, std::optional<int64_t> dim, bool keepdim);

}  // namespace argand::kernels::cpu
